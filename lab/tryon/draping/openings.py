"""The inside of the back above each garment's front neckline, as the garment reader sees it: masks, ID.png.

    python -m lab.tryon.draping.openings --data DIR --out OPENINGS

Run it twice and it goes on where it ended.
"""

from __future__ import annotations

import sys

import cv2
import numpy as np

from lab.tryon.draping.drape import PLACES, garment_rows
from training.arguments import CommandLine, a_folder_to_write, an_existing_folder
from training.command import one_sentence
from vton.inputs.garment import inside_of_back
from vton.inputs.reading import read_garment
from vton.pipeline import TryOn


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Write the mask of each garment's neck opening: 255 = inside of its back, all 0 where none is seen."""
    options = CommandLine(prog="python -m lab.tryon.draping.openings", description=main.__doc__)
    options.add_argument(
        "--data", type=an_existing_folder, required=True, help="folder of garments/ and garments_more/"
    )
    options.add_argument("--out", type=a_folder_to_write, required=True, help="folder of masks")
    arguments = options.parse_args(argv)
    rows = garment_rows(arguments.data)
    arguments.out.mkdir(parents=True, exist_ok=True)
    reader = TryOn.from_pretrained("tryon-lite").garment
    pictures = {folder: picture for folder, picture, _ in PLACES}
    for name, row, mask_file in rows:
        file = arguments.out / f"{row['id']}.png"
        if file.is_file():
            continue
        folder = name.split("/")[0]
        picture = cv2.imread(str(arguments.data / folder / pictures[folder] / f"{row['id']}.jpg"))[..., ::-1]
        mask = cv2.imread(str(mask_file), cv2.IMREAD_GRAYSCALE) > 127
        opening = inside_of_back(read_garment(reader, np.ascontiguousarray(picture), mask), mask)
        cv2.imwrite(str(file), 255 * opening.astype(np.uint8))
    print(f"The neck openings of {len(rows)} garments are in {arguments.out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
