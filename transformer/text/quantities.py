"""Numbers, money, times and dates as another language writes them: 1,200 and 1.200, $5 and 5 $, 7:15 pm and 19:15 Uhr.

They pass through a model as pieces that it copies (`verbatim`); here it is decided what such a piece says in the
translation. What a text leaves open stays as it is, such as 10/3/2024 in English.
"""

import re
from collections.abc import Callable
from functools import cache, partial

from training.files import read_table

NO_BREAK = "\u00a0"  # between a number and what belongs to it
Span = tuple[int, int]
Reading = Callable[[re.Match, str], "str | None"]  # what a match says in a target language; None: leave it to the model

# Of each language: what stands between thousands in a text, the same as it is written, and the decimal sign.
_THOUSANDS = {"en": ",", "de": "[. ]", "fr": "[ .]"}
_BETWEEN = {"en": ",", "de": ".", "fr": NO_BREAK}
_DECIMAL = {"en": ".", "de": ",", "fr": ","}
_CURRENCY = "[$€£¥]"
_SCALE = r"(?! ?(?:[mb]illion|trillion|thousand|bn|Milli|Mio|Mrd|mill))"  # "$5 million" is left to the model
_HOUR, _MINUTE, _MERIDIEM = r"(?:2[0-4]|1\d|0?\d)", r"[0-5]\d", r"[ap]\.?m\b(?:\.(?=[,;)]| (?-i:[a-zß-ÿ(])))?"
_LISTS = read_table(__file__)
_MONTHS, _DAYPARTS, _WEEKDAYS, _UNITS = (_LISTS[key] for key in ("months", "parts of the day", "weekdays", "units"))
_NUMBERS = range(61, 100)  # where French counts on from sixty and eighty
_IS_TIME = re.compile(r" Uhr$|\u00a0h\b|\d [ap]m$|o'clock$|^\d+:\d\d$")
_ROMAN = {10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}


# What a source may say behind a time, so that a model sees that it is one, and what it may make of that.
_CLUE = {"en": " o'clock", "de": " Uhr", "fr": " heures"}
AFTER_CLUE = r"(?:[ \u00a0](?:o'clock|Uhr|heures?|hours?|h|[ap]m|[ap]\.m\.)(?!\w))?"


def clue(words: str, source: str) -> str:
    """What stands behind a stand-in that says `words`, where a model should know that it is a time of the clock."""
    return _CLUE[source] if _IS_TIME.search(words) else ""


def readings(text: str, source: str, target: str) -> dict[Span, str]:
    """What the numbers, sums, times and dates of a normalised text say in the target language, by (start, end).

    Only those that are written otherwise there: {(9, 16): "19:15 Uhr"} for "It is at 7:15 pm" from English to German.
    """
    spans: dict[Span, str] = {}
    for pattern, reading in _patterns(source) if target in _THOUSANDS else ():
        for match in pattern.finditer(text):
            words = reading(match, target)
            overlaps = any(match.start() < end and begin < match.end() for begin, end in spans)
            if words is not None and words != match.group() and not overlaps:
                spans[match.span()] = words
    return spans


