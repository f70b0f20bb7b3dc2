"""What one can take home from the Translate tab besides pictures: a map's numbers, and a page that needs no connection.

Everything here is written from the library's arrays, and every token is escaped for the format it goes into.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from transformer.insight import interpret
from transformer.insight.interpret import AttentionMap
from transformer.translator import Attention
from ui import figures, theme
from ui.heat_map import digits
from ui.translate.words import query_names

MAX_WEIGHTS = (
    2_000_000  # most weights that JSON and the page carry for all layers and kinds; else the shown layer alone
)


def query_labels(attention: Attention, kind: str, current: AttentionMap) -> list[str]:
    """What each row of a map does: "after Tier, choosing über"."""
    names = query_names(attention, kind)
    return [names[place] for place in current.row_places]


def cell_text(token: str) -> str:
    """A token that a spreadsheet will not take for a formula."""
    return f"'{token}" if len(token) > 1 and token[0] in "=+-@" else token


def table_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows of cells as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def write(path: Path, contents: dict[str, str | bytes]) -> list[Path]:
    """Writes files of one name and several endings: ending -> content; returns them."""
    files = [Path(f"{path}.{kind}") for kind in contents]
    for file, content in zip(files, contents.values()):
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return files


def csv_text(current: AttentionMap, queries: Sequence[str] = ()) -> str:
    """One map as CSV: a row for every query, a column for every key, each weight with all its digits.

    queries: what each row does, its token without them.
    """
    rows = zip(queries or current.rows, current.weights)
    head = ["query \\ key", *map(cell_text, current.columns)]
    return table_text([head, *([cell_text(query), *map(digits, weights)] for query, weights in rows)])


def _kinds(attention: Attention, kind: str, layer: int) -> dict[str, list[int]]:
    """Which layers of which kinds are carried along: all, or the shown one alone for a long sentence."""
    total = sum(getattr(attention, name).size for name in interpret.KINDS)
    if total <= MAX_WEIGHTS:
        return {name: list(range(getattr(attention, name).shape[0])) for name in interpret.KINDS}
    return {kind: [layer]}


def json_text(attention: Attention, current: AttentionMap, settings: dict[str, Any]) -> str:
    """The shown map, its settings, all tokens and the weights of all layers and heads (one layer if they are many)."""
    layers_of = _kinds(attention, settings["kind"], settings["layer"] - 1)
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
        "layers": {name: [layer + 1 for layer in layers] for name, layers in layers_of.items()},
        **{name: getattr(attention, name)[layers].tolist() for name, layers in layers_of.items()},
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
    text = theme.read(f"translate/{name}")
    return f"SCRIPTS[{json.dumps(name)}] = (element, props, trigger, watch) => {{\n{text}\n}};"


def html(
    attention: Attention,
    settings: dict[str, Any],
    source: str,
    translation: str,
    words: dict,
    axes: dict[str, tuple[str, str]],
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
        readings = [[figures.reading(one.weights, one.rows, one.columns) for one in row] for row in maps]
        weights = np.stack([[one.weights for one in row] for row in maps])
        data["kinds"][name] = {
            "weights": figures.floats(weights),
            "layers": layers,
            "heads": heads,
            "rows": maps[0][0].rows,
            "rowNames": query_labels(attention, name, maps[0][0]),
            "columns": maps[0][0].columns,
            "says": [
                [figures.reading_in_words(one, maps[0][0].rows, maps[0][0].columns) for one in row] for row in readings
            ],
            "marked": [[[one.row, one.column] for one in row] for row in readings],
            "axes": axes[name],
        }
    scripts = "\n".join(_script(name) for name in ("heat_map.js", "thumbnails.js", "lines.js", "words.js"))
    parts = {
        "TITLE": escape(f"Attention: {source[:60]}"),
        "SOURCE": escape(source),
        "TRANSLATION": escape(translation),
        "MODEL": escape(str(settings["model"])),
        "CSS": theme.css(),
        "DATA": figures.script_json(data),
        "SCRIPTS": f"{theme.common_script()}\nconst SCRIPTS = {{}};\n{scripts}",
    }
    return theme.fill_template(theme.read("translate/standalone.html"), parts)
