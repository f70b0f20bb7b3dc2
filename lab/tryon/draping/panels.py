"""From the photograph of a flat garment to two panels, front and back, that are sewn along its outline.

Landmarks are read off the outline: corners of the hem, underarms, both ends of each cuff, both ends of the neckline.
Hem, cuffs (or armholes) and neck stay open, all else is sewn. The front is cut along the front neckline, above which
the photograph shows the inside of the back. Left and right are the wearer's own: the right sleeve is at the picture's
left.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

SAMPLES = 480  # points along an outline
SIDES = (("R", -1), ("L", 1))
# Half the neck's width and the front neckline's depth by neckline, in widths of the chest, where no opening is seen.
NECKS = {
    "round": (0.19, 0.12), "scoop": (0.22, 0.22), "v": (0.18, 0.32), "boat": (0.25, 0.07), "square": (0.22, 0.2),
    "high": (0.15, 0.0), "collar": (0.15, 0.03), "hood": (0.19, 0.06), "lapel": (0.16, 0.3), "strap": (0.22, 0.2),
}  # fmt: skip
CUFFLESS = ("none", "cap")  # sleeves that may have no cuff


class Unclear(ValueError):
    """The outline does not show where the garment's parts begin and end."""


@dataclass
class Outline:
    """points (SAMPLES, 2) clockwise in pixels; named landmarks as indices; front (k, 2): the front neckline from its
    right end to its left one; chest: distance between the underarms in pixels; cuffs: False = armholes.
    """

    points: np.ndarray
    marks: dict[str, int]
    front: np.ndarray
    chest: float
    cuffs: bool

    @property
    def middle(self) -> np.ndarray:
        """(2,) between the underarms."""
        return (self.points[self.marks["armR"]] + self.points[self.marks["armL"]]) / 2

    def sleeve(self, side: str, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
        """A sleeve's centre line (count, 2) from armhole to cuff and its width (count,) there, in pixels."""
        inner, outer = self.marks["in" + side], self.marks["out" + side]
        arm, neck = self.marks["arm" + side], self.marks["neck" + side]
        right = side == "R"
        below = self.points[path(arm, inner) if right else path(inner, arm)[::-1]]
        above = self.points[path(outer, neck) if right else path(neck, outer)[::-1]]
        start = np.linalg.norm(above - below[0], axis=1).argmin()  # opposite the underarm
        above = above[: max(2, start + 1)][::-1]
        low, high = along(below, count), along(above, count)
        return (low + high) / 2, np.linalg.norm(high - low, axis=1)


@dataclass
class Panels:
    """One triangulation for both panels, in pixels of the photograph.

    points (N, 2) float32; triangles (T, 3); cut (T,) bool: what the front lacks above its neckline; rim: number of
    points on the outline, which come first; edges: open edges by name as indices into the rim; marks: landmarks as
    indices into the rim; chest in pixels; cuffs as in `Outline`.
    """

    points: np.ndarray
    triangles: np.ndarray
    cut: np.ndarray
    rim: int
    edges: dict[str, np.ndarray]
    marks: dict[str, int]
    chest: float
    cuffs: bool


def outline_of(mask: np.ndarray) -> np.ndarray:
    """The largest contour of a mask (H, W) bool, evenly sampled and a little smoothed: (SAMPLES, 2), clockwise."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    line = max(contours, key=cv2.contourArea)[:, 0].astype(float)
    even = along(np.concatenate([line, line[:1]]), SAMPLES + 1)[:-1]
    kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.3) ** 2)
    smooth = np.sum([k * np.roll(even, shift, 0) for shift, k in zip(range(-4, 5), kernel / kernel.sum())], 0)
    area = np.sum(smooth[:, 0] * np.roll(smooth[:, 1], -1) - smooth[:, 1] * np.roll(smooth[:, 0], -1))
    return smooth if area > 0 else smooth[::-1]


def along(line: np.ndarray, count: int) -> np.ndarray:
    """`count` points at even distances along a polyline (k, 2), its ends among them."""
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    at = np.linspace(0, length[-1], count)
    return np.stack([np.interp(at, length, line[:, k]) for k in range(2)], 1)


def turns(points: np.ndarray, reach: int = 4) -> np.ndarray:
    """(n,) degrees by which a closed outline turns at each point; positive at the corners of a convex shape."""
    before, after = points - np.roll(points, reach, 0), np.roll(points, -reach, 0) - points
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    return np.degrees(np.arctan2(cross, (before * after).sum(1)))


def read_outline(mask: np.ndarray, opening: np.ndarray | None, sleeves: str, neckline: str) -> Outline:
    """The outline with its landmarks. Raises Unclear.

    mask (H, W) bool; opening (H, W) bool or None: what shows the inside of the back; sleeves and neckline as in
    attributes.tsv.
    """
    mask = mask if sleeves in CUFFLESS else with_open_gaps(mask)
    points = outline_of(mask)
    if sleeves not in CUFFLESS:
        points = outline_of(with_both_gaps(mask, points))
    arms = None if sleeves == "none" else underarms(points)
    if arms is None and sleeves not in CUFFLESS:
        raise Unclear("no underarm")
    if arms is None:
        arms = sleeveless_underarms(points)
    chest = float(np.linalg.norm(points[arms[1]] - points[arms[0]]))
    if chest < 0.2 * np.ptp(points[:, 0]):
        raise Unclear("narrow chest")
    marks = {"armR": arms[0], "armL": arms[1], **hem_corners(points, arms)}
    neck, front = neck_of(points, marks, chest, opening, neckline, mask)
    marks |= neck
    cuffs = sleeves != "none" and not (sleeves == "cap" and underarms(points) is None)
    for side, sign in SIDES:
        inner, outer = cuff(points, marks, side, sign, chest) if cuffs else armhole(points, marks, side, sign)
        marks |= {"in" + side: inner, "out" + side: outer}
    outline = Outline(points, marks, front, chest, cuffs)
    check(outline)
    return outline


def underarms(points: np.ndarray) -> tuple[int, int] | None:
    """Indices of the upper end of the hollow between sleeve and trunk on each side; None where a side has none, or
    where both are not alike.
    """
    x, y = points.T
    width, height = np.ptp(x), np.ptp(y)
    corners = [notch(points, sign) for _, sign in SIDES]
    corners = [hollow(points, sign) if i is None else i for i, (_, sign) in zip(corners, SIDES)]
    if corners[0] is None or corners[1] is None:
        return None
    right, left = (points[i] for i in corners)
    alike = abs(right[1] - left[1]) < 0.16 * height and left[0] - right[0] > 0.2 * width
    return (corners[0], corners[1]) if alike else None


def hollow(points: np.ndarray, sign: int) -> int | None:
    """The point of one side that lies deepest within the convex hull."""
    x, y = points.T
    centre = (x.max() + x.min()) / 2
    whole = np.round(points * 8).astype(np.int32)
    hull = np.sort(cv2.convexHull(whole, returnPoints=False), axis=0)[::-1]
    defects = cv2.convexityDefects(whole, hull)
    best, depth = None, 0.03 * np.ptp(x)
    for _, _, far, far_depth in [] if defects is None else defects[:, 0]:
        level = (y[far] - y.min()) / np.ptp(y)
        if (x[far] - centre) * sign > 0.07 * np.ptp(x) and 0.14 < level < 0.8 and far_depth / 2048 > depth:
            best, depth = int(far), far_depth / 2048
    return best


def notch(points: np.ndarray, sign: int) -> int | None:
    """The upper end of the gap between the trunk and a sleeve that hangs down on one side.

    Where both sleeves reach below the hem, the outline has one hollow from cuff to cuff, and this finds both its ends.
    """
    x, y = points.T
    height, centre = np.ptp(y), (x.max() + x.min()) / 2
    best, depth = None, 0.1 * height
    lowest = (y <= np.roll(y, 1)) & (y < np.roll(y, -1)) & (turns(points) < 0)
    for i in np.flatnonzero(lowest & ((x - centre) * sign > 0.07 * np.ptp(x))):
        falls = []
        for step in (1, -1):
            below = y[(i + step * np.arange(SAMPLES)) % SAMPLES]
            ends = np.flatnonzero(below < y[i] - 1)
            falls.append(below[: ends[0] if len(ends) else SAMPLES].max() - y[i])
        if min(falls) > depth and 0.14 < (y[i] - y.min()) / height < 0.8:
            best, depth = int(i), min(falls)
    return best


def with_both_gaps(mask: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A mask (H, W) bool, cut between trunk and sleeve where only the other side has a gap: along its mirror image."""
    notches = [notch(points, sign) for _, sign in SIDES]
    if sum(i is not None for i in notches) != 1 or underarms(points) is not None:
        return mask
    (top,) = (i for i in notches if i is not None)
    ends = []
    for step in (1, -1):
        below = points[(top + step * np.arange(SAMPLES // 2)) % SAMPLES]
        rising = np.flatnonzero(below[:, 1] < points[top, 1] - 1)
        fall = below[: rising[0] if len(rising) else len(below)]
        ends.append(fall[fall[:, 1].argmax()])
    centre = (points[:, 0].max() + points[:, 0].min()) / 2
    line = np.array([points[top], points[top] + 1.3 * (np.mean(ends, 0) - points[top])])
    line[:, 0] = 2 * centre - line[:, 0]
    a, b = (tuple(int(v) for v in np.round(p)) for p in line)
    return mask & (cv2.line(np.zeros(mask.shape, np.uint8), a, b, 1, 3) == 0)


def with_open_gaps(mask: np.ndarray) -> np.ndarray:
    """A mask (H, W) bool in which gaps between trunk and sleeves that a cuff closes at its lower end are open.

    Each hole beside the middle is joined with the background below it where the cloth between both is narrowest.
    """
    count, parts, stats, centres = cv2.connectedComponentsWithStats((~mask).astype(np.uint8), connectivity=4)
    out, middle = mask.copy(), np.flatnonzero(mask.any(0)).mean()
    columns = np.flatnonzero(mask.any(0))
    outside = parts == parts[0, 0]
    for number in range(1, count):
        x, y, wide, tall, area = stats[number]
        beside = abs(centres[number][0] - middle) > 0.1 * len(columns)
        if number == parts[0, 0] or mask[y, x] and area < 12 or tall < 0.05 * mask.shape[0] or not beside:
            continue
        rows, cols = np.nonzero(parts == number)
        low = rows > rows.max() - 0.3 * tall
        away = np.argwhere(outside[rows.max() :]) + (rows.max(), 0)
        away = away[abs(away[:, 1] - cols.mean()) < 0.12 * mask.shape[1]]
        if not len(away):
            continue
        apart = (rows[low][:, None] - away[:, 0]) ** 2 + (cols[low][:, None] - away[:, 1]) ** 2
        here, there = np.unravel_index(apart.argmin(), apart.shape)
        if apart[here, there] < (0.2 * mask.shape[0]) ** 2:
            a, b = (int(cols[low][here]), int(rows[low][here])), (int(away[there][1]), int(away[there][0]))
            line = cv2.line(np.zeros(mask.shape, np.uint8), a, b, 1, 3)
            out &= line == 0
    return out


def sleeveless_underarms(points: np.ndarray) -> tuple[int, int]:
    """Indices of the upper ends of the side seams of a garment without sleeves."""
    x, y = points.T
    height, centre = np.ptp(y), (x.max() + x.min()) / 2
    level = (y - y.min()) / height
    corners = []
    for _, sign in SIDES:
        score = (x - centre) * sign - 0.45 * (y - y.min())
        score = np.where((level > 0.12) & (level < 0.6) & ((x - centre) * sign > 0), score, -np.inf)
        corners.append(int(score.argmax()))
    return corners[0], corners[1]


def hem_corners(points: np.ndarray, arms: tuple[int, int]) -> dict[str, int]:
    """Both ends of the hem, on the stretch of the outline from the left underarm down and up to the right one."""
    stretch = path(arms[1], arms[0])
    x, y = points[stretch].T
    middle = points[list(arms)].mean(0)
    corners = {}
    for side, sign in SIDES:
        on_side = (x - middle[0]) * sign > 0
        if not on_side.any():
            raise Unclear("no hem")
        corner = np.where(on_side, 1.5 * (y - middle[1]) + (x - middle[0]) * sign, -np.inf)
        corners["hem" + side] = int(stretch[corner.argmax()])
    return corners


def neck_of(points, marks, chest, opening, neckline, mask) -> tuple[dict[str, int], np.ndarray]:
    """Both ends of the neckline as indices, and the front neckline (k, 2) between them."""
    top = path(marks["armR"], marks["armL"])
    x, y = points[top].T
    middle = (points[marks["armR"]] + points[marks["armL"]]) / 2
    half, depth = NECKS.get(neckline, NECKS["round"])
    by_opening = opening is not None and opening.sum() > 0.0016 * mask.sum() and neckline != "hood"
    if by_opening:
        columns = np.flatnonzero(opening.any(0))
        ends = columns[0], columns[-1]
        centre = (ends[0] + ends[1]) / 2
        by_opening = abs(centre - middle[0]) < 0.2 * chest and 0.14 * chest < ends[1] - ends[0] < 0.8 * chest
    if by_opening:
        lowest = opening.shape[0] - 1 - opening[::-1].argmax(0)
        line = np.stack([columns, lowest[columns]], 1).astype(float)
        line[:, 1] = cv2.GaussianBlur(line[:, 1].astype(np.float32)[None], (0, 0), 2.0)[0]
    else:
        centre = middle[0]
        upper = (abs(x - centre) < 0.3 * chest) & (y < middle[1] - 0.1 * chest)
        if upper.any():
            highest = abs(x - centre) < 0.35 * chest
            near_top = highest & (y < y[highest].min() + 0.06 * chest)
            centre = (x[near_top].min() + x[near_top].max()) / 2 if near_top.any() else centre
        ends = centre - half * chest, centre + half * chest
    corners = {}
    if neckline == "hood":
        base = hood_base(points, top, middle, chest)
        ends = points[base[0], 0], points[base[1], 0]
        by_opening, line = True, points[list(base)]
    for side, end in zip("RL", ends):
        goal = (end, line[0 if side == "R" else -1, 1]) if by_opening else None
        above = y < middle[1] - 0.08 * chest
        distance = np.hypot(x - goal[0], y - goal[1]) if goal else abs(x - end)
        if not above.any():
            raise Unclear("no neck")
        corners["neck" + side] = int(top[np.where(above, distance, np.inf).argmin()])
    right, left = points[corners["neckR"]], points[corners["neckL"]]
    if left[0] - right[0] < 0.12 * chest:
        raise Unclear("narrow neck")
    if by_opening and neckline != "hood":
        inner = line[(line[:, 0] > right[0] + 2) & (line[:, 0] < left[0] - 2)]
        front = np.concatenate([[right], inner, [left]])
    else:
        t = np.linspace(-1, 1, 41)
        bow = 1 - abs(t) if neckline in ("v", "lapel") else np.sqrt(np.clip(1 - t**2, 0, 1))
        front = (right + left) / 2 + t[:, None] * (left - right) / 2 + (bow * depth * chest)[:, None] * (0, 1)
    return corners, front


def hood_base(points: np.ndarray, top: np.ndarray, middle: np.ndarray, chest: float) -> tuple[int, int]:
    """Where a hood that lies above the shoulders begins on the outline: its sharpest inward turn on each side."""
    bend = turns(points, 7)[top]
    corners = []
    for _, sign in SIDES:
        out = (points[top, 0] - middle[0]) * sign / chest
        bends = np.where((out > 0.06) & (out < 0.36) & (points[top, 1] < middle[1] - 0.1 * chest), bend, np.inf)
        if bends.min() > -12:
            raise Unclear("no base of the hood")
        corners.append(int(top[bends.argmin()]))
    return corners[0], corners[1]


def cuff(points, marks, side: str, sign: int, chest: float) -> tuple[int, int]:
    """Both corners of a cuff, that nearer to the underarm first: the straight end of the sleeve between two corners."""
    n, arm, neck = len(points), marks["arm" + side], marks["neck" + side]
    stretch = path(arm, neck) if side == "R" else path(neck, arm)[::-1]
    line = points[stretch]
    outward = (line[:, 0] - points[arm][0]) * sign
    last = np.flatnonzero(outward >= -0.02 * chest)[-1]
    stretch, line = stretch[: last + 1], line[: last + 1]
    if len(line) < 12:
        raise Unclear("short sleeve")
    base = (line[0] + line[-1]) / 2
    away = np.linalg.norm(line - base, axis=1)
    axis = line[away >= np.quantile(away, 0.8)].mean(0) - base
    axis = axis / np.linalg.norm(axis)
    reach = (line - base) @ axis
    length = reach.max()
    corner = np.clip(turns(points)[stretch] / 70, -0.3, 1)
    i, j = np.triu_indices(len(line), 3)
    chord = np.linalg.norm(line[j] - line[i], axis=1)
    steps = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    bulge = (steps[j] - steps[i]) / np.maximum(chord, 1e-6) - 1
    cost = 1.2 * (2 * length - reach[i] - reach[j]) / length + 3 * bulge - 0.7 * (corner[i] + corner[j])
    narrow, wide = (0.13, 0.36) if length > 0.75 * chest else (0.25, 0.5)
    cost += 6 * np.clip(narrow * chest - chord, 0, None) / chest + 6 * np.clip(chord - wide * chest, 0, None) / chest
    best = cost.argmin()
    inner, outer = int(stretch[i[best]]), int(stretch[j[best]])
    if cost[best] > 0.55:
        raise Unclear("no cuff")
    if (arm - inner) % n in (0, 1, n - 1):
        raise Unclear("short sleeve")
    return inner, outer


def armhole(points, marks, side: str, sign: int) -> tuple[int, int]:
    """Both ends of an armhole: underarm and outer end of the shoulder."""
    arm, neck = marks["arm" + side], marks["neck" + side]
    stretch = path(arm, neck) if side == "R" else path(neck, arm)[::-1]
    line = points[stretch]
    score = 0.55 * (line[:, 0] - line[-1, 0]) * sign - (line[:, 1] - line[-1, 1])
    inner = stretch[np.arange(len(stretch)) >= len(stretch) // 3]
    tip = int(inner[score[len(stretch) // 3 :].argmax()])
    return arm, tip


def path(start: int, end: int) -> np.ndarray:
    """Indices of the outline's points from one forward to another."""
    return (start + np.arange((end - start) % SAMPLES + 1)) % SAMPLES


def check(outline: Outline) -> None:
    """Raises Unclear where the landmarks do not follow one another as on a garment, or the sides differ."""
    m, p = outline.marks, outline.points
    order = ["armR", "inR", "outR", "neckR", "neckL", "outL", "inL", "armL", "hemL", "hemR"]
    places = [(m[name] - m["armR"]) % SAMPLES for name in order]
    if any(b < a for a, b in zip(places, places[1:])):
        raise Unclear("order of landmarks")
    hem = abs(p[m["hemL"]] - p[m["hemR"]])
    if not 0.6 < hem[0] / outline.chest < 2.0 or hem[1] > 0.25 * outline.chest:
        raise Unclear("hem")
    lengths = [np.linalg.norm(p[m["out" + s]] - p[m["neck" + s]]) for s in "RL"]
    if max(lengths) > 1.45 * min(lengths) + 4:
        raise Unclear("sleeves differ")
    if outline.cuffs:
        cuffs = [np.linalg.norm(p[m["out" + s]] - p[m["in" + s]]) for s in "RL"]
        if max(cuffs) > 1.8 * min(cuffs) + 4:
            raise Unclear("cuffs differ")


def triangulate(outline: Outline, spacing: float) -> Panels:
    """Panels with points about `spacing` pixels apart."""
    from scipy.spatial import Delaunay

    rim, place = resample_rim(outline, spacing)
    ends = {
        "hem": ("hemL", "hemR"), "cuffR": ("inR", "outR"), "cuffL": ("outL", "inL"), "neck": ("neckR", "neckL")
    }  # fmt: skip
    n = len(rim)
    edges = {k: (place[a] + np.arange((place[b] - place[a]) % n + 1)) % n for k, (a, b) in ends.items()}
    length = np.linalg.norm(np.diff(outline.front, axis=0), axis=1).sum()
    front = along(outline.front, max(6, round(length / spacing) + 1))[1:-1]
    back = rim[edges["neck"]]
    apart = np.linalg.norm(front[:, None] - back[None], axis=2).min(1)
    front = front[apart > 0.45 * spacing]
    polygon = rim.astype(np.float32)
    x, y = np.meshgrid(
        np.arange(rim[:, 0].min(), rim[:, 0].max(), spacing),
        np.arange(rim[:, 1].min(), rim[:, 1].max(), spacing * 0.87),
    )
    x[1::2] += spacing / 2
    inner = np.stack([x.ravel(), y.ravel()], 1)
    inside = [cv2.pointPolygonTest(polygon, (float(a), float(b)), True) > 0.6 * spacing for a, b in inner]
    inner = inner[np.array(inside)]
    if len(front):
        inner = inner[np.linalg.norm(inner[:, None] - front[None], axis=2).min(1) > 0.62 * spacing]
    points = np.concatenate([rim, front, inner])
    triangles = Delaunay(points).simplices
    centres = points[triangles].mean(1)
    triangles = triangles[[cv2.pointPolygonTest(polygon, (float(a), float(b)), False) > 0 for a, b in centres]]
    a, b, c = (points[triangles[:, k]] for k in range(3))
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    triangles[area < 0] = triangles[area < 0][:, ::-1]
    triangles = triangles[abs(area) > 0.02 * spacing**2]
    above = np.concatenate([front, back[::-1]]) if len(front) else back
    above = np.concatenate([[back[0]], front, back[::-1]]).astype(np.float32)
    cut = [cv2.pointPolygonTest(above, tuple(map(float, p)), False) > 0 for p in points[triangles].mean(1)]
    cut = np.array(cut) if len(front) > 1 else np.zeros(len(triangles), bool)
    return Panels(points.astype(np.float32), triangles, cut, n, edges, place, outline.chest, outline.cuffs)


def resample_rim(outline: Outline, spacing: float) -> tuple[np.ndarray, dict[str, int]]:
    """The outline with points about `spacing` apart, all landmarks among them, and the landmarks' new indices."""
    keys = sorted(set(outline.marks.values()))
    rim: list[np.ndarray] = []
    place: dict[int, int] = {}
    for a, b in zip(keys, keys[1:] + keys[:1]):
        part = outline.points[path(a, b)]
        length = np.linalg.norm(np.diff(part, axis=0), axis=1).sum()
        place[a] = sum(len(piece) for piece in rim)
        rim.append(along(part, max(1, round(length / spacing)) + 1)[:-1])
    return np.concatenate(rim), {name: place[index] for name, index in outline.marks.items()}
