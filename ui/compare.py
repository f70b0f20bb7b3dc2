"""The Compare view of the Translate tab: two inputs, two models or two settings side by side."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr

from ui.services import Services
from ui.shown import Shown, on_view


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.note = gr.Markdown(elem_id="compare-note", elem_classes="hint")
    return view


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.compare."""

    def refresh(shown: Shown):
        if shown.translation is None:
            return ""
        return f"The search found {len(shown.translation.sentences[shown.sentence].hypotheses)} translations."

    on_view(tab, "compare", refresh, [tab.shown], [tab.compare.note], "compare")
