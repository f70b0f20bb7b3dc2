"""What the garment reader says of one picture: looked at whole, at the garment that it found, and at its neck."""

from dataclasses import dataclass
from typing import NamedTuple, cast

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from vton.geometry import affine, prescale, warp_picture
from vton.networks.garment_reader import GROUPS, NECK, VALUES, GarmentReader

LONGEST = 640  # longer side of the picture that is read, in pixels
# Margins and shares were chosen by what was read right of 152 held-out pictures.
MARGINS = (1.04, 1.1, 1.18)  # of the windows through which the found garment is looked at again
NECK_MARGINS = (0.9, 1.1, 1.4, 1.8)  # of the windows around its neck
# Of what is read of the opening in the whole picture, around the garment and around its neck. With these and the wider
# windows the marked openings of 29 held-out garments are overlapped by 0.642, hoods by 0.751; by 0.652 and 0.654 with
# the two narrow windows and without the whole picture. Of all 302 marked garments 4 openings are missed (7), and of 52
# without one 1 is seen (2).
OPENING_SHARES = (0.3, 0.1, 0.6)
# What the looks at the found garment say of each attribute, beside the whole picture.
CLOSER_SHARE = {"sleeves": 0.75, "neckline": 0.75, "front": 0.75, "view": 0.0, "kind": 0.25}
NECK_SHARE = 0.5  # of what these say of the neckline, beside what the whole garment says
MIN_AREA = 0.02  # share of the picture that a garment covers at least


class Attribute(NamedTuple):
    """What was read of one attribute: the group of GROUPS, its probability, and the likeliest of VALUES in it."""

    value: str
    certainty: float
    exact: str


