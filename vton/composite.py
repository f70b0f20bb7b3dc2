"""What the last stage takes from the photograph rather than from the generator: background and skin tone.

The generator has seen neither the wall behind a removed coat nor the person's arms. The photograph shows how the wall goes
on, and the face shows the tone of the skin.
"""
from __future__ import annotations

import cv2
import numpy as np

RADIUS = 5  # of the inpainting, in pixels
LONGEST = 512  # the background is continued at no more rows than this: what stands behind a person is seldom sharp
FEWEST = 40  # pixels of a face from which a tone can be told


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
    filled = cv2.inpaint(small, unknown, RADIUS, cv2.INPAINT_TELEA)
    filled = cv2.resize(filled, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.where(body[..., None], filled, picture)


def match_skin(picture: np.ndarray, painted: np.ndarray, photograph: np.ndarray, skin: np.ndarray) -> np.ndarray:
    """Gives painted skin the tone of the person's own; light and shadow of the painting stay.

    In CIELAB the painted pixels are shifted by the difference of the medians.

    Args:
        picture (H,W,3) uint8 with the painted skin `painted` (H,W) bool; photograph (H,W,3) uint8 with the person's own
        skin `skin` (H,W) bool.

    Returns:
        (H,W,3) uint8; a copy of `picture` where there is too little skin to compare.
    """
    out = picture.copy()
    if skin.sum() < FEWEST or painted.sum() < FEWEST:
        return out
    own = _lab(photograph[skin][None])[0]
    # Hair, glasses and lips are the darkest part of a face, glare the brightest.
    low, high = np.percentile(own[:, 0], [30, 95])
    own = own[(own[:, 0] >= low) & (own[:, 0] <= high)]
    tinted = _lab(picture[painted][None])[0]
    shifted = tinted + np.median(own, 0) - np.median(tinted, 0)
    rgb = cv2.cvtColor(shifted[None].astype(np.float32), cv2.COLOR_Lab2RGB)[0]
    out[painted] = np.clip(rgb * 255, 0, 255).round().astype(np.uint8)
    return out


def carry_colours(synthesis: np.ndarray, warped: np.ndarray, region: np.ndarray, aligned: np.ndarray, sigma: float) -> np.ndarray:
    """The garment's own colours and fine detail in the generator's picture, in CIELAB.

    Where the warped garment lies, hue and what is finer than `sigma` come from it, and lightness is the mean of both: the
    generator knows the light of the photograph, the garment picture the cloth. Where the garment does not reach, the
    generator's lightness stays and the hue goes on from the nearest cloth.

    Args:
        synthesis, warped (H,W,3) float32 in [0, 255]: I-hat and W(c, theta); region (H,W) bool: the predicted garment;
        aligned (H,W) bool: its part that the warped garment covers; sigma: pixels.

    Returns:
        (H,W,3) uint8, I-hat outside the region.
    """
    out = np.clip(synthesis, 0, 255).round().astype(np.uint8)
    if not aligned.any():
        return out
    # Only the region changes: on a phone's photo that is a fraction of the frame.
    rows, columns = np.nonzero(region.any(1))[0], np.nonzero(region.any(0))[0]
    box = np.s_[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
    out[box] = _carried(out[box], synthesis[box], warped[box], region[box], aligned[box], sigma)
    return out


def _carried(out, synthesis, warped, region, aligned, sigma):
    """`carry_colours` inside the region's box."""
    painted, cloth = _lab(np.clip(synthesis, 0, 255)), _lab(np.clip(warped, 0, 255))
    # Fades towards the cloth's border, where the warp is least certain.
    share = np.clip(cv2.distanceTransform(aligned.astype(np.uint8), cv2.DIST_L2, 3) / (0.5 * sigma), 0, 1)[..., None]
    smooth, base = _blur(cloth, aligned, sigma), _blur(painted, aligned, sigma)
    carried = cloth.copy()
    carried[..., 0] += 0.5 * (base - smooth)[..., 0]
    beyond = painted.copy()
    beyond[..., 1:] = _blur(cloth, aligned, 3 * sigma)[..., 1:]
    mixed = beyond * (1 - share) + carried * share
    rgb = cv2.cvtColor(mixed.astype(np.float32), cv2.COLOR_Lab2RGB)
    edge = cv2.GaussianBlur(region.astype(np.float32), (0, 0), max(0.8, sigma / 5))[..., None] * region[..., None]
    return np.clip(out * (1 - edge) + rgb * 255 * edge, 0, 255).round().astype(np.uint8)


def _blur(picture: np.ndarray, known: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian mean over the known pixels alone; far from all of them their common mean."""
    weight = known.astype(np.float32)
    height, width = known.shape
    # A wide blur of a phone's photo is computed on a smaller copy: the same to the eye, and a hundred times quicker.
    factor = max(1, int(sigma // 4))
    size = (max(1, width // factor), max(1, height // factor))

    def mean(values):
        small = cv2.resize(values, size, interpolation=cv2.INTER_AREA) if factor > 1 else values
        blurred = cv2.GaussianBlur(small, (0, 0), sigma / factor)
        return cv2.resize(blurred, (width, height), interpolation=cv2.INTER_LINEAR) if factor > 1 else blurred

    spread = mean(weight)[..., None] + 1e-4
    return (mean(picture * weight[..., None]) + 1e-4 * picture[known].mean(0)) / spread


def _lab(pixels: np.ndarray) -> np.ndarray:
    """uint8 RGB -> float32 CIELAB, L in [0, 100]."""
    return cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
