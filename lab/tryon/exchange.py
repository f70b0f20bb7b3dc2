"""The whole try-on against the truth where a garment is really exchanged: the same draped person in two garments.

    python -m lab.tryon.exchange pairs --data DIR --out PAIRS --count 20
    python -m lab.tryon.exchange measure --pairs PAIRS --sheet sheet.png --json figures.json
    python -m lab.tryon.exchange measure --pairs PAIRS --segmentation DIR --flow DIR --before figures.json

`pairs` needs the extra `render`; bodies and poses are those of the validation people that ship, the garments those of
DIR (garments/ and garments_more/) whose names fall to validation. `measure` draws each pair twice, alike but for the
garment, and tries the second garment on the picture of the first.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from torch import nn

from lab.tryon.draping import panels
from lab.tryon.draping.drape import PLACES, DrapeError, drape, garment_rows, save
from lab.tryon.measures import bootstrap
from training import assets
from training.arguments import (
    CommandLine,
    a_file_to_write,
    a_folder_to_write,
    an_existing_file,
    an_existing_folder,
    integer,
)
from training.command import one_sentence
from training.files import write_atomic
from vton import labels
from vton.contact_sheet import fit_into
from vton.data.draped.draw import Drawing, Record, Studio, draw
from vton.data.draped.pack import is_validation
from vton.data.draped.people import read_drapes
from vton.inputs.agnostic import GRAY
from vton.inputs.garment import Garment, canvas_boxes, inside_of_back
from vton.inputs.photo import Frame, InputError, crop, keypoints_to_frame
from vton.inputs.pose import along_arm
from vton.inputs.reading import read_garment
from vton.joints import LEFT_ARM, RIGHT_ARM
from vton.metrics import ON_ARM, colour_difference, edge_distances, mask_iou, parser_distance, ssim_map
from vton.pipeline import TryOn, load_network
from vton.registry import ALL_NETWORKS
from vton.result import TryOnResult
from vton.warps import grid_of

# What a person takes off and puts on, in turn; "long": a tee or sweater with longer sleeves.
CHANGES = (
    ("tee", "long"), ("long", "tee"), ("shirt", "long"), ("top", "polo"), ("polo", "long"),
    ("long", "shirt"), ("tee", "top"), ("tee", "shirt"), ("long", "top"), ("polo", "tee"),
)  # fmt: skip
Row = tuple[str, dict[str, str], Path]  # as of `garment_rows`
SIZE = (768, 576)  # of the pictures, (H, W); the frame around the person has 512 rows of it at least
REGION = ("region IoU", "hem", "neckline", "sleeve ends")  # distances in pixels of 256
PICTURE = ("changed SSIM", "parser distance", "garment", "skin", "wall")  # the last three: CIEDE2000
MISPLACEMENT = "warp misplaced"
# Name of a system -> that of the same with instance normalisation.
RIVALS = {"try-on": "try-on, instance", "I-hat": "I-hat, instance"}


def file_of(folder: Path, number: int, side: str) -> Path:
    """The record of a pair's garment; side: "a", worn at first, or "b"."""
    return folder / f"{number:03}-{side}.npz"


def validation_garments(data: Path) -> list[Row]:
    """Garments for grown-ups under `data` with a good mask, whose names fall to validation."""
    rows = garment_rows(data)
    return [row for row in rows if is_validation(row[0]) and row[1]["mask"] == "ok" and row[1].get("kids") != "1"]


def group(row: dict[str, str]) -> str:
    """One of the words of CHANGES for a garment's attributes; other kinds have names of their own."""
    if row["kind"] in ("tee", "sweater"):
        return "tee" if row["sleeves"] in ("cap", "short") else "long"
    return row["kind"]


