"""Cut-out on drawn garments whose mask is known, with and without what a reader says, its failures, and the canvas."""

import cv2
import numpy as np
import pytest

from lab.tryon.synthetic import EXAMPLE_GARMENTS, draw_pair
from vton.inputs import garment, photo
from vton.inputs.photo import InputError
from vton.inputs.reading import Reading
from vton.networks.garment_reader import GROUPS, VALUES

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
    inner = cv2.erode(cut.mask, photo.disc(0.01 * H)) > 0
    assert (cut.cloth[cut.mask == 0] == 246).all() and (cut.cloth[inner] == image[inner]).all() and inner.any()
    assert (image == before).all()


def test_the_rim_of_a_cut_out_has_nothing_of_the_ground():
    image = np.full((1000, 800, 3), 255, np.uint8)
    image[200:800, 200:600] = (200, 30, 30)
    image[198:200, 200:600] = image[200:800, 598:600] = (230, 150, 150)  # half ground
    mask = np.zeros((1000, 800), bool)
    mask[198:800, 200:600] = mask[100:198, 300:304] = True
    image[100:198, 300:304] = (10, 20, 30)  # a strap that is all rim
    cut = garment.with_mask(image, mask)
    assert (cut.cloth[198:800, 200:600] == (200, 30, 30)).all()
    assert (cut.cloth[110:190, 300:304] == (10, 20, 30)).all() and (cut.cloth[~mask] == 246).all()


def test_transparency_is_trusted():
    cloth, mask = drawn()
    rgba = np.dstack([cloth, mask.astype(np.uint8) * 255])
    cut = garment.cut_out(rgba)
    assert cut.method == "alpha" and iou(cut.mask, mask) > 0.98
    opaque = np.dstack([on(np.full((H, W, 3), 255.0), cloth, mask), np.full((H, W), 255, np.uint8)])
    assert garment.cut_out(opaque).method == "uniform"


def test_a_soft_shadow_stays_behind():
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


UNUSABLE = {
    "one colour": (lambda: np.full((H, W, 3), 200, np.uint8), "No garment was found"),
    "a speck": (
        lambda: np.pad(np.zeros((9, 9, 3), np.uint8), ((240, 263), (180, 195), (0, 0)), constant_values=240),
        "No garment",
    ),
    "transparent throughout": (lambda: np.zeros((H, W, 4), np.uint8), "No garment was found"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_pictures_get_one_sentence(name):
    make, expected = UNUSABLE[name]
    with pytest.raises(InputError, match=expected) as caught:
        garment.cut_out(make())
    assert str(caught.value).endswith(".") and str(caught.value).count(".") == 1


class Told:
    """Stands for `read`: the garment is where this mask is, with some doubt along its border; it is of this kind."""

    def __init__(self, mask, kind="tee", sleeves="cap"):
        self.mask, self.kind, self.sleeves = mask, kind, sleeves

    def __call__(self, reader, image, known=None, views=3):
        values = {name: dict.fromkeys(v, 0.0) for name, v in VALUES.items()}
        for name, value in (("kind", self.kind), ("sleeves", self.sleeves), ("neckline", "v")):
            values[name][value] = 1.0
        groups = {n: {g: sum(values[n][v] for v in m) for g, m in GROUPS[n].items()} for n in GROUPS}
        soft = cv2.GaussianBlur(cv2.resize(self.mask.astype(np.float32), image.shape[1::-1]), (0, 0), 8)
        return Reading(soft if known is None else known.astype(np.float32), np.zeros_like(soft), groups, values)


def test_the_readers_mask_is_drawn_to_the_pictures_edges(monkeypatch):
    cloth, mask = drawn(14)
    loose = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9))) > 0
    monkeypatch.setattr(garment, "read_garment", Told(loose))
    for ground, method in (("white", "uniform"), ("wood", "network"), ("tiles", "network")):
        cut = garment.cut_out(on(grounds()[ground], cloth, mask), reader=object())
        assert cut.method == method and iou(cut.mask, mask) > max(0.95, iou(loose, mask) + 0.02), ground
        assert cut.attributes["sleeves"] == ("none", 1.0, "cap") and cut.attributes["neckline"].value == "v"
    # The seam of a floor that touches the garment is not of its colour either, but the reader knows better.
    floor = on(grounds()["white"], cloth, mask)
    column = int(np.median(np.nonzero(mask)[1]))
    floor[~mask & (abs(np.arange(mask.shape[1]) - column) < 3)[None]] = 40
    cut = garment.cut_out(floor, reader=object())
    assert cut.method == "uniform" and iou(cut.mask, mask) > 0.97
    # A background that only seems to agree: of a white garment on white no more than the print is told apart.
    white = np.where(mask[..., None], np.uint8(253), cloth)
    white[200:260, 150:230] = (200, 30, 40)
    assert iou(garment.cut_out(on(grounds()["white"], white, mask), reader=object()).mask, mask) > 0.85


