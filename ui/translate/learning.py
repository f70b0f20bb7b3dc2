"""How something was learnt: one sentence read by the models of a training, from its first updates to its last."""

import math
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from training.run import open_run, readable_runs
from transformer import series as recording
from transformer.series import Moment, Series
from ui.translate.answers import scroll_table
from ui.translate.attention import draw_map

RECORDING = "shipped"
SENTENCE = "A young girl is eating a red apple."
MAX_CHARACTERS = 300


def choices(runs: Path) -> list[tuple[str, str]]:
    """(label, key) of what can be looked at: the shipped series, and the runs of a Transformer."""
    entries = []
    try:
        entries.append((f"Recorded: {recording.load_example().name}", RECORDING))
    except (ValueError, FileNotFoundError):
        pass
    names = (run.folder.name for run, recipe in readable_runs(runs) if recipe["task"] == "TranslationTask")
    return entries + [(f"run {name}", f"run:{name}") for name in names]


def moments(runs: Path, key: str, text: str) -> list[Moment]:
    """The sentence as each model of a series reads it, oldest first.

    key: of `choices`. Raises ValueError with one sentence for another key, an empty or a very long text.
    """
    text = (text or "").strip()
    if not text:
        raise ValueError("Enter a sentence for the models to read.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"Enter a sentence of at most {MAX_CHARACTERS} characters.")
    if key == RECORDING:
        return _read(recording.load_example(), text)
    if not str(key).startswith("run:"):
        raise ValueError("Choose a recorded series or a run from the list.")
    run = open_run(runs, str(key).removeprefix("run:"))
    with tempfile.TemporaryDirectory(prefix="atelier-series-") as folder:
        return _read(recording.record(run.folder, Path(folder) / "series"), text)


def _read(series: Series, text: str) -> list[Moment]:
    return [series.moment(text, step) for step in series.steps]


def moments_html(readings: Sequence[Moment], layer: int, head: int) -> str:
    """Every update's translation, the entropy of the head that is looked at, and the run's BLEU."""
    rows = []
    for one in readings:
        entropy, bleu = one.entropy("cross", layer, head), one.figures.get("bleu")
        at = "" if one.evaluation_step == one.step else f" <small>at {one.evaluation_step:,}</small>"
        rows.append(
            f'<th scope="row">{one.step:,}</th><td dir="auto">{escape(one.translation.text)}</td>'
            f"<td>{'–' if math.isnan(entropy) else f'{entropy:.2f}'}</td>"
            f"<td>{'–' if bleu is None else f'{bleu:.1f}{at}'}</td>"
        )
    return scroll_table(["update", "translation", "entropy (nats)", "BLEU"], rows, "One sentence at every update")


def map_at(readings: Sequence[Moment], place: int, layer: int, head: int) -> dict | None:
    """The cross-attention of one head at one moment; None where nothing was decoded."""
    attention = readings[place].attention
    if attention is None:
        return None
    value = draw_map(attention, "cross", min(layer, len(attention.cross) - 1), head)
    return {**value, "title": f"Update {readings[place].step:,}: {value['title']}"}
