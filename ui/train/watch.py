"""Reading a run's folder for the page: its state in words, its curves, its samples. Without the page's library."""

import time
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from training import start
from training.run import ENDINGS, Run
from ui import figures, theme
from ui.train.networks import NETWORKS, network_of_task
from ui.train.recipes import duration

MAX_POINTS = 300  # of one curve; longer ones are thinned, a browser draws no more than it has pixels
MAX_LINES = 4  # of a chart; an eye tells no more apart
MAX_TEXT = 20_000
TAIL = 15  # lines of the output shown when something failed
# In words: the columns of a picture of samples by the name of its file, the axes of a map, states, phases and figures.
COLUMNS, AXES, MEANING, PHASES, FIGURES = theme.data("train/runs.json").values()
BUSY = ("starting", "running", "stopping")


@dataclass(frozen=True)
class RunSnapshot:
    """One look at a run: its folder, its log, its state and its heartbeat."""

    run: Run
    log: list[dict[str, Any]]
    state: str
    beat: dict[str, Any]

    @property
    def network(self) -> str | None:
        """Key of the network that it trains, None for a foreign task or before its recipe is written."""
        return network_of_task(self.task)

    @property
    def task(self) -> str:
        """Name of the recipe's task, "" before it is written."""
        try:
            return self.run.recipe().get("task", "")
        except ValueError:  # the page made the folder, its process has not written yet
            return ""

    def newest(self, kind: str) -> dict[str, Any]:
        """The last event of a kind, empty without one."""
        return next((event for event in reversed(self.log) if event["event"] == kind), {})

    @property
    def steps(self) -> int:
        """Steps in all, 0 before it has begun."""
        return self.newest("start").get("steps", 0)

    @property
    def step(self) -> int:
        """Steps made so far."""
        steps = (self.newest(kind).get("step", 0) for kind in ("log", "checkpoint"))
        return max(self.beat.get("step", 0), *steps)


def look(run: Run) -> RunSnapshot:
    """Reads the run's folder once."""
    return RunSnapshot(run, list(run.events()), state_of(run), run.heartbeat())


def state_of(run: Run) -> str:
    """As `Run.status`; and 'starting' while a process prepares, 'stopping' once it was asked to end, 'failed' when it
    ended before its first word.
    """
    if run.is_running():
        last = run.last_event()
        if run.stop_file.exists():
            return "stopping"
        return "starting" if last is None or last["event"] in (*ENDINGS, "fork") else "running"
    if start.is_starting(run):
        return "starting"
    return "failed" if start.has_failed_to_start(run) else run.status()


def report(snapshot: RunSnapshot) -> str:
    """What a run is doing, as one or two plain sentences."""
    title = NETWORKS[snapshot.network].title if snapshot.network else snapshot.task or "The run"
    parts = [f"{title} {MEANING[snapshot.state]}"]
    if snapshot.state == "starting":
        parts[0] += f": {preparing(snapshot)}"
    if snapshot.step:
        parts[0] += f" at step {snapshot.step:,} of {snapshot.steps:,}"
    last = snapshot.log[-1] if snapshot.log else {}
    if snapshot.state in ("failed", "stopped", "finished") and last.get("reason"):
        parts.append(str(last["reason"]).rstrip("."))
    return ", ".join(parts) + "."


def preparing(snapshot: RunSnapshot) -> str:
    """What a process does before its first step; a preparation that takes minutes tells how far it is."""
    lines = [line for line in snapshot.run.output(3) if not line.startswith(("$ ", "{"))]
    if lines and not snapshot.beat:
        return " ".join(lines[-1].split())[:160].rstrip(".")
    return PHASES["preparing"] if snapshot.beat else "its program is being loaded"


def figures_of(snapshot: RunSnapshot) -> dict[str, float]:
    """The finite numbers of the newest test."""
    numbers = snapshot.newest("evaluation").get("figures", {})
    return {name: value for name, value in numbers.items() if isinstance(value, (int, float)) and not is_count(name)}


def is_count(name: str) -> bool:
    """Whether a figure says how many pictures another one is a mean over: no curve, and larger than all shares."""
    return name.endswith("_pictures")


def in_words(name: str) -> str:
    """A number's name for a reader."""
    return FIGURES.get(name, name.replace("_", " "))


