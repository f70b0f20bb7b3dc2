"""What one visitor of the Translate tab looks at, and how the views below a translation hear of something new."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Callable

import gradio as gr
import numpy as np

STATE_SECONDS = 3600


@dataclass
class Shown:
    """What one visitor has on the page: a Translation, and the Attention of the sentence that is looked at.

    A view that keeps something of its own for this sentence does so in a State of its own.
    """

    translation: Any = None
    sentence: int = 0
    hypothesis: int = 0
    attention: Any = None
    changes: dict[str, np.ndarray] | None = None  # of the log-probability without each head, if asked for
    model: str | None = None  # key of the model that made the translation, as `services.translator` takes it


def on_view(
    tab: SimpleNamespace, name: str, refresh: Callable, inputs: list, outputs: list, api_name: str, **options: Any
) -> None:
    """Calls `refresh` when the view of that name is opened, and when a new sentence is shown while it is open.

    tab.views[name] is the view's gr.Tab, tab.view the State with the open one's name, tab.version a State that counts
    the sentences shown. Views that nobody looks at cost nothing.
    """

    def refresh_if_open(view, *values):
        return refresh(*values) if view == name else gr.skip()

    options = {"show_progress": "hidden", "api_visibility": "private", **options}
    tab.views[name].select(refresh, inputs, outputs, api_name=f"open_{api_name}", **options)
    tab.version.change(refresh_if_open, [tab.view, *inputs], outputs, api_name=f"refresh_{api_name}", **options)
