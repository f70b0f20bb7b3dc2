"""A new run that begins as a copy of another one at one of its checkpoints."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from training.checkpoint import find_checkpoint, step_of
from training.run import ENDINGS, Run


def fork(run: Run, source: Run, step: int | None = None) -> dict[str, Any]:
    """Makes the new folder of `run` begin as a copy of `source`; returns the recipe's fields, which may be changed.

    The log and the samples up to there come along, and uploaded data, so that either run may be deleted.
    step: which checkpoint, None = the newest. Raises ValueError when there is none, or the folder of `run` is in use.
    """
    if any(run.events()) or run.checkpoints.exists():
        raise ValueError(f"'{run.folder.name}' already holds a run; choose another folder for the fork.")
    fields = source.recipe()
    checkpoint = find_checkpoint(source.checkpoints, step)
    step = step_of(checkpoint)
    run.folder.mkdir(parents=True, exist_ok=True)
    parts = [source.model, source.data] + [
        f for f in (source.folder / "samples").glob("step-*") if int(f.name[5:]) <= step
    ]
    for part in filter(Path.is_dir, parts):
        # Nothing in these folders is ever written again, so a second name for each file is enough.
        shutil.copytree(part, run.folder / part.relative_to(source.folder), copy_function=_link, dirs_exist_ok=True)
    events = [e for e in source.events() if e["event"] not in ENDINGS and e.get("step", 0) <= step]
    run.events_file.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in events), encoding="utf-8")
    run.log("fork", step=step, source=source.folder.name)
    part = run.checkpoints / f".part-fork-{step}"
    shutil.copytree(checkpoint, part)
    os.replace(part, run.checkpoints / checkpoint.name)
    old, new = str(source.data), str(run.data)
    return {k: new + v[len(old) :] if isinstance(v, str) and v.startswith(old) else v for k, v in fields.items()}


def _link(source: str, target: str) -> None:
    """A second name for a file; a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
