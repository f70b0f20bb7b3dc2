"""Chooses the word pieces of each target language for quick translation (`transformer.shortlist`).

    python -m lab.translator.shortlist --model assets/models/everyday --data TEXT/train.tsv.gz

counts the pieces of each target language in its columns of a table and writes what it needs of them beside the weights.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from lab.translator.mixture import read_rows
from training import assets
from training.arguments import CommandLine, a_number, an_existing_file
from training.command import one_sentence
from training.files import write_atomic
from training.weights import load_config
from transformer.shortlist import FILE
from transformer.tokenizer import BOS, EOS, PAD, SPACE, STAND_INS, UNK, Tokenizer

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
    mask = np.zeros(len(counts), bool)
    mask[order[:enough]] = True
    always = [
        number
        for number, piece in enumerate(tokenizer.pieces(range(len(counts))))
        if piece in STAND_INS or len(piece.removeprefix(SPACE)) <= 1
    ]
    never = [PAD, UNK, BOS]
    mask[[EOS, *always]], mask[never] = True, False
    more = order[~mask[order] & ~np.isin(order, never)]
    mask[more[: -mask.sum() % WHOLE]] = True
    return torch.from_numpy(mask)


def count_pieces(texts: Iterable[str], tokenizer: Tokenizer) -> np.ndarray:
    """(V,) how often each piece is written in normalised sentences."""
    counts = np.zeros(len(tokenizer), np.int64)
    for text in texts:
        np.add.at(counts, tokenizer.encode(text), 1)
    return counts


def save_shortlists(folder: Path, masks: Mapping[str, Tensor]) -> None:
    """Writes, for each language, which pieces its shortlist holds, as from `choose`."""
    write_atomic(folder / FILE, save({language: mask.contiguous() for language, mask in masks.items()}))


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the length of each language's shortlist."""
    parser = CommandLine(
        prog="python -m lab.translator.shortlist",
        description="Choose the word pieces of each target language for quick translation.",
    )
    parser.add_argument("--model", required=True, help="name of a shipped model, or a folder")
    parser.add_argument(
        "--data", required=True, type=an_existing_file, help="table of transformer.prepare that it learned from"
    )
    parser.add_argument(
        "--share",
        type=a_number(above=0, most=1),
        default=SHARE,
        help="of a language's pieces that its shortlist holds",
    )
    options = parser.parse_args(argv)
    folder = assets.model_or_dir(options.model)
    pairs = load_config(folder).get("pairs") or []
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
    languages = list(dict.fromkeys(language for pair in pairs for language in pair))
    rows = read_rows(options.data, languages)
    masks = {}
    for target in dict.fromkeys(target for _, target in pairs):
        texts = (row.texts[row.languages.index(target)] for row in rows if target in row.languages)
        masks[target] = choose(count_pieces(texts, tokenizer), tokenizer, options.share)
    save_shortlists(folder, masks)
    print(json.dumps({language: int(one.sum()) for language, one in masks.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
