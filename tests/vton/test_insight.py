"""What is measured of a finished try-on, with the shipped weights at the smallest size, and on pictures with known
answers.
"""

import dataclasses

import numpy as np
import pytest
import torch

from training.assets import examples_dir
from vton import TryOn, insight, labels
from vton.networks import warping
from vton.networks.alias import standardise

SIZE = (256, 192)


@pytest.fixture(scope="module")
def tryon():
    return TryOn.from_pretrained("tryon-lite", device="cpu")


@pytest.fixture(scope="module")
def result(tryon):
    folder = examples_dir()
    return tryon.run(folder / "person-1.png", folder / "garment-stripes.png", size=SIZE)


def test_a_difference_is_measured_inside_its_region():
    a = np.full((32, 24, 3), 100, np.uint8)
    b, region, misaligned = a.copy(), np.zeros((32, 24), bool), np.zeros((32, 24), bool)
    b[:8] = 130
    region[:16] = True
    found = insight.difference(a, b, region, misaligned)
    assert found.mean == 15 and found.change_share == 0.5 and found.map[0, 0] == 30 and found.map[20, 0] == 0
    assert np.isnan(found.misalignment) and found.visible and found.ssim < 1
    assert not insight.difference(a, a, region, misaligned).visible
    with pytest.raises(ValueError, match="one size"):
        insight.difference(a, b[:8], region, misaligned)


def test_alias_levels_are_what_the_generator_computes(tryon, result):
    levels = insight.alias_levels(tryon, result)
    assert [level.block for level in levels] == tryon.alias.block_names
    assert levels[-1].size == SIZE and levels[0].size == (SIZE[0] // tryon.alias.stride, SIZE[1] // tryon.alias.stride)
    for level in levels:
        assert (level.mask is not None) == getattr(tryon.alias, level.block).masked
        assert level.gamma.shape == level.beta.shape == level.before.shape == level.after.shape == level.size
        assert (level.before >= 0).all() and np.isfinite(level.after).all()
    # No hook stays behind.
    assert not any(module._forward_hooks for module in tryon.alias.modules())
    h = torch.randn(1, 3, 8, 8)
    assert torch.allclose(insight._rms(standardise(h, None)).square().mean(), torch.tensor(1.0), atol=0.01)


def test_the_doubt_belongs_to_the_predicted_segmentation(tryon, result):
    published = tryon.resume(result, "segmentation", sleeves="predicted", neckline="predicted", hem="predicted")
    probabilities, entropy = insight.segmentation_doubt(tryon, published)
    np.testing.assert_allclose(probabilities.sum(0), 1, atol=1e-5)
    assert entropy.min() >= 0 and entropy.max() <= np.log2(13) + 1e-5
    # Where the network is sure, the map is its likeliest class.
    sure = probabilities.max(0) > 0.99
    assert (probabilities.argmax(0)[sure] == published.segmentation[sure]).mean() > 0.99
    assert not tryon.segmentation._forward_hooks


def test_the_fit_is_the_one_of_the_record(tryon, result):
    result = tryon.by_spline(result)
    steps, shown = insight.fit_steps(tryon, result)
    assert min(step.loss for step in steps) < steps[0].loss
    np.testing.assert_array_equal(steps[0].theta[0].numpy(), result.theta)
    points = [warping.control_grid(5) + step.theta.reshape(2, -1).T for step in steps]
    assert any(np.allclose(p.numpy(), result.control_points, atol=1e-6) for p in points)
    assert [number for number, _, _ in shown] == list(insight.VIEW_STEPS)
    first = steps[0]
    assert first.loss == pytest.approx(first.misfit + first.bending + first.keep + first.fold + first.uneven, rel=1e-5)
    assert any(step.uneven for step in steps)
    bald = dataclasses.replace(
        result, segmentation=np.where(result.segmentation == labels.HAIR, 0, result.segmentation)
    )
    plain = dataclasses.replace(bald, options=dataclasses.replace(bald.options, neckline="predicted"))
    assert not any(step.uneven for step in insight.fit_steps(tryon, plain)[0])  # neither hair nor the garment's neck


def test_the_grid_stays_square_without_a_warp(result):
    points = warping.control_grid(5).numpy() / 0.9
    identity = dataclasses.replace(result, flow=None, control_points=points, warped_cloth=result.cloth)
    flat, bent = insight.grid_on_garment(identity, lines=8)
    lines = [(picture == (31, 111, 235)).all(-1) for picture in (flat, bent)]
    assert lines[0].any() and (lines[0] == lines[1]).mean() > 0.93


def test_the_worn_garment_is_put_on_again_and_compared_with_the_photograph(tryon, result):
    found = insight.compare_paired(tryon, result)
    assert found.garment.shape == (*SIZE, 4) and found.result.shape == found.truth.shape == (*SIZE, 3)
    assert 0.5 < found.ssim < 1 and found.distance > 0
    with pytest.raises(ValueError, match="no upper garment"):
        insight.own_garment(dataclasses.replace(result, parse=np.zeros(SIZE, np.uint8)))
