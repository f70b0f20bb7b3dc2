"""Everything in which the page leans on Gradio's inside: what no documentation promises, and what a release may change.

It was written against the minor release that pyproject.toml names, and `tests/ui/test_gradio_private.py` sees that no
other module of the page does the same. In order: the page's Blocks, components of its own, values that Gradio would
not take, scripts that search too often or forget what was typed, requests that Gradio's server answers with a
traceback, and streams of events that lose one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import logging
import random
import re
import traceback
from abc import ABCMeta
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import gradio as gr
import gradio_client
from gradio.blocks import BlockFunction
from gradio.route_utils import FnIndexInferError
from gradio.utils import get_function_description, get_upload_folder
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ui import endpoints, theme

log = logging.getLogger("atelier")
UNFIT = "This request lacks what its endpoint needs; the page's API documentation lists the inputs of every endpoint."
UNKNOWN = "There is no such endpoint; the page's API documentation lists them."
UNKNOWN_RUN = "There is no such run here: it has ended, or its visitor is gone. Please start it again."
MAX_NAME_BYTES = 255  # bytes between two slashes of an address, as file systems have it
EVENT = re.compile(r"/call/(?:v2/)?[^/]+/([^/]+)$")
LIBRARIES = tuple(str(Path(str(library.__file__)).parent) for library in (gr, gradio_client))
CLOSING = b'"msg":"close_stream"'
PATIENCE = 120.0  # seconds
CLOSING_SECONDS = 2.0  # that a page has for hanging up
LAUNCH: dict[str, Any] = {
    # Gradio would visit its own page once and give up, and the page with it, where that takes over three seconds.
    "_frontend": False,
    # Gradio tells screen readers the bare key of this word, which its own translations lack.
    "i18n": gr.I18n(en={"common.complete": "Done"}),
}


# -- the page ----------------------------------------------------------------------------------------------------------


class Page(gr.Blocks):
    """Sends every update of a run whole.

    Gradio sends how an update differs from the one before, and the browser changes that one in place. A component that
    has not shown it yet would never do so.
    """

    def handle_streaming_diffs(
        self,
        block_fn: BlockFunction,
        data: list,
        session_hash: str | None,
        run: str | None,
        final: bool,
        simple_format: bool = False,
    ) -> list:
        """The values or edits of all outputs as they are sent; arguments and the rest as Gradio has them."""
        is_later = run in self.pending_diff_streams[session_hash] if session_hash and run else False
        message = super().handle_streaming_diffs(block_fn, data, session_hash, run, final, simple_format)
        if not is_later or final or simple_format:
            return message
        whole = self.pending_diff_streams[session_hash][run]
        return [[["replace", [], value]] if edits else [] for edits, value in zip(message, whole)]

    def get_api_info(self, all_endpoints: bool = False, page: str | None = None) -> Any:
        """As Gradio has it, which leaves out what docstrings tell of parameters and answers."""
        info = super().get_api_info(all_endpoints, page)
        for function in self.fns.values():
            entry = info["named_endpoints"].get(f"/{function.api_name}")
            if entry is not None and function.fn and function.api_visibility == "public":
                endpoints.describe(cast(dict, entry), str(function.api_name), *get_function_description(function.fn))
        return info

    def queue(self, *values: Any, **options: Any) -> Page:
        """As Gradio has it, with `next_events` to choose what runs next."""
        super().queue(*values, **options)
        self._queue.get_events = functools.partial(next_events, self._queue)  # type: ignore[method-assign]
        return self


def next_events(queue: Any) -> tuple[list, bool, str] | None:
    """What Gradio's queue runs next: never a second event of a visitor on a queue with a bound.

    An event reads the visitor's state when it begins and leaves its own when it ends. So the next one of that visitor
    waits for it, and other visitors' events go first meanwhile. Returns the event, that it is no batch, and the name of
    its queue; None where nothing may run.
    """
    at_work = {(event.concurrency_id, event.session_hash) for job in queue.active_jobs if job for event in job}
    queues = list(queue.event_queue_per_concurrency_id.items())
    random.shuffle(queues)  # none of them is always the last
    for name, events in queues:
        bound = events.concurrency_limit
        if bound is not None and events.current_concurrency >= bound:
            continue
        for event in events.queue:
            if bound is None or (name, event.session_hash) not in at_work:
                events.queue.remove(event)
                return [event], False, name
    return None


def cache_of(page: gr.Blocks) -> Path:
    """The folder whose files the page serves; they are deleted with its cache."""
    return Path(page.GRADIO_CACHE)


def uploads() -> Path:
    """The folder that visitors' files lie in."""
    return Path(get_upload_folder())


