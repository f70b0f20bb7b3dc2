"""Recipe of the geometric matching module: L_warp of VITON-HD (eq. 2, in A.3 eq. 11 and 12)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from vton.data.pack import Pack
from vton.data.samples import Sampler
from vton.metrics import coverage, mask_iou, structural_similarity
from vton.networks.config import LITE, NETWORK_SIZE, PAPER, MatchingConfig
from vton.networks.losses import second_order
from vton.networks.warping import MatchingModule, jacobian, sampling_grid, warp
from vton.recipes.common import PictureRecipe, PictureTask, collate, generators, save_grid
from vton.tensors import tensor_to_picture


@dataclass
class MatchingRecipe(PictureRecipe):
    """Fields of the recipe of geometric matching."""

    width: int = LITE.matching.width  # channels of the first convolution
    grid: int = 5  # control points along one side
    lr: float = 2e-4
    beta1: float = 0.5  # of Adam
    second_order: float = 0.04  # lambda_const
    mask: float = 0.0  # weight of an L1 term on the warped mask (not in the paper)
    validation: int = 32  # validation samples per evaluation


PRESETS = {
    "lite-cpu": {
        "steps": 2500,
        "batch": 8,
        "lr": 5e-4,
        "schedule": "cosine",
        "warmup": 50,
        "mask": 0.5,
        "second_order": 0.02,
        "precision": "bf16",
        "threads": 1,
        "save_every": 250,
        "evaluate_every": 500,
    },
    "lite-gpu": {
        "steps": 30000,
        "batch": 32,
        "lr": 4e-4,
        "schedule": "cosine",
        "warmup": 200,
        "mask": 0.5,
        "precision": "bf16",
    },
    "paper": {"steps": 50000, "batch": 8, "width": PAPER.matching.width},
    "drawn": {
        "steps": 300,
        "batch": 4,
        "lr": 1e-3,
        "mask": 0.5,
        "width": 12,
        "precision": "bf16",
        "save_every": 50,
        "evaluate_every": 50,
        "validation": 6,
    },
}


def network_config(recipe: MatchingRecipe) -> MatchingConfig:
    """The network that a recipe trains."""
    return replace(LITE.matching, width=recipe.width, grid=recipe.grid)


class MatchingTask(PictureTask):
    """Trains the matching module by L_warp = ||I_c - W(c, theta)||_1 + lambda_const L_const (equations 2 and 11)."""

    recipe: MatchingRecipe
    best = ("warped_iou", "max")

    def __init__(self, recipe: MatchingRecipe):
        self.recipe = recipe
        pack = Pack(recipe.pack) if recipe.pack else None
        self.sampler, self.held_out = Sampler(pack, NETWORK_SIZE), Sampler(pack, NETWORK_SIZE, "val")
        model = MatchingModule(network_config(recipe))
        self.set_model(model)
        with torch.no_grad():  # begin near the identity warp
            model.regression.linear.weight.mul_(0.1)
            model.regression.linear.bias.zero_()
        self.weights = {"second_order": recipe.second_order, "mask": recipe.mask}
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(recipe.beta1, 0.999))}
        self._validation: dict[str, torch.Tensor] | None = None

    def batch(self, step, micro, rank, world):
        """Micro-batch `micro` of update `step` for one process; a pure function of its arguments and the seed."""
        rngs = generators(self.recipe.seed, step, micro, rank, world, self.recipe.batch)
        return collate([self.sampler.sample(rng) for rng in rngs])

    def theta(self, model, batch):
        """theta (B, 2 n^2) for a batch, fp32."""
        person = torch.cat((batch["worn_mask"], batch["pose"], batch["agnostic"]), 1)
        channels_last = torch.channels_last
        return model(
            person.contiguous(memory_format=channels_last), batch["cloth"].contiguous(memory_format=channels_last)
        ).float()

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        theta = self.theta(self.networks["model"], batch)
        grid = sampling_grid(theta, NETWORK_SIZE)
        warped, warped_mask = warp(batch["cloth"], grid), warp(batch["cloth_mask"], grid, "zeros")
        counted = 1 - batch["carried"]
        n = len(theta)
        return {  # their weighted sum is L_warp, eq. 2 and eq. 11
            "l1": ((batch["worn"] - warped).abs() * counted).mean((1, 2, 3)).sum(),
            "second_order": second_order(theta) * n,  # eq. 12
            "mask": ((batch["worn_mask"] - warped_mask).abs() * counted).mean((1, 2, 3)).sum(),
        }

    def validation(self):
        """The validation samples, always the same ones."""
        if self._validation is None:
            rngs = [np.random.default_rng([9, i]) for i in range(self.recipe.validation)]
            self._validation = collate(
                [
                    self.held_out.sample(rng, augment=False, index=i if self.held_out.pack else None)
                    for i, rng in enumerate(rngs)
                ]
            )
        return self._validation

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        batch = self.validation()
        theta = self.theta(self.modules["ema"], batch)
        grid = sampling_grid(theta, NETWORK_SIZE)
        mask = warp(batch["cloth_mask"], grid, "zeros")[:, 0].numpy() > 0.5
        truth = batch["worn_mask"][:, 0].numpy() > 0.5
        warped = warp(batch["cloth"], grid)
        similar = [
            structural_similarity(tensor_to_picture(a), tensor_to_picture(b)) for a, b in zip(warped, batch["worn"])
        ]
        return {
            "warped_iou": float(np.mean([mask_iou(a, b) for a, b in zip(mask, truth)])),
            "ssim": float(np.mean(similar)),
            "covered": float(np.mean([coverage(a, b) for a, b in zip(mask, truth)])),
            "l1": float((batch["worn"] - warped).abs().mean()),
            "smallest_jacobian": float(jacobian(grid).min()),
        }

    def sample(self, folder, step):
        """A sheet of pictures of the validation samples, and what the averaged weights make of them."""
        batch = {k: v[:5] for k, v in self.validation().items()}
        grid = sampling_grid(self.theta(self.modules["ema"], batch), NETWORK_SIZE)
        warped = warp(batch["cloth"], grid)
        save_grid(
            folder / "warp.png",
            [
                [tensor_to_picture(batch[k][i]) for k in ("person", "cloth", "worn")] + [tensor_to_picture(warped[i])]
                for i in range(len(warped))
            ],
        )
