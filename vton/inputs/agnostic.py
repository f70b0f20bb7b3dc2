"""The clothing-agnostic person: image I_a and segmentation S_a (VITON-HD, section 3.1 and supplementary A.1).

The paper leaves the widths of the padding open ("empirically determined"). The numbers here are those of the released
system for a width of 768 pixels; at other sizes they are scaled with width / 768, while the release keeps them.
Keypoints are BODY_25 in pixels of the picture at hand; a missing joint has confidence 0 or lies at (0, 0).
"""

import cv2
import numpy as np
from PIL import Image, ImageDraw

from vton import labels
from vton.attributes import LOOSE
from vton.inputs.photo import disc
from vton.joints import (
    LEFT_ARM,
    LEFT_ELBOW,
    LEFT_HIP,
    LEFT_SHOULDER,
    LEFT_WRIST,
    MID_HIP,
    NECK,
    RIGHT_ARM,
    RIGHT_ELBOW,
    RIGHT_HIP,
    RIGHT_SHOULDER,
    RIGHT_WRIST,
    present,
)

GRAY = (128, 128, 128)

# Where joints are missing, the trunk is taken to be this many shoulder widths long (mean of frontal, standing people).
TRUNK_LENGTH = 1.45
# How far above and below the joints of the hips hems end, in lengths of the trunk: waistbands, and tunics.
HEM_ABOVE, HEM_BELOW = 0.45, 0.45


def _joints(keypoints: np.ndarray) -> dict[int, np.ndarray]:
    """Index -> (x, y) of the joints that are present."""
    return {i: np.asarray(keypoints[i][:2], np.float64) for i in np.flatnonzero(present(keypoints))}


