"""Drawn people in drawn garments, with exact ground truth for parse, pose, garment mask and warp.

A garment is a cut (trunk, sleeves, neckline) laid over a skeleton. Laid over a mannequin's it is the flat product
picture, laid over the person's it gives the same named points on the body. A thin-plate spline through these pairs of
points is the warp, so the worn garment is the product picture, bent, and the truth is known at every pixel.

Coordinates are those of a 768 x 1024 picture in the framing of VITON-HD, scaled to the size asked for. "Left" and
"right" in names are the person's own. `python -m vton.synthetic --out DIR` draws the example pictures.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

PRINTS = ("plain", "stripes", "checks", "letters")
SLEEVES = ("none", "short", "long")
POSES = ("down", "hips", "raised")
HAIR = ("short", "bob", "long", "bun")

_SKIN = [
    (252, 224, 204),
    (244, 206, 178),
    (228, 182, 148),
    (205, 153, 116),
    (168, 116, 82),
    (128, 84, 60),
    (96, 62, 46),
]
_HAIR_COLOURS = [
    (38, 28, 26),
    (62, 42, 32),
    (98, 64, 40),
    (146, 98, 56),
    (196, 152, 92),
    (122, 52, 30),
    (150, 146, 142),
]
_CLOTH_COLOURS = [
    (198, 52, 58), (36, 74, 138), (44, 118, 92), (232, 178, 62), (112, 62, 128), (38, 40, 52), (226, 112, 72),
    (88, 158, 190), (210, 198, 176), (150, 166, 120), (222, 138, 158), (120, 74, 52), (228, 226, 220), (70, 96, 108),
]
_TROUSER_COLOURS = [
    (52, 72, 108),
    (42, 44, 52),
    (120, 104, 86),
    (84, 104, 136),
    (70, 78, 62),
    (146, 130, 112),
    (96, 48, 56),
]
_BACKGROUNDS = [(226, 226, 224), (214, 220, 226), (230, 220, 208), (206, 216, 208), (222, 210, 216), (196, 204, 212)]
_IRIS = [(92, 62, 40), (70, 48, 34), (88, 116, 140), (92, 116, 82), (60, 44, 36)]
_WORDS = ("ATELIER", "LINEN", "HELLO", "PARIS", "COTTON", "STUDIO", "SUNNY", "WAVE", "NORTH", "INDIGO")

EXAMPLE_SIZE = (768, 576)
EXAMPLE_PEOPLE = {
    "person-1.png": {"seed": 1, "pose": "down"},
    "person-2.png": {"seed": 16, "pose": "hips"},
    "person-3.png": {"seed": 12, "pose": "down"},
}
EXAMPLE_GARMENTS = {
    "garment-stripes.png": {"seed": 14, "print_": "stripes", "sleeves": "short"},
    "garment-checks.png": {"seed": 9, "print_": "checks", "sleeves": "long"},
    "garment-letters.png": {"seed": 24, "print_": "letters", "sleeves": "short"},
    "garment-plain.png": {"seed": 2, "print_": "plain", "sleeves": "long"},
}


@dataclass(frozen=True)
class DrawnPair:
    """A drawn person, the product picture of the garment that is worn, and the truth about both.

    person (H, W, 3) uint8; parse (H, W) uint8 LIP labels; keypoints (25, 3) float32 x, y, confidence in pixels;
    cloth (H, W, 3) uint8 on 246; cloth_mask (H, W) uint8 0/255;
    worn_cloth (H, W, 3) uint8, the product picture warped onto the body, without light and shadow, on 246;
    worn_mask (H, W) uint8 0/255, the warped mask (parse == 5 is the part that nothing hides);
    grid (H, W, 2) float32, for every pixel of the person the x, y in the cloth from which it is sampled, in [-1, 1] as
    torch's grid_sample with align_corners=False takes them; off worn_mask it may reach the garment a second time;
    control_points (25, 2) float32, the grid at a regular 5 x 5 lattice from corner pixel to corner pixel, x varying
    slowest, which is the matching module's order; sleeves and print_ name the garment.
    """

    person: np.ndarray
    parse: np.ndarray
    keypoints: np.ndarray
    cloth: np.ndarray
    cloth_mask: np.ndarray
    worn_cloth: np.ndarray
    worn_mask: np.ndarray
    grid: np.ndarray
    control_points: np.ndarray
    sleeves: str
    print_: str


@dataclass(frozen=True)
class _Skeleton:
    """Joints and widths that carry a garment. Sides are indexed 0 (at the left of the picture) and 1."""

    neck: np.ndarray  # (2,) middle of the shoulders
    shoulders: np.ndarray  # (2, 2)
    elbows: np.ndarray
    wrists: np.ndarray
    hips: np.ndarray  # (2, 2)
    chest: float  # half widths of the trunk
    waist: float
    hip: float
    arm: tuple[float, float, float]  # radii at shoulder, elbow and wrist


@dataclass(frozen=True)
class _Cut:
    """How a garment is cut: sleeve kind and length (share of the arm), neckline width, depth and kind, hem, ease."""

    sleeves: str
    reach: float
    neck_width: float
    neck_depth: float
    v_neck: bool
    length: float  # hem, below the hips
    ease: float
    flare: float


# ---------------------------------------------------------------------------------------------------------------------
# Geometry: the named points of a garment on a skeleton, and the spline between two sets of them
# ---------------------------------------------------------------------------------------------------------------------

def _along_arm(skeleton: _Skeleton, side: int, distance: float):
    """Point, outward unit normal and radius at a distance from the shoulder along the arm."""
    shoulder, elbow, wrist = skeleton.shoulders[side], skeleton.elbows[side], skeleton.wrists[side]
    upper, lower = elbow - shoulder, wrist - elbow
    a, b = np.linalg.norm(upper), np.linalg.norm(lower)
    sign = (-1, 1)[side]
    if distance <= a:
        point, radius = shoulder + upper * distance / a, np.interp(distance / a, (0, 1), skeleton.arm[:2])
    else:
        point, radius = elbow + lower * (distance - a) / b, np.interp((distance - a) / b, (0, 1), skeleton.arm[1:])
    # The direction turns smoothly around the elbow, so that the sleeve's edges do not break there.
    turn = np.clip((distance - a) / (0.5 * min(a, b)) + 0.5, 0, 1)
    direction = (1 - turn) * upper / a + turn * lower / b
    direction = direction / np.linalg.norm(direction)
    return point, np.array([direction[1], -direction[0]]) * sign, radius


@dataclass(frozen=True)
class _Points:
    """outline (n, 2) in order around the garment, names (n,), inside (m, 2); the same order on every skeleton."""

    outline: np.ndarray
    names: tuple[str, ...]
    inside: np.ndarray

    @property
    def corners(self) -> set[int]:
        return {i for i, name in enumerate(self.names) if name in ("collar", "cuff", "armpit", "hem")}

    def moved(self, move) -> "_Points":
        return _Points(move(self.outline), self.names, move(self.inside))

    @property
    def all(self) -> np.ndarray:
        return np.vstack([self.outline, self.inside])


def _garment_points(cut: _Cut, skeleton: _Skeleton) -> _Points:
    """The named points of a garment on a skeleton."""
    x, y = skeleton.neck
    hem_y = skeleton.hips[:, 1].mean() + cut.length
    middle = skeleton.hips.mean(0)[0]
    shoulder_y = skeleton.shoulders[:, 1].mean()
    trunk = hem_y - shoulder_y
    sides, extra = [], []
    for side, sign in ((0, -1), (1, 1)):
        shoulder = skeleton.shoulders[side]
        start, normal, radius = _along_arm(skeleton, side, 0)
        lift = max(0.0, 0.85 - sign * normal[0])  # 0 for a hanging arm, up to 1.85 for a raised one
        armpit = np.array([x + sign * (skeleton.chest + cut.ease), shoulder[1] + 100]) + (sign * 6 * lift, -22 * lift)
        collar = np.array([x + sign * cut.neck_width, y - 50 + 0.45 * (shoulder[1] - y)])
        if cut.sleeves == "none":
            points = [
                ("collar", collar),
                ("tip", shoulder + (-sign * 4, -30)),
                ("armhole", shoulder + (-sign * 16, 34)),
                ("armpit", armpit),
            ]
        else:
            arm = sum(np.linalg.norm(b[side] - a[side]) for a, b in (
                (skeleton.shoulders, skeleton.elbows), (skeleton.elbows, skeleton.wrists)))
            stops = np.linspace(0, cut.reach * arm, 3 if cut.sleeves == "short" else 9)[1:]
            path = [_along_arm(skeleton, side, stop) for stop in stops]
            tip = start + normal * radius * (0.22 + 0.3 * min(lift, 1)) + (0, -21 + 4 * lift)
            points = [("collar", collar), ("slope", 0.5 * (collar + tip) + (0, 2)), ("tip", tip)]
            extra += [p for p, _, _ in path[1:]]
            # Points outside keep the spline from turning over: beside the sleeve, above the shoulder, beyond the cuff.
            extra += [p + n * (r + 44) for p, n, r in path[1::2]] + [0.5 * (collar + tip) + (0, -40)]
            p, n, r = path[-1]
            on = np.array([n[1], -n[0]]) * -sign
            extra += [p + on * 26 + n * across * r for across in (-1, 0, 1)]
            points += [("sleeve", p + n * (r + 0.6 * cut.ease)) for p, n, r in path]
            inner = [("sleeve", p - n * (r + 0.3 * cut.ease)) for p, n, r in path[:0:-1]]
            points += [*(inner if cut.sleeves == "short" else inner[:-1]), ("armpit", armpit)]
            last = len(stops)
            points[2 + last] = ("cuff", points[2 + last][1])
            points[3 + last] = ("cuff", points[3 + last][1])
        points += [
            ("waist", (middle + (x - middle) * 0.48 + sign * (skeleton.waist + cut.ease), shoulder_y + 0.52 * trunk)),
            ("hip", (middle + (x - middle) * 0.2 + sign * (skeleton.hip + cut.ease + 0.4 * cut.flare),
                     shoulder_y + 0.8 * trunk)),
            ("hem", (middle + sign * (skeleton.hip + cut.ease + cut.flare), hem_y)),
        ]
        sides.append(points)
    inset, drop = (0.45, 0.5) if cut.v_neck else (0.66, 0.8)
    collar = [("neckline", (x + s * cut.neck_width * inset, y - 50 + (cut.neck_depth + 50) * drop)) for s in (-1, 1)]
    hem = [("hem middle", (middle + s * (skeleton.hip + cut.ease) * 0.45, hem_y + 6)) for s in (1, -1)]
    outline = [*sides[1], *hem, *sides[0][::-1], collar[0], ("neckline", (x, y + cut.neck_depth)), collar[1]]
    chest_y, waist_y = shoulder_y + 0.3 * trunk, shoulder_y + 0.52 * trunk
    inside = [(x + s * skeleton.chest * 0.55, chest_y) for s in (-1, 0, 1)]
    inside += [(x * 0.48 + middle * 0.52 + s * skeleton.waist * 0.5, waist_y) for s in (-1, 0, 1)]
    inside += extra
    return _Points(np.array([p for _, p in outline], float), tuple(n for n, _ in outline), np.array(inside, float))


def _smooth(points: np.ndarray, corners: set[int] = frozenset(), n: int = 6) -> np.ndarray:
    """Closed Catmull-Rom curve through points (k, 2), n steps between neighbours; it breaks at the given indices."""
    k = len(points)
    before, after = np.roll(points, 1, 0), np.roll(points, -1, 0)
    tangent = (after - before) / 2
    tangent_in, tangent_out = tangent.copy(), tangent.copy()
    for i in corners:
        tangent_in[i], tangent_out[i] = points[i] - before[i], after[i] - points[i]
    t = np.linspace(0, 1, n, endpoint=False)[None, :, None]
    p, q = points[:, None], after[:, None]
    m0, m1 = tangent_out[:, None], np.roll(tangent_in, -1, 0)[:, None]
    t2, t3 = t * t, t * t * t
    curve = (2 * t3 - 3 * t2 + 1) * p + (t3 - 2 * t2 + t) * m0 + (3 * t2 - 2 * t3) * q + (t3 - t2) * m1
    return curve.reshape(k * n, 2)


class _Spline:
    """Thin-plate spline that takes points (n, 2) to values (n, 2): U(r) = r^2 log r^2 plus an affine part."""

    def __init__(self, points: np.ndarray, values: np.ndarray):
        n = len(points)
        self.centre, self.scale = points.mean(0), points.std()
        self.points = (points - self.centre) / self.scale
        system = np.zeros((n + 3, n + 3))
        system[:n, :n] = self._kernel(self.points)
        system[:n, n:] = np.hstack([np.ones((n, 1)), self.points])
        system[n:, :n] = system[:n, n:].T
        system[np.arange(n), np.arange(n)] += 1e-4
        self.weights = np.linalg.solve(system, np.vstack([values, np.zeros((3, 2))]))

    def _kernel(self, at: np.ndarray) -> np.ndarray:
        r2 = (at[:, :1] - self.points[:, 0]) ** 2 + (at[:, 1:] - self.points[:, 1]) ** 2
        return r2 * np.log(r2 + 1e-12)

    def __call__(self, at: np.ndarray) -> np.ndarray:
        at = (at - self.centre) / self.scale
        return np.hstack([self._kernel(at), np.ones((len(at), 1)), at]) @ self.weights


# ---------------------------------------------------------------------------------------------------------------------
# Painting
# ---------------------------------------------------------------------------------------------------------------------

class _Canvas:
    """A picture and its label map that are painted together. All coordinates are for 768 x 1024."""

    def __init__(self, size: tuple[int, int]):
        self.H, self.W = size
        self.s = self.W / 768
        self.rgb = np.zeros((self.H, self.W, 3), np.float32)
        self.labels = np.zeros((self.H, self.W), np.uint8)

    def window(self, low, high, margin: float = 2):
        """Slices and pixel coordinates (x, y) of the box between two corners; None when it is outside."""
        x0, y0 = (np.floor(np.asarray(low) * self.s - margin)).astype(int)
        x1, y1 = (np.ceil(np.asarray(high) * self.s + margin)).astype(int) + 1
        x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, self.W), min(y1, self.H)
        if x0 >= x1 or y0 >= y1:
            return None
        x = (np.arange(x0, x1, dtype=np.float32) + 0.5)[None] / self.s
        y = (np.arange(y0, y1, dtype=np.float32) + 0.5)[:, None] / self.s
        return (slice(y0, y1), slice(x0, x1)), x, y

    def blend(self, where, alpha, colour, label=None):
        part = self.rgb[where]
        part += alpha[..., None] * (colour - part)
        if label is not None:
            self.labels[where][alpha > 0.5] = label

    def coverage(self, points: np.ndarray):
        """Antialiased alpha of a filled polygon (k, 2); returns (slices, x, y, alpha) or None."""
        box = self.window(points.min(0), points.max(0))
        if box is None:
            return None
        where, x, y = box
        alpha = np.zeros((y.size, x.size), np.uint8)
        offset = np.array([where[1].start, where[0].start])
        corners = np.round((points * self.s - 0.5 - offset) * 16).astype(np.int32)
        cv2.fillPoly(alpha, [corners], 255, cv2.LINE_AA, 4)
        return where, x, y, alpha.astype(np.float32) / 255

    def polygon(self, points, colour, label=None, shade=None, opacity=1.0):
        """shade: function of x, y (arrays in 768-pixel units) that gives a brightness factor."""
        found = self.coverage(np.asarray(points, float))
        if found is None:
            return
        where, x, y, alpha = found
        colour = np.asarray(colour, np.float32)
        if shade is not None:
            colour = colour * np.broadcast_to(shade(x, y), alpha.shape)[..., None]
        self.blend(where, alpha * opacity, colour, label)

    def limb_field(self, a, b, radius_a, radius_b, depth):
        """A tapered, rounded limb, lit from the upper left: slices, alpha and brightness; None when outside."""
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        reach = max(radius_a, radius_b)
        box = self.window(np.minimum(a, b) - reach, np.maximum(a, b) + reach)
        if box is None:
            return None
        where, x, y = box
        axis = b - a
        length2 = max(float(axis @ axis), 1e-6)
        t = np.clip(((x - a[0]) * axis[0] + (y - a[1]) * axis[1]) / length2, 0, 1)
        dx, dy = x - (a[0] + t * axis[0]), y - (a[1] + t * axis[1])
        radius = radius_a + (radius_b - radius_a) * t
        alpha = np.clip((radius - np.sqrt(dx * dx + dy * dy)) * self.s + 0.5, 0, 1)
        # The surface of a cylinder under a light from the upper left in front.
        nx, ny = dx / radius, dy / radius
        nz = np.sqrt(np.clip(1 - nx * nx - ny * ny, 0, 1))
        return where, alpha, 1 + depth * (np.clip(-0.45 * nx - 0.3 * ny + 0.84 * nz, 0, 1) - 0.86)

    def limb(self, a, b, radius_a, radius_b, colour, label=None, depth=0.34):
        found = self.limb_field(a, b, radius_a, radius_b, depth)
        if found is not None:
            where, alpha, light = found
            self.blend(where, alpha, np.asarray(colour, np.float32) * light[..., None], label)

    def glow(self, centre, radius_x, radius_y, colour, opacity, angle: float = 0.0):
        """A soft spot of colour: shadow, blush, light."""
        centre = np.asarray(centre, float)
        reach = 2.2 * max(radius_x, radius_y)
        box = self.window(centre - reach, centre + reach)
        if box is None:
            return
        where, x, y = box
        c, s = np.cos(angle), np.sin(angle)
        u, v = (x - centre[0]) * c + (y - centre[1]) * s, (y - centre[1]) * c - (x - centre[0]) * s
        alpha = opacity * np.exp(-((u / radius_x) ** 2 + (v / radius_y) ** 2))
        self.blend(where, alpha.astype(np.float32), np.asarray(colour, np.float32))

    def line(self, points, width, colour, opacity=1.0):
        """A stroke with round ends through points (k, 2)."""
        points = np.asarray(points, float)
        box = self.window(points.min(0) - width, points.max(0) + width)
        if box is None:
            return
        where, x, y = box
        distance = np.full((y.size, x.size), 1e9, np.float32)
        for a, b in zip(points[:-1], points[1:]):
            axis = b - a
            t = np.clip(((x - a[0]) * axis[0] + (y - a[1]) * axis[1]) / max(float(axis @ axis), 1e-6), 0, 1)
            distance = np.minimum(distance, (x - a[0] - t * axis[0]) ** 2 + (y - a[1] - t * axis[1]) ** 2)
        alpha = np.clip((width / 2 - np.sqrt(distance)) * self.s + 0.5, 0, 1) * min(1.0, max(width * self.s, 0.35))
        self.blend(where, (opacity * alpha).astype(np.float32), np.asarray(colour, np.float32))


def _mix(a, b, t: float) -> np.ndarray:
    return np.asarray(a, np.float32) * (1 - t) + np.asarray(b, np.float32) * t


def _noise(rng, hw: tuple[int, int], cells: tuple[int, int]) -> np.ndarray:
    """Smooth noise (H, W) float32 with mean 0 and standard deviation near 1."""
    field = rng.standard_normal((cells[0] + 3, cells[1] + 3)).astype(np.float32)
    return cv2.resize(field, (hw[1], hw[0]), interpolation=cv2.INTER_CUBIC)


# ---------------------------------------------------------------------------------------------------------------------
# The garment
# ---------------------------------------------------------------------------------------------------------------------

def _sample_cut(rng, sleeves: str | None) -> _Cut:
    kind = sleeves or str(rng.choice(SLEEVES, p=(0.15, 0.45, 0.40)))
    reach = {"none": 0.0, "short": rng.uniform(0.24, 0.36), "long": rng.uniform(0.93, 0.98)}[kind]
    v_neck = bool(rng.random() < 0.3)
    return _Cut(kind, reach, rng.uniform(54, 74), rng.uniform(52, 78) if v_neck else rng.uniform(8, 44), v_neck,
                rng.uniform(-26, 30), rng.uniform(8, 20), rng.uniform(-4, 16))


def _mannequin(rng, cut: _Cut) -> _Skeleton:
    """The flat product's skeleton: straight arms, a box-shaped trunk."""
    angle = rng.uniform(0.24, 0.5) if cut.sleeves == "long" else rng.uniform(0.55, 0.95)
    neck = np.array([384.0, 340.0])
    shoulders = neck + np.array([[-134, 0], [134, 0]])
    arm = np.array([np.sin(angle), np.cos(angle)])
    mirror = np.array([[-1, 1], [1, 1]])
    return _Skeleton(neck, shoulders, shoulders + 236 * arm * mirror, shoulders + 460 * arm * mirror,
                     neck + np.array([[-80, 380], [80, 380]]), 122, 116, 128, (44, 41, 31))


