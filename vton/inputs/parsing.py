"""The person's parse: what `vton.networks.parser` says of a photograph, tidied by what bodies are like."""

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vton import labels
from vton.inputs import pose
from vton.inputs.colours import by_colour
from vton.inputs.photo import disc, from_nearest
from vton.joints import FLIP, LEFT_ARM, RIGHT_ARM, TRUNK, present
from vton.networks.parser import Parser
from vton.tensors import picture_to_tensor

# Where no source is named, numbers were chosen by the parse of the 80 validation photographs.
STRIDE = 32  # pictures are padded to a multiple of this
HEAD = (*labels.HEAD_LIP, labels.HAT_LIP, labels.HAIR_LIP)
REACH = 0.006  # what belongs to the head is no further from it than this, as a share of the picture's height
ARM_REACH = 0.45  # and what belongs to an arm no further from its bones, in lengths of the upper arm
OUTSIDE = 0.1  # share of an arm without a hand that at the least lies outside the trunk; less is a bare midriff
# Strips of face along a collar, and of hair along stripes and folds, are narrower than twice this share of the
# picture's height: on 80 labelled photographs the overlap of hair is 0.730 without them, 0.728 with them.
SLIVER = 0.008
PATCH = 0.02  # patches of dress and coat in a skirt are narrower than twice this, as a share of the picture's height
# A piece of cloth or leg that is no larger than the first share of the picture, with no more wall around it than the
# second, and with one other cloth as the third of the rest, is part of that. On 80 labelled photographs that makes
# 17,040 pixels of 104 such pieces right that were 7,724; no other choice of the three gave a better mean overlap.
PIECE, WALL, AROUND = 0.006, 0.2, 0.7
SMALLEST = 4e-4  # of the picture; a smaller island is a mistake


