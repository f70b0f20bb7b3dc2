"""The run that is looked at: its state, its progress, its curves, and what it does with fixed inputs, as it learns."""

import secrets
from pathlib import Path

import gradio as gr
from gradio.blocks import Block

from training.run import Run, list_runs, open_run
from ui import messages, theme
from ui.kit import QUICKLY
from ui.services import Services
from ui.train import watch
from ui.train.controls import RunControls
from ui.train.use import CheckpointUse
from ui.translate.attention import KIND_LABELS

EVERY_SECONDS = 2
NO_SAMPLES = ("", 0)


class RunView:
    """Its components are attributes; handlers take values by component and return updates by component."""

    def __init__(self, services: Services) -> None:
        self.services, self.runs = services, services.runs
        self.timer = gr.Timer(EVERY_SECONDS, active=False)
        self.memory = gr.State(NO_SAMPLES)  # whose samples this page shows, and how many there were
        # Lists that change while the page is open accept any value: a tick on its way may still name what was deleted.
        with gr.Row(elem_classes="run-head"):
            with gr.Column(scale=2, min_width=260):
                self.run = theme.component(gr.Dropdown, "run")
                self.controls = RunControls(services, self)
            with gr.Column(scale=3, min_width=260):
                self.status = gr.HTML(elem_id="run-status")
        self.controls.build_folds()
        self.output = theme.component(gr.Textbox, "run-output", max_lines=watch.TAIL, visible=False)
        with gr.Column(visible=False, elem_id="run-view") as self.view:
            self.charts: dict[str, gr.HTML] = {}
            for names in (("losses", "tests"), ("rates", "norms")):
                with gr.Row():
                    for name in names:
                        self.charts[name] = theme.script_component(
                            "train/chart.js", "chart", f"plot-{name}", "card chart-cell", min_width=300
                        )
            self._build_samples()
        self.use = CheckpointUse(services, self)

    def _build_samples(self) -> None:
        with gr.Column(visible=False) as self.samples:
            gr.Markdown(theme.text("train/samples"), elem_classes="section")
            self.step = theme.component(gr.Slider, "sample-step", 0, 1, value=1)
            self.pictures = theme.gallery("Samples", "sample-pictures", columns=1, visible=False)
            self.text = theme.component(gr.Textbox, "sample-text", visible=False)
            with gr.Column(visible=False, elem_id="attention-over-time") as self.attention:
                gr.Markdown("### Attention to one fixed sentence", elem_classes="section")
                with gr.Row():
                    self.kind = theme.component(gr.Radio, "sample-kind", KIND_LABELS, value="cross")
                    self.head = theme.component(gr.Dropdown, "sample-head")
                self.map = theme.heat_map("sample-map")

    @property
    def sample_places(self) -> list:
        """What the samples of a step fill."""
        return [self.samples, self.memory, self.step, self.pictures, self.text, self.attention, self.head, self.map]

    @property
    def components(self) -> list:
        """All that `show` may update."""
        return [self.run, self.status, self.view, self.output, *self.charts.values(), *self.sample_places,
                *self.controls.components, *self.use.components]  # fmt: skip

    # -- updates ---------------------------------------------------------------------------------------------------

    def show(self, name: str | None, values: dict | None = None, fresh: bool = True) -> dict:
        """Reads a run again.

        Args:
            name: of the run; the newest one is shown where there is none of that name.
            values: of the components that say what of it is looked at; None: its newest sample.
            fresh: shows samples even if they are not new.
        """
        names = list_runs(self.runs)
        if not names:
            return self._nothing(fresh)
        is_missing = bool(name) and name not in names
        # A tick says nothing about which run is chosen: a visitor may have chosen another one while it was on its way.
        choices = gr.update(choices=names)
        if fresh or name not in names:
            name = name if name in names else names[0]
            choices = gr.update(choices=names, value=name)
        try:
            snapshot = watch.look(open_run(self.runs, name))
            updates = {**self._steady(snapshot), **self._samples(snapshot, values or {}, fresh)}
            updates |= self.controls.refresh(snapshot, values or {}) | self.use.refresh(snapshot, values or {}, fresh)
        except Exception as error:  # a run that is being written or deleted must not stop the page
            away = gr.update(visible=False)
            alert = messages.failure(error)
            return {self.run: choices, self.status: alert, self.view: away, self.output: away}
        if is_missing:
            updates[self.controls.note] = messages.status(
                "That run was deleted; this is the one that was written last."
            )
        return {self.run: choices, **updates}

    def _nothing(self, fresh: bool) -> dict:
        """While there is no run."""
        away = gr.update(visible=False)
        note = f"There is no run in the folder {self.runs.name!r} yet; start one."
        return {
            self.run: gr.update(choices=[], value=None) if fresh else gr.update(choices=[]),
            self.status: messages.status(note),
            self.view: away,
            self.output: away,
            **self.controls.hide(),
            self.use.view: away,
        }

    def _steady(self, snapshot: watch.RunSnapshot) -> dict:
        """State, progress and curves."""
        tail = watch.output_of(snapshot)
        charts = {"losses": watch.losses(snapshot), "tests": watch.tests(snapshot), "rates": watch.rates(snapshot),
                  "norms": watch.norms(snapshot)}  # fmt: skip
        return {
            self.status: watch.status_html(snapshot),
            self.view: gr.update(visible=bool(snapshot.log)),
            self.output: gr.update(value=tail, visible=bool(tail)),
            **{self.charts[name]: chart for name, chart in charts.items()},
        }

    def _samples(self, snapshot: watch.RunSnapshot, values: dict, fresh: bool) -> dict:
        """The sample that is looked at, where it is new or another one; the end of the slider follows what is new."""
        steps, name = watch.sample_steps(snapshot.run), snapshot.run.folder.name
        if not steps:
            return {self.samples: gr.update(visible=False), self.memory: (name, 0)}
        whose, count = values.get(self.memory, NO_SAMPLES)
        if not fresh and (whose, count) == (name, len(steps)):
            return {}
        index = values.get(self.step)
        if index is None or whose != name or index >= count - 1 or index >= len(steps):
            index = len(steps) - 1
        return self.sample(snapshot.run, steps, int(index), values.get(self.kind) or "cross", values.get(self.head))

    def sample(self, run: Run, steps: list[int], index: int, kind: str, head: str | None) -> dict:
        """The sample number `index`: pictures, texts, and one map of attention."""
        step = steps[index]
        pictures, words = watch.read_samples(run, step)
        attention = watch.read_attention(run, step)
        choices = watch.head_choices(attention, kind) if attention else []
        head = head if head in [key for _, key in choices] else (choices[0][1] if choices else None)
        updates = {
            self.samples: gr.update(visible=True),
            self.memory: (run.folder.name, len(steps)),
            self.step: gr.update(
                maximum=max(1, len(steps) - 1),
                value=index,
                label=f"Sample after step {step:,}",
                interactive=len(steps) > 1,
            ),
            self.pictures: gr.update(value=pictures, visible=bool(pictures)),
            self.text: gr.update(value=words, visible=bool(words)),
            self.attention: gr.update(visible=attention is not None),
            self.head: gr.update(choices=choices, value=head),
        }
        if attention and head:
            updates[self.map] = watch.attention_map(attention, kind, head, step)
        return updates

    # -- handlers --------------------------------------------------------------------------------------------------

    def newest(self, values: dict) -> dict:
        """Another run was chosen, or the tab was opened: its newest sample."""
        visitor = values.get(self.controls.visitor) or secrets.token_urlsafe(16)
        choice = {one: values[one] for one in (self.kind, self.head)} | {self.controls.visitor: visitor}
        return {**self.show(values[self.run], choice), self.controls.visitor: visitor}

    def tick(self, values: dict) -> dict:
        """As `show`, but pictures, texts and maps are only sent again when there are newer ones."""
        return self.show(values[self.run], values, fresh=False)

    def scrub(self, values: dict) -> dict:
        """Another moment, another kind of attention or another head."""
        try:
            run = open_run(self.runs, values[self.run])
            steps = watch.sample_steps(run)
            index = min(int(values[self.step]), len(steps) - 1)
            return self.sample(run, steps, index, values[self.kind], values[self.head])
        except Exception:  # deleted meanwhile: the next tick says so
            return gr.skip()

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self, tab: gr.Tab, others: list[gr.Tab], folder: Path) -> None:
        """Connect the components with the handlers. tab: the page's tab; others: those that put it out of sight;
        folder: where zips for visitors are made.
        """
        self.controls.wire()
        choice: set[Block] = {self.run, self.kind, self.head, self.controls.visitor}
        tab.select(self.newest, choice, self.components, api_name="open_runs", **QUICKLY)
        tab.select(lambda: gr.Timer(active=True), None, self.timer, api_name="watch", **QUICKLY)
        for other in others:
            other.select(lambda: gr.Timer(active=False), None, self.timer, api_name="unwatch", **QUICKLY)
        # A sample's number and a new range may cross on their way, which Gradio's own checks call an error.
        raw = {**QUICKLY, "preprocess": False}
        sample_inputs: set[Block] = {self.run, self.step, self.kind, self.head}
        own = {self.controls.from_step, self.controls.note_run, self.controls.visitor}
        inputs: set[Block] = {*sample_inputs, self.memory, self.use.choice, *own}
        self.timer.tick(self.tick, inputs, self.components, api_name="tick", **raw)
        self.run.input(self.newest, choice, self.components, api_name="choose_run", **QUICKLY)
        for control in (self.step, self.kind, self.head):
            control.input(self.scrub, sample_inputs, self.sample_places, trigger_mode="always_last", **raw)
        self.use.wire(folder)
