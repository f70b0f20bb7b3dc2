"""Cut-out on drawn garments whose mask is known, its failures, the canvas, and the kind of sleeve."""

import numpy as np
import pytest

from vton import garment
from vton.photo import InputError
from vton.synthetic import EXAMPLE_GARMENTS, draw_pair

H, W = 512, 384


def drawn(seed=14, **options):
    pair = draw_pair(seed, (H, W), **options)
    return pair.cloth, pair.cloth_mask > 0


def on(background, cloth, mask) -> np.ndarray:
    return np.where(mask[..., None], cloth, background.clip(0, 255)).astype(np.uint8)


def iou(a, b) -> float:
    a, b = a > 0, b > 0
    return float((a & b).sum() / (a | b).sum())


def grounds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:H, 0:W].astype(float)
    wood = 12 * np.sin(x / 7 + 2 * np.sin(y / 50)) + 14 * np.sin(x / 29) + rng.normal(0, 4, (H, W))
    return {
        "white": np.full((H, W, 3), 255.0),
        "gray card with noise": 150 + rng.normal(0, 2.5, (H, W, 3)),
        "light that falls off": np.stack([205 - 45 * y / H + 20 * x / W] * 3, -1) * (1, 0.97, 0.92)
        + rng.normal(0, 2, (H, W, 1)),
        "wood": np.stack([150 + wood, 108 + 0.8 * wood, 74 + 0.6 * wood], -1),
        "tiles": np.where(((x // 60 + y // 60) % 2 > 0)[..., None], (176.0, 170, 160), (140.0, 134, 126)),
    }


@pytest.mark.parametrize(
    "ground, method",
    [
        ("white", "uniform"),
        ("gray card with noise", "uniform"),
        ("light that falls off", "uniform"),
        ("wood", "grabcut"),
        ("tiles", "grabcut"),
    ],
)
@pytest.mark.parametrize("name", EXAMPLE_GARMENTS)
def test_cut_out_finds_the_drawn_mask(name, ground, method):
    cloth, mask = drawn(**EXAMPLE_GARMENTS[name])
    image = on(grounds()[ground], cloth, mask)
    before = image.copy()
    cut = garment.cut_out(image)
    assert cut.method == method
    assert iou(cut.mask, mask) > (0.95 if method == "uniform" else 0.90)
    assert cut.cloth.shape == image.shape and cut.mask.dtype == np.uint8 and set(np.unique(cut.mask)) == {0, 255}
    assert (cut.cloth[cut.mask == 0] == 246).all() and (cut.cloth[cut.mask > 0] == image[cut.mask > 0]).all()
    assert (image == before).all()


def test_transparency_is_trusted():
    cloth, mask = drawn()
    rgba = np.dstack([cloth, mask.astype(np.uint8) * 255])
    cut = garment.cut_out(rgba)
    assert cut.method == "alpha" and iou(cut.mask, mask) > 0.98
    opaque = np.dstack([on(np.full((H, W, 3), 255.0), cloth, mask), np.full((H, W), 255, np.uint8)])
    assert garment.cut_out(opaque).method == "uniform"


def test_a_soft_shadow_stays_behind():
    import cv2

    cloth, mask = drawn(9, print_="checks", sleeves="long")
    shadow = cv2.GaussianBlur(np.roll(mask.astype(np.float32), (7, 7), (0, 1)), (0, 0), 7)
    ground = np.full((H, W, 3), 205.0) * (1 - 0.22 * shadow[..., None])
    assert iou(garment.cut_out(on(ground, cloth, mask)).mask, mask) > 0.95


def test_white_on_white_and_dark_on_dark():
    rng = np.random.default_rng(3)
    _, mask = drawn()
    for cloth_level, ground_level in ((236, 250), (250, 236), (52, 30), (22, 44)):
        cloth = np.full((H, W, 3), float(cloth_level)) + rng.normal(0, 1, (H, W, 1))
        image = on(np.full((H, W, 3), float(ground_level)) + rng.normal(0, 0.6, (H, W, 1)), cloth, mask)
        assert iou(garment.cut_out(image).mask, mask) > 0.93, (cloth_level, ground_level)


def test_a_gap_between_sleeve_and_body_is_background_and_a_print_is_not():
    image = np.full((H, W, 3), 250, np.uint8)
    image[80:440, 60:320] = (40, 90, 160)
    image[150:350, 90:110] = 250  # a gap that the sleeve closes
    image[200:212, 180:192] = 250  # a small dot of the print
    mask = garment.cut_out(image).mask
    assert (mask[170:330, 94:106] == 0).all() and (mask[195:215, 175:195] == 255).all()


def test_small_and_large_pictures():
    import cv2

    cloth, mask = drawn()
    image = on(np.full((H, W, 3), 255.0), cloth, mask)
    tiny = cv2.resize(image, (100, 100), interpolation=cv2.INTER_AREA)
    small = cv2.resize(mask.astype(np.uint8), (100, 100), interpolation=cv2.INTER_AREA)
    assert iou(garment.cut_out(tiny).mask, small) > 0.9
    large = cv2.resize(image, (2250, 3000), interpolation=cv2.INTER_CUBIC)
    cut = garment.cut_out(large)
    assert max(cut.mask.shape) == garment.LONGEST
    assert (
        iou(cut.mask, cv2.resize(mask.astype(np.uint8), cut.mask.shape[::-1], interpolation=cv2.INTER_NEAREST)) > 0.95
    )


def trousers() -> np.ndarray:
    image = np.full((H, W, 3), 245, np.uint8)
    image[40:180, 110:274] = (40, 50, 80)
    image[180:480, 110:180] = image[180:480, 204:274] = (40, 50, 80)
    return image


UNUSABLE = {
    "one colour": (lambda: np.full((H, W, 3), 200, np.uint8), "No garment was found"),
    "a speck": (
        lambda: np.pad(np.zeros((9, 9, 3), np.uint8), ((240, 263), (180, 195), (0, 0)), constant_values=240),
        "No garment",
    ),
    "transparent throughout": (lambda: np.zeros((H, W, 4), np.uint8), "No garment was found"),
    "trousers": (trousers, "trousers"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_pictures_get_one_sentence(name):
    make, expected = UNUSABLE[name]
    with pytest.raises(InputError, match=expected) as caught:
        garment.cut_out(make())
    assert str(caught.value).endswith(".") and str(caught.value).count(".") == 1


def test_a_garment_on_a_wearer_gets_one_sentence_and_a_printed_person_does_not():
    person = draw_pair(1, (H, W), pose="down").person
    with pytest.raises(InputError, match="Somebody wears this garment"):
        garment.cut_out(person)
    cloth, mask = drawn(14, sleeves="short", print_="plain")
    cloth = cloth.copy()
    cloth[200:328, 144:240] = draw_pair(1, (128 * 2, 96 * 2), pose="down").person[::2, ::2]
    image = on(np.full((H, W, 3), 255.0), cloth, mask)
    assert iou(garment.cut_out(image).mask, mask) > 0.95


def test_a_garment_without_margin_gets_one_sentence():
    image = np.full((H, W, 3), (160, 40, 60), np.uint8)
    image[:6, :9] = 255
    with pytest.raises(InputError, match="garment"):
        garment.cut_out(image)


def test_shirts_are_no_trousers():
    for seed in range(20):
        assert not garment._looks_like_trousers(draw_pair(seed, (256, 192)).cloth_mask > 0)


@pytest.mark.parametrize("size", [(256, 192), (512, 384), (1024, 768)])
def test_place_fills_the_canvas_like_the_data_set(size):
    cloth, mask = drawn(9, sleeves="long")
    shifted = garment.with_mask(np.roll(cloth, (20, -12), (0, 1)), np.roll(mask, (20, -12), (0, 1)))
    placed = garment.place(shifted, size)
    assert placed.cloth.shape == (*size, 3) and placed.mask.shape == size
    rows, columns = np.flatnonzero(placed.mask.any(1)), np.flatnonzero(placed.mask.any(0))
    width, height = (columns[-1] - columns[0] + 1) / size[1], (rows[-1] - rows[0] + 1) / size[0]
    assert abs(width - 0.88) < 0.015 or abs(height - 0.92) < 0.015
    assert width < 0.895 and height < 0.935
    assert abs((columns[0] + columns[-1] + 1) / 2 / size[1] - 0.5) < 0.01
    assert abs((rows[0] + rows[-1] + 1) / 2 / size[0] - 0.5) < 0.01
    assert (placed.cloth[placed.mask == 0] == 246).all()


def test_place_keeps_the_background_out_of_the_cloth():
    cloth = np.full((300, 225, 3), 246, np.uint8)
    mask = np.zeros((300, 225), np.uint8)
    cloth[50:260, 40:190], mask[50:260, 40:190] = (10, 20, 30), 255
    for size in ((128, 96), (1024, 768)):
        placed = garment.place(garment.Garment(cloth, mask, "alpha"), size)
        assert np.abs(placed.cloth[placed.mask > 0].astype(int) - (10, 20, 30)).max() <= 1


def test_place_refuses_an_empty_mask():
    with pytest.raises(InputError, match="mask is empty"):
        garment.place(garment.with_mask(np.zeros((99, 99, 3), np.uint8), np.zeros((99, 99), bool)), (256, 192))


@pytest.mark.parametrize("kind", ["short", "long"])
def test_sleeves_of_drawn_garments(kind):
    answers = [garment.sleeves(draw_pair(seed, (256, 192), sleeves=kind).cloth_mask) for seed in range(20)]
    assert answers.count(kind) >= 19, answers


def test_sleeves_of_plain_shapes():
    box = np.zeros((400, 300), np.uint8)
    box[20:380, 80:220] = 255  # a slim, straight top
    assert garment.sleeves(box) == "none"
    box[20:120, 20:280] = 255  # a T
    assert garment.sleeves(box) == "short"
    box[120:360, 20:60] = box[120:360, 240:280] = 255  # arms beside it
    assert garment.sleeves(box) == "long"
    assert garment.sleeves(np.repeat(np.repeat(box, 3, 0), 3, 1)) == "long"
    with pytest.raises(InputError):
        garment.sleeves(np.zeros((9, 9), np.uint8))


def test_repeated_calls_agree():
    cloth, mask = drawn()
    image = on(grounds()["wood"], cloth, mask)
    assert (garment.cut_out(image).mask == garment.cut_out(image).mask).all()
