"""Starts trainings as processes of their own; asks them to stop; deletes run folders. The page is one caller.

A started process outlives the window it was started from: it has its own session, and its output goes to a file.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from training.files import write_atomic
from training.recipe import Recipe
from training.run import Run, list_runs, open_run

SPARE = 100  # megabytes of the disk that a new run leaves free
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}")
_children: list[subprocess.Popen] = []


@dataclass(frozen=True)
class Limits:
    """What visitors may start; 0 = no limit. Steps, minutes and megabytes are those of one run."""

    at_once: int = 0
    runs: int = 0
    steps: int = 0
    minutes: float = 0
    megabytes: float = 0

    def fields(self) -> dict[str, float]:
        """The recipe's fields that make the training process itself keep the limits."""
        limits = {"max_minutes": self.minutes, "max_megabytes": self.megabytes}
        return {name: value for name, value in limits.items() if value}

    def check(self, runs: Path, steps: int, new: bool) -> None:
        """Raises ValueError with one sentence when one more training of so many steps is not allowed in `runs`."""
        names = list_runs(runs)
        if self.steps and steps > self.steps:
            raise ValueError(f"On this page a run may have {self.steps:,} steps at most; {steps:,} were asked for.")
        working = [name for name in names if is_busy(Run(runs / name))]
        if self.at_once and len(working) >= self.at_once:
            raise ValueError(
                f"On this page {self.at_once} training may run at a time; wait for {working[0]!r} or stop it."
            )
        if new and self.runs and len(names) >= self.runs:
            raise ValueError(f"On this page {self.runs} runs are kept at most; delete one first.")


def room_for(parameters: int, recipe: Recipe) -> float:
    """Megabytes that the checkpoints of a run take at most.

    parameters: numbers that are trained. Of each a checkpoint holds the weight and Adam's two moments, in 4 bytes each;
    at one time there are those that are kept, the best one and the one that is being written.
    """
    return 12 * parameters * (recipe.keep_last + 2) / 1e6


def check_room(folder: Path, megabytes: float) -> None:
    """Raises ValueError with one sentence when the disk of `folder` has no room for so much and `SPARE` besides."""
    place = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    free = shutil.disk_usage(place).free / 1e6
    if free < megabytes + SPARE:
        raise ValueError(
            f"The checkpoints of this training need about {_size(megabytes)} and the disk has {_size(free)} left, of "
            f"which {_size(SPARE)} stay free; delete a run, or keep fewer checkpoints."
        )


def _size(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes:.0f} MB"


PUBLIC = Limits(at_once=1, runs=6, steps=1000, minutes=15, megabytes=300)


def shell_text(commands: list[list[str]]) -> str:
    """Commands as one line for a shell, each after the success of the one before."""
    return " && ".join(shlex.join(command) for command in commands)


def is_busy(run: Run) -> bool:
    """True while a process trains in this folder, or was started for it and is still preparing."""
    return run.is_running() or is_starting(run)


def is_starting(run: Run) -> bool:
    """True between the start of a process and its first line in the event log."""
    command = run.command()
    if not command or _has_log_since(run, command):
        return False
    # Those that have ended are reaped: as zombies their ids would still count as alive.
    _children[:] = [child for child in _children if child.poll() is None]
    try:
        os.kill(command["process"], 0)
    except (OSError, TypeError, KeyError):
        return False
    return True


def has_failed_to_start(run: Run) -> bool:
    """True when the process that was started last ended before it wrote anything into the event log."""
    command = run.command()
    return bool(command) and not is_busy(run) and not _has_log_since(run, command)


def _has_log_since(run: Run, command: dict) -> bool:
    """Whether the event log holds a line from after the start."""
    last = run.last_event()
    return last is not None and last["time"] > command["time"]


def check_name(runs: Path, name: str) -> Path:
    """The folder of a new run. Raises ValueError with one sentence for a name that is taken or could leave `runs`."""
    name = (name or "").strip()
    if not NAME.fullmatch(name):
        raise ValueError(
            "A run's name begins with a letter or digit and has up to 60 letters, digits, blanks, dots, _ or -."
        )
    if (runs / name).exists():
        raise ValueError(f"There is a run or folder {name!r} already; choose another name.")
    return runs / name


def start(folder: Path, commands: list[list[str]]) -> Run:
    """Runs `commands` (argument lists whose first word is "python") one after the other in a session of their own.

    The text that the page showed is what runs: only "python" is replaced by this interpreter. Output goes to
    `folder`/output.log. Raises ValueError when a process works in the folder already.
    """
    run = Run(folder)
    if is_busy(run):
        raise ValueError(f"A process is training in {folder.name!r} already.")
    folder.mkdir(parents=True, exist_ok=True)
    shell = shell_text(commands)
    line = " && ".join(shlex.join([sys.executable, *command[1:]]) for command in commands)
    with open(folder / "output.log", "ab") as output:
        output.write(f"$ {shell}\n".encode())
        output.flush()
        process = subprocess.Popen(
            ["/bin/sh", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=environment(),
        )
    _children.append(process)
    write_atomic(folder / "command.json", json.dumps({"shell": shell, "process": process.pid, "time": time.time()}))
    return run


def environment() -> dict[str, str]:
    """Environment in which `python -m` finds this project from any folder."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def stop(run: Run) -> None:
    """Asks the run to finish its step, save and end. Raises ValueError if no process trains it."""
    if not is_busy(run):
        raise ValueError(f"{run.folder.name!r} is not running.")
    run.stop_file.touch()


def delete(runs: Path, name: str) -> None:
    """Deletes a run's folder. Raises ValueError when it is running, or is no run directly below `runs`."""
    run = open_run(runs, name)
    if is_busy(run):
        raise ValueError(f"{name!r} is running; stop it first.")
    if run.folder.is_symlink():
        raise ValueError(f"{name!r} is a link to another place; delete it there.")
    shutil.rmtree(run.folder)
