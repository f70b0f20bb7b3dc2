"""The fit of the control points: it arrives at the region, and neither starts nor ends in folds."""

import pytest
import torch

from vton.metrics import coverage, mask_iou
from vton.networks.warping import derivatives, jacobian, sampling_grid, warp
from vton.rules.fit import FitExceptions, fit_control_points

SIZE = (256, 192)


def block(rows, columns):
    mask = torch.zeros(1, 1, *SIZE)
    mask[..., rows, columns] = 1
    return mask


CLOTH, REGION = block(slice(70, 180), slice(50, 140)), block(slice(90, 220), slice(60, 165))


def warped(theta):
    grid = sampling_grid(theta, SIZE)
    return warp(CLOTH, grid, "zeros")[0, 0].numpy() > 0.5, jacobian(grid)[0]


# The offsets of a corner, far from the cloth, with which the grid turns over there: nothing, a little, more than the
# fit can mend.
@pytest.mark.parametrize("corner", [0.0, 0.8, 2.5])
def test_a_fold_in_a_corner_does_not_keep_the_cloth_from_the_region(corner):
    theta = torch.zeros(1, 50)
    theta[0, :2] = corner
    before, turned = warped(theta)
    assert bool((turned <= 0).any()) == (corner > 0) and mask_iou(before, REGION[0, 0].numpy() > 0) < 0.6
    after, volume = warped(fit_control_points(theta, CLOTH, REGION))
    region = REGION[0, 0].numpy() > 0
    assert mask_iou(after, region) > 0.8 and coverage(after, region) > 0.93
    assert (volume[torch.from_numpy(after[:-1, :-1])] > 0).all()
    assert (volume > 0).all() or corner > 1


def test_what_fits_stays_and_the_input_is_not_changed():
    theta = torch.zeros(1, 50)
    fitted = fit_control_points(theta, REGION, REGION)
    after = warp(REGION, sampling_grid(fitted, SIZE), "zeros")[0, 0].numpy() > 0.5
    assert mask_iou(after, REGION[0, 0].numpy() > 0) > 0.95 and not theta.any()


def test_where_the_fit_does_not_look_the_masks_may_differ():
    ignored = torch.zeros(1, 1, *SIZE)
    ignored[..., :120, :] = 1
    cut = CLOTH.clone()
    cut[..., :100, 80:110] = 0  # a neck opening that the region knows nothing of
    plain, open_, blind = (
        fit_control_points(torch.zeros(1, 50), mask, CLOTH, exceptions=where)
        for mask, where in ((CLOTH, None), (cut, None), (cut, FitExceptions(ignored, 0 * ignored)))
    )
    moved = [float((theta - plain).abs().max()) for theta in (open_, blind)]
    assert moved[1] < 0.5 * moved[0]


def test_what_the_fit_does_not_look_at_is_stretched_as_its_surroundings():
    """Sloping shoulders squeeze what lies between them, unless it follows the chest below."""
    slopes = block(slice(90, 220), slice(60, 165))
    for row in range(90, 130):  # shoulders that fall off
        slopes[..., row, : 112 - 2 * (row - 80)] = 0
        slopes[..., row, 112 + 2 * (row - 80) :] = 0
    ignored = block(slice(70, 130), slice(85, 140))
    widths = {}
    for even in (0.0, 3.0):
        theta = fit_control_points(
            torch.zeros(1, 50), CLOTH, slopes, even=even, exceptions=FitExceptions(ignored, 0 * ignored)
        )
        across = derivatives(sampling_grid(theta, SIZE))[0, ..., 0, 0]
        widths[even] = float((across[80:120, 85:140].mean() - across[140:200, 85:140].mean()).abs())
    assert widths[3.0] < 0.6 * widths[0.0]


def test_a_neck_keeps_its_proportions_where_the_chest_is_squeezed():
    """A flat garment, wider than its wearer: beside the neck it is squeezed as the chest, in the neck less."""
    wide, narrow = block(slice(90, 220), slice(30, 195)), block(slice(90, 220), slice(67, 158))
    neck = block(slice(85, 130), slice(85, 140))
    apart = {}
    for name, exceptions in (
        ("hair", FitExceptions(neck, 0 * neck)),
        ("neck", FitExceptions(0 * neck, neck, open=True)),
    ):
        theta = fit_control_points(torch.zeros(1, 50), wide, narrow, exceptions=exceptions)
        stretch = derivatives(sampling_grid(theta, SIZE))[0, 90:125, 90:135].mean((0, 1))
        apart[name] = float(stretch[0, 0] - stretch[1, 1])
    assert apart["hair"] > 0.2 and apart["neck"] < 0.6 * apart["hair"]


def test_a_neck_that_is_known_is_looked_at():
    cut = CLOTH.clone()
    cut[..., :100, 80:110] = 0
    neck = block(slice(70, 120), slice(70, 130))
    found = {}
    for open_ in (True, False):
        theta = fit_control_points(
            torch.zeros(1, 50), cut, CLOTH, even=0.0, exceptions=FitExceptions(0 * neck, neck, open_)
        )
        found[open_] = float(theta.abs().max())
    assert found[False] > 1.2 * found[True]
