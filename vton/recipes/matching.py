"""Recipe of the geometric matching module: L_warp of VITON-HD (eq. 2, in A.3 eq. 11 and 12)."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from training.recipe import SHARE, read_presets, setting
from vton.metrics import coverage
from vton.networks.config import LITE, NETWORK_SIZE, MatchingConfig
from vton.networks.losses import second_order
from vton.networks.warping import MatchingModule, jacobian, sampling_grid, warp
from vton.recipes.common import PictureRecipe, WarpTask, displacement, samplers, warp_figures


@dataclass
class MatchingRecipe(PictureRecipe):
    """Fields of the recipe of geometric matching."""

    bounds = {"grid": (2, 64), "locks": SHARE}

    width: int = setting(LITE.matching.width, "channels of the first convolution")
    grid: int = setting(5, "control points along one side")
    lr: float = 2e-4
    beta1: float = setting(0.5, "of Adam")
    second_order: float = setting(0.04, "lambda_const")
    mask: float = setting(0.0, "weight of an L1 term on the warped mask (not in the paper)")
    locks: float = setting(0.0, "share of the samples whose region is given with gaps, as under long hair")
    place: float = setting(0.0, "weight of the distance from the true warp where it is known (not in the paper)")


PRESETS = read_presets(__file__, "matching")


def network_config(recipe: MatchingRecipe) -> MatchingConfig:
    """The network that a recipe trains."""
    return replace(LITE.matching, width=recipe.width, grid=recipe.grid)


class MatchingTask(WarpTask):
    """Trains the matching module by L_warp = ||I_c - W(c, theta)||_1 + lambda_const L_const (equations 2 and 11)."""

    recipe: MatchingRecipe
    best = ("warped_iou", "max")

    def __init__(self, recipe: MatchingRecipe):
        self.recipe = recipe
        self.sampler, self.val_sampler = samplers(recipe, NETWORK_SIZE)
        model = MatchingModule(network_config(recipe))
        self.set_model(model)
        if not recipe.initial:
            with torch.no_grad():  # begin near the identity warp
                model.regression.linear.weight.mul_(0.1)
                model.regression.linear.bias.zero_()
        self.weights = {"second_order": recipe.second_order, "mask": recipe.mask, "place": recipe.place}
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(recipe.beta1, 0.999))}

    def theta(self, model, batch):
        """theta (B, 2 n^2) for a batch, fp32."""
        maps = (self.person_maps(batch), batch["cloth"])
        return model(*(x.contiguous(memory_format=torch.channels_last) for x in maps)).float()

    def grid(self, model, batch):
        """As of `WarpTask`."""
        return sampling_grid(self.theta(model, batch), NETWORK_SIZE)

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        theta = self.theta(self.networks["model"], batch)
        grid = sampling_grid(theta, NETWORK_SIZE)
        warped, warped_mask = warp(batch["cloth"], grid), warp(batch["cloth_mask"], grid, "zeros")
        valid = 1 - batch["carried"]
        n = len(theta)
        return {  # their weighted sum is L_warp, eq. 2 and eq. 11
            "l1": ((batch["worn"] - warped).abs() * valid).mean((1, 2, 3)).sum(),
            "second_order": second_order(theta) * n,  # eq. 12
            "mask": ((batch["worn_mask"] - warped_mask).abs() * valid).mean((1, 2, 3)).sum(),
            **({"place": displacement(grid, batch).sum()} if self.recipe.place else {}),
        }

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        batch = self.validation()
        grid = self.grid(self.modules["ema"], batch)
        figures, masks = warp_figures(grid, batch)
        truth = batch["worn_mask"][:, 0].numpy() > 0.5
        return figures | {
            "covered": float(np.mean([coverage(a, b) for a, b in zip(masks, truth)])),
            "smallest_jacobian": float(jacobian(grid).min()),
        }