def facts(snapshot: RunSnapshot) -> list[str]:
    """How fast it is, how long it takes, how much memory it needs."""
    log, parts = snapshot.newest("log"), []
    best = [f"{in_words(name)} {value:.3g}" for name, value in figures_of(snapshot).items()]
    if best:
        parts.append("test: " + ", ".join(best[:2]))
    if not log:
        return parts
    if snapshot.state == "running":
        parts.append(f"about {duration(log['seconds_left'])} left")
    unit = NETWORKS[snapshot.network].counts if snapshot.network else "pictures"
    speed = log["items_per_second"]
    parts.append(f"{speed:,.0f} {unit} a second" if speed >= 10 else f"{speed:.2g} {unit} a second")
    if "memory_mb" in log:
        parts.append(f"{log['memory_mb'] / 1000:.1f} GB of memory")
    return parts


def heartbeat(snapshot: RunSnapshot) -> str:
    """The process's last sign of life, in words; empty for a run without a process."""
    if snapshot.state not in BUSY or not snapshot.beat:
        return ""
    ago = max(0.0, time.time() - snapshot.beat["time"])
    when = "just now" if ago < 3 else f"{duration(ago)} ago"
    what = PHASES.get(snapshot.beat["phase"], f"step {snapshot.beat['step']:,}")
    losses = [f"{in_words(k)} {v:.3g}" for k, v in snapshot.beat["losses"].items() if isinstance(v, (int, float))][:2]
    return f"{what}, {when}" + (f": {', '.join(losses)}" if losses else "")


def status_html(snapshot: RunSnapshot) -> str:
    """The sentence, the progress bar and the heartbeat of a run; every text is escaped here."""
    alert = snapshot.state == "failed"
    role = "alert" if alert else "status"
    lines = [
        f'<div class="note {"note-alert" if alert else "run-says"}" role="{role}">{escape(report(snapshot))}</div>'
    ]
    if snapshot.steps:
        share = 100 * min(1.0, snapshot.step / snapshot.steps)
        lines.append(
            f'<div class="run-bar" role="progressbar" aria-label="Progress of the training" aria-valuemin="0" '
            f'aria-valuemax="100" aria-valuenow="{share:.0f}"><div class="run-done {snapshot.state}" '
            f'style="width: {share:.1f}%"></div></div>'
        )
    elif snapshot.state == "starting":
        lines.append(
            '<div class="run-bar" role="progressbar" aria-label="Preparing"><div class="run-waits"></div></div>'
        )
    beat = heartbeat(snapshot)
    items = [f'<span class="run-beat"><span class="run-heart">♥</span> {escape(beat)}</span>'] if beat else []
    items += [f"<span>{escape(fact)}</span>" for fact in facts(snapshot)]
    return "\n".join([*lines, f'<div class="run-facts">{"".join(items)}</div>' if items else ""])


def output_of(snapshot: RunSnapshot) -> str:
    """The last printed lines of a run that failed or was interrupted; empty for the others."""
    return "\n".join(snapshot.run.output(TAIL)) if snapshot.state in ("failed", "interrupted") else ""


# -- curves ---------------------------------------------------------------------------------------------------------


def curves(events: list[dict[str, Any]], kind: str, field: str) -> dict[str, list[tuple[int, float]]]:
    """name -> points (step, value) of the finite numbers in `field` of all events of one kind, thinned evenly."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for event in events:
        if event["event"] != kind:
            continue
        for name, value in event.get(field, {}).items():
            if isinstance(value, (int, float)) and np.isfinite(value):
                lines.setdefault(name, []).append((event["step"], float(value)))
    return {name: thin(points) for name, points in lines.items()}


def thin(points: list[tuple[int, float]], most: int = MAX_POINTS) -> list[tuple[int, float]]:
    """At most so many of the points, spread evenly, with both ends."""
    if len(points) <= most:
        return points
    return [points[i] for i in np.linspace(0, len(points) - 1, most).round().astype(int)]


def chart(title: str, lines: dict[str, list[tuple[int, float]]], plans: tuple[str, ...] = (), note: str = "") -> dict:
    """Curves over steps for `static/train/chart.js`, which draws nothing where there are no lines.

    Of more than `MAX_LINES`, the first and those with the largest newest values are drawn; the values of the others
    stand below.

    plans: names of lines that are plans or bounds; note: a line of text below.
    """
    lines = {name: points for name, points in lines.items() if points}
    if len(lines) > MAX_LINES:
        first, *others = lines
        largest = {first, *sorted(others, key=lambda name: -abs(lines[name][-1][1]))[: MAX_LINES - 1]}
        others_text = ", ".join(f"{name} {lines[name][-1][1]:.3g}" for name in lines if name not in largest)
        lines = {name: points for name, points in lines.items() if name in largest}
        note = f"{note} · {others_text}".removeprefix(" · ")
    values = [
        {
            "name": name,
            "steps": [step for step, _ in points],
            "values": [float(f"{value:.6g}") for _, value in points],
            "dashed": name in plans,
        }
        for name, points in lines.items()
    ]
    return {"title": title, "lines": values, "note": note}


def losses(snapshot: RunSnapshot) -> dict:
    """The loss terms; the heartbeat's are the newest point, so that the first one is there from the first step."""
    lines = curves(snapshot.log, "log", "losses")
    last = snapshot.newest("log").get("step", 0)
    for name, value in snapshot.beat.get("losses", {}).items():
        if snapshot.beat["step"] > last and isinstance(value, (int, float)):
            lines.setdefault(name, []).append((snapshot.beat["step"], value))
    return chart("What it learns from: loss", {in_words(name): points for name, points in lines.items()})


