"""The page's words in other languages: one table each, with the same keys, parts and tags."""

import json
import re

import pytest

from ui import first, theme
from ui.train.networks import NETWORKS

FOLDER = theme.STATIC / "words"
LANGUAGES = [name for name in first.LANGUAGES if name != "en"]
TABLES = {name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in LANGUAGES}
TAG = re.compile(r"</?[a-z]+>")
PART = re.compile(r"\{!?\}")
LARGE = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
THOUSANDS = {"de": "\u202f", "fr": "\u202f", "ko": ","}  # between them, as in ui/static/language.js


def parts(key, words):
    """The numbers of the parts that a translation names, and those that its key has."""
    named = re.findall(r"\{(\d*)\}", words)
    if not any(named):
        named = [str(place + 1) for place, _ in enumerate(named)]
    return sorted(map(str, named)), [str(place + 1) for place, _ in enumerate(PART.findall(key))]


def test_every_language_of_the_masthead_has_a_table_and_no_other_has():
    assert sorted(file.stem for file in FOLDER.iterdir()) == sorted(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_are_written_in_one_way(language):
    table = TABLES[language]
    text = json.dumps(dict(sorted(table.items())), ensure_ascii=False, indent=1) + "\n"
    assert (FOLDER / f"{language}.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_parts_and_tags(language):
    for key, words in TABLES[language].items():
        assert words.strip() == words and words and key.strip() == key, key
        named, there = parts(key, words)
        assert set(named) == set(there), key
        assert sorted(TAG.findall(words)) == sorted(TAG.findall(key)), key


def test_a_translation_that_loses_a_part_or_a_tag_is_noticed():
    assert parts("{} of {}", "{2} / {1}") == (["1", "2"], ["1", "2"])
    assert parts("{} of {!}", "{1}")[0] != parts("{} of {!}", "{1}")[1]
    assert TAG.findall("a <b>c</b>") == ["<b>", "</b>"]


def test_tables_have_the_same_keys():
    keys = [set(table) for table in TABLES.values()]
    assert all(one == keys[0] for one in keys)


@pytest.mark.parametrize("language", LANGUAGES)
def test_large_numbers_are_written_as_the_language_does(language):
    seen = 0
    for key, words in TABLES[language].items():
        for number in LARGE.findall(key):
            assert number.replace(",", THOUSANDS[language]) in words, key
            seen += 1
    assert seen


def test_what_a_run_tells_has_words():
    columns, _, states, phases, figures = theme.data("train/runs.json").values()
    units = {network.counts for network in NETWORKS.values()}
    told = [
        *units,
        *columns.values(),
        *(f"{{}} {state}" for state in states.values()),
        *phases.values(),
        *figures.values(),
    ]
    # Names without two letters in a row are signs, and stay.
    missing = [one for one in told if re.search("[^\\W\\d_]{2}", one) and one not in TABLES["de"]]
    assert missing == []
    assert not [one for one in figures.values() if ", " in one]  # they stand in lists
