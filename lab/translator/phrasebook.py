"""What travellers say, in English, German and French: sentences with gaps, and the words that fill them.

    python -m lab.translator.phrasebook --out data [--model everyday]

Parallel text has the words of a journey too seldom: that a flight is cancelled, what somebody is allergic to, platforms
and traffic lights. The sentences stand in `lab/phrasebook/phrases.tsv`, the words with their number and gender in
`words.tsv` beside it. A gap `{class:form}` takes one word of a class, the same in all three languages, in a form such
as `the`, `zum` or `du` (with a 0, the article alone); `{food2}` is a second word of the class `food`. `written.tsv` has
whole sentences of daily life, news and knowledge, `rarer.tsv` such around words that parallel text has seldom, and
`held_out.tsv` sixty of travellers, for tests alone. Of words and basic texts a `--model` still gets some wrong: these
are written once more, by themselves (`lab.translator.hard`).
`transformer.prepare` reads the tables that the command writes.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lab.translator.hard import LANGUAGES, hard_tables
from training.arguments import CommandLine, a_folder_to_write, a_seed, integer
from training.command import one_sentence
from transformer.data import write_table
from transformer.translator import Translator

# Tables in lab/phrasebook/kinds.
KINDS = ("basics", "words", "notices", "numbers", "sense", "turns", "lists", "names", "short")
TABLES = Path(__file__).parents[1] / "phrasebook"
GAP = re.compile(r"\{([a-z]+)(\d?)(?::([A-Za-z0-9]+))?\}")
BETWEEN_HOURS = re.compile(r"\b(half past|(quarter|five|ten|twenty|twenty-five) (past|to)) \w+")
MAX_LINE = 60  # most sentences out of one line with gaps
DIGITS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "ten": "10"}
AS_DIGITS = 0.25  # share of the sentences whose numbers are digits
# What may stand before or after a sentence of its own.
BEFORE = [
    ("Good morning.", "Guten Morgen.", "Bonjour."),
    ("Good evening.", "Guten Abend.", "Bonsoir."),
    ("Hello.", "Guten Tag.", "Bonjour."),
    ("I have a question.", "Ich habe eine Frage.", "J'ai une question."),
    ("Please help me.", "Bitte helfen Sie mir.", "Aidez-moi, s'il vous plaît."),
]
AFTER = [
    ("Thank you.", "Danke.", "Merci."),
    ("Thank you very much.", "Vielen Dank.", "Merci beaucoup."),
]
FRAME_SHARE = 0.2  # share of the sentences with one of them


@dataclass(frozen=True, slots=True)
class Word:
    """One noun or phrase in three languages; numbers and genders are "s" or "p", "m", "f", "n" or "p", "-" if fixed."""

    kind: str
    en: str
    en_number: str
    de: str
    de_gender: str
    fr: str
    fr_gender: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """One line with gaps in three languages, and the name of what the words have to fulfil, or ""."""

    texts: tuple[str, str, str]
    only: str


def _among(text: str) -> Callable[[Word], bool]:
    names = set(text.split(", "))
    return lambda word: word.en in names


def _not(text: str) -> Callable[[Word], bool]:
    names = set(text.split(", "))
    return lambda word: word.en not in names


# Which words a line takes, where not each one of its class makes sense.
ONLY: dict[str, dict[str, Callable[[Word], bool]]] = {
    "bags": {"item": _among("suitcase, luggage, backpack, bag, bicycle")},
    "clothes": {"buy": _among("pullover, shirt, dress, skirt, swimsuit, hat, shoes")},
    "common": {
        "place": _not(
            "main station, old town, city centre, cathedral, town hall, university, castle, harbour, airport, tower"
        )
    },
    "ground": {"ride": _not("flight")},
    "indoors": {
        "place": _among(
            "station, airport, post office, bank, pharmacy, hospital, supermarket, bakery, museum, theatre, cinema, "
            "library, hotel, youth hostel, restaurant, café, swimming pool, bookshop, laundrette"
        )
    },
    "inroom": {"broken": _among("heating, air conditioning, shower, television, light, coffee machine")},
    "mass": {"food": lambda word: word.en_number == "s"},
    "minutes": {"span": lambda word: word.en.endswith(("minutes", "hours"))},
    "one": {"item": lambda word: word.en_number == "s" and word.en != "luggage"},
    "opens": {
        "place": _among(
            "post office, bank, pharmacy, town hall, market, supermarket, bakery, museum, castle, cathedral, library, "
            "restaurant, café, swimming pool, tourist office, petrol station, zoo, park, embassy, bookshop, tower"
        )
    },
    "plural": {"food": lambda word: word.en_number == "p", "buy": lambda word: word.en_number == "p"},
    "sights": {
        "place": _among(
            "museum, castle, cathedral, church, town hall, theatre, library, university, zoo, old town, tower, "
            "harbour, market, city centre"
        )
    },
    "single": {"buy": lambda word: word.en_number == "s"},
    "spot": {"place": _not("city centre, old town, lake, beach, campsite")},
    "young": {"who": _among("son, daughter, child, baby")},
}


def english(word: Word, form: str) -> str:
    """A word in English in a form: "a", "the", "my", "this", or of a verb that agrees with it: "is", "has", "was"."""
    many = word.en_number == "p"
    if form in ("is", "has", "was"):
        return {"is": "are", "has": "have", "was": "were"}[form] if many else form
    if form == "a":
        vowel = word.en[0].lower() in "aeiou" and word.en != "university"
        return word.en if many or word.en == "luggage" else f"{'an' if vowel else 'a'} {word.en}"
    if form == "his":
        return "her" if word.de_gender == "f" else "his"
    if form == "this":
        return f"{'these' if many else 'this'} {word.en}"
    return f"{form} {word.en}" if form else word.en


# German endings by case and gender, of the definite article and of words such as "ein".
DER = {
    "der": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "den": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dem": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
    "zum": {"m": "zum", "f": "zur", "n": "zum", "p": "zu den"},
    "am": {"m": "am", "f": "an der", "n": "am", "p": "an den"},
    "im": {"m": "im", "f": "in der", "n": "im", "p": "in den"},
    "dieser": {"m": "dieser", "f": "diese", "n": "dieses", "p": "diese"},
    "diesen": {"m": "diesen", "f": "diese", "n": "dieses", "p": "diese"},
}
EIN = {
    "": {"m": "", "f": "e", "n": "", "p": "e"},
    "en": {"m": "en", "f": "e", "n": "", "p": "e"},
    "em": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
STEMS = ("kein", "mein", "Ihr", "unser", "ein")


def german(word: Word, form: str) -> str:
    """A word in German in a form: an article or pronoun as it is before a masculine noun ("den", "zum", "meinem"), or
    of a verb that agrees with it: "is" ("ist"), "was" ("wurde"), "kostet".
    """
    gender = word.de_gender
    if form in ("is", "was", "kostet"):
        singular, plural = {"is": ("ist", "sind"), "was": ("wurde", "wurden"), "kostet": ("kostet", "kosten")}[form]
        return plural if gender == "p" else singular
    if form == "s":
        return word.de.lower() + "s"
    if not form:
        return word.de
    noun = word.de
    if gender == "p" and form in ("dem", "zum", "am", "im", "meinem") and noun[-1] not in "ns":
        noun += "n"
    if form in DER:
        return f"{DER[form][gender]} {noun}"
    base = next(base for base in STEMS if form.startswith(base))
    if base == "ein" and gender == "p":
        return noun
    return f"{base}{EIN[form[len(base) :]][gender]} {noun}"


def french(word: Word, form: str) -> str:
    """A word in French in a form: "le", "au", "du", "d" ("de"), "un", "dun", "mon", "votre", "notre", "ce" before it,
    of a verb that agrees with it: "is" ("est"), "has" ("a"), "cost" ("coûte"), or the ending of a participle: "e".
    """
    gender, many = word.fr_gender[0], word.fr_gender.endswith("p")
    elision = word.fr[0].lower() in "aeéèêiîoôuhœâà"
    feminine = gender == "f"
    if form in ("is", "has", "cost"):
        return {"is": ("est", "sont"), "has": ("a", "ont"), "cost": ("coûte", "coûtent")}[form][many]
    if form in ("e", "er"):
        return ("e" if feminine else "") + ("s" if many else "") if form == "e" else "ère" if feminine else "er"
    if form == "leplus":
        return "les plus" if many else "la plus" if feminine else "le plus"
    if not form:
        return word.fr
    if form == "d" or (form == "dun" and many):
        return f"d'{word.fr}" if elision else f"de {word.fr}"
    if many:
        before = {"le": "les", "au": "aux", "du": "des", "un": "des", "mon": "mes", "ce": "ces"}.get(form)
        return f"{before or {'votre': 'vos', 'notre': 'nos'}[form]} {word.fr}"
    if elision and form in ("le", "au", "du"):
        return {"le": "l'", "au": "à l'", "du": "de l'"}[form] + word.fr
    before = {
        "le": ("le", "la"),
        "au": ("au", "à la"),
        "du": ("du", "de la"),
        "un": ("un", "une"),
        "dun": ("d'un", "d'une"),
        "mon": ("mon", "mon" if elision else "ma"),
        "ce": ("cet" if elision else "ce", "cette"),
        "votre": ("votre", "votre"),
        "notre": ("notre", "notre"),
    }[form][feminine]
    return f"{before} {word.fr}"


INFLECT = {"en": english, "de": german, "fr": french}


def _rows(name: str) -> list[dict[str, str]]:
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def words() -> dict[str, list[Word]]:
    """The words by class, as they stand in `words.tsv`."""
    by_kind: dict[str, list[Word]] = {}
    for row in _rows("words.tsv"):
        by_kind.setdefault(row["class"], []).append(Word(*row.values()))
    return by_kind


@cache
def phrases() -> list[Phrase]:
    """The lines with gaps, as they stand in `phrases.tsv`."""
    return [Phrase((row["en"], row["de"], row["fr"]), row["only"]) for row in _rows("phrases.tsv")]


def fill(text: str, language: str, words: Mapping[str, Word]) -> str:
    """A line with its gaps filled, its first letter large.

    text: the line in one language. language: "en", "de" or "fr". words: the word of each gap, by class and digit.
    Raises `KeyError` for a gap or a form that is not known.
    """

    def inflect(gap: re.Match[str]) -> str:
        form = gap[3] or ""
        large = form[:1].isupper() and not form.startswith("Ihr")
        word, alone = words[gap[1] + gap[2]], form.endswith("0")
        form = form.removesuffix("0")
        inflection = INFLECT[language](word, form[0].lower() + form[1:] if large else form)
        if alone:  # the article without its noun, where an adjective stands between the two
            return inflection.removesuffix(getattr(word, language)).rstrip()
        return inflection[0].upper() + inflection[1:] if large else inflection

    line = GAP.sub(inflect, text)
    return line[:1].upper() + line[1:]


def choose(phrase: Phrase, random_: random.Random) -> dict[str, Word]:
    """Words for the gaps of a line, two of one class never the same; numbers are digits in a quarter of the lines."""
    choice: dict[str, Word] = {}
    digits = random_.random() < AS_DIGITS
    for gap in sorted({gap[1] + gap[2] for gap in GAP.finditer(" ".join(phrase.texts))}):
        kind = gap.rstrip("0123456789")
        fits = ONLY.get(phrase.only, {}).get(kind, _not(""))
        choice[gap] = random_.choice([word for word in words()[kind] if fits(word) and word not in choice.values()])
    return {gap: in_digits(word) if digits else word for gap, word in choice.items()}


def in_digits(word: Word) -> Word:
    """A number as a digit, the same in all languages; any other word as it is."""
    digit = DIGITS.get(word.en, "") if word.kind == "number" else ""
    return Word(word.kind, digit, "-", digit, "-", digit, "-") if digit else word


def sentences(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Different sentences in English, German and French, out of all lines in turn, shuffled; none of `test_sentences`.

    count: how many at most; a line without gaps gives few. seed: another seed, other words.
    """
    random_, tests = random.Random(seed), {english for english, _, _ in test_sentences()}
    unique: dict[tuple[str, str, str], None] = {}
    for _ in range(MAX_LINE):
        for phrase in phrases():
            choice = choose(phrase, random_)
            texts = [fill(text, language, choice) for text, language in zip(phrase.texts, LANGUAGES, strict=True)]
            if random_.random() < FRAME_SHARE:
                before, frame = random_.choice([(True, each) for each in BEFORE] + [(False, each) for each in AFTER])
                texts = [f"{f} {t}" if before else f"{t} {f}" for f, t in zip(frame, texts, strict=True)]
            if len(unique) < count and texts[0] not in tests:
                unique[texts[0], texts[1], texts[2]] = None
    rows = list(unique)
    random_.shuffle(rows)
    return rows


