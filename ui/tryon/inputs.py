"""The two photographs and the settings of a try-on, and what is said about them before it runs."""

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import Block

from ui import messages, theme
from ui.gradio_private import Photograph, uploads
from ui.kit import QUICKLY, QUIETLY, alerts
from ui.services import Services
from ui.tryon import example, work
from ui.tryon import settings as form
from ui.tryon.ahead import ReadingRequest, Readings
from ui.tryon.figures import READABLE
from ui.tryon.session import SECONDS, Session, mark
from vton.options import ABOUT, DEFAULTS, SIZES, Options, read_size
from vton.result import TryOnResult

BOX_HEIGHT = 392
ATTRIBUTES = ("sleeves", "neckline", "hem")  # what a visitor knows of a garment better than any network
CHECKS = {**QUIETLY, "concurrency_limit": 8}  # at once: most of what they do is to wait for a reading


def photograph(**options: Any) -> Photograph:
    """A box for a photograph, whose file keeps its channels and its turn."""
    return Photograph(type="filepath", image_mode=None, format="png", **options)


def strip(value: dict[str, Any], label: str, elem_id: str) -> gr.HTML:
    """Thumbnails to choose from. value: see `example.thumbnails`; label: said of them all."""
    return gr.HTML(
        value,
        html_template=f'<div class="strip-host" role="group" aria-label="{label}"></div>',
        js_on_load=theme.script("tryon/strip.js"),
        elem_id=elem_id,
    )


def _holds(component: Block, value: Any) -> bool:
    """Whether a component of a try-on may hold a value that a browser names."""
    if isinstance(component, Photograph):
        path = Path(value).resolve() if isinstance(value, str) and "\0" not in value else uploads()
        return uploads().resolve() in path.parents and path.is_file()
    if isinstance(component, gr.Dropdown):
        return value in [choice for _, choice in component.choices]
    return type(value) is bool if isinstance(component, gr.Checkbox) else type(value) is int


WITHOUT_FLOW = "The chosen networks have no flow warper; only the spline can be used with them."


