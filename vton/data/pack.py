"""Training photos in one packed file, and what is drawn from it.

    people:    photographs with parse, joints, person mask, carried mask and a suggested 3:4 frame
    garments:  product photos with masks

A pack holds the encoded pictures, so it is small and quick to read: `python -m vton.data --people DIR --garments DIR
--out FILE`. The layout of DIR is the one of the VITON-HD data set, with `person-mask/` and `carried/` beside it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from training.arguments import CommandLine, a_file_to_write, an_existing_folder, integer
from training.command import one_sentence
from vton import labels
from vton.geometry import move_points, warp_picture
from vton.inputs import pose
from vton.labels import read_indices


@dataclass
class Person:
    """One photograph."""

    name: str
    image: np.ndarray  # (H,W,3) uint8 RGB
    parse: np.ndarray  # (H,W) uint8 LIP
    person_mask: np.ndarray  # (H,W) float32 in [0, 1]
    carried: np.ndarray  # (H,W) bool, True = bag or the like, out of every loss
    keypoints: np.ndarray  # (25,3) in its pixels
    frame: np.ndarray  # (x0,y0,x1,y1) in its pixels


@dataclass
class Product:
    """One garment."""

    name: str
    cloth: np.ndarray  # (H,W,3) uint8 RGB on white
    mask: np.ndarray  # (H,W) uint8 0/255
    sleeves: str  # as in attributes.tsv, "" = not known


@contextlib.contextmanager
def only(kind: str, file: Path) -> Iterator[None]:
    """Raises ValueError with one sentence for a file that is read here and is no `kind`."""
    try:
        yield
    except Exception as error:  # numpy, zipfile and its decompressors have one of their own for every kind of damage
        raise ValueError(f"'{file.name}' is not a {kind} ({error}).") from None


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, by name."""
    with np.load(file, allow_pickle=False) as data:
        return {key: data[key] for key in data.files}


class PackedFile:
    """Arrays of one .npz file; of encoded pictures all of a kind one after the other, and where each ends.

    `missing` and `foreign` end the sentences about a file that is not there or not of this kind; `read` makes of the
    arrays what a subclass needs.
    """

    missing = foreign = ""

    def __init__(self, file: Path | str):
        file = Path(file)
        if not file.is_file():
            raise FileNotFoundError(self.missing.format(f"'{file.name}'"))
        with only(self.foreign, file):
            self.arrays = read_arrays(file)
            self.read()

    def read(self) -> None:
        """Raises KeyError or ValueError for arrays of another kind of file."""

    def content(self, kind: str, index: int) -> np.ndarray:
        """One encoded picture or record, (n,) uint8."""
        ends = self.arrays[f"{kind}_ends"]
        return self.arrays[kind][int(ends[index - 1]) if index else 0 : int(ends[index])]

    def picture(self, kind: str, index: int) -> np.ndarray:
        """One picture, decoded: (H, W, 3) uint8 RGB."""
        return cv2.imdecode(self.content(kind, index), cv2.IMREAD_COLOR)[..., ::-1]

    def map(self, kind: str, index: int) -> np.ndarray:
        """One map, decoded: (H, W) uint8."""
        return cv2.imdecode(self.content(kind, index), cv2.IMREAD_GRAYSCALE)


class Pack(PackedFile):
    """Reads a packed file. Everything is decoded on demand; `people(split)` and `garments(split)` give indices."""

    missing = "There is no packed file {}; make one with python -m vton.data."
    foreign = "packed training file"

    def read(self) -> None:
        """Names of people and garments."""
        self.names, self.products = ([str(name) for name in self.arrays[key]] for key in ("names", "products"))

    def people(self, split: str) -> list[int]:
        """Indices of the people of 'train' or 'val'."""
        return [i for i, s in enumerate(self.arrays["split"]) if str(s) == split]

    def garments(self, split: str) -> list[int]:
        """Indices of the garments of 'train' or 'val'; every tenth garment is for validation."""
        return [i for i in range(len(self.products)) if (i % 10 == 0) == (split == "val")]

    def person(self, index: int) -> Person:
        """A person's picture, maps and joints, decoded."""
        return Person(
            self.names[index],
            self.picture("image", index),
            self.map("parse", index),
            self.map("person_mask", index).astype(np.float32) / 255,
            self.map("carried", index) > 127,
            self.arrays["keypoints"][index].copy(),
            self.arrays["frame"][index].copy(),
        )

    def product(self, index: int) -> Product:
        """A garment's picture and mask, decoded."""
        sleeves = str(self.arrays["sleeves"][index]) if "sleeves" in self.arrays else ""
        return Product(self.products[index], self.picture("cloth", index), self.map("cloth_mask", index), sleeves)


