"""What the Train tab offers: the five networks, their presets and settings, and the commands that train them."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import shlex
import typing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from training import assets
from training.start import Limits


@dataclass(frozen=True)
class Setting:
    """A recipe's field. paper: its value in the paper, "" where the paper has no such thing; about: what it is."""

    field: str
    paper: str
    about: str


@dataclass(frozen=True)
class Network:
    """A network that can be trained. words: of its command line; recipe: module and class; settings: the ones that
    matter, at most eight; first: the preset for a first try."""

    title: str
    words: tuple[str, ...]
    module: str
    recipe_class: str
    first: str
    task: str
    settings: tuple[Setting, ...]

    @property
    def recipe(self) -> type:
        """The recipe's dataclass."""
        return getattr(import_module(self.module), self.recipe_class)

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """Preset -> the fields in which it differs from the dataclass."""
        return import_module(self.module).PRESETS


_TRYON = ("python", "-m", "vton.train")
_STEPS = "updates in all"
NETWORKS = {
    "transformer": Network(
        "Transformer", ("python", "-m", "transformer.train"), "transformer.train", "TranslationRecipe", "tiny",
        "TranslationTask",
        (Setting("size", "base", "row of Table 3, or mini, tiny, small"), Setting("steps", "100,000", _STEPS),
         Setting("tokens", "25,000", "tokens a batch, each side"), Setting("warmup", "4,000", "steps of warm-up"),
         Setting("rate_scale", "1", "factor on equation 3"), Setting("dropout", "0.1", "-1: as the size has it"),
         Setting("label_smoothing", "0.1", "-1: as the size has it"), Setting("vocab_size", "37,000", "word pieces")),
    ),
    "parser": Network(
        "Human parser", (*_TRYON, "parser"), "vton.recipes.parser", "ParserRecipe", "drawn", "ParserTask",
        (Setting("steps", "", _STEPS), Setting("batch", "", "pictures a batch"), Setting("lr", "", "learning rate"),
         Setting("warmup", "", "steps of warm-up"), Setting("dice", "", "weight of the Dice term"),
         Setting("height", "", "of the training pictures"), Setting("width", "", "of the training pictures"),
         Setting("ema", "", "decay of the averaged weights")),
    ),
    "segmentation": Network(
        "Segmentation generator", (*_TRYON, "segmentation"), "vton.recipes.segmentation", "SegmentationRecipe", "drawn",
        "SegmentationTask",
        (Setting("steps", "200,000", _STEPS), Setting("batch", "8", "pictures a batch"),
         Setting("lr", "0.0004", "rate of the generator"), Setting("lr_d", "0.0004", "rate of the discriminator"),
         Setting("cross_entropy", "10", "weight λ of equation 8"), Setting("gan", "1", "weight of the adversarial term"),
         Setting("width", "64", "channels of the first layer"), Setting("ema", "", "decay of the averaged weights")),
    ),
    "matching": Network(
        "Matching module", (*_TRYON, "matching"), "vton.recipes.matching", "MatchingRecipe", "drawn", "MatchingTask",
        (Setting("steps", "50,000", _STEPS), Setting("batch", "8", "pictures a batch"),
         Setting("lr", "0.0002", "learning rate"), Setting("second_order", "0.04", "weight λ of equation 11"),
         Setting("mask", "", "weight of an L1 term on the mask"), Setting("grid", "5", "control points a side"),
         Setting("width", "64", "channels of the first layer"), Setting("ema", "", "decay of the averaged weights")),
    ),
    "alias": Network(
        "ALIAS generator", (*_TRYON, "alias"), "vton.recipes.alias", "AliasRecipe", "drawn", "AliasTask",
        (Setting("steps", "200,000", _STEPS), Setting("batch", "4", "pictures a batch"),
         Setting("lr", "0.0001", "rate of the generator"), Setting("lr_d", "0.0004", "rate of the discriminator"),
         Setting("feature_matching", "10", "weight of equation 14"), Setting("perceptual", "10", "weight of equation 15"),
         Setting("l1", "", "weight of a plain L1 term"), Setting("height", "1,024", "of the pictures")),
    ),
}  # fmt: skip
COMMON = (
    Setting("seed", "", "of weights, order and dropout"),
    Setting("save_every", "", "steps between checkpoints"),
    Setting("evaluate_every", "", "steps between evaluations; 0: never"),
    Setting("keep_last", "", "checkpoints kept, besides the best"),
    Setting("patience", "", "evaluations without progress; 0: no early end"),
    Setting("accumulate", "", "micro-batches an update"),
    Setting("precision", "", "no (32 bits) or bf16"),
    Setting("threads", "", "processor threads; 0: all"),
)
POOL = 8  # settings of each of the two groups
# network, preset -> parameters in millions, processor seconds a step on one core of a 2-core server, with the bundled
# data; `python -m benchmarks.engine --presets` prints them (`--time` of a recipe's command for the others)
COSTS: dict[tuple[str, str], tuple[float, float]] = {
    ("transformer", "tiny"): (0.18, 0.037), ("transformer", "quick"): (0.18, 0.087),
    ("transformer", "multi30k"): (2.34, 0.49), ("transformer", "everyday"): (8.88, 0.87),
    ("parser", "drawn"): (7.55, 0.46), ("parser", "lite-cpu"): (7.55, 2.0),
    ("segmentation", "drawn"): (1.22, 0.64), ("segmentation", "lite-cpu"): (3.38, 4.5),
    ("matching", "drawn"): (0.92, 0.27), ("matching", "lite-cpu"): (3.06, 0.63),
    ("alias", "drawn"): (0.69, 0.31),
}  # fmt: skip
SMALL = ("tiny", "drawn", "quick")  # presets that a public page may offer


