"""The length of the sleeves on a predicted segmentation, by the joints (not in the paper; can be switched off)."""

from __future__ import annotations

import numpy as np

from vton import labels
from vton.inputs.pose import along_arm
from vton.joints import LEFT_ARM, LEFT_HIP, LEFT_SHOULDER, RIGHT_ARM, RIGHT_HIP, RIGHT_SHOULDER, TRUNK, present
from vton.labels import UPPER

KINDS = ("none", "short", "long")
# Where the sleeve ends, along shoulder (0), elbow (1) and wrist (2).
ENDS = {"none": 0.0, "short": 0.8, "long": 2.0}
CUFF = 0.1  # how much further the cloth beside an arm is still its sleeve's
ARMHOLE = 0.12  # how far along it an arm is not looked at: there the cloth of a shoulder may end
REACH = 0.36  # half the width of a sleeve, as a share of the upper arm's length
# Half the width of a bare arm at shoulder, elbow and wrist, as shares of the upper arm's length.
BARE = (0.18, 0.15, 0.1)
BESIDE = 0.6  # how far from an arm's bones cloth on its outer side belongs to its sleeve
BONE_REACH = 0.1  # how far from its bones an arm is looked at to tell whether it is bare
LONG_LEAVES = 0.04  # share of an arm that stays skin under a long sleeve at most
MOST_BARE = 0.4  # share of the upper arm that cloth covers without sleeves at most
MOST_SHORT, LEAST_SHORT = 0.3, 0.25  # of the forearm at most, of the upper arm at least, under a short sleeve
# Class of the arm, then its shoulder, elbow and wrist in BODY_25.
JOINTS = dict(zip(labels.ARMS, (LEFT_ARM, RIGHT_ARM)))


def contradicting(segmentation: np.ndarray, keypoints: np.ndarray, kind: str) -> tuple[int, ...]:
    """The arms, as their classes, on which the predicted segmentation does not show sleeves of this kind.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; kind: "none", "short" or "long". An arm that
    is out of sight, or whose joints are missing, is none of them.
    """
    return tuple(arm for arm, shares in cloth_shares(segmentation, keypoints).items() if _differs(shares, kind))


def sleeve_kind(segmentation: np.ndarray, keypoints: np.ndarray) -> str:
    """The kind of sleeves that both arms of a segmentation show: "none", "short" or "long"; "" where they differ, end
    in between, or nothing is seen of the arms.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels.
    """
    arms = cloth_shares(segmentation, keypoints).values()
    fitting = [kind for kind in KINDS if not any(_differs(shares, kind) for shares in arms)]
    return fitting[0] if 0 < len(fitting) < len(KINDS) else ""


def cloth_shares(segmentation: np.ndarray, keypoints: np.ndarray) -> dict[int, tuple[float | None, ...]]:
    """Share of cloth on the whole arm, the upper arm and the forearm, measured beside the bones, by the arm's class.

    None where neither cloth nor skin is seen; an arm whose joints are missing is left out. segmentation: (H, W) 13
    classes; keypoints: (25, 3) in its pixels.
    """
    visible = present(keypoints)
    shares: dict[int, tuple[float | None, ...]] = {}
    for arm, joints in JOINTS.items():
        if not visible[list(joints)].all():
            continue
        place, distance = along_arm(keypoints, joints, segmentation.shape)
        cloth = (distance < BONE_REACH) & (segmentation == UPPER)
        skin = (distance < BONE_REACH) & (segmentation == arm)

        def share(first: float, last: float, place=place, cloth=cloth, skin=skin) -> float | None:
            part = (place > first) & (place < last)
            on, bare = (part & cloth).sum(), (part & skin).sum()
            return float(on / (on + bare)) if on + bare else None

        shares[arm] = share(ARMHOLE, 1.8), share(0.3, 0.75), share(1.15, 1.8)
    return shares


def _differs(shares: tuple[float | None, ...], kind: str) -> bool:
    """Whether these `cloth_shares` of an arm are not those of a sleeve of this kind."""
    whole, upper, lower = shares
    if kind == "long":
        return whole is not None and whole < 1 - LONG_LEAVES
    if kind == "none":
        return upper is not None and upper > MOST_BARE
    return (lower is not None and lower > MOST_SHORT) or (upper is not None and upper < LEAST_SHORT)


def set_length(
    segmentation: np.ndarray, keypoints: np.ndarray, kind: str, arms: tuple[int, ...] = labels.ARMS
) -> np.ndarray:
    """The predicted segmentation with sleeves of another kind; trunk, hands and everything else stay.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; kind: "none", "short" or "long"; arms: classes of
    the arms that change. An arm whose elbow or wrist is missing stays as it is. Raises ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Sleeves are {', '.join(KINDS)}; not '{kind}'.")
    out = np.array(segmentation, np.uint8)
    visible = present(keypoints)
    body = trunk(keypoints, visible, out.shape)
    for arm, joints in JOINTS.items():
        if arm not in arms or not visible[list(joints)].all():
            continue
        place, distance = along_arm(keypoints, joints, out.shape)
        outer = outwards(keypoints, joints, out.shape) > 0
        near = distance < np.where(outer, BESIDE, REACH)
        out[(segmentation == arm) & (place < ENDS[kind]) & (distance < REACH)] = UPPER
        beyond = (segmentation == UPPER) & (place >= ENDS[kind]) & near & ~body
        # Where the arm itself is bare, the cloth beside it is the trunk's, however the person stands.
        sleeve = place[beyond & (distance < BONE_REACH)]
        beyond &= place <= np.quantile(sleeve, 0.98) + CUFF if len(sleeve) else False
        # The old sleeve was wider than the arm in it: beside the arm there is nothing.
        out[beyond] = np.where(bare_arm(place, distance)[beyond], arm, 0)
    return out


def bare_arm(place: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Where the skin of an arm is, bool, as wide as arms are; both as `vton.inputs.pose.along_arm` gives them."""
    return distance < np.interp(place, (0, 1, 2), BARE)


def outwards(keypoints: np.ndarray, joints: tuple[int, ...], size: tuple[int, int]) -> np.ndarray:
    """(H, W) how far from the line of an upper arm's bone, in its lengths; above 0 on the side away from the body.

    keypoints: (25, 3) in pixels of a picture of `size`; joints: shoulder, elbow and wrist of the arm.
    """
    k = np.asarray(keypoints, np.float64)[:, :2]
    shoulder, elbow = k[joints[0]], k[joints[1]]
    other = k[LEFT_SHOULDER] + k[RIGHT_SHOULDER] - shoulder
    y, x = np.mgrid[: size[0], : size[1]]
    along = elbow - shoulder

    def side(dx, dy):
        return along[0] * dy - along[1] * dx

    return -side(x - shoulder[0], y - shoulder[1]) * np.sign(side(*(other - shoulder))) / max(float(along @ along), 1.0)


def trunk(keypoints: np.ndarray, there: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W) bool between the lines from shoulder to hip, hips moved as far apart as the shoulders are."""
    inside = np.zeros(size, bool)
    if not there[list(TRUNK)].all():
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
