"""A guided tour: short stops, each with a card of text, and below it the view that it explains."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, ClassVar, TypeVar

import gradio as gr

from ui import messages, theme
from ui.kit.handlers import QUIETLY
from ui.kit.views import Views

NO_STOP = -1
AnyStop = TypeVar("AnyStop", bound="Stop")


@dataclass(frozen=True)
class Stop:
    """One stop: its title, what it says (HTML), and the name of the view that it opens.

    lead: selector of what it speaks of, which comes into view and is marked; run: selectors of buttons, separated by
    semicolons, that are pressed for it first; cell: (row, column) of a map that `lead` holds, counted from 0.
    """

    title: str
    text: str
    view: str
    lead: str = ""
    run: str = ""
    cell: tuple[int, int] | None = None


def read_stops(tab: str, kind: type[AnyStop]) -> tuple[AnyStop, ...]:
    """The stops of a tab's tour, as `static/TAB/tour.json` has them."""
    return tuple(kind(**stop) for stop in json.loads(theme.read(f"{tab}/tour.json")))


def card(stop: Stop, number: int, total: int) -> str:
    """HTML of one stop, number from 0."""
    data = {"lead": stop.lead, "run": stop.run, "cell": ",".join(map(str, stop.cell or ()))}
    lead = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items() if value)
    return (
        f'<div class="tour-card" role="region" aria-label="Tour" data-stop="{number + 1}"{lead}>'
        f'<div class="tour-title"><span class="tour-number">{number + 1} / {total}</span> '
        f"<span>{escape(stop.title)}</span></div>"
        f"<p>{stop.text}</p></div>"
    )


class Tour(ABC):
    """The button that starts a tour, the card of its present stop, and the handlers of both.

    A subclass says what it stops at. The card stays in sight; the browser leads to what a stop speaks of, arrow keys go
    on and back, Escape ends (static/tour.js).
    """

    prefix: ClassVar[str] = ""  # of its ids, and with _ of its events' names
    invitation: ClassVar[str]  # on the button
    options: ClassVar[dict[str, Any]] = QUIETLY  # of its events

    def __init__(self, tab: Any) -> None:
        self.tab, self.at = tab, gr.State(NO_STOP)

    def build_start(self, min_width: int = 190) -> None:
        """The button."""
        name = f"{self.prefix}tour-start"
        self.start = gr.Button(self.invitation, size="sm", scale=0, min_width=min_width, elem_id=name)

    def build_card(self) -> None:
        """The card, out of sight until the tour begins."""
        name = f"{self.prefix}tour"
        with gr.Column(visible=False, elem_id=name, elem_classes="card tour") as self.body:
            script = theme.script("tour.js")
            self.card = gr.HTML("", html_template="${value}", js_on_load=script, elem_id=f"{name}-card")
            with gr.Row(elem_classes="tour-buttons"):
                self.back = gr.Button("← Back", size="sm", min_width=90, elem_id=f"{name}-back")
                self.next = gr.Button("Next →", size="sm", min_width=90, variant="primary", elem_id=f"{name}-next")
                self.end = gr.Button("End the tour", size="sm", min_width=90, elem_id=f"{name}-end")

    # -- what a subclass says ----------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list:
        """The components whose values `stops` and `arrive` are given."""
        return []

    @abstractmethod
    def stops(self, *values: Any) -> Sequence[Any]:
        """The stops, each a `Stop`. Raises ValueError with one sentence where there is nothing to tell yet."""

    def arrive(self, stop: Any, *values: Any) -> dict:
        """Updates of `places` for a stop, besides its card and its view."""
        return {}

    @property
    def places(self) -> list:
        """The components that `arrive` may update."""
        return []

    # -- handlers ----------------------------------------------------------------------------------------------------

    def go(self, by: int | None, at: int, *values: Any) -> dict:
        """One stop on or back (by), or the first (None). values: of `inputs`."""
        try:
            stops = self.stops(*values)
        except ValueError as error:
            alert = messages.failure(error)
            return {**self.leave(), self.card: alert, self.body: gr.update(visible=True)}
        at = 0 if by is None else min(max(at + by, 0), len(stops) - 1)
        stop, views = stops[at], self.tab.views
        return {
            self.at: at,
            self.body: gr.update(visible=True),
            self.start: gr.update(visible=False),
            self.card: card(stop, at, len(stops)),
            self.back: gr.update(interactive=at > 0),
            self.next: gr.update(interactive=at < len(stops) - 1),
            views.tabs: gr.update(selected=stop.view),
            views.open: stop.view,
            **self.arrive(stop, *values),
        }

    def key(self, event: gr.EventData, at: int, *values: Any) -> Any:
        """An arrow key: one stop on or back."""
        by = int(event.by)
        return gr.skip() if at == NO_STOP or by not in (-1, 1) else self.go(by, at, *values)

    def leave(self) -> dict:
        """The tour ends."""
        sight = {self.body: gr.update(visible=False), self.start: gr.update(visible=True)}
        return {self.at: NO_STOP, self.card: "", **sight}

    def show(self, at: int, *values: Any) -> Any:
        """Something else is shown while the tour is on: the same stop, in its words."""
        if at == NO_STOP:
            return gr.skip()
        try:
            stops = self.stops(*values)
        except ValueError:
            return gr.skip()
        return {self.card: card(stops[at], at, len(stops))}

    # -- wiring ------------------------------------------------------------------------------------------------------

    def wire(self, draws: bool = False) -> None:
        """Connects the buttons and keys, once the views are built. draws: every step draws the open view anew."""
        views: Views = self.tab.views
        stem = f"{self.prefix}tour".replace("-", "_")
        outputs = [self.at, self.body, self.start, self.card, self.back, self.next, views.tabs, views.open]
        outputs += self.places
        for trigger, act, name in (
            (self.start.click, partial(self.go, None), "start"),
            (self.next.click, partial(self.go, 1), "next"),
            (self.back.click, partial(self.go, -1), "back"),
            (self.card.step, self.key, "key"),
        ):
            options = {"api_name": f"{stem}_{name}", **self.options}
            if draws:
                views.redraw_on(trigger, act, [self.at, *self.inputs], outputs, **options)
                continue
            trigger(act, [self.at, *self.inputs], outputs, **options)
        for leave, name in ((self.end.click, "end"), (self.card.leave, "leave")):
            leave(
                self.leave, None, [self.at, self.card, self.body, self.start], api_name=f"{stem}_{name}", **self.options
            )