def refusing(preprocess: Callable[..., Awaitable]) -> Callable[..., Awaitable]:
    """`Blocks.preprocess_data` whose errors are the caller's: inputs that are missing, of another kind, or files that
    were never uploaded. They get one sentence, and the log one line without what was sent.
    """

    @functools.wraps(preprocess)
    async def run(*values: Any, **options: Any) -> Any:
        try:
            return await preprocess(*values, **options)
        except gr.Error as error:
            error.print_exception = False
            raise
        except Exception as error:
            log.info("a request was refused: %s", type(error).__name__)
            raise gr.Error(UNFIT, print_exception=False) from None

    return run


# -- components --------------------------------------------------------------------------------------------------------


class WithoutInterface(type(gr.Image)):  # type: ignore[misc]
    """Metaclass of a component that only handles its values in another way: it has the events and the arguments of its
    base, so the interface file that Gradio writes beside the source of every component would say nothing new.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
        """The class, without what the library's own kind of class would add."""
        return ABCMeta.__new__(cls, name, bases, members)


class Photograph(gr.Image, metaclass=WithoutInterface):
    """An image component that hands over the visitor's untouched file.

    Decoding it is left to `vton.inputs.photo.load_image`, the one place that orients, bounds and refuses pictures with
    a sentence; Gradio's own decoding drops alpha and answers a broken file with a general error. A class, because
    Gradio makes the component anew for a visitor whenever it is updated.
    """

    is_template = True  # to the browser it is an ordinary image

    def preprocess(self, payload: Any) -> Any:
        """The path of the file as it was uploaded."""
        return payload.path if payload is not None and payload.path else super().preprocess(payload)


def describe(component: gr.components.Component, description: dict[str, Any]) -> None:
    """Has the API's description tell of a component what it takes.

    Gradio describes every dropdown as text, and a program that keeps to that could choose none of the numbers.
    """
    component.api_info = lambda: description  # type: ignore[method-assign]


def value_in(update: Any) -> Any:
    """The value in what a handler returns for a component: a value, or an update with one in it."""
    return update.get("value") if isinstance(update, dict) and "__type__" in update else update


def hold(trigger: Callable, *dropdowns: gr.Dropdown, name: str) -> None:
    """Closes the dropdowns in the browser at once when `trigger` fires; what updates their choices opens them.

    An open list of options that becomes shorter ends in a script error of Gradio's. name: of the event.
    """
    update = "{__type__: 'update', interactive: false}"
    trigger(
        None,
        None,
        list(dropdowns),
        js=f"() => ({update})" if len(dropdowns) == 1 else f"() => [{', '.join([update] * len(dropdowns))}]",
        api_name=name,
        api_visibility="private",
        show_progress="hidden",
    )


# -- scripts -----------------------------------------------------------------------------------------------------------

