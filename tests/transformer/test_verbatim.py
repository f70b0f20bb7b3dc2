"""Numbers, addresses, names and emoji pass through translation unharmed, and loops are cut."""

import random

import pytest
import torch

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.options import DEFAULTS
from transformer.search import Candidate, SearchResult
from transformer.text.verbatim import (
    common_words,
    find,
    mask,
    misses,
    restore,
    with_blanks,
    with_stand_ins,
    without_loops,
    word_numbers,
)
from transformer.tokenizer import STAND_INS, Tokenizer
from transformer.translator import Translator


def found(text, unknown="", **kinds):
    return [text[a:b] for a, b in find(text, lambda c: c in unknown, **kinds)]


def test_what_is_copied():
    assert found("Write to anna.b@example.com, please.") == ["anna.b@example.com"]
    assert found("See https://example.org/a?b=1. Or www.example.org!") == [
        "https://example.org/a?b=1",
        "www.example.org",
    ]
    assert found("@anna likes #cats and e@mc") == ["@anna", "#cats"]
    assert found("At 10:30 on 2024-05-06 it cost 1,250.50, not 7 or 17.") == ["10:30", "2024-05-06", "1,250.50", "17"]
    assert found("A literal <x1> and </s>.") == ["<x1>", "</s>"]
    assert found("Good 😀😀 day, Łódź-Süd!", "😀Łź") == ["😀😀", "Łódź-Süd"]
    assert found("A family 👩‍👧 smiles", "👩‍👧") == ["👩‍👧"]
    assert found("Nothing to copy here.") == []


def test_numbers_and_names_can_be_left_to_the_model():
    text = "On 2024-05-06 Schwarzenegger wrote 17 lines to a.b@example.com."
    assert found(text, numbers=False) == ["a.b@example.com"]
    assert found(text) == ["2024-05-06", "17", "a.b@example.com"]


def test_stand_ins_take_the_place_of_the_first_finds_and_give_it_back():
    text = "Call 030-1234 or anna@example.com, 😀 please."
    masked = mask(text, find(text, lambda c: c == "😀"), ["<x1>", "<x2>"])
    assert masked.text == "Call <x1> or <x2>, please."
    assert masked.stand_ins == {"<x1>": "030-1234", "<x2>": "anna@example.com"}
    assert [(r.text, r.word, r.tight, r.stop) for r in masked.extracts] == [("😀", 4, False, "")]
    back = restore("Bitte rufen Sie <x1> oder <x2> an.", masked, lambda word: 3)
    assert back == "Bitte rufen Sie 😀 030-1234 oder anna@example.com an."


def test_a_stand_in_that_was_lost_or_doubled_comes_once():
    text = "Call 1234 or 5678."
    masked = mask(text, find(text, lambda c: False), STAND_INS)
    assert masked.text == "Call <x1> or <x2>."
    # <x2> stood behind three words, was followed by a full stop, and was lost
    assert restore("Rufen Sie <x1> oder <x1> an.", masked, lambda word: 5) == "Rufen Sie 1234 oder an 5678."


@pytest.mark.parametrize(
    "text", ["A dog 🐶.", "🐶 A dog.", "🐶", "A 🐶 dog", "17 dogs", "Year:1998!", "(1998)", "a 12 34 56 78 90 b"]
)
def test_masking_and_putting_back_is_the_identity(text):
    for stand_ins in (STAND_INS, STAND_INS[:1], ()):
        masked = mask(text, find(text, lambda c: c == "🐶"), stand_ins)
        # the translation is the source itself: what stood behind w words does so again
        assert restore(masked.text, masked, lambda word: word) == text
        for taken in masked.extracts:
            assert taken.text not in masked.text


def test_what_programs_read_is_copied():
    kept = ["{name}", "%1$s", "${x}", "{{ a.b }}", "`git status`", "/usr/local/bin", "C:\\a\\b.txt", "max_length",
            "print()", "--verbose", "config.json", "my-site.net", "v2.10.3", "192.168.0.1", "A7X-99Q",
            "~/a/b"]  # fmt: skip
    for text in kept:
        assert found(f"See {text}, please.") == [text]
    assert found("100% sure, and/or 5 % discount; e.g. this.That") == ["100"]


