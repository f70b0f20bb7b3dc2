"""The rules on sleeves, neckline and hem together, as the pipeline and the figures use them."""

import cv2
import numpy as np
import pytest

from lab.tryon.synthetic import draw_pair
from vton import labels
from vton.inputs.reading import Attribute
from vton.labels import lip_to_13
from vton.rules import neckline, sleeves
from vton.rules.segmentation import RULES, apply_rules, without_holes, without_islands


@pytest.fixture(scope="module")
def scene():
    """A drawn person in short sleeves, and what is read of a garment with long ones; the throat is called garment."""
    person = draw_pair(3, size=(256, 192), sleeves="short", pose="down")
    segmentation = lip_to_13(person.parse)
    segmentation[neckline.opening(person.keypoints, segmentation.shape) & (segmentation == 0)] = 3
    return segmentation, person.keypoints, {"sleeves": Attribute("long", 0.9, "long")}


def test_without_rules_nothing_changes(scene):
    segmentation, keypoints, told = scene
    made, covered = apply_rules(
        segmentation, keypoints, told, sleeves="predicted", neckline="predicted", hem="predicted"
    )
    np.testing.assert_array_equal(made, segmentation)
    assert not covered


def test_each_rule_by_itself_and_all_in_their_order(scene):
    segmentation, keypoints, told = scene
    before = segmentation.copy()
    bare = neckline.bare_throat(segmentation, keypoints)
    assert (bare != segmentation).sum() > 20
    np.testing.assert_array_equal(
        apply_rules(segmentation, keypoints, told, sleeves="predicted", hem="predicted")[0], bare
    )
    np.testing.assert_array_equal(apply_rules(segmentation, keypoints, told, sleeves="predicted")[0], bare)
    made, covered = apply_rules(segmentation, keypoints, told)
    assert covered == "long" and np.isin(segmentation, (5, 6)).sum() > 2 * np.isin(made, (5, 6)).sum()
    for kind in sleeves.KINDS:
        asked, covered = apply_rules(segmentation, keypoints, told, sleeves=kind, neckline="predicted", hem="predicted")
        np.testing.assert_array_equal(asked, sleeves.set_length(segmentation, keypoints, kind))
        assert not covered  # the visitor has said so; no note is needed
    np.testing.assert_array_equal(segmentation, before)


def test_each_rule_can_be_left_out(scene):
    segmentation, keypoints, told = scene
    removed = np.ones(segmentation.shape, bool)
    whole = apply_rules(segmentation, keypoints, told, removed=removed)[0]
    acted = [
        name
        for name in RULES
        if (apply_rules(segmentation, keypoints, told, removed=removed, without=(name,))[0] != whole).any()
    ]
    assert {"sleeves", "throat"} <= set(acted)
    none = apply_rules(segmentation, keypoints, told, removed=removed, without=RULES)
    np.testing.assert_array_equal(none[0], segmentation)
    assert none[1] == ""


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


def test_a_high_collar_closes_around_the_throat(scene):
    segmentation, keypoints, told = scene
    closed, _ = apply_rules(
        segmentation, keypoints, told | {"neckline": Attribute("high", 0.8, "hood")}, hem="predicted"
    )
    bare, _ = apply_rules(segmentation, keypoints, told | {"neckline": Attribute("v", 0.8, "v")}, hem="predicted")
    throat = neckline.opening(keypoints, segmentation.shape) & (segmentation == 3)
    assert throat.sum() > 20 and (closed[throat] == 3).all() and not (bare[throat] == 3).any()


def test_background_in_the_trunk_becomes_garment_only_where_a_garment_was(scene):
    segmentation, keypoints, told = scene
    hips = int(keypoints[[9, 12], 1].mean())
    slit = np.zeros(segmentation.shape, bool)
    slit[hips - 3 : hips] = True
    slit &= segmentation == 3
    left = slit & (np.arange(slit.shape[1]) < keypoints[[9, 12], 0].mean())
    torn = np.where(slit, np.uint8(0), segmentation)
    middle = slit & (np.abs(np.arange(slit.shape[1]) - keypoints[[9, 12], 0].mean()) < 10)
    assert middle.sum() > 30
    closed, _ = apply_rules(torn, keypoints, told, sleeves="predicted", removed=slit)
    assert (closed[middle] == 3).all()
    bag, _ = apply_rules(torn, keypoints, told, sleeves="predicted", removed=left)  # on the right something is carried
    assert (bag[middle & left] == 3).all() and (bag[middle & ~left] == 0).all()
    for made in (
        apply_rules(torn, keypoints, told, sleeves="predicted")[0],
        apply_rules(torn, keypoints, told, sleeves="predicted", hem="predicted", removed=slit)[0],
    ):
        assert (made[middle] == 0).all()


