"""The Decoding view of the Translate tab: how the translation comes about, token by token."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr

from ui.services import Services
from ui.shown import Shown, on_view


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.note = gr.Markdown(elem_id="decoding-note", elem_classes="hint")
    return view


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.decoding."""

    def refresh(shown: Shown):
        if shown.translation is None:
            return ""
        chosen = shown.translation.sentences[shown.sentence].hypotheses[shown.hypothesis]
        return f"The decoder wrote {len(chosen.tokens)} tokens, one after the other."

    on_view(tab, "decoding", refresh, [tab.shown], [tab.decoding.note], "decoding")