def test_tags_go_around_the_words_that_say_the_same():
    text = "The <b>red car</b> is <i>old</i>."
    masked = mask(text, find(text, lambda c: False), STAND_INS)
    assert masked.text == "The red car is old." and not masked.stand_ins
    assert [(r.text, r.around) for r in masked.extracts] == [
        ("<b>", (1, 3)), ("</b>", (1, 3)), ("<i>", (4, 5)), ("</i>", (4, 5)),
    ]  # fmt: skip
    # in the translation words 0 and 1 stand for words 4 and the like
    partners = {(1, 3): (2, 4), (4, 5): (0, 1)}
    back = restore("Alt ist rotes Auto.", masked, lambda word: word, lambda *span: partners[span])
    assert back == "<i>Alt</i> ist <b>rotes Auto</b>."
    assert restore(masked.text, masked, lambda word: word) == text


def test_what_is_put_back_may_say_something_else():
    text = "It costs $1,200 at most."
    masked = mask(text, [(9, 15)], STAND_INS, {(9, 15): "1.200 $"})
    assert restore("Es kostet <x1> höchstens.", masked, lambda word: 0) == "Es kostet 1.200 $ höchstens."


def test_a_model_is_told_that_a_number_is_a_time_of_the_clock():
    text, span = "We meet at 7:15 pm.", (11, 18)
    masked = mask(text, [span], STAND_INS, {span: "19:15 Uhr"}, lambda said: " o'clock")
    assert masked.text == "We meet at <x1> o'clock."
    for made in ("Wir treffen uns um <x1> Uhr.", "Wir treffen uns um <x1>."):
        assert restore(made, masked, lambda word: 0) == "Wir treffen uns um 19:15 Uhr."


def test_training_pairs_with_stand_ins_agree_on_both_sides():
    pair = ("Tom met Mary in Boston in 1998.", "Tom traf Mary 1998 in Boston.")
    assert common_words(*pair) == ["Tom", "Mary", "Boston", "1998"]
    source, target = with_stand_ins(*pair, random.Random(0))
    assert sorted(w.strip(".") for w in source.split() if "<x" in w) == list(STAND_INS)
    for piece in STAND_INS:
        assert source.count(piece) == target.count(piece) == 1
    assert with_stand_ins("Tom and Tom", "Tom und Tom", random.Random(0)) == (
        "Tom and Tom",
        "Tom und Tom",
    )  # which one?
    assert with_stand_ins("I am here.", "I bin da.", random.Random(0)) == ("I am here.", "I bin da.")


def test_loops_are_cut_to_one_round():
    def always(ids):
        return True

    assert without_loops([1, 2, 3, 3, 3, 3, 3, 4], always) == [1, 2, 3, 4]
    assert without_loops([1, 3, 3, 3, 3], always) == [1, 3]  # four rounds are enough, three are not
    assert without_loops([1, 3, 3, 3], always) == [1, 3, 3, 3]
    assert without_loops([1, 2, 1, 2, 1, 2, 1, 2, 5], always) == [1, 2, 5]
    assert without_loops([9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 8], always) == [9, 1, 2, 3, 4, 8]
    assert without_loops([1, 2, 1, 2, 1, 2], always) == [1, 2, 1, 2, 1, 2]  # three short rounds may be meant
    assert without_loops([5, 5, 5, 5, 5], lambda ids: False) == [5] * 5  # digits
    assert without_loops([], always) == []
    assert word_numbers(["\u2581a", "b", "\u2581c", "."]) == [0, 0, 1, 1]


@pytest.fixture(scope="module")
def captions():
    return Translator.from_pretrained("multi30k-en-de", "cpu")


@pytest.mark.parametrize(
    "text, kept",
    [
        ("A man 😀 is riding a red bicycle.", "😀"),
        ("Two dogs run to anna.b@example.com, near the beach.", "anna.b@example.com"),
        ("A man at https://example.org/a?b=1 is smiling.", "https://example.org/a?b=1"),
        ("3,141 dogs run on the beach at 10:30.", "10:30"),
        ("A girl from Łomża smiles.", "Łomża"),
        ("A dog <x1> runs </s> home.", "</s>"),
        ("A family 👩‍👩‍👧 is eating 🍕", "👩‍👩‍👧"),
    ],
)
def test_the_shipped_model_hands_it_through(captions, text, kept):
    result = captions.translate(text)
    assert result.text.count(kept) == text.count(kept)
    rest = result.text.replace(kept, "")
    assert len(rest.split()) > 2 and "<unk>" not in rest


def test_numbers_are_written_as_the_language_does(captions):
    assert "3.141" in captions.translate("3,141 dogs run on the beach at 10:30.").text


def test_numbers_and_addresses_alone_are_copied(captions):
    for text in ("anna@example.com", "10:30", "🍕 17", "https://example.org"):
        assert captions.translate(text).text == text


