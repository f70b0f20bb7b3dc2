"""What one can take home from the Translate tab: pictures of a map, its numbers, and a page that needs no connection.

Everything here is drawn and written from the library's arrays, and every token is escaped for the format it goes into.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from transformer.insight import interpret
from transformer.insight.interpret import AttentionMap
from transformer.translator import Attention
from ui import figures, theme
from ui.colours import RAMPS, paint
from ui.translate.words import plain, query_names

CELL = 28  # pixels of a cell, fewer where there are many
LARGEST = 4000  # most pixels of a picture's side
SEPARATE_CELLS = 10_000  # an SVG with more cells carries them as one picture
WHOLE = 2_000_000  # most weights that JSON and the page carry for all layers and kinds; else the shown layer alone
INK, GREY, LINE = (31, 27, 24), (93, 84, 73), (210, 200, 185)


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


def _sizes(current: AttentionMap) -> tuple[int, int, int, int]:
    """(cell, font size, room for row labels, room for column labels) in pixels."""
    rows, columns = current.weights.shape
    cell = max(4, min(CELL, (LARGEST - 400) // max(rows, columns)))
    size = max(6, min(14, int(cell * 0.8)))
    left, top = (
        max([int(font(size).getlength(label(token))) for token in tokens] + [10]) + 34
        for tokens in (current.rows, current.columns)
    )
    return cell, size, left, top


def clip(token: str) -> str:
    """A label of at most 24 characters, line breaks and other control characters left out."""
    token = "".join(c for c in token if c.isprintable())
    return token if len(token) <= 24 else token[:23] + "…"


def label(token: str) -> str:
    """A word piece as it is written beside a map: without the vocabulary's mark, and short."""
    return clip(plain(token))


@dataclass(frozen=True)
class _Frame:
    """Where the parts of a saved map are, in pixels: cell, font, the cells' upper left corner, the whole."""

    cell: int
    size: int
    left: int
    top: int
    width: int
    height: int
    caption: list[str]  # lines below the scale


TWICE = 2  # pixels of a PNG for one of the frame's, so that it is sharp on a wall
HEAD = 34  # pixels above the column labels, for the title
FOOT = 30  # pixels below the cells, for the scale
LINE_HEIGHT = 18  # of the caption
BAR = 110  # width of the scale
NUMBERED = 22  # pixels of a cell that has room for its number


def _frame(current: AttentionMap, title: str, *sentences: str) -> _Frame:
    """Room for the title, for the labels on both sides, and for the caption, all of it."""
    cell, size, left, top = _sizes(current)
    rows, columns = current.weights.shape
    width = max(left + columns * cell + 20, int(font(16).getlength(title)) + 24)
    caption = [line for sentence in sentences for line in _lines(sentence, width - 20)]
    height = HEAD + top + rows * cell + FOOT + LINE_HEIGHT * len(caption) + 6
    return _Frame(cell, size, left, HEAD + top, width, height, caption)


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


def _most(current: AttentionMap, stretch: bool) -> float:
    return max(float(current.weights.max()), 1e-6) if stretch else 1.0


def _number(weight: float) -> str:
    """A weight inside its cell, two digits; nothing for what would be read as .00."""
    return "" if weight < 0.005 else f"{weight:.2f}".removeprefix("0")


