"""The rules on a predicted segmentation (not in the paper; each can be switched off)."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np

from vton import labels
from vton.attributes import certain_groups
from vton.inputs.hem import above_bottom
from vton.inputs.reading import Attribute
from vton.rules.neckline import bare_throat
from vton.rules.sleeves import KINDS, contradicting, set_length

ROUNDS = 10  # of the fit of a hem, after which it does not change any more
LOBE = 0.02  # how far from the parabola a lobe of the hem reaches at most, as a share of the picture's height
FOLLOWING_SHARE = 0.9  # share of a hem's columns that lie no further from it; fewer, and the hem has another shape
MIN_COLUMNS = 0.05  # as a share of the picture's width, of which a hem has to be seen


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
    holes = (around == labels.BOTTOM) & ~np.isin(pieces, open_pieces)
    return np.where(holes[1:-1, 1:-1], np.uint8(labels.UPPER), segmentation)


def straighten_hem(segmentation: np.ndarray) -> np.ndarray:
    """The predicted segmentation with the hem, where it lies over trousers or a skirt, as a parabola: a network that
    chooses pixel by pixel leaves lobes there.

    The parabola is the robust fit to the columns (weights of Cauchy). Columns further from it than LOBE stay as they
    are, since a hand or a bag ends there; so does all of a hem that has another shape, such as the tails of a shirt.
    segmentation: (H, W) 13 classes.
    """
    height, width = segmentation.shape
    meeting = above_bottom(segmentation == labels.UPPER, segmentation)
    columns = np.flatnonzero(meeting.any(0))
    if len(columns) < MIN_COLUMNS * width:
        return segmentation
    ends = len(meeting) - 1 - meeting[::-1, columns].argmax(0)
    across = 2 * (columns - columns.mean()) / width
    weight = np.ones(len(columns))
    for _ in range(ROUNDS):
        apart = ends - np.polyval(np.polyfit(across, ends, 2, w=weight), across)
        weight = 1 / np.sqrt(1 + (apart / (3 * max(0.5, np.median(np.abs(apart))))) ** 2)
    lobe = np.abs(apart) <= LOBE * height
    if lobe.mean() < FOLLOWING_SHARE:
        return segmentation
    columns, ends, hem = columns[lobe], ends[lobe], np.round(ends - apart)[lobe]
    rows = np.arange(height)[:, None]
    out = segmentation.copy()
    part = out[:, columns]
    part[(rows > ends) & (rows <= hem) & (part == labels.BOTTOM)] = labels.UPPER
    part[(rows <= ends) & (rows > hem) & (part == labels.UPPER)] = labels.BOTTOM
    out[:, columns] = part
    return out
