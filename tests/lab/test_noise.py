"""Noise as visitors make it, on the source of a training pair."""

import random
import re

import pytest

from lab.translator.noise import (
    KINDS,
    as_heading,
    confusion,
    confusions,
    names,
    slips,
    with_names,
    with_noise,
    without_end_mark,
)

PAIR = ("The weather in Berlin is nice today.", "Das Wetter in Berlin ist heute schön.")


def test_every_kind_comes_and_only_the_end_mark_touches_the_translation():
    found = {with_noise(*PAIR, random.Random(seed)) for seed in range(300)}
    sources = {source for source, _ in found}
    assert PAIR[0].upper() not in sources  # `casing` writes those small
    assert {PAIR[0].lower(), PAIR[0][:-1], "The Weather In Berlin Is Nice Today."} <= sources
    assert {target for _, target in found} == {PAIR[1], PAIR[1][:-1]}
    assert all((target == PAIR[1][:-1]) == (source == PAIR[0][:-1]) for source, target in found)
    assert abs(sum(KINDS.values()) - 1) < 1e-9
    assert "The weather in Berlin is nice today.".replace("weather", "wether") in sources
    slipped = [s for s in sources if s.lower() != PAIR[0].lower() and s != PAIR[0][:-1]]
    assert len(slipped) > 10 and all(s[0] == "T" and abs(len(s) - len(PAIR[0])) <= 3 for s in slipped)


def test_the_same_generator_makes_the_same_noise():
    assert with_noise(*PAIR, random.Random(5)) == with_noise(*PAIR, random.Random(5))
    assert slips("abcdefgh", random.Random(1)) != "abcdefgh"
    assert slips("I", random.Random(1)) == "I" and slips("12 345", random.Random(1)) == "12 345"


def test_what_has_to_stay_stays():
    assert without_end_mark("Really?!", "Wirklich?") == ("Really", "Wirklich")
    assert without_end_mark("No end", "Kein Ende.") == ("No end", "Kein Ende.")
    assert without_end_mark("...", "...") == ("...", "...")
    for seed in range(40):  # the pieces of transformer.verbatim have to be found on both sides
        assert with_noise("Call <x1>.", "Ruf <x1> an.", random.Random(seed)) == ("Call <x1>.", "Ruf <x1> an.")


def test_accents_go_from_the_source_alone():
    found = {with_noise("Wo ist Müllers Café?", "Où est le café Müller ?", random.Random(seed)) for seed in range(200)}
    assert ("Wo ist Mullers Cafe?", "Où est le café Müller ?") in found
    assert {target for _, target in found} == {"Où est le café Müller ?", "Où est le café Müller"}


def test_one_word_is_confusions_and_its_mark_stays():
    found = {confusion("Can you hear me, or is it too quiet there?", random.Random(seed)) for seed in range(60)}
    assert found == {
        "Can you here me, or is it too quiet there?",
        "Can you hear me, or is it to quiet there?",
        "Can you hear me, or is it too quiet their?",
    }
    assert confusion("Der Hund bellt.", random.Random(0)) == "Der Hund bellt."
    assert all(word != wrong for word, wrong in confusions().items())


@pytest.mark.parametrize("seed", range(30))
def test_names_take_the_place_of_tom_and_mary_on_both_sides(seed):
    women, men = names()
    source, target = with_names(
        "Tom says that Mary's car is red.", "Tom sagt, dass Marias Auto rot ist.", random.Random(seed)
    )
    assert source.split()[0] == target.split()[0] in men and "Mary" in source  # "Marias" is no bare name
    source, target = with_names("I think that Mary is ill.", "Je crois que Marie est malade.", random.Random(seed))
    name = source.split()[3]
    assert name in women and target == f"Je crois que {name} est malade." and name[0] not in "AEIOUYHÉ"
    assert with_names("Anna is ill.", "Anna ist krank.", random.Random(seed)) == ("Anna is ill.", "Anna ist krank.")


def test_a_word_may_stand_as_a_heading():
    found = {as_heading("ingredients", "Zutaten", random.Random(seed)) for seed in range(200)}
    assert ("Ingredients", "Zutaten") in found and len(found) > 20
    for source, target in found:
        number = source.removesuffix("Ingredients")
        assert target == number + "Zutaten" and re.fullmatch(r"(\d+(\.\d)? )?", number)


@pytest.mark.parametrize("pair", [("Come here.", "Komm her."), ("<x1> left", "<x1> übrig"), ("a b c d", "e f")])
def test_what_is_no_heading_stays(pair):
    assert all(as_heading(*pair, random.Random(seed)) == pair for seed in range(20))
