"""Regions of the garment as predicted ones are: networks that warp would learn from true ones alone."""

from collections.abc import Sequence

import cv2
import numpy as np
import torch

BLUR = 1 / 40  # standard deviation of the blur under a ragged outline, as a share of the picture's height
NOISE = (0.05, 0.3)  # standard deviation of the smooth noise that moves the outline; 0.34 is one of the blur
MAX_NOISE = 0.45  # below one half, so that nothing far from the outline changes


def cut_locks(region: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """A region (1, H, W) with one or two gaps from its upper edge downwards, where long hair would lie."""
    rows, columns = (torch.nonzero(region[0].amax(axis))[:, 0] for axis in (1, 0))
    if not len(rows):
        return region
    hidden, (top, height), width = region.clone(), (int(rows[0]), len(rows)), len(columns)
    for _ in range(rng.integers(1, 3)):
        middle = int(columns[0]) + rng.uniform(0.15, 0.85) * width
        half, end = rng.uniform(0.03, 0.14) * width, top + round(rng.uniform(0.15, 0.6) * height)
        hidden[:, :end, max(0, round(middle - half)) : round(middle + half)] = 0
    return hidden


def roughen_outline(region: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """A region (1, H, W) whose outline is wrong by some hundredths of the height, as one that was predicted."""
    sigma = BLUR * region.shape[1]
    noise = cv2.GaussianBlur(rng.normal(0, 1, region.shape[1:]).astype(np.float32), (0, 0), sigma)
    noise = noise * (rng.uniform(*NOISE) / max(float(noise.std()), 1e-6))
    soft = cv2.GaussianBlur(region[0].float().numpy(), (0, 0), sigma)
    return torch.from_numpy(soft + noise.clip(-MAX_NOISE, MAX_NOISE) > 0.5)[None].to(region.dtype)


def imitate_prediction(
    regions: torch.Tensor, locks: float, outlines: float, rngs: Sequence[np.random.Generator]
) -> torch.Tensor:
    """Regions (B, 1, H, W): a share `locks` with gaps, a share `outlines` with a wrong outline; one generator each."""
    imitations = []
    for region, rng in zip(regions, rngs):
        region = cut_locks(region, rng) if rng.random() < locks else region
        imitations.append(roughen_outline(region, rng) if rng.random() < outlines else region)
    return torch.stack(imitations)