def bares_shoulder(drawing: Drawing) -> bool:
    """Whether skin is seen at the top of an arm, as where a sleeve has slipped off a shoulder."""
    for joints, label in ((LEFT_ARM, "left arm"), (RIGHT_ARM, "right arm")):
        place, distance = along_arm(drawing.keypoints, joints, drawing.parse.shape)
        top = drawing.parse[(place < 0.3) & (distance < ON_ARM)]
        if (top == labels.LIP.index(label)).mean() > 0.05:
            return True
    return False


def photograph_of(name: str, mask_file: Path) -> Path:
    """The file of a garment's photograph."""
    folder, own = name.split("/")
    return mask_file.parents[1] / {place: pictures for place, pictures, _ in PLACES}[folder] / f"{own}.jpg"


def read_picture(file: Path) -> np.ndarray:
    """A photograph as (h, w, 3) uint8 RGB."""
    return np.ascontiguousarray(cv2.imread(str(file))[..., ::-1])


@cache
def outline_of(photograph: Path, mask_file: Path, sleeves: str, neckline: str, reader: nn.Module) -> panels.Outline:
    """A garment's outline with its neck opening as the reader sees it. Raises Unclear."""
    mask = cv2.imread(str(mask_file), cv2.IMREAD_GRAYSCALE) > 127
    panels.read_outline(mask, None, sleeves, neckline)  # what is unclear is said at once, while reading takes seconds
    opening = inside_of_back(read_garment(reader, read_picture(photograph), mask), mask)
    return panels.read_outline(mask, opening, sleeves, neckline)


def drape_one(rows: list[Row], like: Record, reader: nn.Module, file: Path, rng: np.random.Generator) -> bool:
    """Writes a record of the first of `rows`, in an order of chance, that drapes on the body of `like`; returns whether
    one does.

    A file holds a record as `drape.save` writes it, and `cloth`: the bytes of the garment's photograph.
    """
    studio = read_drapes(assets.drapes_file()).studio
    for number in rng.permutation(len(rows)):
        name, row, mask_file = rows[number]
        photograph = photograph_of(name, mask_file)
        began, outcome = time.perf_counter(), "draped"
        try:
            outline = outline_of(photograph, mask_file, row["sleeves"], row["neckline"], reader)
            record = drape(outline, row, studio.body, rng, like)
            worn = Record.of(record | {"garment": name})
            drawing = draw(studio, worn, read_picture(photograph), SIZE, np.random.default_rng(0), "thigh")
            if row["sleeves"] not in ("none", "cap") and bares_shoulder(drawing):
                raise DrapeError("a bare shoulder")
            save(file, record | {"cloth": np.fromfile(photograph, np.uint8)}, name)
        except ValueError as error:
            outcome = str(error)
        print(f"{file.stem} {name}: {outcome}, {time.perf_counter() - began:.0f} s", flush=True)
        if outcome == "draped":
            return True
    return False


def drape_pairs(data: Path, out: Path, count: int, first: int, seed: int, minutes: float) -> int:
    """Drapes both garments of `count` pairs, from number `first` on, as far as it comes in `minutes`; what is
    there already is kept. Returns how many pairs there are.
    """
    drapes, rows = read_drapes(assets.drapes_file()), validation_garments(data)
    reader = load_network("garment", assets.model_dir("tryon-lite") / "garment")
    wearers = np.random.default_rng(seed).permutation(drapes.numbers("val"))
    began, number = time.monotonic(), first
    out.mkdir(parents=True, exist_ok=True)
    while len(pair_numbers(out)) < count and number < len(wearers):
        like = drapes.record(int(wearers[number]))
        for side, kind in zip("ab", CHANGES[number % len(CHANGES)]):
            if time.monotonic() - began > 60 * minutes:
                return len(pair_numbers(out))
            file, rng = file_of(out, number, side), np.random.default_rng([seed, number, ord(side)])
            own = [row for row in rows if group(row[1]) == kind]
            if not file.is_file() and not drape_one(own, like, reader, file, rng):
                break
        number += 1
    return len(pair_numbers(out))