def test_a_gap_between_an_arm_and_the_trunk_stays():
    drawn = draw_pair(8, size=(256, 192), sleeves="long", pose="hips")
    segmentation = lip_to_13(drawn.parse)
    _, pieces = cv2.connectedComponents((segmentation == 0).astype(np.uint8), connectivity=4)
    border = np.concatenate([pieces[0], pieces[-1], pieces[:, 0], pieces[:, -1]])
    gaps = (segmentation == 0) & ~np.isin(pieces, border)  # both arms, hands at the hips, enclose background
    assert gaps.sum() > 1500
    made, _ = apply_rules(segmentation, drawn.keypoints, {}, sleeves="predicted", removed=np.ones_like(gaps))
    assert (made[gaps] == 0).all()


def test_trousers_with_cloth_all_around_become_cloth():
    upper, bottom, arm = (labels.SEGMENTATION.index(name) for name in ("upper", "bottom", "left arm"))
    map_ = np.zeros((60, 60), np.uint8)
    map_[10:40, 10:50], map_[40:55, 10:50] = upper, bottom
    expected = map_.copy()
    map_[20:25, 20:30] = bottom
    np.testing.assert_array_equal(without_islands(map_.copy()), expected)
    map_[20:25, 30] = arm  # something else is beside it
    np.testing.assert_array_equal(without_islands(map_.copy()), map_)


def test_cloth_with_nothing_but_trousers_around_it_becomes_trousers():
    upper, bottom, arm = (labels.SEGMENTATION.index(name) for name in ("upper", "bottom", "left arm"))
    map_ = np.zeros((60, 60), np.uint8)
    map_[10:30, 10:50], map_[30:55, 10:50] = upper, bottom
    expected = map_.copy()
    map_[40:44, 15:25], map_[40:44, 35:45] = upper, upper  # the pockets
    np.testing.assert_array_equal(without_islands(map_), expected)
    map_[39, 15:25] = arm  # a sleeve may go on behind a hand
    assert (without_islands(map_)[40:44, 15:25] == upper).all()


def test_what_hangs_in_the_air_is_wall_and_two_legs_are_legs():
    upper, bottom, leg = (labels.SEGMENTATION.index(name) for name in ("upper", "bottom", "right leg"))
    map_ = np.zeros((60, 60), np.uint8)
    map_[5:20, 10:50], map_[20:35, 15:45] = upper, bottom
    map_[40:58, 15:25], map_[40:58, 35:45] = leg, leg  # boots cut off from shorts by what the map calls nothing
    expected = map_.copy()
    map_[30:36, 50:56] = bottom  # the tail of a coat that is gone
    map_[40:46, 2:8] = upper
    np.testing.assert_array_equal(without_islands(map_), expected)


def test_a_hole_through_which_no_wall_was_seen_is_closed():
    upper, arm = (labels.SEGMENTATION.index(name) for name in ("upper", "left arm"))
    whole = np.zeros((80, 60), np.uint8)
    whole[10:60, 10:50], whole[40:60, 40:50] = upper, arm
    torn, seen = whole.copy(), np.zeros(whole.shape, bool)
    torn[45:48, 36:40], torn[20:23, 20:23] = 0, 0  # beside the arm, and in the chest
    np.testing.assert_array_equal(without_holes(torn, ~seen), whole)
    np.testing.assert_array_equal(without_holes(torn, seen), torn)  # the wall was seen there
    torn[20:35, 20:35] = 0  # as large as what an arm on the hip encloses
    assert (without_holes(torn, ~seen)[20:35, 20:35] == 0).all()
