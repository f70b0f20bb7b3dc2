"""The discriminators of a run on a try-on, patch by patch."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from vton import labels, patches
from vton.networks.discriminator import MultiScaleDiscriminator
from vton.options import Options
from vton.result import TryOnResult


@pytest.fixture
def run(tmp_path):
    """A run folder with one checkpoint of narrow discriminators."""
    torch.manual_seed(0)
    folder = tmp_path / "runs" / "one"
    checkpoint = folder / "checkpoints" / "step-00000005"
    checkpoint.mkdir(parents=True)
    (folder / "recipe.json").write_text(json.dumps({"task": "AliasTask", "gan": 1.0, "discriminator": 4}))
    network = MultiScaleDiscriminator(len(labels.DIVIDED) + 3, 4)
    state = {f"discriminator/{k}": v.contiguous() for k, v in network.state_dict().items()}
    save_file(state, checkpoint / "model.safetensors")
    (checkpoint / "state.json").write_text('{"step": 5}')
    return folder


def result(seed=0):
    random = np.random.default_rng(seed)
    return TryOnResult(
        Options(),
        synthesis=random.integers(0, 256, (64, 48, 3), dtype=np.uint8),
        segmentation=random.integers(0, 13, (64, 48)).astype(np.uint8),
        misalignment=np.zeros((64, 48), np.uint8),
    )


def test_two_scales_of_patches_and_their_overlay(run):
    assert patches.runs_with_critics(run.parent) == ["one"]
    critic = patches.critic_of(run)
    made = result()
    fine, coarse = patches.patches(critic, made)
    assert fine.shape[0] > coarse.shape[0] > 1 and np.isfinite(fine).all()
    again = patches.patches(critic, made)[0]
    assert np.array_equal(fine, again) and not np.array_equal(fine, patches.patches(critic, result(1))[0])
    shown = patches.overlay(made, fine)
    assert shown.shape == made.synthesis.shape and shown.dtype == np.uint8
    scores = np.array([[1.0, 1.0], [1.0, 0.0]], np.float32)  # the last corner alone is doubted
    shown = patches.overlay(made, scores)
    assert np.array_equal(shown[:10, :8], made.synthesis[:10, :8]) and abs(int(shown[-1, -1, 0]) - 179) < 70


def test_runs_without_a_discriminator_and_unfinished_try_ons_are_a_sentence(run, tmp_path):
    with pytest.raises(ValueError, match="ended before its picture"):
        patches.patches(patches.critic_of(run), TryOnResult(Options()))
    (run / "recipe.json").write_text(json.dumps({"task": "ParserTask"}))
    assert patches.runs_with_critics(run.parent) == []
