"""Where the hem of a garment lies: in a segmentation, and as an input of the segmentation generator.

How far down a garment will hang its photograph does not tell to a few pixels, and a network that chooses pixel by pixel
among hems that are all likely cuts it to lobes. So the generator looks twice, which is not in the paper: the row of the
first answer's hem, the median over its columns, is given to it as a plane beside the other inputs.
"""

from __future__ import annotations

import numpy as np

from vton.joints import HIPS, SHOULDERS, TRUNK, present
from vton.labels import BOTTOM, UPPER

REACH = 0.25  # how far from the hem the plane still tells the distance, in lengths of the trunk


def hips_and_trunk(keypoints: np.ndarray) -> tuple[float, float] | None:
    """Row of the hips and length of the trunk in pixels, of joints (25, 3).

    None where one is missing or the person is not upright.
    """
    if not present(keypoints)[list(TRUNK)].all():
        return None
    rows = np.asarray(keypoints, np.float64)[:, 1]
    hips, shoulders = rows[list(HIPS)].mean(), rows[list(SHOULDERS)].mean()
    return (hips, hips - shoulders) if hips > shoulders else None


def above_bottom(cloth: np.ndarray, segmentation: np.ndarray) -> np.ndarray:
    """(H - 1, W) bool, where a garment, cloth (H, W) bool, ends right above the trousers of a segmentation (H, W)
    of 13 classes.
    """
    return cloth[:-1] & (segmentation[1:] == BOTTOM)


def hem_row(cloth: np.ndarray, segmentation: np.ndarray) -> float | None:
    """The row at which a garment, cloth (H, W) bool, ends above trousers or a skirt, the median of the columns; None
    where no such column is seen. segmentation: (H, W) 13 classes.
    """
    meeting = above_bottom(cloth, segmentation)
    columns = meeting.any(0)
    return float(np.median(len(meeting) - 1 - meeting[::-1, columns].argmax(0))) if columns.any() else None


def hem_plane(row: float | None, keypoints: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(H, W) float32, how far above the row of the hem each pixel lies: 1 far above it, 0 at it, -1 far below; zeros
    where it or a joint of the trunk, keypoints (25, 3), is not known.
    """
    place = hips_and_trunk(keypoints)
    if row is None or place is None:
        return np.zeros(shape, np.float32)
    above = (row + 0.5 - np.arange(shape[0], dtype=np.float32)) / np.float32(REACH * place[1])
    return np.repeat(above.clip(-1, 1)[:, None], shape[1], 1)


def plane_of(segmentation: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The plane (H, W) of the hem that a segmentation (H, W) of 13 classes shows; see `hem_plane`."""
    return hem_plane(hem_row(segmentation == UPPER, segmentation), keypoints, segmentation.shape)
