"""Names that are words as well: Hope lives in Reading, Ernst and Frau Wolf in Essen, Claire and Pierre in Tours.

A model translates them by what they mean. Here they are found by what stands around them, and pass through the model
as pieces that it copies (`verbatim`). A word that nothing around it shows to be a name is left to the model.
"""

import re
from collections.abc import Iterator
from functools import cache

from training.files import read_table

# Lines of words. By the language in whose sentences they could be taken for words: given names and towns, and what
# before such a name in mid-sentence makes a word of it. Roles: what a title stands before without being a name. Months
# and seasons, and what before one of these makes a name of it. And alternatives of patterns: titles, deeds (what people
# do, behind a name that opens a sentence), and what stands before towns.
_LISTS = read_table(__file__)
_NAME = r"(?:v[ao]n |de |L[ea] )?[A-ZÀ-Ý]\w+(?:['’-][A-ZÀ-Ý]\w+)?"
_STREETS = {
    "en": re.compile(r"\b(?:(?!On|In|At|The|From|To|Is|Where)[A-Z][\w'’]+ ){1,2}(?:Street|Road|Avenue|Lane|Square)\b"),
    "de": re.compile(
        r"\b(?!(?:Haupt|Neben|Seiten|Land|Bundes|Einbahn|Durchgangs|Schnell|Sack|Milch|Küsten|Ufer|Pass|Ring|Dorf|Ausfall|"
        r"Verbindungs|Zufahrts|Vor|Maut|Berg|Autobahn|Fern|Bahn|Auffahrts|Einkaufs)(?:straße|strasse|gasse)n?\b)"
        r"[A-ZÄÖÜ][\wß-]+(?:straße|strasse|gasse|allee)\b|\b[A-ZÄÖÜ][\wß]+(?:weg|platz|ring|damm|ufer)(?= \d)"
    ),
    "fr": re.compile(
        r"\b(?:rue|avenue|boulevard|place|quai|impasse|allée) (?:de la |de l'|des |du |de |d')?"
        r"[A-ZÀ-Ý][\wÀ-ÿ-]*(?: [A-ZÀ-Ý][\wÀ-ÿ-]*)*"
    ),
}  # fmt: skip
_SMELLS = re.compile(r"\b(?:riech|roch|schmeck|duft|aussieh|sieht|Suche|such)", re.IGNORECASE)


def _words(lines: list[str]) -> list[str]:
    return " ".join(lines).split()


def name_spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the names of a normalised sentence that a model could take for words, in no order.

    language: that of the sentence.
    """
    if language not in _LISTS["first names"]:
        return
    for pattern in _patterns(language):
        for match in pattern.finditer(text):
            if match["name"].split()[0] not in _words(_LISTS["roles"]) and not text.isupper():
                yield match.span("name")
    yield from (match.span() for match in _STREETS[language].finditer(text))
    yield from _inside(text, language)
    if not (language == "de" and _SMELLS.search(text)):
        towns = "|".join(map(re.escape, _words(_LISTS["towns"][language])))
        before = _LISTS["before towns"][language]
        for match in re.finditer(rf"\b(?:{before})\s(?P<name>{towns})(?![\w-]| [A-Z\d])", text):
            yield match.span("name")


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Names behind titles, and given names of the lists before a surname or what people do."""
    first_names, own_and = "|".join(_words(_LISTS["first names"][language])), _LISTS["and"][language]
    titles, deeds = ("|".join(_LISTS[kind][language]) for kind in ("titles", "deeds"))
    more = 0 if language == "de" else 2  # names; behind a German one another capital may begin any noun
    first = rf"^[\"“„«]?\s?(?P<name>(?:{first_names})(?: {_NAME})?)"
    return (
        re.compile(rf"(?<!\w)(?:{titles}) (?P<name>{_NAME}(?: {_NAME}){{0,{more}}})"),
        re.compile(rf"{first} (?=(?:{deeds})(?:(?<=')|(?!\w)))"),
        re.compile(rf"{first}(?='s \w|, (?:{_NAME}|where|what|come|wo|was|komm|où|viens))"),
        re.compile(rf"{first} (?=(?:{own_and}) {_NAME} )"),
        re.compile(rf"^{_NAME} (?:{own_and}) (?P<name>{first_names})\b"),
    )  # fmt: skip


def _inside(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Given names of the lists in mid-sentence, in languages whose words have no capitals there."""
    if language == "de" or text.istitle() or text.isupper():
        return
    determiners = set(_words(_LISTS["determiners"][language]))
    names = "|".join(_words(_LISTS["first names"][language]))
    for match in re.finditer(rf"(?<=[a-zß-ÿ,] )(?P<name>{names})(?![\w-])", text):
        before = re.split(r"[ ']", text[: match.start()].rstrip(" ,"))[-1]
        month = match["name"] in _words(_LISTS["seasons"]) and (
            before not in _words(_LISTS["meets"]) or re.match(r",? \d", text[match.end() :])
        )
        capitals = before[:1].isupper() or re.match(r" [A-ZÀ-Ý]", text[match.end() :])  # of the Art Institute
        if before.lower() not in determiners and not month and not (capitals and language == "en"):
            yield match.span("name")