def _complete_trunk(joints: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Guess missing shoulders, hips and neck from the others, as far as that is possible."""
    joints = dict(joints)
    for shoulder, other in ((RIGHT_SHOULDER, LEFT_SHOULDER), (LEFT_SHOULDER, RIGHT_SHOULDER)):
        if shoulder not in joints and other in joints and NECK in joints:
            joints[shoulder] = 2 * joints[NECK] - joints[other]
    if not {RIGHT_SHOULDER, LEFT_SHOULDER} <= joints.keys():
        return joints
    across = joints[LEFT_SHOULDER] - joints[RIGHT_SHOULDER]
    middle = (joints[LEFT_SHOULDER] + joints[RIGHT_SHOULDER]) / 2
    joints.setdefault(NECK, middle)
    if {RIGHT_HIP, LEFT_HIP} <= joints.keys():
        return joints
    if MID_HIP in joints:
        hip = joints[MID_HIP]
    else:
        down = np.array([-across[1], across[0]])
        hip = middle + TRUNK_LENGTH * (down if down[1] >= 0 else -down)
    for side, other, sign in ((RIGHT_HIP, LEFT_HIP, -1), (LEFT_HIP, RIGHT_HIP, 1)):
        if side not in joints:
            can_mirror = other in joints and MID_HIP in joints
            joints[side] = 2 * hip - joints[other] if can_mirror else hip + sign * across / 2
    return joints


def _spread_hips(joints: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Move the hips apart, or together, until they are as far from each other as the shoulders."""
    if not {RIGHT_SHOULDER, LEFT_SHOULDER, RIGHT_HIP, LEFT_HIP} <= joints.keys():
        return joints
    shoulders = np.linalg.norm(joints[LEFT_SHOULDER] - joints[RIGHT_SHOULDER])
    hips = np.linalg.norm(joints[LEFT_HIP] - joints[RIGHT_HIP])
    if hips < 1e-3 or shoulders < 1e-3:  # coinciding points have no direction in which to move
        return joints
    middle = (joints[LEFT_HIP] + joints[RIGHT_HIP]) / 2
    wide_hips = {i: middle + (joints[i] - middle) / hips * shoulders for i in (RIGHT_HIP, LEFT_HIP)}
    return {**joints, **wide_hips}


class _Pen:
    """Draws strokes, discs and ellipses given in pixels at width 768."""

    def __init__(self, picture: Image.Image, fill):
        self.draw = ImageDraw.Draw(picture)
        self.scale = picture.width / 768
        self.fill = fill

    def stroke(self, a, b, width):
        self.draw.line([tuple(a), tuple(b)], self.fill, width=max(1, round(width * self.scale)))

    def ellipse(self, centre, half_width, half_height):
        x, y = centre
        w, h = half_width * self.scale, half_height * self.scale
        self.draw.ellipse((x - w, y - h, x + w, y + h), self.fill, self.fill)

    def square(self, centre, half_side):
        x, y = centre
        s = half_side * self.scale
        self.draw.rectangle((x - s, y - s, x + s, y + s), self.fill, self.fill)

    def polygon(self, points):
        self.draw.polygon([tuple(p) for p in points], self.fill, self.fill)


def _check_parse(parse: np.ndarray, hw: tuple[int, int] | None = None) -> np.ndarray:
    parse = np.asarray(parse)
    if parse.ndim != 2 or parse.dtype.kind not in "ui" or (parse.size and parse.max() >= len(labels.LIP)):
        raise ValueError("The parse is an (H, W) map of the labels 0 to 19.")
    if hw is not None and parse.shape != hw:
        raise ValueError(f"Picture and parse differ in size: {hw} and {parse.shape}.")
    return parse.astype(np.uint8, copy=False)


def agnostic_parse(parse: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """S_a: the parse without garment, neck and arms; hands stay.

    parse: (H, W) LIP labels 0-19; keypoints: (25, 3) x, y, confidence in pixels of the parse.
    Returns (H, W) uint8 LIP labels. Labels 5, 6, 7 and 10 become background; an arm (14, 15) becomes background only
    inside strokes along shoulder, elbow and wrist. A stroke begins at the last joint that is present, so with a missing
    elbow it runs from shoulder to wrist; with the opposite shoulder missing, where the strokes begin, the arm stays.
    """
    parse = _check_parse(parse)
    joints = _joints(keypoints)
    blank = np.isin(parse, (*labels.UPPER_LIP, labels.NECK_LIP))
    height, width = parse.shape
    for arm, chain in (
        (labels.LEFT_ARM_LIP, (RIGHT_SHOULDER, LEFT_SHOULDER, LEFT_ELBOW, LEFT_WRIST)),
        (labels.RIGHT_ARM_LIP, (LEFT_SHOULDER, RIGHT_SHOULDER, RIGHT_ELBOW, RIGHT_WRIST)),
    ):
        arm_pixels = parse == arm
        if not arm_pixels.any() or chain[0] not in joints:
            continue
        mask = Image.new("L", (width, height))
        pen = _Pen(mask, 255)
        previous = chain[0]
        for joint in chain[1:]:
            if joint in joints:
                pen.stroke(joints[previous], joints[joint], 100)
                radius = 40 if joint == chain[-1] else 150
                pen.ellipse(joints[joint], radius, radius)
                previous = joint
        blank |= arm_pixels & (np.asarray(mask) > 0)
    return np.where(blank, np.uint8(0), parse)


def hide_hem(classes: np.ndarray, keypoints: np.ndarray, hem: str, below: float = HEM_BELOW) -> np.ndarray:
    """S_a without the trousers or skirt near the hem, which tell how far down the old garment hung (not in the paper).

    Args:
        classes: (H, W) uint8, 13 classes.
        keypoints: (25, 3) x, y, confidence in its pixels; without shoulders and hips nothing is hidden.
        hem: of the new garment, see `vton.attributes`; nothing is hidden unless it is loose: one that is tucked in ends
            where the trousers begin.
        below: how far below the joints of the hips, in lengths of the trunk.

    Returns (H, W) uint8, hidden pixels as background.
    """
    if hem != LOOSE:
        return classes
    joints = _complete_trunk(_joints(keypoints))
    if not {RIGHT_SHOULDER, LEFT_SHOULDER, RIGHT_HIP, LEFT_HIP} <= joints.keys():
        return classes
    shoulders, hips = (
        (joints[a][1] + joints[b][1]) / 2 for a, b in ((RIGHT_SHOULDER, LEFT_SHOULDER), (RIGHT_HIP, LEFT_HIP))
    )
    rows = np.arange(len(classes))[:, None]
    near = (rows > hips - HEM_ABOVE * (hips - shoulders)) & (rows < hips + below * (hips - shoulders))
    return np.where(near & (classes == labels.BOTTOM), np.uint8(labels.BACKGROUND), classes)


def _paint_body(person: np.ndarray, joints: dict[int, np.ndarray]) -> np.ndarray:
    """A copy of the picture with trunk, arms and neck painted gray, as far as their joints are known."""
    picture = Image.fromarray(person).copy()
    pen = _Pen(picture, GRAY)

    def stroke(a, b, width):
        if a in joints and b in joints:
            pen.stroke(joints[a], joints[b], width)

    stroke(RIGHT_SHOULDER, LEFT_SHOULDER, 200)
    for i in (RIGHT_SHOULDER, LEFT_SHOULDER):
        if i in joints:
            pen.ellipse(joints[i], 100, 100)
    for arm in (RIGHT_ARM, LEFT_ARM):
        for a, b in zip(arm, arm[1:]):
            if a in joints and b in joints:
                stroke(a, b, 200)
                pen.ellipse(joints[b], 100, 100)
    for i in (RIGHT_HIP, LEFT_HIP):
        if i in joints:
            pen.ellipse(joints[i], 60, 120)
    stroke(RIGHT_SHOULDER, RIGHT_HIP, 120)
    stroke(LEFT_SHOULDER, LEFT_HIP, 120)
    stroke(RIGHT_HIP, LEFT_HIP, 240)
    trunk = (RIGHT_SHOULDER, LEFT_SHOULDER, LEFT_HIP, RIGHT_HIP)
    if all(i in joints for i in trunk):
        pen.polygon([joints[i] for i in trunk])
    if NECK in joints:
        pen.square(joints[NECK], 140)
    return np.array(picture)


def agnostic_image(person: np.ndarray, parse: np.ndarray, keypoints: np.ndarray, thorough: bool = False) -> np.ndarray:
    """I_a: the person with trunk, arms and neck painted gray (128), head and lower body pasted back.

    person: (H, W, 3) uint8 RGB; parse: (H, W) LIP labels 0-19; keypoints: (25, 3) x, y, confidence in its pixels.
    Returns (H, W, 3) uint8. Gray 128 becomes 0.004 in [-1, 1]; the paper says 0. Hair is not pasted back, as in the
    released system. Hips that are missing are guessed from the shoulders, hips that coincide are not spread.

    thorough: also paint garment (5, 6, 7) and neck (10), grown by 8 pixels at width 768, gray wherever the drawn shapes
    do not reach: wide coats and loose sleeves of street photographs leave them. This goes beyond the paper.
    """
    person = np.asarray(person)
    if person.ndim != 3 or person.shape[2] != 3 or person.dtype != np.uint8:
        raise ValueError("The person is an (H, W, 3) uint8 RGB picture.")
    parse = _check_parse(parse, person.shape[:2])
    joints = _spread_hips(_complete_trunk(_joints(keypoints)))
    agnostic = _paint_body(person, joints)
    if thorough:
        garment = np.isin(parse, (*labels.UPPER_LIP, labels.NECK_LIP)).astype(np.uint8)
        wide_garment = cv2.dilate(garment, disc(8 * person.shape[1] / 768))
        agnostic[wide_garment > 0] = GRAY
    head_and_lower = np.isin(parse, (*labels.HEAD_LIP, *labels.LOWER_LIP))
    agnostic[head_and_lower] = person[head_and_lower]
    return agnostic


def open_gray(gray: np.ndarray, stays: np.ndarray, margin: int) -> np.ndarray:
    """What of the gray region the generator may be shown: all of `stays` that lies further than `margin` pixels
    from what changes (not in the paper, which hides it all).

    gray, stays (H, W) bool. Returns (H, W) bool.
    """
    return gray & (cv2.dilate((gray & ~stays).astype(np.uint8), disc(margin)) == 0)


def margin_at(width: int) -> int:
    """The margin of `open_gray` in a picture of that width: pixels on an outline are a mixture of both sides."""
    return max(1, round(width / 192))
