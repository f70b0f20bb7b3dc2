"""The neck opening on a predicted segmentation: a rule on the joints (not in the paper; it can be switched off).

A garment that lies flat shows the inside of its back collar, which disappears behind the neck when it is worn. A
network that has seen few worn necklines takes it for cloth before the throat.
"""

from __future__ import annotations

import numpy as np

from vton.joints import SHOULDERS, present
from vton.labels import UPPER

# The opening of a round neckline, an ellipse in widths between the shoulder joints: half its width, half its height,
# and its centre above the middle of the shoulders. Its lower end lies in the pit of the neck.
HALF_WIDTH, HALF_HEIGHT, ABOVE = 0.21, 0.27, 0.26
DEEP = 0.45  # by how much a deep neckline is cut lower than a round one


def opening(keypoints: np.ndarray, size: tuple[int, int], lower: float = 0.0) -> np.ndarray:
    """(H, W) bool, the throat and what a round neckline leaves bare; all False without both shoulders.

    keypoints: (25, 3) in pixels of a picture of `size`; lower: by how much the neckline is cut lower, in widths between
    the shoulder joints.
    """
    if not present(keypoints)[list(SHOULDERS)].all():
        return np.zeros(size, bool)
    right, left = (np.asarray(keypoints[j][:2], np.float64) for j in SHOULDERS)
    across, unit = left - right, max(float(np.linalg.norm(left - right)), 1.0)
    across = across / unit
    down = np.array([-across[1], across[0]])
    y, x = np.mgrid[: size[0], : size[1]]
    centre = (right + left) / 2 - (ABOVE - lower / 2) * unit * down
    u = ((x - centre[0]) * across[0] + (y - centre[1]) * across[1]) / (HALF_WIDTH * unit)
    v = ((x - centre[0]) * down[0] + (y - centre[1]) * down[1]) / ((HALF_HEIGHT + lower / 2) * unit)
    return u**2 + v**2 <= 1


def bare_throat(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the garment cut out at the neck; everything else stays.

    segmentation: (H, W) 13 classes, in which the neck is background; keypoints: (25, 3) in its pixels. A copy.
    """
    changed = np.array(segmentation, np.uint8)
    changed[opening(keypoints, changed.shape) & (changed == UPPER)] = 0
    return changed
