"""What the last stage takes from the photograph rather than from the generator: background and skin tone.

The generator has seen neither the wall behind a removed coat nor the person's arms. The photograph shows how the wall
goes on, and the face shows the tone of the skin.
"""

from __future__ import annotations

import cv2
import numpy as np

from vton.inputs.photo import disc, from_nearest, wide_blur

RADIUS = 5  # of the inpainting, in pixels
LONGEST = 512  # the background is continued at no more rows than this: what stands behind a person is seldom sharp
HUE, DARKER, LIGHTER = 15, 35, 25  # how far skin may lie from the tone of the face in a and b, and in lightness
ROUND = 0.28  # fits 90 bare arms of street photographs, 0.93 and 0.87 as light as their middle at t = 0.67 and 0.82
SHADE = 12  # by which folds and shadows may change the lightness of a cloth, of 100
DIMMER = 8  # in lightness, by how much a face in the shade is darker than the hands at least
FEWEST = 40  # pixels; a smaller patch of skin gives no tone
FEWEST_BORDER = 5  # pixels along which painted skin and the person's own have to meet
# Tones that a face can have, in CIELAB: 264 faces of street photographs have a chroma of 8 to 46 and a hue of 25 to 72
# degrees, in shade, sun and evening light. A phone, a mask or a sticker seldom has.
CHROMAS, HUES = (7, 48), (20, 76)
APART = (12, 6, 6)  # how far in L, a and b the tone where both skins meet may lead away from that of all skin, by eye
MEMBRANE = 150  # rounds in which the membrane of `join_skin` becomes smooth: a throat is some 60 pixels wide
TINT = 0.3  # of the generator's own differences of hue that are left in painted skin: it mirrors the cloth beside it


