"""What visitors do to text: small letters, a missing full stop, slips of the finger, no accents, words confused.

A small share of the training sources gets one of these, so that a model has met them (the kinds and their proportions
follow OpusTrainer's modifiers as Firefox Translations uses them). The translation stays as it is, but for the full
stop, which goes on both sides. Blanks need no noise, since `normalise` makes one of several, nor do capitals
throughout, which `transformer.text.casing` writes small before the network reads them.

Two changes are made on both sides: by `with_names`, names that are words stand where Tom and Mary stood; by
`as_heading`, a word or two begin with a capital, at times after a number. Lists of words are written small.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from transformer.text.spelling import without_accents
from transformer.tokenizer import STAND_INS

# Shares among the changed ones.
KINDS = {"end mark": 0.3, "title": 0.05, "small": 0.2, "slip": 0.15, "confusion": 0.2, "accents": 0.1}
HEADING = 3  # words
SLIPS = 0.06  # share of the letters that a slip concerns, at least one
NEIGHBOURS = {
    row[i]: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i in range(len(row))
}

TABLES = Path(__file__).parents[1] / "phrasebook"
NAMES = (re.compile(r"\b(?:Mary|Maria|Marie)\b"), re.compile(r"\bTom\b"))  # in the order of the lines of names.txt
_ELIDES = re.compile(r"\b(?:de|que|jusque|lorsque|puisque|quoique) (?:Mary|Maria|Marie|Tom)\b", re.IGNORECASE)


def with_noise(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with one kind of noise, which `draw` chooses; as it is where that kind cannot apply.

    source, target: normalised sentences. Pairs with stand-ins (`transformer.verbatim`) stay as they are.
    """
    if any(piece in source for piece in STAND_INS):
        return source, target
    kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "end mark":
        return without_end_mark(source, target)
    if kind == "title":
        return " ".join(word[:1].upper() + word[1:] for word in source.split(" ")), target
    if kind == "small":
        return source.lower(), target
    if kind == "accents":
        return without_accents(source), target
    if kind == "confusion":
        return confusion(source, draw), target
    return slips(source, draw), target


@cache
def confusions() -> dict[str, str]:
    """English words as they are often written: for others that sound alike, without an apostrophe, letters astray."""
    lines = (TABLES / "confused.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


def confusion(text: str, draw: random.Random) -> str:
    """`text` with one of its words as in `confused`; as it is without any of them."""
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if word.rstrip(".,!?") in confusions()]
    if places:
        place = draw.choice(places)
        bare = words[place].rstrip(".,!?")
        words[place] = confusions()[bare] + words[place][len(bare) :]
    return " ".join(words)


@cache
def names() -> tuple[list[str], list[str]]:
    """Names of women and of men that are words of one of the languages, or look like them."""
    women, men = (TABLES / "names.txt").read_text(encoding="utf-8").splitlines()
    return women.split(), men.split()


def with_names(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with other names for Tom and Mary; as it is where one of them does not stand on both sides.

    After a French word that drops its vowel, a name begins with a consonant.
    """
    for pattern, every in zip(NAMES, names(), strict=True):
        if pattern.search(source) and pattern.search(target):
            elides = any(_ELIDES.search(text) for text in (source, target))
            name = draw.choice([one for one in every if not (elides and without_accents(one)[0] in "AEIOUYH")])
            source, target = pattern.sub(name, source), pattern.sub(name, target)
    return source, target


def as_heading(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """A short line as a heading: with a capital on both sides, one in four after a number such as 2 or 2.3; as it is if
    it is longer than HEADING, begins with no letter, or ends with a mark.
    """
    ends = ".!?…,;"
    if len(source.split()) > HEADING or any(not text[0].isalpha() or text[-1] in ends for text in (source, target)):
        return source, target
    number = ""
    if draw.random() < 0.25:
        number = f"{draw.randint(1, 12)}{draw.choice(['', f'.{draw.randint(1, 6)}'])} "
    source, target = (number + text[0].upper() + text[1:] for text in (source, target))
    return source, target


def without_end_mark(source: str, target: str) -> tuple[str, str]:
    """Both sentences without the mark at their end, where both have one and more besides."""
    marks = ".!?…"
    if source[-1] not in marks or target[-1] not in marks:
        return source, target
    bare = source.rstrip(marks + " "), target.rstrip(marks + " ")
    return bare if all(bare) else (source, target)


def slips(text: str, draw: random.Random) -> str:
    """`text` with a few letters doubled, left out, exchanged with the next, or hit beside, never a word's first."""
    letters = list(text)
    inner = [i for i in range(1, len(letters)) if letters[i].isalpha() and letters[i - 1].isalpha()]
    for i in sorted(draw.sample(inner, min(len(inner), max(1, round(SLIPS * len(inner))))), reverse=True):
        kind = draw.randrange(4)
        if kind == 0:
            letters.insert(i, letters[i])
        elif kind == 1:
            del letters[i]
        elif kind == 2 and i + 1 < len(letters) and letters[i + 1].isalpha():
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        elif letters[i] in NEIGHBOURS:
            letters[i] = draw.choice(NEIGHBOURS[letters[i]])
    return "".join(letters)
