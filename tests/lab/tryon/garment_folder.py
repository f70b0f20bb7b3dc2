"""Drawn garments as a folder of the garment reader's data."""

import cv2
import numpy as np
import pytest

from lab.tryon.synthetic import draw_pair
from vton.data.garments import GarmentPicture


def drawn_garment(seed):
    """A drawn garment with its exact mask; every fourth is a pair of trousers."""
    pair = draw_pair(seed, size=(256, 192), sleeves=("none", "short", "long")[seed % 3], pose="down")
    if seed % 4 == 3:
        return GarmentPicture("", pair.person, np.isin(pair.parse, (9, 12)).astype(np.uint8) * 255, {})
    return GarmentPicture("", pair.cloth, pair.cloth_mask, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten drawn garments and two pairs of trousers in the layout of the data."""
    root = tmp_path_factory.mktemp("data")
    more, other = root / "garments_more", root / "not_upper"
    for place in (more / "photo", more / "photo-mask", other / "image"):
        place.mkdir(parents=True)
    rows, sleeves = ["id\tsleeves\tneckline\tview\tkind\tsure"], ("none", "short", "long-rolled")
    for i in range(10):
        drawn = drawn_garment(4 * i + i % 3)
        cv2.imwrite(str(more / "photo" / f"g{i}.jpg"), drawn.image[..., ::-1])
        cv2.imwrite(str(more / "photo-mask" / f"g{i}.png"), drawn.mask)
        rows.append(f"g{i}\t{sleeves[i % 3]}\tround\t{'hanger' if i % 2 else 'front'}\tdress\t{i % 2}")
    (more / "attributes.tsv").write_text("\n".join(rows) + "\n")
    for i in range(2):
        cv2.imwrite(str(other / "image" / f"p{i}.jpg"), drawn_garment(4 * i + 3).image[..., ::-1])
    (other / "kinds.tsv").write_text("id\tkind\tsource\np0\tpants\tx\np1\tskirt\ty\n")
    return root
