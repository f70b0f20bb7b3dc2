"""Ends the stream of a visitor's events without losing the next event.

Gradio's server closes the stream once no event of the visitor is pending: it says `close_stream`, and the page opens
another stream with the next event. An event that was asked for while these words were on their way would wait for good
for a stream that nobody opens. So the answer to it waits until the page has read them, which it shows by hanging up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSING = b'"msg":"close_stream"'
SECONDS = 2.0  # that a page has for hanging up


def visitor_of(queue: Any, event: str) -> str | None:
    """The visitor who has asked for an event of Gradio's queue, None where the queue does not know it."""
    held = queue.event_ids_to_events.get(event)
    if held is not None:
        return held.session_hash
    return next((visitor for visitor, events in queue.pending_event_ids_session.items() if event in events), None)


class Streams:
    """Holds back the answer to a new event while the visitor's stream of events is being closed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._closing: dict[str, asyncio.Event] = {}  # visitor -> the page has hung up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path.endswith("/queue/data") and scope["method"] == "GET":
            await self._stream(scope, receive, send)
        elif path.endswith("/queue/join"):
            await self._join(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor, closed = Request(scope).query_params.get("session_hash", ""), asyncio.Event()

        async def forward(message: Message) -> None:
            if CLOSING in message.get("body", b""):
                self._closing[visitor] = closed
            elif self._closing.get(visitor) is closed:  # the end of the answer
                await _hung_up(receive)
            await send(message)

        try:
            await self.app(scope, receive, forward)
        finally:
            closed.set()
            if self._closing.get(visitor) is closed:
                del self._closing[visitor]

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if self._closing and message["type"] == "http.response.body":
                await self._closed(scope, message.get("body", b""))
            await send(message)

        await self.app(scope, receive, answer)

    async def _closed(self, scope: Scope, body: bytes) -> None:
        """Waits until no stream is being closed for the visitor whose event an answer names."""
        try:
            event = json.loads(body)["event_id"]
        except (ValueError, KeyError, TypeError):
            return  # a refusal
        closed = self._closing.get(visitor_of(scope["app"].get_blocks()._queue, event) or "")
        if closed is not None:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(closed.wait(), SECONDS)


async def _hung_up(receive: Receive) -> None:
    """Waits until the caller has gone, `SECONDS` at most."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(gone(), SECONDS)
