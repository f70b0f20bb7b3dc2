"""Text that has no translation, such as numbers, names, addresses and emoji: how it gets through a model unharmed.

A model whose vocabulary has the pieces <x1> ... <x4> learns to copy them: in a share of the training pairs, a word that
is the same on both sides gives way to one. In use, a visitor's e-mail address becomes <x1>, is copied, and comes back.
For other models such text is taken out, and put back behind the word that the model's attention says it stood behind.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from transformer.tokenizer import SPACE, STAND_INS

_WORD = re.compile(r"[^\W_]+(?:[-'.,][^\W_]+)*")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]+"  # web addresses
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail
    r"|(?<!\w)[@#]\w+"  # handles and tags
    r"|<[^<>\s]{1,12}>"  # marks, among them whatever looks like a piece of a vocabulary
)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)+|\d{2,}")
_STOPS = ".,;:!?…)]}»”\"'"


def shared_words(source: str, target: str) -> list[str]:
    """Names and numbers that stand exactly once in both sentences, in the source's order."""
    theirs = [m.group() for m in _WORD.finditer(target)]
    ours = [m.group() for m in _WORD.finditer(source)]
    return [
        word
        for word in ours
        if len(word) > 1
        and (word[0].isupper() or word[0].isdigit())
        and ours.count(word) == 1
        and theirs.count(word) == 1
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


def _unknown_spans(text: str, unknown: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Words and runs of signs with a character that the vocabulary lacks."""
    start = 0
    while start < len(text):
        end = start + 1
        if text[start] != " " and unknown(text[start]):
            if unicodedata.category(text[start])[0] == "L":  # the whole word
                while start and (text[start - 1].isalnum() or text[start - 1] in "-'"):
                    start -= 1
                while end < len(text) and (text[end].isalnum() or text[end] in "-'"):
                    end += 1
            else:  # the whole run of signs; emoji are joined and varied by signs of their own
                while end < len(text) and text[end] != " " and unknown(text[end]) and not text[end].isalnum():
                    end += 1
            yield start, end
        start = end


def _name_spans(text: str, pieces: Callable[[str], int]) -> Iterator[tuple[int, int]]:
    """Capitalised words inside the sentence that fall into three pieces or more."""
    for number, match in enumerate(_WORD.finditer(text)):
        word = match.group()
        after_stop = text[: match.start()].rstrip(" \"'(«„“")[-1:] in (".", "!", "?", ":", "")
        if number and not after_stop and word[0].isupper() and word.isalpha() and pieces(word) >= 3:
            yield match.span()


def find(
    text: str, unknown: Callable[[str], bool], pieces: Callable[[str], int] | None = None
) -> list[tuple[int, int]]:
    """(start, end) of what is to be copied in a normalised sentence, in order, without overlap.

    Addresses, numbers of two digits or more, signs and words that hold a character that the vocabulary lacks
    (`unknown`), and, where `pieces` counts the pieces of a word, capitalised words inside the sentence that fall into
    three pieces or more: names the model has never met.
    """
    spans = [(m.start(), m.start() + len(m.group().rstrip(_STOPS))) for m in _ADDRESS.finditer(text)]
    spans += [m.span() for m in _NUMBER.finditer(text)]
    spans += _unknown_spans(text, unknown)
    if pieces is not None:
        spans += _name_spans(text, pieces)
    kept: list[tuple[int, int]] = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if begin < end and (not kept or begin >= kept[-1][1]):
            kept.append((begin, end))
    return kept


@dataclass
class Removed:
    """Something taken out of a sentence, and where it stood."""

    text: str
    word: int  # words of the remaining sentence before it
    glued: bool  # it followed them without a blank
    stop: str  # the punctuation that followed it at once


@dataclass
class Masked:
    """A sentence as a model can read it, and what was taken out."""

    text: str
    stand_ins: dict[str, str] = field(default_factory=dict)  # piece -> what it stands for
    removed: list[Removed] = field(default_factory=list)


def mask(text: str, spans: Sequence[tuple[int, int]], stand_ins: Sequence[str]) -> Masked:
    """The first spans give way to `stand_ins`, as many as there are; the others are taken out."""
    out, position, result = "", 0, Masked("")
    free = list(stand_ins)
    for begin, end in spans:
        out += text[position:begin]
        original, position = text[begin:end], end
        if free:
            stand_in = free.pop(0)
            result.stand_ins[stand_in] = original
            out += stand_in
            continue
        stop = stops(text[end:])
        glued = bool(out) and not out.endswith(" ")
        result.removed.append(Removed(original, len(out.split()), glued, stop))
        if out.endswith(" ") and (end == len(text) or text[end] == " " or stop):
            out = out[:-1]
        elif not out and text[end : end + 1] == " ":
            position += 1
    result.text = out + text[position:]
    return result


def stops(text: str) -> str:
    """The punctuation that `text` begins with."""
    return text[: len(text) - len(text.lstrip(_STOPS))]


def restore(text: str, masked: Masked, words_before: Callable[[int], int]) -> str:
    """The translation of `masked.text` with the originals in their places.

    words_before(w): how many words of the translation come before what stood behind w > 0 words of the source. A
    stand-in that the model lost is put there, too; one that it wrote twice comes once.
    """
    missing = list(masked.removed)
    for stand_in, original in masked.stand_ins.items():
        before, found, after = text.partition(stand_in)
        if found:
            text = before + "\0" + after.replace(" " + stand_in, "").replace(stand_in, "")
            text = text.replace("\0", original)
        else:
            at = masked.text.index(stand_in)
            before, after = masked.text[:at], masked.text[at + len(stand_in) :]
            missing.append(Removed(original, len(before.split()), False, stops(after)))
    words = text.split(" ") if text else []
    places: dict[int, list[Removed]] = {}
    for removed in missing:
        place = min(words_before(removed.word), len(words)) if removed.word else 0
        places.setdefault(place, []).append(removed)
    out = []
    for number in range(len(words) + 1):
        if number:
            out.append(words[number - 1])
        for removed in places.get(number, []):
            stop = ""
            if out and removed.stop and number:  # it comes before the punctuation
                bare = out[-1].removesuffix(removed.stop)
                bare = out[-1].rstrip(_STOPS) if bare == out[-1] else bare
                stop, out[-1] = out[-1][len(bare) :], bare
            if out and not out[-1]:
                out.pop()
            if removed.glued and out:
                out[-1] += removed.text + stop
            else:
                out.append(removed.text + stop)
    return " ".join(out)


def word_numbers(pieces: Sequence[str]) -> list[int]:
    """The number of the word (from 0) that each piece belongs to; a word begins with SentencePiece's blank."""
    numbers, word = [], -1
    for piece in pieces:
        if piece.startswith(SPACE) or word < 0:
            word += 1
        numbers.append(word)
    return numbers


def without_loops(ids: Sequence[int], words: Callable[[list[int]], bool], longest: int = 12) -> list[int]:
    """`ids` with every loop cut to its first round.

    A loop is one to `longest` ids that come at least four times running, or three times where they are four or more.
    words: whether some ids hold words; rows of digits or dots are no loops.
    """
    ids, start = list(ids), 0
    while start < len(ids):
        for size in range(1, min(longest, (len(ids) - start) // 2) + 1):
            rounds = 1
            while ids[start + rounds * size : start + (rounds + 1) * size] == ids[start : start + size]:
                rounds += 1
            if rounds >= (3 if size >= 4 else 4) and words(ids[start : start + size]):
                del ids[start + size : start + rounds * size]
                break
        start += 1
    return ids
