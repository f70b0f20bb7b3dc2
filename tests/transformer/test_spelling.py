"""Umlauts, ß and accents that were not typed come back, and what is meant as it stands stays."""

import pytest

from lab.translator.spelling import count_lines
from transformer.text.spelling import german_spellings, mend, misspellings, respell, without_accents


@pytest.mark.parametrize(
    ("language", "typed", "spelt"),
    [
        ("de", "Ich heisse Anna.", "Ich heiße Anna."),
        ("de", "Die Tuer ist gross.", "Die Tür ist groß."),
        ("de", "Die Hauptstrasse ist gesperrt.", "Die Hauptstraße ist gesperrt."),  # the end of a compound
        ("de", "HEISSER KAFFEE", "HEISSER KAFFEE"),
        ("fr", "Ma mere est tres fatiguee.", "Ma mère est très fatiguée."),
        ("fr", "Il a achete une voiture.", "Il a acheté une voiture."),
        ("fr", "Mon frere habite a Geneve.", "Mon frère habite à Genève."),
        ("fr", "Ou est la bibliotheque ?", "Où est la bibliothèque ?"),
        ("fr", "Le cafe est ferme.", "Le café est fermé."),
        ("fr", "Une tasse de the, ma mere a prefere le cafe.", "Une tasse de thé, ma mère a préféré le café."),
        ("en", "Wich of my freinds comes on wensday?", "Which of my friends comes on Wednesday?"),
        ("en", "THE RESTAURENT IS CLOSED UNTILL MONDAY.", "THE RESTAURANT IS CLOSED UNTIL MONDAY."),
        ("en", "I dont know wheres the door, and Im late.", "I don't know where's the door, and I'm late."),
    ],
)
def test_what_was_left_out_comes_back(language, typed, spelt):
    assert respell(typed, language) == spelt


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("de", "Die neuen Steuern dauern, dass es in Massen aktuell ist, im Wasser der Klasse."),
        ("de", "Die Busse fahren im Schoss der Masse."),  # words of their own
        ("de", "Goethe aß süße Äpfel, und Mueller muesste."),  # whoever types umlauts means what lacks them
        ("fr", "Il ferme la porte et marche a la gare."),  # nothing shows that accents were left out
        ("fr", "Le cafe où il a mange est fermé."),
        ("en", "The cafe is naive, its dents were cants, an ants' wont; whereas we were there."),
    ],
)
def test_what_is_meant_stays(language, sentence):
    assert respell(sentence, language) == sentence


def test_no_misspelling_is_a_word_that_is_meant():
    """Each leads in one step to words that no line of the list calls misspelt."""
    listed_words = misspellings()
    assert len(listed_words) > 250
    for typed, meant in listed_words.items():
        assert typed.isalpha() and typed.islower() and typed != meant
        assert not listed_words.keys() & set(meant.lower().split()), typed


def test_nouns_get_their_capital_where_the_writer_has_none():
    assert respell("welche groessen", "de") == "welche größen"
    assert respell("welche groessen", "de", capitals=False) == "welche Größen"


def test_ways_to_type_a_word():
    assert german_spellings("Grüße") == {"Grueße", "Grüsse", "Gruesse"}
    assert german_spellings("Haus") == set()
    assert without_accents("sœur préférée") == "soeur preferee"


def test_a_list_marks_words_that_are_others_without_their_accents():
    counts = [("marché", 9), ("marche", 5), ("été", 7), ("thé", 2), ("la", 90), ("là", 1), ("près", 99), ("prés", 1)]
    lines = count_lines(counts, lambda word: {without_accents(word)}, {"the"})
    assert lines == ["près", "~marché", "été", "?thé"]  # "prés" is too rare beside "près", "là" beside "la"


def test_slips_that_are_sure_are_mended():
    """Of a word in several pieces, where exchanging or doubling letters gives one that the vocabulary has."""
    whole = {"friend", "always", "tomorrow", "form", "from", "received"}

    def mended(text):
        return mend(text, lambda word: 1 if word in whole else 3, whole.__contains__)

    assert mended("my freind allways recieved it tomorow.") == "my friend always received it tomorrow."
    assert mended("a form from Freind, a quasar and a fiend") == "a form from Freind, a quasar and a fiend"
    assert mend("my freind", lambda word: 2, whole.__contains__) == "my freind"  # rare, but a word
