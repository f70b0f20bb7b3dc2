"""A run is a folder: recipe, event log, checkpoints, samples, and a lock that says whether somebody works on it.

RUN/recipe.json                 the whole recipe and which task it belongs to
RUN/events.jsonl                one JSON object a line: start, log, evaluation, checkpoint, and how it ended
RUN/checkpoints/step-00000500/  model.safetensors, optimizer.safetensors, state.json
RUN/samples/step-00000500/      pictures or texts of fixed inputs
RUN/plan.json                   the learning rate's formula and its values over the whole run
RUN/model/                      what the weights need besides to be used: a tokenizer, its config.json
RUN/data/                       data that was uploaded for this run
RUN/command.json                the command and process, where the page started it
RUN/visitor                     whose browser started it from the page, as a hash
RUN/output.log                  what the process printed, where the page started it
RUN/heartbeat.json              what the process does at this moment: update, losses, phase, time
RUN/lock                        held (flock) by the process that trains; it names the process
RUN/STOP                        asks that process to finish the step, save and end
"""

import contextlib
import dataclasses
import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from training.files import write_atomic
from training.recipe import Recipe

_START_TIME = time.time()
ENDINGS = ("finished", "stopped", "failed")
BEAT_SECONDS = 0.5  # between two heartbeats of one phase


class RunLockError(RuntimeError):
    """Another process trains in the folder."""


