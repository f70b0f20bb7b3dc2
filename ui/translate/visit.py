"""What a link carries and a reload brings back: text, languages, model, view, kind, layer and head.

The browser keeps it behind the # of the page's address, which no server sees, and for the time that its tab is open.
"""

import json
from dataclasses import dataclass
from typing import Any

import gradio as gr

from transformer.insight.interpret import KINDS
from ui import theme
from ui.kit import QUICKLY
from ui.translate.work import MAX_CHARACTERS

COMBINATIONS = ("mean", "max", "rollout")
OLD_VIEWS = {  # views of earlier pages -> where they are now
    "compare": ("what_if", "sides"),
    "learning": ("layers", "learning"),
    "save": ("attention", ""),
}
_SCRIPT = theme.read("translate/visit.js")
RECALL = f"(carried, ...others) => {{ {_SCRIPT}\nreturn [recallVisit(), ...others]; }}"
KEEP = "(...values) => { " + _SCRIPT.replace("%", "%%") + "\nkeepVisit(values, %s); }"  # with the views' own fields
COPY = f"() => {{ {_SCRIPT}\ncopyLink(); }}"


@dataclass(frozen=True)
class Visit:
    """What the browser asks for; every field is checked, as anybody may have written the link."""

    text: str = ""
    pair: str | None = None
    model: str | None = None
    view: str | None = None
    kind: str = "cross"
    layer: int | None = None  # from 0
    head: int | str = "mean"  # from 0, or one of COMBINATIONS
    step: int = 0  # row of the query that is looked at, from 0
    part: str = ""  # of a view that has several


def carrier() -> gr.Textbox:
    """The component that brings the browser's word with the page's first event."""
    return gr.Textbox(visible=False, elem_id="visit")


def read_visit(text: Any) -> Visit:
    """The visit that the browser tells as JSON; whatever is not understood is left out."""
    try:
        fields = json.loads(text or "{}")
    except (TypeError, ValueError):
        return Visit()
    if not isinstance(fields, dict):
        return Visit()

    def word(name: str, most: int) -> str | None:
        value = fields.get(name)
        return value if isinstance(value, str) and 0 < len(value) <= most else None

    def number(name: str) -> int | None:
        value = str(fields.get(name, ""))
        return int(value) - 1 if value.isdigit() and 1 <= int(value) <= 2000 else None

    kind, head, place = fields.get("kind"), fields.get("head"), number("head")
    view, part = OLD_VIEWS.get(word("view", 20) or "", (word("view", 20), word("part", 20) or ""))
    return Visit(
        word("text", MAX_CHARACTERS) or "",
        word("pair", 20),
        word("model", 200),
        view,
        kind if kind in KINDS else "cross",
        number("layer"),
        str(head) if head in COMBINATIONS else "mean" if place is None else place,
        number("step") or 0,
        part,
    )


def remember(tab: Any) -> None:
    """Let the browser keep what is looked at in a `TranslateTab`, whenever that changes."""
    attention, settings = tab.attention, tab.settings
    fields = [tab.source, settings.pair, settings.model, attention.kind, attention.layer, attention.head]
    own = [(view.name, field, place) for view in tab.looks for field, place in view.address.items()]
    changes = [tab.source.input, tab.words.change, attention.kind.change, attention.layer.change, attention.head.change]
    changes += [place.change for _, _, place in own] + [item.select for item in tab.views.items.values()]
    script = KEEP % json.dumps([[view, field] for view, field, _ in own])
    inputs = [*fields, *(place for _, _, place in own)]
    gr.on(changes, None, inputs, None, js=script, api_name="keep_visit", **QUICKLY)
    tab.link.click(None, None, None, js=COPY, api_name="copy_link", **QUICKLY)
