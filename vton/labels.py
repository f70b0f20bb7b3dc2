"""The three label maps of VITON-HD, their names and colours, and the tables between them.

A parse carries the 20 labels of LIP. The segmentation generator works with 13 classes (section 3.2), the ALIAS
generator with 7 (section 3.4). Left and right are the person's own: in a frontal picture the left arm is at the right.
"""

from pathlib import Path

import numpy as np
from PIL import Image

LIP = (
    "background",
    "hat",
    "hair",
    "glove",
    "sunglasses",
    "upper-clothes",
    "dress",
    "coat",
    "socks",
    "pants",
    "neck",
    "scarf",
    "skirt",
    "face",
    "left arm",
    "right arm",
    "left leg",
    "right leg",
    "left shoe",
    "right shoe",
)

# Parse label -> label of the mirrored picture.
FLIP_LIP = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14, 17, 16, 19, 18], np.uint8)

SEGMENTATION = (
    "background",
    "hair",
    "face",
    "upper",
    "bottom",
    "left arm",
    "right arm",
    "left leg",
    "right leg",
    "left shoe",
    "right shoe",
    "socks",
    "noise",
)

# LIP label -> class of the segmentation generator. The neck is background: its extent depends on the garment.
SEGMENTATION_FROM_LIP = np.array([0, 1, 1, 12, 2, 3, 3, 3, 11, 4, 0, 12, 4, 2, 5, 6, 7, 8, 9, 10], np.uint8)

UPPER = SEGMENTATION.index("upper")
BACKGROUND = 0  # in all maps
HAIR, FACE, BOTTOM = (SEGMENTATION.index(name) for name in ("hair", "face", "bottom"))
BELOW = tuple(
    SEGMENTATION.index(name) for name in ("bottom", "left leg", "right leg")
)  # what a garment's hem ends above
ARMS = LEFT_ARM, RIGHT_ARM = SEGMENTATION.index("left arm"), SEGMENTATION.index("right arm")

FLIP_SEGMENTATION = np.array([0, 1, 2, 3, 4, 6, 5, 8, 7, 10, 9, 11, 12], np.uint8)

ALIAS = ("background", "paste", "upper", "hair", "left arm", "right arm", "noise")

# Class of the segmentation generator -> class of the ALIAS generator. "paste" is what the person keeps unchanged.
ALIAS_FROM_SEGMENTATION = np.array([0, 3, 1, 2, 1, 4, 5, 1, 1, 1, 1, 1, 6], np.uint8)

# The divided segmentation S_div: the misaligned part of the upper garment is a class of its own (equation 4).
DIVIDED = (*ALIAS, "misaligned")

ALIAS_UPPER, MISALIGNED = DIVIDED.index("upper"), DIVIDED.index("misaligned")

# The palette of the published image-parse files.
LIP_COLOURS = np.array(
    [
        (0, 0, 0),
        (128, 0, 0),
        (254, 0, 0),
        (0, 85, 0),
        (169, 0, 51),
        (254, 85, 0),
        (0, 0, 85),
        (0, 119, 220),
        (85, 85, 0),
        (0, 85, 85),
        (85, 51, 0),
        (52, 86, 128),
        (0, 128, 0),
        (0, 0, 254),
        (51, 169, 220),
        (0, 254, 254),
        (85, 254, 169),
        (169, 254, 85),
        (254, 254, 0),
        (254, 169, 0),
    ],
    np.uint8,
)

# Every class takes the colour of its most typical LIP label, so that the maps can be compared at sight.
SEGMENTATION_COLOURS = LIP_COLOURS[[0, 2, 13, 5, 9, 14, 15, 16, 17, 18, 19, 8, 3]]
ALIAS_COLOURS = LIP_COLOURS[[0, 13, 5, 2, 14, 15, 3]]
MISALIGNED_COLOUR = (255, 140, 0)  # orange, as in the paper's figures
# The garment takes a quiet blue here, because its usual colour is an orange too.
DIVIDED_COLOURS = np.concatenate([ALIAS_COLOURS, np.array([MISALIGNED_COLOUR], np.uint8)])
DIVIDED_COLOURS[2] = (70, 110, 170)

# Labels of a parse by what they stand for.
HAT_LIP, HAIR_LIP, NECK_LIP, FACE_LIP = (LIP.index(name) for name in ("hat", "hair", "neck", "face"))
DRESS_LIP, COAT_LIP = LIP.index("dress"), LIP.index("coat")
UPPER_LIP = tuple(LIP.index(name) for name in ("upper-clothes", "dress", "coat"))
ARMS_LIP = LEFT_ARM_LIP, RIGHT_ARM_LIP = LIP.index("left arm"), LIP.index("right arm")
HEAD_LIP = tuple(LIP.index(name) for name in ("sunglasses", "face"))
TROUSERS_LIP = PANTS_LIP, SKIRT_LIP = LIP.index("pants"), LIP.index("skirt")
LEGS_LIP = LEFT_LEG_LIP, RIGHT_LEG_LIP = LIP.index("left leg"), LIP.index("right leg")
SHOES_LIP = tuple(LIP.index(name) for name in ("left shoe", "right shoe"))
LOWER_LIP = (*TROUSERS_LIP, *LEGS_LIP, *SHOES_LIP)


def _look_up(label_map: np.ndarray, table: np.ndarray, what: str) -> np.ndarray:
    label_map = np.asarray(label_map)
    if label_map.dtype.kind not in "ui":
        raise ValueError(f"A label map holds integers, this one holds {label_map.dtype}; pass the labels, not colours.")
    if label_map.size and (label_map.max() >= len(table) or (label_map.dtype.kind == "i" and label_map.min() < 0)):
        raise ValueError(
            f"{what} knows labels 0 to {len(table) - 1}, this map holds {label_map.min()} to {label_map.max()}."
        )
    return table[label_map]


def read_indices(file: Path) -> np.ndarray:
    """A palette or grey PNG's indices, (H, W) uint8, without colour conversion."""
    with Image.open(file) as picture:
        return np.asarray(picture if picture.mode in ("P", "L", "1") else picture.convert("L")).astype(np.uint8)


def colour(label_map: np.ndarray, palette: np.ndarray = LIP_COLOURS) -> np.ndarray:
    """Paint a label map.

    label_map: (H, W) integers; palette: (n, 3) uint8, one colour per label. Returns (H, W, 3) uint8 RGB.
    Raises ValueError for a label that the palette does not hold.
    """
    return _look_up(label_map, np.asarray(palette, np.uint8), "The palette")


def lip_to_13(parse: np.ndarray) -> np.ndarray:
    """LIP labels 0-19 (any shape, integers) -> the segmentation generator's 13 classes, uint8 of the same shape."""
    return _look_up(parse, SEGMENTATION_FROM_LIP, "The 20-label parse")


def thirteen_to_7(segmentation: np.ndarray) -> np.ndarray:
    """The segmentation generator's 13 classes (any shape, integers) -> ALIAS's 7 classes, uint8 of the same shape."""
    return _look_up(segmentation, ALIAS_FROM_SEGMENTATION, "The 13-class segmentation")


def one_hot(label_map: np.ndarray, n: int) -> np.ndarray:
    """(H, W) integers 0 to n - 1 -> (n, H, W) float32, 1 where the pixel has the channel's label and 0 elsewhere."""
    label_map = _look_up(label_map, np.arange(n), "one_hot")
    return (label_map == np.arange(n)[:, None, None]).astype(np.float32)
