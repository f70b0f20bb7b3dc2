"""Figures of merit: overlap of label maps, picture similarity, colour difference."""
from __future__ import annotations

import numpy as np

# Groups over which the parser's mean intersection over union is taken; labels outside them are ignored in the truth.
PARSER_GROUPS = {"background": (0,), "hair": (1, 2), "face": (4, 13), "upper": (5, 6, 7), "lower": (9, 12),
                 "arms": (14, 15), "legs": (16, 17), "shoes": (18, 19)}


def confusion(truth: np.ndarray, answer: np.ndarray, valid: np.ndarray | None, n: int) -> np.ndarray:
    """(n, n) counts; rows are the true labels, columns the answers.

    Args:
        truth, answer: integer label maps of one shape. valid: bool map, True = counted; None = all.
    """
    truth, answer = np.asarray(truth).astype(np.int64), np.asarray(answer).astype(np.int64)
    keep = np.ones(truth.shape, bool) if valid is None else valid
    return np.bincount(truth[keep] * n + answer[keep], minlength=n * n).reshape(n, n)


def iou(matrix: np.ndarray) -> np.ndarray:
    """Intersection over union of each label out of a confusion matrix; NaN where a label occurs nowhere."""
    overlap = np.diag(matrix).astype(np.float64)
    union = matrix.sum(0) + matrix.sum(1) - overlap
    return np.divide(overlap, union, out=np.full(len(overlap), np.nan), where=union > 0)


def grouped_iou(matrix: np.ndarray, groups: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """IoU of groups of labels. Pixels whose true label is in no group are ignored; an answer in no group is wrong."""
    n = len(groups)
    merged = np.zeros((n + 1, n + 1), np.int64)
    of = np.full(len(matrix), n)
    for index, members in enumerate(groups.values()):
        of[list(members)] = index
    for i, row in enumerate(matrix):
        np.add.at(merged[of[i]], of, row)
    merged[n] = 0  # truth outside the groups
    return dict(zip(groups, iou(merged)[:n]))


def mask_iou(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two boolean masks; 1 when both are empty."""
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    union = np.logical_or(a, b).sum()
    return float(np.logical_and(a, b).sum() / union) if union else 1.0


def coverage(mask: np.ndarray, region: np.ndarray) -> float:
    """Share of `region` that `mask` covers; 1 for an empty region."""
    region = np.asarray(region, bool)
    return float(np.asarray(mask, bool)[region].mean()) if region.any() else 1.0
