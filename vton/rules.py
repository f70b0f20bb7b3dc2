"""The rules on a predicted segmentation, sleeves and trunk, in their order (not in the paper; each can be switched off)."""

from __future__ import annotations

import math

import cv2
import numpy as np

from vton import garment, labels
from vton.labels import UPPER
from vton.neckline import bare_throat, has_high_collar
from vton.photo import present
from vton.pose import along_arm
from vton.sleeves import JOINTS, KINDS, half_covered, set_length, trunk

CHOICES = ("auto", "predicted")  # of a rule: it is applied, or the network alone decides
BELOW = 0.15  # how far below the hips a hem may be, as a share of the trunk's length
TEETH = 0.08  # a hem's teeth and notches up to about this share of the trunk's length are taken off
BESIDE = 0.6  # how far from an arm's bones a strip of cloth belongs to it, as a share of the upper arm's length
BELOW_HEM = [labels.SEGMENTATION.index(name) for name in ("bottom", "left leg", "right leg")]


def without_gaps(segmentation: np.ndarray, keypoints: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the garment where background would be seen through the trunk; a copy.

    removed: (H, W) bool, where the old garment was: what else is background there, a bag for example, stays. A network that
    has seen few people leaves slits between the garment's hem and the trousers.
    """
    changed = np.array(segmentation, np.uint8)
    found = present(keypoints)
    if not found[[2, 5, 9, 12]].all():
        return changed
    k = np.asarray(keypoints, np.float64)[:, :2]
    y = np.mgrid[:changed.shape[0], :changed.shape[1]][0]
    top, hips = max(k[2, 1], k[5, 1]), max(k[9, 1], k[12, 1])
    inside = trunk(keypoints, found, changed.shape) & (y > top) & (y < hips + BELOW * (hips - top))
    changed[inside & removed & (changed == 0)] = UPPER
    return changed


def even_hem(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The predicted segmentation with a smooth border between the garment and what is below it; a copy.

    Only inside the trunk's width, from above the hips down: the outline against the background stays.
    """
    changed = np.array(segmentation, np.uint8)
    found = present(keypoints)
    if not found[[2, 5, 9, 12]].all():
        return changed
    k = np.asarray(keypoints, np.float64)[:, :2]
    top, hips = k[[2, 5], 1].mean(), k[[9, 12], 1].mean()
    if hips - top < 8:
        return changed
    y = np.mgrid[:changed.shape[0], :changed.shape[1]][0]
    near = trunk(keypoints, found, changed.shape) & (y > hips - 0.3 * (hips - top))
    if not near.any():
        return changed
    sigma = TEETH * (hips - top) / 2
    rows, columns = (slice(max(0, line[0] - math.ceil(5 * sigma)), line[-1] + math.ceil(5 * sigma))
                     for line in (np.flatnonzero(near.any(1)), np.flatnonzero(near.any(0))))  # all that the blur reaches
    part, near = changed[rows, columns], near[rows, columns]
    sides = np.stack([part == UPPER, *(part == below for below in BELOW_HEM)], -1)
    # Below the picture things go on as they end.
    smooth = cv2.GaussianBlur(sides.astype(np.float32), (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    chosen = np.array([UPPER, *BELOW_HEM], np.uint8)[smooth.argmax(-1)]
    part[near & sides.any(-1)] = chosen[near & sides.any(-1)]
    return changed


def without_slivers(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The predicted segmentation without strips of cloth along an arm that are too thin for a sleeve; a copy."""
    changed = np.array(segmentation, np.uint8)
    found = present(keypoints)
    near = np.zeros(changed.shape, bool)
    for joints in JOINTS.values():
        if found[list(joints)].all():
            near |= along_arm(keypoints, joints, changed.shape)[1] < BESIDE
    radius = max(1, round(changed.shape[1] / 96))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    cloth = (changed == UPPER).astype(np.uint8)
    thin = (cloth > cv2.morphologyEx(cloth, cv2.MORPH_OPEN, kernel)) & near & ~trunk(keypoints, found, changed.shape)
    changed[thin] = 0
    return changed


def corrected(segmentation: np.ndarray, keypoints: np.ndarray, cloth_mask: np.ndarray, outline: np.ndarray | None = None,
              sleeves: str = "auto", neckline: str = "auto", hem: str = "auto",
              removed: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """The predicted segmentation after the rules, and whether bare arms were covered because the outline shows long sleeves.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; cloth_mask: (H, W) the placed garment, above 0;
    outline: (h, w) the garment's mask at its own size, if it is finer; sleeves: "auto", "predicted" (no rule), "none",
    "short" or "long"; neckline: "auto" bares the throat, unless the garment has a high collar or a hood; hem: "auto" evens it
    and closes gaps above the trousers; "predicted" (either) leaves it to the network; removed: (H, W) bool, where the old
    garment was; None: no gap is closed.
    """
    covered = False
    if sleeves in KINDS:
        segmentation = set_length(segmentation, keypoints, sleeves)
    elif sleeves == "auto":
        arms = half_covered(segmentation, keypoints, garment.sleeves(cloth_mask if outline is None else outline))
        if arms:
            segmentation, covered = set_length(segmentation, keypoints, "long", arms), True
        segmentation = without_slivers(segmentation, keypoints)
    if hem == "auto":
        segmentation = segmentation if removed is None else without_gaps(segmentation, keypoints, removed)
        segmentation = even_hem(segmentation, keypoints)
    if neckline == "auto" and not has_high_collar(cloth_mask):
        segmentation = bare_throat(segmentation, keypoints)
    return segmentation, covered
