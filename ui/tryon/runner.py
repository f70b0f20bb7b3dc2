"""A run of the try-on on the page: stages with their times while it lasts, the record at its end, one sentence if it
fails.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from gradio.utils import get_upload_folder

from ui import messages
from ui.services import Progress, Services
from ui.tryon import figures, work
from ui.tryon.bar import Bar, settled
from ui.tryon.inputs import Inputs
from ui.tryon.kept import SECONDS, Kept, mark
from ui.tryon.outcome import EDGE, LABEL, PUBLISHED_LABEL, Outcome, written
from ui.tryon.steps import Steps
from vton import record
from vton.options import ABOUT, PUBLISHED
from vton.pipeline import STAGES

CORRUPT_POINTS = "The control points did not arrive whole; drag them again."


class Runner:
    """The handlers of every run: a new one, one that goes on, and one from a corrected map.

    Each yields updates by component and never raises: an error becomes a sentence, and what was entered stays.
    """

    def __init__(self, services: Services, bar: Bar, inputs: Inputs, outcome: Outcome, steps: Steps):
        self.services, self.bar, self.inputs = services, bar, inputs
        self.outcome, self.steps = outcome, steps
        self.kept = gr.State(Kept(example=inputs.finished is not None), time_to_live=SECONDS)

    @property
    def components(self) -> list[gr.components.Component]:
        """All that a run updates."""
        return [self.kept, *self.bar.components, *self.outcome.components, *self.steps.components]

    # -- what a run shows ------------------------------------------------------------------------------------------

    def shown(self, kept: Kept, line: str = "", photos: bool = False) -> Iterator[dict]:
        """Show a record, and with `photos` its photographs in the boxes.

        The files lie in a folder of their own until Gradio has copied them, which is when more is asked for.
        """
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            paths, archive = written(kept, self.services, Path(folder))
            boxes = {self.inputs.person: paths["photo"], self.inputs.garment: paths["garment_photo"]} if photos else {}
            yield {
                **boxes,
                self.kept: kept,
                **self.bar.said(line),
                **self.bar.idle(),
                **self.bar.stages(None, kept.result.seconds),
                **self.outcome.shown(kept, paths, archive),
                **self.steps.shown(kept, paths, archive),
            }

    def stream(self, call: Callable, made: Kept, before: Kept | None = None) -> Iterator[dict]:
        """Run `call(tryon, on_stage)` and keep the page up to date.

        made: what the new record joins, with its networks and photographs; before: what the page holds, None for a run
        from the beginning.
        """
        current, seconds = None, dict(before.result.seconds) if before else {}
        try:
            yield {**self.bar.stages(None, {}), **self.bar.working("Starting …")}
            for report in self.services.stream_on_tryon(call, made.key):
                if not isinstance(report, Progress):
                    result = report
                    break
                current = report.stage
                yield self._progress(report, seconds)
            yield from self.shown(replace(made, result=result))
        except Exception as error:  # every error becomes a sentence; what was entered stays
            yield from self._failed(error, made, before is not None, self.bar.stages(current, seconds, "failed"))

    def _progress(self, report: Progress, seconds: dict) -> dict:
        if report.stage < 0:
            return {**self.bar.stages(None, {}), **self.bar.working("Getting the networks ready …")}
        kept = {stage: seconds[stage] for stage in STAGES[: report.stage] if stage in seconds}
        return {
            **self.bar.stages(report.stage, {**kept, **report.seconds}),
            **self.bar.working(f"Working on: {STAGES[report.stage]} ({report.stage + 1} of {len(STAGES)})"),
        }

    def _failed(self, error: Exception, made: Kept, again: bool, stages: dict) -> Iterator[dict]:
        partial_record = None if again else getattr(error, "record", None)
        if not figures.can_be_painted(partial_record):
            yield {**stages, **self.bar.failed(error)}
            return
        alert = messages.alert(messages.sentence(error))
        help_ = messages.status("Or paint the map yourself: choose “Correct a map” below.")
        for update in self.shown(replace(made, result=partial_record), alert + help_):
            yield {**update, **stages}

    # -- handlers --------------------------------------------------------------------------------------------------

    @settled
    def new(self, values: dict) -> Iterator[dict]:
        """A run with what stands in the boxes."""
        inputs, stop = self.inputs, values[self.inputs.stop]
        try:
            options = inputs.options(values)
        except ValueError as error:
            yield self.bar.failed(error)
            return
        person, garment = values[inputs.person], values[inputs.garment]
        yield from self.stream(
            lambda tryon, on_stage: tryon.run(person, garment, options, on_stage=on_stage, until=work.upto(stop)),
            Kept(key=inputs.networks(values), photos=(mark(person), mark(garment))),
        )

    @settled
    def go_on(self, kept: Kept) -> Iterator[dict]:
        """The stages that "Maps first" has left out."""
        try:
            stage = work.next_stage(kept.result)
        except ValueError as error:
            yield self.bar.failed(error)
            return
        yield from self.stream(lambda tryon, on_stage: tryon.resume(kept.result, stage, on_stage), kept, kept)

    @settled
    def attribute(self, name: str, values: dict) -> Iterator[dict]:
        """Another length of the sleeves, neckline or hem: on from the first stage that reads it.

        Before a first result, or with other photographs in the boxes, it waits for "Try it on". A list also calls what
        it shows its input when the focus leaves it: nothing is repeated then.
        """
        kept = values[self.kept]
        value, result = values[self.inputs.settings[name]], kept.result
        waits = result is None or not self.inputs.same_photos(values, kept) or "segmentation" not in result.seconds
        if waits or getattr(result.options, name) == value:
            yield {self.outcome.stale: self.stale(values)}
            return
        stop = work.upto(values[self.inputs.stop])
        yield from self.stream(
            lambda tryon, on_stage: tryon.resume(result, ABOUT[name].read_by, on_stage, stop, **{name: value}),
            kept.corrected(),
            kept,
        )

    @settled
    def publish(self, kept: Kept, published: bool) -> Iterator[dict]:
        """The result of the paper's system alone beside the full one, or the photograph beside it again."""
        try:
            work.finished(kept.result)
            if not published:
                yield from self._beside(kept.result.photo, kept.result.result, LABEL, EDGE)
                return
            yield self.bar.working("The paper's system: starting …")
            for report in work.streamed(self.services, kept.result, PUBLISHED, kept.key):
                if isinstance(report, Progress):
                    yield self.bar.working(f"The paper's system: {STAGES[max(report.stage, 0)]}")
                else:
                    yield from self._beside(report.result, kept.result.result, PUBLISHED_LABEL, 50)
        except Exception as error:
            yield self.bar.failed(error)

    def _beside(self, left: np.ndarray, right: np.ndarray, label: str, position: int) -> Iterator[dict]:
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            paths = Path(folder) / "left.png", Path(folder) / "right.png"
            for path, picture in zip(paths, (left, right), strict=True):
                path.write_bytes(record.png(picture))
            slider = gr.update(value=tuple(map(str, paths)), label=label, slider_position=position)
            yield {self.outcome.slider: slider, **self.bar.said(""), **self.bar.idle()}

    def stale(self, values: dict) -> str:
        """HTML that says what the shown result was not made of, "" if it belongs to all that stands there."""
        line = self.inputs.stale(values, values[self.kept])
        return messages.status(line) if line else ""

    def corrected(self, kept: Kept, stop: bool, read: Callable[[], tuple[str, Any]]) -> Iterator[dict]:
        """Go on from a corrected map; `read` gives its name and value,
        or raises ValueError. A failure changes nothing.
        """
        try:
            if kept.result is None:
                raise ValueError(work.GONE)
            name, value = read()
        except ValueError as error:
            yield self.bar.failed(error)
            return
        yield from self.stream(
            lambda tryon, on_stage: tryon.correct(kept.result, name, value, on_stage, work.upto(stop)),
            kept.corrected(),
            kept,
        )

    @settled
    def painted(self, kept: Kept, stop: bool, event: gr.EventData) -> Iterator[dict]:
        """Goes on from the map that was painted on the page."""

        def read() -> tuple[str, Any]:
            value = figures.painted(event.name, event.labels, event.width, event.height)
            return figures.PAINTED[event.name][1], value

        yield from self.corrected(kept, stop, read)

    @settled
    def uploaded(self, kept: Kept, stop: bool, name: str, file: str) -> Iterator[dict]:
        """Goes on from a map that was painted elsewhere."""
        field = figures.PAINTED[name][1]
        yield from self.corrected(kept, stop, lambda: (field, record.read_map(kept.result, field, file)))

    @settled
    def warped(self, kept: Kept, stop: bool, event: gr.EventData) -> Iterator[dict]:
        """Goes on from the control points that were dragged."""
        yield from self.corrected(kept, stop, partial(points_of, event))

    @settled
    def back(self, to_first: bool, kept: Kept) -> Iterator[dict]:
        """Undo the last correction, or all of them; the settings follow."""
        if not kept.history:
            yield self.bar.failed(ValueError(work.GONE))
            return
        before = kept.back(to_first)
        for update in self.shown(before):
            yield {**update, **self.inputs.show(before.result.options, None)}

    # -- saved records ---------------------------------------------------------------------------------------------

    @settled
    def opened(self, file: str) -> Iterator[dict]:
        """A saved try-on with its photos, or settings alone."""
        try:
            known = record.read_settings(file)
            offered = self._offered(known)
            settings = self.inputs.show(known["options"], offered)
            remark = "" if offered else f"Its networks ({known['weights'] or 'unknown'}) are not on this page. "
            if str(file).endswith(".json"):
                line = messages.status(remark + "The settings are back; add the same two photos and run.")
                yield {**settings, **self.bar.said(line), **self.bar.idle()}
                return
            line = messages.status(remark + "The saved try-on is back, with its photos, maps and settings.")
            for update in self.shown(Kept(record.load(file), (), offered), line, photos=True):
                yield {**settings, **update}
        except Exception as error:
            yield self.bar.failed(error)

    def _offered(self, known: dict) -> str | None:
        """The networks of a saved try-on, None where this page has them not."""
        model = str(known.get("model") or "")
        return model if model in {key for _, key in self.services.tryons()} else None

    @settled
    def restored(self, address: str, kept: Kept) -> Iterator[dict]:
        """After a reload: this visitor's last result, while its zip is kept. Otherwise the page stays as it opens.

        address: what the browser remembers of the zip; nothing but a try-on in the page's own cache is opened.
        """
        cache = Path(get_upload_folder()).resolve()
        path = Path(address).resolve() if address else cache
        if kept.result is not None or path.name != "try-on.zip" or cache not in path.parents or not path.is_file():
            yield {self.kept: kept}
            return
        try:
            known = record.read_settings(str(path))
            offered = self._offered(known)
            line = messages.status("Your last result is back.")
            for update in self.shown(Kept(record.load(str(path)), (), offered), line, photos=True):
                yield {**self.inputs.show(known["options"], offered), **update}
        except Exception as error:
            messages.sentence(error)  # logged; the visitor has asked for nothing
            yield {self.kept: kept}

    def stamp(self, values: dict) -> dict:
        """Ties a record to the pictures in the boxes, once Gradio has given their copies an address."""
        kept = values[self.kept]
        photos = mark(values[self.inputs.person]), mark(values[self.inputs.garment])
        return {self.kept: kept if kept.result is None else replace(kept, photos=photos)}


def points_of(event: gr.EventData) -> tuple[str, Any]:
    """Name and value of the control points in an event. Raises ValueError."""
    try:
        return "control_points", np.array(event.points, np.float32)
    except (ValueError, TypeError):
        raise ValueError(CORRUPT_POINTS) from None
