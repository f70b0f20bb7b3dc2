"""The length of the sleeves on a predicted segmentation: a rule on the joints (not in the paper; it can be switched off)."""

from __future__ import annotations

import numpy as np

from vton import labels
from vton.labels import UPPER
from vton.photo import present
from vton.pose import along_arm

KINDS = ("none", "short", "long")
# Where the sleeve ends, along shoulder (0), elbow (1) and wrist (2).
ENDS = {"none": 0.12, "short": 0.8, "long": 2.0}
REACH = 0.36  # half the width of a sleeve, as a share of the upper arm's length
# Shares of an arm that stay skin. A long sleeve leaves less than the first. A short one leaves more than the second (0.32
# to 0.61 on eight garments): what lies between is a long sleeve that was drawn badly.
LONG_LEAVES, SHORT_LEAVES = 0.04, 0.3
# Class of the arm, then its shoulder, elbow and wrist in BODY_25.
JOINTS = dict(zip(labels.ARMS, ((5, 6, 7), (2, 3, 4))))


def half_covered(segmentation: np.ndarray, keypoints: np.ndarray, outline: str) -> tuple[int, ...]:
    """The arms that a long sleeve ought to cover and the prediction leaves bare in part, as their classes.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; outline: the kind of sleeve that the garment's outline
    shows (`garment.sleeves`). With "long" every bare arm counts. "none" is also what long sleeves look like that lie close
    against the trunk: then arms count that are too much covered for a short sleeve.
    """
    found, shares = present(keypoints), {}
    for arm, joints in JOINTS.items():
        if not found[list(joints)].all():
            continue
        place, distance = along_arm(keypoints, joints, segmentation.shape)
        near = (distance < REACH) & (place > ENDS["none"]) & (place < 1.8)
        skin, cloth = (near & (segmentation == arm)).sum(), (near & (segmentation == UPPER)).sum()
        shares[arm] = float(skin / max(1, skin + cloth))
    # A garment's two sleeves are of one length: what one arm tells holds for the other.
    drawn_badly = any(LONG_LEAVES < share < SHORT_LEAVES for share in shares.values())
    if outline == "long" or (outline == "none" and drawn_badly and max(shares.values()) < 1.5 * SHORT_LEAVES):
        return tuple(arm for arm, share in shares.items() if share > LONG_LEAVES)
    return ()


def set_length(
    segmentation: np.ndarray, keypoints: np.ndarray, kind: str, arms: tuple[int, ...] = labels.ARMS
) -> np.ndarray:
    """The predicted segmentation with sleeves of another kind; trunk, hands and everything else stay.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; kind: "none", "short" or "long"; arms: classes of the
    arms that change. An arm whose elbow or wrist is missing stays as it is. Raises ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Sleeves are {', '.join(KINDS)}; not '{kind}'.")
    changed = np.array(segmentation, np.uint8)
    found = present(keypoints)
    body = trunk(keypoints, found, changed.shape)
    for arm, joints in JOINTS.items():
        if arm not in arms or not found[list(joints)].all():
            continue
        place, distance = along_arm(keypoints, joints, changed.shape)
        near = distance < REACH
        changed[(segmentation == arm) & (place < ENDS[kind]) & near] = UPPER
        changed[(segmentation == UPPER) & (place >= ENDS[kind]) & near & ~body] = arm
    return changed


def trunk(keypoints: np.ndarray, found: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W) bool between the lines from shoulder to hip, hips moved as far apart as the shoulders are."""
    inside = np.zeros(size, bool)
    if not found[[2, 5, 9, 12]].all():
        return inside
    k = np.asarray(keypoints, np.float64)[:, :2]
    middle, half = (k[9] + k[12]) / 2, (k[5] - k[2]) / 2 * 0.85
    right, left = (k[2] * 0.93 + k[5] * 0.07, middle - half), (k[5] * 0.93 + k[2] * 0.07, middle + half)
    y, x = np.mgrid[:size[0], :size[1]]

    def border(line):
        (x0, y0), (x1, y1) = line
        return x0 + (y - y0) * (x1 - x0) / max(y1 - y0, 1.0)

    return (x > border(right)) & (x < border(left))
