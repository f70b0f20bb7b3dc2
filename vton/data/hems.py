"""Hems of training pairs: how one is worn, and S_a as a longer or shorter old garment would have left it.

S_a keeps the trousers up to the hem of the garment that is taken away. Where that is the very garment to be put on, as
in every pair of a photograph and its own garment, a network learns to read the hem there, and later gives a new garment
the old one's length.
"""

from __future__ import annotations

import cv2
import numpy as np

from vton.attributes import LOOSE, TUCKED
from vton.inputs.hem import above_bottom, hips_and_trunk
from vton.joints import HIPS
from vton.labels import BACKGROUND, BELOW, BOTTOM, UPPER

# How far below the joints of the hips the hem ends, as a share of the trunk's length: tucked in at most so far, worn
# loose at least so far. Waistbands lie above those joints. Between the two a picture does not tell.
TUCK_LIMIT, LOOSE_FROM = -0.12, 0.0
CENTRE_SHARE = 0.5  # how much of the distance between the hips is looked at, in the middle
# Standard deviation of the old hem around the true one, in lengths of the trunk; how many old garments are coats or
# dresses, and how much longer those are.
HEM_DEVIATION, LONG_SHARE, MUCH_LONGER = 0.25, 0.12, (0.3, 1.2)
# Size of each of three waves in the same unit; share of old garments that stand open.
WAVE_SIZE, OPEN_SHARE = 0.012, 0.3
# How many parses have gaps in the trousers near the hem (bags, hands, white cloth taken for the wall), how many gaps at
# most, and how wide these are in the same unit.
GAPS_SHARE, GAPS, GAP = 0.25, 3, (0.02, 0.12)
WAIST = 0.3  # how far above the joints of the hips trousers and skirts begin, in the same unit
TAPER = 0.08  # how much narrower on each side the trousers are than the cloth over them


def hem_of(segmentation: np.ndarray, keypoints: np.ndarray) -> str:
    """How the garment of a segmentation is worn: "loose", "tucked", or "" where that is not clear.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels. A hem counts only above trousers or a skirt: one
    that a bag, an arm or the picture's edge cuts off tells nothing.
    """
    place = hips_and_trunk(keypoints)
    if place is None:
        return ""
    hips, length = place
    across = np.asarray(keypoints, np.float64)[list(HIPS), 0]
    width = max(abs(across[0] - across[1]), 0.3 * length)
    first, last = np.clip(np.round(across.mean() + width * CENTRE_SHARE / 2 * np.array([-1, 1])), 0, None).astype(int)
    centre = segmentation[:, first : last + 1]
    if not centre.size:
        return ""
    cloth = centre == UPPER
    ends = len(centre) - 1 - cloth[::-1].argmax(0)
    below = centre[np.minimum(ends + 1, len(centre) - 1), np.arange(centre.shape[1])] == BOTTOM
    visible = cloth.any(0) & below
    if visible.mean() < 0.5:
        return ""
    reach = (np.median(ends[visible]) - hips) / length
    return TUCKED if reach <= TUCK_LIMIT else LOOSE if reach >= LOOSE_FROM else ""


def hem_noise(across: np.ndarray, half: float, rng: np.random.Generator) -> np.ndarray:
    """How far below a smooth hem a parse ends in each column, (W,) in lengths of the trunk, negative above it: waves,
    and at times an open jacket, between whose halves the trousers are seen further up.

    across: (W,) columns; half: half the hem's width in the same unit.
    """
    place = across / half
    waves = sum(rng.normal(0, WAVE_SIZE) * np.sin(rng.uniform(2, 25) * place + rng.uniform(0, 6.3)) for _ in range(3))
    if rng.random() >= OPEN_SHARE:
        return waves
    middle = rng.uniform(across[0], across[-1])
    slope = np.exp(rng.uniform(0, 1.6))  # 1 = the halves meet at the top
    opening = (slope * (1 - abs(across - middle) / (rng.uniform(0.05, 0.6) * half))).clip(0, 1)
    return waves - rng.uniform(0.05, 0.8) * opening