def continue_background(picture: np.ndarray, body: np.ndarray) -> np.ndarray:
    """The picture without the body: its pixels are filled in from what surrounds them.

    Telea 2004, "An image inpainting technique based on the fast marching method".

    Args:
        picture (H,W,3) uint8; body (H,W) bool, True = unknown. Both stay as they are.

    Returns:
        (H,W,3) uint8, equal to `picture` where `body` is False; `picture` itself, copied, if nothing is known.
    """
    if body.all() or not body.any():
        return picture.copy()
    height, width = body.shape
    scale = min(1.0, LONGEST / height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    unknown = cv2.resize(body.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    # Pixels on the outline are a mixture of both sides.
    unknown = cv2.dilate(unknown, np.ones((7, 7), np.uint8))
    background = cv2.inpaint(small, unknown, RADIUS, cv2.INPAINT_TELEA)
    background = cv2.resize(background, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.where(body[..., None], background, picture)


def match_skin(
    picture: np.ndarray,
    paint: np.ndarray,
    photograph: np.ndarray,
    skin: np.ndarray,
    light: np.ndarray | None = None,
) -> np.ndarray:
    """Gives painted skin the tone of the person's own; light and shadow of the painting stay.

    In CIELAB the painted pixels are shifted by the difference of the medians.

    Args:
        picture (H,W,3) uint8 with the painted skin `paint` (H,W) bool; photograph (H,W,3) uint8 with the person's own
        skin `skin` (H,W) bool; light (H,W) bool: skin that tells the lightness in its place.

    Returns:
        (H,W,3) uint8; a copy of `picture` where there is too little skin to compare.
    """
    out = picture.copy()
    if skin.sum() < FEWEST or not paint.any():
        return out
    lab = _lab(picture[paint][None])[0]
    own, tone = np.median(_of_face(photograph[skin]), 0), np.median(lab, 0)
    if light is not None:
        own[0] = np.median(_of_face(photograph[light])[:, 0])
    lab[:, 1:] = tone[1:] + TINT * (lab[:, 1:] - tone[1:])
    out[paint] = _rgb(lab + own - tone)
    return out


def join_skin(
    picture: np.ndarray,
    paint: np.ndarray,
    photograph: np.ndarray,
    skin: np.ndarray,
    sigma: float,
    reach: float = np.inf,
) -> np.ndarray:
    """Painted skin that goes on from the person's own without a seam; light and shadow of the painting stay.

    In CIELAB a membrane is added to the painted pixels: it has the difference of both skins where they meet, and is as
    smooth as can be elsewhere (Perez, Gangnet and Blake 2003, eq. 2 with a guidance field of zero).

    Args:
        as of `match_skin`; sigma: pixels over which either skin's tone is averaged where they meet; reach: pixels
        within which the membrane falls to 1/e, since an arm is not as red and dark as its hand.

    Returns:
        (H,W,3) uint8, with what goes on from the border under the person's own skin; a copy of `picture` where they
        meet nowhere.
    """
    out = picture.copy()
    both = paint | skin
    rows, columns = (np.flatnonzero(both.any(axis)) for axis in (1, 0))
    meeting = (cv2.dilate(paint.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0) & skin
    if meeting.sum() < FEWEST_BORDER:
        return out
    box = np.s_[max(0, rows[0] - 1) : rows[-1] + 2, max(0, columns[0] - 1) : columns[-1] + 2]
    inside, border, before = paint[box], meeting[box], _lab(picture[box])
    apart = _blur(_lab(photograph[box]), skin[box], sigma) - _blur(before, inside, sigma)
    apart = np.clip(apart, -np.array(APART, np.float32), APART)  # no bracelet's colour along a whole arm
    membrane = from_nearest(apart, border)
    weight = (inside | border).astype(np.float32)
    around = np.repeat(np.maximum(cv2.blur(weight, (3, 3)), 1e-6)[..., None], 3, 2)
    stretch, part = membrane * weight[..., None], inside.astype(np.uint8)
    for _ in range(MEMBRANE):
        mean = cv2.blur(stretch, (3, 3))
        cv2.copyTo(np.divide(mean, around, out=mean), part, stretch)
    membrane[inside] = stretch[inside]
    away = cv2.distanceTransform((~border).astype(np.uint8), cv2.DIST_L2, 5)
    membrane *= np.exp(-away / reach)[..., None]
    changes = both[box]
    out[box][changes] = _rgb((before + membrane)[changes])
    return out


def is_skin(photograph: np.ndarray, part: np.ndarray) -> bool:
    """Whether a part (H,W) bool of a photograph (H,W,3) uint8 has a tone that skin can have, and is large enough."""
    if part.sum() < FEWEST:
        return False
    a, b = np.median(_of_face(photograph[part]), 0)[1:]
    return CHROMAS[0] < np.hypot(a, b) < CHROMAS[1] and HUES[0] < np.degrees(np.arctan2(b, a)) < HUES[1]


def is_shaded(photograph: np.ndarray, face: np.ndarray, hands: np.ndarray) -> bool:
    """Whether a face lies in the shade of a hat or behind hair, glasses or a beard, so that its skin is darker than the
    person's is: hands are usually the darker ones. face, hands (H,W) bool of a photograph (H,W,3) uint8.
    """
    lightness = [float(np.median(_of_face(photograph[part])[:, 0])) for part in (face, hands)]
    return lightness[1] - lightness[0] > DIMMER


def smooth(picture: np.ndarray, paint: np.ndarray, sigma: float) -> np.ndarray:
    """The picture with each pixel of `paint` (H,W) bool as the Gaussian mean of those around it, sigma in pixels.

    The generator draws the pose's lines faintly on bare skin. Returns (H,W,3) uint8.
    """
    out = picture.copy()
    if paint.any():
        out[paint] = np.clip(_blur(picture.astype(np.float32), paint, sigma)[paint], 0, 255).round().astype(np.uint8)
    return out


def round_limbs(picture: np.ndarray, paint: np.ndarray, limbs: np.ndarray) -> np.ndarray:
    """Painted skin with the shade that a round limb has towards its outline.

    A limb is taken for a cylinder lit from the front: by Lambert's law its brightness is the cosine of the angle
    between the surface and the view, sqrt(1 - t^2) at the share t of the radius from the axis. ROUND of that is
    applied, as skies and walls light a limb from the sides too.

    Args:
        picture (H,W,3) uint8; paint (H,W) bool, what changes; limbs (H,W) bool, the whole limbs with their own skin.

    Returns:
        (H,W,3) uint8.
    """
    out = picture.copy()
    if not paint.any():
        return out
    depth = cv2.distanceTransform((limbs | paint).astype(np.uint8), cv2.DIST_L2, 5)
    # The radius is the depth of the nearest axis; an arm is seldom wider than a tenth of the frame.
    reach = max(3, paint.shape[1] // 10 | 1)
    radius = cv2.dilate(depth, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach)))
    share = 1 - depth / np.maximum(radius, 1)
    shade = 1 - ROUND * (1 - np.sqrt(np.clip(1 - share**2, 0, 1)))
    shade = cv2.GaussianBlur(shade.astype(np.float32), (0, 0), max(0.8, paint.shape[1] / 384))
    lab = _lab(picture)
    lab[..., 0] *= shade / max(float(shade[paint].mean()), 0.5)  # as bright as before on the whole
    rgb = cv2.cvtColor(lab, cv2.COLOR_Lab2RGB)
    out[paint] = np.clip(rgb[paint] * 255, 0, 255).round().astype(np.uint8)
    return out


def like_skin(photograph: np.ndarray, bare: np.ndarray, face: np.ndarray) -> np.ndarray:
    """The part of `bare`, arms or neck, that has the colour of the face.

    In CIELAB, wider in lightness than in hue, because arms and neck lie in the shadow of the head or in the sun.

    Args:
        photograph (H,W,3) uint8; bare, face (H,W) bool.

    Returns:
        (H,W) bool, all False where there is too little of a face to compare.
    """
    skin = np.zeros(bare.shape, bool)
    if face.sum() < FEWEST or not bare.any():
        return skin
    tone = np.median(_of_face(photograph[face]), 0)
    lightness, a, b = (_lab(photograph[bare][None])[0] - tone).T
    # Pale skin lies near to gray: a gray sleeve has to stay further off.
    reach = min(HUE, 0.6 * float(np.hypot(*tone[1:])))
    skin[bare] = (np.hypot(a, b) < reach) & (lightness > -DARKER) & (lightness < LIGHTER)
    kernel = disc(bare.shape[1] / 128)
    # Bracelets, tattoos and highlights are skin too.
    solid = cv2.morphologyEx(skin.astype(np.uint8), cv2.MORPH_CLOSE, kernel)
    return (cv2.morphologyEx(solid, cv2.MORPH_OPEN, kernel) > 0) & bare


def carry_colours(
    synthesis: np.ndarray, warped: np.ndarray, region: np.ndarray, aligned: np.ndarray, sigma: float
) -> np.ndarray:
    """The garment's own colours and fine detail in the generator's picture, in CIELAB.

    Where the warped garment lies, hue and what is finer than `sigma` come from it, and lightness is the mean of both:
    the generator knows the light of the photograph, the garment picture the cloth. Where the garment does not reach,
    the nearest cloth is reflected, and further off its mean taken; the generator may shade both by SHADE.

    Args:
        synthesis, warped (H,W,3) float32 in [0, 255]: I-hat and W(c, theta); region (H,W) bool: the predicted garment;
        aligned (H,W) bool: its part that the warped garment covers; sigma: pixels.

    Returns:
        (H,W,3) uint8, I-hat outside the region.
    """
    out = np.clip(synthesis, 0, 255).round().astype(np.uint8)
    if not aligned.any():
        return out
    picture, cloth = _lab(np.clip(synthesis, 0, 255)), _lab(np.clip(warped, 0, 255))
    # Fades towards what the garment leaves open, where the warp is least certain.
    far = cv2.distanceTransform((aligned | ~region).astype(np.uint8), cv2.DIST_L2, 3)
    share = (np.clip(far / (0.5 * sigma), 0, 1) * aligned)[..., None]
    # The generator's outline is blurred: what lies beside the garment does not light it.
    inner = cv2.erode(aligned.astype(np.uint8), disc(0.3 * sigma)) > 0
    inner = inner if inner.any() else aligned
    smooth, base = _blur(cloth, inner, sigma), _blur(picture, inner, sigma)
    detail = cloth.copy()
    detail[..., 0] += 0.5 * (base - smooth)[..., 0]
    near = _blur(cloth, aligned, 3 * sigma)
    beyond = mirror_across(cloth, inner, near, 3 * sigma)
    # The generator may shade this cloth, but not paint another: the light ground of the garment picture, say.
    beyond[..., 0] += np.clip(picture[..., 0] - near[..., 0], -SHADE, SHADE)
    lab = beyond * (1 - share) + detail * share
    rgb = cv2.cvtColor(lab.astype(np.float32), cv2.COLOR_Lab2RGB)
    return np.where(region[..., None], (rgb * 255).clip(0, 255).round().astype(np.uint8), out)


def mirror_across(picture: np.ndarray, inside: np.ndarray, far: np.ndarray, reach: float) -> np.ndarray:
    """What lies beyond an outline, as the reflection of what lies within it: a print goes on instead of running out.

    picture, far: (H, W, 3) float; inside: (H, W) bool, True somewhere. From half of `reach` pixels on, or where the
    reflection falls outside, too, the picture turns into `far`. Returns (H, W, 3).
    """
    at = np.stack(np.indices(inside.shape, np.float32)[::-1], -1)
    inwards = from_nearest(at, inside) - at
    share = np.clip(2 - 2 * np.linalg.norm(inwards, axis=-1) / reach, 0, 1)
    # The way to an uneven outline jumps from pixel to pixel, and would tear what is reflected.
    source = at + 2 * cv2.GaussianBlur(inwards, (0, 0), reach / 6)
    share *= cv2.remap(inside.astype(np.float32), source, None, cv2.INTER_LINEAR)
    mirror = cv2.remap(picture, source, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return mirror * share[..., None] + far * (1 - share[..., None])


def _blur(picture: np.ndarray, inside: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian mean over the known pixels alone; far from all of them their common mean."""
    weight = inside.astype(np.float32)
    total = wide_blur(weight, sigma, 4)[..., None] + 1e-4
    return (wide_blur(picture * weight[..., None], sigma, 4) + 1e-4 * picture[inside].mean(0)) / total


def _of_face(pixels: np.ndarray) -> np.ndarray:
    """(n,3) uint8 of a face -> CIELAB (m,3) without its darkest (hair, glasses, lips) and brightest parts (glare)."""
    own = _lab(pixels[None])[0]
    low, high = np.percentile(own[:, 0], [30, 95])
    return own[(own[:, 0] >= low) & (own[:, 0] <= high)]


def _rgb(pixels: np.ndarray) -> np.ndarray:
    """(n,3) CIELAB, L in [0, 100] -> uint8 RGB."""
    rgb = cv2.cvtColor(pixels[None].astype(np.float32), cv2.COLOR_Lab2RGB)[0]
    return np.clip(rgb * 255, 0, 255).round().astype(np.uint8)


def _lab(pixels: np.ndarray) -> np.ndarray:
    """uint8 RGB -> float32 CIELAB, L in [0, 100]."""
    return cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
