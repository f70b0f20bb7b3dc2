"""Rollout, statistics, ablation, alignment and the six steps, by hand and against the model itself."""

import copy
import math

import numpy as np
import pytest
import torch

from transformer import Translator
from transformer.attention import causal_mask, key_mask
from transformer.config import TransformerConfig
from transformer.insight import interpret
from transformer.insight.interpret import (
    KINDS,
    ablation,
    alignment,
    attention_map,
    head_steps,
    rollout,
    statistics,
)
from transformer.insight.trace import teacher_forced
from transformer.model import Gates, Transformer
from transformer.translator import Attention


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de", device="cpu")


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate("A young girl is eating a red apple.", n_best=2)


def test_rollout_by_hand():
    one = np.array([[[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.7, 0.3]]]], dtype=np.float32)  # mean: 0.6, 0.4
    np.testing.assert_allclose(rollout(one), [[1.0, 0.0], [0.3, 0.7]], atol=1e-6)
    two = np.concatenate((one, one))
    np.testing.assert_allclose(rollout(two), [[1.0, 0.0], [0.3 + 0.7 * 0.3, 0.49]], atol=1e-6)


def test_rollout_of_the_model_sums_to_one_and_respects_the_mask(translator, translation):
    att = translator.attend(translation)
    for weights in (att.encoder, att.decoder):
        np.testing.assert_allclose(rollout(weights).sum(-1), 1.0, atol=1e-4)
    assert not np.triu(rollout(att.decoder), 1).any()


def test_statistics_by_hand():
    weights = np.array([[[[0, 1, 0], [0, 0, 1], [0, 1, 0]], [[1 / 3] * 3] * 3]], dtype=np.float32)
    found = statistics(weights)
    np.testing.assert_allclose(found.entropy, [[0, np.log(3)]], atol=1e-6)
    np.testing.assert_allclose(found.confidence, [[1, 1 / 3]], atol=1e-6)
    np.testing.assert_allclose(found.distance, [[1, (1 + 2 + 1 + 1 + 2 + 1) / 9]], atol=1e-6)
    np.testing.assert_allclose(found.previous, [[1 / 3, 2 / 9]], atol=1e-6)
    np.testing.assert_allclose(found.same, [[0, 1 / 3]], atol=1e-6)
    np.testing.assert_allclose(found.following, [[2 / 3, 2 / 9]], atol=1e-6)
    np.testing.assert_allclose(found.ends, [[1 / 3, 1 / 3]], atol=1e-6)
    labelled = statistics(weights, ["<s>", "▁a", "</s>"])
    np.testing.assert_allclose(labelled.ends, [[1 / 3, 2 / 3]], atol=1e-6)


def test_alignment_takes_the_column_looked_at_most_but_eos():
    cross = np.array([[[[0.1, 0.2, 0.7], [0.3, 0.2, 0.5]]]], dtype=np.float32)
    assert alignment(cross) == [1, 0]
    both = np.concatenate((cross, np.array([[[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]]], dtype=np.float32)))
    assert alignment(both) == [0, 1] and alignment(both, layer=0) == [1, 0]


def test_ablation_equals_zeroing_the_columns_of_the_output_matrix(translator, translation):
    """Removing a head is the same as zeroing its columns of W^O; one head of each kind is checked that way."""
    logprob, change = ablation(translator, translation)
    assert logprob == pytest.approx(translation.hypotheses[0].logprob, abs=1e-3)
    model = translator.model
    for kind, layer, head in (("encoder", 1, 2), ("decoder", 3, 0), ("cross", 2, 3)):
        block = (model.encoder if kind == "encoder" else model.decoder)[layer]
        matrix = (block.cross_attention if kind == "cross" else block.attention).output.weight
        kept = matrix.detach().clone()
        with torch.no_grad():
            matrix[:, head * 32 : head * 32 + 32] = 0.0
            without, _ = ablation(translator, translation)
            matrix.copy_(kept)
        assert change[kind][layer, head] == pytest.approx(without - logprob, abs=1e-3)
    assert {kind: a.shape for kind, a in change.items()} == dict.fromkeys(KINDS, (4, 4))
    # Without what it reads of the source the model is lost.
    assert change["cross"].min() < -0.1


