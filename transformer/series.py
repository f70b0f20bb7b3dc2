"""A training as a series of small models.

A class sees attention appear when one sentence is translated by each of them. A run folder is such a series as long as
its checkpoints are kept; recording keeps the chosen ones as weights in half precision with one tokenizer:

    series.json                  updates and the figures of the evaluations
    tokenizer.model
    step-00000100/config.json, model.safetensors
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from training import assets
from training.checkpoint import list_checkpoints, step_of
from training.run import Run
from transformer.export import export
from transformer.insight.interpret import statistics
from transformer.translator import Attention, Translation, Translator

FORMAT = "atelier-series-1"


@dataclass
class Moment:
    """What the model of one update makes of a sentence."""

    step: int  # update
    translation: Translation
    attention: Attention | None  # None where the translation is empty
    figures: dict[str, float] = field(default_factory=dict)  # of the run's last evaluation: bleu, perplexity ...
    evaluation_step: int | None = None  # the update of that evaluation, None before the first one

    def entropy(self, kind: str, layer: int, head: int) -> float:
        """Mean entropy of one head's rows in nats; nan where there is no attention. layer and head count from 0."""
        if self.attention is None:
            return float("nan")
        weights = getattr(self.attention, kind)[layer : layer + 1, head : head + 1]
        return float(statistics(weights).entropy[0, 0])


class Series:
    """The models of one training, oldest first; each is loaded when it is asked for, and only one is kept."""

    def __init__(self, folders: dict[int, Path], figures: dict[int, dict[str, float]], name: str) -> None:
        """folders: update -> model folder; figures: update of an evaluation -> its figures; name: for messages."""
        self.folders, self.figures, self.name = dict(sorted(folders.items())), figures, name

    @property
    def steps(self) -> list[int]:
        """The updates at which there is a model, rising."""
        return list(self.folders)

    @classmethod
    def load(cls, folder: Path | str) -> Series:
        """A recorded series. Raises `ValueError` with one sentence for a folder that holds none."""
        folder = Path(folder)
        try:
            about = json.loads((folder / "series.json").read_text(encoding="utf-8"))
            figures = {int(step): dict(one) for step, one in about["figures"].items()}
            folders = {int(step): folder / step_folder(int(step)) for step in about["steps"]}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"'{folder.name}' holds no recorded series: series.json is missing or damaged.") from None
        if about.get("format") != FORMAT or not folders:
            raise ValueError(f"'{folder.name}' holds no recorded series of this program.")
        return cls(folders, figures, folder.name)

    def translator(self, step: int) -> Translator:
        """The model after update `step`. Raises `ValueError` that lists the updates if there is none."""
        if step not in self.folders:
            steps = ", ".join(map(str, self.steps))
            raise ValueError(f"'{self.name}' has no model of update {step}; it has {steps}.")
        return Translator.from_pretrained(self.folders[step], device="cpu")

    def figures_at(self, step: int) -> dict[str, float]:
        """The figures of the last evaluation up to update `step`; empty before the first one."""
        at = self.evaluation_step(step)
        return {} if at is None else self.figures[at]

    def evaluation_step(self, step: int) -> int | None:
        """The update of the last evaluation up to update `step`; None before the first one."""
        return max((one for one in self.figures if one <= step), default=None)

    def moment(self, text: str, step: int) -> Moment:
        """One sentence read greedily by the model of update `step`, and its attention; raises what `translate` does."""
        translator = self.translator(step)
        translation = translator.translate(text, beam=1)
        has_output = bool(translation.sentences[0].ids and translation.sentences[0].ids[0])
        attention = translator.attend(translation) if has_output else None
        return Moment(step, translation, attention, self.figures_at(step), self.evaluation_step(step))


def step_folder(step: int) -> str:
    """Name of the folder of one update, as the checkpoints of a run have it."""
    return f"step-{step:08d}"


def evaluations(run: Run) -> dict[int, dict[str, float]]:
    """Update -> figures of each evaluation in a run's log."""
    return {
        event["step"]: {name: value for name, value in event["figures"].items() if isinstance(value, (int, float))}
        for event in run.events()
        if event["event"] == "evaluation"
    }


def record(run: Path, out: Path, steps: list[int] | None = None) -> Series:
    """Writes checkpoints of a run as a series and opens it.

    Args:
        run: folder of a run of the Transformer.
        out: folder to write; it must not exist or be empty.
        steps: updates to keep; None = every checkpoint that is there.

    Raises `ValueError` with one sentence for another network's run, a checkpoint that is not there, and a full folder.
    """
    updates = steps or [step_of(folder) for folder in list_checkpoints(run / "checkpoints")]
    if not updates:
        raise ValueError(f"'{run.name}' has no checkpoint yet.")
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"'{out.name}' is not empty; name a new folder.")
    for step in updates:
        export(run, out / step_folder(step), step)
        (out / step_folder(step) / "tokenizer.model").replace(out / "tokenizer.model")
    figures = {str(step): one for step, one in evaluations(Run(run)).items()}
    about = {"format": FORMAT, "steps": sorted(updates), "figures": figures}
    (out / "series.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return Series.load(out)


def load_example() -> Series:
    """The recorded series that comes with the project. Raises `ValueError` if it is not there."""
    folders = sorted((assets.assets_dir() / "series").glob("*/series.json"))
    if not folders:
        raise ValueError("No recorded series is installed; train a small Transformer and look at its run instead.")
    return Series.load(folders[0].parent)
