"""Data whose density is known: mixtures of Gaussians in one and two dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

LIMIT = 4.0  # every named distribution lies in [-LIMIT, LIMIT] in each dimension
MAX_POINTS = 400  # that a visitor may draw
MAX_MODES = 25  # a mixture of more components is a curve, not a set of modes


@dataclass(frozen=True)
class Mixture:
    """An isotropic mixture of Gaussians, equal in spread: p(x) = sum_i w_i N(x; c_i, std^2 I)."""

    centres: Tensor  # (K, d)
    std: float  # spread of every component
    weights: Tensor  # (K,), they sum to 1
    name: str = ""  # what it is called

    @property
    def dimensions(self) -> int:
        """d, the size of one x."""
        return self.centres.shape[1]

    @property
    def has_modes(self) -> bool:
        """Whether its components are modes that one can count: few, and apart by more than four deviations."""
        if len(self.centres) > MAX_MODES or len(self.centres) < 2:
            return False
        apart = torch.cdist(self.centres, self.centres) + torch.eye(len(self.centres)) * 1e9
        return bool(apart.min() > 4 * self.std)

    def density(self, x: Tensor) -> Tensor:
        """p(x) of points (N, d) as (N,)."""
        squares = torch.cdist(x, self.centres.to(x)).square()
        constant = (2 * math.pi * self.std**2) ** (-self.dimensions / 2)
        return constant * (torch.exp(-squares / (2 * self.std**2)) @ self.weights.to(x))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` draws (count, d)."""
        components = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        return self.centres[components] + self.std * torch.randn(count, self.dimensions, generator=generator)

    def blur(self, bandwidth: float) -> Mixture:
        """The density of x plus Gaussian noise of that deviation, exactly: variances add."""
        return replace(self, std=math.hypot(self.std, bandwidth))


def _mixture(name: str, centres: list | np.ndarray, std: float, weights: list[float] | None = None) -> Mixture:
    points = torch.tensor(np.array(centres), dtype=torch.float32)
    share = torch.tensor(weights or [1.0] * len(centres), dtype=torch.float32)
    return Mixture(points, std, share / share.sum(), name)


def _spiral() -> np.ndarray:
    """160 points (160, 2) at equal distances along an Archimedean spiral of 1.6 turns."""
    part = np.arange(1, 4001) / 4000
    angle = 2 * math.pi * 1.6 * part
    points = 3.2 * part[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    lengths = np.append(0, np.hypot(*np.diff(points, axis=0).T).cumsum())
    return points[np.searchsorted(lengths, lengths[-1] * (np.arange(160) + 0.5) / 160)]


_RING = [(2.4 * math.cos(math.pi * i / 4), 2.4 * math.sin(math.pi * i / 4)) for i in range(8)]
DISTRIBUTIONS = {
    "line": lambda: _mixture("one bump on the line", [[1.0]], 0.7),
    "two bumps": lambda: _mixture("two bumps on the line", [[-1.6], [1.4]], 0.45, [0.4, 0.6]),
    "three bumps": lambda: _mixture("three bumps on the line", [[-2.4], [0.0], [2.2]], 0.3, [0.3, 0.2, 0.5]),
    "ring": lambda: _mixture("eight Gaussians on a ring", _RING, 0.15),
    "grid": lambda: _mixture(
        "twenty-five Gaussians on a grid", [(1.4 * x, 1.4 * y) for x in range(-2, 3) for y in range(-2, 3)], 0.12
    ),
    "spiral": lambda: _mixture("a spiral", _spiral(), 0.12),
}


def distribution(name: str) -> Mixture:
    """The distribution of that name; ValueError lists the known ones."""
    if name not in DISTRIBUTIONS:
        raise ValueError(f"Unknown distribution '{name}'; known are: {', '.join(DISTRIBUTIONS)}.")
    return DISTRIBUTIONS[name]()


def from_points(points: list) -> Mixture:
    """A mixture with one component at each drawn point, (x, y) in [-4, 4].

    Raises ValueError with one sentence for no points, too many, or numbers outside the plane.
    """
    try:
        centres = torch.tensor([[float(x), float(y)] for x, y in points], dtype=torch.float32)
    except (TypeError, ValueError):
        raise ValueError("Drawn points have to be pairs of numbers, x and y.") from None
    if len(centres) == 0:
        raise ValueError("Draw at least one point on the plane first.")
    if len(centres) > MAX_POINTS:
        raise ValueError(f"At most {MAX_POINTS} points can be drawn; there are {len(centres)}.")
    if not bool((centres.abs() <= LIMIT).all()):  # NaN fails too
        raise ValueError(f"Drawn points have to lie within {-LIMIT:g} and {LIMIT:g}.")
    return Mixture(centres, 0.15, torch.full((len(centres),), 1 / len(centres)), "drawn points")
