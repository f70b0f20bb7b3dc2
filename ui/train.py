"""The Train tab: watches any run folder, also one that was started from a shell. The page only reads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd
from PIL import Image

from training.run import Run, list_runs, open_run
from ui import messages

EVERY_SECONDS = 3
MOST_POINTS = 600  # of one curve; longer ones are thinned, a browser draws no more than it has pixels
MOST_TEXT = 20_000
COMMANDS = {
    "Transformer, a table with columns en and de": (
        "python -m transformer.train --preset quick --data data/pairs.tsv --run runs/en-de"
    ),
    "Human parser, drawn people": "python -m vton.train parser --preset drawn --run runs/parser",
    "Segmentation generator, drawn people": "python -m vton.train segmentation --preset drawn --run runs/segmentation",
    "Matching module, drawn people": "python -m vton.train matching --preset drawn --run runs/matching",
    "ALIAS generator, drawn people": "python -m vton.train alias --preset drawn --run runs/alias",
}
MEANING = {
    "new": "has not begun",
    "running": "is running",
    "finished": "has finished",
    "stopped": "was stopped and can be resumed",
    "failed": "has failed",
    "interrupted": "was interrupted and can be resumed",
}


# -- reading a run, without Gradio ----------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """A time span for a reader: 45 s, 12 min, 3 h 05 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def report(run: Run, events: list[dict[str, Any]]) -> str:
    """What a run is doing, as one or two plain sentences."""
    state = run.status()
    start = next((event for event in reversed(events) if event["event"] == "start"), {})
    log = next((event for event in reversed(events) if event["event"] == "log"), None)
    parts = [f"{run.recipe().get('task', 'Run')} {MEANING[state]}"]
    if log:
        parts[0] += f" at step {log['step']:,} of {start.get('steps', 0):,}"
        parts.append(f"{log['items_per_second']:,.0f} items/s")
        if state == "running":
            parts.append(f"about {duration(log['seconds_left'])} left")
        parts.append(f"{log['memory_mb'] / 1000:.1f} GB")
    last = events[-1] if events else {}
    if state == "failed" and last.get("message"):
        parts.append(str(last["message"]))
    return ", ".join(parts) + "."


def curves(events: list[dict[str, Any]], kind: str, field: str) -> pd.DataFrame:
    """Long table (step, value, name) of the numbers in `field` of all events of one kind, thinned evenly."""
    rows = [
        (event["step"], float(value), name)
        for event in events
        if event["event"] == kind
        for name, value in event.get(field, {}).items()
        if isinstance(value, (int, float)) and np.isfinite(value)
    ]
    table = pd.DataFrame(rows, columns=["step", "value", "name"])
    longest = table.groupby("name").size().max() if len(table) else 0
    if longest > MOST_POINTS:
        steps = np.sort(table["step"].unique())
        kept = steps[np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int)]
        table = table[table["step"].isin(kept)]
    return table.reset_index(drop=True)


def sample_steps(run: Run) -> list[int]:
    """Steps that have samples, oldest first."""
    folders = (run.folder / "samples").glob("step-*")
    return sorted(int(folder.name[5:]) for folder in folders if folder.name[5:].isdigit() and any(folder.iterdir()))


