"""A shortlist of output words: the word pieces of one language, among which quick translation looks for the next one.

A vocabulary that languages share holds for each of them many pieces of the others, and the product with the output
matrix is the largest of a decoding step: without them it is half as large.

Marian and its kin choose words for each batch anew, those that an alignment model finds for the source (Kim et al.
2019, "From Research to Production and Back", section 3.3). 32 sentences together need almost as many that way, and a
matrix cut out for them.
"""

from pathlib import Path

import torch
from torch import Tensor

from training.weights import read_tensors
from transformer.tokenizer import EOS

FILE = "shortlists.safetensors"


def load_shortlists(folder: Path, words: int) -> dict[str, Tensor]:
    """Of each target language the ids (N,) of its shortlist, ascending; empty for a model folder without the file.

    words: V of the model.
    Raises `ValueError` with one sentence for a file that is damaged, or of another vocabulary.
    """
    if not (folder / FILE).is_file():
        return {}
    masks = read_tensors(folder / FILE)
    if any(one.shape != (words,) or one.dtype != torch.bool or not one[EOS] for one in masks.values()):
        raise ValueError(f"{folder.name}/{FILE} belongs to another vocabulary; make it again or delete it.")
    return {language: one.nonzero()[:, 0] for language, one in masks.items()}
