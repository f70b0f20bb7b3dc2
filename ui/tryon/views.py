"""The views that open a single map: look closer, correct a map, move the warp."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import numpy as np

from ui import messages, theme
from ui.kit import QUIETLY, alerts
from ui.services import Services
from ui.tryon import figures, work
from ui.tryon.runner import painting_of, points_of
from ui.tryon.session import AT_DEVICE, Session
from ui.tryon.view import View
from vton.maps import MAPS
from vton.pipeline import STAGES
from vton.result import TryOnResult

CANVAS = ("tryon/editing.js", "tryon/label_canvas.js")
# An editor asks again while it is being answered: what it asked for last counts.
LATEST = {"trigger_mode": "always_last", **AT_DEVICE}


def not_yet(session: Session) -> str:
    """Why a view has nothing to show."""
    if session.example:
        return "The example is stored as pictures alone. Press “Try it on” to compute it here; then this view opens."
    return "This map has not been made yet." if session.result is not None else work.NO_RECORD


def try_correction(
    services: Services, session: Session, name: str, value: np.ndarray, until: str = STAGES[-1]
) -> TryOnResult:
    """The visitor's record with another map or other control points, see `TryOn.correct`; nothing is kept.

    Raises ValueError where the record is gone.
    """
    result = session.result
    if result is None:
        raise ValueError(work.NO_RECORD)
    return services.on_tryon(lambda tryon, on_stage: tryon.correct(result, name, value, on_stage, until), session.key)


class LookView(View):
    """One map large, over the photograph."""

    name = "look"
    title = "Look closer"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("tryon/look"), elem_classes="hint")
        maps = [(entry.title, name) for name, entry in MAPS.items() if name != "result"]
        self.map = theme.component(gr.Dropdown, "look-map", maps)
        self.canvas = theme.script_component(CANVAS, "label-canvas", "look-view", "card", beside=None)

    def wire(self) -> None:
        """Connects the components with the handler below."""
        inputs, places = [self.tab.session, self.map], [self.canvas, self.tab.note]
        self.draw_with(inputs, places)
        self.map.change(self.show, inputs, places, api_name="choose_look", trigger_mode="always_last", **QUIETLY)

    @alerts("tab.note")
    def show(self, session: Session, name: str) -> dict:
        """The chosen map."""
        if session.result is None or name not in session.result.pictures():
            return {self.canvas: None, self.tab.note: messages.status(not_yet(session))}
        return {self.canvas: figures.map_overlay(session.result, name), self.tab.note: ""}


class CorrectView(View):
    """Label maps to paint in, and to go on from."""

    name = "correct"
    title = "Correct a map"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("tryon/correct"), elem_classes="hint")
        maps = [(title, name) for name, (title, _, _) in figures.PAINTABLE.items()]
        self.map = theme.component(gr.Radio, "paint-map", maps)
        self.canvas = theme.script_component(CANVAS, "label-canvas", "painter", "card", beside=None)
        with gr.Accordion("Correct it in another program", open=False, elem_id="tryon-elsewhere"):
            gr.Markdown(theme.text("tryon/correct.elsewhere"), elem_classes="hint")
            with gr.Row():
                self.download = theme.component(gr.DownloadButton, "paint-out")
                self.upload = theme.component(gr.UploadButton, "paint-in")

    def wire(self) -> None:
        """Connects the components with the handler below, and the two ways to correct a map with a run."""
        tab = self.tab
        inputs, places = [tab.session, self.map], [self.canvas, self.download, tab.note]
        self.draw_with(inputs, places)
        self.map.change(self.show, inputs, places, api_name="choose_paint", trigger_mode="always_last", **QUIETLY)
        self.canvas.preview(self.preview, [tab.session], [self.canvas, tab.note], api_name="try_map", **LATEST)
        common = [tab.session, tab.inputs.stop]
        tab.correct_on(self.canvas.apply, tab.runner.correct_by_painting, common, "correct")
        tab.correct_on(self.upload.upload, tab.runner.correct_by_upload, [*common, self.map, self.upload], "upload_map")

    @alerts("tab.note")
    def show(self, session: Session, name: str) -> Iterator[dict]:
        """The chosen map under a brush, and its file, which lies in a folder of its own until Gradio has copied it."""
        if name not in figures.paintable_maps(session.result):
            note = messages.status(not_yet(session))
            yield {self.canvas: None, self.download: gr.update(interactive=False), self.tab.note: note}
            return
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            path = Path(folder) / f"{name}.png"
            path.write_bytes(figures.paint_file(session.result, name))
            download = gr.update(value=str(path), interactive=True)
            parts = figures.painting(session.result, name), figures.beside(session.result)
            canvas = gr.update(value=parts[0], beside=parts[1])
            yield {self.canvas: canvas, self.download: download, self.tab.note: ""}

    @alerts("tab.note")
    def preview(self, session: Session, event: gr.EventData) -> Iterator[dict]:
        """The result with the map of now; nothing is kept."""
        trial = try_correction(self.services, session, *painting_of(event))
        yield {
            self.canvas: gr.update(beside=figures.beside(trial, "With the map as you painted it")),
            self.tab.note: "",
        }


class WarpView(View):
    """The spline's control points to drag."""

    name = "warp"
    title = "Move the warp"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("tryon/warp"), elem_classes="hint")
        scripts = ("tryon/editing.js", "tryon/spline.js", "tryon/control_points.js")
        self.points = theme.script_component(scripts, "warp-editor", "control-points", "card", beside=None)

    def wire(self) -> None:
        """Connects the points with the handlers below and with a run from them."""
        tab = self.tab
        self.draw_with([tab.session], [self.points, tab.note])
        tab.correct_on(self.points.apply, tab.runner.correct_by_points, [tab.session, tab.inputs.stop], "move_warp")
        self.points.move(self.move, [tab.session], [self.points, tab.note], api_name="try_warp", **LATEST)

    @alerts("tab.note")
    def show(self, session: Session) -> dict:
        """The points of the record."""
        result = session.result
        if result is None or result.misalignment is None:
            return {self.points: None, self.tab.note: messages.status(not_yet(session))}
        if result.flow is not None:
            record = result
            result = self.services.on_tryon(lambda tryon, _: tryon.by_spline(record), session.key)
        points = gr.update(value=figures.control_points(result), beside=figures.beside(result))
        return {self.points: points, self.tab.note: ""}

    @alerts("tab.note")
    def move(self, session: Session, event: gr.EventData) -> Iterator[dict]:
        """The warp with the points of now, and then what is painted over it; nothing is kept."""
        trial = try_correction(self.services, session, *points_of(event), until="misalignment")
        yield {self.points: gr.update(value=figures.points_overlay(trial)), self.tab.note: ""}
        if session.result is not None and session.result.result is not None:
            result = self.services.on_tryon(
                lambda tryon, on_stage: tryon.resume(trial, "synthesis", on_stage), session.key
            )
            yield {self.points: gr.update(beside=figures.beside(result, "With the points as you dragged them"))}
