"""Parses: `python -m transformer.parse "The cell divides."` prints the tree of each sentence in brackets."""

import sys

from training.arguments import MAX_BEAM, CommandLine, a_device, a_number, integer
from training.command import one_sentence
from transformer.options import DEFAULTS
from transformer.parsing.parser import ALPHA, DEFAULT_MODEL, PAPER_BEAM, Parser, sentence_parses
from transformer.parsing.trees import indent_tree


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Prints trees alone on standard output; what had to be repaired, and mistakes, go to standard error."""
    command = CommandLine(
        prog="python -m transformer.parse",
        description="Print the constituency trees of English sentences. Without TEXT, standard input is read.",
    )
    command.add_argument("text", nargs="*", metavar="TEXT", help="English text; each sentence has a tree of its own")
    command.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    beam = integer(1, MAX_BEAM)
    command.add_argument("--beam", type=beam, default=DEFAULTS.beam, help=f"hypotheses; the paper has {PAPER_BEAM}")
    command.add_argument("--alpha", type=a_number(), default=ALPHA, help="length penalty of Wu et al. (2016)")
    command.add_argument("--flat", action="store_true", help="each tree on one line")
    command.add_argument("--device", type=a_device, default="auto", help="auto, cpu or cuda")
    options = command.parse_args(argv)
    parser = Parser.from_pretrained(options.model, options.device)
    for text in options.text or [sys.stdin.read()]:
        translation = parser.translate(text, beam=options.beam, alpha=options.alpha)
        for sentence in sentence_parses(translation):
            print(str(sentence.trees[0]) if options.flat else indent_tree(sentence.trees[0]))
        for note in translation.notes:
            print(note, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
