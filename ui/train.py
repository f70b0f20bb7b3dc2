"""The Train tab: start a training, watch any run folder, use its checkpoints. A run is a process of its own; what is
shown is read from its folder, so it is the same after a reload and for runs that were started from a shell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd
from PIL import Image

from training import start
from training.run import ENDINGS, Run, list_runs, open_run
from ui import figures, messages, train_form, train_use
from ui.attention import KIND_LABELS, heat
from ui.services import Services
from ui.train_recipes import NETWORKS, duration, network_of_task

EVERY_SECONDS = 3
MOST_POINTS = 600  # of one curve; longer ones are thinned, a browser draws no more than it has pixels
MOST_TEXT = 20_000
TAIL = 15  # lines of the output shown when something failed
NOTHING_SEEN = ("", 0)
ITEMS = {"TranslationTask": "tokens"}  # what a task counts; the others count pictures
AXES = {"cross": ("target", "source"), "encoder": ("source", "source"), "decoder": ("target", "what was read")}
MEANING = {
    "new": "has not begun",
    "starting": "is starting",
    "running": "is running",
    "finished": "has finished",
    "stopped": "was stopped and can be resumed",
    "failed": "has failed",
    "interrupted": "was interrupted and can be resumed",
}


# -- reading a run, without Gradio ----------------------------------------------------------------------------------


def state_of(run: Run) -> str:
    """As `Run.status`, and 'starting' while a process prepares, 'failed' when it ended before its first word."""
    if run.is_running():
        last = run.last_event()
        return "starting" if last is None or last["event"] in (*ENDINGS, "fork") else "running"
    if start.is_starting(run):
        return "starting"
    return "failed" if start.died_early(run) else run.status()


def report(run: Run, events: list[dict[str, Any]]) -> str:
    """What a run is doing, as one or two plain sentences."""
    state = state_of(run)
    begun = next((event for event in reversed(events) if event["event"] == "start"), {})
    log = next((event for event in reversed(events) if event["event"] == "log"), None)
    try:
        task = run.recipe().get("task", "")
    except ValueError:  # the page made the folder, its process has not written yet
        task = ""
    network = network_of_task(task)
    parts = [f"{NETWORKS[network].title if network else task or 'The run'} {MEANING[state]}"]
    if state == "starting":  # preparing data can take minutes; its last line tells how far it is
        said = [line for line in run.output(3) if not line.startswith("$ ")]
        if said:
            parts[0] += f": {' '.join(said[-1].split())[:160].rstrip('.')}"
    if log:
        parts[0] += f" at step {log['step']:,} of {begun.get('steps', 0):,}"
        parts.append(f"{log['items_per_second']:,.0f} {ITEMS.get(task, 'pictures')}/s")
        if state == "running":
            parts.append(f"about {duration(log['seconds_left'])} left")
        norms = [v for v in log.get("gradient_norms", {}).values() if isinstance(v, (int, float))]
        if norms:
            parts.append(f"gradient norm {max(norms):.3g}")
        parts.append(f"{log['memory_mb'] / 1000:.1f} GB")
    found = next((event["figures"] for event in reversed(events) if event["event"] == "evaluation"), {})
    best = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in list(found.items())[:2] if isinstance(value, (int, float))]
    if best:
        parts.append("validation " + " and ".join(best))
    last = events[-1] if events else {}
    if state in ("failed", "stopped", "finished") and last.get("reason"):
        parts.append(str(last["reason"]).rstrip("."))
    return ", ".join(parts) + "."


def output_of(run: Run) -> str:
    """The last printed lines of a run that failed or was interrupted; empty for the others."""
    return "\n".join(run.output(TAIL)) if state_of(run) in ("failed", "interrupted") else ""


def curves(events: list[dict[str, Any]], kind: str, field: str) -> pd.DataFrame:
    """Long table (step, value, name) of the numbers in `field` of all events of one kind, thinned evenly."""
    rows = [
        # BLEU goes to 100 and losses to about 10: a tenth of it lets both be seen.
        (event["step"], float(value) / 10, "BLEU / 10") if name == "bleu" else (event["step"], float(value), name)
        for event in events
        if event["event"] == kind
        for name, value in event.get(field, {}).items()
        if not (name == "perplexity" and "loss" in event[field])  # exp(loss) would hide every other curve
        if isinstance(value, (int, float)) and np.isfinite(value)
    ]
    table = pd.DataFrame(rows, columns=["step", "value", "name"])
    longest = table.groupby("name").size().max() if len(table) else 0
    if longest > MOST_POINTS:
        steps = np.sort(table["step"].unique())
        kept = steps[np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int)]
        table = table[table["step"].isin(kept)]
    return table.reset_index(drop=True)


def rates(run: Run, events: list[dict[str, Any]]) -> pd.DataFrame:
    """The learning rates that were used, and those of the formula over the whole run, as `curves` has them."""
    used = curves(events, "log", "learning_rates")
    used["name"] = used["name"] + ", used"
    planned = [
        (step, value, f"{name}, formula")
        for name, points in run.plan().get("rates", {}).items()
        for step, value in points
        if isinstance(value, (int, float))
    ]
    return pd.concat([pd.DataFrame(planned, columns=["step", "value", "name"]), used], ignore_index=True)


def sample_steps(run: Run) -> list[int]:
    """Steps that have samples, oldest first."""
    folders = (run.folder / "samples").glob("step-*")
    return sorted(int(folder.name[5:]) for folder in folders if folder.name[5:].isdigit() and any(folder.iterdir()))


def read_samples(run: Run, step: int) -> tuple[list[tuple[np.ndarray, str]], str]:
    """Pictures with their names, and the text, of the samples of one step."""
    pictures, texts = [], []
    for file in sorted(run.samples(step).iterdir()):
        if file.suffix == ".png":
            pictures.append((np.asarray(Image.open(file).convert("RGB")), f"{file.stem}, step {step:,}"))
        elif file.suffix == ".txt":
            texts.append(file.read_text(encoding="utf-8", errors="replace")[:MOST_TEXT])
    return pictures, "\n".join(texts)


def read_attention(run: Run, step: int) -> dict[str, np.ndarray] | None:
    """The attention of one fixed sentence at a step, as the Transformer's samples hold it, or None."""
    file = run.samples(step) / "attention.npz"
    if not file.is_file():
        return None
    try:
        with np.load(file, allow_pickle=False) as data:
            return {name: data[name] for name in ("encoder", "decoder", "cross", "source", "read", "said")}
    except (ValueError, KeyError, OSError):  # being written, or damaged
        return None


