"""Drawn people in drawn garments, with exact ground truth for parse, pose, garment mask and warp.

A garment is a cut (trunk, sleeves, neckline) laid over a skeleton. Laid over a mannequin's it is the flat product
picture, laid over the person's it gives the same named points on the body. A thin-plate spline through these pairs of
points is the warp, so the worn garment is the product picture, bent, and the truth is known at every pixel.

Coordinates are those of a 768 x 1024 picture in the framing of VITON-HD, scaled to the size asked for. "Left" and
"right" in names are the person's own. `python -m lab.tryon.synthetic --out DIR` draws the example pictures.
"""

import sys
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from lab.tryon.drawing.canvas import Canvas
from lab.tryon.drawing.garment import PRINTS, SLEEVES, draw_product, sample_cut
from lab.tryon.drawing.geometry import (
    Cut,
    Points,
    Skeleton,
    along_arm,
    garment_points,
    sample_bilinear,
    smooth,
    warp_grid,
)
from lab.tryon.drawing.head import draw_back_hair, draw_front_hair, draw_head
from lab.tryon.drawing.person import (
    POSES,
    Look,
    body_keypoints,
    body_light,
    draw_hand,
    draw_lower_body,
    draw_torso_skin,
    head_frame,
    sample_person,
)
from training.arguments import CommandLine, a_folder_to_write
from training.command import one_sentence
from vton import labels

# Arms by their place in the picture: 0 at the left, which is the right arm.
ARM_LABELS = ((0, labels.RIGHT_ARM_LIP), (1, labels.LEFT_ARM_LIP))

EXAMPLE_SIZE = (768, 576)
EXAMPLE_PEOPLE = {
    "person-1.png": {"seed": 1, "pose": "down"},
    "person-2.png": {"seed": 16, "pose": "hips"},
    "person-3.png": {"seed": 12, "pose": "down"},
}
EXAMPLE_GARMENTS = {
    "garment-stripes.png": {"seed": 14, "print_": "stripes", "sleeves": "short"},
    "garment-checks.png": {"seed": 9, "print_": "checks", "sleeves": "long"},
    "garment-letters.png": {"seed": 24, "print_": "letters", "sleeves": "short"},
    "garment-plain.png": {"seed": 2, "print_": "plain", "sleeves": "long"},
}


@dataclass(frozen=True)
class DrawingPair:
    """A drawn person, the product picture of the garment that is worn, and the truth about both.

    person (H, W, 3) uint8; parse (H, W) uint8 LIP labels; keypoints (25, 3) float32 x, y, confidence in pixels;
    cloth (H, W, 3) uint8 on 246; cloth_mask (H, W) uint8 0/255;
    truth (H, W, 3) uint8, the product picture warped onto the body, without light and shadow, on 246;
    truth_mask (H, W) uint8 0/255, the warped mask (parse == 5 is the part that nothing hides);
    grid (H, W, 2) float32, for every pixel of the person the x, y in the cloth from which it is sampled, in [-1, 1] as
    torch's grid_sample with align_corners=False takes them; off truth_mask it may reach the garment a second time;
    control_points (25, 2) float32, the grid at a regular 5 x 5 lattice from corner pixel to corner pixel, x varying
    slowest, which is the matching module's order; sleeves, neckline ("round" or "v") and print_ name the garment.
    """

    person: np.ndarray
    parse: np.ndarray
    keypoints: np.ndarray
    cloth: np.ndarray
    cloth_mask: np.ndarray
    truth: np.ndarray
    truth_mask: np.ndarray
    grid: np.ndarray
    control_points: np.ndarray
    sleeves: str
    print_: str
    neckline: str


