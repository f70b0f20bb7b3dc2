"""The discriminators' update: real pictures come to score high and generated ones low, in both recipes."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from gan.losses import objective
from vton import labels
from vton.networks.discriminator import MultiScaleDiscriminator, logits
from vton.recipes import alias, segmentation
from vton.recipes.common import update_discriminator


class Plain:
    """What an update asks of the loop's Trainer, on one process."""

    def __init__(self, task_or_optimizer):
        self.optimizers = getattr(task_or_optimizer, "optimizers", {"discriminator": task_or_optimizer})
        self.device, self.world = torch.device("cpu"), 1

    def autocast(self):
        return nullcontext()

    def backward(self, loss):
        loss.backward()

    def step(self, name):
        self.optimizers[name].step()
        self.optimizers[name].zero_grad(set_to_none=True)

    def total(self, value):
        return value


def score(critic, picture):
    with torch.no_grad():
        return float(np.mean([scale.mean() for scale in logits(critic(picture))]))


@pytest.mark.parametrize("kind", ["lsgan", "hinge", "non-saturating"])
def test_a_step_tells_real_from_generated(kind):
    torch.manual_seed(0)
    real, fake = torch.rand(3, 4, 32, 24), -torch.rand(3, 4, 32, 24)
    critic = MultiScaleDiscriminator(4, 4, normalise=False)
    trainer = Plain(torch.optim.Adam(critic.parameters(), lr=2e-3))
    before = score(critic, real) - score(critic, fake)
    figures = [update_discriminator(trainer, critic, objective(kind), [(real, fake, 1.0)]) for _ in range(12)]
    assert score(critic, real) - score(critic, fake) > before + 0.2
    assert figures[-1]["discriminator"] < figures[0]["discriminator"]
    if kind != "lsgan":  # its outputs are probabilities, not logits
        assert figures[-1]["told_apart"] > 0.9


def test_micro_batches_count_by_their_share_and_the_penalty_is_added():
    torch.manual_seed(1)
    real, fake = torch.rand(4, 4, 32, 24), torch.rand(4, 4, 32, 24)
    critic, loss = MultiScaleDiscriminator(4, 4, normalise=False).eval(), objective("lsgan")
    nothing = Plain(torch.optim.SGD(critic.parameters(), lr=0.0))
    whole = update_discriminator(nothing, critic, loss, [(real, fake, 1.0)])
    halves = update_discriminator(nothing, critic, loss, [(real[:2], fake[:2], 0.5), (real[2:], fake[2:], 0.5)])
    assert halves["discriminator"] == pytest.approx(whole["discriminator"], rel=1e-5) and "penalty" not in whole
    penalised = update_discriminator(nothing, critic, loss, [(real, fake, 1.0)], 0.7)
    assert penalised["penalty"] > 0
    expected = whole["discriminator"] + 0.7 * penalised["penalty"]
    assert penalised["discriminator"] == pytest.approx(expected, rel=1e-5)


def pairs_of(module, monkeypatch, task, batch):
    """The pairs that a recipe's update hands to `update_discriminator`."""
    taken = []

    def noted(trainer, critic, loss, pairs, *more):
        taken.extend(pairs)
        return {"discriminator": 0.0, "told_apart": 0.0}

    monkeypatch.setattr(module, "update_discriminator", noted)
    task.update([batch], Plain(task))
    return taken


def test_the_segmentation_recipe_calls_the_true_segmentation_real(monkeypatch):
    recipe = segmentation.SegmentationRecipe(**{**segmentation.PRESETS["draped"], "batch": 1, "precision": "no"})
    task = segmentation.SegmentationTask(recipe)
    batch = task.batch(1, 0, 0, 1)
    ((real, fake, share),) = pairs_of(segmentation, monkeypatch, task, batch)
    classes = len(labels.SEGMENTATION)
    truth = task.target(batch).clamp(min=0)
    assert share == 1 and torch.equal(real[:, -classes:].argmax(1), truth) and real[:, -classes:].amax(1).eq(1).all()
    assert torch.equal(real[:, :-classes], fake[:, :-classes])  # the condition X is the same
    assert not torch.equal(fake[:, -classes:].argmax(1), truth)


def test_the_alias_recipe_calls_the_photograph_real(monkeypatch):
    recipe = alias.AliasRecipe(**{**alias.PRESETS["draped"], "batch": 1, "precision": "no", "fine": False})
    task = alias.AliasTask(recipe)
    batch = task.batch(1, 0, 0, 1)
    ((real, fake, share),) = pairs_of(alias, monkeypatch, task, batch)
    assert share == 1 and torch.equal(real[:, -3:], batch["person"])
    assert torch.equal(real[:, :-3], fake[:, :-3]) and not torch.equal(fake[:, -3:], batch["person"])
