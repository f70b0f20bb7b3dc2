"""The last stage: which pixels of the photograph change, and what they get from the photographs besides I-hat.

Not in the paper, whose picture is I-hat alone; `Options.detail` switches the second part off.
"""

from __future__ import annotations

import cv2
import numpy as np
import torch

from vton import labels
from vton.inputs import garment, parsing, photo
from vton.labels import UPPER
from vton.networks import warping
from vton.result import TryOnResult
from vton.rules import composite, neckline
from vton.warps import grid_of

LEAST_SEEN = 0.025  # of what a coat hides of trousers, skirt and legs; below it nothing tells how they go on
SEAM = 8  # pixels by which the edited region may grow for a soft seam


def edited_region(r: TryOnResult) -> np.ndarray:
    """Where the photograph may change: (removed garment, arms, neck) united with (predicted cloth and arms).

    Face, hair but for its rim beside the garment, hat, glasses, hands, and trousers that the garment does not cover lie
    outside. So does the neck where the prediction leaves it bare: the person's own is better than a painted one.
    Returns (H0, W0) uint8 opacity with a soft seam inside the region's own border, which is grown by at most SEAM
    pixels.
    """
    hands = np.isin(r.parse_agnostic, labels.ARMS_LIP)
    removed = (_removed(r) | (r.parse == labels.NECK_LIP)) & ~hands
    predicted = np.isin(r.segmentation, (UPPER, *labels.ARMS))
    kept = (np.isin(r.parse, parsing.HEAD) & ~hair_rim(r)) | hands | own_skin(r, (labels.NECK_LIP,))
    region = ((removed | predicted) & ~kept).astype(np.uint8) * 255
    hw = r.photo.shape[:2]
    whole = photo.uncrop(region, r.frame, hw, "linear", 0)
    protected = photo.uncrop(kept.astype(np.uint8) * 255, r.frame, hw, "linear", 0)
    grow, further = (min(SEAM, max(1, round(r.frame.width / share))) for share in (192, 48))
    grown = _dilate(whole > 127, grow)
    # A parse seldom reaches the very outline: over the background, further growth takes away what is left of it.
    background = (
        photo.uncrop(
            ((r.parse == labels.BACKGROUND) & (r.segmentation == labels.BACKGROUND)).astype(np.uint8) * 255,
            r.frame,
            hw,
            "nearest",
            0,
        )
        > 0
    )
    grown |= _dilate(whole > 127, further) & background
    soft = cv2.GaussianBlur(cv2.erode(grown, np.ones((3, 3), np.uint8)).astype(np.float32), (0, 0), grow / 3)
    opacity = np.where(grown > 0, np.clip(soft * 255, 0, 255), 0).astype(np.uint8)
    return np.minimum(opacity, 255 - protected)


def rim_width(r: TryOnResult) -> int:
    """Pixels by which the colours of two things mix at their border."""
    return max(1, round(r.options.size[1] / 256))


