"""Recipes as the Train tab has them: settings between words and numbers, weights to begin with, and commands."""

import re
import shlex
import typing
from pathlib import Path
from typing import Any

from training.start import Limits
from ui.train.networks import NETWORKS, PRESETS, PUBLIC_PRESETS, seconds_of, settings_of


def text(value: Any) -> str:
    """A field's value as it is written on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse(network: str, texts: dict[str, str]) -> dict[str, Any]:
    """Values as typed by a person, in the types of the recipe's fields. Raises ValueError that names the field."""
    hints = typing.get_type_hints(NETWORKS[network].recipe)
    labels = {setting.field: setting for setting in settings_of(network)}
    values = {}
    for name, entry in texts.items():
        if name not in hints:
            raise ValueError(f"The {NETWORKS[network].title} has no setting {name!r}.")
        entry, kind, setting = str(entry).strip(), hints[name], labels.get(name)
        if not entry and setting and setting.unset is not None:
            values[name] = kind(setting.unset)
            continue
        try:
            if kind is bool:
                values[name] = {"true": True, "false": False}[entry.lower()]
            else:
                values[name] = kind(entry.replace(",", "") if kind in (int, float) else entry)
        except (ValueError, KeyError):
            what = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
            label = setting.label if setting else name
            raise ValueError(f"“{label}” has to be {what}, but is {entry[:40]!r}.") from None
    return values


def changes(network: str, base: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """The parsed settings that differ from `base`, all fields. Raises ValueError for contradictions too."""
    values = parse(network, texts)
    differences = {name: value for name, value in values.items() if value != base[name]}
    check = {**base, **differences}
    if "data" in check:  # whether there is data is checked where it is chosen
        check["data"] = check["data"] or "-"
    try:
        recipe = NETWORKS[network].recipe(**check)
        recipe.check()
        if hasattr(recipe, "model_config"):  # whether there is such a size
            recipe.model_config(check["vocab_size"])
    except ValueError as error:
        raise ValueError(in_words(network, str(error))) from None
    return differences


def in_words(network: str, sentence: str) -> str:
    """A sentence of a recipe with the settings called as the page calls them."""
    for setting in settings_of(network):
        anywhere = setting.field if "_" in setting.field else f"^{setting.field}"
        sentence = re.sub(rf"{anywhere}\b", f"“{setting.label}”", sentence)
    return sentence


def read_changes(network: str, line: str) -> dict[str, Any]:
    """Settings typed as on a command line: `--lr 0.0005 --steps 300`. Raises ValueError with one sentence."""
    try:
        words = shlex.split(line or "")
    except ValueError:
        raise ValueError("A quotation mark is not closed in the changed settings.") from None
    words = [
        part for word in words for part in (word.split("=", 1) if word.startswith("--") and "=" in word else [word])
    ]
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
    one = NETWORKS[network]
    return [*one.words, *one.resume_words, "--run", str(run), "--resume", *options(fields)]


def fork_command(network: str, source: Path, step: int, run: Path, fields: dict[str, Any]) -> list[str]:
    """Begins a run of its own at a checkpoint of another."""
    one = NETWORKS[network]
    begin = ["--fork", str(source), "--fork-step", str(step)]
    return [*one.words, *one.resume_words, *begin, "--run", str(run), *options(fields)]


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
            label = next((f"“{s.label}”" for s in settings_of(network) if s.field == name), name)
            raise ValueError(f"On this page {label} cannot be changed from {text(before)} to {text(value)}.")


def preset_label(network: str, preset: str) -> str:
    """What a preset is for, and how long it takes, for the list of presets."""
    words = f"{PRESETS[preset]} ({preset})" if preset in PRESETS else preset
    seconds = seconds_of(network, preset)
    return f"{words}: about {duration(seconds * NETWORKS[network].values(preset)['steps'])}" if seconds else words


def preset_names(network: str, limits: Limits | None) -> list[str]:
    """The presets that a page offers, the first one for beginners. limits: of that page."""
    one = NETWORKS[network]
    names = [name for name in one.presets if not (limits and limits.steps) or name in PUBLIC_PRESETS]
    return sorted(names, key=lambda name: name != one.first)


def network_names(limits: Limits | None) -> list[str]:
    """The networks that a page offers."""
    return [name for name in NETWORKS if preset_names(name, limits)]


def size_and_time(network: str, preset: str, fields: dict[str, Any], timing: tuple[float, str] | None) -> str:
    """How large a network is and how long a run takes, and where that is known from.

    Args:
        fields: of the run.
        timing: seconds a step on this machine and where they were measured, None where there was no run of it.
    """
    count, steps = NETWORKS[network].weights(fields), fields["steps"]
    weights = f"{count / 1e6:.1f} million weights" if count >= 1e5 else f"{count / 1000:.0f} thousand weights"
    seconds, source = seconds_of(network, preset), "estimated from one core of another machine"
    if timing:
        seconds, source = timing[0], f"measured here, {timing[1]}"
    if not seconds:
        return f"{weights}, {steps:,} steps; its time is not known: measure a step to know it here."
    return f"{weights}, {steps:,} steps, about {duration(steps * seconds)} ({source})."


def duration(seconds: float) -> str:
    """A time span for a reader: 45 s, 12 min, 3 h 05 min, 12 days."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 72 * 60 else f"{round(minutes / 1440)} days"
