"""The length of the sleeves on a predicted segmentation: a rule on the joints (not in the paper; it can be switched
off).
"""

from __future__ import annotations

import numpy as np

from vton import labels
from vton.inputs.pose import along_arm
from vton.joints import LEFT_ARM, LEFT_HIP, LEFT_SHOULDER, RIGHT_ARM, RIGHT_HIP, RIGHT_SHOULDER, TRUNK, present
from vton.labels import UPPER

KINDS = ("none", "short", "long")
# Where the sleeve ends, along shoulder (0), elbow (1) and wrist (2).
ENDS = {"none": 0.12, "short": 0.8, "long": 2.0}
REACH = 0.36  # half the width of a sleeve, as a share of the upper arm's length
LONG_LEAVES = 0.04  # share of an arm that stays skin under a long sleeve at most
MOST_BARE = 0.4  # share of the upper arm that cloth covers without sleeves at most
MOST_SHORT, LEAST_SHORT = 0.3, 0.25  # of the forearm at most, of the upper arm at least, under a short sleeve
# Class of the arm, then its shoulder, elbow and wrist in BODY_25.
JOINTS = dict(zip(labels.ARMS, (LEFT_ARM, RIGHT_ARM)))


def contradicting(segmentation: np.ndarray, keypoints: np.ndarray, kind: str) -> tuple[int, ...]:
    """The arms, as their classes, on which the predicted segmentation does not show sleeves of this kind.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; kind: "none", "short" or "long". An arm that
        nothing is
    seen of, or whose joints are missing, contradicts nobody.
    """
    found, wrong = present(keypoints), []
    for arm, joints in JOINTS.items():
        if not found[list(joints)].all():
            continue
        place, distance = along_arm(keypoints, joints, segmentation.shape)

        def cloth(first: float, last: float, place=place, near=distance < REACH, arm=arm) -> float | None:
            """Share of cloth along a part of the arm, None where neither cloth nor skin is seen."""
            part = near & (place > first) & (place < last)
            covered, bare = (part & (segmentation == UPPER)).sum(), (part & (segmentation == arm)).sum()
            return float(covered / (covered + bare)) if covered + bare else None

        whole, upper, lower = cloth(ENDS["none"], 1.8), cloth(0.3, 0.75), cloth(1.15, 1.8)
        if kind == "long":
            differs = whole is not None and whole < 1 - LONG_LEAVES
        elif kind == "none":
            differs = upper is not None and upper > MOST_BARE
        else:
            differs = (lower is not None and lower > MOST_SHORT) or (upper is not None and upper < LEAST_SHORT)
        wrong += [arm] if differs else []
    return tuple(wrong)


def set_length(
    segmentation: np.ndarray, keypoints: np.ndarray, kind: str, arms: tuple[int, ...] = labels.ARMS
) -> np.ndarray:
    """The predicted segmentation with sleeves of another kind; trunk, hands and everything else stay.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; kind: "none", "short" or "long"; arms: classes of
        the
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
    if not found[list(TRUNK)].all():
        return inside
    k = np.asarray(keypoints, np.float64)[:, :2]
    shoulders = k[RIGHT_SHOULDER], k[LEFT_SHOULDER]
    middle, half = (k[RIGHT_HIP] + k[LEFT_HIP]) / 2, (shoulders[1] - shoulders[0]) / 2 * 0.85
    right = shoulders[0] * 0.93 + shoulders[1] * 0.07, middle - half
    left = shoulders[1] * 0.93 + shoulders[0] * 0.07, middle + half
    y, x = np.mgrid[: size[0], : size[1]]

    def border(line):
        (x0, y0), (x1, y1) = line
        return x0 + (y - y0) * (x1 - x0) / max(y1 - y0, 1.0)

    return (x > border(right)) & (x < border(left))
