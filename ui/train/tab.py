"""The Train tab: start a training, watch any run folder, use its checkpoints. A run is a process of its own; what is
shown is read from its folder, so it is the same after a reload and for runs that were started from a shell.
"""

from __future__ import annotations

import gradio as gr

from ui.gradio_private import cache_of
from ui.kit import View
from ui.train.form import TrainForm
from ui.train.view import RunView

PUBLIC_NOTE = (
    "**Runs are in sight of all.** Everybody who opens this page sees every run, and can use and copy it; only the "
    "browser that started a run can stop, resume or delete it. Bring no data that others must not see."
)
LOCAL_NOTE = (
    "**Runs are shared.** All browsers of this machine see every run here, and can stop, use, copy and delete it."
)
ABOUT = (
    "A training is a process of its own: this page may be closed meanwhile. In a shell, Ctrl-C or an empty file `STOP` "
    "in the run's folder finishes the step, saves and ends; the same command with `--resume` goes on."
)


class TrainTab(View):
    """The form, and the run that is looked at."""

    name = "train"
    title = "Train"

    def build(self) -> None:
        """Makes the components."""
        self.form = TrainForm(self.services)
        gr.Markdown(LOCAL_NOTE if self.services.local else PUBLIC_NOTE, elem_classes="hint", elem_id="train-shared")
        self.view = RunView(self.services)
        gr.Markdown(ABOUT, elem_classes="hint")

    def wire(self) -> None:
        """Connects the events. While another tab of the page is open, the run is not read."""
        others = [item for item in self.group.items.values() if item is not self.item]
        self.view.wire(self.item, others, cache_of(self.tab))
        self.form.wire(self.view, self.item)
