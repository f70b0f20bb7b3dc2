"""The person's parse: what `vton.networks.parser` says of a photograph, tidied by what bodies are like."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vton import labels
from vton.inputs import pose
from vton.inputs.photo import from_nearest
from vton.joints import FLIP, LEFT_ARM, NECK, NOSE, RIGHT_ARM, present
from vton.networks.parser import Parser

STRIDE = 32  # pictures are padded to a multiple of this
HEAD = (*labels.HEAD_LIP, labels.HAT_LIP, labels.HAIR_LIP)
REACH = 0.02  # what belongs to the head is no further from it than this, as a share of the picture's height
ARM_REACH = 0.45  # and what belongs to an arm no further from its bones, in lengths of the upper arm
CHIN = 0.4  # how far down from the nose to the neck's joint it lies
NECK_WIDTH = 0.034  # long hair is broader than this share of the picture's height where it passes the neck
AROUND = 0.08  # cloth within this share of the height is compared with what may be hair
NEARER = 1.0  # by so much in colour (CIELAB, lightness x 0.7) what was called hair is nearer to cloth than to hair
SMALLEST = 4e-4  # of the picture; a smaller island is a mistake


def joint_maps(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Gaussian bumps at the joints.

    Args:
        keypoints: (25, 3) x, y in pixels of a picture of `size`, confidence; (0, 0) or confidence 0 means missing.
        size: (H, W).

    Returns:
        (25, H, W) float32 in [0, 1]; the standard deviation is 1/48 of the height; missing joints are all zero.
    """
    height, width = size
    sigma = height / 48
    xs = np.exp(-0.5 * ((np.arange(width, dtype=np.float32)[None] + 0.5 - keypoints[:, :1]) / sigma) ** 2)
    ys = np.exp(-0.5 * ((np.arange(height, dtype=np.float32)[None] + 0.5 - keypoints[:, 1:2]) / sigma) ** 2)
    known = (keypoints[:, 2] > 0) & (np.abs(keypoints[:, :2]).sum(1) > 0)
    return (ys[:, :, None] * xs[:, None, :] * known[:, None, None]).astype(np.float32)


