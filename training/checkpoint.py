"""Checkpoints that are whole or absent: written beside, flushed to disk, then renamed."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from training.task import Task
from training.weights import fill, read_tensors

PREFIX = "step-"


def step_of(folder: Path) -> int:
    """Update number in a checkpoint folder's name."""
    return int(folder.name[len(PREFIX) :])


def list_checkpoints(checkpoints: Path) -> list[Path]:
    """Whole checkpoints, oldest first. Half-written ones have another name and are never listed."""
    if not checkpoints.is_dir():
        return []
    return sorted(
        (f for f in checkpoints.iterdir() if f.name.startswith(PREFIX) and (f / "state.json").is_file()), key=step_of
    )


def latest_checkpoint(checkpoints: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    folders = list_checkpoints(Path(checkpoints))
    return folders[-1] if folders else None


def find_checkpoint(checkpoints: Path, step: int | None = None) -> Path:
    """The checkpoint of update `step`, or the newest one. Raises ValueError that lists what there is."""
    folders = {step_of(folder): folder for folder in list_checkpoints(checkpoints)}
    if not folders:
        raise ValueError(f"'{checkpoints.parent.name}' has no checkpoint yet.")
    if step is not None and step not in folders:
        raise ValueError(
            f"'{checkpoints.parent.name}' has no checkpoint of update {step}; it has {', '.join(map(str, folders))}."
        )
    return folders[max(folders) if step is None else step]


def save_checkpoint(
    checkpoints: Path, step: int, task: Task, generator_states: dict[str, Tensor], extra: dict[str, Any]
) -> Path:
    """Writes everything that is needed to continue after update `step`; returns its folder.

    generator_states: of the random generators, by name; extra: what else state.json holds, JSON values.
    Raises OSError when the disk is full; nothing half-written remains under a checkpoint's name.
    """
    checkpoints.mkdir(parents=True, exist_ok=True)
    target, part = checkpoints / f"{PREFIX}{step:08d}", checkpoints / f".part-{step:08d}"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        models = {
            f"{name}/{key}": value.detach().cpu().contiguous().clone()
            for name, module in task.modules.items()
            for key, value in module.state_dict().items()
        }
        save_file(models, part / "model.safetensors")
        tensors, groups = {}, {}
        for name, optimizer in task.optimizers.items():
            state = optimizer.state_dict()
            groups[name] = state["param_groups"]
            for index, values in state["state"].items():
                for key, value in values.items():
                    tensors[f"{name}/{index}/{key}"] = torch.as_tensor(value).detach().cpu().contiguous().clone()
        tensors.update({f"generator/{name}": value for name, value in generator_states.items()})
        save_file(tensors, part / "optimizer.safetensors")
        (part / "state.json").write_text(
            json.dumps({"step": step, "param_groups": groups, **extra}, indent=1), encoding="utf-8"
        )
        for file in part.iterdir():
            _flush(file)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(part, target)
        _flush(checkpoints)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return target


def load_checkpoint(folder: Path, task: Task) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Restores modules and optimizers of `task`; returns state.json and the random generators' states.

    Raises ValueError with one sentence when a file is damaged, or the weights are of another network or size.
    """
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        groups = state["param_groups"]
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"state.json in '{folder.name}' is damaged; delete this checkpoint and resume.") from None
    models = read_tensors(folder / "model.safetensors")
    for name, module in task.modules.items():
        fill(module, _module_tensors(models, name), f"the module '{name}' of this recipe")
    tensors = read_tensors(folder / "optimizer.safetensors")
    for name, optimizer in task.optimizers.items():
        values: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            # A random generator's state has no index: "generator/cpu-0", also beside an optimizer of that name.
            if key.startswith(name + "/") and key.count("/") == 2:
                _, index, field = key.split("/")
                values.setdefault(int(index), {})[field] = value
        if name not in groups:
            raise ValueError(f"The checkpoint holds no state of the optimizer '{name}': it is of another recipe.")
        optimizer.load_state_dict({"state": values, "param_groups": groups[name]})
    generators = {k.split("/", 1)[1]: v for k, v in tensors.items() if k.startswith("generator/") and k.count("/") == 1}
    return state, generators


def _module_tensors(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """What is called `name`/KEY, by its KEY."""
    return {key.removeprefix(f"{name}/"): value for key, value in tensors.items() if key.startswith(f"{name}/")}


def prune(checkpoints: Path, keep_last: int, best: int | None) -> None:
    """Deletes all but the newest `keep_last` checkpoints and the one of update `best`."""
    for folder in list_checkpoints(checkpoints)[:-keep_last]:
        if step_of(folder) != best:
            shutil.rmtree(folder, ignore_errors=True)


def module_state(checkpoint: Path, module: str = "model") -> dict[str, Tensor]:
    """One module's state_dict out of a checkpoint folder."""
    state = _module_tensors(read_tensors(Path(checkpoint) / "model.safetensors"), module)
    if not state:
        raise ValueError(f"The checkpoint '{Path(checkpoint).name}' holds no module named '{module}'.")
    return state


def average_checkpoints(run: Path | str, n: int, module: str = "model", last: int | None = None) -> dict[str, Tensor]:
    """Mean of the last `n` checkpoints' weights (section 6.1 of Attention Is All You Need: 5 for base, 20 for big).

    last: update of the newest one that counts; None = the run's newest. Raises ValueError when there are fewer than
        `n`.
    """
    folders = [f for f in list_checkpoints(Path(run) / "checkpoints") if last is None or step_of(f) <= last][-n:]
    if len(folders) < n:
        raise ValueError(f"The run has {len(folders)} checkpoints, so the last {n} cannot be averaged.")
    mean: dict[str, Tensor] = {}
    for folder in folders:
        for name, value in module_state(folder, module).items():
            if value.is_floating_point():
                mean[name] = mean.get(name, 0) + value.double() / n
            else:
                mean[name] = value
    return {name: value.float() if value.is_floating_point() else value for name, value in mean.items()}


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
