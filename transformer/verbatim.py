"""Text that has no translation, such as numbers, names and addresses: stand-ins for it, in training and in use.

A model whose vocabulary has the pieces <x1> ... <x4> learns to copy them: in a share of the training pairs, a word that
is the same on both sides gives way to one. In use, a visitor's e-mail address becomes <x1>, is copied, and comes back.
"""

from __future__ import annotations

import random
import re

from transformer.tokenizer import STAND_INS

_WORD = re.compile(r"[^\W_]+(?:[-'.,][^\W_]+)*")


def shared_words(source: str, target: str) -> list[str]:
    """Names and numbers that stand exactly once in both sentences, in the source's order."""
    theirs = [m.group() for m in _WORD.finditer(target)]
    ours = [m.group() for m in _WORD.finditer(source)]
    return [
        word for word in ours
        if len(word) > 1 and (word[0].isupper() or word[0].isdigit())
        and ours.count(word) == 1 and theirs.count(word) == 1
    ]


def replace_word(text: str, word: str, by: str) -> str:
    """`text` with the first occurrence of `word`, as a whole word, replaced."""
    return re.sub(rf"(?<![\w]){re.escape(word)}(?![\w])", lambda _: by, text, count=1)


def with_stand_ins(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with each of `shared_words`, four at most, replaced on both sides; `draw` decides by which stand-ins."""
    words = shared_words(source, target)[: len(STAND_INS)]
    for word, stand_in in zip(words, draw.sample(STAND_INS, len(words))):
        source, target = replace_word(source, word, stand_in), replace_word(target, word, stand_in)
    return source, target