PICTURE_KINDS = ("image", "parse", "person_mask", "carried", "cloth", "cloth_mask")  # kinds of pictures
# Of pictures and masks: VITON-HD's names, and short ones.
GARMENT_FOLDERS = (("cloth", "cloth-mask"), ("image", "mask"))


def pack(
    people: Path, garments: Path | Sequence[Path] | None, out: Path, height: int = 432, garment_height: int = 256
) -> dict[str, Any]:
    """Writes the packed file and returns how many people and garments it holds, and what was skipped.

    people: folder with image/, image-parse/, openpose-json/, person-mask/, carried/, viton_crop.tsv, train.txt,
        val.txt.
    garments: folders with cloth/ and cloth-mask/ or image/ and mask/, and with attributes.tsv where sleeves are
        known.
    height: height of the packed photographs in pixels.

    Raises FileNotFoundError or ValueError with one sentence for a missing folder or list and when nothing can be
    packed; then no file is written.
    """
    _check_layout(people)
    folders = [garments] if isinstance(garments, Path) else garments or []
    cloth_files = [file for folder in folders for file in _cloth_files(folder)]
    attributes = {name: row for folder in folders for name, row in read_attributes(folder).items()}
    arrays: dict[str, list[np.ndarray]] = {kind: [] for kind in PICTURE_KINDS}
    rows, products, skipped = [], [], []

    def keep(pictures: dict[str, np.ndarray]) -> None:
        for kind, blob in pictures.items():
            arrays[kind].append(blob)

    boxes = _boxes(people / "viton_crop.tsv")
    for split in ("train", "val"):
        for name in (people / f"{split}.txt").read_text().split():
            try:
                pictures, points, frame = _read_person(people, name, boxes.get(name), height)
            except (ValueError, OSError) as error:
                skipped.append(f"{name}: {error}")
                continue
            rows.append((name, split, points, frame))
            keep(pictures)
    for file, mask_file in cloth_files:
        try:
            keep(_read_garment(file, mask_file, garment_height))
        except ValueError as error:
            skipped.append(f"{file.name}: {error}")
            continue
        products.append(file.stem)
    if not rows:
        reason = f"; the first reason: {skipped[0]}" if skipped else ": train.txt and val.txt hold no names"
        raise ValueError(f"No photograph of '{people.name}' can be packed{reason}.")
    names, splits, keypoints, frames = zip(*rows)
    columns = {
        "names": np.array(names),
        "split": np.array(splits),
        "products": np.array(products, dtype=str),
        "sleeves": np.array([attributes.get(name, {}).get("sleeves", "") for name in products], dtype=str),
        "keypoints": np.array(keypoints, np.float32),
        "frame": np.array(frames, np.float32),
    }
    _write(out, columns, arrays)
    return {"people": len(names), "garments": len(products), "skipped": skipped}


