"""Translates: `python -m transformer.translate "A man is riding a bicycle."` prints only the translation."""

import os
import sys

from training.arguments import MAX_BEAM, CommandLine, a_device, a_number, integer
from training.command import one_sentence
from transformer.options import DEFAULTS

# The one place that says which model the commands and the page use if none is named. Whoever runs the page may choose
# another, such as Helsinki-NLP/opus-mt-en-de where there is a connection.
DEFAULT_MODEL = os.environ.get("ATELIER_TRANSLATION_MODEL", "").strip() or "everyday"
DEFAULT_SOURCE, DEFAULT_TARGET = "en", "de"


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Prints translations alone on standard output; mistakes are one sentence on standard error and status 2."""
    parser = CommandLine(
        prog="python -m transformer.translate",
        description="Translate text, by default from English to German. Without TEXT, standard input is read.",
    )
    beam = integer(1, MAX_BEAM)
    parser.add_argument("text", nargs="*", metavar="TEXT", help="text; several are translated in one batch")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    parser.add_argument("--source", help="source language; the model's first pair that fits if not given")
    parser.add_argument("--target", help="target language; the model's first pair that fits if not given")
    parser.add_argument("--beam", type=beam, default=DEFAULTS.beam, help="hypotheses of each step; 1 is greedy search")
    parser.add_argument("--alpha", type=a_number(), help="length penalty of Wu et al. (2016); the model's if not given")
    parser.add_argument("--n-best", type=beam, default=DEFAULTS.n_best, help="translations; several come with scores")
    parser.add_argument("--quick", action="store_true", help="products of 8 bits, among the target language's words")
    parser.add_argument("--read-back", action="store_true", help="choose among the beam by the way back, too")
    parser.add_argument("--device", type=a_device, default="auto", help="auto, cpu or cuda")
    options = parser.parse_args(argv)
    from transformer.translator import Translator

    source, target = options.source, options.target
    if options.model == DEFAULT_MODEL and not (source or target):
        source, target = DEFAULT_SOURCE, DEFAULT_TARGET
    texts = options.text or [sys.stdin.read()]
    translator = Translator.from_pretrained(options.model, options.device)
    search = {name: getattr(options, name) for name in ("beam", "alpha", "n_best", "quick", "read_back")}
    for result in translator.translate(texts, source, target, **search):
        if options.n_best == 1:
            print(result.text)
        else:
            for hypothesis in result.hypotheses:
                print(f"{hypothesis.score:.4f}\t{hypothesis.text}")
        for note in result.notes:
            print(note, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
