"""Pictures that the garment reader learns from: garments as photographed or set on other backgrounds, and other things.

With a pack, clothes cut out of its people and the people themselves are used as well.
"""

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from vton import labels
from vton.data.draped.people import DrapedPeople
from vton.data.pack import Pack, degrade
from vton.data.pairs import flatten_garment
from vton.inputs.garment import shrink
from vton.networks.garment_reader import UPPER_KINDS, VALUES
from vton.rules.sleeves import sleeve_kind

FLAT_SIZE = (256, 192)  # (H, W) at which worn garments are laid flat
DRAPE_COUNT = 40  # draped people whose garments are learned where there is nothing else
PIECE = 224  # longer side of what is cut out of a person
SAME_AS = {
    "sleeves": {"long-rolled": "long"},
    "view": {"front": "flat", "back": "flat", "crumpled": "flat", "folded": "flat"},
}
PIECES = tuple((name, labels.LIP.index(name)) for name in ("pants", "skirt", "dress"))


@dataclass(frozen=True)
class GarmentPicture:
    """A picture of a garment or of something else, and what is known of it."""

    name: str
    image: np.ndarray  # (H,W,3) uint8 RGB
    mask: np.ndarray | None  # (H,W) uint8 0/255
    attributes: dict[str, str]  # by name as in VALUES, only what is known
    cut: bool = False  # its background is no photograph, so the cut-out has to be set on one
    sure: float = 1.0  # how far the labels are trusted
    opening: np.ndarray | None = None  # (H,W) uint8 0/255, the inside of its back above the front neckline, if known


def attributes_of(row: dict[str, str]) -> dict[str, str]:
    """The attributes of a row of attributes.tsv that are among VALUES; another kind is an "upper" garment."""
    attributes = {name: SAME_AS.get(name, {}).get(row.get(name, ""), row.get(name, "")) for name in VALUES}
    attributes["kind"] = attributes["kind"] if attributes["kind"] in UPPER_KINDS else "upper"
    return {name: value for name, value in attributes.items() if value in VALUES[name] or value == "upper"}


def pieces_of(pack: Pack, index: int) -> list[GarmentPicture]:
    """What one packed person wears, cut out along the parse, and the person: none shows an upper garment alone."""
    person, pieces = pack.person(index), []
    sleeves = sleeve_kind(labels.lip_to_13(person.parse), person.keypoints)
    upper = np.isin(person.parse, (labels.LIP.index("upper-clothes"), labels.LIP.index("coat")))
    for kind, mask in (("upper", upper), *((name, person.parse == label) for name, label in PIECES)):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if mask.sum() < 0.02 * mask.size or min(len(rows), len(columns)) < 40:
            continue
        part = (slice(max(0, rows[0] - 4), rows[-1] + 5), slice(max(0, columns[0] - 4), columns[-1] + 5))
        image, mask = _small(person.image[part]), _small(mask[part].astype(np.uint8) * 255)
        attributes = {"kind": kind} | ({"sleeves": sleeves} if kind == "upper" and sleeves else {})
        pieces.append(GarmentPicture(f"{person.name}-{kind}", image, mask, attributes, cut=True))
    x0, y0, x1, y1 = np.round(person.frame).astype(int)
    frame = person.image[max(0, y0) : y1, max(0, x0) : x1]
    pieces += [
        GarmentPicture(person.name, _small(picture), None, {"kind": "person", "view": "worn"})
        for picture in (person.image, frame)
    ]
    silhouette = np.flatnonzero(((person.person_mask > 0.2) | (person.parse > 0)).any(0))
    if len(silhouette):  # the street on one side of the person
        left, right = person.image[:, : silhouette[0]], person.image[:, silhouette[-1] + 1 :]
        street = left if left.shape[1] > right.shape[1] else right
        if street.shape[1] > 80:
            height = min(street.shape[0], 2 * street.shape[1])
            pieces.append(GarmentPicture(f"{person.name}-street", _small(street[:height]), None, {"kind": "nothing"}))
    return pieces


def flat_garment(pack: Pack, index: int) -> list[GarmentPicture]:
    """What a packed person wears, laid flat as for the made pairs, with the sleeves that the person shows; empty where
    it cannot be laid flat, or no kind of sleeves is seen.
    """
    person = pack.person(index)
    pair = flatten_garment(person, FLAT_SIZE, np.random.default_rng([index, 3]))
    if pair is None or not pair.groups["sleeves"]:
        return []
    mask = pair.cloth_mask.astype(np.uint8) * 255
    return [GarmentPicture(f"{person.name}-flat", pair.cloth, mask, {"kind": "upper"} | pair.groups, cut=True)]


