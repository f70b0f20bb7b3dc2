"""The three label maps of VITON-HD, their names and colours, and the tables between them.

A parse carries the 20 labels of LIP. The segmentation generator works with 13 classes (section 3.2), the ALIAS
generator with 7 (section 3.4). Left and right are the person's own: in a frontal picture the left arm is at the right.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from training.files import read_table

# "lip": its labels, each with its colour in the published image-parse files, and its class in SEGMENTATION. The neck is
# background: its extent depends on the garment. "segmentation": the classes of that generator, each with its class in
# ALIAS ("paste" is what the person keeps unchanged) and its most typical LIP label, whose colour it takes, so that the
# maps can be compared at sight.
_TABLES = read_table(__file__)
_LIP, _SEGMENTATION = _TABLES["lip"], _TABLES["segmentation"]
LIP = tuple(name for name, _, _ in _LIP)
LIP_COLOURS = np.array([colour for _, colour, _ in _LIP], np.uint8)

SEGMENTATION = tuple(name for name, _, _ in _SEGMENTATION)
SEGMENTATION_COLOURS = LIP_COLOURS[[LIP.index(label) for _, _, label in _SEGMENTATION]]
SEGMENTATION_FROM_LIP = np.array([SEGMENTATION.index(name) for _, _, name in _LIP], np.uint8)

UPPER = SEGMENTATION.index("upper")
BACKGROUND = 0  # in all maps
HAIR, FACE, BOTTOM = (SEGMENTATION.index(name) for name in ("hair", "face", "bottom"))
BELOW = tuple(SEGMENTATION.index(name) for name in ("bottom", "left leg", "right leg"))  # above which a hem ends
ARMS = LEFT_ARM, RIGHT_ARM = SEGMENTATION.index("left arm"), SEGMENTATION.index("right arm")

ALIAS = ("background", "paste", "upper", "hair", "left arm", "right arm", "noise")
ALIAS_FROM_SEGMENTATION = np.array([ALIAS.index(name) for _, name, _ in _SEGMENTATION], np.uint8)
ALIAS_COLOURS = SEGMENTATION_COLOURS[[SEGMENTATION.index("face" if name == "paste" else name) for name in ALIAS]]

# The divided segmentation S_div: the misaligned part of the upper garment is a class of its own (equation 4).
DIVIDED = (*ALIAS, "misaligned")
ALIAS_UPPER, MISALIGNED = DIVIDED.index("upper"), DIVIDED.index("misaligned")
MISALIGNED_COLOUR = (255, 140, 0)  # orange, as in the paper's figures
# The garment takes a quiet blue here, because its usual colour is an orange too.
DIVIDED_COLOURS = np.concatenate([ALIAS_COLOURS, np.array([MISALIGNED_COLOUR], np.uint8)])
DIVIDED_COLOURS[ALIAS_UPPER] = (70, 110, 170)


def mirror(names: tuple[str, ...]) -> np.ndarray:
    """For each name the index of its counterpart on the other side, as a mirrored picture shows it, (n,) uint8."""
    other = {"left": "right", "right": "left"}
    sides = [" ".join(other.get(word, word) for word in name.split(" ")) for name in names]
    return np.array([names.index(name) for name in sides], np.uint8)


FLIP_LIP, FLIP_SEGMENTATION = mirror(LIP), mirror(SEGMENTATION)

# Labels of a parse by what they stand for.
HAT_LIP, HAIR_LIP, NECK_LIP, FACE_LIP = (LIP.index(name) for name in ("hat", "hair", "neck", "face"))
DRESS_LIP, COAT_LIP, SCARF_LIP = LIP.index("dress"), LIP.index("coat"), LIP.index("scarf")
# What a person carries: of the two labels in the class "noise", the one that no garment of the workshop needs.
CARRIED_LIP = LIP.index("glove")
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
