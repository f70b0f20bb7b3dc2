"""Folders of garments and of other things, which the garment reader learned from.

garments/ (cloth/, cloth-mask/), garments_more/ (photo/, photo-mask/), both with attributes.tsv, and not_upper/ (image/,
kinds.tsv).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np

from vton.data.garments import GarmentPicture, attributes_of
from vton.data.pack import read_attributes
from vton.inputs.garment import by_background, shrink
from vton.networks.garment_reader import UPPER_KINDS

# Folders of pictures and of their masks: as photographed, or cut out on white.
PLACES = (("photo", "photo-mask"), ("cloth", "cloth-mask"), ("image", "mask"))
LONGEST = 384  # longer side of a picture in memory: as photographed, so that a neck is seen as sharp as a visitor's
# Every so many pictures of a folder are for validation.
VALIDATION_EVERY = {"garments": 10, "garments_more": 8, "not_upper": 7}


def names_of(folder: Path, held_out: bool | None = None) -> list[str]:
    """Ids of a folder of garments or of other things: all, those held out for validation, or the others."""
    names = list(read_attributes(folder) | read_attributes(folder, "kinds.tsv"))
    if not names:
        raise FileNotFoundError(f"'{folder.name}' has neither attributes.tsv nor kinds.tsv.")
    every = VALIDATION_EVERY.get(folder.name, 10)
    return [name for i, name in enumerate(names) if held_out is None or (i % every == 0) == held_out]


def read_folder(folder: Path, names: Iterable[str], longest: int = LONGEST) -> list[GarmentPicture]:
    """The pictures of those ids, their longer side `longest` pixels at most.

    What attributes.tsv describes is an upper garment; kinds.tsv tells what the others are. Raises ValueError with one
    sentence for a picture that is missing or cannot be read.
    """
    rows, kinds = read_attributes(folder), read_attributes(folder, "kinds.tsv")
    pictures = []
    for name in names:
        places = [(p, m) for p, m in PLACES if (folder / p / f"{name}.jpg").is_file()]
        image, mask = read_picture(folder, *places[0], name, longest) if places else (None, None)
        if image is None:
            raise ValueError(f"'{folder.name}' has no readable picture of '{name}' in photo/, cloth/ or image/.")
        cut = places[0][0] != "photo" and name in rows
        if name in rows:
            mask = None if rows[name].get("mask") == "bad" and cut else mask
            sure = 0.5 if rows[name].get("sure") == "0" else 1.0
            pictures.append(GarmentPicture(name, image, mask, attributes_of(rows[name]), cut, sure))
        else:
            kind = kinds[name].get("kind", "").lower()
            pictures.append(GarmentPicture(name, image, mask, {"kind": "upper" if kind in UPPER_KINDS else kind}))
    return pictures


def read_picture(
    folder: Path, pictures: str, masks: str, name: str, longest: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """One picture (H,W,3) uint8 RGB and its mask (H,W) uint8, None where missing; longest: of its sides, in pixels."""
    image = cv2.imread(str(folder / pictures / f"{name}.jpg"))
    if image is None:
        return None, None
    image, file = shrink(image, longest), folder / masks / f"{name}.png"
    mask = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) if file.is_file() else None
    if mask is not None:
        mask = cv2.resize(mask, image.shape[1::-1], interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(image[..., ::-1]), mask


def with_outline(picture: GarmentPicture) -> GarmentPicture:
    """A picture without a mask with one by GrabCut, good enough to set the thing on another background."""
    mask, _ = by_background(picture.image)
    if not 0.05 < mask.mean() < 0.9:
        return picture
    return GarmentPicture(picture.name, picture.image, mask.astype(np.uint8) * 255, picture.attributes)
