"""The rules on a predicted segmentation, sleeves and trunk, in their order (not in the paper; each can be switched
off).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import cv2
import numpy as np

from vton import labels
from vton.attributes import certain_groups
from vton.inputs.reading import Attribute
from vton.joints import HIPS, SHOULDERS, TRUNK, present
from vton.labels import UPPER
from vton.rules.neckline import bare_throat
from vton.rules.sleeves import KINDS, contradicting, set_length, trunk

SMALL = 0.2  # of the largest piece of trousers and legs, or of arms, below which another piece counts as small
HOLE, MOSTLY = 0.003, 0.8  # of the picture, the largest hole that is closed; of it, what no wall was seen through
BELOW = 0.15  # how far below the hips a hem may be, as a share of the trunk's length


def without_gaps(segmentation: np.ndarray, keypoints: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the garment where background would be seen through the trunk; a copy.

    removed: (H, W) bool, where the old garment was: what else is background there, a bag for example, stays. A network
    that has seen few people leaves slits between the garment's hem and the trousers.
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
    return changed


def without_holes(segmentation: np.ndarray, person: np.ndarray) -> np.ndarray:
    """The predicted segmentation (H, W) with small holes in the person closed through which no wall was seen: where
    the old garment or an arm was, as `person` (H, W) bool says, they take the class of most of what is around them.
    """
    changed = np.array(segmentation, np.uint8)
    count, holes, stats, _ = cv2.connectedComponentsWithStats((changed == labels.BACKGROUND).astype(np.uint8), None, 4)
    for hole in np.flatnonzero(stats[1:, cv2.CC_STAT_AREA] < HOLE * changed.size) + 1:
        inside = holes == hole
        around = changed[(cv2.dilate(inside.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0) & ~inside]
        if person[inside].mean() > MOSTLY and np.isin(around, (UPPER, *labels.ARMS, *labels.BELOW)).all():
            changed[inside] = np.bincount(around).argmax()
    return changed


def without_islands(segmentation: np.ndarray) -> np.ndarray:
    """The predicted segmentation (H, W) without pieces that nobody wears: trousers or legs with nothing but cloth
    around them, and small pieces of arms, become cloth; cloth that hangs together neither with the rest of it, nor
    with an arm or hair that may hide how it does, becomes what is around it, and so does a small piece of trousers or
    leg with nothing but wall around it. A copy.
    """
    changed = np.array(segmentation, np.uint8)
    hiding = (labels.HAIR, labels.FACE, *labels.ARMS)
    for part in (labels.BELOW, labels.ARMS, (UPPER,)):
        count, pieces, stats, _ = cv2.connectedComponentsWithStats(np.isin(changed, part).astype(np.uint8), None, 4)
        largest = stats[1:, cv2.CC_STAT_AREA].max(initial=0)
        for piece in range(1, count):
            island, area = pieces == piece, stats[piece, cv2.CC_STAT_AREA]
            rim = changed[(cv2.dilate(island.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0) & ~island]
            others = np.bincount(rim, minlength=len(labels.SEGMENTATION))
            small = area < SMALL * largest
            alone = area < largest and part == (UPPER,) and not others[list(hiding)].any()
            hanging = small and part == labels.BELOW and (rim == labels.BACKGROUND).all()
            inside = (part == labels.BELOW or small and part == labels.ARMS) and (rim == UPPER).all()
            if len(rim) and (alone or hanging or inside):
                changed[island] = others.argmax()
    return changed


# The rules by name, in their order.
RULES = ("sleeves", "gaps", "holes", "throat")


def apply_rules(
    segmentation: np.ndarray,
    keypoints: np.ndarray,
    attributes: Mapping[str, Attribute],
    sleeves: str = "auto",
    neckline: str = "auto",
    hem: str = "auto",
    removed: np.ndarray | None = None,
    person: np.ndarray | None = None,
    without: Collection[str] = (),
) -> tuple[np.ndarray, str]:
    """The predicted segmentation after the rules, and the sleeves that were given to arms which showed others ("" =
    none).

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; attributes: what was read of the garment, see
    `Garment.attributes`; what is not known or not certain leaves its part to the network; sleeves: "auto", "predicted"
    (no rule), "none", "short" or "long"; neckline: "auto" bares the throat, unless the garment has a high collar or a
    hood, and "bare" in any case; hem: any but "predicted" closes gaps above the trousers; "predicted" (either)
    leaves it to the network; removed: (H, W) bool, where the old garment was; None: no gap is closed; person:
    (H, W) bool, where garment or arms were; None: no hole is closed; without: names out of
    RULES that are left out.
    """
    changed_to, read = "", certain_groups(attributes)
    kind = read.get("sleeves", "") if sleeves == "auto" else sleeves
    if sleeves in KINDS:
        segmentation = set_length(segmentation, keypoints, sleeves)
    elif kind in KINDS and "sleeves" not in without:
        arms = contradicting(segmentation, keypoints, kind)
        if arms:
            segmentation, changed_to = set_length(segmentation, keypoints, kind, arms), kind
    if hem != "predicted" and removed is not None and "gaps" not in without:
        segmentation = without_islands(without_gaps(segmentation, keypoints, removed))
    if hem != "predicted" and person is not None and "holes" not in without:
        segmentation = without_holes(segmentation, person)
    closed = "neckline" in attributes and attributes["neckline"].value == "high"
    if (neckline == "bare" or (neckline == "auto" and not closed)) and "throat" not in without:
        segmentation = bare_throat(segmentation, keypoints)
    return segmentation, changed_to
