"""Numbers of 16 bits only where the hardware has them; Muon with and without."""

import pytest
import torch
from torch import nn

from training import devices, optimizers
from training.loop import _accelerator
from training.optimizers import Muon, muon_and_adam, orthogonal
from training.recipe import Recipe

SHAPES = [(5, 12), (4, 9), (9, 4)]


def set_bf16(monkeypatch, there):
    monkeypatch.setattr(optimizers, "has_bf16", lambda device: there)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("there", [True, False])
def test_orthogonal_has_all_singular_values_near_one(monkeypatch, shape, there):
    set_bf16(monkeypatch, there)
    given = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 7
    kept = given.clone()
    made = orthogonal(given)
    assert made.shape == shape and made.dtype == (torch.bfloat16 if there else torch.float32)
    assert torch.equal(given, kept), "the gradient's mean must stay as it was"
    values = torch.linalg.svdvals(made.float())
    assert values.min() > 0.6 and values.max() < 1.3
    u, _, v = torch.linalg.svd(given, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(made.float().flatten(), (u @ v).flatten(), dim=0) > 0.97


def moved(optimizer, weights):
    for step in range(4):
        for i, weight in enumerate(weights):
            weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(10 * step + i))
        optimizer.step()
    return weights


def made_weights():
    return [nn.Parameter(torch.ones(shape)) for shape in SHAPES]


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has Muon from 2.9 on")
def test_muon_moves_as_that_of_torch_does(monkeypatch):
    for there, near in ((True, 0.0), (False, 2e-2)):
        set_bf16(monkeypatch, there)
        ours, theirs = made_weights(), made_weights()
        mine, library = Muon(ours), torch.optim.Muon(theirs, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
        for optimizer in (mine, library):
            optimizer.param_groups[0]["lr"] = 0.1
        for a, b in zip(moved(mine, ours), moved(library, theirs), strict=True):
            assert not torch.equal(a, torch.ones_like(a))
            torch.testing.assert_close(a, b, rtol=0, atol=near)


def test_muon_steps_matrices_of_one_shape_together_as_alone(monkeypatch):
    set_bf16(monkeypatch, False)
    shapes = [(3, 3), (4, 6), (3, 3), (6, 4), (3, 3)]

    def together(matrices):
        return [[m for m in matrices if m.shape == shape] for shape in dict.fromkeys(m.shape for m in matrices)]

    alone, grouped = ([nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    for weights, group in ((alone, optimizers._group_by_shape), (grouped, together)):
        monkeypatch.setattr(optimizers, "_group_by_shape", group)
        mine = Muon(weights)
        mine.param_groups[0]["lr"] = 0.1
        moved(mine, weights)
    for a, b in zip(alone, grouped, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_muon_leaves_what_has_no_gradient():
    weight = nn.Parameter(torch.ones(3, 3))
    optimizer = Muon([weight])
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()
    assert torch.equal(weight, torch.ones(3, 3)) and not optimizer.state_dict()["state"]


def test_both_optimizers_start_at_rate_nought():
    made = muon_and_adam(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3)))
    assert [group["lr"] for optimizer in made.values() for group in optimizer.param_groups] == [0.0, 0.0]
    assert [tuple(p.shape) for p in made["matrices"].param_groups[0]["params"]] == [(3, 4)]


@pytest.mark.parametrize("there", [True, False])
def test_a_recipe_in_bf16_trains_in_fp32_where_the_processor_only_emulates_it(monkeypatch, there):
    asked = []
    monkeypatch.setattr("training.loop.has_bf16", lambda device: there)
    monkeypatch.setattr("accelerate.Accelerator", lambda **given: asked.append(given["mixed_precision"]))
    _accelerator(Recipe(precision="bf16"))
    _accelerator(Recipe(precision="no"))
    assert asked == ["bf16" if there else "no", "no"]


def test_other_devices_are_taken_at_their_word():
    assert devices.has_bf16("mps") is True