def _read_garment(file: Path, mask_file: Path | None, height: int) -> dict[str, np.ndarray]:
    """A garment's encoded picture and mask at 3:4. Raises ValueError for unusable files."""
    cloth = cv2.imread(str(file))
    mask = None if mask_file is None else cv2.imread(str(mask_file), cv2.IMREAD_GRAYSCALE)
    if cloth is None or mask is None or cloth.shape[:2] != mask.shape:
        raise ValueError("picture or mask cannot be read, or they differ in size")
    size = (height * 3 // 4, height)
    return {
        "cloth": _encode(".jpg", cv2.resize(cloth, size, interpolation=cv2.INTER_AREA), 85),
        "cloth_mask": _encode(".png", cv2.resize(mask, size, interpolation=cv2.INTER_AREA)),
    }


def _check_layout(people: Path) -> None:
    """Raises FileNotFoundError with one sentence for a folder or a list that is not there."""
    for folder in ("image", "image-parse", "openpose-json", "person-mask", "carried"):
        if not (people / folder).is_dir():
            raise FileNotFoundError(f"'{people.name}' has no folder {folder}.")
    for file in ("viton_crop.tsv", "train.txt", "val.txt"):
        if not (people / file).is_file():
            raise FileNotFoundError(f"'{people.name}' has no file {file}.")


def _boxes(file: Path) -> dict[str, list[float]]:
    """The frame x0, y0, x1, y1 of each photograph by its name, out of viton_crop.tsv."""
    rows = (row.split("\t") for row in file.read_text().splitlines()[1:])
    return {row[0]: [float(value) for value in row[1:5]] for row in rows}


def _read_person(
    people: Path, name: str, box: list[float] | None, height: int
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """One photograph at `height`: its encoded pictures by kind, keypoints (25, 3) and frame (4,).

    Raises ValueError or OSError that says what is wrong with its files.
    """
    image = cv2.imread(str(people / "image" / f"{name}.jpg"))
    if image is None:
        raise ValueError("the picture cannot be read")
    maps = {
        "parse": read_indices(people / "image-parse" / f"{name}.png"),
        "person_mask": read_indices(people / "person-mask" / f"{name}.png"),
        "carried": read_indices(people / "carried" / f"{name}.png"),
    }
    points = pose.load_openpose_json(people / "openpose-json" / f"{name}_keypoints.json")
    parse = maps["parse"]
    if parse.shape != image.shape[:2]:
        raise ValueError(f"picture {image.shape[:2]} and parse {parse.shape} differ in size")
    if parse.max() >= len(labels.LIP):
        raise ValueError(f"the parse holds label {parse.max()}, the largest known is {len(labels.LIP) - 1}")
    for kind, folder in (("person_mask", "person-mask"), ("carried", "carried")):
        if maps[kind].shape != parse.shape:
            raise ValueError(f"picture {parse.shape} and {folder} {maps[kind].shape} differ in size")
    if box is None:
        raise ValueError("viton_crop.tsv holds no frame for it")
    scale = height / image.shape[0]
    size = (round(image.shape[1] * scale), height)
    points[:, :2] *= (size[0] / image.shape[1], scale)
    maps["carried"] = (maps["carried"] > 0).astype(np.uint8) * 255
    pictures = {"image": _encode(".jpg", cv2.resize(image, size, interpolation=cv2.INTER_AREA), 85)}
    for kind, values in maps.items():
        pictures[kind] = _encode(".png", cv2.resize(values, size, interpolation=cv2.INTER_NEAREST))
    return pictures, points, np.array(box) * scale


def _write(out: Path, columns: dict[str, np.ndarray], arrays: dict[str, list[np.ndarray]]) -> None:
    """Writes the packed file, whole or not at all. arrays: the encoded pictures of each kind."""
    for kind, blobs in arrays.items():
        columns[kind] = np.concatenate(blobs) if blobs else np.zeros(0, np.uint8)
        columns[f"{kind}_ends"] = np.cumsum([len(b) for b in blobs], dtype=np.int64)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part.npz")
    try:
        np.savez(part, **columns)
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)


def _cloth_files(folder: Path) -> list[tuple[Path, Path | None]]:
    """Pictures of garments in a folder and their masks (None = missing), in the order of their names."""
    for pictures, masks in GARMENT_FOLDERS:
        if (folder / pictures).is_dir() and (folder / masks).is_dir():
            return [
                (file, next((folder / masks).glob(f"{file.stem}.*"), None))
                for file in sorted((folder / pictures).glob("*.jpg"))
            ]
    missing = next(name for name in GARMENT_FOLDERS[0] if not (folder / name).is_dir())
    raise FileNotFoundError(f"'{folder.name}' has no folder {missing}.")


def read_attributes(folder: Path, table: str = "attributes.tsv") -> dict[str, dict[str, str]]:
    """Rows of a folder's table (header line, tabs) by id; empty where there is none."""
    file = folder / table
    if not file.is_file():
        return {}
    header, *rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line)
    return {row["id"]: row for row in (dict(zip(header, values)) for values in rows) if "id" in row}