def head_choices(attention: dict[str, np.ndarray], kind: str) -> list[tuple[str, str]]:
    """(label, "layer/head") of the maps of one kind, the mean of the last layer first."""
    layers, heads = attention[kind].shape[:2]
    return [
        (f"Layer {layer + 1}, " + ("mean over heads" if head == "mean" else f"head {head + 1}"), f"{layer}/{head}")
        for layer in reversed(range(layers))
        for head in ["mean", *range(heads)]
    ]


def attention_map(attention: dict[str, np.ndarray], kind: str, choice: str, step: int) -> dict:
    """One map of a step for the page. choice: as in `head_choices`; the first one where there is no such map."""
    choices = dict((key, label) for label, key in head_choices(attention, kind))
    choice = choice if choice in choices else next(iter(choices))
    layer, head = choice.split("/")
    maps = attention[kind][int(layer)].astype(np.float32)
    weights = maps.mean(0) if head == "mean" else maps[int(head)]
    rows = attention["source"] if kind == "encoder" else attention["said"]
    columns = attention["read"] if kind == "decoder" else attention["source"]
    queries, keys = AXES[kind]
    title = f"{choices[choice]} · step {step:,}"
    return figures.heat_map(np.clip(weights, 0, 1), list(rows), list(columns), title, f"queries: {queries}", f"keys: {keys}")


# -- layout ---------------------------------------------------------------------------------------------------------


def plot(title: str, elem_id: str, height: int) -> gr.LinePlot:
    """An empty plot of curves over steps."""
    return gr.LinePlot(
        x="step", y="value", color="name", title=title, height=height, min_width=300, elem_id=elem_id, y_title="",
        color_title=" ", buttons=["fullscreen"],
    )  # fmt: skip


