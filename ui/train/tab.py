"""The Train tab: start a training, watch any run folder, use its checkpoints. A run is a process of its own; what is
shown is read from its folder, so it is the same after a reload and for runs that were started from a shell.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from ui.services import Services
from ui.train.form import TrainForm
from ui.train.view import RunView

ABOUT = (
    "A training is a process of its own: this page may be closed meanwhile. In a shell, Ctrl-C or an empty file `STOP` "
    "in the run's folder finishes the step, saves and ends; the same command with `--resume` goes on."
)


class TrainTab:
    """The form, and the run that is looked at; built inside the current gr.Tab."""

    def __init__(self, services: Services) -> None:
        self.form = TrainForm(services)
        self.view = RunView(services)
        gr.Markdown(ABOUT, elem_classes="hint")

    def wire(self, opened: gr.Tab, others: list[gr.Tab], folder: Path) -> None:
        """Connect the events. opened: the tab itself; others: the tabs that put it out of sight; folder: where zips for
        visitors are made.
        """
        self.view.wire(opened, others, folder)
        self.form.wire(self.view, opened)