def test_a_script_that_cannot_be_read_is_refused_but_a_word_of_it_passes(captions):
    with pytest.raises(ValueError, match="cannot read the script"):
        captions.translate("Москва город 17.")
    assert "Москва" in captions.translate("A man in Москва smiles.").text


def test_a_loop_is_cut_and_reported(captions):
    ids = captions.tokenizer.encode("Ein Mann fährt auf einem Fahrrad")
    loop = captions.tokenizer.encode("und lacht laut") * 6
    source = captions.encode("A man rides a bicycle.", "de")
    masked = mask("A man rides a bicycle.", [], [])
    found = SearchResult([Candidate([*ids, *loop], -9.0, -3.0, False)])
    sentence = captions.sentence("A man rides a bicycle.", masked, source, found, "de")
    assert sentence.has_loop and sentence.hypotheses[0].text == "Ein Mann fährt auf einem Fahrrad und lacht laut"
    whole = captions.assemble("A man rides a bicycle.", [[sentence]], DEFAULTS)
    assert len(whole.notes) == 1 and "repeated itself" in whole.notes[0]
    # a source that repeats itself may be translated by a text that does
    again = captions.encode("run and run and run and run and run and run and run and run", "de")
    assert not captions.sentence("x", masked, again, found, "de").has_loop


def test_a_model_with_stand_ins_copies_them():
    """An untrained model, and a search result as a trained one gives it."""
    texts = [
        "eins zwei drei vier fünf 1 2 12 21",
        "one two three four five",
        "Call or write to me",
        "Rufen Sie an oder schreiben",
    ]
    tokenizer = Tokenizer.train(texts, 80, ["en", "de"], stand_ins=True)
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=len(tokenizer), d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1
    )
    model = Translator(Transformer(config), tokenizer, [("en", "de"), ("de", "en")], language_tokens=True)
    assert model.stand_ins == list(STAND_INS)
    masked = model.mask("Call 1234 or 5678", "en")
    assert masked.text == "Call <x1> or <x2>"
    source = model.encode(masked.text, "de")
    assert tokenizer.pieces(source)[0] == "<2de>" and "<unk>" not in tokenizer.pieces(source)

    def outcome(text, score):
        return Candidate(tokenizer.encode(text), score, score, True)

    # the better score lost a number, so the other one is taken
    result = SearchResult([outcome("Rufen Sie <x1> an", -1.0), outcome("Rufen Sie <x1> oder <x2> an", -2.0)])
    sentence = model.sentence("Call 1234 or 5678", masked, source, result, "de")
    assert sentence.hypotheses[0].text == "Rufen Sie 1234 oder 5678 an" and sentence.hypotheses[0].score == -2.0
    assert "1234" in sentence.hypotheses[0].tokens and "<x1>" not in sentence.hypotheses[0].tokens
    # a stand-in that stands for nothing, and a language token, never reach the reader
    stray = SearchResult([outcome("Rufen Sie <x1> oder <x3> <x2> <2de> an", -1.0)])
    cleaned = model.sentence("Call 1234 or 5678", masked, source, stray, "de")
    assert cleaned.hypotheses[0].text == "Rufen Sie 1234 oder 5678 an" and not cleaned.has_loop
    translation = model.assemble("Call 1234 or 5678", [[sentence]], DEFAULTS)
    attention = model.attend(translation)
    assert "5678" in attention.source_tokens and "5678" in attention.target_tokens
    assert attention.cross.shape[2:] == (len(attention.target_tokens), len(attention.source_tokens))
    # digits that no stand-in is left for are pieces of their own
    assert [p for p in tokenizer.pieces(tokenizer.encode("one 12")) if p in "12"] == ["1", "2"]


def test_what_a_translation_has_lost():
    assert not misses("Es kostet 1.200 $ um 19:15 Uhr.", ["1.200\u00a0$", "19:15 Uhr"])
    assert misses("Es kostet 1,200 $.", ["1.200\u00a0$"])
    assert misses("Im Jahr 1987.", ["1986"]) and misses("Es ist 17.5 groß.", ["17"])
    assert misses("It leaves at 10:40 pm.", ["10:40"]) and not misses("It leaves at 10:40.", ["10:40"])
    assert misses("17 und 17.", ["17"]) and not misses("17 und 17.", ["17", "17"])
    assert misses("Frau Vogelsang ist da.", ["Vogel"]) and not misses("Frau Vogel ist da.", ["Vogel"])
    assert not misses("", [])
    # signs of another way to write the same number, and the ending of an ordinal
    assert not misses("30,000 crowns on the 20th, in the 1980s", ["30000", "20", "1980"])
    assert not misses("in den 1980er Jahren; Vogels Haus", ["den 1980er-Jahren", "Vogel"])
    assert not misses("44% und 5$", ["44\u00a0%", "5\u00a0$"]) and misses("4-9", ["4:9"])
    assert misses("07 123", ["07123"]) and misses("1.5", ["15"]) and misses("305", ["30"])
    assert with_blanks("Es sind 30 000.", ["30\u00a0000"]) == "Es sind 30\u00a0000."
    assert with_blanks("30,000 or 44% on the 20th", ["30000", "44\u00a0%", "20"]) == "30,000 or 44\u00a0% on the 20th"