def layout(services: Services) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace(folder=services.runs)
    gr.Markdown(
        "## Watch a network learn\nA training is a process of its own, started here or from a shell. This page reads its "
        "folder, so it may be closed and opened at any time.",
        elem_classes="section",
    )
    tab.form = train_form.layout(services)
    tab.timer = gr.Timer(EVERY_SECONDS, active=False)
    tab.seen = gr.State(NOTHING_SEEN)  # whose samples this page shows, and how many there were
    # Lists that change while the page is open accept any value: a tick on its way may still name what was just deleted.
    with gr.Row(elem_classes="actions"):
        tab.run = gr.Dropdown([], label="Run", allow_custom_value=True, elem_id="run", scale=1, min_width=220)
        tab.status = gr.HTML(elem_id="run-status", scale=3, min_width=260)
    tab.use = train_use.controls(services)
    tab.output = gr.Textbox(label="Last lines of its output", lines=4, max_lines=TAIL, interactive=False, visible=False,
                            elem_id="run-output", buttons=["copy"])  # fmt: skip
    with gr.Column(visible=False, elem_id="run-view") as tab.view:
        with gr.Row():
            tab.losses = plot("Loss terms, training", "plot-losses", 300)
            tab.figures = plot("Figures, validation", "plot-figures", 300)
        with gr.Row():
            with gr.Column(min_width=300):
                tab.rates = plot("Learning rate", "plot-rates", 220)
                tab.formula = gr.HTML(elem_id="rate-formula")
            with gr.Column(min_width=300):
                tab.norms = plot("Gradient norm", "plot-norms", 220)
        with gr.Column(visible=False) as tab.samples:
            gr.Markdown("### What it does with fixed inputs\nMove the slider to go back in time; at its end the newest "
                        "sample is followed.", elem_classes="section")  # fmt: skip
            tab.step = gr.Slider(0, 1, value=1, step=1, label="Sample", elem_id="sample-step", buttons=[])
            tab.pictures = gr.Gallery(
                label="Samples", format="png", columns=1, height="auto", object_fit="contain", visible=False,
                elem_id="sample-pictures", interactive=False, buttons=["download", "fullscreen"],
            )  # fmt: skip
            tab.text = gr.Textbox(
                label="Sample translations", lines=8, max_lines=20, interactive=False, visible=False,
                elem_id="sample-text", buttons=["copy"],
            )  # fmt: skip
            with gr.Column(visible=False, elem_id="attention-over-time") as tab.attention:
                gr.Markdown("### Attention to one fixed sentence", elem_classes="section")
                with gr.Row():
                    tab.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", elem_id="sample-kind", min_width=330)
                    tab.head = gr.Dropdown([], label="Head", allow_custom_value=True, elem_id="sample-head", min_width=200)
                tab.map = heat("sample-map")
    train_use.layout(tab.use, services)
    gr.Markdown(
        "In a shell, Ctrl-C or an empty file `STOP` in the run's folder finishes the step, saves and ends; the same command "
        "with `--resume` goes on.",
        elem_classes="hint",
    )
    return tab


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, opened: gr.Tab, others: list[gr.Tab], folder: Path) -> None:
    """Wire the tab built by `layout`. opened: the tab itself; others: the tabs that put it out of sight; folder: where
    zips for visitors are made."""
    use = tab.use
    steady = [tab.run, tab.status, tab.view, tab.output, tab.losses, tab.figures, tab.rates, tab.formula, tab.norms]
    sampled = [tab.samples, tab.seen, tab.step, tab.pictures, tab.text, tab.attention, tab.head, tab.map]
    used = [use.view, use.words, use.step, use.from_step]
    outputs = [*steady, *sampled, *used]
    inputs = [tab.run, tab.step, tab.seen, tab.kind, tab.head, use.step, use.from_step]

    def sample(run, steps, index, kind, head):
        """Updates of `sampled` for the sample number `index`."""
        step = steps[index]
        pictures, words = read_samples(run, step)
        attention = read_attention(run, step)
        choices = head_choices(attention, kind) if attention else []
        head = head if head in [key for _, key in choices] else (choices[0][1] if choices else None)
        return [
            gr.update(visible=True),
            (run.folder.name, len(steps)),
            gr.update(maximum=max(1, len(steps) - 1), value=index, label=f"Sample after step {step:,}", interactive=len(steps) > 1),
            gr.update(value=pictures, visible=bool(pictures)),
            gr.update(value=words, visible=bool(words)),
            gr.update(visible=attention is not None),
            gr.update(choices=choices, value=head),
            attention_map(attention, kind, head, step) if attention else gr.skip(),
        ]

    def show(name, index, seen=NOTHING_SEEN, kind="cross", head=None, use_step=None, fork_step=None, fresh=True):
        """Read the run again. index: of the sample, None = the newest; seen: as in tab.seen; fresh: show samples even if
        they are not new."""
        names = list_runs(tab.folder)
        if not names:
            note = f"There is no run in the folder {tab.folder.name!r} yet; start one."
            chosen = gr.update(choices=[], value=None) if fresh else gr.update(choices=[])
            return [chosen, messages.status(note), gr.update(visible=False), gr.update(visible=False),
                    *[gr.skip()] * 5, gr.update(visible=False), *[gr.skip()] * 7, gr.update(visible=False), *[gr.skip()] * 3]  # fmt: skip
        # A tick says nothing about which run is chosen: a visitor may have chosen another one while it was on its way.
        choices = gr.update(choices=names)
        if fresh or name not in names:
            name = name if name in names else names[0]
            choices = gr.update(choices=names, value=name)
        count = seen[1] if seen[0] == name else 0
        try:
            run = open_run(tab.folder, name)
            log = list(run.events())
            text, tail = report(run, log), output_of(run)
            steps = sample_steps(run)
            if index is None or seen[0] != name or index >= count - 1 or index >= len(steps):
                index = len(steps) - 1  # the end of the slider follows what is new
            if not steps:
                samples = [gr.update(visible=False), (name, 0), *[gr.skip()] * 6]
            elif fresh or (name, len(steps)) != tuple(seen):
                samples = sample(run, steps, index, kind, head)
            else:
                samples = [gr.skip()] * len(sampled)
            checkpoints = train_use.refresh(services, name, use_step, fork_step) if log else [gr.update(visible=False), *[gr.skip()] * 3]
        except Exception as error:  # a run that is being written or deleted must not stop the page
            hidden = gr.update(visible=False)
            return [choices, messages.alert(messages.sentence(error)), hidden, hidden, *[gr.skip()] * (len(outputs) - 4)]
        failed = state_of(run) == "failed"
        formula = run.plan().get("formula", "")
        return [
            choices,
            messages.alert(text) if failed else messages.status(text),
            gr.update(visible=bool(log)),
            gr.update(value=tail, visible=bool(tail)),
            curves(log, "log", "losses"),
            curves(log, "evaluation", "figures"),
            rates(run, log),
            messages.status(f"Formula: {formula}") if formula else "",
            curves(log, "log", "gradient_norms"),
            *samples,
            *checkpoints,
        ]

    def tick(*given):
        """As `show`, but pictures, texts and maps are only sent again when there are newer ones."""
        return show(*given, fresh=False)

    def newest(name, kind, head):
        return show(name, None, NOTHING_SEEN, kind, head)

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    chosen = [tab.run, tab.kind, tab.head]
    opened.select(newest, chosen, outputs, api_name="open_runs", **quiet)
    opened.select(lambda: gr.Timer(active=True), None, tab.timer, api_name="watch", **quiet)
    for other in others:
        other.select(lambda: gr.Timer(active=False), None, tab.timer, api_name="unwatch", **quiet)
    tab.timer.tick(tick, inputs, outputs, api_name="tick", **quiet)
    tab.run.input(newest, chosen, outputs, api_name="choose_run", **quiet)

    def scrub(name, index, kind, head):
        try:
            run = open_run(tab.folder, name)
            steps = sample_steps(run)
            return sample(run, steps, min(int(index), len(steps) - 1), kind, head)
        except Exception:  # deleted meanwhile: the next tick says so
            return [gr.skip()] * len(sampled)

    scrubbed = [tab.run, tab.step, tab.kind, tab.head]
    for control in (tab.step, tab.kind, tab.head):
        control.input(scrub, scrubbed, sampled, trigger_mode="always_last", **quiet)
    train_form.events(tab.form, services, tab, show, outputs)
    fill, fill_from, filled, command, command_from = tab.form.refresh
    # Filled at each opening: names that are free and times that were measured change.
    opened.select(fill, fill_from, filled, api_name="open_form", **quiet).then(
        command, command_from, [tab.form.command, tab.form.note], **quiet)  # fmt: skip
    train_use.events(use, services, tab, show, outputs, folder)
