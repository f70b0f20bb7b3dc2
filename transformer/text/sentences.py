"""A line of text in sentences, and a sentence that is too long for a model in clauses."""

import re
from collections.abc import Callable

from training.files import read_table

# Titles (what a name follows), abbreviations of three languages, those that are words of their own but before numbers,
# and starters: words with a capital only where a sentence begins, and hardly ever part of a name.
_WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in read_table(__file__).items()}
ABBREVIATIONS = _WORDS["English"] | _WORDS["German"] | _WORDS["French"]
# Letters with full stops between them: an abbreviation where a capital follows, as in "the U.S. Army".
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_CLOSING, _OPENING = r"(?:[\"')\]»”“]|\s»)*", r"(?:[•‣▪*–—-]\s+)?(?:[\"'(\[„“¿¡]|«\s?)?"  # French sets its marks off
_END = re.compile(rf"[.!?…]+{_CLOSING}\s+(?={_OPENING}[^\W_a-zß-öø-ÿ])")
# Where nothing has a capital, sentences begin without; three dots end none there.
_END_SMALL = re.compile(rf"(?:(?<!\.)\.|[!?]+){_CLOSING}\s+(?={_OPENING}[^\W_])")
# Where a long sentence may be cut, the strongest places first; each match ends where the second part begins.
_CLAUSES = (
    re.compile(r"[;:]['\"”“»)\]]*\s+"),
    re.compile(r"\s+(?=[–—-]\s)"),
    re.compile(r",['\"”“»)\]]*\s+(?=(?:and|but|or|while|which|und|aber|oder|während|et|mais|ou|tandis)\b)"),
    re.compile(r",['\"”“»)\]]*\s+"),
)
_FIRST_WORD = re.compile(r"\W*([^\W\d_]+)")
_MIDDLE = (0.2, 0.8)  # share of a sentence in which a cut is looked for first


def split_sentences(line: str) -> list[str]:
    """The sentences of a normalised line.

    A full stop after an abbreviation, an initial, a letter of a list or a number ends none, unless a pronoun or the
    like follows with a capital; closing quotation marks and brackets stay with their sentence, marks of a list with
    theirs.
    """
    sentences, start = [], 0
    for match in (_END_SMALL if line == line.lower() else _END).finditer(line):
        if match.group().strip() == "." and _goes_on(line[start : match.start()], line[match.end() :]):
            continue
        sentences.append(line[start : match.end()].strip())
        start = match.end()
    rest = line[start:].strip()
    return sentences + ([rest] if rest else [])


def _goes_on(before: str, after: str) -> bool:
    """Whether a full stop between these parts of a line belongs to what is short for something, or counts."""
    first, _, last = before.rpartition(" ")
    last = last.strip("\"'([«„“").lower()
    year = len(last) == 4 and last.isdigit()
    short = last in ABBREVIATIONS or len(last) == 1 or last.isdigit() or _INITIALS.fullmatch(last)
    if not short or year:
        return last in _WORDS["before numbers"] and after[0].isdigit()
    if last in _WORDS["titles"] or not first or (len(last) == 1 and not last.isdigit()):  # first: a list's mark
        return True
    word = _FIRST_WORD.match(after)
    # In a line without capitals any word may follow a short one.
    return word is None or word[1].islower() or word[1].lower() not in _WORDS["starters"]


def split_clauses(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """A sentence whole where it fits, else in parts that end at clause marks; nothing of it is lost.

    Each cut is at the strongest mark near the middle: semicolon or colon, dash, comma before a conjunction, comma.

    sentence: normalised.
    fits: whether a model reads a text as it should. A part without any clause mark is returned even if it does not fit.
    """
    if fits(sentence):
        return [sentence]
    for low, high in (_MIDDLE, (0.0, 1.0)):
        for mark in _CLAUSES:
            ends = [match.end() for match in mark.finditer(sentence)]
            ends = [end for end in ends if low * len(sentence) <= end <= high * len(sentence) and end < len(sentence)]
            if ends:
                cut = min(ends, key=lambda end: abs(end - len(sentence) / 2))
                parts = sentence[:cut].strip(), sentence[cut:].strip()
                return [clause for part in parts for clause in split_clauses(part, fits)]
    return [sentence]
