"""Makes a training folder of any tables of sentence pairs: cleaned, without duplicates, split into train, val and test.

    python -m transformer.prepare --data a.tsv.gz b.csv --source en --target de --out data/en-de
    python -m transformer.prepare --data *.tsv.gz --source en --target de fr --vocab-size 8000 --out data/three

Each split is one table with a column a language, empty where a pair has none, and the file a pair came from. A run that
was interrupted goes on where it was: what was read of a table is kept until everything is written.
`python -m transformer.train --data data/en-de` reads the result; for several languages see its `--directions`.
"""

import gzip
import hashlib
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from training.arguments import CommandLine, a_folder_to_write, a_number, integer
from training.command import one_sentence
from training.files import write_atomic
from transformer.data import read_parallel, write_table

ORIGIN = "origin"  # the column with the name of the table that a pair came from
TOKENIZER = "tokenizer.model"
PARTS_FOLDER = "unfinished"  # folder beside the splits, until they are written


def split_of(text: str, val: float, test: float) -> str:
    """One of "train", "val" and "test" by a hash of the text: it lands in the same split today and in every file."""
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
    pairs: Iterable[tuple[str, ...]],
    val: float = 0.01,
    test: float = 0.01,
    max_words: int = 100,
    max_ratio: float = 3.0,
) -> tuple[dict[str, list[tuple[str, ...]]], Counter]:
    """Splits normalised pairs into train, val and test, and counts what was dropped and why.

    pairs: (source, target, ...); what follows the target, such as its language, is kept with the pair. val, test:
    shares in [0, 0.5]; max_words, max_ratio: see `reason_to_drop`. Raises `ValueError` if nothing is left to train on.
    """
    if not (0 <= val <= 0.5 and 0 <= test <= 0.5):
        raise ValueError(f"The shares of val and test have to be in [0, 0.5]; got {val} and {test}.")
    splits: dict[str, list[tuple[str, ...]]] = {"train": [], "val": [], "test": []}
    drops: Counter = Counter()
    earlier: set[tuple[str, ...]] = set()
    for pair in pairs:
        reason = "twice" if pair[:2] in earlier else reason_to_drop(pair[0], pair[1], max_words, max_ratio)
        earlier.add(pair[:2])
        if reason:
            drops[reason] += 1
        else:
            # By the source alone: another translation of a training sentence would be no fair test.
            splits[split_of(pair[0], val, test)].append(pair)
    # Nor would a translation that training has seen be one, where the model learns the other direction too.
    held_out = {pair[1].casefold() for name in ("val", "test") for pair in splits[name]}
    train = [pair for pair in splits["train"] if pair[1].casefold() not in held_out]
    if len(train) < len(splits["train"]):
        drops["its translation is held out"] = len(splits["train"]) - len(train)
    splits["train"] = train
    if not train:
        raise ValueError("No pair is left to train on; look at the limits and at the shares of val and test.")
    return splits, drops


def stem(path: str | Path) -> str:
    """The name of a table without folder and ending: "news.en-de" of "x/news.en-de.tsv.gz"."""
    name = Path(path).name.removesuffix(".gz")
    return name.removesuffix(".tsv").removesuffix(".csv")


def read_all(
    files: list[str], source: str, targets: list[str], folder: Path
) -> tuple[list[tuple[str, str, str, str]], dict[str, str]]:
    """(source, target, name of the target's column, origin) of every table, and why tables were left out, by name.

    A table needs the source's column and at least one of the targets'. folder: for what was read of each table; a table
    that is there and has not changed since is not read again. Progress goes to standard error.
    """
    rows, failures = [], {}
    for number, path in enumerate(files, 1):
        part = folder / f"{key_of(Path(path), source, targets)}.json.gz"
        again = part.is_file()
        if again:
            pairs = json.loads(gzip.decompress(part.read_bytes()))
        else:
            pairs, reasons = [], []
            for target in targets:
                try:
                    pairs += [(left, right, target) for left, right in read_parallel(path, source, target)]
                except (ValueError, OSError) as error:
                    reasons.append(str(error))
            if pairs:
                write_atomic(part, gzip.compress(json.dumps(pairs).encode(), 1))
            else:
                failures[str(path)] = reasons[0]
        rows += [(*row, stem(path)) for row in pairs]
        print(f"{number}/{len(files)} {Path(path).name}: {len(pairs)} pairs{', read before' * again}", file=sys.stderr)
    return rows, failures


def key_of(path: Path, source: str, targets: list[str]) -> str:
    """A name for what was read of a table: another one if the file or the columns are others."""
    state = path.stat() if path.is_file() else None
    about = [str(path.resolve()), state and [state.st_size, state.st_mtime_ns], source, targets]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def write(folder: Path, splits: dict[str, list[tuple[str, ...]]], source: str, targets: list[str]) -> None:
    """Writes each split that is not empty as SPLIT.tsv.gz: the source's column, one a target, and the origin."""
    for name, pairs in splits.items():
        if pairs:
            rows = [
                [left, *(right if target == column else "" for column in targets), origin]
                for left, right, target, origin in pairs
            ]
            write_table(folder / f"{name}.tsv.gz", (source, *targets, ORIGIN), rows)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts, and at the end the tables that were left out."""
    from transformer.tokenizer import Tokenizer

    parser = CommandLine(
        prog="python -m transformer.prepare",
        description="Make a training folder of tables of sentence pairs.",
    )
    parser.add_argument("--data", required=True, nargs="+", help=".tsv or .csv files, gzipped or not")
    parser.add_argument("--source", required=True, help="column of the source; A+B joins two columns")
    parser.add_argument("--target", required=True, nargs="+", help="column of the target, or of several languages")
    parser.add_argument("--out", required=True, type=a_folder_to_write, help="folder to write")
    parser.add_argument("--val", type=a_number(0, 1), default=0.01, help="share of sources held out for validation")
    parser.add_argument("--test", type=a_number(0, 1), default=0.01, help="share of sources held out for the test")
    parser.add_argument("--max-words", type=integer(1), default=100, help="longest side in words")
    parser.add_argument("--max-ratio", type=a_number(1), default=3.0, help="largest ratio of the sides' lengths")
    pieces = integer(0, 1_000_000)
    parser.add_argument("--vocab-size", type=pieces, default=0, help="pieces of a vocabulary to learn; 0 = none")
    options = parser.parse_args(argv)
    folder = options.out / PARTS_FOLDER
    rows, failures = read_all(options.data, options.source, options.target, folder)
    if not rows:
        raise ValueError("No table could be read. " + " ".join(failures.values()))
    splits, drops = prepare(rows, options.val, options.test, options.max_words, options.max_ratio)
    write(options.out, splits, options.source, options.target)
    if options.vocab_size:
        print(f"learning {options.vocab_size} word pieces", file=sys.stderr)
        texts = [text for row in splits["train"] for text in row[:2]]
        languages = [options.source, *options.target]
        tokenizer = Tokenizer.train(dict.fromkeys(texts), options.vocab_size, languages, stand_ins=True)
        tokenizer.save(options.out / TOKENIZER)
    shutil.rmtree(folder)
    print(json.dumps({**{name: len(part) for name, part in splits.items()}, "dropped": drops, "skipped": failures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
