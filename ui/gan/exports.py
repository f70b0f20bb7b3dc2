"""What one can take home from a game: its numbers as CSV, and a page that plays it without a connection."""

from __future__ import annotations

import csv
import io
import json
from html import escape
from pathlib import Path

from gan.laboratory import Laboratory
from ui import theme
from ui.gan.frames import encode

MOST_FRAMES = 60


def csv_text(lab: Laboratory) -> str:
    """A row for every moment, with a header."""
    rows = lab.table()
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def html(lab: Laboratory) -> str:
    """A page that plays up to sixty moments of the game, with everything in it."""
    frames = [encode(picture) for picture in lab.pictures(MOST_FRAMES)]
    parts = {
        "TITLE": escape(f"GAN: {lab.mixture.name}"),
        "FORMULA": escape(f"D minimises {frames[0]['formulas'][0]}; G minimises {frames[0]['formulas'][1]}"),
        "CSS": theme.read("gan/gan.css"),
        "SHARED": theme.common_script(),
        "GAME": theme.read("gan/game.js"),
        # "<" would end the script element.
        "DATA": json.dumps(frames).replace("<", "\\u003c"),
    }
    return theme.fill_template(theme.read("gan/standalone.html"), parts)


def write(lab: Laboratory, folder: Path) -> list[Path]:
    """Writes both files into a folder and returns them."""
    files = [folder / f"gan-{lab.name.replace(' ', '-')}.{kind}" for kind in ("csv", "html")]
    for file, text in zip(files, (csv_text(lab), html(lab))):
        file.write_text(text, encoding="utf-8")
    return files
