"""What stands above the tabs: what the page is, in a sentence, and three pictures that lead to its parts.

Each picture is the program's own work: the map of the sentence that the page opens with, the stored try-on, and a
density that a game has learned. `python -m ui.first` plays that game again, which is due when gan.laboratory changes.
"""

import json
from html import escape
from typing import NamedTuple

import numpy as np
from PIL import Image

from ui import colours, heat_map, theme
from ui.services import Services
from ui.translate import opening
from ui.translate.words import plain
from ui.tryon import example

FILE = theme.STATIC / "first" / "density.json"
ITERATIONS = 1600  # of Algorithm 1; the densities are then 0.03 nats apart by the Jensen-Shannon divergence
SENTENCE = (
    "Three neural networks to use and to take apart: one translates, one dresses people in photographs, one learns to "
    "imitate data."
)
SIDE = 80  # pixels of a picture as it is shown
LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "ko": "한국어"}  # of the page, see static/language.js


class Picture(NamedTuple):
    """One picture. tab: id of the page's tab that it leads to; alt: what it shows; drawing: HTML."""

    tab: str
    title: str
    words: str
    alt: str
    drawing: str


def map_picture(services: Services) -> Picture | None:
    """The last cross-attention of the sentence that the page opens with; None if its translator is another one."""
    opening_translation = opening.load(services)
    if opening_translation is None:
        return None
    weights = opening_translation.attention.cross[-1].mean(0)[:, 1:]  # without the token that asks for the language
    rows, columns = weights.shape
    row, column = np.unravel_index(int(weights[:-1, :-1].argmax()), (rows - 1, columns - 1))
    cells = "".join(
        f'<img class="first-map first-{shade}" src="{heat_map.data_url(colours.paint(weights, ramp))}" alt="">'
        for shade, ramp in colours.RAMPS.items()
    )
    words = (
        plain(opening_translation.attention.target_tokens[row]),
        plain(opening_translation.attention.source_tokens[column + 1]),
    )
    return Picture(
        "translate",
        "Translate",
        "and see which word looks at which",
        f"A map of attention: “{words[0]}” gives {weights[row, column]:.2f} to “{words[1]}”.",
        cells,
    )


def try_on_picture() -> Picture:
    """The stored try-on: photograph, garment, result."""
    example_try_on = example.load_example()
    pictures = (
        _waist_up(Image.open(example_try_on.person)),
        Image.open(example_try_on.garment),
        _waist_up(Image.open(example_try_on.pictures["result"])),
    )
    images = [f'<img src="{example.data_url(one, (2 * SIDE, 2 * SIDE))}" alt="">' for one in pictures]
    return Picture(
        "try-on",
        "Try on",
        "a garment, and follow it stage by stage",
        "A man in a white T-shirt, a black one, and the man in the black one.",
        f'{images[0]}<span aria-hidden="true">+</span>{images[1]}<span aria-hidden="true">=</span>{images[2]}',
    )


def _waist_up(picture: Image.Image) -> Image.Image:
    """The upper middle of a photograph of a whole person."""
    width, height = picture.size
    return picture.crop((width // 5, 0, width - width // 5, min(height, width * 3 // 4)))


def density_picture() -> Picture:
    """The data's density, what the generator made of it, and the discriminator between them, as in Figure 1."""
    game = json.loads(FILE.read_text(encoding="utf-8"))
    most = 1.08 * max(*game["data"], *game["generated"])

    def path(values: list[float], top: float) -> str:
        step = 120 / (len(values) - 1)
        return "M" + " L".join(f"{step * i:.1f} {86 - 80 * value / top:.1f}" for i, value in enumerate(values))

    return Picture(
        "gan",
        "GAN",
        "two networks at play, checked against theory",
        f"The density of the data and that of the generator after {game['iterations']:,} iterations, and D near ½.",
        '<svg viewBox="0 0 120 88" preserveAspectRatio="none">'
        f'<path class="first-data" d="{path(game["data"], most)} L120 86 L0 86 Z"/>'
        f'<path class="first-generated" d="{path(game["generated"], most)}"/>'
        f'<path class="first-measured" d="{path(game["measured"], 1.0)}"/></svg>',
    )


def heading(services: Services) -> str:
    """HTML of the page's head."""
    pictures = [one for one in (map_picture(services), try_on_picture(), density_picture()) if one is not None]
    links = "".join(
        f'<a class="first-link first-{one.tab}" href="#tab={one.tab}">'
        f'<span class="first-drawing" role="img" aria-label="{escape(one.alt)}">{one.drawing}</span>'
        f'<span class="first-words"><b>{one.title}</b> {one.words}</span></a>'
        for one in pictures
    )
    languages = "".join(
        f'<button type="button" lang="{code}" data-language="{code}" aria-pressed="{str(code == "en").lower()}">{name}'
        "</button>"
        for code, name in LANGUAGES.items()
    )
    return (
        '<header class="masthead">'
        f'<div class="languages" role="group" aria-label="Language" translate="no">{languages}</div>'
        '<div class="first-about"><h1 class="wordmark" translate="no">Atelier</h1>'
        f'<p class="tagline">{SENTENCE}</p></div>'
        f'<nav class="first-pictures" aria-label="What there is">{links}</nav></header>'
    )


def main() -> None:
    """Play the game again and keep its densities."""
    from gan.laboratory import Laboratory

    game = Laboratory("line")
    game.advance(ITERATIONS)
    densities = game.picture()
    values = {
        "iterations": game.iteration,
        **{
            name: [round(float(value), 3) for value in densities[name][::3]]
            for name in ("data", "generated", "measured")
        },
    }
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(values) + "\n", encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
