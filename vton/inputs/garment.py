"""Cut a garment out of its picture, read what it is, and lay it on the data set's canvas.

The published pairs show garments on (246, 246, 246), centred; every picture that leaves this file does the same.
"""

from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from torch import nn

from vton import labels
from vton.inputs import parsing, pose
from vton.inputs.photo import InputError, disc, from_nearest, largest, opaque
from vton.inputs.reading import Attribute, Reading, read_garment

# Numbers with no figure beside them were set by eye on photographs of garments and are not measured one by one.
BACKGROUND = 246  # as in the published pairs, and so is the share of the canvas below
LONGEST = 2048
WORKING_SIZE = 640  # longer side on which masks are computed
GRABCUT_WIDTH = 192
CANVAS_WIDTH, CANVAS_HEIGHT = 0.88, 0.92  # share of the 3:4 canvas that a garment fills at most

MIN_UPPER = 0.2  # a picture whose probability of an upper garment is less is refused
BLANK_DEVIATION = 2.0  # standard deviation of a picture's grey levels below which there is nothing on it
SURE_UPPER = 0.8  # above it, no search for a person who wears the garment,
MIN_WORN = 0.15  # unless the view is a worn one with this probability: of flat garments it stays far below
SAME_OUTLINE_IOU = 0.88  # overlap (IoU) from which on the background's outline and the network's are taken for the same
# Of the longer side, how far the background's outline may lie outside what the network thinks possible.
MAX_OVERHANG = 0.005
SURE_INSIDE, SURE_OUTSIDE = 0.99, 0.05  # probabilities beyond which GrabCut does not ask again
OPENING_DEPTH = 0.6  # share of a garment's height within which its neck opening lies
NOTCH_WIDTH = 0.35  # share of the opening's width up to which what reaches further down is taken for a notch in it
MIN_OPENING, MAX_OPENING = 0.003, 0.35  # share of the garment that the inside of its back takes, or a hood
HOOD_EDGE = 0.03  # half the width of what a reader leaves of a hood at its edge, in widths of the garment
RIM = 0.003  # of the longer side, how far inside its outline a garment's colours are mixed with the ground's
TRIMAP_LONGEST = 384  # longer side on which it works, in pixels
SMALLEST_SHARE = 0.02  # of the picture; a smaller garment counts as none
# A garment on its side or upside down: of 23 upright ones the reader is sure by 0.95 to 0.99 that they are upper
# garments, but of one by 0.89, and in other positions by 0.92 at most; of 39 turned skirts, trousers, hats and shoes
# by 0.90 at most, but of one by 0.95.
UPRIGHT_PROBABILITY = 0.95  # below it the reader is asked about the turns,
MIN_TURN, TURN_MARGIN = 0.93, 0.03  # and believes one from the first on that is surer by the second
# A pale picture, see `pale`: light of the border at least, and of half of its middle.
PALE_LEVEL = 235
# Power that spreads its lightest tones: outlines of 24 white garments on white go from IoU 0.93 to 0.98.
HIGHLIGHT_POWER = 6
SECOND_PIECE_SHARE = 0.3  # of the largest piece's area, from which on another piece is a second garment
NOT_UPPER = {
    "dress": "a dress",
    "hat": "a hat",
    "pants": "a pair of trousers",
    "shoes": "a pair of shoes",
    "shorts": "a pair of shorts",
    "skirt": "a skirt",
    "person": "a person",
    "nothing": "no garment at all",
}
_ADVICE = "lay the garment flat on a plain background of another colour and take the picture from above"


@dataclass(frozen=True)
class Garment:
    """A garment cut out of its picture, and what is known of it."""

    cloth: np.ndarray  # (H, W, 3) uint8 RGB on 246
    mask: np.ndarray  # (H, W) uint8, 255 = garment, 0 = background
    method: str  # of the cut: "alpha", "uniform", "grabcut", "network", from a person "worn", or by a person "painted"
    attributes: dict[str, Attribute] = field(default_factory=dict)  # as read, by the names of `garment_reader.GROUPS`
    open_neck: bool = False  # the mask ends at the front neckline: its outline has the neck opening's own shape
    turns: int = 0  # quarter turns counterclockwise by which the picture was set upright


