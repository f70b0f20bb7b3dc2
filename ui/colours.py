"""The colours of every map and line, once, for the browser and for pictures drawn here.

Lightness changes one way only in the weights' ramps, so they read without colour too; blue and orange for signs and the
eight colours of heads (after Okabe and Ito 2008) can be told apart by colour-blind readers, and numbers stand beside
them.
"""

import json
from pathlib import Path

import numpy as np

_TABLES = json.loads((Path(__file__).parent / "static" / "colours.json").read_text(encoding="utf-8"))
RAMPS = _TABLES["RAMPS"]  # from weight 0 to weight 1
SIGNED = _TABLES["SIGNED"]  # from -1 over 0 to 1
HEADS = _TABLES["HEADS"]


def paint(values: np.ndarray, ramp: list[list[int]]) -> np.ndarray:
    """Colours of values in [0, 1], (..., 3) uint8: between the ramp's colours, as `static/colours.js` does it."""
    colours = np.asarray(ramp, dtype=np.float64)
    place = np.clip(np.asarray(values, dtype=np.float64), 0, 1) * (len(colours) - 1)
    low = np.minimum(np.floor(place), len(colours) - 2).astype(int)
    blend = colours[low] + (colours[low + 1] - colours[low]) * (place - low)[..., None]
    return np.floor(blend + 0.5).astype(np.uint8)


def constants() -> str:
    """The same colours for the page's scripts."""
    return "\n".join(f"const {name} = {json.dumps(value)};" for name, value in _TABLES.items())