def pair_numbers(folder: Path) -> list[int]:
    """Numbers of the pairs of which both records are in `folder`."""
    firsts = [int(file.stem[:3]) for file in sorted(folder.glob("*-a.npz"))]
    return [number for number in firsts if file_of(folder, number, "b").is_file()]


# -- drawing a pair -------------------------------------------------------------------------------------------------


@dataclass
class Pair:
    """The same person twice, drawn alike, and the flat photograph (h, w, 3) uint8 of what is put on."""

    before: Drawing
    after: Drawing
    cloth: np.ndarray


def draw_pair(studio: Studio, records: tuple[Record, Record], cloths, number: int, size=SIZE) -> Pair:
    """Both records as pictures of `size` (H, W) by the same choices. cloths: the photographs of both garments."""
    before, after = (
        draw(studio, record, cloth, size, np.random.default_rng([number, 7]), "thigh")
        for record, cloth in zip(records, cloths)
    )
    return Pair(before, after, cloths[1])


def read_pair(folder: Path, number: int) -> Pair:
    """Reads and draws a pair that `drape_pairs` wrote."""
    records, cloths = [], []
    for side in "ab":
        with np.load(file_of(folder, number, side), allow_pickle=False) as data:
            records.append(Record.of(data))
            cloths.append(np.ascontiguousarray(cv2.imdecode(data["cloth"], cv2.IMREAD_COLOR)[..., ::-1]))
    return draw_pair(read_drapes(assets.drapes_file()).studio, tuple(records), cloths, number)


def in_frame(drawing: Drawing, frame: Frame, size: tuple[int, int]) -> Drawing:
    """What of a drawing lies in a frame, at `size` (H, W)."""
    return Drawing(
        crop(drawing.picture, frame, size),
        crop(drawing.parse, frame, size, "nearest", 0),
        keypoints_to_frame(drawing.keypoints, frame, size),
        crop(drawing.where, frame, size, "nearest", np.nan),
        crop(drawing.inside.astype(np.uint8), frame, size, "nearest", 0) > 0,
    )


# -- figures --------------------------------------------------------------------------------------------------------


def is_upper(drawing: Drawing) -> np.ndarray:
    """(H, W) bool, the garment in a drawing."""
    return np.isin(drawing.parse, labels.UPPER_LIP)


def region_figures(region: np.ndarray, truth: Drawing) -> dict[str, float]:
    """The figures of REGION: a predicted garment (H, W) bool against the true one."""
    edges = edge_distances(is_upper(truth), region, truth.keypoints)
    unit = 256 / len(region)
    names = zip(REGION[1:], ("hem", "neckline", "sleeve_ends"))
    return {REGION[0]: mask_iou(region, is_upper(truth))} | {
        name: unit * edges.get(edge, float("nan")) for name, edge in names
    }


def picture_figures(
    picture: np.ndarray, truth: Drawing, either_garment: np.ndarray, gray: np.ndarray, distance: Callable
) -> dict[str, float]:
    """The figures of PICTURE: a picture (H, W, 3) uint8 against the true one.

    changed: (H, W) bool, where either garment is; gray: (H, W) bool, what the try-on was not shown, in which skin and
    wall are compared; distance: see `parser_distance`.
    """
    skin = gray & np.isin(truth.parse, (*labels.ARMS_LIP, labels.NECK_LIP))
    parts = zip(PICTURE[2:], (is_upper(truth), skin, gray & (truth.parse == labels.BACKGROUND)))
    return {
        PICTURE[0]: float(ssim_map(picture, truth.picture)[either_garment].mean()),
        PICTURE[1]: distance(picture, truth.picture),
    } | {name: colour_difference(picture, truth.picture, part) for name, part in parts}


def true_grid(where: np.ndarray, cut: Garment, size: tuple[int, int]) -> np.ndarray:
    """Places `where` (H, W, 2) in a garment's photograph as places on its canvas of `size`, in [-1, 1], as
    `warps.grid_of` gives them.
    """
    (y, x, h, w), (top, left, height, width) = canvas_boxes(cut.mask, size)
    scale = np.array([width / w, height / h])
    return ((where + 0.5 - (x, y)) * scale + (left, top)) * (2 / np.array(size[::-1])) - 1


