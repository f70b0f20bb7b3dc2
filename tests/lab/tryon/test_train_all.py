"""The five networks in turn: shares, resuming, and what must not be needed."""

import subprocess
import sys

import pytest

from lab.tryon import train_all
from lab.tryon.train_all import main
from training.run import Run
from vton.pipeline import TryOn
from vton.recipes import alias
from vton.registry import NETWORKS

BLOCKED = (
    "mediapipe",
    "gradio",
    "torchmetrics",
    "torchvision",
    "transformers",
    "scipy",
    "sentencepiece",
)


@pytest.mark.slow
def test_training_needs_few_packages():
    """Every recipe is imported in a fresh interpreter in which other packages cannot be."""
    program = f"""
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import lab.tryon.train_all
from vton.registry import NETWORKS
for network in lab.tryon.train_all.SHARES:
    known = NETWORKS[network]
    task, recipe, presets = known.task, known.recipe, known.presets
    print(network, *task(recipe(**presets["draped"])).batch(1, 0, 0, 1))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(train_all.SHARES)


@pytest.fixture
def quick(monkeypatch):
    """Recipes of one or two tiny updates; the clock is the test's."""
    monkeypatch.setattr(
        train_all, "timing", lambda *_, **__: {"seconds_per_step": 0.9 * 60 * 2, "evaluation_seconds": 0.0}
    )
    for network in NETWORKS:
        module = NETWORKS[network].recipes
        small = {"batch": 1, "save_every": 1, "log_every": 1, "evaluate_every": 100, "validation": 1, "precision": "no"}
        monkeypatch.setitem(module.PRESETS, "draped", {**module.PRESETS["draped"], **small})


def updates(folder):
    return {network: [e["step"] for e in Run(folder / network).events() if e["event"] == "log"] for network in NETWORKS}


@pytest.mark.slow
def test_stopped_in_the_middle_the_same_command_goes_on(tmp_path, quick, capsys, monkeypatch):
    command = ["--budget", "20", "--run", str(tmp_path), "--preset", "draped"]
    task = NETWORKS["segmentation"].task
    with monkeypatch.context() as patch:  # somebody stops the second network after its first update
        patch.setattr(task, "count", lambda self, batch: (tmp_path / "segmentation" / "STOP").touch() or 1)
        assert main(command) == 0
    assert "stopped in segmentation; the same command goes on" in capsys.readouterr().out
    assert updates(tmp_path) == {"parser": [1, 2], "segmentation": [1], "matching": [], "alias": [], "garment": []}
    assert main(command) == 0
    assert "parser: done" in capsys.readouterr().out
    assert updates(tmp_path) == {
        "parser": [1, 2],
        "segmentation": [1, 2],
        "matching": [1],
        "alias": [1, 2, 3],
        "garment": [1],
    }


def test_the_plan_leaves_time_for_evaluations(tmp_path, monkeypatch):
    """100 updates of one second and six evaluations of ten, of which the plan knows, fill the share."""
    task, recipe = NETWORKS["segmentation"].task, NETWORKS["segmentation"].recipe
    monkeypatch.setattr(train_all, "timing", lambda *_, **__: {"seconds_per_step": 1.0, "evaluation_seconds": 10.0})
    minutes = (100 + 6 * 10) / 60 / train_all.TRAINING
    assert train_all.steps_for(Run(tmp_path), task, recipe(evaluate_every=25), minutes) == 100
    assert train_all.steps_for(Run(tmp_path), task, recipe(evaluate_every=0), minutes) == 160


@pytest.mark.slow
def test_all_networks_are_trained_and_exported(tmp_path, quick, monkeypatch, capsys):
    command = ["--budget", "10", "--run", str(tmp_path), "--preset", "draped", "--seed", "3"]
    assert main(command) == 0
    assert updates(tmp_path) == {"parser": [1], "segmentation": [1], "matching": [1], "alias": [1], "garment": [1]}
    recipe = Run(tmp_path / "alias").recipe()
    assert (recipe["max_minutes"], recipe["steps"], recipe["seed"]) == (3.0, 1, 3)
    tryon = TryOn.from_pretrained(tmp_path / "weights", device="cpu")
    assert tryon.alias.config.width == alias.PRESETS["draped"]["width"]
    capsys.readouterr()
    assert main(command) == 0  # nothing is left to do
    assert capsys.readouterr().out.count(": done") == 5
    command[1] = "20"  # twice the time: twice the updates
    assert main(command) == 0
    assert updates(tmp_path) == {
        "parser": [1, 2],
        "segmentation": [1, 2],
        "matching": [1, 2],
        "alias": [1, 2],
        "garment": [1, 2],
    }


def test_without_vgg_the_parser_serves(monkeypatch, tmp_path):
    def refuse(name):
        raise ValueError("no connection")

    monkeypatch.setattr(alias, "feature_network", refuse)
    assert train_all.perceptual_features(tmp_path) == str(tmp_path)
    monkeypatch.setattr(alias, "feature_network", lambda name: None)
    assert train_all.perceptual_features(tmp_path) == "vgg19"


def test_mistakes_are_one_sentence(tmp_path, capsys):
    assert main(["--budget", "1", "--run", str(tmp_path), "--pack", str(tmp_path / "none.npz")]) == 2
    assert capsys.readouterr().err == "error: There is no packed file 'none.npz'; make one with python -m vton.data.\n"
    assert main(["--budget", "0", "--run", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: argument --budget: it has to be more than 0, but is 0\n"
    assert not list(tmp_path.iterdir())
