"""The numbers that a training run is made of."""

import dataclasses
import json
import math
import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from training.arguments import MAX_SEED, expect_fields

R = TypeVar("R", bound="Recipe")
MOST = 10**9  # of a field that names no bound of its own
AT_LEAST_1 = (1, MOST)
SHARE = (0, 1)


def setting(default: Any, help: str) -> Any:
    """A field of a recipe: its default, and what it means in the words of the command line's help.

    A class that gives an inherited field another default alone keeps the words: `lr: float = 2e-3`.
    """
    return dataclasses.field(default=default, metadata={"help": help})


def read_presets(module: str, key: str) -> dict[str, dict[str, Any]]:
    """The presets of a recipe, the usual one first: of each the fields in which it differs from the recipe's defaults.

    module: path of the recipe's module, beside which `presets.json` lies; key: of the recipe there. Its "why" is for
    whoever reads the file.
    """
    presets = json.loads(Path(module).with_name("presets.json").read_text(encoding="utf-8"))[key]
    return {name: {field: value for field, value in own.items() if field != "why"} for name, own in presets.items()}


@dataclass
class Recipe:
    """The numbers that every recipe has. A network's recipe derives from it and adds its own.

    The whole dataclass is written to `recipe.json`, so a run folder explains itself.
    """

    # Fields that recipes of earlier versions have, and the value under which they did nothing; no field itself.
    former = dict[str, Any]()
    # The least and the most of a number by its field, where not 0 and `MOST`; each class gives its own.
    bounds: ClassVar[dict[str, tuple[float, float]]] = {
        "seed": (0, MAX_SEED),
        **dict.fromkeys(("steps", "log_every", "save_every", "keep_last", "accumulate", "average"), AT_LEAST_1),
        "threads": (0, 1024),
        "workers": (0, 256),  # each is a process, and they begin all at once
    }

    seed: int = setting(1, "of the weights, the data order, the augmentation and dropout")
    steps: int = setting(1000, "optimizer updates in all")
    log_every: int = setting(20, "updates between two lines of the event log")
    save_every: int = setting(500, "updates between two checkpoints")
    evaluate_every: int = setting(500, "updates between two evaluations and samples; 0 = never")
    keep_last: int = setting(3, "checkpoints kept besides the best one")
    accumulate: int = setting(1, "micro-batches per update")
    precision: str = setting("no", '"no" (fp32) or "bf16" (autocast; fp32 where the hardware has no bf16)')
    compile: bool = setting(False, "torch.compile the modules")
    threads: int = setting(0, "torch's CPU threads; 0 = torch's own choice")
    workers: int = setting(0, "processes that make batches ahead of time, for a GPU that waits for them; 0 = none")
    clip: float = setting(0.0, "largest gradient norm; 0 = no clipping")
    patience: int = setting(0, "evaluations without a better figure after which the run ends; 0 = it does not")
    average: int = setting(1, "checkpoints whose mean is exported")
    max_minutes: float = setting(0.0, "after so long, over all resumes, the run saves and stops; 0 = no limit")
    max_megabytes: float = setting(0.0, "when its folder is larger than this, the run saves and stops; 0 = no limit")

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each field means, by its name; "" where nobody has said it."""
        meanings: dict[str, str] = {}
        for kind in reversed(cls.__mro__):
            if dataclasses.is_dataclass(kind):
                fields = {field.name: field.metadata.get("help", "") for field in dataclasses.fields(kind)}
                meanings |= {name: words for name, words in fields.items() if words or name not in meanings}
        return {field.name: meanings[field.name] for field in dataclasses.fields(cls)}

    @classmethod
    def restore(cls: type[R], values: Mapping[str, Any], **changes: Any) -> R:
        """The recipe of a run folder.

        values: of the fields of its recipe.json, which names the task besides.
        changes: values that go before these.

        Raises ValueError for a value of another type, and for a field that this recipe does not have: the run would go
        on as another one.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        unknown = {name: value for name, value in values.items() if name not in names and name != "task"}
        for name, value in unknown.items():
            if name not in cls.former or value != cls.former[name]:
                raise ValueError(
                    f"The saved recipe has the field {name[:40]!r} ({str(value)[:40]!r}), which a {cls.__name__} does "
                    "not have; it is of another version or network, or was changed by hand."
                )
        known = {name: value for name, value in values.items() if name in names}
        try:
            expect_fields(cls, known)
        except TypeError as error:
            raise ValueError(f"The saved recipe is damaged: {error}") from None
        return cls(**{**known, **changes})

    def check(self) -> None:
        """Raises ValueError with one sentence when fields contradict each other."""
        for name, value in vars(self).items():
            if isinstance(value, (int, float)):
                self._check_number(name, value)
        if self.patience and not self.evaluate_every:
            raise ValueError("patience counts evaluations, so evaluate_every must be more than 0.")
        if self.workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError("workers need a system that can fork processes; set it to 0 here.")
        if self.precision not in ("no", "bf16"):
            raise ValueError(f"precision must be 'no' or 'bf16', but is '{self.precision}'.")

    def _check_number(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, but is {value}.")
        limits = (vars(kind).get("bounds", {}).get(name) for kind in type(self).__mro__)
        least, most = next((bounds for bounds in limits if bounds), (0, MOST))
        if not least <= value <= most:
            bound = f"at least {least}" if value < least else f"at most {most:,}"
            raise ValueError(f"{name} must be {bound}, but is {value}.")
