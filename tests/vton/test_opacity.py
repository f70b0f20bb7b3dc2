"""Soft outlines out of label maps, against shapes whose outline is known exactly."""

import cv2
import numpy as np
import pytest

from vton.rules import opacity

Y, X = np.mgrid[:256, :192].astype(np.float64)
SHAPES = {
    "steep": lambda x, y: (90 + 0.1 * y - x) / np.hypot(1, 0.1),
    "slanting": lambda x, y: (20 + 0.6 * y - x) / np.hypot(1, 0.6),
    "disc": lambda x, y: 60 - np.hypot(x - 90.3, y - 120.7),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_outline_lies_where_the_shape_was_and_not_on_the_steps_of_its_map(name):
    true = SHAPES[name](X, Y)
    near = (np.abs(true) < 1) & (X > 8) & (X < 183) & (Y > 8) & (Y < 247)
    steps = np.abs(np.where(true > 0, 0.5, -0.5) - true)[near].mean()  # what a map cut at one half tells
    error = np.abs(opacity.distance(true > 0) - true)[near]
    assert error.mean() < 0.21 and error.mean() < 0.75 * steps, (error.mean(), steps)


@pytest.mark.parametrize("scale", (0.5, 1.3, 4))
def test_a_pixel_that_the_outline_crosses_gets_the_share_that_lies_inside(scale):
    size = round(256 * scale), round(192 * scale)
    y, x = ((np.mgrid[: size[0], : size[1]] + 0.5) / scale) - 0.5
    true = np.clip(SHAPES["disc"](x, y) * scale / opacity.SOFT + 0.5, 0, 1)
    found = opacity.opacity(SHAPES["disc"](X, Y) > 0, size)
    cut = cv2.resize((SHAPES["disc"](X, Y) > 0).astype(np.uint8), size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)
    band = (true > 0) & (true < 1)
    assert np.abs(found - true)[band].mean() < min(0.25 * scale + 0.02, 0.5 * np.abs(cut - true)[band].mean() + 0.05)
    assert np.abs(found - true)[~band].mean() < 2e-3 and found.min() == 0 and found.max() == 1


def test_an_outline_can_be_moved_outwards():
    mask = SHAPES["disc"](X, Y) > 0
    plain, wider = (opacity.opacity(mask, mask.shape, outwards=o).sum() for o in (0, 2))
    assert wider - plain == pytest.approx(np.pi * (62**2 - 60**2), rel=0.1)


def test_all_and_nothing_have_no_outline():
    for mask in (np.ones((20, 15), bool), np.zeros((20, 15), bool)):
        np.testing.assert_array_equal(opacity.opacity(mask, (40, 30)), np.full((40, 30), float(mask[0, 0])))
