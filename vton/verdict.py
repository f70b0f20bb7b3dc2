"""How good a finished try-on is: what can be measured of it without the truth, each with the stage that is at fault.

The limits were set on 24 studio people and shop garments and 12 pictures on which try-on fails, looked at one by one: a
finding of the first grade is one that an eye finds when it looks for it, of the second one that a shopper would name.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import cv2
import numpy as np

from vton import labels
from vton.inputs import photo
from vton.joints import HIPS, NECK, UPPER_BODY, present
from vton.metrics import colour_difference
from vton.result import TryOnResult

SKIN = (*labels.ARMS_LIP, labels.LIP.index("neck"))
FACE = (labels.LIP.index("face"),)
MIN_SKIN = 0.005  # share of the picture; a smaller patch of skin gives no tone
BESIDE_ARMS = 0.25  # share of a piece's rim that hair or arms make up where they have cut it off
GRADES = ("nothing stands out", "worth a look", "likely wrong")


class Finding(NamedTuple):
    """Something that is not as it should be."""

    stage: str  # its name in `vton.stages`, which is at fault
    grade: int  # 1 or 2, an index of GRADES
    value: float  # what was measured
    sentence: str  # for the visitor


class Measure(NamedTuple):
    """One measure: a function of the record, and the limits of its grades; NaN where it cannot be measured."""

    stage: str
    of: Callable[[TryOnResult], float]
    limits: tuple[float, float]
    sentence: str


def missing_joints(r: TryOnResult) -> float:
    """How many of the upper body's joints were not found."""
    return float((~present(r.keypoints)[list(UPPER_BODY)]).sum())


def islands(r: TryOnResult) -> float:
    """Share of the predicted garment in patches apart from its largest piece, in [0, 1].

    A piece beside hair or an arm is no patch: a sleeve may be cut off by what lies before it.
    """
    region = (r.segmentation == labels.UPPER).astype(np.uint8)
    count, pieces, figures, _ = cv2.connectedComponentsWithStats(region)
    if count == 1:
        return float("nan")
    before = np.isin(r.segmentation, (labels.HAIR, labels.FACE, *labels.ARMS))
    largest = 1 + int(figures[1:, cv2.CC_STAT_AREA].argmax())
    apart = 0
    for piece in set(range(1, count)) - {largest}:
        own = (pieces == piece).astype(np.uint8)
        rim = (cv2.dilate(own, np.ones((5, 5), np.uint8)) == 1) & (own == 0)
        if before[rim].mean() < BESIDE_ARMS:
            apart += int(own.sum())
    return apart / float(region.sum())


