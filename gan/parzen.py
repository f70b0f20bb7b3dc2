"""The Parzen window of section 5: the log-likelihood of a test set under Gaussians around a model's samples.

What it may be trusted for is little: Theis, van den Oord and Bethge 2016 show that it needs far more samples than one
can draw in many dimensions, and that centroids of k-means can score above the data themselves.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

SIGMAS = tuple(float(s) for s in torch.logspace(-1, 0, 10, dtype=torch.float64))  # the authors' grid
BATCH = 500
APART = (
    "The paper's 225 ± 2 cannot be compared with these figures: it trained on 50,000 digits and tested on MNIST's own "
    "10,000, of which this division takes 8,000 to train, 1,000 to choose σ and 1,000 to test."
)


@dataclass(frozen=True)
class Score:
    """How likely a model's samples make a test set."""

    mean: float  # log-likelihood of a test example, in nats
    error: float  # its standard error over the examples
    sigma: float  # the chosen one
    curve: tuple[tuple[float, float], ...]  # sigma and mean log-likelihood of the validation set of all that were tried


def squared_distances(x: Tensor, samples: Tensor) -> Tensor:
    """(N, n) squared distances of rows of x (N, d) and samples (n, d), never below 0."""
    distances = x.square().sum(1)[:, None] + samples.square().sum(1)[None] - 2 * x @ samples.T
    return distances.clamp_min_(0)


def log_likelihoods(x: Tensor, samples: Tensor, sigmas: tuple[float, ...]) -> Tensor:
    """log 1/n sum_i N(x; sample_i, sigma^2 I) of each x (N, d) for each sigma, as (sigmas, N)."""
    n, d = samples.shape
    norms = [d * math.log(s * math.sqrt(2 * math.pi)) for s in sigmas]
    columns = []
    for part in x.split(BATCH):
        distances = squared_distances(part, samples)
        sums = (torch.logsumexp(-distances / (2 * s * s), 1).double() - math.log(n) for s in sigmas)
        columns.append(torch.stack([row - norm for row, norm in zip(sums, norms)]))
    return torch.cat(columns, 1)


def evaluate(samples: Tensor, valid: Tensor, test: Tensor, sigmas: tuple[float, ...] = SIGMAS) -> Score:
    """Chooses sigma on `valid` and scores `test`, all (n, d); as in the authors' parzen_ll.py.

    Raises ValueError with one sentence for an empty set or sizes that differ.
    """
    for name, part in (("samples", samples), ("valid", valid), ("test", test)):
        if part.ndim != 2 or not len(part) or part.shape[1] != samples.shape[1]:
            raise ValueError(
                f"The Parzen window needs {name} as rows of {samples.shape[-1]} numbers, got {tuple(part.shape)}."
            )
    if not sigmas or min(sigmas) <= 0:
        raise ValueError("Every sigma has to be more than 0.")
    curve = tuple(zip(sigmas, log_likelihoods(valid, samples, sigmas).mean(1).tolist()))
    sigma = max(curve, key=lambda point: point[1])[0]
    scores = log_likelihoods(test, samples, (sigma,))[0]
    return Score(float(scores.mean()), float(scores.std(correction=0) / math.sqrt(len(scores))), sigma, curve)
