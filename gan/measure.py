"""How near a generator on a known distribution is to its goal: densities, D beside D*, C(G), the JSD, and its modes."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gan import theory
from gan.densities import LIMIT, Mixture
from gan.losses import Objective
from gan.networks import ROOT3, Generator

CELLS = {1: 240, 2: 64}  # of the grid on [-LIMIT, LIMIT], by dimension
LATTICE = {1: 1201, 2: 96}  # values of each coordinate of z
BANDWIDTH = 0.15  # of the Gaussian that smooths both densities in the plane before they are compared
FAIR = 0.2  # of its fair share of the samples, from which on a mode counts as found
MASS = 0.05  # density from which on p + q has mass


@dataclass(frozen=True)
class State:
    """Everything that Figure 1 shows, measured. On the line the arrays are (240,), in the plane (64, 64).

    In the plane both densities are smoothed by the same Gaussian, so that the JSD is a lower bound of their own.
    """

    data: Tensor  # the two densities
    generator: Tensor
    d: Tensor  # D(x) as the network has it
    best: Tensor  # D*(x) of Proposition 1 between the same densities
    jsd: float  # by quadrature
    theorem: float  # -log 4 + 2 JSD
    criterion: float  # C(G) by equation 4 from samples
    error: float  # mean |D - D*| where p + q has mass


def grid(dimensions: int) -> Tensor:
    """Midpoints of the cells as points (cells^d, d); in the plane the rows go by y, x runs fastest."""
    middle = theory.cells(LIMIT, CELLS[dimensions])
    return middle[:, None] if dimensions == 1 else torch.cartesian_prod(middle, middle).flip(1)


def lattice(dimensions: int) -> Tensor:
    """z's at equal distances over the whole prior, (n, d)."""
    count = LATTICE[dimensions]
    if dimensions == 1:
        return torch.linspace(-ROOT3, ROOT3, count)[:, None]
    middle = theory.cells(ROOT3, count)
    return torch.cartesian_prod(middle, middle).flip(1)


@torch.no_grad()
def generator_density(generator: Generator) -> Tensor:
    """p_g on the grid; mass that lies outside is counted in the outermost cells."""
    dimensions = generator.config.data
    edge = LIMIT - 1e-4
    images = generator(lattice(dimensions)).clamp(-edge, edge)
    if dimensions == 1:
        return theory.push_forward(images[:, 0], LIMIT, CELLS[1])
    width = 2 * LIMIT / CELLS[2]
    inside = edge - width / 2  # whose four neighbours are all on the grid
    density = theory.deposit(images.clamp(-inside, inside), LIMIT, CELLS[2])
    return theory.blur(density, width, BANDWIDTH)


def data_density(mixture: Mixture) -> Tensor:
    """p_data on the grid, in the plane smoothed as the generator's."""
    if mixture.dimensions == 1:
        return mixture.density(grid(1))
    return mixture.blur(BANDWIDTH).density(grid(2)).view(CELLS[2], CELLS[2])


@torch.no_grad()
def measure(
    generator: Generator, discriminator: nn.Module, objective: Objective, data: Tensor, real: Tensor, fake: Tensor
) -> State:
    """Measures both networks.

    data: p_data on the grid, from `data_density`.
    real, fake: samples (n, d) of the data and of G, for C(G) of equation 4.
    """
    dimensions = generator.config.data
    cell = (2 * LIMIT / CELLS[dimensions]) ** dimensions
    q = generator_density(generator)
    best = theory.optimal_discriminator(data, q)
    d = objective.probability(discriminator(grid(dimensions))).view(data.shape)
    jsd = theory.jsd(data, q, cell)
    mass = data + q > MASS
    criterion = theory.criterion_from_samples(_at(best, real), _at(best, fake))
    error = float((d - best).abs()[mass].mean())
    return State(data, q, d, best, jsd, -theory.LOG4 + 2 * jsd, criterion, error)


def _at(values: Tensor, points: Tensor) -> Tensor:
    """Values of a grid at points (n, d): those of the cells they lie in."""
    count = values.shape[0]
    place = ((points + LIMIT) * (count / (2 * LIMIT))).long().clamp(0, count - 1)
    picks = values[place[:, 0]] if values.ndim == 1 else values[place[:, 1], place[:, 0]]
    return torch.nan_to_num(picks, nan=0.5)


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
