"""Names that are words as well: Hope lives in Reading, Ernst and Frau Wolf in Essen, Claire and Pierre in Tours.

A model translates them by what they mean. Here they are found by what stands around them, and pass through the model
as pieces that it copies (`verbatim`). A word that nothing around it shows to be a name is left to the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

# Given names, by the language in whose sentences they could be taken for words.
_FIRST_NAMES = {
    "en": """Hope Faith Grace Joy Rose Lily Daisy Ivy Violet Summer Autumn Dawn April May June August Sandy Penny
        Crystal Ruby Pearl Amber Ginger Olive Holly Hazel Heather Iris Patience Prudence Constance Charity
        Mercy Honor Sky Star Misty Brook Robin Sunny Destiny Serenity Melody Harmony Willow Poppy Fern
        Jade Opal Cherry Candy Angel Eve Carol Dolly Bonnie Raven Haven Honey Dove Lark Sage Rosemary
        Saffron Juniper Laurel Coral Trinity Verity Felicity Winter Jack Mark Bill Will Frank Rich Rob
        Chase Chuck Art Gene Drew Grant Wade Cliff Dale Glen Heath Forest Pat Jay Reed Rusty Buck Hunter
        Mason Carter Taylor Cooper Baker Miles Guy Dean Earl Duke King Prince Lance Pierce Rock Stone
        Sonny Skip Buddy Ray Rod Ward Dusty Sterling Ford Jasper Clay Bob Nick Dick Harry Stew Colt Woody
        Basil Herb Rowan Ash Drake Ace Chance Clark Archer Fletcher Porter Tanner Tyler Sue Faye Gail Bea
        Dot Viola Pepper Storm Rain River Reece Christian Major Judge Norm Russell Wayne Warren""",
    "de": """Ernst Wolf Falk Rosa Heide Linde Erika Jasmin Viola Iris Rainer Axel Jost Felix Armin Hein Götz Bär Sepp
        Engel Sommer Sonne Stella Rose Melissa Veilchen Kai Frank Hans Horst Gerd Wolfram Bruno Silke
        Heike Inge Karl Siegfried Reinhard Gottlieb Fürchtegott Traugott Freimut Hartmut Volker Sieglinde
        Otto Dietrich""",
    "fr": """Claire Blanche Fleur Violette Marguerite Colombe Aurore Clémence Constance Prudence Désirée Aimée Félicité
        Capucine Prune Cerise Perle Victoire France Reine Olive Rose Ange Aimé Parfait Juste Modeste Noël
        Constant Fortuné Désiré Fidèle Honoré Clément Prosper Vivien Pierre Pascal Loup Léger Placide
        Hyacinthe Grâce Solange Mélodie Ambre Jade Iris Soleil Océane Luce Lys Marin Sylvestre Romain
        Germain Martial Hilaire Églantine Lionel Flore Rosé Garance Anémone Espérance Espoir Dahlia Iseult
        Barbe Bienvenu""",
}
_TOWNS = {
    "en": """Reading Bath Sandwich Rugby Deal Ware Battle Rye Poole Sale Bury Cork Nice Tours Orange Mobile Phoenix
        Flint Buffalo Boulder Hull Wells Eye Crewe Slough Derby Lancaster Lincoln Concord Independence
        Hope Barking Tring Ash Beer Street Diss Worth Wedding Split Essen Male Bend Ham Stone Rock
        Settle Bangor Chester""",
    "de": """Essen Bergen Hof Halle Siegen Hagen Münster Singen Kehl Worms Rust Wesel Weil Hamm Baden Celle Lahr
        Moers Aalen Nagold Gießen Wiesbaden Speyer Trier Ahlen Rosenheim Kiel Stade
        Leer Norden Verden Wedel Haltern Weiden Zwiesel Reutte Baden-Baden Villingen
        Laufen Wittenberg""",
    "fr": """Tours Nice Orange Angers Lens Laon Sens Vichy Troyes Die Gap Foix Brest Agen Auch Bourges Vannes Cannes
        Grasse Pau Dole Royan Moulins Rennes Nantes Condom Saintes Fréjus Bourg Montagne
        Villefranche Fontainebleau Châteauroux Angoulême Briançon""",
}
_TITLES = {
    "en": r"(?:Mrs?|Ms|Dr)\.?|Miss|Professor|Aunt|Uncle|Sir",
    "de": r"Herrn?|Frau|Fräulein|Dr\.|Prof\.|Familie|Tante|Onkel",
    "fr": r"M\.|MM\.|Mmes?|Mlles?|Monsieur|Madame|Mademoiselle|Maître",
}
# What a title stands before without being a name.
_ROLES = """President Prime Chairman Chair Speaker Minister Chancellor Secretary Ambassador Professor Doctor Judge Mayor
    Präsident Präsidentin Bundeskanzler Bundeskanzlerin Kanzler Kanzlerin Minister Ministerin Vorsitzender
    Vorsitzende Kommissar Kommissarin Doktor Professor Professorin Direktor Direktorin Lehrer Lehrerin Kollege
    Kollegin Pfarrer Bürgermeister Bürgermeisterin Nachbar Nachbarin Oberst Hauptmann Abgeordneter Abgeordnete
    Dr Prof Président Présidente Ministre Commissaire"""
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
# A word before a name of the lists in mid-sentence that makes a word of it.
_DETERMINERS = {
    "en": """the a an this that these those my your his her its our their no some any every each of in with without
        much more little great such""",
    "de": """der die das dem den des ein eine einen einem einer kein keine keinen mein meine meinen dein deine sein
        seine ihr ihre unser unsere im am zum zur vom beim mit ohne in aus voller voll viel bei als
        tierischer ist war ganz""",
    "fr": """le la les l' un une des du au aux de d' ce cette ces mon ma mes ton ta sa son notre votre leur en la-""",
}
_SEASONS = "April May June August Summer Autumn Winter"
# Before a month or season these make a name of it.
_MEETS = """met and with see saw told tell asked ask love loves loved know knows called call gave invited married
    thank than kissed visited"""
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


def name_spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the names of a normalised sentence that a model could take for words, in no order.

    language: that of the sentence.
    """
    if language not in _FIRST_NAMES:
        return
    for pattern in _patterns(language):
        for match in pattern.finditer(text):
            if match["name"].split()[0] not in _ROLES.split() and not text.isupper():
                yield match.span("name")
    yield from (match.span() for match in _STREETS[language].finditer(text))
    yield from _inside(text, language)
    if not (language == "de" and _SMELLS.search(text)):
        towns = "|".join(map(re.escape, _TOWNS[language].split()))
        for match in re.finditer(rf"{_IN[language]}(?P<name>{towns})(?![\w-]| [A-Z\d])", text):
            yield match.span("name")


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Names behind titles, and given names of the lists before a surname or what people do."""
    first_names, own_and = "|".join(_FIRST_NAMES[language].split()), _AND[language]
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
    determiners = set(_DETERMINERS[language].split())
    for match in re.finditer(rf"(?<=[a-zß-ÿ,] )(?P<name>{'|'.join(_FIRST_NAMES[language].split())})(?![\w-])", text):
        before = re.split(r"[ ']", text[: match.start()].rstrip(" ,"))[-1]
        month = match["name"] in _SEASONS.split() and (
            before not in _MEETS.split() or re.match(r",? \d", text[match.end() :])
        )
        capitals = before[:1].isupper() or re.match(r" [A-ZÀ-Ý]", text[match.end() :])  # of the Art Institute
        if before.lower() not in determiners and not month and not (capitals and language == "en"):
            yield match.span("name")
