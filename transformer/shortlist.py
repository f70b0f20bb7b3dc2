"""A shortlist of output words: the word pieces of one language, among which quick translation looks for the next one.

    python -m transformer.shortlist --model assets/models/everyday --data TEXT/train.tsv.gz

counts the pieces of each target language in its columns of a table and writes what it needs of them beside the weights.
A vocabulary that languages share holds for each of them many pieces of the others, and the product with the output
matrix is the largest of a decoding step: without them it is half as large.

Marian and its kin choose words for each batch anew, those that an alignment model finds for the source (Kim et al.
2019, "From Research to Production and Back", section 3.3). 32 sentences together need almost as many that way, and a
matrix cut out for them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from training import assets
from training.command import one_sentence
from training.files import write_atomic
from training.weights import load_config
from transformer.mixture import read_rows
from transformer.tokenizer import BOS, EOS, PAD, SPACE, STAND_INS, UNK, Tokenizer

FILE = "shortlists.safetensors"
SHARE = 0.9995  # of the pieces in a language's text that its shortlist holds
WHOLE = 64  # a shortlist's length is a multiple of this, as `search.largest` and the products of 8 bits like it


def choose(counts: np.ndarray, tokenizer: Tokenizer, share: float = SHARE) -> Tensor:
    """Which pieces a shortlist holds: the most frequent ones that make up `share` of a language's text.

    So that whatever is to be written can be spelt, eos, the stand-ins and single characters are always among them.

    counts: (V,) how often each piece is written.
    Returns (V,) True = is held; their number is a multiple of `WHOLE` where the vocabulary is large enough.
    Raises `ValueError` where nothing was counted.
    """
    if not counts.sum():
        raise ValueError("There is no text in this language to choose a shortlist by.")
    order = np.argsort(-counts, kind="stable")
    enough = int(np.searchsorted(counts[order].cumsum(), share * counts.sum())) + 1
    held = np.zeros(len(counts), bool)
    held[order[:enough]] = True
    always = [
        number
        for number, piece in enumerate(tokenizer.pieces(range(len(counts))))
        if piece in STAND_INS or len(piece.removeprefix(SPACE)) <= 1
    ]
    never = [PAD, UNK, BOS]
    held[[EOS, *always]], held[never] = True, False
    more = order[~held[order] & ~np.isin(order, never)]
    held[more[: -held.sum() % WHOLE]] = True
    return torch.from_numpy(held)


def count_pieces(texts: Iterable[str], tokenizer: Tokenizer) -> np.ndarray:
    """(V,) how often each piece is written in normalised sentences."""
    counts = np.zeros(len(tokenizer), np.int64)
    for text in texts:
        np.add.at(counts, tokenizer.encode(text), 1)
    return counts


def save_shortlists(folder: Path, held: Mapping[str, Tensor]) -> None:
    """Writes, for each language, which pieces its shortlist holds, as from `choose`."""
    write_atomic(folder / FILE, save({language: chosen.contiguous() for language, chosen in held.items()}))


def load_shortlists(folder: Path, words: int) -> dict[str, Tensor]:
    """What `save_shortlists` wrote: of each language the ids (N,) of its shortlist, ascending; empty without a file.

    words: V of the model.
    Raises `ValueError` with one sentence for a file that is damaged, or of another vocabulary.
    """
    if not (folder / FILE).is_file():
        return {}
    try:
        held = load_file(folder / FILE)
    except (SafetensorError, OSError):
        raise ValueError(f"{folder.name}/{FILE} is damaged; copy it again or delete it.") from None
    if any(one.shape != (words,) or one.dtype != torch.bool or not one[EOS] for one in held.values()):
        raise ValueError(f"{folder.name}/{FILE} belongs to another vocabulary; make it again or delete it.")
    return {language: one.nonzero()[:, 0] for language, one in held.items()}


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the length of each language's shortlist."""
    options = argparse.ArgumentParser(
        prog="python -m transformer.shortlist",
        description="Choose the word pieces of each target language for quick translation.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("--model", required=True, help="name of a shipped model, or a folder")
    options.add_argument("--data", required=True, type=Path, help="table of transformer.prepare that it learned from")
    options.add_argument("--share", type=float, default=SHARE, help="of a language's pieces that its shortlist holds")
    given = options.parse_args(argv)
    if not 0.0 < given.share <= 1.0:
        raise ValueError(f"--share lies above 0 and up to 1; got {given.share:g}.")
    folder = assets.model_or_dir(given.model)
    pairs = load_config(folder).get("pairs") or []
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
    languages = list(dict.fromkeys(language for pair in pairs for language in pair))
    rows = read_rows(given.data, languages)
    held = {}
    for target in dict.fromkeys(target for _, target in pairs):
        texts = (row.texts[row.languages.index(target)] for row in rows if target in row.languages)
        held[target] = choose(count_pieces(texts, tokenizer), tokenizer, given.share)
    save_shortlists(folder, held)
    print(json.dumps({language: int(one.sum()) for language, one in held.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
