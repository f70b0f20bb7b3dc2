"""A text in sentences, and what stands around them: nothing is lost, and only sentences are translated."""

import pytest

from transformer.text.layout import Segment, has_numbers, segment_lines, segments, unwrap, with_entities


def texts(line, number_choices=False):
    return [one.text for one in segments(line, number_choices)]


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("How are you? I am fine.", ["How are you?", "I am fine."]),
        ("- milk and bread", ["milk and bread"]),
        ("• Monday: closed", ["Monday:", "closed"]),
        ("Étape 2 : ouvrez la boîte.", ["Étape 2 :", "ouvrez la boîte."]),
        ("Opening hours: daily. Closed: no.", ["Opening hours:", "daily.", "Closed: no."]),
        ("A: Good morning.", ["A: Good morning."]),  # no word
        ("This is what he said to her: go home.", ["This is what he said to her: go home."]),
        ("at 7:15 or https://a.org", ["at 7:15 or https://a.org"]),
        ("Room 12 / Room 14", ["Room 12", "Room 14"]),
        ("apples and / or pears", ["apples and / or pears"]),
        ("Don't worry 😉 everything is fine.", ["Don't worry", "everything is fine."]),
        ("[x] call Anna", ["call Anna"]),
        ("--- Break ---", ["Break"]),
        ("a) red", ["red"]),
        ("| Name | Age | 12 |", ["Name", "Age"]),
        ("Coffee .... 4", ["Coffee"]),
        ("<p>Dear guests,<br>welcome.</p>", ["Dear guests,", "welcome."]),
        ("<b>Important:</b> Close it.", ["Important:", "Close it."]),
        ("<b>Stop!</b> The <i>red</i> light.", ["Stop!", "The <i>red</i> light."]),
        ("Have a nice day! 😊 See you.", ["Have a nice day!", "See you."]),
        ("The pizza 🍕 was good 👍🏽", ["The pizza 🍕 was good"]),
        ("👨‍👩‍👧 family", ["family"]),
        ("Use `a | b` here", ["Use `a | b` here"]),
        ("5 < 7 and b > c", ["5 < 7 and b > c"]),
        ("-5 degrees", ["-5 degrees"]),
    ],
)
def test_sentences_without_what_stands_around_them(line, sentences):
    assert texts(line) == sentences
    assert "".join(one.around(one.text) for one in segments(line)) == line  # nothing is lost


def test_a_line_without_letters_stays_whole():
    for line in ("|---|---|", "=====", "<br>", "😊", "12 | 15"):
        assert segments(line) == [Segment(line)]
    assert segments("") == []


def test_a_number_counts_a_line_only_among_others():
    assert has_numbers(["1. Open it.", "2. Read it."])
    assert not has_numbers(["12. Mai 1999", "Der Tag."])
    assert texts("1. Open it.", number_choices=True) == ["Open it."]
    assert texts("12. Mai 1999") == ["12. Mai 1999"]


def test_entities_are_read_and_written_again():
    (one,) = segments("Caf&eacute; &amp; Bar &lt; 3")
    assert one.text == "Café & Bar &lt; 3"
    assert one.around("Bar & Café &lt; 3") == "Bar &amp; Café &lt; 3"
    assert with_entities('<a href="x">"y"</a>', {'"': "&quot;"}) == '<a href="x">&quot;y&quot;</a>'


@pytest.mark.parametrize(
    ("text", "capital_nouns", "lines"),
    [
        ("The old bridge across the river was built\nby workers.", False, 1),
        ("Die Polizei sucht einen Mann, der in der\nNähe der Bank gesehen wurde.", True, 1),
        ("The police are looking for a man near the\nBank of England.", False, 1),
        ("milk\nbread\neggs", False, 3),
        ("The old bridge across the river was built.\nby workers.", False, 2),
        ("A Long Heading of a Chapter About Old Bridges\nThe river is wide.", False, 2),
        ("The old bridge across the river was built\n- by workers", False, 2),
        ("The old bridge across the river was built\n\nby workers.", False, 3),
        ("Dear Anna,\nthank you for the letter.", False, 2),
    ],
)
def test_lines_that_go_on_are_joined(text, capital_nouns, lines):
    found = unwrap(text.split("\n"), capital_nouns)
    assert len(found) == lines
    assert " ".join(found).split() == text.split()


def test_a_word_that_a_line_break_parted_is_whole_again():
    assert unwrap(["He has promised to give us more infor-", "mation soon."], False) == [
        "He has promised to give us more information soon."
    ]


def test_clauses_keep_what_stands_around_their_sentence():
    ((first, second),) = segment_lines(["- one; two <br>"], lambda sentence: ["one;", "two"])
    assert (first.before, first.after, second.before, second.after) == ("- ", "", " ", " <br>")
    assert first.whole == second.whole == "one; two"
