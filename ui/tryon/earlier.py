"""A visitor's earlier results as small pictures in the browser: nothing of them stays on this machine."""

import hashlib
from typing import Any

import numpy as np

from ui import theme
from ui.tryon.example import data_url
from ui.tryon.steps import on_white
from vton.options import ABOUT, DEFAULTS, Options
from vton.result import TryOnResult

PICTURE, THUMBNAIL = (288, 384), (96, 128)  # width, height of the result, and of the two photographs
MOST_OF_A_PICTURE, MOST_OF_A_THUMBNAIL = 27_000, 8_000  # characters of an address: 20 and 6 kB


def small(picture: np.ndarray, size: tuple[int, int], most: int) -> str:
    """A picture as an address of at most `most` characters.

    picture: (H, W[, 3 or 4]) uint8; size: (width, height) of the box that it fits into.
    """
    image = on_white(picture)
    while True:
        for quality in (80, 50, 20):
            url = data_url(image.copy(), size, quality)
            if len(url) <= most:
                return url
        size = (size[0] // 2, size[1] // 2)


def settings_line(options: Options) -> str:
    """The size, the seed, and what is not as usual, in words."""
    height, width = options.size
    words = [f"{height} × {width}", f"seed {options.seed}"]
    for name, about in ABOUT.items():
        value = getattr(options, name)
        if name not in ("size", "seed") and value != DEFAULTS[name]:
            label = next((label for label, choice in about.choices or () if choice == value), value)
            words.append(f"{about.label.lower()}: {'on' if value is True else 'off' if value is False else label}")
    return ", ".join(words)


def entry(result: TryOnResult) -> dict[str, Any] | None:
    """A finished result as the browser remembers it, None of an unfinished one.

    Its mark, the result and the two photographs as small pictures, and its settings in words; the browser adds the
    address of its zip. `static/tryon/stored_pictures.js` reads it.
    """
    if result.result is None:
        return None
    return {
        "id": hashlib.sha256(result.result.tobytes()).hexdigest()[:16],
        "picture": small(result.result, PICTURE, MOST_OF_A_PICTURE),
        "person": small(result.photo, THUMBNAIL, MOST_OF_A_THUMBNAIL),
        "garment": small(result.garment_photo, THUMBNAIL, MOST_OF_A_THUMBNAIL),
        "settings": settings_line(result.options),
    }


def strip() -> Any:
    """The component: its value is the entry of the result that is shown; a click on an earlier one is `recall`."""
    return theme.script_component(("tryon/stored_pictures.js", "tryon/earlier.js"), "earlier", "earlier")
