"""What every training recipe shares: run folder, event log, checkpoints, stop and resume, launching."""

from training.checkpoint import average_checkpoints, latest_checkpoint
from training.loop import TrainingFailed, fit
from training.recipe import Recipe
from training.run import Run
from training.task import Task

__all__ = ["Recipe", "Run", "Task", "TrainingFailed", "average_checkpoints", "fit", "latest_checkpoint", "launch"]


def launch(*args, **kwargs):
    """See `training.command.launch`; imported on first use because it pulls in the command-line parser."""
    from training.command import launch as run_command

    return run_command(*args, **kwargs)
