"""Logit lens, DecoderLens and the closer look at a head, against the model itself and by hand."""

import copy

import numpy as np
import pytest
import torch

from transformer import Translator
from transformer.attention import causal_mask, key_mask
from transformer.insight.contributions import contributions
from transformer.insight.heads import trait_shares, typical_sentences
from transformer.insight.interpret import KINDS, head_steps, query_steps
from transformer.insight.lenses import decoder_lens, logit_lens, with_encoder_layers
from transformer.insight.trace import record, teacher_forced
from transformer.options import SearchOptions
from transformer.parsing.parser import Parser
from transformer.translator import Attention

TEXT = "A young girl is eating a red apple."


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de", device="cpu")


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, n_best=2)


@torch.inference_mode()
def own_logits(translator, translation):
    model = translator.model
    pair = teacher_forced(translator, translation, 0, 0)
    src, tgt, labels = pair.src, pair.tgt, pair.labels[None]
    mask = key_mask(src, model.config.pad)
    encoded, _ = model.encode(src, mask)
    hidden, _, _ = model.decode(tgt, causal_mask(tgt.shape[1]), model.remember(encoded, mask))
    return model.project(hidden)[0].float(), labels[0]


def test_the_lens_at_the_last_layer_is_the_models_own_distribution_bit_for_bit(translator, translation):
    logits, labels = own_logits(translator, translation)
    lens = logit_lens(translator, translation, most=3)
    own = logits.log_softmax(-1)
    assert np.array_equal(lens.top_probabilities[-1], own.topk(3).values.exp().numpy())
    assert np.array_equal(lens.probabilities[-1], own.gather(-1, labels[:, None])[:, 0].exp().numpy())
    assert lens.tokens == [*translation.tokens, "</s>"]
    assert len(lens.top_tokens) == len(translator.model.decoder) + 1 == len(lens.ranks)
    best = [row[0] for row in lens.top_tokens[-1]]
    assert np.array_equal(lens.ranks[-1] == 1, [a == b for a, b in zip(best, lens.tokens)])


def test_ranks_entropies_and_the_layer_where_an_answer_settles(translator, translation):
    lens = logit_lens(translator, translation)
    labels = teacher_forced(translator, translation, 0, 0).labels[None]
    with torch.no_grad():
        states = record(translator, translation).decoder_states
        probabilities = translator.model.project(states[1])[2].softmax(-1)
    order = probabilities.argsort(descending=True).tolist()
    assert lens.ranks[1, 2] == 1 + order.index(int(labels[0, 2]))
    assert lens.entropies[1, 2] == pytest.approx(float(-(probabilities * probabilities.log()).sum()), abs=1e-3)
    for step, first in enumerate(lens.settling_row):
        assert (lens.ranks[first:, step] == 1).all() and (first == 0 or lens.ranks[first - 1, step] > 1)


def test_another_hypothesis_has_a_lens_of_its_own(translator, translation):
    second = logit_lens(translator, translation, hypothesis=1)
    assert second.tokens == [*translation.hypotheses[1].tokens, "</s>"]
    with pytest.raises(ValueError, match="2 translations"):
        logit_lens(translator, translation, hypothesis=2)


def test_the_decoder_lens_has_the_length_penalty_that_suits_the_model(translator, monkeypatch):
    monkeypatch.setattr(translator, "penalties", {"en-de": 1.5})
    own, given = translator.translate(TEXT), translator.translate(TEXT, alpha=0.6)
    assert decoder_lens(translator, own)[-1].score == pytest.approx(own.score, abs=1e-5)
    assert decoder_lens(translator, given, options=SearchOptions(alpha=0.6))[-1].score == pytest.approx(
        given.score, abs=1e-5
    )
    assert abs(own.score - given.score) > 1e-3


def test_the_decoder_lens_ends_in_the_translation_itself(translator, translation):
    found = decoder_lens(translator, translation)
    assert len(found) == len(translator.model.encoder) + 1
    assert found[-1] == translation.hypotheses[0]
    assert found[0].text != translation.text  # from embeddings alone
    assert len(translator.model.encoder) == 4  # the model itself keeps its layers
    assert decoder_lens(translator, translation, hypothesis=1)[-1] == translation.hypotheses[1]
    with pytest.raises(ValueError, match="no number 1"):
        decoder_lens(translator, translation, sentence=1)


