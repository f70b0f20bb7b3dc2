"""The presets for a class: shortened, they still learn visibly from draped people, by loss and metric."""

import pytest
import torch

from training import Run, fit
from training.command import timing
from vton.recipes import alias, matching, parser, segmentation

# network: module, task, recipe, updates of the short version, loss term ("" where people differ more than it falls),
# metric, what it must gain over the untrained net
SHORT = {
    "parser": (parser, parser.ParserTask, parser.ParserRecipe, 30, "cross_entropy", "mean_iou", 0.15),
    "segmentation": (
        segmentation,
        segmentation.SegmentationTask,
        segmentation.SegmentationRecipe,
        20,
        "cross_entropy",
        "mean_iou",
        0.2,
    ),
    "matching": (matching, matching.MatchingTask, matching.MatchingRecipe, 36, "mask", "ssim", 0.07),
    "alias": (alias, alias.AliasTask, alias.AliasRecipe, 28, "", "ssim_region", 0.2),
}


@pytest.mark.slow
@pytest.mark.parametrize("network", SHORT)
def test_a_shortened_preset_learns(network, tmp_path):
    module, task, recipe_class, steps, term, metric, gain = SHORT[network]
    fields = {
        **module.PRESETS["draped"],
        "steps": steps,
        "log_every": 5,
        "save_every": steps,
        "evaluate_every": steps,
        "precision": "no",
        "batch": 2,
        "ema": 0.7,
        "validation": 3,
    }
    recipe = recipe_class(**fields)
    torch.manual_seed(recipe.seed)
    fit(task(recipe), recipe, tmp_path / "run", quiet=True)
    events = list(Run(tmp_path / "run").events())
    losses = [event["losses"][term] for event in events if event["event"] == "log"] if term else []
    figures = [event["figures"][metric] for event in events if event["event"] == "evaluation"]
    assert not term or sum(losses[-3:]) / 3 < 0.9 * sum(losses[:2]) / 2
    assert figures[-1] > figures[0] + gain


def test_presets_save_and_show_what_they_learn_on_the_way():
    for module, *_ in SHORT.values():
        preset = module.PRESETS["draped"]
        assert preset["steps"] >= 2 * preset["evaluate_every"] and preset["evaluate_every"] % preset["save_every"] == 0
        assert not preset.get("pack") and preset.get("perceptual", 0) == 0  # nothing to download


def test_a_step_is_timed_without_leaving_anything(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = matching.MatchingRecipe(**{**matching.PRESETS["draped"], "batch": 1, "precision": "no"})
    found = timing(matching.MatchingTask, recipe, 2)
    assert found["seconds_per_step"] > 0 and found["parameters"] > 100_000 and found["memory_mb"] > 100
    assert list(tmp_path.iterdir()) == []