def _texture(rng, print_: str, size: tuple[int, int]) -> np.ndarray:
    """The cloth's print over the whole canvas, (H, W, 3) float32."""
    H, W = size
    s = W / 768
    first, second = (np.array(_CLOTH_COLOURS[i], np.float32) for i in rng.choice(len(_CLOTH_COLOURS), 2, replace=False))
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
        thin = _mix(first, (255, 255, 255) if first.sum() < 380 else (20, 20, 20), 0.6)
        for v in (x, y):
            cloth += 0.8 * bands(v + period / 2, period, 0.07) * (thin - cloth)
    elif print_ == "letters":
        word = _WORDS[rng.integers(len(_WORDS))]
        if rng.random() < 0.5:
            centre = np.array([384, 505])
            disc = np.clip((rng.uniform(92, 118) - np.hypot(x - centre[0], y - centre[1])) * s + 0.5, 0, 1)[..., None]
            third = np.array(_CLOTH_COLOURS[rng.integers(len(_CLOTH_COLOURS))], np.float32)
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
        part = cloth[top:top + height, left:left + width]
        part += ink[:part.shape[0], :part.shape[1]] * (second - part)
    return cloth


def _draw_product(rng, cut: _Cut, print_: str, size: tuple[int, int]):
    """The flat product: cloth (H, W, 3) uint8 on 246, mask (H, W) uint8 0/255, and its points for 768 x 1024."""
    H, W = size
    s = W / 768
    points = _garment_points(cut, _mannequin(rng, cut))
    low, high = points.outline.min(0), points.outline.max(0)
    scale = min(0.86 * 768 / (high - low)[0], 0.90 * 1024 / (high - low)[1])
    centre = (low + high) / 2
    points = points.moved(lambda p: (p - centre) * scale + (384, 512))
    curve = _smooth(points.outline, points.corners)
    canvas = _Canvas(size)
    where, _, _, alpha = canvas.coverage(curve)
    full = np.zeros((H, W), np.float32)
    full[where] = alpha
    # The print belongs to the garment, so it is scaled with it.
    move = np.array([[scale, 0, (384 - centre[0] * scale) * s], [0, scale, (512 - centre[1] * scale) * s]])
    texture = cv2.warpAffine(_texture(rng, print_, size), move, (W, H), flags=cv2.INTER_LINEAR,
                             borderMode=cv2.BORDER_REFLECT)
    depth = cv2.GaussianBlur(full, (0, 0), 9 * s)  # falls towards the outline, like the light on a thick edge
    light = 0.95 + 0.12 * (depth - 0.75) + 0.012 * _noise(rng, size, (7, 5))
    canvas.rgb[:] = texture * light[..., None]
    dark = texture.mean((0, 1)) * 0.5
    k = 6  # curve points per outline point
    closed = np.vstack([curve, curve[:k]])
    n = len(points.names)
    for i, name in enumerate(points.names):
        following = points.names[(i + 1) % n]
        edge = closed[i * k:(i + 1) * k + 1]
        if "neckline" in (name, following):
            canvas.line(edge, 13, dark, 0.55)
        elif name == following == "cuff" or {name, following} <= {"hem", "hem middle"}:
            canvas.line(edge, 7, dark, 0.35)
    mask = (full > 0.5).astype(np.uint8) * 255
    cloth = np.where(mask[..., None] > 0, canvas.rgb.clip(0, 255), 246).astype(np.uint8)
    return cloth, mask, points