GENTLE = 0.3  # weights that are trained already bear this share of a preset's learning rate
RATES = ("rate_scale", "lr", "lr_d")


@functools.lru_cache(maxsize=None)
def beginnings(network: str, preset: str) -> dict[str, Path]:
    """Shipped weights of the very shape that a preset trains: name -> their folder."""
    chosen = NETWORKS[network]
    recipe = chosen.recipe(**{**values(network, preset), **({"data": "-"} if network == "transformer" else {})})
    try:
        folders = {name: assets.model_dir(name) for name in assets.list_models()}
    except FileNotFoundError:
        return {}
    if network != "transformer":
        folders = {name: folder / network for name, folder in folders.items()}
    found = {}
    for name, folder in folders.items():
        if not (folder / "model.safetensors").is_file():
            continue
        shipped = json.loads((folder / "config.json").read_text())
        if network == "transformer":
            shipped = shipped["transformer"]
            own = recipe.model_config(shipped["vocab_size"]).to_dict()
            of_no_shape = ("dropout", "label_smoothing", "max_length", "neighbourhood")
            shipped |= {field: own[field] for field in of_no_shape}
        else:
            own = dataclasses.asdict(import_module(chosen.module).network_config(recipe))
        if json.loads(json.dumps(own)) == shipped:
            found[name] = folder
    return found


def gentle_rates(network: str, preset: str) -> dict[str, str]:
    """The learning rates to begin with trained weights, as text of their boxes."""
    base = values(network, preset)
    return {name: text(round(base[name] * GENTLE, 10)) for name in RATES if name in base}


def beginning_fields(network: str, preset: str, name: str, columns: tuple[str, str]) -> dict[str, Any]:
    """The recipe's fields that begin with the shipped weights `name`; none for "", which are random weights.

    columns: source and target of the text. A model that was told its target language by a token goes on learning both ways.
    Raises ValueError for weights that do not fit, or that do not know these languages.
    """
    if not name:
        return {}
    known = beginnings(network, preset)
    if name not in known:
        raise ValueError(f"The weights {str(name)[:40]!r} do not fit this preset; choose others of the list.")
    inside = known[name].is_relative_to(Path.cwd())
    fields: dict[str, Any] = {"initial": os.path.relpath(known[name]) if inside else str(known[name])}
    if network == "transformer":
        fields["align"] = 0.0  # its attention is aligned already
        config = json.loads((known[name] / "config.json").read_text())
        if config["language_tokens"]:
            languages = sorted({language for pair in config["pairs"] for language in pair})
            if not set(columns) <= set(languages):
                raise ValueError(
                    f"{name} knows {', '.join(languages)}: name the columns of the table by their languages, not {', '.join(columns)}."
                )
            fields["directions"] = f"{columns[0]}-{columns[1]} {columns[1]}-{columns[0]}"
    return fields


def network_of_task(task: str) -> str | None:
    """Key of the network that a run's task trains."""
    return next((key for key, network in NETWORKS.items() if network.task == task), None)


def values(network: str, preset: str) -> dict[str, Any]:
    """Every field of a preset with its value."""
    chosen = NETWORKS[network]
    made = {f.name: f.default for f in dataclasses.fields(chosen.recipe)}
    return {**made, **chosen.presets[preset]}


