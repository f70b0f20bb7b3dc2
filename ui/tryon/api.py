"""`/try_on` and `/try_on_stage`: what the page's API and MCP clients call. They take and give what the page shows."""

import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from ui import endpoints, messages
from ui.kit import queue
from ui.services import Services, last
from ui.tryon import settings as form
from ui.tryon import work
from ui.tryon.inputs import Inputs, photograph
from vton import record
from vton.options import ABOUT
from vton.pipeline import STAGES


class Api:
    """The two public endpoints. Their parameters are those of the page, in the order of `Options`."""

    def __init__(self, services: Services, inputs: Inputs):
        self.services, self.inputs = services, inputs
        # Not those of the page: what these hold would count as a default.
        self.person = photograph(visible=False, alt_text="Photo of the person")
        self.garment = photograph(visible=False, alt_text="Photo of the garment")
        self.files = gr.File(visible=False, file_count="multiple", label="Every map as PNG, and the zip")
        self.record = gr.JSON(visible=False, label="Settings, seconds per stage, notes and quality")
        self.record_file = gr.File(visible=False, label="The zip of an earlier try-on, to go on from")
        self.map = gr.Textbox("", visible=False, label="Name of the corrected map")
        self.map_file = gr.File(visible=False, label="The corrected map")
        self.until = gr.Textbox(STAGES[-1], visible=False, label="Last stage to run")
        self.buttons = gr.Button(visible=False), gr.Button(visible=False)

    @form.spread_settings
    def try_on(self, person, garment, settings, model, device):
        """Put a garment on a person.

        Args:
            person: photo of one person from the front
            garment: photo of one upper garment
            settings:
            model: key of the networks
            device: cpu, or cuda or mps where the page has them

        Returns:
            every map as a PNG file named by its stage and one zip with arrays, and the settings with time per stage
        """
        yield from self._answer(lambda key: self._new(person, garment, settings, key, STAGES[-1]), model, device)

    @form.spread_settings
    def try_on_stage(
        self,
        person=None,
        garment=None,
        saved=None,
        name=None,
        edited=None,
        until=None,
        settings=None,
        model=None,
        device=None,
    ):
        """Run a try-on up to a stage, or go on from a saved one, with a corrected map if there is one.

        Args:
            person: photo of one person; leave out when `saved` is given
            garment: photo of one upper garment; leave out when `saved` is given
            saved: the zip that /try_on or /try_on_stage gave before
            name: the corrected map: parse, parse_agnostic, segmentation, painted_mask, control_points or misalignment
            edited: its file, a PNG of labels or a mask, or JSON for control points
            until: photo, pose, parse, garment, agnostic, segmentation, warp, misalignment, synthesis, composite
            settings: ; this and what follows is for a new run
            model: key of the networks
            device: cpu, or cuda or mps where the page has them

        Returns:
            every map so far as a PNG file and one zip with arrays, and the settings with time per stage
        """

        def run(key: str | None) -> Iterator[Any]:
            last = endpoints.argument("until", until or STAGES[-1], str)
            if saved:
                return self._further(saved, endpoints.argument("name", name or "", str), edited, last, key)
            return self._new(person, garment, settings, key, last)

        yield from self._answer(run, model, device)

    @property
    def _settings(self) -> list[gr.components.Component]:
        return [*(self.inputs.settings[name] for name in ABOUT), self.inputs.model, self.inputs.device]

    def _new(self, person, garment, settings: dict, key: str | None, until: str) -> Iterator[Any]:
        options = form.read_options(person, garment, settings)
        return self.services.stream_tryon(person, garment, key, until=until, options=options)

    def _further(self, file: str, name: str, map_file: str | None, until: str, key: str | None) -> Iterator[Any]:
        before = record.load(file)
        if not name:
            stage = work.next_stage(before)
            return self.services.stream_on_tryon(lambda t, on_stage: t.resume(before, stage, on_stage, until), key)
        if not map_file:
            raise ValueError("Add the file of the corrected map.")
        value = record.read_map(before, name, map_file)
        return self.services.stream_on_tryon(lambda t, on_stage: t.correct(before, name, value, on_stage, until), key)

    def _answer(self, run, model: str | None, device: str | None) -> Iterator[tuple]:
        """Files and settings of the record that `run(key)` ends with."""
        try:
            arguments = {"model": model, "device": device}
            model, device = (endpoints.argument(name, value or "", str) or None for name, value in arguments.items())
            result = last(run(self.services.key_on(model, device)))
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                paths = work.write_pictures(result, Path(folder))
                archive = work.write_zip(paths, result, model, Path(folder) / "try-on.zip")
                yield [*(paths[name] for name in work.available_maps(result)), archive], record.settings(result)
        except Exception as error:
            raise gr.Error(escape(messages.sentence(error)), print_exception=False) from error

    def wire(self) -> None:
        """Connects the endpoint."""
        outputs = [self.files, self.record]
        whole, by_stage = self.buttons
        new = [self.person, self.garment]
        further = [*new, self.record_file, self.map, self.map_file, self.until]
        whole.click(self.try_on, [*new, *self._settings], outputs, api_name="try_on", **queue("try-on"))
        by_stage.click(
            self.try_on_stage, [*further, *self._settings], outputs, api_name="try_on_stage", **queue("try-on")
        )
