"""Panels sewn around a body, which then takes its pose: the cloth's vertices, checked, as a compact record.

    python -m lab.tryon.draping.drape --data DIR --body body.npz --out records --count 1500

Needs the extra `render` (`pip install '.[render]'`).
"""

from __future__ import annotations

import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from lab.tryon.draping import anatomy, panels
from training.arguments import CommandLine, a_folder_to_write, an_existing_file, an_existing_folder, integer
from training.command import one_sentence
from vton.data.draped.body import Body, normals, rotation
from vton.data.draped.draw import Record

SPACING = 0.015  # metres between neighbouring points of the cloth
STEPS = 8  # short steps in a frame
SEW, MOVE, REST = 22, 36, 26  # frames: sewing around the body, the body moving into its pose, coming to rest
DT = 1 / 60 / STEPS
SKIN, THICK = 0.004, 0.009  # metres between cloth and body, and between cloth and cloth
# How much wider than the body's chest a garment is, tight to oversized, by kind.
EASE = {
    "sweater": (1.04, 1.35), "hoodie": (1.08, 1.4), "jacket": (1.12, 1.35), "coat": (1.12, 1.35), "shirt": (1.04, 1.3),
    "blouse": (1.02, 1.3), "polo": (1.02, 1.25), "tee": (0.98, 1.35), "top": (0.95, 1.15), "vest": (1.05, 1.25),
}  # fmt: skip
SOFT = {"jacket": 6.0, "coat": 6.0, "vest": 6.0, "hoodie": 10.0, "sweater": 12.0}  # against bending; others 25
TUCK_KINDS = ("tee", "shirt", "blouse", "polo", "top")  # kinds whose hem may be tucked in
TRIES = 5  # bodies on which a garment is tried before it is given up
POSES = ("hanging", "bent", "hip", "before", "crossed")
POSE_SHARES = (0.42, 0.18, 0.18, 0.12, 0.1)


class DrapeError(ValueError):
    """The garment does not fit the body, or the cloth did not come to lie well."""

    record = None


def limb(down: float, forward: float, side: int) -> np.ndarray:
    """A direction `down` degrees below the horizontal, swung `forward` degrees from sideways to the front.

    side: +1 for the person's left, -1 for the right.
    """
    a, b = np.radians(down), np.radians(forward)
    return np.array([side * np.cos(a) * np.cos(b), -np.cos(a) * np.sin(b), -np.sin(a)])


@dataclass
class Cloth:
    """Both panels as one mesh: flat (N, 2) place in the photograph in pixels, faces (F, 3), seams (S, 2), panel (N,) 0
    front, 1 back; rest (N, 2) metres; edges: open edges by name as indices, front and back together.
    """

    flat: np.ndarray
    faces: np.ndarray
    seams: np.ndarray
    panel: np.ndarray
    rest: np.ndarray
    edges: dict[str, np.ndarray]


def two_panels(sheet: panels.Panels, scale: np.ndarray) -> Cloth:
    """Front and back of a sheet. scale (2,): metres of a pixel across and along."""
    count = len(sheet.points)
    index, flats, faces, sides = [], [], [], []
    start = 0
    for behind in (False, True):
        triangles = sheet.triangles if behind else sheet.triangles[~sheet.cut]
        numbers = np.unique(triangles)
        where = np.full(count, -1)
        where[numbers] = start + np.arange(len(numbers))
        start += len(numbers)
        index.append(where)
        flats.append(sheet.points[numbers])
        faces.append(where[triangles] if behind else where[triangles][:, ::-1])
        sides.append(np.full(len(numbers), int(behind)))
    is_open = np.zeros(sheet.rim, bool)
    for edge in sheet.edges.values():
        is_open[edge[1:-1]] = True
    front, back = index
    rim = np.arange(sheet.rim)
    sewn = rim[~is_open & (front[rim] >= 0) & (back[rim] >= 0)]
    flat = np.concatenate(flats)
    edges = {}
    for name, edge in sheet.edges.items():
        both = np.concatenate([front[edge], back[edge]])
        edges[name] = both[both >= 0]
    return Cloth(
        flat, np.concatenate(faces), np.stack([front[sewn], back[sewn]], 1), np.concatenate(sides), flat * scale, edges
    )


# -- the body ------------------------------------------------------------------------------------------------------


def chest_of(vertices: np.ndarray, joints: np.ndarray, body: Body) -> float:
    """Girth of the chest in metres."""
    level = body.joint(joints, "upperarm01.L")[2] - 0.1
    near = (body.parts == "torso") & (abs(vertices[:, 2] - level) < 0.02)
    hull = cv2.convexHull(vertices[near, :2].astype(np.float32))
    return float(cv2.arcLength(hull, True))