class Inputs:
    """Everything that a run reads. `settings` holds the components by the name of their field in `Options`."""

    def __init__(self, services: Services):
        self.services = services
        self.example = example.load_example()
        self.settings: dict[str, form.Control] = {}
        self.readings = gr.State(Readings(), time_to_live=SECONDS)

    def build_person(self) -> None:
        """The person's photograph, and others to choose from."""
        self.person = self._box("person")
        self.person_check = gr.HTML(elem_id="person-check", elem_classes="check")
        self.people = strip(example.thumbnails("people"), "Example people", "example-people")
        with gr.Row(elem_classes="small-settings"):
            self._options(size=150)

    def build_garment(self) -> None:
        """The garment's photograph, others to choose from, and what is said of the garment."""
        self.garment = self._box("garment")
        self.garment_check = gr.HTML(elem_id="garment-check", elem_classes="check")
        self.garments = strip(example.thumbnails("garments"), "Example garments", "example-garments")
        with gr.Row(elem_id="garment-attributes", elem_classes="small-settings"):
            for name in ATTRIBUTES:
                self.settings[name] = form.component(name, label=name.capitalize(), min_width=90)

    def _box(self, name: str) -> Photograph:
        """A box that holds the example's photograph of that name at first."""
        return theme.component(photograph, name, value=str(getattr(self.example, name)), height=BOX_HEIGHT)

    def build_settings(self) -> None:
        """What most visitors never need."""
        with gr.Accordion("More settings", open=False, elem_id="tryon-more"):
            with gr.Row():
                models = self.services.tryons()
                self.model = theme.component(
                    gr.Dropdown, "tryon-model", models, value=models[0][1], allow_custom_value=self.services.local
                )
                devices = self.services.devices()
                self.device = theme.component(gr.Dropdown, "tryon-device", devices, value=devices[0][1])
            others = [name for name in ABOUT if name not in self.settings]
            switches = [name for name in others if isinstance(DEFAULTS[name], bool)]
            with gr.Row():
                self._options(**{name: 130 for name in others if name not in switches})
            if not self.services.has_flow(models[0][1]):
                self.settings["warp"].info = WITHOUT_FLOW
            with gr.Row():
                self._options(**dict.fromkeys(switches, 190))
            with gr.Row():
                self.stop = theme.component(gr.Checkbox, "maps-first", False)
                self.record_file = theme.component(gr.File, "saved")

    def _options(self, **widths: int) -> None:
        """Components of options, by name, with their least widths in pixels."""
        for name, width in widths.items():
            self.settings[name] = form.component(name, min_width=width)

    @property
    def components(self) -> set[Block]:
        """All that a run reads; an event that is given them as a set gets their values by component."""
        return {self.person, self.garment, *self.settings.values(), self.model, self.device}

    @property
    def restorable(self) -> list[Block]:
        """What a reload brings back, in the order in which the browser keeps it."""
        return [self.person, self.garment, *self.settings.values()]

    def restore(self, values: Any) -> dict:
        """Updates that bring back what the browser has kept; what is no longer there, or never was, stays as it is.

        values: values of `restorable`, as a browser sends them; only photographs in the page's own cache are opened.
        """
        if not isinstance(values, list) or len(values) != len(self.restorable):
            return {}
        return {component: value for component, value in zip(self.restorable, values) if _holds(component, value)}

    def options(self, values: dict) -> Options:
        """The options that are chosen. Raises ValueError with the sentence for what is missing or out of range."""
        settings = {name: values[component] for name, component in self.settings.items()}
        return form.read_options(values[self.person], values[self.garment], settings)

    def networks(self, values: dict) -> str | None:
        """The key of the networks and the device that are chosen."""
        return self.services.key_on(values[self.model], values[self.device])

    def show(self, options: Options, model: str | None) -> dict:
        """Updates that put the options of a record into the settings; model: a key that the page offers, or None."""
        updates = {
            component: form.component_value(name, getattr(options, name)) for name, component in self.settings.items()
        }
        return {**updates, self.model: model} if model else updates

    def reading_request(self, values: dict) -> ReadingRequest | None:
        """What is to be read ahead of a run; None where a box is empty or the size is none of the list."""
        person, garment, size = values[self.person], values[self.garment], values[self.settings["size"]]
        if not person or not garment or size not in [form.component_value("size", one) for one in SIZES]:
            return None
        return ReadingRequest(str(person), str(garment), read_size(size), self.networks(values))

    def same_photos(self, values: dict, session: Session) -> bool:
        """Whether the boxes hold the pictures that what is shown was made of."""
        paths = values[self.person], values[self.garment]
        if session.example:
            of = self.example.person, self.example.garment
            return all(path and Path(path).name == source.name for path, source in zip(paths, of))
        return tuple(mark(path) for path in paths) == session.photos

    def stale(self, values: dict, session: Session) -> str:
        """What the boxes and the settings hold that the shown result was not made of: HTML, "" if nothing."""
        if session.result is None and not session.example:
            return ""
        if not self.same_photos(values, session):
            return messages.status("This result is of other photographs. Press “Try it on” for the ones in the boxes.")
        settings = {name: values[component] for name, component in self.settings.items()}
        options = session.result.options if session.result is not None else Options()
        other = [
            ABOUT[n].label for n, value in settings.items() if value != form.component_value(n, getattr(options, n))
        ]
        if session.result is not None and self.networks(values) != session.key:
            other.append("Networks")
        line = f"Made with other settings ({', '.join(other)}). Press “Try it on” to use the present ones."
        return messages.status(line) if other else ""

    # -- events ------------------------------------------------------------------------------------------------------

    def _read(self, values: dict, stage: str) -> TryOnResult | None:
        """The record of what stands in the boxes once a stage is done; None where it is not being read or cannot be."""
        return values[self.readings].of(self.reading_request(values), stage)

    @alerts()
    def check_person(self, values: dict) -> str:
        """One line below the person's picture."""
        path = values[self.person]
        if not path:
            return ""
        record = self._read(values, "pose")
        summary, notes = (
            (work.describe_person(record.keypoints), list(record.notes)) if record else work.look_at_person(path)
        )
        return messages.notes(notes) if notes else messages.status(f"✓ {summary}")

    def check_garment(self, values: dict) -> dict:
        """One line below the garment's picture, and beside each attribute what was read of it and how surely."""
        line, path = "", values[self.garment]
        readings: dict[str, str] = {}
        try:
            if path:
                record = self._read(values, "garment")
                summary, readings = work.describe_garment(record.garment_cut) if record else work.look_at_garment(path)
                line = messages.status(f"✓ {summary}")
        except Exception as error:
            line = messages.failure(error)
        updates = {self.settings[name]: gr.update(info=readings.get(name, "")) for name in READABLE}
        return {self.garment_check: line, **updates}

    def check_warp(self, model: str | None) -> Any:
        """Says below the choice of the warp whether the chosen networks have a flow."""
        return gr.update(info=ABOUT["warp"].info if self.services.has_flow(model) else WITHOUT_FLOW)

    def pick_person(self, event: gr.EventData) -> dict:
        """The example that was clicked, as the person."""
        return {self.person: str(example.photograph("people", str(event.name)).path)}

    def pick_garment(self, event: gr.EventData) -> dict:
        """The example that was clicked, as the garment."""
        return {self.garment: str(example.photograph("garments", str(event.name)).path), **self.reset_attributes()}

    def pick_pair(self, event: gr.EventData) -> dict:
        """A person and a garment, of `example.pairs`."""
        person, _, garment = str(event.name).partition("+")
        paths = example.photograph("people", person).path, example.photograph("garments", garment).path
        return {self.person: str(paths[0]), self.garment: str(paths[1]), **self.reset_attributes()}

    def reset_attributes(self) -> dict:
        """What was chosen for the last garment does not hold for another one."""
        return {self.settings[name]: DEFAULTS[name] for name in ATTRIBUTES}

    def model_choices(self) -> Any:
        """Runs make checkpoints while the page is open."""
        return gr.update(choices=self.services.tryons())

    def wire(self) -> None:
        """Connects choosing networks, photographs and examples."""
        self.model.change(self.check_warp, self.model, self.settings["warp"], api_name="check_warp", **QUIETLY)
        self.model.focus(self.model_choices, None, self.model, api_name="tryon_models", **QUICKLY)
        size = self.settings["size"]
        reading_inputs: set[Block] = {self.person, self.garment, size, self.model, self.device, self.readings}
        lines = [self.garment_check, *(self.settings[n] for n in READABLE)]
        for component, check, places, name in (
            (self.person, self.check_person, [self.person_check], "check_person"),
            (self.garment, self.check_garment, lines, "check_garment"),
        ):
            component.change(check, reading_inputs, places, api_name=name, trigger_mode="always_last", **CHECKS)
        for component, kind in ((self.person, "people"), (self.garment, "garments")):
            js = f"handlers.mark('{kind}')"
            component.change(None, component, None, js=js, api_name=f"mark_{kind}", api_visibility="private")
        attributes = [self.settings[name] for name in ATTRIBUTES]
        self.garment.input(self.reset_attributes, None, attributes, api_name="as_found", **QUICKLY)
        self.people.pick(self.pick_person, None, self.person, api_name="pick_person", **QUICKLY)
        self.garments.pick(self.pick_garment, None, [self.garment, *attributes], api_name="pick_garment", **QUICKLY)
