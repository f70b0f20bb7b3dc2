"""A run of the try-on on the page: stages with their times, the record at its end, one sentence if it fails."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from ui import messages
from ui.gradio_private import uploads
from ui.kit import alerts
from ui.services import Progress, Services
from ui.tryon import ahead, earlier, figures, work
from ui.tryon.bar import Bar, with_quiet_end
from ui.tryon.inputs import Inputs
from ui.tryon.outcome import EDGE, LABEL, PAPER_LABEL, Outcome
from ui.tryon.session import Session, mark
from ui.tryon.steps import StepsView
from vton import record
from vton.options import ABOUT, PUBLISHED
from vton.pipeline import STAGES

# Seconds between two lines of a run: on the same stage, and at least. Each costs server and browser some of the time in
# which they could compute and draw the picture.
EVERY, LEAST = 0.5, 0.25
CORRUPT_POINTS = "The control points did not arrive whole; drag them again."


class Runner:
    """The handlers of every run: a new one, one that goes on, and one from a corrected map.

    Each yields updates by component and never raises: an error becomes a sentence, and what was entered stays.
    """

    def __init__(
        self,
        services: Services,
        bar: Bar,
        inputs: Inputs,
        outcome: Outcome,
        earlier_strip: gr.HTML,
        steps: StepsView,
        session: gr.State,
    ):
        self.services, self.bar, self.inputs = services, bar, inputs
        self.outcome, self.earlier, self.steps, self.session = outcome, earlier_strip, steps, session
        self.choices_memory = gr.State("")  # what the browser has kept of the choices when the page was opened

    @property
    def components(self) -> list[gr.components.Component]:
        """All that a run updates; `rest` has more to show, for which the picture does not wait."""
        return [self.session, *self.bar.components, *self.outcome.components]

    @property
    def more(self) -> list[gr.components.Component]:
        """All that `rest` updates; what is to be remembered with the zip comes before it."""
        return [self.earlier, self.outcome.download, *self.steps.components]

    # -- what a run shows ------------------------------------------------------------------------------------------

    def show(self, session: Session, line: str = "", photos: bool = False) -> Iterator[dict]:
        """Show a record, and with `photos` its photographs in the boxes.

        The files lie in a folder of their own until Gradio has copied them, which is when more is asked for.
        """
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            names = ("photo", "result", *(("garment_photo",) if photos else ()))
            paths = work.write_photographs(session.result, Path(folder), names)
            boxes = {self.inputs.person: paths["photo"], self.inputs.garment: paths["garment_photo"]} if photos else {}
            yield {
                **boxes,
                self.session: session,
                self.bar.status: line,
                **self.bar.idle(),
                **self.bar.stages(None, session.result.seconds),
                **self.outcome.show(session, paths),
            }

    def rest(self, session: Session) -> Iterator[dict]:
        """What is below the picture: the zip, Figure 3 and every map."""
        if session.result is None:
            yield gr.skip()
            return
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            pictures = record.pictures(session.result)
            paths = work.write(pictures, Path(folder))
            _, networks = self.services.place_of(session.key)
            with ThreadPoolExecutor(1) as beside:
                target = Path(folder) / "try-on.zip"
                archive = beside.submit(work.write_zip, paths, session.result, networks, target)
                memory = {self.earlier: earlier.entry(session.result)}
                maps = self.steps.update(session, pictures, paths)
                download = gr.update(value=archive.result(), visible=True, interactive=True)
            yield {**memory, self.outcome.download: download, **maps}

    def stream(self, call: Callable, session: Session, before: Session | None = None) -> Iterator[dict]:
        """Run `call(tryon, on_stage)` and keep the page up to date.

        session: what the new record joins, with its networks and photographs; before: what the page holds, None for a
        run from the beginning.
        """
        current, on_page, last_line = None, None, 0.0
        seconds = dict(before.result.seconds) if before else {}
        try:
            for report in self.services.stream_on_tryon(call, session.key):
                if not isinstance(report, Progress):
                    result = report
                    break
                current = report.stage
                if time.monotonic() - last_line > (EVERY if current == on_page else LEAST):
                    first = {} if last_line else self.bar.busy()
                    on_page, last_line = current, time.monotonic()
                    yield {**self._progress(report, seconds), **first}
            yield from self.show(replace(session, result=result))
        except Exception as error:  # every error becomes a sentence; what was entered stays
            yield from self._failure(error, session, before is not None, self.bar.stages(current, seconds, "failed"))

    def _progress(self, report: Progress, seconds: dict) -> dict:
        if report.stage < 0:
            return {**self.bar.stages(None, {}), self.bar.status: messages.status("Getting the networks ready …")}
        earlier = {stage: seconds[stage] for stage in STAGES[: report.stage] if stage in seconds}
        line = f"Working on: {STAGES[report.stage]} ({report.stage + 1} of {len(STAGES)})"
        return {
            **self.bar.stages(report.stage, {**earlier, **report.seconds}),
            self.bar.status: messages.status(line),
        }

    def _failure(self, error: Exception, session: Session, again: bool, stages: dict) -> Iterator[dict]:
        partial_record = None if again else getattr(error, "record", None)
        if not figures.paintable_maps(partial_record):
            yield {**stages, **self.bar.fail(error)}
            return
        alert = messages.failure(error)
        help_ = messages.status("Or paint the map yourself: choose “Correct a map” below.")
        for update in self.show(replace(session, result=partial_record), alert + help_):
            yield {**update, **stages}

    # -- handlers --------------------------------------------------------------------------------------------------

    @with_quiet_end
    @alerts("bar.fail")
    def new(self, values: dict) -> Iterator[dict]:
        """A run with what stands in the boxes, on from where their photographs have been read ahead."""
        inputs, until = self.inputs, work.upto(values[self.inputs.stop])
        options = inputs.options(values)
        person, garment = values[inputs.person], values[inputs.garment]
        session = Session(key=inputs.networks(values), photos=(mark(person), mark(garment)))
        request, readings = inputs.reading_request(values), values[inputs.readings]
        while True:
            try:
                reading = readings.of(request, ahead.STAGES_AHEAD[-1], EVERY)
                break
            except TimeoutError:
                yield {**self.bar.stages(None, {}), **self.bar.working("Reading the photographs …")}
        if reading is None:
            yield from self.stream(
                lambda tryon, on_stage: tryon.run(person, garment, options, on_stage=on_stage, until=until), session
            )
        else:
            yield from self.stream(
                lambda tryon, on_stage: ahead.continue_run(tryon, reading, options, on_stage, until),
                session,
                replace(session, result=reading),
            )

    @with_quiet_end
    @alerts("bar.fail")
    def go_on(self, session: Session) -> Iterator[dict]:
        """The stages that "Maps first" has left out."""
        stage = work.next_stage(session.result)
        yield from self.stream(lambda tryon, on_stage: tryon.resume(session.result, stage, on_stage), session, session)

    @with_quiet_end
    def attribute(self, name: str, values: dict) -> Iterator[dict]:
        """Another length of the sleeves, neckline or hem: on from the first stage that reads it.

        Before a first result, or with other photographs in the boxes, it waits for "Try it on". A list also calls what
        it shows its input when the focus leaves it: nothing is repeated then.
        """
        session = values[self.session]
        value, result = values[self.inputs.settings[name]], session.result
        waits = result is None or not self.inputs.same_photos(values, session) or "segmentation" not in result.seconds
        if waits or getattr(result.options, name) == value:
            yield {self.outcome.stale: self.inputs.stale(values, session)}
            return
        stop = work.upto(values[self.inputs.stop])
        yield from self.stream(
            lambda tryon, on_stage: tryon.resume(result, ABOUT[name].read_by, on_stage, stop, **{name: value}),
            session.with_undo(),
            session,
        )

    @with_quiet_end
    @alerts("bar.fail")
    def publish(self, session: Session, paper: bool) -> Iterator[dict]:
        """The result of the paper's system alone beside the full one, or the photograph beside it again."""
        work.require_result(session.result)
        if not paper:
            yield from self._beside(session.result.photo, session.result.result, LABEL, EDGE)
            return
        yield self.bar.working("The paper's system: starting …")
        for report in work.stream_again(self.services, session.result, PUBLISHED, session.key):
            if isinstance(report, Progress):
                yield self.bar.follow("The paper's system", report)
            else:
                yield from self._beside(report.result, session.result.result, PAPER_LABEL, 50)

    def _beside(self, left: np.ndarray, right: np.ndarray, label: str, position: int) -> Iterator[dict]:
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            paths = Path(folder) / "left.png", Path(folder) / "right.png"
            for path, picture in zip(paths, (left, right), strict=True):
                path.write_bytes(record.png(picture))
            slider = gr.update(value=tuple(map(str, paths)), label=label, slider_position=position)
            yield {self.outcome.slider: slider, self.bar.status: "", **self.bar.idle()}

    def note_change(self, values: dict) -> dict:
        """After a change of a box or a setting: reads its photographs ahead, says what the shown result no longer
        belongs to, and takes back what was wrong with the ones before.
        """
        values[self.inputs.readings].begin(self.services, self.inputs.reading_request(values))
        line = {self.bar.status: ""} if messages.is_alert(values[self.bar.status]) else {}
        return {self.outcome.stale: self.inputs.stale(values, values[self.session]), **line}

    @with_quiet_end
    @alerts("bar.fail")
    def correct(self, session: Session, stop: bool, read: Callable[[], tuple[str, Any]]) -> Iterator[dict]:
        """Go on from the map whose name and value `read` gives; where that raises ValueError, nothing changes."""
        if session.result is None:
            raise ValueError(work.NO_RECORD)
        name, value = read()
        yield from self.stream(
            lambda tryon, on_stage: tryon.correct(session.result, name, value, on_stage, work.upto(stop)),
            session.with_undo(),
            session,
        )

    def correct_by_painting(self, session: Session, stop: bool, event: gr.EventData) -> Iterator[dict]:
        """Goes on from the map that was painted on the page."""
        yield from self.correct(session, stop, partial(painting_of, event))

    def correct_by_upload(self, session: Session, stop: bool, name: str, file: str) -> Iterator[dict]:
        """Goes on from a map that was painted elsewhere."""
        field = figures.PAINTABLE[name][1]
        yield from self.correct(session, stop, lambda: (field, record.read_map(session.result, field, file)))

    def correct_by_points(self, session: Session, stop: bool, event: gr.EventData) -> Iterator[dict]:
        """Goes on from the control points that were dragged."""
        yield from self.correct(session, stop, partial(points_of, event))

    @with_quiet_end
    @alerts("bar.fail")
    def back(self, to_first: bool, session: Session) -> Iterator[dict]:
        """Undo the last correction, or all of them; the settings follow."""
        if not session.history:
            raise ValueError(work.NO_RECORD)
        before = session.back(to_first)
        for update in self.show(before):
            yield {**update, **self.inputs.show(before.result.options, None)}

    # -- saved records ---------------------------------------------------------------------------------------------

    @with_quiet_end
    @alerts("bar.fail")
    def open_record(self, file: str) -> Iterator[dict]:
        """A saved try-on with its photos, or settings alone."""
        settings_of = record.read_settings(file)
        key = self._key_on_page(settings_of)
        remark = "" if key else f"Its networks ({settings_of['weights'] or 'unknown'}) are not on this page. "
        if str(file).endswith(".json"):
            line = messages.status(remark + "The settings are back; add the same two photos and run.")
            yield {**self.inputs.show(settings_of["options"], key), self.bar.status: line, **self.bar.idle()}
            return
        yield from self._show_saved(file, remark + "The saved try-on is back, with its photos, maps and settings.")

    def _show_saved(self, file: str | Path, line: str) -> Iterator[dict]:
        """Show a saved try-on with its photos and settings. line: said of it, plain text."""
        settings_of = record.read_settings(str(file))
        key = self._key_on_page(settings_of)
        settings = self.inputs.show(settings_of["options"], key)
        for update in self.show(Session(record.load(str(file)), (), key), messages.status(line), photos=True):
            yield {**settings, **update}

    def _key_on_page(self, settings_of: dict) -> str | None:
        """The networks of a saved try-on, None where this page has them not."""
        model = str(settings_of.get("model") or "")
        return model if model in {key for _, key in self.services.tryons()} else None

    @with_quiet_end
    def restore(self, address: str, choices: str, session: Session) -> Iterator[dict]:
        """After a reload: this visitor's last result, while its zip is kept. Otherwise the page stays as it opens.

        address: what the browser remembers of the zip; choices: what it remembers of the choices, for
        `restore_choices`.
        """
        yield {self.choices_memory: choices}
        path = zip_in_cache(address)
        if session.result is not None or path is None:
            yield {self.session: session}
            return
        try:
            yield from self._show_saved(path, "Your last result is back.")
        except Exception as error:
            messages.sentence(error)  # logged; the visitor has asked for nothing
            yield {self.session: session}

    @with_quiet_end
    @alerts("bar.fail")
    def recall(self, event: gr.EventData) -> Iterator[dict]:
        """An earlier result that was clicked, while its zip is kept."""
        path = zip_in_cache(event.zip)
        if path is None:
            line = "Only the small picture is left of this one: its photos and maps have been cleared away."
            yield {self.bar.status: messages.status(line)}
            return
        yield from self._show_saved(path, "Your earlier try-on is back, with its photos, maps and settings.")

    def restore_choices(self, choices: str, session: Session) -> dict:
        """After a reload: what was chosen and not tried on yet. What the result was made of stands there already."""
        try:
            memory = json.loads(choices or "{}")
            waits = bool(memory.get("stale")) or session.result is None
            return (self.inputs.restore(memory.get("values")) if waits else {}) or gr.skip()
        except (ValueError, AttributeError, RecursionError):  # not what this page has kept
            return gr.skip()

    def stamp(self, values: dict) -> dict:
        """Ties a record to the pictures in the boxes, once Gradio has given their copies an address."""
        session = values[self.session]
        photos = mark(values[self.inputs.person]), mark(values[self.inputs.garment])
        return {self.session: session if session.result is None else replace(session, photos=photos)}


def zip_in_cache(address: Any) -> Path | None:
    """The zip of a try-on in the page's own cache, None where there is none: nothing else is opened for a browser.

    address: what a browser remembers of it.
    """
    try:
        path, cache = Path(address).resolve(), uploads().resolve()
        return path if path.name == "try-on.zip" and cache in path.parents and path.is_file() else None
    except (TypeError, ValueError, OSError):  # no path at all
        return None


def painting_of(event: gr.EventData) -> tuple[str, Any]:
    """Name and value of the painted map in an event. Raises ValueError."""
    value = figures.map_from_canvas(event.name, event.labels, event.width, event.height)
    return figures.PAINTABLE[event.name][1], value


def points_of(event: gr.EventData) -> tuple[str, Any]:
    """Name and value of the control points in an event. Raises ValueError."""
    try:
        return "control_points", np.array(event.points, np.float32)
    except (ValueError, TypeError):
        raise ValueError(CORRUPT_POINTS) from None
