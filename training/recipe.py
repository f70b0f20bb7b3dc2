"""The numbers that a training run is made of."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass


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
    precision: str = "no"  # "no" (fp32) or "bf16" (autocast; fp32 where the hardware has no bf16)
    compile: bool = False  # torch.compile the modules
    threads: int = 0  # torch's CPU threads; 0 = torch's own choice
    workers: int = 0  # processes that make batches ahead of time, for a GPU that waits for them; 0 = none
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
        for name in ("evaluate_every", "patience", "threads", "workers", "clip", "max_minutes", "max_megabytes"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be 0 or more, but is {getattr(self, name)}.")
        if self.patience and not self.evaluate_every:
            raise ValueError("patience counts evaluations, so evaluate_every must be more than 0.")
        if self.workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError("workers need a system that can fork processes; set it to 0 here.")
        if self.precision not in ("no", "bf16"):
            raise ValueError(f"precision must be 'no' or 'bf16', but is '{self.precision}'.")