SCRIPTS = Path(str(gr.__file__)).parent / "templates" / "frontend" / "assets"
# SEARCHES: while it opens, Gradio's page looks through all events for each component, and through all components for
# each event and each update: half of the script time of a page of this size. Instead it remembers what it has found;
# components come and go nowhere here but in `gr.render`, which this page has not.
# OPENING: when an accordion or a tab opens for the first time, Gradio's page gives its components, a frame after they
# are there, the values that it has noted of them: what a visitor has typed in between would be lost. So it first notes
# what they hold.
_CHANGES = theme.data("gradio.json")  # pairs of Gradio's text and of what stands instead
SEARCHES, OPENING = dict(_CHANGES["searches"]), dict(_CHANGES["opening"])
REPLACEMENTS = {**SEARCHES, **OPENING}
# The page has Gradio's words in its own tables (static/language.js), so Gradio itself speaks English here.
LANGUAGES = ("de", "fr", "ko")


def scripts() -> list[Route]:
    """Routes of Gradio's scripts with REPLACEMENTS, none where a release of Gradio has other scripts, and its words."""
    texts = {}
    for file in SCRIPTS.glob("core-*.js"):
        text = file.read_text("utf-8")
        if all(text.count(old) == 1 for old in REPLACEMENTS):
            texts[file.name] = functools.reduce(lambda text, pair: text.replace(*pair), REPLACEMENTS.items(), text)
    for english in SCRIPTS.glob("en-*.js"):
        for language in LANGUAGES:
            words = english.read_text(encoding="utf-8")
            texts |= {file.name: words for file in SCRIPTS.glob(f"{language}-*.js")}
    return [Route(f"/assets/{name}", functools.partial(_script, text)) for name, text in texts.items()]


async def _script(text: str, request: Request) -> Response:
    return Response(text, media_type="text/javascript", headers={"Cache-Control": "public, max-age=86400"})


# -- requests ----------------------------------------------------------------------------------------------------------

# What a server of Gradio raises for a request that names what there is not.
UNKNOWN_ERRORS = (FnIndexInferError, KeyError, TypeError, OSError)


async def unknown(request: Request, error: Exception) -> JSONResponse:
    """Answers a request for what there is not: an endpoint by name or number, a component, a file with too long a name.

    Where Gradio looks something up that a request names, it leaves a KeyError or TypeError; those of other modules and
    other errors of the system are faults, and stay so.
    """
    if isinstance(error, (KeyError, TypeError)):
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_unknown = last.filename.startswith(LIBRARIES)
    else:
        is_unknown = not isinstance(error, OSError) or error.errno == errno.ENAMETOOLONG
    if not is_unknown:
        raise error
    log.info("a request was refused: %s", type(error).__name__)
    return JSONResponse({"detail": UNKNOWN}, status_code=404)


