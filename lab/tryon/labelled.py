"""`python -m lab.tryon.labelled KIND ...`: figures of one network on labelled photographs.

parser    --data DIR      overlap of the parse, whole photo and try-on crop
garments  --data DIR ...  sleeves, neckline, kind and mask of garments
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import torch

from lab.tryon.garment_folders import names_of, read_folder
from training.arguments import CommandLine, a_device, an_existing_folder, integer
from training.assets import model_dir
from training.command import one_sentence
from training.devices import choose_device
from vton import labels
from vton.geometry import affine, move_points, warp_picture
from vton.inputs import pose
from vton.inputs.garment import outline
from vton.inputs.parsing import parse
from vton.inputs.reading import LONGEST, Reading, read_garment
from vton.labels import read_indices
from vton.metrics import PARSER_GROUPS, confusion, garment_figures, group_iou, iou
from vton.networks.garment_reader import GROUPS
from vton.pipeline import load_network


def _labelled_photograph(data: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One photograph (H,W,3), its parse (H,W), keypoints (25,3), person mask (H,W) in [0, 1], and which pixels count.

    Raises ValueError that names the file which is wrong.
    """
    image = cv2.imread(str(data / "image" / f"{name}.jpg"))
    if image is None:
        raise ValueError(f"image/{name}.jpg cannot be read.")
    image, truth = np.ascontiguousarray(image[..., ::-1]), read_indices(data / "image-parse" / f"{name}.png")
    if truth.shape != image.shape[:2] or truth.max() >= len(labels.LIP):
        raise ValueError(f"image-parse/{name}.png must have the picture's size {image.shape[:2]} and labels 0 to 19.")
    keypoints = pose.load_openpose_json(data / "openpose-json" / f"{name}_keypoints.json")
    mask_file, carried_file = data / "person-mask" / f"{name}.png", data / "carried" / f"{name}.png"
    mask = read_indices(mask_file).astype(np.float32) / 255 if mask_file.exists() else pose.detect(image).person_mask
    valid = read_indices(carried_file) == 0 if carried_file.exists() else np.ones(truth.shape, bool)
    return image, truth, keypoints, mask, valid


def evaluate_parser(
    parser: torch.nn.Module, data: Path, split: str = "val.txt", height: int = 320, limit: int = 0
) -> dict:
    """Overlap on a folder with image/, image-parse/, openpose-json/ and, where there are any, person-mask/ and
    carried/.

    One confusion matrix over all pixels. Truth outside PARSER_GROUPS and carried pixels are ignored. `split` lists the
    ids; without it every image counts. Returns the grouped IoU, the IoU of each label, and the upper-body groups again
    in the try-on frame of viton_crop.tsv.
    """
    list_file = data / split
    names = (
        list_file.read_text().split() if list_file.exists() else sorted(f.stem for f in (data / "image").glob("*.jpg"))
    )
    if not names:
        raise ValueError(
            f"No photographs were found in '{data.name}'; expected image/NAME.jpg and image-parse/NAME.png."
        )
    frames = {}
    if (data / "viton_crop.tsv").exists():
        frames = {
            r.split("\t")[0]: np.array(r.split("\t")[1:5], float)
            for r in (data / "viton_crop.tsv").read_text().splitlines()[1:]
        }
    n = len(labels.LIP)
    whole, in_frame = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    for name in names[: limit or None]:
        image, truth, keypoints, mask, valid = _labelled_photograph(data, name)
        whole += confusion(truth, parse(parser, image, keypoints, mask, height=height), valid, n)
        if name in frames:
            size = (512, 384)
            matrix = affine(frames[name], size)
            answer = parse(
                parser,
                warp_picture(image, matrix, size),
                move_points(keypoints, matrix),
                warp_picture(mask, matrix, size),
            )
            inside = warp_picture(valid.astype(np.uint8), matrix, size, nearest=True) > 0
            in_frame += confusion(warp_picture(truth, matrix, size, nearest=True), answer, inside, n)
    groups, crop = group_iou(whole, PARSER_GROUPS), group_iou(in_frame, PARSER_GROUPS)
    return {
        "photographs": len(names[: limit or None]),
        "mean_iou": float(np.nanmean(list(groups.values()))),
        "iou": {k: float(v) for k, v in groups.items()},
        "iou_by_label": {n: float(v) for n, v in zip(labels.LIP, iou(whole)) if np.isfinite(v)},
        "iou_in_frame": {
            k: float(crop[k]) for k in ("background", "hair", "face", "upper", "lower", "arms") if np.isfinite(crop[k])
        },
    }


def evaluate_garments(reader: torch.nn.Module, folders: list[Path], held_out: bool = False) -> dict:
    """How well the garments of folders with photo/, photo-mask/ and attributes.tsv are read; kinds.tsv names other
    things.

    held_out: only the pictures that the reader's recipe keeps for validation. Returns `garment_figures`, and how often
    each true group of sleeves and neckline was taken for which.
    """
    pictures = [
        p for folder in folders for p in read_folder(folder, names_of(folder, held_out or None), longest=LONGEST)
    ]
    readings = []
    for picture in pictures:  # the mask is the one that a try-on would cut out
        reading = read_garment(reader, picture.image)
        readings.append(dataclasses.replace(reading, mask=outline(picture.image, reading)[0].astype(np.float32)))
    figures = garment_figures(readings, [p.attributes for p in pictures], [p.mask for p in pictures])
    confusions = {
        name: garment_confusion(name, readings, [p.attributes for p in pictures]) for name in ("sleeves", "neckline")
    }
    return {k: round(v, 4) for k, v in figures.items()} | {"taken_for": confusions}


def garment_confusion(
    name: str, readings: list[Reading], attributes: list[dict[str, str]]
) -> dict[str, dict[str, int]]:
    """How often each true group of an attribute was read as which: {true: {read: number}}, what never happened left
    out.
    """
    confusion: dict[str, dict[str, int]] = {}
    for reading, true in zip(readings, attributes, strict=True):
        for group, values in GROUPS[name].items():
            if true.get(name) in values:
                row = confusion.setdefault(group, {})
                row[reading.best(name)[0]] = row.get(reading.best(name)[0], 0) + 1
    return confusion


def command_line() -> CommandLine:
    """The kinds of evaluation and their options."""
    parser = CommandLine(prog="python -m lab.tryon.labelled", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("parser")
    one.add_argument("--data", type=an_existing_folder, required=True, metavar="DIR")
    one.add_argument("--limit", type=integer(), default=0, help="only the first so many photographs")
    one.add_argument(
        "--height", type=integer(64, 4096), default=320, help="height at which the network sees the whole photograph"
    )
    garments = kinds.add_parser("garments")
    garments.add_argument("--data", type=an_existing_folder, required=True, nargs="+", metavar="DIR")
    garments.add_argument("--held-out", action="store_true", help="only what the recipe keeps for validation")
    for p in (one, garments):
        p.add_argument("--model", default="tryon-lite", help="name of a shipped model, or the network's own folder")
        p.add_argument("--device", type=a_device, default="cpu")
    return parser


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = command_line().parse_args(argv)
    own, kind = Path(options.model), options.kind.removesuffix("s")  # the networks are called parser and garment
    folder = own if (own / "config.json").is_file() else (own if own.is_dir() else model_dir(options.model)) / kind
    network = load_network(kind, folder).to(choose_device(options.device))
    if kind == "garment":
        report = evaluate_garments(network, options.data, options.held_out)
    else:
        report = evaluate_parser(network, options.data, height=options.height, limit=options.limit)
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
