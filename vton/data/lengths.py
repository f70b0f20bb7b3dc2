"""Draped garments made longer or shorter below the hips, flat and worn alike: crop tops and tunics are rare among those
that were simulated, and how far down a hem hangs can be told from the flat garment's proportions alone.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from vton.attributes import LOOSE, decode, with_group
from vton.data.hems import bottom_below_hem, hem_of
from vton.data.pairs import WHITE, centre_on_canvas, largest
from vton.data.sleeve_cuts import flat_places, flat_sleeves
from vton.inputs.hem import above_bottom, hem_row, hips_and_trunk
from vton.labels import ARMS, BACKGROUND, BOTTOM, UPPER

# Where the new hem may lie, in lengths of the trunk below the joints of the hips, and from where on cloth is stretched.
HEM_RANGE, STRETCH_FROM = (-0.2, 0.6), -0.35
FACTORS = 0.5, 2.2  # by how much at the least and at the most
MIN_ROWS = 6  # of cloth that is stretched, worn and flat


def with_length(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A sample of a draped person (`vton.data.samples.Sampler`) whose garment hangs lower or less low; as it is where
    the hem, a sleeve's beginning or a joint of the trunk is not seen, or the garment is tucked in.

    Changes cloth, cloth_mask, segmentation and attributes; photograph and true warp stay those of the old garment.
    """
    segmentation, mask = sample["segmentation"], sample["cloth_mask"][0]
    place, sleeves = hips_and_trunk(sample["keypoints"]), flat_sleeves(mask)
    if decode(sample["attributes"], "sleeves") == "none" and sleeves is None:
        sleeves = np.zeros_like(mask), np.zeros_like(mask)
    if place is None or sleeves is None or decode(sample["attributes"], "hem") != LOOSE:
        return sample
    (hips, length), sleeve = place, largest(sleeves[0]) | largest(sleeves[1])  # smaller pieces are a hem's corners
    rows, columns = flat_places(sample["grid"])
    worn = (segmentation == UPPER) & ~(sample["placed"][0] & sleeve[rows, columns])
    hem, first = hem_row(worn, segmentation), round(hips + STRETCH_FROM * length)
    at_first = (worn & sample["placed"][0])[first] if 0 <= first < len(worn) else np.zeros(0, bool)
    if hem is None or hem - first < MIN_ROWS or not at_first.any():
        return sample
    flat_first = int(np.median(rows[first][at_first]))
    factor = float(np.clip((hips + rng.uniform(*HEM_RANGE) * length - first) / (hem - first), *FACTORS))
    trunk = mask & ~sleeve
    if trunk[flat_first:].any(1).sum() < MIN_ROWS:
        return sample
    cloth, mask = centre_on_canvas(*lengthen_flat(sample["cloth"], mask, trunk, flat_first, factor), mask.shape)
    segmentation = move_hem(segmentation, worn, first, round((factor - 1) * (hem - first)), length)
    attributes = with_group(sample["attributes"], "hem", hem_of(segmentation, sample["keypoints"]))
    return sample | {"cloth": cloth, "cloth_mask": mask[None], "segmentation": segmentation, "attributes": attributes}


def with_slim_cloth(sample: dict[str, Any], factor: float) -> dict[str, Any]:
    """A sample whose flat garment is narrower by `factor` in (0, 1]: of one that is photographed on a form the half is
    seen that faces the camera, of one that lies flat the half of its girth. Changes cloth and cloth_mask.
    """
    cloth, mask = sample["cloth"], sample["cloth_mask"][0]
    size = max(1, round(factor * mask.shape[1])), mask.shape[0]
    cloth = cv2.resize(cloth, size, interpolation=cv2.INTER_AREA)
    mask = cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    cloth, mask = centre_on_canvas(cloth, mask, sample["segmentation"].shape)
    return sample | {"cloth": cloth, "cloth_mask": mask[None]}


def stretch_rows(picture: np.ndarray, first: int, factor: float, height: int) -> np.ndarray:
    """A picture (H, W) or (H, W, C) uint8 in `height` rows, stretched downwards by `factor` below row `first`;
    what lies outside it is 0.
    """
    out = np.arange(height, dtype=np.float32)
    source = np.where(out > first, first + (out - first) / factor, out)
    across, down = np.meshgrid(np.arange(picture.shape[1], dtype=np.float32), source.astype(np.float32))
    return cv2.remap(picture, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=0)


def lengthen_flat(
    cloth: np.ndarray, mask: np.ndarray, trunk: np.ndarray, first: int, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """A flat garment (H, W, 3) uint8, its mask and that of its trunk (H, W) bool, with the trunk stretched below row
    `first`, in a picture that is as tall as it needs.
    """
    height, width = mask.shape
    tall = int(np.ceil(first + (height - first) * max(1.0, factor)))
    pad = ((0, tall - height), (0, 0))
    longer = stretch_rows(trunk.astype(np.uint8) * 255, first, factor, tall) > 127
    sleeve = np.pad(mask & ~trunk, pad) & ~longer
    picture = np.where(
        longer[..., None],
        stretch_rows(np.where(trunk[..., None], cloth, WHITE).astype(np.uint8), first, factor, tall),
        np.pad(cloth, (*pad, (0, 0))),
    )
    return picture, largest(longer | sleeve)


def move_hem(segmentation: np.ndarray, worn: np.ndarray, first: int, shift: int, length: float) -> np.ndarray:
    """A segmentation (H, W) 13 classes whose cloth over the trunk, worn (H, W) bool, ends `shift` rows lower, or higher
    where that is negative: over whatever is there, but behind arms; what is left bare belongs to trousers or skirt.

    first: row below which the cloth changes; length: of the trunk in pixels.
    """
    numbers = np.arange(len(worn))[:, None]
    arms = np.isin(segmentation, ARMS)
    hidden_by_arms = arms & (np.cumsum(worn, 1) > 0) & (np.cumsum(worn[:, ::-1], 1)[:, ::-1] > 0)
    silhouette = ((worn | hidden_by_arms) & (numbers > first)).astype(np.uint8)
    if shift >= 0:
        new = cv2.dilate(silhouette, np.ones((shift + 1, 1), np.uint8), anchor=(0, shift)) > 0
    else:
        lower = np.maximum.accumulate(silhouette[::-1])[::-1]  # 1 = here or further down in the column is cloth
        new = worn & (np.pad(lower[-shift:], ((0, -shift), (0, 0))) > 0)
    out, below = segmentation.copy(), worn & (numbers > first)
    columns, hem = above_bottom(worn, segmentation).any(0), np.flatnonzero(below.any(1))[-1]
    out[below] = np.where(bottom_below_hem(worn.shape, columns, hem, length), BOTTOM, BACKGROUND)[below]
    out[new & ~arms] = UPPER
    return out
