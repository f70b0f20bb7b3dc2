"""The flow warper: its conventions, its cascade, its recipe."""

import dataclasses

import pytest
import torch
from torch.nn import functional as F

from vton import evaluate
from vton.evaluate import WARPS, evaluate_warps
from vton.networks.config import LITE, FlowConfig
from vton.networks.flow import FlowWarper, flow_grid, identity_grid, match_flow, roughness
from vton.networks.warping import warp
from vton.pipeline import TryOn
from vton.recipes import flow
from vton.recipes.registry import NETWORKS, RIVALS

SMALL = FlowConfig(size=(32, 32), width=4, features=8, levels=3)


def test_a_flow_of_zero_is_the_identity():
    picture = torch.rand(2, 3, 20, 12)
    torch.testing.assert_close(warp(picture, flow_grid(torch.zeros(2, 2, 20, 12))), picture, atol=1e-5, rtol=0)
    assert identity_grid((20, 12)).abs().max() < 1


def test_a_flow_of_one_pixel_moves_the_picture_by_one_pixel():
    picture, flow_map = torch.rand(1, 3, 16, 8), torch.zeros(1, 2, 16, 8)
    flow_map[:, 0] = 2 / 8  # x: one pixel of eight in a picture that spans [-1, 1]
    torch.testing.assert_close(warp(picture, flow_grid(flow_map))[..., :-1], picture[..., 1:], atol=1e-5, rtol=0)


def test_each_level_refines_the_coarser_one():
    torch.manual_seed(0)
    network = FlowWarper(SMALL).eval()
    person, cloth = torch.rand(1, 7, 32, 32), torch.rand(1, 4, 32, 32)
    flows = network(person, cloth)
    assert [tuple(f.shape[2:]) for f in flows] == [(4, 4), (8, 8), (16, 16), (32, 32)]
    assert not any(f.any() for f in flows)  # an untrained network leaves the cloth where it is
    with torch.no_grad():
        network.steps[0][-1].bias.fill_(0.25)
    flows = network(person, cloth)
    assert all(torch.allclose(f, torch.full_like(f, 0.25)) for f in flows)  # what the coarsest says goes through


def test_roughness_is_zero_for_affine_flows_and_counts_pixels():
    ys, xs = torch.meshgrid(torch.arange(12.0), torch.arange(10.0), indexing="ij")
    least = 1e-6**0.45
    affine = torch.stack((0.01 * xs - 0.02 * ys, 0.03 * xs))[None]
    assert float(roughness(affine)) == pytest.approx(least, rel=0.05)
    bent = torch.stack((0.01 * xs.square(), torch.zeros_like(xs)))[None]
    assert float(roughness(bent)) > 10 * least
    large = F.interpolate(bent, (24, 20), mode="bilinear")
    assert (
        float(roughness(large)) < float(roughness(bent)) * 1.2
    )  # twice the pixels, a quarter of the bend each, times two


def test_the_grid_comes_at_the_size_of_the_inputs():
    network = FlowWarper(SMALL).eval()
    maps = [torch.rand(1, n, 64, 48) for n in (1, 3, 3, 3, 1)]
    grid = match_flow(network, *maps)
    torch.testing.assert_close(grid, identity_grid((64, 48)).expand_as(grid))


def test_the_recipe_lays_one_garment_where_it_is_worn(tmp_path):
    torch.manual_seed(0)
    fields = {"steps": 40, "batch": 1, "height": 64, "pictures_wide": 48, "levels": 3, "validation": 2}
    task = flow.FlowTask(flow.FlowRecipe(**{**flow.PRESETS["drawn"], **fields}))
    batch, losses = task.batch(1, 0, 0, 1), []
    optimizer = task.optimizers["model"]
    for group in optimizer.param_groups:
        group["lr"] = 4e-3
    for _ in range(40):
        terms = task.terms(batch)
        losses.append(float(terms["mask"].detach()))
        optimizer.zero_grad()
        sum(task.weights[name] * value for name, value in terms.items()).backward()
        optimizer.step()
    assert set(terms) == {"l1", "mask", "smooth"} and losses[-1] < 0.7 * losses[0]
    with torch.no_grad():
        figures = task.evaluate()
        task.sample(tmp_path, 1)
    assert set(figures) == {"warped_iou", "ssim", "l1", "folded"} and 0 <= figures["folded"] <= 1
    assert (tmp_path / "warp.png").is_file()


def test_the_warps_stand_beside_each_other(monkeypatch):
    monkeypatch.setattr(evaluate, "perceptual_distance", lambda parser: ("distance", lambda a, b: 0.5))
    flow_warper = FlowWarper(LITE.flow).eval()
    tryon = TryOn.from_pretrained("tryon-lite", device="cpu")
    report = evaluate_warps(tryon, flow_warper, None, count=1)
    assert report["drawn"]["pairs"] == 1 and set(report["drawn"]) == {"pairs", *WARPS, "flow"}
    assert report["drawn"]["flow"]["folded"] == 0  # an untrained one leaves the cloth as it is
    assert report["drawn"]["spline 5x5, fitted"]["mask_iou"] > report["drawn"]["flow"]["mask_iou"]


def test_it_is_a_rival_and_no_part_of_a_try_on():
    assert "flow" in RIVALS and "flow" not in NETWORKS
    assert flow.network_config(flow.FlowRecipe()) == LITE.flow
    assert dataclasses.asdict(flow.network_config(flow.FlowRecipe(**flow.PRESETS["paper"]))) == dataclasses.asdict(
        FlowConfig()
    )
