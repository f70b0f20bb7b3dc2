"""Section 4 in numbers: the best discriminator, the criterion C(G), divergences by quadrature, both gradients."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gan.algorithm import value

LOG4 = math.log(4)


def optimal_discriminator(p: Tensor, q: Tensor) -> Tensor:
    """Proposition 1, equation 2: D*(x) = p(x) / (p(x) + q(x)).

    p, q: densities of the data and of the generator, any equal shape. NaN where both are 0: D is free there.
    """
    return p / (p + q)


def kl(p: Tensor, q: Tensor, cell: float) -> float:
    """KL(p || q), the integral of p log(p / q), by the rectangle rule over cells of that length or area; may be inf."""
    on = p > 0
    return float((p[on].double() * (p[on].double() / q[on].double()).log()).sum() * cell)


def jsd(p: Tensor, q: Tensor, cell: float) -> float:
    """Jensen-Shannon divergence, (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2: from 0 for equals to log 2."""
    middle = (p.double() + q.double()) / 2
    return (kl(p, middle, cell) + kl(q, middle, cell)) / 2


def criterion(p: Tensor, q: Tensor, cell: float) -> float:
    """Theorem 1, equation 6: C(G) = -log 4 + 2 JSD(p || q)."""
    return -LOG4 + 2 * jsd(p, q, cell)


def criterion_from_samples(best_on_data: Tensor, best_on_fake: Tensor) -> float:
    """Equation 4 as it is written, C(G) = E_data[log D*(x)] + E_z[log(1 - D*(G(z)))], from D* at samples of each."""
    return value(best_on_data, best_on_fake)


class Gradients(NamedTuple):
    """Both generator losses over D = D(G(z)), and their derivatives by D and by the logit t, D = sigmoid(t)."""

    minimax: Tensor
    non_saturating: Tensor
    minimax_by_d: Tensor
    non_saturating_by_d: Tensor
    minimax_by_logit: Tensor
    non_saturating_by_logit: Tensor


def generator_gradients(d: Tensor) -> Gradients:
    """Section 3: log(1 - D) and -log D for d in (0, 1).

    By the logit, which is what reaches the generator, the first one's derivative is -D: nothing is left where D is
    sure (D near 0). The second one's is D - 1, the strongest there.
    """
    return Gradients(torch.log1p(-d), -d.log(), -1 / (1 - d), -1 / d, -d, d - 1)


# -- the generator's density ----------------------------------------------------------------------------------------


def cells(limit: float, count: int) -> Tensor:
    """The `count` midpoints of equal cells of [-limit, limit]."""
    return (torch.arange(count) + 0.5) * (2 * limit / count) - limit


def push_forward(images: Tensor, limit: float, count: int) -> Tensor:
    """Density (count,) over the cells of [-limit, limit] of x = G(z), z uniform on an interval.

    images: (n,) values of G at equally spaced z, in order. Between neighbours G is taken as linear, so the mass
    1 / (n - 1) of each piece spreads evenly from one image to the next; mass outside the interval is not shown.
    """
    edges = torch.linspace(-limit, limit, count + 1, dtype=torch.float64)
    low = torch.minimum(images[:-1], images[1:]).double()[:, None]
    high = torch.maximum(images[:-1], images[1:]).double()[:, None]
    below = ((edges - low) / (high - low).clamp_min(1e-9)).clamp(0, 1).mean(0)
    return (below.diff() * (count / (2 * limit))).float()


def deposit(points: Tensor, limit: float, count: int) -> Tensor:
    """Density (count, count), rows by y and columns by x, of points (n, 2) over the cells of [-limit, limit]^2.

    Each point's mass is shared between the four nearest midpoints; mass outside the square is not shown.
    """
    width = 2 * limit / count
    place = (points.double() + limit) / width - 0.5
    low = place.floor()
    part = place - low
    grid = torch.zeros(count * count, dtype=torch.float64)
    for dx in (0, 1):
        for dy in (0, 1):
            x, y = low[:, 0] + dx, low[:, 1] + dy
            share = (part[:, 0] if dx else 1 - part[:, 0]) * (part[:, 1] if dy else 1 - part[:, 1])
            inside = (x >= 0) & (x < count) & (y >= 0) & (y < count)
            grid.index_add_(0, (y * count + x)[inside].long(), share[inside])
    return (grid / (len(points) * width**2)).float().view(count, count)


def blur(density: Tensor, width: float, bandwidth: float) -> Tensor:
    """A density on a square grid with cells `width` wide, convolved with a Gaussian of deviation `bandwidth`."""
    reach = max(1, math.ceil(4 * bandwidth / width))
    offsets = torch.arange(-reach, reach + 1, dtype=density.dtype) * width
    kernel = torch.exp(-offsets.square() / (2 * bandwidth**2))
    kernel = (kernel / kernel.sum())[None, None, :, None]
    once = torch.nn.functional.conv2d(density[None, None], kernel, padding=(reach, 0))
    return torch.nn.functional.conv2d(once, kernel.transpose(2, 3), padding=(0, reach))[0, 0]
