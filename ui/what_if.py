"""The What if view of the Translate tab: change something inside the model and translate again."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr

from ui.services import Services
from ui.shown import Shown, on_view


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.note = gr.Markdown(elem_id="what-if-note", elem_classes="hint")
    return view


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.what_if."""

    def refresh(shown: Shown):
        if shown.translation is None:
            return ""
        chosen = shown.translation.sentences[shown.sentence].hypotheses[shown.hypothesis]
        return f"This translation has log-probability {chosen.logprob:.3f}."

    on_view(tab, "what_if", refresh, [tab.shown], [tab.what_if.note], "what_if")
