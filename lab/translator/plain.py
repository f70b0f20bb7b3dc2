"""Plain sentences of daily life with their trees, out of the tables in `lab/phrasebook/trees`.

A rule is a tree in Penn brackets with gaps, such as `(VP {eat.%} {food} {end})`. A gap `{kind}` is filled by a word of
that kind, or else by one of the rules of that kind, drawn by their weights; `{kind.FORM}` asks for a form of the word,
such as VBZ, and in the rules of that kind `%` stands for the form.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformer.parsing.trees import Tree, add_top, parse_brackets, read_trees

TABLES = Path(__file__).parent.parent / "phrasebook" / "trees"
APART = ("held_out.mrg", "choosing.mrg")  # trees of their own, which measure and choose a parser
SENTENCE = "sentence"  # the kind of a whole tree
LONGEST = 30  # words of a sentence
_GAP = re.compile(r"\{([\w-]+)(?:\.(\w*))?\}")
_WORD = re.compile(r"(?<= )[^()\s]+(?=\))")
_VOWEL = re.compile(r"(?!uni|use|euro|one)[aeiou]|hour|honest", re.IGNORECASE)  # words that have `an` before them


def _rows(path: Path) -> Iterator[list[str]]:
    """The cells of a table's lines; empty lines and those that begin with # are remarks."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


@dataclass(frozen=True)
class Grammar:
    """Words and rules by kind."""

    words: dict[str, list[dict[str, str]]]  # of each word its forms by tag, the usual one first
    rules: dict[str, tuple[list[str], list[float]]]  # trees with gaps and their weights

    @classmethod
    def read(cls, folder: Path = TABLES) -> Grammar:
        """The tables words.tsv (kind, tags, words with their forms) and rules.tsv (kind, weight, tree).

        Raises `ValueError` for a line with other cells and a word without one of its forms.
        """
        words = {
            kind: [dict(zip(tags.split(), word.split("/"), strict=True)) for word in entries.split(" ")]
            for kind, tags, entries in _rows(folder / "words.tsv")
        }
        rules: dict[str, tuple[list[str], list[float]]] = defaultdict(lambda: ([], []))
        for kind, weight, body in _rows(folder / "rules.tsv"):
            rules[kind][0].append(body)
            rules[kind][1].append(float(weight))
        return cls(words, dict(rules))

    def fill(self, kind: str, form: str, draw: random.Random) -> str:
        """Brackets of that kind. Raises `KeyError` for a kind, or a form of a word, that the tables lack."""
        if kind in self.words:
            word = draw.choice(self.words[kind])
            form = form or next(iter(word))
            tag = form[:3] if form.startswith("VB") else form  # VBDS, VBDP and VBPI are forms of `be` alone
            return f"({tag} {word.get(form) or word.get(tag) or word[tag.replace('VBP', 'VB')]})"
        (body,) = draw.choices(*self.rules[kind])
        return _GAP.sub(lambda gap: self.fill(gap[1], gap[2] or "", draw), body.replace("%", form))


def spell(brackets: str) -> str:
    """The same with a capital where a sentence or a quotation begins, and `an` before a vowel."""
    words = _WORD.findall(brackets)
    begins = True
    for place, word in enumerate(words):
        if word in ("a", "an"):
            words[place] = "an" if _VOWEL.match(words[place + 1]) else "a"
        if begins and word[0].isalnum():
            words[place] = words[place][0].upper() + words[place][1:]
            begins = False
        begins = begins or word == "“"
    rest = iter(words)
    return _WORD.sub(lambda _: next(rest), brackets)


def apart() -> set[tuple[str, ...]]:
    """The words of the sentences that are not to be learned."""
    return {tuple(tree.words()) for name in APART for tree in read_trees(TABLES / name)}


def plain_trees(count: int, seed: int) -> list[Tree]:
    """So many different sentences of at most LONGEST words, under TOP; none of those that are kept apart."""
    grammar, draw, known = Grammar.read(), random.Random(seed), apart()
    trees: dict[tuple[str, ...], Tree] = {}
    while len(trees) < count:
        tree = add_top(parse_brackets(spell(grammar.fill(SENTENCE, "", draw))))
        words = tuple(tree.words())
        if len(words) <= LONGEST and words not in known:
            trees[words] = tree
    return list(trees.values())
