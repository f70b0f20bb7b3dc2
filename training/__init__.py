"""What every training recipe shares: run folder, event log, checkpoints, stop and resume, launching."""

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
