"""The Train tab's upper half: what shall learn, from what, how long; everything else is folded away."""

import json
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import Block

from training import start
from training.run import Run, list_runs, readable_runs
from ui import messages, theme
from ui.gradio_private import hold
from ui.kit import QUICKLY, QUIETLY, alerts
from ui.services import Services
from ui.train import recipes
from ui.train.controls import sign
from ui.train.data import BUNDLE, FILE_TYPES, LOCAL, UPLOAD, Data
from ui.train.networks import COMMON, FINE_TUNING_SHARE, MAX_OWN_SETTINGS, NETWORKS, RATE_FIELDS, settings_of
from ui.train.survey import Survey, columns, guess_columns
from ui.train.view import RunView

TIMING_STEPS, MEASURE_SECONDS = 3, 180
TABLE_FIELDS = ("vocab_size", "max_length", "tokens")  # settings that follow a table
PREVIEW_LETTERS = 160  # of a pair in the preview
FEW_PAIRS = 500  # pairs; of fewer a network learns the pairs themselves, and no language
COSTLY = ("size", "batch", "tokens", "height", "width", "pictures_wide", "reduce", "precision", "accumulate", "gan")


# -- without Gradio -------------------------------------------------------------------------------------------------


def free_name(runs: Path, network: str, preset: str) -> str:
    """A name that no run has yet."""
    number = 1
    while (runs / f"{network}-{preset}-{number}").exists():
        number += 1
    return f"{network}-{preset}-{number}"