def tests(snapshot: RunSnapshot) -> dict:
    """The figures on text or pictures that were put aside."""
    lines = {k: v for k, v in curves(snapshot.log, "evaluation", "figures").items() if not is_count(k)}
    if "loss" in lines:
        lines.pop("perplexity", None)  # exp(loss) would hide every other curve
    if "bleu" in lines and len(lines) > 1:  # BLEU goes to 100 and losses to about 10: a tenth of it lets both be seen
        lines["BLEU / 10"] = [(step, value / 10) for step, value in lines.pop("bleu")]
    return chart("What it was not shown: tests", {in_words(name): points for name, points in lines.items()})


def rates(snapshot: RunSnapshot) -> dict:
    """The learning rates that were used, and those of the formula over the whole run."""
    plan = snapshot.run.plan()
    actual = curves(snapshot.log, "log", "learning_rates")
    one = len(plan.get("rates", {}) | actual) == 1
    plans = {
        "plan" if one else f"{in_words(name)}, plan": [
            (step, value) for step, value in points if isinstance(value, (int, float))
        ]
        for name, points in plan.get("rates", {}).items()
    }
    formula = plan.get("formula", "")
    lines = {**plans, **{"used" if one else f"{in_words(name)}, used": points for name, points in actual.items()}}
    drawing = chart("Learning rate", lines, tuple(plans), f"Formula: {formula}" if formula else "")
    return {**drawing, "linear": True}


def norms(snapshot: RunSnapshot) -> dict:
    """The gradient norms."""
    lines = curves(snapshot.log, "log", "gradient_norms")
    return chart("Size of the gradient", {in_words(name): points for name, points in lines.items()})


# -- samples --------------------------------------------------------------------------------------------------------


def sample_steps(run: Run) -> list[int]:
    """Steps that have samples, oldest first."""
    folders = (run.folder / "samples").glob("step-*")
    return sorted(int(folder.name[5:]) for folder in folders if folder.name[5:].isdigit() and any(folder.iterdir()))


def read_samples(run: Run, step: int) -> tuple[list[tuple[np.ndarray, str]], str]:
    """Pictures with their names, and the text, of the samples of one step."""
    pictures, texts = [], []
    for file in sorted(run.samples(step).iterdir()):
        if file.suffix == ".png":
            columns = f"; from the left: {COLUMNS[file.stem]}" if file.stem in COLUMNS else ""
            with suppress(OSError):  # being written; the next look has it whole
                pictures.append((np.asarray(Image.open(file).convert("RGB")), f"{file.stem}, step {step:,}{columns}"))
        elif file.suffix == ".txt":
            texts.append(file.read_text(encoding="utf-8", errors="replace")[:MAX_TEXT])
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
    choices = {key: label for label, key in head_choices(attention, kind)}
    choice = choice if choice in choices else next(iter(choices))
    layer, head = choice.split("/")
    maps = attention[kind][int(layer)].astype(np.float32)
    weights = maps.mean(0) if head == "mean" else maps[int(head)]
    rows = attention["source"] if kind == "encoder" else attention["said"]
    columns = attention["read"] if kind == "decoder" else attention["source"]
    queries, keys = AXES[kind]
    title = f"{choices[choice]} · step {step:,}"
    return figures.heat_map(
        np.clip(weights, 0, 1), list(rows), list(columns), title, f"queries: {queries}", f"keys: {keys}"
    )