@torch.inference_mode()
def test_ablating_nothing_changes_nothing_bit_for_bit(translator, translation):
    model = translator.model
    pair = teacher_forced(translator, translation, 0, 0)
    src, tgt, _ = pair.src, pair.tgt, pair.labels[None]
    mask, later = key_mask(src, model.config.pad), causal_mask(tgt.shape[1])

    def logits(gates):
        encoded, _ = model.encode(src, mask, gates=gates)
        return model.project(model.decode(tgt, later, model.remember(encoded, mask), gates=gates)[0])

    whole = logits(None)
    for kind in KINDS:
        gate = torch.ones(4, 1, 4)
        assert torch.equal(logits(Gates(**{kind: gate})), whole)
        gate[1, 0, 2] = 0.0  # and the gate is read
        assert not torch.equal(logits(Gates(**{kind: gate})), whole)


def test_six_steps_are_what_the_model_did(translator, translation):
    att = translator.attend(translation, hypothesis=1)
    for kind in KINDS:
        for layer, head in ((0, 0), (3, 2)):
            steps = head_steps(translator, translation, kind, layer, head, hypothesis=1)
            np.testing.assert_allclose(steps.weights, getattr(att, kind)[layer, head], atol=1e-5)
            np.testing.assert_allclose(steps.output, steps.weights @ steps.value, atol=1e-5)
            exact = steps.query @ steps.key.T / np.sqrt(steps.query.shape[1])
            seen = np.isfinite(steps.scores)
            np.testing.assert_allclose(steps.scores[seen], exact[seen], atol=1e-4)
            assert steps.weights.shape == (len(steps.rows), len(steps.columns))
    own = head_steps(translator, translation, "decoder", 0, 0)
    assert np.isneginf(own.scores[np.triu_indices(len(own.rows), 1)]).all() and own.columns[0] == "<s>"


def test_what_does_not_exist_says_so(translator, translation):
    with pytest.raises(ValueError, match="encoder, decoder, cross"):
        head_steps(translator, translation, "sideways", 0, 0)
    with pytest.raises(ValueError, match="4 layers and 4 heads"):
        head_steps(translator, translation, "cross", 4, 0)
    with pytest.raises(ValueError, match="no words"):
        ablation(translator, translator.translate("123"))


# -- maps ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn():
    """Two layers, three heads, four source and five target tokens; every cell differs from every other."""
    source, target = ["▁a", "▁b", "▁c", "</s>"], ["▁v", "▁w", "▁x", "▁y", "</s>"]
    shapes = {"encoder": (2, 3, 4, 4), "decoder": (2, 3, 5, 5), "cross": (2, 3, 5, 4)}
    values = {
        kind: np.random.default_rng(i).random(shape, np.float32) for i, (kind, shape) in enumerate(shapes.items())
    }
    values = {kind: maps / maps.sum(-1, keepdims=True) for kind, maps in values.items()}
    return Attention(**values, source_tokens=source, target_tokens=target, decoder_tokens=["<s>", *target[:-1]])


@pytest.mark.parametrize(
    "kind, rows, columns",
    [
        ("encoder", "source_tokens", "source_tokens"),
        ("decoder", "target_tokens", "decoder_tokens"),
        ("cross", "target_tokens", "source_tokens"),
    ],
)
def test_rows_are_queries_and_columns_are_keys(drawn, kind, rows, columns):
    found = attention_map(drawn, kind, 1, 2)
    assert found.rows == getattr(drawn, rows) and found.columns == getattr(drawn, columns)
    np.testing.assert_array_equal(found.weights, getattr(drawn, kind)[1, 2])


