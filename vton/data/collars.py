"""Raised collars, lapels and rolled necks drawn onto photographs, so that a parser learns them as cloth.

Few people of the training photographs wear one, and a network that has hardly seen any takes what stands beside a neck
for hair, and what lies around it for bare skin.
"""

from dataclasses import replace

import cv2
import numpy as np

from vton import labels
from vton.data.pack import Person, change_colours
from vton.joints import SHOULDERS, present

CLOTH = labels.UPPER_LIP
OVER_COLLAR = (*labels.HEAD_LIP, labels.HAT_LIP)  # what a collar does not hide
# Share of the collars of another person's cloth, and shares of own and other cloth that are recoloured: most collars
# are of the garment's own cloth, which tells them from hair.
OTHER_CLOTH_SHARE, OWN_RECOLOUR_SHARE, OTHER_RECOLOUR_SHARE = 0.2, 0.2, 0.5
MIN_SHOULDER_WIDTH = 24  # pixels between the shoulder joints, below which a collar could not be seen
FRACTION_BITS = 3  # bits of a pixel's fraction in OpenCV's polygons


def with_collar(person: Person, other: Person, rng: np.random.Generator) -> Person:
    """A person with a drawn collar in picture, parse and mask; the same person where shoulders or garment are not seen.

    person: who wears it. other: whose garment lends its cloth at times. rng: draws kind, form, cloth and light.
    """
    lender, chance = (other, OTHER_RECOLOUR_SHARE) if rng.random() < OTHER_CLOTH_SHARE else (person, OWN_RECOLOUR_SHARE)
    cloth = patch(lender, chance, rng)
    if cloth is None or not present(person.keypoints)[list(SHOULDERS)].all():
        return person
    right, left = (person.keypoints[joint, :2].astype(np.float64) for joint in SHOULDERS)
    unit = float(np.linalg.norm(left - right))
    if unit < MIN_SHOULDER_WIDTH:
        return person
    forms = roll_neck(rng) if rng.random() < 0.25 else flaps(rng)
    in_front = np.isin(person.parse, OVER_COLLAR) | person.carried
    if rng.random() < 0.5:  # hair in front of it
        in_front |= person.parse == labels.HAIR_LIP
    image, parse, mask = person.image.astype(np.float32), person.parse.copy(), person.person_mask
    label = garment_label(person.parse)
    for form in forms:
        corners = place(smooth(form), right, left)
        share = fill(corners, parse.shape, unit * rng.uniform(0.004, 0.02)) * ~in_front
        shadow = fill(corners, parse.shape, unit * rng.uniform(0.03, 0.08)) * ~in_front
        image *= (1 - rng.uniform(0, 0.5) * shadow)[..., None]
        image += share[..., None] * (shade(cloth, corners, parse.shape, rng) - image)
        parse[share > 0.5] = label
        mask = np.maximum(mask, share.astype(np.float32))
    return replace(person, image=np.clip(image, 0, 255).astype(np.uint8), parse=parse, person_mask=mask)


def flaps(rng: np.random.Generator) -> list[np.ndarray]:
    """Corners of the two halves of a raised or open collar, each (N, 2), in widths between the shoulder joints: x from
    the middle to the person's left, y upwards. Some go on as lapels.
    """
    base, outer, top = rng.uniform(0.08, 0.2), rng.uniform(0.26, 0.46), rng.uniform(0.25, 0.75)
    lean, lapel = rng.uniform(-0.06, 0.12), rng.uniform(0.3, 1.1) if rng.random() < 0.4 else rng.uniform(0, 0.2)
    middle = (base + outer) / 2
    half = [
        (base * rng.uniform(0.2, 1), -lapel),
        (middle, -0.4 * lapel),
        (outer, rng.uniform(-0.05, 0.2)),
        (outer - 0.04 + lean, 0.7 * top),
        (middle + 0.05 + lean, top),
        (base + 0.03 + 0.5 * lean, 0.9 * top),
        (base, 0.25),
    ]
    sides = (-1, 1) if rng.random() < 0.8 else (int(rng.choice((-1, 1))),)
    return [np.array(half) * (side, 1) + rng.normal(0, 0.025, (len(half), 2)) for side in sides]


