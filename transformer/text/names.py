"""Names that are words as well: Hope lives in Reading, Ernst and Frau Wolf in Essen, Claire and Pierre in Tours.

A model translates them by what they mean. Here they are found by what stands around them, and pass through the model
as pieces that it copies (`verbatim`). A word that nothing around it shows to be a name is left to the model.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Lines of words. By the language in whose sentences they could be taken for words: given names and towns, and what
# before such a name in mid-sentence makes a word of it. Roles: what a title stands before without being a name. Months
# and seasons, and what before one of these makes a name of it.
_LISTS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_TITLES = {
    "en": r"(?:Mrs?|Ms|Dr)\.?|Miss|Professor|Aunt|Uncle|Sir",
    "de": r"Herrn?|Frau|Fräulein|Dr\.|Prof\.|Familie|Tante|Onkel",
    "fr": r"M\.|MM\.|Mmes?|Mlles?|Monsieur|Madame|Mademoiselle|Maître",
}
_NAME = r"(?:v[ao]n |de |L[ea] )?[A-ZÀ-Ý]\w+(?:['’-][A-ZÀ-Ý]\w+)?"
# What people do, behind a name that opens a sentence.
_DOES = {
    "en": r"""lives?|lived|works?|worked|likes?|liked|loves?|loved|hates|plays?|played|says?|said|told|asked|asks
        |knows|knew|thinks|thought|wants|wanted|needs|wrote|writes|reads|bought|buys|sold|called|calls
        |phoned|came|comes|went|goes|left|met|married|moved|gave|gives|made|makes|took|forgot|lost|found|won
        |drives|drove|teaches|taught|studies|studied|speaks|spoke|sings|sang|eats|ate|drinks|drank|sleeps
        |slept|visited|helped|helps|invited|smiled|laughed|cried|answered|arrived|sent|sends|became|grew|got
        |has\s(?:a|an|two|three|many|lost|forgotten|bought|gone|left|been|moved|no)|had\sa|doesn't|didn't
        |did\snot|does\snot|hasn't|can't|cannot|could\snot|wouldn't|won't
        |(?:is|was|isn't)\s(?:not\s)?(?:\w+ing\b|my|our|his|her|their|ill|sick|late|tired|here|at|older
        |younger|taller|married|born|from|\w+\syears|an?\s\w+(?:er|or|ist|ian|an|nt|se|yer)\b)""",
    "de": r"""wohnt|wohnte|lebt|lebte|arbeitet|mag|liebt|hasst|spielt|sagt|sagte|fragt|fragte|weiß|wusste|denkt
        |dachte|will|wollte|braucht|schrieb|schreibt|liest|kauft|kaufte|verkaufte|rief|ruft|kam|kommt|ging
        |geht|traf|heiratet|heiratete|zieht|zog|gab|gibt|machte|nahm|vergaß|verlor|fand|gewann|fährt|fuhr
        |lernt|studiert|spricht|sprach|singt|isst|aß|trinkt|trank|schläft|schlief|besuchte|hilft|half
        |lächelte|lachte|weinte|antwortete|backt|kocht|wartet|wartete|heißt|wurde|hat|hatte
        |ist\s(?:nicht\s)?(?:krank|müde|mein|meine|unser|unsere|sein|seine|ihr|ihre|älter|jünger|größer
        |verheiratet|Sänger\w*|Lehrer\w*|Arzt|Ärztin|nach|zu|in|aus|gestern|heute|schon|noch|\w+\sJahre)""",
    "fr": r"""habite|vit|travaille|aime|déteste|joue|dit|demande|sait|pense|veut|écrit|lit|achète|vend|appelle
        |vient|va|part|parle|chante|mange|boit|dort|attend|apprend|étudie|rit|pleure|répond|arrive|fait
        |porte|cherche|s'appelle|n'|ne|m'|l'|lui|nous|vous|a|avait|est|était|sera|sont|voulait|habitait
        |vivait|travaillait|aimait""",
}
_AND = {"en": "and|or", "de": "und|oder", "fr": "et|ou"}
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
_IN = {
    "en": r"\b(?:in|to|from|near|at|via|around|outside|leaving|visited?)\s",
    "de": r"\b(?:in|nach|aus|bis)\s",
    "fr": r"\b(?:à|de|vers|pour|par|près de|quitter|visiter)\s",
}
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
        for match in re.finditer(rf"{_IN[language]}(?P<name>{towns})(?![\w-]| [A-Z\d])", text):
            yield match.span("name")


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Names behind titles, and given names of the lists before a surname or what people do."""
    first_names, own_and = "|".join(_words(_LISTS["first names"][language])), _AND[language]
    does = "(?:" + re.sub(r"\s+", "", _DOES[language]) + ")"
    more = 0 if language == "de" else 2  # names; behind a German one another capital may begin any noun
    first = rf"^[\"“„«]?\s?(?P<name>(?:{first_names})(?: {_NAME})?)"
    return (
        re.compile(rf"(?<!\w)(?:{_TITLES[language]}) (?P<name>{_NAME}(?: {_NAME}){{0,{more}}})"),
        re.compile(rf"{first} (?={does}(?:(?<=')|(?!\w)))"),
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
