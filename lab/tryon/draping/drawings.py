"""Draws draped people beforehand, so that training need not wait for them.

    python -m lab.tryon.draping.drawings --drapes drapes.npz --size 256 --count 4000 --out drawings

Run it twice and it goes on where it ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

from training.arguments import CommandLine, a_folder_to_write, an_existing_file, integer
from training.command import one_sentence
from vton.data.draped.draw import Drawing
from vton.data.draped.people import folder_name, load_people


def write_drawing(file: Path, drawing: Drawing) -> None:
    """Writes a drawing, finished or not at all; the warp to a quarter of a pixel of the photograph."""
    where = np.where(np.isnan(drawing.where), -1, np.round(drawing.where * 16)).astype(np.int16)
    part = file.with_suffix(".part")
    with part.open("wb") as out:
        np.savez(
            out,
            picture=cv2.imencode(".jpg", drawing.picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])[1].ravel(),
            parse=cv2.imencode(".png", drawing.parse)[1].ravel(),
            keypoints=drawing.keypoints,
            where=cv2.imencode(".png", where.view(np.uint16)[..., 0])[1].ravel(),
            where_y=cv2.imencode(".png", where.view(np.uint16)[..., 1])[1].ravel(),
            inside=np.packbits(drawing.inside),
        )
    part.replace(file)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Draw people beforehand."""
    options = CommandLine(prog="python -m lab.tryon.draping.drawings", description=main.__doc__)
    options.add_argument("--drapes", type=an_existing_file, default=None, help="file of drapes; else those that ship")
    options.add_argument("--size", type=integer(64, 2048), default=256, help="height; the width is 3/4 of it")
    options.add_argument("--split", default="train", choices=("train", "val"))
    options.add_argument("--count", type=integer(1), default=4000)
    options.add_argument("--out", type=a_folder_to_write, required=True, help="folder of drawings")
    arguments = options.parse_args(argv)
    size = (arguments.size, arguments.size * 3 // 4)
    people = load_people(size, arguments.split, str(arguments.drapes or ""))
    folder = arguments.out / folder_name(people.drapes, size, arguments.split)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(arguments.count):
        file = folder / f"{number}.npz"
        if not file.is_file():
            write_drawing(file, people.drawing(number)[0])
    print(f"{arguments.count} drawings are in {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
