"""Figure 3 of the paper with the maps of the record in it, and below every map with its facts, in the same groups."""

from html import escape
from typing import Any, NamedTuple

import gradio as gr
import numpy as np
from gradio.components import Component
from PIL import Image

from ui import theme
from ui.tryon import example, figures, work
from ui.tryon.session import Session
from ui.tryon.view import View
from vton.maps import MAPS

THUMBNAIL = (132, 176)


class Group(NamedTuple):
    """A part of Figure 3: its heading, one sentence, and the maps in it."""

    title: str
    about: str
    maps: list[str]


# Places are x, y of the middle in units of a thumbnail's width and height; networks are words in boxes: title, symbol,
# x, y. An arrow leads from one of them to another.
FIGURE = theme.data("tryon/figure3.json")
GROUPS = tuple(Group(**group) for group in FIGURE["groups"])
PHOTOS = {"photo": ("Photograph", ""), "garment_photo": ("Garment's photograph", "")}


def figure(pictures: dict[str, Any]) -> dict[str, Any]:
    """Value for `static/tryon/figure3.js`. pictures: by name, arrays (H, W[, 3 or 4]) uint8, or pictures of Pillow."""
    nodes = []
    for name, (x, y) in FIGURE["places"].items():
        title, symbol = PHOTOS.get(name) or (MAPS[name].title, MAPS[name].symbol)
        about = "" if name in PHOTOS else MAPS[name].about
        node = {"name": name, "title": title, "symbol": figures.symbol(symbol), "about": about, "x": x, "y": y}
        nodes.append({**node, "url": example.data_url(on_white(pictures[name]), THUMBNAIL) if name in pictures else ""})
    boxes = [
        {"name": name, "title": title, "symbol": figures.symbol(symbol), "x": x, "y": y}
        for name, (title, symbol, x, y) in FIGURE["networks"].items()
    ]
    return {"nodes": nodes, "networks": boxes, "arrows": FIGURE["arrows"]}


def on_white(picture: Any) -> Image.Image:
    """A picture of Pillow, on white where it is transparent. picture: one, or an array (H, W[, 3 or 4]) uint8."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.ascontiguousarray(picture))
    if image.mode != "RGBA":
        return image
    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image)
    return ground


def example_figure() -> dict[str, Any]:
    """The figure of the stored try-on."""
    tryon = example.load_example()
    pictures = {name: Image.open(path) for name, path in tryon.pictures.items()}
    return figure({**pictures, "garment_photo": Image.open(tryon.garment)})


class StepsView(View):
    """Figure 3, and below it a card for every map."""

    name = "steps"
    title = "Every step"

    def build(self) -> None:
        """Makes the components."""
        self.figure = theme.script_component("tryon/figure3.js", "figure3", "figure3", "card")
        self.figure.value = example_figure()
        self.example = example.load_example()
        self.maps: dict[str, gr.Image] = {}
        self.captions: dict[str, gr.HTML] = {}
        self.legends: dict[str, gr.HTML] = {}
        number = 0
        for group in GROUPS:
            gr.HTML(f'<h3 class="group-title">{escape(group.title)}</h3><p class="map-about">{escape(group.about)}</p>')
            with gr.Row(elem_classes="maps"):
                for name in group.maps:
                    number += 1
                    with gr.Column(min_width=150, elem_classes="map card", elem_id=f"card-{name}"):
                        self._card(number, name)

    def _card(self, number: int, name: str) -> None:
        entry = MAPS[name]
        gr.HTML(
            f'<div class="map-title"><span class="map-number">{number}</span> {escape(entry.title)} '
            f'<span class="symbol">{figures.symbol(entry.symbol)}</span></div>'
        )
        words = {"label": entry.title, "alt_text": f"{entry.title}. {entry.about}", "elem_id": f"map-{name}"}
        self.maps[name] = theme.component(gr.Image, "map", str(self.example.pictures[name]), **words)
        gr.HTML(f'<p class="map-about">{escape(entry.about)}</p>')
        self.captions[name] = gr.HTML(self.example.facts["captions"].get(name, ""), elem_id=f"facts-{name}")
        if name in figures.LEGENDS:
            self.legends[name] = gr.HTML(self.example.facts["legends"].get(name, ""), elem_id=f"legend-{name}")

    @property
    def components(self) -> list[Component]:
        """All that `update` updates."""
        return [self.figure, *self.maps.values(), *self.captions.values(), *self.legends.values()]

    def update(self, session: Session, pictures: dict[str, np.ndarray], paths: dict[str, str]) -> dict:
        """Updates that show a record. pictures, paths: `record.pictures` of it, and their files, by name."""
        ready = work.available_maps(session.result)
        values: dict[Component, Any] = {self.figure: figure(pictures)}
        values |= {image: paths.get(name) for name, image in self.maps.items()}
        for draw, lines in ((figures.caption, self.captions), (figures.legend, self.legends)):
            values |= {line: draw(session.result, name) if name in ready else "" for name, line in lines.items()}
        return values


def failures() -> str:
    """HTML of the stored failures: what one sees, and the stage at fault."""
    cells = []
    for one, path in example.failures():
        address = example.data_url(Image.open(path), (960, 320))
        cells.append(
            f'<figure class="failure"><img src="{address}" alt="{escape(one.title)}: photograph, garment, '
            f'{escape(MAPS[one.map].title.lower())}, result"><figcaption><b>{escape(one.title)}</b> '
            f'<span class="badge">{escape(one.stage)}</span> {escape(one.text)}</figcaption></figure>'
        )
    return f'<div class="failures">{"".join(cells)}</div>'


class FailuresView(View):
    """Pairs that go wrong, and the stage at fault."""

    name = "failures"
    title = "What goes wrong"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("tryon/failures"), elem_classes="hint")
        gr.HTML(failures(), elem_id="failures")