def names_a_time(text: str) -> bool:
    """Whether an English sentence has a time of day between two hours, which German tells by the hour to come."""
    return BETWEEN_HOURS.search(text) is not None


def _triples(name: str) -> list[tuple[str, str, str]]:
    return [(row["en"], row["de"], row["fr"]) for row in _rows(name)]


def handwriting() -> list[tuple[str, str, str]]:
    """Whole sentences in English, German and French."""
    return _triples("written.tsv")


def rarer() -> list[tuple[str, str, str]]:
    """Whole sentences around words that parallel text has seldom."""
    return _triples("rarer.tsv")


def test_sentences() -> list[tuple[str, str, str]]:
    """Sixty sentences of travellers that no model was trained on."""
    return _triples("held_out.tsv")


def kinds() -> dict[str, list[tuple[str, str, str]]]:
    """What translators get wrong, by kind: the most basic short texts, words alone, notices, numbers in words,
    reversed sense, the same beside a time or a place, lines of lists, names that are words, short sentences.
    """
    return {name: _triples(f"kinds/{name}.tsv") for name in KINDS}


def stops() -> list[tuple[str, str, str]]:
    """The basic short texts of two words and more that end without a mark, with a full stop in all three languages."""
    bare = [row for row in _triples("kinds/basics.tsv") if " " in row[0] and all(text[-1].isalpha() for text in row)]
    return [(f"{english}.", f"{german}.", f"{french}.") for english, german, french in bare]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints how many sentences were written where."""
    parser = CommandLine(
        prog="python -m lab.translator.phrasebook",
        description="Write sentences in English, German and French for training: phrasebook.tsv.gz, hours.tsv.gz, "
        "written.tsv.gz, rarer.tsv.gz, stops.tsv.gz and those of kinds.",
    )
    parser.add_argument("--count", type=integer(1), default=12000, help="most sentences made out of gaps and words")
    parser.add_argument("--seed", type=a_seed, default=0, help="another seed, other words in the gaps")
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder to write into")
    parser.add_argument("--model", help="also what this shipped model, or folder of one, gets wrong")
    options = parser.parse_args(argv)
    translator = Translator.from_pretrained(options.model) if options.model else None
    options.out.mkdir(parents=True, exist_ok=True)
    lines = sentences(options.count, options.seed)
    hours = [row for row in lines if names_a_time(row[0])]  # by themselves, so that a mixture can have more of them
    others = [row for row in lines if not names_a_time(row[0])]
    tables = {
        "phrasebook": others,
        "hours": hours,
        "written": handwriting(),
        "rarer": rarer(),
        **kinds(),
        "stops": stops(),
    }
    for name, rows in tables.items():
        write_table(options.out / f"{name}.tsv.gz", LANGUAGES, rows)
        print(f"{len(rows)} sentences in {options.out / name}.tsv.gz")
    for name, (columns, pairs) in hard_tables(translator, tables).items() if translator else ():
        write_table(options.out / f"{name}.tsv.gz", columns, pairs)
        print(f"{len(pairs)} pairs in {options.out / name}.tsv.gz")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
