"""The four experiments: what is taken away is away, and what is turned round is turned round."""

import numpy as np
import pytest
import torch

from training import assets
from transformer.insight import experiments, pronouns
from transformer.translator import Translator


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained(assets.model_dir("multi30k-en-de"), device="cpu")


def test_exchanging_queries_and_keys_transposes_the_scores(translator):
    model = translator.model
    changed = experiments.queries_for_keys(model)
    src = torch.tensor([[5, 9, 7, 30, model.config.eos]])
    with torch.inference_mode():
        x = model.embed(src)
        scores = []
        for one in (model, changed):
            query, key, value = one.encoder[0].attention.project(x)
            scores.append((query @ key.transpose(-2, -1)).numpy())
    np.testing.assert_allclose(scores[1], scores[0].swapaxes(-2, -1), rtol=1e-4, atol=1e-4)
    assert not np.allclose(scores[1], scores[0], atol=1e-2)
    assert changed.encoder[0].attention.qkv.weight is not model.encoder[0].attention.qkv.weight


def test_without_positions_the_order_of_the_words_is_nothing_and_with_them_it_is_something(translator):
    translation = translator.translate("A man in a red shirt is riding a horse.")
    found = {(one.change, number % 2): one for number, one in enumerate(experiments.encoders(translator, translation))}
    own, other = found["as it is", 0], found["as it is", 1]
    assert own.text == translation.sentences[0].hypotheses[0].text and other.text != own.text
    assert sorted(own.source.split()) == sorted(other.source.split()) and own.source != other.source
    assert found["without positions", 0].text == found["without positions", 1].text
    assert found["queries and keys exchanged", 0].text != own.text


def test_one_head_alone_is_all_that_is_left(translator):
    config = translator.model.config
    off = experiments.single_head(translator.model, 1).off
    blocks = config.encoder_layers + 2 * config.decoder_layers
    assert len(off) == blocks * (config.heads - 1) and all(head != 1 for _, _, head in off)
    translation = translator.translate("A dog runs.")
    found = experiments.heads_alone(translator, translation)
    assert [one.change for one in found][:2] == [f"all {config.heads} heads", "head 1 alone"]
    assert len(found) == config.heads + 1 and found[0].text == translation.sentences[0].hypotheses[0].text
    assert any(one.text != found[0].text for one in found[1:])


def test_a_sentence_without_words_is_refused(translator):
    with pytest.raises(ValueError, match="holds no words"):
        experiments.encoders(translator, translator.translate("…"))


def test_permuted_is_never_the_order_it_was():
    for words in range(2, 9):
        for seed in range(20):
            order = experiments.permutation(words, seed)
            assert sorted(order) == list(range(words)) != order
    assert experiments.permutation(1) == [0]


@pytest.mark.parametrize(
    ("text", "language", "meant", "verdict"),
    [
        ("Die Trophäe passt nicht in den Koffer, weil sie zu groß ist.", "de", "trophy", "Right"),
        ("Die Trophäe passt nicht in den Koffer, weil er zu klein ist.", "de", "suitcase", "Right"),
        ("Die Trophäe passt nicht in den Koffer, weil sie zu klein ist.", "de", "suitcase", "Wrong"),
        ("Der Pokal passt nicht in den Koffer, weil er zu groß ist.", "de", "trophy", "It does not show"),
        ("Die Trophäe passt nicht in den Koffer, weil es zu groß ist.", "de", "trophy", "Wrong"),
        ("Le trophée ne rentre pas dans la valise parce qu’il est trop grand.", "fr", "trophy", "Right"),
        ("Le trophée ne rentre pas dans la valise parce qu'il est trop petit.", "fr", "suitcase", "Wrong"),
        ("Le trophée ne rentre pas dans la valise car elle est trop petite.", "fr", "suitcase", "Right"),
    ],
)
def test_the_pronoun_shows_what_was_understood(text, language, meant, verdict):
    assert pronouns.last_pronoun(text, language).verdict(meant).startswith(verdict)


@pytest.mark.parametrize(
    ("text", "language", "meant", "verdict"),
    [
        ("Das Buch passt nicht in den Koffer, weil er zu groß ist.", "de", "book", "Wrong: “er” is the suitcase,"),
        ("Das Buch passt nicht in den Koffer, weil es zu groß ist.", "de", "book", "Right: “es” can only be the book."),
        ("Le livre ne va pas dans la valise parce qu'il est trop petit.", "fr", "suitcase", "Wrong: “il” is the book,"),
    ],
)
def test_a_book_shows_it_too(text, language, meant, verdict):
    assert pronouns.last_pronoun(text, language, "book").verdict(meant).startswith(verdict)


def test_a_wrong_article_is_told_and_shows_nothing_of_the_pronoun():
    told = pronouns.last_pronoun("La trophée ne va pas dans la valise parce qu'elle est trop grande.", "fr")
    assert told.verdict("trophy") == (
        "It does not show: “elle” agrees with both nouns. The article of “la trophée” is wrong."
    )
    told = pronouns.last_pronoun("Der Trophe passt nicht in den Koffer, weil er zu groß ist.", "de")
    assert told.verdict("trophy").endswith("both nouns. This page does not know the noun of “der Trophe”.")
    assert not pronouns.last_pronoun("Der Pokal passt nicht in den Koffer, weil er zu groß ist.", "de").slip


def test_nothing_is_said_where_a_gender_cannot_be_told():
    assert pronouns.last_pronoun("Die Trophäe passt nicht in die Dings, weil sie groß ist.", "de") is None
    assert pronouns.last_pronoun("Die Trophäe passt nicht in den Koffer.", "de") is None
