"""The two objects behind the page, loaded at first use, once, behind a lock."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator

TRANSLATION_MODEL = "multi30k-en-de"
TRYON_MODEL = "tryon-lite"


class Lazy:
    """A value made at first use, once, also when several threads ask together. A failed attempt is tried again."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._lock = threading.Lock()
        self._value: Any = None
        self._made = False

    def __call__(self) -> Any:
        with self._lock:
            if not self._made:
                self._value = self._make()
                self._made = True
            return self._value


def load_translator(name_or_folder: str, device: str):
    from transformer import Translator

    return Translator.from_pretrained(name_or_folder, device=device)


def load_tryon(name_or_folder: str, device: str):
    from vton import TryOn

    return TryOn.from_pretrained(name_or_folder, device=device)


class Cancelled(Exception):
    """Raised inside a run whose visitor has cancelled it or gone away."""


@dataclass(frozen=True)
class Progress:
    """How far a try-on is. stage: index of the stage at work; seconds: time of each stage, the running one's so far."""

    stage: int
    seconds: dict[str, float]


class Services:
    """What the tabs ask for translations and try-ons.

    translation_model, tryon_model: name of a shipped model or a folder; device: "auto", "cpu", "cuda" or "mps".
    """

    def __init__(
        self, translation_model: str = TRANSLATION_MODEL, tryon_model: str = TRYON_MODEL, device: str = "auto"
    ):
        self.translation_model = translation_model
        self.tryon_model = tryon_model
        self.translator = Lazy(lambda: load_translator(translation_model, device))
        self.tryon = Lazy(lambda: load_tryon(tryon_model, device))
        # A cancelled run ends at its next stage, a moment after its place in the queue is free again.
        self.tryon_in_use = threading.Lock()

    def pairs(self) -> list[tuple[str, str]]:
        """The language pairs of the translation model, source first."""
        return [tuple(pair) for pair in self.translator().pairs]

    def stream_tryon(self, person: Any, garment: Any, **options: Any) -> Iterator[Any]:
        """Run a try-on beside the caller. Yields Progress about twice a second, and the TryOnResult at last.

        Closing the iterator cancels the run: it stops before its next stage. Errors of the run are raised here.
        options: those of `TryOn.run` except on_stage.
        """
        reports: queue.Queue = queue.Queue()
        cancelled = threading.Event()

        def on_stage(name: str, index: int, total: int) -> None:
            if cancelled.is_set():
                raise Cancelled
            reports.put(("stage", (name, index)))

        def work() -> None:
            try:
                with self.tryon_in_use:
                    if cancelled.is_set():
                        return
                    result = self.tryon().run(person, garment, on_stage=on_stage, **options)
                reports.put(("result", result))
            except BaseException as error:  # handed to the caller's thread, also a Cancelled that nobody reads
                reports.put(("error", error))

        threading.Thread(target=work, name="try-on", daemon=True).start()
        seconds: dict[str, float] = {}
        name, index, since = "", -1, time.perf_counter()
        try:
            while True:
                try:
                    kind, value = reports.get(timeout=0.5)
                except queue.Empty:
                    kind, value = "waiting", None
                now = time.perf_counter()
                if name:
                    seconds[name] = now - since
                if kind == "error":
                    raise value
                if kind == "result":
                    yield value
                    return
                if kind == "stage":
                    (name, index), since = value, now
                yield Progress(index, dict(seconds))
        finally:
            cancelled.set()
