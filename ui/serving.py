"""What the server says besides the page: whether it is alive, headers for browsers, and one line a run in its log."""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from gradio.route_utils import FnIndexInferError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("atelier")
UNFIT = "This request does not fit what it asks for; the page's API documentation lists the inputs of every endpoint."
UNKNOWN = "There is no such endpoint; the page's API documentation lists them."
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
    """Answers a request for an endpoint that there is not, by its name or, in the queue, by a number (a KeyError)."""
    if isinstance(error, KeyError) and not request.url.path.endswith("/queue/join"):
        raise error
    return JSONResponse({"detail": UNKNOWN}, status_code=404)


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
        "middleware": [Middleware(Headers)],
        "exception_handlers": {RequestValidationError: unfit, FnIndexInferError: unknown, KeyError: unknown},
    }


def set_up_log(level: str) -> None:
    """Lines of the level and above go to standard error, with the time. level: "debug", "info",
    "warning" or "error".
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    log.setLevel(level.upper())


def give_back_memory() -> None:
    """Hands what the last run has freed back to the operating system, where the C library can (glibc).

    Every run has a thread of its own, and memory that is free in one thread's arena is kept there: a server would grow
    with the number of visitors for good.
    """
    trim = getattr(_libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@functools.cache
def _libc() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows has none of that name
        return None


def told(what: str, seconds: Mapping[str, float], **sizes: int) -> None:
    """Logs one run: its stages' times and its sizes, nothing that the visitor entered."""
    times = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    shown = "".join(f", {value} {name}" for name, value in sizes.items())
    log.info("%s: %.2f s%s (%s)", what, sum(seconds.values()), shown, times)
