"""Samples of a trained generator, walks between two of them, their nearest training examples (Figures 2 and 3)."""

from numbers import Integral
from pathlib import Path

import torch
from torch import Tensor

from gan.networks import Discriminator, Generator, Pair
from gan.parzen import squared_distances
from training import assets
from training.arguments import MAX_SEED, expect

MAX_SAMPLES = 100_000
CHUNK = 1000


def load(model: str | Path) -> Pair:
    """The pair of a model folder, or of a shipped model by name.

    Raises FileNotFoundError or ValueError with one sentence when there is none.
    """
    expect("model", model, (str, Path), "a name or a folder")
    return Pair.from_pretrained(assets.model_or_dir(model))


def noise(generator: Generator, count: int, seed: int) -> Tensor:
    """z (count, noise) of a seed. Raises ValueError for a count or seed out of bounds."""
    expect("count", count, Integral, "a whole number")
    expect("seed", seed, Integral, "a whole number")
    if not 1 <= count <= MAX_SAMPLES:
        raise ValueError(f"The number of samples has to be from 1 to {MAX_SAMPLES:,}, but is {count}.")
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"The seed has to be a whole number from 0 to 2^63 - 1, but is {seed}.")
    return generator.noise(count, torch.Generator().manual_seed(seed))


@torch.no_grad()
def decode(generator: Generator, z: Tensor) -> Tensor:
    """G(z) of z (n, noise), (n, data) on the CPU, a thousand at a time, wherever the generator is."""
    device = next(generator.parameters()).device
    return torch.cat([generator(part.to(device)).cpu() for part in z.split(CHUNK)])


def sample(generator: Generator, count: int, seed: int = 0) -> Tensor:
    """`count` fair draws, (count, data); the same seed gives the same ones."""
    return decode(generator, noise(generator, count, seed))


def walk(start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Section 5, Figure 3: `steps` points on the straight line between two z (noise,), both ends among them."""
    expect("start", start, Tensor, "a tensor (noise,)")
    expect("end", end, Tensor, "a tensor (noise,)")
    expect("steps", steps, Integral, "a whole number")
    if steps < 2:
        raise ValueError(f"A walk has at least 2 steps, but {steps} were asked for.")
    t = torch.linspace(0, 1, steps)[:, None]
    return (1 - t) * start + t * end


def nearest(samples: Tensor, training: Tensor) -> tuple[Tensor, Tensor]:
    """Index (n,) of the nearest training example of each sample by Euclidean distance, and the distance (n,).

    The test is weak (Theis et al. 2016): a copy shifted by a pixel is far away in this measure.
    """
    parts = [squared_distances(part, training).min(1) for part in samples.split(CHUNK)]
    return torch.cat([f.indices for f in parts]), torch.cat([f.values for f in parts]).sqrt()


@torch.no_grad()
def opinion(discriminator: Discriminator, x: Tensor) -> Tensor:
    """D(x) of rows x (n, data), the probability that each came from the data, (n,)."""
    return torch.sigmoid(discriminator(x))
