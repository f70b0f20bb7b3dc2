"""bertviz's head view and model view without a connection: its own scripts, with d3 and jQuery from Python packages.

bertviz's scripts ask require.js for d3 and jQuery at an outside address. Here both lie in the document itself, and a
few lines stand in for require.js. The document runs in a sandboxed frame of its own, so it can reach nothing of the
page.
"""

from functools import lru_cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from transformer.insight import interpret
from transformer.translator import Attention
from ui import figures, theme
from ui.translate.words import plain

SCRIPTS = {"head": "head_view.js", "model": "model_view.js"}
MAX_LINES = 60_000  # bertviz makes an element of every weight that it shows; more would freeze the browser


def _package_file(package: str, *parts: str) -> str:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"bertviz needs the package {package}; install the requirements and start again.")
    return Path(list(spec.submodule_search_locations)[0], *parts).read_text(encoding="utf-8")


@lru_cache
def _scripts(view: str) -> tuple[str, str]:
    """(libraries, bertviz's script with its marker PYTHON_PARAMS) of one view."""
    d3 = _package_file("mpld3", "js", "d3.v5.min.js")
    libraries = d3, _package_file("xstatic.pkg.jquery", "data", "jquery.min.js")
    return "\n".join(f"<script>{text}</script>" for text in libraries), _package_file("bertviz", SCRIPTS[view])


def document(attention: Attention, kind: str, view: str, layer: int = 0, head: int | None = None) -> str:
    """A whole HTML document with bertviz's view of one kind of attention; it loads nothing from any other address.

    view: "head" (all layers in a list, this one shown first) or "model" (all layers and heads at once); layer from 0;
    head: the one that the head view shows at first, None for all.
    Weights are written with four digits. A long sentence gets this one layer in the model view; where even one layer is
    too much for bertviz, this raises ValueError.
    """
    rows, columns = interpret.labels(attention, kind)
    maps = getattr(attention, kind)
    layers, heads = maps.shape[:2]
    one_layer = heads * len(rows) * len(columns)
    if one_layer > MAX_LINES:
        raise ValueError(
            f"bertviz would draw {one_layer:,} lines for {len(rows)} by {len(columns)} pieces, which freezes a "
            "browser; look at the map or the lines instead, or at a shorter sentence."
        )
    indices = [layer] if view == "model" and one_layer * layers > MAX_LINES else list(range(layers))
    libraries, script = _scripts(view)
    data = {
        "name": kind.capitalize(),
        "attn": np.round(maps[indices].astype(np.float64), 4).tolist(),
        "left_text": [plain(token) for token in rows],
        "right_text": [plain(token) for token in columns],
    }
    params = {
        "attention": [data],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": layer,
        "heads": None if head is None else [head],
        "include_layers": indices,
        "include_heads": list(range(heads)),
        "total_heads": heads,
        "display_mode": "light",
    }
    script = script.replace("PYTHON_PARAMS", figures.script_json(params), 1)  # later ones stand in a comment
    select = '<label>Layer: <select id="layer"></select></label>' if view == "head" else ""
    parts = {"LIBRARIES": libraries, "SCRIPT": script, "SELECT": select, "VIEW": view}
    return theme.fill_template(theme.read("translate/bertviz.html"), parts)


def frame(attention: Attention, kind: str, view: str, layer: int = 0, head: int | None = None) -> str:
    """HTML of a sandboxed frame with `document` in it; every character of the document is escaped."""
    rows, columns = interpret.labels(attention, kind)
    tokens, layers = max(len(rows), len(columns)), getattr(attention, kind).shape[0]
    heads = getattr(attention, kind).shape[1]
    height = 80 + 23 * tokens if view == "head" else 90 + max(layers * int(tokens * 84 / heads + 10), 18 * tokens + 55)
    title = f"bertviz, {view} view of the {kind} attention"
    return (
        f'<iframe class="bertviz bertviz-{view}" sandbox="allow-scripts" title="{title}" '
        f'style="height: {min(height, 1400)}px" '
        f'srcdoc="{escape(document(attention, kind, view, layer, head))}"></iframe>'
    )