# ---------------------------------------------------------------------------------------------------------------------
# The person
# ---------------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class _Look:
    skin: np.ndarray
    hair: np.ndarray
    hair_style: str
    iris: np.ndarray
    lips: np.ndarray
    lower: np.ndarray
    skirt: bool
    background: np.ndarray
    head: float  # size of the head
    tilt: float  # of the head, radians
    face: float  # width of the face


def _sample_person(rng, pose: str | None) -> tuple[_Skeleton, _Look, np.ndarray]:
    """A body in a pose, its looks, and the nose's place."""
    pose = pose or str(rng.choice(POSES, p=(0.55, 0.3, 0.15)))
    size = rng.uniform(0.94, 1.03) * {"down": 1.0, "hips": 0.96, "raised": 0.79}[pose]
    neck = np.array([384 + rng.uniform(-22, 22), 340 + rng.uniform(-8, 10)])
    slope = rng.uniform(-5, 5)
    wide = size * rng.uniform(120, 134)
    shoulders = neck + np.array([[-wide, slope], [wide, -slope]])
    middle = neck + np.array([rng.uniform(-14, 14), 394 * size])
    hip_wide, hip_slope = 80 * size, rng.uniform(-5, 5)
    hips = middle + np.array([[-hip_wide, hip_slope], [hip_wide, -hip_slope]])
    build = rng.uniform(0.92, 1.06)
    chest, waist, hip = wide * 0.86 * build, wide * 0.77 * build, wide * 0.94 * build
    upper_arm, forearm = 232 * size, 222 * size
    elbows, wrists = np.empty((2, 2)), np.empty((2, 2))
    for side, sign in ((0, -1), (1, 1)):
        if pose == "hips":  # the hands rest beside the hips; the elbows follow
            wrists[side] = middle + (sign * (hip + rng.uniform(62, 80)), rng.uniform(-70, -34))
            reach = wrists[side] - shoulders[side]
            length = min(float(np.linalg.norm(reach)), 0.97 * (upper_arm + forearm))
            along = (upper_arm**2 - forearm**2 + length**2) / (2 * length)
            out = np.array([reach[1], -reach[0]]) / np.linalg.norm(reach) * sign
            elbows[side] = shoulders[side] + reach / np.linalg.norm(reach) * along + out * np.sqrt(
                max(upper_arm**2 - along**2, 0))
            continue
        if pose == "down":
            upper = rng.uniform(0.25, 0.38)
            lower = upper - rng.uniform(0.08, 0.3)
        else:
            upper = rng.uniform(1.25, 1.5)
            lower = upper + rng.uniform(1.05, 1.3)
        elbows[side] = shoulders[side] + upper_arm * np.array([sign * np.sin(upper), np.cos(upper)])
        wrists[side] = elbows[side] + forearm * np.array([sign * np.sin(lower), np.cos(lower)])
    skeleton = _Skeleton(
        neck, shoulders, elbows, wrists, hips, chest, waist, hip,
        (38 * size * build, 31 * size * build, 21 * size),
    )
    skin = np.array(_SKIN[rng.integers(len(_SKIN))], np.float32) + rng.uniform(-6, 6)
    look = _Look(
        skin, np.array(_HAIR_COLOURS[rng.integers(len(_HAIR_COLOURS))], np.float32), str(rng.choice(HAIR)),
        np.array(_IRIS[rng.integers(len(_IRIS))], np.float32), _mix(skin * (0.86, 0.56, 0.56), (186, 60, 72), 0.35),
        np.array(_TROUSER_COLOURS[rng.integers(len(_TROUSER_COLOURS))], np.float32), bool(rng.random() < 0.25),
        np.array(_BACKGROUNDS[rng.integers(len(_BACKGROUNDS))], np.float32),
        size * rng.uniform(0.97, 1.05), rng.uniform(-0.09, 0.09), rng.uniform(0.94, 1.04),
    )
    nose = neck + np.array([rng.uniform(-10, 10), -172 * size])
    return skeleton, look, nose


