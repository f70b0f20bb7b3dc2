"""New sources for true targets: paraphrases by back-translation (Sennrich et al. 2016, section 3.1).

    python -m lab.translator.paraphrase --model everyday --data train.tsv.gz --origin fr de --source en --target de \
        --judge multi30k-en-de --out DIR/train.tsv.gz

A table with columns in three languages says everything three times. Translated to the source language by a model, its
third column is the source in other words, and so is the target column itself; either belongs to the target that a
person wrote. Machine translations err, so a model that knows the text judges each pair: what makes the target much less
likely than the true source does is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import sys

from training.arguments import (
    MOST_BEAM,
    CommandLine,
    a_device,
    a_file_to_write,
    a_number,
    an_existing_file,
    integer,
)
from training.command import one_sentence
from transformer.data import read_parallel, write_table
from transformer.evaluate import losses
from transformer.options import SearchOptions
from transformer.prepare import ORIGIN
from transformer.translator import Translator

CHUNK = 500  # sentences between two lines of progress


def rates(judge: Translator, pairs: list[tuple[str, str]], target: str) -> list[float]:
    """-log p(target | source) of each normalised pair in nats per word piece; `inf` where the judge cannot say."""
    return [nats / count if count else math.inf for nats, count in losses(judge, pairs, target)]


def keep_likely(
    judge: Translator, pairs: list[tuple[str, str]], sources: list[str], target: str, borne: list[float]
) -> list[tuple[str, str]]:
    """The pairs (new source, true target) that the judge rates no worse than `borne`, without repeats and true pairs.

    For each of the normalised true pairs: sources: its new source, left out if empty; borne: nats per word piece.
    """
    new = [(source, truth) for source, (_, truth) in zip(sources, pairs, strict=True)]
    near = [
        pair for pair, rate, most in zip(new, rates(judge, new, target), borne, strict=True) if rate <= most < math.inf
    ]
    known = set(pairs)
    return [pair for pair in dict.fromkeys(near) if pair not in known]


def translate_back(
    model: Translator, texts: list[str], language: str, source: str, options: SearchOptions
) -> list[list[str]]:
    """The translations of each text: n_best lists, the likeliest first; an empty text where the search found fewer."""
    n_best = options.n_best
    found: list[list[str]] = [[] for _ in range(n_best)]
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        for sentence in model.translate_sentences(chunk, language, source, options):
            said = [h.text for h in sentence.hypotheses] + [""] * n_best
            for column, text in zip(found, said):
                column.append(text)
        print(f"{language} {len(found[0])}/{len(texts)}", file=sys.stderr)
    return found


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    options = CommandLine(
        prog="python -m lab.translator.paraphrase",
        description="Write a table with new sources beside the true ones.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument(
        "--model", required=True, help="translates to the source language: a shipped model, or a folder"
    )
    options.add_argument("--data", type=an_existing_file, required=True, help=".tsv or .csv file, gzipped or not")
    options.add_argument("--origin", required=True, nargs="+", help="languages and columns that are translated")
    options.add_argument("--source", required=True, help="language and column of the source")
    options.add_argument("--target", required=True, help="language and column of the target")
    options.add_argument("--judge", required=True, help="translates source to target: a shipped model, or a folder")
    options.add_argument(
        "--margin", type=a_number(0), default=0.7, help="nats per word piece above the true pair that are borne"
    )
    options.add_argument(
        "--beside", type=an_existing_file, default=None, help="table whose pairs come first; by default those of --data"
    )
    options.add_argument(
        "--out", required=True, type=a_file_to_write(".tsv.gz"), help="table to write, ending in .tsv.gz"
    )
    options.add_argument("--beam", type=integer(1, MOST_BEAM), default=3)
    options.add_argument("--best", type=integer(1), default=1, help="translations of each text, at most --beam")
    options.add_argument("--device", type=a_device, default="auto")
    given = options.parse_args(argv)
    if not 1 <= given.best <= given.beam:
        raise ValueError(f"--best has to be from 1 to the beam's {given.beam}; got {given.best}.")
    model, judge = (Translator.from_pretrained(name, given.device) for name in (given.model, given.judge))
    judge.check_pair(given.source, given.target)
    for language in given.origin:
        model.check_pair(language, given.source)
    pairs = read_parallel(given.data, given.source, given.target)
    first = read_parallel(given.beside, given.source, given.target) if given.beside else pairs
    known, rows, counts = set(first), [(*pair, "true") for pair in first], {"true": len(first)}
    columns = {}
    for language in given.origin:
        columns[language] = (
            [t for _, t in pairs]
            if language == given.target
            else [t for t, _ in read_parallel(given.data, language, given.target)]
        )
        if len(columns[language]) != len(pairs):
            raise ValueError(f"{given.data}: the column '{language}' has other empty cells than '{given.source}'.")
    borne = [rate + given.margin for rate in rates(judge, pairs, given.target)]
    for language, texts in columns.items():
        before = len(rows)
        for sources in translate_back(
            model, texts, language, given.source, SearchOptions(given.beam, n_best=given.best)
        ):
            new = [pair for pair in keep_likely(judge, pairs, sources, given.target, borne) if pair not in known]
            known.update(new)
            rows += [(*pair, language) for pair in new]
        counts[language] = len(rows) - before
    write_table(given.out, (given.source, given.target, ORIGIN), rows)
    print(json.dumps({**counts, "margin": given.margin, "beam": given.beam, "best": given.best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