@pytest.mark.parametrize(
    "kind, words", [("pants", "a pair of trousers"), ("shoes", "shoes"), ("nothing", "no garment")]
)
def test_what_is_no_upper_garment_gets_one_sentence(monkeypatch, kind, words):
    cloth, mask = drawn(14)
    monkeypatch.setattr(garment, "read_garment", Told(mask, kind))
    image = on(grounds()["white"], cloth, mask)
    with pytest.raises(InputError, match=words) as caught:
        garment.cut_out(image, reader=object())
    assert str(caught.value).count(".") == 1 and not isinstance(caught.value, garment.GarmentOnPerson)
    painted = garment.cut_by_mask(image, mask.astype(np.uint8) * 255, reader=object())
    assert painted.method == "painted" and painted.attributes["kind"].value == "not upper"  # the person knows better
    with pytest.raises(InputError, match=words):
        garment.cut_out(np.dstack([image, mask.astype(np.uint8) * 255]), reader=object())


@pytest.mark.slow
def test_a_garment_is_cut_out_of_the_person_who_wears_it(monkeypatch):
    person = draw_pair(1, (H, W), pose="down")
    monkeypatch.setattr(garment, "read_garment", Told(person.parse > 0, "person"))
    with pytest.raises(garment.GarmentOnPerson, match="a person"):
        garment.cut_out(person.person, reader=object())
    monkeypatch.setattr(
        garment.parsing,
        "parse",
        lambda parser, image, *a, **k: cv2.resize(person.parse, image.shape[1::-1], interpolation=0),
    )
    cut = garment.cut_from_wearer(person.person, object(), object())
    assert cut.method == "worn" and iou(cut.mask, np.isin(person.parse, (5, 6, 7))) > 0.95 and cut.attributes
    with pytest.raises(InputError):
        garment.cut_from_wearer(np.full((H, W, 3), 200, np.uint8), object(), object())


def test_a_garment_without_margin_gets_one_sentence():
    image = np.full((H, W, 3), (160, 40, 60), np.uint8)
    image[:6, :9] = 255
    with pytest.raises(InputError, match="garment"):
        garment.cut_out(image)


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


def test_repeated_calls_agree():
    cloth, mask = drawn()
    image = on(grounds()["wood"], cloth, mask)
    assert (garment.cut_out(image).mask == garment.cut_out(image).mask).all()


def test_what_lies_above_the_front_neckline_is_cut_off_with_the_rim_above_it():
    mask = np.zeros((200, 160), bool)
    mask[20:180, 20:140] = True
    opening = np.zeros(mask.shape, np.float32)
    opening[30:50, 60:100] = 0.9  # the reader has missed the rim above
    opening[120:140, 60:100] = 0.9  # a print is no neck
    reading = Reading(mask.astype(np.float32), opening, {}, {})
    found = garment.inside_of_back(reading, mask)
    expected = np.zeros_like(mask)
    expected[20:50, 60:100] = True
    for corner in (np.s_[43:50, 60:67], np.s_[43:50, 93:100]):  # which are rounded
        assert not found[corner][-1].all() and found[corner][0].all()
        expected[corner] = found[corner]
    np.testing.assert_array_equal(found, expected)
    for low, high in ((0.0, 0.0), (0.9, 0.9)):  # nothing at all; nearly the whole garment
        reading.opening[:] = low
        reading.opening[30:120, 22:138] = high
        assert not garment.inside_of_back(reading, mask).any()


def test_of_a_hood_that_the_reader_knows_but_for_its_edge_nothing_is_left_and_the_shoulders_stay():
    mask = np.zeros((200, 160), bool)
    mask[60:180, 20:140] = mask[20:60, 55:105] = True
    opening = np.zeros(mask.shape, np.float32)
    opening[23:66, 58:102] = 0.9
    hood, other = ({"neckline": {"hood": share, "round": 1 - share}} for share in (0.7, 0.3))
    found, plain = (
        garment.inside_of_back(Reading(mask.astype(np.float32), opening, {}, values), mask) for values in (hood, other)
    )
    assert found[:55].sum() == mask[:55].sum() and not plain[:55, 55:57].any()
    assert not (found & ~plain)[60:].any() and not found[66:].any()


def test_a_label_below_the_neckline_leaves_no_notch_in_it():
    mask = np.zeros((200, 160), bool)
    mask[20:180, 20:140] = True
    opening = np.zeros(mask.shape, np.float32)
    opening[20:50, 50:110] = 0.9
    opening[50:62, 74:86] = 0.9  # narrower than a third of the neck
    found = garment.inside_of_back(Reading(mask.astype(np.float32), opening, {}, {}), mask)
    assert found[20:44, 55:105].all() and not found[54:].any()
    y, x = np.mgrid[:200, :160]
    v = ((y < 90 - 1.6 * abs(x - 80)) & (y >= 20)).astype(np.float32)  # a V keeps its depth, but for its very tip
    found = garment.inside_of_back(Reading(mask.astype(np.float32), v, {}, {}), mask)
    assert 75 <= np.flatnonzero(found.any(1)).max() <= 90
