"""What the server says besides the page: whether it is alive, headers for browsers, and one line a run in its log."""

from __future__ import annotations

import errno
import json
import logging
import re
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio
import gradio_client
from fastapi.exceptions import RequestValidationError
from gradio.route_utils import FnIndexInferError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from training.memory import give_back_memory
from ui.streams import Streams, visitor_of

log = logging.getLogger("atelier")
UNFIT = "This request does not fit what it asks for; the page's API documentation lists the inputs of every endpoint."
UNKNOWN = "There is no such endpoint; the page's API documentation lists them."
UNKNOWN_RUN = "There is no such run here: it has ended, or its visitor is gone. Please start it again."
REST_SECONDS = 5.0
MOST_OF_A_NAME = 255  # bytes between two slashes of an address, as file systems have it
EVENT = re.compile(r"/call/(?:v2/)?[^/]+/([^/]+)$")
LIBRARIES = tuple(str(Path(str(library.__file__)).parent) for library in (gradio, gradio_client))
HEADERS = {
    # Gradio writes scripts and styles into its page, so these stay allowed; other hosts do not.
    "Content-Security-Policy": "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "microphone=(), geolocation=()",
}


async def health(request: Request) -> JSONResponse:
    """Answers a proxy that asks whether the page is there."""
    return JSONResponse({"status": "ok"})


async def unfit(request: Request, error: Exception) -> JSONResponse:
    """Answers a body of another shape. What was sent is not repeated: it may hold numbers that JSON does not know."""
    return JSONResponse({"detail": UNFIT}, status_code=422)


async def unknown(request: Request, error: Exception) -> JSONResponse:
    """Answers a request for what there is not: an endpoint by name or number, a component, a file with too long a name.

    Where Gradio looks something up that a request names, it leaves a KeyError or TypeError; those of other modules and
    other errors of the system are faults, and stay so.
    """
    if isinstance(error, (KeyError, TypeError)):
        last = traceback.extract_tb(error.__traceback__)[-1]
        named = last.filename.startswith(LIBRARIES)
    else:
        named = not isinstance(error, OSError) or error.errno == errno.ENAMETOOLONG
    if not named:
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
        if any(len(name.encode(errors="replace")) > MOST_OF_A_NAME for name in path.split("/")):
            return JSONResponse({"detail": UNKNOWN}, status_code=404)
        return _unknown_run(scope, path) if scope["method"] == "GET" else None


def _blocks(scope: Scope) -> Any:
    """The page that a request belongs to, None where the server is another one."""
    app = scope.get("app")
    return app.get_blocks() if app is not None and hasattr(app, "get_blocks") else None


def _forget_caller(scope: Scope) -> None:
    """Drops what Gradio keeps for the caller of an endpoint who has been told the end of the run.

    Without a visitor's mark, every call counts as a visitor of its own, with a copy of the page's state (1.5 MB).
    """
    event = EVENT.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
    blocks = _blocks(scope) if event else None
    if event and blocks is not None:
        kept = blocks.state_holder
        with kept.lock:
            kept.session_data.pop(event[1], None)
            kept.time_last_used.pop(event[1], None)


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
        said = f"event: error\ndata: {json.dumps(UNKNOWN_RUN)}\n\n"
    else:
        visitor = Request(scope).query_params.get("session_hash")
        told = {"msg": "unexpected_error", "message": UNKNOWN_RUN, "session_not_found": True, "success": False}
        said = f"data: {json.dumps(told)}\n\n"
    if visitor is None or visitor in waiting.pending_messages_per_session:
        return None
    return Response(said, status_code=404, media_type="text/event-stream")


class Headers:
    """Adds `HEADERS` to every answer, where it does not have them yet."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in known)]
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def app_options() -> dict[str, Any]:
    """What the page's server is made with, besides Gradio's own."""
    return {
        "routes": [Route("/health", health)],
        "middleware": [Middleware(Headers), Middleware(Gate), Middleware(Streams)],
        "exception_handlers": {
            RequestValidationError: unfit,
            **dict.fromkeys((FnIndexInferError, KeyError, TypeError, OSError), unknown),
        },
    }


def set_up_log(level: str) -> None:
    """Lines of the level and above go to standard error, with the time. level: "debug", "info",
    "warning" or "error".
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    log.setLevel(level.upper())


class AtRest:
    """Calls a function once nothing has been reported for a while. seconds: how long that is."""

    def __init__(self, function: Callable[[], None], seconds: float) -> None:
        self.function, self.seconds = function, seconds
        self._lock, self._timer = threading.Lock(), threading.Timer(0, function)

    def __call__(self) -> None:
        """Reports a run."""
        with self._lock:
            self._timer.cancel()
            self._timer = threading.Timer(self.seconds, self.function)
            self._timer.daemon = True
            self._timer.start()


_rested = AtRest(give_back_memory, REST_SECONDS)


def told(what: str, seconds: Mapping[str, float], **sizes: int) -> None:
    """Logs one run: its stages' times and its sizes, nothing that the visitor entered."""
    times = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    shown = "".join(f", {value} {name}" for name, value in sizes.items())
    log.info("%s: %.2f s%s (%s)", what, sum(seconds.values()), shown, times)
    _rested()  # the caller still holds what the run has made
