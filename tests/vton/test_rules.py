"""The rules on sleeves and neckline together, as the pipeline and the figures use them."""

import numpy as np
import pytest

from lab.tryon.synthetic import draw_pair
from vton import labels
from vton.inputs.reading import Attribute
from vton.labels import lip_to_13
from vton.rules import neckline, sleeves
from vton.rules.segmentation import apply_rules, close_cloth, restore_bottom, straighten_hem


@pytest.fixture(scope="module")
def scene():
    """A drawn person in short sleeves, and what is read of a garment with long ones; the throat is called garment."""
    person = draw_pair(3, size=(256, 192), sleeves="short", pose="down")
    segmentation = lip_to_13(person.parse)
    segmentation[neckline.opening(person.keypoints, segmentation.shape) & (segmentation == 0)] = 3
    return segmentation, person.keypoints, {"sleeves": Attribute("long", 0.9, "long")}


def test_without_rules_nothing_changes(scene):
    segmentation, keypoints, told = scene
    made, covered = apply_rules(segmentation, keypoints, told, sleeves="predicted", neckline="predicted")
    np.testing.assert_array_equal(made, segmentation)
    assert not covered


def test_each_rule_by_itself_and_all_in_their_order(scene):
    segmentation, keypoints, told = scene
    before = segmentation.copy()
    bare = neckline.bare_throat(segmentation, keypoints)
    assert (bare != segmentation).sum() > 20
    asked, _ = apply_rules(segmentation, keypoints, told, sleeves="predicted", neckline="bare")
    np.testing.assert_array_equal(asked, bare)
    made, covered = apply_rules(segmentation, keypoints, told)
    assert covered == "long" and np.isin(segmentation, (5, 6)).sum() > 2 * np.isin(made, (5, 6)).sum()
    for kind in sleeves.KINDS:
        asked, covered = apply_rules(segmentation, keypoints, told, sleeves=kind, neckline="predicted")
        np.testing.assert_array_equal(asked, sleeves.set_length(segmentation, keypoints, kind))
        assert not covered  # the visitor has said so; no note is needed
    np.testing.assert_array_equal(segmentation, before)


def test_only_what_is_certain_overrules_the_network(scene):
    segmentation, keypoints, told = scene
    assert apply_rules(segmentation, keypoints, told)[1] == "long"
    for unsure in (
        {},
        {"sleeves": Attribute("long", 0.5, "long")},
        {"sleeves": Attribute("long", 0.9, "three-quarter")},
    ):
        assert apply_rules(segmentation, keypoints, unsure)[1] == ""
    assert apply_rules(segmentation, keypoints, {"sleeves": Attribute("short", 0.9, "cap")})[1] == ""  # as drawn


def test_what_is_read_of_a_collar_opens_no_neck(scene):
    segmentation, keypoints, told = scene
    throat = neckline.opening(keypoints, segmentation.shape) & (segmentation == 3)
    for collar in (Attribute("high", 0.8, "hood"), Attribute("collar", 0.48, "collar"), Attribute("v", 0.8, "v")):
        worn, _ = apply_rules(segmentation, keypoints, told | {"neckline": collar})
        assert throat.sum() > 20 and (worn[throat] == 3).all()
    bare, _ = apply_rules(segmentation, keypoints, told, neckline="bare")
    assert not (bare[throat] == 3).any()


def test_trousers_that_the_network_was_not_shown_stay_where_it_puts_neither_cloth_nor_arm():
    seen = np.full((6, 4), labels.BACKGROUND, np.uint8)
    seen[2:, 1:3] = labels.BOTTOM
    view = np.where(np.arange(6)[:, None] < 4, np.uint8(labels.BACKGROUND), seen)  # rows 2 and 3 were hidden
    predicted = np.full((6, 4), labels.BACKGROUND, np.uint8)
    predicted[:3, 1], predicted[:4, 2], predicted[3:, 1] = labels.UPPER, labels.ARMS[0], labels.BACKGROUND
    out = restore_bottom(predicted, seen, view)
    assert out[2, 1] == labels.UPPER and out[3, 2] == labels.ARMS[0] and out[3, 1] == labels.BOTTOM
    np.testing.assert_array_equal(out != predicted, (np.indices((6, 4)) == np.array([3, 1])[:, None, None]).all(0))


def test_trousers_are_not_seen_through_cloth_that_surrounds_them():
    segmentation = np.zeros((40, 30), np.uint8)
    segmentation[5:30, 5:25], segmentation[30:, 8:22] = labels.UPPER, labels.BOTTOM
    expected = segmentation.copy()
    segmentation[24:27, 10:20] = labels.BOTTOM  # a hole
    segmentation[10:12, 10:12] = expected[10:12, 10:12] = labels.BACKGROUND  # wall
    segmentation[15, 10:12] = expected[15, 10:12] = labels.BOTTOM, labels.ARMS[0]  # beside a hand
    np.testing.assert_array_equal(close_cloth(segmentation), expected)
    cut = segmentation[:26]  # the hole reaches the picture's border
    np.testing.assert_array_equal(close_cloth(cut), cut)


def worn_to(ends):
    """A garment over trousers that ends at row `ends[i]` in column i of the trunk, (256, 192) of 13 classes."""
    classes = np.zeros((256, 192), np.uint8)
    columns = np.arange(60, 60 + len(ends))
    rows = np.arange(256)[:, None]
    classes[:, columns] = np.where(rows <= ends, labels.UPPER, np.where(rows < 250, labels.BOTTOM, 0))
    classes[:60] = 0
    return classes


def test_lobes_of_a_hem_become_the_parabola_around_which_they_lie():
    across = np.linspace(-1, 1, 72)
    straight = np.round(170 - 6 * across**2)
    lobes = straight + np.round(3 * np.sin(9 * across))
    made = straighten_hem(worn_to(lobes))
    ends = (made == labels.UPPER).cumsum(0).argmax(0)[60:132]
    assert np.abs(lobes - straight).max() == 3 and np.abs(ends - straight).max() <= 1
    np.testing.assert_array_equal(made, straighten_hem(made))
    np.testing.assert_array_equal(made[:160], worn_to(lobes)[:160])


def test_what_is_no_lobe_of_the_hem_stays():
    """Hands and arms before it, tails of a shirt, wall beside it; and a hem of which hardly anything is seen."""
    straight = np.full(72, 170)
    tail = straight.copy()
    tail[:14] = 186
    np.testing.assert_array_equal(straighten_hem(worn_to(tail)), worn_to(tail))
    wavy = straight + np.round(2 * np.sin(np.arange(72)))
    classes = worn_to(wavy)
    classes[150:180, 70:80], classes[168:175, 100:104] = labels.ARMS[0], labels.BACKGROUND
    made = straighten_hem(classes)
    kept = np.isin(classes, (labels.ARMS[0], labels.BACKGROUND))
    assert (made != classes).any() and (made[kept] == classes[kept]).all()
    classes[:, 64:] = 0
    np.testing.assert_array_equal(straighten_hem(classes), classes)
