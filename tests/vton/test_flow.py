"""The flow warper: its conventions, its cascade, its recipe."""

import dataclasses
import io

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lab.tryon import evaluate
from training.assets import examples_dir
from vton import TryOn, insight, record
from vton.networks.config import LITE, FlowConfig
from vton.networks.flow import FlowWarper, flow_grid, identity_grid, match_flow, roughness
from vton.networks.warping import warp
from vton.recipes import flow
from vton.registry import NETWORKS, RIVALS, network_of_task
from vton.stages import NO_FLOW
from vton.warps import WARPS, figures_of, grid_of

SIZE = (256, 192)
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
    grid = flow_grid(match_flow(network, *maps), (64, 48))
    torch.testing.assert_close(grid, identity_grid((64, 48)).expand_as(grid))


def test_the_recipe_lays_one_garment_where_it_is_worn(tmp_path):
    torch.manual_seed(0)
    fields = {"steps": 40, "batch": 1, "height": 64, "pictures_wide": 48, "levels": 3, "validation": 2}
    task = flow.FlowTask(flow.FlowRecipe(**{**flow.PRESETS["draped"], **fields}))
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
    assert set(terms) == {"l1", "mask", "smooth", "place"} and losses[-1] < 0.7 * losses[0]
    with torch.no_grad():
        figures = task.evaluate()
        task.sample(tmp_path, 1)
    assert set(figures) == {"warped_iou", "ssim", "l1", "folded", "misplaced"} and 0 <= figures["folded"] <= 1
    assert (tmp_path / "warp.png").is_file()


@pytest.mark.slow
def test_the_warps_stand_beside_each_other(monkeypatch):
    monkeypatch.setattr(evaluate, "perceptual_distance", lambda parser: ("distance", lambda a, b: 0.5))
    tryon = TryOn.from_pretrained("tryon-lite", device="cpu")
    tryon.flow = FlowWarper(LITE.flow).eval()
    report = evaluate.evaluate_warps(tryon, None, count=1)
    assert report["draped"]["pairs"] == 1 and set(report["draped"]) == {"pairs", *WARPS, "flow"}
    assert report["draped"]["flow"]["folded"] == 0  # an untrained one leaves the cloth as it is
    assert report["draped"]["spline 5x5, fitted"]["iou"] > report["draped"]["flow"]["iou"]


def test_a_try_on_can_do_without_it():
    assert "flow" in RIVALS and "flow" not in NETWORKS and network_of_task("FlowTask") == "flow"
    assert flow.network_config(flow.FlowRecipe(**flow.PRESETS["lite-cpu"])) == LITE.flow
    assert dataclasses.asdict(flow.network_config(flow.FlowRecipe(**flow.PRESETS["paper"]))) == dataclasses.asdict(
        FlowConfig()
    )


# -- the option `warp` of a try-on ------------------------------------------------------------------------------------


def shifting(dx: float) -> FlowWarper:
    """A flow warper whose answer is `dx` across, everywhere."""
    network = FlowWarper(SMALL).eval()
    with torch.no_grad():
        network.steps[0][-1].bias[0] = dx
    return network


@pytest.fixture(scope="module")
def tryon():
    made = TryOn.from_pretrained("tryon-lite", device="cpu")
    made.flow = shifting(0.25)
    return made


@pytest.fixture(scope="module")
def result(tryon):
    folder = examples_dir()
    return tryon.run(folder / "person-1.png", folder / "garment-stripes.png", size=SIZE, warp="flow")


def test_the_flow_warps_the_garment_of_a_try_on(tryon, result):
    assert result.flow.shape == (32, 32, 2) and result.theta is None and result.control_points is None
    across = round(0.25 / 2 * SIZE[1])  # the garment moves to the left
    np.testing.assert_array_equal(result.warped_mask[:, :-across], result.cloth_mask[:, across:])
    shift = np.abs(result.warped_cloth[:, :-across].astype(int) - result.cloth[:, across:])
    assert shift.max() <= 1  # by whole pixels; a rounding apart
    assert result.misaligned_share > 0 and result.result.shape == result.photo.shape


