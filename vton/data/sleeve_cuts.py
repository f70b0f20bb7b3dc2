"""Draped garments with their sleeves cut shorter or off, flat and worn alike: elbow and three-quarter sleeves, tops and
straps are rare among those that were simulated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vton.attributes import decode, with_group
from vton.data.pairs import WHITE
from vton.inputs.pose import along_arm
from vton.joints import LEFT_ARM, RIGHT_ARM, present
from vton.labels import ARMS, BACKGROUND, UPPER
from vton.rules.sleeves import BARE, trunk

FIRST = 0.3  # where a cut sleeve ends at the soonest, along shoulder (0), elbow (1) and wrist (2)
LEAST = 0.12  # how much is cut off at least, in the same unit
FEWEST = 40  # pixels of a sleeve from which its direction in the flat garment can be told
STEP = 0.05  # by how much the trunk's side moves out from one row to the next at an armpit, as a share of the width
# Ends up to which a cut sleeve is short, and from which on it is long, in the same unit; none in between.
SHORT_TO, LONG_FROM = 1.0, 1.75
SLEEVELESS, INSET = 0.35, 0.45  # share of the garments that lose their sleeves whole; see `flat_sleeves`
BEHIND = 0.5  # from where on an arm, in the unit of FIRST, the trunk's cloth may lie behind a sleeve
MISREAD = 0.4  # share of the sleeves in between that a reader is taken to have called short or long


def with_cut_sleeves(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A sample of a draped person (`vton.data.samples.Sampler`) whose sleeves end higher, or are cut off with some of
    the shoulders; as it is where they cannot be cut, because an arm or a sleeve is not seen.

    Changes cloth, cloth_mask, segmentation and attributes; the photograph still shows the whole sleeves.
    """
    sleeveless, keypoints = rng.random() < SLEEVELESS, sample["keypoints"]
    flat = flat_sleeves(sample["cloth_mask"][0], rng.uniform(0, INSET) if sleeveless else 0.0)
    if flat is None or not present(keypoints)[[*LEFT_ARM, *RIGHT_ARM]].all():
        return sample
    rows, columns = flat_places(sample["grid"])
    upper = sample["placed"][0] & (sample["segmentation"] == UPPER)
    # The sleeve at the left of the flat garment goes onto the arm at the left of a frontal picture, the right one.
    sides = zip(ARMS, (LEFT_ARM, RIGHT_ARM), flat)
    arms = [
        (arm, *along_arm(keypoints, joints, upper.shape), own, upper & own[rows, columns]) for arm, joints, own in sides
    ]
    if min(worn.sum() for *_, worn in arms) < FEWEST:
        return sample
    last = min(float(np.quantile(place[worn], 0.98)) for _, place, _, _, worn in arms) - LEAST
    if last <= FIRST and not sleeveless:
        return sample
    end = -np.inf if sleeveless else rng.uniform(FIRST, last)
    off, segmentation = np.zeros(upper.shape, bool), sample["segmentation"].copy()
    y, x = np.mgrid[: upper.shape[0], : upper.shape[1]]
    body = trunk(keypoints, present(keypoints), upper.shape)
    for arm, place, distance, own, worn in arms:
        known = np.stack([columns[worn], rows[worn], np.ones(worn.sum())], 1)
        a, b, c = np.linalg.lstsq(known, place[worn], rcond=None)[0]  # the place along the arm, linear in the sleeve
        off |= own & (a * x + b * y + c > end)
        bare = worn & off[rows, columns]
        skin = distance[bare] < np.interp(place[bare], (0, 1, 2), BARE)
        behind = np.where(body & (place > BEHIND), UPPER, BACKGROUND)
        segmentation[bare] = np.where(skin, arm, behind[bare])
    group = "none" if sleeveless else length_read(end, decode(sample["attributes"], "sleeves"), rng)
    return sample | {
        "cloth": np.where(off[..., None], np.uint8(WHITE), sample["cloth"]),
        "cloth_mask": sample["cloth_mask"] & ~off[None],
        "segmentation": segmentation,
        "attributes": with_group(sample["attributes"], "sleeves", group),
    }


def flat_sleeves(mask: np.ndarray, inset: float = 0.0) -> tuple[np.ndarray, np.ndarray] | None:
    """The sleeves of a flat garment (H, W) bool, that at the picture's right first; None where no armpits are seen.

    Seen from the hem upwards, the trunk's side suddenly moves out where the sleeve begins.
    inset: by how much of half the trunk's width the shoulders belong to the sleeves, too, as an armhole's curve.
    """
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return None
    middle = int(round(float(np.flatnonzero(mask.any(0))[[0, -1]].mean())))
    start, numbers = int(rows[0] + 0.75 * len(rows)), np.arange(len(mask))
    whole = np.zeros_like(mask), np.zeros_like(mask)
    for out, to_side in zip(whole, (np.s_[:, middle:], np.s_[:, middle::-1])):
        side = mask[to_side]
        edge = np.where(side.all(1), side.shape[1], (~side).argmax(1))  # where the trunk ends, counted from the middle
        steps = edge[rows[0] : start] - edge[rows[0] + 1 : start + 1]
        jumps = np.flatnonzero(steps > STEP * mask.shape[1])
        if not len(jumps) or not edge[rows[0] + len(rows) // 4 : start + 1].all():
            return None
        armpit = rows[0] + int(jumps[-1])
        above = ((armpit - numbers) / max(1, armpit - rows[0])).clip(0, 1)
        limit = np.where(numbers <= armpit, edge[armpit + 1] * (1 - inset * np.sqrt(above)), edge)
        out[to_side] = side & (np.arange(side.shape[1]) >= limit[:, None])
    return whole


def flat_places(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and column (H, W) of the flat garment's pixel that each pixel of the worn one shows; grid as in `Sampler`."""
    height, width = grid.shape[:2]
    columns = np.round((grid[..., 0] + 1) * width / 2 - 0.5).astype(int).clip(0, width - 1)
    rows = np.round((grid[..., 1] + 1) * height / 2 - 0.5).astype(int).clip(0, height - 1)
    return rows, columns


def length_read(end: float, before: str, rng: np.random.Generator) -> str:
    """The group of sleeves that end there, see `vton.attributes`: as a reader calls them, who at times is wrong."""
    if end <= SHORT_TO:
        return "short"
    if end >= LONG_FROM:
        return before
    return str(rng.choice(["short", "long"])) if rng.random() < MISREAD else ""
