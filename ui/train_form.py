"""The Train tab's upper half: choose a network, a preset, data and settings; see the command; start it."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr

from training import start
from training.run import Run, list_runs
from training.unpack import unpack
from ui import messages
from ui import train_recipes as recipes
from ui.dropdowns import hold
from ui.services import Services

BUNDLED, UPLOAD, LOCAL = "bundled", "upload", "folder"
MEASURED_STEPS, MEASURE_SECONDS = 3, 180
MOST_UNPACKED = 2 * 2**30
MOST_TABLE = 200 * 2**20


# -- without Gradio -------------------------------------------------------------------------------------------------


def data_choices(network: str, local: bool) -> list[tuple[str, str]]:
    """Where the data of a network may come from, as (label, key)."""
    if network == "transformer":
        found = [("Bundled: a small grammar", BUNDLED), ("Upload a table (TSV or CSV)", UPLOAD)]
    else:
        found = [("Drawn people", BUNDLED), ("Upload a zip in the VITON-HD layout", UPLOAD)]
    return found + ([("A folder or file on this machine", LOCAL)] if local else [])


def free_name(runs: Path, network: str, preset: str) -> str:
    """A name that no run has yet."""
    number = 1
    while (runs / f"{network}-{preset}-{number}").exists():
        number += 1
    return f"{network}-{preset}-{number}"


def columns(file: str | None) -> list[str]:
    """The columns of an uploaded table. Raises ValueError with one sentence when it is none."""
    from transformer.data import SUFFIXES, open_table

    if not file:
        return []
    path = Path(file)
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path.name} has none of the endings {', '.join(SUFFIXES)}.")
    with open_table(path) as rows:
        names = [name for name in rows.fieldnames or [] if name]
    if len(names) < 2:
        raise ValueError(f"{path.name}, line 1: a table needs a header with at least two columns, found {len(names)}.")
    return names


def data_commands(
    network: str, data: str, upload: str | None, folder: str, source: str, target: str, run: Path
) -> tuple[list[list[str]], dict[str, Any]]:
    """The commands that have to run before the training, and the recipe's fields that name its data.

    Nothing is copied yet: the paths are those that `bring_data` will make. Raises ValueError for what is missing.
    """
    folder = str(Path((folder or "").strip()).expanduser()) if (folder or "").strip() else ""
    # Two columns are one direction, also where the preset has several of its own.
    words = {"source": source, "target": target, "directions": ""} if network == "transformer" and data != BUNDLED else {}
    if words and not (source and target):
        raise ValueError("Choose the column of the source and the column of the target.")
    if data == BUNDLED:
        return [], ({"data": "grammar", "source": "en", "target": "de", "directions": ""} if network == "transformer" else {})
    if data == UPLOAD and not upload:
        raise ValueError("Upload a table first." if network == "transformer" else "Upload a zip first.")
    if data == LOCAL and not folder:
        raise ValueError("Write the path of a folder or file on this machine.")
    if network == "transformer":
        return [], {"data": str(run / "data" / f"table{table_suffix(upload)}") if data == UPLOAD else folder, **words}
    if data == LOCAL and folder.endswith(".npz"):
        return [], {"pack": folder}
    photos, prepared = (str(run / "data" / "set") if data == UPLOAD else folder), run / "data" / "prepared"
    return [["python", "-m", "vton.prepare", photos, "--out", str(prepared)]], {"pack": str(prepared / "pack.npz")}


def table_suffix(upload: str) -> str:
    """.tsv, .csv, .tsv.gz or .csv.gz."""
    name = Path(upload).name.lower()
    return "." + ".".join(name.rsplit(".", 2)[-2:] if name.endswith(".gz") else [name.rsplit(".", 1)[-1]])


def bring_data(network: str, data: str, upload: str | None, folder: str, source: str, target: str, run: Path) -> None:
    """Checks the data, and puts an upload where the command looks for it. Raises ValueError or FileNotFoundError."""
    if network == "transformer" and data != BUNDLED:
        from transformer.data import find_split, read_parallel

        path = Path(upload if data == UPLOAD else folder.strip()).expanduser()
        if data == UPLOAD and path.suffix == ".gz":
            check_unpacked_size(path)
        table = path if path.is_file() else find_split(path, "train")
        if table is None:
            raise FileNotFoundError(f"The folder {path.name!r} holds no train.tsv or train.csv.")
        if len(read_parallel(table, source, target)) < 2:
            raise ValueError(f"{table.name} holds one pair only; training needs at least two.")
    if data == LOCAL and not Path(folder.strip()).expanduser().exists():
        raise FileNotFoundError(f"There is no folder or file {folder.strip()!r} on this machine.")
    if network != "transformer" and data != BUNDLED:
        from vton.prepare import find_set

        if data == UPLOAD:
            unpack(upload, run / "data" / "set", most_bytes=MOST_UNPACKED)
        place = run / "data" / "set" if data == UPLOAD else Path(folder.strip()).expanduser()
        if place.is_dir():
            find_set(place, garments=network in ("segmentation", "matching"))
    elif data == UPLOAD:
        (run / "data").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(upload, run / "data" / f"table{table_suffix(upload)}")


def check_unpacked_size(file: Path, most: int = MOST_TABLE) -> None:
    """Raises ValueError when a gzipped table is larger than `most` bytes unpacked; damaged ones are told of later."""
    size = 0
    try:
        with gzip.open(file) as stream:
            while chunk := stream.read(2**20):
                size += len(chunk)
                if size > most:
                    raise ValueError(f"{file.name} unpacks to more than {most / 2**20:.0f} MiB; upload a smaller table.")
    except (OSError, EOFError, zlib.error):
        return


def measured(runs: Path, network: str, preset: dict[str, Any]) -> tuple[float, str] | None:
    """Seconds a step of a run on this machine with the preset's sizes, and its name; None if there is none."""
    costly = ("size", "batch", "tokens", "height", "width", "pictures_wide", "reduce", "precision", "accumulate", "gan")
    for name in list_runs(runs):
        run = Run(runs / name)
        try:
            saved = run.recipe()
        except ValueError:
            continue
        same = all(saved.get(field) == preset[field] for field in costly if field in preset)
        if saved.get("task") != recipes.NETWORKS[network].task or not same:
            continue
        times = [event["seconds_per_step"] for event in run.events() if event["event"] == "log"]
        if times:
            return sorted(times)[len(times) // 2], f"in the run {name}"
    return None


def measure(network: str, preset: str, fields: dict[str, Any]) -> dict[str, float]:
    """Times a few steps on this machine in a process of its own. Raises ValueError with one sentence when it fails."""
    words = [*recipes.NETWORKS[network].words, "--preset", preset, *recipes.options(fields), "--time", str(MEASURED_STEPS)]
    try:
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, timeout=MEASURE_SECONDS,
                              stdin=subprocess.DEVNULL, env=start.environment())  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError(f"{MEASURED_STEPS} steps took more than {MEASURE_SECONDS} s here; this preset is for a larger machine.") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"The steps could not be timed: {last.removeprefix('error: ')}")
    return json.loads(done.stdout.strip().splitlines()[-1])


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(services: Services) -> SimpleNamespace:
    """Build the form inside the current Blocks and return its components by name."""
    form = SimpleNamespace(filled=gr.State(False))
    network = next(iter(recipes.NETWORKS))
    preset = recipes.NETWORKS[network].first
    with gr.Accordion("Start a training", open=not list_runs(services.runs), visible=services.training is not None, elem_id="train-form"):
        with gr.Row():
            form.network = gr.Dropdown([(n.title, key) for key, n in recipes.NETWORKS.items()], value=network,
                                       label="Network", elem_id="train-network", min_width=200)  # fmt: skip
            form.preset = gr.Dropdown(preset_names(services, network), value=preset, label="Preset", allow_custom_value=True,
                                      elem_id="train-preset", min_width=160)  # fmt: skip
            first = beginning_choices(network, preset)
            form.initial = gr.Dropdown(first, value="", label="Begin with", visible=len(first) > 1, elem_id="train-initial",
                                       min_width=200)  # fmt: skip
            form.data = gr.Dropdown(data_choices(network, services.local), value=BUNDLED, label="Data", allow_custom_value=True,
                                    elem_id="train-data", min_width=240)  # fmt: skip
        with gr.Row(visible=False) as form.data_row:
            form.upload = gr.File(label="Table or zip", file_types=[".tsv", ".csv", ".gz", ".zip"], height=120,
                                  elem_id="train-upload", min_width=240)  # fmt: skip
            form.folder = gr.Textbox(label="Folder or file on this machine", elem_id="train-folder", visible=False, min_width=240)
            form.source = gr.Dropdown([], label="Column of the source", allow_custom_value=True, elem_id="train-source", min_width=160)
            form.target = gr.Dropdown([], label="Column of the target", allow_custom_value=True, elem_id="train-target", min_width=160)
        form.about = gr.HTML(elem_id="train-about")
        form.fields = []
        with gr.Row(elem_classes="train-settings"):
            for index in range(recipes.POOL):
                form.fields.append(gr.Textbox(elem_id=f"setting-{index}", min_width=150, max_lines=1))
        with gr.Accordion("More settings", open=False), gr.Row(elem_classes="train-settings"):
            for index in range(len(recipes.COMMON)):
                form.fields.append(gr.Textbox(elem_id=f"setting-{recipes.POOL + index}", min_width=150, max_lines=1))
        form.name = gr.Textbox(label="Name of the run", elem_id="train-name", max_lines=1)
        form.command = gr.Code(language="shell", label="The command that is run", interactive=False, wrap_lines=True,
                               lines=1, max_lines=4, elem_id="train-command", buttons=["copy"])  # fmt: skip
        with gr.Row(elem_classes="actions"):
            form.start = gr.Button("Start", variant="primary", elem_id="train-start", min_width=120)
            form.measure = gr.Button("Measure a step here", elem_id="train-measure", min_width=160)
            form.note = gr.HTML(elem_id="train-note", min_width=260)
    if services.training is None:
        gr.HTML(messages.status("Trainings cannot be started from this page; its operator or a shell starts them."))
    return form


