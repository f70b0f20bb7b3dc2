"""Options that the page's events share, and a decorator for handlers whose errors become one sentence."""

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import gradio as gr

from ui import messages

QUIETLY: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
QUICKLY: dict[str, Any] = {**QUIETLY, "queue": False}  # for events that ask nothing of a model
# Events of a queue that run at once, each of another visitor, where that is not one: the second try-on reads its
# photographs while the first one computes.
AT_ONCE = {"try-on": 2 if (os.cpu_count() or 1) > 1 else 1}


def queue(name: str) -> dict[str, Any]:
    """Options of an event or endpoint that takes its turn with all others on the queue of that name (`ui/page.py`)."""
    return {"concurrency_id": name, "concurrency_limit": AT_ONCE.get(name, 1)}


def on_queue(name: str) -> dict[str, Any]:
    """As `queue`, for an event of the page that is no endpoint for programs."""
    return {**queue(name), "api_visibility": "private"}


def alerts(place: str = "", hide: str = "", show: str = "", **values: Any) -> Callable[[Callable], Callable]:
    """A decorator for a handler, a method that returns or yields updates by component: an error becomes one sentence.

    Args:
        place: the attribute that holds the component for the sentence, "note" or "tab.status" for example. It may also
            be a method, which gets the error and returns the updates. Empty: the sentence is all that is returned.
        hide, show: attributes, separated by blanks, of components that go out of sight, or come into it, with it.
        values: attribute -> what its component holds then.
    """

    def decorate(handler: Callable) -> Callable:
        def updates(owner: Any, error: Exception) -> Any:
            target = attrgetter(place)(owner) if place else None
            if callable(target) and not isinstance(target, gr.blocks.Block):
                return target(error)
            sentence = messages.failure(error)
            if target is None:
                return sentence
            return {
                target: sentence,
                **{attrgetter(name)(owner): gr.update(visible=False) for name in hide.split()},
                **{attrgetter(name)(owner): gr.update(visible=True) for name in show.split()},
                **{getattr(owner, name): value for name, value in values.items()},
            }

        @functools.wraps(handler)
        def run(self: Any, *arguments: Any, **keywords: Any) -> Any:
            try:
                return handler(self, *arguments, **keywords)
            except Exception as error:
                return updates(self, error)

        @functools.wraps(handler)
        def stream(self: Any, *arguments: Any, **keywords: Any) -> Iterator[Any]:
            try:
                yield from handler(self, *arguments, **keywords)
            except Exception as error:
                yield updates(self, error)

        return stream if inspect.isgeneratorfunction(handler) else run

    return decorate
