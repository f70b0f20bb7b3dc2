"""What every training recipe shares: run folder, event log, checkpoints, stop and resume, launching."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.checkpoint import average_checkpoints, latest_checkpoint
    from training.command import launch
    from training.loop import TrainingError, fit
    from training.recipe import Recipe
    from training.run import Run
    from training.task import Task

__all__ = ["Recipe", "Run", "Task", "TrainingError", "average_checkpoints", "fit", "latest_checkpoint", "launch"]

_HOMES = {
    "Recipe": "recipe",
    "Run": "run",
    "Task": "task",
    "TrainingError": "loop",
    "average_checkpoints": "checkpoint",
    "fit": "loop",
    "latest_checkpoint": "checkpoint",
    "launch": "command",
}


def __getattr__(name: str):  # noqa: ANN202
    # Names are looked up on first use, so that importing one small module does not load torch.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