def _border(hw: tuple[int, int], share: float) -> np.ndarray:
    """(H, W) bool, True on a frame whose thickness is `share` of the shorter side."""
    ring = np.ones(hw, bool)
    t = max(2, round(share * min(hw)))
    ring[t:-t, t:-t] = False
    return ring


def _fit_background(lab: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """A smooth background fitted to the picture's border, and every pixel's distance to it.

    lab: (H, W, 3) float32 CIELAB. Returns the background (H, W, 3), the distance (H, W), the border's noise, and the
    share of the border that fits.
    The background is a plane in x and y per channel, fitted robustly, because the garment may touch the border.
    """
    H, W = lab.shape[:2]
    y, x = np.mgrid[0:H, 0:W].astype(np.float32)
    terms = np.stack([np.ones_like(x), x / W - 0.5, y / H - 0.5], -1)
    ring = _border((H, W), 0.025)
    A, b = terms[ring], lab[ring]
    fits = np.linalg.norm(b - np.median(b, 0), axis=1) < 20
    plane = np.zeros((3, 3), np.float32)
    for _ in range(4):
        if fits.sum() < 30:
            return np.zeros_like(lab), np.full((H, W), 255, np.float32), 255.0, 0.0
        plane = np.linalg.lstsq(A[fits], b[fits], rcond=None)[0].astype(np.float32)
        error = np.linalg.norm(b - A @ plane, axis=1)
        fits = error < max(4.0, 3 * float(np.median(error[fits])))
    background = terms @ plane
    distance, noise = np.linalg.norm(lab - background, axis=2), float(np.percentile(error[fits], 90))
    return background, distance, noise, float(fits.mean())


def _fill_holes(mask: np.ndarray, distance: np.ndarray | None, tolerance: float) -> np.ndarray:
    """Fill enclosed background, except wide holes that have the background's own colour (between sleeve and body)."""
    mask = mask.copy()
    count, parts, stats, _ = cv2.connectedComponentsWithStats((~mask).astype(np.uint8), connectivity=4)
    H, W = mask.shape
    for i in range(1, count):
        x, y, w, h, area = stats[i]
        if x == 0 or y == 0 or x + w == W or y + h == H:
            continue
        window = (slice(y, y + h), slice(x, x + w))
        hole = parts[window] == i
        depth = cv2.distanceTransform(np.pad(hole, 1).astype(np.uint8), cv2.DIST_L2, 3).max()
        colour = np.median(distance[window][hole]) if distance is not None else 0
        if not (area > 0.002 * H * W and depth > 0.006 * max(H, W) and colour <= tolerance):
            mask[window] |= hole
    return mask


def _keep_large(mask: np.ndarray) -> np.ndarray:
    """Remove specks: pieces smaller than a tenth of the largest."""
    count, parts, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count < 2:
        return mask
    areas = stats[1:, cv2.CC_STAT_AREA]
    return np.isin(parts, 1 + np.flatnonzero(areas >= 0.1 * areas.max()))


def _clean(mask: np.ndarray, distance: np.ndarray | None, tolerance: float) -> np.ndarray:
    size = max(mask.shape)
    mask = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, disc(0.004 * size)) > 0
    mask = _keep_large(mask)
    mask = _fill_holes(mask, distance, tolerance)
    mask = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, disc(0.0025 * size)) > 0
    return _keep_large(mask)


def _by_uniform_background(image: np.ndarray) -> np.ndarray | None:
    """(H, W, 3) uint8 -> (H, W) bool, or None when the border is not of one smooth colour."""
    lab = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    lab = cv2.GaussianBlur(lab, (3, 3), 0)
    background, distance, noise, share = _fit_background(lab)
    if share < 0.75 or noise > 4:
        return None
    tolerance = float(np.clip(2.5 * noise, 1.6, 9))
    near = (distance < tolerance).astype(np.uint8)
    # Background is what is near the border's colour and hangs together with the border.
    _, parts = cv2.connectedComponents(near, connectivity=4)
    ring = _border(near.shape, 0.005)
    outside = np.isin(parts, np.setdiff1d(np.unique(parts[ring]), 0))
    mask = _clean(~((near > 0) | _shadow(lab, background, outside)), distance, tolerance)
    contacts = [side.any() for side in (mask[1], mask[-2], mask[:, 1], mask[:, -2])]
    return None if all(contacts) else mask