class Run:
    """One run folder. Reading is free for everybody; writing needs the lock (`acquire`, `release`).

    The paths of what lies in it are attributes; the list above says what that is.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self.checkpoints = self.folder / "checkpoints"
        self.model = self.folder / "model"
        self.data = self.folder / "data"
        self.events_file = self.folder / "events.jsonl"
        self.stop_file = self.folder / "STOP"
        self._lock: TextIO | None = None
        self._beat: tuple[str, float] = ("", 0.0)  # phase and time of the last heartbeat written here

    def samples(self, step: int) -> Path:
        """Folder of the samples of one update."""
        return self.folder / "samples" / f"step-{step:08d}"

    # -- writing -------------------------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Takes the lock for this process.

        Raises RunLockError when another process trains in this folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = open(self.folder / "lock", "a+", encoding="utf-8")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            owner = handle.read().strip() or "unknown"
            handle.close()
            raise RunLockError(
                f"Another process (number {owner}) is training in '{self.folder.name}'; "
                "stop it first or choose another run folder."
            ) from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        self._lock = handle
        command = self.command()
        ours = command.get("process") in (os.getpid(), os.getppid())
        # A STOP file that is older than this process was meant for the one before it.
        if self.stop_file.exists() and self.stop_file.stat().st_mtime < (command["time"] if ours else _START_TIME):
            self.stop_file.unlink()

    @property
    def holds_lock(self) -> bool:
        """True while this object holds the lock."""
        return self._lock is not None

    def release(self) -> None:
        """Gives the lock back; without one, nothing happens."""
        if self._lock is not None:
            self._lock.close()  # closing drops the flock, as does the end of the process
            self._lock = None

    def write_recipe(self, recipe: Recipe, task: str) -> None:
        """Writes recipe.json: the task's name and every field."""
        text = json.dumps({"task": task, **dataclasses.asdict(recipe)}, indent=1) + "\n"
        write_atomic(self.folder / "recipe.json", text)

    def write_plan(self, formula: str, rates: dict[str, list[tuple[int, float]]]) -> None:
        """Writes plan.json: how the learning rate of each optimizer is meant to go."""
        write_atomic(self.folder / "plan.json", json.dumps(_plain({"formula": formula, "rates": rates})))

    def log(self, event: str, **fields: Any) -> None:
        """Appends one line to the event log. Numbers that are not finite become strings, as JSON has none."""
        record = {"event": event, "time": round(time.time(), 3), **fields}
        line = json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n"
        with open(self.events_file, "a", encoding="utf-8") as file:
            file.write(line)

    def beat(self, phase: str, step: int = 0, losses: dict[str, float] | None = None) -> None:
        """Leaves a sign of life in heartbeat.json, at most every `BEAT_SECONDS` seconds while the phase stays the same.

        phase: "preparing", "training", "evaluating" or "saving".
        step: update that is worked on, or was made last.
        losses: of that update, by name.

        A disk that refuses it does not end the training: nothing depends on this file.
        """
        now = time.monotonic()
        if phase == self._beat[0] and now - self._beat[1] < BEAT_SECONDS:
            return
        self._beat = (phase, now)
        beat = {"phase": phase, "step": step, "losses": losses or {}, "process": os.getpid(), "time": time.time()}
        with contextlib.suppress(OSError):
            write_atomic(self.folder / "heartbeat.json", json.dumps(_plain(beat)))

    def rewind(self, step: int) -> None:
        """Drops what the log says of updates after `step`: a resumed run writes those lines again."""
        if not self.events_file.exists():
            return
        events = [e for e in self.events() if e["event"] not in ENDINGS and e.get("step", 0) <= step]
        write_atomic(self.events_file, "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in events))

    # -- reading -------------------------------------------------------------------------------------------------

    def recipe(self) -> dict[str, Any]:
        """The fields of recipe.json; ValueError when the folder is not a run."""
        recipe = self._read("recipe.json")
        if not isinstance(recipe, dict) or not isinstance(recipe.get("task"), str):
            raise ValueError(f"'{self.folder.name}' is not a run folder: recipe.json is missing or damaged.")
        return recipe

    def _read(self, name: str) -> Any:
        """What a file of the folder holds as JSON; None where it is missing or damaged."""
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None

    def command(self) -> dict[str, Any]:
        """What the page started here last: `shell` (the command as text), `process` (number), `time`; or empty."""
        return self._read("command.json") or {}

    def _tail(self, name: str, size: int) -> list[str]:
        """The lines in the last `size` bytes of a file of the folder; none where there is no such file."""
        try:
            with open(self.folder / name, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - size))
                return file.read().decode("utf-8", errors="replace").replace("\r", "\n").splitlines()
        except OSError:
            return []

    def output(self, lines: int = 40) -> list[str]:
        """The last lines that the process printed, where the page started it."""
        return [line.rstrip() for line in self._tail("output.log", 400 * lines) if line.strip()][-lines:]

    def plan(self) -> dict[str, Any]:
        """`formula` and `rates` of plan.json; empty ones where the file is missing or damaged."""
        return self._read("plan.json") or {"formula": "", "rates": {}}

    def megabytes(self) -> float:
        """Size of all files of the run."""
        size = 0
        for file in self.folder.rglob("*"):
            with contextlib.suppress(OSError):  # deleted meanwhile
                size += file.stat().st_size if file.is_file() else 0
        return size / 1e6

    def events(self) -> Iterator[dict[str, Any]]:
        """The event log, oldest first. A half-written last line (a killed process) is left out."""
        if not self.events_file.exists():
            return
        with open(self.events_file, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue

    def last_event(self) -> dict[str, Any] | None:
        """The newest whole line of the event log, read from its end; None when there is none."""
        for line in reversed(self._tail(self.events_file.name, 2**17)):
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                continue
        return None

    def heartbeat(self) -> dict[str, Any]:
        """What the process that trains here does: `phase`, `step`, `losses`, `time`; empty if no process trains.

        What an earlier process left behind does not count.
        """
        beat, owner = self._read("heartbeat.json"), self._read("lock")
        return beat if self.is_running() and isinstance(beat, dict) and beat.get("process") == owner else {}

    def is_running(self) -> bool:
        """True while a process holds the lock."""
        try:
            with open(self.folder / "lock", encoding="utf-8") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def status(self) -> str:
        """'running', 'finished', 'stopped', 'failed', 'interrupted' (the process is gone without a word) or 'new'."""
        if self.is_running():
            return "running"
        last = self.last_event()
        if last is None:
            return "new"
        return last["event"] if last["event"] in ENDINGS else "interrupted"


def list_runs(folder: Path) -> list[str]:
    """Names of the run folders directly below `folder`, the one that was written last first; empty if there is none."""
    folders = {file.parent for name in ("recipe.json", "command.json") for file in folder.glob(f"*/{name}")}

    def last_write(run: Path) -> float:
        times = [0.0]
        for name in ("recipe.json", "events.jsonl", "command.json"):
            with contextlib.suppress(OSError):  # not written yet, or deleted meanwhile
                times.append((run / name).stat().st_mtime)
        return max(times)

    return [run.name for run in sorted(folders, key=last_write, reverse=True)]


def readable_runs(runs: Path) -> Iterator[tuple[Run, dict[str, Any]]]:
    """The runs of `list_runs` with their recipes; one whose recipe cannot be read is left out."""
    for run in (Run(runs / name) for name in list_runs(runs)):
        try:
            recipe = run.recipe()
        except ValueError:
            continue
        yield run, recipe


def open_run(folder: Path, name: str) -> Run:
    """The run of that name. Raises ValueError for a name that is not in the list, so that no other path is read."""
    if name not in list_runs(folder):
        raise ValueError(f"There is no run {name!r} any more; choose another one.")
    return Run(folder / name)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
