"""What a game shows as values for the page's scripts, and what one can take home: CSV, and a page that plays it."""

from html import escape
from pathlib import Path
from typing import Any

from torch import Tensor

from gan.laboratory import Laboratory
from ui import figures, theme
from ui.translate import exports

MAX_FRAMES = 60


def encode(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture of `gan.laboratory.Laboratory` for the page: tensors as base64 of float32, tables by column."""
    rows = picture["rows"]
    frame = {
        name: figures.floats(value.detach()) if isinstance(value, Tensor) else figures.finite(value)
        for name, value in picture.items()
    }
    return {**frame, "rows": {name: figures.floats([row[name] for row in rows]) for name in rows[0]} if rows else {}}


def csv_text(lab: Laboratory) -> str:
    """A row for every moment, with a header."""
    rows = lab.table()
    return exports.table_text([rows[0], *(row.values() for row in rows)])


def html(lab: Laboratory) -> str:
    """A page that plays up to sixty moments of the game, with everything in it."""
    frames = [encode(picture) for picture in lab.pictures(MAX_FRAMES)]
    parts = {
        "TITLE": escape(f"GAN: {lab.mixture.name}"),
        "FORMULA": "<br>".join(f"{net} minimises {escape(one)}" for net, one in zip("DG", frames[0]["formulas"])),
        "CSS": theme.read("gan/gan.css"),
        "SHARED": theme.common_script(),
        "GAME": theme.read("gan/paint.js") + theme.read("gan/game.js"),
        "DATA": figures.script_json(frames),
    }
    return theme.fill_template(theme.read("gan/standalone.html"), parts)


def write(lab: Laboratory, folder: Path) -> list[Path]:
    """Writes both files into a folder and returns them."""
    return exports.write(folder / f"gan-{lab.name.replace(' ', '-')}", {"csv": csv_text(lab), "html": html(lab)})
