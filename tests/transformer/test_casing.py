import math

import pytest

from transformer import Translator
from transformer.text.casing import usual_case
from transformer.text.sentences import split_sentences


@pytest.fixture(scope="module")
def everyday(device):
    return Translator.from_pretrained("everyday", device)


@pytest.mark.parametrize(
    "language, typed, usual",
    [
        ("en", "how are you?", "How are you?"),
        ("en", "HELLO, HOW ARE YOU?", "Hello, how are you?"),
        ("en", "i think i'm in paris.", "I think I'm in Paris."),
        ("en", "JOHN LIVES IN PARIS.", "John lives in Paris."),
        ("en", "STOP", "Stop"),
        ("en", "HELLO!", "Hello!"),
        ("en", "they like it but she doesn't", "They like it but she doesn't"),
        ("de", "ich habe ein haus in berlin", "Ich habe ein Haus in Berlin"),
        ("de", "DAS IST MEIN HAUS.", "Das ist mein Haus."),
        ("de", "KÖNNEN SIE DAS LESEN?", "Können Sie das lesen?"),
        ("de", "bitte klopfen sie laut", "Bitte klopfen Sie laut"),
        ("de", "ER WEISS, DASS SIE KOMMT.", "Er weiss, dass sie kommt."),
        ("fr", "l'homme est ici.", "L'homme est ici."),
        # addresses and numbers are nobody's to change
        ("en", "WRITE TO INFO@FIRMA.DE BEFORE 12:30", "Write to INFO@FIRMA.DE before 12:30"),
        ("en", "anna@firma.de is my address", "anna@firma.de is my address"),
    ],
)
def test_text_without_capitals_and_text_in_capitals_get_the_usual_ones(everyday, language, typed, usual):
    assert usual_case(typed, language, everyday.piece_count) == usual


@pytest.mark.parametrize(
    "text",
    [
        "How are you?",
        "NASA",
        "red",
        "good morning",
        "iPhone sales rise again",
        "She said OK.",
        "12:30",
        "",
        "🙂 … !",
        "Das ist mein Haus.",
        "ПРИВЕТ МИР",
        "我是学生",
    ],
)
def test_other_text_stays(everyday, text):
    assert usual_case(text, "en", everyday.piece_count) == text


def test_a_vocabulary_without_capitals_never_gets_any():
    def pieces(word: str) -> float:
        return len(word) if word == word.lower() else math.inf

    assert usual_case("two dogs play in paris", "en", pieces) == "two dogs play in paris"
    assert usual_case("TWO DOGS PLAY", "en", pieces) == "two dogs play"


def test_what_is_typed_in_capitals_or_without_is_translated_alike(everyday):
    usual = everyday.translate("How are you? I live in Paris.", "en", "de")
    assert not usual.notes
    for typed in ("how are you? i live in paris.", "HOW ARE YOU? I LIVE IN PARIS."):
        found = everyday.translate(typed, "en", "de")
        assert found.text == usual.text and found.source_text == typed
        assert found.source_tokens == usual.source_tokens
        assert found.notes == ["The model was given the usual capitals: “How are you?” (and 1 more)."]


@pytest.mark.parametrize(
    "language, typed, usual",
    [
        ("en", "Do NOT touch it.", "Do not touch it."),
        ("en", "This is VERY important for ALL of us.", "This is very important for all of us."),
        ("en", "NEVER do this again.", "Never do this again."),
        ("de", "Ich habe es NICHT getan.", "Ich habe es nicht getan."),
        ("de", "ALLE sind hier, das ist SEHR schön.", "Alle sind hier, das ist sehr schön."),
        ("de", "Das müssen SIE wissen.", "Das müssen Sie wissen."),
        ("fr", "Il ne faut JAMAIS faire ça.", "Il ne faut jamais faire ça."),
        ("fr", "C'est TRÈS beau et PAS cher.", "C'est très beau et pas cher."),
    ],
)
def test_words_that_capitals_stress_are_read_small(everyday, language, typed, usual):
    assert everyday.usual(typed, language) == usual


@pytest.mark.parametrize(
    "language, text",
    [
        ("en", "The US and the WHO met in the EU."),
        ("en", "Our IT department has a PC and a TV."),
        ("en", "Enter your PIN and turn the LED on at 7 AM."),
        ("en", "She studies at MIT in LA."),
        ("de", "Die USA und die NATO sagen das der UNO."),
        ("de", "Unsere IT braucht mehr RAM."),
        ("de", "Der ICE fährt mit der CDU und der SPD."),
        ("fr", "L'ONU et l'OTAN parlent du SIDA et de la TVA."),
        ("fr", "Le TGV de la SNCF arrive."),
    ],
)
def test_abbreviations_in_a_sentence_stay(everyday, language, text):
    assert everyday.usual(text, language) == text


def test_a_stressed_word_is_translated(everyday):
    assert "NICHT" not in everyday.translate("Ich habe es NICHT getan.", "de", "en").text
    found = everyday.translate("Do NOT touch it.", "en", "de")
    assert found.text == everyday.translate("Do not touch it.", "en", "de").text
    assert found.source_text == "Do NOT touch it." and found.notes == [
        "The model was given the usual capitals: “Do not touch it.”."
    ]


def test_sentences_without_capitals_are_split_too():
    assert split_sentences("i am here. are you?") == ["i am here.", "are you?"]
    assert split_sentences("ask dr. smith, e.g. today.") == ["ask dr. smith, e.g. today."]
    assert split_sentences("I saw it… and left.") == ["I saw it… and left."]


@pytest.mark.parametrize(
    "typed, usual, word",
    [
        ("Œuf", "œuf", "egg"),
        ("Œuf au plat", "œuf au plat", "egg"),
        ("Les Œuvres de Zola", "Les œuvres de Zola", "works"),
    ],
)
def test_a_capital_that_the_vocabulary_lacks_is_read_small(everyday, typed, usual, word):
    assert everyday.usual(typed, "fr") == usual
    assert word in everyday.translate(typed, "fr", "en").text.lower()
    assert everyday.usual("Ж", "fr") == "Ж"  # where it lacks the small letter, too, nothing changes
