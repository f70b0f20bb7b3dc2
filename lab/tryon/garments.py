"""Trains the garment reader on the project's folders of garments: `python -m lab.tryon.garments --data DATA --run DIR`.

Beside `python -m vton.train garment`, every option of which is one here, it knows neck openings that were marked by eye
and necklines that a second look corrected, and makes V necks of round ones. Runs that began on a folder go on here.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import sys
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from torch import nn

from lab.tryon.garment_folders import names_of, read_folder, with_outline
from training.command import launch
from training.memory import keep_memory
from training.recipe import setting
from vton.data import garments
from vton.data.draped.people import DrapedPeople
from vton.data.garments import FLAT_SIZE, GarmentPicture, Garments, Source
from vton.data.pack import Pack
from vton.recipes import garment
from vton.recipes.common import draped_people
from vton.recipes.garment import PRESETS


@functools.cache
def neck_openings() -> dict[tuple[str, str], tuple[float, ...]]:
    """Neck openings marked by eye (openings.tsv), by folder and id, in shares of the picture's width and height.

    Where the front neckline begins, where it ends, its lowest point, and its power (1 = a V, 2 = round). Nothing of an
    opening is seen where the tuple is empty.
    """
    with Path(__file__).with_name("openings.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    names = ("left_x", "left_y", "right_x", "right_y", "bottom_x", "bottom_y", "power")
    return {(row["folder"], row["id"]): tuple(float(row[name]) for name in names if row[name]) for row in rows}


def with_openings(folder: Path, pictures: list[GarmentPicture]) -> list[GarmentPicture]:
    """Pictures of a folder with the neck openings that are marked; without a mask none is known."""
    marks = {p.name: neck_openings().get((folder.name, p.name)) for p in pictures}
    return [
        p
        if p.mask is None or (mark := marks[p.name]) is None
        else dataclasses.replace(p, opening=draw_opening(mark, p.mask, p.attributes.get("neckline") == "hood"))
        for p in pictures
    ]


def with_corrections(folder: Path, pictures: list[GarmentPicture]) -> list[GarmentPicture]:
    """Pictures of a folder with the necklines of necklines.tsv, where a second look found the label wrong.

    For training alone: what is measured is measured with the labels as they were published.
    """
    with Path(__file__).with_name("necklines.tsv").open(encoding="utf-8", newline="") as file:
        rows = {(row["folder"], row["id"]): row["neckline"] for row in csv.DictReader(file, delimiter="\t")}
    return [
        dataclasses.replace(p, attributes=p.attributes | {"neckline": rows[folder.name, p.name]})
        if (folder.name, p.name) in rows
        else p
        for p in pictures
    ]


def draw_opening(mark: tuple[float, ...], mask: np.ndarray, hood: bool = False) -> np.ndarray:
    """What a mark of `neck_openings` encloses, above the neckline and on the garment: (H,W) uint8 0/255.

    mask: (H,W) uint8, the garment. hood: it has one, which lies behind the neck when it is worn, however wide it is.
    """
    canvas = np.zeros(mask.shape, np.uint8)
    if not mark:
        return canvas
    scale = np.array(mask.shape[::-1], float)
    left, right, bottom = (np.array(mark[i : i + 2]) * scale for i in (0, 2, 4))
    along = np.linspace(0, 1, 24)[:, None]  # from the lowest point outwards

    def side(end: np.ndarray) -> np.ndarray:
        return bottom + (end - bottom) * np.concatenate([along, along ** mark[6]], 1)

    top = [(right + 0.15 * (bottom - right)) * (1, 0), (left + 0.15 * (bottom - left)) * (1, 0)]
    if hood:  # all that is higher, to both sides
        top = [(scale[0], right[1]), (scale[0], 0), (0, 0), (0, left[1])]
    outline = np.concatenate([side(left)[::-1], side(right), top])
    cv2.fillPoly(canvas, [np.round(outline * 16).astype(np.int32)], 255, shift=4)
    return np.minimum(canvas, mask)


def with_v_neck(picture: GarmentPicture, mark: tuple[float, ...], rng: np.random.Generator) -> GarmentPicture:
    """A garment with a round neck as one with a V, of which there are few: image and opening (H, W) change.

    picture: with mask and opening, otherwise ValueError.
    mark: its opening as in `neck_openings`, in shares of width and height.

    What the V opens shows the inside of the back, what it leaves of the round neck becomes cloth; a seam follows it.
    """
    if picture.mask is None or picture.opening is None:
        raise ValueError("a V neck needs the garment's mask and its opening.")
    garment, inside = picture.mask > 127, picture.opening > 0
    height, width = garment.shape
    across = float(mark[2] - mark[0])
    deep_mark = v_mark(mark, across * width / height * rng.uniform(0.2, 0.8), float(rng.uniform(0.95, 1.2)))
    opening = draw_opening(deep_mark, picture.mask)
    v_area = opening > 0
    rib = max(1, round(0.12 * across * width))
    collar = cv2.dilate(picture.opening, np.ones((2 * rib + 1,) * 2, np.uint8)) > 0
    collar &= np.arange(height)[:, None] > min(mark[1], mark[3]) * height  # the back's own edge stays
    cloth = picture.image[garment & ~collar].mean(0)
    back = picture.image[inside].mean(0) if inside.sum() > 20 else 0.8 * cloth
    back = back * np.linspace(1.0, rng.uniform(0.7, 0.95), height)[:, None, None]
    image = cv2.inpaint(picture.image, (collar & garment).astype(np.uint8), 2, cv2.INPAINT_TELEA).astype(np.float64)
    image = np.where(v_area[..., None], np.where(inside[..., None], picture.image, back), image)
    if rng.random() < 0.7:
        seam = np.reshape([deep_mark[i] for i in (0, 1, 4, 5, 2, 3)], (3, 2)) * (width, height)
        tone = np.clip(cloth * rng.uniform(0.65, 1.25), 0, 255).tolist()
        thickness = int(max(1, rng.uniform(0.3, 1) * rib))
        cv2.polylines(image, [np.round(seam).astype(np.int32)], False, tone, thickness, cv2.LINE_AA)
    share = cv2.GaussianBlur(v_area.astype(np.float32), (0, 0), 0.8)[..., None]
    rim = 4 * share * (1 - share)  # a cut edge would be sharper than the photograph
    image = np.where(garment[..., None], rim * cv2.GaussianBlur(image, (0, 0), 0.8) + (1 - rim) * image, picture.image)
    attributes = picture.attributes | {"neckline": "v"}
    return dataclasses.replace(
        picture, image=np.clip(image, 0, 255).astype(np.uint8), opening=opening, attributes=attributes
    )


def v_mark(mark: tuple[float, ...], deeper: float, power: float) -> tuple[float, ...]:
    """A mark of `neck_openings` between the same ends with its lowest point in the middle, lower by `deeper` (a share
    of the picture's height), and another power (1 = a V).
    """
    left_x, left_y, right_x, right_y, _, bottom_y, _ = mark
    return (left_x, left_y, right_x, right_y, (left_x + right_x) / 2, bottom_y + deeper, power)


SOURCES = {
    "photo": Source(0.36, 0.35),
    "cut": garments.SOURCES["cut"],
    "marked": Source(0.2, 0.5),  # with known neck openings
    "other": Source(0.2, 0.35),
    **garments.SOURCES,
}


class MarkedGarments(Garments):
    """`Garments` of the project's folders with marked neck openings, which are drawn more often, and with corrected
    necklines.

    data: folder with garments_more/ and perhaps garments/ and not_upper/, in place of the garments of pack or draped
    people; None: as of `Garments`.
    """

    kinds = SOURCES

    def __init__(self, data: Path | str | None, pack: Pack | None = None, draped: DrapedPeople | None = None):
        self.data = Path(data) if data else None
        super().__init__(pack, draped)

    def products(self, pack: Pack | None, draped: DrapedPeople | None) -> dict[str, list[GarmentPicture]]:
        """As of `Garments`; of the folder where there is one, its marked pictures as a source of their own."""
        if not self.data:
            return super().products(pack, draped)
        if not (self.data / "garments_more").is_dir():
            raise FileNotFoundError(f"'{self.data.name}' has no folder garments_more.")
        photographs, cut, other = read_garments(self.data / "garments_more"), [], []
        if (self.data / "garments").is_dir():
            cut = 2 * read_garments(self.data / "garments")
        if (self.data / "not_upper").is_dir():
            names = names_of(self.data / "not_upper", held_out=False)
            other = [with_outline(p) for p in read_folder(self.data / "not_upper", names)]
        cut = [p for p in photographs if p.mask is not None] + cut
        openings = {p.name: p for p in (*photographs, *cut) if p.opening is not None}
        marks = {name: mark for (_, name), mark in neck_openings().items()}
        rounds = [p for p in openings.values() if marks[p.name] and p.attributes.get("neckline") in ("round", "scoop")]
        vs = [with_v_neck(p, marks[p.name], np.random.default_rng([i, 7])) for i, p in enumerate(rounds)]
        return {"photo": photographs, "cut": cut, "marked": [*openings.values(), *vs], "other": other}


def read_garments(folder: Path) -> list[GarmentPicture]:
    """The pictures of a folder of garments that training learns from."""
    return with_corrections(folder, with_openings(folder, read_folder(folder, names_of(folder, held_out=False))))


def freeze(part: nn.Module) -> None:
    """Keeps a part of a network as it is in training: its parameters, and the statistics by which it normalises."""
    part.requires_grad_(False)
    for module in part.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.register_forward_pre_hook(_as_in_use)


def _as_in_use(module: nn.Module, inputs: tuple) -> None:
    module.eval()


@dataclass
class GarmentRecipe(garment.GarmentRecipe):
    """The garment reader's recipe, and where the project's folders are."""

    data: str = setting("", "folder with garments_more/ and not_upper/; empty = of the pack or of draped people")
    pyramid: bool = setting(False, "learn mask and opening alone: encoder and attributes stay as they are")


class GarmentTask(garment.GarmentTask):
    """The garment reader as a task on the project's folders. The name stands in every run's recipe.json."""

    recipe: GarmentRecipe

    def __init__(self, recipe: GarmentRecipe):
        super().__init__(recipe)
        model = self.modules["model"]
        for part in (model.down, model.place, model.attributes) if recipe.pyramid else ():
            freeze(part)

    def pictures(self) -> MarkedGarments:
        """As of the recipe, or of the folders."""
        data, pack = self.recipe.data or None, Pack(self.recipe.pack) if self.recipe.pack else None
        return MarkedGarments(data, pack, None if data or pack else draped_people(self.recipe, FLAT_SIZE))

    def validation(self, count: int) -> list[GarmentPicture]:
        """Of the folders every third picture no upper garment, and every held-out garment whose opening is marked."""
        if not self.recipe.data:
            return super().validation(count)
        data, pictures = Path(self.recipe.data), []
        for folder, number in ((data / "garments_more", count * 2 // 3), (data / "not_upper", count // 3)):
            if folder.is_dir():
                names = names_of(folder, held_out=True)
                pictures += with_openings(folder, read_folder(folder, names[:: max(1, len(names) // number)][:number]))
        for folder in (data / "garments", data / "garments_more"):
            if folder.is_dir():
                with_marks = [
                    name for name in names_of(folder, held_out=True) if neck_openings().get((folder.name, name))
                ]
                known = {p.name for p in pictures}
                pictures += with_openings(
                    folder, read_folder(folder, [name for name in with_marks if name not in known])
                )
        return pictures


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return launch(GarmentTask, GarmentRecipe, PRESETS, argv, "Trains the garment reader on the project's garments.")


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
