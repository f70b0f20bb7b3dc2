"""Handwritten digits in the IDX files of MNIST, and this project's own division of the 10,000 test digits."""

import csv
import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

SIDE = 28
MAX_BYTES = 200 * 2**20
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Digits:
    """Pixels in [0, 1] as rows of 784, 0 paper and 1 ink."""

    train: Tensor
    valid: Tensor
    test: Tensor


def read_idx(file: Path | str) -> np.ndarray:
    """Pictures (n, 28, 28) uint8 of an IDX file, gzipped or not.

    Raises ValueError with one sentence when it is damaged, too large or of another kind.
    """
    file = Path(file)
    try:
        raw = file.read_bytes()[: MAX_BYTES + 1]
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(file) as stream:
                raw = stream.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"'{file.name}' is cut off or damaged; copy it again.") from None
    if len(raw) > MAX_BYTES:
        raise ValueError(f"'{file.name}' unpacks to more than {MAX_BYTES // 2**20} MiB, which no file of digits does.")
    if len(raw) < 16 or raw[:4] != b"\x00\x00\x08\x03":
        raise ValueError(f"'{file.name}' is not an IDX file of pictures (such as t10k-images-idx3-ubyte.gz).")
    count, height, width = np.frombuffer(raw, ">u4", 3, 4).tolist()
    if (height, width) != (SIDE, SIDE) or len(raw) != 16 + count * SIDE * SIDE or count < 1:
        raise ValueError(f"'{file.name}' does not hold {SIDE} x {SIDE} pictures as its header says.")
    return np.frombuffer(raw, np.uint8, offset=16).reshape(count, SIDE, SIDE)


def to_rows(pictures: np.ndarray) -> Tensor:
    """(n, 28, 28) uint8 -> (n, 784) float32 in [0, 1]."""
    return torch.from_numpy(pictures.reshape(len(pictures), -1).astype(np.float32) / 255)


def read_digits(folder: Path | str) -> Digits:
    """The digits of a folder with one file of pictures and, where there is one, a split.tsv (picture, part).

    Without a split the last tenth is for testing and the tenth before it for validation, as the files come.
    Raises FileNotFoundError or ValueError with one sentence.
    """
    folder = Path(folder)
    files = sorted([*folder.glob("*images-idx3-ubyte.gz"), *folder.glob("*images-idx3-ubyte")])
    if not files:
        raise FileNotFoundError(f"The folder '{folder.name}' holds no IDX file of pictures (*images-idx3-ubyte.gz).")
    rows = to_rows(read_idx(files[0]))
    if len(rows) < 10:
        raise ValueError(f"'{files[0].name}' holds {len(rows)} digits; at least 10 are needed for three parts.")
    parts = _parts(folder / "split.tsv", len(rows))
    return Digits(*(rows[torch.from_numpy(np.flatnonzero(parts == part))] for part in PARTS))


def centre(drawing: np.ndarray) -> Tensor:
    """A drawn digit as MNIST has its own: its ink fits into 20 x 20, and its centre of mass is that of 28 x 28.

    drawing: (H, W) uint8, 0 paper and 255 ink. Returns (784,) in [0, 1]. Raises ValueError when there is no ink.
    """
    rows, columns = np.nonzero(drawing > 20)
    if not len(rows):
        raise ValueError("Draw a digit first.")
    ink = drawing[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    scale = 20 / max(ink.shape)
    size = [max(1, round(length * scale)) for length in ink.shape]
    small = cv2.resize(ink, (size[1], size[0]), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    mass = small.sum() or 1.0
    middle = [float((small.sum(1 - axis) * np.arange(size[axis])).sum() / mass) for axis in (0, 1)]
    top, left = (min(max(round(SIDE / 2 - 0.5 - m), 0), SIDE - s) for m, s in zip(middle, size))
    out = np.zeros((SIDE, SIDE), np.float32)
    out[top : top + size[0], left : left + size[1]] = small
    return torch.from_numpy(out.reshape(-1))


def _parts(file: Path, count: int) -> np.ndarray:
    if not file.is_file():
        places = np.arange(count)
        return np.where(places < count * 8 // 10, "train", np.where(places < count * 9 // 10, "valid", "test"))
    with open(file, encoding="utf-8", newline="") as lines:
        table = [row for row in csv.reader(lines, delimiter="\t") if row]
    names = [row[-1] for row in table[1:]]
    if len(names) != count or not set(names) <= set(PARTS) or len(set(names)) < 3:
        raise ValueError(f"{file.name} has to name train, valid or test for each of the {count} pictures.")
    return np.array(names)