def arm_girth(vertices: np.ndarray, joints: np.ndarray, body: Body) -> float:
    """Girth of the upper arm in metres."""
    shoulder, elbow = (body.joint(joints, f"{name}.L") for name in ("upperarm01", "lowerarm01"))
    along = (elbow - shoulder) / np.linalg.norm(elbow - shoulder)
    offset = vertices[body.parts == "armL"] - (shoulder + 0.5 * (elbow - shoulder))
    across = offset[abs(offset @ along) < 0.015]
    across = across - (across @ along)[:, None] * along
    return 2 * np.pi * float(np.linalg.norm(across - across.mean(0), axis=1).mean())


def half_width(vertices: np.ndarray, body: Body, level: float, side: int) -> float:
    """How far trunk and legs reach out to one side at a height, in metres."""
    trunk = np.isin(body.parts, ("torso", "legL", "legR")) & (abs(vertices[:, 2] - level) < 0.03)
    return float((vertices[trunk, 0] * side).max()) if trunk.any() else 0.15


def random_pose(body: Body, shape: np.ndarray, rng: np.random.Generator, kind: str) -> dict[str, np.ndarray]:
    """A standing pose: bone -> direction or rotation, see `Body.pose_vertices`. kind: one of POSES, for both arms."""
    still, joints = body.pose_vertices(shape, {})
    pose: dict[str, np.ndarray] = {
        "head": rotation((0, 0, 1), rng.uniform(-0.3, 0.3)) @ rotation((1, 0, 0), rng.uniform(-0.12, 0.12)),
        "spine03": rotation((0, 1, 0), rng.normal(0, 0.02)) @ rotation((0, 0, 1), rng.normal(0, 0.05)),
        "spine05": rotation((1, 0, 0), rng.normal(0, 0.02)),
    }
    for side, sign in (("L", 1), ("R", -1)):
        own = kind if kind in ("before", "crossed") or rng.random() < 0.7 else "hanging"
        upper, fore = arm(body, (still, joints), rng, own, sign)
        pose |= {f"upperarm01.{side}": upper, f"lowerarm01.{side}": fore}
        angle = rng.uniform(84, 89)
        pose[f"upperleg01.{side}"] = limb(angle, rng.uniform(-20, 20), sign)
    return pose


