"""Makes a training folder of any tables of sentence pairs: cleaned, without duplicates, split into train, val and test.

    python -m transformer.prepare --data a.tsv.gz b.csv --source en --target de --out data/en-de

`python -m transformer.train --data data/en-de` reads the result.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Iterable

from transformer.data import read_parallel


def split_of(text: str, val: float, test: float) -> str:
    """"train", "val" or "test" by a hash of the text: the same text lands in the same split today and in every file."""
    position = int.from_bytes(hashlib.sha256(text.casefold().encode()).digest()[:8], "big") / 2**64
    return "val" if position < val else "test" if position < val + test else "train"


def reason_to_drop(source: str, target: str, max_words: int, max_ratio: float) -> str | None:
    """Why a normalised pair is no good for training, or None if it is good.

    max_words: longest side in words. max_ratio: largest ratio of the lengths in characters, from 20 characters on.
    """
    if max(len(source.split()), len(target.split())) > max_words:
        return "too long"
    short, long = sorted((len(source), len(target)))
    if long >= 20 and long > max_ratio * short:
        return "lengths differ too much"
    if source == target and any(map(str.isalpha, source)) and " " in source:
        return "copied, not translated"
    return None


def prepare(
    pairs: Iterable[tuple[str, str]],
    val: float = 0.01,
    test: float = 0.01,
    max_words: int = 100,
    max_ratio: float = 3.0,
) -> tuple[dict[str, list[tuple[str, str]]], Counter]:
    """Splits normalised pairs into train, val and test, and counts what was dropped and why.

    val, test: shares in [0, 0.5]. Raises `ValueError` if nothing is left to train on.
    """
    if not (0 <= val <= 0.5 and 0 <= test <= 0.5):
        raise ValueError(f"The shares of val and test have to be in [0, 0.5]; got {val} and {test}.")
    splits: dict[str, list[tuple[str, str]]] = {"train": [], "val": [], "test": []}
    dropped, seen = Counter(), set()
    for pair in pairs:
        reason = "twice" if pair in seen else reason_to_drop(*pair, max_words, max_ratio)
        seen.add(pair)
        if reason:
            dropped[reason] += 1
        else:
            # By the source alone: another translation of a training sentence would be no fair test.
            splits[split_of(pair[0], val, test)].append(pair)
    if not splits["train"]:
        raise ValueError("No pair is left to train on; look at the limits and at the shares of val and test.")
    return splits, dropped


def write(folder: Path, splits: dict[str, list[tuple[str, str]]], source: str, target: str) -> None:
    """Writes each split that is not empty as SPLIT.tsv.gz with the two columns' names in the first line."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits.items():
        if pairs:
            with gzip.open(folder / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
                file.write(f"{source}\t{target}\n")
                file.writelines(f"{left}\t{right}\n" for left, right in pairs)


def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    options = argparse.ArgumentParser(
        prog="python -m transformer.prepare", description="Make a training folder of tables of sentence pairs.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("--data", required=True, nargs="+", help=".tsv or .csv files, gzipped or not")
    options.add_argument("--source", required=True, help="column of the source")
    options.add_argument("--target", required=True, help="column of the target")
    options.add_argument("--out", required=True, type=Path, help="folder to write")
    options.add_argument("--val", type=float, default=0.01, help="share of sources held out for validation")
    options.add_argument("--test", type=float, default=0.01, help="share of sources held out for the test")
    options.add_argument("--max-words", type=int, default=100, help="longest side in words")
    options.add_argument("--max-ratio", type=float, default=3.0, help="largest ratio of the sides' lengths")
    given = options.parse_args(argv)
    try:
        pairs = [pair for path in given.data for pair in read_parallel(path, given.source, given.target)]
        splits, dropped = prepare(pairs, given.val, given.test, given.max_words, given.max_ratio)
        write(given.out, splits, given.source, given.target)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps({**{name: len(part) for name, part in splits.items()}, "dropped": dropped}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