def preset_names(services: Services, network: str) -> list[str]:
    """The presets that this page offers, the first one for beginners."""
    chosen = recipes.NETWORKS[network]
    limited = services.training is not None and services.training.steps
    names = [name for name in chosen.presets if not limited or name in recipes.SMALL]
    return sorted(names, key=lambda name: name != chosen.first)


def beginning_choices(network: str, preset: str) -> list[tuple[str, str]]:
    """(label, name) of what a training may begin with."""
    return [("Random weights", ""), *((f"{name} (shipped weights)", name) for name in recipes.beginnings(network, preset))]


def shown_fields(network: str, preset: str, initial: str = "") -> list[dict[str, Any]]:
    """Properties of the text boxes of both groups for a preset, with lower rates for weights that are trained already."""
    base, boxes = recipes.values(network, preset), []
    if initial:
        base |= recipes.gentle_rates(network, preset)
    for setting in (*recipes.NETWORKS[network].settings, *recipes.COMMON):
        paper = f"paper: {setting.paper}. " if setting.paper else ""
        boxes.append({"label": setting.field, "value": recipes.text(base[setting.field]), "info": paper + setting.about})
    return boxes


# -- events ---------------------------------------------------------------------------------------------------------


def events(form: SimpleNamespace, services: Services, tab: SimpleNamespace, show: Any, outputs: list) -> None:
    """Wire the form. tab.run is the list of runs; `show(name, step)` fills `outputs` when a run was started."""
    runs = services.runs
    choice = [form.network, form.preset, form.initial, form.data, form.upload, form.folder, form.source, form.target, form.name]
    inputs = [*choice, *form.fields]
    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}

    def planned(network, preset, initial, data, upload, folder, source, target, name, *typed):
        """(commands, all fields that are set) of the form as it is; ValueError for what cannot be."""
        if preset not in preset_names(services, network):
            raise ValueError(f"On this page there is no preset {str(preset)[:40]!r} of this network; choose one of the list.")
        if data not in (key for _, key in data_choices(network, services.local)):
            raise ValueError("On this page such data cannot be used; choose one of the list.")
        run = runs / (name or "").strip()
        names = [setting.field for setting in (*recipes.NETWORKS[network].settings, *recipes.COMMON)]
        fields = recipes.changes(network, preset, dict(zip(names, typed)))
        before, where = data_commands(network, data, upload, folder, source, target, run)
        columns = (where.get("source", ""), where.get("target", ""))
        where |= recipes.beginning_fields(network, preset, initial or "", columns)
        base = recipes.values(network, preset)
        recipes.check_public(network, base, fields, services.training)
        where = {key: value for key, value in where.items() if value != base[key]}
        fields = {**fields, **where, **services.training.fields()}
        return [*before, recipes.start_command(network, preset, run, fields)], {**base, **fields}

    def command(*given):
        """The command, and what is wrong with an uploaded table's header, if anything is."""
        network, _, _, data, upload = given[:5]
        # An answer about the form before the upload may come after the one about the table, and says nothing then.
        note = "" if data != UPLOAD else read_header(network, upload)[2] if upload else gr.skip()
        try:
            commands, _ = planned(*given)
            return start.shell_text(commands), note
        except Exception as error:  # not yet complete: as a comment, in the command's place
            return f"# {messages.sentence(error)}", note

    def about(network, preset):
        preset = preset if preset in recipes.NETWORKS[network].presets else recipes.NETWORKS[network].first
        base = recipes.values(network, preset)
        return messages.status(recipes.size_and_time(network, preset, base["steps"], measured(runs, network, base)))

    def choose_network(network, data):
        chosen = recipes.NETWORKS[network]
        choices = data_choices(network, services.local)
        data = data if data in dict((key, 0) for _, key in choices) else BUNDLED
        presets = gr.update(choices=preset_names(services, network), value=chosen.first, interactive=True)
        return presets, gr.update(choices=choices, value=data, interactive=True)

    def choose_preset(network, preset):
        preset = preset if preset in recipes.NETWORKS[network].presets else recipes.NETWORKS[network].first
        first = beginning_choices(network, preset)
        begin_with = gr.update(choices=first, value="", visible=len(first) > 1, interactive=True)
        boxes = [gr.update(**box) for box in shown_fields(network, preset)]
        return [about(network, preset), gr.update(value=free_name(runs, network, preset)), begin_with, *boxes]

    def choose_initial(network, preset, initial):
        """Sets the learning rates; what was typed into the other boxes stays."""
        preset = preset if preset in recipes.NETWORKS[network].presets else recipes.NETWORKS[network].first
        known = initial if initial in recipes.beginnings(network, preset) else ""
        lower = f"Learning rates are {recipes.GENTLE:g} of the preset's: these weights are trained already."
        boxes = [
            gr.update(value=box["value"]) if box["label"] in recipes.RATES else gr.skip() for box in shown_fields(network, preset, known)
        ]
        return [about(network, preset) + (messages.status(lower) if known else ""), *boxes]

    def choose_data(network, data):
        words = network == "transformer"
        return (gr.update(visible=data != BUNDLED), gr.update(visible=data == UPLOAD), gr.update(visible=data == LOCAL),
                gr.update(visible=words), gr.update(visible=words))  # fmt: skip

    def read_header(network, upload):
        try:
            names = columns(upload) if network == "transformer" else []
        except Exception as error:
            return gr.update(choices=[], value=None), gr.update(choices=[], value=None), messages.alert(messages.sentence(error))
        first, second = (names[0], names[1]) if names else (None, None)
        return gr.update(choices=names, value=first), gr.update(choices=names, value=second), ""

    def begin(*given):
        network, preset, _, data, upload, folder, source, target, name, *_ = given
        made = None
        try:
            if services.training is None:
                raise ValueError("Trainings cannot be started from this page.")
            commands, base = planned(*given)
            services.training.check(runs, base["steps"], new=True)
            made = start.check_name(runs, name)
            made.mkdir(parents=True)
            bring_data(network, data, upload, folder, source, target, made)
            start.start(made, commands)
        except Exception as error:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            # A table that cannot be read is the cause of what is wrong with its columns.
            wrong = read_header(network, upload)[2] if data == UPLOAD and upload else ""
            return [wrong or messages.alert(messages.sentence(error)), gr.skip(), *[gr.skip()] * len(outputs)]
        note = messages.status(f"The run {made.name} was started.")
        return [note, free_name(runs, network, preset), *show(made.name, None)]

    def time_it(*given):
        try:
            commands, base = planned(*given)
            if given[3] != BUNDLED:
                raise ValueError("Steps are timed with the bundled data; choose it for the measurement.")
            if services.training.at_once and any(start.is_busy(Run(runs / n)) for n in list_runs(runs)):
                raise ValueError("A training is running; measure when it has ended.")
            network, preset = given[:2]
            names = [s.field for s in (*recipes.NETWORKS[network].settings, *recipes.COMMON)]
            fields = recipes.changes(network, preset, dict(zip(names, given[len(choice):])))
            figures = measure(network, preset, {k: v for k, v in fields.items() if k != "steps"})
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))
        seconds, steps = figures["seconds_per_step"], base["steps"]
        size = figures["parameters"]
        return messages.status(
            f"{size:,} weights, {steps:,} steps, about {recipes.duration(seconds * steps)} (measured just now: "
            f"{seconds:.2g} s a step, {figures['memory_mb'] / 1000:.1f} GB), evaluations not counted."
        ), ""

    hold(form.network.input, form.preset, form.data, form.initial, name="hold_choices")
    hold(form.preset.input, form.initial, name="hold_initial")
    form.network.input(choose_network, [form.network, form.data], [form.preset, form.data], api_name="train_network", **quiet).then(
        choose_preset, [form.network, form.preset], [form.about, form.name, form.initial, *form.fields], **quiet
    ).then(choose_data, [form.network, form.data], [form.data_row, form.upload, form.folder, form.source, form.target], **quiet
    ).then(command, inputs, [form.command, form.note], **quiet)  # fmt: skip
    form.preset.input(choose_preset, [form.network, form.preset], [form.about, form.name, form.initial, *form.fields], api_name="train_preset",
                      **quiet).then(command, inputs, [form.command, form.note], **quiet)  # fmt: skip
    form.initial.input(choose_initial, [form.network, form.preset, form.initial], [form.about, *form.fields], api_name="train_initial",
                       **quiet).then(command, inputs, [form.command, form.note], **quiet)  # fmt: skip
    form.data.input(choose_data, [form.network, form.data], [form.data_row, form.upload, form.folder, form.source, form.target],
                    api_name="train_data", **quiet).then(command, inputs, [form.command, form.note], **quiet)  # fmt: skip
    form.upload.change(read_header, [form.network, form.upload], [form.source, form.target, form.note], api_name="train_upload",
                       **quiet).success(command, inputs, [form.command, form.note], **quiet)  # fmt: skip
    # One event for all boxes: answers to two of them could overtake each other. Pasted text is a change, not an input.
    typed = [box.change for box in (form.folder, form.source, form.target, form.name, *form.fields)]
    gr.on(typed, command, inputs, [form.command, form.note], trigger_mode="always_last", api_name="train_command", **quiet)
    form.start.click(begin, inputs, [form.note, form.name, *outputs], show_progress="minimal", concurrency_limit=1,
                     api_name="train_start", api_visibility="private")  # fmt: skip
    form.measure.click(time_it, inputs, [form.about, form.note], show_progress="minimal", concurrency_limit=1,
                       api_name="train_measure", api_visibility="private")  # fmt: skip

    def open_form(network, preset, filled):
        """At the first opening the boxes are filled; later only what is known of the time, so that nothing typed is lost."""
        if not filled:
            return [True, *choose_preset(network, preset)]
        return [True, about(network, preset), *[gr.skip()] * (2 + len(form.fields))]

    form.refresh = (
        open_form, [form.network, form.preset, form.filled], [form.filled, form.about, form.name, form.initial, *form.fields], command, inputs
    )  # fmt: skip
