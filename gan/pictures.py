"""Pictures of samples: sheets of digits, points in the plane, densities on the line."""

from pathlib import Path

import cv2
import numpy as np
from torch import Tensor

from gan.densities import LIMIT
from gan.digits import SIDE

PAPER, INK, GREEN, BLUE = (255, 255, 255), (31, 27, 24), (46, 125, 80), (40, 90, 170)
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")  # of the pictures that can be written
GAP = 2  # pixels around each digit of a sheet
SIZE = 480  # pixels of a drawn plane


def to_pictures(rows: Tensor) -> np.ndarray:
    """(n, 784) in [0, 1] -> (n, 28, 28) uint8, 0 paper and 255 ink."""
    return (rows.detach().clamp(0, 1) * 255).round().byte().view(-1, SIDE, SIDE).numpy()


def sheet(rows: Tensor, columns: int = 8, neighbours: Tensor | None = None) -> np.ndarray:
    """Digits (n, 784) side by side as one grey picture, white on black.

    neighbours: (n, 784), drawn to the right of each digit within a brighter frame, as in Figure 2.
    """
    pictures = to_pictures(rows)
    beside = to_pictures(neighbours) if neighbours is not None else None
    wide = SIDE * (2 if beside is not None else 1)
    columns = max(1, min(columns, len(pictures)))
    lines = -(-len(pictures) // columns)
    out = np.full((lines * (SIDE + GAP) + GAP, columns * (wide + GAP) + GAP), 60, np.uint8)
    for i, picture in enumerate(pictures):
        y, x = (i // columns) * (SIDE + GAP) + GAP, (i % columns) * (wide + GAP) + GAP
        out[y : y + SIDE, x : x + SIDE] = picture
        if beside is not None:
            out[y : y + SIDE, x + SIDE : x + 2 * SIDE] = beside[i]
            cv2.rectangle(out, (x + SIDE, y), (x + 2 * SIDE - 1, y + SIDE - 1), 150, 1)
    return out


def plane(real: Tensor, fake: Tensor) -> np.ndarray:
    """Points (n, 2) of the data in ink and of the generator in green, (480, 480, 3) uint8 RGB."""
    out = np.full((SIZE, SIZE, 3), PAPER, np.uint8)
    for points, colour in ((real, INK), (fake, GREEN)):
        places = ((points.numpy() + LIMIT) / (2 * LIMIT) * SIZE).clip(-9, SIZE + 9).astype(int)
        for x, y in places:
            cv2.circle(out, (int(x), SIZE - int(y)), 1, colour, -1, cv2.LINE_AA)
    return out


def line(data: Tensor, generator: Tensor, d: Tensor) -> np.ndarray:
    """Figure 1: the data's density dotted, the generator's in green, D dashed in blue, (240, 640, 3) uint8 RGB."""
    height, width = 240, 640
    out = np.full((height, width, 3), PAPER, np.uint8)
    top = max(float(data.max()), min(float(generator.max()), 2 * float(data.max()))) * 1.1
    for values, most, colour, gap in ((data, top, INK, 3), (generator, top, GREEN, 1), (d, 1.05, BLUE, 2)):
        x = np.linspace(0, width - 1, len(values))
        y = (height - 6) - np.minimum(values.numpy() / most, 1) * (height - 12)
        points = np.stack([x, y], 1).round().astype(np.int32)
        for i in range(0, len(points) - 1, gap):
            cv2.line(out, points[i].tolist(), points[i + 1].tolist(), colour, 2, cv2.LINE_AA)
    return out


def save(file: Path | str, picture: np.ndarray) -> None:
    """Writes a grey (H, W) or RGB (H, W, 3) picture as its name ends, one of `ENDINGS`; as PNG without an ending.

    Raises ValueError for another ending, and OSError when the place cannot be written.
    """
    ending = Path(file).suffix.lower() or ".png"
    if ending not in ENDINGS:
        raise ValueError(f"A picture's name ends in {', '.join(ENDINGS)}, but this one is '{Path(file).name}'.")
    ok, data = cv2.imencode(ending, picture if picture.ndim == 2 else picture[..., ::-1])
    if not ok:
        raise OSError(f"The picture '{file}' could not be encoded.")
    with open(file, "wb") as out:
        out.write(data.tobytes())
