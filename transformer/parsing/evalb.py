"""Labelled bracketing by the rules of EVALB (Sekine and Collins) under its parameter file COLLINS.prm.

Words tagged as punctuation (, : `` '' .) are taken out, and phrases that then hold nothing; the outermost TOP is no
phrase; ADVP and PRT are one label. Tags are not scored, since the parser writes none; the reference says which words
are punctuation.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer.parsing.trees import TOP, Tree

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
_SAME = {"PRT": "ADVP"}


@dataclass(frozen=True)
class Scores:
    """Figures of a test set, in percent."""

    sentences: int
    precision: float  # of the answer's brackets, how many the reference has
    recall: float  # of the reference's, how many the answer has
    f1: float  # their harmonic mean
    complete: float  # sentences whose brackets are all right
    brackets: int  # of the reference


def brackets(tree: Tree, punctuation: Sequence[bool]) -> Counter:
    """How often each (label, start, end) is in a tree, counted in words that are no punctuation.

    punctuation: for each word of the tree, whether it is taken out. Raises `ValueError` if these are not as many.
    """
    words_before = [0]  # words that are left before each position
    for out in punctuation:
        words_before.append(words_before[-1] + (not out))
    spans = tree.spans()
    if spans[0][2] != len(punctuation):
        raise ValueError(
            f"The trees of a sentence have different numbers of words, {len(punctuation)} and {spans[0][2]}."
        )
    return Counter(
        (_SAME.get(label, label), words_before[start], words_before[end])
        for label, start, end in spans
        if label != TOP and words_before[start] < words_before[end]
    )


def match(gold: Tree, answer: Tree) -> tuple[int, int, int]:
    """How many brackets the reference has, an answer for the same words, and both of them."""
    punctuation = [leaf.tag in PUNCTUATION for leaf in gold.leaves()]
    reference, own = brackets(gold, punctuation), brackets(answer, punctuation)
    return reference.total(), own.total(), (reference & own).total()


def score(pairs: Iterable[tuple[Tree, Tree]]) -> Scores:
    """Figures of (reference, answer) pairs, whose brackets are counted together. Raises `ValueError` for no pair."""
    matches = [match(gold, answer) for gold, answer in pairs]
    if not matches:
        raise ValueError("There is no sentence to score.")
    gold, answer, both = map(sum, zip(*matches))
    complete = sum(len(set(counts)) == 1 for counts in matches)
    precision, recall = (100.0 * both / count if count else 0.0 for count in (answer, gold))
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return Scores(len(matches), precision, recall, f1, 100.0 * complete / len(matches), gold)
