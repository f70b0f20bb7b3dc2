"""What each rule around the model is worth: held-out text translated with all of them, and without one.

    python -m lab.translator.rules --model general --data DATA/test.tsv.gz --count 200

The rules are those of `transformer.text`: `layout` keeps marks, tags and emoji around sentences from the model;
`casing` gives text typed without capitals, or in capitals alone, the usual ones; `spelling` gives it
umlauts, ß and accents; `verbatim` takes addresses and unknown letters out and puts them back, and numbers and names
that the model loses, `quantities` as the other language writes them; `elision` spells French.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Sequence

from lab.translator.mixture import GENERAL, read_rows
from training.arguments import CommandLine, a_seed, an_existing_file, integer
from training.command import one_sentence
from transformer.options import RULES, SearchOptions
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Translator

BY_PEOPLE = tuple(name for name in GENERAL if name != "firefox_teacher")  # by people, on both sides
HABITS: dict[str, Callable[[str], str]] = {
    "as written": str,
    "small": str.lower,
    "capitals": str.upper,
}  # how a visitor may type the same sentence


def figures(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> dict[str, float | int | None]:
    """bleu and chrf from 0 to 100, without regard to case; numbers: share of the sources with digits whose output has
    the same numbers, None without any; pairs.
    """
    from sacrebleu.metrics import BLEU, CHRF

    digits = [(re.findall(r"\d+", s), re.findall(r"\d+", o)) for s, o in zip(sources, outputs)]
    right = [sorted(ours) == sorted(theirs) for ours, theirs in digits if ours]
    return {
        "pairs": len(sources),
        "bleu": round(BLEU(lowercase=True).corpus_score(outputs, [references]).score, 2),
        "chrf": round(CHRF(lowercase=True).corpus_score(outputs, [references]).score, 2),
        "numbers": round(sum(right) / len(right), 3) if right else None,
    }


def rule_figures(translator: Translator, pairs: Sequence[tuple[str, str]], source: str, target: str) -> list[dict]:
    """For each way of typing, the `figures` with all rules, and without each rule that changes any output there.

    pairs: normalised sources and references. Returns rows {"typed", "without", "changed": outputs that differ from
    those with all rules, ...figures}.
    """
    rows, references = [], [reference for _, reference in pairs]
    for habit, write in HABITS.items():
        sources, whole = [write(text) for text, _ in pairs], None
        for rule in (None, *RULES):
            options = SearchOptions(without=frozenset([rule] if rule else []))
            results = translator.translate_sentences(sources, source, target, options)
            outputs = [sentence.hypotheses[0].text for sentence in results]
            whole = whole or outputs
            changes = sum(a != b for a, b in zip(outputs, whole))
            if rule is None or changes:
                row = {"typed": habit, "without": rule or "nothing", "changed": changes}
                rows.append(row | figures(sources, outputs, references))
    return rows


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object for each direction, way of typing and rule."""
    parser = CommandLine(prog="python -m lab.translator.rules", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    parser.add_argument(
        "--data", type=an_existing_file, required=True, help="table of transformer.prepare with held-out pairs"
    )
    parser.add_argument("--count", type=integer(1), default=200, help="pairs of each direction, of general sources")
    parser.add_argument("--seed", type=a_seed, default=1, help="of their choice")
    options = parser.parse_args(argv)
    translator = Translator.from_pretrained(options.model)
    for source, target in translator.pairs:
        other = target if source == "en" else source
        rows = [row for row in read_rows(options.data, ["en", other]) if row.origin.startswith(BY_PEOPLE)]
        random.Random(options.seed).shuffle(rows)
        sides = [row.texts if source == "en" else row.texts[::-1] for row in rows[: options.count]]
        for row in rule_figures(translator, sides, source, target):
            print(json.dumps({"direction": f"{source}-{target}"} | row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
