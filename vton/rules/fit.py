"""A few gradient steps that fit the warped cloth to the predicted region (not in the paper; it can be switched off)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms.functional import gaussian_blur

from vton.networks.losses import second_order
from vton.networks.warping import derivatives, jacobian, sampling_grid, warp

# The weights here and below, the rate and the number of steps were set together, by eye on warped garments; none of
# them is measured by itself.
SIZE = (128, 96)  # (H, W) at which the fit looks at the masks
STEPS, RATE = 60, 0.012
# Weights of the second-order difference constraint (equation 12), of staying near theta, and of `uneven`.
BENDING, KEEP, EVEN = 0.01, 0.15, 3.0


class FitStep(NamedTuple):
    """One step of the fit. theta (1, 2 n^2); loss: the sum that is minimised; the others are its weighted terms."""

    theta: Tensor
    loss: float
    misfit: float
    bending: float
    keep: float
    fold: float
    uneven: float


class FitExceptions(NamedTuple):
    """Where the outlines of mask and region do not tell alone how the cloth lies; (1,1,H,W) in [0, 1]."""

    hidden: Tensor  # what hair covers, where no outline is seen; the cloth is stretched as around it
    neck: Tensor  # the border between garment and neck, where the cloth keeps its proportions
    open: bool = False  # whether that border is not known yet


def blur_scales(mask: Tensor) -> list[Tensor]:
    """A mask (1,1,H,W) at two scales: the coarse one draws from afar, the fine one places the outline."""
    return [gaussian_blur(mask, [k, k], [s, s]) for k, s in ((25, 6.0), (9, 2.0))]


def cover_gap(masks: list[Tensor], goals: list[Tensor], grid: Tensor, counts: Tensor, area: Tensor) -> Tensor:
    """How far the warped masks are from the goals, in areas of the goal, summed over the scales; what stays open weighs
    more than cloth beyond the goal. counts (1,1,H,W): weight of each pixel; area: pixels of the goal.
    """
    total = grid.new_zeros(())
    for mask, goal in zip(masks, goals):
        difference = (goal - warp(mask, grid, "zeros")) * counts
        total = total + (2 * difference.clamp(min=0) + 0.7 * (-difference).clamp(min=0)).sum() / area
    return total


def uneven(grid: Tensor, part: Tensor, around: Tensor, similar: bool = False) -> Tensor:
    """How differently the cloth is stretched in a part from what lies above and below it: the mean squared difference
    of the Jacobian from its mean there. 0 where there is no such part.

    grid: (1,H,W,2). part: (1,1,H,W) in [0, 1]. around: (1,1,H,W) in [0, 1], the region without what the fit cannot see.
    similar: as much as around it, but in both directions alike.

    Left to itself the spline goes on as the slopes of the shoulders end, and squeezes a round neckline to a point; and
    a garment that lies flat is wider than its wearer, while its neck is not.
    """
    ours = part[0, 0, :-1, :-1, None, None]
    theirs = (around * (1 - part) * (part.amax(2, keepdim=True) > 0.5))[0, 0, :-1, :-1, None, None]
    stretch = derivatives(grid)[0]
    mean = (stretch.detach() * theirs).sum((0, 1)) / theirs.sum().clamp(min=1)
    if similar:  # the nearest rotation with a scale: the mean of J and its cofactors
        mean = (mean + mean.flip(0, 1) * mean.new_tensor([[1.0, -1.0], [-1.0, 1.0]])) / 2
    return ((stretch - mean).square() * ours).sum() / ours.sum().clamp(min=1) * (theirs.sum() > 0)


def fit_control_points(
    theta: Tensor,
    cloth_mask: Tensor,
    region: Tensor,
    even: float = EVEN,
    watch: Callable[[FitStep], None] | None = None,
    exceptions: FitExceptions | None = None,
) -> Tensor:
    """Moves the control points until W(M_c, theta) covers the predicted region S-hat_c.

    theta: (1, 2 n^2) from the matching module. cloth_mask M_c, region S-hat_c: (1,1,H,W) in [0, 1].
    even: weight of stretching the cloth at the exceptions as around them; see `uneven`.
    watch: called with every step before it is taken.
    exceptions: where something else than the masks tells how the cloth lies; None = nowhere.
    Returns (1, 2 n^2). Uncovered parts of the region weigh more than cloth beyond it, which the segmentation hides
    anyway. A fold (negative Jacobian) is punished, and the steps' best unfolded answer is returned; the best one, if
    all are folded.
    """
    goal = F.interpolate(region, SIZE, mode="area")
    masks, goals = blur_scales(F.interpolate(cloth_mask, SIZE, mode="area")), blur_scales(goal)
    exceptions = exceptions or FitExceptions(*[torch.zeros_like(region)] * 2)
    hidden, neck = (F.interpolate(part, SIZE, mode="area") for part in exceptions[:2])
    unseen = torch.maximum(hidden, neck) if exceptions.open else hidden
    start = theta.detach().clone()
    best, best_rank = start, (True, math.inf)
    with torch.inference_mode(False), torch.enable_grad():
        start, goal, unseen, hidden, neck = (t.clone() for t in (start, goal, unseen, hidden, neck))
        around = goal * (1 - torch.maximum(hidden, neck))
        masks, goals = [m.clone() for m in masks], [g.clone() for g in goals]
        moving = start.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([moving], lr=RATE)
        area = goal.sum().clamp(min=1)
        # The constraint is a sum over the inner points; a finer grid must not become stiffer than the published 5 x 5.
        n = round((theta.shape[1] / 2) ** 0.5)
        stiffness = BENDING * 9 / (n - 2) ** 2
        for _ in range(STEPS + 1):
            grid = sampling_grid(moving, SIZE)
            misfit = cover_gap(masks, goals, grid, 1 - unseen, area)
            volume = jacobian(grid)
            fold = (0.15 - volume).clamp(min=0).mean() * 20
            bend, apart = stiffness * second_order(moving), KEEP * (moving - start).square().mean() * 10
            strain = even * (uneven(grid, hidden * (1 - neck), around) + uneven(grid, neck, around, similar=True))
            loss = misfit + bend + apart + fold + strain
            terms = loss, misfit, bend, apart, fold, strain
            if watch is not None:
                watch(FitStep(moving.detach().clone(), *(float(term.detach()) for term in terms)))
            rank = float(volume.detach().min()) <= 0, float(loss.detach())  # any unfolded answer before any folded one
            if rank < best_rank:
                best, best_rank = moving.detach().clone(), rank
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return best
