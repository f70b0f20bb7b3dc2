"""Weights and configurations that come as files are checked before anything is built of them."""

from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from training.weights import build, from_json, load_model, save_model


@dataclass(frozen=True)
class Sizes:
    width: int = 4
    share: float = 0.5
    layers: int = 1
    shape: tuple[int, ...] = (2, 3)
    name: str = "x"


def test_values_of_the_right_kind_are_taken():
    found = from_json(Sizes, {"width": 8, "share": 1, "shape": [4], "name": "y"})
    assert found == Sizes(8, 1, 1, (4,), "y")


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"wide": 3},
        {"width": "3"},
        {"width": True},
        {"width": 2.5},
        {"width": 10**9},
        {"layers": 10**6},
        {"share": float("nan")},
        {"shape": 4},
        {"shape": ["a"]},
        {"name": None},
    ],
)
def test_everything_else_is_one_sentence(values):
    with pytest.raises(ValueError, match="Sizes"):
        from_json(Sizes, values)


def test_nothing_is_built_of_weights_that_do_not_fit():
    made = []

    def make():
        made.append(torch.empty(0).device.type)
        return nn.Linear(3, 2)

    with pytest.raises(ValueError, match="shape"):
        build(make, {"weight": torch.zeros(5, 5), "bias": torch.zeros(2)}, "this layer")
    assert made == ["meta"]
    layer = build(make, {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, "this layer")
    assert layer.weight.sum() == 6 and layer.weight.device.type == "cpu"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(tmp_path, bad):
    save_model(tmp_path, {"a": 1}, {"w": torch.ones(2)})
    save_file({"w": torch.tensor([1.0, bad])}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="not finite"):
        load_model(tmp_path)