def joint_maps(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Gaussian bumps at the joints.

    keypoints: (25, 3) x, y in pixels of a picture of `size`, confidence; (0, 0) or confidence 0 means missing.
    size: (H, W).
    Returns (25, H, W) float32 in [0, 1]; the standard deviation is 1/48 of the height; missing joints are all zero.
    """
    height, width = size
    sigma = height / 48
    xs = np.exp(-0.5 * ((np.arange(width, dtype=np.float32)[None] + 0.5 - keypoints[:, :1]) / sigma) ** 2)
    ys = np.exp(-0.5 * ((np.arange(height, dtype=np.float32)[None] + 0.5 - keypoints[:, 1:2]) / sigma) ** 2)
    visible = (keypoints[:, 2] > 0) & (np.abs(keypoints[:, :2]).sum(1) > 0)
    return (ys[:, :, None] * xs[:, None, :] * visible[:, None, None]).astype(np.float32)


def to_tensors(image: np.ndarray, keypoints: np.ndarray, person_mask: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Network inputs of one picture.

    image: (H, W, 3) uint8. keypoints: (25, 3) in its pixels. person_mask: (H, W) float32 in [0, 1].
    Returns image (1,3,H,W) in [-1, 1], joints (1,25,H,W), person (1,1,H,W).
    """
    maps = joint_maps(keypoints, image.shape[:2]), np.ascontiguousarray(person_mask, dtype=np.float32)[None]
    joints, person = (torch.from_numpy(planes)[None] for planes in maps)
    return picture_to_tensor(image), joints, person


@torch.inference_mode()
def label_probabilities(
    parser: Parser,
    image: np.ndarray,
    keypoints: np.ndarray,
    person_mask: np.ndarray,
    height: int | None = None,
    mirror: bool = True,
    colours: bool = True,
) -> np.ndarray:
    """Probability of each label, at the picture's own size.

    image: (H, W, 3) uint8 of any size. keypoints: (25, 3) in its pixels. person_mask: (H, W) in [0, 1].
    height: height in pixels to which the picture is resized for the network; default: the config's.
    mirror: average with the answer on the mirrored picture, left and right exchanged.
    colours: ask the photograph's own colours, too, see `vton.inputs.colours`.
    Returns (20, H, W) float32; sums to 1 over the labels.
    """
    full_h, full_w = image.shape[:2]
    scale = (height or parser.config.size[0]) / full_h
    h, w = max(1, round(full_h * scale)), max(1, round(full_w * scale))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small, mask = (cv2.resize(a, (w, h), interpolation=how) for a in (image, person_mask.astype(np.float32)))
    points = keypoints.astype(np.float32).copy()
    points[:, :2] *= (w / full_w, h / full_h)
    pad_h, pad_w = -h % STRIDE, -w % STRIDE
    small = cv2.copyMakeBorder(small, 0, pad_h, 0, pad_w, cv2.BORDER_REPLICATE)
    mask = cv2.copyMakeBorder(mask, 0, pad_h, 0, pad_w, cv2.BORDER_CONSTANT, value=0)
    device = next(parser.parameters()).device
    views = [to_tensors(small, points, mask)]
    if mirror:
        mirror_points = points[FLIP].copy()
        mirror_points[:, 0] = np.where(np.abs(mirror_points[:, :2]).sum(1) > 0, small.shape[1] - mirror_points[:, 0], 0)
        views.append(to_tensors(small[:, ::-1], mirror_points, mask[:, ::-1]))
    inputs = [torch.cat(parts).to(device) for parts in zip(*views)]
    probabilities = parser(*inputs).softmax(1)
    if mirror:
        probabilities = (probabilities[0] + probabilities[1].flip(-1)[labels.FLIP_LIP.tolist()])[None] / 2
    probabilities = probabilities[:1, :, :h, :w].cpu()
    if colours:
        probabilities = torch.from_numpy(by_colour(probabilities[0].numpy(), small[:h, :w]))[None]
    return F.interpolate(probabilities, (full_h, full_w), mode="bilinear", align_corners=False)[0].cpu().numpy()


def parse(parser: Parser, image: np.ndarray, keypoints: np.ndarray, person_mask: np.ndarray, **options) -> np.ndarray:
    """LIP labels (H, W) uint8 of a picture, tidied; arguments as for `label_probabilities`."""
    classes = label_probabilities(parser, image, keypoints, person_mask, **options).argmax(0).astype(np.uint8)
    return tidy(classes, keypoints)


def tidy(parse: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """The parse without islands that no body has: they take the label of what is nearest.

    These are hair and hat away from the head, arms away from their bones, or inside the trunk where the hand is not
    seen (a bare midriff), and specks of anything but the head. Slivers of face and hair along a garment are garment,
    patches of dress and coat in the midst of a skirt are skirt, and small pieces of cloth or leg in another cloth are
    of that.

    parse: (H, W) LIP labels; keypoints: (25, 3) in its pixels.
    Returns (H, W) uint8.
    """
    parse = np.array(parse, np.uint8)
    skirt = (parse == labels.SKIRT_LIP).astype(np.uint8)
    skirt = cv2.morphologyEx(skirt, cv2.MORPH_CLOSE, disc(PATCH * len(parse)))
    parse[(skirt > 0) & np.isin(parse, (labels.DRESS_LIP, labels.COAT_LIP))] = labels.SKIRT_LIP
    _join_pieces(parse)
    slivers = _slivers(parse, labels.FACE_LIP) | _slivers(parse, labels.HAIR_LIP)
    if slivers.any():
        parse = np.where(slivers, from_nearest(parse, np.isin(parse, labels.UPPER_LIP)), parse)
    island = np.zeros(parse.shape, bool)
    head = np.isin(parse, HEAD)
    if (parse == labels.FACE_LIP).any():
        near = disc(REACH / 2 * len(parse))  # half of the reach, because both parts grow
        _, parts = cv2.connectedComponents(cv2.dilate(head.astype(np.uint8), near))
        main = np.bincount(parts[parse == labels.FACE_LIP]).argmax()
        island |= head & (parts != main)
    visible = present(keypoints)
    for label, bones in zip(labels.ARMS_LIP, (LEFT_ARM, RIGHT_ARM)):
        arm = parse == label
        if visible[list(bones)].all():
            _, distance = pose.along_arm(keypoints, bones, parse.shape)
            count, parts = cv2.connectedComponents(arm.astype(np.uint8))
            near_arm = np.bincount(parts[distance <= ARM_REACH], minlength=count) > 0
            island |= arm & ~near_arm[parts]
        elif visible[list(TRUNK)].all() and not visible[bones[-1]]:
            island |= arm & ~_leave_trunk(arm, keypoints)
    for label in set(np.unique(parse).tolist()) - {0, *HEAD}:
        of_label = parse == label
        _, parts = cv2.connectedComponents(of_label.astype(np.uint8))
        island |= of_label & (np.bincount(parts.ravel()) < SMALLEST * parse.size)[parts]
    if not island.any() or island.all():
        return parse
    return from_nearest(parse, ~island)


def _slivers(parse: np.ndarray, label: int) -> np.ndarray:
    """(H, W) bool, strips of a label in a parse (H, W) that touch the garment: the edge of a collar, stripes, folds."""
    part = (parse == label).astype(np.uint8)
    radius = SLIVER * len(parse)
    thin = part - cv2.morphologyEx(part, cv2.MORPH_OPEN, disc(radius))
    count, parts = cv2.connectedComponents(thin)
    strip = np.bincount(parts.ravel()) > radius**2  # less is a corner
    beside_garment = cv2.dilate(np.isin(parse, labels.UPPER_LIP).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    touches = np.bincount(parts[beside_garment], minlength=count) > 0
    return (strip & touches)[parts] & (thin > 0)


def _leave_trunk(arm: np.ndarray, keypoints: np.ndarray) -> np.ndarray:
    """Those pieces of an arm (H, W) bool of which some part lies outside the trunk of joints (25, 3)."""
    inside = np.zeros(arm.shape, np.uint8)
    cv2.fillConvexPoly(inside, cv2.convexHull(np.round(keypoints[list(TRUNK), :2]).astype(np.int32)), 1)
    _, parts = cv2.connectedComponents(arm.astype(np.uint8))
    outside = np.bincount(parts[inside == 0], minlength=parts.max() + 1)
    return arm & (outside > OUTSIDE * np.bincount(parts.ravel()))[parts]


def _join_pieces(parse: np.ndarray) -> None:
    """Gives small pieces of cloth and leg in a parse (H, W) the label of the cloth that they lie in; see `PIECE`."""
    cloths = (*labels.UPPER_LIP, *labels.TROUSERS_LIP, *labels.LEGS_LIP)
    for label in cloths:
        count, pieces, stats, _ = cv2.connectedComponentsWithStats((parse == label).astype(np.uint8), None, 4)
        for piece in np.flatnonzero(stats[1:, cv2.CC_STAT_AREA] <= PIECE * parse.size) + 1:
            x, y, w, h = stats[piece, :4]
            box = np.s_[max(0, y - 1) : y + h + 1, max(0, x - 1) : x + w + 1]
            inside = pieces[box] == piece
            rim = (cv2.dilate(inside.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0) & ~inside
            around = np.bincount(parse[box][rim], minlength=len(labels.LIP))
            wall, around[labels.BACKGROUND] = around[labels.BACKGROUND], 0
            best = around.argmax()
            if best in cloths and wall <= WALL * rim.sum() and around[best] >= AROUND * around.sum():
                parse[box][inside] = best