def _ink(colour: np.ndarray) -> str:
    """Black or white, whichever is read better on a colour (relative luminance, WCAG 2)."""
    share = colour / 255
    linear = np.where(share <= 0.03928, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return "#2a1208" if float(linear @ [0.2126, 0.7152, 0.0722]) > 0.19 else "#fff6ec"


def _colours(current: AttentionMap, threshold: float, stretch: bool) -> np.ndarray:
    """(R, C, 3) uint8, as the page paints them."""
    return paint(np.where(current.weights < threshold, 0, current.weights / _most(current, stretch)), RAMPS["light"])


def png(
    current: AttentionMap,
    title: str,
    row_axis: str,
    column_axis: str,
    threshold: float = 0.0,
    stretch: bool = False,
    sentence: str = "",
    says: str = "",
) -> bytes:
    """A PNG of one map with its labels, scale and caption, at twice the size of the SVG unless it is huge.

    Every cell is filled with the exact colour of its weight. says: what to look at, which stands above the sentence.
    """
    frame = _frame(current, title, says, sentence)
    scale = TWICE if TWICE * max(frame.width, frame.height) <= LARGEST else 1
    cell, left, top, size = (scale * one for one in (frame.cell, frame.left, frame.top, frame.size))
    rows, columns = current.weights.shape
    picture = Image.new("RGB", (scale * frame.width, scale * frame.height), "white")
    draw = ImageDraw.Draw(picture)
    large, small, labels = font(scale * 16), font(scale * 12), font(size)
    draw.text((scale * 10, scale * 8), title, INK, large)
    draw.text((left, scale * (HEAD + 2)), f"{column_axis} →", GREY, small)
    turned = _upright(f"← {row_axis}", small, scale * 18)
    picture.paste(GREY, (scale * 6, top), turned)
    cells = Image.fromarray(_colours(current, threshold, stretch)).resize(
        (columns * cell, rows * cell), Image.Resampling.NEAREST
    )
    picture.paste(cells, (left, top))
    draw.rectangle((left - 1, top - 1, left + columns * cell, top + rows * cell), outline=LINE)
    for row, token in enumerate(current.rows):
        text = label(token)
        place = left - scale * 8 - labels.getlength(text), top + row * cell + (cell - size) / 2 - scale * 2
        draw.text(place, text, INK, labels)
    for column, token in enumerate(current.columns):
        turned = _upright(label(token), labels, size + scale * 6)
        place = left + column * cell + (cell - turned.width) // 2, top - scale * 6 - turned.height
        picture.paste(INK, place, turned)
    ramp = Image.fromarray(paint(np.linspace(0, 1, BAR)[None], RAMPS["light"])).resize((scale * BAR, scale * 10))
    foot = top + rows * cell + scale * 12
    picture.paste(ramp, (scale * 24, foot))
    draw.text((scale * 10, foot - scale * 3), "0", GREY, small)
    draw.text((scale * (24 + BAR + 6), foot - scale * 3), f"{_most(current, stretch):.3g}", GREY, small)
    for number, line in enumerate(frame.caption):
        draw.text((scale * 10, foot + scale * (16 + number * LINE_HEIGHT)), line, GREY, small)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _upright(text: str, letters: Any, height: int) -> Image.Image:
    """A mask of a text that runs upwards."""
    drawn = Image.new("L", (int(letters.getlength(text)) + 4, height))
    ImageDraw.Draw(drawn).text((0, 0), text, 255, letters)
    return drawn.rotate(90, expand=True)


def _svg_foot(frame: _Frame, most: float, foot: int) -> list[str]:
    """The scale and the caption."""
    stops = "".join(
        f'<stop offset="{n / 4}" stop-color="rgb({red}, {green}, {blue})"/>'
        for n, (red, green, blue) in enumerate(paint(np.linspace(0, 1, 5), RAMPS["light"]).tolist())
    )
    return [
        f'<defs><linearGradient id="scale">{stops}</linearGradient></defs>',
        f'<rect x="24" y="{foot}" width="{BAR}" height="10" fill="url(#scale)"/>',
        f'<text x="10" y="{foot + 9}" font-size="12" fill="#5d5449">0</text>',
        f'<text x="{24 + BAR + 6}" y="{foot + 9}" font-size="12" fill="#5d5449">{most:.3g}</text>',
        *(
            f'<text x="10" y="{foot + 29 + LINE_HEIGHT * number}" font-size="12" fill="#5d5449">{_xml(line)}</text>'
            for number, line in enumerate(frame.caption)
        ),
    ]


def _svg_cells(
    current: AttentionMap, frame: _Frame, colours: np.ndarray, threshold: float, queries: Sequence[str]
) -> list[str]:
    """A rectangle for each cell, with its number where there is room."""
    cell, left, top = frame.cell, frame.left, frame.top
    rows, columns = current.weights.shape
    out = []
    for row in range(rows):
        for column in range(columns):
            red, green, blue = colours[row, column]
            told = f"{queries[row] if queries else label(current.rows[row])} → {label(current.columns[column])}: "
            told += digits(current.weights[row, column])
            out.append(
                f'<rect x="{left + column * cell}" y="{top + row * cell}" width="{cell}" height="{cell}" '
                f'fill="#{red:02x}{green:02x}{blue:02x}"><title>{_xml(told)}</title></rect>'
            )
            number = _number(float(current.weights[row, column]))
            if cell >= NUMBERED and number and current.weights[row, column] >= threshold:
                out.append(
                    f'<text x="{left + (column + 0.5) * cell}" y="{top + (row + 0.5) * cell + 3}" font-size="9" '
                    f'text-anchor="middle" pointer-events="none" '
                    f'fill="{_ink(colours[row, column])}">{number}</text>'
                )
    return out


def _svg_picture(frame: _Frame, colours: np.ndarray) -> str:
    """All cells as one picture, for maps of too many of them."""
    file = io.BytesIO()
    Image.fromarray(colours).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode("ascii")
    rows, columns = colours.shape[:2]
    return (
        f'<image x="{frame.left}" y="{frame.top}" width="{columns * frame.cell}" height="{rows * frame.cell}" '
        f'preserveAspectRatio="none" style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>'
    )


def _svg_labels(current: AttentionMap, frame: _Frame) -> list[str]:
    """Tokens beside the rows and above the columns."""
    cell, size, left, top = frame.cell, frame.size, frame.left, frame.top
    out = []
    for row, token in enumerate(current.rows):
        out.append(
            f'<text x="{left - 8}" y="{top + (row + 0.5) * cell + size * 0.34:.1f}" text-anchor="end" '
            f'font-size="{size}" fill="#1f1b18">{_xml(label(token))}</text>'
        )
    for column, token in enumerate(current.columns):
        x = left + (column + 0.5) * cell + size * 0.34
        out.append(
            f'<text transform="translate({x:.1f} {top - 6}) rotate(-90)" font-size="{size}" fill="#1f1b18">'
            f"{_xml(label(token))}</text>"
        )
    return out


def svg(
    current: AttentionMap,
    title: str,
    row_axis: str,
    column_axis: str,
    threshold: float = 0.0,
    stretch: bool = False,
    sentence: str = "",
    says: str = "",
    queries: Sequence[str] = (),
) -> str:
    """An SVG of one map with its scale and caption; each cell shows its weight in two digits where there is room, and
    tells all of them on hover. queries: what each row does, for the hover; its token without them. Tokens are escaped.
    """
    frame = _frame(current, title, says, sentence)
    cell, left, top = frame.cell, frame.left, frame.top
    rows, columns = current.weights.shape
    colours = _colours(current, threshold, stretch)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{frame.width}" height="{frame.height}" '
        f'viewBox="0 0 {frame.width} {frame.height}" '
        f'font-family="IBM Plex Sans, DejaVu Sans, sans-serif" role="img">',
        f"<title>{_xml(title)}</title>",
        f'<rect width="{frame.width}" height="{frame.height}" fill="white"/>',
        f'<text x="10" y="22" font-size="16" fill="#1f1b18">{_xml(title)}</text>',
        f'<text x="{left}" y="{HEAD + 12}" font-size="12" fill="#5d5449">{_xml(column_axis)} →</text>',
        f'<text transform="translate(16 {top}) rotate(-90)" text-anchor="end" font-size="12" fill="#5d5449">'
        f"← {_xml(row_axis)}</text>",
    ]
    if rows * columns <= SEPARATE_CELLS:
        out += _svg_cells(current, frame, colours, threshold, queries)
    else:
        out.append(_svg_picture(frame, colours))
    out += _svg_labels(current, frame)
    out += _svg_foot(frame, _most(current, stretch), top + rows * cell + 12)
    return "\n".join(out) + "\n</svg>\n"


