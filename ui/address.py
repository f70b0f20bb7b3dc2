"""Where an address of the page leads: a tab, a view, and what is looked at there.

The browser keeps the address (static/address.js) and opens tab and view itself; what lies inside them is set here.
"""

from typing import Any

import gradio as gr

from ui import theme
from ui.kit import QUIETLY
from ui.translate import visit
from ui.translate.attention import COMBINATIONS, layer_choices
from ui.translate.tab import TranslateTab
from ui.translate.words import number_choices

SCRIPTS = ("address.js", "files.js", "keyboard.js", "queue.js")


def scripts() -> str:
    """The page's scripts that belong to no tab, each in a scope of its own."""
    return "\n".join(f"{{\n{theme.read(name)}\n}}" for name in SCRIPTS)


def choices(tab: TranslateTab, current: Any, fields: Any) -> dict:
    """Updates of the Translate tab's choices for what an address asks for; what the sentence does not have stays.

    fields: the address's fields as JSON, as `visit.read_visit` takes it.
    """
    place, controls = visit.read_visit(fields), tab.attention
    updates = tab.lead(place, current)
    if current.attention is None:
        return updates
    layers, layer = layer_choices(place.kind, place.layer, current.attention)
    heads = current.attention.cross.shape[1]
    head_exists = isinstance(place.head, str) or place.head < heads
    return {
        **updates,
        controls.kind: place.kind,
        controls.layer: gr.update(choices=layers, value=layer),
        controls.head: gr.update(
            choices=COMBINATIONS + number_choices(heads), value=place.head if head_exists else "mean"
        ),
    }


def wire(head: gr.HTML, tab: TranslateTab) -> None:
    """Let the addresses that the page's head hears of lead into the Translate tab."""
    controls, views = tab.attention, tab.views

    def go(event: gr.EventData, current):
        return choices(tab, current, event.fields) or gr.skip() if event.tab == "translate" else gr.skip()

    outputs = [controls.kind, controls.layer, controls.head, *tab.lead_outputs]
    views.redraw_on(head.go, go, [tab.current], outputs, api_name="address", **QUIETLY)
