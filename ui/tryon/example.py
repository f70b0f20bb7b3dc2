"""The photographs that the page offers, and the finished try-on that it opens with.

    python -m ui.tryon.example                     the stored try-on again, with the networks of now
    python -m ui.tryon.example finished --person NAME --garment NAME      of another pair
    python -m ui.tryon.example failures            the gallery of failures again
    python -m ui.tryon.example misaligned          the pairs whose garment fits least, for Compare

Photographs lie in `people/` and `garments/` of `assets/examples`, their credits in PHOTOGRAPHS.md there. The stored
try-on is `finished/`: every picture as WebP, label maps without loss, and what stands below them as JSON.
`misaligned.json` holds, of each person's pair with the largest misaligned share, the largest few.
"""

from __future__ import annotations

import base64
import io
import json
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from training import assets
from training.arguments import CommandLine
from training.command import one_sentence
from ui import theme
from ui.figures import percent

if TYPE_CHECKING:
    from vton import TryOn

PAIR = ("man-white-tee-office", "t-shirt-printed")
THUMBNAIL = (72, 96)  # width, height
SIZE = (512, 384)
LONGEST = 900  # of a stored picture
PAIR_SIZE = (256, 192)  # size at which pairs are compared by their misaligned share
MAX_PAIRS = 4  # pairs of `misaligned_pairs`
# The pictures that are stored without loss.
EXACT = "pose parse garment_mask agnostic_map segmentation warped_mask misalignment divided region"


class MisalignedPair(NamedTuple):
    """A pair of photographs, by name, and the share of the predicted cloth that the warped garment leaves open."""

    person: str
    garment: str
    share: float


class Failure(NamedTuple):
    """A pair that goes wrong. stage: the one at fault; map: its picture that shows the fault; text: what one sees."""

    person: str
    garment: str
    stage: str
    map: str
    title: str
    text: str


FAILURES = tuple(Failure(**one) for one in theme.data("tryon/failures.json"))


@dataclass(frozen=True)
class Photograph:
    """One photograph that can be chosen. shows: a few words; credit: its source and licence."""

    name: str
    path: Path
    shows: str
    credit: str


@dataclass(frozen=True)
class ExampleTryOn:
    """The stored try-on: its two photographs, its pictures by name, and what is said of it (`facts`)."""

    person: Path
    garment: Path
    pictures: dict[str, Path]
    facts: dict[str, Any]


@lru_cache(maxsize=2)
def photographs(kind: str) -> tuple[Photograph, ...]:
    """The photographs of a kind, "people" or "garments", in the order of their names."""
    folder = assets.examples_dir()
    rows = re.findall(
        rf"^\| `{kind}/([\w-]+)\.jpg`[^|]*\|([^|]+)\|(.*)\|$", (folder / "PHOTOGRAPHS.md").read_text(), re.M
    )
    credits_ = {name: (shows.strip(), _credit(kind, rest)) for name, shows, rest in rows}
    return tuple(
        Photograph(path.stem, path, *credits_.get(path.stem, (path.stem.replace("-", " "), "")))
        for path in sorted((folder / kind).glob("*.jpg"))
    )


def _credit(kind: str, rest: str) -> str:
    """Source and licence out of the last columns of a row of PHOTOGRAPHS.md."""
    if kind == "garments":
        return "clothing dataset, CC0 1.0"
    author, licence = (cell.strip() for cell in rest.split("|")[:2])
    return f"{author if author != 'as above' else 'Google, “Shrine”, 2018'}, {licence}".replace('"', "")


def photograph(kind: str, name: str) -> Photograph:
    """The photograph of a name. Raises ValueError with one sentence for a name that is not offered."""
    for one in photographs(kind):
        if one.name == name:
            return one
    raise ValueError("There is no such example; choose one of the pictures.")


def data_url(picture: Image.Image | np.ndarray, size: tuple[int, int], quality: int = 80) -> str:
    """A small WebP inside an address. size: (width, height) of the box that it fits into."""
    small = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    small = small.convert("RGB")
    small.thumbnail(size)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=quality)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


@lru_cache(maxsize=2)
def thumbnails(kind: str) -> dict[str, Any]:
    """Value of a strip of thumbnails for `static/tryon/strip.js`."""
    twice = (2 * THUMBNAIL[0], 2 * THUMBNAIL[1])  # sharp on a dense screen
    items = [
        {"name": p.name, "title": p.shows, "credit": p.credit, "url": data_url(Image.open(p.path), twice)}
        for p in photographs(kind)
    ]
    first = load_example().facts[{"people": "person", "garments": "garment"}[kind]]
    return {"items": items, "width": THUMBNAIL[0], "height": THUMBNAIL[1], "chosen": first}


@lru_cache(maxsize=1)
def misaligned_pairs() -> tuple[MisalignedPair, ...]:
    """The stored pairs of much misalignment, the most first."""
    rows = json.loads((assets.examples_dir() / "misaligned.json").read_text(encoding="utf-8"))
    return tuple(MisalignedPair(*row) for row in rows)


