import pytest

from transformer import Translator
from transformer.text.elision import elide


@pytest.mark.parametrize(
    "written, wanted",
    [
        ("Le animal n'a pas traversé.", "L'animal n'a pas traversé."),
        ("Je attends que elle ouvre la école.", "J'attends qu'elle ouvre l'école."),
        ("LE ÉTÉ, de août à octobre", "L'ÉTÉ, d'août à octobre"),
        ("Lorsque il pleut, je y pense.", "Lorsqu'il pleut, j'y pense."),
        ("Si ils viennent, si elles viennent, quelque un part.", "S'ils viennent, si elles viennent, quelqu'un part."),
        ("Il ne a que une œuvre de Émile.", "Il n'a qu'une œuvre d'Émile."),
    ],
)
def test_short_words_lose_their_vowel_before_a_vowel(written, wanted):
    text, changes = elide(written)
    assert text == wanted
    for before, after in changes:
        assert before in written and after in wanted
    assert elide(wanted) == (wanted, [])


@pytest.mark.parametrize(
    "text",
    [
        "Puis-je avoir le yaourt ?",
        "Prends-le avec toi.",
        "Le onze mai, le oui l'emporte.",
        "Le haut de la halle, le héros",
        "Elle a une idée.",
        "Le chat dort.",
        "Les amis, des oiseaux",
        "quelque ami",
        "si intelligente",
        'Le 8 et le "a"',
        "",
    ],
)
def test_everything_else_stays(text):
    assert elide(text) == (text, [])


def test_what_was_changed_is_named_in_the_order_of_the_text():
    assert elide("Le animal que elle aime")[1] == [("Le animal", "L'animal"), ("que elle", "qu'elle")]


def test_a_french_translation_is_spelled_by_the_rule_and_says_so(monkeypatch):
    """The pieces, the score and the attention stay the model's; another language is not touched."""
    translator = Translator.from_pretrained("everyday", device="cpu")
    honest = translator.translate("The dog sleeps.", "en", "fr", n_best=2)
    assert not any(sentence.elisions for sentence in honest.sentences) and not honest.notes
    decode = translator.tokenizer.decode
    monkeypatch.setattr(translator.tokenizer, "decode", lambda ids: "Le animal dort." if len(ids) > 1 else decode(ids))
    out = translator.translate("The dog sleeps.", "en", "fr", n_best=2)
    assert out.text == "L'animal dort." and len(honest.hypotheses) == 2
    assert [h.text for h in out.hypotheses] == [out.text]  # what reads the same is shown once
    assert [ids for sentence in out.sentences for ids in sentence.ids] == [honest.sentences[0].ids[0]]
    assert out.tokens == honest.tokens and out.score == honest.score
    assert len(out.notes) == 1 and "“L'animal” (“Le animal”)" in out.notes[0]
    assert translator.translate("The dog sleeps.", "en", "de").text == "Le animal dort."
