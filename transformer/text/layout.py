"""A line in sentences, and what stands around them as it is: marks of lists, bars of tables, tags, emoji.

Only the sentences go to a model. What may stand inside one, such as <b> or an emoji, stays there; `verbatim` takes it
out and puts it back.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from training.files import read_table
from transformer.text.sentences import split_sentences

# Tags that begin or end a text of their own; articles, prepositions and the like.
_WORDS = {name: " ".join(lines).split() for name, lines in read_table(__file__).items()}
TAG = r"</?[A-Za-z][\w:-]*(?:\s+[^<>]*|\s*)/?>|<!--.*?-->"
EMOJI = (
    r"(?:[\U0001F000-\U0001FAFF\u2300-\u23FF\u2600-\u27BF\u2B00-\u2BFF][\ufe0f\u20e3\U000E0020-\U000E007F]*\u200d?)+"
    r"|(?<!\S)[:;]-?[()DP](?!\S)"
)
INLINE = re.compile(f"{TAG}|{EMOJI}")
_BLOCK = re.compile(
    rf"</?(?:{'|'.join(_WORDS['block tags'])})\b[^<>]*>"
    r"|[.…]{4,}|_{3,}"  # leaders to a figure, blanks to fill in
)
_BARS = re.compile(r"\s*\|\s*")
_SLASH = re.compile(r"\s+/\s+")
_JOINS = re.compile(r"\b(?:and|or|und|oder|et|ou|the|a|der|die|das|le|la)$", re.IGNORECASE)  # before "/ ": one phrase
_PARTS = 4  # words of a part, at most, between slashes and before a colon
# What begins a line and has a text of its own behind it: "Date: 12 May", "Step 2 : ouvrez la boîte".
_LABEL = re.compile(rf"(?=\w{{2}})[^\W\d_][\w'’.&-]*(?: [\w'’.&/-]+){{0,{_PARTS - 1}}}\s?:(?=\s+\S)")
# An emoji between two clauses ends the first; before these words another one begins.
_CLAUSE_EMOJI = re.compile(
    rf"(?<=\w)\s+(?:{EMOJI})\s+(?=(?:i|he|she|it|they|we|you|this|that's|everything|everyone|let's|don't|see|ich|du|er|sie|es"
    r"|wir|ihr|das|alles|alle|bis|je|j'\w+|tu|il|elle|on|nous|vous|ils|elles|c'est|ça|tout|à)\b)",
    re.IGNORECASE,
)
_CODE = r"`[^`]*`|\{\{.*?\}\}|<code\b[^<>]*>.*?</code>"  # bars in there part nothing
_LIST_MARK = re.compile(r"(?:(?:[-*•·‣▪–—+>]|#{1,6}|-{2,}|\[[ xX]?\]|\(\w{1,3}\)|[a-zA-Z]\))\s+)+")
_NUMBER_MARK = re.compile(r"(?:\d{1,3}|[IVX]{1,4}|[A-Za-z])[.)]\s+")  # only where more than one line has such
_RULE = re.compile(r"\s+[-*=#_~]{2,}$")  # closes a line
_ENTITY = re.compile(r"&(?!lt;|gt;)(?:#\d{1,6}|#x[0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
# A line that is shorter was not broken for want of room.
MIN_WRAP_LENGTH = 32
_ENDS = re.compile(r"[.!?…:;|>][\"'”“»)\]]*$")
_BREAKS_WORD = re.compile(r"[^\W\d_]{2,}-$")


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence of a line, or a clause of one, and what stands around it in the line."""

    text: str
    before: str = ""  # since the segment before it
    after: str = ""  # to the end of the line, at the last one
    whole: str = ""  # the sentence that `text` is a clause of
    entities: Mapping[str, str] = field(default_factory=dict)  # characters that were written as HTML entities

    def around(self, translation: str) -> str:
        """A translation of the text in its place."""
        return self.before + with_entities(translation, self.entities) + self.after


def segments(line: str, with_numbers: bool = False) -> list[Segment]:
    """The sentences of a normalised line; each with what stands before it, so that nothing is lost.

    with_numbers: "1." at the beginning of the line counts it (`has_numbers`). A line without letters is one segment.
    """
    line, entities = _without_entities(line)
    parts: list[Segment] = []
    end = 0
    for begin, stop in _pieces(line, with_numbers):
        if not any(c.isalpha() for c in INLINE.sub("", line[begin:stop])):
            continue
        for start, finish in _sentences(line[begin:stop]):
            parts.append(Segment(line[begin + start : begin + finish], line[end : begin + start], entities=entities))
            end = begin + finish
    if not parts:
        return [Segment(line, entities=entities)] if line else []
    last = parts[-1]
    parts[-1] = Segment(last.text, last.before, line[end:], entities=entities)
    return parts


def has_numbers(lines: Sequence[str]) -> bool:
    """Whether several of these lines begin with a number or letter that counts them."""
    return sum(_NUMBER_MARK.match(line.lstrip()) is not None for line in lines) > 1


