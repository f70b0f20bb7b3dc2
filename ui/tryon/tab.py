"""The Try on tab: two photographs in, the person in that garment out; every map in between to see and to correct."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr
from gradio.events import Dependency

from ui import theme
from ui.kit import QUIETLY, View, Views
from ui.tryon import earlier, events, example
from ui.tryon.api import Api
from ui.tryon.bar import START_JS, Bar
from ui.tryon.inputs import Inputs
from ui.tryon.inside import InsideView
from ui.tryon.outcome import Outcome
from ui.tryon.runner import Runner
from ui.tryon.session import AGAIN, SECONDS, Session
from ui.tryon.steps import FailuresView, StepsView
from ui.tryon.tour import TryOnTour
from ui.tryon.variants import CompareView, SeveralView
from ui.tryon.views import CorrectView, LookView, WarpView

VIEWS: tuple[type[View], ...] = (
    StepsView,
    LookView,
    CorrectView,
    WarpView,
    CompareView,
    InsideView,
    SeveralView,
    FailuresView,
)


class TryOnTab(View):
    """The two photographs, the result and the views below; `session` is what the page keeps for one visitor."""

    name = "try-on"
    title = "Try on"

    def build(self) -> None:
        """Makes the components: parts of the tab, which hold their own, and the views."""
        services = self.services
        self.inputs = Inputs(services)
        self.session = gr.State(Session(example=True), time_to_live=SECONDS)
        with gr.Row(elem_id="tryon-top"):
            with gr.Column(min_width=260, elem_id="tryon-person"):
                self.inputs.build_person()
            with gr.Column(min_width=260, elem_id="tryon-garment"):
                self.inputs.build_garment()
            with gr.Column(min_width=260, elem_id="tryon-outcome"):
                self.outcome = Outcome(services)
        self.bar = Bar(example.load_example().facts["settings"]["seconds"])
        self.inputs.build_settings()
        self.earlier = earlier.strip()
        gr.Markdown(theme.text("tryon/credits"), elem_classes="hint")
        with gr.Column(elem_id="tryon-results"):
            self.tour = TryOnTour(self)
            with gr.Row():
                self.tour.build_start(340)
            self.tour.build_card()
            self.note = gr.HTML(elem_id="view-note")
            self.views = Views(VIEWS, self, services, elem_id="tryon-views", prefix="tryon_")
        steps = self.views[StepsView]
        self.runner = Runner(services, self.bar, self.inputs, self.outcome, self.earlier, steps, self.session)
        self.api = Api(services, self.inputs)

    def wire(self) -> None:
        """Connects all parts, and publishes `/try_on` and `/try_on_stage`."""
        self.runs: dict[str, Dependency] = {}  # what Cancel ends, by the name of its event
        # Beside the tabs, because what is in a tab does not exist in the browser before the tab is opened.
        memory = gr.BrowserState("", storage_key="atelier-try-on")
        self.views.draw_always("tour", self.tour.show, [self.tour.at, self.session], [self.tour.card])
        self.views.wire()
        self.tour.wire()
        events.wire(self, memory, self.tab)
        self.inputs.wire()
        self.api.wire()

    # -- runs: what a view may start ---------------------------------------------------------------------------------

    def connect_run(self, trigger: Callable, handler: Callable, inputs: Any, outputs: list, name: str) -> None:
        """Connects a view's own run, which Cancel ends too. name: of the event."""
        self.runs[name] = trigger(handler, inputs, outputs, api_name=name, **AGAIN)

    def begin_on(self, trigger: Callable, handler: Callable, inputs: Any, name: str) -> Dependency:
        """Connects a run of the try-on itself; that it was asked for is said at once, by the browser."""
        bar = self.bar
        options = {"api_visibility": "private", "show_progress": "hidden", "trigger_mode": "multiple"}
        places = [bar.status, bar.run, bar.cancel, bar.stopping]
        trigger(None, None, places, js=START_JS, api_name=f"ask_{name}", **options)
        return self._connect(trigger, handler, inputs, name)

    def correct_on(self, trigger: Callable, handler: Callable, inputs: list, name: str) -> None:
        """Connects a run from a corrected map. The event carries the map itself, so it begins without a first step."""
        options = {"api_visibility": "private", "show_progress": "hidden", "trigger_mode": "multiple"}
        trigger(None, None, self.bar.stopping, js="() => false", api_name=f"begin_{name}", **options)
        event = self._connect(trigger, handler, inputs, name)
        event.success(None, js="handlers.showResult", api_visibility="private", api_name=f"show_{name}")

    def attribute_on(self, name: str) -> None:
        """Connects the choice of sleeves, neckline or hem: a result of the same pictures goes on from there at once."""
        inputs = self.inputs
        run_inputs = {*inputs.components, inputs.stop, self.session}
        self._connect(inputs.settings[name].input, partial(self.runner.attribute, name), run_inputs, f"set_{name}")

    def _connect(self, trigger: Callable, handler: Callable, inputs: Any, name: str) -> Dependency:
        # While others come first, the bar's line says how many.
        waiting = {**AGAIN, "show_progress": "minimal", "show_progress_on": self.bar.status}
        event = self.runs[name] = trigger(handler, inputs, self.runner.components, api_name=name, **waiting)
        self.refresh_after(event, name)
        return event

    def refresh_after(self, event: Dependency, name: str) -> None:
        """After the event, what lies below the picture and the open view are drawn anew."""
        rest = event.then(self.runner.rest, self.session, self.runner.more, api_name=f"rest_of_{name}", **QUIETLY)
        self.views.redraw_after(rest, api_name=f"refresh_{name}", **QUIETLY)