def _xml(text: str) -> str:
    """Escaped for XML; characters that XML does not know become a question mark."""
    return escape("".join(c if c.isprintable() or c == " " else "?" for c in text))


def query_labels(attention: Attention, kind: str, current: AttentionMap) -> list[str]:
    """What each row of a map does: "after Tier, choosing über"."""
    names = query_names(attention, kind)
    return [names[place] for place in current.row_places]


def cell_text(token: str) -> str:
    """A token that a spreadsheet will not take for a formula."""
    return f"'{token}" if len(token) > 1 and token[0] in "=+-@" else token


def csv_text(current: AttentionMap, queries: Sequence[str] = ()) -> str:
    """One map as CSV: a row for every query, a column for every key, each weight with all its digits.

    queries: what each row does, its token without them.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["query \\ key", *map(cell_text, current.columns)])
    for query, weights in zip(queries or current.rows, current.weights):
        writer.writerow([cell_text(query), *map(digits, weights)])
    return file.getvalue()


def _kinds(attention: Attention, kind: str, layer: int) -> dict[str, list[int]]:
    """Which layers of which kinds are carried along: all, or the shown one alone for a long sentence."""
    total = sum(getattr(attention, name).size for name in interpret.KINDS)
    if total <= WHOLE:
        return {name: list(range(getattr(attention, name).shape[0])) for name in interpret.KINDS}
    return {kind: [layer]}


def json_text(attention: Attention, current: AttentionMap, settings: dict[str, Any]) -> str:
    """The shown map, its settings, all tokens and the weights of all layers and heads (one layer if they are many)."""
    carried = _kinds(attention, settings["kind"], settings["layer"] - 1)
    value = {
        "settings": settings,
        "source_tokens": attention.source_tokens,
        "target_tokens": attention.target_tokens,
        "decoder_tokens": attention.decoder_tokens,
        "map": {
            "queries": query_labels(attention, settings["kind"], current),
            "rows": current.rows,
            "columns": current.columns,
            "weights": current.weights.tolist(),
        },
        "layers": {name: [layer + 1 for layer in layers] for name, layers in carried.items()},
        **{name: getattr(attention, name)[layers].tolist() for name, layers in carried.items()},
    }
    return json.dumps(value, ensure_ascii=False)


def npz(attention: Attention, current: AttentionMap, settings: dict[str, Any]) -> bytes:
    """All weights as float32 (encoder, decoder, cross: L, h, rows, columns), the shown map, tokens and settings."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        map=current.weights,
        map_rows=np.array(current.rows, dtype=np.str_),
        map_columns=np.array(current.columns, dtype=np.str_),
        **{kind: getattr(attention, kind) for kind in interpret.KINDS},
        source_tokens=np.array(attention.source_tokens, dtype=np.str_),
        target_tokens=np.array(attention.target_tokens, dtype=np.str_),
        decoder_tokens=np.array(attention.decoder_tokens, dtype=np.str_),
        settings=np.array(json.dumps(settings, ensure_ascii=False), dtype=np.str_),
    )
    return file.getvalue()