def _keypoints(skeleton: _Skeleton, nose: np.ndarray, look: _Look, size: tuple[int, int]) -> np.ndarray:
    H, W = size
    joints = np.zeros((25, 3), np.float32)
    head = _head_frame(nose, look)
    places = {
        0: nose, 1: skeleton.shoulders.mean(0), 2: skeleton.shoulders[0], 3: skeleton.elbows[0], 4: skeleton.wrists[0],
        5: skeleton.shoulders[1], 6: skeleton.elbows[1], 7: skeleton.wrists[1], 8: skeleton.hips.mean(0),
        9: skeleton.hips[0], 12: skeleton.hips[1], 15: head(-29, -30), 16: head(29, -30), 17: head(-66, -10),
        18: head(66, -10),
    }
    for joint, place in places.items():
        x, y = np.asarray(place) * W / 768
        if 0 <= x < W and 0 <= y < H:
            joints[joint] = x, y, 1
    return joints


def _head_frame(nose: np.ndarray, look: _Look):
    """Function that takes x, y around the nose, in an upright head of usual size, to the picture."""
    c, s = np.cos(look.tilt), np.sin(look.tilt)

    def place(x, y):
        x, y = np.asarray(x, float) * look.head * look.face, np.asarray(y, float) * look.head
        return np.stack([nose[0] + c * x - s * y, nose[1] + s * x + c * y], -1)

    return place


