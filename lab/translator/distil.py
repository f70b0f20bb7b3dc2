"""Sequence-level knowledge distillation (Kim and Rush 2016, section 3.2): a teacher's translations as training pairs.

    python -m lab.translator.distil --model TEACHER --data train.tsv.gz --source en --target de --out DIR/train.tsv.gz

A larger model, or the same one, translates every source of a table, with its beam. The table written holds the true
pairs, then those whose target the teacher wrote, without the ones that are the truth word for word; `origin` says which
is which. A smaller model that learns both hears the truth, and a version of it that is more regular. With `--closest`
the teacher's n best are compared with the truth and the one of the highest sentence BLEU is taken (section 3.3,
sequence-level interpolation): a model that learns from its own becomes likelier to find, with a beam, what is near the
truth. `--least` leaves out what is far from the truth nevertheless.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace

from training.arguments import MOST_BEAM, CommandLine, a_device, a_file_to_write, a_number, an_existing_file, integer
from training.command import one_sentence
from transformer.data import read_parallel, write_table
from transformer.options import DEFAULTS, SearchOptions
from transformer.prepare import ORIGIN
from transformer.translator import Translator

CHUNK = 1000  # sentences between two lines of progress


def taught(
    teacher: Translator,
    pairs: list[tuple[str, str]],
    source: str,
    target: str,
    options: SearchOptions = DEFAULTS,
    closest: bool = False,
    least: float = 0.0,
) -> Iterator[list[str]]:
    """The teacher's translations of the sources of normalised pairs, CHUNK at a time and in order.

    options: of the search.
    closest: of its beam's best the one nearest to the pair's target by sentence BLEU, the likelier one of two equal
        ones.
    least: sentence BLEU (0 to 100) of what is good enough; instead of anything below it there is an empty text.
    """
    from sacrebleu.metrics import BLEU

    options = replace(options, n_best=options.beam if closest else 1)
    bleu = BLEU(effective_order=True)
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        found = teacher.translate_sentences([s for s, _ in chunk], source, target, options)
        texts = []
        for sentence, (_, truth) in zip(found, chunk):
            scored = [(bleu.sentence_score(h.text, [truth]).score, h.text) for h in sentence.hypotheses]
            score, text = max(scored, key=lambda pair: pair[0])
            texts.append(text if score >= least else "")
        yield texts


def add_teacher(pairs: list[tuple[str, str]], translations: list[str]) -> list[tuple[str, str, str]]:
    """(source, target, origin) of the true pairs, then of the teacher's that add something: no truth twice, nothing
    empty.
    """
    true, seen = [(*pair, "true") for pair in pairs], set(pairs)
    new = dict.fromkeys((source, text) for (source, _), text in zip(pairs, translations, strict=True) if text)
    return true + [(*pair, "teacher") for pair in new if pair not in seen]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    options = CommandLine(
        prog="python -m lab.translator.distil",
        description="Write a table with a teacher's translations beside the true ones.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("--model", required=True, help="the teacher: name of a shipped model, or a folder")
    options.add_argument("--data", type=an_existing_file, required=True, help=".tsv or .csv file, gzipped or not")
    options.add_argument("--source", required=True, help="language and column of the source")
    options.add_argument("--target", required=True, help="language and column of the target")
    options.add_argument(
        "--out", required=True, type=a_file_to_write(".tsv.gz"), help="table to write, ending in .tsv.gz"
    )
    options.add_argument("--beam", type=integer(1, MOST_BEAM), default=5)
    options.add_argument("--alpha", type=a_number(), default=None, help="length penalty; by default the model's")
    options.add_argument("--closest", action="store_true", help="of the teacher's best, the one nearest to the truth")
    options.add_argument(
        "--least", type=a_number(0, 100), default=0.0, help="sentence BLEU below which an output is left out"
    )
    options.add_argument("--quick", action="store_true", help="multiply by weights of 8 bits")
    options.add_argument("--device", type=a_device, default="auto")
    given = options.parse_args(argv)
    teacher = Translator.from_pretrained(given.model, given.device)
    teacher.check_pair(given.source, given.target)
    pairs, translations = read_parallel(given.data, given.source, given.target), []
    alpha = teacher.length_penalty(given.source, given.target, given.alpha)
    search = SearchOptions(given.beam, alpha, quick=given.quick)
    for part in taught(teacher, pairs, given.source, given.target, search, given.closest, given.least):
        translations += part
        print(f"{len(translations)}/{len(pairs)}", file=sys.stderr)
    rows = add_teacher(pairs, translations)
    write_table(given.out, (given.source, given.target, ORIGIN), rows)
    counts = {"true": len(pairs), "teacher": len(rows) - len(pairs)}
    print(json.dumps({**counts, "beam": given.beam, "alpha": alpha, "closest": given.closest, "least": given.least}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
