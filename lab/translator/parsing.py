"""Scores a parser by EVALB's rules: `python -m lab.translator.parsing --data dev.mrg.gz`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from training.arguments import MAX_BEAM, CommandLine, a_device, a_number, an_existing_file, integer
from training.command import one_sentence
from transformer.options import DEFAULTS, SearchOptions
from transformer.parsing import evalb
from transformer.parsing.parser import ALPHA, DEFAULT_MODEL, PAPER_BEAM, Parser
from transformer.parsing.trees import TOP, Leaf, Tree, read_trees


def right_branching(gold: Tree) -> Tree:
    """The baseline that knows nothing: each word opens a phrase that holds the rest; a final full stop stays outside.

    All are labelled NP, the most frequent label, but the whole, which is S.
    """
    leaves = gold.leaves()
    tail = leaves[-1:] if len(leaves) > 1 and leaves[-1].tag in evalb.PUNCTUATION else []
    node: Tree | Leaf | None = None
    for leaf in reversed(leaves[: len(leaves) - len(tail)]):
        node = leaf if node is None else Tree("NP", (leaf, node))
    inner = node.children if isinstance(node, Tree) else (node,)
    return Tree(TOP, (Tree("S", (*inner, *tail)),))


def evaluate(parser: Parser, gold: Sequence[Tree], options: SearchOptions = DEFAULTS) -> dict:
    """Parses the words of the reference trees: figures, the baseline's F1, repairs, and seconds a sentence."""
    start = time.perf_counter()
    sentences = parser.parse_words([tree.words() for tree in gold], options)
    seconds = (time.perf_counter() - start) / len(gold)
    scores = evalb.score(zip(gold, [sentence.trees[0] for sentence in sentences]))
    return {
        **asdict(scores),
        "right_branching_f1": evalb.score((tree, right_branching(tree)) for tree in gold).f1,
        "repairs": sum(sentence.repairs for sentence in sentences),
        "repaired_sentences": sum(sentence.repairs > 0 for sentence in sentences),
        "seconds_per_sentence": seconds,
    }


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object for each file."""
    command = CommandLine(
        prog="python -m lab.translator.parsing",
        description="Score a parser on trees in Penn Treebank brackets: labelled precision, "
        "recall, F1, complete match.",
    )
    command.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    command.add_argument("--data", type=an_existing_file, required=True, nargs="+", help=".mrg files, gzipped or not")
    command.add_argument(
        "--longest", type=integer(), default=40, help="only sentences of at most so many words; 0 = all"
    )
    command.add_argument("--limit", type=integer(), default=0, help="only the first so many of them; 0 = all")
    command.add_argument(
        "--beam", type=integer(1, MAX_BEAM), default=DEFAULTS.beam, help=f"1 is greedy; the paper has {PAPER_BEAM}"
    )
    command.add_argument("--alpha", type=a_number(), default=ALPHA, help="length penalty")
    command.add_argument("--device", type=a_device, default="auto")
    options = command.parse_args(argv)
    parser = Parser.from_pretrained(options.model, options.device)
    for path in options.data:
        gold = [tree for tree in read_trees(path) if not options.longest or len(tree.leaves()) <= options.longest]
        gold = gold[: options.limit or None]
        if not gold:
            raise ValueError(f"{path} holds no sentence of at most {options.longest} words.")
        head = {
            "model": parser.name,
            "data": str(path),
            "longest": options.longest,
            "beam": options.beam,
            "alpha": options.alpha,
        }
        print(json.dumps({**head, **evaluate(parser, gold, SearchOptions(options.beam, options.alpha))}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