def near_hem(segmentation: np.ndarray, keypoints: np.ndarray, margin: float) -> np.ndarray:
    """(H, W) bool, what lies near the hem of a segmentation, where the labels of photographs are loose and ragged.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; margin: in lengths of the trunk, upwards and
    downwards; nothing without the joints of the trunk.
    """
    out, place = np.zeros(segmentation.shape, bool), hips_and_trunk(keypoints)
    if place is None:
        return out
    hips, length = place
    out[:-1] = (segmentation[:-1] == UPPER) & np.isin(segmentation[1:], (BACKGROUND, *BELOW))
    out &= np.arange(len(out))[:, None] > hips - WAIST * length
    reach = max(1, round(margin * length))
    return cv2.dilate(out.astype(np.uint8), np.ones((2 * reach + 1, 2 * (reach // 4) + 1), np.uint8)) > 0


def gaps(
    rows: np.ndarray, across: np.ndarray, hem: float, half: float, length: float, rng: np.random.Generator
) -> np.ndarray:
    """Where a parse has missed the trousers near the hem, (H, W) bool: ellipses, at times none.

    rows, across: (H, W) of each pixel; hem: row of the hem; half: half its width; length: of the trunk; in pixels.
    """
    out = np.zeros(rows.shape, bool)
    for _ in range(rng.integers(1, GAPS + 1) if rng.random() < GAPS_SHARE else 0):
        height, width = rng.uniform(*GAP, 2) * length
        place = (rows - hem - rng.uniform(-0.1, 0.35) * length) / height
        out |= place**2 + ((across - rng.uniform(-1, 1) * half) / width) ** 2 < 1
    return out


def span(columns: np.ndarray) -> tuple[float, float]:
    """The middle of the marked columns (W,) bool, and half the width that they span, in pixels."""
    first, last = np.flatnonzero(columns)[[0, -1]]
    return (first + last) / 2, (last - first) / 2 + 1


def bottom_below_hem(shape: tuple[int, int], columns: np.ndarray, hem: float, length: float) -> np.ndarray:
    """(H, W) bool, where trousers may go on under the cloth, narrower on both sides the further up.

    columns: (W,) bool, where they are seen below it; hem: the row at which it ends; length: of the trunk in pixels.
    """
    rows, across = np.mgrid[: shape[0], : shape[1]]
    middle, half = span(columns)
    return abs(across - middle) < half - TAPER * half * ((hem - rows) / (WAIST * length)).clip(0, 1)


def with_old_hem(
    agnostic: np.ndarray, segmentation: np.ndarray, keypoints: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """S_a (H, W) uint8 13 classes whose trousers or skirt begin at a hem drawn at random; as it is where the garment's
    hem is not seen above them.

    agnostic: (H, W) 13 classes; segmentation: (H, W) 13 classes, the truth; keypoints: (25, 3) in their pixels.
    """
    place = hips_and_trunk(keypoints)
    if place is None:
        return agnostic
    hips, length = place
    meeting = above_bottom(segmentation == UPPER, segmentation)
    columns = meeting.any(0)
    if columns.sum() < 0.15 * length:
        return agnostic
    rows, across = np.mgrid[: agnostic.shape[0], : agnostic.shape[1]]
    middle, half = span(columns)
    hem = np.median(meeting[:, columns].argmax(0))
    longer = rng.uniform(*MUCH_LONGER) if rng.random() < LONG_SHARE else rng.normal(0, HEM_DEVIATION)
    old = hem + longer * length
    old = old + rng.normal(0, 0.03 * length) * ((across - middle) / half) ** 2  # hems are curved
    old = np.maximum(old + length * hem_noise(across[0], half, rng), hips - WAIST * length)
    inside = bottom_below_hem(agnostic.shape, columns, hem, length)
    out = agnostic.copy()
    out[(agnostic == BOTTOM) & (rows < old)] = BACKGROUND
    out[(segmentation == UPPER) & (agnostic == BACKGROUND) & (rows >= old) & inside] = BOTTOM
    out[(out == BOTTOM) & gaps(rows, across - middle, np.median(old), half, length, rng)] = BACKGROUND
    return out
