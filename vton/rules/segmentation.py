"""The rules on a predicted segmentation, sleeves and trunk, in their order (not in the paper; each can be switched
off).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import cv2
import numpy as np

from vton import labels
from vton.attributes import known
from vton.inputs.reading import Attribute
from vton.joints import HIPS, SHOULDERS, TRUNK, present
from vton.labels import UPPER
from vton.rules.neckline import bare_throat
from vton.rules.sleeves import KINDS, contradicting, set_length, trunk

BELOW = 0.15  # how far below the hips a hem may be, as a share of the trunk's length


def without_gaps(segmentation: np.ndarray, keypoints: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the garment where background would be seen through the trunk; a copy.

    removed: (H, W) bool, where the old garment was: what else is background there, a bag for example, stays. A network
        that
    has seen few people leaves slits between the garment's hem and the trousers.
    """
    changed = np.array(segmentation, np.uint8)
    found = present(keypoints)
    if not found[list(TRUNK)].all():
        return changed
    k = np.asarray(keypoints, np.float64)[:, :2]
    y = np.mgrid[: changed.shape[0], : changed.shape[1]][0]
    top, hips = k[list(SHOULDERS), 1].max(), k[list(HIPS), 1].max()
    inside = trunk(keypoints, found, changed.shape) & (y > top) & (y < hips + BELOW * (hips - top))
    changed[inside & removed & (changed == 0)] = UPPER
    return without_islands(changed)


def without_islands(segmentation: np.ndarray) -> np.ndarray:
    """The predicted segmentation with cloth where trousers or legs would be seen with nothing but cloth around them."""
    below = np.isin(segmentation, labels.BELOW).astype(np.uint8)
    count, parts = cv2.connectedComponents(below, connectivity=4)
    for part in range(1, count):
        island = parts == part
        rim = (cv2.dilate(island.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0) & ~island
        if (segmentation[rim] == UPPER).all():
            segmentation[island] = UPPER
    return segmentation


# The rules by name, in their order.
RULES = ("sleeves", "gaps", "throat")


def apply_rules(
    segmentation: np.ndarray,
    keypoints: np.ndarray,
    attributes: Mapping[str, Attribute],
    sleeves: str = "auto",
    neckline: str = "auto",
    hem: str = "auto",
    removed: np.ndarray | None = None,
    without: Collection[str] = (),
) -> tuple[np.ndarray, str]:
    """The predicted segmentation after the rules, and the sleeves that were given to arms which showed others ("" =
    none).

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; attributes: what was read of the garment, see
    `Garment.attributes`; what is not known or not certain leaves its part to the network; sleeves: "auto", "predicted"
    (no rule), "none", "short" or "long"; neckline: "auto" bares the throat, unless the garment has a high collar or a
    hood, and "bare" in any case; hem: "auto" closes gaps above the trousers; "predicted" (either) leaves it to
    the network; removed: (H, W) bool, where the old garment was; None: no gap is closed; without: names out of
    RULES that are left out.
    """
    changed_to, read = "", known(attributes)
    kind = read.get("sleeves", "") if sleeves == "auto" else sleeves
    if sleeves in KINDS:
        segmentation = set_length(segmentation, keypoints, sleeves)
    elif kind in KINDS and "sleeves" not in without:
        arms = contradicting(segmentation, keypoints, kind)
        if arms:
            segmentation, changed_to = set_length(segmentation, keypoints, kind, arms), kind
    if hem == "auto" and removed is not None and "gaps" not in without:
        segmentation = without_gaps(segmentation, keypoints, removed)
    closed = "neckline" in attributes and attributes["neckline"].value == "high"
    if (neckline == "bare" or (neckline == "auto" and not closed)) and "throat" not in without:
        segmentation = bare_throat(segmentation, keypoints)
    return segmentation, changed_to
