"""The photographs in a visitor's boxes, read while the visitor still chooses: pose, parse and garment."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from ui.services import READING_STAGES, Services
from vton.options import Options
from vton.pipeline import STAGES
from vton.result import TryOnResult

STAGES_AHEAD = STAGES[:READING_STAGES]
NEXT = STAGES[READING_STAGES]  # the stage that a run goes on with
STEP = 0.02  # seconds between two looks whether others compute
PATIENCE = 60.0  # seconds for which others may go first


class ReadingRequest(NamedTuple):
    """What is to be read. person, garment: paths; size: (height, width); key: of the networks, see `ui.services`."""

    person: str
    garment: str
    size: tuple[int, int]
    key: str | None


class NewerRequest(Exception):
    """The boxes hold other photographs by now."""


class Readings:
    """The reading of one visitor's photographs: at most one thread works at it, and nothing is read twice.

    It works while nobody computes a try-on, or while somebody waits for it, and looks at every stage whether the boxes
    still hold what it reads. A person's stages are kept while only the garment changes.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._request: ReadingRequest | None = None
        self._of: ReadingRequest | None = None  # what `_record` was read of
        self._record: TryOnResult | None = None
        self._working = self._failure = False
        self._waiting = 0  # how many wait for the reading

    def __deepcopy__(self, _: Any) -> Readings:
        return Readings()  # every visitor has one

    def begin(self, services: Services, request: ReadingRequest | None) -> None:
        """Have these photographs read from now on, and forget the reading of others. None: there is nothing to read."""
        with self._condition:
            if request == self._request:
                return
            self._request, self._failure = request, False
            if request is None or (self._of is not None and not _same_person(self._of, request)):
                self._record = self._of = None
            self._condition.notify_all()
            if request is not None and not self._working:
                self._working = True
                threading.Thread(target=self._work, args=(services,), name="reading", daemon=True).start()

    def of(self, request: ReadingRequest | None, stage: str, timeout: float | None = None) -> TryOnResult | None:
        """The record of these photographs once a stage is done; None where they are not being read or cannot be.

        stage: one of STAGES_AHEAD; timeout: seconds. Raises TimeoutError where the stage is not done by then.
        """
        with self._condition:
            self._waiting += 1
            try:
                in_time = self._condition.wait_for(
                    lambda: self._request != request or self._holds(request, stage) or not self._working, timeout
                )
            finally:
                self._waiting -= 1
            if not in_time:
                raise TimeoutError
            return self._record if self._request == request and self._holds(request, stage) else None

    def _holds(self, request: ReadingRequest | None, stage: str) -> bool:
        """Whether the record holds a stage of these photographs; the garment's is the only one to read the garment."""
        if request is None or self._of is None or self._record is None or stage not in self._record.seconds:
            return False
        return self._of == request if stage == "garment" else _same_person(self._of, request)

    def _work(self, services: Services) -> None:
        while True:
            with self._condition:
                request = self._request
                if request is None or self._failure or self._holds(request, STAGES_AHEAD[-1]):
                    self._working = False
                    self._condition.notify_all()
                    return
                before, of = self._record, self._of
            try:
                record, of = self._step(services, request, before, of)
            except NewerRequest:
                continue
            except Exception:  # the run that needs the photographs says what is wrong with them
                record = None
            with self._condition:
                if record is None:
                    self._failure = self._request == request
                elif self._request is not None and _same_person(self._request, request):
                    self._record, self._of = record, of
                self._condition.notify_all()

    def _step(
        self, services: Services, request: ReadingRequest, before: TryOnResult | None, of: ReadingRequest | None
    ) -> tuple[TryOnResult, ReadingRequest]:
        """The record with the next stage that it lacks, and what that was read of."""
        # PyTorch's MPS backend takes no two threads at once.
        alone = services.computing if services.place_of(request.key)[0] == "mps" else nullcontext()
        self._step_aside(services, request)
        with alone:
            tryon = services.tryon(request.key)
            if before is None or of is None:
                options = Options(size=request.size)
                return tryon.run(request.person, request.garment, options, until="pose"), request
            if "parse" not in before.seconds:
                return tryon.resume(before, "parse", until="parse"), of
            if of.garment == request.garment:
                return tryon.resume(before, "garment", until="garment"), request
            return tryon.change_garment(before, request.garment, until="garment"), request

    def _step_aside(self, services: Services, request: ReadingRequest) -> None:
        """Waits until nobody computes or somebody needs the reading. Raises Superseded once it is of no use."""
        until = time.monotonic() + PATIENCE
        while True:
            with self._condition:
                if self._request != request:
                    raise NewerRequest
                urgent = self._waiting > 0
            busy = services.reading.locked() or services.computing.locked()
            if urgent or not busy:
                return
            if time.monotonic() > until:
                raise TimeoutError("others computed all the time")
            time.sleep(STEP)


def _same_person(one: ReadingRequest, other: ReadingRequest) -> bool:
    return (one.person, one.size, one.key) == (other.person, other.size, other.key)


def continue_run(tryon: Any, reading: TryOnResult, options: Options, on_stage: Any, until: str) -> TryOnResult:
    """The run that `reading` is the beginning of, with other options than it was read with; its size stays.

    Args as of `TryOn.run`. The record is that of a run from the first stage on.
    """
    changes = {name: value for name, value in vars(options).items() if name != "size"}
    return replace(tryon.resume(reading, NEXT, on_stage, until, **changes), resumed_from="")
