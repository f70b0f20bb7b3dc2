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

import json
import sys
from collections.abc import Iterator
from dataclasses import replace

from training.arguments import MAX_BEAM, CommandLine, a_device, a_file_to_write, a_number, an_existing_file, integer
from training.command import one_sentence
from transformer.data import read_parallel, write_table
from transformer.options import DEFAULTS, SearchOptions
from transformer.prepare import ORIGIN
from transformer.translator import Translator

CHUNK = 1000  # sentences between two lines of progress


def teacher_rows(
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
        results = teacher.translate_sentences([s for s, _ in chunk], source, target, options)
        texts = []
        for sentence, (_, truth) in zip(results, chunk):
            ratings = [(bleu.sentence_score(h.text, [truth]).score, h.text) for h in sentence.hypotheses]
            score, text = max(ratings, key=lambda pair: pair[0])
            texts.append(text if score >= least else "")
        yield texts


def add_teacher(pairs: list[tuple[str, str]], translations: list[str]) -> list[tuple[str, str, str]]:
    """(source, target, origin) of the true pairs, then of the teacher's that add something: no truth twice, nothing
    empty.
    """
    true, earlier = [(*pair, "true") for pair in pairs], set(pairs)
    new = dict.fromkeys((source, text) for (source, _), text in zip(pairs, translations, strict=True) if text)
    return true + [(*pair, "teacher") for pair in new if pair not in earlier]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    parser = CommandLine(
        prog="python -m lab.translator.distil",
        description="Write a table with a teacher's translations beside the true ones.",
    )
    parser.add_argument("--model", required=True, help="the teacher: name of a shipped model, or a folder")
    parser.add_argument("--data", type=an_existing_file, required=True, help=".tsv or .csv file, gzipped or not")
    parser.add_argument("--source", required=True, help="language and column of the source")
    parser.add_argument("--target", required=True, help="language and column of the target")
    parser.add_argument(
        "--out", required=True, type=a_file_to_write(".tsv.gz"), help="table to write, ending in .tsv.gz"
    )
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=5)
    parser.add_argument("--alpha", type=a_number(), default=None, help="length penalty; by default the model's")
    parser.add_argument("--closest", action="store_true", help="of the teacher's best, the one nearest to the truth")
    parser.add_argument(
        "--least", type=a_number(0, 100), default=0.0, help="sentence BLEU below which an output is left out"
    )
    parser.add_argument("--quick", action="store_true", help="multiply by weights of 8 bits")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    teacher = Translator.from_pretrained(options.model, options.device)
    teacher.check_pair(options.source, options.target)
    pairs, translations = read_parallel(options.data, options.source, options.target), []
    alpha = teacher.length_penalty(options.source, options.target, options.alpha)
    search = SearchOptions(options.beam, alpha, quick=options.quick)
    for part in teacher_rows(teacher, pairs, options.source, options.target, search, options.closest, options.least):
        translations += part
        print(f"{len(translations)}/{len(pairs)}", file=sys.stderr)
    rows = add_teacher(pairs, translations)
    write_table(options.out, (options.source, options.target, ORIGIN), rows)
    counts = {"true": len(pairs), "teacher": len(rows) - len(pairs)}
    print(
        json.dumps({**counts, "beam": options.beam, "alpha": alpha, "closest": options.closest, "least": options.least})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
