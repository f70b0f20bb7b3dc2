"""The neck opening on a predicted segmentation (not in the paper; it can be switched off).

A garment that lies flat shows the inside of its back collar, which disappears behind the neck when it is worn. A
network that has seen few worn necklines takes it for cloth before the throat. Where the reader has separated that
inside from the cloth, the opening has the garment's own shape, carried by the warp; where a person asks for a bare
throat it is an ellipse on the joints.
"""

from __future__ import annotations

import numpy as np

from vton.joints import SHOULDERS, present
from vton.labels import UPPER

# The opening of a round neckline, an ellipse in widths between the shoulder joints: half its width, half its height,
# and its centre above the middle of the shoulders. Its lower end lies in the pit of the neck.
HALF_WIDTH, HALF_HEIGHT, ABOVE = 0.21, 0.27, 0.26
DEEP = 0.45  # by how much a deep neckline is cut lower than a round one
WIDE = 0.38  # half the width of the widest neckline
TO_JOINTS = 0.5  # half the distance of the joints: straps lie as far out
# How far skin stands above a shoulder joint, and how it rises from there to the neck; cloth stands higher, see
# `vton.data.pairs`.
SHOULDER, SLOPE = 0.1, 0.45
ENDS = 0.55  # how far from the middle a neckline may end


