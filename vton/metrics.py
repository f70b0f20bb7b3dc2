"""Figures of merit: overlap of label maps, picture similarity, colour difference."""

from collections.abc import Callable
from functools import lru_cache

import cv2
import numpy as np
import torch

from vton import labels
from vton.inputs.pose import along_arm
from vton.inputs.reading import Reading
from vton.joints import LEFT_ARM, RIGHT_ARM, SHOULDERS, present
from vton.networks.garment_reader import GROUPS, UPPER_KINDS

ON_ARM = 0.1  # how far from an arm's bones its sleeve is looked for, in upper arms
# Groups over which the parser's mean intersection over union is taken; labels outside them are ignored in the truth.
PARSER_GROUPS = {
    "background": (labels.BACKGROUND,),
    "hair": (labels.HAT_LIP, labels.HAIR_LIP),
    "face": labels.HEAD_LIP,
    "upper": labels.UPPER_LIP,
    "lower": labels.TROUSERS_LIP,
    "arms": labels.ARMS_LIP,
    "legs": labels.LEGS_LIP,
    "shoes": labels.SHOES_LIP,
}


def confusion(truth: np.ndarray, answer: np.ndarray, valid: np.ndarray | None, n: int) -> np.ndarray:
    """(n, n) counts; rows are the true labels, columns the answers.

    truth, answer: integer label maps of one shape. valid: bool map, True = counted; None = all.
    """
    truth, answer = np.asarray(truth).astype(np.int64), np.asarray(answer).astype(np.int64)
    keep = np.ones(truth.shape, bool) if valid is None else valid
    return np.bincount(truth[keep] * n + answer[keep], minlength=n * n).reshape(n, n)


def iou(matrix: np.ndarray) -> np.ndarray:
    """Intersection over union of each label from a confusion matrix; NaN where a label occurs nowhere."""
    overlap = np.diag(matrix).astype(np.float64)
    union = matrix.sum(0) + matrix.sum(1) - overlap
    return np.divide(overlap, union, out=np.full(len(overlap), np.nan), where=union > 0)


