"""Capitals as the corpora have them, for text that was typed without, or in nothing but capitals.

A cased vocabulary spells a word in capitals letter by letter, and "a man" at the start of a sentence is not what stood
there in training. Papers that lower-case their text do not meet this; a visitor who types "HOW ARE YOU?" does.
"""

import math
import re
from collections.abc import Callable

from transformer.text.verbatim import find

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_PRONOUN = re.compile(r"i(?:'\w+)?")  # the English one
_POLITE = re.compile(r"(?:bitte )?\w+en sie\b", re.IGNORECASE)  # opens a German question or order: the capital "Sie"
_ABBREVIATIONS = {"AI", "AM", "CET", "EST", "IT", "LA", "MIT", "PM", "SA", "US", "WHO"}  # that are words, too
SHORT = 3  # words; in fewer, a small first letter is as likely meant
ABBREVIATION = 4  # letters; of so few, a lone word in capitals is one unless the vocabulary has the word as a whole


def usual_case(
    sentence: str, language: str, pieces: Callable[[str], float], is_common: Callable[[str], bool] | None = None
) -> str:
    """A normalised sentence with the capitals that a text of its language usually has; often unchanged.

    A sentence in capitals is written small, one without any gets those that are sure, a small first letter grows, and
    a word that capitals stress ("Do NOT touch it") is written small.
    Addresses, numbers, words with capitals inside ("iPhone") and abbreviations that stand alone ("NASA") stay.
    pieces: in how many pieces the vocabulary writes a word, `inf` if it cannot; see `usual_word`.
    is_common: whether a word is one of the language's commonest; without it, words that capitals stress stay.
    """
    spans = find(sentence, lambda character: False)
    words = [
        m for m in _WORD.finditer(sentence) if not any(m.start() < end and start < m.end() for start, end in spans)
    ]
    if not words:
        return sentence
    letters = "".join(m.group() for m in words)
    capitals, small = letters == letters.upper(), letters == letters.lower()
    if capitals and (small or len(words) == 1 and is_abbreviation(letters, pieces)):  # both: a script without capitals
        return sentence
    parts, last = [], 0
    for number, match in enumerate(words):
        word = match.group()
        opens = word.islower() and len(words) >= SHORT and not sentence[: match.start()].strip()
        first = number == 0 and (capitals or opens)
        if capitals or small or first or (language == "en" and _PRONOUN.fullmatch(word)):
            polite = language == "de" and word.lower() == "sie" and _POLITE.fullmatch(sentence[: match.end()])
            usual = "Sie" if polite else usual_word(word, language, pieces, first, capitals)
        elif is_common and is_common(word.lower()) and is_stressed(word, pieces):
            opens = not sentence[: match.start()].strip(" \"'“„«") or (language == "de" and word == "SIE")
            usual = capitalise(word.lower()) if opens else word.lower()
        else:
            continue
        parts += [sentence[last : match.start()], usual]
        last = match.end()
    return "".join([*parts, sentence[last:]])


def is_stressed(word: str, pieces: Callable[[str], float]) -> bool:
    """True if a common word stands in capitals as in "Do NOT touch it"; abbreviations have a piece of their own."""
    return len(word) > 1 and word.isalpha() and word.isupper() and word not in _ABBREVIATIONS and pieces(word) > 1


def is_abbreviation(word: str, pieces: Callable[[str], float]) -> bool:
    """True if a word in capitals, which stands alone, would not gain by being written like others."""
    return pieces(word.capitalize()) >= (2 if len(word) <= ABBREVIATION else pieces(word))


def usual_word(word: str, language: str, pieces: Callable[[str], float], first: bool, capitals: bool) -> str:
    """One word of a sentence in capitals (`capitals`), or of one without, or any sentence's `first`.

    It keeps or gets its capital where the vocabulary then has it as one piece ("Paris"), in German where it needs fewer
    pieces ("Krankenhaus"), and the first word wherever that takes no more. No form is chosen that the vocabulary cannot
    write.
    """
    lower = word.lower()
    upper = capitalise(lower)
    if language == "en" and _PRONOUN.fullmatch(lower):
        form = upper
    elif first:
        form = upper if pieces(upper) <= pieces(lower) or (capitals and pieces(upper) < math.inf) else lower
    else:
        form = upper if pieces(upper) < pieces(lower) and (language == "de" or pieces(upper) == 1) else lower
    return word if pieces(form) > pieces(word) or pieces(form) == math.inf else form


def capitalise(word: str) -> str:
    """The word with a capital first letter; the others as they are."""
    return word[:1].upper() + word[1:]
