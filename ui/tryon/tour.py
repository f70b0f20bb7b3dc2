"""A guided tour of the Try on tab in ten short stops, each with the numbers of what the page shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

import gradio as gr

from ui import theme
from ui.tryon import example
from ui.tryon.kept import Kept
from vton import record

CLOSED = -1
# What a stop speaks of comes into view below the tour's own card, which sticks, and a map's card lights up.
LEAD = """() => {
  const stop = document.querySelector('#tryon-tour [data-lead]'), tour = document.querySelector('#tryon-tour');
  const lead = () => {
    const place = stop && document.querySelector(stop.dataset.lead);
    if (!place) return;
    place.style.scrollMarginTop = `${tour.offsetHeight + parseFloat(getComputedStyle(tour).top) + 12}px`;
    place.scrollIntoView({ behavior: 'smooth', block: 'start' });
    place.classList.remove('found');
    requestAnimationFrame(() => place.classList.add('found'));
  };
  setTimeout(lead, 150);
}"""


@dataclass(frozen=True)
class Stop:
    """One stop. text: HTML, in `STOPS` with gaps for the numbers; view: the tab that it opens; map: the card that it
    leads to, "" for the beginning of the view.
    """

    title: str
    text: str
    view: str = "steps"
    map: str = ""

    @property
    def lead(self) -> str:
        """Selector of what comes into view."""
        return f"#card-{self.map}" if self.map else "#figure3" if self.view == "steps" else "#tryon-views"


def facts(kept: Kept) -> dict[str, Any] | None:
    """The settings and measures of the record on the page or of the stored example; None where there is neither."""
    if kept.result is not None:
        return record.settings(kept.result) if kept.result.result is not None else None
    finished = example.finished()
    return finished.facts["settings"] if kept.example and finished else None


STOPS = (
    Stop(
        "Two photographs, ten stages",
        "A person and a garment go in; ten stages later the person wears it. Here they took {seconds:.1f} s, most of "
        "it for <b>{slowest}</b>. Four of them are networks, the others are geometry.",
    ),
    Stop(
        "Joints",
        "{joints} of {joints_wanted} joints were found. The networks see this skeleton P, so they know where "
        "shoulders, elbows and hips are, whatever covers them.",
        map="pose",
    ),
    Stop(
        "A label for every pixel",
        "The human parser gives every pixel one of 20 labels. What it takes for cloth will be removed; what it misses "
        "of the old garment shows at the edges of the result.",
        map="parse",
    ),
    Stop(
        "Forget the old garment",
        "The paper's first idea: paint the old garment and the arms grey, so that nothing of its shape is left to "
        "copy (I<sub>a</sub>, S<sub>a</sub>, section 3.1).",
        map="agnostic",
    ),
    Stop(
        "The garment alone",
        "The garment was cut out{cut}. From here on the networks read its picture c and its mask c<sub>m</sub>.",
        map="garment",
    ),
    Stop(
        "Where everything will be",
        "Before anything is painted, a network predicts the segmentation Ŝ of the person in the new garment. Sleeves "
        "are decided here, so a wrong length begins here.",
        map="segmentation",
    ),
    Stop(
        "Bend it",
        "A second network gives the 25 control points of a thin-plate spline, which bends the garment into its place: "
        "W(c, θ). In the view “Move the warp” you can drag them.",
        map="warped_cloth",
    ),
    Stop(
        "What does not fit",
        "A spline never fits quite: {share:.1f} % of the predicted cloth is not covered. This is the misaligned "
        "region (equations 3 and 4). Earlier systems smeared the background or the old skin into it.",
        map="misalignment",
    ),
    Stop(
        "ALIAS normalisation",
        "The paper's main idea: inside the generator, the misaligned region is standardised apart from the rest "
        "(equations 5 to 7), so that its misleading activations do not spread. “Open it” shows every block.",
        view="inside",
    ),
    Stop(
        "Does it matter?",
        "Compare runs this result again with one thing changed and measures the difference. Where little is "
        "misaligned, ALIAS and instance normalisation paint nearly the same; choose a hoodie or a turtleneck for more "
        "of it.",
        view="compare",
    ),
)
CUT_OUT = {
    "alpha": " by its transparency",
    "uniform": " from a plain background",
    "network": " by the garment reader, a network of its own",
    "grabcut": " from its background by colour",
    "worn": " of the person who wears it",
    "painted": " by hand",
}


def stops(known: dict[str, Any]) -> list[Stop]:
    """The ten stops with their gaps filled in. known: see `facts`."""
    quality, seconds = known["quality"], known["seconds"]
    gaps = {
        "seconds": sum(seconds.values()),
        "slowest": escape(max(seconds, key=seconds.get)),
        "joints": quality["joints"],
        "joints_wanted": quality["joints_wanted"],
        "cut": CUT_OUT.get(known["cut_out_by"], ""),
        "share": 100 * quality["misaligned_share"],
    }
    return [replace(stop, text=stop.text.format_map(gaps)) for stop in STOPS]


def card(stop: Stop, number: int, total: int) -> str:
    """HTML of one stop. `LEAD` leads to what it speaks of."""
    return (
        f'<div class="tour-card" role="region" aria-label="Tour" data-stop="{number + 1}" '
        f'data-lead="{escape(stop.lead)}">'
        f'<div class="tour-title"><span class="tour-number">{number + 1} / {total}</span> {escape(stop.title)}</div>'
        f"<p>{stop.text}</p></div>"
    )


class Tour:
    """The line above the views that starts the tour, and its card."""

    def __init__(self) -> None:
        self.tabs: gr.Tabs  # of the views, which are built below this
        self.at = gr.State(CLOSED)
        with gr.Row():
            self.start = gr.Button(
                "Take the tour: ten stops through the machine",
                size="sm",
                scale=0,
                min_width=340,
                elem_id="tryon-tour-start",
            )
        with gr.Column(visible=False, elem_id="tryon-tour", elem_classes="card") as self.body:
            script = theme.script("translate/tour.js")
            self.card = gr.HTML("", html_template="${value}", js_on_load=script, elem_id="tryon-tour-card")
            with gr.Row(elem_classes="tour-buttons"):
                self.back = gr.Button("← Back", size="sm", min_width=90, elem_id="tryon-tour-back")
                self.next = gr.Button("Next →", size="sm", min_width=90, variant="primary", elem_id="tryon-tour-next")
                self.end = gr.Button("End the tour", size="sm", min_width=90, elem_id="tryon-tour-end")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `go` updates."""
        return [self.at, self.body, self.start, self.card, self.back, self.next, self.tabs]

    def go(self, by: int | None, kept: Kept, at: int) -> dict:
        """One stop further, one back, or the first (by = None)."""
        known = facts(kept)
        if known is None:
            line = '<div class="note note-status">The tour speaks of a finished result; press “Try it on” first.</div>'
            return {self.card: line, self.body: gr.update(visible=True)}
        found = stops(known)
        at = 0 if by is None else min(max(at + by, 0), len(found) - 1)
        return {
            self.at: at,
            self.body: gr.update(visible=True),
            self.start: gr.update(visible=False),
            self.card: card(found[at], at, len(found)),
            self.back: gr.update(interactive=at > 0),
            self.next: gr.update(interactive=at < len(found) - 1),
            self.tabs: gr.update(selected=found[at].view),
        }

    def key(self, kept: Kept, at: int, event: gr.EventData) -> Any:
        """An arrow key: one stop on or back."""
        by = int(event.by)
        return gr.skip() if at == CLOSED or by not in (-1, 1) else self.go(by, kept, at)

    def leave(self) -> dict:
        """Ends the tour."""
        return {self.at: CLOSED, self.body: gr.update(visible=False), self.start: gr.update(visible=True)}

    def again(self, kept: Kept, at: int) -> Any:
        """Another result while the tour is on: the same stop, with its numbers."""
        known = facts(kept)
        return gr.skip() if at == CLOSED or known is None else card(stops(known)[at], at, len(stops(known)))

    def wire(self, tabs: gr.Tabs, kept: gr.State, shown: gr.HTML) -> None:
        """shown: a component that changes with every record on the page."""
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.tabs = tabs
        for trigger, act, name in (
            (self.start.click, partial(self.go, None), "start"),
            (self.next.click, partial(self.go, 1), "next"),
            (self.back.click, partial(self.go, -1), "back"),
            (self.card.step, self.key, "key"),
        ):
            event = trigger(act, [kept, self.at], self.components, api_name=f"tryon_tour_{name}", **quiet)
            event.then(None, js=LEAD, api_visibility="private", api_name=f"tryon_tour_lead_{name}")
        for leave, name in ((self.end.click, "end"), (self.card.leave, "leave")):
            leave(self.leave, None, [self.at, self.body, self.start], api_name=f"tryon_tour_{name}", **quiet)
        shown.change(self.again, [kept, self.at], self.card, api_name="tryon_tour_again", **quiet)