@cache
def _patterns(source: str) -> tuple[tuple[re.Pattern[str], Reading], ...]:
    """What to look for in a language, the surest first, with how it is read."""
    if source not in _THOUSANDS:
        return ()
    number = rf"(?:\d{{1,3}}(?:{_THOUSANDS[source]}\d{{3}})+(?!\d)|\d+)(?:{re.escape(_DECIMAL[source])}\d+)?"
    amount = rf"(?<![\w.,:/-])(?P<number>{number})"
    money = (
        rf"(?:(?P<sign>{_CURRENCY}) ?(?P<sum>{number})(?![\w%]|[.,]\d)|{amount} ?(?P<after>{_CURRENCY})(?!\w)){_SCALE}"
    )
    words = "|".join(sorted(map(re.escape, _number_words(source)), key=len, reverse=True))

    def amounts(match: re.Match, target: str) -> str:
        return amount_in(match["number"], source, target)

    def shares(match: re.Match, target: str) -> str:
        return amount_in(match["number"], source, target) + ("%" if target == "en" else NO_BREAK + "%")

    def sums(match: re.Match, target: str) -> str:
        amount, sign = amount_in(match["sum"] or match["number"], source, target), match["sign"] or match["after"]
        return sign + amount if target == "en" else amount + NO_BREAK + sign

    def numerals(match: re.Match, target: str) -> str:
        word = spell(_number_words(source)[match.group().lower()], target)
        return word.capitalize() if match.group()[0].isupper() else word

    return (
        *_TIMES[source],
        *_weekdays(source),
        (re.compile(money, re.IGNORECASE), sums),
        (re.compile(rf"{amount} ?%(?!\w)"), shares),
        (re.compile(rf"(?<![Vv]ersion ){amount}(?![\w%]|[.,:/-]\d)"), amounts),
        (re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE), numerals),
    )


def _weekdays(source: str) -> tuple[tuple[re.Pattern[str], Reading], ...]:
    """Short names of weekdays, where a colon, a line or another one shows that they are: Mon-Fri, Sat:."""
    names = "|".join(sorted(_WEEKDAYS[source], key=len, reverse=True))

    def weekdays(match: re.Match, target: str) -> str:
        number = next(i for i, name in enumerate(_WEEKDAYS[source]) if name.lower() == match["day"].lower())
        word = _WEEKDAYS[target][number]
        large = match["day"][0].isupper() and (target != "fr" or match.start() == 0)
        return word.capitalize() if large else word.lower()

    line = r"(?: ?[-–/+&] ?)"
    hours = r"\.?,? \d{1,2}(?:[:.]\d\d)? ?(?:[-–]|[ap]m|Uhr|h\b)"
    behind = rf"{line}(?:{names})\b|\.? ?:(?=$| ?(?:\d|closed|geschlossen|fermé))|{hours}"
    after = "|".join(f"(?<={name}{sign})" for name in _WEEKDAYS[source] for sign in ("-", "–", " - ", " – ", "/"))
    return (
        (re.compile(rf"(?<![\w-])(?P<day>{names})(?={behind})", re.IGNORECASE), weekdays),
        (re.compile(rf"(?:{after})(?P<day>{names})\b", re.IGNORECASE), weekdays),
    )


def amount_in(number: str, source: str, target: str) -> str:
    """A number with the signs of another language: amount_in("1,200.5", "en", "de") is "1.200,5"."""
    whole, _, rest = number.partition(_DECIMAL[source])
    groups = re.split(_THOUSANDS[source], whole)
    return _BETWEEN[target].join(groups) + (_DECIMAL[target] + rest if rest else "")


def spell(number: int, language: str) -> str:
    """A number from 20 to 99 in words."""
    tens, unit = divmod(number, 10)
    if language == "fr":
        base = 60 if number < 80 else 80
        unit, word = number - base, "soixante" if base == 60 else "quatre-vingt"
        if base == 80 and not unit:
            return "quatre-vingts"
        link = " et " if base == 60 and unit in (1, 11) else "-"
        return word + (link + _UNITS["fr"][unit] if unit else "")
    ten = _LISTS["tens"][language][tens - 2]  # from twenty on
    if not unit:
        return ten
    one = _UNITS[language][unit]
    return f"{one}und{ten}" if language == "de" else f"{ten}-{one}"


@cache
def _number_words(language: str) -> dict[str, int]:
    """The words of `_SPELT`, with other ways to write them and the Swiss and Belgian ones."""
    words = {spell(number, language): number for number in _NUMBERS if number % 10 or language == "fr"}
    words |= {word.replace("-", " "): number for word, number in words.items()}
    if language == "fr":
        words |= {word.replace(" et ", "-et-"): number for word, number in words.items()}
        for ten, word in ((70, "septante"), (90, "nonante")):
            words |= {f"{word}-{_UNITS['fr'][unit]}": ten + unit for unit in range(2, 10)}
            words |= {word: ten, f"{word} et un": ten + 1}
    return words


