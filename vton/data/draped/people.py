"""Draped people as training material: exact parse, joints and warp of a garment that was photographed flat."""

import functools
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from training import assets
from vton import labels
from vton.attributes import LOOSE, TUCKED, group_of
from vton.data.draped.draw import Drawing, draw
from vton.data.draped.pack import Drapes, Product
from vton.data.pack import Person, change_colours, turn_hue
from vton.data.pairs import WHITE, Pair
from vton.joints import FLIP

BACK_SHARE = 0.2  # share of the pairs whose flat garment still shows the inside of its back


class DrapedPeople:
    """Draped people of one split at one size (H, W), by number; each number is always the same person and garment.

    drapes: see `Drapes`; drawings: folder of `lab.tryon.draping.drawings`, or None: each is drawn when it is asked for.
    """

    def __init__(self, drapes: Drapes, size: tuple[int, int], split: str = "train", drawings: Path | None = None):
        self.drapes, self.size, self.split = drapes, size, split
        self.records = drapes.numbers(split)
        if not self.records:
            raise ValueError(f"The file of drapes has none for '{split}'.")
        self.folder = drawings / folder_name(drapes, size, split) if drawings else None
        self.drawing_count = len(list(self.folder.glob("*.npz"))) if self.folder else 0

    def number(self, rng: np.random.Generator) -> int:
        """The number of a person at random."""
        return int(rng.integers(self.drawing_count or 2**31 - 1))

    def product(self, number: int) -> Product:
        """The garment that a person wears, as photographed."""
        return self.drapes.product(self.drapes.wearing[self.records[number % len(self.records)]])

    def hem(self, number: int) -> str:
        """Whether a person wears the garment tucked in: one of `attributes.HEMS`."""
        return TUCKED if self.drapes.record(self.records[number % len(self.records)]).facts["tuck"] else LOOSE

    def drawing(self, number: int) -> tuple[Drawing, Product]:
        """The person, and the garment in the colours in which it is worn."""
        rng = np.random.default_rng([number, 31])
        product = self.product(number)
        if rng.random() < 0.5:
            product = recolour(product, rng)
        file = self.folder / f"{number}.npz" if self.folder else None
        if file and file.is_file():
            return read_drawing(file), product
        record = self.drapes.record(self.records[number % len(self.records)])
        return draw(self.drapes.studio, record, product.cloth, self.size, rng), product

    def sample(
        self, number: int, rng: np.random.Generator, mirror: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Pair]:
        """Person (H,W,3), parse (H,W), keypoints (25,3), and the garment flat and worn with its true warp."""
        drawing, product = self.drawing(number)
        image, parse, keypoints, where = drawing.picture, drawing.parse, drawing.keypoints, drawing.where
        cloth, mask = product.cloth, product.mask
        if product.opening.any() and rng.random() >= BACK_SHARE:
            mask = mask & ~product.opening
        height, width = cloth.shape[:2]
        grid = (where + 0.5) * (2 / np.array([width, height], np.float32)) - 1
        cloth = cv2.resize(cloth, self.size[::-1], interpolation=cv2.INTER_AREA)
        mask = cv2.resize(mask.astype(np.uint8) * 255, self.size[::-1], interpolation=cv2.INTER_AREA) > 127
        outer = ~np.isnan(where[..., 0]) & ~drawing.inside
        if mirror:
            image, parse, outer = image[:, ::-1], labels.FLIP_LIP[parse][:, ::-1], outer[:, ::-1]
            cloth, mask, grid = cloth[:, ::-1], mask[:, ::-1], grid[:, ::-1] * (-1, 1)
            keypoints = keypoints[FLIP].copy()
            keypoints[:, 0] = np.where(keypoints[:, 2] > 0, self.size[1] - 1 - keypoints[:, 0], 0)
        image = np.ascontiguousarray(image)
        pair = Pair(
            np.where(mask[..., None], cloth, WHITE).astype(np.uint8),
            np.ascontiguousarray(mask),
            np.where(outer[..., None], image, WHITE).astype(np.uint8),
            np.ascontiguousarray(outer),
            groups={"sleeves": group_of("sleeves", product.attributes["sleeves"]), "hem": self.hem(number)},
            grid=np.where(outer[..., None], grid, 0).astype(np.float32),
        )
        return image, np.ascontiguousarray(parse), keypoints.astype(np.float32), pair

    def person(self, number: int) -> Person:
        """One person in the form of a packed photograph; the frame is the whole picture."""
        drawing, _ = self.drawing(number)
        mask = cv2.GaussianBlur((drawing.parse > 0).astype(np.float32), (0, 0), 1.5)
        frame = np.array([0, 0, self.size[1], self.size[0]], np.float32)
        empty = np.zeros(self.size, bool)
        return Person(f"draped-{number}", drawing.picture, drawing.parse, mask, empty, drawing.keypoints, frame)


read_drapes = functools.lru_cache(maxsize=2)(Drapes)


def load_people(size: tuple[int, int], split: str = "train", drapes: str = "", drawings: str = "") -> DrapedPeople:
    """Draped people at `size` (H, W). drapes: file of them, "" = the one that ships; drawings: see `DrapedPeople`."""
    file = Path(drapes) if drapes else assets.drapes_file()
    return DrapedPeople(read_drapes(file), size, split, Path(drawings) if drawings else None)


def folder_name(drapes: Drapes, size: tuple[int, int], split: str) -> str:
    """Where drawings of a file of drapes lie: numbers mean other people in another file."""
    return f"{len(drapes)}-{len(drapes.garments)}-{size[0]}-{split}"


def recolour(product: Product, rng: np.random.Generator) -> Product:
    """A garment in other colours: another hue, lightness or contrast."""
    cloth = product.cloth
    if rng.random() < 0.6:
        cloth = turn_hue(cloth, rng, 0.6, 9).astype(np.uint8)
    cloth = change_colours(cloth, rng, 1.5)
    cloth = np.where(product.mask[..., None], cloth, 255).astype(np.uint8)
    return replace(product, cloth=cloth)


def read_drawing(file: Path) -> Drawing:
    """Reads a drawing that `lab.tryon.draping.drawings` wrote."""
    with np.load(file, allow_pickle=False) as data:
        picture = cv2.imdecode(data["picture"], cv2.IMREAD_COLOR)[..., ::-1]
        parse = cv2.imdecode(data["parse"], cv2.IMREAD_UNCHANGED)
        where = np.stack([cv2.imdecode(data[k], cv2.IMREAD_UNCHANGED).view(np.int16) for k in ("where", "where_y")], 2)
        inside = np.unpackbits(data["inside"], count=parse.size).reshape(parse.shape) > 0
        keypoints = data["keypoints"]
    known = (where[..., :1] != -1) | (where[..., 1:] != -1)
    return Drawing(
        np.ascontiguousarray(picture), parse, keypoints, np.where(known, where / np.float32(16), np.nan), inside
    )
