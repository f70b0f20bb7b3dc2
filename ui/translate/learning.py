"""The view "Learning": one sentence read by the models of a training, from its first updates to its last."""

import math
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from training.run import Run, list_runs, open_run
from transformer import series as recording
from transformer.series import Moment, Series
from ui import theme
from ui.kit import QUICKLY, alerts
from ui.translate.answers import learning_answer, save
from ui.translate.attention import draw_map
from ui.translate.layers import table
from ui.translate.view import ON_DEVICE, STATE_SECONDS, View
from ui.translate.words import numbered

RECORDING = "shipped"
SENTENCE = "A young girl is eating a red apple."
MOST_CHARACTERS = 300


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def choices(runs: Path) -> list[tuple[str, str]]:
    """(label, key) of what can be looked at: the shipped series, and the runs of a Transformer."""
    entries = []
    try:
        entries.append((f"Recorded: {recording.load_example().name}", RECORDING))
    except (ValueError, FileNotFoundError):
        pass
    for name in list_runs(runs):
        try:
            if Run(runs / name).recipe().get("task") == "TranslationTask":
                entries.append((f"run {name}", f"run:{name}"))
        except ValueError:
            continue
    return entries


def moments(runs: Path, key: str, text: str) -> list[Moment]:
    """The sentence as each model of a series reads it, oldest first.

    key: of `choices`. Raises ValueError with one sentence for another key, an empty or a very long text.
    """
    text = (text or "").strip()
    if not text:
        raise ValueError("Enter a sentence for the models to read.")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"Enter a sentence of at most {MOST_CHARACTERS} characters.")
    if key == RECORDING:
        return _read(recording.load_example(), text)
    if not str(key).startswith("run:"):
        raise ValueError("Choose a recorded series or a run of the list.")
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
    return table(["update", "translation", "entropy (nats)", "BLEU"], rows, "One sentence at every update")


def map_at(readings: Sequence[Moment], place: int, layer: int, head: int) -> dict | None:
    """The cross-attention of one head at one moment; None where nothing was decoded."""
    attention = readings[place].attention
    if attention is None:
        return None
    value = draw_map(attention, "cross", min(layer, len(attention.cross) - 1), head)
    return {**value, "title": f"Update {readings[place].step:,}: {value['title']}"}


# -- the view ---------------------------------------------------------------------------------------------------------


class LearningView(View):
    """Attention appears while a small model learns."""

    name = "learning"
    title = "Learning"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("translate/learning"), elem_classes="section")
        self.readings = gr.State([], time_to_live=STATE_SECONDS)
        with gr.Row():
            entries = choices(self.services.runs)
            first = entries[0][1] if entries else None
            self.series = gr.Dropdown(entries, value=first, label="Training", min_width=180, elem_id="learning-series")
            self.text = gr.Textbox(SENTENCE, label="Sentence", scale=3, min_width=260, elem_id="learning-text")
            self.read = gr.Button("Read it", variant="primary", min_width=100, elem_id="learning-read")
        self.note = gr.HTML(elem_id="learning-note")
        with gr.Column(visible=False) as self.results:
            with gr.Row():
                self.place = gr.Slider(1, 2, value=1, step=1, label="Moment", scale=3, elem_id="learning-place")
                self.layer = gr.Dropdown([], label="Layer", min_width=80, elem_id="learning-layer")
                self.head = gr.Dropdown([], label="Head", min_width=80, elem_id="learning-head")
            self.map = theme.heat_map("learning-map")
            self.table = gr.HTML(elem_id="learning-table")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        outputs = [self.readings, self.note, self.results, self.place, self.layer, self.head, self.map, self.table]
        gr.on(
            [self.read.click, self.text.submit],
            self.read_series,
            [self.series, self.text],
            outputs,
            api_name="learning",
            **ON_DEVICE,
        )
        self.series.focus(self.offer, None, self.series, api_name="learning_series", **QUICKLY)
        inputs = [self.readings, self.place, self.layer, self.head]
        for name in ("place", "layer", "head"):
            getattr(self, name).input(
                self.draw,
                inputs,
                [self.map, self.table],
                api_name=f"learning_{name}",
                trigger_mode="always_last",
                preprocess=False,  # a value and a new range may cross on their way, which Gradio calls an error
                **QUICKLY,
            )
        self.save_with(inputs, self.write)

    def offer(self):
        """The trainings that are there now."""
        return gr.update(choices=choices(self.services.runs))

    @alerts("note")
    def read_series(self, key, text):
        """The sentence at every moment of the chosen training."""
        readings = moments(self.services.runs, key, text)
        return {
            self.readings: readings,
            self.note: "",
            self.results: gr.update(visible=True),
            **self._controls(readings),
        }

    def _controls(self, readings: list[Moment]) -> dict:
        shapes = [one.attention.cross.shape for one in readings if one.attention is not None]
        layers, heads = (shapes[0][0], shapes[0][1]) if shapes else (1, 1)
        last, layer, head = len(readings), layers - 1, 0
        return {
            self.place: gr.update(maximum=max(2, last), value=last, info=f"1 to {last}, oldest first"),
            self.layer: gr.update(choices=numbered(layers), value=layer),
            self.head: gr.update(choices=numbered(heads), value=head),
            self.map: map_at(readings, last - 1, layer, head),
            self.table: moments_html(readings, layer, head),
        }

    def draw(self, readings, place, layer, head):
        """One moment's map; the table's entropies are those of the same head."""
        if not readings:
            return gr.skip()
        place = min(max(1, int(place)), len(readings))
        updates: dict[Any, Any] = {self.map: map_at(readings, place - 1, int(layer), int(head))}
        return {**updates, self.table: moments_html(readings, int(layer), int(head))}

    def write(self, folder: Path, readings, place, layer, head) -> list[Path]:
        """What is shown, as files."""
        if not readings:
            raise ValueError("Read a sentence first.")
        answer = learning_answer(readings, min(max(1, int(place)), len(readings)) - 1, int(layer), int(head))
        sentence = readings[0].translation.sentences[0].source_text
        return save(answer, sentence, moments_html(readings, int(layer), int(head)), folder)
