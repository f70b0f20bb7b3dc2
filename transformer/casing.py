"""Capitals as the corpora have them, for text that was typed without, or in nothing but capitals.

A cased vocabulary spells a word in capitals letter by letter, and "a man" at the start of a sentence is not what stood
there in training. Papers that lower-case their text do not meet this; a visitor who types "HOW ARE YOU?" does.
"""

from __future__ import annotations

import math
import re
from typing import Callable

from transformer.verbatim import find

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_PRONOUN = re.compile(r"i(?:'\w+)?")  # the English one
SHORT = 3  # words; in fewer, a small first letter is as likely meant
ABBREVIATION = 4  # letters; of so few, a lone word in capitals is one unless the vocabulary has the word as a whole


def usual_case(sentence: str, language: str, pieces: Callable[[str], float]) -> str:
    """A normalised sentence with the capitals that a text of its language usually has; often unchanged.

    A sentence in capitals is written small, one without any gets those that are sure, and a small first letter grows.
    pieces: in how many pieces the vocabulary writes a word, `inf` if it cannot; a form that takes more is not chosen.
    Inside a sentence a word keeps or gets its capital where the vocabulary then needs fewer pieces ("Paris", German
    "Haus"). Addresses, numbers, words with capitals inside ("iPhone") and single abbreviations ("NASA") stay as they are.
    """
    kept = find(sentence, lambda character: False)
    words = [m for m in _WORD.finditer(sentence) if not any(m.start() < end and start < m.end() for start, end in kept)]
    if not words:
        return sentence
    letters = "".join(m.group() for m in words)
    capitals, small = letters == letters.upper(), letters == letters.lower()
    if capitals == small and (capitals or not words[0].group().islower()):  # both: a script without capitals
        return sentence
    if capitals and len(words) == 1 and pieces(letters.capitalize()) >= (2 if len(letters) <= ABBREVIATION else pieces(letters)):
        return sentence
    changed, last = [], 0
    for number, match in enumerate(words):
        word = match.group()
        forms = [word.lower(), capitalised(word.lower())] if capitals or small else [word]
        if language == "en" and _PRONOUN.fullmatch(word.lower()):
            forms = [capitalised(word.lower())]
        if number == 0 and (capitals or (len(words) >= SHORT and not sentence[: match.start()].strip())):
            forms = [capitalised(forms[0]), forms[0]]
            if capitals and pieces(forms[0]) < math.inf:
                forms = forms[:1]
        chosen = min(forms, key=pieces)  # the first of equal ones
        if pieces(chosen) > pieces(word) or pieces(chosen) == math.inf:
            chosen = word
        changed += [sentence[last : match.start()], chosen]
        last = match.end()
    return "".join([*changed, sentence[last:]])


def capitalised(word: str) -> str:
    """The word with a capital first letter; the others as they are."""
    return word[:1].upper() + word[1:]