def text(value: Any) -> str:
    """A field's value as it is written on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse(network: str, given: dict[str, str]) -> dict[str, Any]:
    """Values as typed by a person, in the types of the recipe's fields. Raises ValueError that names the field."""
    hints = typing.get_type_hints(NETWORKS[network].recipe)
    parsed = {}
    for name, typed in given.items():
        if name not in hints:
            raise ValueError(f"The {NETWORKS[network].title} has no setting {name!r}.")
        typed, kind = str(typed).strip(), hints[name]
        try:
            if kind is bool:
                parsed[name] = {"true": True, "false": False}[typed.lower()]
            else:
                parsed[name] = kind(typed.replace(",", "") if kind in (int, float) else typed)
        except (ValueError, KeyError):
            what = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
            raise ValueError(f"{name} has to be {what}, but is {typed!r}.") from None
    return parsed


def changes(network: str, preset: str, given: dict[str, str]) -> dict[str, Any]:
    """The parsed settings that differ from the preset. Raises ValueError for contradictions too."""
    base, parsed = values(network, preset), parse(network, given)
    found = {name: value for name, value in parsed.items() if value != base[name]}
    check = {**base, **found}
    if "data" in check:  # whether there is data is checked where it is chosen
        check["data"] = check["data"] or "-"
    NETWORKS[network].recipe(**check).check()
    return found


def typed_changes(network: str, line: str) -> dict[str, Any]:
    """Settings typed as on a command line: `--lr 0.0005 --steps 300`. Raises ValueError with one sentence."""
    try:
        words = shlex.split(line or "")
    except ValueError:
        raise ValueError("A quotation mark is not closed in the changed settings.") from None
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") and "=" in word else [word])]
    if len(words) % 2 or any(not re.fullmatch(r"--[a-z0-9-]+", word) for word in words[::2]):
        raise ValueError("Write changed settings as on a command line, for example --lr 0.0005 --steps 300.")
    return parse(network, {w[2:].replace("-", "_"): v for w, v in zip(words[::2], words[1::2])})


def options(fields: dict[str, Any]) -> list[str]:
    """Fields as words of a command line."""
    return [word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", text(value))]


def start_command(network: str, preset: str, run: Path, fields: dict[str, Any]) -> list[str]:
    """Trains from the beginning."""
    return [*NETWORKS[network].words, "--preset", preset, *options(fields), "--run", str(run)]


def resume_command(network: str, run: Path, fields: dict[str, Any]) -> list[str]:
    """Goes on from the newest checkpoint."""
    return [*NETWORKS[network].words, "--run", str(run), "--resume", *options(fields)]


def fork_command(network: str, source: Path, step: int, run: Path, fields: dict[str, Any]) -> list[str]:
    """Begins a run of its own at a checkpoint of another."""
    return [*NETWORKS[network].words, "--fork", str(source), "--fork-step", str(step), "--run", str(run), *options(fields)]


def check_public(network: str, base: dict[str, Any], fields: dict[str, Any], limits: Limits) -> None:
    """Raises ValueError when a change would make a run on a public page costlier than `base`.

    base: the fields of the preset or of the run that is resumed. Numbers may only shrink, except for those that cost
    nothing; names of files and networks stay as they are.
    """
    if limits == Limits():
        return
    free = {"seed", "steps", "warmup", "patience", "source", "target"}
    for name, value in fields.items():
        if name in free or name in limits.fields():
            continue
        before = base.get(name)
        grows = isinstance(value, int) and not isinstance(value, bool) and value > (before or 0)
        if grows or isinstance(value, str) or name == "compile":
            raise ValueError(f"On this page {name} cannot be changed from {text(before)} to {text(value)}.")


def size_and_time(network: str, preset: str, steps: int, measured: tuple[float, str] | None) -> str:
    """How large a preset's network is and how long it takes, and where that is known from.

    measured: seconds a step on this machine and where they were measured, None where there was no run of it.
    """
    parameters, recorded = COSTS.get((network, preset), (0.0, 0.0))
    size = f"{parameters:.1f} million weights, " if parameters >= 0.1 else f"{1000 * parameters:.0f} thousand weights, "
    size = size if parameters else ""
    if measured:
        return f"{size}{steps:,} steps, about {duration(steps * measured[0])} (measured here, {measured[1]})."
    if recorded:
        estimate = "estimated from one core of another machine; measure a step to know it here"
        return f"{size}{steps:,} steps, about {duration(steps * recorded)} ({estimate})."
    return f"{size}{steps:,} steps; its time was not recorded: measure a step to know it here."


def duration(seconds: float) -> str:
    """A time span for a reader: 45 s, 12 min, 3 h 05 min, 12 days."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 72 * 60 else f"{round(minutes / 1440)} days"
