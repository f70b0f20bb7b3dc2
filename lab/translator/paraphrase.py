"""New sources for true targets: paraphrases by back-translation (Sennrich et al. 2016, section 3.1).

    python -m lab.translator.paraphrase --model everyday --data train.tsv.gz --origin fr de --source en --target de \
        --judge multi30k-en-de --out DIR/train.tsv.gz

A table with columns in three languages says everything three times. Translated to the source language by a model, its
third column is the source in other words, and so is the target column itself; either belongs to the target that a
person wrote. Machine translations err, so a model that knows the text judges each pair: what makes the target much less
likely than the true source does is left out.
"""

from __future__ import annotations

import json
import math
import sys

from training.arguments import (
    MAX_BEAM,
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
    judge: Translator, pairs: list[tuple[str, str]], sources: list[str], target: str, limits: list[float]
) -> list[tuple[str, str]]:
    """The pairs (new source, true target) that the judge rates no worse than `limits`, without repeats and true pairs.

    For each of the normalised true pairs: sources: its new source, left out if empty; limits: nats per word piece.
    """
    new = [(source, truth) for source, (_, truth) in zip(sources, pairs, strict=True)]
    near = [
        pair for pair, rate, most in zip(new, rates(judge, new, target), limits, strict=True) if rate <= most < math.inf
    ]
    truths = set(pairs)
    return [pair for pair in dict.fromkeys(near) if pair not in truths]


def translate_back(
    model: Translator, texts: list[str], language: str, source: str, options: SearchOptions
) -> list[list[str]]:
    """The translations of each text: n_best lists, the likeliest first; an empty text where the search found fewer."""
    n_best = options.n_best
    columns: list[list[str]] = [[] for _ in range(n_best)]
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        for sentence in model.translate_sentences(chunk, language, source, options):
            sources = [h.text for h in sentence.hypotheses] + [""] * n_best
            for column, text in zip(columns, sources):
                column.append(text)
        print(f"{language} {len(columns[0])}/{len(texts)}", file=sys.stderr)
    return columns


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    parser = CommandLine(
        prog="python -m lab.translator.paraphrase",
        description="Write a table with new sources beside the true ones.",
    )
    parser.add_argument(
        "--model", required=True, help="translates to the source language: a shipped model, or a folder"
    )
    parser.add_argument("--data", type=an_existing_file, required=True, help=".tsv or .csv file, gzipped or not")
    parser.add_argument("--origin", required=True, nargs="+", help="languages and columns that are translated")
    parser.add_argument("--source", required=True, help="language and column of the source")
    parser.add_argument("--target", required=True, help="language and column of the target")
    parser.add_argument("--judge", required=True, help="translates source to target: a shipped model, or a folder")
    parser.add_argument(
        "--margin", type=a_number(0), default=0.7, help="nats per word piece above the true pair that are borne"
    )
    parser.add_argument(
        "--beside", type=an_existing_file, default=None, help="table whose pairs come first; by default those of --data"
    )
    parser.add_argument(
        "--out", required=True, type=a_file_to_write(".tsv.gz"), help="table to write, ending in .tsv.gz"
    )
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=3)
    parser.add_argument("--best", type=integer(1), default=1, help="translations of each text, at most --beam")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    if not 1 <= options.best <= options.beam:
        raise ValueError(f"--best has to be from 1 to the beam's {options.beam}; got {options.best}.")
    model, judge = (Translator.from_pretrained(name, options.device) for name in (options.model, options.judge))
    judge.check_pair(options.source, options.target)
    for language in options.origin:
        model.check_pair(language, options.source)
    pairs = read_parallel(options.data, options.source, options.target)
    first = read_parallel(options.beside, options.source, options.target) if options.beside else pairs
    earlier, rows, counts = set(first), [(*pair, "true") for pair in first], {"true": len(first)}
    columns = {}
    for language in options.origin:
        columns[language] = (
            [t for _, t in pairs]
            if language == options.target
            else [t for t, _ in read_parallel(options.data, language, options.target)]
        )
        if len(columns[language]) != len(pairs):
            raise ValueError(f"{options.data}: the column '{language}' has other empty cells than '{options.source}'.")
    limits = [rate + options.margin for rate in rates(judge, pairs, options.target)]
    for language, texts in columns.items():
        before = len(rows)
        for sources in translate_back(
            model, texts, language, options.source, SearchOptions(options.beam, n_best=options.best)
        ):
            new = [pair for pair in keep_likely(judge, pairs, sources, options.target, limits) if pair not in earlier]
            earlier.update(new)
            rows += [(*pair, language) for pair in new]
        counts[language] = len(rows) - before
    write_table(options.out, (options.source, options.target, ORIGIN), rows)
    print(json.dumps({**counts, "margin": options.margin, "beam": options.beam, "best": options.best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