def test_mean_maximum_and_rollout_over_heads(drawn):
    heads = drawn.cross[0]
    np.testing.assert_allclose(attention_map(drawn, "cross", 0, "mean").weights, sum(heads) / 3, rtol=1e-6)
    np.testing.assert_array_equal(
        attention_map(drawn, "cross", 0, "max").weights, np.maximum(np.maximum(heads[0], heads[1]), heads[2])
    )
    np.testing.assert_array_equal(attention_map(drawn, "encoder", 0, "rollout").weights, rollout(drawn.encoder[:1]))
    through = attention_map(drawn, "cross", 1, "rollout").weights
    np.testing.assert_allclose(through, drawn.cross[1].mean(0) @ rollout(drawn.encoder), rtol=1e-6)
    np.testing.assert_allclose(through.sum(-1), 1, rtol=1e-5)


def test_hidden_ends_are_left_out_and_the_rest_sums_to_one(drawn):
    found = attention_map(drawn, "cross", 1, 0, without_ends=True)
    assert found.rows == ["▁v", "▁w", "▁x", "▁y"] and found.columns == ["▁a", "▁b", "▁c"]
    whole = drawn.cross[1, 0]
    np.testing.assert_allclose(found.weights[2], whole[2, :3] / whole[2, :3].sum(), rtol=1e-6)
    own = attention_map(drawn, "decoder", 0, 1, without_ends=True)
    # The row of </s> goes, and of the columns <s>: what is left are places 0-3 and 1-4.
    assert own.rows == own.columns == ["▁v", "▁w", "▁x", "▁y"]
    assert own.row_places == [0, 1, 2, 3] and own.column_places == [1, 2, 3, 4]


def test_a_row_that_looked_at_the_end_only_becomes_zero_and_padding_goes():
    weights = np.array([[0.0, 0.0, 1.0], [0.2, 0.6, 0.2]], dtype=np.float32)
    left, rows, columns = interpret.hide_ends(weights, ["▁a", "▁b"], ["▁c", "<pad>", "</s>"])
    np.testing.assert_array_equal(left, [[0.0], [1.0]])
    assert rows == [0, 1] and columns == [0]
    with pytest.raises(ValueError, match="start and end"):
        interpret.hide_ends(weights[:, 2:], ["▁a", "▁b"], ["</s>"])


@pytest.mark.parametrize(
    "kind, layer, head",
    [("cross", 2, 0), ("cross", -1, 0), ("cross", 0, 3), ("cross", 0, -1), ("cross", 0, "all"), ("other", 0, 0)],
)
def test_a_map_that_is_not_there_is_refused_with_what_is(drawn, kind, layer, head):
    with pytest.raises(ValueError, match="layers 1 to 2 and heads 1 to 3|encoder, decoder, cross"):
        attention_map(drawn, kind, layer, head)


def test_attention_of_a_constructed_model_lands_in_the_right_cells(translator):
    """Without scores every allowed key gets the same weight; with keys of one token made large, its column gets all."""
    config = TransformerConfig(
        vocab_size=len(translator.tokenizer), d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1
    )
    torch.manual_seed(0)
    model = Transformer(config)
    width = 16
    for block in (model.encoder[0].attention, model.decoder[0].attention, model.decoder[0].cross_attention):
        block.qkv.weight.data[: 2 * width] = 0.0
    made = Translator(model, translator.tokenizer, [("en", "de")])
    sentence = translator.translate("A girl is eating an apple.")
    att = made.attend(sentence)
    T, S = len(att.target_tokens), len(att.source_tokens)
    assert T != S
    np.testing.assert_allclose(att.encoder, np.full((1, 2, S, S), 1 / S), rtol=1e-5)
    np.testing.assert_allclose(att.cross, np.full((1, 2, T, S), 1 / S), rtol=1e-5)
    counts = np.arange(1, T + 1)[:, None]
    np.testing.assert_allclose(att.decoder[0, 0], np.tril(np.ones((T, T))) / counts, rtol=1e-5)
    shown = attention_map(att, "decoder", 0, 0)
    assert shown.weights[0, 0] == 1 and shown.columns[0] == "<s>" and shown.rows[0] == att.target_tokens[0]
    assert not np.triu(shown.weights, 1).any() and shown.weights[-1].min() > 0