def misplacement(r: TryOnResult, truth: Drawing, cloth: np.ndarray) -> float:
    """Mean distance between what the warp shows and what the true one does, over the true garment's outer side, in
    pixels of a cloth picture of 256 rows; NaN where the garment's photograph (h, w, 3) was turned or reduced.
    """
    if r.garment_cut.turns or r.garment_cut.mask.shape != cloth.shape[:2]:
        return float("nan")
    size = r.options.size
    away = (grid_of(r, size)[0].cpu().numpy() - true_grid(truth.where, r.garment_cut, size)) * np.array(size[::-1]) / 2
    outer = ~np.isnan(truth.where[..., 0]) & ~truth.inside
    return float(np.linalg.norm(away[outer], axis=1).mean() * 256 / size[0])


def pair_figures(r: TryOnResult, pair: Pair, pictures: dict[str, np.ndarray], distance: Callable) -> dict[str, dict]:
    """All figures of a pair by system: those of `pictures` (in the frame of `r`), picture A and the cloth pasted."""
    size = r.options.size
    before, truth = (in_frame(drawing, r.frame, size) for drawing in (pair.before, pair.after))
    either_garment, gray = is_upper(before) | is_upper(truth), (r.agnostic == GRAY).all(2)
    figures = {
        "try-on": region_figures(r.segmentation == labels.UPPER, truth)
        | {MISPLACEMENT: misplacement(r, truth, pair.cloth)},
        "picture A": region_figures(is_upper(before), truth),
        "pasted": region_figures(r.warped_mask > 127, truth),
    }
    for name, picture in (pictures | {"picture A": r.person, "pasted": r.baseline}).items():
        figures.setdefault(name, {}).update(picture_figures(picture, truth, either_garment, gray, distance))
    return figures


def try_pair(tryon: TryOn, pair: Pair, distance: Callable) -> tuple[dict[str, dict], TryOnResult]:
    """The figures of a pair, and the record of its try-on. Raises InputError where a picture is refused."""
    r = tryon.run(pair.before.picture, pair.cloth)
    other = tryon.resume(r, "synthesis", norm="instance")
    results = {"try-on": r, "try-on, instance": other}
    pictures = {name: crop(one.result, r.frame, r.options.size) for name, one in results.items()}
    pictures |= {"I-hat": r.synthesis, "I-hat, instance": other.synthesis}
    return pair_figures(r, pair, pictures, distance), r


# -- the table ------------------------------------------------------------------------------------------------------


Rows = dict[str, dict[str, float]]  # figures by the number of a pair


def less(one: Rows, other: Rows) -> Rows:
    """The figures of the pairs that both have, those of `other` subtracted."""
    return {
        number: {name: row[name] - other[number][name] for name in row if name in other[number]}
        for number, row in one.items()
        if number in other
    }


def cell(rows: Rows, name: str) -> str:
    """Mean of a figure and its 95 % bootstrap interval; "-" where there is none."""
    middle, low, high = bootstrap([row.get(name, float("nan")) for row in rows.values()], resamples=2000)
    return "-" if np.isnan(middle) else f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def as_text(systems: dict[str, Rows], before: dict[str, Rows]) -> str:
    """One table of the figures of all systems. before: those of other weights, to compare with; may be empty."""
    columns = dict(systems)
    for name, rival in RIVALS.items():
        columns[f"{rival} less ALIAS"] = less(systems[rival], systems[name])
    if before:
        columns["try-on less before"] = less(systems["try-on"], before["try-on"])
    widths = {name: max(25, len(name)) for name in columns}
    lines = [f"{len(systems['try-on'])} pairs: mean and 95 % interval of 2,000 resamples of pairs"]
    lines.append(" " * 16 + "".join(f" | {name:>{widths[name]}}" for name in columns))
    for figure in (*REGION, MISPLACEMENT, *PICTURE):
        cells = (f" | {cell(rows, figure):>{widths[name]}}" for name, rows in columns.items())
        lines.append(f"{figure:16}" + "".join(cells))
    return "\n".join(lines)


