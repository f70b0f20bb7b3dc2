"""What the garment reader says of one picture: looked at whole, then once more at the garment that it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import nn

from vton.data.pack import affine, warp_picture
from vton.networks.garment_reader import GROUPS, VALUES, GarmentReader

LONGEST = 640  # longer side of the picture that is read, in pixels
MARGINS = (1.04, 1.1, 1.18)  # of the windows through which the found garment is looked at again
LEAST = 0.02  # share of the picture that a garment covers at least


class Attribute(NamedTuple):
    """What was read of one attribute: the group of GROUPS, its probability, and the likeliest of VALUES in it."""

    value: str
    certainty: float
    exact: str


@dataclass(frozen=True)
class Reading:
    """mask: (H, W) float32 in [0, 1], the garment; groups and values:
    probability of each group and value by attribute.
    """

    mask: np.ndarray
    groups: dict[str, dict[str, float]]
    values: dict[str, dict[str, float]]

    def best(self, name: str) -> tuple[str, float]:
        """The likeliest group of an attribute ("sleeves", "neckline", "front", "view", "kind") and its probability."""
        found = self.groups[name]
        value = max(found, key=found.get)
        return value, found[value]

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The likeliest group of every attribute, by its name."""
        found = {}
        for name in GROUPS:
            value, share = self.best(name)
            exact = max(GROUPS[name][value], key=self.values[name].__getitem__)
            found[name] = Attribute(value, round(share, 4), exact)
        return found

    @property
    def upper(self) -> float:
        """Probability that the picture shows an upper garment."""
        return self.groups["kind"]["upper"]


@torch.inference_mode()
def read(reader: nn.Module, image: np.ndarray, known: np.ndarray | None = None, views: int = len(MARGINS)) -> Reading:
    """Reads a picture (H, W, 3) uint8 RGB.

    known: (H, W) bool, the garment's mask where it is known; the reading then keeps it.
    views: how many windows around the found garment are averaged; each, and the whole picture, with its mirror image.

    Kind and view come from the whole picture, sleeves, neckline and front from the garment; the mask from both.
    """
    height, width = image.shape[:2]
    size = reader.config.size
    whole = _window(np.array([0, 0, width, height], float), size, 1.0)
    mask, first = _look(reader, image, [whole, _window(np.array([0, 0, width, height], float), size, 1.12)], None)
    mask = mask if known is None else known.astype(np.float32)
    rows, columns = (np.flatnonzero((mask > 0.5).any(axis)) for axis in (1, 0))
    if (mask > 0.5).mean() < LEAST:
        return _reading(mask, first)
    box = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], float)
    closer, second = _look(reader, image, [_window(box, size, margin) for margin in MARGINS[:views]], mask)
    found = {
        name: first[name] if name in ("kind", "view") else 0.75 * second[name] + 0.25 * first[name] for name in VALUES
    }
    return _reading(0.4 * mask + 0.6 * closer if known is None else mask, found)


def _window(box: np.ndarray, size: tuple[int, int], margin: float) -> np.ndarray:
    """A window of the shape of `size` (H, W) around a box, wider by a factor `margin`."""
    scale = max((box[2] - box[0]) / size[1], (box[3] - box[1]) / size[0]) * margin
    centre, half = (box[:2] + box[2:]) / 2, np.array([size[1], size[0]]) * scale / 2
    return np.concatenate([centre - half, centre + half])


def _look(
    reader: GarmentReader, image: np.ndarray, windows: list[np.ndarray], prior: np.ndarray | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Mean mask (H, W) at the picture's size and mean probabilities over windows and mirror images."""
    size, device = reader.config.size, next(reader.parameters()).device
    pictures, priors, matrices = [], [], []
    for window in windows:
        matrix = affine(window, size)
        small = cv2.warpAffine(
            _smaller(image, matrix), _of_smaller(image, matrix), size[::-1], borderMode=cv2.BORDER_REPLICATE
        )
        known = np.zeros(size, np.float32) if prior is None else warp_picture(prior, matrix, size)
        pictures += [small, small[:, ::-1]]
        priors += [known, known[:, ::-1]]
        matrices.append(matrix)
    x = torch.from_numpy(np.stack(pictures).astype(np.float32) / 127.5 - 1).permute(0, 3, 1, 2).to(device)
    masks, logits = reader(x, torch.from_numpy(np.stack(priors))[:, None].to(device))
    masks = masks.sigmoid()[:, 0].cpu().numpy()
    total = np.zeros(image.shape[:2], np.float32)
    for i, matrix in enumerate(matrices):
        mean = (masks[2 * i] + masks[2 * i + 1][:, ::-1]) / 2
        inverse = cv2.invertAffineTransform(matrix)
        total += cv2.warpAffine(
            mean, inverse, image.shape[1::-1], flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        )
    return total / len(matrices), {name: values.softmax(1).mean(0).cpu().numpy() for name, values in logits.items()}


def _reduction(image: np.ndarray, matrix: np.ndarray) -> float:
    return min(1.0, float(np.hypot(*matrix[0, :2])))


def _smaller(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The picture at the scale of the window: an affine map alone would skip pixels."""
    scale = _reduction(image, matrix)
    return cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else image


def _of_smaller(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    scale = _reduction(image, matrix)
    return np.concatenate([matrix[:, :2] / scale, matrix[:, 2:]], 1)


def _reading(mask: np.ndarray, found: dict[str, np.ndarray]) -> Reading:
    values = {name: {v: float(p) for v, p in zip(VALUES[name], found[name])} for name in VALUES}
    groups = {
        name: {group: sum(values[name][v] for v in members) for group, members in GROUPS[name].items()}
        for name in GROUPS
    }
    return Reading(mask, groups, values)
