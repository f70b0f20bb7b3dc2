"""The result of a try-on on the page: the picture beside the two photographs, what it rests on, and its files."""

import secrets

import gradio as gr

from ui import messages, theme
from ui.services import Services
from ui.tryon import example, figures, work
from ui.tryon.inputs import BOX_HEIGHT
from ui.tryon.session import Session

EDGE = 12  # per cent of the width: the result is what one sees, and the handle can be found
LABEL = "Result"
PAPER_LABEL = "As published"


class Outcome:
    """The result in large, and what is said of it."""

    def __init__(self, services: Services):
        self.services = services
        pictures = example.load_example().pictures
        self.slider = theme.component(
            gr.ImageSlider,
            "before-after",
            (str(pictures["photo"]), str(pictures["result"])),
            label=LABEL,
            height=BOX_HEIGHT,
            max_height=BOX_HEIGHT - 2,
            slider_position=EDGE,
        )
        theme.script_component("tryon/slider_keys.js", "slider-keys", "slider-keys")
        self.stale = gr.HTML(elem_id="tryon-stale")
        about = '<div class="badge">Example</div>' + messages.status(
            "A finished try-on that came with the page. Choose any person and any garment, then press “Try it on”."
        )
        self.summary = gr.HTML(about, elem_id="tryon-summary")
        self.go_on = theme.component(gr.Button, "tryon-go-on", visible=False)
        self.as_paper = theme.component(gr.Checkbox, "as-published", False, visible=False)
        with gr.Row(elem_id="tryon-files"):
            self.picture = theme.component(gr.DownloadButton, "download-result", visible=False)
            self.download = theme.component(gr.DownloadButton, "download-zip", visible=False)
            self.undo = theme.component(gr.Button, "tryon-undo", visible=False)
            self.reset = theme.component(gr.Button, "tryon-reset", visible=False)
        self.notes = gr.HTML(elem_id="tryon-notes")
        self.quality = gr.HTML(elem_id="quality")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `show` updates."""
        return [
            *(self.slider, self.summary, self.go_on, self.as_paper, self.notes, self.picture, self.download),
            *(self.undo, self.reset, self.quality, self.stale),
        ]

    def show(self, session: Session, paths: dict[str, str]) -> dict:
        """Updates that show a record. paths: photograph and result, by name. The zip comes later."""
        result, complete = session.result, session.result.result is not None
        _, networks = self.services.place_of(session.key)
        again = figures.rerun(result)
        # A number of its own, so that the browser and tests can tell one shown record from the next.
        number = f'<span data-record="{secrets.token_hex(4)}"></span>'
        device = self.services.tryon(session.key).device.type
        facts = figures.quality(result, device, work.licence(networks)) if result.keypoints is not None else ""
        verdict = figures.verdict(result) if complete else ""
        before = paths["photo"], paths["result"] if complete else paths["photo"]
        return {
            self.slider: gr.update(value=before if complete else None, label=LABEL, slider_position=EDGE),
            self.stale: "",
            self.summary: number
            + verdict
            + messages.status(work.summary(result))
            + (messages.status(again) if again else ""),
            self.go_on: gr.update(visible=not complete and "misalignment" in result.seconds),
            self.as_paper: gr.update(value=False, visible=complete),
            self.notes: messages.notes(list(result.notes)),
            self.picture: gr.update(value=paths.get("result"), visible=complete),
            self.download: gr.update(visible=True, interactive=False),
            self.undo: gr.update(visible=bool(session.history)),
            self.reset: gr.update(visible=len(session.history) > 1),
            self.quality: f'<details class="facts"><summary>What it rests on</summary>{facts}</details>'
            if facts
            else "",
        }
