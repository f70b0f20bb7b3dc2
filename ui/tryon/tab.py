"""The Try on tab: two photographs in, the person in that garment out; every map in between to see, correct and go on
from.
"""

from __future__ import annotations

import gradio as gr

from ui.services import Services
from ui.tryon import example
from ui.tryon.api import Api
from ui.tryon.bar import Bar
from ui.tryon.events import wire
from ui.tryon.inputs import Inputs
from ui.tryon.inside import Inside
from ui.tryon.outcome import Outcome
from ui.tryon.runner import Runner
from ui.tryon.steps import Steps, failures
from ui.tryon.tour import Tour
from ui.tryon.variants import Compare, Several
from ui.tryon.views import MapViews

CREDITS = """Your photos are used for your own request only and are deleted from this machine after an hour. The example
people are by Google (Shrine sample app, 2018, Apache-2.0) and the CODAIT team (CC0); the garments are from the clothing
dataset by Alexey Grigorev and contributors (CC0). The line below the thumbnails credits the chosen one."""


class TryOnTab:
    """The tab's parts, built inside the current Blocks: each holds its components and what they do."""

    def __init__(self, services: Services):
        self.inputs = Inputs(services)
        with gr.Row(elem_id="tryon-top"):
            with gr.Column(min_width=260, elem_id="tryon-person"):
                self.inputs.build_person()
            with gr.Column(min_width=260, elem_id="tryon-garment"):
                self.inputs.build_garment()
            with gr.Column(min_width=260, elem_id="tryon-outcome"):
                self.outcome = Outcome(services)
        finished = example.finished()
        self.bar = Bar(finished.facts["settings"]["seconds"] if finished else {})
        self.inputs.build_settings()
        gr.Markdown(CREDITS, elem_classes="hint")
        with gr.Column(elem_id="tryon-results"):
            self._views(services)
        self.bar.resting = [self.compare.button, self.several.button, self.inside.button]
        self.runner = Runner(services, self.bar, self.inputs, self.outcome, self.steps)
        self.api = Api(services, self.inputs)

    def _views(self, services: Services) -> None:
        self.tour = Tour()
        self.views = MapViews(services)
        self.tabs: dict[str, gr.Tab] = {}
        with gr.Tabs(elem_id="tryon-views", selected="steps") as self.all_tabs:
            with self._tab("steps", "Every step"):
                self.steps = Steps()
            with self._tab("look", "Look closer"):
                self.views.build_look()
            with self._tab("correct", "Correct a map"):
                self.views.build_correct()
            with self._tab("warp", "Move the warp"):
                self.views.build_warp()
            with self._tab("compare", "Compare"):
                self.compare = Compare(services, self.bar)
            with self._tab("inside", "Inside"):
                self.inside = Inside(services, self.bar)
            with self._tab("several", "Several at once"):
                self.several = Several(services, self.bar)
            if example.failures():
                with self._tab("failures", "What goes wrong"):
                    gr.Markdown(
                        "Photograph, garment, the map of the stage at fault, result. Stored when the page was made.",
                        elem_classes="hint",
                    )
                    gr.HTML(failures(), elem_id="failures")

    def _tab(self, name: str, title: str) -> gr.Tab:
        self.tabs[name] = gr.Tab(title, id=name, elem_id=f"view-{name}")
        return self.tabs[name]


def layout(services: Services) -> TryOnTab:
    """Build the tab inside the current Blocks."""
    return TryOnTab(services)


def events(tab: TryOnTab, services: Services, page: gr.Blocks) -> None:
    """Wire the tab built by `layout`, and publish `/try_on` and `/try_on_stage`."""
    # Beside the tabs, because what is in a tab does not exist in the browser before the tab is opened.
    remembered = gr.BrowserState("", storage_key="atelier-try-on")
    wire(tab.runner, tab.views, (tab.compare, tab.several, tab.inside), tab.tabs, tab.all_tabs, remembered, page)
    tab.tour.wire(tab.all_tabs, tab.runner.kept, tab.outcome.summary)
    tab.inputs.wire()
    tab.api.wire()
