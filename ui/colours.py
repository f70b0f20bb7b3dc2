"""The colours of every map and line, once, for the browser and for pictures drawn here.

Lightness changes one way only in the weights' ramps, so they read without colour too; blue and orange for signs and the
eight colours of heads (after Okabe and Ito 2008) can be told apart by colour-blind readers, and numbers stand beside
them.
"""

import json

import numpy as np

RAMPS = {  # from weight 0 to weight 1
    "light": [[255, 252, 247], [246, 214, 178], [222, 138, 88], [166, 66, 40], [74, 22, 32]],
    "dark": [[32, 28, 26], [84, 38, 34], [168, 72, 44], [228, 148, 92], [255, 238, 212]],
}
SIGNED = {  # from -1 over 0 to 1
    "light": [[0, 68, 136], [102, 160, 209], [252, 249, 244], [230, 145, 80], [153, 61, 0]],
    "dark": [[140, 200, 255], [50, 110, 165], [32, 28, 26], [190, 100, 40], [255, 200, 140]],
}
HEADS = {
    "light": ["#0072b2", "#d55e00", "#009e73", "#b0508c", "#a87900", "#3a9bd9", "#000000", "#7a6f00"],
    "dark": ["#56b4e9", "#ff8a4c", "#2fd3a2", "#e79fc8", "#ffb733", "#a9dcff", "#ffffff", "#f0e442"],
}


def paint(values: np.ndarray, ramp: list[list[int]]) -> np.ndarray:
    """Colours of values in [0, 1], (..., 3) uint8: between the ramp's colours, as `static/colours.js` does it."""
    colours = np.asarray(ramp, dtype=np.float64)
    place = np.clip(np.asarray(values, dtype=np.float64), 0, 1) * (len(colours) - 1)
    low = np.minimum(np.floor(place), len(colours) - 2).astype(int)
    blend = colours[low] + (colours[low + 1] - colours[low]) * (place - low)[..., None]
    return np.floor(blend + 0.5).astype(np.uint8)


def constants() -> str:
    """The same colours for the page's scripts."""
    tables = {"RAMPS": RAMPS, "SIGNED": SIGNED, "HEADS": HEADS}
    return "\n".join(f"const {name} = {json.dumps(value)};" for name, value in tables.items())