def read_samples(run: Run, step: int) -> tuple[list[tuple[np.ndarray, str]], str]:
    """Pictures with their names, and the text, of the samples of one step."""
    pictures, texts = [], []
    for file in sorted(run.samples(step).iterdir()):
        if file.suffix == ".png":
            pictures.append((np.asarray(Image.open(file).convert("RGB")), file.stem))
        elif file.suffix == ".txt":
            texts.append(file.read_text(encoding="utf-8", errors="replace")[:MOST_TEXT])
    return pictures, "\n".join(texts)


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(folder: Path) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace(folder=folder)
    gr.Markdown(
        "## Watch a network learn\nA run is a process of its own, started from a shell; this page reads its folder, so "
        "it may be closed and opened at any time.",
        elem_classes="section",
    )
    tab.timer = gr.Timer(EVERY_SECONDS, active=False)
    with gr.Row(elem_classes="actions"):
        tab.run = gr.Dropdown([], label="Run", elem_id="run", scale=1, min_width=220)
        tab.status = gr.HTML(elem_id="run-status", scale=3, min_width=260)
    with gr.Column(visible=False, elem_id="run-view") as tab.view:
        with gr.Row():
            tab.losses = gr.LinePlot(
                x="step",
                y="value",
                color="name",
                title="Loss terms, training",
                height=300,
                min_width=300,
                elem_id="plot-losses",
                y_title="",
                color_title=" ",
                buttons=["fullscreen"],
            )
            tab.figures = gr.LinePlot(
                x="step",
                y="value",
                color="name",
                title="Figures, validation",
                height=300,
                min_width=300,
                elem_id="plot-figures",
                y_title="",
                color_title=" ",
                buttons=["fullscreen"],
            )
        with gr.Row():
            tab.rates = gr.LinePlot(
                x="step",
                y="value",
                color="name",
                title="Learning rate",
                height=220,
                min_width=300,
                elem_id="plot-rates",
                y_title="",
                color_title=" ",
                buttons=["fullscreen"],
            )
            tab.norms = gr.LinePlot(
                x="step",
                y="value",
                color="name",
                title="Gradient norm",
                height=220,
                min_width=300,
                elem_id="plot-norms",
                y_title="",
                color_title=" ",
                buttons=["fullscreen"],
            )
        with gr.Column(visible=False) as tab.samples:
            tab.step = gr.Dropdown([], label="Samples of fixed inputs at step", elem_id="sample-step", min_width=200)
            tab.pictures = gr.Gallery(
                label="Samples",
                format="png",
                columns=2,
                height="auto",
                object_fit="contain",
                visible=False,
                elem_id="sample-pictures",
                interactive=False,
                buttons=["download", "fullscreen"],
            )
            tab.text = gr.Textbox(
                label="Sample translations",
                lines=8,
                max_lines=20,
                interactive=False,
                visible=False,
                elem_id="sample-text",
                buttons=["copy"],
            )
    with gr.Accordion("Commands that start a run", open=False):
        for title, command in COMMANDS.items():
            gr.Code(command, language="shell", label=title, interactive=False)
        gr.Markdown(
            "Ctrl-C, or an empty file `STOP` in the run's folder, finishes the step, saves and ends. The same command "
            "with `--resume` goes on.",
            elem_classes="hint",
        )
    return tab


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, opened: gr.Tab, others: list[gr.Tab]) -> None:
    """Wire the tab built by `layout`. opened: the tab itself; others: the tabs that put it out of sight."""
    outputs = [
        tab.run,
        tab.status,
        tab.view,
        tab.losses,
        tab.figures,
        tab.rates,
        tab.norms,
        tab.samples,
        tab.step,
        tab.pictures,
        tab.text,
    ]

    def show(name, step):
        """Read the run again; the newest samples are shown unless an older step was chosen."""
        skip = [gr.skip()] * (len(outputs) - 3)
        names = list_runs(tab.folder)
        if not names:
            note = f"There is no run in the folder {tab.folder.name!r} yet; one of the commands below starts one."
            return gr.update(choices=[], value=None), messages.status(note), gr.update(visible=False), *skip
        name = name if name in names else names[0]
        choices = gr.update(choices=names, value=name)
        try:
            run = open_run(tab.folder, name)
            log = list(run.events())
            text = report(run, log)
            steps = sample_steps(run)
            chosen = step if step in steps[:-1] else (steps[-1] if steps else None)
            pictures, words = read_samples(run, chosen) if steps else ([], "")
        except Exception as error:  # a run that is being written or deleted must not stop the page
            return choices, messages.alert(messages.sentence(error)), gr.update(visible=False), *skip
        return (
            choices,
            messages.status(text),
            gr.update(visible=True),
            curves(log, "log", "losses"),
            curves(log, "evaluation", "figures"),
            curves(log, "log", "learning_rates"),
            curves(log, "log", "gradient_norms"),
            gr.update(visible=bool(steps)),
            gr.update(choices=steps, value=chosen),
            gr.update(value=pictures, visible=bool(pictures)),
            gr.update(value=words, visible=bool(words)),
        )

    def tick(name, step):
        """As `show`, but pictures and texts are only sent again when there are newer ones."""
        shown = list(show(name, step))
        try:
            newest = sample_steps(open_run(tab.folder, name))[-1:]
        except ValueError:
            return shown
        if newest in ([], [step]):
            shown[7:] = [gr.skip()] * 4
        return shown

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    inputs = [tab.run, tab.step]
    opened.select(show, inputs, outputs, api_name="open_runs", **quiet)
    opened.select(lambda: gr.Timer(active=True), None, tab.timer, api_name="watch", **quiet)
    for other in others:
        other.select(lambda: gr.Timer(active=False), None, tab.timer, api_name="unwatch", **quiet)
    tab.timer.tick(tick, inputs, outputs, api_name="tick", **quiet)
    tab.run.input(lambda name: show(name, None), tab.run, outputs, api_name="choose_run", **quiet)
    tab.step.input(show, inputs, outputs, api_name="choose_step", **quiet)
