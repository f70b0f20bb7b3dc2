"""Recipe of the geometric matching module: equations 2, 11 and 12."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from vton.config import LITE, NETWORK_SIZE, PAPER, MatchingConfig
from vton.data import Pack
from vton.losses import second_order
from vton.metrics import coverage, mask_iou, ssim_map
from vton.recipes.common import PictureRecipe, PictureTask, collate, generators, save_grid, to_picture
from vton.recipes.samples import Sampler
from vton.warping import MatchingModule, jacobian, sampling_grid, warp


@dataclass
class MatchingRecipe(PictureRecipe):
    width: int = LITE.matching.width
    grid: int = 5
    lr: float = 2e-4
    beta1: float = 0.5
    second_order: float = 0.04  # lambda_const
    mask: float = 0.0  # weight of an L1 term on the warped mask (not in the paper)
    validation: int = 32


PRESETS = {
    "lite-cpu": dict(steps=2500, batch=8, lr=5e-4, schedule="cosine", warmup=50, mask=0.5, second_order=0.02, precision="bf16", threads=1,
                     save_every=250, evaluate_every=500),
    "lite-gpu": dict(steps=30000, batch=32, lr=4e-4, schedule="cosine", warmup=200, mask=0.5, precision="bf16"),
    "paper": dict(steps=50000, batch=8, width=PAPER.matching.width),
    "drawn": dict(steps=300, batch=4, lr=1e-3, mask=0.5, width=12, precision="bf16", save_every=50, evaluate_every=50,
                  validation=6),
}


def network_config(recipe: MatchingRecipe) -> MatchingConfig:
    """The network that a recipe trains."""
    return replace(LITE.matching, width=recipe.width, grid=recipe.grid)


class MatchingTask(PictureTask):
    best = ("warped_iou", "max")

    def __init__(self, recipe: MatchingRecipe):
        self.recipe = recipe
        pack = Pack(recipe.pack) if recipe.pack else None
        self.sampler, self.held_out = Sampler(pack, NETWORK_SIZE), Sampler(pack, NETWORK_SIZE, "val")
        model = self.set_model(MatchingModule(network_config(recipe)))
        with torch.no_grad():  # begin near the identity warp
            model.regression.linear.weight.mul_(0.1)
            model.regression.linear.bias.zero_()
        self.weights = {"second_order": recipe.second_order, "mask": recipe.mask}
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(recipe.beta1, 0.999))}
        self._validation = None

    def batch(self, step, micro, rank, world):
        rngs = generators(self.recipe.seed, step, micro, rank, world, self.recipe.batch)
        return collate([self.sampler.sample(rng) for rng in rngs])

    def theta(self, model, batch):
        person = torch.cat((batch["worn_mask"], batch["pose"], batch["agnostic"]), 1)
        channels_last = torch.channels_last
        return model(person.contiguous(memory_format=channels_last),
                     batch["cloth"].contiguous(memory_format=channels_last)).float()

    def terms(self, batch):
        theta = self.theta(self.networks["model"], batch)
        grid = sampling_grid(theta, NETWORK_SIZE)
        warped, warped_mask = warp(batch["cloth"], grid), warp(batch["cloth_mask"], grid, "zeros")
        counted = 1 - batch["carried"]
        n = len(theta)
        return {"l1": ((batch["worn"] - warped).abs() * counted).mean((1, 2, 3)).sum(),
                "second_order": second_order(theta) * n,
                "mask": ((batch["worn_mask"] - warped_mask).abs() * counted).mean((1, 2, 3)).sum()}

    def validation(self):
        if self._validation is None:
            rngs = [np.random.default_rng([9, i]) for i in range(self.recipe.validation)]
            self._validation = collate([self.held_out.sample(rng, augment=False, index=i if self.held_out.pack else None)
                                        for i, rng in enumerate(rngs)])
        return self._validation

    def evaluate(self):
        batch = self.validation()
        theta = self.theta(self.modules["ema"], batch)
        grid = sampling_grid(theta, NETWORK_SIZE)
        mask = warp(batch["cloth_mask"], grid, "zeros")[:, 0].numpy() > 0.5
        truth = batch["worn_mask"][:, 0].numpy() > 0.5
        warped = warp(batch["cloth"], grid)
        similar = [ssim_map(to_picture(a), to_picture(b)).mean() for a, b in zip(warped, batch["worn"])]
        return {"warped_iou": float(np.mean([mask_iou(a, b) for a, b in zip(mask, truth)])),
                "ssim": float(np.mean(similar)),
                "covered": float(np.mean([coverage(a, b) for a, b in zip(mask, truth)])),
                "l1": float((batch["worn"] - warped).abs().mean()),
                "smallest_jacobian": float(jacobian(grid).min())}

    def sample(self, folder, step):
        batch = {k: v[:5] for k, v in self.validation().items()}
        grid = sampling_grid(self.theta(self.modules["ema"], batch), NETWORK_SIZE)
        warped = warp(batch["cloth"], grid)
        save_grid(folder / "warp.png", [[to_picture(batch[k][i]) for k in ("person", "cloth", "worn")] + [to_picture(warped[i])]
                                        for i in range(len(warped))])
