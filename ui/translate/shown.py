"""What one visitor of the Translate tab looks at, and how the views below a translation hear of something new."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gradio as gr
import numpy as np

from ui import messages
from ui.services import Services

STATE_SECONDS = 3600
QUIETLY: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
QUICKLY = {**QUIETLY, "queue": False}  # for events that ask nothing of the model
ON_DEVICE: dict[str, Any] = {"concurrency_id": "translate", "api_visibility": "private"}
QUIETLY_ON_DEVICE = {**ON_DEVICE, **QUIETLY}


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
    beam: int = 4  # of the search that made it, for views that search again
    alpha: float = 0.6


class Tab(Protocol):
    """What a view may ask of the tab that it is in; `TranslateTab` has it."""

    shown: gr.State  # a `Shown`
    view: gr.State  # name of the open view
    query: gr.State  # row of the query that was picked last
    tabs: gr.Tabs
    views: dict[str, gr.Tab]
    refreshers: dict[str, tuple]  # of `View.on_open`
    source: gr.Textbox
    settings: Any  # the `Settings` of languages, model and search
    attention: Any  # the `AttentionView`, whose controls other views read and set


class View(ABC):
    """One view below a translation: its components and the services as attributes, its handlers as methods.

    A subclass builds its components in `__init__`, inside the current gr.Tab, and wires them in `wire`. Handlers return
    their outputs by component; what they leave out stays as it is.
    """

    name = ""  # the view's key in tab.views and the stem of its events' names

    def __init__(self, tab: Tab, services: Services) -> None:
        self.tab, self.services = tab, services

    @abstractmethod
    def wire(self) -> None:
        """Connect the components with the handlers."""

    def on_open(self, refresh: Callable, inputs: list, outputs: list, **options: Any) -> None:
        """Calls `refresh` when this view is opened, and when a new sentence is shown while it is open.

        tab.views[name] is the view's gr.Tab and tab.view the State with the open one's name. A hidden view costs
        nothing. options: those of the event that opens the view.
        """
        options = {**QUIETLY, **options}
        self.tab.views[self.name].select(refresh, inputs, outputs, api_name=f"open_{self.name}", **options)
        self.tab.refreshers[self.name] = refresh, inputs, outputs


def offer(files: gr.File, note: gr.HTML, write: Callable[[Path], list[Path]]) -> Iterator[dict]:
    """What an event's handler yields: `files` with those that `write` puts into a folder, or a sentence."""
    try:
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            # Yielded, not returned: Gradio copies the files into its own cache before this folder goes.
            paths = [str(file) for file in write(Path(folder))]
            yield {files: gr.update(value=paths, visible=True), note: messages.status(f"{len(paths)} files.")}
    except Exception as error:
        yield {files: gr.update(visible=False), note: messages.alert(messages.sentence(error))}


def files_below(name: str, label: str) -> tuple[gr.Button, gr.File]:
    """A button that makes files, and where they are offered then; `name` begins their ids."""
    button = gr.Button(label, size="sm", elem_id=f"{name}-save")
    return button, gr.File(
        label="Files", file_count="multiple", interactive=False, visible=False, elem_id=f"{name}-files"
    )


class Refresh:
    """Draws whichever view is open, as one event with the inputs and outputs of them all: one message each way.

    Made when every view has called `on_open`. always: names of those that are drawn whatever is open.
    """

    def __init__(self, tab: Tab, always: tuple[str, ...] = (), known: tuple = ()) -> None:
        """known: components whose values the caller has and may not be outputs here."""
        self.refreshers, self.always = tab.refreshers, always
        self.inputs = [tab.view]
        self.outputs: list = []
        for _, inputs, outputs in self.refreshers.values():
            self.inputs += [one for one in inputs if one not in self.inputs]
            self.outputs += [one for one in outputs if one not in self.outputs and one not in known]

    def draw(self, values: Sequence[Any], known: dict | None = None) -> dict:
        """values: of `inputs`; known: values of components that are newer than those. Returns what to draw, by
        component.
        """
        given = {**dict(zip(self.inputs, values)), **(known or {})}
        found: dict = {}
        for name in (values[0], *self.always):
            if name not in self.refreshers:  # a view of something else than the sentence
                continue
            refresh, inputs, outputs = self.refreshers[name]
            made = refresh(*(given[one] for one in inputs))
            if made != gr.skip():
                found.update({one: value for one, value in made.items() if one in outputs and one in self.outputs})
        return found

    def __call__(self, *values: Any) -> dict:
        """As `draw`, for an event of its own."""
        return self.draw(values) or gr.skip()
