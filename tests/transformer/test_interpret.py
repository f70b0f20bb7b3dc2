"""Rollout, statistics, ablation, alignment and the six steps, by hand and against the model itself."""

import numpy as np
import pytest
import torch

from transformer import Translator
from transformer.interpret import KINDS, ablation, alignment, head_steps, rollout, statistics


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
    np.testing.assert_allclose(found.last, [[1 / 3, 1 / 3]], atol=1e-6)


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
