"""The lessons' paths: stops with a time, a question, what to do and an answer, filled with what is on the page.

A path is a file of `static/lessons`, named like its view. Its texts are HTML of ours with gaps for the facts below.
"""

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from transformer.insight import interpret
from ui import theme
from ui.translate.view import CurrentTranslation
from ui.translate.words import plain, tokens_html

FOLDER = theme.STATIC / "lessons"
MAX_TOKENS = 24  # that an answer lists


@dataclass(frozen=True)
class Stop:
    """One stop of a lesson; all but title and minutes are HTML."""

    title: str
    minutes: int
    question: str
    do: str
    answer: str


@dataclass(frozen=True)
class Path:
    """A lesson. about: a line of HTML above its stops."""

    title: str
    about: str
    stops: tuple[Stop, ...]

    @property
    def minutes(self) -> int:
        """How long it takes."""
        return sum(stop.minutes for stop in self.stops)


def read_path(name: str) -> Path:
    """The path of a name, its gaps open."""
    text = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Path(text["title"], text["about"], tuple(Stop(**stop) for stop in text["stops"]))


def of_sentence(current: CurrentTranslation) -> dict[str, Any]:
    """What the path of attention says of the sentence that is shown. Raises ValueError where none was attended to."""
    attention = current.attention
    if attention is None:
        raise ValueError("Translate a sentence with words first; this lesson is about your own sentence.")
    layer = attention.cross.shape[0] - 1
    try:
        part = interpret.attention_map(attention, "cross", layer, interpret.MEAN, without_ends=True)
    except ValueError:  # nothing but start and end
        part = interpret.attention_map(attention, "cross", layer, interpret.MEAN)
    row, column = np.unravel_index(part.weights.argmax(), part.weights.shape)
    whole = attention.cross[layer].mean(0)
    steps, read_tokens = len(attention.target_tokens), attention.source_tokens
    return {
        "text": escape(current.entry.source_text),
        "count": len(read_tokens),
        "tokens": tokens_html(read_tokens[:MAX_TOKENS], " …" * (len(read_tokens) > MAX_TOKENS)),
        "query": f'<b translate="no">{escape(plain(part.rows[row]))}</b>',
        "key": f'<b translate="no">{escape(plain(part.columns[column]))}</b>',
        "weight": float(whole[part.row_places[row], part.column_places[column]]),
        "heads": attention.cross.shape[1],
        "hidden": steps * (steps - 1) // 2,
        "cells": steps * steps,
    }


def of_tryon(settings: dict[str, Any] | None) -> dict[str, Any]:
    """What the path of try-on says of a record's settings (`vton.record.settings`). Raises ValueError without any."""
    if settings is None:
        raise ValueError("Try a garment on first; this lesson is about your own try-on.")
    seconds, quality = settings["seconds"], settings["quality"]
    slowest = max(seconds, key=lambda stage: seconds[stage])
    return {
        "seconds": sum(seconds.values()),
        "slowest": slowest,
        "joints": quality["joints"],
        "joints_wanted": quality["joints_wanted"],
        "share": 100 * quality["misaligned_share"],
    }


def html(path: Path, name: str, facts: dict[str, Any]) -> str:
    """The path as HTML. name: of its view, as its stops' addresses have it."""
    stops, begin = [], 0
    for number, stop in enumerate(path.stops, start=1):
        address = f"#tab=lessons&amp;view={name}&amp;stop={number}"
        stops.append(
            f'<li class="lesson-stop" id="stop-{name}-{number}"><h3><a href="{address}">{number}</a> '
            f'{escape(stop.title)} <span class="lesson-time">{begin}–{begin + stop.minutes} min</span></h3>'
            f'<p class="lesson-question">{stop.question}</p><p class="lesson-do"><b>Do:</b> {stop.do}</p>'
            f"<details><summary>Answer</summary><p>{stop.answer.format_map(facts)}</p></details></li>"
        )
        begin += stop.minutes
    return (
        f'<article class="lesson" data-path="{name}"><h2>{escape(path.title)}</h2>'
        f'<p class="lesson-about">{path.about.format_map(facts)}</p>'
        '<p class="lesson-buttons"><button type="button" data-print="questions">Print the questions</button> '
        '<button type="button" data-print="answers">Print with answers</button></p>'
        f'<ol class="lesson-stops">{"".join(stops)}</ol></article>'
    )
