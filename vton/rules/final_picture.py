"""The last stage: which pixels of the photograph change, and what they get from the photographs besides I-hat.

Not in the paper, whose picture is I-hat alone; `Options.detail` switches the second part off.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch

from vton import labels
from vton.inputs import garment, parsing, photo
from vton.labels import UPPER
from vton.networks import warping
from vton.result import TryOnResult
from vton.rules import composite, neckline, opacity
from vton.warps import grid_of

LEAST_LOWER = 0.025  # of what a coat hides of trousers, skirt and legs; with less in sight they cannot be continued
SCRAP = 5e-4  # of the picture; a smaller piece is taken for no hand, single fingers have twice that
SPECK = 1e-3  # of the picture; likewise for bags: what the parser took for one on 13 studio people was half as large
SEAM = 0.008  # of the frame's width, across which bare arms go over into painted ones
KEEPS = 0.25  # pixels of the photograph by which the person's layer reaches over its outline
# Of its outline a piece of the old collar has so much beside the wall if it lies behind hair or before skin.
MAX_WALL_SHARE = 0.2


def once(of: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a record, and of what can be compared, that keeps its answers as long as it is asked about the same
    record: many layers rest on the same parts.
    """
    memory: list[tuple[weakref.ref, dict]] = []

    @functools.wraps(of)
    def ask(r: TryOnResult, *more: Any) -> Any:
        cache = next((answers for record, answers in tuple(memory) if record() is r), None)
        if cache is None:
            cache = {}
            memory[:] = [(weakref.ref(r, lambda _: memory.clear()), cache)]
        if more not in cache:
            cache[more] = of(r, *more)
            if isinstance(cache[more], np.ndarray):
                cache[more].setflags(write=False)  # it is everybody's
        return cache[more]

    return ask


class Layers(NamedTuple):
    """What each pixel of the result shows, (H, W) bool each, no pixel in two; what is in none is the photograph.

    person: of the person, as photographed; cloth: the new garment; paint: skin, and what is worn below the hem, as
    painted; wall: what goes on behind a garment or an arm that is gone; figure: all but the wall, the old one included.
    """

    person: np.ndarray
    cloth: np.ndarray
    paint: np.ndarray
    wall: np.ndarray
    figure: np.ndarray


def layers(r: TryOnResult) -> Layers:
    """The layers of a result.

    The person's layer is face, hair but for its rim beside the garment, hat, glasses, hands and what they carry, bare
    arms that stay bare, trousers that the garment does not cover, and the neck where the prediction leaves it bare,
    because the person's own is better than a painted one.
    """
    nobody = (r.parse == labels.BACKGROUND) & (r.segmentation == labels.BACKGROUND)
    person = (np.isin(r.parse, parsing.HEAD) & ~hair_rim(r)) | own_skin(r, (labels.NECK_LIP,)) | old_below_hem(r)
    person |= hands(r) | bags(r)
    if r.options.detail:
        own = own_skin(r)
        # Own skin stays where a wall is predicted, which the photograph does not show; a thin rim beside a sleeve goes.
        thick = cv2.morphologyEx(own.astype(np.uint8), cv2.MORPH_OPEN, photo.disc(r.options.size[1] / 96)) > 0
        person |= own & (np.isin(r.segmentation, labels.ARMS) | thick)
    old_garment = (_old_garment(r) | (r.parse == labels.NECK_LIP)) & ~person
    cloth = ((r.segmentation == UPPER) | hair_rim(r)) & ~person
    # The person has not moved: no arm lies where nobody was.
    arms = np.isin(r.segmentation, labels.ARMS) & ~person & body(r)
    bare = throat(r) & ~person
    paint = arms | bare | old_garment & ~np.isin(r.segmentation, (labels.BACKGROUND, UPPER, *labels.ARMS))
    wall = old_garment & ~cloth & ~paint
    figure = ~wall & ~(nobody & ~person & ~cloth & ~paint)
    return Layers(person, cloth, paint & ~cloth, wall, figure)


