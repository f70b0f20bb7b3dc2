"""A map of weights as a picture to save: one drawing, on paper of two kinds, SVG and PNG.

The page's own maps are drawn by `static/heat.js`, in the same colours.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from transformer.insight.interpret import AttentionMap
from ui import figures
from ui.colours import RAMPS, paint
from ui.translate.words import plain

CELL = 28  # pixels of a cell, fewer where there are many
LARGEST, LARGEST_PNG = 4000, 6000  # most pixels of a drawing's side, and of its PNG's
SEPARATE_CELLS = 10_000  # more cells are one picture inside an SVG, and without numbers
INK, GREY, LINE = (31, 27, 24), (93, 84, 73), (210, 200, 185)
DARK, LIGHT = (42, 18, 8), (255, 246, 236)  # numbers on light and on dark cells
TWICE = 2  # pixels of a PNG for one of the frame's, so that it is sharp on a wall
HEAD = 34  # pixels above the column labels, for the title
FOOT = 30  # pixels below the cells, for the scale
LINE_HEIGHT = 18  # of the caption
BAR = 110  # width of the scale
ROOM_FOR_NUMBER = 22  # pixels of a cell that has room for its number
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}  # as Pillow calls them
Colour = Sequence[int]
Sheet = TypeVar("Sheet", "Svg", "Png")  # what a map is drawn on


def digits(weight: float | np.floating) -> str:
    """The shortest text that reads back to the same float32."""
    return np.format_float_positional(np.float32(weight), trim="0")


@lru_cache
def font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib carries and which has letters of many scripts; otherwise Pillow's own."""
    spec = find_spec("matplotlib")
    if spec is not None and spec.submodule_search_locations:
        file = Path(list(spec.submodule_search_locations)[0], "mpl-data", "fonts", "ttf", "DejaVuSans.ttf")
        if file.is_file():
            return ImageFont.truetype(str(file), size)
    return ImageFont.load_default(size)


def label(token: str) -> str:
    """A word piece as it is written beside a map: without the vocabulary's mark, 24 printable characters at most."""
    text = "".join(c for c in plain(token) if c.isprintable())
    return text if len(text) <= 24 else text[:23] + "…"


