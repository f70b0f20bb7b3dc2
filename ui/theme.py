"""How the page looks: paper and ink, one warm accent, the fonts that Gradio carries itself."""

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import gradio as gr
from gradio.themes import Base
from gradio.themes.utils import colors, fonts, sizes

from ui import colours

Component = TypeVar("Component")
STATIC = Path(__file__).parent / "static"


def read(name: str) -> str:
    """The text of a file of `static/`."""
    return (STATIC / name).read_text(encoding="utf-8")


def data(name: str) -> Any:
    """What a JSON file of `static/` holds."""
    return json.loads(read(name))


COMPONENTS = data("components.json")


def theme() -> Base:
    """The page's theme; every font file is served by the page itself.

    Many of the fonts that Gradio carries hold no Latin letters; IBM Plex in these weights does.
    """
    look = data("theme.json")
    clay, paper = (colors.Color(*shades.split()) for shades in look["shades"])
    base = Base(
        primary_hue=clay,
        secondary_hue=clay,
        neutral_hue=paper,
        radius_size=sizes.radius_md,
        spacing_size=sizes.spacing_md,
        text_size=sizes.text_md,
        font=(fonts.LocalFont("IBM Plex Sans", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif"),
        font_mono=(fonts.LocalFont("IBM Plex Mono", weights=(400, 700)), "ui-monospace", "monospace"),
    )
    # Of each property the value, and where it differs that on a dark page.
    values = {name + mode: one for name, pair in look["look"].items() for mode, one in zip(("", "_dark"), pair)}
    return base.set(**values)


def css() -> str:
    """The page's own style sheet."""
    return "\n".join(map(read, data("theme.json")["styles"]))


@functools.cache
def _texts(tab: str) -> dict[str, str]:
    parts = re.split(r"^# (\S+)$", read(f"{tab}/texts.md"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def text(place: str) -> str:
    """An explanation, Markdown. place: "TAB/NAME", the part below the line "# NAME" of `static/TAB/texts.md`."""
    tab, _, name = place.partition("/")
    return _texts(tab)[name]


_scripts: dict[str, tuple[str, ...]] = {}  # key -> names of the scripts that a component of the page runs


def script(*names: str) -> str:
    """A call of the page's own scripts of these names in `static/`, which share a scope, as `js_on_load` takes it.

    The scripts themselves come once with the page (`head`), not with every component that runs them. The comment names
    their events, for Gradio looks for these there.
    """
    key = "+".join(names)
    _scripts[key] = names
    events = sorted({sources for name in names for sources in re.findall(r"trigger\(\s*'(\w+)'", read(name))})
    comment = f"// {', '.join(map(repr, events))}\n" if events else ""
    return f"{comment}atelier[{key!r}](element, props, trigger, watch, typeof server === 'undefined' ? null : server);"


def head() -> str:
    """HTML of the scripts: those that run at once, what all share, and those of the components built so far."""
    bodies = ",\n".join(
        f"{key!r}: (element, props, trigger, watch, server) => {{\n" + "\n".join(map(read, names)) + "\n}"
        for key, names in _scripts.items()
    )
    first = "".join(f"<script>(() => {{\n{read(name)}\n}})();</script>" for name in ("language.js", "events.js"))
    return f"{first}<script>window.atelier = (() => {{\n{common_script()}\nreturn {{\n{bodies}\n}};\n}})();</script>"


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """A template with every @@NAME@@ replaced by its part, in one pass: what a part holds is never read as a marker."""
    return re.sub(r"@@([A-Z]+)@@", lambda marker: parts[marker[1]], template)


def component(kind: Callable[..., Component], name: str, *values: Any, **more: Any) -> Component:
    """A component of the page whose words and sizes stand in `static/components.json`.

    kind: `gr.Dropdown` for example; name: its key there, and its id on the page; values, more: what else it is made of.
    """
    return kind(*values, **{"elem_id": name, **COMPONENTS[name], **more})


def script_component(
    script_names: str | tuple[str, ...], css_class: str, elem_id: str, elem_classes: Any = None, **properties: Any
) -> gr.HTML:
    """A component, empty at first, whose value the page's scripts of these names draw into a `div` of that class.

    properties: what the script reads besides the value, and options of gr.HTML.
    """
    return gr.HTML(
        None,
        html_template=f'<div class="{css_class}"></div>',
        js_on_load=script(*([script_names] if isinstance(script_names, str) else script_names)),
        elem_id=elem_id,
        elem_classes=elem_classes,
        **properties,
    )


def gallery(label: str, elem_id: str, columns: int = 3, **more: Any) -> gr.Gallery:
    """An empty gallery as high as its pictures. more: further options of gr.Gallery."""
    options: dict[str, Any] = {"buttons": ["download", "fullscreen"], **more}
    return gr.Gallery(
        label=label, elem_id=elem_id, columns=columns, height="auto", object_fit="contain", format="png",
        interactive=False, elem_classes="pictures", **options,
    )  # fmt: skip


def heat_map(elem_id: str, clickable: bool = False) -> gr.HTML:
    """An empty map for a value of `figures.heat_map` or `figures.matrix`.

    clickable: a click on a cell triggers `cell` with its row and column.
    """
    classes = ["card", "heat-card"] + ["clickable"] * clickable
    return script_component("translate/heat_map.js", "heat", elem_id, classes, stretch=False, threshold=0)


def common_script() -> str:
    """The colours and what the drawing scripts have in common, above all the one way to draw a map of numbers."""
    files = [read(file) for file in ("colours.js", "drawing.js", "heat.js")]
    return "\n".join([colours.constants(), *files])