@once
def hands(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the hands as photographed, without pieces smaller than SCRAP."""
    return _without_scraps(np.isin(r.parse_agnostic, labels.ARMS_LIP))


@once
def bags(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, bags and whatever else the person carries, as photographed, likewise."""
    return _without_scraps(r.parse == labels.CARRIED_LIP, SPECK)


def _without_scraps(part: np.ndarray, least: float = SCRAP) -> np.ndarray:
    """A part (H, W) bool without its pieces smaller than this share of the picture."""
    _, pieces = cv2.connectedComponents(part.astype(np.uint8))
    return part & (np.bincount(pieces.ravel())[pieces] >= least * part.size)


@once
def body(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, where the person is in the photograph, without the rim by which MediaPipe's mask is too wide."""
    inner = cv2.erode(r.person_mask, np.ones((r.options.size[1] // 24,) * 2, np.uint8)) > 0.5
    return (r.parse != labels.BACKGROUND) | inner


@once
def throat(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the bare throat that has to be painted: class "background" is also the neck, and where a collar has
    gone there is no wall behind it.
    """
    near = neckline.around_neck(r.keypoints, r.options.size) | neckline.on_shoulders(r.keypoints, r.options.size)
    under_collar = (r.segmentation == labels.BACKGROUND) & np.isin(r.parse, labels.UPPER_LIP)
    gaps = _away_from_wall(r, under_collar & ~near & neckline.above_shoulders(r.keypoints, r.options.size))
    bare = (r.segmentation == labels.BACKGROUND) & (r.parse == labels.NECK_LIP) | under_collar & near | gaps
    return bare & ~own_skin(r, (labels.NECK_LIP,))


def _away_from_wall(r: TryOnResult, part: np.ndarray) -> np.ndarray:
    """Those pieces of a part (H, W) bool beside whose outline hardly any wall is seen: hair and skin shut them in."""
    count, pieces = cv2.connectedComponents(part.astype(np.uint8))
    wider = cv2.dilate(pieces.astype(np.float32), np.ones((3, 3), np.uint8)).astype(np.int32)
    rim = (wider > 0) & ~part
    around = np.bincount(wider[rim], minlength=count)
    wall = np.bincount(wider[rim & (r.parse == labels.BACKGROUND)], minlength=count)
    return part & (wall < MAX_WALL_SHARE * np.maximum(around, 1))[pieces]


def compose(r: TryOnResult) -> tuple[np.ndarray, np.ndarray]:
    """The layers over one another: what is laid on the photograph, and its opacity.

    From back to front: the wall, where it is new; the figure, in which painted skin lies under the cloth and the cloth
    under the person. Every outline is soft at the photograph's own size, see `opacity`; the colours of
    a layer go on beyond it, so that none of what lies beside it shines through.

    Returns (h, w, 3) uint8 of the frame's size, and (h, w) uint8, 0 where the photograph stays byte for byte.
    """
    size, part, width = (r.frame.height, r.frame.width), layers(r), r.options.size[1]
    with ThreadPoolExecutor(1) as beside:  # two halves of the work, each at a core of its own
        drawings = [beside.submit(wall, r), beside.submit(skin_picture, r, part)] if r.options.detail else []
        figure, new = opacity.opacity(part.figure, size), part.cloth | part.paint
        # Within the figure, the wall belongs to what is nearest to it.
        nearest = photo.from_nearest(np.where(new, 1, 0).astype(np.uint8), part.figure) if new.any() else new
        old = opacity.opacity(nearest == 0, size, outwards=KEEPS)
        # A parse seldom reaches the very outline: what is left of the old garment beside the new one goes, too.
        area = _dilate((_old_garment(r) | part.wall) & ~part.person, round(width / 96)).astype(np.float32)
        area = cv2.resize(cv2.GaussianBlur(area, (0, 0), width / 192), size[::-1], interpolation=cv2.INTER_LINEAR)
        person = cv2.resize(part.person.astype(np.uint8), size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)
        behind, front = (1 - figure) * area, figure * (1 - old)
        behind[person > 0], front[person > 0] = 0, 0
        front = np.maximum(front, figure * skin_seam(r, part))
        share = behind + front
        if drawings:
            background, skin = drawings
            new_figure = figure_picture(r, part, skin.result)
            total = background.result() * behind[..., None] + new_figure * front[..., None]
            picture = (total / np.maximum(share, 1e-3)[..., None]).clip(0, 255).round().astype(np.uint8)
        else:
            picture = opacity.enlarge(r.synthesis, size).round().astype(np.uint8)
    return picture, (share * 255).round().astype(np.uint8)


def skin_seam(r: TryOnResult, part: Layers) -> np.ndarray:
    """(h, w) float32 in [0, 1], the share that painted skin takes of the bare arms beside it."""
    size, arms = (r.frame.height, r.frame.width), np.isin(r.segmentation, labels.ARMS)
    own, paint = part.person & np.isin(r.parse, labels.ARMS_LIP), part.paint & arms
    if not own.any() or not paint.any():
        return np.zeros(size, np.float32)
    # Right at the border the photograph's skin has something of the old sleeve.
    far = cv2.distanceTransform((~paint).astype(np.uint8), cv2.DIST_L2, 5) - 1.5
    share = np.clip(1 - far / (SEAM * r.options.size[1]), 0, 1) * (own | paint)
    return cv2.resize(share.astype(np.float32), size[::-1], interpolation=cv2.INTER_LINEAR)


def wall(r: TryOnResult) -> np.ndarray:
    """(h, w, 3) float32 of the frame's size, the photograph without the person, as it goes on behind."""
    outside = photo.crop(np.ones(r.photo.shape[:2], np.uint8), r.frame, r.options.size, "nearest", 0) == 0
    unknown = _dilate(_old_garment(r), round(r.options.size[1] / 48)) > 0
    unknown |= body(r) | (r.person_mask > 0.5) | (r.segmentation != labels.BACKGROUND) | outside
    return opacity.enlarge(composite.continue_background(r.person, unknown), (r.frame.height, r.frame.width))


def skin_picture(r: TryOnResult, part: Layers) -> np.ndarray:
    """(h, w, 3) float32 of the frame's size, what is painted, going on where it is not."""
    skin = part.paint | np.isin(r.segmentation, labels.ARMS)
    return opacity.enlarge(_going_on(from_photograph(r), skin), (r.frame.height, r.frame.width))


def figure_picture(r: TryOnResult, part: Layers, skin: Callable[[], np.ndarray]) -> np.ndarray:
    """(h, w, 3) float32 of the frame's size, cloth over painted skin, each going on where neither is.

    skin: gives `skin_picture`, which is asked for last.
    """
    if not part.cloth.any():
        return skin()
    new = part.cloth | part.paint
    size = r.frame.height, r.frame.width
    over = opacity.opacity(photo.from_nearest(part.cloth.astype(np.uint8), new) > 0, size)[..., None]
    cloth = carry_detail(r, part.cloth)
    return skin() * (1 - over) + cloth * over


def _going_on(picture: np.ndarray, part: np.ndarray) -> np.ndarray:
    """A picture whose colours in a part, without the part's outermost pixels, go on everywhere else."""
    core = cv2.erode(part.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    source = core if core.any() else part
    return photo.from_nearest(picture, source) if source.any() else picture


def rim_width(r: TryOnResult) -> int:
    """Pixels by which the colours of two things mix at their border."""
    return max(1, round(r.options.size[1] / 256))


@once
def hair_rim(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the outermost hair beside the new garment, whose pixels are a mixture with what lay behind it."""
    return (r.parse == labels.HAIR_LIP) & (_dilate(r.segmentation == UPPER, rim_width(r)) > 0)


@once
def _old_garment(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the old garment and the arms as photographed, with the rim that the parse leaves to the background
    and the person mask does not.
    """
    old = np.isin(r.parse, (*labels.UPPER_LIP, *labels.ARMS_LIP))
    rim = (r.parse == labels.BACKGROUND) & (r.person_mask > 0.35) & (_dilate(old, r.options.size[1] // 20) > 0)
    return old | rim


def _dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """(H, W) bool -> uint8 0/1, grown by `radius` pixels."""
    return cv2.dilate(mask.astype(np.uint8), photo.disc(radius))


def from_photograph(r: TryOnResult) -> np.ndarray:
    """I-hat (H, W, 3) with what the photograph knows better: bare arms and a bare throat take the tone of the person's
    own skin, and what a longer garment hid of trousers, skirt and legs goes on.
    """
    arms, width, bare = np.isin(r.segmentation, labels.ARMS), r.options.size[1], throat(r)
    neck, own, reference = own_skin(r, (labels.NECK_LIP,)), own_skin(r), tone_reference(r)
    # The cloth's detail is carried over at full size; what lights it is the generator's own picture.
    shared = r.alpha is not None and r.rendered is not None and r.alpha > 0
    base = np.where(np.asarray(shared)[..., None], r.rendered, r.synthesis) if np.any(shared) else r.synthesis
    picture = composite.smooth(composite.smooth(base, arms, width / 32), bare, width / 96)
    # Forearms tell the tone of what goes on from them, else the face: on 146 street and 11 studio photographs hands are
    # some 9 darker in L than bare arms and 2 to 5 redder in a, so that arms painted like them look like wax. Where the
    # face lies in the shade they tell the lightness alone.
    forearms, face = own & ~hands(r), r.parse == labels.FACE_LIP
    light = None
    if forearms.sum() > arms.sum() / 8:
        tone = forearms
    elif in_shade(r):
        tone, light = face, reference
    else:
        tone = reference
    picture = composite.round_limbs(composite.match_skin(picture, arms, r.person, tone, light), arms, arms | own)
    # A throat lies in the shade in which the face lies.
    beside = next((part for part in (neck, face) if composite.is_skin(r.person, part)), reference)
    picture = composite.match_skin(picture, bare, r.person, beside)
    picture = composite.join_skin(picture, arms & ~own, r.person, own, width / 48, width / 8)
    picture = composite.join_skin(picture, bare, r.person, neck, width / 48)
    return below_hem(r, picture, _dilate(_old_garment(r), round(width / 48)) > 0)


def below_hem(r: TryOnResult, picture: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3) uint8 with trousers, skirt and legs going on where a longer old garment hid them.

    The generator leaves such places gray, even after training on many of them. old: (H, W) bool, the old garment.
    """
    below, stays = np.isin(r.segmentation, labels.BELOW), old_below_hem(r)
    if stays.any():
        picture = np.where(stays[..., None], r.person, picture)
    hidden, visible = below & old & ~stays, below & (np.isin(r.parse, labels.LOWER_LIP) & ~old | stays)
    if not hidden.any():
        return picture
    margin = r.options.size[1] // 6
    rows, columns = (np.flatnonzero(hidden.any(axis)) for axis in (1, 0))
    box = np.s_[max(0, rows[0] - margin) : rows[-1] + margin, max(0, columns[0] - margin) : columns[-1] + margin]
    if not visible[box].any():
        return picture
    continuation = composite.continue_background(r.person[box], ~visible[box])
    share = cv2.GaussianBlur(hidden[box].astype(np.float32), (0, 0), r.options.size[1] / 384)[..., None]
    share *= below[box][..., None]
    out = picture.copy()
    out[box] = (picture[box] * (1 - share) + continuation * share).round().astype(np.uint8)
    return out


@once
def old_below_hem(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, what of the old garment goes on below the new one's hem: the skirt of a dress, and the tails of a
    coat that shows next to nothing of what is worn under it.
    """
    nearest = photo.from_nearest(r.segmentation, r.segmentation != labels.BACKGROUND)
    # A skirt that is wider than what is predicted of it stays as wide as it is.
    wider = (r.parse == labels.DRESS_LIP) & (r.segmentation == labels.BACKGROUND) & np.isin(nearest, labels.BELOW)
    below = np.isin(r.segmentation, labels.BELOW)
    old, lower = below & np.isin(r.parse, labels.UPPER_LIP), below & np.isin(r.parse, labels.LOWER_LIP)
    stays = old if lower.sum() < LEAST_LOWER * old.sum() else old & (r.parse == labels.DRESS_LIP)
    return stays | wider


def photograph_parts(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, what S-hat leaves as the photograph shows it: wall, hair, bare arms and neck, what is carried, and
    `old_below_hem`.
    """
    wall = (r.parse == labels.BACKGROUND) & (r.segmentation == labels.BACKGROUND) & ~_old_garment(r)
    arms = own_skin(r) & np.isin(r.segmentation, labels.ARMS)
    neck = own_skin(r, (labels.NECK_LIP,)) & (r.segmentation == labels.BACKGROUND)
    hair = (r.parse == labels.HAIR_LIP) & (r.segmentation == labels.HAIR)
    return wall | arms | neck | hair | bags(r) | old_below_hem(r)


@once
def tone_reference(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, what tells the tone of the person's skin: the face, unless something hides it, such as a phone, a
    mask or a sticker, it lies in the shade, or the photograph ends below it; else hands, neck or arms; nothing where no
    part has such a tone.
    """
    arms = np.isin(r.parse, labels.ARMS_LIP) & (_dilate(np.isin(r.parse, labels.UPPER_LIP), 2 * rim_width(r)) == 0)
    parts = r.parse == labels.FACE_LIP, hands(r), r.parse == labels.NECK_LIP, arms
    if in_shade(r):
        return parts[1]
    return next((part for part in parts if composite.is_skin(r.person, part)), np.zeros_like(arms))


@once
def in_shade(r: TryOnResult) -> bool:
    """Whether the face is seen, but in the shade, so that the hands tell better how light the skin is."""
    parts = r.parse == labels.FACE_LIP, hands(r)
    return all(composite.is_skin(r.person, part) for part in parts) and composite.is_shaded(r.person, *parts)


@once
def own_skin(r: TryOnResult, parts: tuple[int, ...] = labels.ARMS_LIP) -> np.ndarray:
    """(H, W) bool, where the photograph shows bare arms, or a bare neck, that the new garment leaves bare: they are the
    person's own. parts: LIP labels. The parser at times takes a sleeve for an arm and a collar for a neck, so the tone
    of the face decides, but for what no old garment touches, as the shadow below a chin. Beside the old garment skin
    has something of its colour.
    """
    part, worn = np.isin(r.parse, parts), np.isin(r.parse, labels.UPPER_LIP)
    skin = composite.like_skin(r.person, part & (r.segmentation != UPPER), tone_reference(r))
    _, patches = cv2.connectedComponents((part & ~skin).astype(np.uint8))
    touching = (patches > 0) & np.isin(patches, patches[_dilate(worn, 1) > 0])
    if skin.any():
        skin |= part & ~touching
    return skin & ~(_dilate(worn | touching, rim_width(r)) > 0) & (r.segmentation != UPPER)


def carry_detail(r: TryOnResult, region: np.ndarray) -> np.ndarray:
    """The new garment at the frame's own size in the photograph, with its fine detail, going on beyond its outline.

    In the aligned region print and colours come from the garment picture warped at full size, see
    `composite.carry_colours`. region: (H, W) bool, the cloth. Returns (h, w, 3) float32.
    """
    h, w = size = r.frame.height, r.frame.width
    upper = opacity.opacity(region, size) > 0.5
    if not upper.any():
        return opacity.enlarge(r.synthesis, size).round()
    # Nothing else of the frame shows cloth, and on a phone's photo this is a fraction of it.
    rows, columns = np.flatnonzero(upper.any(1)), np.flatnonzero(upper.any(0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    synthesis = opacity.enlarge(r.synthesis, size)[box]
    side = min(h, 2048) // 4 * 4
    product = garment.place(r.garment_cut, (side, side * 3 // 4))
    cloth, own = (torch.from_numpy(x.astype(np.float32)) for x in (product.cloth, product.mask > 127))
    mask = torch.from_numpy((r.cloth_mask > 127).astype(np.float32))[None, None]  # the one that may have been corrected
    grid = grid_of(r, size, smooth=True)[:, box[0], box[1]]
    warped = warping.warp_inside(cloth.permute(2, 0, 1)[None], own[None, None], grid)[0].permute(1, 2, 0).numpy()
    inside = (torch.minimum(*(warping.warp(m, grid, "zeros") for m in (mask, own[None, None])))[0, 0] > 0.5).numpy()
    picture = np.zeros((*size, 3), np.uint8)
    picture[box] = composite.carry_colours(synthesis, warped, upper[box], upper[box] & inside, 0.012 * w)
    return _going_on(picture, upper).astype(np.float32)
