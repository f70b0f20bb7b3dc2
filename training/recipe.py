"""The two things that a network brings to the training loop: its recipe (numbers) and its task (tensors)."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from training.loop import Trainer


@dataclass
class Recipe:
    """The numbers that every recipe has. A network's recipe derives from it and adds its own.

    The whole dataclass is written to `recipe.json`, so a run folder explains itself.
    """

    seed: int = 1  # of the weights, the data order, the augmentation and dropout
    steps: int = 1000  # optimizer updates in all
    log_every: int = 20  # updates between two lines of the event log
    save_every: int = 500  # updates between two checkpoints
    evaluate_every: int = 500  # updates between two evaluations and samples; 0 = never
    keep_last: int = 3  # checkpoints kept besides the best one
    accumulate: int = 1  # micro-batches per update
    precision: str = "no"  # "no" (fp32) or "bf16" (autocast)
    compile: bool = False  # torch.compile the modules
    threads: int = 0  # torch's CPU threads; 0 = torch's own choice
    clip: float = 0.0  # largest gradient norm; 0 = no clipping
    patience: int = 0  # evaluations without a better figure after which the run ends; 0 = goes on to the last update
    average: int = 1  # checkpoints whose mean is exported
    max_minutes: float = 0.0  # after so long, over all resumes, the run saves and stops; 0 = no limit
    max_megabytes: float = 0.0  # when the run folder is larger than this, the run saves and stops; 0 = no limit

    def check(self) -> None:
        """Raises ValueError with one sentence when fields contradict each other."""
        for name in ("steps", "log_every", "save_every", "keep_last", "accumulate", "average"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        for name in ("evaluate_every", "patience", "threads", "clip", "max_minutes", "max_megabytes"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be 0 or more, but is {getattr(self, name)}.")
        if self.patience and not self.evaluate_every:
            raise ValueError("patience counts evaluations, so evaluate_every must be more than 0.")
        if self.precision not in ("no", "bf16"):
            raise ValueError(f"precision must be 'no' or 'bf16', but is '{self.precision}'.")


class Task:
    """One network's side of the training loop. Subclasses fill in the tensors; the loop owns time and files.

    Attributes:
        modules: everything that has weights; all of it is saved and restored by name.
        optimizers: saved and restored by name.
        weights: weight of each named loss term; a missing name weighs 1, a weight of 0 only logs the term.
        best: name of the validation figure that chooses the best checkpoint, and "max" or "min"; or None.
        formula: the learning rate's formula, as text for a reader.
    """

    modules: dict[str, nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]
    weights: dict[str, float] = {}
    best: tuple[str, str] | None = None
    formula: str = ""
    wrapped: dict[str, nn.Module] | None = None  # set by the loop: the modules as prepared for several processes

    @property
    def networks(self) -> dict[str, nn.Module]:
        """What `terms` and `update` must call: `modules`, wrapped for distributed training where that is in use."""
        return self.wrapped or self.modules

    def learning_rates(self, step: int) -> dict[str, float]:
        """Rate of each optimizer for update number `step` (from 1). A pure function of the step."""
        raise NotImplementedError

    def batch(self, step: int, micro: int, rank: int, world: int) -> Any:
        """The micro-batch number `micro` of update `step` for process `rank` of `world`, on the CPU.

        A pure function of its arguments and the recipe's seed: that is what makes a resumed run exact.
        """
        raise NotImplementedError

    def count(self, batch: Any) -> int:
        """By how many items (tokens, pictures) the summed terms of this batch are divided."""
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
            loss = sum(self.weights.get(name, 1.0) * value for name, value in terms.items()
                       if self.weights.get(name, 1.0) != 0)
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
