"""Draped garments with their sleeves cut shorter or off, flat and worn alike: elbow and three-quarter sleeves, tops and
straps are rare among those that were simulated.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from vton.attributes import decode, with_group
from vton.data.pairs import WHITE, largest
from vton.inputs.pose import along_arm
from vton.joints import LEFT_ARM, RIGHT_ARM, present
from vton.labels import ARMS, BACKGROUND, UPPER
from vton.rules.neckline import around_neck
from vton.rules.sleeves import BESIDE, bare_arm, outwards, trunk

SHORTEST_SLEEVE = 0.3  # where a cut sleeve ends at the soonest, along shoulder (0), elbow (1) and wrist (2)
MIN_CUT = 0.12  # how much is cut off at least, in the same unit
MIN_SLEEVE_PIXELS = 40  # pixels of a sleeve from which its direction in the flat garment can be told
MIN_ROWS = 8  # between shoulder and armpit of a garment that can be cut down to straps
STEP = 0.05  # by how much a sleeve stands out beside the trunk, and how deep its armpit is, in widths of the picture
# Within how many rows above the armpit it stands out, as a share of the garment's; a waist widens slowly.
ARMPIT_ROWS = 0.08
LOWEST_ARMPIT = 0.75  # of a garment, from its highest row to its lowest
# Ends up to which a cut sleeve is short, and from which on it is long, in the same unit; none in between.
SHORT_TO, LONG_FROM = 1.0, 1.75
SLEEVELESS_SHARE, INSET_SHARE = 0.35, 0.45  # share of the garments that lose their sleeves whole; see `flat_sleeves`
# Where cloth without a sleeve ends beside the line of the upper arm, in its lengths, below 0 towards the body.
# On 17 photographed people it covers 0.57 of the upper arm's first third, on simulated ones 0.90.
ARMHOLE = (-0.1, 0.04)
# From where on an arm, in the unit of SHORTEST_SLEEVE, the trunk's cloth may lie behind a sleeve.
CLOTH_BEHIND_FROM = 0.5
MISREAD_SHARE = 0.4  # share of the sleeves in between that a reader is taken to have called short or long


def with_cut_sleeves(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A sample of a draped person (`vton.data.samples.Sampler`) whose sleeves end higher, or are cut off with some of
    the shoulders; as it is where they cannot be cut, because an arm or a sleeve is not seen or hardly one would stay.

    Changes cloth, cloth_mask, segmentation and attributes; the photograph still shows the whole sleeves.
    """
    sleeveless, keypoints = rng.random() < SLEEVELESS_SHARE, sample["keypoints"]
    flat = flat_sleeves(sample["cloth_mask"][0], rng.uniform(0, INSET_SHARE) if sleeveless else 0.0)
    if flat is None or not present(keypoints)[[*LEFT_ARM, *RIGHT_ARM]].all():
        return sample
    rows, columns = flat_places(sample["grid"])
    upper = sample["placed"][0] & (sample["segmentation"] == UPPER)
    # The sleeve at the left of the flat garment goes onto the arm at the left of a frontal picture, the right one.
    sides = zip(ARMS, (LEFT_ARM, RIGHT_ARM), flat)
    arms = [
        (arm, *along_arm(keypoints, joints, upper.shape), own, upper & own[rows, columns]) for arm, joints, own in sides
    ]
    if min(worn.sum() for *_, worn in arms) < MIN_SLEEVE_PIXELS:
        return sample
    last = min(float(np.quantile(place[worn], 0.98)) for _, place, _, _, worn in arms) - MIN_CUT
    if last <= SHORTEST_SLEEVE and not sleeveless:
        return sample
    end = -np.inf if sleeveless else rng.uniform(SHORTEST_SLEEVE, last)
    off, segmentation = np.zeros(upper.shape, bool), sample["segmentation"].copy()
    y, x = np.mgrid[: upper.shape[0], : upper.shape[1]]
    body = trunk(keypoints, present(keypoints), upper.shape)
    for arm, place, distance, own, worn in arms:
        places = np.stack([columns[worn], rows[worn], np.ones(worn.sum())], 1)
        a, b, c = np.linalg.lstsq(places, place[worn], rcond=None)[0]  # the place along the arm, linear in the sleeve
        off |= own & (a * x + b * y + c > end)
        bare = worn & off[rows, columns]
        behind = np.where(body & (place > CLOTH_BEHIND_FROM), UPPER, BACKGROUND)
        segmentation[bare] = np.where(bare_arm(place, distance), arm, behind)[bare]
    group = "none" if sleeveless else reading_of(end, decode(sample["attributes"], "sleeves"), rng)
    return without_cloth(sample, off, segmentation, group)


