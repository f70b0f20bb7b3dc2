"""A record drawn: the picture of the person who wears the garment, its labels and joints, and the exact warp.

Everything but the cloth's shape is drawn anew each time: skin, hair, trousers or skirt, light, camera, wall, framing
and the garment's colours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import torch

from vton import labels
from vton.data.draped.body import Body, normals
from vton.data.draped.raster import rasterise
from vton.joints import JOINTS

SKIN, GARMENT, SKIRT, HAIR = range(4)  # materials
FRAMINGS = ("thigh", "whole", "bust", "headless", "close")
FRAMING_SHARES = (0.52, 0.12, 0.12, 0.14, 0.1)
# Tones from very light to very dark, sRGB, after the Monk skin tone scale, seen in daylight.
TONES = np.array(
    [
        (232, 200, 180), (226, 190, 166), (218, 177, 149), (208, 163, 133), (195, 147, 114),
        (174, 126, 93), (150, 104, 72), (116, 76, 52), (86, 56, 40), (62, 42, 32),
    ],
    np.float32,
)  # fmt: skip
HAIR_COLOURS = np.array(
    [
        (22, 18, 16), (38, 28, 22), (62, 42, 28), (92, 62, 38),
        (150, 110, 66), (196, 160, 108), (120, 52, 30), (140, 136, 132),
    ],
    np.float32,
)  # fmt: skip
FEMALE_HAIR, MALE_HAIR = ("bob01", "long01", "ponytail01", "braid01", "afro01"), ("short01", "short02", "afro01")
PARTS = {"torso": "neck", "neck": "neck", "head": "face", "armL": "left arm", "armR": "right arm", "legL": "left leg",
         "legR": "right leg", "footL": "left shoe", "footR": "right shoe"}  # fmt: skip


class Studio:
    """What a drawing needs beside a record: the body, skins and hair, out of the arrays that `anatomy` wrote."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays, self.body = arrays, Body(arrays)
        codes = np.array([labels.LIP.index(PARTS[part]) for part in self.body.parts], np.uint8)
        self.codes = codes
        self._skins: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.skins = [name for name in arrays if name.startswith("skin:")]

    @cached_property
    def eyes(self) -> dict[str, np.ndarray]:
        """(V,) bool for "L" and "R": the vertices that turn with an eye."""
        strongest = self.body.bones[np.arange(len(self.body.bones)), self.body.weights.argmax(1)]
        return {side: strongest == self.body.index["eye." + side] for side in "LR"}

    @cached_property
    def rest(self) -> np.ndarray:
        """(V, 3) the mean body at rest, on which hair hangs."""
        return self.body.mean[: -len(self.body.names)]

    def skin(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A skin's picture, (h, w, 3) uint8 RGB, and its mean colour (3,)."""
        if name not in self._skins:
            picture = np.ascontiguousarray(cv2.imdecode(self.arrays[name], cv2.IMREAD_COLOR)[..., ::-1])
            small = picture[::8, ::8].reshape(-1, 3)
            self._skins[name] = picture, small[small.sum(1) > 60].mean(0)
        return self._skins[name]

    def hair(self, name: str) -> dict[str, np.ndarray]:
        """Vertices (V, 3) on the mean body, faces (F, 3), and mostly picture (h, w, 4), texture, texture_faces."""
        start = f"hair:{name}:"
        mesh = {key[len(start) :]: value for key, value in self.arrays.items() if key.startswith(start)}
        if "picture" in mesh:
            mesh["picture"] = cv2.imdecode(mesh["picture"], cv2.IMREAD_UNCHANGED)
        return mesh

    def points(self, vertices: np.ndarray) -> dict[str, np.ndarray]:
        """COCO's joints and the feet's of a posed body: name -> (3,)."""
        a = self.arrays
        sums = np.zeros((len(a["point_names"]), 3))
        np.add.at(sums, a["point_joint"], vertices[a["point_vertex"]] * a["point_weight"][:, None])
        return dict(zip([str(name) for name in a["point_names"]], sums))


@dataclass
class Record:
    """One drape. garment: "folder/id"; vertices (N, 3) metres; flat (N, 2) pixels of the photograph; faces (F, 3);
    seams (S, 2); front: how many points the front has, which come first; shape, pose: see `Body.pose_vertices`; facts:
    the rest.
    """

    garment: str
    vertices: np.ndarray
    flat: np.ndarray
    faces: np.ndarray
    seams: np.ndarray
    front: int
    shape: np.ndarray
    pose: dict[str, np.ndarray]
    facts: dict

    @classmethod
    def of(cls, data) -> Record:
        """From the arrays that `drape.save` wrote."""
        pose = {}
        for name, matrix in zip(data["pose_names"], data["pose"].astype(np.float64)):
            diagonal = np.diag(np.diag(matrix))
            pose[str(name)] = np.diag(matrix) if np.array_equal(matrix, diagonal) else matrix
        return cls(
            str(data["garment"]), data["vertices"].astype(np.float32), data["flat"].astype(np.float32),
            data["faces"].astype(np.int64), data["seams"].astype(np.int64), int(data["front"]),
            data["shape"].astype(np.float32), pose, json.loads(str(data["told"])),
        )  # fmt: skip


@dataclass
class Drawing:
    """A picture of a drape with its exact truth."""

    picture: np.ndarray  # (H, W, 3) uint8
    parse: np.ndarray  # (H, W) uint8 LIP labels
    keypoints: np.ndarray  # (25, 3) float32 BODY_25
    where: np.ndarray  # (H, W, 2) float32, x and y in the garment's photograph that its pixels show, NaN elsewhere
    inside: np.ndarray  # (H, W) bool, the garment's inner side, as at the back of a neck


# -- the scene -----------------------------------------------------------------------------------------------------


@dataclass
class Scene:
    """All that is drawn: vertices, normals (N, 3), faces (F, 3), material (F,), and what is chosen of the look."""

    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray
    material: np.ndarray
    garment_start: int
    look: dict


def build(studio: Studio, record: Record, rng: np.random.Generator) -> tuple[Scene, dict[str, np.ndarray]]:
    """The scene of a record, and the joints of the body in it."""
    body, facts = studio.body, record.facts
    skin, _ = body.pose_vertices(record.shape, record.pose)
    points = studio.points(skin)
    lower = np.isin(body.parts, ("legL", "legR", "footL", "footR"))
    lower |= (body.parts == "torso") & (skin[:, 2] < facts["waist"])
    female = facts["phenotype"]["gender"] > 0.5
    look = sample_look(studio, rng, female, skin, facts)
    outward = normals(skin, body.faces)
    skin = skin + outward * (facts["trousers"] * lower * (look["bottom"] != "bare"))[:, None]
    cloth, cloth_faces = record.vertices, record.faces
    if facts["tuck"]:
        cloth_faces = cloth_faces[(cloth[cloth_faces, 2] > facts["waist"] - 0.015).any(1)]
    cloth_normals = seam_normals(cloth, record.faces, record.seams)
    parts = [(skin, outward, body.faces, SKIN), (cloth, cloth_normals, cloth_faces, GARMENT)]
    if look["bottom"] == "skirt":
        parts.append(skirt(skin, body, facts["waist"], look["hem"], rng))
    if look["hair"]:
        mesh, head = studio.hair(look["hair"]), body.parts == "head"
        vertices = align(mesh["vertices"].astype(np.float32), studio.rest[head], skin[head]).astype(np.float32)
        faces = mesh["faces"].astype(np.int64)
        look["hair mesh"] = mesh
        parts.append((vertices, normals(vertices, faces), faces, HAIR))
    starts = np.cumsum([0] + [len(p[0]) for p in parts])
    scene = Scene(
        np.concatenate([p[0] for p in parts]).astype(np.float32),
        np.concatenate([p[1] for p in parts]).astype(np.float32),
        np.concatenate([p[2] + start for p, start in zip(parts, starts)]),
        np.concatenate([np.full(len(p[2]), p[3], np.uint8) for p in parts]),
        int(starts[1]),
        look,
    )
    return scene, points


def align(points: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Points (N, 3) by the similarity that takes `source` (K, 3) closest to `target` (Umeyama 1991)."""
    middle, to = source.mean(0), target.mean(0)
    a, b = source - middle, target - to
    u, size, v = np.linalg.svd(a.T @ b)
    sign = np.diag([1, 1, np.linalg.det(u @ v)])
    return (points - middle) @ (u @ sign @ v) * (size * np.diag(sign)).sum() / (a**2).sum() + to


def seam_normals(vertices: np.ndarray, faces: np.ndarray, seams: np.ndarray) -> np.ndarray:
    """Normals (N, 3) of the cloth as if both sides of a seam were one."""
    one = np.arange(len(vertices))
    one[seams[:, 1]] = seams[:, 0]
    return normals(vertices, one[faces])[one]


def skirt(skin: np.ndarray, body: Body, waist: float, hem: float, rng: np.random.Generator):
    """A skirt from the waist down to a height: vertices, normals, faces, material."""
    lower = skin[np.isin(body.parts, ("torso", "legL", "legR"))]
    middle = lower[abs(lower[:, 2] - waist) < 0.03, :2].mean(0)
    levels, turns = np.linspace(waist + 0.01, hem, 24), np.linspace(0, 2 * np.pi, 49)[:-1]
    away = lower[:, :2] - middle
    angle = np.arctan2(away[:, 1], away[:, 0]) % (2 * np.pi)
    column = np.round(angle / (2 * np.pi) * 48).astype(int) % 48
    radius = np.zeros((24, 48))
    row = np.clip(np.round((waist + 0.01 - lower[:, 2]) / (waist + 0.01 - hem) * 23), -1, 24).astype(int)
    fits = (row >= 0) & (row < 24)
    np.maximum.at(radius, (row[fits], column[fits]), np.linalg.norm(away, axis=1)[fits])
    radius = np.maximum.accumulate(cv2.dilate(radius, np.ones((3, 7))), 0)
    radius = np.concatenate([radius[:, -8:], radius, radius[:, :8]], 1).astype(np.float32)
    radius = cv2.GaussianBlur(radius, (0, 0), 2.0)[:, 8:-8] + 0.012
    flare = np.linspace(0, rng.uniform(0, 0.25), 24)[:, None] * (waist - levels[-1])
    folds = 1 + 0.03 * np.sin(rng.integers(5, 11) * turns + rng.uniform(0, 6)) * np.linspace(0, 1, 24)[:, None]
    radius = (radius + flare) * folds
    x, y = middle[0] + radius * np.cos(turns), middle[1] + radius * np.sin(turns)
    vertices = np.stack([x, y, np.repeat(levels[:, None], 48, 1)], 2).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(23), np.arange(48), indexing="ij")
    a, b, c, d = (r * 48 + s % 48 for r, s in ((i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)))
    faces = np.concatenate([np.stack([a, c, b], 2).reshape(-1, 3), np.stack([b, c, d], 2).reshape(-1, 3)])
    return vertices, normals(vertices, faces), faces, SKIRT


def sample_look(studio: Studio, rng: np.random.Generator, female: bool, skin: np.ndarray, facts: dict) -> dict:
    """What is chosen at random: skin, hair, what is worn below."""
    own = [s for s in studio.skins if ("_female" in s) == female]
    if facts["phenotype"]["age"] < 0.68:
        own = [s for s in own if "old_" not in s] or own
    knee, crotch = skin[:, 2].min() + 0.5, facts["waist"] - 0.1
    bottom = str(rng.choice(["trousers", "shorts", "skirt"], p=[0.72, 0.1, 0.18] if female else [0.85, 0.15, 0]))
    colour = np.clip(rng.choice([rng.uniform(15, 80), rng.uniform(15, 235)]) + rng.normal(0, 22, 3), 5, 245)
    if rng.random() < 0.35:  # denim
        colour = np.clip(np.array([70, 88, 125]) * rng.uniform(0.35, 1.6), 5, 245)
    hair = None
    if rng.random() >= (0.02 if female else 0.12):
        hair = str(rng.choice(FEMALE_HAIR if female else MALE_HAIR))
    hems = {"skirt": rng.uniform(knee - 0.15, crotch - 0.12), "shorts": rng.uniform(knee, crotch - 0.1)}
    return {
        "skin": own[rng.integers(len(own))],
        "tone": float(np.clip(rng.beta(0.9, 0.9) * (len(TONES) - 1), 0, len(TONES) - 1)),
        "hair": hair,
        "hair colour": HAIR_COLOURS[rng.integers(len(HAIR_COLOURS))] * rng.uniform(0.8, 1.2),
        "bottom": bottom,
        "bottom colour": colour,
        "hem": hems.get(bottom, -9.0),
        "iris": np.array([(70, 48, 30), (40, 28, 20), (90, 110, 120), (80, 90, 55)])[rng.integers(4)],
        "shoes": np.clip(rng.uniform(10, 240) + rng.normal(0, 10, 3), 5, 250),
    }


# -- the camera ----------------------------------------------------------------------------------------------------


@dataclass
class Camera:
    """Looks along +y, then turned. size (H, W); turn (3, 3); place (3,); focal length in pixels."""

    size: tuple[int, int]
    turn: np.ndarray
    place: np.ndarray
    focal: float

    def project(self, points: np.ndarray) -> np.ndarray:
        """(N, 3) world -> x, y in pixels (the first pixel's centre is at 0, 0) and depth in metres."""
        right, depth, up = ((points - self.place) @ self.turn.T).T
        near = np.maximum(depth, 0.1)
        x = self.size[1] / 2 - 0.5 + self.focal * right / near
        y = self.size[0] / 2 - 0.5 - self.focal * up / near
        return np.stack([x, y, depth], 1).astype(np.float32)


def sample_camera(points, top: float, size: tuple[int, int], rng: np.random.Generator, framing: str) -> Camera:
    """A camera before the person, who is turned by up to 25 degrees, in one of the FRAMINGS.

    points: joints (3,) by name, in metres; top: height of the head; size: of its picture, (H, W).
    """
    hip = (points["left_hip"][2] + points["right_hip"][2]) / 2
    chin = points["nose"][2] - 0.09
    feet = min(points["left_heel"][2], points["right_heel"][2])
    high, low = {
        "thigh": (top + rng.uniform(0.03, 0.16), hip - rng.uniform(0.1, 0.34)),
        "whole": (top + rng.uniform(0.04, 0.2), feet - rng.uniform(0.03, 0.15)),
        "bust": (top + rng.uniform(0.02, 0.12), hip + rng.uniform(0.0, 0.22)),
        "headless": (chin + rng.uniform(-0.03, 0.09), hip - rng.uniform(0.06, 0.3)),
        "close": (top + rng.uniform(-0.06, 0.06), hip - rng.uniform(0.0, 0.14)),
    }[framing]
    height, away = high - low, rng.uniform(2.2, 5.0)
    yaw = rng.normal(0, 11) if rng.random() < 0.6 else rng.uniform(-25, 25)
    pitch = np.radians(rng.normal(0, 2.5))
    c, s = np.cos(np.radians(np.clip(yaw, -25, 25))), np.sin(np.radians(np.clip(yaw, -25, 25)))
    around = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    tilt = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]])
    roll = np.radians(rng.normal(0, 0.8))
    lean = np.array([[np.cos(roll), 0, np.sin(roll)], [0, 1, 0], [-np.sin(roll), 0, np.cos(roll)]])
    turn = lean @ tilt @ around
    middle = np.array([(points["left_hip"][0] + points["right_hip"][0]) / 2, 0.0, (high + low) / 2])
    side = rng.normal(0, 0.03) * height
    place = middle - turn.T @ np.array([side, away, 0.0])
    return Camera(size, turn, place, size[0] * away / height)


