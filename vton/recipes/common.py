"""What the try-on recipes share: learning-rate shapes, averaged weights, random numbers per sample, pictures."""

from __future__ import annotations

import copy
import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from training import Recipe, Task
from training.weights import fill, load_model, save_model


@dataclass
class PictureRecipe(Recipe):
    """Fields of every try-on recipe."""

    pack: str = ""  # packed file of photos and garments (python -m vton.data); empty = drawn people
    batch: int = 8  # pictures per micro-batch
    lr: float = 1e-3  # learning rate
    schedule: str = "constant"  # "constant", or "cosine" down to a hundredth
    warmup: int = 0  # updates over which the rate rises linearly
    ema: float = 0.999  # decay of the averaged weights that are exported
    initial: str = ""  # folder of trained weights to start from


class PictureTask(Task):
    """Base of their tasks. `modules["model"]` is trained, `modules["ema"]` follows it and is exported."""

    recipe: PictureRecipe

    def set_model(self, model: nn.Module) -> nn.Module:
        """Registers the network to be trained, in the memory layout that convolutions like best."""
        if self.recipe.initial:
            fill(model, self.initial_state(), f"the {type(model).__name__}")
        model.to(memory_format=torch.channels_last)
        ema = copy.deepcopy(model).requires_grad_(False)
        self.modules = {"model": model, "ema": ema}
        return model

    def initial_state(self) -> dict[str, torch.Tensor]:
        """The weights that the recipe starts from."""
        return load_model(self.recipe.initial)[1]

    def learning_rates(self, step: int) -> dict[str, float]:
        """`lr` by the recipe's schedule; a discriminator follows it with its own `lr_d`."""
        factor = rate_factor(step, self.recipe)
        rates = {"discriminator": getattr(self.recipe, "lr_d", self.recipe.lr)}
        return {name: factor * rates.get(name, self.recipe.lr) for name in self.optimizers}

    def count(self, batch: dict[str, Any]) -> int:
        """Pictures of a batch."""
        return len(next(iter(batch.values())))

    def update(self, batches, trainer):
        """As `Task.update`; the averaged weights follow."""
        terms = super().update(batches, trainer)
        self.update_average()
        return terms

    def update_average(self) -> None:
        """Moves the averaged weights; early on the average is short, so that the first weights are soon forgotten."""
        state = next(iter(self.optimizers["model"].state.values()))["step"]
        decay = min(self.recipe.ema, (1 + float(state)) / (10 + float(state)))
        own, average = (self.modules[name].state_dict() for name in ("model", "ema"))
        floats = [name for name, value in average.items() if value.is_floating_point()]
        get_ema_multi_avg_fn(decay)([average[name] for name in floats], [own[name] for name in floats], None)
        for name in average.keys() - set(floats):  # batch norm's counts
            average[name].copy_(own[name])

    def export(self, folder: Path) -> None:
        """config.json, and the averaged weights as model.safetensors."""
        save_model(folder, dataclasses.asdict(self.modules["ema"].config), self.modules["ema"].state_dict())


def rate_factor(step: int, recipe: PictureRecipe) -> float:
    """Share of the full learning rate at update `step` (from 1): linear warm-up, then constant or half a cosine."""
    if step <= recipe.warmup:
        return step / recipe.warmup
    if recipe.schedule == "constant":
        return 1.0
    if recipe.schedule == "cosine":
        done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
        return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    raise ValueError(f"schedule must be 'constant' or 'cosine', but is '{recipe.schedule}'.")


def generators(seed: int, step: int, micro: int, rank: int, world: int, count: int) -> list[np.random.Generator]:
    """One generator per sample of a micro-batch. Sample i of a step is the same however many processes share it."""
    return [np.random.default_rng([seed, step, micro, i]) for i in range(rank, count, world)]


def collate(samples: list[dict[str, np.ndarray]]) -> dict[str, torch.Tensor]:
    """Stacks samples field by field; uint8 pictures (H,W,3) become float (3,H,W) in [-1, 1]."""
    out = {}
    for key in samples[0]:
        rows = []
        for sample in samples:
            value = np.asarray(sample[key])
            if value.dtype == np.uint8 and value.ndim == 3:
                value = value.astype(np.float32).transpose(2, 0, 1) / 127.5 - 1
            elif value.dtype == np.uint8:
                value = value.astype(np.int64)
            elif value.dtype == bool:
                value = value.astype(np.float32)
            rows.append(torch.as_tensor(np.array(value)))
        out[key] = torch.stack(rows)
    return out


def save_grid(file: Path, rows: list[list[np.ndarray]]) -> None:
    """Writes rows of equally large (H,W,3) uint8 pictures as one PNG."""
    grid = np.concatenate([np.concatenate(row, 1) for row in rows], 0)
    cv2.imwrite(str(file), grid[..., ::-1])
