"""The Train tab: start a training, watch any run folder, use its checkpoints. A run is a process of its own; what is
shown is read from its folder, so it is the same after a reload and for runs that were started from a shell.
"""

import gradio as gr

from ui import theme
from ui.gradio_private import cache_of
from ui.kit import View
from ui.train.form import TrainForm
from ui.train.view import RunView


class TrainTab(View):
    """The form, and the run that is looked at."""

    name = "train"
    title = "Train"

    def build(self) -> None:
        """Makes the components."""
        self.form = TrainForm(self.services)
        shared = theme.text(f"train/runs.{'local' if self.services.local else 'public'}")
        gr.Markdown(shared, elem_classes="hint", elem_id="train-shared")
        self.view = RunView(self.services)
        gr.Markdown(theme.text("train/process"), elem_classes="hint")

    def wire(self) -> None:
        """Connects the events. While another tab of the page is open, the run is not read."""
        others = [item for item in self.group.items.values() if item is not self.item]
        self.view.wire(self.item, others, cache_of(self.tab))
        self.form.wire(self.view, self.item)
