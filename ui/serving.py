"""What the server says besides the page: whether it is alive, headers for browsers, and one line a run in its log."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from training.memory import give_back_memory
from ui import gradio_private, theme
from ui.gradio_private import UNFIT

log = logging.getLogger("atelier")
REST_SECONDS = 5.0
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


class Headers:
    """Adds `HEADERS` to every answer, where it does not have them yet."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in present)]
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def app_options() -> dict[str, Any]:
    """What the page's server is made with, besides Gradio's own."""
    return {
        "routes": [
            Route("/health", health),
            Mount("/words", StaticFiles(directory=theme.STATIC / "words")),
            *gradio_private.scripts(),
        ],
        "middleware": [Middleware(Headers), Middleware(gradio_private.Gate), Middleware(gradio_private.Streams)],
        "exception_handlers": {
            RequestValidationError: unfit,
            **dict.fromkeys(gradio_private.UNKNOWN_ERRORS, gradio_private.unknown),
        },
    }


def set_up_log(level: str) -> None:
    """Lines of the level ("debug", "info", "warning", "error") and above go to standard error, with the time."""
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


_rest = AtRest(give_back_memory, REST_SECONDS)


def log_run(what: str, seconds: Mapping[str, float], **sizes: int) -> None:
    """Logs one run: its stages' times and its sizes, nothing that the visitor entered."""
    times = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    counts = "".join(f", {value} {name}" for name, value in sizes.items())
    log.info("%s: %.2f s%s (%s)", what, sum(seconds.values()), counts, times)
    _rest()  # the caller still holds what the run has made