def _draw_hair_mass(canvas: _Canvas, rng, points, look: _Look, crown, label=2):
    """Hair with strands that run away from the crown."""
    found = canvas.coverage(np.asarray(points))
    if found is None:
        return
    where, x, y, alpha = found
    angle = np.arctan2(y - crown[1] + 60, x - crown[0])
    radius = np.hypot(x - crown[0], y - crown[1])
    strands = rng.standard_normal(96).astype(np.float32)
    strands = 0.5 * strands + 0.5 * np.convolve(np.tile(strands, 3), np.ones(9) / 3, "same")[96:192]
    place = (angle + np.pi) / (2 * np.pi) * 95 + 0.004 * radius
    texture = np.interp(place.ravel() % 95, np.arange(96), strands).reshape(place.shape).astype(np.float32)
    shine = np.exp(-(((radius - 66) / 22) ** 2)) * np.clip(0.6 - (x - crown[0]) / 160, 0, 1)
    light = 1 + 0.09 * texture + 0.28 * shine - 0.0010 * np.clip(radius - 40, 0, 200)
    canvas.blend(where, alpha, look.hair * light[..., None].astype(np.float32) + 10 * shine[..., None], label)


def _draw_back_hair(canvas: _Canvas, rng, look: _Look, place, neck):
    crown = place(0, -95)
    if look.hair_style == "bun":
        centre = place(0, -128)
        angles = np.linspace(0, 2 * np.pi, 28, endpoint=False)
        _draw_hair_mass(
            canvas,
            rng,
            centre + np.stack([40 * np.cos(angles), 34 * np.sin(angles)], -1) * look.head,
            look,
            place(-8, -150),
        )
    if look.hair_style in ("bob", "long"):
        drop = 92 if look.hair_style == "bob" else 240
        spread = 96 if look.hair_style == "bob" else 104
        outer = [(-70, -85), (-92, -20), (-spread, 40), (-spread + 6, drop), (-30, drop - 8), (30, drop - 8),
                 (spread - 6, drop), (spread, 40), (92, -20), (70, -85), (0, -116)]
        shape = _smooth(place(*np.array(outer).T))
        _draw_hair_mass(canvas, rng, shape, look, crown)
        canvas.glow(place(0, 60), 60, 70, look.hair * 0.45, 0.75)


def _draw_lower_body(canvas: _Canvas, rng, skeleton: _Skeleton, look: _Look):
    left, right = skeleton.hips - (0, 54)
    middle = (left + right) / 2
    width = skeleton.hip + 4
    waist_y = middle[1] - 70
    length = rng.uniform(190, 290)
    if look.skirt:
        for hip, label in ((left, 17), (right, 16)):
            canvas.limb(hip * (0.9, 1) + middle * (0.1, 0) + (0, 140), hip + (0, 460), 50, 42, look.skin * 0.98, label)
        hem = middle[1] + length
        shape = [(middle[0] - width * 0.82, waist_y), (middle[0] + width * 0.82, waist_y),
                 (middle[0] + width * 1.04, middle[1] + 30), (middle[0] + width * 1.18, hem),
                 (middle[0], hem + 10), (middle[0] - width * 1.18, hem), (middle[0] - width * 1.04, middle[1] + 30)]
        u = width * 1.1
        canvas.polygon(
            _smooth(np.array(shape), {0, 1, 3, 5}),
            look.lower,
            12,
            lambda x, y: 1.04 - 0.30 * ((x - middle[0]) / u + 0.25) ** 2 + 0.03 * np.sin((x - middle[0]) / 13),
        )
    else:
        reach = 0.5 * width
        for hip, sign in ((left, -1), (right, 1)):
            top = np.array([middle[0] + sign * reach * 0.96, middle[1] + 10])
            canvas.limb(top, top + (sign * 8, 460), reach + 10, reach - 8, look.lower, 9, 0.5)
        shape = [
            (middle[0] - width * 0.86, waist_y),
            (middle[0] + width * 0.86, waist_y),
            (middle[0] + width, middle[1]),
            (middle[0] + width * 0.98, middle[1] + 70),
            (middle[0], middle[1] + 110),
            (middle[0] - width * 0.98, middle[1] + 70),
            (middle[0] - width, middle[1]),
        ]
        canvas.polygon(_smooth(np.array(shape), {0, 1}), look.lower, 9,
                       lambda x, y: 1.04 - 0.34 * ((x - middle[0]) / width + 0.2) ** 2)
        dark = look.lower * 0.6
        canvas.line(
            [(middle[0] + 2, middle[1] + 20), (middle[0], middle[1] + 112), (middle[0] - 1, 1030)], 3, dark, 0.6
        )
        for sign in (-1, 1):
            canvas.line(
                [(middle[0] + sign * width * 0.84, middle[1] - 16), (middle[0] + sign * width * 0.6, middle[1] + 34)],
                3,
                dark,
                0.6,
            )