def measure(tryon: TryOn, folder: Path, sheet: Path | None) -> dict[str, Rows]:
    """Figures of every pair of a folder, by system. sheet: PNG to write, a row of picture A, flat B,
    result and truth a pair.
    """
    judge = load_network("parser", assets.model_dir("tryon-lite") / "parser")  # the same for all weights
    distance, cells = parser_distance(judge), []
    systems: dict[str, Rows] = {}
    for number in pair_numbers(folder):
        pair = read_pair(folder, number)
        try:
            figures, r = try_pair(tryon, pair, distance)
        except InputError as error:
            print(f"{number}: {error}", file=sys.stderr)
            continue
        for system, row in figures.items():
            systems.setdefault(system, {})[str(number)] = row
        print(f"{number}: region IoU {figures['try-on']['region IoU']:.3f}", file=sys.stderr, flush=True)
        truth = in_frame(pair.after, r.frame, r.options.size).picture
        result = crop(r.result, r.frame, r.options.size)
        cells.append(np.hstack([fit_into(p, (512, 384)) for p in (r.person, pair.cloth, result, truth)]))
    if not systems:
        raise ValueError(f"There is no pair in '{folder.name}' that could be tried on; `pairs` makes some.")
    if sheet:
        sheet.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(sheet), np.vstack(cells)[..., ::-1])
    return systems


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = CommandLine(prog="python -m lab.tryon.exchange", description=main.__doc__)
    kinds = options.add_subparsers(dest="kind", required=True)
    pairs = kinds.add_parser("pairs")
    pairs.add_argument("--data", type=an_existing_folder, required=True, help="folder of garments/ and garments_more/")
    pairs.add_argument("--out", type=a_folder_to_write, required=True, help="folder for the pairs")
    pairs.add_argument("--count", type=integer(1), default=20, help="pairs wanted")
    pairs.add_argument("--first", type=integer(), default=0, help="number of the first pair, to share the work")
    pairs.add_argument("--seed", type=integer(), default=1)
    pairs.add_argument("--minutes", type=integer(1), default=40, help="no drape begins later")
    figures = kinds.add_parser("measure")
    figures.add_argument("--pairs", type=an_existing_folder, required=True, help="folder that `pairs` wrote")
    figures.add_argument("--model", default="tryon-lite", help="name of a shipped model, or a folder")
    for kind in ALL_NETWORKS:
        figures.add_argument(f"--{kind}", type=an_existing_folder, metavar="DIR", help="other weights of this network")
    figures.add_argument("--sheet", type=a_file_to_write(".png"), help="picture A, flat B, result and truth")
    figures.add_argument("--json", type=a_file_to_write(), metavar="FILE", help="write the figures of each pair there")
    figures.add_argument("--before", type=an_existing_file, metavar="FILE", help="figures to compare with, of --json")
    arguments = options.parse_args(argv)
    if arguments.kind == "pairs":
        count = drape_pairs(
            arguments.data, arguments.out, arguments.count, arguments.first, arguments.seed, arguments.minutes
        )
        print(f"{count} pairs are in {arguments.out}.")
        return 0
    tryon = TryOn.from_pretrained(arguments.model, "cpu")
    for kind in ALL_NETWORKS:
        if getattr(arguments, kind):
            setattr(tryon, kind, load_network(kind, getattr(arguments, kind)))
    before = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    systems = measure(tryon, arguments.pairs, arguments.sheet)
    if arguments.json:
        write_atomic(arguments.json, json.dumps(systems, indent=1) + "\n")
    print(as_text(systems, before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