def hair_rim(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the outermost hair beside the new garment, whose pixels are a mixture with what lay behind it."""
    return (r.parse == labels.HAIR_LIP) & (_dilate(r.segmentation == UPPER, rim_width(r)) > 0)


def _removed(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the old garment and the arms as photographed, with the rim that the parse leaves to the background
    and the person mask does not.
    """
    taken = np.isin(r.parse, (*labels.UPPER_LIP, *labels.ARMS_LIP))
    rim = (r.parse == labels.BACKGROUND) & (r.person_mask > 0.35) & (_dilate(taken, r.options.size[1] // 20) > 0)
    return taken | rim


def _dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """(H, W) bool -> uint8 0/1, grown by `radius` pixels."""
    return cv2.dilate(mask.astype(np.uint8), photo.disc(radius))


def from_photograph(r: TryOnResult) -> np.ndarray:
    """I-hat (H, W, 3) with what the photograph knows better: the background that the old garment hid goes on from
    around it, and bare arms and a bare throat take the tone of the person's own skin.
    """
    arms, width = np.isin(r.segmentation, labels.ARMS), r.options.size[1]
    # Class "background" is also the neck, and where a collar has gone there is no wall behind it.
    under_collar = np.isin(r.parse, labels.UPPER_LIP) & neckline.around_neck(r.keypoints, r.options.size)
    neck, own = own_skin(r, (labels.NECK_LIP,)), own_skin(r)
    throat = (r.segmentation == labels.BACKGROUND) & ((r.parse == labels.NECK_LIP) | under_collar) & ~neck
    face = r.parse == labels.FACE_LIP
    # The cloth's detail is carried over at full size; what lights it is the generator's own picture.
    shared = r.alpha is not None and r.rendered is not None and r.alpha > 0
    painted = np.where(np.asarray(shared)[..., None], r.rendered, r.synthesis) if np.any(shared) else r.synthesis
    picture = composite.smooth(composite.smooth(painted, arms, width / 32), throat, width / 96)
    # Bare arms tell the tone of what goes on from them; else hands do, which most photographs show, or the face.
    hands = composite.like_skin(r.person, np.isin(r.parse_agnostic, labels.ARMS_LIP), face)
    if own.sum() > arms.sum() / 8:
        picture = composite.match_skin(picture, arms, r.person, own, width / 12)
    else:
        picture = composite.match_skin(picture, arms, r.person, hands if hands.sum() > 5 * composite.FEWEST else face)
    picture = composite.round_limbs(picture, arms, arms | own)
    if neck.sum() > composite.FEWEST:
        picture = composite.match_skin(picture, throat, r.person, neck, width / 24)
    else:
        picture = composite.match_skin(picture, throat, r.person, face)
    outside = photo.crop(np.ones(r.photo.shape[:2], np.uint8), r.frame, r.options.size, "nearest", 0) == 0
    # MediaPipe's mask reaches a little beyond the outline.
    body = (r.parse != labels.BACKGROUND) | (cv2.erode(r.person_mask, np.ones((width // 24,) * 2, np.uint8)) > 0.5)
    removed = _dilate(_removed(r), round(width / 48)) > 0
    unknown = removed | body | (r.person_mask > 0.5) | (r.segmentation != labels.BACKGROUND) | outside
    behind = composite.continue_background(r.person, unknown)
    # The person has not moved: no arm lies where nobody was.
    background = (r.segmentation == labels.BACKGROUND) & ~throat & ~neck | arms & ~body
    untouched = background & (r.parse == labels.BACKGROUND) & ~removed | neck
    picture[untouched] = r.person[untouched]
    share = cv2.GaussianBlur((background & removed).astype(np.float32), (0, 0), width / 384)
    share = (share * background)[..., None]
    return below_hem(r, (picture * (1 - share) + behind * share).round().astype(np.uint8), removed)


def below_hem(r: TryOnResult, picture: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3) uint8 with trousers, skirt and legs going on where a longer old garment hid them.

    The generator leaves such places gray, however often it has learned them. removed: (H, W) bool, the old garment.
    """
    below, stays = np.isin(r.segmentation, labels.BELOW), worn_below(r)
    if stays.any():
        picture = np.where(stays[..., None], r.person, picture)
    hidden, seen = below & removed & ~stays, below & (np.isin(r.parse, labels.LOWER_LIP) & ~removed | stays)
    if not hidden.any():
        return picture
    margin = r.options.size[1] // 6
    rows, columns = (np.flatnonzero(hidden.any(axis)) for axis in (1, 0))
    box = np.s_[max(0, rows[0] - margin) : rows[-1] + margin, max(0, columns[0] - margin) : columns[-1] + margin]
    if not seen[box].any():
        return picture
    going_on = composite.continue_background(r.person[box], ~seen[box])
    share = cv2.GaussianBlur(hidden[box].astype(np.float32), (0, 0), r.options.size[1] / 384)[..., None]
    share *= below[box][..., None]
    out = picture.copy()
    out[box] = (picture[box] * (1 - share) + going_on * share).round().astype(np.uint8)
    return out


def worn_below(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, what of the old garment goes on below the new one's hem: the skirt of a dress, and the tails of a
    coat that shows next to nothing of what is worn under it.
    """
    below = np.isin(r.segmentation, labels.BELOW)
    old, seen = below & np.isin(r.parse, labels.UPPER_LIP), below & np.isin(r.parse, labels.LOWER_LIP)
    return old if seen.sum() < LEAST_SEEN * old.sum() else old & (r.parse == labels.DRESS_LIP)


def unchanged(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, what S-hat leaves as the photograph shows it: wall, hair, bare arms and neck, and `worn_below`."""
    wall = (r.parse == labels.BACKGROUND) & (r.segmentation == labels.BACKGROUND) & ~_removed(r)
    arms = own_skin(r) & np.isin(r.segmentation, labels.ARMS)
    neck = own_skin(r, (labels.NECK_LIP,)) & (r.segmentation == labels.BACKGROUND)
    hair = (r.parse == labels.HAIR_LIP) & (r.segmentation == labels.HAIR)
    return wall | arms | neck | hair | worn_below(r)


def own_skin(r: TryOnResult, parts: tuple[int, ...] = labels.ARMS_LIP) -> np.ndarray:
    """(H, W) bool, where the photograph shows bare arms, or a bare neck, that the new garment leaves bare: they are the
    person's own. parts: LIP labels. The parser at times takes a sleeve for an arm and a collar for a neck, so the tone
    of the face decides, but for what no old garment touches, as the shadow below a chin. Beside the old garment skin
    has something of its colour.
    """
    part, worn = np.isin(r.parse, parts), np.isin(r.parse, labels.UPPER_LIP)
    skin = composite.like_skin(r.person, part & (r.segmentation != UPPER), r.parse == labels.FACE_LIP)
    _, patches = cv2.connectedComponents((part & ~skin).astype(np.uint8))
    touching = (patches > 0) & np.isin(patches, patches[_dilate(worn, 1) > 0])
    if skin.any():
        skin |= part & ~touching
    return skin & ~(_dilate(worn | touching, rim_width(r)) > 0) & (r.segmentation != UPPER)


def carry_detail(r: TryOnResult, picture: np.ndarray) -> np.ndarray:
    """The frame's content at its own size in the photograph, with the garment's fine detail. picture (H, W, 3): I-hat.

    In the aligned region print and colours come from the garment picture warped at full size, see
    `composite.carry_colours`. Returns (h, w, 3) uint8.
    """
    h, w = r.frame.height, r.frame.width
    scale = h / r.options.size[0]
    synthesis = cv2.resize(picture, (w, h), interpolation=cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA).astype(
        np.float32
    )
    side = min(h, 2048) // 4 * 4
    placed = garment.place(r.garment_cut, (side, side * 3 // 4))
    cloth, own = (torch.from_numpy(x.astype(np.float32)) for x in (placed.cloth, placed.mask > 127))
    mask = torch.from_numpy((r.cloth_mask > 127).astype(np.float32))[None, None]  # the one that may have been corrected
    grid = grid_of(r, (h, w), smooth=True)
    warped = warping.warp_inside(cloth.permute(2, 0, 1)[None], own[None, None], grid)[0].permute(1, 2, 0).numpy()
    inside = (torch.minimum(*(warping.warp(m, grid, "zeros") for m in (mask, own[None, None])))[0, 0] > 0.5).numpy()
    garment_region = ((r.segmentation == UPPER) | hair_rim(r)).astype(np.float32)
    upper = cv2.resize(garment_region, (w, h), interpolation=cv2.INTER_LINEAR) > 0.5
    dressed = composite.carry_colours(synthesis, warped, upper, upper & inside, 0.012 * w)
    return composite.keep(dressed, photo.crop(r.photo, r.frame, (h, w)), own_skin(r), 0.006 * w)