def _draw_torso_skin(canvas: _Canvas, skeleton: _Skeleton, look: _Look, place):
    """Shoulders, chest and neck: what necklines and missing sleeves leave bare."""
    (x, y), (left, right) = skeleton.neck, skeleton.shoulders
    chest = skeleton.chest
    shape = [(x + 38, y - 72), (x + 56, y - 46), right + (-4, -28), right + (8, 4), (x + chest * 0.84, y + 120),
             (x + chest * 0.7, y + 250), (x - chest * 0.7, y + 250), (x - chest * 0.84, y + 120), left + (-8, 4),
             left + (4, -28), (x - 56, y - 46), (x - 38, y - 72)]
    canvas.polygon(_smooth(np.array([np.asarray(p, float) for p in shape])), look.skin, 10,
                   lambda px, py: 1.03 - 0.12 * ((px - x) / 150 + 0.2) ** 2 + 0 * py)
    chin = place(0, 60)
    canvas.limb(chin, (x, y - 14), 43, 47, look.skin * 0.97, 10, 0.30)
    canvas.glow((chin[0] + 5, chin[1] + 30), 38, 20, look.skin * 0.62, 0.45)
    for sign in (-1, 1):  # collar bones
        canvas.line(
            [(x + sign * 20, y + 6), (x + sign * 58, y - 4), (x + sign * 98, y - 10)], 4, look.skin * 0.72, 0.28
        )


def _draw_hand(canvas: _Canvas, skeleton: _Skeleton, look: _Look, side: int, label: int):
    elbow, wrist = skeleton.elbows[side], skeleton.wrists[side]
    along = (wrist - elbow) / np.linalg.norm(wrist - elbow)
    across = np.array([along[1], -along[0]]) * (-1, 1)[side]  # away from the body for a hanging arm
    r = skeleton.arm[2]
    skin = look.skin
    palm = wrist + along * 1.7 * r
    canvas.limb(wrist, palm, r * 0.92, r * 1.02, skin, label)
    for i, length in enumerate((1.55, 1.8, 1.75, 1.35)):
        base = palm + across * r * (-0.72 + 0.48 * i) + along * 0.25 * r
        tip = base + along * r * length + across * r * 0.08 * (i - 1.5)
        canvas.limb(base, tip, r * 0.30, r * 0.22, skin * (0.97 - 0.015 * i), label, 0.5)
    thumb = wrist + along * 0.9 * r - across * r * 0.7
    canvas.limb(thumb, thumb + along * 1.5 * r - across * 0.55 * r, r * 0.34, r * 0.24, skin * 0.98, label, 0.5)


def _draw_head(canvas: _Canvas, rng, look: _Look, place, nose):
    skin, h = look.skin, look.head
    deep = _mix(skin * 0.62, (120, 50, 40), 0.25)
    # Ears, then the face with light from the upper left.
    for sign in (-1, 1):
        canvas.limb(place(sign * 67, -20), place(sign * 64, 4), 12 * h, 9 * h, skin * 0.95, 13)
        canvas.glow(place(sign * 68, -10), 5 * h, 9 * h, deep, 0.35)
    half = [(26, -104), (52, -86), (66, -46), (67, -6), (61, 32), (46, 62), (24, 80)]
    oval = [*half, (0, 84), *[(-x, y) for x, y in half[::-1]], (0, -110)]
    c = place(0, -10)
    canvas.polygon(
        _smooth(place(*np.array(oval).T)),
        skin,
        13,
        lambda x, y: np.clip(
            1.045 - 0.17 * (((x - c[0]) / (70 * h) + 0.18) ** 2) - 0.10 * np.clip((y - c[1]) / (95 * h), -1, 1) ** 2,
            0.6,
            1.1,
        ),
    )
    for sign in (-1, 1):
        canvas.glow(place(sign * 38, 14), 20 * h, 15 * h, _mix(skin, (226, 96, 92), 0.5), 0.30)
        canvas.glow(place(sign * 29, -36), 19 * h, 11 * h, deep, 0.20)
    canvas.glow(place(60, 30), 18 * h, 48 * h, deep, 0.22)
    canvas.glow(place(-20, -68), 34 * h, 18 * h, np.minimum(skin * 1.12 + 6, 255), 0.35)
    # Eyes and brows.
    for sign in (-1, 1):
        ex, ey = sign * 29, -30
        white = [(ex - 16, ey + 1), (ex - 8, ey - 6), (ex + 1, ey - 8), (ex + 9, ey - 6), (ex + 16, ey + 1),
                 (ex + 8, ey + 6), (ex - 8, ey + 6)]
        white = _smooth(place(*np.array(white).T))
        canvas.polygon(white, (246, 244, 240), 13, lambda x, y: 0.94 + 0 * (x + y))
        iris = place(ex, ey - 1)
        canvas.limb(iris, iris + 0.01, 7.6 * h, 7.6 * h, look.iris * 0.7, 13, 0)
        canvas.limb(iris, iris + 0.01, 6.0 * h, 6.0 * h, look.iris * 1.15, 13, 0)
        canvas.limb(iris, iris + 0.01, 3.4 * h, 3.4 * h, (18, 14, 14), 13, 0)
        canvas.limb(iris + (-2.4 * h, -2.8 * h), iris + (-2.4 * h, -2.79 * h), 1.8 * h, 1.8 * h, (255, 255, 255), 13, 0)
        lid = place(
            *np.array([(ex - 17, ey + 1), (ex - 8, ey - 7), (ex + 1, ey - 9), (ex + 9, ey - 7), (ex + 17, ey + 0)]).T
        )
        canvas.line(lid, 4.2 * h, (40, 26, 24), 0.92)
        canvas.line(lid + (0, -6 * h), 2.0 * h, deep, 0.45)
        under = place(*np.array([(ex - 13, ey + 5), (ex, ey + 8), (ex + 13, ey + 5)]).T)
        canvas.line(under, 1.8 * h, deep, 0.45)
        brow = place(*np.array([(ex - sign * 17, ey - 18), (ex - sign * 4, ey - 23), (ex + sign * 9, ey - 23),
                                (ex + sign * 20, ey - 16)]).T)
        canvas.line(brow, 6.0 * h, _mix(look.hair, (50, 36, 30), 0.45), 0.78)
    # Nose: a shaded side, a lit tip, nostrils.
    canvas.line(place(*np.array([(8, -24), (10, -4), (13, 4)]).T), 6 * h, deep, 0.16)
    canvas.glow(place(-1, -12), 5 * h, 20 * h, np.minimum(skin * 1.1 + 8, 255), 0.40)
    canvas.glow(place(0, 2), 9 * h, 7 * h, np.minimum(skin * 1.08 + 6, 255), 0.45)
    canvas.line(place(*np.array([(-14, 5), (-9, 11), (-3, 10), (3, 10), (9, 11), (14, 5)]).T), 2.6 * h, deep, 0.55)
    for sign in (-1, 1):
        canvas.glow(place(sign * 6, 10), 3.6 * h, 2.2 * h, (60, 26, 24), 0.75)
    canvas.glow(place(0, 18), 9 * h, 5 * h, deep, 0.25)
    # Mouth.
    upper = [(-25, 38), (-12, 33), (-5, 31), (0, 33), (5, 31), (12, 33), (25, 38), (10, 39.5), (-10, 39.5)]
    lower = [(-24, 38.5), (-10, 40), (10, 40), (24, 38.5), (13, 49), (0, 52), (-13, 49)]
    canvas.polygon(_smooth(place(*np.array(lower).T), {0, 3}), np.minimum(look.lips * 1.10, 255), 13)
    canvas.polygon(_smooth(place(*np.array(upper).T), {0, 6}), look.lips * 0.92, 13)
    canvas.line(place(*np.array([(-26, 38), (-10, 40), (0, 39), (10, 40), (26, 38)]).T), 2.0 * h, look.lips * 0.45, 0.8)
    canvas.glow(place(-2, 45), 8 * h, 2.6 * h, (255, 236, 230), 0.35)
    canvas.glow(place(0, 58), 14 * h, 4 * h, deep, 0.30)


