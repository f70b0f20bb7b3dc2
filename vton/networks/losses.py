"""Losses of the three networks beside the adversarial ones (supplementary A.3), each a named term."""

import torch
from torch import Tensor

from vton.networks.warping import control_grid


def second_order(theta: Tensor) -> Tensor:
    """Second-order difference constraint L_const (eq. 12), summed over the control points, mean over the batch.

    theta: (B, 2 n^2) offsets. For every inner control point p with top p0, bottom p1, left p2 and right p3: the
    distances to opposite neighbours should agree, and so should the slopes. The slope difference |S(p,p0) - S(p,p1)| is
    taken as the cross product of the two unit directions, which is the same zero and does not blow up on verticals.
    """
    n = round((theta.shape[1] / 2) ** 0.5)
    points = control_grid(n).to(theta) + theta.reshape(-1, 2, n * n).transpose(1, 2)
    p = points.reshape(-1, n, n, 2)  # (B, column x, row y, 2): x varies slowest
    middle = p[:, 1:-1, 1:-1]
    total = theta.new_zeros(())
    for one, other in ((p[:, 1:-1, :-2], p[:, 1:-1, 2:]), (p[:, :-2, 1:-1], p[:, 2:, 1:-1])):
        a, b = middle - one, other - middle
        length_a, length_b = (a.square().sum(-1) + 1e-8).sqrt(), (b.square().sum(-1) + 1e-8).sqrt()
        bend = (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]) / (length_a * length_b)
        total = total + (length_a - length_b).abs() + bend.abs()
    return total.sum((1, 2)).mean()


def feature_matching(real: list[list[Tensor]], fake: list[list[Tensor]]) -> Tensor:
    """L_FM (eq. 15): mean absolute difference of the discriminator's activations, summed over its layers.

    Both as returned by MultiScaleDiscriminator; the logits themselves are left out; mean over the scales.
    """
    total = fake[0][0].new_zeros((), dtype=torch.float32)
    for real_scale, fake_scale in zip(real, fake):
        for a, b in zip(real_scale[:-1], fake_scale[:-1]):
            total = total + (a.detach().float() - b.float()).abs().mean()
    return total / len(real)


def perceptual(real: list[Tensor], fake: list[Tensor]) -> Tensor:
    """L_percept (eq. 16): mean absolute difference of a fixed network's activations, summed over its layers."""
    return torch.stack([(a.detach().float() - b.float()).abs().mean() for a, b in zip(real, fake)]).sum()


def gradient_difference(real: Tensor, fake: Tensor, weight: Tensor) -> Tensor:
    """Mean absolute difference of the two pictures' gradients, across and down (Mathieu, Couprie and LeCun 2016, alpha
    = 1, with signs). real, fake (B,3,H,W); weight (B,1,H,W) of each pixel's share.
    """
    difference = fake - real
    across = (difference[..., 1:] - difference[..., :-1]).abs() * weight[..., 1:]
    down = (difference[..., 1:, :] - difference[..., :-1, :]).abs() * weight[..., 1:, :]
    return across.mean() + down.mean()
