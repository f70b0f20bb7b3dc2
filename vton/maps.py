"""The pictures of a try-on in the order of Figure 3 of the VITON-HD paper: name, symbol, stage, one sentence each."""

from typing import NamedTuple

from training.files import read_table
from vton.result import PICTURES
from vton.stages import MAKERS


class Map(NamedTuple):
    """How one picture of a result is presented."""

    title: str
    symbol: str  # the paper's, plain text, "_" before a subscript
    stage: str  # the one that makes it
    about: str


# Title, symbol and sentence; the keys are those of TryOnResult.pictures() and the names of the files.
_WORDS = read_table(__file__)
MAPS = {name: Map(title, symbol, MAKERS[PICTURES[name][0]], about) for name, (title, symbol, about) in _WORDS.items()}
