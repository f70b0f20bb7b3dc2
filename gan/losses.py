"""Adversarial objectives, each as a pair of losses on the discriminator's logits.

D(x) = sigmoid(logits). Goodfellow et al. 2014, eq. 1:  min_G max_D  E[log D(x)] + E[log(1 - D(G(z)))].
Every function takes logits of any shape and returns the mean as a scalar.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus


def minimax_d(real: Tensor, fake: Tensor) -> Tensor:
    """-(E[log D(x)] + E[log(1 - D(G(z)))]), the value function of eq. 1 negated.

    Stable: -log sigmoid(t) = softplus(-t) and -log(1 - sigmoid(t)) = softplus(t).
    """
    return softplus(-real).mean() + softplus(fake).mean()


def minimax_g(fake: Tensor) -> Tensor:
    """E[log(1 - D(G(z)))] as in eq. 1: -softplus(t). Its gradient vanishes where the discriminator is sure."""
    return -softplus(fake).mean()


def non_saturating_g(fake: Tensor) -> Tensor:
    """-E[log D(G(z))], section 3's stronger gradient early in learning: softplus(-t)."""
    return softplus(-fake).mean()


def least_squares_d(real: Tensor, fake: Tensor) -> Tensor:
    """1/2 E[(D(x) - 1)^2] + 1/2 E[D(G(z))^2] on raw outputs (LSGAN, Mao et al. 2017, a = 0, b = 1)."""
    return 0.5 * ((real - 1).square().mean() + fake.square().mean())


def least_squares_g(fake: Tensor) -> Tensor:
    """1/2 E[(D(G(z)) - 1)^2] (LSGAN, c = 1)."""
    return 0.5 * (fake - 1).square().mean()


def hinge_d(real: Tensor, fake: Tensor) -> Tensor:
    """E[max(0, 1 - D(x))] + E[max(0, 1 + D(G(z)))] (SAGAN, Zhang et al. 2019)."""
    return relu(1 - real).mean() + relu(1 + fake).mean()


def hinge_g(fake: Tensor) -> Tensor:
    """-E[D(G(z))] (SAGAN)."""
    return -fake.mean()


class Objective(NamedTuple):
    """One pair of losses, both to be minimised."""

    d: Callable[[Tensor, Tensor], Tensor]  # of the discriminator, d(real logits, fake logits)
    g: Callable[[Tensor], Tensor]  # of the generator, g(fake logits)
    formula_d: str  # the two as text, t(x) being the discriminator's output before any sigmoid
    formula_g: str
    probability: Callable[[Tensor], Tensor]  # output t -> what stands for D(x), in [0, 1]


_CROSS_ENTROPY = "−E[log D(x)] − E[log(1 − D(G(z)))], D = sigmoid(t)"
OBJECTIVES = {
    "minimax": Objective(minimax_d, minimax_g, _CROSS_ENTROPY, "E[log(1 − D(G(z)))]", torch.sigmoid),
    "non-saturating": Objective(minimax_d, non_saturating_g, _CROSS_ENTROPY, "−E[log D(G(z))]", torch.sigmoid),
    # LSGAN's outputs need no squashing; at its optimum t is D* of Proposition 1 itself (Mao et al. 2017, eq. 5).
    "lsgan": Objective(
        least_squares_d,
        least_squares_g,
        "½ E[(t(x) − 1)²] + ½ E[t(G(z))²]",
        "½ E[(t(G(z)) − 1)²]",
        lambda t: t.clamp(0, 1),
    ),
    "hinge": Objective(
        hinge_d,
        hinge_g,
        "E[max(0, 1 − t(x))] + E[max(0, 1 + t(G(z)))]",
        "−E[t(G(z))]",
        lambda t: ((t + 1) / 2).clamp(0, 1),
    ),
}


def objective(name: str) -> Objective:
    """The pair of losses by name; ValueError lists the known ones."""
    if name not in OBJECTIVES:
        raise ValueError(f"Unknown objective '{name}'; known are: {', '.join(OBJECTIVES)}.")
    return OBJECTIVES[name]


def over_scales(loss: Callable[..., Tensor], *outputs: list[Tensor]) -> Tensor:
    """Mean of a loss over the scales of a multi-scale discriminator: `outputs` are lists of logits, one per scale."""
    return torch.stack([loss(*scale) for scale in zip(*outputs)]).mean()
