"""Made pairs: from photographs without product shots to training pairs (garment, person wearing it).

Two sources, one mechanism. A garment is moved between two poses by its bones (linear blend skinning in the plane):
    worn     the garment that a person wears is cut out and laid flat, arms spread as on a product photo; the photograph
             itself is the truth
    product  a product photo is laid onto the person's joints; the dressed garment and the rule-made segmentation that
             follows from it are the truth, and sleeves follow the garment's kind
All functions are pure; pictures are (H, W, 3) uint8, masks (H, W) bool, keypoints (25, 3) BODY_25 in pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from vton import labels
from vton.data.pack import Person
from vton.geometry import affine, move_points, warp_picture
from vton.inputs.photo import from_nearest
from vton.joints import HIPS, LEFT_ARM, RIGHT_ARM, SHOULDERS, TRUNK, present
from vton.rules.neckline import opening
from vton.rules.sleeves import sleeve_kind

WHITE = 246  # background of the published product photos
# Radii of a long sleeve's upper and lower half and how far a dressed one may stand out, in widths between the
# shoulders.
SLEEVE, LOOSE = (0.17, 0.14), 0.24
# No sleeve of whatever length stands out further from its bone, in the same unit, at the shoulder and from a third of
# the upper arm on: those laid flat stand out like balloons. On photographed people with short sleeves the medians are
# 0.135 and 0.16, the third quartiles 0.16 and 0.195.
WIDEST = (0.145, 0.19)
# How far cloth stands out above and outside a shoulder, how it rises from there to the neck, and where that begins. On
# photographed people the medians are 0.16 at the shoulder and 0.24 at 0.2 inwards, the third quartiles 0.19 and 0.28.
SHOULDER, SLOPE, NECK_SIDE = 0.175, 0.45, 0.25
FLARE = 0.45  # how far a dressed garment may stand out from the trunk, in the same unit
FRONTAL = 0.5  # a person is seen from the front if the shoulders are at least this share of the trunk's length apart


@dataclass
class Skeleton:
    """Bones of a garment, worn or flat: trunk corners (4,2) in the order right shoulder, left shoulder, left hip, right
    hip, and for each arm (right, left) a polyline (k,2) from the shoulder, k = 0 (no arm), 2 or 3.
    """

    trunk: np.ndarray
    arms: tuple[np.ndarray, np.ndarray]

    @property
    def width(self) -> float:
        """Distance between the shoulders in pixels."""
        return float(np.linalg.norm(self.trunk[1] - self.trunk[0]))

    @property
    def length(self) -> float:
        """Distance from the middle of the shoulders to the middle of the trunk's lower end in pixels."""
        return float(np.linalg.norm(self.trunk[2:].mean(0) - self.trunk[:2].mean(0)))


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


def flat_skeleton(mask: np.ndarray, long_sleeves: bool = False) -> Skeleton | None:
    """Bones of a flat, upright, roughly symmetric garment, estimated from its mask; None when it is too small.

    long_sleeves: it is known to have long sleeves, so if none stand out they lie against the trunk.

    The trunk's half-width is read from the lower rows; what reaches out beyond it is sleeve, and a sleeve's bone runs
    from the shoulder to the middle of its farthest part.
    """
    ys, xs = np.nonzero(mask)
    if len(xs) < 200:
        return None
    top, bottom = np.percentile(ys, [0.5, 99.5])
    height = bottom - top
    runs = []
    centre = np.median(xs)
    for y in np.linspace(top + 0.55 * height, top + 0.92 * height, 12).round().astype(int):
        run = _run_through(mask[y], int(centre))
        if run:
            runs.append(run)
    if len(runs) < 4:
        return None
    left, right = np.percentile([r[0] for r in runs], 60), np.percentile([r[1] for r in runs], 40)
    centre, half = (left + right) / 2, (right - left) / 2
    if half < 4:
        return None
    skeleton = _flat_skeleton(mask, centre, half if half < 0.45 * height else 0.34 * height, top, bottom)
    if long_sleeves and min(len(arm) for arm in skeleton.arms) == 0:
        skeleton = _flat_skeleton(mask, centre, 0.75 * half, top, bottom)
    return skeleton


