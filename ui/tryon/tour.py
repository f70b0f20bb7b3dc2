"""A guided tour of the Try on tab in ten short stops, each with the numbers of what the page shows."""

from dataclasses import replace
from html import escape
from typing import Any

from ui.kit import Stop, Tour, read_stops
from ui.tryon import example
from ui.tryon.figures import WORDS
from ui.tryon.session import Session
from vton import record


def facts(session: Session) -> dict[str, Any] | None:
    """The settings and measures of the record on the page or of the stored example; None where there is neither."""
    if session.result is not None:
        return record.settings(session.result) if session.result.result is not None else None
    return example.load_example().facts["settings"] if session.example else None


STOPS = read_stops("tryon", Stop)  # with gaps for the numbers


def stops(numbers: dict[str, Any]) -> list[Stop]:
    """The ten stops with their gaps filled in. numbers: see `facts`."""
    quality, seconds = numbers["quality"], numbers["seconds"]
    gaps = {
        "seconds": sum(seconds.values()),
        "slowest": escape(max(seconds, key=seconds.get)),
        "joints": quality["joints"],
        "joints_wanted": quality["joints_wanted"],
        "cut": WORDS["cuts"].get(numbers["cut_out_by"], {}).get("tour", ""),
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
            raise ValueError("The tour explains a finished result; press “Try it on” first.")
        return stops(numbers)