def arm(body: Body, still, rng: np.random.Generator, kind: str, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions of an upper arm and a forearm."""
    vertices, joints = still
    side = "L" if sign > 0 else "R"
    shoulder, elbow, wrist = (body.joint(joints, f"{name}.{side}") for name in ("upperarm01", "lowerarm01", "wrist"))
    lengths = np.linalg.norm(elbow - shoulder), np.linalg.norm(wrist - elbow)
    hip = body.joint(joints, f"upperleg01.{side}")
    trunk = np.isin(body.parts, ("torso",)) & (abs(vertices[:, 2] - hip[2] - 0.14) < 0.06)
    belly = float(vertices[trunk, 1].min())
    if kind in ("before", "crossed"):
        down, forward = rng.uniform(66, 76), rng.uniform(35, 60)
    elif kind == "hip":
        down, forward = rng.uniform(42, 58), rng.uniform(-25, 5)
    else:
        down, forward = rng.uniform(66, 84), rng.uniform(-5, 30)
    fore_down, fore_forward = min(88, down + rng.uniform(-6, 10)), forward + rng.uniform(10, 40)
    for _ in range(30):  # out until the arm clears the trunk
        upper = limb(down, forward, sign)
        at = shoulder + lengths[0] * upper
        if kind == "bent":
            fore = limb(rng.uniform(-5, 55), rng.uniform(55, 95), sign)
        elif kind == "hip":
            to = np.array(
                [sign * (half_width(vertices, body, hip[2] + 0.12, sign) + 0.075), belly + 0.07, hip[2] + 0.13]
            )
            fore = (to - at) / np.linalg.norm(to - at)
        elif kind in ("before", "crossed"):
            cross = rng.uniform(0.0, 0.05) if kind == "before" else -rng.uniform(0.08, 0.14)
            level = hip[2] + (rng.uniform(0.02, 0.1) if kind == "before" else rng.uniform(0.16, 0.22))
            to = np.array([sign * cross, belly - 0.09 - (0.05 if sign > 0 and kind == "crossed" else 0), level])
            fore = (to - at) / np.linalg.norm(to - at)
        else:
            fore = limb(fore_down, fore_forward, sign)
        end = at + lengths[1] * fore
        clear = at[0] * sign > half_width(vertices, body, at[2], sign) + 0.055
        if kind == "hanging":
            clear &= end[0] * sign > half_width(vertices, body, end[2], sign) + 0.05
        if clear:
            break
        down, fore_down = down - 2, fore_down - 2
    return upper, fore


def surfaces(vertices: np.ndarray, body: Body, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depths (y) of two sheets, just in front of the body and just behind it, at places x, z; beside it, both between.

    The body's depth is drawn on a grid of 1 cm, grown by 2.5 cm and smoothed, so that the sheets follow arms and trunk.
    """
    cell = 0.01
    below_head = ~np.isin(body.parts, ("head",))
    faces = body.faces[below_head[body.faces].all(1)]
    points = np.concatenate([vertices[below_head], vertices[faces].mean(1)])
    low = points[:, [0, 2]].min(0) - 0.3
    shape = tuple(np.ceil((points[:, [2, 0]].max(0) + 0.3 - low[::-1]) / cell).astype(int))
    column, row = ((points[:, [0, 2]] - low) / cell).astype(int).T
    front, back = np.full(shape, 9.0, np.float32), np.full(shape, -9.0, np.float32)
    np.minimum.at(front, (row, column), points[:, 1])
    np.maximum.at(back, (row, column), points[:, 1])
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    front, back = cv2.erode(front, kernel), cv2.dilate(back, kernel)
    known = (front < 8) & (back > -8)
    weight = known.astype(np.float32)
    middle = np.where(known, (front + back) / 2, 0).astype(np.float32)
    for _ in range(5):
        middle, weight = (cv2.GaussianBlur(a, (0, 0), 6) for a in (middle, weight))
    middle = middle / np.maximum(weight, 1e-6)
    out = []
    for depth, sign in ((front, -1), (back, 1)):
        sheet = np.where(known, depth + sign * 0.018, middle + sign * 0.012).astype(np.float32)
        sheet = cv2.GaussianBlur(sheet, (0, 0), 1.5)
        sheet = np.where(known, (np.minimum if sign < 0 else np.maximum)(sheet, depth + sign * 0.012), sheet)
        places = [((a - b) / cell).astype(np.float32)[None] for a, b in ((x, low[0]), (z, low[1]))]
        out.append(cv2.remap(sheet.astype(np.float32), *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)[0])
    return out[0], out[1]


def tops(vertices: np.ndarray, body: Body, places: np.ndarray) -> np.ndarray:
    """Height of the shoulders at |x| = places, mean of both sides, in metres."""
    upper = np.isin(body.parts, ("torso", "neck", "armL", "armR"))
    points = vertices[upper]
    return np.array([points[abs(abs(points[:, 0]) - x) < 0.012, 2].max() for x in places])


# -- one drape -----------------------------------------------------------------------------------------------------


def fit(outline: panels.Outline, body: Body, shape: np.ndarray, ease: float, longest: float):
    """Scale (2,) in metres of a pixel, the place (2,) of the world's x = z = 0 in pixels, and the pose (arms along the
    sleeves) in which the garment is sewn around the body. Raises Failed where it does not fit.

    ease: how much wider than the chest it is; longest: its greatest length, in lengths of the trunk.
    """
    a_pose = {"upperarm01.L": limb(45, 0, 1), "upperarm01.R": limb(45, 0, -1)}
    a_pose |= {"lowerarm01.L": limb(45, 0, 1), "lowerarm01.R": limb(45, 0, -1)}
    vertices, joints = body.pose_vertices(shape, a_pose)
    across = chest_of(vertices, joints, body) * ease / 2 / outline.chest
    points, marks = outline.points, outline.marks
    crotch = body.joint(joints, "upperleg01.L")[2] - 0.06
    shoulder = body.joint(joints, "upperarm01.L")
    top = shoulder[2] + 0.06
    hem = points[[marks["hemL"], marks["hemR"]]].mean(0)
    high = points[[marks["neckL"], marks["neckR"]]].mean(0)
    length = (hem[1] - high[1]) * across / (top - crotch)
    stretch = np.clip(length, 0.72, longest) / length
    if not 0.72 < stretch < 1.25:
        raise DrapeError("too long or too short for the body")
    if outline.cuffs:  # no narrower than the upper arms
        width = min(outline.sleeve(side)[1][2:6].mean() for side in "RL") * across
        widening = max(1.0, 1.04 * arm_girth(vertices, joints, body) / 2 / width)
        if widening > 1.3:
            raise DrapeError("sleeves too narrow")
        across, stretch = across * widening, stretch / widening
    scale = across * np.array([1.0, stretch])
    reach = np.array([0.45, 0.6, 0.75]) * shoulder[0]
    body_top = tops(vertices, body, reach)
    centre = outline.middle[0]
    upper = panels.path(marks["armR"], marks["armL"])
    x, y = points[upper].T
    garment_top = []
    for r in reach:
        near = [y[abs(x - (centre + s * r / across)) < 0.012 / across] for s in (-1, 1)]
        if not all(len(part) for part in near):
            raise DrapeError("narrow shoulders")
        garment_top.append(np.mean([part.min() for part in near]))
    zero = np.array([centre, float(np.mean(garment_top + (body_top + 0.012) / scale[1]))])
    neck = abs(points[marks["neckL"]] - points[marks["neckR"]])[0] * across / 2
    if neck > 0.9 * shoulder[0]:
        raise DrapeError("neck wider than the shoulders")
    pose: dict[str, np.ndarray] = {}
    for side, sign in (("R", -1), ("L", 1)):
        if outline.cuffs:
            line = (outline.sleeve(side)[0] - zero) * scale * (1, -1)
            pose |= along_sleeve(line, body, joints, side, sign)
        else:
            pose |= {f"{name}.{side}": limb(50, 0, sign) for name in ("upperarm01", "lowerarm01")}
    return scale, zero, pose


def along_sleeve(line: np.ndarray, body: Body, joints: np.ndarray, side: str, sign: int) -> dict[str, np.ndarray]:
    """Directions of upper arm and forearm that follow a sleeve's centre line (k, 2) of x, z in metres."""
    shoulder, elbow = (body.joint(joints, f"{name}.{side}") for name in ("upperarm01", "lowerarm01"))
    length = float(np.linalg.norm(elbow - shoulder))
    away = np.linalg.norm(line - shoulder[[0, 2]], axis=1)
    end = line[-1]
    if away[-1] > 0.15:
        middle = line[np.argmin(abs(away - length))] if away[-1] > length else end
        upper = direction_to(middle - shoulder[[0, 2]], sign)
    else:  # a short sleeve's own direction
        upper = direction_to(end - line[0], sign)
    if (line[-1, 0] - line[0, 0]) * sign < -0.02:
        raise DrapeError("sleeves not beside the body")
    hinge = shoulder[[0, 2]] + length * upper[[0, 2]]
    fore = direction_to(end - hinge, sign) if away[-1] > length + 0.08 else upper
    return {f"upperarm01.{side}": upper, f"lowerarm01.{side}": fore}


def direction_to(step: np.ndarray, sign: int) -> np.ndarray:
    """(3,) in the plane of x and z, between nearly level and as steep as an arm can hang."""
    down = float(np.degrees(np.arctan2(-step[1], step[0] * sign)))
    return limb(float(np.clip(down, 0, 78)), 0, sign)


def on_the_arms(outline: panels.Outline, places: np.ndarray, zero, scale, body: Body, joints: np.ndarray) -> np.ndarray:
    """Places (N, 2) of x, z in metres with the sleeves moved across so that their centre lines lie on the arms."""
    out = places.copy()
    for side, sign in (("R", -1), ("L", 1)):
        line = (outline.sleeve(side, 24)[0] - zero) * scale * (1, -1)
        bones = [body.joint(joints, f"{name}.{side}")[[0, 2]] for name in ("upperarm01", "lowerarm01", "wrist")]
        bones.append(bones[2] + 0.5 * (bones[2] - bones[1]))
        arm = panels.along(np.array(bones), 80)
        nearest = arm[np.linalg.norm(line[:, None] - arm[None], axis=2).argmin(1)]
        shift = nearest - line
        # Nothing moves at the armhole, so that the trunk keeps its shape.
        shift *= np.clip(np.linspace(-0.1, 2.0, len(line)), 0, 1)[:, None]
        lot = np.linalg.norm(places[:, None] - line[None], axis=2)
        near = lot.argmin(1)
        armpit = (outline.points[outline.marks["arm" + side]] - zero) * scale * (1, -1)
        beyond = np.clip(((places - armpit)[:, 0] * sign + 0.02) / 0.06, 0, 1)[:, None]
        out += shift[near] * beyond
    return out


def constraints(cloth: Cloth, bend: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (P, 2) of points, the distance between them in metres and how softly it is kept (0 = rigid)."""
    faces = cloth.faces
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    opposite = np.concatenate([faces[:, 2], faces[:, 0], faces[:, 1]])
    sides = np.sort(sides, 1)
    order = np.lexsort(sides.T[::-1])
    sides, opposite = sides[order], opposite[order]
    twice = np.flatnonzero((sides[1:] == sides[:-1]).all(1))
    bends = np.stack([opposite[twice], opposite[twice + 1]], 1)
    edges = np.unique(sides, axis=0)
    pairs = np.concatenate([edges, bends])
    rest = np.linalg.norm(cloth.rest[pairs[:, 0]] - cloth.rest[pairs[:, 1]], axis=1)
    soft = np.concatenate([np.full(len(edges), 0.1), np.full(len(bends), bend)])
    return pairs, rest, soft


def simulate(cloth: Cloth, start: np.ndarray, keyframes: list[np.ndarray], body: Body, settings: dict):
    """(N, 3) float32, the cloth at rest on the last of the body's keyframes; (N,) its height above the skin in metres.

    start (N, 3): the cloth laid out around the first keyframe; keyframes: (V, 3) each; settings: bend, friction, tuck
    (height in metres below which the cloth is tucked in, or None).
    """
    import warp as wp

    from lab.tryon.draping import simulation as sim

    collider = ~np.isin(body.parts, ("head", "footL", "footR"))
    faces = body.faces[collider[body.faces].all(1)]
    numbers, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)

    def array(values, dtype):
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device="cpu")

    frames = [k[numbers].astype(np.float32) for k in keyframes]
    frame_normals = [normals(f, faces) for f in frames]
    mesh = wp.Mesh(array(frames[0], wp.vec3), array(faces.ravel(), int))
    pairs, rest, soft = constraints(cloth, settings["bend"])
    n = len(start)
    x, v, old = (array(a, wp.vec3) for a in (start, np.zeros((n, 3)), start))
    seam_length = np.linalg.norm(start[cloth.seams[:, 0]] - start[cloth.seams[:, 1]], axis=1)
    seams, gaps = array(cloth.seams, wp.vec2i), array(seam_length, float)
    pair, lengths, softness = array(pairs, wp.vec2i), array(rest, float), array(soft, float)
    # A seam joins the panels, so their distance counts along the cloth: far apart where neither is at a seam.
    flat = array(np.concatenate([cloth.rest, near_seam(cloth)[:, None]], 1), wp.vec3)
    grid = wp.HashGrid(48, 48, 48, device="cpu")
    neighbours, counts = (wp.zeros(n * k, dtype=int, device="cpu") for k in (sim.NEIGHBOURS, 1))
    face, place = wp.zeros(n, dtype=int, device="cpu"), wp.zeros(n, dtype=wp.vec2, device="cpu")
    index = array(faces.ravel(), int)
    tucked = wp.zeros(n, dtype=float, device="cpu")
    total = SEW + MOVE + REST
    for frame in range(total):
        moving = np.clip([(frame - SEW + k) / MOVE for k in (0, 1)], 0, 1) * (len(frames) - 1)
        at = min(int(moving[0]), len(frames) - 2)
        first, last = moving - at
        now = frames[at] + (frames[at + 1] - frames[at]) * np.float32(first)
        mesh.points.assign(now)
        mesh.refit()
        turn = frame_normals[at] + (frame_normals[at + 1] - frame_normals[at]) * np.float32((first + last) / 2)
        wp.launch(sim.find_contacts, n, inputs=[mesh.id, x, face, place], device="cpu")
        if frame >= SEW // 2:
            grid.build(x, 0.025)
            inputs = [grid.id, x, flat, 0.02, 2.2 * SPACING, neighbours, counts]
            wp.launch(sim.find_neighbours, n, inputs=inputs, device="cpu")
        if settings["tuck"] is not None and frame == SEW + MOVE:
            height = x.numpy()[:, 2]
            tucked.assign(np.where(height < settings["tuck"], 0.006, 0.0).astype(np.float32))
        sewn = [max(0.0, 1 - (frame + k) / (SEW - 4)) for k in (0, 1)]
        pull = 9.81 * np.clip((frame - SEW * 0.6) / (SEW * 0.4), 0, 1)
        keep = 0.9 if frame < SEW else 0.985 if frame < SEW + MOVE + REST // 2 else 0.93
        inputs = [STEPS, float(first), float(last), DT, float(pull), keep, settings["friction"], SKIN, THICK, x, v, old]
        inputs += [pair, lengths, softness, seams, gaps, *sewn, neighbours, counts, index, face, place]
        inputs += [array(frames[at], wp.vec3), array(frames[at + 1], wp.vec3), array(turn, wp.vec3), tucked]
        wp.launch(sim.advance, 1, inputs=inputs, device="cpu")
    vertices = x.numpy().copy()
    return vertices, depths_of(vertices, face.numpy(), place.numpy(), frames[-1], frame_normals[-1], faces)


def depths_of(points, face, place, skin, turn, faces) -> np.ndarray:
    """(N,) metres above the skin at the nearest place found; far where there is none."""
    corners = faces[face.clip(0)]
    weights = np.stack([place[:, 0], place[:, 1], 1 - place.sum(1)], 1)[..., None]
    there, normal = (skin[corners] * weights).sum(1), (turn[corners] * weights).sum(1)
    return np.where(face >= 0, ((points - there) * normal).sum(1), 1.0)


def near_seam(cloth: Cloth) -> np.ndarray:
    """(N,) metres: a third coordinate that lays the panels far apart, except near a seam, where they meet."""
    from scipy.spatial import cKDTree

    out = np.zeros(len(cloth.flat))
    for side in (0, 1):
        own = cloth.panel == side
        distance, _ = cKDTree(cloth.rest[cloth.seams[:, side]]).query(cloth.rest[own])
        out[own] = (1 if side else -1) * distance
    return out


def drape(
    outline: panels.Outline, row: dict[str, str], body: Body, rng: np.random.Generator, like: Record | None = None
) -> dict[str, np.ndarray]:
    """One garment on a body at random: the arrays of a record. Raises DrapeError.

    row: the garment's attributes; like: a record whose body, pose, trousers and waist are taken, the garment loose over
    them; a record: see `save`.
    """
    for attempt in range(TRIES):
        phenotype = like.facts["phenotype"] if like else anatomy.random_phenotype(rng)
        shape = like.shape if like else anatomy.coefficients(body, phenotype)
        low, high = EASE.get(row["kind"], (1.05, 1.3))
        longest = float(rng.uniform(0.92, 1.14)) + (0.2 if row["kind"] in ("coat", "dress") else 0)
        try:
            scale, zero, sewing = fit(outline, body, shape, float(rng.uniform(low, high)), longest)
            break
        except DrapeError:
            if attempt == TRIES - 1:
                raise
    kind = like.facts["arms"] if like else str(rng.choice(POSES, p=POSE_SHARES))
    pose = like.pose if like else random_pose(body, shape, rng, kind)
    trousers = like.facts["trousers"] if like else float(rng.uniform(0.006, 0.014))
    steps = [body.pose_vertices(shape, blend(sewing, pose, share)) for share in np.linspace(0, 1, 7)]
    hip = body.joint(steps[0][1], "upperleg01.L")[2]
    waist = like.facts["waist"] if like else hip + float(rng.uniform(0.06, 0.16))
    lower = below_waist(body, steps[0][0], waist)
    keyframes = [v + normals(v, body.faces) * (trousers * lower)[:, None] for v, _ in steps]
    sheet = panels.triangulate(outline, SPACING / scale.mean())
    cloth = two_panels(sheet, scale)
    places = (cloth.flat - zero) * scale * (1, -1)
    if outline.cuffs:
        places = on_the_arms(outline, places, zero, scale, body, steps[0][1])
    x, z = places.T
    front, back = surfaces(keyframes[0], body, x, z)
    start = np.stack([x, np.where(cloth.panel == 0, front, back), z], 1).astype(np.float32)
    hem = start[cloth.edges["hem"], 2].mean()
    may_tuck = like is None and row["kind"] in TUCK_KINDS and hem < waist - 0.05
    tuck = may_tuck and rng.random() < 0.25
    settings = {
        "bend": SOFT.get(row["kind"], 25.0) * float(np.exp(rng.normal(0, 0.3))),
        "friction": float(rng.uniform(0.5, 0.8)),
        "tuck": waist - 0.02 if tuck else None,
    }
    vertices, depths = simulate(cloth, start, keyframes, body, settings)
    vertices[cloth.seams] = vertices[cloth.seams].mean(1, keepdims=True)
    record = {
        "vertices": vertices.astype(np.float16),
        "flat": cloth.flat.astype(np.float16),
        "faces": cloth.faces.astype(np.uint16),
        "seams": cloth.seams.astype(np.uint16),
        "front": np.int32((cloth.panel == 0).sum()),
        "shape": shape.astype(np.float16),
        "pose_names": np.array(list(pose)),
        "pose": np.stack([p if p.ndim == 2 else np.diag(p) for p in pose.values()]).astype(np.float16),
        "told": np.array(
            json.dumps(
                {
                    "phenotype": {k: round(v, 4) for k, v in phenotype.items()},
                    "arms": kind,
                    "trousers": round(trousers, 4),
                    "waist": round(float(waist), 4),
                    "tuck": bool(tuck),
                    "scale": [float(s) for s in scale],
                    "attributes": {k: row[k] for k in ("kind", "sleeves", "neckline")},
                }
            )
        ),
    }
    try:
        inspect(cloth, vertices, depths, *steps[-1], body, outline.cuffs)
    except DrapeError as error:
        error.record = record
        raise
    return record


def blend(a: dict[str, np.ndarray], b: dict[str, np.ndarray], share: float) -> dict[str, np.ndarray]:
    """A pose between two; bones that one of them leaves alone turn by a share of the other's rotation."""
    out = {}
    for bone in {**a, **b}:
        one = a.get(bone, b.get(bone, np.eye(3)))
        if one.ndim == 2:
            axis = cv2.Rodrigues(one.astype(np.float64))[0]
            out[bone] = cv2.Rodrigues(axis * (share if bone not in a else 1 - share))[0]
        elif bone not in a or bone not in b:
            out[bone] = one
        else:
            mean = (1 - share) * a[bone] + share * b[bone]
            out[bone] = mean / np.linalg.norm(mean)
    return out


def below_waist(body: Body, vertices: np.ndarray, waist: float) -> np.ndarray:
    """(V,) bool, what trousers cover."""
    legs = np.isin(body.parts, ("legL", "legR", "footL", "footR"))
    return legs | ((body.parts == "torso") & (vertices[:, 2] < waist))


def inspect(
    cloth: Cloth,
    vertices: np.ndarray,
    depths: np.ndarray,
    skin: np.ndarray,
    joints: np.ndarray,
    body: Body,
    cuffs: bool,
) -> None:
    """Raises Failed where cloth is stretched, has fallen or is pierced by the body.

    depths (N,): metres above the skin; skin (V, 3): the body's vertices; cuffs: the sleeves have cuffs, so the arms are
    inside of them.
    """
    if not np.isfinite(vertices).all():
        raise DrapeError("not finite")
    pairs, rest, _ = constraints(cloth, 1.0)
    strain = np.linalg.norm(vertices[pairs[:, 0]] - vertices[pairs[:, 1]], axis=1) / rest
    edge = len(pairs) * 3 // 5
    if np.quantile(strain[:edge], 0.95) > 1.3 or (strain[:edge] > 1.8).mean() > 0.012:
        raise DrapeError("stretched")
    shoulder = min(body.joint(joints, f"upperarm01.{s}")[2] for s in "LR")
    neck = vertices[cloth.edges["neck"]]
    outer = vertices[abs(vertices[:, 0]) > 0.6 * abs(body.joint(joints, "upperarm01.L")[0])]
    if np.quantile(neck[:, 2], 0.75) < shoulder + 0.005 or outer[:, 2].max() < shoulder - 0.005:
        raise DrapeError("fallen")
    reach = 0.72 * abs(body.joint(joints, "upperarm01.L")[0])
    for sign in (-1, 1):  # cloth on each shoulder
        near, under = (abs(points[:, 0] - sign * reach) < 0.015 for points in (vertices, skin))
        if cuffs and vertices[near, 2].max(initial=-9.0) < skin[under, 2].max() - 0.012:
            raise DrapeError("off a shoulder")
        at = abs(vertices[:, 0] - sign * 0.62 * abs(body.joint(joints, "upperarm01.L")[0])) < 0.03
        if not at.any() or vertices[at, 2].max() < shoulder:
            raise DrapeError("off a shoulder")
    if (depths < -0.006).mean() > 0.02:
        raise DrapeError("pierced")
    if cuffs:
        for side in "RL":
            end = vertices[cloth.edges["cuff" + side]].mean(0)
            if not all(
                is_inside(place, way, vertices, cloth.faces) for place, way in stations(end, joints, body, side)
            ):
                raise DrapeError("an arm beside its sleeve")


def stations(end: np.ndarray, joints: np.ndarray, body: Body, side: str):
    """Places on an arm's bones that a sleeve with its cuff's middle at `end` should surround, and the bones' ways."""
    a, b, c = (body.joint(joints, f"{name}.{side}") for name in ("upperarm01", "lowerarm01", "wrist"))
    for start, stop, shares in ((a, b, (0.35, 0.6, 0.9)), (b, c, (0.2, 0.45, 0.7))):
        way = (stop - start) / np.linalg.norm(stop - start)
        for share in shares:
            place = start + share * (stop - start)
            if (end - place) @ way > 0.03 + (0.0 if start is b else max(0.0, -(end - b) @ way)):
                yield place, way


def is_inside(place: np.ndarray, way: np.ndarray, vertices: np.ndarray, faces: np.ndarray) -> bool:
    """Whether cloth is met in at least six of eight directions across a bone, within 20 cm."""
    first = np.cross(way, (0.3, 0.9, 0.1))
    first /= np.linalg.norm(first)
    second = np.cross(way, first)
    near = np.linalg.norm(vertices[faces[:, 0]] - place, axis=1) < 0.22
    a, b, c = (vertices[faces[near, k]].astype(np.float64) - place for k in range(3))
    hits = 0
    for angle in np.arange(8) * np.pi / 4:
        ray = np.cos(angle) * first + np.sin(angle) * second
        cross = np.cross(ray, c - a)
        area = ((b - a) * cross).sum(1)
        inverse = 1 / np.where(abs(area) < 1e-12, 1e-12, area)
        u = -(a * cross).sum(1) * inverse
        turn = np.cross(-a, b - a)
        v, t = turn @ ray * inverse, ((c - a) * turn).sum(1) * inverse
        hits += bool(((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0) & (t < 0.2)).any())
    return hits >= 6


def save(file: Path, record: dict[str, np.ndarray], garment: str) -> None:
    """Writes a record, finished or not at all. garment: "folder/id"."""
    part = file.with_suffix(".part")
    with part.open("wb") as out:
        np.savez_compressed(out, garment=np.array(garment), **record)
    part.replace(file)


# -- many drapes ---------------------------------------------------------------------------------------------------

PLACES = (("garments", "cloth", "cloth-mask"), ("garments_more", "image", "mask"))


def garment_rows(data: Path) -> list[tuple[str, dict[str, str], Path]]:
    """(folder/id, attributes, mask) of the garments under `data` that are photographed from the front and closed."""
    rows = []
    for folder, _, masks in PLACES:
        with (data / folder / "attributes.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if row["view"] in ("front", "hanger") and row["front"] != "open" and row["sleeves"] != "folded":
                    rows.append((f"{folder}/{row['id']}", row, data / folder / masks / f"{row['id']}.png"))
    return rows


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Drape garments on bodies at random until there are `count` records; what is there already is kept."""
    options = CommandLine(prog="python -m lab.tryon.draping.drape", description=main.__doc__)
    options.add_argument(
        "--data", type=an_existing_folder, required=True, help="folder of garments/ and garments_more/"
    )
    options.add_argument("--openings", type=an_existing_folder, help="folder of masks of the neck openings, ID.png")
    options.add_argument("--body", type=an_existing_file, required=True, help="file of lab.tryon.draping.anatomy")
    options.add_argument("--out", type=a_folder_to_write, required=True, help="folder for the records")
    options.add_argument("--count", type=integer(1), default=1500, help="records wanted")
    options.add_argument("--seed", type=integer(), default=1)
    arguments = options.parse_args(argv)
    body, rows = Body.load(arguments.body), garment_rows(arguments.data)
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    attempts = {(line["garment"], line["seed"], line["round"]) for line in lines}
    round_ = 0
    while len(list(arguments.out.glob("*.npz"))) < arguments.count:
        order = np.random.default_rng([arguments.seed, round_]).permutation(len(rows))
        for number in order:
            name, row, mask_file = rows[number]
            file = arguments.out / f"{row['id']}-{arguments.seed}-{round_}.npz"
            if (name, arguments.seed, round_) in attempts:
                continue
            began, outcome = time.process_time(), "ok"
            try:
                mask = cv2.imread(str(mask_file), cv2.IMREAD_GRAYSCALE) > 127
                drawing = arguments.openings / f"{row['id']}.png" if arguments.openings else None
                opening = (
                    cv2.imread(str(drawing), cv2.IMREAD_GRAYSCALE) > 127 if drawing and drawing.is_file() else None
                )
                outline = panels.read_outline(mask, opening, row["sleeves"], row["neckline"])
                record = drape(outline, row, body, np.random.default_rng([arguments.seed, round_, int(number)]))
                save(file, record, name)
            except ValueError as error:
                outcome = f"{type(error).__name__}: {error}"
            line = {"garment": name, "kind": row["kind"], "seed": arguments.seed, "round": round_, "said": outcome}
            with log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line | {"seconds": round(time.process_time() - began, 2)}) + "\n")
            if len(list(arguments.out.glob("*.npz"))) >= arguments.count:
                return 0
        round_ += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