# -- drawing -------------------------------------------------------------------------------------------------------


def draw(
    studio: Studio,
    record: Record,
    photograph: np.ndarray,
    size: tuple[int, int],
    rng: np.random.Generator,
    framing: str | None = None,
) -> Drawing:
    """A record as a picture of `size` (H, W). photograph (h, w, 3) uint8: the garment; framing: one of FRAMINGS."""
    scene, points = build(studio, record, rng)
    fine = 1.5  # drawn larger, so that edges are smooth
    large = (round(size[0] * fine), round(size[1] * fine))
    framing = framing or str(rng.choice(FRAMINGS, p=FRAMING_SHARES))
    camera = sample_camera(points, float(scene.vertices[:, 2].max()), large, rng, framing)
    screen = camera.project(scene.vertices)
    # Cloth lies before skin and skirt where they touch, and a skirt or trousers before what is tucked in.
    bias = np.array([0, -0.006, -0.02 if record.facts["tuck"] else 0.05, 0], np.float32)[scene.material]
    face, weights = visible(screen, scene, bias, large)
    pixel = np.flatnonzero(face.ravel() >= 0)
    own, share = face.ravel()[pixel], weights.reshape(-1, 3)[pixel]
    surface = surface_of(studio, scene, record, photograph, own, share, camera)
    depth = (screen[scene.faces[own], 2] * share).sum(1)
    colours = surface["colour"] * light(scene, surface, large, pixel, depth, rng)
    wall = paint_wall(large, face >= 0, rng)
    picture = wall.reshape(-1, 3)
    picture[pixel] = colours
    picture = develop(picture.reshape(*large, 3), size, rng)
    parse, where = np.zeros(large, np.uint8), np.full((*large, 2), np.nan, np.float32)
    inside = np.zeros(large, bool)
    parse.ravel()[pixel] = surface["label"]
    where.reshape(-1, 2)[pixel] = surface["where"]
    inside.ravel()[pixel] = surface["inside"]
    rows, columns = (np.minimum(((np.arange(n) + 0.5) * fine).astype(int), m - 1) for n, m in zip(size, large))
    pick = np.ix_(rows, columns)
    return Drawing(picture, parse[pick], joints(points, camera, fine, size), where[pick], inside[pick])


