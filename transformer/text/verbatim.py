"""Text that has no translation, such as numbers, names, addresses and emoji: how it gets through a model unharmed.

A model whose vocabulary has the pieces <x1> ... <x4> learns to copy them: in a share of the training pairs, a word that
is the same on both sides gives way to one. In use, a visitor's e-mail address becomes <x1>, is copied, and comes back.
For other models such text is taken out, and put back behind the word that the model's attention says it stood behind.

What programs read always goes this way. Numbers, times and names are left to the model at first, which then inflects
their neighbours better; a sentence whose translation lost one (`misses`) is translated again with stand-ins.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from transformer.text.layout import INLINE
from transformer.text.quantities import AFTER_CLUE, NO_BREAK
from transformer.tokenizer import SPACE, STAND_INS

_WORD = re.compile(r"[^\W_]+(?:[-'.,][^\W_]+)*")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]+"  # web addresses
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail
    r"|(?<!\w)[@#]\w+"  # handles and tags
    r"|(?<![\w.@])(?:[\w-]+\.)+(?:com|org|net|edu|gov|io|dev|info|eu|de|fr|ch|at|uk|tv|app|ai)(?![\w.-]*\w)(?:/[^\s<>\"]*)?"
)
# What programs read: code, placeholders, names of files and variables.
_CODE = re.compile(
    r"`[^`]+`|<code\b[^<>]*>.*?</code>|&[lg]t;"
    r"|\{\{.*?\}\}|[$#%]?\{[^{}]*\}"
    r"|%%|%(?:\d+\$|\(\w+\))?[-+0]?\d*(?:\.\d+)?[sdifgxu@](?!\w)"
    r"|(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.-]*\w){2,}/?|(?<![\w/])(?:~|\.{1,2})/[\w./-]*\w|(?<!\w)[A-Za-z]:\\[^\s,;<>]*[^\s,;<>.!?]"
    r"|(?<![\w.])[\w-]+\.(?:json|txt|py|js|html?|css|pdf|docx?|xlsx?|csv|xml|ya?ml|png|jpe?g|gif|zip|exe|md|sh|ini|toml)(?!\w)"
    r"|(?<!\w)\w+_\w+|(?<!\w)[A-Za-z_][\w.]*\(\)|(?<!\S)--[a-z][\w-]*|(?<!\w)v\d+(?:\.\d+)+"
    r"|(?<![\w-])(?=[A-Z-]*\d)[A-Z\d]+(?:-[A-Z\d]*[A-Z][A-Z\d]*)+(?![\w-])"
)
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
# Not the number of an ordinal or of a decade, whose ending is translated.
_NUMBER = re.compile(r"(?:\d+(?:[.,:/-]\d+)+|\d{2,})(?!\d|(?:st|nd|rd|th|s|er|ers|ern|e|è?me)\b)")
_STOPS = ".,;:!?…)]}»”\"'"


def common_words(source: str, target: str) -> list[str]:
    """Names and numbers that stand exactly once in both sentences, in the source's order."""
    ours, theirs = (Counter(_WORD.findall(text)) for text in (source, target))
    once = [word for word, count in ours.items() if count == theirs[word] == 1]
    return [word for word in once if len(word) > 1 and (word[0].isupper() or word[0].isdigit())]