def test_the_detail_of_the_photograph_goes_through_the_flow_too(tryon, result):
    """The last stage reads the garment's colours through the record's own warp."""
    grid = grid_of(result, (64, 48), smooth=True)
    torch.testing.assert_close(grid, identity_grid((64, 48)) + torch.tensor([0.25, 0]), atol=1e-6, rtol=0)
    spline = tryon.resume(result, "warp", warp="spline", until="warp")
    assert spline.flow is None and spline.theta.shape == (50,)
    apart = grid_of(spline, SIZE, smooth=True) - grid_of(spline, SIZE)
    assert 0 < apart.abs().max() < 0.02


def test_a_spline_again_is_what_a_run_by_the_spline_gives(tryon, result):
    folder = examples_dir()
    again = tryon.resume(result, "warp", warp="spline")
    whole = tryon.run(folder / "person-1.png", folder / "garment-stripes.png", size=SIZE, warp="spline")
    np.testing.assert_array_equal(again.control_points, whole.control_points)
    np.testing.assert_array_equal(again.result, whole.result)


def test_a_saved_record_of_the_flow_comes_back(tryon, result):
    buffer = io.BytesIO()
    record.save(result, buffer)
    back = record.load(buffer.getvalue())
    assert back.options.warp == "flow" and back.theta is None
    np.testing.assert_array_equal(back.flow, result.flow)
    np.testing.assert_array_equal(tryon.resume(back, "composite").result, result.result)


def test_what_belongs_to_the_spline_is_shown_by_the_spline(tryon, result):
    spline = tryon.by_spline(result)
    assert spline.options.warp == "spline" and spline.flow is None and tryon.by_spline(spline) is spline
    moved = spline.control_points + np.float32(0.05)
    corrected = tryon.correct(result, "control_points", moved, until="misalignment")
    assert corrected.options.warp == "spline" and corrected.flow is None
    np.testing.assert_array_equal(corrected.control_points, moved)
    assert result.flow is not None  # the record itself stays
    steps, views = insight.fit_steps(tryon, result)
    np.testing.assert_array_equal(views[-1][2], tryon.resume(spline, "warp", until="warp").warped_mask)
    assert steps[0].loss > steps[-1].loss
    assert all(picture.shape == (*SIZE, 3) for picture in insight.grid_on_garment(result))


def test_networks_without_a_flow_say_so_before_any_stage(result, monkeypatch):
    tryon = TryOn.from_pretrained("tryon-lite", device="cpu")
    monkeypatch.setattr(tryon, "flow", None)
    seen = []
    folder = examples_dir()
    for call in (
        lambda: tryon.run(folder / "person-1.png", folder / "garment-stripes.png", warp="flow", on_stage=seen.append),
        lambda: tryon.resume(result, "segmentation", on_stage=seen.append),
        lambda: insight.warp_by_name(tryon, result, "flow"),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == NO_FLOW and not seen
    assert tryon.resume(result, "synthesis", until="synthesis").synthesis is not None  # the warp is there already


@pytest.mark.slow
def test_every_warp_of_figure_13_is_measured(tryon, result):
    found = {name: insight.warp_by_name(tryon, result, name) for name in (*WARPS, "flow")}
    np.testing.assert_array_equal(found["flow"].mask, result.warped_mask)
    assert found["flow"].figures.coverage == pytest.approx(1 - result.misaligned_share, abs=1e-6)
    assert found["spline 10x10"].figures.iou > found["spline 5x5"].figures.iou  # it is fitted to that region
    assert all(one.seconds > 0 and one.cloth.shape == (*SIZE, 3) for one in found.values())


def test_the_figures_of_a_warp():
    region = np.zeros((8, 6), bool)
    region[2:6] = True
    mask = np.zeros((8, 6), bool)
    mask[4:8] = True
    grid = identity_grid((8, 6))
    assert figures_of(grid, mask, region) == (1 / 3, 0.5, 0)
    assert figures_of(grid.flip(2), mask, region).folds == 1  # mirrored
    assert np.isnan(figures_of(grid, np.zeros_like(mask), region).folds)


def test_the_shipped_flow_fills_the_region_that_was_predicted():
    shipped, folder = TryOn.from_pretrained("tryon-lite", device="cpu"), examples_dir()
    assert shipped.flow is not None
    own = shipped.run(folder / "person-1.png", folder / "garment-stripes.png", size=SIZE, until="warp")
    found, spline = (insight.warp_by_name(shipped, own, name).figures for name in ("flow", "spline 5x5"))
    assert found.coverage > 0.9 and found.iou > max(0.9, spline.iou) and found.folds < 0.02
