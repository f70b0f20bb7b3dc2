"""What the page keeps for one visitor between two events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ui.kit import QUIETLY, on_queue

SECONDS = 3600
AT_DEVICE = {**QUIETLY, **on_queue("try-on")}
# A cancelled event may stay pending in the browser, which would swallow the next one.
AGAIN: dict[str, Any] = {"trigger_mode": "multiple", **AT_DEVICE}
MOST_UNDO = 6


def mark(path: str | None) -> tuple[str, ...]:
    """What tells an uploaded picture from others: the folder that Gradio names by the content, and the file's name."""
    return Path(path).parts[-2:] if path else ()


@dataclass(frozen=True)
class Session:
    """A record and what belongs to it.

    Attributes:
        result: the TryOnResult on the page, None before the first.
        history: earlier ones, the first at the front, for undo.
        key: of the networks that made it, see `ui.services`.
        photos: `mark` of the person's and the garment's picture.
        example: the page shows the stored try-on.
    """

    result: Any = None
    history: tuple = ()
    key: str | None = None
    photos: tuple = ()
    example: bool = False

    def with_undo(self) -> Session:
        """The same with its result in the history, where a corrected one will follow it."""
        return replace(self, history=(*self.history, self.result)[-MOST_UNDO:])

    def back(self, to_first: bool = False) -> Session:
        """The record before the last correction, or before all that are kept. Needs a history."""
        history = self.history[:1] if to_first else self.history
        return replace(self, result=history[-1], history=history[:-1])