@lru_cache(maxsize=1)
def pairs() -> dict[str, Any]:
    """Value of the strip of `misaligned_pairs` pairs, each named "PERSON+GARMENT", with its share below."""
    items = []
    for row in misaligned_pairs():
        person, garment = photograph("people", row.person), photograph("garments", row.garment)
        both = [ImageOps.fit(Image.open(p.path).convert("RGB"), (144, 192)) for p in (person, garment)]
        picture = np.concatenate([np.asarray(one) for one in both], 1)
        title = f"{person.shows}, with: {garment.shows}"
        share = percent(row.share, 1)
        name = f"{row.person}+{row.garment}"
        items.append({"name": name, "title": title, "url": data_url(picture, (288, 192)), "below": share})
    return {"items": items, "width": 2 * THUMBNAIL[0], "height": THUMBNAIL[1]}


@lru_cache(maxsize=1)
def load_example() -> ExampleTryOn:
    """The stored try-on."""
    folder = assets.examples_dir() / "finished"
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    pictures = {path.stem: path for path in sorted(folder.glob("*.webp"))}
    person, garment = photograph("people", facts["person"]), photograph("garments", facts["garment"])
    return ExampleTryOn(person.path, garment.path, pictures, facts)


def _tryon() -> TryOn:
    from vton import TryOn

    return TryOn.from_pretrained("tryon-lite", device="cpu")


def _paths(person: str, garment: str) -> tuple[str, str]:
    return str(photograph("people", person).path), str(photograph("garments", garment).path)


def write(person: str, garment: str, target: Path) -> None:
    """Run the try-on of a pair and store it in `target`, a folder."""
    from ui.tryon import figures
    from vton import record

    result = _tryon().run(*_paths(person, garment), size=SIZE)
    target.mkdir(exist_ok=True)
    for name, picture in record.pictures(result).items():
        if name != "garment_photo":
            _write(picture, target / f"{name}.webp", name in EXACT.split())
    names = list(result.pictures())
    facts = {
        "person": person,
        "garment": garment,
        "settings": record.settings(result),
        "captions": {name: figures.caption(result, name) for name in names},
        "legends": {name: figures.legend(result, name) for name in names if name in figures.LEGENDS},
    }
    (target / "facts.json").write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _write(picture: np.ndarray, path: Path, exact: bool) -> None:
    image = Image.fromarray(picture)
    if not exact:
        image.thumbnail((LONGEST, LONGEST))
    image.save(path, "WEBP", quality=100 if exact else 82, lossless=exact, method=6)


def write_failures(target: Path) -> None:
    """Store of each pair of FAILURES photograph, garment, the map at fault and the result, side by side."""
    from vton.contact_sheet import fit_into
    from vton.inputs import photo

    tryon = _tryon()
    target.mkdir(exist_ok=True)
    for one in FAILURES:
        result = tryon.run(*_paths(one.person, one.garment), size=SIZE)
        around = [photo.crop(picture, result.frame, SIZE) for picture in (result.photo, result.result)]
        cells = [around[0], result.garment_photo, result.pictures()[one.map], around[1]]
        row = np.concatenate([fit_into(cell, (320, 240)) for cell in cells], 1)
        _write(row, target / f"{one.person}-{one.garment}.webp", False)


def write_misaligned_pairs(target: Path) -> None:
    """Run every person with every garment up to the misalignment, and store the largest share of each person's."""
    tryon, garments, most = _tryon(), photographs("garments"), []
    for person in photographs("people"):
        first = tryon.run(str(person.path), str(garments[0].path), size=PAIR_SIZE, until="misalignment")
        others = (tryon.change_garment(first, str(garment.path), until="misalignment") for garment in garments[1:])
        shares = [round(float(result.misaligned_share), 4) for result in (first, *others)]
        pairs = [MisalignedPair(person.name, garment.name, share) for garment, share in zip(garments, shares)]
        most.append(max(pairs, key=lambda one: one.share))
    rows = sorted(most, key=lambda one: -one.share)[:MAX_PAIRS]
    target.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def failures() -> list[tuple[Failure, Path]]:
    """The stored failures with their pictures."""
    return [(one, assets.examples_dir() / "failures" / f"{one.person}-{one.garment}.webp") for one in FAILURES]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Write `finished/`, `failures/` or `misaligned.json` of the shipped examples."""
    folder = assets.examples_dir()
    command = CommandLine(prog="python -m ui.tryon.example", description=main.__doc__)
    command.add_argument("what", nargs="?", default="finished", choices=("finished", "failures", "misaligned"))
    for option, folder_name, name in zip(("--person", "--garment"), ("people", "garments"), PAIR):
        names = [photograph.name for photograph in photographs(folder_name)]
        command.add_argument(option, default=name, choices=names, metavar="NAME", help="of the stored try-on")
    options = command.parse_args(argv)
    if options.what == "misaligned":
        write_misaligned_pairs(folder / "misaligned.json")
    elif options.what == "failures":
        write_failures(folder / "failures")
    else:
        write(options.person, options.garment, folder / "finished")
    return 0


if __name__ == "__main__":
    sys.exit(main())
