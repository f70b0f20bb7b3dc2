"""Which modes of a mixture a generator reaches, and the name of what happens when it reaches few."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gan.densities import Mixture

FAIR = 0.2  # of its fair share of the samples, from which on a mode counts as found


@dataclass(frozen=True)
class Modes:
    """What a generator reaches of a mixture. Near a mode is within three deviations."""

    shares: tuple[float, ...]  # of the samples, by mode
    hits: tuple[bool, ...]  # which modes are reached
    quality: float  # share of samples near one

    @property
    def count(self) -> int:
        """How many modes are found."""
        return sum(self.hits)

    @property
    def helvetica(self) -> bool:
        """Section 6's Helvetica scenario: G maps many z to the same x. At most half of the modes are left, although
        half of the samples lie on a mode, so it is not a generator that has yet to find them.
        """
        return self.quality >= 0.5 and 2 * self.count <= len(self.hits)


def count_modes(samples: Tensor, mixture: Mixture) -> Modes | None:
    """Counts over samples (n, d); None for a mixture without modes apart from each other.

    A sample belongs to a mode within three of its deviations (Srivastava et al. 2017 count so); a mode is found when it
    holds at least a fifth of the samples that its weight would give it.
    """
    if not mixture.has_modes:
        return None
    distance, nearest = torch.cdist(samples, mixture.centres).min(1)
    near = distance <= 3 * mixture.std
    shares = torch.bincount(nearest[near], minlength=len(mixture.centres)) / len(samples)
    hits = shares >= FAIR * mixture.weights
    return Modes(tuple(shares.tolist()), tuple(hits.tolist()), float(near.float().mean()))