def _flat_skeleton(mask, centre, half, top, bottom) -> Skeleton:
    height = bottom - top
    # Shoulder points lie a little inside the outline, as joints do.
    shoulder_y = top + min(0.13 * height, 0.5 * half)
    trunk = np.array(
        [
            [centre - 0.72 * half, shoulder_y],
            [centre + 0.72 * half, shoulder_y],
            [centre + 0.78 * half, bottom - 0.14 * height],
            [centre - 0.78 * half, bottom - 0.14 * height],
        ]
    )
    arms = []
    columns, rows = np.meshgrid(np.arange(mask.shape[1]), np.arange(mask.shape[0]))
    for side, shoulder in ((-1, trunk[0]), (1, trunk[1])):
        # What reaches out beyond the trunk and hangs together with something at the shoulder's height.
        outside = mask & ((columns - centre) * side > 1.04 * half)
        _, pieces = cv2.connectedComponents(outside.astype(np.uint8))
        above = np.unique(pieces[outside & (rows < top + 0.4 * height)])
        outside = np.isin(pieces, above[above > 0])
        if outside.sum() < 0.012 * mask.sum():
            arms.append(np.zeros((0, 2)))
            continue
        py, px = np.nonzero(outside)
        distance = np.hypot(px - shoulder[0], py - shoulder[1])
        far = distance >= np.percentile(distance, 92)
        arms.append(np.stack([shoulder, np.array([px[far].mean(), py[far].mean()])]))
    return Skeleton(trunk, (arms[0], arms[1]))


def _run_through(row: np.ndarray, x: int) -> tuple[int, int] | None:
    """First and last index of the run of True that holds x."""
    if not 0 <= x < len(row) or not row[x]:
        return None
    left = x - int(np.argmin(row[x::-1])) if not row[: x + 1].all() else -1
    right = x + int(np.argmin(row[x:])) if not row[x:].all() else len(row)
    return left + 1, right - 1


# -- moving a garment between two skeletons ------------------------------------------------------------------------


