"""Parses: `python -m transformer.parse "The cell divides."` prints the tree of each sentence in brackets."""

from __future__ import annotations

import argparse
import sys

from training.arguments import MOST_BEAM, CommandLine, a_device, a_number, integer
from training.command import one_sentence
from transformer.options import DEFAULTS
from transformer.parsing.parser import ALPHA, DEFAULT_MODEL, PAPER_BEAM, Parser, parsed_sentences
from transformer.parsing.trees import indent_tree


def load(name: str, device: str = "auto") -> Parser:
    """The parser of that name or folder. Raises `ValueError` with one sentence if there is none, or it translates."""
    try:
        return Parser.from_pretrained(name, device)
    except FileNotFoundError as error:
        if name != DEFAULT_MODEL:
            raise
        raise ValueError(
            "The parser's weights are not installed (assets/models/parse); train them with python -m transformer.train "
            "--preset parse."
        ) from error


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Prints trees alone on standard output; what had to be repaired, and mistakes, go to standard error."""
    options = CommandLine(
        prog="python -m transformer.parse",
        description="Print the constituency trees of English sentences. Without TEXT, standard input is read.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("text", nargs="*", metavar="TEXT", help="English text; each sentence has a tree of its own")
    options.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    options.add_argument(
        "--beam", type=integer(1, MOST_BEAM), default=DEFAULTS.beam, help=f"hypotheses kept; the paper has {PAPER_BEAM}"
    )
    options.add_argument("--alpha", type=a_number(), default=ALPHA, help="length penalty of Wu et al. (2016)")
    options.add_argument("--flat", action="store_true", help="each tree on one line")
    options.add_argument("--device", type=a_device, default="auto", help="auto, cpu or cuda")
    given = options.parse_args(argv)
    parser = load(given.model, given.device)
    for text in given.text or [sys.stdin.read()]:
        found = parser.translate(text, beam=given.beam, alpha=given.alpha)
        for sentence in parsed_sentences(found):
            print(str(sentence.trees[0]) if given.flat else indent_tree(sentence.trees[0]))
        for note in found.notes:
            print(note, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
