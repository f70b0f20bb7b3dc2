"""The garment reader: where it looks, what it learns from, and the figures that judge it."""

from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from torch import nn

from lab.tryon.synthetic import draw_pair
from vton.data import garments
from vton.data.garments import GarmentPicture, attributes_of, flat_garment
from vton.data.pairs import WHITE
from vton.geometry import prescale
from vton.inputs.reading import Reading, neck_box, read_garment
from vton.metrics import garment_figures, mask_iou
from vton.networks.garment_reader import (
    GROUPS,
    VALUES,
    GarmentReader,
    GarmentReaderConfig,
    group_matrix,
    partial_cross_entropy,
)
from vton.recipes.garment import GarmentRecipe, GarmentTask, area_loss

TINY = GarmentReaderConfig(widths=(4, 4, 8, 8, 8), blocks=(0, 0, 0, 0, 0), pyramid=(4, 4, 4, 4, 4), placed=2)


class Bright(nn.Module):
    """A reader that takes what is brighter than middle grey for the garment and notes what it was shown."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.config, self.priors = SimpleNamespace(size=(160, 128), neck=False), []

    def forward(self, image, prior):
        self.priors.append(prior)
        logits = {name: torch.zeros(len(image), len(values)) for name, values in VALUES.items()}
        logits["sleeves"][:, VALUES["sleeves"].index("cap")] = 4 * float(prior.any())
        return 40 * image.mean(1, keepdim=True), logits, torch.full_like(image[:, :1], -20.0)


@pytest.mark.parametrize("size", [(300, 200), (90, 140), (700, 480)])
def test_the_mask_comes_back_in_the_pictures_own_frame_and_the_second_look_is_given_it(size):
    picture = np.full((*size, 3), 20, np.uint8)
    ellipse = cv2.ellipse(
        np.zeros(size, np.uint8), (size[1] // 3, size[0] // 2), (size[1] // 5, size[0] // 4), 20, 0, 360, 1, -1
    )
    picture[ellipse > 0] = 235
    reader = Bright()
    found = read_garment(reader, picture)
    assert found.mask.shape == size and mask_iou(found.mask > 0.5, ellipse > 0) > 0.96
    first, second = reader.priors
    assert not first.any() and 0.2 < second.mean() < 0.9
    assert found.best("sleeves")[0] == "none" and found.upper == pytest.approx(10 / 18)
    assert sum(found.groups["neckline"].values()) == pytest.approx(1, abs=1e-5)


class Necks(Bright):
    """A reader that has learned to look at necks: a look whose mask runs out below shows a V and an opening."""

    def __init__(self):
        super().__init__()
        self.config.neck = True

    def forward(self, image, prior):
        mask, logits, opening = super().forward(image, prior)
        cut = prior[:, :, -1].mean((1, 2)) > 0.5
        logits["neckline"][:, VALUES["neckline"].index("v")] = 8 * cut.float()
        return mask, logits, torch.where(cut[:, None, None, None], 20.0, opening)


def test_the_neck_is_looked_at_larger_for_the_neckline_and_its_opening():
    picture = np.full((400, 300, 3), 20, np.uint8)
    picture[100:380, 60:240] = 235
    reader, usual = Necks(), Bright()
    found = read_garment(reader, picture)
    assert len(reader.priors) == 3 and reader.priors[2].mean() > 0.4
    assert found.best("neckline")[0] == "v" and read_garment(usual, picture).groups["neckline"]["v"] < 0.2
    np.testing.assert_array_equal(found.mask, read_garment(usual, picture).mask)
    rows, columns = (np.flatnonzero((found.opening > 0.5).any(axis)) for axis in (1, 0))
    x0, y0, x1, y1 = neck_box(found.mask > 0.5)
    assert y0 - 10 <= rows[0] and rows[-1] <= y1 + 30 and x0 - 10 <= columns[0] and columns[-1] <= x1 + 10


def test_the_neck_lies_in_the_middle_below_raised_sleeves():
    mask = np.zeros((200, 200), bool)
    mask[80:180, 60:140] = True
    mask[20:100, 20:60] = mask[20:100, 140:180] = True  # sleeves laid upwards
    x0, y0, x1, y1 = neck_box(mask)
    assert (x0 + x1) / 2 == 100 and y0 < 80 < y1 and y0 > 20 and x1 - x0 == pytest.approx(y1 - y0)


def test_nothing_found_is_looked_at_once():
    reader = Bright()
    assert not (read_garment(reader, np.full((60, 40, 3), 20, np.uint8)).mask > 0.5).any()
    assert len(reader.priors) == 1


def test_network_shapes_and_groups():
    network = GarmentReader(TINY).eval()
    mask, logits, opening = network(torch.zeros(2, 3, 160, 128), torch.zeros(2, 1, 160, 128))
    assert mask.shape == opening.shape == (2, 1, 160, 128)
    assert {name: tuple(v.shape) for name, v in logits.items()} == {n: (2, len(v)) for n, v in VALUES.items()}
    for name, groups in GROUPS.items():
        matrix = group_matrix(name)
        assert matrix.shape == (len(groups), len(VALUES[name])) and (matrix.sum(0) == 1).all()


def test_what_is_open_costs_nothing_and_a_set_counts_as_one():
    logits = torch.tensor([[1.0, 2.0, 0.5]], requires_grad=True)
    nothing = partial_cross_entropy(logits, torch.ones(1, 3))
    assert float(nothing) == pytest.approx(0, abs=1e-6)
    both = partial_cross_entropy(logits, torch.tensor([[1.0, 1.0, 0.0]]))
    assert float(both) == pytest.approx(-float((logits.softmax(1)[0, :2].sum()).log()))
    both.sum().backward()
    assert torch.isfinite(logits.grad).all() and logits.grad[0, 2] > 0


def test_a_picture_is_made_smaller_before_pixels_are_skipped_and_never_larger():
    stripes = np.zeros((120, 160), np.uint8)
    stripes[:, ::2] = 255
    shrinking, growing = np.float64([[0.25, 0, 3], [0, 0.25, 5]]), np.float64([[2, 0, 3], [0, 2, 5]])
    small, onto = prescale(stripes, shrinking)
    assert small.shape == (30, 40) and abs(small.astype(int) - 127).max() <= 1
    assert np.allclose(onto, [[1, 0, 3], [0, 1, 5]])
    same, unchanged = prescale(stripes, growing)
    assert same is stripes and unchanged is growing


def test_a_garment_is_set_on_another_background_inside_its_mask_unchanged():
    rng = np.random.default_rng(0)
    mask = np.zeros((96, 64), np.float32)
    mask[30:70, 20:45] = 1
    cloth = rng.integers(0, 255, (96, 64, 3), np.uint8)
    for i in range(12):
        rng = np.random.default_rng(i)
        street = rng.integers(0, 255, (50, 70, 3), np.uint8)
        shown = garments.compose_on(cloth, mask, garments.background((96, 64), np.full(3, 128.0), rng, street), rng)
        np.testing.assert_array_equal(shown[31:69, 21:44], cloth[31:69, 21:44])
        assert shown.std((0, 1))[0] > 0 and (shown[:25] != cloth[:25]).any()


@pytest.mark.slow
def test_a_tiny_reader_learns_one_batch_by_heart():
    torch.manual_seed(0)
    task = GarmentTask(GarmentRecipe(height=96, width=64, batch=8, second=0.0, smoothing=0.0))
    batch, model = task.batch(1, 0, 0, 1), GarmentReader(TINY)
    task.replicas = {"model": model}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = {k: float(v) for k, v in task.terms(batch).items()}
    for _ in range(60):
        terms = task.terms(batch)
        optimizer.zero_grad()
        sum(terms.values()).backward()
        optimizer.step()
    assert all(float(terms[name]) < 0.5 * first[name] for name in ("mask", "kind", "sleeves")), (first, terms)
    assert float(terms["view"]) == 0  # nobody has said how these garments lie


def reading(kind, sleeves, neckline, mask):
    values = {name: dict.fromkeys(v, 0.0) for name, v in VALUES.items()}
    for name, value in (("kind", kind), ("sleeves", sleeves), ("neckline", neckline)):
        values[name][value] = 1.0
    groups = {n: {g: sum(values[n][v] for v in members) for g, members in GROUPS[n].items()} for n in GROUPS}
    return Reading(mask, np.zeros_like(mask), groups, values)


def test_figures_by_hand():
    full, half = np.ones((8, 8), np.float32), np.repeat([[1.0], [0.0]], 4, 0) * np.ones((8, 8))
    readings = [
        reading("tee", "cap", "scoop", half),
        reading("pants", "long", "v", full),
        reading("pants", "short", "hood", full),
    ]
    truth = [
        {"kind": "top", "sleeves": "none", "neckline": "v"},
        {"kind": "upper", "sleeves": "three-quarter"},
        {"kind": "shoes"},
    ]
    found = garment_figures(readings, truth, [full.astype(np.uint8) * 255, None, None])
    assert found == {
        "sleeves": 1.0,
        "neckline": 0.0,
        "upper": pytest.approx(2 / 3),
        "mask_iou": 0.5,
        "sleeves_pictures": 2,
        "neckline_pictures": 1,
        "upper_pictures": 3,
        "mask_iou_pictures": 1,
    }


def test_unknown_words_of_a_table_stay_open():
    assert attributes_of({"sleeves": "folded", "neckline": "other", "view": "back", "kind": "poncho"}) == {
        "view": "flat",
        "kind": "upper",
    }
    picture = GarmentPicture("x", np.zeros((4, 4, 3), np.uint8), None, {"kind": "hat"})
    assert garments.rarity([picture, picture]).tolist() == [0.5, 0.5]


def test_clothes_laid_flat_have_the_sleeves_that_their_people_show():
    drawn = draw_pair(3, size=(256, 192), sleeves="short")
    image, parse, keypoints = drawn.person, drawn.parse, drawn.keypoints
    frame = np.array([0, 0, 192, 256.0])
    person = SimpleNamespace(name="p", image=image, parse=parse, keypoints=keypoints, frame=frame)
    (found,) = flat_garment(SimpleNamespace(person=lambda index: person), 0)
    assert found.attributes == {"kind": "upper", "sleeves": "short"} and found.cut
    assert found.mask.mean() / 255 > 0.05 and (found.image[found.mask == 0] == WHITE).all()
    person.keypoints = keypoints * [[1, 1, 0]]  # nobody is seen
    assert flat_garment(SimpleNamespace(person=lambda index: person), 0) == []


def test_a_reader_learns_openings_from_marked_pictures_alone():
    logits = torch.zeros(2, 1, 4, 4, requires_grad=True)
    target = torch.full((2, 1, 4, 4), -1.0)
    target[1, :, :2] = 1
    target[1, :, 2:] = 0
    loss = area_loss(logits, target)
    assert loss[0] == 0 and loss[1] > 0
    loss.sum().backward()
    assert not logits.grad[0].any()
    assert (logits.grad[1, 0, :2] < 0).all() and (logits.grad[1, 0, 2:] > 0).all()


def test_weights_that_tell_no_opening_find_none_and_can_begin_to_learn_it(tmp_path):
    config = GarmentReaderConfig(widths=(8, 8, 8, 8, 8), pyramid=(8, 8, 8, 8, 8), placed=8, size=(64, 64))
    torch.manual_seed(1)
    old = GarmentReader(config).eval()
    new = GarmentReader(replace(config, opening=True))
    assert {name for name in new.state_dict() if name not in old.state_dict()} == {"opening.weight", "opening.bias"}
    with torch.inference_mode():
        mask, _, opening = old(torch.zeros(1, 3, 64, 64), torch.zeros(1, 1, 64, 64))
    assert opening.shape == mask.shape and opening.sigmoid().max() < 1e-6