def _shadow(lab: np.ndarray, background: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """The garment's soft shadow: (H, W) bool.

    It is darker than the background but of its hue, changes slowly where a garment's edge changes at once, hangs
    together with the background, and is narrow. lab, background: (H, W, 3) CIELAB; outside: (H, W) bool, background.
    """
    difference = lab - background
    light = cv2.GaussianBlur(lab[..., 0], (0, 0), 1.0)
    slope = np.hypot(cv2.Sobel(light, cv2.CV_32F, 1, 0, scale=0.125), cv2.Sobel(light, cv2.CV_32F, 0, 1, scale=0.125))
    hue = (np.hypot(difference[..., 1], difference[..., 2]) < 5) & (np.abs(difference[..., 0] + 17) < 16)
    near = cv2.distanceTransform((~outside).astype(np.uint8), cv2.DIST_L2, 5) < 0.05 * max(outside.shape)
    _, parts = cv2.connectedComponents(((hue & (slope < 1.2) & near) | outside).astype(np.uint8), connectivity=4)
    shadow = np.isin(parts, np.setdiff1d(np.unique(parts[outside]), 0)) & ~outside
    # The garment's edge is steep on both of its sides; the outer side still has the shadow's hue.
    shadow |= (cv2.dilate(shadow.astype(np.uint8), disc(2)) > 0) & hue & near & ~outside
    # A garment of the background's hue would be eaten; a shadow is never that large.
    return shadow if shadow.sum() < 0.2 * (~outside).sum() else np.zeros_like(outside)


def _guided_filter(guide: np.ndarray, mask: np.ndarray, radius: int, eps: float) -> np.ndarray:
    """Guided filter (He, Sun and Tang 2010, eq. 5 and 6) of a mask by a grey guide; float32 (H, W), 0 to 1."""

    def mean(v):
        return cv2.blur(v, (2 * radius + 1, 2 * radius + 1))

    mean_i, mean_p = mean(guide), mean(mask)
    a = (mean(guide * mask) - mean_i * mean_p) / (mean(guide * guide) - mean_i**2 + eps)
    return mean(a) * guide + mean(mean_p - a * mean_i)


def _by_grabcut(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 -> (H, W) bool: GrabCut on a small copy, its outline then drawn along the edges."""
    H, W = image.shape[:2]
    w = min(W, GRABCUT_WIDTH)
    h = max(8, round(H * w / W))
    small = cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA)
    lab = cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    _, distance, noise, share = _fit_background(cv2.GaussianBlur(lab, (5, 5), 0))
    y, x = np.mgrid[0:h, 0:w]
    ellipse = ((x / w - 0.5) / 0.36) ** 2 + ((y / h - 0.5) / 0.40) ** 2 < 1
    labels = np.where(ellipse, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    if share > 0.4:
        labels[distance > max(18, 3 * noise)] = cv2.GC_PR_FGD
        labels[distance < max(3, 1.2 * noise)] = cv2.GC_PR_BGD
    labels[_border((h, w), 0.02)] = cv2.GC_BGD
    if not np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).any():
        return np.zeros((H, W), bool)
    return _grabcut(image, small, labels, 5, 1.2 * W / w)


def _grabcut(image: np.ndarray, small: np.ndarray, trimap: np.ndarray, rounds: int, radius: float) -> np.ndarray:
    """(H, W) bool: GrabCut on a small copy (h, w, 3) of a picture (H, W, 3), its outline drawn to the picture's edges.

    trimap: (h, w) uint8 of OpenCV's GC_ labels, which change; radius: of the guided filter, in pixels.
    """
    cv2.setRNGSeed(0)  # GrabCut's colour models start from random clusters
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(cv2.cvtColor(small, cv2.COLOR_RGB2BGR), trimap, None, *models, rounds, cv2.GC_INIT_WITH_MASK)
    mask = _keep_large((trimap == cv2.GC_FGD) | (trimap == cv2.GC_PR_FGD)).astype(np.float32)
    mask = cv2.resize(mask, image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    guide = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32) / 255
    matte = _guided_filter(guide, mask, max(2, round(radius)), 1e-4)
    # Far from the outline the filter has no say: a print's edges are not the garment's.
    band = (mask > 0.02) & (mask < 0.98)
    return _clean(np.where(band, matte, mask) > 0.5, None, 0)


def by_background(image: np.ndarray) -> tuple[np.ndarray, str]:
    """The thing in the middle of a picture by its background alone: (H, W) bool, and how, "uniform" or "grabcut".

    image: (H, W, 3) uint8. A border of one colour gives the background; everything else goes through GrabCut.
    """
    mask = _by_uniform_background(image)
    ring = _border(image.shape[:2], 0.01)
    if mask is not None and mask.mean() >= 0.02 and (mask & ring).sum() <= 0.5 * ring.sum():
        return mask, "uniform"
    return _by_grabcut(image), "grabcut"


class GarmentOnPerson(InputError):
    """The picture shows a person, whose garment can be cut out by the human parser."""


def check_kind(reading: Reading, image: np.ndarray) -> None:
    """Raises InputError with one sentence for what is surely no upper garment, and GarmentOnPerson for a person.

    image: (H, W, 3) uint8, as it was read. The reader judges the garment; the search for joints tells whether a
    person wears it.
    """
    if reading.upper >= SURE_UPPER and reading.groups["view"]["worn"] < MIN_WORN:
        return
    kinds = {name: reading.values["kind"][name] for name in NOT_UPPER}
    advice = "use the picture of an upper garment such as a shirt, a sweater or a jacket."
    if _shows_a_person(image):
        raise GarmentOnPerson(f"This looks like {NOT_UPPER['person']}; {advice}")
    blank = float(image.std((0, 1)).max()) < BLANK_DEVIATION
    if blank or reading.upper < MIN_UPPER:
        kind = "nothing" if blank else max(kinds, key=kinds.__getitem__)
        raise InputError(f"This looks like {NOT_UPPER[kind]}; {advice}")


def _shows_a_person(image: np.ndarray) -> bool:
    try:
        pose.detect(image, search=False)
    except InputError:
        return False
    return True


def outline(image: np.ndarray, reading: Reading) -> tuple[np.ndarray, str]:
    """(H, W) bool, the mask of a reading, drawn along the edges in the picture; and how, "uniform" or "network".

    image: (H, W, 3) uint8, as it was read. A plain background gives the finer outline where it agrees with the network.
    Elsewhere GrabCut decides what the network left open, and a guided filter draws the line.
    """
    inside = reading.mask > 0.5
    plain = _by_uniform_background(image)
    if plain is not None:
        possible = (
            cv2.dilate((reading.mask > SURE_OUTSIDE).astype(np.uint8), disc(MAX_OVERHANG * max(inside.shape))) > 0
        )
        if (plain & inside).sum() > SAME_OUTLINE_IOU * (
            plain | inside
        ).sum():  # seams of a floor and hard shadows are not cloth
            return _keep_large(plain & possible), "uniform"
    probability = shrink(reading.mask.astype(np.float32), TRIMAP_LONGEST)
    trimap = np.where(probability > 0.5, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    trimap[probability > SURE_INSIDE], trimap[probability < SURE_OUTSIDE] = cv2.GC_FGD, cv2.GC_BGD
    if not (trimap == cv2.GC_FGD).any() or not (trimap == cv2.GC_BGD).any():
        return _keep_large(inside), "network"
    scale = min(1.0, TRIMAP_LONGEST / max(inside.shape))
    return _grabcut(image, shrink(image, TRIMAP_LONGEST), trimap, 2, 1.2 / scale), "network"


def inside_of_back(reading: Reading, mask: np.ndarray) -> np.ndarray:
    """(H, W) bool, what of a garment lies above its front neckline: the inside of its back, with the labels in it, or
    its hood.

    mask: (H, W) bool, the garment. All False where the reader has found none, or nothing that could be a neck opening.
    """
    nothing = np.zeros_like(mask)
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return nothing
    opening = (reading.opening > 0.5) & mask
    opening[rows[0] + round(OPENING_DEPTH * (rows[-1] - rows[0])) :] = False
    if not opening.any():
        return nothing
    opening = largest(opening)
    opening = np.maximum.accumulate(opening[::-1], 0)[::-1]  # and the rim above it
    # Labels and seams that reach into the front are no part of its neckline.
    around = disc(NOTCH_WIDTH / 2 * opening.any(0).sum())
    opening = (cv2.morphologyEx(opening.astype(np.uint8), cv2.MORPH_OPEN, around) > 0) & mask
    values = reading.values.get("neckline", {})
    if opening.any() and values and max(values, key=values.__getitem__) == "hood":
        opening |= edge_of_hood(opening, mask)
    return opening if MIN_OPENING < opening.sum() / mask.sum() < MAX_OPENING else nothing


def edge_of_hood(hood: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(H, W) bool, what of a hood's edge the reader has missed, which the garment's outline knows better: what is thin
    beside the hood and not lower than it.

    hood, mask: (H, W) bool, the hood as the reader sees it, and the garment with it.
    """
    front, brush = (mask & ~hood).astype(np.uint8), disc(HOOD_EDGE * mask.any(0).sum())
    thin = cv2.morphologyEx(front, cv2.MORPH_OPEN, brush) < front
    near = cv2.dilate(hood.astype(np.uint8), brush, iterations=2) > 0
    return thin & near & np.maximum.accumulate(hood[::-1].any(1))[::-1, None]


def cut_from_wearer(image: np.ndarray, parser: nn.Module, reader: nn.Module) -> Garment:
    """The upper garment of the person in a picture, cut out by the human parser; method "worn".

    image: (H, W, 3) or (H, W, 4) uint8. Raises InputError when no person or no upper garment is found.
    """
    rgb = opaque(shrink(np.asarray(image), LONGEST))
    scale = min(1.0, 2 * WORKING_SIZE / max(rgb.shape))
    small = cv2.resize(rgb, None, fx=scale, fy=scale)
    detection = pose.detect(small)
    parse = parsing.parse(parser, small, detection.keypoints, detection.person_mask.astype(np.float32), height=512)
    mask = _keep_large(np.isin(parse, labels.UPPER_LIP))
    if mask.mean() < SMALLEST_SHARE:
        raise InputError(f"No upper garment was found on the person in this picture; {_ADVICE}.")
    attributes = read_garment(reader, small, mask).attributes
    mask = cv2.resize(mask.astype(np.float32), rgb.shape[1::-1], interpolation=cv2.INTER_LINEAR) > 0.5
    return replace(with_mask(rgb, mask, "worn"), attributes=attributes, open_neck=True)


def pale(image: np.ndarray) -> bool:
    """Whether a picture (H, W, 3) uint8 shows something nearly white on white, as shops do."""
    h, w = image.shape[:2]
    light = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    middle = light[h // 4 : 3 * h // 4, w // 4 : 3 * w // 4]
    return bool(min(np.median(light[_border((h, w), 0.025)]), np.median(middle)) >= PALE_LEVEL)


def stretch_contrast(image: np.ndarray) -> np.ndarray:
    """A pale picture (H, W, 3) uint8 with its lightest tones spread, so that white on white is seen; others stay."""
    return ((image / 255.0) ** HIGHLIGHT_POWER * 255).round().astype(np.uint8) if pale(image) else image


def read_upright(reader: nn.Module, image: np.ndarray) -> tuple[Reading, int]:
    """What the reader says of a picture (H, W, 3) uint8, turned by as many quarters, counterclockwise, as make it
    surest that an upper garment is seen; the reading is that of the turned picture.
    """
    reading = read_garment(reader, image)
    if reading.upper >= UPRIGHT_PROBABILITY:
        return reading, 0
    turns = {k: read_garment(reader, np.ascontiguousarray(np.rot90(image, k)), views=1) for k in (1, 2, 3)}
    best = max(turns, key=lambda k: turns[k].upper)
    worn = turns[best].groups["view"]["worn"] >= MIN_WORN
    if turns[best].upper < max(MIN_TURN, reading.upper + TURN_MARGIN) or worn:
        return reading, 0
    return read_garment(reader, np.ascontiguousarray(np.rot90(image, best))), best


def cut_out(image: np.ndarray, reader: nn.Module | None = None) -> Garment:
    """Separate a garment from its background, and read what it is.

    image: (H, W, 3) uint8 RGB or (H, W, 4) RGBA. Transparency is trusted where there is some; otherwise the reader's
        mask counts.
    reader: see `vton.networks.garment_reader`; None: the background alone decides, and no attribute is known.
    Returns a Garment of the picture's size, at most 2048 on its longer side, upright.
    Raises InputError when nothing, next to nothing or the whole picture would be cut out, for more than one garment,
        and for what surely is no upper garment; GarmentOnPerson for a person.
    """
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] not in (3, 4) or image.dtype != np.uint8:
        raise ValueError("The garment's picture is (H, W, 3) or (H, W, 4) uint8.")
    image = shrink(image, LONGEST)
    if image.shape[2] == 4 and 0.02 < (image[..., 3] > 127).mean() < 0.985:
        return _by_alpha(image, reader)
    rgb = opaque(image)
    small = shrink(rgb)
    attributes: dict[str, Attribute] = {}
    open_neck, turns = False, 0
    if reader is None:
        mask, method = by_background(small)
    else:
        contrast = stretch_contrast(small)
        reading, turns = read_upright(reader, contrast)
        rgb, small, contrast = (np.ascontiguousarray(np.rot90(picture, turns)) for picture in (rgb, small, contrast))
        check_kind(reading, small)
        (mask, method), attributes = outline(contrast, reading), reading.attributes
        _check_single(mask)
        behind = inside_of_back(reading, mask)
        mask, open_neck = mask & ~behind, bool(behind.any())
    _complain(mask)
    mask = _at_size(mask, rgb.shape[:2])
    # One pixel less, so that no rim of the old background travels along.
    mask = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    _complain(mask)
    return replace(with_mask(rgb, mask, method), attributes=attributes, open_neck=open_neck, turns=turns)


def _by_alpha(image: np.ndarray, reader: nn.Module | None) -> Garment:
    """`cut_out` of a picture (H, W, 4) uint8 by its transparency."""
    mask = _keep_large(image[..., 3] > 127)
    _complain(mask)
    _check_single(mask)
    cut = with_mask(image[..., :3], mask, "alpha")
    if reader is None:
        return cut
    reading, turns = read_upright(reader, shrink(cut.cloth))
    cloth, mask = (np.ascontiguousarray(np.rot90(picture, turns)) for picture in (cut.cloth, mask))
    check_kind(reading, shrink(cloth))
    small = shrink(mask.astype(np.uint8) * 255) > 127
    reading = read_garment(reader, shrink(cloth), small)
    behind = inside_of_back(reading, small)
    mask &= ~np.maximum.accumulate(_at_size(behind, mask.shape)[::-1], 0)[::-1]
    cut, open_neck = with_mask(cloth, mask, "alpha"), bool(behind.any())
    return replace(cut, attributes=reading.attributes, open_neck=open_neck, turns=turns)


def shrink(picture: np.ndarray, longest: int = WORKING_SIZE) -> np.ndarray:
    """A picture or mask (H, W), (H, W, 3) or (H, W, 4) uint8 with at most `longest` pixels on its longer side."""
    scale = min(1.0, longest / max(picture.shape[:2]))
    size = (max(8, round(picture.shape[1] * scale)), max(8, round(picture.shape[0] * scale)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA) if scale < 1 else picture


def _at_size(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A mask (h, w) bool brought to `size` = (H, W), with a smooth outline."""
    if mask.shape == tuple(size):
        return mask
    large = cv2.resize(mask.astype(np.float32), size[::-1], interpolation=cv2.INTER_LINEAR)
    return cv2.GaussianBlur(large, (0, 0), 0.5 * max(1.0, size[1] / mask.shape[1])) > 0.5


def _check_single(mask: np.ndarray) -> None:
    """Raises InputError for a mask (H, W) bool of two things, neither of which is a scrap of the other."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    areas = np.sort(stats[1:, cv2.CC_STAT_AREA])[::-1]
    if len(areas) > 1 and areas[1] > SECOND_PIECE_SHARE * areas[0]:
        raise InputError("There is more than one garment in this picture; use a picture of the one to be put on.")


def with_attributes(cut: Garment, reader: nn.Module | None) -> Garment:
    """A cut-out with what the reader says of it."""
    if reader is None:
        return cut
    return replace(cut, attributes=read_garment(reader, shrink(cut.cloth), shrink(cut.mask) > 127).attributes)


def _complain(mask: np.ndarray) -> None:
    share = mask.mean()
    ring = _border(mask.shape, 0.01)
    if share < SMALLEST_SHARE:
        raise InputError(f"No garment was found in this picture; {_ADVICE}.")
    if share > 0.93 or (mask & ring).sum() > 0.6 * ring.sum():
        raise InputError(f"The garment cannot be told from its background; {_ADVICE}.")


def with_mask(image: np.ndarray, mask: np.ndarray, method: str = "alpha") -> Garment:
    """A Garment from a picture (H, W, 3) uint8 and a mask (H, W), bool or uint8 with garment above 127."""
    mask = mask if mask.dtype == bool else mask > 127
    if mask.shape != image.shape[:2]:
        raise ValueError(f"Picture and mask differ in size: {image.shape[:2]} and {mask.shape}.")
    cloth = np.where(mask[..., None], _without_rim(image[..., :3], mask), np.uint8(BACKGROUND))
    return Garment(cloth, mask.astype(np.uint8) * 255, method)


def _without_rim(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A picture (H, W, 3) uint8 in which the rim of a garment, mask (H, W) bool, has the colours right inside of it;
    straps that are no wider than their rims stay.
    """
    brush = disc(RIM * max(mask.shape))
    inner = cv2.erode(mask.astype(np.uint8), brush)
    rim = mask & (inner == 0) & (cv2.dilate(inner, brush, iterations=2) > 0)
    return np.where(rim[..., None], from_nearest(image, inner > 0), image) if rim.any() else image


def cut_by_mask(image: np.ndarray, mask: np.ndarray, reader: nn.Module | None = None) -> Garment:
    """Cut a garment out along a mask that a person has painted.

    image: (H, W, 3) or (H, W, 4) uint8; mask: (h, w) uint8 of the same shape of picture at any size, garment above 127;
    reader: tells its attributes; what the person has painted is a garment, whatever the reader thinks.
    Returns a Garment of the picture's size, at most 2048 on its longer side. Raises InputError for an empty mask and
    for one of another shape.
    """
    image, mask = np.asarray(image), np.asarray(mask)
    flat, limit = mask.ndim == 2, max(mask.shape) * max(image.shape[:2]) / 50
    if not flat or abs(mask.shape[0] * image.shape[1] - mask.shape[1] * image.shape[0]) > limit:
        raise InputError("The painted mask has another shape than the garment's picture; paint it on this picture.")
    if (mask > 127).mean() < 0.005:
        raise InputError("The garment's mask is empty; paint over the garment.")
    rgb = opaque(shrink(image, LONGEST))
    return with_attributes(with_mask(rgb, _at_size(mask > 127, rgb.shape[:2]), "painted"), reader)


Box = tuple[int, int, int, int]  # first row and column, height and width


def canvas_boxes(mask: np.ndarray, size: tuple[int, int]) -> tuple[Box, Box]:
    """The box of a garment's mask (h, w) in its picture, and where `place` lays it on a canvas of `size` (H, W).

    Raises InputError for an empty mask.
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        raise InputError(f"The garment's mask is empty; {_ADVICE}, or paint the mask.")
    (H, W), h, w = size, int(rows[-1] + 1 - rows[0]), int(columns[-1] + 1 - columns[0])
    scale = min(CANVAS_WIDTH * W / w, CANVAS_HEIGHT * H / h)
    new_h, new_w = max(1, min(H, round(h * scale))), max(1, min(W, round(w * scale)))
    return (int(rows[0]), int(columns[0]), h, w), ((H - new_h) // 2, (W - new_w) // 2, new_h, new_w)


def place(garment: Garment, size: tuple[int, int]) -> Garment:
    """Scale and centre a garment on a canvas of `size` = (H, W), 3:4, on 246.

    It fills 88 % of the canvas's width or 92 % of its height, whichever comes first, as the training garments do.
    """
    H, W = size
    (y0, x0, h, w), (y, x, new_h, new_w) = canvas_boxes(garment.mask, size)
    box = (slice(y0, y0 + h), slice(x0, x0 + w))
    flag = cv2.INTER_AREA if new_h * new_w < h * w else cv2.INTER_CUBIC
    # Colours are scaled with the mask as weight, so that the background does not bleed into the outline.
    weight = garment.mask[box].astype(np.float32) / 255
    colours = cv2.resize(garment.cloth[box].astype(np.float32) * weight[..., None], (new_w, new_h), interpolation=flag)
    weight = cv2.resize(weight, (new_w, new_h), interpolation=flag)
    inside = weight > 0.5
    cloth = np.full((H, W, 3), BACKGROUND, np.uint8)
    mask = np.zeros((H, W), np.uint8)
    cloth[y : y + new_h, x : x + new_w][inside] = (colours[inside] / weight[inside][:, None]).clip(0, 255) + 0.5
    mask[y : y + new_h, x : x + new_w][inside] = 255
    return replace(garment, cloth=cloth, mask=mask)