def group_iou(matrix: np.ndarray, groups: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """IoU of groups of labels. Pixels whose true label is in no group are ignored; an answer in no group is wrong."""
    n = len(groups)
    sums = np.zeros((n + 1, n + 1), np.int64)
    of = np.full(len(matrix), n)
    for index, members in enumerate(groups.values()):
        of[list(members)] = index
    np.add.at(sums, (of[:, None], of), matrix)
    sums[n] = 0  # truth outside the groups
    return dict(zip(groups, iou(sums)[:n]))


def edge_distances(truth: np.ndarray, answer: np.ndarray, keypoints: np.ndarray) -> dict[str, float]:
    """How far a predicted garment's hem, neckline and sleeve ends are from the true ones, each in pixels; one that is
    not seen in both is left out.

    truth, answer: (H, W) bool, the garment; keypoints: (25, 3) in their pixels. Hem and neckline: mean over columns of
    the distance between the lowest, the highest pixels: between the shoulders, and in the middle half there. Sleeves:
    along the bones of the arms.
    """
    distances: dict[str, list[float]] = {"hem": [], "neckline": [], "sleeve_ends": []}
    there, points = present(keypoints), np.asarray(keypoints, np.float64)[:, :2]
    if there[list(SHOULDERS)].all():
        first, last = np.clip(np.sort(points[list(SHOULDERS), 0]).round().astype(int), 0, truth.shape[1] - 1)
        quarter = (last - first) // 4
        for name, rows, columns in (
            ("hem", slice(None, None, -1), slice(first, last + 1)),
            ("neckline", slice(None), slice(first + quarter, last - quarter + 1)),
        ):
            a, b = truth[rows, columns], answer[rows, columns]
            both = a.any(0) & b.any(0)
            distances[name] += list(abs(a.argmax(0) - b.argmax(0))[both].astype(float))
    for joints in (RIGHT_ARM, LEFT_ARM):
        if there[list(joints)].all():
            place, distance = along_arm(keypoints, joints, truth.shape)
            lengths = np.linalg.norm(np.diff(points[list(joints)], axis=0), axis=1)
            along = np.where(place < 1, place * lengths[0], lengths[0] + (place - 1) * lengths[1])
            ends = [along[mask & (distance < ON_ARM) & (place <= 2)] for mask in (truth, answer)]
            if all(map(len, ends)):
                distances["sleeve_ends"].append(abs(ends[0].max() - ends[1].max()))
    return {name: float(np.mean(values)) for name, values in distances.items() if values}


def mask_iou(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two boolean masks; 1 when both are empty."""
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    union = np.logical_or(a, b).sum()
    return float(np.logical_and(a, b).sum() / union) if union else 1.0


def coverage(mask: np.ndarray, region: np.ndarray) -> float:
    """Share of `region` that `mask` covers; 1 for an empty region."""
    region = np.asarray(region, bool)
    return float(np.asarray(mask, bool)[region].mean()) if region.any() else 1.0


def ssim_map(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Structural similarity (Wang et al. 2004) of two (H, W, 3) uint8 pictures, per pixel, mean over the channels.

    Gaussian window with sigma 1.5 over 11 pixels, K1 = 0.01, K2 = 0.03, population statistics. Returns (H, W) float64.
    """
    if a.shape != b.shape:
        raise ValueError(f"Two pictures of one size are needed, but they are {a.shape} and {b.shape}.")
    x, y = a.astype(np.float64), b.astype(np.float64)

    def mean(z):
        return cv2.GaussianBlur(z, (11, 11), 1.5, borderType=cv2.BORDER_REFLECT_101)

    mx, my = mean(x), mean(y)
    vx, vy, cov = mean(x * x) - mx * mx, mean(y * y) - my * my, mean(x * y) - mx * my
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return (((2 * mx * my + c1) * (2 * cov + c2)) / ((mx * mx + my * my + c1) * (vx + vy + c2))).mean(2)


def structural_similarity(a: np.ndarray, b: np.ndarray, border: bool = True) -> float:
    """Mean of `ssim_map`, 1 = equal.

    border: count the five pixels at each edge, where the window sticks out, as torchmetrics does (and Table 1 here);
    False leaves them out, as scikit-image does.
    """
    similarity = ssim_map(a, b)
    return float((similarity if border else similarity[5:-5, 5:-5]).mean())


def colour_difference(a: np.ndarray, b: np.ndarray, mask: np.ndarray | None = None) -> float:
    """Mean CIEDE2000 (Sharma et al. 2005) of two (H, W, 3) uint8 sRGB pictures over the mask's True pixels."""
    lab = [cv2.cvtColor(p.astype(np.float32) / 255, cv2.COLOR_RGB2LAB).astype(np.float64) for p in (a, b)]
    if mask is not None:
        lab = [p[np.asarray(mask, bool)] for p in lab]
    if lab[0].size == 0:
        return float("nan")
    return float(ciede2000(lab[0], lab[1]).mean())


def sharpness(picture: np.ndarray, photograph: np.ndarray, mask: np.ndarray) -> float:
    """Mean gradient magnitude of the picture over that of the photograph inside the mask: 1 = equally sharp, 0 = flat.

    picture, photograph (H, W, 3) uint8; mask (H, W) bool. The gradient is that of the mean of the three channels, by
    central differences; pixels whose neighbours lie outside the mask do not count. NaN where nothing is left or varies.
    """
    inside = cv2.erode(np.asarray(mask, np.uint8), np.ones((3, 3), np.uint8), borderValue=0) > 0
    if not inside.any():
        return float("nan")
    own, true = (np.hypot(*np.gradient(p.astype(np.float64).mean(2)))[inside].mean() for p in (picture, photograph))
    return float(own / true) if true > 0 else float("nan")


def ciede2000(lab1: np.ndarray, lab2: np.ndarray) -> np.ndarray:
    """CIEDE2000 of Lab colours (..., 3); formulas and symbols of Sharma, Wu and Dalal 2005, equations 2 to 22."""
    l1, a1, b1 = np.moveaxis(lab1, -1, 0)
    l2, a2, b2 = np.moveaxis(lab2, -1, 0)
    mean_c7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    g = 0.5 * (1 - np.sqrt(mean_c7 / (mean_c7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    grey = c1 * c2 == 0
    turn = h2 - h1
    turn = np.where(turn > 180, turn - 360, np.where(turn < -180, turn + 360, turn))
    turn = np.where(grey, 0, turn)
    dl, dc, dh = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    lightness, c = (l1 + l2) / 2, (c1 + c2) / 2
    total = h1 + h2
    h = np.where(np.abs(h1 - h2) <= 180, total / 2, np.where(total < 360, (total + 360) / 2, (total - 360) / 2))
    h = np.where(grey, total, h)
    t = (
        1
        - 0.17 * np.cos(np.radians(h - 30))
        + 0.24 * np.cos(np.radians(2 * h))
        + 0.32 * np.cos(np.radians(3 * h + 6))
        - 0.20 * np.cos(np.radians(4 * h - 63))
    )
    sl = 1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)
    sc, sh = 1 + 0.045 * c, 1 + 0.015 * c * t
    rotation = -2 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dl, dc, dh = dl / sl, dc / sc, dh / sh
    return np.sqrt(np.maximum(dl**2 + dc**2 + dh**2 + rotation * dc * dh, 0))


def parser_distance(parser) -> Callable[[np.ndarray, np.ndarray], float]:
    """The perceptual distance of two (H, W, 3) uint8 pictures: of unit features of the parser's encoder; 0 = equal."""

    @torch.inference_mode()
    def units(picture):
        small = cv2.resize(picture, (384, 512), interpolation=cv2.INTER_AREA) if picture.shape[0] > 512 else picture
        return [torch.nn.functional.normalize(f, dim=1) for f in parser_features(parser, small)]

    @lru_cache(maxsize=1)
    def units_of_bytes(data, shape):  # several pictures in turn are compared with one truth
        return units(np.frombuffer(data, np.uint8).reshape(shape).copy())

    def distance(a, b):
        pairs = zip(units(a), units_of_bytes(b.tobytes(), b.shape))
        return sum(float((one - other).square().sum(1).mean()) for one, other in pairs)

    return distance


def unit_tensor(picture: np.ndarray):
    """(H, W, 3) uint8 -> (1, 3, H, W) float32 in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None].float() / 255


def parser_features(parser, picture: np.ndarray):
    """The parser's encoder on a picture alone, without joints and person mask; sides are multiples of 32."""
    x = (unit_tensor(picture) * 2 - 1).to(next(parser.parameters()).device)
    joints, person = x.new_zeros(1, parser.config.joints, *x.shape[2:]), x.new_ones(1, 1, *x.shape[2:])
    return [f.float().cpu() for f in parser.features(x, joints, person)]


def garment_figures(
    readings: list[Reading],
    attributes: list[dict[str, str]],
    masks: list[np.ndarray | None],
    openings: list[np.ndarray | None] | None = None,
) -> dict[str, float]:
    """How well garments were read: accuracy of sleeves, neckline and "upper garment or not" by GROUPS, and the masks'
    mean IoU; that of the neck openings, where some are given.

    attributes: the true values, what is not known left out (kind may be "upper"); masks, openings: (H, W) uint8 of the
        pictures' size. Openings of which nothing is seen do not count.
    Each figure comes with the number of pictures that it was taken on; one without a picture is left out.
    """
    rows: dict[str, list[float]] = {"sleeves": [], "neckline": [], "upper": [], "mask_iou": [], "opening_iou": []}
    for reading, true, mask, opening in zip(readings, attributes, masks, openings or [None] * len(masks), strict=True):
        for name in ("sleeves", "neckline"):
            group = [g for g, values in GROUPS[name].items() if true.get(name) in values]
            if group:
                rows[name].append(reading.best(name)[0] == group[0])
        is_upper = true.get("kind") in (*UPPER_KINDS, "upper")
        if "kind" in true:
            rows["upper"].append((reading.upper > 0.5) == is_upper)
        if is_upper and mask is not None:
            rows["mask_iou"].append(mask_iou(reading.mask > 0.5, mask > 127))
        if opening is not None and (opening > 127).any():
            rows["opening_iou"].append(mask_iou(reading.opening > 0.5, opening > 127))
    figures = {name: float(np.mean(values)) for name, values in rows.items() if values}
    return figures | {f"{name}_pictures": len(values) for name, values in rows.items() if values}