def roll_neck(rng: np.random.Generator) -> list[np.ndarray]:
    """Corners of a turtleneck or a scarf around the neck, units as in `flaps`."""
    wide, top, low = rng.uniform(0.18, 0.36), rng.uniform(0.3, 0.6), rng.uniform(-0.1, 0.15)
    ring = [(-wide, 0.1), (-wide, 0.8 * top), (0, top), (wide, 0.8 * top), (wide, 0.1), (0, -low)]
    return [np.array(ring) + rng.normal(0, 0.02, (len(ring), 2))]


def smooth(corners: np.ndarray) -> np.ndarray:
    """A closed polygon with its corners cut off twice (Chaikin 1974): (N, 2) -> (4 N, 2)."""
    for _ in range(2):
        after = np.roll(corners, -1, 0)
        corners = np.stack((0.75 * corners + 0.25 * after, 0.25 * corners + 0.75 * after), 1).reshape(-1, 2)
    return corners


def place(form: np.ndarray, right: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Corners (N, 2) in pixels, from widths between the shoulder joints `right` and `left` (2,)."""
    across = left - right
    up = np.array([across[1], -across[0]])
    up = up if up[1] < 0 else -up  # seen from behind, the left shoulder is at the left
    return (right + left) / 2 + form[:, :1] * across + form[:, 1:] * up


def fill(corners: np.ndarray, shape: tuple[int, ...], blur: float) -> np.ndarray:
    """(H, W) float32 in [0, 1], 1 inside the polygon; its border is `blur` pixels soft."""
    mask = np.zeros(shape[:2], np.float32)
    points = np.round(corners * (1 << FRACTION_BITS)).astype(np.int32)
    cv2.fillPoly(mask, [points[:, None]], 1.0, cv2.LINE_AA, FRACTION_BITS)
    return cv2.GaussianBlur(mask, (0, 0), max(blur, 0.3))


def patch(person: Person, chance: float, rng: np.random.Generator) -> np.ndarray | None:
    """A square of the garment worn, (n, n, 3) uint8, recoloured with probability `chance`; None without a garment."""
    cloth = np.isin(person.parse, CLOTH) & ~person.carried
    side = int(min(person.parse.shape) * rng.uniform(0.06, 0.16))
    inside = cv2.erode(cloth.astype(np.uint8), np.ones((side, side), np.uint8), borderValue=0)
    ys, xs = np.nonzero(inside)
    if side < 8 or not len(ys):
        return None
    pick = int(rng.integers(len(ys)))
    y, x = ys[pick] - side // 2, xs[pick] - side // 2
    square = np.ascontiguousarray(person.image[y : y + side, x : x + side])
    return change_colours(square, rng) if rng.random() < chance else square


def shade(cloth: np.ndarray, corners: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """The patch `cloth` (n, n, 3) uint8 turned, mirrored again and again over a picture of `shape` (H, W) and shaded
    across the polygon `corners` (N, 2): (H, W, 3) float32, 0 to 255 and a little beyond.
    """
    turn = cv2.getRotationMatrix2D((0, 0), rng.uniform(0, 360), rng.uniform(0.7, 1.4))
    turn[:, 2] = corners.mean(0)
    texture = cv2.warpAffine(
        cloth, turn, shape[1::-1], flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    ).astype(np.float32)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    along = (x - corners[:, 0].mean()) * np.cos(angle) + (y - corners[:, 1].mean()) * np.sin(angle)
    slope = rng.normal(0, 0.25) / max(float(np.ptp(corners, 0).max()), 1.0)
    return texture * np.clip(1 + rng.normal(0, 0.1) + slope * along, 0.3, 1.7)[..., None]


def garment_label(parse: np.ndarray) -> int:
    """The LIP label of the upper garment that covers most of the parse (H, W)."""
    return int(max(CLOTH, key=lambda label: int((parse == label).sum())))