def _draw_front_hair(canvas: _Canvas, rng, look: _Look, place, neck):
    crown = place(-18, -104)
    side = {"short": -34, "bun": -36, "bob": 30, "long": 22}[look.hair_style]
    inner = [(62, -30), (56, -56), (30, -76), (-6, -84), (-26, -80), (-46, -62), (-60, -30)]
    if look.hair_style == "bob":
        inner = [(60, side), (62, -28), (48, -54), (10, -58), (-30, -54), (-56, -44), (-60, side)]
    if look.hair_style == "long":
        inner = [(62, side), (60, -34), (40, -62), (4, -88), (-36, -66), (-58, -36), (-62, side)]
    outer = [
        (-76, side),
        (-80, -48),
        (-66, -100),
        (-34, -126),
        (0, -132),
        (36, -126),
        (68, -100),
        (82, -48),
        (77, side),
    ]
    shape = _smooth(place(*np.array(inner + outer).T), {0, 6, 7, 15})
    canvas.glow(place(0, -62), 60 * look.head, 16 * look.head, look.skin * 0.55, 0.35)
    _draw_hair_mass(canvas, rng, shape, look, crown)
    if look.hair_style == "long":
        for sign in (-1, 1):
            lock = [
                (sign * 62, 0),
                (sign * 74, -30),
                (sign * 92, 30),
                (sign * 104, 130),
                (sign * 96, 226),
                (sign * 84, 262),
                (sign * 70, 220),
                (sign * 68, 130),
                (sign * 66, 60),
            ]
            _draw_hair_mass(canvas, rng, _smooth(place(*np.array(lock).T)), look, crown)


def _body_light(canvas: _Canvas, skeleton: _Skeleton, rng) -> np.ndarray:
    """Brightness of cloth on the body: a round trunk, round sleeves that throw a shadow on it, and folds; (H, W)."""
    H, W, s = canvas.H, canvas.W, canvas.s
    x = (np.arange(W, dtype=np.float32) + 0.5)[None] / s
    y = (np.arange(H, dtype=np.float32) + 0.5)[:, None] / s
    axis = np.interp(y, (skeleton.neck[1], skeleton.hips[:, 1].mean()), (skeleton.neck[0], skeleton.hips[:, 0].mean()))
    u = (x - axis) / (1.25 * skeleton.chest)
    light = (1.06 - 0.24 * (u + 0.22) ** 2).astype(np.float32)
    folds = _noise(rng, (H, W), (6, 9)) * np.clip((y - skeleton.neck[1] - 60) / 300, 0.25, 1)
    light += 0.035 * folds.astype(np.float32)
    for side in (0, 1):
        joints = (skeleton.shoulders[side], skeleton.elbows[side], skeleton.wrists[side])
        for a, b, ra, rb in zip(joints, joints[1:], skeleton.arm, skeleton.arm[1:]):
            found = canvas.limb_field(a, b, ra + 14, rb + 12, 0.5)
            if found is not None:
                where, alpha, brightness = found
                away = np.hypot(x[:, where[1]] - joints[0][0], y[where[0]] - joints[0][1])
                alpha = alpha * np.clip((away - 15) / 90, 0, 1)  # the sleeve grows out of the shoulder
                light[where] += alpha * (brightness - light[where])
    near = cv2.GaussianBlur(light, (0, 0), 6 * s)
    return 0.4 * light + 0.6 * near


# ---------------------------------------------------------------------------------------------------------------------
# The pair
# ---------------------------------------------------------------------------------------------------------------------

def _between(cells: int, step: int) -> np.ndarray:
    """(cells * step, cells + 2) Catmull-Rom weights from a lattice with one more cell at either end to pixels.

    Catmull-Rom, unlike OpenCV's cubic, keeps straight lines straight; otherwise a hem would ripple with the lattice.
    """
    at = (np.arange(cells * step) + 0.5) / step + 0.5
    base = np.clip(np.floor(at).astype(int), 1, cells - 1)
    t = at - base
    weights = np.zeros((len(at), cells + 2), np.float32)
    rows = np.arange(len(at))
    for offset, value in enumerate(
        (
            -0.5 * t**3 + t**2 - 0.5 * t,
            1.5 * t**3 - 2.5 * t**2 + 1,
            -1.5 * t**3 + 2 * t**2 + 0.5 * t,
            0.5 * t**3 - 0.5 * t**2,
        )
    ):
        weights[rows, base - 1 + offset] = value
    return weights


def _warp(worn: _Points, product: _Points, size: tuple[int, int]) -> np.ndarray:
    """Sampling grid (H, W, 2) in [-1, 1]: the spline from the garment's points on the body to those on the product.

    The picture's border goes to the canvas's border, so that the spline stays tame far from the garment. The spline is
    evaluated on a lattice of 64 x 48 cells and interpolated: the lattice's interpolation is the warp.
    """
    H, W = size
    frame = np.array([(x, y) for x in (0, 192, 384, 576, 768) for y in (0, 256, 512, 768, 1024)
                      if x in (0, 768) or y in (0, 1024)], float)
    far = np.linalg.norm(frame[:, None] - worn.outline[None], axis=2).min(1) > 150
    frame = frame[far]
    spline = _Spline(np.vstack([worn.all, frame]), np.vstack([product.all, frame]))
    step = W // 48
    x = (np.arange(-1, 49) + 0.5) * 16
    y = (np.arange(-1, 65) + 0.5) * 16
    lattice = spline(np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)).reshape(66, 50, 2).astype(np.float32)
    full = np.einsum("yj,jic,xi->yxc", _between(64, step), lattice, _between(48, step), optimize=True)
    return np.ascontiguousarray(full / np.array([384, 512], np.float32) - 1)