def draw_pair(
    seed: int,
    size: tuple[int, int] = (512, 384),
    print_: str | None = None,
    sleeves: str | None = None,
    pose: str | None = None,
    garment_seed: int | None = None,
) -> DrawingPair:
    """Draw a person and the product picture of the garment that the person wears; equal arguments, equal pictures.

    size: (H, W), a multiple of (64, 48). print_: "plain", "stripes", "checks" or "letters"; sleeves: "none", "short" or
    "long"; pose: "down", "hips" or "raised"; None lets the seed choose. garment_seed: take the garment of another seed,
    with the same person, hair, light and trousers: a true picture of an unpaired try-on.
    Raises ValueError for an unknown choice or size.
    """
    H, W = size
    if H * 3 != W * 4 or W % 48 or W <= 0:
        raise ValueError(f"The size of a drawn pair is a multiple of 64 x 48, such as 512 x 384, not {H} x {W}.")
    for value, names in ((print_, PRINTS), (sleeves, SLEEVES), (pose, POSES)):
        if value is not None and value not in names:
            raise ValueError(f"{value} is unknown; choose one of {', '.join(names)}.")
    # Person and garment have generators of their own, so that each stays the same when the other changes.
    body, cloth_rng = (
        np.random.default_rng([seed, 0]),
        np.random.default_rng([seed if garment_seed is None else garment_seed, 1]),
    )
    skeleton, look, nose = sample_person(body, pose)
    cut = sample_cut(cloth_rng, sleeves)
    pick = str(cloth_rng.choice(PRINTS))
    print_ = print_ or pick
    cloth, cloth_mask, product = draw_product(cloth_rng, cut, print_, size)
    worn = garment_points(cut, skeleton)
    grid = warp_grid(worn, product, size)

    canvas, soft = paint_person(seed, size, (skeleton, look, nose), cut, worn, (cloth, cloth_mask), grid)
    truth_mask = (soft > 0.5).astype(np.uint8) * 255
    rows, columns = (np.arange(5) * (H - 1) / 4).round().astype(int), (np.arange(5) * (W - 1) / 4).round().astype(int)
    return DrawingPair(
        person=canvas.rgb.clip(0, 255).astype(np.uint8),
        parse=canvas.labels,
        keypoints=body_keypoints(skeleton, nose, look, size),
        cloth=cloth,
        cloth_mask=cloth_mask,
        truth=np.where(truth_mask[..., None] > 0, sample_bilinear(cloth, grid), np.uint8(246)),
        truth_mask=truth_mask,
        grid=grid,
        control_points=grid[np.ix_(rows, columns)].transpose(1, 0, 2).reshape(25, 2).copy(),
        sleeves=cut.sleeves,
        print_=print_,
        neckline="v" if cut.v_neck else "round",
    )


def paint_person(
    seed: int,
    size: tuple[int, int],
    body: tuple[Skeleton, Look, np.ndarray],
    cut: Cut,
    worn: Points,
    product: tuple[np.ndarray, np.ndarray],
    grid: np.ndarray,
) -> tuple[Canvas, np.ndarray]:
    """The person in the garment, from behind to front; also where the garment is, (H, W) float32 in [0, 1].

    body: see `sample_person`; worn: the garment's points on the body; product: its picture and mask; grid: see
        `DrawingPair`.
    """
    (skeleton, look, nose), (cloth, cloth_mask) = body, product
    canvas = Canvas(size)
    place, hair = head_frame(nose, look), np.random.default_rng([seed, 2])
    draw_background(canvas, skeleton, look)
    draw_back_hair(canvas, hair, look, place, skeleton.neck)
    draw_lower_body(canvas, hair, skeleton, look)
    draw_torso_skin(canvas, skeleton, look, place)
    draw_bare_arms(canvas, skeleton, look, cut)
    soft = garment_opacity(cloth_mask, grid, worn, canvas.s)
    light = body_light(canvas, skeleton, np.random.default_rng([seed, 3]))
    draw_cloth(canvas, sample_bilinear(cloth, grid), soft, light)
    for side, label in ARM_LABELS:
        if cut.sleeves != "long":
            canvas.limb(skeleton.elbows[side], skeleton.wrists[side], *skeleton.arm[1:], look.skin, label)
        draw_hand(canvas, skeleton, look, side, label)
    draw_head(canvas, look, place)
    draw_front_hair(canvas, hair, look, place, skeleton.neck)
    return canvas, soft