def past_time(runs: Path, network: str, fields: dict[str, Any]) -> tuple[float, str] | None:
    """Seconds a step of a run on this machine with the same sizes, and its name; None if there is none."""
    for run, recipe in readable_runs(runs):
        same = all(recipe.get(field) == fields[field] for field in COSTLY if field in fields)
        if recipe.get("task") != NETWORKS[network].task or not same:
            continue
        times = [event["seconds_per_step"] for event in run.events() if event["event"] == "log"]
        if times:
            return sorted(times)[len(times) // 2], f"in the run {run.folder.name}"
    return None


def measure(network: str, preset: str, fields: dict[str, Any]) -> dict[str, float]:
    """Times a few steps on this machine in a process of its own. Raises ValueError with one sentence when it fails."""
    words = ["--preset", preset, *recipes.options(fields), "--time", str(TIMING_STEPS)]
    try:
        process = subprocess.run(
            [sys.executable, *NETWORKS[network].words[1:], *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=MEASURE_SECONDS,
            stdin=subprocess.DEVNULL,
            env=start.environment(),
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{TIMING_STEPS} steps took more than {MEASURE_SECONDS} s here; this preset is for a larger machine."
        ) from None
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"The steps could not be timed: {last.removeprefix('error: ')}")
    return json.loads(process.stdout.strip().splitlines()[-1])


def survey_html(table: Survey, fields: dict[str, Any]) -> str:
    """What a table holds: how many pairs, how long, and the first of them; `fields`: of the run."""
    more = "" if table.whole else "the first "
    line = f"{more}{len(table.pairs):,} pairs, the longest text has {table.lengths[-1]:,} characters".capitalize()
    out = table.count_too_long(fields)
    if out:
        exactly = "" if len(table.pairs) <= 2000 else "up to "
        line += f"; {exactly}{out:,} of them are longer than {fields['max_length']:,} word pieces and are left out"
    few = (
        f"{len(table.pairs):,} pairs can only be memorised: the network will know these texts by heart and translate "
        "no others. For a language take some thousand pairs, or begin with shipped weights (under “Everything else”)."
        if table.whole and len(table.pairs) < FEW_PAIRS
        else ""
    )
    sides = [escape(text if len(text) <= PREVIEW_LETTERS else text[:PREVIEW_LETTERS] + " …") for text in table.pairs[0]]
    pair = f'<span dir="auto">{sides[0]}</span><span>→</span><span dir="auto">{sides[1]}</span>'
    html = messages.status(f"{line}. The first one:") + f'<div class="train-pair">{pair}</div>'
    return html + (messages.notes([few]) if few else "")


def beginning_choices(network: str, preset: str) -> list[tuple[str, str]]:
    """(label, name) of what a training may begin with."""
    weights = [(f"{name} (shipped weights)", name) for name in NETWORKS[network].beginnings(preset)]
    return [("Random weights", ""), *weights]


def boxes(network: str, fields: dict[str, Any], initial: str = "") -> dict[str, dict[str, Any]]:
    """Field -> properties of its text box, with lower rates for weights that are trained already."""
    properties = {}
    for setting in settings_of(network):
        value = fields[setting.field]
        if initial and setting.field in RATE_FIELDS:
            value = round(value * FINE_TUNING_SHARE, 10)
        paper = f"paper: {setting.paper}" if setting.paper else ""
        info = "; ".join(part for part in (paper, setting.about) if part)
        text = "" if setting.unset is not None and value == setting.unset else recipes.text(value)
        properties[setting.field] = {"label": setting.label, "value": text, "info": info}
    return properties


# -- the form ---------------------------------------------------------------------------------------------------------


class TrainForm:
    """Its components are attributes; handlers take values of `inputs` and return updates, both by component."""

    def __init__(self, services: Services) -> None:
        self.services, self.runs = services, services.runs
        self.keys = recipes.network_names(services.training)
        self.ready = gr.State(False)
        self.fold = gr.Accordion(
            "Start a training",
            open=not list_runs(services.runs),
            visible=services.training is not None,
            elem_id="train-form",
        )
        with self.fold:
            self._build_choices()
            self._build_data()
            with gr.Row(elem_classes="actions train-go"):
                self.start = theme.component(gr.Button, "train-start")
                self.about = gr.HTML(elem_id="train-about", min_width=260)
            self.note = gr.HTML(elem_id="train-note")
            with gr.Accordion("Everything else: name, settings, command", open=False, elem_id="train-more"):
                self._build_rest()
        if services.training is None:
            gr.HTML(messages.status("Training cannot be started from this page, only from a shell."))
        choice = [self.network, self.preset, self.initial, self.data, self.upload, self.folder]
        self.inputs: set[Block] = {*choice, self.source, self.target, self.name, *self.fields}
        self.consequences = [self.command, self.about, self.preview]

    def _build_choices(self) -> None:
        network = self.keys[0]
        preset = NETWORKS[network].first
        with gr.Row(elem_classes="train-choices"):
            self.network = theme.component(
                gr.Dropdown,
                "train-network",
                [(f"{NETWORKS[key].title}: {NETWORKS[key].does}", key) for key in self.keys],
                value=network,
            )
            self.data = theme.component(
                gr.Dropdown, "train-data", NETWORKS[network].data_choices(self.services.local), value=BUNDLE
            )
            self.preset = theme.component(gr.Dropdown, "train-preset", self._presets(network), value=preset)

    def _build_data(self) -> None:
        with gr.Row(visible=False) as self.data_row:
            self.upload = theme.component(
                gr.File, "train-upload", label=NETWORKS[self.keys[0]].upload, file_types=FILE_TYPES
            )
            self.folder = theme.component(gr.Textbox, "train-folder", visible=False)
            self.source = theme.component(gr.Dropdown, "train-source")
            self.target = theme.component(gr.Dropdown, "train-target")
        self.preview = gr.HTML(elem_id="train-preview")

    def _build_rest(self) -> None:
        first = beginning_choices(self.keys[0], NETWORKS[self.keys[0]].first)
        with gr.Row():
            self.name = theme.component(gr.Textbox, "train-name")
            self.initial = theme.component(gr.Dropdown, "train-initial", first, value="", visible=len(first) > 1)
        self.fields: list[gr.Textbox] = []
        for count in (MAX_OWN_SETTINGS, len(COMMON)):
            with gr.Row(elem_classes="train-settings"):
                for _ in range(count):
                    number = len(self.fields)
                    self.fields.append(gr.Textbox(elem_id=f"setting-{number}", min_width=150, max_lines=1))
        self.command = theme.component(gr.Code, "train-command")
        self.measure = theme.component(gr.Button, "train-measure")

    # -- what stands in the form -----------------------------------------------------------------------------------

    def _presets(self, network: str) -> list[tuple[str, str]]:
        names = recipes.preset_names(network, self.services.training)
        return [(recipes.preset_label(network, name), name) for name in names]

    def _choice(self, values: dict) -> tuple[str, str]:
        """Network and preset; the first of the list where a message crossed another one on its way."""
        network = values[self.network] if values[self.network] in self.keys else self.keys[0]
        presets = recipes.preset_names(network, self.services.training)
        return network, values[self.preset] if values[self.preset] in presets else presets[0]

    def _data(self, values: dict) -> Data:
        return Data(*(values[one] for one in (self.data, self.upload, self.folder, self.source, self.target)))

    def survey(self, values: dict) -> Survey | None:
        """What the chosen table holds, None where none is chosen. Raises ValueError or FileNotFoundError."""
        return NETWORKS[self._choice(values)[0]].survey(self._data(values))

    def fields_for(self, values: dict) -> dict[str, Any]:
        """All fields of the chosen preset, those of `TABLE_FIELDS` as the chosen table needs them."""
        network, preset = self._choice(values)
        base = NETWORKS[network].values(preset)
        try:
            table = None if values[self.initial] else self.survey(values)
        except (ValueError, OSError):  # the preview says what is wrong with the table
            table = None
        return {**base, **(table.fit(base) if table else {})}

    def texts(self, values: dict) -> dict[str, str]:
        """field -> text of its box."""
        return {field: values[box] for field, box in self.boxes_of(self._choice(values)[0]).items()}

    def boxes_of(self, network: str) -> dict[str, gr.Textbox]:
        """Field -> its box."""
        boxes = self.fields[: len(NETWORKS[network].settings)] + self.fields[MAX_OWN_SETTINGS:]
        return dict(zip([setting.field for setting in settings_of(network)], boxes, strict=True))

    def plan(self, values: dict) -> tuple[list[list[str]], dict[str, Any]]:
        """Commands and all fields of the run that the form describes. Raises ValueError for what is impossible."""
        network, preset, initial = values[self.network], values[self.preset], values[self.initial] or ""
        limits = self.services.limits()
        if network not in self.keys:
            raise ValueError("That network cannot be trained on this page; choose one from the list.")
        if preset not in recipes.preset_names(network, limits):
            raise ValueError(
                f"On this page there is no preset {str(preset)[:40]!r} of this network; choose one from the list."
            )
        if values[self.data] not in (key for _, key in NETWORKS[network].data_choices(self.services.local)):
            raise ValueError("Such data cannot be used on this page; choose from the list.")
        run = self.runs / (values[self.name] or "").strip()
        base = NETWORKS[network].values(preset)
        fields = recipes.changes(network, base, self.texts(values))
        before, where = NETWORKS[network].data_commands(self._data(values), run)
        languages = (where.get("source", ""), where.get("target", ""))
        where |= NETWORKS[network].beginning_fields(preset, initial, languages)
        NETWORKS[network].check_data({**base, **where})
        recipes.check_public(network, self.fields_for(values), fields, limits)
        where = {key: value for key, value in where.items() if value != base[key]}
        fields = {**fields, **where, **limits.fields()}
        return [*before, recipes.start_command(network, preset, run, fields)], {**base, **fields}

    def check(self, values: dict, fields: dict[str, Any]) -> None:
        """Raises ValueError where the training could not begin or not be saved: columns, lengths, room on the disk."""
        network = values[self.network]
        table = self.survey(values)
        if table and not values[self.initial]:
            table.check(fields)
        room = start.room_for(NETWORKS[network].parameters(fields), NETWORKS[network].recipe(**fields))
        most = self.services.limits().megabytes
        if most:  # it stops there
            room = min(room, most)
        start.check_room(self.runs, room)

    # -- updates ---------------------------------------------------------------------------------------------------

    def derive(self, values: dict) -> dict:
        """Updates of what follows from the form: command, size and time, and what the table holds."""
        network, preset = self._choice(values)
        fields = self.fields_for(values)
        try:
            commands, fields = self.plan(values)
            command = start.shell_text(commands)
        except Exception as error:  # not yet complete: as a comment, in the command's place
            command = f"# {messages.sentence(error)}"
        weights = values[self.initial] if values[self.initial] in NETWORKS[network].beginnings(preset) else ""
        lower = f"Learning rates are {FINE_TUNING_SHARE:g} of the preset's: these weights are trained already."
        return {
            self.command: command,
            self.about: self._about(network, preset, fields) + (messages.status(lower) if weights else ""),
            self.preview: self._preview(values, fields),
        }

    @alerts()
    def _about(self, network: str, preset: str, fields: dict[str, Any]) -> str:
        return messages.status(recipes.size_and_time(network, preset, fields, past_time(self.runs, network, fields)))

    @alerts()
    def _preview(self, values: dict, fields: dict[str, Any]) -> str:
        network = NETWORKS[self._choice(values)[0]]
        if network.has_columns and values[self.data] == UPLOAD and values[self.upload]:
            columns(values[self.upload])
        table = self.survey(values)
        if table:
            return survey_html(table, fields)
        return messages.status(network.data_hint) if network.data_hint and values[self.data] != BUNDLE else ""

    def fill(self, network: str, preset: str, fields: dict[str, Any]) -> dict:
        """All that follows a network and a preset."""
        first = beginning_choices(network, preset)
        properties = boxes(network, fields)
        return {
            self.name: free_name(self.runs, network, preset),
            self.initial: gr.update(choices=first, value="", visible=len(first) > 1, interactive=True),
            **dict.fromkeys(self.fields, gr.update(visible=False)),
            **{box: gr.update(visible=True, **properties[field]) for field, box in self.boxes_of(network).items()},
        }

    def place(self, network: str, data: str) -> dict:
        """Shows the ways to bring data that fit the choice."""
        words = NETWORKS[network].has_columns
        return {
            self.data_row: gr.update(visible=data != BUNDLE),
            self.upload: gr.update(visible=data == UPLOAD, label=NETWORKS[network].upload),
            self.folder: gr.update(visible=data == LOCAL),
            self.source: gr.update(visible=words),
            self.target: gr.update(visible=words),
        }

    def fit_boxes(self, values: dict) -> dict:
        """The boxes of `TABLE_FIELDS` as the chosen table needs them; what was typed into the others stays."""
        network = self._choice(values)[0]
        fields = self.fields_for(values)
        if not NETWORKS[network].has_columns:
            return {}
        return {self.boxes_of(network)[name]: recipes.text(fields[name]) for name in TABLE_FIELDS}

    # -- handlers --------------------------------------------------------------------------------------------------

    def choose_network(self, values: dict) -> dict:
        """Its presets and data, and all that follows from them. What was chosen for another network goes with it."""
        network = self._choice(values)[0]
        choices = NETWORKS[network].data_choices(self.services.local)
        data = choices[0][1]
        preset = NETWORKS[network].first
        updates = {
            self.preset: gr.update(choices=self._presets(network), value=preset, interactive=True),
            self.data: gr.update(choices=choices, value=data, interactive=True),
            **self.place(network, data),
            **self.fill(network, preset, NETWORKS[network].values(preset)),
        }
        for place, empty in ((self.upload, {"value": None}), (self.folder, {"value": ""})):
            updates[place] |= empty
        for column in (self.source, self.target):
            updates[column] |= {"choices": [], "value": None}
        return updates

    def choose_preset(self, values: dict) -> dict:
        """Its settings, as they fit the table that is chosen."""
        network, preset = self._choice(values)
        fields = self.fields_for({**values, self.initial: ""})
        return self.fill(network, preset, fields)

    def choose_initial(self, values: dict) -> dict:
        """Sets the learning rates; what was typed into the other boxes stays."""
        network, preset = self._choice(values)
        weights = values[self.initial] if values[self.initial] in NETWORKS[network].beginnings(preset) else ""
        properties = boxes(network, self.fields_for(values), weights)
        return {box: properties[name]["value"] for name, box in self.boxes_of(network).items() if name in RATE_FIELDS}

    def choose_data(self, values: dict) -> dict:
        """Shows what has to be brought."""
        updates = self.place(self._choice(values)[0], values[self.data])
        if values[self.data] != UPLOAD or values[self.upload]:  # what is uploaded later is fitted then
            updates |= self.fit_boxes(values)
        return updates

    def read_upload(self, values: dict) -> dict:
        """The columns of a table that was just uploaded, two of them chosen, and the settings that follow them."""
        empty = gr.update(choices=[], value=None)
        updates = {self.source: empty, self.target: empty}
        if NETWORKS[self._choice(values)[0]].has_columns and values[self.data] == UPLOAD and values[self.upload]:
            try:
                names = columns(values[self.upload])
                source, target = guess_columns(values[self.upload], names)
                updates = {
                    self.source: gr.update(choices=names, value=source),
                    self.target: gr.update(choices=names, value=target),
                }
            except Exception as error:
                messages.sentence(error)  # the preview tells it
        now = {**values, **{one: update["value"] for one, update in updates.items()}}
        return {**updates, **self.fit_boxes(now)}

    def choose_column(self, values: dict) -> dict:
        """Another column: the settings that follow its text."""
        return self.fit_boxes(values) or gr.skip()

    def choose_folder(self, values: dict) -> dict:
        """Another folder: the settings that follow its table."""
        return (self.fit_boxes(values) if values[self.data] == LOCAL else None) or gr.skip()

    def open(self, values: dict) -> dict:
        """At the first opening the boxes are filled; later nothing typed is lost."""
        network, preset = self._choice(values)
        updates = {} if values[self.ready] else self.fill(network, preset, NETWORKS[network].values(preset))
        return {**updates, self.ready: True}

    @alerts("note")
    def begin(self, values: dict) -> dict:
        """Starts a process, and shows its run."""
        folder = None
        try:
            commands, fields = self.plan(values)
            self.services.limits().check(self.runs, fields["steps"], new=True)
            self.check(values, fields)
            folder = start.check_name(self.runs, values[self.name])
            folder.mkdir(parents=True)
            NETWORKS[values[self.network]].bring(self._data(values), folder)
            start.start(folder, commands)
            sign(folder, values.get(self.view.controls.visitor))
        except Exception:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return {
            self.note: "",
            self.name: free_name(self.runs, values[self.network], values[self.preset]),
            self.fold: gr.update(open=False),
            **self.view.show(folder.name, {self.view.controls.visitor: values.get(self.view.controls.visitor)}),
            **self.view.controls.tell(f"The run {folder.name} was started.", folder.name),
        }

    @alerts("note")
    def time_it(self, values: dict) -> dict:
        """Times a few steps with the settings of the form."""
        fields = self.plan(values)[1]
        network, preset = values[self.network], values[self.preset]
        if values[self.data] != BUNDLE:
            raise ValueError("Steps are timed with the data that come with the page; choose them to measure.")
        at_once = self.services.limits().at_once
        if at_once and any(start.is_busy(Run(self.runs / n)) for n in list_runs(self.runs)):
            raise ValueError("A training is running; measure when it has ended.")
        changes = recipes.changes(network, NETWORKS[network].values(preset), self.texts(values))
        timing = measure(network, preset, {k: v for k, v in changes.items() if k != "steps"})
        seconds, steps = timing["seconds_per_step"], fields["steps"]
        line = (
            f"{timing['parameters']:,} weights, {steps:,} steps, about {recipes.duration(seconds * steps)} (measured "
            f"just now: {seconds:.2g} s a step, {timing['memory_mb'] / 1000:.1f} GB), evaluations not counted."
        )
        return {self.about: messages.status(line), self.note: ""}

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self, view: RunView, tab: gr.Tab) -> None:
        """Connect the components with the handlers. view: shows the run that is started; tab: the page's tab."""
        self.view = view
        contents = [self.name, self.initial, *self.fields]
        places = [self.data_row, self.upload, self.folder, self.source, self.target]
        hold(self.network.input, self.preset, self.data, self.initial, name="hold_choices")
        hold(self.preset.input, self.initial, name="hold_initial")
        sides = [self.source, self.target]
        for triggers, handler, outputs, name in (
            ([self.network.input], self.choose_network, [self.preset, self.data, *places, *contents], "train_network"),
            ([self.preset.input], self.choose_preset, contents, "train_preset"),
            ([self.initial.input], self.choose_initial, self.fields, "train_initial"),
            ([self.data.input], self.choose_data, [*places, *self.fields], "train_data"),
            ([self.upload.change], self.read_upload, [*sides, *self.fields], "train_upload"),
            ([one.input for one in sides], self.choose_column, self.fields, "train_column"),
            ([self.folder.change], self.choose_folder, self.fields, "train_folder"),
        ):
            event = gr.on(triggers, handler, self.inputs, outputs, api_name=name, **QUICKLY)
            event.then(self.derive, self.inputs, self.consequences, **QUICKLY)
        # One event for all boxes: answers to two of them could overtake each other. Pasted text is a change, not an
        # input; the columns change when an uploaded table is read, after which this has the last word.
        boxes: list[gr.Textbox | gr.Dropdown] = [self.name, *sides, *self.fields]
        gr.on(
            [box.change for box in boxes],
            self.derive,
            self.inputs,
            self.consequences,
            trigger_mode="always_last",
            api_name="train_command",
            **QUICKLY,
        )
        # An error goes when something else is chosen or typed, at once in the browser.
        choice = [self.network, self.preset, self.initial, self.data, self.source, self.target]
        entries: list[gr.Textbox | gr.Dropdown] = [*choice, self.name, self.folder, *self.fields]
        gr.on([one.input for one in entries], None, None, self.note, js="() => ''", **QUIETLY)
        slowly: dict[str, Any] = {"show_progress": "minimal", "concurrency_limit": 1, "api_visibility": "private"}
        self.start.click(
            self.begin,
            {*self.inputs, view.controls.visitor},
            [self.note, self.name, self.fold, *view.components],
            api_name="train_start",
            **slowly,
        ).then(None, None, None, js="handlers.toTheRun")
        self.measure.click(self.time_it, self.inputs, [self.about, self.note], api_name="train_measure", **slowly)
        # At each opening: names that are free and times that were measured change.
        everything: set[Block] = {*self.inputs, self.ready}
        fill = tab.select(self.open, everything, [self.ready, *contents], api_name="open_form", **QUICKLY)
        fill.then(self.derive, self.inputs, self.consequences, **QUICKLY)