def _pieces(line: str, with_numbers: bool) -> Iterator[tuple[int, int]]:
    """(start, end) of what lies between block tags, bars of a table and marks of lists."""
    mark = _LIST_MARK.match(line)
    start = mark.end() if mark else 0
    number = _NUMBER_MARK.match(line, start) if with_numbers else None
    start = number.end() if number else start
    rule = _RULE.search(line)
    stop = rule.start() if rule else len(line)
    code = [m.span() for m in re.finditer(_CODE, line)]
    marks = [m.span() for m in _BLOCK.finditer(line)]
    if line.startswith("|") or " | " in line:
        marks += [m.span() for m in _BARS.finditer(line)]
    parts = _SLASH.split(line[start:stop])
    if len(parts) > 1 and not any(len(part.split()) > _PARTS or _JOINS.search(part) for part in parts):
        marks += [m.span() for m in _SLASH.finditer(line)]
    marks += [m.span() for m in _CLAUSE_EMOJI.finditer(line, start) if " " in line[start : m.start()]]
    for begin, end in sorted(m for m in marks if not any(a <= m[0] < b for a, b in code)):
        if begin >= start:
            yield start, begin
        start = max(start, end)
    yield start, stop


def _sentences(piece: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence of a piece, and of a label before the first, without tags and emoji at the ends."""
    marks = [m.span() for m in INLINE.finditer(piece)]
    offsets = [i for i in range(len(piece)) if not any(a <= i < b for a, b in marks)]
    text, place = "".join(piece[i] for i in offsets), 0
    for sentence in split_sentences(text):
        place = text.index(sentence, place)
        label = _LABEL.match(sentence)
        if label and not place:
            yield offsets[0], offsets[label.end() - 1] + 1
            sentence = sentence[label.end() :].lstrip()
            place = text.index(sentence, label.end())
        yield offsets[place], offsets[place + len(sentence) - 1] + 1
        place += len(sentence)


def _without_entities(line: str) -> tuple[str, dict[str, str]]:
    """A line with characters for its HTML entities, and how those that are no letters or blanks were written.

    &lt; and &gt; stay, so that no text becomes a tag.
    """
    entities: dict[str, str] = {}

    def character(match: re.Match) -> str:
        sign = html.unescape(match.group())
        if sign == match.group() or len(sign) != 1:
            return match.group()
        if sign.isspace():
            return " "
        if not sign.isalnum():
            entities[sign] = match.group()
        return sign

    return _ENTITY.sub(character, line), entities


def with_entities(text: str, entities: Mapping[str, str]) -> str:
    """A text in which the characters of `entities` are written as they were, but for those in tags."""
    if not entities:
        return text
    pattern = re.compile(f"({TAG}|&[lg]t;)|[{re.escape(''.join(entities))}]")
    return pattern.sub(lambda match: match[1] or entities[match.group()], text)


def unwrap(lines: Sequence[str], capital_nouns: bool) -> list[str]:
    """The lines of a text; those that were broken in mid-sentence for want of room are joined.

    A line of MIN_WRAP_LENGTH characters that no mark ends goes on in the next where that begins small. Before a capital
    it goes on after a word that ends nothing: an article or preposition, and where nouns have capitals
    (`capital_nouns`) any small word.
    """
    result: list[str] = []
    last = ""  # the line before, as it stood
    for line in lines:
        if result and _goes_on(last.strip(), line.strip(), capital_nouns):
            if _BREAKS_WORD.search(result[-1]) and line.lstrip()[0].islower():
                result[-1] = result[-1].rstrip()[:-1] + line.strip()
            else:
                result[-1] = f"{result[-1].rstrip()} {line.strip()}"
        else:
            result.append(line)
        last = line
    return result


def _goes_on(line: str, following: str, capital_nouns: bool) -> bool:
    """Whether a line was broken in mid-sentence."""
    if len(line) < MIN_WRAP_LENGTH or not following or _ENDS.search(line) or _LIST_MARK.match(following):
        return False
    if following[0].islower() or following[0].isdigit():
        return True
    word = re.split(r"[\s]", line)[-1]
    return following[0].isalpha() and (word in _WORDS["function words"] or capital_nouns and word.rstrip(",").islower())


def plain_segments(line: str, clauses: Callable[[str], list[str]]) -> list[Segment]:
    """The sentences of a normalised line, or the clauses of those that are too long, with one blank between them."""
    parts = [(clause, sentence) for sentence in split_sentences(line) for clause in clauses(sentence)]
    return [Segment(clause, " " if number else "", "", whole) for number, (clause, whole) in enumerate(parts)]


def segment_lines(lines: Sequence[str], clauses: Callable[[str], list[str]]) -> list[list[Segment]]:
    """The segments of each normalised line; `clauses` parts sentences that are too long."""
    with_numbers = has_numbers(lines)
    rows = []
    for line in lines:
        row: list[Segment] = []
        for one in segments(line, with_numbers):
            first, *others = clauses(one.text)
            row.append(replace(one, text=first, after="", whole=one.text))
            row += [replace(one, text=clause, before=" ", after="", whole=one.text) for clause in others]
            row[-1] = replace(row[-1], after=one.after)
        rows.append(row)
    return rows