def draw_background(canvas: Canvas, skeleton: Skeleton, look: Look):
    """A wall under soft light, and the person's shadow on it."""
    y = np.linspace(-0.5, 0.5, canvas.H, dtype=np.float32)[:, None]
    x = np.linspace(-0.5, 0.5, canvas.W, dtype=np.float32)[None]
    canvas.rgb[:] = look.background * (1.06 - 0.16 * (x - 0.1) ** 2 - 0.14 * (y + 0.2) ** 2 - 0.05 * y)[..., None]
    middle = (skeleton.neck + skeleton.hips.mean(0)) / 2
    canvas.glow(middle + (26, 90), 190, 380, look.background * 0.55, 0.38)


def draw_bare_arms(canvas: Canvas, skeleton: Skeleton, look: Look, cut: Cut):
    """The arms as far as the sleeves leave them bare, and the upper arms below them."""
    for side, label in ARM_LABELS:
        # What a sleeve hides is not drawn, so that no skin looks out beside it.
        if cut.sleeves == "long":
            canvas.limb(
                along_arm(skeleton, side, 400 * look.head)[0],
                skeleton.wrists[side],
                skeleton.arm[2] + 4,
                skeleton.arm[2],
                look.skin,
                label,
            )
        else:
            start = skeleton.shoulders[side] + (0, 8)
            if cut.sleeves == "short":
                start = along_arm(skeleton, side, 90)[0]
            canvas.limb(start, skeleton.elbows[side], *skeleton.arm[:2], look.skin, label)


def garment_opacity(cloth_mask: np.ndarray, grid: np.ndarray, points: Points, scale: float) -> np.ndarray:
    """(H, W) float32 in [0, 1], where the garment is. points: its points on the body; scale: pixels of one unit."""
    soft = sample_bilinear(cloth_mask, grid).astype(np.float32) / 255
    # Far outside the garment a bent warp may reach the product a second time; only the garment itself is worn.
    reach = np.zeros(soft.shape, np.uint8)
    outline = smooth(points.outline, points.corners) * scale - 0.5
    cv2.fillPoly(reach, [np.round(outline * 16).astype(np.int32)], 255, cv2.LINE_8, 4)
    # Closing mends the small holes that the even-odd rule leaves where a raised sleeve's outline crosses itself.
    reach = cv2.morphologyEx(reach, cv2.MORPH_CLOSE, np.ones((2 * max(1, round(14 * scale)) + 1,) * 2, np.uint8))
    reach = cv2.dilate(reach, np.ones((2 * max(1, round(6 * scale)) + 1,) * 2, np.uint8))
    soft[reach == 0] = 0
    return soft


def draw_cloth(canvas: Canvas, cloth: np.ndarray, opacity: np.ndarray, light: np.ndarray):
    """The warped cloth (H, W, 3) uint8 under the light on the body (H, W), darker towards its rim."""
    rim = cv2.GaussianBlur(opacity, (0, 0), 7 * canvas.s)
    light = light * (0.80 + 0.24 * np.clip(rim, 0, 1))
    everywhere = (slice(0, canvas.H), slice(0, canvas.W))
    colours = cloth.astype(np.float32) * light[..., None]
    canvas.blend(everywhere, np.clip(2 * opacity - 0.5, 0, 1), colours, labels.LIP.index("upper-clothes"))


@one_sentence
def main(argv=None) -> None:
    """Write the example pictures."""
    parser = CommandLine(description=main.__doc__)
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder for the pictures")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, options in EXAMPLE_PEOPLE.items():
        Image.fromarray(draw_pair(size=EXAMPLE_SIZE, **options).person).save(arguments.out / name, optimize=True)
    for name, options in EXAMPLE_GARMENTS.items():
        Image.fromarray(draw_pair(size=EXAMPLE_SIZE, **options).cloth).save(arguments.out / name, optimize=True)
    print(f"Wrote {len(EXAMPLE_PEOPLE) + len(EXAMPLE_GARMENTS)} pictures to {arguments.out}.")


if __name__ == "__main__":
    sys.exit(main())
