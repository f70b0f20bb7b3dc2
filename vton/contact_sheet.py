"""Many try-ons on one picture, a row each: photo, garment, the maps that were asked for, result.

Only small cells are kept, so memory does not grow with the photographs. A pair that cannot be used shows its sentence
in its row.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vton.inputs import photo
from vton.inputs.photo import InputError
from vton.maps import MAPS

DEFAULT_MAPS = ("agnostic", "segmentation", "warped_cloth", "misalignment", "synthesis")
PAPER, INK, QUIET = (251, 248, 243), (31, 27, 24), (125, 114, 100)


@dataclass(frozen=True)
class Row:
    """One pair on the sheet: name, small pictures in the order of the columns (two after an error), a line about it."""

    name: str
    cells: tuple[np.ndarray, ...]
    line: str
    error: str = ""


def fit_into(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A picture (h, w) or (h, w, 3 or 4) uint8 scaled into a cell of `size` = (H, W), the rest paper-coloured."""
    picture = np.repeat(picture[..., None], 3, 2) if picture.ndim == 2 else photo.opaque(picture)
    scale = min(size[0] / picture.shape[0], size[1] / picture.shape[1])
    h, w = max(1, round(picture.shape[0] * scale)), max(1, round(picture.shape[1] * scale))
    small = cv2.resize(picture, (w, h), interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)
    cell = np.full((*size, 3), PAPER, np.uint8)
    y, x = (size[0] - h) // 2, (size[1] - w) // 2
    cell[y : y + h, x : x + w] = small
    return cell


def thumbnail(path: Path, cell: tuple[int, int]) -> np.ndarray:
    """The small picture of a file that may not be one."""
    try:
        return fit_into(photo.load_image(path, longest=1024), cell)
    except InputError:
        return np.full((*cell, 3), PAPER, np.uint8)


def draw(
    table: list[Row], maps: tuple[str, ...] = DEFAULT_MAPS, cell: tuple[int, int] = (256, 192), title: str = ""
) -> np.ndarray:
    """The sheet, (H, W, 3) uint8: the columns' names, then one row a pair; a row with an error shows it as text.

    maps: names of the maps shown between garment and result; cell: (H, W) of a picture.
    """
    names = ["Photo", "Garment", *(_heading(name) for name in maps), "Result"]
    gap, caption, top = 6, 20, 34 + (24 if title else 0)
    height, width = cell
    size = len(names) * (width + gap) + gap, top + len(table) * (height + caption + gap) + gap
    sheet = Image.new("RGB", size, PAPER)
    pen, font, small = ImageDraw.Draw(sheet), ImageFont.load_default(14), ImageFont.load_default(12)
    if title:
        pen.text((gap, 8), title, INK, font)
    for i, name in enumerate(names):
        pen.text((gap + i * (width + gap), top - 24), _truncate(name, font, width), INK, font)
    for j, row in enumerate(table):
        y = top + j * (height + caption + gap)
        for i, picture in enumerate(row.cells):
            sheet.paste(Image.fromarray(picture), (gap + i * (width + gap), y))
        if row.error:
            x = gap + 2 * (width + gap)
            pen.rectangle((x, y, sheet.width - gap, y + height), outline=QUIET)
            text = "\n".join(textwrap.wrap(_latin(row.error), max(16, (sheet.width - x) // 9)))
            pen.multiline_text((x + 2 * gap, y + 2 * gap), text, INK, font)
        line = _truncate(f"{j + 1}  {row.name}   {row.line}", small, sheet.width - 2 * gap)
        pen.text((gap, y + height + 2), line, QUIET, small)
    return np.asarray(sheet)


def _heading(name: str) -> str:
    entry = MAPS[name]
    plain = entry.symbol.replace("Ŝ", "S^").replace("Î", "I^").replace("θ", "theta")  # what the bundled font can write
    return f"{entry.title}  {plain}".strip()


def _latin(text: str) -> str:
    """What the bundled font can write of a text."""
    return text.encode("latin-1", "replace").decode("latin-1")


def _truncate(text: str, font: Any, width: float) -> str:
    text = _latin(text)
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."