def with_stand_ins(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with each of `common_words`, four at most, replaced on both sides; `draw` decides by which stand-ins."""
    words = common_words(source, target)[: len(STAND_INS)]
    for word, stand_in in zip(words, draw.sample(STAND_INS, len(words))):
        whole = rf"(?<!\w){re.escape(word)}(?!\w)"
        source, target = (re.sub(whole, stand_in, text, count=1) for text in (source, target))
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


def find(
    text: str,
    unknown: Callable[[str], bool],
    quantities: Iterable[tuple[int, int]] = (),
    numbers: bool = True,
) -> list[tuple[int, int]]:
    """(start, end) of what is to be copied in a normalised sentence, in order, without overlap.

    Addresses, code and placeholders, tags, emoji, numbers of two digits or more (`numbers`), the `quantities`
    (`quantities.readings`), and signs and words that hold a character that the vocabulary lacks (`unknown`).
    """
    spans = [(m.start(), m.start() + len(m.group().rstrip(_STOPS))) for m in _ADDRESS.finditer(text)]
    readings = list(quantities)
    spans += [m.span() for pattern in (_CODE, INLINE) for m in pattern.finditer(text)]
    # Of "9-18 Uhr" the time is known; a number of which a part is read goes to the model but for that part.
    spans += [
        m.span()
        for m in _NUMBER.finditer(text)
        if numbers and not any(m.start() < end and begin < m.end() for begin, end in readings)
    ]
    spans += readings
    spans += _unknown_spans(text, unknown)
    result: list[tuple[int, int]] = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if begin < end and (not result or begin >= result[-1][1]):
            result.append((begin, end))
    return result


def _standing(words: str) -> re.Pattern[str]:
    """Finds `words`, no part of longer ones or numbers, also with other signs: 44% and 44 %, 30,000 and 30000, the
    1980er-Jahre and 1980er Jahre, the 20th, and Vogel's name in "Vogels".
    """
    if words.isdecimal() and len(words) > 4 and words[0] != "0":
        words = f"{int(words):_}"
    signs = {NO_BREAK: r"\s?", "_": r"[.,\s]?"}
    exact = "".join(signs.get(sign, re.escape(sign)) for sign in words)
    exact = re.sub(r"(?<=[a-z])\\-", r"[-\\s]", exact)
    # A time whose half of the day is not said gets none by guess.
    end = r"\d|\s?[ap]\.?m\b" if words[-1].isdigit() else r"(?!s\b)\w"
    return re.compile(rf"(?<!\w)(?<!\d[.,:]){exact}(?!{end}|[.,:]\d)")


def misses(text: str, needs: Iterable[str]) -> bool:
    """Whether a translation says one of the numbers, times and names that it has to say too seldom or too often."""
    return any(len(_standing(words).findall(text)) != count for words, count in Counter(needs).items())


def with_blanks(text: str, needs: Iterable[str]) -> str:
    """A translation in which the numbers and times that it has to say have the blanks that do not break."""
    for words in needs:
        text = _standing(words).sub(words, text) if NO_BREAK in words else text
    return text


@dataclass
class Extract:
    """Something taken out of a sentence, and where it stood."""

    text: str
    word: int  # words of the remaining sentence before it
    tight: bool  # it followed them without a blank
    stop: str  # the punctuation that followed it at once
    opens: bool = False  # a tag that clings to the word behind it
    around: tuple[int, int] | None = None  # a tag of a pair: the words (first, end) between both


@dataclass
class MaskedSentence:
    """A sentence as a model can read it, and what was taken out."""

    text: str
    stand_ins: dict[str, str] = field(default_factory=dict)  # piece -> what it stands for
    extracts: list[Extract] = field(default_factory=list)
    clues: set[str] = field(default_factory=set)  # pieces behind which the text says what they are
    rewrites: list[tuple[str, str]] = field(default_factory=list)  # what the translation says otherwise, and how
    words: list[str] = field(default_factory=list)  # what the translation says for each span, in order
    needs: list[str] = field(default_factory=list)  # what was left to the model and has to stand in the translation


def mask(
    text: str,
    spans: Sequence[tuple[int, int]],
    stand_ins: Sequence[str],
    readings: Mapping[tuple[int, int], str] | None = None,
    clue: Callable[[str], str] = lambda reading: "",
) -> MaskedSentence:
    """The first spans give way to `stand_ins`, as many as there are; tags, emoji and the others are taken out.

    readings: what a span says in the translation, where that is not the same.
    clue: what the sentence says behind the stand-in of a reading, so that the model knows what it is.
    """
    out, position, result = "", 0, MaskedSentence("")
    free = list(stand_ins)
    for begin, end in spans:
        out += text[position:begin]
        original, position = text[begin:end], end
        words = (readings or {}).get((begin, end), original)
        result.words.append(words)
        result.rewrites += [(original, words)] if words != original else []
        inline = INLINE.fullmatch(original)
        if free and not inline:
            stand_in = free.pop(0)
            result.stand_ins[stand_in] = words
            hint = clue(words) if words != original else ""
            result.clues |= {stand_in} if hint else set()
            out += stand_in + hint
            continue
        stop = stops(text[end:])
        tight = bool(out) and not out.endswith(" ")
        tag = _TAG_NAME.match(original) if inline else None
        if tag and tag[1] and out[-1:] not in _STOPS:
            stop = stop or "."  # wherever the words before it come to stand
        opens = tag is not None and not tag[1] and not original.endswith("/>") and text[end : end + 1] not in ("", " ")
        word = len(out.split()) - (opens and tight)
        result.extracts.append(Extract(words, word, tight, stop, opens))
        if tag and tag[1]:
            _pair(result.extracts, tag[2])
        if out.endswith(" ") and (end == len(text) or text[end] == " " or stop) and not opens:
            out = out[:-1]
        elif not out and text[end : end + 1] == " ":
            position += 1
    result.text = out + text[position:]
    return result


def _pair(extracts: Sequence[Extract], name: str) -> None:
    """Notes which words stand between the closing tag at the end and the tag that it closes."""
    for one in reversed(extracts[:-1]):
        tag = _TAG_NAME.match(one.text)
        if one.opens and one.around is None and tag and tag[2] == name:
            one.around = extracts[-1].around = (one.word, extracts[-1].word)
            return


def stops(text: str) -> str:
    """The punctuation that `text` begins with."""
    return text[: len(text) - len(text.lstrip(_STOPS))]


def restore(
    text: str,
    masked: MaskedSentence,
    words_before: Callable[[int], int],
    partners: Callable[[int, int], tuple[int, int]] | None = None,
) -> str:
    """The translation of `masked.text` with the originals in their places.

    words_before(w): how many words of the translation come before what stood behind w > 0 words of the source. A
    stand-in that the model lost is put there, too; one that it wrote twice comes once.
    partners(first, end): where the words of the translation begin and end that say what words first to end - 1 of the
    source say; tags go around them. By default the words from the first one's place to the last one's.
    """
    partners = partners or (lambda first, end: (words_before(first + 1) - 1, words_before(end)))
    missing = list(masked.extracts)
    for stand_in in masked.stand_ins:
        before, hit, after = text.partition(stand_in)
        if hit:
            text = before + hit + after.replace(" " + stand_in, "").replace(stand_in, "")
        else:
            at = masked.text.index(stand_in)
            before, after = masked.text[:at], masked.text[at + len(stand_in) :]
            missing.append(Extract(stand_in, len(before.split()), False, stops(after)))
    words = text.split(" ") if text else []
    places: dict[int, list[Extract]] = {}
    for extract in missing:
        place = _place(extract, words_before, partners)
        places.setdefault(min(place, len(words)), []).append(extract)
    out: list[str] = []
    for number in range(len(words) + 1):
        if number:
            out.append(words[number - 1])
        here = places.get(number, [])
        for extract in here:
            if not extract.opens:
                _append(out, extract, number)
        tags = "".join(extract.text for extract in here if extract.opens)
        if number < len(words):
            bare = words[number].lstrip("([\"'«„“")
            words[number] = words[number][: len(words[number]) - len(bare)] + tags + bare
        elif tags:
            out.append(tags)
    result = " ".join(out)
    for stand_in, original in masked.stand_ins.items():
        after = AFTER_CLUE if stand_in in masked.clues else r"\.?" if original.endswith(".") else ""
        result = re.sub(re.escape(stand_in) + after, original.replace("\\", r"\\"), result)
    return result


def _place(
    extract: Extract, words_before: Callable[[int], int], partners: Callable[[int, int], tuple[int, int]]
) -> int:
    """How many words of the translation come before an extract; the arguments of `restore`."""
    if extract.around:
        return partners(*extract.around)[0 if extract.opens else 1]
    if extract.opens:
        return partners(extract.word, extract.word + 1)[0]
    return words_before(extract.word) if extract.word else 0


def _append(out: list[str], extract: Extract, number: int) -> None:
    """Puts an extract behind the words in `out`, `number` of the translation's, before their punctuation."""
    stop = ""
    if out and extract.stop and number:
        bare = out[-1].removesuffix(extract.stop)
        bare = out[-1].rstrip(_STOPS) if bare == out[-1] else bare
        stop, out[-1] = out[-1][len(bare) :], bare
    if out and not out[-1]:
        out.pop()
    if extract.tight and out:
        out[-1] += extract.text + stop
    else:
        out.append(extract.text + stop)


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
