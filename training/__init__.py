"""What every training recipe shares: run folder, event log, checkpoints, stop and resume, launching."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str, **homes: str) -> Callable[[str], Any]:
    """A package's `__getattr__`: names by their modules, which are imported on first use, so that no small module
    brings torch.
    """

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return look_up


__getattr__ = lazy_names(
    __name__,
    Recipe="recipe",
    Run="run",
    Task="task",
    TrainingError="loop",
    average_checkpoints="checkpoint",
    fit="loop",
    latest_checkpoint="checkpoint",
    launch="command",
)
