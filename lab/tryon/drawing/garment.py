"""The drawn garment: its cut, its print, and the flat product picture."""

from __future__ import annotations

import cv2
import numpy as np

from lab.tryon.drawing.canvas import Canvas, mix, smooth_noise
from lab.tryon.drawing.geometry import Cut, Skeleton, garment_points, smooth

PRINTS = ("plain", "stripes", "checks", "letters")
SLEEVES = ("none", "short", "long")
CLOTH_COLOURS = [
    (198, 52, 58),
    (36, 74, 138),
    (44, 118, 92),
    (232, 178, 62),
    (112, 62, 128),
    (38, 40, 52),
    (226, 112, 72),
    (88, 158, 190),
    (210, 198, 176),
    (150, 166, 120),
    (222, 138, 158),
    (120, 74, 52),
    (228, 226, 220),
    (70, 96, 108),
]
WORDS = ("ATELIER", "LINEN", "HELLO", "PARIS", "COTTON", "STUDIO", "SUNNY", "WAVE", "NORTH", "INDIGO")


def sample_cut(rng, sleeves: str | None) -> Cut:
    """A random cut; sleeves: one of SLEEVES, None = drawn, too."""
    kind = sleeves or str(rng.choice(SLEEVES, p=(0.15, 0.45, 0.40)))
    reach = {"none": 0.0, "short": rng.uniform(0.24, 0.36), "long": rng.uniform(0.93, 0.98)}[kind]
    v_neck = bool(rng.random() < 0.3)
    return Cut(
        kind,
        reach,
        rng.uniform(54, 74),
        rng.uniform(52, 78) if v_neck else rng.uniform(8, 44),
        v_neck,
        rng.uniform(-26, 30),
        rng.uniform(8, 20),
        rng.uniform(-4, 16),
    )


def mannequin(rng, cut: Cut) -> Skeleton:
    """The flat product's skeleton: straight arms, a box-shaped trunk."""
    angle = rng.uniform(0.24, 0.5) if cut.sleeves == "long" else rng.uniform(0.55, 0.95)
    neck = np.array([384.0, 340.0])
    shoulders = neck + np.array([[-134, 0], [134, 0]])
    arm = np.array([np.sin(angle), np.cos(angle)])
    mirror = np.array([[-1, 1], [1, 1]])
    return Skeleton(
        neck,
        shoulders,
        shoulders + 236 * arm * mirror,
        shoulders + 460 * arm * mirror,
        neck + np.array([[-80, 380], [80, 380]]),
        122,
        116,
        128,
        (44, 41, 31),
    )


def print_texture(rng, print_: str, size: tuple[int, int]) -> np.ndarray:
    """The cloth's print over the whole canvas, (H, W, 3) float32."""
    H, W = size
    s = W / 768
    first, second = (np.array(CLOTH_COLOURS[i], np.float32) for i in rng.choice(len(CLOTH_COLOURS), 2, replace=False))
    if np.abs(first - second).sum() < 150:  # a print has to be seen
        second = np.where(first.sum() > 380, 42.0, 236.0) * np.ones(3, np.float32)
    cloth = np.broadcast_to(first, (H, W, 3)).copy()
    y, x = (np.mgrid[0:H, 0:W].astype(np.float32) + 0.5) / s

    def bands(v, period, share):
        # Antialiased: the distance to the band's edge, in pixels.
        phase = np.abs((v / period) % 1 - 0.5) * period
        return np.clip((share * period / 2 - phase) * s + 0.5, 0, 1)[..., None]

    if print_ == "stripes":
        period, share = rng.uniform(46, 92), rng.uniform(0.3, 0.6)
        cloth += bands(y if rng.random() < 0.75 else x, period, share) * (second - cloth)
    elif print_ == "checks":
        period, share = rng.uniform(58, 110), rng.uniform(0.35, 0.5)
        for v in (x, y):
            cloth += 0.5 * bands(v, period, share) * (second - cloth)
        thin = mix(first, (255, 255, 255) if first.sum() < 380 else (20, 20, 20), 0.6)
        for v in (x, y):
            cloth += 0.8 * bands(v + period / 2, period, 0.07) * (thin - cloth)
    elif print_ == "letters":
        word = WORDS[rng.integers(len(WORDS))]
        if rng.random() < 0.5:
            centre = np.array([384, 505])
            disc = np.clip((rng.uniform(92, 118) - np.hypot(x - centre[0], y - centre[1])) * s + 0.5, 0, 1)[..., None]
            third = np.array(CLOTH_COLOURS[rng.integers(len(CLOTH_COLOURS))], np.float32)
            cloth += disc * (third - cloth)
        font = int(rng.choice([cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_TRIPLEX, cv2.FONT_HERSHEY_COMPLEX]))
        big = 3.0
        (w, h), base = cv2.getTextSize(word, font, big, 9)
        ink = np.zeros((h + base + 24, w + 24), np.uint8)
        cv2.putText(ink, word, (12, h + 12), font, big, 255, 9, cv2.LINE_AA)
        width = round(rng.uniform(196, 226) * s)
        height = max(3, round(ink.shape[0] * width / ink.shape[1] * rng.uniform(1.0, 1.5)))
        ink = cv2.resize(ink, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32)[..., None] / 255
        top, left = round(505 * s) - height // 2, round(384 * s) - width // 2
        part = cloth[top : top + height, left : left + width]
        part += ink[: part.shape[0], : part.shape[1]] * (second - part)
    return cloth


def draw_product(rng, cut: Cut, print_: str, size: tuple[int, int]):
    """The flat product: cloth (H, W, 3) uint8 on 246, mask (H, W) uint8 0/255, and its points for 768 x 1024."""
    H, W = size
    s = W / 768
    points = garment_points(cut, mannequin(rng, cut))
    low, high = points.outline.min(0), points.outline.max(0)
    scale = min(0.86 * 768 / (high - low)[0], 0.90 * 1024 / (high - low)[1])
    centre = (low + high) / 2
    points = points.move(lambda p: (p - centre) * scale + (384, 512))
    curve = smooth(points.outline, points.corners)
    canvas = Canvas(size)
    where, _, _, alpha = canvas.coverage(curve)
    full = np.zeros((H, W), np.float32)
    full[where] = alpha
    # The print belongs to the garment, so it is scaled with it.
    move = np.array([[scale, 0, (384 - centre[0] * scale) * s], [0, scale, (512 - centre[1] * scale) * s]])
    texture = cv2.warpAffine(
        print_texture(rng, print_, size), move, (W, H), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
    )
    depth = cv2.GaussianBlur(full, (0, 0), 9 * s)  # falls towards the outline, like the light on a thick edge
    light = 0.95 + 0.12 * (depth - 0.75) + 0.012 * smooth_noise(rng, size, (7, 5))
    canvas.rgb[:] = texture * light[..., None]
    dark = texture.mean((0, 1)) * 0.5
    k = 6  # curve points per outline point
    ring = np.vstack([curve, curve[:k]])
    n = len(points.names)
    for i, name in enumerate(points.names):
        following = points.names[(i + 1) % n]
        edge = ring[i * k : (i + 1) * k + 1]
        if "neckline" in (name, following):
            canvas.line(edge, 13, dark, 0.55)
        elif name == following == "cuff" or {name, following} <= {"hem", "hem middle"}:
            canvas.line(edge, 7, dark, 0.35)
    mask = (full > 0.5).astype(np.uint8) * 255
    cloth = np.where(mask[..., None] > 0, canvas.rgb.clip(0, 255), 246).astype(np.uint8)
    return cloth, mask, points