def skin(source: Skeleton, target: Skeleton, shape: tuple[int, int], step: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Linear blend skinning: for each pixel of the target picture, where to look in the source.

    The field is smooth, so it is computed on every `step`-th pixel and enlarged.

    Returns:
        where (H, W, 2) float32 x, y in source pixels; part (H, W) uint8: 0 trunk, 1 right arm, 2 left arm, the bone
        that rules the pixel.
    """
    height, width = -(-shape[0] // step), -(-shape[1] // step)
    grid = (_grid((height, width)) + 0.5) * step - 0.5
    softness = 0.03 * target.width
    trunk_distance = (
        _distance_to_polygon((target.trunk + 0.5) / step - 0.5, (height, width)) * step + 0.02 * target.width
    )
    transform = _affine_fit(target.trunk, source.trunk)
    weight = 1 / (trunk_distance + softness) ** 4
    total, where = weight, weight[..., None] * transform(grid)
    by_part = [weight, np.zeros_like(weight), np.zeros_like(weight)]
    for number, (arm_t, arm_s) in enumerate(zip(target.arms, source.arms), start=1):
        for index, ((a, b), (c, d)) in enumerate(zip(_segments(arm_t), _segments(arm_s))):
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


def part_map(skeleton: Skeleton, shape: tuple[int, int], arm_radius: float = 0.22) -> np.ndarray:
    """(H, W, 3) bool: which pixels may belong to trunk, right arm and left arm (trunk and arm may overlap)."""
    grid = _grid(shape)
    centre = skeleton.trunk.mean(0)
    core = _distance_to_polygon(centre + (skeleton.trunk - centre) * (0.92, 1.3), shape) == 0
    inside = _distance_to_polygon(skeleton.trunk, shape) < 0.12 * skeleton.width
    arms = []
    for arm in skeleton.arms:
        near = np.zeros(shape, bool)
        for number, (a, b) in enumerate(_segments(arm)):
            close = (
                _distance_to_segment(grid, a, b) < (arm_radius if number == 0 else 0.85 * arm_radius) * skeleton.width
            )
            near |= close & ~core if number == 0 else close
        arms.append(near)
    trunk = inside | ~(arms[0] | arms[1])
    return np.stack([trunk, arms[0], arms[1]], -1)


def move(
    picture: np.ndarray,
    mask: np.ndarray,
    source: Skeleton,
    target: Skeleton,
    shape: tuple[int, int],
    by_part: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A garment from one skeleton to another.

    Args:
        picture (h,w,3) uint8 and mask (h,w) bool of the garment; by_part: a sleeve takes only pixels near its bone.

    Returns:
        picture (H,W,3) on white, mask (H,W) bool, part (H,W) uint8 of the moved garment.
    """
    where, part = skin(source, target, shape)
    moved = cv2.remap(picture, where, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_CONSTANT, borderValue=(WHITE,) * 3)
    if by_part:
        allowed = part_map(source, mask.shape) & mask[..., None]
        layers = np.stack(
            [cv2.remap(allowed[..., i].astype(np.float32), where, None, cv2.INTER_LINEAR) for i in range(3)]
        )
        inside = np.take_along_axis(layers, part[None].astype(np.int64), 0)[0] > 0.5
    else:
        inside = cv2.remap(mask.astype(np.float32), where, None, cv2.INTER_LINEAR) > 0.5
        for number, arm in enumerate(target.arms, start=1):
            inside &= (part != number) | _within_widest(arm, target.width, shape)
    moved[~inside] = WHITE
    return moved, inside, part


def _segments(line: np.ndarray):
    return [(line[i], line[i + 1]) for i in range(len(line) - 1)]


def _grid(shape: tuple[int, int]) -> np.ndarray:
    """(H, W, 2) float32: x, y of every pixel."""
    return np.stack(np.meshgrid(np.arange(shape[1], dtype=np.float32), np.arange(shape[0], dtype=np.float32)), -1)


def _near_bones(line: np.ndarray, radii, shape: tuple[int, int]) -> np.ndarray:
    """(H, W) bool: nearer to a bone of the polyline than its radius in pixels; the last radius holds for all that
    follow.
    """
    grid, near = _grid(shape), np.zeros(shape, bool)
    for i, (a, b) in enumerate(_segments(line)):
        near |= _distance_to_segment(grid, a, b) < radii[min(i, len(radii) - 1)]
    return near


def _within_widest(arm: np.ndarray, width: float, shape: tuple[int, int]) -> np.ndarray:
    """(H, W) bool: nearer to the bones of a sleeve (k, 2) than WIDEST says, which grows from the shoulder downwards.

    width: between the shoulders, in pixels.
    """
    if len(arm) < 2:
        return np.zeros(shape, bool)
    third = arm[0] + (arm[1] - arm[0]) / 3
    near = _near_bones(np.concatenate([[third], arm[1:]]), (WIDEST[1] * width,), shape)
    for start, radius in zip(np.linspace(arm[0], third, 5), np.linspace(*WIDEST, 5)):
        near |= _near_bones(np.stack([start, arm[1]]), (radius * width,), shape)
    return near


def _above_shoulders(trunk: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(H, W) bool: further above or outside a shoulder than cloth stands there, or above the slope up to the neck.

    trunk: (4, 2), its first two points the shoulders. What lies further inwards than NECK_SIDE is neck and collar.
    """
    grid, out = _grid(shape), np.zeros(shape, bool)
    width = float(np.linalg.norm(trunk[1] - trunk[0]))
    down = trunk[2:].mean(0) - trunk[:2].mean(0)
    for shoulder, other in (trunk[:2], trunk[1::-1]):
        towards = (other - shoulder) / width
        up = np.array([-towards[1], towards[0]])
        up = up if up @ down < 0 else -up
        inward, height = (grid - shoulder) @ towards / width, (grid - shoulder) @ up / width
        slope = SHOULDER + SLOPE * inward.clip(0)
        out |= (height > 0) & (inward < NECK_SIDE) & (np.hypot(inward.clip(max=0), height) > slope)
    return out


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
    system = np.concatenate([quad_from, np.ones((4, 1))], 1)
    matrix = np.linalg.lstsq(system, quad_to, rcond=None)[0]
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


# -- the two sources -----------------------------------------------------------------------------------------------


@dataclass
class Pair:
    """A garment as on a product photo, and what it looks like when worn.

    cloth (H,W,3) on (246,246,246), cloth_mask (H,W) bool; truth (H,W,3) on (246,246,246), truth_mask (H,W) bool, in the
    person's frame. For a product, `part` (H,W) tells trunk 0 and arms 1, 2 of the worn garment, and `sleeve_ends` how
    far its sleeves reach; high_collar: it closes around the throat, or is a hood; groups: groups of its attributes, see
    `vton.attributes`; grid (H,W,2) float32: of a draped garment, for every pixel of truth_mask its x, y in the cloth in
    [-1, 1] as torch's grid_sample with align_corners=False takes them, 0 elsewhere.
    """

    cloth: np.ndarray
    cloth_mask: np.ndarray
    truth: np.ndarray
    truth_mask: np.ndarray
    part: np.ndarray | None = None
    sleeve_ends: tuple[float, float] = (
        0.0,
        0.0,
    )  # along the right and left arm, pixels from the shoulder that are covered
    high_collar: bool = False
    groups: dict[str, str] = field(default_factory=dict)
    grid: np.ndarray | None = None


def lay_flat(image: np.ndarray, parse: np.ndarray, keypoints: np.ndarray, rng: np.random.Generator) -> Pair | None:
    """Source "worn": the garment (labels 5, 6, 7 of the parse) cut out and laid flat with its arms spread at random.

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
        for a, b in _segments(arm):
            # Foreshortened limbs are laid out at a plausible length.
            size = max(np.linalg.norm(b - a), 0.5 * width if len(arm) == 3 else 0)
            line.append(line[-1] + size * np.array([side * np.sin(heading), np.cos(heading)]))
            heading += bend
        arms.append(np.array(line) if len(line) > 1 else np.zeros((0, 2)))
    flat = Skeleton(trunk, (arms[0], arms[1]))
    large = (int(shape[0] * 1.6), int(shape[1] * 1.9))  # room for spread arms; centred on the canvas afterwards
    offset = np.array([(large[1] - shape[1]) / 2, (large[0] - shape[0]) / 2])
    shifted = Skeleton(flat.trunk + offset, tuple(a + offset if len(a) else a for a in flat.arms))
    cloth, mask, _ = move(image, upper, skeleton, shifted, large)
    mask = _largest(mask)
    if mask.sum() < 0.5 * upper.sum():
        return None
    cloth, mask = close_holes(cloth, mask)
    cloth, mask = centre_on_canvas(cloth, mask, shape)
    cloth, mask = wobble(cloth, mask, rng, 0.02)
    worn = np.where(upper[..., None], image, WHITE).astype(np.uint8)
    return Pair(cloth, mask, worn, upper)


def flat_worn(person: Person, size: tuple[int, int], rng: np.random.Generator) -> Pair | None:
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
    for a, b in _segments(arm):
        for t in np.linspace(0.1, 1, 10):
            x, y = np.round(a + t * (b - a)).astype(int)
            window = np.s_[max(0, y - radius) : max(0, y + radius + 1), max(0, x - radius) : max(0, x + radius + 1)]
            skin_pixels, cloth_pixels = int(bare[window].sum()), int(upper[window].sum())
            if skin_pixels > cloth_pixels:
                end = a + t * (b - a)
                reached = sum(np.linalg.norm(q - p) for p, q in _segments(np.array(out + [end])))
                return np.array(out + [end]) if reached > 0.25 * width else np.zeros((0, 2))
        out.append(b)
    return np.array(out)


def dress(
    product: np.ndarray,
    mask: np.ndarray,
    keypoints: np.ndarray,
    shape: tuple[int, int],
    long_sleeves: bool | None,
    rng: np.random.Generator | None = None,
) -> Pair | None:
    """Source "product": the garment laid onto the joints.

    Args:
        product (H,W,3) uint8 on white, mask (H,W) bool, both of `shape`. long_sleeves: the sleeves end at the wrists;
        False: they keep their own length in proportion to the trunk; None: decided by that length.

    None when the garment's bones cannot be read off its mask, or the person's shoulders and hips are missing or seen
    from the side: a garment that lies flat does not show how it would look from there.
    """
    flat, body = flat_skeleton(mask, bool(long_sleeves)), person_skeleton(keypoints)
    if flat is None or body is None or (long_sleeves and min(len(arm) for arm in flat.arms) == 0):
        return None
    if body.width < FRONTAL * body.length:
        return None
    size = body.width / flat.width
    # The garment's own length, within what is worn: from the hips to a third of the trunk below them.
    stretch = np.clip(flat.length * size / body.length, 0.92, 1.25)
    trunk = body.trunk.copy()
    trunk[2:] = body.trunk[[1, 0]] + (body.trunk[2:] - body.trunk[[1, 0]]) * stretch
    arms = [_sleeve_on_arm(arm, sleeve, body.width, size, long_sleeves) for arm, sleeve in zip(body.arms, flat.arms)]
    target_arms, flat_arms, ends, longs = zip(*arms)
    target = Skeleton(trunk, target_arms)
    source = Skeleton(flat.trunk, flat_arms)
    truth, truth_mask, part = move(product, mask, source, target, shape, by_part=False)
    truth_mask &= (part > 0) | (_distance_to_polygon(trunk, shape) < FLARE * body.width)
    truth_mask &= (part > 0) | ~_above_shoulders(trunk, shape)
    for number, arm in enumerate(target.arms, start=1):
        if longs[number - 1]:
            truth, truth_mask, part = _sleeve_round_arm(truth, truth_mask, part, arm, number, body.width)
    truth_mask = _largest(truth_mask)
    truth[~truth_mask] = WHITE
    return Pair(np.where(mask[..., None], product, WHITE).astype(np.uint8), mask, truth, truth_mask, part, ends)


def _sleeve_on_arm(
    arm: np.ndarray, sleeve: np.ndarray, width: float, size: float, long_sleeves: bool | None
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Where the bones of a flat sleeve go on an arm: (the arm's part, the sleeve's bones, how far it covers, is it
    long).

    width: between the person's shoulders; size: pixels of the person for one of the product; long_sleeves: see `dress`.
    """
    if len(arm) < 2 or len(sleeve) < 2:
        return np.zeros((0, 2)), np.zeros((0, 2)), 0.12 * width, False
    reach = float(np.linalg.norm(sleeve[1] - sleeve[0])) * size
    lengths = [float(np.linalg.norm(b - a)) for a, b in _segments(arm)]
    whole = max(sum(lengths), 1.2 * width)
    is_long = bool(reach > 0.62 * whole if long_sleeves is None else long_sleeves)
    if is_long and len(arm) == 3:
        middle = sleeve[0] + lengths[0] / sum(lengths) * (sleeve[1] - sleeve[0])
        return arm, np.stack([sleeve[0], middle, sleeve[1]]), sum(lengths), True
    reach = min(reach, lengths[0] if is_long else 0.9 * lengths[0])
    direction = (arm[1] - arm[0]) / max(lengths[0], 1e-6)
    return np.stack([arm[0], arm[0] + direction * reach]), sleeve, reach, is_long


def _sleeve_round_arm(picture, mask, part, arm, number, width):
    """A long sleeve made as wide as sleeves are: folded ones do not show their own width. What is missing takes the
    colour of the nearest cloth.

    picture (H,W,3) uint8, mask (H,W) bool and part (H,W) uint8 of the dressed garment; arm (k,2), k > 1: the sleeve's
    bones; number: its value in `part`; width: between the shoulders, in pixels. Returns changed copies of the first
    three.
    """
    mask = mask & ((part != number) | _near_bones(arm, (LOOSE * width,), mask.shape))
    missing = _near_bones(arm, [radius * width for radius in SLEEVE], mask.shape) & ~mask
    if missing.any() and mask.any():
        picture = np.where(missing[..., None], from_nearest(picture, mask), picture)
    return picture, mask | missing, np.where(missing, np.uint8(number), part)


def target_segmentation(segmentation: np.ndarray, parse: np.ndarray, keypoints: np.ndarray, pair: Pair) -> np.ndarray:
    """Rule-made truth: the 13-class segmentation of the person in the dressed garment.

    Args:
        segmentation (H,W) 13 classes and parse (H,W) LIP labels of the person as photographed.

    From behind to front: what the person keeps; the garment's trunk without the throat, unless the garment has a high
    collar or a hood; bare arms where there was a sleeve and the new garment has none; the garment's sleeves; hair, face
    and hands.
    """
    skeleton = person_skeleton(keypoints)
    if skeleton is None or pair.part is None:
        raise ValueError("Only a dressed product on a person with shoulders and hips has such a segmentation.")
    shape = segmentation.shape
    out = segmentation.copy()
    old = np.isin(parse, labels.UPPER_LIP)
    out[old] = labels.BACKGROUND
    hips = skeleton.trunk[2:, 1].mean()
    rows = np.arange(shape[0])[:, None] * np.ones((1, shape[1]))
    if np.isin(parse, labels.TROUSERS_LIP).any():  # under a long coat there are trousers or a skirt
        below = (
            _distance_to_polygon(np.concatenate([skeleton.trunk[2:], skeleton.trunk[2:][::-1] + (0, shape[0])]), shape)
            < 1
        )
        out[old & below & (rows > hips)] = labels.BOTTOM
    elif (parse == labels.DRESS_LIP).any():  # a dress: its skirt stays
        out[(parse == labels.DRESS_LIP) & (rows > hips)] = labels.BOTTOM
    trunk = pair.truth_mask & (pair.part == 0)
    out[trunk if pair.high_collar else trunk & ~opening(keypoints, shape)] = labels.UPPER
    grid = _grid(shape)
    for label, arm, covered in zip((labels.RIGHT_ARM, labels.LEFT_ARM), skeleton.arms, pair.sleeve_ends):
        limb = np.zeros(shape, bool)
        for number, (a, b) in enumerate(_segments(arm)):
            length = np.linalg.norm(b - a)
            if covered < length:  # the part of this bone that the sleeve leaves bare
                a = a + (b - a) * max(0.0, covered) / length
                limb |= _distance_to_segment(grid, a, b) < (0.15, 0.115)[min(number, 1)] * skeleton.width
            covered -= length
        out[limb & (old | np.isin(segmentation, labels.ARMS))] = label
    out[pair.truth_mask & (pair.part > 0)] = labels.UPPER
    hands = np.isin(segmentation, labels.ARMS) & _near_wrists(keypoints, shape, 0.3 * skeleton.width)
    kept = np.isin(segmentation, (labels.HAIR, labels.FACE)) | hands
    out[kept] = segmentation[kept]
    return out


def _near_wrists(keypoints, shape, radius):
    near = np.zeros(shape, np.uint8)
    for _, elbow, wrist in (RIGHT_ARM, LEFT_ARM):
        if present(keypoints)[[wrist, elbow]].all():
            p, q = keypoints[wrist, :2], keypoints[elbow, :2]
            hand = p + 0.35 * (p - q)
            cv2.circle(near, tuple(int(v) for v in np.round(hand)), int(round(radius)), 1, -1)
    return near > 0


def _largest(mask: np.ndarray) -> np.ndarray:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count <= 1:
        return mask
    return labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))


def close_holes(cloth: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fills what hands, hair and straps had covered inside the outline with the surrounding cloth."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9))
    closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel)
    contours, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(closed, contours, -1, 1, -1)
    holes = (closed > 0) & ~mask
    if holes.any():
        cloth = cv2.inpaint(np.ascontiguousarray(cloth), holes.astype(np.uint8), 3, cv2.INPAINT_TELEA)
        cloth[closed == 0] = WHITE
    return cloth, closed > 0


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