def with_straps(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A sample of a draped person whose garment is cut down to a top on straps; as it is where an arm is not seen or
    the flat garment shows no armpits. Changes what `with_cut_sleeves` changes.
    """
    top, keypoints = flat_straps(sample["cloth_mask"][0], rng), sample["keypoints"]
    if top is None or not present(keypoints)[[*LEFT_ARM, *RIGHT_ARM]].all():
        return sample
    upper, on_flat = sample["segmentation"] == UPPER, sample["placed"][0]
    bare = upper & np.where(on_flat, ~top[flat_places(sample["grid"])], around_neck(keypoints, upper.shape))
    segmentation = np.where(bare, np.uint8(BACKGROUND), sample["segmentation"])
    body = trunk(keypoints, present(keypoints), upper.shape)
    for arm, joints in zip(ARMS, (LEFT_ARM, RIGHT_ARM)):
        place, distance = along_arm(keypoints, joints, upper.shape)
        skin = bare & (place > 0) & bare_arm(place, distance)
        segmentation[skin & ~(body & (place < CLOTH_BEHIND_FROM))] = arm
    return without_cloth(sample, ~top, segmentation, "none")


def with_armholes(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A sample of a draped person whose sleeveless garment ends at the shoulders, as worn ones do. Those that were
    simulated are wider than the shoulders and hang over them as caps. As it is where the flat garment shows sleeves.

    Changes segmentation alone.
    """
    keypoints, segmentation = sample["keypoints"], sample["segmentation"].copy()
    there, upper = present(keypoints), segmentation == UPPER
    if armpits(sample["cloth_mask"][0]) is not None:
        return sample
    body, end = trunk(keypoints, there, upper.shape), rng.uniform(*ARMHOLE)
    for arm, joints in zip(ARMS, (LEFT_ARM, RIGHT_ARM)):
        if there[list(joints)].all():
            place, distance = along_arm(keypoints, joints, upper.shape)
            cap = upper & (outwards(keypoints, joints, upper.shape) > end) & (place < 1) & (distance < BESIDE)
            cap &= ~(body & (place > CLOTH_BEHIND_FROM))
            segmentation[cap] = np.where(bare_arm(place, distance), arm, BACKGROUND)[cap]
    return sample | {"segmentation": segmentation}


def without_cloth(sample: dict[str, Any], off: np.ndarray, segmentation: np.ndarray, sleeves: str) -> dict[str, Any]:
    """A sample without a part of its flat garment. off: (H, W) bool, that part; segmentation: (H, W) 13 classes, what
    is then worn; sleeves: the group of its sleeves, see `vton.attributes`.
    """
    return sample | {
        "cloth": np.where(off[..., None], np.uint8(WHITE), sample["cloth"]),
        "cloth_mask": sample["cloth_mask"] & ~off[None],
        "segmentation": segmentation,
        "attributes": with_group(sample["attributes"], "sleeves", sleeves),
    }


def flat_straps(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """What is left of a flat garment (H, W) bool that is cut down to a top on two straps, drawn at random; None where
    no armpits are seen.
    """
    sides, sleeves = armpits(mask), flat_sleeves(mask)
    if sides is None or sleeves is None:
        return None
    first, armpit = first_row(mask), max(row for *_, row in sides)
    trunk_mask = mask & ~sleeves[0] & ~sleeves[1]
    columns_in = np.flatnonzero(trunk_mask[armpit])
    if not len(columns_in) or armpit - first < MIN_ROWS:
        return None
    rows, columns = np.mgrid[: mask.shape[0], : mask.shape[1]]
    half = (columns_in[-1] - columns_in[0]) / 2
    away = abs(columns - (columns_in[0] + columns_in[-1]) / 2) / half
    place, width = rng.uniform(0.42, 0.72), rng.uniform(0.025, 0.11)
    base = armpit - rng.uniform(0.1, 0.6) * (armpit - first)
    inner = base + rng.uniform(0, 0.7) * half * (1 - (away / place).clip(0, 1) ** rng.uniform(0.8, 4))
    outer = base + (armpit - base) * ((away - place) / (1 - place)).clip(0, 1) ** rng.uniform(0.5, 1)
    lean = place + rng.uniform(-0.15, 0.05) * ((base - rows) / (base - first)).clip(0, 1)
    strap = abs(away - lean) < width
    return largest(trunk_mask & ((rows > np.where(away < place, inner, outer)) | strap))


def flat_sleeves(mask: np.ndarray, inset: float = 0.0) -> tuple[np.ndarray, np.ndarray] | None:
    """The sleeves of a flat garment (H, W) bool, that at the picture's right first; None where no armpits are seen.

    inset: by how much of half the trunk's width the shoulders belong to the sleeves, too, as an armhole's curve.
    """
    sides = armpits(mask)
    if sides is None:
        return None
    whole, numbers, first = (np.zeros_like(mask), np.zeros_like(mask)), np.arange(len(mask)), first_row(mask)
    for out, (to_side, edge, armpit) in zip(whole, sides):
        above = ((armpit - numbers) / max(1, armpit - first)).clip(0, 1)
        limit = edge * (1 - inset * np.sqrt(above))
        side = mask[to_side]
        out[to_side] = side & (np.arange(side.shape[1]) >= limit[:, None])
    return whole


def armpits(mask: np.ndarray) -> list[tuple[tuple[slice, slice], np.ndarray, int]] | None:
    """Of each side of a flat garment (H, W) bool, that at the picture's right first: its columns counted from the
    middle, as an index; in which of them the trunk ends, (H,); and the row of its armpit. None where none are seen.

    An armpit is where the outline lies deepest inside its convex hull, below a sleeve that stands out beside it.
    """
    if not mask.any():
        return None
    first, rows = first_row(mask), int(mask.any(1).sum())
    middle, lowest = int(round(float(np.flatnonzero(mask.any(0))[[0, -1]].mean()))), int(first + LOWEST_ARMPIT * rows)
    out, hollows = [], hull_hollows(mask)
    for to_side, places in ((np.s_[:, middle:], hollows), (np.s_[:, middle::-1], hollows * (-1, 1, 1))):
        side = mask[to_side]
        edge = np.where(side.all(1), side.shape[1], (~side).argmax(1))
        start = middle if to_side[1].step is None else -middle
        at_side = places[(places[:, 0] > start) & (places[:, 1] <= lowest) & (places[:, 2] > STEP * mask.shape[1])]
        if not len(at_side) or not edge[first + rows // 4 : lowest + 1].all():
            return None
        armpit = int(at_side[at_side[:, 2].argmax(), 1]) - 1  # the last row of the sleeve
        trunk_edge = int(edge[armpit : armpit + 3].min())
        above = side[max(0, armpit - round(ARMPIT_ROWS * rows)) : armpit + 1]
        if not above[:, round(trunk_edge + STEP * mask.shape[1]) :].any():
            return None
        out.append((to_side, np.where(np.arange(len(edge)) < armpit + 3, trunk_edge, edge), armpit))
    return out


def hull_hollows(mask: np.ndarray) -> np.ndarray:
    """(N, 3) column, row and depth in pixels of where the largest outline of a mask (H, W) bool lies deepest inside its
    convex hull, once for each side of the hull that reaches further down than that; so not in a neckline.
    """
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(contours, key=cv2.contourArea)
    hull = np.sort(cv2.convexHull(outline, returnPoints=False), axis=0)  # out of order where an outline meets itself
    defects = cv2.convexityDefects(outline, hull) if len(hull) > 3 else None
    if defects is None:
        return np.zeros((0, 3))
    first, last, deepest, depth = defects[:, 0].T
    places = np.column_stack((outline[deepest, 0], depth / 256))
    return places[np.maximum(outline[first, 0, 1], outline[last, 0, 1]) > places[:, 1]]


def first_row(mask: np.ndarray) -> int:
    """The highest row of a mask (H, W) that is not empty."""
    return int(mask.any(1).argmax())


def flat_places(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and column (H, W) of the flat garment's pixel that each pixel of the worn one shows; grid as in `Sampler`."""
    height, width = grid.shape[:2]
    columns = np.round((grid[..., 0] + 1) * width / 2 - 0.5).astype(int).clip(0, width - 1)
    rows = np.round((grid[..., 1] + 1) * height / 2 - 0.5).astype(int).clip(0, height - 1)
    return rows, columns


def reading_of(end: float, before: str, rng: np.random.Generator) -> str:
    """The group of sleeves that end there, see `vton.attributes`: as a reader calls them, who at times is wrong."""
    if end <= SHORT_TO:
        return "short"
    if end >= LONG_FROM:
        return before
    return str(rng.choice(["short", "long"])) if rng.random() < MISREAD_SHARE else ""
