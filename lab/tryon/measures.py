"""LPIPS, FID, the kernel distance and bootstrap intervals: what Table 1 of VITON-HD measures of many pictures.

LPIPS and FID come from torchmetrics and need networks that were trained on ImageNet. Where these cannot be had, the
same computation on the encoder of the project's human parser takes their place, under names of its own: the figures of
the two are not comparable.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout

import cv2
import numpy as np
import torch

from vton.metrics import parser_distance, parser_features, unit_tensor

DOWNLOAD_SECONDS = 10  # a connection that is slower to answer counts as none


def bootstrap(
    values: list[float], resamples: int = 200, level: float = 0.95, seed: int = 0
) -> tuple[float, float, float]:
    """Mean and percentile interval of the mean (Efron 1979): (mean, low, high). NaN is left out; NaN where nothing is
    left.
    """
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return (float("nan"),) * 3
    means = known[np.random.default_rng(seed).integers(0, len(known), (resamples, len(known)))].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(known.mean()), float(low), float(high)


def kernel_distance(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Kernel inception distance (Binkowski et al. 2018) of two sets of features, and its standard error.

    The unbiased estimate of the squared maximum mean discrepancy under the kernel (x.y / d + 1)^3; unlike the Frechet
    distance its expectation does not depend on the number of pictures. The standard error is the jackknife's: the sets
    are divided into as many groups as the smaller one has pictures, and one group at a time is left out of both.

    one (n, d), other (m, d); n, m > 2. Raises ValueError for fewer.
    """
    if min(len(one), len(other)) < 3:
        raise ValueError(
            f"A kernel distance needs three pictures of each kind at least, there are {len(one)} and {len(other)}."
        )
    x, y = (np.asarray(a, np.float64) for a in (one, other))
    kxx, kyy, kxy = ((a @ b.T / x.shape[1] + 1) ** 3 for a, b in ((x, x), (y, y), (x, y)))

    def estimate(i, j):
        xx, yy = kxx[np.ix_(i, i)], kyy[np.ix_(j, j)]
        n, m = len(i), len(j)
        within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
        return within - 2 * kxy[np.ix_(i, j)].mean()

    i, j, groups = np.arange(len(x)), np.arange(len(y)), min(len(x), len(y))
    estimates = np.array([estimate(i[i % groups != g], j[j % groups != g]) for g in range(groups)])
    error = np.sqrt((groups - 1) / groups * np.square(estimates - estimates.mean()).sum())
    return float(estimate(i, j)), float(error)


def perceptual_distance(parser) -> tuple[str, Callable[[np.ndarray, np.ndarray], float]]:
    """("LPIPS", function) or ("parser distance", function); the function takes two (H, W, 3) uint8 pictures, 0 = equal.

    Zhang et al. 2018: squared difference of unit-length features, mean over the places, sum over the layers. LPIPS
    weighs the channels of AlexNet as people judged them; the parser's channels all count alike, and it looks at 512x384
    at most.
    """
    try:
        with _impatient():
            from torchmetrics.image.lpip import LearnedPerceptualImagePatchSimilarity

            lpips = LearnedPerceptualImagePatchSimilarity("alex", normalize=True)
        return "LPIPS", lambda a, b: float(lpips(unit_tensor(a), unit_tensor(b)).detach())
    except (OSError, ImportError, RuntimeError, ValueError):
        pass
    return "parser distance", parser_distance(parser)


def frechet_distance(parser) -> tuple[str, Callable[[list[np.ndarray], list[np.ndarray]], float]]:
    """("FID", function) or ("parser Frechet distance", function) of two lists of (H, W, 3) uint8 pictures.

    Heusel et al. 2017: the distance of two Gaussians fitted to features; of Inception, or the mean over the places of
    the parser's deepest features at 256x192. Few pictures give too large a value: only lists of one length can be
    compared.
    """
    from torchmetrics.image.fid import FrechetInceptionDistance

    try:
        with _impatient():
            metric = FrechetInceptionDistance(2048)
        name, shape = "FID", None
    except (OSError, ImportError, RuntimeError, ValueError):

        class Deepest(torch.nn.Module):
            num_features = parser.config.widths[-1]

            @torch.inference_mode()
            def forward(self, pictures):
                return torch.cat(
                    [parser_features(parser, p.permute(1, 2, 0).numpy())[-1].mean((2, 3)) for p in pictures]
                )

        metric, name, shape = FrechetInceptionDistance(Deepest()), "parser Frechet distance", (192, 256)

    def distance(real, fake):
        metric.reset()
        for pictures, is_real in ((real, True), (fake, False)):
            for picture in pictures:
                small = picture if shape is None else cv2.resize(picture, shape, interpolation=cv2.INTER_AREA)
                metric.update(torch.from_numpy(np.ascontiguousarray(small)).permute(2, 0, 1)[None], real=is_real)
        return max(0.0, float(metric.compute()))

    return name, distance


def deepest_features(parser, pictures: list[np.ndarray]) -> np.ndarray:
    """(n, d) float64 of (H, W, 3) uint8 pictures:
    the mean over the places of the parser's deepest features at 256x192.
    """
    with torch.inference_mode():
        small = [cv2.resize(p, (192, 256), interpolation=cv2.INTER_AREA) for p in pictures]
        return torch.cat([parser_features(parser, p)[-1].mean((2, 3)) for p in small]).double().numpy()


@contextmanager
def _impatient():
    """No download waits longer than DOWNLOAD_SECONDS for an answer, or talks between the figures."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_SECONDS)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        socket.setdefaulttimeout(before)