def time_in(hour: int, minute: str | None, target: str, sure: bool = True) -> str:
    """A time of the clock from 0:00 to 24:00; sure: whether an hour up to 12 is known to be before noon or after it."""
    if target == "de":
        return f"{hour}:{minute} Uhr" if minute else f"{hour} Uhr"
    if target == "fr":
        return f"{hour}{NO_BREAK}h{NO_BREAK}{minute}" if minute else f"{hour}{NO_BREAK}h"
    if not sure and 1 <= hour <= 12:
        return f"{hour}:{minute}" if minute else f"{hour} o'clock"
    half = "pm" if 12 <= hour < 24 else "am"
    return f"{(hour - 1) % 12 + 1}{':' + minute if minute else ''} {half}"


def _hour_of_24(hour: str, part: str) -> int:
    """The hour of a time with am or pm."""
    return int(hour) % 12 + (12 if part.lower().startswith("p") else 0)


def _english_time(match: re.Match, target: str) -> str:
    return time_in(_hour_of_24(match["hour"], match["part"]), match["minute"], target)


def _english_first_time(match: re.Match, target: str) -> str:
    """The first of two times, of which the second says am or pm: "from 11 to 2 pm"."""
    first, second = _hour_of_24(match["hour"], match["part"]), _hour_of_24(match["later"], match["part"])
    time = time_in(first if first <= second else (first + 12) % 24, match["minute"], target)
    return time.removesuffix(" Uhr")


def _german_time(match: re.Match, target: str) -> str | None:
    part = _DAYPARTS.get(match["part"] or "")
    hour = int(match["hour"])
    return time_in(
        _hour_of_24(match["hour"], part) if part and hour <= 12 else hour, match["minute"], target, bool(part)
    )


def _clock_time(match: re.Match, target: str, sure: bool = True) -> str:
    """A time whose hour is that of the 24-hour clock; sure: as in `time_in`."""
    return time_in(int(match["hour"]), match["minute"], target, sure)


_french_time = partial(_clock_time, sure=False)


def _later_time(match: re.Match, target: str) -> str | None:
    """A time of the 24-hour clock where only hours after 12 are sure to be one; of two times, the later one."""
    later = match.groupdict().get("later") or 0
    return _clock_time(match, target) if max(int(match["hour"]), int(later)) > 12 else None


def _date(match: re.Match, target: str) -> str | None:
    return f"{int(match['day'])} {_MONTHS[int(match['month']) - 1]} {match['year']}" if target == "en" else None


def _day(match: re.Match, target: str) -> str | None:
    """The day before an English month."""
    day = int(match["day"])
    return f"{day}." if target == "de" else "1er" if target == "fr" and day == 1 else f"{day}"


def _hour_of_a_daypart(match: re.Match, target: str) -> str:
    """An English hour whose part of the day is named: at 10 tomorrow morning."""
    return time_in(_hour_of_24(match["hour"], "am" if match["part"] == "morning" else "pm"), None, target)


def _decade(match: re.Match, target: str) -> str | None:
    """The 1980s, with its article; in German the word before it asks for a case."""
    year, lead = match["year"], match.string[: match.start()].lower().split()[-1:]
    if target == "de":
        case = {"in": "den", "since": "den", "from": "den", "of": "der", "during": "der"}.get("".join(lead), "die")
        return f"{case} {year}er-Jahre{'n' if case == 'den' else ''}"
    return f"les années {year}" if target == "fr" else f"the {year}s"


def _century(match: re.Match, target: str) -> str | None:
    """An English century, whose number French writes in Roman figures."""
    if target != "fr":
        return None
    rest, roman = int(match["number"]), ""
    for value, sign in _ROMAN.items():
        roman, rest = roman + sign * (rest // value), rest % value
    return f"{roman}{'er' if roman == 'I' else 'e'} siècle"


def _french_century(match: re.Match, target: str) -> str | None:
    """A century with its number in Roman figures."""
    values = [{"X": 10, "V": 5, "I": 1}[sign] for sign in match["number"].upper()]
    number = sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0]))
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number not in (11, 12, 13) else 0, "th")
    return f"{number}{ending} century" if target == "en" else None


