"""`python -m vton.prepare PHOTOS --out DIR`: from photos to a set that `vton.train --pack DIR/pack.npz` reads.

PHOTOS is a folder of photos of people, with product photos in PHOTOS/cloth where there are some, or a data set in the
layout of VITON-HD (image/, image-parse*/, openpose*json/, cloth/, cloth-mask/). What a set does not bring is made:
pose, parse and masks by this project's own stages. A second start goes on where the first one ended; files that cannot
be used are skipped, listed at the end and in DIR/skipped.txt.
"""

import functools
import glob
import json
import re
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from training.arguments import CommandLine, a_folder_to_write, a_number, an_existing_folder, integer
from training.assets import model_or_dir
from training.command import one_sentence
from training.files import write_atomic
from vton import labels
from vton.data.pack import pack
from vton.inputs import garment, parsing, photo, pose
from vton.joints import present
from vton.labels import read_indices
from vton.networks.parser import Parser
from vton.pipeline import load_network
from vton.record import png

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
FOLDERS = ("image", "image-parse", "openpose-json", "person-mask", "carried", "cloth", "cloth-mask")


@dataclass(frozen=True)
class Source:
    """Where the parts of a set are; None = to be made. people, garments: pictures by their new, safe names."""

    people: dict[str, Path]
    garments: dict[str, Path]
    parse: Path | None
    joints: Path | None
    cloth_mask: Path | None


def find_set(folder: Path) -> Source:
    """Looks for photos in `folder`, in its `train`, or in a single folder inside, as zips have them.

    Raises FileNotFoundError with one sentence that says what was expected.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder.name!r}.")
    inside = sorted(f for f in folder.iterdir() if f.is_dir() and not f.name.startswith((".", "__")))
    places = [folder, folder / "train"] + [place for f in inside for place in (f, f / "train")]
    root = next((place for place in places if (place / "image").is_dir()), None)
    photos = root / "image" if root else next((place for place in places if _pictures(place)), folder)
    base, people = root or photos, _pictures(photos)
    if not people:
        raise FileNotFoundError(
            f"{folder.name!r} holds no photos: expected a folder image/, or pictures ({', '.join(PICTURES)})."
        )

    def first(*patterns: str) -> Path | None:
        return next((place for pattern in patterns for place in sorted(base.glob(pattern)) if place.is_dir()), None)

    parse = first("image-parse", "image-parse-v3", "image-parse*")
    return Source(people, _pictures(base / "cloth"), parse, first("openpose*json"), first("cloth-mask"))


def _pictures(folder: Path) -> dict[str, Path]:
    """Pictures directly in a folder by a name that is safe in lists and paths."""
    pictures: dict[str, Path] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        if file.suffix.lower() in PICTURES and not file.name.startswith("."):
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", file.stem)
            while name in pictures:
                name += "_"
            pictures[name] = file
    return pictures


def prepare(
    folder: Path,
    out: Path,
    parser: Callable[[], Parser],
    height: int = 512,
    val: float = 0.1,
    report: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Writes the set and its pack; returns the numbers of people and garments, and `skipped`, a list of sentences.

    parser: makes the human parser, asked for only when a parse is missing. height: of the prepared pictures in pixels.
    val: share of people held out, in (0, 0.5].

    Raises ValueError when fewer than two people can be used.
    """
    if not 0 < val <= 0.5:
        raise ValueError(f"val has to be in (0, 0.5], got {val:g}.")
    if not 128 <= height <= 2048:
        raise ValueError(f"height has to be between 128 and 2048, got {height}.")
    source = find_set(folder)
    for name in FOLDERS:
        (out / name).mkdir(parents=True, exist_ok=True)
    people, cloth, skipped = _prepare_files(source, out, functools.cache(parser), height, report)
    (out / "skipped.txt").write_text("".join(f"{line}\n" for line in skipped), encoding="utf-8")
    if len(people) < 2:
        raise ValueError(
            f"{len(people)} of {len(source.people)} photos could be prepared, at least two are needed; the first "
            f"problem: {skipped[0] if skipped else 'there is one photo only'}"
        )
    _write_lists(out, people, height, val)
    counts = pack(out, out if cloth else None, out / "pack.npz", height=min(432, height))
    return {"people": counts["people"], "garments": counts["garments"], "skipped": skipped + counts["skipped"]}


