"""Drapes in one packed file: bodies, skins, hair, garment pictures and records, all that drawing needs.

`lab.tryon.draping` simulates garments on bodies and packs such a file.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from vton.data.draped.codec import MAGIC, decode
from vton.data.draped.draw import Record, Studio

ATTRIBUTES = ("kind", "sleeves", "neckline")
VALIDATION_EVERY = 10  # every so many garments are for validation
# Garments that were photographed twice, and the name that decides for both.
TWINS = {
    "garments/longsleeve_0061": "garments/longsleeve_0034",
    "garments/outwear_0078": "garments/outwear_0070",
    "garments/longsleeve_0160": "garments/longsleeve_0015",
    "garments/longsleeve_0174": "garments/longsleeve_0119",
}


@dataclass
class Product:
    """A draped garment as photographed flat: cloth (H, W, 3) uint8 RGB, mask (H, W) bool, opening (H, W) bool: the
    inside of its back above the neckline; attributes as in attributes.tsv.
    """

    name: str
    cloth: np.ndarray
    mask: np.ndarray
    opening: np.ndarray
    attributes: dict[str, str]


class Drapes:
    """Reads a packed file of drapes. `numbers(split)` gives the records of 'train' or 'val', which share no garment."""

    def __init__(self, file: Path | str):
        file = Path(file)
        if not file.is_file():
            raise FileNotFoundError(
                f"There is no file of drapes '{file.name}'; without --drapes those that ship are taken."
            )
        try:
            with np.load(file, allow_pickle=False) as data:
                arrays = {key: data[key] for key in data.files}
            self.garments = [str(name) for name in arrays["garments"]]
            self.wearing = [str(name) for name in arrays["worn"]]
            if arrays["records"][: len(MAGIC)].tobytes() != MAGIC:
                raise ValueError("its records have an older form: pack them again")
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"'{file.name}' is not a file of drapes ({error}).") from None
        self._data = arrays
        self.studio = Studio(arrays)
        self.record = lru_cache(maxsize=512)(self._record)
        self.product = lru_cache(maxsize=256)(self._product)

    def __len__(self) -> int:
        return len(self.wearing)

    def numbers(self, split: str) -> list[int]:
        """Indices of the records of 'train' or 'val'."""
        return [i for i, name in enumerate(self.wearing) if is_validation(name) == (split == "val")]

    def _bytes(self, kind: str, index: int) -> np.ndarray:
        ends = self._data[kind + "_ends"]
        return self._data[kind][int(ends[index - 1]) if index else 0 : int(ends[index])]

    def _record(self, number: int) -> Record:
        return Record.of(decode(self._bytes("records", number).tobytes()))

    def _product(self, name: str) -> Product:
        index = self.garments.index(name)
        masks = cv2.imdecode(self._bytes("masks", index), cv2.IMREAD_GRAYSCALE)
        attributes = {key: str(self._data[key][index]) for key in ATTRIBUTES}
        cloth = cv2.imdecode(self._bytes("cloth", index), cv2.IMREAD_COLOR)[..., ::-1]
        return Product(name, np.ascontiguousarray(cloth), masks > 0, masks == 128, attributes)


def is_validation(garment: str) -> bool:
    """Whether a garment is for validation: decided by its name, so that it holds in every file, and twins together."""
    return hashlib.sha256(TWINS.get(garment, garment).encode()).digest()[0] % VALIDATION_EVERY == 0
