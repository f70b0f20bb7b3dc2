"""More trees out of a treebank: its clauses as sentences of their own, and its sentences with other words.

A treebank of one field knows few words and few short sentences. A clause inside a sentence is itself a sentence, and a
word may be exchanged for another one of its part of speech without a change to the tree. Of daily life such a treebank
says nothing; `lab.translator.plain` writes sentences of it.

    python -m lab.translator.variety --data DIR --copies 2 --seed 4 --out OUT

`python -m transformer.train --preset parse --data OUT` learns from them.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from lab.translator.plain import plain_trees
from training.arguments import CommandLine, a_folder_to_write, a_number, a_seed, integer, something_existing
from training.command import one_sentence
from transformer.parsing.recipe import load_splits
from transformer.parsing.trees import TOP, Leaf, Tree, to_brackets

OPEN = frozenset(["NN", "NNS", "NNP", "JJ", "RB", "VB", "VBD", "VBZ", "VBP", "VBN", "VBG"])  # tags whose words are many
SHORTEST, LONGEST = 3, 20  # words of a clause
STOP = Leaf(".", ".")

Lexicon = dict[str, list[str]]


def lexicon(trees: Iterable[Tree]) -> Lexicon:
    """The different words of every open part of speech, by tag, in the order of their first use."""
    words_by_tag: dict[str, dict[str, None]] = defaultdict(dict)
    for tree in trees:
        for leaf in tree.leaves():
            if leaf.tag in OPEN:
                words_by_tag[leaf.tag][leaf.word] = None
    return {tag: list(words) for tag, words in words_by_tag.items()}


def exchange_words(node: Tree, words: Lexicon, share: float, draw: random.Random) -> Tree:
    """The tree with that share of its words of open parts of speech exchanged for others of the same tag.

    words: what is drawn from; share: from 0 to 1; draw: the source of chance.
    """

    def other(child: Tree | Leaf) -> Tree | Leaf:
        if isinstance(child, Tree):
            return exchange_words(child, words, share, draw)
        if child.tag not in words or draw.random() >= share:
            return child
        word = draw.choice(words[child.tag])
        return Leaf(child.tag, word[:1].upper() + word[1:] if child.word[:1].isupper() else word)

    return Tree(node.label, tuple(map(other, node.children)))


def clauses(tree: Tree) -> Iterator[Tree]:
    """Every clause with a subject and a verb below the top of a tree, as a sentence with a capital and a full stop."""
    for child in tree.children:
        if not isinstance(child, Tree):
            continue
        yield from clauses(child)
        labels = [part.label for part in child.children if isinstance(part, Tree)]
        inner = tree.label != TOP and child.label == "S" and "NP" in labels and "VP" in labels
        if child.leaves()[-1].tag == STOP.tag:
            continue
        if inner and labels.index("NP") < labels.index("VP") and SHORTEST <= len(child.leaves()) <= LONGEST:
            yield Tree(TOP, (Tree("S", (*_capital(child).children, STOP)),))


def _capital(node: Tree) -> Tree:
    """The tree with a capital at its beginning."""
    first, *rest = node.children
    if isinstance(first, Tree):
        return Tree(node.label, (_capital(first), *rest))
    return Tree(node.label, (Leaf(first.tag, first.word[:1].upper() + first.word[1:]), *rest))


def vary(trees: list[Tree], copies: int, share: float, seed: int) -> list[Tree]:
    """The trees and their clauses, then `copies` of all of them with that share of the words exchanged."""
    words = lexicon(trees)
    whole = [*trees, *(clause for tree in trees for clause in clauses(tree))]
    draw = random.Random(seed)
    return [*whole, *(exchange_words(tree, words, share, draw) for _ in range(copies) for tree in whole)]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line: writes train.mrg.gz, varied, and dev.mrg.gz as it is; prints how many trees they hold."""
    parser = CommandLine(
        prog="python -m lab.translator.variety",
        description="More trees out of a treebank.",
    )
    parser.add_argument("--data", type=something_existing, required=True, help="folder or file, as of --preset parse")
    parser.add_argument("--copies", type=integer(), default=1, help="of the trees and clauses, with words exchanged")
    parser.add_argument("--exchange", type=a_number(0, 1), default=0.25, help="share of the words of open classes")
    parser.add_argument("--plain", type=integer(), default=0, help="sentences of daily life beside them")
    parser.add_argument("--seed", type=a_seed, default=1, help="of the exchange and of the plain sentences")
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder to write")
    options = parser.parse_args(argv)
    train, dev = load_splits(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    train = vary(train, options.copies, options.exchange, options.seed) + plain_trees(options.plain, options.seed)
    for name, trees in (("train", train), ("dev", dev)):
        text = "".join(f"{to_brackets(tree)}\n" for tree in trees)
        (options.out / f"{name}.mrg.gz").write_bytes(gzip.compress(text.encode()))
        print(name, len(trees))
    return 0


if __name__ == "__main__":
    sys.exit(main())
