"""What a network brings to the training loop, its Task, and what the loop offers in return, the Trainer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training.recipe import Recipe


class Task:
    """One network's side of the training loop. Subclasses fill in the tensors; the loop owns time and files."""

    modules: dict[str, nn.Module]  # everything that has weights; all of it is saved and restored by name
    optimizers: dict[str, torch.optim.Optimizer]  # saved and restored by name
    weights: dict[str, float] = {}  # of each loss term; a missing name weighs 1, a weight of 0 only logs the term
    best: tuple[str, str] | None = None  # validation figure that chooses the best checkpoint, and "max" or "min"
    formula: str = ""  # the learning rate's, as text for a reader
    replicas: dict[str, nn.Module] | None = None  # set by the loop: the modules as prepared for several processes

    @property
    def networks(self) -> dict[str, nn.Module]:
        """What `terms` and `update` must call: `modules`, wrapped for distributed training where that is in use."""
        return self.replicas or self.modules

    def learning_rates(self, step: int) -> dict[str, float]:
        """Rate of each optimizer for update number `step` (from 1). A pure function of the step."""
        raise NotImplementedError

    def batch(self, step: int, micro: int, rank: int, world: int) -> Any:
        """The micro-batch number `micro` of update `step` for process `rank` of `world`, on the CPU.

        A pure function of its arguments and the recipe's seed: that is what makes a resumed run exact.
        """
        raise NotImplementedError

    def count(self, batch: Any) -> int:
        """How many items (tokens, pictures) the summed terms of this batch are divided by."""
        raise NotImplementedError

    def terms(self, batch: Any) -> dict[str, Tensor]:
        """Each loss term, summed over the items of the batch (scalar tensors)."""
        raise NotImplementedError

    def update(self, batches: list[Any], trainer: Trainer) -> dict[str, float]:
        """One optimizer update from all micro-batches; returns the mean of each term over all processes.

        Sums are divided by the item count of the *whole* update, over micro-batches and processes, so the
        gradient does not depend on how the items were dealt out.
        """
        total = trainer.total(sum(self.count(batch) for batch in batches))
        sums: dict[str, Tensor] = {}
        for batch in batches:
            with trainer.autocast():
                terms = self.terms(batch)
            loss = sum(
                self.weights.get(name, 1.0) * value for name, value in terms.items() if self.weights.get(name, 1.0) != 0
            )
            # Distributed training averages gradients over processes; the factor turns that mean into a sum.
            trainer.backward(loss * (trainer.world / total))
            for name, value in terms.items():
                sums[name] = sums.get(name, 0) + value.detach()
        for name in self.optimizers:
            trainer.step(name)
        return {name: trainer.total(float(value)) / total for name, value in sums.items()}

    def evaluate(self) -> dict[str, float]:
        """Validation figures by name; modules are in evaluation mode."""
        return {}

    def sample(self, folder: Path, step: int) -> None:
        """Writes sample pictures or texts of fixed inputs into `folder`."""

    def describe(self, folder: Path) -> None:
        """Writes into `folder` what a checkpoint's weights need besides to be used, for example a tokenizer.

        Called once at the start; a resumed run must write the same, or its data or sizes have changed.
        """

    def export(self, folder: Path) -> None:
        """Writes the folder that inference reads: config.json, model.safetensors, tokenizer where there is one."""
        raise NotImplementedError


class Trainer:
    """What a Task may ask of the loop during an update: backward, optimizer step, sums over processes."""

    def __init__(self, accelerator: Any, task: Task, recipe: Recipe):
        self.accelerator, self.task, self.recipe = accelerator, task, recipe
        self.world, self.rank, self.device = accelerator.num_processes, accelerator.process_index, accelerator.device
        self.gradient_norms: dict[str, float] = {}
        self.bad_gradient: str | None = None  # the optimizer whose gradient was not finite

    def autocast(self):
        """Context in which networks run in the recipe's precision."""
        return self.accelerator.autocast()

    def backward(self, loss: Tensor) -> None:
        """Adds the loss's gradients to those that are there."""
        self.accelerator.backward(loss)

    def step(self, name: str) -> None:
        """Clips (or only measures) the gradient of one optimizer, makes its step, and clears the gradient.

        A gradient that is not finite makes no step: the weights stay good, and the loop ends the run.
        """
        optimizer = self.task.optimizers[name]
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        limit = self.recipe.clip or math.inf
        self.gradient_norms[name] = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        if math.isfinite(self.gradient_norms[name]):
            optimizer.step()
        else:
            self.bad_gradient = name
        optimizer.zero_grad(set_to_none=True)

    def total(self, value: float) -> float:
        """Sum of a number over all processes."""
        if self.world == 1:
            return value
        return float(self.accelerator.reduce(torch.tensor(float(value), device=self.device, dtype=torch.float64)))
