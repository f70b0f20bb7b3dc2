"""A guided tour of the Try on tab in ten short stops, each with the numbers of what the page shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

from ui import kit
from ui.kit import Tour
from ui.tryon import example
from ui.tryon.session import Session
from vton import record


@dataclass(frozen=True)
class Stop(kit.Stop):
    """One stop, in `STOPS` with gaps for the numbers. map: the card that it leads to, "" for the view's beginning."""

    view: str = "steps"
    map: str = ""

    def __post_init__(self) -> None:
        """What a stop leads to follows from its map and its view."""
        lead = f"#card-{self.map}" if self.map else "#figure3" if self.view == "steps" else "#tryon-views"
        object.__setattr__(self, "lead", lead)


def facts(session: Session) -> dict[str, Any] | None:
    """The settings and measures of the record on the page or of the stored example; None where there is neither."""
    if session.result is not None:
        return record.settings(session.result) if session.result.result is not None else None
    tryon = example.load_example()
    return tryon.facts["settings"] if session.example and tryon else None


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
        "Another network bends the garment into its place: a flow, which says of every pixel where in the garment it "
        "comes from. The paper has a thin-plate spline, whose 25 control points you can drag in “Move the warp”.",
        map="warped_cloth",
    ),
    Stop(
        "What does not fit",
        "A warp never fits quite: {share:.1f} % of the predicted cloth is not covered. This is the misaligned "
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


def stops(numbers: dict[str, Any]) -> list[Stop]:
    """The ten stops with their gaps filled in. numbers: see `facts`."""
    quality, seconds = numbers["quality"], numbers["seconds"]
    gaps = {
        "seconds": sum(seconds.values()),
        "slowest": escape(max(seconds, key=seconds.get)),
        "joints": quality["joints"],
        "joints_wanted": quality["joints_wanted"],
        "cut": CUT_OUT.get(numbers["cut_out_by"], ""),
        "share": 100 * quality["misaligned_share"],
    }
    return [replace(stop, text=stop.text.format_map(gaps)) for stop in STOPS]


class TryOnTour(Tour):
    """The line above the views that starts the tour, and its card."""

    prefix = "tryon-"
    invitation = "Take the tour: ten stops through the machine"

    @property
    def inputs(self) -> list:
        """The record that the tour speaks of."""
        return [self.tab.session]

    def stops(self, session: Session) -> list[Stop]:
        """The ten stops. Raises ValueError where no result is finished."""
        numbers = facts(session)
        if numbers is None:
            raise ValueError("The tour speaks of a finished result; press “Try it on” first.")
        return stops(numbers)
