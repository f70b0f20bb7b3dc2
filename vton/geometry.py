"""Pictures and joints through affine maps."""

import cv2
import numpy as np

from vton.joints import FLIP, present


def affine(box: np.ndarray, size: tuple[int, int], angle: float = 0.0, mirror: bool = False) -> np.ndarray:
    """(2, 3) matrix from source pixels to a picture of `size` (H, W) that shows `box` (x0, y0, x1, y1).

    angle: rotation about the box's centre in degrees; mirror: left and right exchanged.
    """
    height, width = size
    x0, y0, x1, y1 = box
    centre = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    radians = np.deg2rad(angle)
    rotation = np.array([[np.cos(radians), np.sin(radians)], [-np.sin(radians), np.cos(radians)]])
    linear = np.diag([(-1 if mirror else 1) * width / (x1 - x0), height / (y1 - y0)]) @ rotation
    return np.concatenate([linear, (np.array([width / 2, height / 2]) - linear @ centre)[:, None]], 1)


def move_points(keypoints: np.ndarray, matrix: np.ndarray, mirror: bool = False) -> np.ndarray:
    """(25, 3) keypoints through an affine matrix; with `mirror` the left joints become the right ones."""
    out = keypoints.copy()
    out[:, :2] = keypoints[:, :2] @ matrix[:, :2].T + matrix[:, 2]
    out[~present(keypoints)] = 0
    return out[FLIP] if mirror else out


def warp_picture(
    picture: np.ndarray, matrix: np.ndarray, size: tuple[int, int], nearest: bool = False, fill=0
) -> np.ndarray:
    """`picture` through an affine matrix onto `size` (H, W)."""
    return cv2.warpAffine(
        picture,
        matrix.astype(np.float64),
        size[::-1],
        flags=cv2.INTER_NEAREST if nearest else cv2.INTER_AREA,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=fill,
    )


def prescale(picture: np.ndarray, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A picture at the scale of the window that `matrix` (2, 3) maps it onto, and the matrix from there: an affine map
    alone would skip pixels. One that would be enlarged stays as it is.
    """
    scale = float(np.hypot(*matrix[0, :2]))
    if scale >= 1:
        return picture, matrix
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return small, np.concatenate([matrix[:, :2] / scale, matrix[:, 2:]], 1)
