"""Drapes in one packed file: bodies, skins, hair, garment pictures and records, all that drawing needs.

`lab.tryon.draping` simulates garments on bodies and packs such a file.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vton.data.draped.codec import MAGIC, decode
from vton.data.draped.draw import Record, Studio
from vton.data.pack import PackedFile

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
    """A draped garment as photographed flat."""

    name: str
    cloth: np.ndarray  # (H, W, 3) uint8 RGB
    mask: np.ndarray  # (H, W) bool
    opening: np.ndarray  # (H, W) bool, the inside of its back above the neckline
    attributes: dict[str, str]  # as in attributes.tsv


class Drapes(PackedFile):
    """Reads a packed file of drapes. `numbers(split)` gives the records of 'train' or 'val', which share no garment."""

    missing = "There is no file of drapes {}; without --drapes those that ship are taken."
    foreign = "file of drapes"

    def read(self) -> None:
        """Names of the garments, and of what each person wears."""
        self.garments, self.wearing = ([str(name) for name in self.arrays[key]] for key in ("garments", "worn"))
        if self.arrays["records"][: len(MAGIC)].tobytes() != MAGIC:
            raise ValueError("its records have an older form: pack them again")
        self.studio = Studio(self.arrays)
        self.record = lru_cache(maxsize=512)(self._record)
        self.product = lru_cache(maxsize=256)(self._product)

    def __len__(self) -> int:
        return len(self.wearing)

    def numbers(self, split: str) -> list[int]:
        """Indices of the records of 'train' or 'val'."""
        return [i for i, name in enumerate(self.wearing) if is_validation(name) == (split == "val")]

    def _record(self, number: int) -> Record:
        return Record.of(decode(self.content("records", number).tobytes()))

    def _product(self, name: str) -> Product:
        index = self.garments.index(name)
        masks, cloth = self.map("masks", index), self.picture("cloth", index)
        attributes = {key: str(self.arrays[key][index]) for key in ATTRIBUTES}
        return Product(name, np.ascontiguousarray(cloth), masks > 0, masks == 128, attributes)


def is_validation(garment: str) -> bool:
    """Whether a garment is for validation: decided by its name, so that it holds in every file, and twins together."""
    return hashlib.sha256(TWINS.get(garment, garment).encode()).digest()[0] % VALIDATION_EVERY == 0