def _shoulders(keypoints: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Right and left shoulder joint (2,) of keypoints (25, 3); None unless both are there."""
    if not present(keypoints)[list(SHOULDERS)].all():
        return None
    right, left = (np.asarray(keypoints[j][:2], np.float64) for j in SHOULDERS)
    return right, left


def _across(right: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, float]:
    """The unit vector (2,) from the right shoulder to the left one, and their distance in pixels, 1 or more."""
    unit = max(float(np.linalg.norm(left - right)), 1.0)
    return (left - right) / unit, unit


def opening(
    keypoints: np.ndarray, size: tuple[int, int], lower: float = 0.0, half_width: float = HALF_WIDTH
) -> np.ndarray:
    """(H, W) bool, the throat and what a round neckline leaves bare; all False without both shoulders.

    keypoints: (25, 3) in pixels of a picture of `size`.
    lower: by how much the neckline is cut lower, in widths between the shoulder joints.
    half_width: half the opening's width, in the same unit.
    """
    shoulders = _shoulders(keypoints)
    if shoulders is None:
        return np.zeros(size, bool)
    right, left = shoulders
    across, unit = _across(right, left)
    down = np.array([-across[1], across[0]])
    y, x = np.mgrid[: size[0], : size[1]]
    centre = (right + left) / 2 - (ABOVE - lower / 2) * unit * down
    u = ((x - centre[0]) * across[0] + (y - centre[1]) * across[1]) / (half_width * unit)
    v = ((x - centre[0]) * down[0] + (y - centre[1]) * down[1]) / ((HALF_HEIGHT + lower / 2) * unit)
    return u**2 + v**2 <= 1


def around_neck(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W) bool, where the border between a garment and neck or chest may run: the throat, and below the shoulders as
    far as wide and deep necklines reach. keypoints: (25, 3) in pixels of a picture of `size`.
    """
    if _shoulders(keypoints) is None:
        return np.zeros(size, bool)
    below = ~above_shoulders(keypoints, size)
    return opening(keypoints, size, DEEP) | opening(keypoints, size, DEEP, WIDE) & below


def above_shoulders(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W) bool, what lies above the line through the joints of the shoulders; all False without both.

    keypoints: (25, 3) in pixels of a picture of `size`.
    """
    shoulders = _shoulders(keypoints)
    if shoulders is None:
        return np.zeros(size, bool)
    (x0, y0), (x1, y1) = shoulders
    y, x = np.mgrid[: size[0], : size[1]]
    return y <= y0 + (x - x0) * (y1 - y0) / (x1 - x0 if abs(x1 - x0) > 1 else 1.0)


def on_shoulders(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W) bool, the slopes from the neck to the shoulders as skin shows them, above the line between the joints; all
    False without both shoulders. keypoints: (25, 3) in pixels of a picture of `size`.
    """
    shoulders = _shoulders(keypoints)
    if shoulders is None:
        return np.zeros(size, bool)
    right, left = shoulders
    across, unit = _across(right, left)
    y, x = np.mgrid[: size[0], : size[1]]
    along = ((x - right[0]) * across[0] + (y - right[1]) * across[1]) / unit
    height = ((x - right[0]) * across[1] - (y - right[1]) * across[0]) / unit
    inwards = np.minimum(along, 1 - along)
    return (inwards > 0) & (height >= 0) & (height < SHOULDER + SLOPE * inwards)


def neck_border(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """(H, W) bool, where the border between garment and neck or chest may run on a predicted segmentation (H, W) of 13
    classes: `around_neck`, and from there down to the cloth where it opens deeper. keypoints: (25, 3) in its pixels.
    """
    near = around_neck(keypoints, segmentation.shape)
    lower = np.logical_or.accumulate(near) & ~near
    from_cloth_down = np.logical_or.accumulate(lower & (segmentation == UPPER))
    return near | (lower & ~from_cloth_down & from_cloth_down[-1])


def with_whole_neck(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """(H, W) bool, the garment's region with all of the throat and the chest that it might cover, so that it tells
    nothing of the neckline.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels. Face, hair and arms stay out.
    """
    upper = segmentation == UPPER
    return upper | (neck_border(segmentation, keypoints) & (segmentation == 0))


def follow_warp(segmentation: np.ndarray, keypoints: np.ndarray, warped_mask: np.ndarray) -> np.ndarray:
    """The predicted segmentation with cloth around the neck where the warped garment is, and nowhere else; a copy.

    On the slope from neck to shoulder cloth is only added outside of the neckline's ends: a network that opens a neck
    wider than the garment would leave notches there, and lose straps, which are narrower than it can draw.

    segmentation: (H, W) 13 classes. keypoints: (25, 3) in its pixels.
    warped_mask: (H, W) bool, of a garment without the inside of its back. Face, hair and arms stay.
    """
    out = np.array(segmentation, np.uint8)
    free = neck_border(out, keypoints) & ((out == UPPER) | (out == 0))
    out[free] = np.where(warped_mask[free], UPPER, 0)
    slope = opening(keypoints, out.shape, DEEP, TO_JOINTS)
    out[slope & (out == 0) & warped_mask] = UPPER
    out[above_neckline(warped_mask, keypoints) & (out == UPPER)] = 0
    return out


def above_neckline(garment: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """(H, W) bool, the throat above a garment's upper edge between the two ends of its neckline, where that is highest
    on either side of the neck; all False without both shoulders, or without cloth on either side.

    garment: (H, W) bool, as it is worn. keypoints: (25, 3) in its pixels.
    """
    above = np.zeros(garment.shape, bool)
    shoulders = _shoulders(keypoints)
    if shoulders is None:
        return above
    (x0, y0), (x1, y1) = shoulders
    middle, half = (x0 + x1) / 2, ENDS * abs(x1 - x0)
    highest = (y0 + y1) / 2 - (ABOVE + HALF_HEIGHT) * float(np.hypot(x1 - x0, y1 - y0))  # not up to raised arms
    edge = np.where(garment.any(0), garment.argmax(0), garment.shape[0])
    columns = np.arange(max(0, round(middle - half)), min(garment.shape[1], round(middle + half) + 1))
    sides = columns[columns < middle][::-1], columns[columns > middle]  # from the neck outwards
    if not all(len(side) and garment[:, side].any() for side in sides):
        return above
    left, right = (side[edge[side].argmin()] for side in sides)
    rows = np.arange(garment.shape[0])[:, None]
    above[:, left : right + 1] = (rows >= highest) & (rows < edge[left : right + 1])
    return above


def bare_throat(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the garment cut out at the neck; everything else stays.

    segmentation: (H, W) 13 classes, in which the neck is background; keypoints: (25, 3) in its pixels. A copy.
    """
    out = np.array(segmentation, np.uint8)
    out[opening(keypoints, out.shape) & (out == UPPER)] = 0
    return out