# -- one query, positions, swapped words -----------------------------------------------------------------------------


def test_the_steps_of_one_query_are_the_model_s_own(translator, translation):
    att = translator.attend(translation)
    for kind in KINDS:
        steps = head_steps(translator, translation, kind, 2, 1)
        for row in (0, len(steps.rows) - 1):
            one = interpret.query_steps(steps, row)
            np.testing.assert_allclose(one.weights, getattr(att, kind)[2, 1, row], atol=2e-6)
            np.testing.assert_allclose(one.output, steps.output[row], atol=1e-5)
            np.testing.assert_allclose(one.dots, [query_key @ one.query for query_key in one.key], atol=1e-4)
            np.testing.assert_allclose(one.products, one.weights[:, None] * one.value, atol=1e-7)
            assert one.divisor == pytest.approx(math.sqrt(len(one.query)))


def test_scale_and_mask_can_be_switched_off(translator, translation):
    steps = head_steps(translator, translation, "decoder", 0, 0)
    with_mask, without = interpret.query_steps(steps, 1), interpret.query_steps(steps, 1, mask=False)
    assert np.isneginf(with_mask.scores[2:]).all() and not with_mask.weights[2:].any()
    assert np.isfinite(without.scores).all() and without.weights[2:].min() > 0
    np.testing.assert_array_equal(without.visible, [True, True] + [False] * (len(steps.columns) - 2))
    raw = interpret.query_steps(steps, 1, scale=False)
    assert raw.divisor == 1 and raw.weights.max() >= with_mask.weights.max()
    np.testing.assert_array_equal(raw.scores[:2], raw.dots[:2])
    with pytest.raises(ValueError, match="queries 1 to"):
        interpret.query_steps(steps, len(steps.rows))