def _prepare_files(
    source: Source, out: Path, parser: Callable[[], Parser], height: int, report: Callable[[str], None]
) -> tuple[list[str], list[str], list[str]]:
    """Writes what is not there yet: names of people, names of garments, and a sentence for each that was skipped."""
    names: dict[str, list[str]] = {"people": [], "garments": []}
    work = [("people", name, file) for name, file in source.people.items()]
    work += [("garments", name, file) for name, file in source.garments.items()]
    skipped: list[str] = []
    began, last_report, new = time.perf_counter(), 0.0, 0
    for number, (kind, name, file) in enumerate(work, 1):
        last = out / (f"openpose-json/{name}_keypoints.json" if kind == "people" else f"cloth-mask/{name}.png")
        try:
            if not last.exists():  # it is written last, so a file that was begun is made again
                new += 1
                if kind == "people":
                    _person(source, name, file, out, parser, height)
                else:
                    _garment(source, name, file, out, height)
            names[kind].append(name)
        except (ValueError, OSError) as error:
            skipped.append(f"{file.parent.name}/{file.name}: {error}")
        now = time.perf_counter()
        if now - last_report > 2 or number == len(work):
            last_report, seconds = now, (len(work) - number) * (now - began) / max(1, new)
            report(f"{number}/{len(work)}  {len(skipped)} skipped  about {seconds:.0f} s left")
    return names["people"], names["garments"], skipped