class Gate:
    """Answers what Gradio would meet with a traceback after its answer has begun: addresses that no file or function
    can have, and events that the queue does not know.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        answer = self._refusal(scope) if scope["type"] == "http" else None
        try:
            await (answer or self.app)(scope, receive, send)
        except RuntimeError as error:  # the visitor's other window has ended the run while this one waited
            if not isinstance(error.__cause__, HTTPException):
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            _forget_caller(scope)

    @staticmethod
    def _refusal(scope: Scope) -> Response | None:
        path = scope["path"]
        if any(ord(sign) < 32 or ord(sign) == 127 for sign in path):
            return JSONResponse({"detail": UNFIT}, status_code=400)
        if any(len(name.encode(errors="replace")) > MAX_NAME_BYTES for name in path.split("/")):
            return JSONResponse({"detail": UNKNOWN}, status_code=404)
        return _unknown_run(scope, path) if scope["method"] == "GET" else None


def _blocks(scope: Scope) -> Any:
    """The page that a request belongs to, None where the server is another one."""
    app = scope.get("app")
    return app.get_blocks() if app is not None and hasattr(app, "get_blocks") else None


def _forget_caller(scope: Scope) -> None:
    """Drops what Gradio keeps for the caller of an endpoint once the end of the run has been sent.

    Without a visitor's mark, every call counts as a visitor of its own, with a copy of the page's state (1.5 MB).
    """
    event = EVENT.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
    blocks = _blocks(scope) if event else None
    if event and blocks is not None:
        states = blocks.state_holder
        with states.lock:
            states.session_data.pop(event[1], None)
            states.time_last_used.pop(event[1], None)


def _unknown_run(scope: Scope, path: str) -> Response | None:
    """The answer to a request for the events of a run, by its number or its visitor's, that the queue does not know.

    It is a stream of one event, as the page's scripts expect it.
    """
    blocks = _blocks(scope)
    event = EVENT.search(path)
    if blocks is None or not (event or path.endswith("/queue/data")):
        return None
    waiting = blocks._queue
    if event:
        visitor = visitor_of(waiting, event[1]) or event[1]
        text = f"event: error\ndata: {json.dumps(UNKNOWN_RUN)}\n\n"
    else:
        visitor = Request(scope).query_params.get("session_hash")
        message = {"msg": "unexpected_error", "message": UNKNOWN_RUN, "session_not_found": True, "success": False}
        text = f"data: {json.dumps(message)}\n\n"
    if visitor is None or visitor in waiting.pending_messages_per_session:
        return None
    return Response(text, status_code=404, media_type="text/event-stream")


def make_agents_patient() -> None:
    """Gives the tools of agents, which ask the page over HTTP, two minutes for each of its answers.

    They have five seconds otherwise, which a busy page exceeds, most often at an agent's first call.
    """
    from gradio import mcp

    mcp.Client = functools.partial(gradio_client.Client, httpx_kwargs={"timeout": PATIENCE})


# -- streams of events -------------------------------------------------------------------------------------------------


def visitor_of(queue: Any, event: str) -> str | None:
    """The visitor who has asked for an event of Gradio's queue, None where the queue does not know it."""
    entry = queue.event_ids_to_events.get(event)
    if entry is not None:
        return entry.session_hash
    return next((visitor for visitor, events in queue.pending_event_ids_session.items() if event in events), None)


class Streams:
    """Holds back the answer to a new event while the visitor's stream of events is being closed.

    Gradio's server closes the stream once no event of the visitor is pending: it says `close_stream`, and the page
    opens another stream with the next event. An event that was asked for while these words were on their way would wait
    for good for a stream that nobody opens. So the answer to it waits until the page has read them, which it shows by
    hanging up.
    """

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
        visitor, closing = Request(scope).query_params.get("session_hash", ""), asyncio.Event()

        async def forward(message: Message) -> None:
            if CLOSING in message.get("body", b""):
                self._closing[visitor] = closing
            elif self._closing.get(visitor) is closing:  # the end of the answer
                await _await_hang_up(receive)
            await send(message)

        try:
            await self.app(scope, receive, forward)
        except (KeyError, RuntimeError) as error:
            # Of two streams of a page that goes, Gradio forgets the visitor with one and misses it with the other.
            # Starlette wraps that error once an answer has begun.
            missing = error.__cause__ if isinstance(error, RuntimeError) else error
            if not isinstance(missing, KeyError) or missing.args != (visitor,):
                raise
        finally:
            closing.set()
            if self._closing.get(visitor) is closing:
                del self._closing[visitor]

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if self._closing and message["type"] == "http.response.body":
                await self._await_closing(scope, message.get("body", b""))
            await send(message)

        await self.app(scope, receive, answer)

    async def _await_closing(self, scope: Scope, body: bytes) -> None:
        """Waits until no stream is being closed for the visitor whose event an answer names."""
        try:
            event = json.loads(body)["event_id"]
        except (ValueError, KeyError, TypeError):
            return  # a refusal
        closing = self._closing.get(visitor_of(scope["app"].get_blocks()._queue, event) or "")
        if closing is not None:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(closing.wait(), CLOSING_SECONDS)


async def _await_hang_up(receive: Receive) -> None:
    """Waits until the caller has gone, `CLOSING_SECONDS` at most."""

    async def hang_up() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(hang_up(), CLOSING_SECONDS)
