"""Packs bodies, skins, hair, garment pictures and records into the one file that `vton.data.draped.pack` reads.

python -m lab.tryon.draping.pack --records DIR --data DIR --openings DIR --studio studio.npz --out drapes.npz
    [--megabytes 12]
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from pathlib import Path

import cv2
import numpy as np

from lab.tryon.draping.encode import encode
from training.arguments import CommandLine, a_file_to_write, a_number, an_existing_file, an_existing_folder
from training.command import one_sentence
from vton.data.draped.draw import FEMALE_HAIR, MALE_HAIR
from vton.data.draped.pack import ATTRIBUTES
from vton.data.pack import only, read_arrays

PLACES = {"garments": ("cloth", "cloth-mask"), "garments_more": ("image", "mask")}
LOSSLESS = 101  # OpenCV's quality of WebP that keeps every pixel
NAMES, OVERHEAD = 64, 8192  # bytes at most of a record's names and ends, and of the file's own tables


def join_bytes(pieces: list[bytes], name: str) -> dict[str, np.ndarray]:
    """Pieces of bytes as one array, and where each ends."""
    ends = np.cumsum([len(piece) for piece in pieces])
    return {name: np.frombuffer(b"".join(pieces), np.uint8), name + "_ends": ends.astype(np.int64)}


def garment_rows(data: Path) -> dict[str, dict[str, str]]:
    """Attributes of the garments under `data`, by "folder/id"."""
    rows: dict[str, dict[str, str]] = {}
    for folder in PLACES:
        with (data / folder / "attributes.tsv").open(encoding="utf-8", newline="") as table:
            rows |= {f"{folder}/{row['id']}": row for row in csv.DictReader(table, delimiter="\t")}
    return rows


def garment_of(name: str, data: Path, openings: Path, quality: int) -> tuple[bytes, bytes]:
    """Picture and masks (255, and 128 on the inside of the back) of a garment."""
    folder, own = name.split("/")
    pictures, masks = PLACES[folder]
    picture = cv2.imread(str(data / folder / pictures / f"{own}.jpg"))
    mask = cv2.imread(str(data / folder / masks / f"{own}.png"), cv2.IMREAD_GRAYSCALE) > 127
    file = openings / f"{own}.png"
    behind = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) > 127 if file.is_file() else np.zeros_like(mask)
    both = np.where(mask, np.where(behind, 128, 255), 0).astype(np.uint8)
    return webp(picture, quality), webp(both, LOSSLESS)


def webp(picture: np.ndarray, quality: int) -> bytes:
    """A picture as WebP."""
    return cv2.imencode(".webp", picture, [cv2.IMWRITE_WEBP_QUALITY, quality])[1].tobytes()


def drawable_hair(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a studio without hair that no drawing wears."""
    worn = FEMALE_HAIR + MALE_HAIR
    return {key: array for key, array in arrays.items() if not key.startswith("hair:") or key.split(":")[1] in worn}


def pack(records: Path, data: Path, openings: Path, studio: Path, most: float | None, quality: int) -> dict:
    """The arrays of a packed file: all records, or as many as fit into `most` bytes, first one of each garment."""
    with only("file of bodies", studio):
        arrays = drawable_hair(read_arrays(studio))
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    drapes: list[tuple[str, bytes]] = []
    garments: dict[str, tuple[bytes, bytes]] = {}
    size, rows = len(out.getvalue()) + OVERHEAD, garment_rows(data)
    for name, file in in_turn(sorted(records.glob("*.npz")), rows):
        with only("record of a drape", file):
            content = encode(read_arrays(file))
        new = garments.get(name) or garment_of(name, data, openings, quality)
        size += len(content) + NAMES + (0 if name in garments else len(new[0]) + len(new[1]))
        if most and size > most:
            break
        garments[name] = new
        drapes.append((name, content))
    names = sorted(garments)
    arrays |= join_bytes([garments[name][0] for name in names], "cloth")
    arrays |= join_bytes([garments[name][1] for name in names], "masks")
    arrays |= join_bytes([content for _, content in drapes], "records")
    arrays |= {key: np.array([rows[name][key] for name in names]) for key in ATTRIBUTES}
    return arrays | {"garments": np.array(names), "worn": np.array([name for name, _ in drapes])}


def in_turn(files: list[Path], rows: dict[str, dict[str, str]]) -> list[tuple[str, Path]]:
    """Garment and file of the first record of every garment, then of the second ones, and so on, each time in an order
    of chance, garments with good masks first. rows: as of `garment_rows`.
    """
    names = {name.split("/")[1]: name for name in rows}
    turns: dict[str, int] = {}
    keys = []
    for file in files:
        own = file.stem.rsplit("-", 2)[0]
        turns[own] = turns.get(own, 0) + 1
        bad = rows[names[own]]["mask"] == "bad"
        keys.append((turns[own], bad, hashlib.sha256(file.stem.encode()).hexdigest(), names[own], file))
    return [(name, file) for _, _, _, name, file in sorted(keys)]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Pack records with all that is needed to draw them."""
    options = CommandLine(prog="python -m lab.tryon.draping.pack", description=main.__doc__)
    options.add_argument("--records", type=an_existing_folder, required=True, help="folder of lab.tryon.draping.drape")
    options.add_argument(
        "--data", type=an_existing_folder, required=True, help="folder of garments/ and garments_more/"
    )
    options.add_argument("--openings", type=an_existing_folder, required=True, help="folder of neck openings, ID.png")
    options.add_argument("--studio", type=an_existing_file, required=True, help="file of lab.tryon.draping.anatomy")
    options.add_argument("--out", type=a_file_to_write(".npz"), required=True, help="file to write, .npz")
    options.add_argument("--megabytes", type=a_number(above=0), help="the file's size at most; without it all records")
    arguments = options.parse_args(argv)
    most = arguments.megabytes * 1e6 if arguments.megabytes else None
    quality = 75 if most else 92
    arrays = pack(arguments.records, arguments.data, arguments.openings, arguments.studio, most, quality)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out, **arrays)
    count, kinds = len(arrays["worn"]), len(arrays["garments"])
    print(f"Packed {count} drapes of {kinds} garments, {arguments.out.stat().st_size / 1e6:.1f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