@pytest.mark.parametrize(
    "name, kind, text",
    [
        ("multi30k-en-de", Translator, TEXT),
        ("everyday", Translator, "I saw Zlatko Wbrzyk with 3 dogs 😀 in the park."),  # with words that are copied
        ("parse", Parser, "The old man near the river divides it."),
    ],
)
def test_each_row_of_the_decoder_lens_is_a_translation_by_a_model_of_so_many_layers(name, kind, text):
    model = kind.from_pretrained(name, device="cpu")
    found = decoder_lens(model, model.translate(text), options=SearchOptions(2, 0.3))
    for count in range(0, len(model.model.encoder), 3):
        reader = copy.copy(model)
        reader.model = with_encoder_layers(model.model, count)
        alone = reader.translate(text, beam=2, alpha=0.3).hypotheses[0]
        assert found[count].text == alone.text and found[count].tokens == alone.tokens
        assert found[count].logprob == pytest.approx(alone.logprob, abs=1e-3)


def test_a_shallow_reader_gives_the_output_of_that_layer(translator):
    model, seen = translator.model, []
    src = torch.tensor([[5, 6, 7, model.config.eos]])
    watch = model.encoder[1].register_forward_hook(lambda module, args, out: seen.append(out[0]))
    with torch.no_grad():
        model.encode(src, None)
        watch.remove()
        assert torch.equal(with_encoder_layers(model, 2).encode(src, None)[0], seen[0])
        with pytest.raises(ValueError, match="cannot end after 9"):
            with_encoder_layers(model, 9)


def test_the_leaves_of_a_parse_are_told_by_their_words():
    parser = Parser.from_pretrained("parse", device="cpu")
    parsed = parser.translate("The cell divides.")
    tokens = [*parsed.tokens, "</s>"]
    assert {"▁The", "▁cell", "▁divides"} <= set(tokens) and logit_lens(parser, parsed).tokens == tokens
    shares = contributions(parser, parsed)
    assert shares.tokens == tokens and shares.prefix_tokens == ["<s>", *parsed.tokens]


@pytest.mark.parametrize("kind", KINDS)
def test_the_products_of_query_and_key_sum_to_the_score(translator, translation, kind):
    steps = head_steps(translator, translation, kind, 1, 2)
    found = query_steps(steps, 3)
    seen = np.isfinite(found.scores)
    np.testing.assert_allclose(found.factors.sum(-1)[seen] / steps.query.shape[1] ** 0.5, found.scores[seen], atol=1e-4)
    with pytest.raises(ValueError, match="no number"):
        query_steps(steps, len(steps.rows))


def made(encoder, cross):
    tokens = ["▁a", "▁b", "</s>"]
    return Attention(encoder, np.zeros((1, 1, 3, 3)), cross, tokens, tokens, ["<s>", "▁a", "▁b"])


def test_a_head_is_found_on_the_sentence_where_it_is_most_itself():
    previous = np.array([[[[1, 0, 0], [1, 0, 0], [0, 1, 0]]]], dtype=np.float32)
    mixed = np.array([[[[0.5, 0, 0.5], [0.6, 0, 0.4], [0, 0, 1]]]], dtype=np.float32)
    aligned = np.array([[[[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0, 1]]]], dtype=np.float32)
    first, second = made(mixed, aligned), made(previous, aligned)
    assert trait_shares(second, "encoder", 0, 0) == pytest.approx({"end": 0.0, "previous": 1.0, "following": 0.0})
    assert trait_shares(first, "encoder", 0, 0) == pytest.approx({"end": 0.45, "previous": 0.6, "following": 0.2})
    assert trait_shares(first, "cross", 0, 0) == pytest.approx({"end": 0.0, "aligned": 0.85})
    trait, found = typical_sentences([first, second], "encoder", 0, 0)
    assert trait == "previous" and [number for number, _ in found] == [1, 0] and found[0][1] == pytest.approx(1.0)
    assert len(typical_sentences([first] * 9, "cross", 0, 0)[1]) == 5
    with pytest.raises(ValueError, match="at least one sentence"):
        typical_sentences([], "encoder", 0, 0)
    with pytest.raises(ValueError, match="heads 1 to 1"):
        trait_shares(first, "encoder", 0, 1)