def _script(name: str) -> str:
    """One of the page's scripts as a function of what Gradio hands to it."""
    text = (theme.STATIC / "translate" / name).read_text(encoding="utf-8")
    return f"SCRIPTS[{json.dumps(name)}] = (element, props, trigger, watch) => {{\n{text}\n}};"


def html(
    attention: Attention,
    settings: dict[str, Any],
    source: str,
    translation: str,
    words: dict,
    axes: dict[str, list[str]],
) -> str:
    """One HTML file with all maps as the page shows them, which opens without a connection.

    settings: as saved beside it (kind, layer and head count from 1, or a name for head); words: of
    `figures.word_links`; axes: for each kind the names of its two axes.
    """
    kind, layer, without_ends = settings["kind"], settings["layer"] - 1, settings["without_ends"]
    data: dict[str, Any] = {"settings": settings, "words": words, "kinds": {}}
    for name, layers in _kinds(attention, kind, layer).items():
        heads = getattr(attention, name).shape[1]
        maps = [
            [interpret.attention_map(attention, name, one, head, without_ends) for head in choices]
            for one in layers
            for choices in [[*range(heads), interpret.MEAN, interpret.MAX, interpret.ROLLOUT]]
        ]
        found = [[figures.reading(one.weights, one.rows, one.columns) for one in row] for row in maps]
        stacked = np.stack([[one.weights for one in row] for row in maps]).astype("<f4")
        data["kinds"][name] = {
            "weights": base64.b64encode(stacked.tobytes()).decode("ascii"),
            "layers": layers,
            "heads": heads,
            "rows": maps[0][0].rows,
            "rowNames": query_labels(attention, name, maps[0][0]),
            "columns": maps[0][0].columns,
            "says": [
                [figures.reading_in_words(one, maps[0][0].rows, maps[0][0].columns) for one in row] for row in found
            ],
            "marked": [[[one.row, one.column] for one in row] for row in found],
            "axes": axes[name],
        }
    static = theme.STATIC
    scripts = "\n".join(_script(name) for name in ("heat_map.js", "thumbnails.js", "lines.js", "words.js"))
    template = (static / "translate" / "standalone.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": escape(f"Attention: {source[:60]}"),
        "SOURCE": escape(source),
        "TRANSLATION": escape(translation),
        "MODEL": escape(str(settings["model"])),
        "CSS": theme.css(),
        "DATA": figures.script_json(data),
        "SCRIPTS": f"{theme.common_script()}\nconst SCRIPTS = {{}};\n{scripts}",
    }
    return theme.fill_template(template, parts)
