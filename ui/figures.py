"""What the page draws, as values: the numbers come from the libraries, the browser paints them.

Nothing here draws on a shared canvas, so two visitors never meet in one picture. Text leaves this module either as
data, which the browser's side inserts as text, or escaped.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import cv2
import numpy as np

from transformer.insight.interpret import QuerySteps, is_end
from transformer.text.verbatim import word_numbers
from transformer.tokenizer import is_language_token
from ui.translate.words import plain


def percent(share: float, digits: int = 0) -> str:
    """A share in [0, 1] as the page writes it: 89 %."""
    return f"{100 * share:.{digits}f} %"


def script_json(value: object) -> str:
    """JSON that can stand inside a script element: no character in it can end the element or begin a comment."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def finite(value: Any) -> Any:
    """A value that JSON can hold: arrays become lists, infinities and NaN become None."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def outline(picture: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A copy of a picture with the border of a region drawn into it, in orange.

    picture: (H, W, 3) uint8 RGB; mask: (H, W) uint8, above 127 inside the region. Returns (H, W, 3) uint8.
    """
    copy = np.ascontiguousarray(picture).copy()
    contours, _ = cv2.findContours((mask > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(copy, contours, -1, (255, 140, 0), max(1, round(picture.shape[0] / 400)))


def enlarge(picture: np.ndarray, zoom: int) -> np.ndarray:
    """A picture, (H, W) or (H, W, 3), whose every pixel is a square of so many pixels."""
    return picture.repeat(zoom, 0).repeat(zoom, 1)


def base64_text(array: np.ndarray) -> str:
    """An array's bytes as base64."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def floats(numbers: object) -> str:
    """Numbers as base64 of little-endian float32, as `floats` of static/drawing.js reads them."""
    return base64_text(np.asarray(numbers, "<f4"))


ENDS_SHARE = 0.5  # share of a map on start and end from which that is what its sentence begins with


@dataclass(frozen=True)
class Reading:
    """What to look at on a map: its largest weight between two words, and how much rests on start and end."""

    row: int
    column: int
    weight: float
    rest: float  # mean share of a word's row that falls on start and end, in [0, 1] where rows sum to 1


def reading(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Reading:
    """What to look at on a map. weights: (R, C), not negative; rows, columns: R and C tokens.

    Start, end, the language token and marks of punctuation are no words, unless there is nothing else; on a map of a
    sentence at itself (rows and columns the same) the largest weight lies between two different words, where there are
    two.
    """
    weights = np.asarray(weights, dtype=np.float64)

    def words(tokens: Sequence[str]) -> np.ndarray:
        mask = np.array([not is_end(token) and any(sign.isalnum() for sign in token) for token in tokens])
        return mask if mask.any() else np.ones(len(tokens), bool)

    queries, keys = words(rows), words(columns)
    candidates = np.outer(queries, keys)
    if list(rows) == list(columns):
        places = word_numbers(rows)
        apart = candidates & np.not_equal.outer(places, places)
        candidates = apart if apart.any() else candidates
    row, column = np.unravel_index(int(np.where(candidates, weights, -1.0).argmax()), weights.shape)
    ends = [is_end(token) for token in columns]
    rest = float(weights[queries][:, ends].sum(1).mean()) if any(ends) else 0.0
    return Reading(int(row), int(column), float(weights[row, column]), rest)


def reading_in_words(
    peak: Reading, rows: Sequence[str], columns: Sequence[str], verb: str = "attends to", head: int | None = None
) -> str:
    """One sentence: “es” gives 0.61 to “animal”. verb: what a row does to a column; head: which one it is, from 0."""
    row, column = plain(rows[peak.row]), plain(columns[peak.column])
    pair = f"“{row}” gives {peak.weight:.2f} to “{column}”"
    if verb != "attends to":
        pair = f"“{row}” {verb} “{column}” with {peak.weight:.2f}"
    if head is not None:
        return f"In head {head + 1}, {pair}, the most between two words in any head."
    if peak.rest >= ENDS_SHARE:
        return f"{percent(peak.rest)} of what words give goes to start and end; between words, {pair} at most."
    return f"{pair}, the most between two words here."


def heat_map(
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    row_axis: str,
    column_axis: str,
    verb: str = "attends to",
    raw: np.ndarray | None = None,
    unit: str = "",
) -> dict:
    """One attention map for `static/translate/heat_map.js`.

    weights: (R, C) in [0, 1], rows are queries and columns are keys; rows, columns: R and C token labels, raw text;
    title and the names of the two axes; verb: what a row does to a column; raw, unit: other numbers of the same shape
    to read beside the weights. Returns a JSON value; `weights` travels as little-endian float32 in base64, so the
    numbers shown on hover are the library's own; `says` is a sentence on what to look at, `marked` its cell.

    Raises ValueError if labels and weights do not fit each other.
    """
    weights = np.asarray(weights, dtype="<f4")
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(
            f"A map of {len(rows)} queries and {len(columns)} keys needs weights of that shape, got {weights.shape}."
        )
    peak = reading(weights, rows, columns)
    return {
        "weights": floats(weights),
        "says": reading_in_words(peak, rows, columns, verb),
        "marked": [peak.row, peak.column],
        "rows": [str(token) for token in rows],
        "columns": [str(token) for token in columns],
        "title": title,
        "rowAxis": row_axis,
        "columnAxis": column_axis,
        "verb": verb,
        "raw": None if raw is None else floats(raw),
        "unit": unit,
    }


def lines(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str, row_axis: str, column_axis: str
) -> dict:
    """The heads of one layer for `static/translate/lines.js`; arguments as in `heat_map`, but weights are (h, R, C)."""
    weights = np.asarray(weights, dtype="<f4")
    if weights.ndim != 3:
        raise ValueError(f"Lines need weights of shape (heads, queries, keys), got {weights.shape}.")
    value = heat_map(weights.max(0), rows, columns, title, row_axis, column_axis)
    head = int(weights[:, value["marked"][0], value["marked"][1]].argmax())
    says = reading_in_words(reading(weights[head], rows, columns), rows, columns, head=head)
    return {**value, "weights": floats(weights), "heads": weights.shape[0], "says": says}


def head_steps(steps: QuerySteps, row: str, columns: Sequence[str], title: str) -> dict:
    """The six steps of one query for `static/translate/one_head.js`.

    row: the query's token; columns: the S tokens of the keys, raw text. Every array travels as float32, so the numbers
    shown are the library's own; the scores that a mask forbids are -inf.
    """
    names = ("query", "key", "value", "dots", "scores", "weights", "products", "output")
    if len(columns) != len(steps.weights):
        raise ValueError(f"{len(steps.weights)} keys need as many labels, got {len(columns)}.")
    most = int(np.asarray(steps.weights).argmax())
    return {
        **{name: floats(getattr(steps, name)) for name in names},
        "says": f"The softmax gives {float(steps.weights[most]):.2f} to “{plain(columns[most])}”, its largest weight.",
        "marked": most,
        "allowed": [bool(x) for x in steps.visible],
        "divisor": steps.divisor,
        "row": str(row),
        "columns": [str(token) for token in columns],
        "title": title,
    }


def matrix(
    numbers: np.ndarray,
    title: str,
    row_axis: str,
    column_axis: str,
    column_names: Sequence[str] = ("",),
    says: str = "",
) -> dict:
    """Signed numbers (R, C) for `static/translate/heat_map.js`, without tokens.

    title and the names of the two axes; column_names repeat from left to right; says: a sentence on what to look at.
    """
    numbers = np.asarray(numbers, dtype="<f4")
    return {
        "weights": floats(numbers),
        "rows": numbers.shape[0],
        "columns": numbers.shape[1],
        "title": title,
        "rowAxis": row_axis,
        "columnAxis": column_axis,
        "columnNames": list(column_names),
        "says": says,
    }


def pool(maps: np.ndarray, most: int) -> np.ndarray:
    """Maps (..., R, C) with at most `most` rows and columns: of each block the largest weight, so no peak is lost."""
    for axis in (-2, -1):
        size = maps.shape[axis]
        block = -(-size // most)
        if block > 1:
            starts = np.arange(0, size, block)
            maps = np.maximum.reduceat(maps, starts, axis=axis)
    return maps


def thumbnails(maps: np.ndarray, most: int = 64) -> dict:
    """All maps of one kind of attention for `static/translate/thumbnails.js`.

    maps: (L, h, R, C) in [0, 1]. Returns a JSON value; the maps travel as one byte a weight (error at most 1/510), in
    the order layer, head, row, column. Maps with more than `most` rows or columns are pooled to that size.
    """
    maps = np.asarray(maps)
    if maps.ndim != 4:
        raise ValueError(f"Thumbnails need maps of shape (layers, heads, queries, keys), got {maps.shape}.")
    maps = pool(maps, most)
    return {
        "bytes": base64_text(np.rint(np.clip(maps, 0, 1) * 255).astype(np.uint8)),
        "layers": maps.shape[0],
        "heads": maps.shape[1],
        "rows": maps.shape[2],
        "columns": maps.shape[3],
    }


def merge_words(tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """Word pieces put together to words: the words, and for each piece the number of its word.

    A piece that starts with ▁ opens a word; </s> and a language token in front stay words of their own, as they are
    none of the text.
    """
    words: list[str] = []
    places = []
    for number, token in enumerate(tokens):
        first = number == 0 or (number == 1 and is_language_token(tokens[0]))
        if first or token.startswith("▁") or token == "</s>":
            words.append("")
        words[-1] += token.removeprefix("▁")
        places.append(len(words) - 1)
    return words, places


def word_links(source_tokens: Sequence[str], target_tokens: Sequence[str], columns: Sequence[int]) -> dict:
    """Which words belong together, for `static/translate/words.js`.

    source_tokens, target_tokens: word pieces, both ending with </s>, which is left out, as is a language token in
    front of the source; columns: for every target piece the source piece it is aligned with. Returns a JSON value with
    the words of both sides and the linked pairs (source word, target word).
    """
    source, source_places = merge_words(source_tokens)
    target, target_places = merge_words(target_tokens)
    pairs = {(source_places[column], target_places[row]) for row, column in enumerate(columns)}
    ends = (len(source) - 1, len(target) - 1)
    first = int(is_language_token(source_tokens[0]))
    links = sorted([s - first, t] for s, t in pairs if first <= s != ends[0] and t != ends[1])
    return {"source": source[first:-1], "target": target[:-1], "links": links}


def legend(label_map: np.ndarray, names: Sequence[str], palette: np.ndarray) -> str:
    """HTML of the classes that occur in a label map, with colour, name and share of the picture, largest first.

    label_map: (H, W) integers; names: n class names; palette: (n, 3) uint8.
    """
    counts = np.bincount(np.asarray(label_map).ravel(), minlength=len(names))
    entries = []
    for label in np.argsort(-counts, kind="stable"):
        if counts[label] == 0:
            continue
        red, green, blue = (int(value) for value in palette[label])
        share = counts[label] / counts.sum()
        entries.append(
            f'<li><span class="swatch" style="background: rgb({red}, {green}, {blue})"></span>'
            f"{escape(names[label])} <small>{percent(share, 1)}</small></li>"
        )
    return f'<ul class="legend">{"".join(entries)}</ul>'