def _write_lists(out: Path, people: list[str], height: int, val: float) -> None:
    """Writes train.txt, val.txt and viton_crop.tsv. val: share held out, chosen by the names."""
    held_out = [name for name in people if zlib.crc32(name.encode()) % 1000 < 1000 * val] or people[-1:]
    held_out = held_out[: len(people) // 2]
    for split, names in (("val", held_out), ("train", [name for name in people if name not in set(held_out)])):
        (out / f"{split}.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    boxes = [f"{name}\t0\t0\t{height * 3 // 4}\t{height}" for name in people]
    (out / "viton_crop.tsv").write_text("\n".join(["name\tx0\ty0\tx1\ty1", *boxes]) + "\n", encoding="utf-8")


def _person(source: Source, name: str, file: Path, out: Path, parser: Callable[[], Parser], height: int) -> None:
    """Writes the 3:4 frame of one photo, and its maps in the same frame."""
    size = (height, height * 3 // 4)
    image = photo.load_image(str(file), longest=4096)
    joints_file = _first_file(source.joints, f"{file.stem}_keypoints.json", f"{file.stem}.json")
    parse_file = _first_file(source.parse, f"{file.stem}.png", f"{name}.png")
    parse = _labels(parse_file, image.shape[:2]) if parse_file else None
    if joints_file and parse is not None:
        mask = cv2.GaussianBlur((parse > 0).astype(np.float32), (0, 0), 1.5)
    else:
        person_pose = pose.detect(image)
        keypoints, mask = person_pose.keypoints, person_pose.person_mask
    if joints_file:
        keypoints = pose.load_openpose_json(joints_file)
    if not present(keypoints).any():
        raise ValueError("nobody was found in it")
    # A picture of the set's own shape is its own frame.
    whole = abs(image.shape[1] / image.shape[0] - 0.75) < 0.02 and joints_file is not None
    frame = photo.Frame(0, 0, *image.shape[1::-1]) if whole else photo.frame_person(keypoints, image.shape[:2])
    keypoints = photo.keypoints_to_frame(keypoints, frame, size)
    picture = photo.crop(image, frame, size)
    mask = photo.crop(mask.astype(np.float32), frame, size, "linear", 0)
    if parse is None:
        parse = parsing.parse(parser(), picture, keypoints, mask)
    else:
        parse = photo.crop(parse, frame, size, "nearest", 0)
    Image.fromarray(picture).save(out / "image" / f"{name}.jpg", quality=92)
    Image.fromarray(parse.astype(np.uint8)).save(out / "image-parse" / f"{name}.png")
    Image.fromarray((np.clip(mask, 0, 1) * 255).astype(np.uint8)).save(out / "person-mask" / f"{name}.png")
    Image.fromarray(np.zeros(size, np.uint8)).save(out / "carried" / f"{name}.png")
    person = {"pose_keypoints_2d": [round(float(v), 3) for v in keypoints.reshape(-1)]}
    joints = json.dumps({"version": 1.3, "people": [person]})
    write_atomic(out / "openpose-json" / f"{name}_keypoints.json", joints)


def _first_file(folder: Path | None, *names: str) -> Path | None:
    """The first of these files that a folder holds, if there is a folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None) if folder else None


def _labels(file: Path, hw: tuple[int, int]) -> np.ndarray:
    """A label picture of the given size. Raises ValueError that names the file for other values or sizes."""
    parse = read_indices(file)
    if parse.max() >= len(labels.LIP_COLOURS):
        last = len(labels.LIP_COLOURS) - 1
        raise ValueError(f"{file.parent.name}/{file.name} holds the label {parse.max()}, the largest known is {last}")
    if parse.shape != hw:
        size = f"{parse.shape[1]}x{parse.shape[0]}"
        raise ValueError(f"{file.parent.name}/{file.name} is {size}, the photo {hw[1]}x{hw[0]}")
    return parse


def _garment(source: Source, name: str, file: Path, out: Path, height: int) -> None:
    """Writes a product photo on white and its mask, both 3:4."""
    image = photo.load_image(str(file), alpha=True, longest=4096)
    masks = [] if source.cloth_mask is None else source.cloth_mask.glob(f"{glob.escape(file.stem)}.*")
    masks = [f for f in masks if f.suffix.lower() in PICTURES]
    if masks:
        mask = read_indices(masks[0])
        if mask.shape != image.shape[:2]:
            raise ValueError(f"{masks[0].parent.name}/{masks[0].name} and the photo differ in size")
        mask = ((mask > 127) | ((mask == 1) & (mask.max() == 1))).astype(np.uint8) * 255
        cut = garment.with_mask(image[..., :3], mask)
    else:
        cut = garment.cut_out(image)
    product = garment.place(cut, (height, height * 3 // 4))
    Image.fromarray(product.cloth).save(out / "cloth" / f"{name}.jpg", quality=92)
    write_atomic(out / "cloth-mask" / f"{name}.png", png(product.mask))


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = CommandLine(
        prog="python -m vton.prepare",
        description="Make a training set of photos.",
    )
    photos = "folder of photos, or of a set in the layout of VITON-HD"
    options.add_argument("photos", type=an_existing_folder, help=photos)
    out = "folder to write; a second start goes on there"
    options.add_argument("--out", type=a_folder_to_write, required=True, metavar="DIR", help=out)
    options.add_argument("--height", type=integer(128, 2048), default=512, help="of the prepared pictures in pixels")
    options.add_argument("--val", type=a_number(above=0, most=0.5), default=0.1, help="share of people held out")
    options.add_argument("--model", default="tryon-lite", help="shipped model or folder whose parser labels the photos")
    arguments = options.parse_args(argv)

    def parser():
        return load_network("parser", model_or_dir(arguments.model) / "parser")

    result = prepare(
        arguments.photos, arguments.out, parser, arguments.height, arguments.val, lambda line: print(line, flush=True)
    )
    for line in result["skipped"]:
        print(f"skipped {line}", file=sys.stderr)
    print(f"{result['people']} people, {result['garments']} garments, {len(result['skipped'])} skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