def visible(screen: np.ndarray, scene: Scene, bias: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The face at each pixel (H, W), -1 = none, and the weights of its corners; hair only where its texture is solid.

    screen (N, 3): the vertices in pixels and metres of depth; bias (F,): metres by which faces count as farther away.
    """
    corners = screen[scene.faces]
    candidates = np.flatnonzero((scene.material != SKIN) | faces_viewer(corners))
    corners = corners[candidates]
    corners[..., 2] += bias[candidates, None]
    solid, mesh = None, scene.look.get("hair mesh")
    if mesh is not None and "picture" in mesh:
        alpha = torch.from_numpy(np.ascontiguousarray(mesh["picture"][..., 3]))
        uv = torch.from_numpy(mesh["texture"].astype(np.float32)[mesh["texture_faces"].astype(int)])
        first = int(np.flatnonzero(scene.material[candidates] == HAIR)[0])

        def solid(owner, weights):
            """Where hair's texture is more than half opaque, and everywhere else."""
            is_hair = owner >= first
            place = (uv[owner[is_hair] - first] * weights[is_hair][..., None]).sum(1)
            x = (place[:, 0] * alpha.shape[1]).long() % alpha.shape[1]
            y = ((1 - place[:, 1]) * alpha.shape[0]).long() % alpha.shape[0]
            out = torch.ones(len(owner), dtype=torch.bool)
            out[is_hair] = alpha[y, x] > 100
            return out

    face, weights = rasterise(torch.from_numpy(corners), size, solid)
    face = face.numpy()
    return np.where(face >= 0, candidates[face.clip(0)], -1), weights.numpy()


def faces_viewer(corners: np.ndarray) -> np.ndarray:
    """(F,) bool: which faces of a closed mesh are seen from outside; corners (F, 3, 2 or more) on the screen."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    return (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0] < 0


def surface_of(studio: Studio, scene: Scene, record: Record, photograph, own, share, camera) -> dict[str, np.ndarray]:
    """What each of n pixels shows. own (n,): its face; share (n, 3): weights of the face's corners.

    Returns: place, normal (n, 3) in the world, colour (n, 3) linear in [0, 1], label (n,) uint8, where (n, 2), inside
    (n,).
    """
    corners, material, look = scene.faces[own], scene.material[own], scene.look
    place, normal = interpolate(scene.vertices, corners, share), interpolate(scene.normals, corners, share)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-9
    away = (normal * (place - camera.place)).sum(1) > 0
    normal[away] *= -1
    n = len(own)
    colour, label = np.zeros((n, 3), np.float32), np.zeros(n, np.uint8)
    where, inside = np.full((n, 2), np.nan, np.float32), np.zeros(n, bool)

    cloth = material == GARMENT
    where[cloth] = interpolate(record.flat, corners[cloth] - scene.garment_start, share[cloth])
    colour[cloth] = sample_colours(photograph, where[cloth])
    inside[cloth] = away[cloth]
    is_coat = record.facts["attributes"]["kind"] in ("jacket", "coat")
    label[cloth] = labels.COAT_LIP if is_coat else labels.UPPER_LIP[0]
    colour[cloth & inside] *= 0.8

    body = material == SKIN
    label[body] = body_labels(studio, corners[body], share[body])
    uv = interpolate(studio.body.texture, studio.body.texture_faces[own[body]], share[body])
    picture, mean = studio.skin(look["skin"])
    size = np.array([picture.shape[1], picture.shape[0]], np.float32)
    at = (uv * np.array((1, -1), np.float32) + np.array((0, 1), np.float32)) * size - 0.5
    colour[body] = retone(sample_colours(picture, at), mean, look["tone"])
    dress_below(place[body], label, colour, body, scene, record)
    paint_eyes(colour, body, corners, place, studio, scene, record)
    for kind, name, tone in ((SKIRT, "skirt", look["bottom colour"]), (HAIR, "hair", look["hair colour"])):
        label[material == kind], colour[material == kind] = labels.LIP.index(name), tone
    strands(colour, material == HAIR, place)
    return {
        "place": place, "normal": normal, "colour": (colour / 255) ** np.float32(2.2), "label": label, "where": where,
        "inside": inside,
    }  # fmt: skip


def interpolate(values: np.ndarray, corners: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(n, c) values (N, c) of three corners (n, 3), weighted by their shares (n, 3)."""
    return sum(values[corners[:, k]] * share[:, k : k + 1] for k in range(3))


def sample_colours(picture: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Colours (n, 3) float32 of a picture at places (n, 2), x and y in its pixels."""
    if not len(at):
        return np.zeros((0, 3), np.float32)
    rows = -(-len(at) // 4096)
    padded = np.zeros((rows * 4096, 2), np.float32)
    padded[: len(at)] = at
    grid = padded.reshape(rows, 4096, 2)
    colours = cv2.remap(picture, grid, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return colours.reshape(-1, 3)[: len(at)].astype(np.float32)


def body_labels(studio: Studio, corners: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The label of each pixel of the body: that of the part with the largest share of its corners."""
    codes = studio.codes[corners]
    votes = np.stack([((codes == codes[:, k : k + 1]) * share).sum(1) for k in range(3)], 1)
    return np.take_along_axis(codes, votes.argmax(1)[:, None], 1)[:, 0]


def dress_below(
    place: np.ndarray, label: np.ndarray, colour: np.ndarray, body: np.ndarray, scene: Scene, record
) -> None:
    """Trousers or shorts and shoes on the pixels of the body; changes label and colour."""
    look, own, tones = scene.look, label[body], colour[body]
    torso_or_leg = np.isin(own, [labels.LIP.index(name) for name in ("neck", "left leg", "right leg")])
    waist = record.facts["waist"] + 0.01
    bottom_skin = (
        torso_or_leg & (place[:, 2] < waist) & (place[:, 2] > (look["hem"] if look["bottom"] == "shorts" else -9))
    )
    if look["bottom"] == "skirt":
        bottom_skin &= place[:, 2] > waist - 0.08  # the skirt's own mesh does the rest
    own[bottom_skin] = labels.LIP.index("skirt" if look["bottom"] == "skirt" else "pants")
    tones[bottom_skin] = look["bottom colour"]
    band = bottom_skin & (place[:, 2] > waist - 0.035)
    tones[band] *= 0.85
    shoes = np.isin(own, [labels.LIP.index(name) for name in ("left shoe", "right shoe")])
    tones[shoes] = look["shoes"]
    label[body], colour[body] = own, tones


def paint_eyes(colour, body, corners, place, studio: Studio, scene: Scene, record: Record) -> None:
    """White, iris and pupil on the pixels of the eyeballs; changes colour."""
    gaze = record.pose.get("head", np.eye(3)) @ (0, -1, 0)
    for side in "LR":
        ball = studio.eyes[side]
        on = np.flatnonzero(body)[ball[corners[body]].all(1)]
        if len(on):
            offset = place[on] - scene.vertices[: len(ball)][ball].mean(0)
            across = np.linalg.norm(offset - (offset @ gaze)[:, None] * gaze, axis=1)
            ring = np.where((across < 0.0062)[:, None], scene.look["iris"], 205)
            colour[on] = np.where((across < 0.0025)[:, None], 12, ring)


def strands(colour: np.ndarray, hair: np.ndarray, place: np.ndarray) -> None:
    """Streaks along the height in the colour of hair."""
    x, y, z = place[hair].T
    streak = np.sin(240 * x + 6 * np.sin(9 * z)) * np.sin(170 * y + 4 * np.sin(7 * z + 20 * x))
    colour[hair] *= (1 + 0.14 * streak[:, None]).astype(np.float32)


def retone(colours: np.ndarray, mean: np.ndarray, tone: float) -> np.ndarray:
    """Colours (n, 3) of a skin whose mean is (3,) in another tone, a place between two of TONES."""
    low = int(min(tone, len(TONES) - 2))
    target = TONES[low] + (TONES[low + 1] - TONES[low]) * (tone - low)
    return np.clip(colours * (target / mean).astype(np.float32), 0, 255)


# -- light, wall, camera -------------------------------------------------------------------------------------------


def light(scene: Scene, surface: dict[str, np.ndarray], shape, pixel, depth, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) how much light each pixel reflects: a broad lamp with its shadow, the sky, and darker hollows.

    surface: "normal" and "place" (n, 3) of the n pixels, which are numbered by `pixel` in a picture of `shape` (H, W);
    depth: (n,) in metres.
    """
    normal, place = surface["normal"], surface["place"]
    side, high = rng.uniform(-1.2, 1.2), rng.uniform(0.15, 1.1)
    to = np.array([side, -1.0, high])
    to /= np.linalg.norm(to)
    soft = rng.uniform(0.1, 0.5)
    lamp = np.clip((normal @ to + soft) / (1 + soft), 0, None)
    shade = blur(in_shadow(scene, place, to), shape, pixel, rng.uniform(1.0, 3.5) * shape[0] / 512)
    strength = rng.uniform(0.3, 0.8)
    sky = 0.62 + 0.25 * normal[:, 2] - 0.18 * normal[:, 1]
    out = strength * lamp * (1 - 0.75 * shade) + (1.12 - strength) * sky
    field = np.full(shape, depth.max() + 0.1, np.float32)
    field.ravel()[pixel] = depth
    near = cv2.GaussianBlur(np.minimum(field, depth.min() + 0.8), (0, 0), shape[0] / 40)
    hollow = np.clip((depth - near.ravel()[pixel]) / 0.05, 0, 1)
    out *= 1 - rng.uniform(0.15, 0.45) * hollow
    warm = 1 + rng.normal(0, 0.03, 3) * (1, 0.4, 1)
    return (out[:, None] * warm * rng.uniform(0.9, 1.12)).astype(np.float32)


def in_shadow(scene: Scene, place: np.ndarray, to: np.ndarray, cells: int = 224) -> np.ndarray:
    """(n,) 1 where something stands between a place and a far lamp in direction `to`, else 0."""
    right = np.cross((0, 0, 1), to)
    right /= np.linalg.norm(right)
    up = np.cross(to, right)
    axes = np.stack([right, up, -to])

    def lamp_view(points):
        return (points @ axes.T).astype(np.float32)

    vertices = lamp_view(scene.vertices)
    position = lamp_view(place)
    low, high = position[:, :2].min(0) - 0.02, position[:, :2].max(0) + 0.02
    scale = cells / (high - low).max()
    vertices[:, :2] = (vertices[:, :2] - low) * scale
    shape = tuple(np.ceil((high - low)[::-1] * scale).astype(int) + 1)
    hides = (scene.material != HAIR) | (np.arange(len(scene.material)) % 2 == 0)
    corners = vertices[scene.faces[hides]]
    corners = corners[(scene.material[hides] != SKIN) | faces_viewer(corners)]
    face, weights = rasterise(torch.from_numpy(corners), shape)
    face, weights = face.numpy(), weights.numpy()
    z = corners[..., 2]
    first = np.full(shape, 9.0, np.float32)
    on_mesh = face >= 0
    first[on_mesh] = (z[face[on_mesh]] * weights[on_mesh]).sum(1)
    x, y = np.round((position[:, :2] - low) * scale).astype(int).T
    nearest = first[y.clip(0, shape[0] - 1), x.clip(0, shape[1] - 1)]
    return (position[:, 2] > nearest + 0.018).astype(np.float32)


def blur(values: np.ndarray, shape, pixel: np.ndarray, sigma: float) -> np.ndarray:
    """(n,) values of pixels, each the mean of its neighbours among them."""
    field, there = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    field.ravel()[pixel], there.ravel()[pixel] = values, 1
    field, there = (cv2.GaussianBlur(a, (0, 0), sigma) for a in (field, there))
    return (field / np.maximum(there, 1e-3)).ravel()[pixel]


def paint_wall(size: tuple[int, int], person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A wall (H, W, 3), linear light: mostly light and plain as in a studio, with the person's soft shadow."""
    height, width = size
    tone = rng.uniform(0.62, 1.0) if rng.random() < 0.72 else rng.uniform(0.03, 0.6)
    colour = tone * (1 + rng.normal(0, 0.03 if rng.random() < 0.8 else 0.15, 3))
    x, y = np.linspace(-1, 1, width, dtype=np.float32)[None], np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    slope = 1 + rng.normal(0, 0.08) * x + rng.normal(0, 0.08) * y - rng.uniform(0, 0.12) * (x**2 + y**2)
    wall = colour * slope[..., None]
    if rng.random() < 0.15:  # a wall that is not plain
        shape = rng.integers(4, 24), rng.integers(3, 18)
        rough = rng.normal(0, 1, (*shape, 1)) + 0.3 * rng.normal(0, 1, (*shape, 3))
        large = cv2.resize(rough.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
        wall = wall * np.exp(rng.uniform(0.03, 0.2) * large)
    if rng.random() < 0.7:
        shift = np.float32([[1, 0, rng.normal(0, 0.06) * width], [0, 1, rng.uniform(-0.01, 0.05) * height]])
        shadow = cv2.warpAffine(person.astype(np.float32), shift, (width, height), borderMode=cv2.BORDER_REPLICATE)
        shadow = cv2.GaussianBlur(shadow, (0, 0), rng.uniform(0.012, 0.06) * height)
        wall = wall * (1 - rng.uniform(0.05, 0.4) * shadow[..., None])
    return np.clip(wall, 0.002, 1.1).astype(np.float32)


def develop(linear: np.ndarray, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """The photograph (H, W, 3) uint8 of linear light: reduced, gamma, a little noise and sometimes JPEG."""
    small = cv2.resize(linear, size[::-1], interpolation=cv2.INTER_AREA)
    grey = np.clip(small * rng.uniform(0.92, 1.08), 0, 4)
    grey = np.where(grey > 0.8, 0.8 + 0.2 * np.tanh((grey - 0.8) / 0.2), grey)  # a film's shoulder
    picture = 255 * grey ** np.float32(1 / 2.2)
    picture += rng.normal(0, 1, picture.shape).astype(np.float32) * rng.uniform(0, 3)
    picture = np.clip(picture, 0, 255).astype(np.uint8)
    if rng.random() < 0.5:
        quality = int(rng.integers(70, 96))
        picture = cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_COLOR)
    return picture


# BODY_25's names of COCO's joints.
SAME = {"nose": "nose"} | {
    f"{side} {part}": f"{side}_{part.replace(' ', '_')}"
    for side in ("left", "right")
    for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle", "big toe", "heel")
}


def joints(points: dict[str, np.ndarray], camera: Camera, fine: float, size: tuple[int, int]) -> np.ndarray:
    """(25, 3) float32 BODY_25 in pixels of `size`, `fine` times as few as the camera's; zeros outside, and where there
    is no such joint. points: (3,) by name, in metres.
    """
    world = {name: points[other] for name, other in SAME.items()}
    world["neck"] = (world["left shoulder"] + world["right shoulder"]) / 2
    world["mid hip"] = (world["left hip"] + world["right hip"]) / 2
    out = np.zeros((25, 3), np.float32)
    for i, name in enumerate(JOINTS):
        if name in world:
            x, y, _ = camera.project(world[name][None])[0]
            x, y = (x + 0.5) / fine - 0.5, (y + 0.5) / fine - 0.5
            if 0 <= x < size[1] and 0 <= y < size[0]:
                out[i] = x, y, 0.9
    return out
