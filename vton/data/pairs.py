"""Pairs from photographs without product pictures: the garment that a person wears, cut out and laid flat, arms
spread as on a product picture, and the photograph itself as the truth.

A garment is moved between two poses by its bones (linear blend skinning in the plane). All functions are pure; pictures
are (H, W, 3) uint8, masks (H, W) bool, keypoints (25, 3) BODY_25 in pixels.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import cv2
import numpy as np

from vton import labels
from vton.data.pack import Person
from vton.geometry import affine, move_points, warp_picture
from vton.inputs.photo import largest
from vton.joints import HIPS, LEFT_ARM, RIGHT_ARM, SHOULDERS, TRUNK, present
from vton.rules.sleeves import sleeve_kind

WHITE = 246  # background of the published product photos
STEP = 2  # pixels of the grid on which the skinning is computed
ARM_RADIUS = 0.22  # of a sleeve around its upper bone, in widths between the shoulders


@dataclass
class Skeleton:
    """Bones of a garment, worn or flat."""

    trunk: np.ndarray  # (4,2) right shoulder, left shoulder, left hip, right hip
    arms: tuple[np.ndarray, np.ndarray]  # right and left, each (k,2) from the shoulder, k = 0 (no arm), 2 or 3

    @property
    def width(self) -> float:
        """Distance between the shoulders in pixels."""
        return float(np.linalg.norm(self.trunk[1] - self.trunk[0]))


def person_skeleton(keypoints: np.ndarray) -> Skeleton | None:
    """Bones of a person; None when shoulders or hips are missing or coincide. The hips are spread to half the
    difference to the shoulders' width, because garments hang from the shoulders.
    """
    there = present(keypoints)
    if not there[list(TRUNK)].all():
        return None
    points = keypoints[:, :2].astype(np.float64)
    shoulders, hips = points[list(SHOULDERS)], points[list(HIPS)]
    width = np.linalg.norm(shoulders[1] - shoulders[0])
    length = np.linalg.norm(shoulders.mean(0) - hips.mean(0))
    if width < 0.25 * length or length < 4:
        return None
    across = (shoulders[1] - shoulders[0]) / width
    centre = hips.mean(0)
    half = 0.46 * width
    arms = []
    for chain in (RIGHT_ARM, LEFT_ARM):
        line = [points[chain[0]]]
        for joint in chain[1:]:
            if not there[joint]:
                break
            line.append(points[joint])
        arms.append(np.array(line) if len(line) > 1 else np.zeros((0, 2)))
    trunk = np.stack([shoulders[0], shoulders[1], centre + half * across, centre - half * across])
    return Skeleton(trunk, (arms[0], arms[1]))


# -- moving a garment between two skeletons ------------------------------------------------------------------------


def skin(source: Skeleton, target: Skeleton, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Linear blend skinning: for each pixel of the target picture, where to look in the source.

    The field is smooth, so it is computed on every `STEP`-th pixel and enlarged.
    Returns where (H, W, 2) float32 x, y in source pixels; part (H, W) uint8: 0 trunk, 1 right arm, 2 left arm, the bone
    that rules the pixel.
    """
    height, width = -(-shape[0] // STEP), -(-shape[1] // STEP)
    grid = (_grid((height, width)) + 0.5) * STEP - 0.5
    softness = 0.03 * target.width
    from_trunk = _distance_to_polygon((target.trunk + 0.5) / STEP - 0.5, (height, width)) * STEP
    transform = _affine_fit(target.trunk, source.trunk)
    weight = 1 / (from_trunk + 0.02 * target.width + softness) ** 4
    total, where = weight, weight[..., None] * transform(grid)
    by_part = [weight, np.zeros_like(weight), np.zeros_like(weight)]
    for number, (arm_t, arm_s) in enumerate(zip(target.arms, source.arms), start=1):
        for index, ((a, b), (c, d)) in enumerate(zip(pairwise(arm_t), pairwise(arm_s))):
            # Beginning away from the shoulder, so that the trunk rules the shoulder itself.
            start = a + 0.25 * (b - a) if index == 0 else a
            transform = _similarity(a, b, c, d, source.width / target.width)
            weight = 1 / (_distance_to_segment(grid, start, b) + softness) ** 4
            total = total + weight
            where = where + weight[..., None] * transform(grid)
            by_part[number] = by_part[number] + weight
    where = (where / total[..., None]).astype(np.float32)
    full = shape[::-1]
    strongest = np.argmax([cv2.resize((w / total).astype(np.float32), full) for w in by_part], 0)
    return cv2.resize(where, full, interpolation=cv2.INTER_LINEAR), strongest.astype(np.uint8)


def part_map(skeleton: Skeleton, shape: tuple[int, int]) -> np.ndarray:
    """(H, W, 3) bool: which pixels may belong to trunk, right arm and left arm (trunk and arm may overlap)."""
    grid = _grid(shape)
    centre = skeleton.trunk.mean(0)
    core = _distance_to_polygon(centre + (skeleton.trunk - centre) * (0.92, 1.3), shape) == 0
    inside = _distance_to_polygon(skeleton.trunk, shape) < 0.12 * skeleton.width
    arms = []
    for arm in skeleton.arms:
        near = np.zeros(shape, bool)
        for number, (a, b) in enumerate(pairwise(arm)):
            reach = (0.85 if number else 1) * ARM_RADIUS * skeleton.width
            close = _distance_to_segment(grid, a, b) < reach
            near |= close if number else close & ~core
        arms.append(near)
    trunk = inside | ~(arms[0] | arms[1])
    return np.stack([trunk, arms[0], arms[1]], -1)


def move(
    picture: np.ndarray, mask: np.ndarray, source: Skeleton, target: Skeleton, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """A garment from one skeleton to another.

    picture (h,w,3) uint8 and mask (h,w) bool of the garment; a sleeve takes only pixels near its bone.
    Returns picture (H,W,3) on white and mask (H,W) bool of the moved garment.
    """
    where, part = skin(source, target, shape)
    out = cv2.remap(picture, where, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_CONSTANT, borderValue=(WHITE,) * 3)
    parts = part_map(source, mask.shape) & mask[..., None]
    layers = np.stack([cv2.remap(parts[..., i].astype(np.float32), where, None, cv2.INTER_LINEAR) for i in range(3)])
    inside = np.take_along_axis(layers, part[None].astype(np.int64), 0)[0] > 0.5
    out[~inside] = WHITE
    return out, inside


def _grid(shape: tuple[int, int]) -> np.ndarray:
    """(H, W, 2) float32: x, y of every pixel."""
    return np.stack(np.meshgrid(np.arange(shape[1], dtype=np.float32), np.arange(shape[0], dtype=np.float32)), -1)


def _similarity(a, b, c, d, scale):
    """Map that takes segment a-b onto c-d: lengths along it by its own ratio, across it by `scale`."""
    u, v = np.asarray(b) - a, np.asarray(d) - c
    lu, lv = (max(float(np.linalg.norm(side)), 1e-6) for side in (u, v))
    u, v = u / lu, v / lv
    nu, nv = np.array([-u[1], u[0]]), np.array([-v[1], v[0]])

    def transform(p):
        along, across = (p - a) @ u, (p - a) @ nu
        return c + along[..., None] * (lv / lu) * v + across[..., None] * scale * nv

    return transform


def _affine_fit(quad_from: np.ndarray, quad_to: np.ndarray):
    """Affine map that takes four corners onto four others as well as it can (least squares)."""
    matrix = np.linalg.lstsq(np.concatenate([quad_from, np.ones((4, 1))], 1), quad_to, rcond=None)[0]
    return lambda p: p @ matrix[:2] + matrix[2]


def _distance_to_segment(grid, a, b):
    """Distance in pixels of every grid point (H,W,2) from the segment a-b."""
    start, end = np.asarray(a, np.float32), np.asarray(b, np.float32)
    (ax, ay), (dx, dy) = start, end - start
    px, py = grid[..., 0] - ax, grid[..., 1] - ay
    t = np.clip((px * dx + py * dy) / max(dx * dx + dy * dy, np.float32(1e-9)), 0, 1)
    return np.hypot(px - t * dx, py - t * dy)


def _distance_to_polygon(points, shape):
    """0 inside, distance in pixels outside."""
    canvas = np.ones(shape, np.uint8)
    cv2.fillPoly(canvas, [np.round(points).astype(np.int32)], 0)
    return cv2.distanceTransform(canvas, cv2.DIST_L2, 3).astype(np.float64)


@dataclass
class Pair:
    """A garment as on a product photo, and what it looks like when worn, both on (246,246,246)."""

    cloth: np.ndarray  # (H,W,3)
    cloth_mask: np.ndarray  # (H,W) bool
    truth: np.ndarray  # (H,W,3) in the person's frame
    truth_mask: np.ndarray  # (H,W) bool
    groups: dict[str, str] = field(default_factory=dict)  # of its attributes, see `vton.attributes`
    # (H,W,2) float32, of a draped garment: for every pixel of truth_mask its x, y in the cloth in [-1, 1] as torch's
    # grid_sample with align_corners=False takes them, 0 elsewhere.
    grid: np.ndarray | None = None


def lay_flat(image: np.ndarray, parse: np.ndarray, keypoints: np.ndarray, rng: np.random.Generator) -> Pair | None:
    """The garment (labels 5, 6, 7 of the parse) cut out and laid flat with its arms spread at random.

    None when the person has no usable skeleton or too little garment.
    """
    shape, upper = parse.shape, np.isin(parse, labels.UPPER_LIP)
    skeleton = person_skeleton(keypoints)
    if skeleton is None or upper.mean() < 0.03:
        return None
    trunk = _distance_to_polygon(skeleton.trunk, shape) == 0
    if upper[trunk].mean() < 0.72:  # hair, bags, scarves or an open coat hide too much of it
        return None
    bare = np.isin(parse, labels.ARMS_LIP)
    skeleton = Skeleton(skeleton.trunk, tuple(_sleeve(arm, upper, bare, skeleton.width) for arm in skeleton.arms))
    width, length = skeleton.width, np.linalg.norm(skeleton.trunk[:2].mean(0) - skeleton.trunk[2:].mean(0))
    width *= np.exp(rng.normal(0.05, 0.08))
    centre = np.array([shape[1] / 2, 0.28 * shape[0]])
    trunk = np.array([[-width / 2, 0], [width / 2, 0], [0.5 * width, length], [-0.5 * width, length]])
    trunk = trunk * np.exp(rng.normal(0, 0.03, (1, 2))) + centre
    angle, bend = np.deg2rad(rng.uniform(8, 60)), np.deg2rad(rng.normal(0, 8))
    arms = []
    for side, (arm, shoulder) in zip((-1, 1), zip(skeleton.arms, trunk[:2])):
        line, heading = [shoulder], angle + rng.normal(0, 0.05)
        for a, b in pairwise(arm):
            # Foreshortened limbs are laid out at a plausible length.
            size = max(np.linalg.norm(b - a), 0.5 * width if len(arm) == 3 else 0)
            line.append(line[-1] + size * np.array([side * np.sin(heading), np.cos(heading)]))
            heading += bend
        arms.append(np.array(line) if len(line) > 1 else np.zeros((0, 2)))
    flat = Skeleton(trunk, (arms[0], arms[1]))
    large = (int(shape[0] * 1.6), int(shape[1] * 1.9))  # room for spread arms; centred on the canvas afterwards
    offset = np.array([(large[1] - shape[1]) / 2, (large[0] - shape[0]) / 2])
    target = Skeleton(flat.trunk + offset, tuple(a + offset if len(a) else a for a in flat.arms))
    cloth, mask = move(image, upper, skeleton, target, large)
    mask = largest(mask)
    if mask.sum() < 0.5 * upper.sum():
        return None
    cloth, mask = close_holes(cloth, mask)
    cloth, mask = centre_on_canvas(cloth, mask, shape)
    cloth, mask = wobble(cloth, mask, rng, 0.02)
    worn = np.where(upper[..., None], image, WHITE).astype(np.uint8)
    return Pair(cloth, mask, worn, upper)


def flatten_garment(person: Person, size: tuple[int, int], rng: np.random.Generator) -> Pair | None:
    """What a packed person wears, laid flat in the person's frame at `size` (H, W); `known` has the sleeves that the
    person shows. None as for `lay_flat`.
    """
    matrix = affine(person.frame, size)
    image = warp_picture(person.image, matrix, size, fill=(WHITE,) * 3)
    parse = warp_picture(person.parse, matrix, size, nearest=True)
    keypoints = move_points(person.keypoints, matrix)
    pair = lay_flat(image, parse, keypoints, rng)
    if pair is not None:
        pair.groups = {"sleeves": sleeve_kind(labels.lip_to_13(parse), keypoints)}
    return pair


def _sleeve(arm: np.ndarray, upper: np.ndarray, bare: np.ndarray, width: float) -> np.ndarray:
    """An arm's polyline up to where its skin begins; empty when it is bare from the shoulder on."""
    if len(arm) < 2:
        return arm
    radius, out = max(1, int(0.07 * width)), [arm[0]]
    for a, b in pairwise(arm):
        for t in np.linspace(0.1, 1, 10):
            x, y = np.round(a + t * (b - a)).astype(int)
            window = np.s_[max(0, y - radius) : max(0, y + radius + 1), max(0, x - radius) : max(0, x + radius + 1)]
            skin_pixels, cloth_pixels = int(bare[window].sum()), int(upper[window].sum())
            if skin_pixels > cloth_pixels:
                end = a + t * (b - a)
                length = sum(np.linalg.norm(q - p) for p, q in pairwise(np.array(out + [end])))
                return np.array(out + [end]) if length > 0.25 * width else np.zeros((0, 2))
        out.append(b)
    return np.array(out)


def close_holes(cloth: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fills what hands, hair and straps had covered inside the outline with the surrounding cloth."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9))
    solid = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel)
    contours, _ = cv2.findContours(solid, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(solid, contours, -1, 1, -1)
    holes = (solid > 0) & ~mask
    if holes.any():
        cloth = cv2.inpaint(np.ascontiguousarray(cloth), holes.astype(np.uint8), 3, cv2.INPAINT_TELEA)
        cloth[solid == 0] = WHITE
    return cloth, solid > 0


def centre_on_canvas(cloth: np.ndarray, mask: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Scales to 88 % of the width or 92 % of the height of a canvas of `shape`, as the product photos are."""
    ys, xs = np.nonzero(mask)
    x0, x1, y0, y1 = xs.min(), xs.max() + 1, ys.min(), ys.max() + 1
    scale = min(0.88 * shape[1] / (x1 - x0), 0.92 * shape[0] / (y1 - y0))
    matrix = np.array(
        [[scale, 0, shape[1] / 2 - scale * (x0 + x1) / 2], [0, scale, shape[0] / 2 - scale * (y0 + y1) / 2]]
    )
    out = cv2.warpAffine(cloth, matrix, shape[::-1], flags=cv2.INTER_CUBIC, borderValue=(WHITE,) * 3)
    inside = cv2.warpAffine(mask.astype(np.float32), matrix, shape[::-1]) > 0.5
    out[~inside] = WHITE
    return out, inside


def wobble(
    cloth: np.ndarray, mask: np.ndarray, rng: np.random.Generator, amount: float
) -> tuple[np.ndarray, np.ndarray]:
    """A small smooth random deformation; `amount` is its standard deviation in picture widths."""
    height, width = mask.shape
    field = rng.normal(0, amount * width, (5, 4, 2)).astype(np.float32)
    field = cv2.resize(field, (width, height), interpolation=cv2.INTER_CUBIC)
    grid = _grid((height, width)) + field
    out = cv2.remap(cloth, grid, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_CONSTANT, borderValue=(WHITE,) * 3)
    inside = cv2.remap(mask.astype(np.float32), grid, None, cv2.INTER_LINEAR) > 0.5
    out[~inside] = WHITE
    return out, inside
