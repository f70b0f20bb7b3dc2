"""Which trained pairs of networks the Digits view may use, and the digits that samples are compared with."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from gan import export, sampling
from gan.digits import SIDE, read_digits, read_idx, to_rows
from gan.networks import Pair
from training import assets
from training.checkpoint import list_checkpoints, step_of
from training.run import Run, list_runs, open_run
from training.weights import load_config
from ui.services import LRUCache, Services

OWN = "digits"
MAX_DIGITS = 10_000  # digits that a sample's nearest one is looked for among
NO_WEIGHTS = (
    "No weights for digits are shipped with this installation: train them with `python -m gan.train --preset digits "
    "--data FOLDER --run runs/digits`, and every checkpoint stands in the list here."
)


def shipped_model() -> Path | None:
    """The shipped model's folder, if there is one."""
    try:
        return assets.model_dir(OWN)
    except FileNotFoundError:
        return None


def runs_of_digits(services: Services) -> dict[str, list[int]]:
    """Name -> updates of the checkpoints, oldest first, of the runs whose networks make digits."""
    runs = {}
    for name in list_runs(services.runs):
        run = Run(services.runs / name)
        try:
            fits = run.recipe().get("task") == "GanTask" and load_config(run.model).get("data") == SIDE * SIDE
        except ValueError:
            continue
        steps = [step_of(folder) for folder in list_checkpoints(run.checkpoints)]
        if fits and steps:
            runs[name] = steps
    return runs


def folder_of_digits(services: Services) -> str:
    """The folder with digits that a run of this page learnt from, if it is still there; else nothing."""
    for name in runs_of_digits(services):
        folder = str(Run(services.runs / name).recipe().get("data") or "")
        if Path(folder).expanduser().is_dir():
            return folder
    return ""


def choices(services: Services) -> list[tuple[str, str]]:
    """(label, key) of all pairs: the shipped one, then runs, each with its newest checkpoint."""
    pairs = [("digits, shipped", OWN)] if shipped_model() else []
    return pairs + [(f"run {name}", f"run:{name}") for name in runs_of_digits(services)]


class DigitModels:
    """Pairs of networks and sets of digits, each loaded at first use; the last few are kept."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._pairs = LRUCache(self._load, 3)
        self._digits = LRUCache(self._read, 2)

    def pair(self, key: str | None, step: int | None = None) -> Pair:
        """Networks of a key (None: the first), at a checkpoint of its run. Raises ValueError with one sentence."""
        keys = [name for _, name in choices(self.services)]
        if not keys:
            raise ValueError(NO_WEIGHTS)
        if (key := key or keys[0]) not in keys:
            raise ValueError("These networks are gone; choose others from the list.")
        return self._pairs(key if key == OWN or step is None else f"{key}@{int(step)}")

    def _load(self, key: str) -> Pair:
        if key == OWN:
            return sampling.load(OWN)
        name, _, step = key.removeprefix("run:").partition("@")
        return export.pair_of(open_run(self.services.runs, name).folder, int(step) if step else None)

    def comparison_digits(self, place: str) -> Tensor:
        """Training digits of a folder, or the first ten thousand of an uploaded file, as rows."""
        return self._digits(place)

    def _read(self, place: str) -> Tensor:
        path = Path(place)
        if not path.exists():
            raise ValueError(f"There is no folder or file '{path.name}' on this machine.")
        rows = read_digits(path).train if path.is_dir() else to_rows(read_idx(path)[:MAX_DIGITS])
        return rows[:MAX_DIGITS]


def evaluation() -> dict[str, Any] | None:
    """The measured Parzen scores beside the shipped weights, or None."""
    folder = shipped_model()
    file = folder / "evaluation.json" if folder else None
    if file is None or not file.is_file():
        return None
    return json.loads(file.read_text(encoding="utf-8"))


def history() -> dict[int, Path]:
    """Update -> sheet of samples of fixed z during the training of the shipped weights, oldest first."""
    folder = shipped_model()
    files = (folder / "history").glob("step-*.png") if folder else []
    return {int(file.stem[5:]): file for file in sorted(files)}