def _compile(*pairs: tuple[str, Reading]) -> tuple[tuple[re.Pattern[str], Reading], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), reading) for pattern, reading in pairs)


_SHORT_HOUR = r"(?P<hour>1[0-2]|0?\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<year>[12]\d{3})"
_TIMES = {
    "en": _compile(
        (rf"\b{_SHORT_HOUR}(?:[:.](?P<minute>{_MINUTE}))? ?(?P<part>{_MERIDIEM})", _english_time),
        (
            rf"\b{_SHORT_HOUR}(?:[:.](?P<minute>{_MINUTE}))?"
            rf"(?= ?(?:-|–|to|and|until) ?(?P<later>1[0-2]|0?\d)(?:[:.]{_MINUTE})? ?(?P<part>{_MERIDIEM}))",
            _english_first_time,
        ),
        (rf"(?:(?<=\bat )|(?<=\bby ))(?P<hour>{_HOUR}):(?P<minute>{_MINUTE})\b(?![:.]\d)", _clock_time),
        (
            r"(?<=\bat )(?P<hour>1[0-2]|[1-9])(?= (?:(?:tomorrow|this|on \w+day|every|yesterday|in the) )?"
            r"(?P<part>morning|afternoon|evening|tonight)\b)",
            _hour_of_a_daypart,
        ),
        (rf"(?<![\w.,:/-])(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?= (?-i:{'|'.join(_MONTHS)})\b)", _day),
        (r"\bthe (?P<year>(?:1[5-9]|20)[1-9]0)s\b", _decade),
        (r"\b(?P<number>1\d?|2[01]?|[3-9])(?:st|nd|rd|th) century\b", _century),
    ),
    "de": _compile(
        (
            rf"\b(?P<hour>{_HOUR})(?:[:.](?P<minute>{_MINUTE}))? Uhr\b(?: (?P<part>{'|'.join(_DAYPARTS)})\b)?",
            _german_time,
        ),
        (
            rf"\b(?P<hour>{_HOUR})(?:[:.](?P<minute>{_MINUTE}))?"
            rf"(?= ?(?:bis|und|-|–) ?(?P<later>{_HOUR})(?:[:.]{_MINUTE})? Uhr\b)",
            _later_time,
        ),
        (rf"\b{_DAY[0]}\.{_DAY[1]}\.{_DAY[2]}\b", _date),
        (r"\b(?:die|den|der) (?P<year>(?:1[5-9]|20)[1-9]0)er[- ]Jahren?\b", _decade),
    ),
    "fr": _compile(
        (rf"\b(?P<hour>{_HOUR}) ?(?:h|heures) ?(?P<minute>{_MINUTE})\b", _french_time),
        (rf"\b(?P<hour>{_HOUR}) ?h\b(?P<minute>)(?= ?[-–] ?(?P<later>{_HOUR}) ?h)", _later_time),
        (
            rf"(?:(?<=\bà )|(?<=\best )|(?<=[-–] )|(?<=[-–]))"
            rf"(?P<hour>{_HOUR}) ?(?:h|heures)\b(?P<minute>)(?! et\b| de\b)",
            _later_time,
        ),
        (rf"(?<=\bde )(?P<hour>{_HOUR}) ?h\b(?P<minute>)(?= à {_HOUR} ?h)", _french_time),
        (rf"\b{_DAY[0]}/{_DAY[1]}/{_DAY[2]}\b", _date),
        (r"\bles années (?P<year>(?:1[5-9]|20)[1-9]0)\b", _decade),
        (r"\b(?P<number>[XVI]+)(?:e|er|ème) siècle\b", _french_century),
    ),
}