@pytest.fixture(scope="module")
def everyday(device):
    return Translator.from_pretrained("everyday", device)


@pytest.mark.parametrize(
    "source, target, text, said, copied",
    [
        ("fr", "en", "Le Soleil est une étoile.", ["Sun"], ["Soleil"]),
        ("fr", "en", "La Belgique et les Canadiens signent.", ["Belgium", "Canadian"], ["Belgique", "Canadiens"]),
        ("fr", "en", "Pachuco a été adopté par des Américains.", ["Americans"], ["Américains"]),
        ("fr", "en", "Il cite le nom du président du Conseil du Trésor.", ["Treasury"], ["Trésor"]),
    ],
)
def test_words_with_a_capital_are_translated(everyday, source, target, text, said, copied):
    found = everyday.translate(text, source, target)
    assert all(word in found.text for word in said) and not any(word in found.text for word in copied)
    assert not found.sentences[0].stand_ins


@pytest.mark.parametrize(
    "source, target, text, kept",
    [
        ("en", "fr", "There are 30,000 people here.", "30\u00a0000"),
        ("en", "de", "He was born in 1987.", "1987"),
        ("de", "en", "Das Haus hat 1.500 Fenster.", "1,500"),
        ("fr", "en", "Elle a 45 ans.", "45"),
        ("en", "fr", "Hope moved to Reading.", "Reading"),
        ("de", "en", "Frau Vogel zog nach Essen.", "Essen"),
    ],
)
def test_numbers_and_names_that_the_model_keeps_need_no_stand_in(everyday, source, target, text, kept):
    found = everyday.translate(text, source, target)
    assert kept in found.text
    assert not found.sentences[0].stand_ins and not any("written by rule" in note for note in found.notes)


LOST = [
    ("en", "de", "It costs $1,437.50 at 7:15 pm.", ["1.437,50\u00a0$", "19:15 Uhr"]),
    ("de", "en", "Der Bus fährt um 9:50 Uhr ab.", ["9:50"]),
    ("fr", "en", "Le bus part à 9 h 50.", ["9:50"]),
]


@pytest.mark.parametrize("source, target, text, kept", LOST)
def test_what_the_model_loses_is_kept_by_a_second_pass(everyday, source, target, text, kept):
    plain = everyday.translate(text, source, target, without=frozenset({"verbatim"})).text
    assert misses(plain, kept)
    found = everyday.translate(text, source, target)
    assert not misses(found.text, kept) and set(kept) <= set(found.sentences[0].stand_ins.values())
    # what the views show is what the model read in the pass that gave the answer
    attention = everyday.attend(found)
    assert attention.source_tokens == found.source_tokens and set(kept) <= set(found.source_tokens)
    best = found.sentences[0]
    result = SearchResult([Candidate(best.ids[0], best.hypotheses[0].score, best.hypotheses[0].logprob, True)])
    assert everyday.present(best, result, source, target).hypotheses[0].text == found.text


def test_sentences_of_both_passes_stand_in_their_places(everyday):
    texts = ["He was born in 1987.", LOST[0][2], "7 pm", "Write to a.b@example.com, {name}!", "Good morning!"]
    together = everyday.translate(texts, "en", "de")
    assert [one.text for one in together] == [everyday.translate(text, "en", "de").text for text in texts]
    assert [one.source_text for one in together] == texts and together[2].text == "19 Uhr"
    assert set(together[3].sentences[0].stand_ins.values()) == {"a.b@example.com", "{name}"}
    assert everyday.translate(" ".join(texts), "en", "de", n_best=2).hypotheses[0].text.count("1987") == 1


def test_a_number_longer_than_the_model_reads_is_copied(everyday):
    number = "7" * 2 * everyday.most_pieces()
    assert number in everyday.translate_sentences([f"Call {number} now."], "en", "de")[0].hypotheses[0].text