def _sample(image: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Bilinear sampling as torch's grid_sample does with align_corners=False; the border is repeated."""
    H, W = image.shape[:2]
    x, y = (grid[..., 0] + 1) * W / 2 - 0.5, (grid[..., 1] + 1) * H / 2 - 0.5
    return cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def folded(grid: np.ndarray, mask: np.ndarray) -> float:
    """Share of the mask's pixels where the warp turns over: its Jacobian determinant is not positive.

    grid: (H, W, 2) sampling grid; mask: (H, W), above 0 where it counts.
    """
    dx, dy = np.diff(grid[:-1], axis=1), np.diff(grid[:, :-1], axis=0)
    determinant = dx[..., 0] * dy[..., 1] - dx[..., 1] * dy[..., 0]
    inside = mask[:-1, :-1] > 0
    return float((determinant[inside] <= 0).mean()) if inside.any() else 0.0


def draw_pair(
    seed: int,
    size: tuple[int, int] = (512, 384),
    print_: str | None = None,
    sleeves: str | None = None,
    pose: str | None = None,
    garment_seed: int | None = None,
) -> DrawnPair:
    """Draw a person and the product picture of the garment that the person wears; equal arguments, equal pictures.

    size: (H, W), a multiple of (64, 48). print_: "plain", "stripes", "checks" or "letters"; sleeves: "none", "short" or
    "long"; pose: "down", "hips" or "raised"; None lets the seed choose. garment_seed: take the garment of another seed,
    with the same person, hair, light and trousers: a true picture of an unpaired try-on.
    Raises ValueError for an unknown choice or size.
    """
    H, W = size
    if H * 3 != W * 4 or W % 48 or W <= 0:
        raise ValueError(f"The size of a drawn pair is a multiple of 64 x 48, such as 512 x 384, not {H} x {W}.")
    for value, known in ((print_, PRINTS), (sleeves, SLEEVES), (pose, POSES)):
        if value is not None and value not in known:
            raise ValueError(f"{value} is unknown; choose one of {', '.join(known)}.")
    # Person and garment have generators of their own, so that each stays the same when the other changes.
    body, cloth_rng = np.random.default_rng([seed, 0]), np.random.default_rng(
        [seed if garment_seed is None else garment_seed, 1])
    skeleton, look, nose = _sample_person(body, pose)
    cut = _sample_cut(cloth_rng, sleeves)
    chosen = str(cloth_rng.choice(PRINTS))
    print_ = print_ or chosen
    cloth, cloth_mask, product = _draw_product(cloth_rng, cut, print_, size)
    worn = _garment_points(cut, skeleton)
    grid = _warp(worn, product, size)

    canvas = _Canvas(size)
    y = np.linspace(-0.5, 0.5, H, dtype=np.float32)[:, None]
    x = np.linspace(-0.5, 0.5, W, dtype=np.float32)[None]
    canvas.rgb[:] = look.background * (1.06 - 0.16 * (x - 0.1) ** 2 - 0.14 * (y + 0.2) ** 2 - 0.05 * y)[..., None]
    middle = (skeleton.neck + skeleton.hips.mean(0)) / 2
    canvas.glow(middle + (26, 90), 190, 380, look.background * 0.55, 0.38)
    place = _head_frame(nose, look)

    hair_rng = np.random.default_rng([seed, 2])
    _draw_back_hair(canvas, hair_rng, look, place, skeleton.neck)
    _draw_lower_body(canvas, hair_rng, skeleton, look)
    _draw_torso_skin(canvas, skeleton, look, place)
    for side, label in ((0, 15), (1, 14)):
        # What a sleeve hides is not drawn, so that no skin looks out beside it.
        if cut.sleeves == "long":
            canvas.limb(_along_arm(skeleton, side, 400 * look.head)[0], skeleton.wrists[side], skeleton.arm[2] + 4,
                        skeleton.arm[2], look.skin, label)
        else:
            start = skeleton.shoulders[side] + (0, 8)
            if cut.sleeves == "short":
                start = _along_arm(skeleton, side, 90)[0]
            canvas.limb(start, skeleton.elbows[side], *skeleton.arm[:2], look.skin, label)

    soft = _sample(cloth_mask, grid).astype(np.float32) / 255
    # Far outside the garment a bent warp may reach the product a second time; only the garment itself is worn.
    reach = np.zeros((H, W), np.uint8)
    outline = _smooth(worn.outline, worn.corners) * canvas.s - 0.5
    cv2.fillPoly(reach, [np.round(outline * 16).astype(np.int32)], 255, cv2.LINE_8, 4)
    # Closing mends the small holes that the even-odd rule leaves where a raised sleeve's outline crosses itself.
    reach = cv2.morphologyEx(reach, cv2.MORPH_CLOSE, np.ones((2 * max(1, round(14 * canvas.s)) + 1,) * 2, np.uint8))
    reach = cv2.dilate(reach, np.ones((2 * max(1, round(6 * canvas.s)) + 1,) * 2, np.uint8))
    soft[reach == 0] = 0
    worn_mask = (soft > 0.5).astype(np.uint8) * 255
    colours = _sample(cloth, grid).astype(np.float32)
    light = _body_light(canvas, skeleton, np.random.default_rng([seed, 3]))
    rim = cv2.GaussianBlur(soft, (0, 0), 7 * canvas.s)
    light = light * (0.80 + 0.24 * np.clip(rim, 0, 1))
    canvas.blend((slice(0, H), slice(0, W)), np.clip(2 * soft - 0.5, 0, 1), colours * light[..., None], 5)

    for side, label in ((0, 15), (1, 14)):
        if cut.sleeves != "long":
            canvas.limb(skeleton.elbows[side], skeleton.wrists[side], *skeleton.arm[1:], look.skin, label)
        _draw_hand(canvas, skeleton, look, side, label)
    _draw_head(canvas, hair_rng, look, place, nose)
    _draw_front_hair(canvas, hair_rng, look, place, skeleton.neck)

    rows, columns = (np.arange(5) * (H - 1) / 4).round().astype(int), (np.arange(5) * (W - 1) / 4).round().astype(int)
    return DrawnPair(
        person=canvas.rgb.clip(0, 255).astype(np.uint8),
        parse=canvas.labels,
        keypoints=_keypoints(skeleton, nose, look, size),
        cloth=cloth,
        cloth_mask=cloth_mask,
        worn_cloth=np.where(worn_mask[..., None] > 0, _sample(cloth, grid), np.uint8(246)),
        worn_mask=worn_mask,
        grid=grid,
        control_points=grid[np.ix_(rows, columns)].transpose(1, 0, 2).reshape(25, 2).copy(),
        sleeves=cut.sleeves,
        print_=print_,
    )


def main(argv=None) -> None:
    """Write the example pictures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, options in EXAMPLE_PEOPLE.items():
        Image.fromarray(draw_pair(size=EXAMPLE_SIZE, **options).person).save(arguments.out / name, optimize=True)
    for name, options in EXAMPLE_GARMENTS.items():
        Image.fromarray(draw_pair(size=EXAMPLE_SIZE, **options).cloth).save(arguments.out / name, optimize=True)
    print(f"Wrote {len(EXAMPLE_PEOPLE) + len(EXAMPLE_GARMENTS)} pictures to {arguments.out}.")


if __name__ == "__main__":
    main()