@dataclass(frozen=True)
class HeatMap:
    """A map, and what stands around it.

    map: weights in [0, 1] with the tokens of rows and columns; title and the names of the two axes; threshold: smaller
    weights stay blank; stretch: the strongest colour is that of the largest weight, not of 1; sentence: of the caption,
    below what to look at; queries: what each row does, to point at in an SVG, its token without them.
    """

    map: AttentionMap
    title: str
    row_axis: str
    column_axis: str
    threshold: float = 0.0
    stretch: bool = False
    sentence: str = ""
    queries: Sequence[str] = ()

    @property
    def says(self) -> str:
        """What to look at."""
        one = self.map
        return figures.reading_in_words(figures.reading(one.weights, one.rows, one.columns), one.rows, one.columns)

    @property
    def most(self) -> float:
        """The weight of the strongest colour."""
        return max(float(self.map.weights.max()), 1e-6) if self.stretch else 1.0

    @cached_property
    def colours(self) -> np.ndarray:
        """(R, C, 3) uint8, as the page paints them."""
        weights = self.map.weights
        return paint(np.where(weights < self.threshold, 0, weights / self.most), RAMPS["light"])

    @cached_property
    def frame(self) -> Frame:
        """Room for the title, for the labels on both sides, and for the caption, all of it."""
        rows, columns = self.map.weights.shape
        cell = max(4, min(CELL, (LARGEST - 400) // max(rows, columns)))
        size = max(6, min(14, int(cell * 0.8)))
        left, top = (
            max([int(font(size).getlength(label(token))) for token in tokens] + [10]) + 34
            for tokens in (self.map.rows, self.map.columns)
        )
        width = max(left + columns * cell + 20, int(font(16).getlength(self.title)) + 24)
        caption = [(line, own) for own in (False, True) for line in _lines((self.says, self.sentence)[own], width - 20)]
        height = HEAD + top + rows * cell + FOOT + LINE_HEIGHT * len(caption) + 6
        return Frame(cell, size, left, HEAD + top, width, height, caption)

    def svg(self) -> str:
        """As SVG; each cell tells all digits of its weight to whoever points at it."""
        return self._draw(Svg(self.frame, self.title)).text

    def png(self) -> bytes:
        """As PNG, at twice the size of the SVG unless it is huge; every cell has the exact colour of its weight."""
        return self._draw(Png(self.frame)).data

    def _draw(self, sheet: Sheet) -> Sheet:
        cell, size, left, top = self.frame.cell, self.frame.size, self.frame.left, self.frame.top
        rows, columns = self.map.weights.shape
        sheet.write(10, 22, self.title, 16)
        sheet.write(left, HEAD + 12, f"{self.column_axis} →", 12, GREY)
        sheet.write(16, top, f"← {self.row_axis}", 12, GREY, "end", upright=True)
        few = rows * columns <= SEPARATE_CELLS
        sheet.fill(self.colours, self._tips() if few else [])
        for row, column in np.ndindex(rows, columns) if few and cell >= ROOM_FOR_NUMBER else ():
            weight, colour = float(self.map.weights[row, column]), self.colours[row, column]
            if weight >= max(0.005, self.threshold):  # a smaller one would be read as .00
                place = left + (column + 0.5) * cell, top + (row + 0.5) * cell + 3
                sheet.write(*place, f"{weight:.2f}".removeprefix("0"), 9, _ink(colour), "middle")
        for row, token in enumerate(self.map.rows):
            sheet.write(left - 8, top + (row + 0.5) * cell + size * 0.34, label(token), size, INK, "end", own=True)
        for column, token in enumerate(self.map.columns):
            place = left + (column + 0.5) * cell + size * 0.34, top - 6
            sheet.write(*place, label(token), size, upright=True, own=True)
        foot = top + rows * cell + 12
        sheet.scale(24, foot)
        sheet.write(10, foot + 9, "0", 12, GREY)
        sheet.write(24 + BAR + 6, foot + 9, f"{self.most:.3g}", 12, GREY)
        for number, (line, own) in enumerate(self.frame.caption):
            sheet.write(10, foot + 29 + LINE_HEIGHT * number, line, 12, GREY, own=own)
        return sheet

    def _tips(self) -> list[str]:
        """What each cell tells, row by row."""
        rows, columns = self.queries or [label(token) for token in self.map.rows], self.map.columns
        return [
            f"{rows[row]} → {label(columns[column])}: {digits(weight)}"
            for (row, column), weight in np.ndenumerate(self.map.weights)
        ]


@dataclass(frozen=True)
class Frame:
    """Where the parts of a map are, in pixels: cell, font, the cells' upper left corner, the whole."""

    cell: int
    size: int
    left: int
    top: int
    width: int
    height: int
    caption: list[tuple[str, bool]]  # lines below the scale, and whether they are the visitor's or the model's own


def _lines(sentence: str, width: int) -> list[str]:
    """A sentence in lines of at most so many pixels."""
    lines = [""]
    for word in "".join(c if c.isprintable() else " " for c in sentence).split():
        for piece in _pieces(word, width):
            together = f"{lines[-1]} {piece}".strip()
            if font(12).getlength(together) <= width:
                lines[-1] = together
            else:
                lines.append(piece)
    return [line for line in lines if line]


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word cut where it is longer than so many pixels."""
    start = 0
    for end in range(1, len(word) + 1):
        if end - start > 1 and font(12).getlength(word[start:end]) > width:
            yield word[start : end - 1]
            start = end - 1
    yield word[start:]


def _ink(colour: np.ndarray) -> Colour:
    """Dark or light, whichever is read better on a colour (relative luminance, WCAG 2)."""
    share = colour / 255
    linear = np.where(share <= 0.03928, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return DARK if float(linear @ [0.2126, 0.7152, 0.0722]) > 0.19 else LIGHT


def _png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def data_url(colours: np.ndarray) -> str:
    """Cells as a picture in a data URL, one pixel each. colours: (R, C, 3) uint8."""
    return "data:image/png;base64," + base64.b64encode(_png(Image.fromarray(colours))).decode("ascii")


# -- paper -------------------------------------------------------------------------------------------------------------


class Svg:
    """Paper of text; places and sizes are the frame's pixels."""

    def __init__(self, frame: Frame, title: str) -> None:
        self.frame = frame
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{frame.width}" height="{frame.height}" '
            f'viewBox="0 0 {frame.width} {frame.height}" '
            f'font-family="IBM Plex Sans, DejaVu Sans, sans-serif" role="img">',
            f"<title>{_xml(title)}</title>",
            f'<rect width="{frame.width}" height="{frame.height}" fill="white"/>',
        ]

    @property
    def text(self) -> str:
        """The whole drawing as an SVG file."""
        return "\n".join([*self.parts, "</svg>", ""])

    def write(
        self, x: float, y: float, text: str, size: int, colour: Colour = INK, at: str = "start",
        upright: bool = False, own: bool = False,
    ) -> None:  # fmt: skip
        """A text on a base line; it is escaped here.

        at: which part of it stands at (x, y), "start", "middle" or "end"; upright: it runs upwards from there; own: it
        is the visitor's or the model's, so that no other language of the page reaches it.
        """
        place = f'transform="translate({x:g} {y:g}) rotate(-90)"' if upright else f'x="{x:g}" y="{y:g}"'
        more = ' pointer-events="none"' if at == "middle" else ""  # the cell below tells its weight
        more += ' translate="no"' if own else ""
        self.parts.append(
            f'<text {place} text-anchor="{at}" font-size="{size}" fill="{_hex(colour)}"{more}>{_xml(text)}</text>'
        )

    def fill(self, colours: np.ndarray, tips: Sequence[str]) -> None:
        """The cells. colours: (R, C, 3) uint8; tips: what each of them tells, none: they are one picture."""
        cell, left, top = self.frame.cell, self.frame.left, self.frame.top
        rows, columns = colours.shape[:2]
        for (row, column), tip in zip(np.ndindex(rows, columns), tips):
            self.parts.append(
                f'<rect x="{left + column * cell}" y="{top + row * cell}" width="{cell}" height="{cell}" '
                f'fill="{_hex(colours[row, column])}"><title>{_xml(tip)}</title></rect>'
            )
        if not tips:
            self.parts.append(
                f'<image x="{left}" y="{top}" width="{columns * cell}" height="{rows * cell}" '
                f'preserveAspectRatio="none" style="image-rendering: pixelated" href="{data_url(colours)}"/>'
            )

    def scale(self, x: int, y: int) -> None:
        """The bar of colours from 0 to the strongest."""
        stops = "".join(
            f'<stop offset="{n / 4}" stop-color="{_hex(colour)}"/>' for n, colour in enumerate(RAMPS["light"])
        )
        self.parts += [
            f'<defs><linearGradient id="scale">{stops}</linearGradient></defs>',
            f'<rect x="{x}" y="{y}" width="{BAR}" height="10" fill="url(#scale)"/>',
        ]


class Png:
    """Paper of pixels."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.times = TWICE if TWICE * max(frame.width, frame.height) <= LARGEST_PNG else 1
        self.picture = Image.new("RGB", (self.times * frame.width, self.times * frame.height), "white")
        self.pen = ImageDraw.Draw(self.picture)

    @property
    def data(self) -> bytes:
        """The whole drawing as a PNG file."""
        return _png(self.picture)

    def write(
        self, x: float, y: float, text: str, size: int, colour: Colour = INK, at: str = "start",
        upright: bool = False, own: bool = False,
    ) -> None:  # fmt: skip
        """As `Svg.write`."""
        letters, x, y = font(self.times * size), self.times * x, self.times * y
        if not upright:
            self.pen.text((x, y), text, tuple(colour), letters, anchor=ANCHORS[at])
            return
        length, above = int(letters.getlength(text)) + 4, 2 * self.times * size
        mask = Image.new("L", (length, above + self.times * size))
        ImageDraw.Draw(mask).text((0, above), text, 255, letters, anchor="ls")
        place = round(x) - above, round(y) - (0 if at == "end" else length)
        self.picture.paste(tuple(colour), place, mask.rotate(90, expand=True))

    def fill(self, colours: np.ndarray, tips: Sequence[str]) -> None:
        """As `Svg.fill`; nothing tells anything here."""
        cell, left, top = (self.times * one for one in (self.frame.cell, self.frame.left, self.frame.top))
        size = colours.shape[1] * cell, colours.shape[0] * cell
        self.picture.paste(Image.fromarray(colours).resize(size, Image.Resampling.NEAREST), (left, top))
        self.pen.rectangle((left - 1, top - 1, left + size[0], top + size[1]), outline=LINE)

    def scale(self, x: int, y: int) -> None:
        """As `Svg.scale`."""
        ramp = Image.fromarray(paint(np.linspace(0, 1, BAR)[None], RAMPS["light"]))
        self.picture.paste(ramp.resize((self.times * BAR, self.times * 10)), (self.times * x, self.times * y))


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in colour)


def _xml(text: str) -> str:
    """Escaped for XML; characters that XML does not know become a question mark."""
    return escape("".join(c if c.isprintable() or c == " " else "?" for c in text))