def _encode(kind: str, picture: np.ndarray, quality: int | None = None) -> np.ndarray:
    ok, blob = cv2.imencode(kind, picture, [cv2.IMWRITE_JPEG_QUALITY, quality] if quality else [])
    if not ok:
        raise ValueError(f"A picture of shape {picture.shape} could not be encoded as {kind}.")
    return blob.reshape(-1)


# -- a training picture ------------------------------------------------------------------------------


def shift_frame(frame: np.ndarray, rng: np.random.Generator, shift: float, growth: float) -> np.ndarray:
    """A frame (x0, y0, x1, y1) beside the given one: by shares of its width, and larger or smaller."""
    centre = (frame[:2] + frame[2:]) / 2 + rng.normal(0, shift, 2) * (frame[2] - frame[0])
    half = (frame[2:] - frame[:2]) / 2 * np.exp(rng.normal(0, growth))
    return np.concatenate([centre - half, centre + half])


def maps_in_frame(
    person: Person, matrix: np.ndarray, size: tuple[int, int], mirror: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parse (H, W), carried mask (H, W) bool and keypoints (25, 3) of a person through an affine matrix onto `size`."""
    parse = warp_picture(person.parse, matrix, size, nearest=True)
    carried = warp_picture(person.carried.astype(np.uint8), matrix, size, nearest=True) > 0
    keypoints = move_points(person.keypoints, matrix, mirror)
    return labels.FLIP_LIP[parse] if mirror else parse, carried, keypoints


def turn_hue(picture: np.ndarray, rng: np.random.Generator, least: float, spread: float) -> np.ndarray:
    """CIELAB turned about its lightness, its colours weaker by `least` to stronger by 1.6 and moved by a deviation of
    `spread`: (H, W, 3) uint8 -> float32 in [0, 255].
    """
    lab = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    angle, gain = rng.uniform(0, 2 * np.pi), rng.uniform(least, 1.6)
    turn = gain * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], np.float32)
    lab[..., 1:] = lab[..., 1:] @ turn.T + rng.normal(0, spread, 2).astype(np.float32)
    return np.clip(cv2.cvtColor(lab, cv2.COLOR_Lab2RGB) * 255, 0, 255)


def change_colours(image: np.ndarray, rng: np.random.Generator, strength: float = 1.0) -> np.ndarray:
    """Random exposure, contrast, saturation, tint and gamma; (H, W, 3) uint8 in and out."""
    x = ((np.arange(256, dtype=np.float32) / 255) ** np.float32(np.exp(rng.normal(0, 0.18 * strength))))[image]
    grey = x.mean(2, keepdims=True)
    x = grey + (x - grey) * np.float32(np.exp(rng.normal(0, 0.25 * strength)))
    x = (x - 0.5) * np.float32(np.exp(rng.normal(0, 0.15 * strength))) + np.float32(
        0.5 + rng.normal(0, 0.05 * strength)
    )
    x = x * np.exp(rng.normal(0, 0.06 * strength, 3)).astype(np.float32)
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


def degrade(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sometimes a blur, a coarser grid, noise or JPEG blocks, as phone pictures have them."""
    if rng.random() < 0.25:
        image = cv2.GaussianBlur(image, (0, 0), rng.uniform(0.3, 1.4))
    if rng.random() < 0.15:
        image = np.clip(image + rng.normal(0, rng.uniform(2, 10), image.shape), 0, 255).astype(np.uint8)
    if rng.random() < 0.25:
        blob = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(25, 80))])[1]
        image = cv2.imdecode(blob, cv2.IMREAD_COLOR)
    return image


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=an_existing_folder, required=True, metavar="DIR")
    parser.add_argument("--garments", type=an_existing_folder, nargs="+", metavar="DIR")
    parser.add_argument("--out", type=a_file_to_write(), required=True, metavar="FILE")
    parser.add_argument("--height", type=integer(64, 4096), default=432, help="height of the packed photographs")
    parser.add_argument("--garment-height", type=integer(64, 4096), default=256)
    options = parser.parse_args(argv)
    report = pack(options.people, options.garments, options.out, options.height, options.garment_height)
    for line in report["skipped"]:
        print(f"skipped {line}", file=sys.stderr)
    print(f"{report['people']} people, {report['garments']} garments, {options.out.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
