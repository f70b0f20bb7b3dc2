"""The rules on a predicted segmentation (not in the paper; each can be switched off)."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np

from vton import labels
from vton.attributes import certain_groups
from vton.inputs.reading import Attribute
from vton.rules.neckline import bare_throat
from vton.rules.sleeves import KINDS, contradicting, set_length


def apply_rules(
    segmentation: np.ndarray,
    keypoints: np.ndarray,
    attributes: Mapping[str, Attribute],
    sleeves: str = "auto",
    neckline: str = "auto",
) -> tuple[np.ndarray, str]:
    """The predicted segmentation after the rules, and the sleeves that it was given instead of its own ("" = none).

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; attributes: what was read of the garment, see
    `Garment.attributes`; what is not known or not certain leaves its part to the network; sleeves: "auto", "predicted"
    (no rule), "none", "short" or "long"; neckline: "bare" bares the throat, any other value leaves it to the network.
    """
    new_sleeves, read = "", certain_groups(attributes)
    kind = read.get("sleeves", "") if sleeves == "auto" else sleeves
    if sleeves in KINDS:
        segmentation = set_length(segmentation, keypoints, sleeves)
    elif kind in KINDS:
        arms = contradicting(segmentation, keypoints, kind)
        if arms:
            segmentation, new_sleeves = set_length(segmentation, keypoints, kind, arms), kind
    if neckline == "bare":
        segmentation = bare_throat(segmentation, keypoints)
    return segmentation, new_sleeves


def restore_bottom(segmentation: np.ndarray, agnostic: np.ndarray, view: np.ndarray) -> np.ndarray:
    """The predicted segmentation with trousers and skirt as the photograph shows them, wherever a network that was not
    shown them puts neither cloth nor an arm.

    All (H, W) 13 classes. agnostic: S_a; view: what of it the network was shown.
    """
    out = segmentation.copy()
    out[(view != agnostic) & (segmentation == labels.BACKGROUND)] = labels.BOTTOM
    return out


def close_cloth(segmentation: np.ndarray) -> np.ndarray:
    """The predicted segmentation without holes in the cloth: what shows trousers or skirt and is surrounded by cloth
    alone is cloth. Wall may be seen there, between an arm and the trunk.

    segmentation: (H, W) 13 classes. A piece that reaches the picture's border is no hole.
    """
    around = np.pad(segmentation, 1)
    _, pieces = cv2.connectedComponents((around != labels.UPPER).astype(np.uint8), connectivity=4)
    open_pieces = np.unique(pieces[(around != labels.UPPER) & (around != labels.BOTTOM)])
    closed = (around == labels.BOTTOM) & ~np.isin(pieces, open_pieces)
    return np.where(closed[1:-1, 1:-1], np.uint8(labels.UPPER), segmentation)
