"""The checklist's rules tell right from wrong, and its tables are whole."""

import re
from collections import Counter

import pytest

from transformer.checklist import (
    FILE,
    HALVES,
    Answer,
    Item,
    holds,
    load_summary,
    read_items,
    summary,
    table,
    weak_kinds,
    write,
)
from transformer.translator import Translator

PAIRS = ("en-de", "de-en", "en-fr", "fr-en")


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("weiß nicht / keine ahnung & wo", "Ich weiß nicht, wo er ist.", "Ich weiß, wo er nicht ist."),
        ("rauch* & !erlaubt", "Rauchen verboten.", "Rauchen erlaubt."),
        ("neun", "Es ist neun.", "Es ist neunzehn."),  # whole words
        ("*n't agree", "I don't agree.", "I agree."),
        ("n'est pas", "Ce n’est pas vrai.", "Ce est vrai."),  # the apostrophe's kind does not matter
        ("19 h 15", "à 19\u202fh\u202f15", "à 7 h 15"),
        ("= rot / rote", "Rote.", "rot und grün"),
        ("= water", "the water", "waters"),
        ("zwei liter & !\n", "Zwei Liter.", "Zwei Liter\nWasser"),
        (">here</a>", 'click <a href="x">Here</a>', 'click <a href="x">here </a>'),
    ],
)
def test_conditions(rule, right, wrong):
    assert holds(rule, "", right)
    assert not holds(rule, "", wrong)


def test_what_is_to_be_kept_stands_as_often_as_in_the_source():
    assert holds("@%s & gelöscht", "%s deleted", "%s gelöscht")
    assert not holds("@%s", "%s deleted", "gelöscht")
    assert not holds("@%s", "%s deleted", "%s %s gelöscht")
    assert not holds("@{Name}", "{Name}", "{name}")  # letter for letter


def test_the_tables_have_forty_texts_a_kind_and_direction_in_two_equal_halves():
    items = read_items()
    counts = Counter((item.kind, item.pair, item.half) for item in items)
    kinds = {item.kind for item in items}
    assert len(kinds) == 14
    assert set(counts) == {(kind, pair, half) for kind in kinds for pair in PAIRS for half in HALVES}
    assert min(counts.values()) >= 20
    assert all(counts[kind, pair, "choosing"] == counts[kind, pair, "card"] for kind in kinds for pair in PAIRS)
    assert not any(n > 1 for n in Counter((item.kind, item.pair, item.source) for item in items).values())


def test_no_text_is_right_untranslated_where_words_are_asked_for():
    for item in read_items():
        if item.kind in ("negation", "questions", "reversed_sense", "wrapped_lines", "clock"):
            assert not holds(item.rule, item.source, item.source), item


def test_a_damaged_row_is_named(tmp_path):
    (tmp_path / "clock.tsv").write_text("pair\thalf\tsource\trule\nen-de\tboth\tNoon\tmittag\n")
    with pytest.raises(ValueError, match="clock.tsv, line 2"):
        read_items(tmp_path)


def test_counts_by_kind_half_and_pair():
    def answer(pair, half, right):
        return Answer(Item("clock", pair, half, "source", "rule"), "output", right)

    rows = summary([answer("en-de", "card", True), answer("en-de", "card", False), answer("de-en", "card", True)])
    assert [(row["pair"], row["right"], row["of"], row["wrong"]) for row in rows] == [
        ("en-de", 1, 2, [["source", "output"]]),
        ("de-en", 1, 1, []),
    ]
    lines = [line.split() for line in table(rows, "card").splitlines()]
    assert lines == [
        ["card", "en-de", "de-en", "all"],
        ["clock", "1/2", "1/1", "2/3", "67%"],
        ["all", "1/2", "1/1", "2/3", "67%"],
    ]


def test_what_is_weak_is_read_from_beside_the_weights(tmp_path):
    def row(kind, half, right):
        return {"kind": kind, "half": half, "pair": "en-de", "right": right, "of": 10, "wrong": [["a", "b"]]}

    assert load_summary(tmp_path) == []
    write([row("clock", "card", 8), row("words", "card", 3), row("html", "card", 9), row("names", "choosing", 0)],
          tmp_path / FILE)  # fmt: skip
    rows = load_summary(tmp_path)
    assert weak_kinds(rows, "en-de") == [("words", 0.3, [["a", "b"]]), ("clock", 0.8, [["a", "b"]])]
    assert weak_kinds(rows, "de-en") == []


@pytest.mark.parametrize("target, no", [("de", r"\b(nicht|kein\w*|uneinig)\b"), ("fr", r"\bpas\b|désaccord")])
def test_a_time_beside_it_turns_no_disagreement_into_agreement(device, target, no):
    everyday = Translator.from_pretrained("everyday", device)
    persons = ("She", "He", "My sister", "The driver")
    times = ("at 7:15 pm", "at 9:30 am", "at 6 pm", "in the evening", "yesterday")
    whom = ("the doctor", "the teacher", "her boss", "the judge")
    texts = [f"{a} disagreed with {b} {c}." for a in persons for b in whom for c in times]
    answers = everyday.translate(texts, "en", target)
    assert not [answer.text for answer in answers if not re.search(no, answer.text)]
