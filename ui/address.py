"""Where an address of the page leads: a tab, a view, and what is looked at there.

The browser keeps the address (static/address.js) and opens tab and view itself; what lies inside them is set here.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ui import theme
from ui.kit import QUIETLY
from ui.translate import visit
from ui.translate.attention import COMBINED, layer_choices
from ui.translate.tab import TranslateTab

SCRIPTS = ("address.js", "keyboard.js", "queue.js")


def scripts() -> str:
    """The page's scripts that belong to no tab, each in a scope of its own."""
    return "\n".join(f"{{\n{(theme.STATIC / name).read_text(encoding='utf-8')}\n}}" for name in SCRIPTS)


def looked_at(tab: TranslateTab, shown: Any, carried: Any) -> dict:
    """Updates of the Translate tab's choices for what an address asks for; what the sentence does not have stays.

    carried: the address's fields as JSON, as `visit.read` takes it.
    """
    wanted, seen = visit.read(carried), tab.attention
    opened = tab.lead(wanted, shown)
    if shown.attention is None:
        return opened
    layers, layer = layer_choices(wanted.kind, wanted.layer, shown.attention)
    heads = shown.attention.cross.shape[1]
    known = isinstance(wanted.head, str) or wanted.head < heads
    return {
        **opened,
        seen.kind: wanted.kind,
        seen.layer: gr.update(choices=layers, value=layer),
        seen.head: gr.update(
            choices=COMBINED + [(str(n + 1), n) for n in range(heads)], value=wanted.head if known else "mean"
        ),
    }


def wire(head: gr.HTML, tab: TranslateTab) -> None:
    """Let the addresses that the page's head hears of lead into the Translate tab."""
    seen, views = tab.attention, tab.views

    def go(event: gr.EventData, shown):
        return looked_at(tab, shown, event.told) or gr.skip() if event.tab == "translate" else gr.skip()

    outputs = [seen.kind, seen.layer, seen.head, *tab.led]
    views.redraw_on(head.go, go, [tab.shown], outputs, api_name="address", **QUIETLY)
