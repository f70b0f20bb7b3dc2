"""Shapes of drawn garments: named points on a skeleton, smooth outlines, and the spline between two sets of points."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True)
class Skeleton:
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
class Cut:
    """How a garment is cut: sleeve kind and length (share of the arm), neckline width, depth and kind, hem, ease."""

    sleeves: str
    reach: float
    neck_width: float
    neck_depth: float
    v_neck: bool
    length: float  # hem, below the hips
    ease: float
    flare: float


def along_arm(skeleton: Skeleton, side: int, distance: float):
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
class Points:
    """outline (n, 2) in order around the garment, names (n,), inside (m, 2); the same order on every skeleton."""

    outline: np.ndarray
    names: tuple[str, ...]
    inside: np.ndarray

    @property
    def corners(self) -> set[int]:
        """Numbers of the points at which an outline turns sharply."""
        return {i for i, name in enumerate(self.names) if name in ("collar", "cuff", "armpit", "hem")}

    def move(self, move) -> Points:
        """The same points elsewhere; move: (N, 2) -> (N, 2)."""
        return Points(move(self.outline), self.names, move(self.inside))

    @property
    def all(self) -> np.ndarray:
        """Outline and inner points, (N, 2)."""
        return np.vstack([self.outline, self.inside])


def sleeve_points(cut: Cut, skeleton: Skeleton, side: int, collar: np.ndarray, armpit: np.ndarray, lift: float):
    """Outline of a sleeve from collar to armpit as (name, point) pairs, and the points that steady the spline there.

    lift: 0 for a hanging arm, up to 1.85 for a raised one.
    """
    sign = (-1, 1)[side]
    start, normal, radius = along_arm(skeleton, side, 0)
    arm = sum(
        np.linalg.norm(b[side] - a[side])
        for a, b in ((skeleton.shoulders, skeleton.elbows), (skeleton.elbows, skeleton.wrists))
    )
    stops = np.linspace(0, cut.reach * arm, 3 if cut.sleeves == "short" else 9)[1:]
    path = [along_arm(skeleton, side, stop) for stop in stops]
    tip = start + normal * radius * (0.22 + 0.3 * min(lift, 1)) + (0, -21 + 4 * lift)
    points = [("collar", collar), ("slope", 0.5 * (collar + tip) + (0, 2)), ("tip", tip)]
    extra = [p for p, _, _ in path[1:]]
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
    return points, extra


def garment_points(cut: Cut, skeleton: Skeleton) -> Points:
    """The named points of a garment on a skeleton."""
    x, y = skeleton.neck
    hem_y = skeleton.hips[:, 1].mean() + cut.length
    middle = skeleton.hips.mean(0)[0]
    shoulder_y = skeleton.shoulders[:, 1].mean()
    trunk = hem_y - shoulder_y
    sides, extra = [], []
    for side, sign in ((0, -1), (1, 1)):
        shoulder = skeleton.shoulders[side]
        _, normal, _ = along_arm(skeleton, side, 0)
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
            points, more = sleeve_points(cut, skeleton, side, collar, armpit, lift)
            extra += more
        points += [
            ("waist", (middle + (x - middle) * 0.48 + sign * (skeleton.waist + cut.ease), shoulder_y + 0.52 * trunk)),
            (
                "hip",
                (
                    middle + (x - middle) * 0.2 + sign * (skeleton.hip + cut.ease + 0.4 * cut.flare),
                    shoulder_y + 0.8 * trunk,
                ),
            ),
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
    return Points(np.array([p for _, p in outline], float), tuple(n for n, _ in outline), np.array(inside, float))


def smooth(points: np.ndarray, corners: set[int] = frozenset(), n: int = 6) -> np.ndarray:
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


class Spline:
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
        """x"""
        at = (at - self.centre) / self.scale
        return np.hstack([self._kernel(at), np.ones((len(at), 1)), at]) @ self.weights


def lattice_weights(cells: int, step: int) -> np.ndarray:
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


def warp_grid(body: Points, product: Points, size: tuple[int, int]) -> np.ndarray:
    """Sampling grid (H, W, 2) in [-1, 1]: the spline from the garment's points on the body to those on the product.

    The picture's border goes to the canvas's border, so that the spline stays tame far from the garment. The spline is
    evaluated on a lattice of 64 x 48 cells and interpolated: the lattice's interpolation is the warp.
    """
    H, W = size
    frame = np.array(
        [(x, y) for x in (0, 192, 384, 576, 768) for y in (0, 256, 512, 768, 1024) if x in (0, 768) or y in (0, 1024)],
        float,
    )
    far = np.linalg.norm(frame[:, None] - body.outline[None], axis=2).min(1) > 150
    frame = frame[far]
    spline = Spline(np.vstack([body.all, frame]), np.vstack([product.all, frame]))
    step = W // 48
    x = (np.arange(-1, 49) + 0.5) * 16
    y = (np.arange(-1, 65) + 0.5) * 16
    lattice = spline(np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)).reshape(66, 50, 2).astype(np.float32)
    full = np.einsum("yj,jic,xi->yxc", lattice_weights(64, step), lattice, lattice_weights(48, step), optimize=True)
    return np.ascontiguousarray(full / np.array([384, 512], np.float32) - 1)


def sample_bilinear(image: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Bilinear sampling as torch's grid_sample does with align_corners=False; the border is repeated."""
    H, W = image.shape[:2]
    x, y = (grid[..., 0] + 1) * W / 2 - 0.5, (grid[..., 1] + 1) * H / 2 - 0.5
    return cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def fold_share(grid: np.ndarray, mask: np.ndarray) -> float:
    """Share of the mask's pixels where the warp turns over: its Jacobian determinant is not positive.

    grid: (H, W, 2) sampling grid; mask: (H, W), above 0 where it counts.
    """
    dx, dy = np.diff(grid[:-1], axis=1), np.diff(grid[:, :-1], axis=0)
    determinant = dx[..., 0] * dy[..., 1] - dx[..., 1] * dy[..., 0]
    inside = mask[:-1, :-1] > 0
    return float((determinant[inside] <= 0).mean()) if inside.any() else 0.0
