"""I_a and S_a against a second drawing, written here step by step from the published widths, and their properties."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from lab.tryon.synthetic import draw_pair
from vton import labels
from vton.inputs import agnostic


def scene(size=(1024, 768)):
    """A noisy picture, a parse with all labels, and a skeleton with bent arms, for 768 x 1024 or smaller."""
    rng = np.random.default_rng(0)
    H, W = size
    parse = np.array(
        Image.fromarray(rng.integers(0, 20, (32, 24)).astype(np.uint8)).resize((W, H), Image.Resampling.NEAREST)
    )
    k = np.zeros((25, 3), np.float32)
    for joint, x, y in (
        (0, 390, 150),
        (1, 384, 330),
        (2, 262, 336),
        (3, 210, 560),
        (4, 300, 742),
        (5, 508, 326),
        (6, 590, 540),
        (7, 575, 790),
        (8, 388, 712),
        (9, 310, 716),
        (12, 466, 708),
    ):
        k[joint] = x * W / 768, y * H / 1024, 1
    return rng.integers(0, 256, (H, W, 3), np.uint8), parse, k


def reference_image(person, parse, k):
    """The order and the widths of the released drawing, for 768 x 1024 and complete joints."""
    p = {i: k[i, :2].astype(float) for i in range(25)}
    shoulders, hips = np.linalg.norm(p[5] - p[2]), np.linalg.norm(p[12] - p[9])
    middle = (p[9] + p[12]) / 2
    p[9], p[12] = middle + (p[9] - middle) / hips * shoulders, middle + (p[12] - middle) / hips * shoulders
    image = Image.fromarray(person.copy())
    draw = ImageDraw.Draw(image)

    def line(a, b, w):
        draw.line([tuple(p[a]), tuple(p[b])], "gray", width=w)

    def disc(i, rx, ry):
        draw.ellipse((p[i][0] - rx, p[i][1] - ry, p[i][0] + rx, p[i][1] + ry), "gray", "gray")

    line(2, 5, 200)
    disc(2, 100, 100)
    disc(5, 100, 100)
    for i in (3, 4, 6, 7):
        line(i - 1, i, 200)
        disc(i, 100, 100)
    disc(9, 60, 120)
    disc(12, 60, 120)
    line(2, 9, 120)
    line(5, 12, 120)
    line(9, 12, 240)
    draw.polygon([tuple(p[i]) for i in (2, 5, 12, 9)], "gray", "gray")
    x, y = p[1]
    draw.rectangle((x - 140, y - 140, x + 140, y + 140), "gray", "gray")
    result = np.array(image)
    kept = np.isin(parse, (4, 13, 9, 12, 16, 17, 18, 19))
    result[kept] = person[kept]
    return result


def reference_parse(parse, k):
    result = parse.copy()
    for label, chain in ((14, (2, 5, 6, 7)), (15, (5, 2, 3, 4))):
        mask = Image.new("1", parse.shape[::-1])
        draw = ImageDraw.Draw(mask)
        previous = chain[0]
        for joint in chain[1:]:
            if k[previous, :2].any() and k[joint, :2].any():
                draw.line([tuple(k[previous, :2]), tuple(k[joint, :2])], 1, width=100)
                r = 40 if joint == chain[-1] else 150
                x, y = k[joint, :2]
                draw.ellipse((x - r, y - r, x + r, y + r), 1, 1)
                previous = joint
        result[(parse == label) & np.array(mask)] = 0
    result[np.isin(parse, (5, 6, 7, 10))] = 0
    return result


def test_image_equals_the_published_drawing():
    person, parse, k = scene()
    assert (agnostic.agnostic_image(person, parse, k) == reference_image(person, parse, k)).all()


@pytest.mark.parametrize("missing", [(), (6,), (7,), (3, 4), (2,), (5,), (9, 12)])
def test_parse_equals_the_published_drawing(missing):
    _, parse, k = scene()
    k[list(missing)] = 0
    assert (agnostic.agnostic_parse(parse, k) == reference_parse(parse, k)).all()


@pytest.mark.parametrize("size", [(512, 384), (256, 192)])
def test_widths_scale_with_the_picture(size):
    """The gray of a small picture is the small copy of a large picture's gray, but for the rim."""
    large = agnostic.agnostic_image(np.zeros((1024, 768, 3), np.uint8), np.zeros((1024, 768), np.uint8), scene()[2])
    H, W = size
    small = agnostic.agnostic_image(np.zeros((H, W, 3), np.uint8), np.zeros(size, np.uint8), scene(size)[2])
    a = np.array(Image.fromarray(large[..., 0]).resize((W, H), Image.Resampling.BOX)) > 64
    b = small[..., 0] > 0
    assert (a & b).sum() / (a | b).sum() > 0.97


def test_garment_and_arms_vanish_head_and_trousers_stay():
    pair = draw_pair(3, (512, 384), pose="down")
    image = agnostic.agnostic_image(pair.person, pair.parse, pair.keypoints)
    gray = (image == 128).all(2)
    assert gray[pair.parse == 5].mean() > 0.999
    kept = np.isin(pair.parse, (13, 9, 12, 16, 17))
    assert (image[kept] == pair.person[kept]).all()
    parse = agnostic.agnostic_parse(pair.parse, pair.keypoints)
    assert not np.isin(parse, (5, 6, 7, 10)).any()
    # Hands stay: what is left of an arm lies below the wrist.
    wrist = min(pair.keypoints[4, 1], pair.keypoints[7, 1])
    rows = np.flatnonzero(np.isin(parse, (14, 15)).any(1))
    assert len(rows) and rows[0] > wrist
    untouched = ~np.isin(pair.parse, (5, 6, 7, 10, 14, 15))
    assert (parse[untouched] == pair.parse[untouched]).all()


