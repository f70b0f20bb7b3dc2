"""A record of a drape as bytes, see `vton.data.draped.codec`, which decodes it."""

from __future__ import annotations

import io
import lzma

import numpy as np

from vton.data.draped.codec import FLAT_STEP, META, STEP, panels, parents

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 18, "lc": 0, "lp": 0, "pb": 0}]


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
    mesh, front_mesh = in_order(own[faces[behind]]), in_order(own[faces[~behind]][:, ::-1])
    cut = ~np.isin(keys(mesh), keys(front_mesh))
    if len(sheet) != len(back) or (~cut).sum() != len(front_mesh) or (own[seams[:, 0]] != own[seams[:, 1]]).any():
        raise ValueError("The front of the drape is no part of its back's mesh.")
    whole, sewn, number = panels(mesh, cut, own[seams[:, 0]], len(sheet))
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
        "taken": np.flatnonzero(cut).astype(np.uint16), "seams": own[seams[:, 0]].astype(np.uint16),
    }  # fmt: skip
    out = io.BytesIO()
    np.savez(out, **arrays, **{key: record[key] for key in META})
    return lzma.compress(out.getvalue(), lzma.FORMAT_XZ, lzma.CHECK_NONE, filters=FILTERS)


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
    codes = np.where(values < 0, -2 * values - 1, 2 * values).T.astype(np.uint16)
    return np.stack([codes & 255, codes >> 8]).astype(np.uint8)
