"""The preset `paper` is the table of supplementary A.3, and the adversarial terms of the ALIAS recipe stay sane."""

import math

import torch

from training import Run, fit
from vton.networks.config import PAPER
from vton.recipes import alias, matching, segmentation


def test_segmentation_as_published():
    r = segmentation.SegmentationRecipe(**segmentation.PRESETS["paper"])
    assert (r.adversarial, r.gan, r.cross_entropy, r.arms) == ("lsgan", 1.0, 10.0, 1.0)
    assert (r.lr, r.lr_d, r.beta1, r.batch, r.steps, r.reduce) == (4e-4, 4e-4, 0.5, 8, 200_000, 1)
    assert segmentation.network_config(r) == PAPER.segmentation
    assert (r.accumulate, r.schedule) == (1, "constant")


def test_matching_as_published():
    r = matching.MatchingRecipe(**matching.PRESETS["paper"])
    assert (r.second_order, r.mask) == (0.04, 0.0)
    assert (r.lr, r.beta1, r.batch, r.steps) == (2e-4, 0.5, 8, 50_000)
    assert matching.network_config(r) == PAPER.matching


def test_alias_as_published():
    r = alias.AliasRecipe(**alias.PRESETS["paper"])
    assert (r.adversarial, r.gan, r.feature_matching, r.perceptual, r.l1) == ("hinge", 1.0, 10.0, 10.0, 0.0)
    assert r.features == "vgg19"
    assert (r.lr, r.lr_d, r.beta1, r.beta2, r.batch, r.steps) == (1e-4, 4e-4, 0.0, 0.9, 4, 200_000)
    assert (r.height, r.pictures_wide, r.discriminator) == (1024, 768, 64)
    assert alias.network_config(r) == PAPER.alias


def test_optimizers_are_the_recipes():
    recipe = segmentation.SegmentationRecipe(**{**segmentation.PRESETS["paper"], "width": 4, "discriminator": 4})
    task = segmentation.SegmentationTask(recipe)
    for name in ("model", "discriminator"):
        group = task.optimizers[name].param_groups[0]
        assert (group["lr"], group["betas"]) == (4e-4, (0.5, 0.999))
    small = {"width": 4, "widest": 2, "hidden": 4, "injected": 2, "discriminator": 4, "perceptual": 0.0}
    task = alias.AliasTask(alias.AliasRecipe(**{**alias.PRESETS["paper"], **small}))
    assert [task.optimizers[n].param_groups[0]["lr"] for n in ("model", "discriminator")] == [1e-4, 4e-4]
    assert all(o.param_groups[0]["betas"] == (0.0, 0.9) for o in task.optimizers.values())
    assert len(task.modules["discriminator"].scales) == 2


def test_adversarial_terms_are_logged_apart_and_do_not_explode(tmp_path):
    """The published objective, weights and optimizer on small pictures of drawn people."""
    fields = {
        "steps": 12,
        "batch": 1,
        "height": 64,
        "pictures_wide": 48,
        "levels": 5,
        "masked": 3,
        "width": 8,
        "hidden": 8,
        "discriminator": 8,
        "perceptual": 0.0,
        "log_every": 4,
        "save_every": 12,
        "evaluate_every": 0,
    }
    recipe = alias.AliasRecipe(**{**alias.PRESETS["paper"], **fields})
    torch.manual_seed(recipe.seed)
    fit(alias.AliasTask(recipe), recipe, tmp_path / "run", quiet=True)
    logs = [e for e in Run(tmp_path / "run").events() if e["event"] == "log"]
    assert len(logs) == 3
    for log in logs:
        assert set(log["losses"]) == {"l1", "adversarial", "feature_matching", "discriminator", "told_apart"}
        assert 0 <= log["losses"]["told_apart"] <= 1
        assert all(math.isfinite(v) and abs(v) < 20 for v in log["losses"].values())
        assert all(math.isfinite(v) and v > 0 for v in log["gradient_norms"].values())
    assert logs[-1]["losses"]["discriminator"] < logs[0]["losses"]["discriminator"]  # hinge: 2 where it knows nothing