def to_tensors(image: np.ndarray, keypoints: np.ndarray, person_mask: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Network inputs of one picture.

    Args:
        image: (H, W, 3) uint8. keypoints: (25, 3) in its pixels. person_mask: (H, W) float32 in [0, 1].

    Returns:
        image (1,3,H,W) in [-1, 1], joints (1,25,H,W), person (1,1,H,W).
    """
    picture = torch.from_numpy(image.astype(np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
    joints = torch.from_numpy(joint_maps(keypoints, image.shape[:2]))[None]
    return picture, joints, torch.from_numpy(np.ascontiguousarray(person_mask, dtype=np.float32))[None, None]


@torch.inference_mode()
def label_probabilities(
    parser: Parser,
    image: np.ndarray,
    keypoints: np.ndarray,
    person_mask: np.ndarray,
    height: int | None = None,
    mirror: bool = True,
) -> np.ndarray:
    """Probability of each label, at the picture's own size.

    Args:
        image: (H, W, 3) uint8 of any size. keypoints: (25, 3) in its pixels. person_mask: (H, W) in [0, 1].
        height: height in pixels to which the picture is resized for the network; default: the config's.
        mirror: average with the answer on the mirrored picture, left and right exchanged.

    Returns:
        (20, H, W) float32; sums to 1 over the labels.
    """
    full_h, full_w = image.shape[:2]
    scale = (height or parser.config.size[0]) / full_h
    h, w = max(1, round(full_h * scale)), max(1, round(full_w * scale))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small, mask = (
        cv2.resize(image, (w, h), interpolation=how),
        cv2.resize(person_mask.astype(np.float32), (w, h), interpolation=how),
    )
    points = keypoints.astype(np.float32).copy()
    points[:, :2] *= (w / full_w, h / full_h)
    pad_h, pad_w = -h % STRIDE, -w % STRIDE
    small = cv2.copyMakeBorder(small, 0, pad_h, 0, pad_w, cv2.BORDER_REPLICATE)
    mask = cv2.copyMakeBorder(mask, 0, pad_h, 0, pad_w, cv2.BORDER_CONSTANT, value=0)
    device = next(parser.parameters()).device
    views = [to_tensors(small, points, mask)]
    if mirror:
        flipped = points[FLIP].copy()
        flipped[:, 0] = np.where(np.abs(flipped[:, :2]).sum(1) > 0, small.shape[1] - flipped[:, 0], 0)
        views.append(to_tensors(small[:, ::-1], flipped, mask[:, ::-1]))
    inputs = [torch.cat(parts).to(device) for parts in zip(*views)]
    probabilities = parser(*inputs).softmax(1)
    if mirror:
        back = probabilities[1].flip(-1)[torch.from_numpy(labels.FLIP_LIP.astype(np.int64))]
        probabilities = (probabilities[0] + back)[None] / 2
    probabilities = probabilities[:1, :, :h, :w]
    return F.interpolate(probabilities, (full_h, full_w), mode="bilinear", align_corners=False)[0].cpu().numpy()


def mean_probabilities(
    parser: Parser, image: np.ndarray, keypoints: np.ndarray, person_mask: np.ndarray, heights: Sequence[int]
) -> np.ndarray:
    """Mean of `label_probabilities` with the mirror image over several sizes, (20, H, W) float32; heights in pixels."""
    found = [label_probabilities(parser, image, keypoints, person_mask, height=h) for h in heights]
    return np.asarray(sum(found) / len(found))


def parse(parser: Parser, image: np.ndarray, keypoints: np.ndarray, person_mask: np.ndarray, **options) -> np.ndarray:
    """LIP labels (H, W) uint8 of a picture, tidied; arguments as for `label_probabilities`."""
    found = label_probabilities(parser, image, keypoints, person_mask, **options).argmax(0).astype(np.uint8)
    collar = cloth_called_hair(found, image, keypoints)
    if collar.any():
        found[collar] = from_nearest(found, np.isin(found, labels.UPPER_LIP))[collar]
    return tidy(found, keypoints)


def cloth_called_hair(parse: np.ndarray, image: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """Where a collar or a shoulder was taken for long hair.

    Long hair hangs from the head in broad strands. "Hair" below the chin is cloth when only a strip narrower than
    NECK_WIDTH joins it to the hair above, and its colours are nearer to those of the garment around it than to those of
    the head's hair.

    Args:
        parse: (H, W) LIP labels; image: (H, W, 3) uint8; keypoints: (25, 3) in their pixels.

    Returns:
        (H, W) bool; nowhere true without nose, neck or garment, or where a hat hides the hair above.
    """
    height, nothing = parse.shape[0], np.zeros(parse.shape, bool)
    if not present(keypoints)[[NOSE, NECK]].all():
        return nothing
    nose, neck = keypoints[NOSE, 1], keypoints[NECK, 1]
    chin = nose + CHIN * (neck - nose)
    hair, upper = parse == labels.HAIR_LIP, np.isin(parse, labels.UPPER_LIP)
    below = hair & (np.arange(height)[:, None] > chin)
    above = hair & ~below
    broad = _distance_to(~hair) > NECK_WIDTH / 2 * height
    count, parts = cv2.connectedComponents(broad.astype(np.uint8))
    hangs = np.bincount(parts[above], minlength=count) > 0
    loose = broad & ~hangs[parts]
    under_a_hat = not above.any() and (parse == labels.HAT_LIP).any()
    if not loose.any() or not upper.any() or under_a_hat:
        return nothing
    held = above | (broad & hangs[parts])
    nearer = _distance_to(loose) < _distance_to(held) if held.any() else np.ones(parse.shape, bool)
    _, parts = cv2.connectedComponents((below & nearer).astype(np.uint8))
    # Light falls unevenly on one cloth: lightness counts less than hue.
    colours = cv2.cvtColor(
        cv2.medianBlur(np.ascontiguousarray(image), 5).astype(np.float32) / 255, cv2.COLOR_RGB2LAB
    ) * (0.7, 1, 1)
    colours = colours.astype(np.float32)
    found = nothing.copy()
    for part in (parts == i for i in np.unique(parts[loose & below]) if i):
        around = upper & (_distance_to(part) <= AROUND * height)
        if around.any():
            to_hair = _colour_distance(colours[part], colours[above]) if above.any() else np.inf
            if to_hair - _colour_distance(colours[part], colours[around]) > NEARER:
                found |= part
    return found


def _distance_to(mask: np.ndarray) -> np.ndarray:
    return cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3)


def _colour_distance(colours: np.ndarray, palette: np.ndarray, kinds: int = 4, most: int = 2000) -> float:
    """Mean distance of colours (N, 3) to the nearest of the `kinds` commonest colours among (M, 3)."""
    colours, palette = (
        values[np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)] for values in (colours, palette)
    )
    cv2.setRNGSeed(1)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 20, 0.5)
    _, _, centres = cv2.kmeans(
        np.ascontiguousarray(palette), min(kinds, len(palette)), None, stop, 2, cv2.KMEANS_PP_CENTERS
    )
    return float(np.linalg.norm(colours[:, None] - centres, axis=-1).min(1).mean())


def tidy(parse: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The parse without islands that no body has: they take the label of what is nearest.

    These are hair and hat away from the head, arms away from their bones, and specks of anything but the head.

    Args:
        parse: (H, W) LIP labels; keypoints: (25, 3) in its pixels.

    Returns:
        (H, W) uint8.
    """
    parse = np.asarray(parse, np.uint8)
    island = np.zeros(parse.shape, bool)
    radius = max(1, round(REACH / 2 * parse.shape[0]))  # of two masks that grow towards each other
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    head = np.isin(parse, HEAD)
    if (parse == labels.FACE_LIP).any():
        _, parts = cv2.connectedComponents(cv2.dilate(head.astype(np.uint8), kernel))
        main = np.bincount(parts[parse == labels.FACE_LIP]).argmax()
        island |= head & (parts != main)
    found = present(keypoints)
    for label, bones in zip(labels.ARMS_LIP, (LEFT_ARM, RIGHT_ARM)):
        if found[list(bones)].all():
            _, distance = pose.along_arm(keypoints, bones, parse.shape)
            arm = parse == label
            count, parts = cv2.connectedComponents(arm.astype(np.uint8))
            touched = np.bincount(parts[distance <= ARM_REACH], minlength=count) > 0
            island |= arm & ~touched[parts]
    for label in set(np.unique(parse).tolist()) - {0, *HEAD}:
        of_label = parse == label
        _, parts = cv2.connectedComponents(of_label.astype(np.uint8))
        island |= of_label & (np.bincount(parts.ravel()) < SMALLEST * parse.size)[parts]
    if not island.any() or island.all():
        return parse.copy()
    return from_nearest(parse, ~island)
