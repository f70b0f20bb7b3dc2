"""A record of a drape in some 11 kB: one mesh for both panels, and vertices as errors of a prediction.

The front is the back without the triangles of the neckline's cut, so that one mesh of points in order of rows stands
for both. Vertices follow the mesh: each is predicted from three neighbours before it as the fourth corner of a
parallelogram (Touma and Gotsman 1998), seams' back sides from their front sides, and only the error is kept, in steps
of `STEP`.
"""

import io
import lzma

import numpy as np

STEP = 0.0004  # metres; rounding moves a vertex by 0.35 mm at most
FLAT_STEP = 0.125  # pixels of the photograph
MAGIC = b"\xfd7zXZ\x00"  # how a record begins
META = ("garment", "shape", "pose_names", "pose", "told")


def decode(content: bytes) -> dict[str, np.ndarray]:
    """What `lab.tryon.draping.encode` was given, vertices to half a millimetre."""
    with np.load(io.BytesIO(lzma.decompress(content)), allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    steps = wide(arrays["faces"])
    first = steps[:, 0].cumsum()
    mesh = np.stack([first, first + steps[:, 1], first + steps[:, 1] + steps[:, 2]], 1)
    sheet = wide(arrays["flat"]).cumsum(0)[:, ::-1]
    cut = np.isin(np.arange(len(mesh)), arrays["taken"])
    faces, seams, number = panels(mesh, cut, arrays["seams"].astype(np.int64), len(sheet))
    error = wide(arrays["error"])
    places: list[np.ndarray] = [error[0]]
    for (a, b, c), own in zip(parents(faces, seams, len(error))[1:].tolist(), error[1:]):
        places.append(places[a] + places[b] - places[c] + own)
    vertices = arrays["low"] + np.stack(places) * STEP
    front = number[0] >= 0
    return {key: arrays[key] for key in META} | {
        "vertices": vertices, "flat": np.concatenate([sheet[front], sheet]) * FLAT_STEP, "faces": faces,
        "seams": seams, "front": np.array(front.sum()),
    }  # fmt: skip


def panels(
    mesh: np.ndarray, cut: np.ndarray, seam: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces (F, 3), seams (S, 2) of both panels, and the numbers (2, count) of the mesh's points in front and back."""
    number = np.full((2, count), -1)
    front_points = np.unique(mesh[~cut])
    number[0, front_points] = np.arange(len(front_points))
    number[1] = len(front_points) + np.arange(count)
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


def wide(planes: np.ndarray) -> np.ndarray:
    """Whole numbers (n, c) from (2, c, n) uint8: low and high bytes apart, small ones of either sign near zero."""
    codes = (planes[0].astype(np.int64) | planes[1].astype(np.int64) << 8).T
    return np.where(codes & 1, -(codes + 1) // 2, codes // 2)