def holes(r: TryOnResult) -> float:
    """Share of the predicted garment's outline that is hollow with neither hair, hand nor face in it, in [0, 1]."""
    region = (r.segmentation == labels.UPPER).astype(np.uint8)
    outlines, _ = cv2.findContours(region, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    solid = cv2.drawContours(np.zeros_like(region), outlines, -1, 1, cv2.FILLED)
    person = np.isin(r.segmentation, (labels.HAIR, labels.FACE, *labels.ARMS))
    hollow = (solid == 1) & (region == 0) & ~person
    return float(hollow.sum() / solid.sum()) if solid.any() else float("nan")


def hem(r: TryOnResult) -> np.ndarray:
    """Row of the hem in each column of the trunk (n,), between the hips; empty where there is none in the picture."""
    there = present(r.keypoints)
    if not there[list(HIPS)].all():
        return np.zeros(0)
    left, right = sorted(int(x) for x in r.keypoints[list(HIPS), 0])
    columns = (r.segmentation == labels.UPPER)[:, max(left, 0) : right + 1]
    columns = columns[:, columns.any(0)]
    rows = columns.shape[0] - 1 - columns[::-1].argmax(0)
    return rows[rows < columns.shape[0] - 2]


def ragged_hem(r: TryOnResult) -> float:
    """Root mean square of the hem's distance from a curve of second order, in heights of the trunk."""
    rows = hem(r)
    if rows.size < 10:
        return float("nan")
    across = np.linspace(-1, 1, rows.size)
    apart = rows - np.polyval(np.polyfit(across, rows, 2), across)
    return float(np.sqrt(np.square(apart).mean()) / trunk(r))


def low_hem(r: TryOnResult) -> float:
    """How far the hem lies below the hips, in heights of the trunk; garments that are long themselves say so."""
    rows = hem(r)
    if rows.size < 10:
        return float("nan")
    return float((np.median(rows) - r.keypoints[list(HIPS), 1].mean()) / trunk(r))


def trunk(r: TryOnResult) -> float:
    """Height from the neck to the hips in pixels of the maps, 1 or more."""
    return max(1.0, float(r.keypoints[list(HIPS), 1].mean() - r.keypoints[NECK, 1]))


def skin_apart(r: TryOnResult) -> float:
    """CIEDE2000 between the arms as they were painted and the same person's skin in the photograph; NaN without either.

    The photograph's skin is that of arms and neck or of the face, whichever is nearer to the painted one; a sticker
    over a face, or a sleeve that was taken for an arm, has no colour of skin and does not count.
    """
    picture = photo.crop(r.result, r.frame, r.parse.shape)
    paint = np.isin(r.segmentation, labels.ARMS) & (r.kept < 128)
    if paint.mean() < MIN_SKIN:
        return float("nan")
    ours = np.median(picture[paint], 0)
    apart = []
    for part in (SKIN, FACE):
        where = np.isin(r.parse, part) & (r.segmentation != labels.UPPER)
        tone = np.median(r.person[where], 0) if where.mean() >= MIN_SKIN else None
        if tone is not None and is_skin(tone):
            apart.append(colour_difference(*(np.asarray(colour, np.uint8)[None, None] for colour in (tone, ours))))
    return min(apart, default=float("nan"))


def is_skin(colour: np.ndarray) -> bool:
    """Whether an sRGB colour (3,) in [0, 255] is one that skin has in photographs: a* and b* both positive and alike.

    Measured skin has a* of 5 to 16 and b* of 10 to 24 (Xiao et al. 2017); light and cameras widen that.
    """
    _, a, b = cv2.cvtColor(np.asarray(colour / 255, np.float32)[None, None], cv2.COLOR_RGB2LAB)[0, 0]
    return 3 < a < 32 and 6 < b < 42 and 0.45 * a < b


MEASURES: dict[str, Measure] = {
    "joints": Measure(
        "pose", missing_joints, (1, 3), "Not all joints of the arms were found, so sleeves may sit beside them."
    ),
    "islands": Measure("segmentation", islands, (0.003, 0.015), "Patches of the garment lie apart from it."),
    "holes": Measure("segmentation", holes, (0.004, 0.02), "The garment has holes."),
    "hem": Measure("segmentation", ragged_hem, (0.02, 0.05), "The hem is not one line."),
    "length": Measure(
        "segmentation", low_hem, (0.3, 0.5), "The garment reaches far below the hips; is it really that long?"
    ),
    "uncovered": Measure(
        "warp",
        attrgetter("misaligned_share"),
        (0.06, 0.15),
        "The warped cloth leaves a part of the garment's place open.",
    ),
    "skin": Measure("synthesis", skin_apart, (13, 20), "The painted arms have another colour than the face and hands."),
}


def findings(r: TryOnResult) -> list[Finding]:
    """What is not as it should be, the worst first.

    r: a record that has run to its end. Raises ValueError for another one.
    """
    if r.result is None:
        raise ValueError("a verdict needs a finished try-on.")
    results = []
    for measure in MEASURES.values():
        value = measure.of(r)
        grade = sum(value >= limit for limit in measure.limits)  # NaN is below each
        if grade:
            results.append(Finding(measure.stage, grade, value, measure.sentence))
    return sorted(results, key=lambda finding: -finding.grade)


def grade(results: list[Finding]) -> int:
    """The worst grade, an index of GRADES; 0 without a finding."""
    return max((finding.grade for finding in results), default=0)
