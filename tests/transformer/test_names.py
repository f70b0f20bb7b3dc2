"""Names that are words: found by what stands around them, and words left to the model."""

import pytest

from transformer.text.names import name_spans


def names(text, language):
    return sorted({text[begin:end] for begin, end in name_spans(text, language)})


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "Hope moved to Sandwich last year.", ["Hope", "Sandwich"]),
        ("en", "Did you see Rose in Bath?", ["Bath", "Rose"]),
        ("en", "Chase and Mr Butcher sat down.", ["Butcher", "Chase"]),
        ("en", "Joy and Peter are late.", ["Joy"]),
        ("en", "Ruby's car broke down near Reading.", ["Reading", "Ruby"]),
        ("en", "We met April in Bath.", ["April", "Bath"]),
        ("en", "Will Carpenter wrote to Dr. Small.", ["Small", "Will Carpenter"]),
        ("en", "The bank is in Rose Street.", ["Rose Street"]),
        ("de", "Frau Vogel zog nach Essen.", ["Essen", "Vogel"]),
        ("de", "Ernst und Klara gingen schwimmen.", ["Ernst"]),
        ("de", "Wir besuchen Herrn Koch in der Lindenstraße 4.", ["Koch", "Lindenstraße"]),
        ("fr", "Aurore habite à Angers.", ["Angers", "Aurore"]),
        ("fr", "Pierre et Blanche connaissent M. Berger.", ["Berger", "Blanche", "Pierre"]),
        ("fr", "Elle habite rue des Fleurs.", ["rue des Fleurs"]),
    ],
)
def test_names_are_found(language, text, found):
    assert names(text, language) == found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Hope is a good thing."),
        ("en", "Will you come in May or in June?"),
        ("en", "Mark the page, please."),
        ("en", "Reading in the bath is nice."),
        ("en", "Since last April the summer has been hot."),
        ("en", "I agree with Mr President."),
        ("en", "THE FAITH AND HOPE OF READING"),
        ("de", "Das Essen in der Halle riecht nach Essen."),
        ("de", "Ernst ist keine gute Antwort."),
        ("de", "Die Frau des Bäckers wohnt in den Bergen."),
        ("de", "Die Hauptstraße ist gesperrt."),
        ("fr", "Reine absolue de la fête, elle dansait."),
        ("fr", "La claire fontaine et les tours de la ville."),
        ("fr", "Oui, monsieur le maire habite la rue voisine."),
    ],
)
def test_words_are_left_to_the_model(language, text):
    assert names(text, language) == []


def test_other_languages_have_no_list():
    assert names("Hope vive en Reading.", "es") == []