def test_positions_are_interleaved_as_in_the_paper(translator):
    table = interpret.positions(translator.model, 30)
    d_model = translator.model.config.d_model
    assert table.shape == (30, d_model)
    for position, pair in ((0, 0), (7, 0), (7, 3), (29, d_model // 2 - 1)):
        angle = position / 10000 ** (2 * pair / d_model)
        assert table[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
        assert table[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_only_positions_tell_the_encoder_the_order_of_words(translator, translation):
    before = translator.model.positions.clone()
    found = interpret.swap_words(translator, translation, 2, 6)
    assert found.words == ["A", "young", "girl", "is", "eating", "a", "red", "apple."]
    assert found.permutation == ["A", "young", "red", "is", "eating", "a", "girl", "apple."]
    assert found.translations[True][0] == translation.text
    assert found.translations[False][0] == found.translations[False][1]
    assert found.changes[False].max() < 1e-4 and found.changes[True].min() > 1e-2
    assert torch.equal(translator.model.positions, before)
    for pair in ((0, 0), (0, 8), (-1, 2)):
        with pytest.raises(ValueError, match="two different words among 1 to 8"):
            interpret.swap_words(translator, translation, *pair)


def test_learned_positions_can_be_taken_away_too():
    model = Transformer(TransformerConfig(vocab_size=40, d_model=8, d_ff=8, heads=2, positions="learned"))
    bare = interpret.without_positions(model)
    assert not bare.positions.any() and model.positions.any()
    assert bare.embedding.weight.data_ptr() == model.embedding.weight.data_ptr()


# -- beside attention: gradients and occlusion -----------------------------------------------------------------------


def test_gradient_times_input_is_the_slope_that_finite_differences_find(translator, translation):
    exact = copy.copy(translator)
    exact.model = copy.deepcopy(translator.model).double()
    found = interpret.gradient_times_input(exact, translation)
    pair = teacher_forced(exact, translation, 0, 0)
    src, step = pair.src, 1e-5
    assert found.shape == (len(pair.labels), src.shape[1])
    with torch.no_grad():
        x = exact.model.embedding(src) * math.sqrt(exact.model.config.d_model)
        for source in (0, 3, src.shape[1] - 1):
            ends = []
            for sign in (1, -1):
                longer = x.clone()
                longer[0, source] *= 1 + sign * step
                ends.append(interpret._token_logprobs(exact.model, pair, longer, key_mask(src, 0))[0])
            np.testing.assert_allclose(found[:, source], ((ends[0] - ends[1]) / (2 * step)).numpy(), atol=1e-4)


def test_gradients_in_chunks_are_the_same(translator, translation, monkeypatch):
    whole = interpret.gradient_times_input(translator, translation)
    hidden = interpret.occlusion(translator, translation)
    monkeypatch.setattr(interpret, "FLOATS", 1)
    np.testing.assert_allclose(interpret.gradient_times_input(translator, translation), whole, atol=1e-4)
    np.testing.assert_allclose(interpret.occlusion(translator, translation), hidden, atol=1e-4)
    assert all(p.grad is None for p in translator.model.parameters())


def test_gradients_and_occlusion_report_how_far_they_are(translator, translation, monkeypatch):
    monkeypatch.setattr(interpret, "FLOATS", 1)  # a chunk for every token
    for method, axis in ((interpret.gradient_times_input, 0), (interpret.occlusion, 1)):
        seen = []
        size = method(translator, translation, report=lambda done, total, seen=seen: seen.append((done, total))).shape[
            axis
        ]
        assert [total for _, total in seen] == [size] * len(seen) and seen[-1] == (size, size)
        done = [done for done, _ in seen]
        assert done == sorted(done) and len(set(done)) >= size


def test_occlusion_is_what_padding_in_that_place_does(translator, translation):
    found = interpret.occlusion(translator, translation)
    model, config = translator.model, translator.model.config
    pair = teacher_forced(translator, translation, 0, 0)
    src, tgt, labels = pair.src, pair.tgt, pair.labels[None]

    def logprobs(src):
        with torch.no_grad():
            mask = key_mask(src, config.pad)
            logits = model(src, tgt, mask, causal_mask(tgt.shape[1]))
            return logits.log_softmax(-1).gather(-1, labels[..., None])[0, :, 0].numpy()

    whole = logprobs(src)
    assert whole.sum() == pytest.approx(translation.hypotheses[0].logprob, abs=1e-3)
    for source in (0, 2, 5):
        padded = src.clone()
        padded[0, source] = config.pad
        np.testing.assert_allclose(found[:, source], whole - logprobs(padded), atol=1e-4)


def test_shares_and_agreement_by_hand():
    np.testing.assert_allclose(interpret.shares(np.array([[1.0, -3.0], [0.0, 0.0]])), [[0.25, 0.75], [0, 0]])
    first, second = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.7, 0.3]])
    assert interpret.agreement(first, second) == 0.5


def test_heads_that_do_one_thing_are_named():
    eye, last = np.eye(4), np.zeros((4, 4))
    last[:, 3] = 1
    back = np.eye(4, k=-1)
    back[0, 0] = 1
    shuffled = np.eye(4)[[2, 0, 3, 1]]
    found = interpret.roles(statistics(np.stack([eye, last, back, shuffled, np.full((4, 4), 0.25)])[None]))
    expected = ["looks at its own place", "rests on start or end", "looks one back", "picks single pieces"]
    assert found[0, :4].tolist() == expected and found[0, 4] == ""
    assert interpret.roles(statistics(np.full((1, 1, 9, 9), 1 / 9)))[0, 0] == "looks everywhere"