@dataclass(frozen=True)
class Reading:
    """What was read of a picture."""

    mask: np.ndarray  # (H, W) float32 in [0, 1], the garment
    opening: np.ndarray  # (H, W) float32 in [0, 1], the inside of its back above the front neckline, or its hood
    groups: dict[str, dict[str, float]]  # probability of each group by attribute
    values: dict[str, dict[str, float]]  # and of each value

    def best(self, name: str) -> tuple[str, float]:
        """The likeliest group of an attribute ("sleeves", "neckline", "front", "view", "kind") and its probability."""
        shares = self.groups[name]
        value = max(shares, key=shares.get)
        return value, shares[value]

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The likeliest group of every attribute, by its name."""
        answer = {}
        for name in GROUPS:
            value, share = self.best(name)
            exact = max(GROUPS[name][value], key=self.values[name].__getitem__)
            answer[name] = Attribute(value, round(share, 4), exact)
        return answer

    @property
    def upper(self) -> float:
        """Probability that the picture shows an upper garment."""
        return self.groups["kind"]["upper"]


@torch.inference_mode()
def read_garment(
    reader: nn.Module, image: np.ndarray, mask_prior: np.ndarray | None = None, views: int = len(MARGINS)
) -> Reading:
    """Reads a picture (H, W, 3) uint8 RGB.

    mask_prior: (H, W) bool, the garment's mask where it is known; the reading then keeps it.
    views: how many windows around the found garment are averaged; each, and the whole picture, with its mirror image.

    View and most of the kind come from the whole picture, most of sleeves, neckline and front from the garment; the
    mask from both. A reader that has learned it looks at the neck once more, for the neckline and the opening.
    """
    height, width = image.shape[:2]
    size = reader.config.size
    whole = np.array([0, 0, width, height], float)
    mask, first, opening = _look(reader, image, [_window(whole, size, margin) for margin in (1.0, 1.12)], None)
    mask = mask if mask_prior is None else mask_prior.astype(np.float32)
    rows, columns = (np.flatnonzero((mask > 0.5).any(axis)) for axis in (1, 0))
    if (mask > 0.5).mean() < MIN_AREA:
        return _reading(mask, opening, first)
    box = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], float)
    closer, second, around = _look(reader, image, [_window(box, size, margin) for margin in MARGINS[:views]], mask)
    values = {name: (1 - share) * first[name] + share * second[name] for name, share in CLOSER_SHARE.items()}
    mask = 0.4 * mask + 0.6 * closer if mask_prior is None else mask
    first_share, second_share, third_share = OPENING_SHARES
    opening = (first_share * opening + second_share * around) / (first_share + second_share)
    if cast(GarmentReader, reader).config.neck:
        windows = [_window(neck_box(mask > 0.5), size, margin) for margin in NECK_MARGINS[: views + 1]]
        _, third, nearer = _look(reader, image, windows, mask)
        values["neckline"] = (1 - NECK_SHARE) * values["neckline"] + NECK_SHARE * third["neckline"]
        common = _inside_all(windows, image.shape)
        opening = np.where(common, (first_share + second_share) * opening + third_share * nearer, opening)
    return _reading(mask, opening, values)


def neck_box(mask: np.ndarray) -> np.ndarray:
    """(x0, y0, x1, y1) of a square around the neck of a garment, of whose mask (H, W) bool some is set.

    The neck lies in the middle of the mask's width, where its middle third is highest.
    """
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    height, width = rows[-1] + 1 - rows[0], columns[-1] + 1 - columns[0]
    third = mask[:, columns[0] + width // 3 : columns[0] + max(width // 3 + 1, 2 * width // 3)]
    middle = np.flatnonzero(third.any(1))
    top = middle[0] if len(middle) else rows[0]
    side, x = NECK * np.sqrt(height * width), columns[0] + width / 2
    return np.array([x - side / 2, top - 0.2 * side, x + side / 2, top + 0.8 * side], float)


def _inside_all(windows: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """(H, W) bool of a picture of `shape`: what lies inside all windows."""
    inside = np.zeros(shape[:2], bool)
    inner = np.array(windows)
    x0, y0 = np.ceil(inner[:, :2].max(0)).astype(int).clip(0)
    x1, y1 = np.floor(inner[:, 2:].min(0)).astype(int).clip(0)
    inside[y0:y1, x0:x1] = True
    return inside


def _window(box: np.ndarray, size: tuple[int, int], margin: float) -> np.ndarray:
    """A window of the shape of `size` (H, W) around a box, wider by a factor `margin`."""
    scale = max((box[2] - box[0]) / size[1], (box[3] - box[1]) / size[0]) * margin
    centre, half = (box[:2] + box[2:]) / 2, np.array([size[1], size[0]]) * scale / 2
    return np.concatenate([centre - half, centre + half])


def _look(
    reader: GarmentReader, image: np.ndarray, windows: list[np.ndarray], prior: np.ndarray | None
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Mean mask (H, W) at the picture's size, mean probabilities over windows and mirror images, and mean opening."""
    size, device = reader.config.size, next(reader.parameters()).device
    pictures, priors, matrices = [], [], []
    for window in windows:
        matrix = affine(window, size)
        small = cv2.warpAffine(*prescale(image, matrix), size[::-1], borderMode=cv2.BORDER_REPLICATE)
        plane = np.zeros(size, np.float32) if prior is None else warp_picture(prior, matrix, size)
        pictures += [small, small[:, ::-1]]
        priors += [plane, plane[:, ::-1]]
        matrices.append(matrix)
    x = torch.from_numpy(np.stack(pictures).astype(np.float32) / 127.5 - 1).permute(0, 3, 1, 2).to(device)
    mask_logits, logits, opening_logits = reader(x, torch.from_numpy(np.stack(priors))[:, None].to(device))
    mask, opening = (_mean_at_size(area, matrices, image.shape) for area in (mask_logits, opening_logits))
    return mask, {name: values.softmax(1).mean(0).cpu().numpy() for name, values in logits.items()}, opening


def _mean_at_size(logits: Tensor, matrices: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Mean probability (H, W) at the picture's `shape`. logits (2 n, 1, h, w): of each window and its mirror image."""
    shares = logits.sigmoid()[:, 0].cpu().numpy()
    total = np.zeros(shape[:2], np.float32)
    for i, matrix in enumerate(matrices):
        mean = (shares[2 * i] + shares[2 * i + 1][:, ::-1]) / 2
        inverse = cv2.invertAffineTransform(matrix)
        total += cv2.warpAffine(mean, inverse, shape[1::-1], flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return total / len(matrices)


def _reading(mask: np.ndarray, opening: np.ndarray, shares: dict[str, np.ndarray]) -> Reading:
    values = {name: {v: float(p) for v, p in zip(VALUES[name], shares[name])} for name in VALUES}
    groups = {
        name: {group: sum(values[name][v] for v in members) for group, members in GROUPS[name].items()}
        for name in GROUPS
    }
    return Reading(mask, opening, groups, values)
