"""Drawn people as training material: exact parse, joints and warp, and nothing to download."""

from __future__ import annotations

import cv2
import numpy as np

from vton.data.pack import Person
from vton.data.pairs import WHITE, Pair
from vton.data.synthetic import draw_pair

PERSON_SIZE = (256, 192)


def drawn_person(seed: int) -> Person:
    """One drawn person in the form of a packed photograph; the frame is the whole picture."""
    pair = draw_pair(seed, size=PERSON_SIZE)
    mask = cv2.GaussianBlur((pair.parse > 0).astype(np.float32), (0, 0), 1.5)
    height, width = PERSON_SIZE
    return Person(
        f"drawn-{seed}",
        pair.person,
        pair.parse,
        mask,
        np.zeros(PERSON_SIZE, bool),
        pair.keypoints,
        np.array([0, 0, width, height], np.float32),
    )


def drawn_sample(
    seed: int, size: tuple[int, int], sleeves: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Pair]:
    """One drawn pair at `size`: person (H,W,3), parse (H,W), keypoints (25,3), and the garment flat and worn.

    sleeves: see `draw_pair`.
    """
    drawn = draw_pair(seed, size=size, sleeves=sleeves)
    visible = drawn.parse == 5
    worn = np.where(visible[..., None], drawn.person, WHITE).astype(np.uint8)
    known = {"sleeves": drawn.sleeves, "neckline": drawn.neckline}
    pair = Pair(drawn.cloth, drawn.cloth_mask > 127, worn, visible, known=known)
    return drawn.person, drawn.parse, drawn.keypoints, pair
