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
    pair: str | None = None  # its languages, for example "en-de"


def on_view(
    tab: SimpleNamespace, name: str, refresh: Callable, inputs: list, outputs: list, api_name: str, **options: Any
) -> None:
    """Calls `refresh` when the view of that name is opened, and when a new sentence is shown while it is open.

    tab.views[name] is the view's gr.Tab and tab.view the State with the open one's name. Views that nobody looks at
    cost nothing. options: those of the event that opens the view.
    """
    options = {"show_progress": "hidden", "api_visibility": "private", **options}
    tab.views[name].select(refresh, inputs, outputs, api_name=f"open_{api_name}", **options)
    tab.refreshers[name] = refresh, inputs, outputs


class Refresh:
    """Draws whichever view is open, as one event with the inputs and outputs of them all: one message each way.

    Made when every view has called `on_view`. always: names of those that are drawn whatever is open.
    """

    def __init__(self, tab: SimpleNamespace, always: tuple[str, ...] = (), known: tuple = ()) -> None:
        """known: components whose values the caller has and may not be outputs here."""
        self.refreshers, self.always = tab.refreshers, always
        self.inputs = [tab.view]
        self.outputs: list = []
        for _, inputs, outputs in self.refreshers.values():
            self.inputs += [one for one in inputs if one not in self.inputs]
            self.outputs += [one for one in outputs if one not in self.outputs and one not in known]

    def __call__(self, *values: Any, known: dict | None = None) -> list:
        """values: of `inputs`; known: values of components that are newer than those. Returns values for `outputs`."""
        given = {**dict(zip(self.inputs, values)), **(known or {})}
        found = dict.fromkeys(self.outputs, gr.skip())
        for name in (values[0], *self.always):
            refresh, inputs, outputs = self.refreshers[name]
            made = refresh(*(given[one] for one in inputs))
            if made == gr.skip():
                continue
            for one, value in zip(outputs, made if len(outputs) > 1 else [made], strict=True):
                if one in found:
                    found[one] = value
        return list(found.values())
