"""Soft outlines: from a label map of one size to opacities at the photograph's own.

A label map cut at one half has steps of a whole pixel, which enlargement makes larger. What it was cut from was smooth:
its outline is taken for the smooth curve through the steps, and a pixel of the photograph that the curve crosses gets
the share that lies inside.
"""

from __future__ import annotations

import cv2
import numpy as np

# Standard deviation, in pixels of a map 512 high, of the blur that takes the steps off an outline. Steep lines come
# back to 0.08 pixels with 2, to 0.11 with 1.5, and to 0.05 with 3, which shrinks a disc of radius 8 by half a pixel.
STEPS = 2.0
FARTHEST = 8.0  # pixels of the map; larger distances are cut off there
SOFT = 1.5  # pixels of the photograph across which an outline goes from 0 to 1, about what a lens leaves


def distance(mask: np.ndarray) -> np.ndarray:
    """Signed distance of each pixel to the smooth outline of a mask, positive inside, within +- FARTHEST.

    mask: (H, W) bool. Returns (H, W) float32 in its pixels; +- FARTHEST everywhere for a mask that is all or nothing.
    """
    inside = np.asarray(mask, np.uint8)
    if inside.all() or not inside.any():
        return np.full(mask.shape, FARTHEST if inside.any() else -FARTHEST, np.float32)
    to_outside, to_inside = (
        cv2.distanceTransform(part, cv2.DIST_L2, cv2.DIST_MASK_PRECISE) for part in (inside, 1 - inside)
    )
    steps = np.where(inside > 0, to_outside - 0.5, 0.5 - to_inside).clip(-FARTHEST, FARTHEST)
    return cv2.GaussianBlur(steps.astype(np.float32), (0, 0), STEPS * max(1.0, len(mask) / 512))


def opacity(mask: np.ndarray, size: tuple[int, int], outwards: float = 0.0, soft: float = SOFT) -> np.ndarray:
    """Share of each pixel that lies inside the smooth outline of a mask.

    mask: (H, W) bool. size: (h, w) of the answer. outwards: by how many of its pixels the outline is moved outwards.
    soft: pixels from 0 to 1. Returns (h, w) float32 in [0, 1].
    """
    far = distance(mask) * (size[0] / mask.shape[0])
    shrinking = size[0] < mask.shape[0]
    far = cv2.resize(far, size[::-1], interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_CUBIC)
    return np.clip((far + outwards) / soft + 0.5, 0, 1)


def enlarge(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A picture (H, W, C) uint8 as float32 (h, w, C) of `size`, smooth, within [0, 255]."""
    if picture.shape[:2] == tuple(size):
        return picture.astype(np.float32)
    how = cv2.INTER_AREA if size[0] < picture.shape[0] else cv2.INTER_CUBIC
    return cv2.resize(picture.astype(np.float32), size[::-1], interpolation=how).clip(0, 255)