def _small(picture: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(shrink(picture, PIECE))


# -- backgrounds -----------------------------------------------------------------------------------------------------


def background(
    size: tuple[int, int], cloth: np.ndarray, rng: np.random.Generator, street: np.ndarray | None
) -> np.ndarray:
    """Something to lay a garment on, (H, W, 3) float32 in [0, 255].

    size: (H, W); cloth: (3,) its mean colour, for white on white and dark on dark; street: a photograph (H,W,3) or
        None.
    One colour or a gradient; boards; tiles; a weave; a blurred photograph.
    """
    height, width = size
    kind = rng.random()
    like = rng.random()
    colour = (
        cloth + rng.normal(0, 14, 3)
        if like < 0.25
        else np.full(3, rng.uniform(200, 255)) + rng.normal(0, 4, 3)
        if like < 0.6
        else rng.uniform(20, 240, 3)
    )
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    angle = rng.uniform(0, np.pi)
    along = (x * np.cos(angle) + y * np.sin(angle)) / height
    out = np.broadcast_to(colour.astype(np.float32), (height, width, 3)).copy()
    if kind < 0.2 and street is not None:
        scale = max(height / street.shape[0], width / street.shape[1])
        large = cv2.resize(street, None, fx=scale * 1.02, fy=scale * 1.02)[:height, :width]
        out = cv2.GaussianBlur(large, (0, 0), rng.uniform(0.3, 5)).astype(np.float32)
    elif kind < 0.4:  # boards: streaks along one direction, with joints between them
        streaks = rng.normal(0, 1, (height, width)).astype(np.float32)
        streaks = cv2.GaussianBlur(streaks, (0, 0), sigmaX=rng.uniform(6, 25), sigmaY=0.7)
        streaks *= rng.uniform(4, 16) / max(streaks.std(), 1e-6)
        board = rng.integers(12, 60)
        shade = rng.normal(0, 8, height // board + 2)[(np.arange(height) // board)].astype(np.float32)
        grain = streaks + shade[:, None] - 25 * (np.arange(height) % board < 1).astype(np.float32)[:, None]
        grain = grain.T[:height, :width] if rng.random() < 0.3 and height == width else grain
        if like >= 0.6:
            out = np.broadcast_to(np.float32((150, 110, 75)) * np.float32(rng.uniform(0.4, 1.5)), out.shape).copy()
        out += grain[..., None]
    elif kind < 0.5:  # tiles, or a checked cloth
        period = rng.integers(10, 60)
        lines = ((x + rng.integers(0, 60)) % period < 2) | ((y + rng.integers(0, 60)) % period < 2)
        out += (rng.normal(0, 25) * cv2.GaussianBlur(lines.astype(np.float32), (0, 0), 0.7))[..., None]
    elif kind < 0.75:  # folds of a sheet, or a rough wall
        cells = rng.normal(0, 1, (rng.integers(3, 30), rng.integers(3, 30))).astype(np.float32)
        folds = cv2.resize(cells, (width, height))
        out += rng.uniform(2, 14) * folds[..., None]
    out += (along - along.mean())[..., None] * np.float32(rng.normal(0, 25))
    return out + rng.normal(0, rng.uniform(0, 4), (height, width, 1)).astype(np.float32)


def compose_on(image: np.ndarray, mask: np.ndarray, ground: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The cut-out on another background, with a soft shadow and at times a hanger; uint8.

    image (H,W,3), mask (H,W) float32 in [0, 1], ground (H,W,3) float32.
    """
    height, width = mask.shape
    out = ground
    rows = np.flatnonzero((mask > 0.5).any(1))
    if len(rows) and rng.random() < 0.3:
        columns = np.flatnonzero(mask[rows[0] : rows[0] + max(2, len(rows) // 6)].max(0) > 0.5)
        if len(columns):
            draw_hanger(out, float(columns.mean()), float(rows[0]), float(np.ptp(columns) + 8), rng)
    if rng.random() < 0.7:
        shift = rng.normal(0, 0.02, 2) * (width, height)
        shadow = cv2.warpAffine(mask, np.float32([[1, 0, shift[0]], [0, 1, shift[1]]]), (width, height))
        shadow = cv2.GaussianBlur(shadow, (0, 0), rng.uniform(0.006, 0.05) * width)
        out = out * (1 - rng.uniform(0.05, 0.5) * shadow[..., None])
    return np.clip(image * mask[..., None] + out * (1 - mask[..., None]), 0, 255).astype(np.uint8)


def draw_hanger(picture: np.ndarray, x: float, y: float, wide: float, rng: np.random.Generator) -> None:
    """Draws a hanger's hook and bar into `picture` (H,W,3), below which a garment whose top is at (x, y) is laid."""
    colour = tuple(float(v) for v in rng.uniform(10, 240, 3))
    thick = int(rng.integers(1, 4))
    hook = wide * rng.uniform(0.06, 0.14)
    top = (round(x), round(y - hook * rng.uniform(0.2, 1.5)))
    cv2.ellipse(picture, (top[0], top[1]), (round(hook) + 1, round(hook) + 1), 0, 120, 400, colour, thick)
    for side in (-1, 1):
        end = (round(x + side * wide * 0.4), round(y + 0.2 * wide))
        cv2.line(picture, (top[0], top[1] + round(hook)), end, colour, thick)


def change_garment_colours(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Hue, saturation, exposure and contrast at random, (H,W,3) uint8: what it is does not depend on its colour."""
    x = image.astype(np.float32)
    if rng.random() < 0.5:  # a turn about the grey axis
        angle = rng.uniform(-np.pi, np.pi)
        c, s, third = np.cos(angle), np.sin(angle) / np.sqrt(3), (1 - np.cos(angle)) / 3
        turn = np.array([[c, -s, s], [s, c, -s], [-s, s, c]]) + third
        x = x @ turn.T.astype(np.float32)
    grey = x.mean(2, keepdims=True)
    x = grey + (x - grey) * np.float32(np.exp(rng.normal(0, 0.5)) if rng.random() < 0.85 else 0)
    x = (x - 128) * np.float32(np.exp(rng.normal(0, 0.2))) + np.float32(128 + rng.normal(0, 18))
    x = x * np.exp(rng.normal(0, 0.06, 3)).astype(np.float32)
    return degrade(np.clip(x, 0, 255).astype(np.uint8), rng)


class Source(NamedTuple):
    """How often pictures of a kind are drawn."""

    share: float  # of the samples, as far as there are pictures of it
    other_ground: float  # how often its cut-outs get another background


SOURCES = {
    "cut": Source(0.18, 1.0),
    "piece": Source(0.07, 1.0),
    "worn": Source(0.09, 0.7),
    "person": Source(0.05, 0.0),
    "nothing": Source(0.03, 0.0),
    "draped": Source(1.0, 0.7),
}


class Garments:
    """All pictures that are learned, in memory, and which of them are drawn how often.

    pack: people, of whom clothes are cut out, and garments, of which it knows no more than their sleeves. draped:
    people whose garments are learned where there is no pack.
    """

    kinds = SOURCES

    def __init__(self, pack: Pack | None = None, draped: DrapedPeople | None = None):
        self.sources: dict[str, list[GarmentPicture]] = {name: [] for name in self.kinds}
        self.sources |= self.products(pack, draped)
        for index in pack.people("train") if pack else []:
            for picture in pieces_of(pack, index):
                kind = picture.attributes["kind"]
                self.sources[kind if kind in ("person", "nothing") else "piece"].append(picture)
            self.sources["worn"] += flat_garment(pack, index)
        self.streets = [p.image for p in self.sources["nothing"]]
        present = [name for name in self.kinds if self.sources[name]]
        shares = np.array([self.kinds[name].share for name in present])
        self.names, self.shares = present, shares / shares.sum()
        self.weights = {name: rarity(self.sources[name]) for name in present}

    def products(self, pack: Pack | None, draped: DrapedPeople | None) -> dict[str, list[GarmentPicture]]:
        """Pictures of garments that nobody wears, by their source."""
        if pack:
            return {"cut": [garment_of_pack(pack, index) for index in pack.garments("train")]}
        return {"draped": draped_garments(draped, DRAPE_COUNT)} if draped else {}

    def draw(self, rng: np.random.Generator) -> tuple[str, GarmentPicture, np.ndarray | None]:
        """A source's name, a picture of it, and a street photograph to set it on, or None."""
        source = str(rng.choice(self.names, p=self.shares))
        pictures = self.sources[source]
        street = self.streets[int(rng.integers(len(self.streets)))] if self.streets else None
        return source, pictures[int(rng.choice(len(pictures), p=self.weights[source]))], street


def rarity(pictures: list[GarmentPicture]) -> np.ndarray:
    """Probability of each picture: rare sleeves, necklines and kinds more often, by the root of their number."""
    weights = np.ones(len(pictures))
    for name in ("sleeves", "neckline", "kind"):
        values = [p.attributes.get(name, "") for p in pictures]
        number = {value: values.count(value) for value in set(values)}
        weights *= np.array([number[value] ** -0.25 for value in values])
    return weights / weights.sum()


def garment_of_pack(pack: Pack, index: int) -> GarmentPicture:
    """A garment of a pack, with its sleeves where they are known."""
    product = pack.product(index)
    attributes = attributes_of({"sleeves": product.sleeves})
    return GarmentPicture(product.name, np.ascontiguousarray(product.cloth), product.mask, attributes, cut=True)


def draped_garments(people: DrapedPeople, count: int) -> list[GarmentPicture]:
    """What the first `count` draped people wear: their garments as photographed flat, and of every fourth the trousers
    or the skirt, which are no upper garment.
    """
    pictures = []
    for number in range(count):
        if number % 4 == 3:
            person = people.person(number)
            areas = {kind: person.parse == labels.LIP.index(kind) for kind in ("pants", "skirt")}
            kind = max(areas, key=lambda kind: areas[kind].sum())
            name, mask = f"{kind}-{number}", areas[kind].astype(np.uint8) * 255
            pictures.append(GarmentPicture(name, person.image, mask, {"kind": kind}, cut=True))
        else:
            product = people.product(number)
            mask, opening = (area.astype(np.uint8) * 255 for area in (product.mask, product.opening))
            attributes = attributes_of(product.attributes)
            picture = GarmentPicture(product.name, product.cloth, mask, attributes, cut=True)
            pictures.append(dataclasses.replace(picture, opening=opening) if opening.any() else picture)
    return pictures
