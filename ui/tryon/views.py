"""The views that open a single map: look closer, correct a map, move the warp."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import gradio as gr

from ui import messages, theme
from ui.services import Services
from ui.tryon import figures, work
from ui.tryon.kept import Kept
from ui.tryon.runner import points_of
from vton.maps import MAPS
from vton.stages import NO_POINTS


def not_yet(kept: Kept, view: str = "") -> str:
    """Why a view has nothing to show."""
    if view == "warp" and kept.result is not None and kept.result.flow is not None:
        return NO_POINTS
    if kept.example:
        return "The example is stored as pictures alone. Press “Try it on” to compute it here; then this view opens."
    return "This map has not been made yet." if kept.result is not None else work.GONE


class MapViews:
    """Three views of one map each. Their values are made when a view is opened, and again after every run."""

    def __init__(self, services: Services):
        self.services = services
        self.view = gr.State("steps")  # the view that is open
        self.note = gr.HTML(elem_id="view-note")

    def build_look(self) -> None:
        """The view that shows one map large."""
        gr.Markdown(
            "Any map over the photo. Point at a place or at a name, and that class lights up.", elem_classes="hint"
        )
        self.look = gr.Dropdown(
            [(shown.title, name) for name, shown in MAPS.items() if name != "result"],
            value="segmentation",
            label="Map",
            elem_id="look-map",
        )
        self.looked = theme.drawn("tryon/label_canvas.js", "label-canvas", "look-view", "card")

    def build_correct(self) -> None:
        """The view in which label maps are painted."""
        gr.Markdown(
            "Choose a class, paint, and run on from there: only what comes after the map runs again.",
            elem_classes="hint",
        )
        self.paint = gr.Radio(
            [(title, name) for name, (title, _, _) in figures.PAINTED.items()],
            value="segmentation",
            label="Map to correct",
            elem_id="paint-map",
        )
        self.painter = theme.drawn("tryon/label_canvas.js", "label-canvas", "painter", "card")
        with gr.Accordion("Correct it in another program", open=False, elem_id="tryon-elsewhere"):
            gr.Markdown(
                "The file is a PNG whose pixels are the labels themselves. Keep its size, save it as "
                "PNG and without smoothing.",
                elem_classes="hint",
            )
            with gr.Row():
                self.paint_out = gr.DownloadButton("Download the map", elem_id="paint-out", size="sm", min_width=140)
                self.paint_in = gr.UploadButton(
                    "Upload the corrected map", file_types=[".png"], elem_id="paint-in", size="sm", min_width=140
                )

    def build_warp(self) -> None:
        """The view in which the spline's control points are dragged."""
        gr.Markdown(
            "The control points of the thin-plate spline. Drag them; what the garment leaves open stays orange.",
            elem_classes="hint",
        )
        self.points = theme.drawn("tryon/control_points.js", "warp-editor", "control-points", "card")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `refresh` updates."""
        return [self.view, self.looked, self.painter, self.paint_out, self.points, self.note]

    def refresh(self, kept: Kept, view: str, look: str, paint: str) -> Iterator[dict]:
        """Values of the open view alone: the others are made when they are opened."""
        result = kept.result
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            try:
                if view == "look":
                    ready = result is not None and look in result.pictures()
                    values = {self.looked: figures.looked_at(result, look) if ready else None}
                elif view == "correct":
                    ready = paint in figures.can_be_painted(result)
                    values = self._to_paint(kept, paint if ready else None, Path(folder))
                elif view == "warp":
                    ready = result is not None and result.misalignment is not None and result.flow is None
                    values = {self.points: figures.control_points(result) if ready else None}
                else:
                    ready, values = True, {}
                yield {**values, self.note: "" if ready else messages.status(not_yet(kept, view))}
            except Exception as error:
                yield {self.note: messages.alert(messages.sentence(error))}

    def _to_paint(self, kept: Kept, name: str | None, folder: Path) -> dict:
        if name is None:
            return {self.painter: None, self.paint_out: gr.update(interactive=False)}
        path = folder / f"{name}.png"
        path.write_bytes(figures.paint_file(kept.result, name))
        return {
            self.painter: figures.painting(kept.result, name),
            self.paint_out: gr.update(value=str(path), interactive=True),
        }

    def open(self, view: str, kept: Kept, look: str, paint: str) -> Iterator[dict]:
        """Opens a view and fills it."""
        for values in self.refresh(kept, view, look, paint):
            yield {self.view: view, **values}

    def moved(self, kept: Kept, event: gr.EventData) -> dict:
        """What the warp looks like with the points of now; nothing is kept."""
        try:
            if kept.result is None:
                raise ValueError(work.GONE)
            name, points = points_of(event)
            with self.services.tryon_in_use:
                moved = self.services.tryon(kept.key).correct(kept.result, name, points, until="misalignment")
            value = figures.control_points(moved, kept.result.control_points, fresh=False)
            return {self.points: value, self.note: ""}
        except Exception as error:
            return {self.note: messages.alert(messages.sentence(error))}
