"""What visitors do to text: small letters, a missing full stop, slips of the finger.

A small share of the training sources gets one of these, so that a model has met them (the kinds and their proportions
follow OpusTrainer's modifiers as Firefox Translations uses them). The translation stays as it is, but for the full
stop, which goes on both sides. Blanks need no noise, since `normalise` makes one of several, nor do capitals
throughout, which `transformer.text.casing` writes small before the network reads them.
"""

from __future__ import annotations

import random

from transformer.tokenizer import STAND_INS

KINDS = {"end mark": 0.45, "title": 0.1, "small": 0.25, "slip": 0.2}  # shares among the changed ones
SLIPS = 0.06  # share of the letters that a slip concerns, at least one
NEIGHBOURS = {
    row[i]: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i in range(len(row))
}


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
    return slips(source, draw), target


def without_end_mark(source: str, target: str) -> tuple[str, str]:
    """Both sentences without the mark at their end, where both have one and more than it."""
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
