"""A record of a drape in some 11 kB: one mesh for both panels, and vertices as errors of a prediction.

The front is the back without the triangles of the neckline's cut, so that one mesh of points in order of rows stands
for both. Vertices follow the mesh: each is predicted from three neighbours before it as the fourth corner of a
parallelogram (Touma and Gotsman 1998), seams' back sides from their front sides, and only the error is kept, in steps
of `STEP`.
"""

from __future__ import annotations

import io
import lzma

import numpy as np

STEP = 0.0004  # metres; rounding moves a vertex by 0.35 mm at most
FLAT_STEP = 0.125  # pixels of the photograph
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 18, "lc": 0, "lp": 0, "pb": 0}]
MAGIC = b"\xfd7zXZ\x00"  # how a record begins
META = ("garment", "shape", "pose_names", "pose", "told")


def encode(record: dict[str, np.ndarray]) -> bytes:
    """The arrays of `drape.save` as bytes. Points and triangles may change their order.

    Raises:
        ValueError: the front is no part of the back's mesh.
    """
    front, flat = int(record["front"]), np.round(record["flat"].astype(np.float64) / FLAT_STEP).astype(np.int64)
    faces, seams = record["faces"].astype(np.int64), record["seams"].astype(np.int64)
    sheet, back = np.unique(flat[front:, ::-1], axis=0, return_inverse=True)  # by rows
    place = {tuple(point): i for i, point in enumerate(sheet.tolist())}
    own = np.array([place.get(tuple(point), -1) for point in flat[:, ::-1].tolist()])
    behind = faces[:, 0] >= front
    mesh, shown = in_order(own[faces[behind]]), in_order(own[faces[~behind]][:, ::-1])
    taken = ~np.isin(keys(mesh), keys(shown))
    if len(sheet) != len(back) or (~taken).sum() != len(shown) or (own[seams[:, 0]] != own[seams[:, 1]]).any():
        raise ValueError("The front of the drape is no part of its back's mesh.")
    whole, sewn, number = panels(mesh, taken, own[seams[:, 0]], len(sheet))
    vertices = np.zeros((number[1].max() + 1, 3))
    vertices[number[behind_points(front, len(flat)), own]] = record["vertices"].astype(np.float64)
    low = vertices.min(0)
    steps = np.round((vertices - low) / STEP).astype(np.int64)
    a, b, c = parents(whole, sewn, len(steps)).T
    error = steps - (steps[a] + steps[b] - steps[c])
    error[0] = steps[0]
    corners = np.stack([np.diff(mesh[:, 0], prepend=0), mesh[:, 1] - mesh[:, 0], mesh[:, 2] - mesh[:, 1]], 1)
    arrays = {
        "low": low, "error": narrow(error), "flat": narrow(np.diff(sheet, axis=0, prepend=0)),
        "faces": narrow(corners),
        "taken": np.flatnonzero(taken).astype(np.uint16), "seams": own[seams[:, 0]].astype(np.uint16),
    }  # fmt: skip
    out = io.BytesIO()
    np.savez(out, **arrays, **{key: record[key] for key in META})
    return lzma.compress(out.getvalue(), lzma.FORMAT_XZ, lzma.CHECK_NONE, filters=FILTERS)


def decode(content: bytes) -> dict[str, np.ndarray]:
    """What `encode` was given, vertices to half a millimetre."""
    with np.load(io.BytesIO(lzma.decompress(content)), allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    steps = wide(arrays["faces"])
    first = steps[:, 0].cumsum()
    mesh = np.stack([first, first + steps[:, 1], first + steps[:, 1] + steps[:, 2]], 1)
    sheet = wide(arrays["flat"]).cumsum(0)[:, ::-1]
    taken = np.isin(np.arange(len(mesh)), arrays["taken"])
    faces, seams, number = panels(mesh, taken, arrays["seams"].astype(np.int64), len(sheet))
    error = wide(arrays["error"])
    places: list[np.ndarray] = [error[0]]
    for (a, b, c), own in zip(parents(faces, seams, len(error))[1:].tolist(), error[1:]):
        places.append(places[a] + places[b] - places[c] + own)
    vertices = arrays["low"] + np.stack(places) * STEP
    shown = number[0] >= 0
    return {key: arrays[key] for key in META} | {
        "vertices": vertices, "flat": np.concatenate([sheet[shown], sheet]) * FLAT_STEP, "faces": faces,
        "seams": seams, "front": np.array(shown.sum()),
    }  # fmt: skip


def panels(
    mesh: np.ndarray, cut: np.ndarray, seam: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces (F, 3), seams (S, 2) of both panels, and the numbers (2, count) of the mesh's points in front and back."""
    number = np.full((2, count), -1)
    used = np.unique(mesh[~cut])
    number[0, used] = np.arange(len(used))
    number[1] = len(used) + np.arange(count)
    faces = np.concatenate([number[0][mesh[~cut]][:, ::-1], number[1][mesh]])
    return faces, number[:, seam].T, number


def parents(faces: np.ndarray, seams: np.ndarray, count: int) -> np.ndarray:
    """(count, 3) points a, b, c before each point whose a + b - c is close to it; the first point has none."""
    before = np.arange(-1, count - 1).clip(0)
    out = np.stack([before] * 3, 1)
    for i, j in ((0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)):  # at least a neighbour
        low, high = faces[:, i], faces[:, j]
        out[high[low < high]] = low[low < high, None]
    sides = np.concatenate([np.roll(faces, -k, 1) for k in range(3)])  # an edge, and the corner across from it
    key = np.sort(sides[:, :2], 1) @ (count, 1)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    for one, other in ((order[same], order[same + 1]), (order[same + 1], order[same])):
        trio, new = sides[one], sides[other, 2]
        fits = trio.max(1) < new
        out[new[fits]] = trio[fits]
    out[seams[:, 1]] = seams[:, :1]
    return out


def behind_points(front: int, count: int) -> np.ndarray:
    """(count,) 0 for points of the front, which come first, and 1 for those of the back."""
    return (np.arange(count) >= front).astype(np.int64)


def in_order(faces: np.ndarray) -> np.ndarray:
    """Triangles (F, 3) turned so that the smallest corner is first, by their corners."""
    turn = (np.arange(3) + faces.argmin(1)[:, None]) % 3
    faces = np.take_along_axis(faces, turn, 1)
    return faces[np.lexsort(faces.T[::-1])]


def keys(faces: np.ndarray) -> np.ndarray:
    """One number for every triangle (F, 3)."""
    return faces @ (1 << 32, 1 << 16, 1)


def narrow(values: np.ndarray) -> np.ndarray:
    """(2, c, n) uint8 of whole numbers (n, c), |values| < 2^15: low and high bytes apart, small ones near zero."""
    folded = np.where(values < 0, -2 * values - 1, 2 * values).T.astype(np.uint16)
    return np.stack([folded & 255, folded >> 8]).astype(np.uint8)


def wide(planes: np.ndarray) -> np.ndarray:
    """What `narrow` was given."""
    folded = (planes[0].astype(np.int64) | planes[1].astype(np.int64) << 8).T
    return np.where(folded & 1, -(folded + 1) // 2, folded // 2)