def test_thorough_paints_what_the_shapes_do_not_reach():
    pair = draw_pair(3, (256, 192), pose="down")
    parse = pair.parse.copy()
    parse[150:200, 2:20] = 7  # a coat that blows sideways
    plain = agnostic.agnostic_image(pair.person, parse, pair.keypoints)
    thorough = agnostic.agnostic_image(pair.person, parse, pair.keypoints, thorough=True)
    assert not (plain[parse == 7] == 128).all() and (thorough[parse == 7] == 128).all()
    kept = np.isin(parse, (13, 9, 12, 16, 17))
    assert (thorough[kept] == pair.person[kept]).all()


@pytest.mark.parametrize("size, reach", [((1024, 768), 8), ((512, 384), 4)])
def test_thorough_grows_the_garment_by_eight_of_768_pixels(size, reach):
    parse, person = np.zeros(size, np.uint8), np.full((*size, 3), 255, np.uint8)
    parse[100:160, 100:140] = 5
    gray = (agnostic.agnostic_image(person, parse, np.zeros((25, 3)), thorough=True) == 128).all(2)
    rows, columns = (np.flatnonzero(gray.any(axis)) for axis in (1, 0))
    assert (rows[0], rows[-1]) == (100 - reach, 159 + reach)
    assert (columns[0], columns[-1]) == (100 - reach, 139 + reach)


@pytest.mark.parametrize(
    "broken",
    [
        "no hips",
        "coinciding hips",
        "one hip",
        "no neck",
        "one shoulder",
        "coinciding shoulders",
        "only the trunk",
        "nan hips",
        "nothing",
    ],
)
def test_missing_and_coinciding_joints(broken):
    person, parse, k = scene((256, 192))
    if broken == "no hips":
        k[[8, 9, 12]] = 0
    elif broken == "coinciding hips":
        k[9] = k[12] = k[8]
    elif broken == "one hip":
        k[9] = 0
    elif broken == "no neck":
        k[1] = 0
    elif broken == "one shoulder":
        k[5] = 0
    elif broken == "coinciding shoulders":
        k[2] = k[5] = k[1]
    elif broken == "only the trunk":
        k[[3, 4, 6, 7]] = 0
    elif broken == "nan hips":
        k[[9, 12]] = np.nan
    else:
        k[:] = 0
    image = agnostic.agnostic_image(person, parse, k)
    changed = (image != person).any(2)
    if broken == "nothing":
        assert not changed.any()
        return
    body = ~np.isin(parse, (4, 13, 9, 12, 16, 17, 18, 19))
    chest = np.zeros_like(body)
    chest[90:130, 85:107] = True  # between neck and waist: gray, whatever is missing
    if broken != "coinciding shoulders":
        assert changed[chest & body].mean() > 0.9
    assert changed.mean() < 0.75  # and never the whole picture
    assert not np.isin(agnostic.agnostic_parse(parse, k), (5, 6, 7, 10)).any()


def test_inputs_stay_as_they_are():
    person, parse, k = scene((256, 192))
    copies = person.copy(), parse.copy(), k.copy()
    agnostic.agnostic_image(person, parse, k, thorough=True)
    agnostic.agnostic_parse(parse, k)
    assert all((a == b).all() for a, b in zip((person, parse, k), copies))


def test_wrong_inputs_are_refused():
    person, parse, k = scene((256, 192))
    for call in (
        lambda: agnostic.agnostic_image(person, parse[:-1], k),
        lambda: agnostic.agnostic_parse(parse + 30, k),
        lambda: agnostic.agnostic_image(person.astype(float), parse, k),
        lambda: agnostic.agnostic_parse(parse, k[:18]),
    ):
        with pytest.raises(ValueError):
            call()


def test_what_is_opened_lies_further_than_the_margin_from_what_changes():
    gray, unchanged = np.zeros((20, 40), bool), np.ones((20, 40), bool)
    gray[5:15, 5:35], unchanged[:, 18:22] = True, False
    opened = agnostic.open_gray(gray, unchanged, 3)
    assert opened[5:15, 5:15].all() and opened[5:15, 25:35].all()  # three pixels on either side stay hidden
    assert not opened[:, 15:25].any() and not opened[~gray].any()
    assert not agnostic.open_gray(gray, np.zeros_like(gray), 1).any()
    assert [agnostic.margin_at(width) for width in (48, 192, 384, 768)] == [1, 1, 2, 4]


def test_near_the_hem_s_a_tells_nothing_and_elsewhere_everything():
    """Whatever the old garment left of the trousers between waist and thigh, a network is shown the same."""
    _, parse, keypoints = scene((512, 384))
    trunk = 356 - 165.5  # rows from the shoulders to the hips
    views = []
    for old_hem in (300, 340, 420):
        classes = np.zeros((512, 384), np.uint8)
        classes[old_hem:, 100:280] = labels.BOTTOM
        classes[200:260, 100:120] = labels.ARMS[0]
        views.append(agnostic.hide_hem(classes, keypoints, "loose"))
        hidden = views[-1] != classes
        assert (classes[hidden] == labels.BOTTOM).all() and (views[-1][hidden] == labels.BACKGROUND).all()
        assert np.flatnonzero(hidden.any(1))[0] == old_hem
        assert abs(np.flatnonzero(hidden.any(1))[-1] - (356 + agnostic.HEM_BELOW * trunk)) < 3
    assert np.array_equal(views[0], views[1]) and np.array_equal(views[1], views[2])
    for hem in ("tucked", ""):  # one that is tucked in ends at the waistband; of an unknown one nothing was learned
        assert agnostic.hide_hem(classes, keypoints, hem) is classes
    keypoints[[2, 5]] = 0
    assert agnostic.hide_hem(classes, keypoints, "loose") is classes
