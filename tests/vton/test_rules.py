"""The rules on sleeves, neckline and hem together, as the pipeline and the figures use them."""

import cv2
import numpy as np
import pytest

from vton import garment, neckline, sleeves
from vton.labels import lip_to_13
from vton.rules import corrected, even_hem, without_slivers
from vton.synthetic import draw_pair


@pytest.fixture(scope="module")
def scene():
    """A drawn person in short sleeves and the outline of a garment with long ones; the throat is called garment."""
    person, long = draw_pair(3, size=(256, 192), sleeves="short", pose="down"), draw_pair(8, size=(256, 192), sleeves="long", pose="down")
    segmentation = lip_to_13(person.parse)
    segmentation[neckline.opening(person.keypoints, segmentation.shape) & (segmentation == 0)] = 3
    return segmentation, person.keypoints, long.cloth_mask


def test_without_rules_nothing_changes(scene):
    segmentation, keypoints, mask = scene
    made, covered = corrected(segmentation, keypoints, mask, sleeves="predicted", neckline="predicted", hem="predicted")
    np.testing.assert_array_equal(made, segmentation)
    assert not covered


def test_each_rule_by_itself_and_all_in_their_order(scene):
    segmentation, keypoints, mask = scene
    before = segmentation.copy()
    assert garment.sleeves(mask) == "long" and not neckline.has_high_collar(mask)
    bare = neckline.bare_throat(segmentation, keypoints)
    assert (bare != segmentation).sum() > 20
    np.testing.assert_array_equal(corrected(segmentation, keypoints, mask, sleeves="predicted", hem="predicted")[0], bare)
    even = even_hem(segmentation, keypoints)
    np.testing.assert_array_equal(corrected(segmentation, keypoints, mask, sleeves="predicted", neckline="predicted")[0], even)
    np.testing.assert_array_equal(corrected(segmentation, keypoints, mask, sleeves="predicted")[0],
                                  neckline.bare_throat(even, keypoints))
    made, covered = corrected(segmentation, keypoints, mask)
    assert covered and np.isin(segmentation, (5, 6)).sum() > 2 * np.isin(made, (5, 6)).sum()
    for kind in sleeves.KINDS:
        asked, covered = corrected(segmentation, keypoints, mask, sleeves=kind, neckline="predicted", hem="predicted")
        np.testing.assert_array_equal(asked, sleeves.set_length(segmentation, keypoints, kind))
        assert not covered  # the visitor has said so; no note is needed
    np.testing.assert_array_equal(segmentation, before)


def test_the_outline_at_its_own_size_decides(scene):
    segmentation, keypoints, mask = scene
    short = draw_pair(3, size=(512, 384), sleeves="short", pose="down").cloth_mask
    assert corrected(segmentation, keypoints, mask)[1]
    assert not corrected(segmentation, keypoints, mask, outline=short)[1]


def test_background_in_the_trunk_becomes_garment_only_where_a_garment_was(scene):
    segmentation, keypoints, mask = scene
    hips = int(keypoints[[9, 12], 1].mean())
    slit = np.zeros(segmentation.shape, bool)
    slit[hips - 3:hips] = True
    slit &= segmentation == 3
    left = slit & (np.arange(slit.shape[1]) < keypoints[[9, 12], 0].mean())
    torn = np.where(slit, np.uint8(0), segmentation)
    middle = slit & (np.abs(np.arange(slit.shape[1]) - keypoints[[9, 12], 0].mean()) < 10)
    assert middle.sum() > 30
    closed, _ = corrected(torn, keypoints, mask, sleeves="predicted", removed=slit)
    assert (closed[middle] == 3).all()
    bag, _ = corrected(torn, keypoints, mask, sleeves="predicted", removed=left)  # on the right something is carried
    assert (bag[middle & left] == 3).all() and (bag[middle & ~left] == 0).all()
    for made in (corrected(torn, keypoints, mask, sleeves="predicted")[0],
                 corrected(torn, keypoints, mask, sleeves="predicted", hem="predicted", removed=slit)[0]):
        assert (made[middle] == 0).all()


def test_a_gap_between_an_arm_and_the_trunk_stays():
    drawn = draw_pair(8, size=(256, 192), sleeves="long", pose="hips")
    segmentation = lip_to_13(drawn.parse)
    _, pieces = cv2.connectedComponents((segmentation == 0).astype(np.uint8), connectivity=4)
    border = np.concatenate([pieces[0], pieces[-1], pieces[:, 0], pieces[:, -1]])
    gaps = (segmentation == 0) & ~np.isin(pieces, border)  # both arms, hands at the hips, enclose background
    assert gaps.sum() > 1500
    made, _ = corrected(segmentation, drawn.keypoints, drawn.cloth_mask, sleeves="predicted", removed=np.ones_like(gaps))
    assert (made[gaps] == 0).all()


def test_a_hem_with_teeth_becomes_even_and_the_outline_stays(scene):
    segmentation, keypoints, _ = scene
    middle, rows = keypoints[[9, 12], 0].mean(), np.arange(256)[:, None]
    inner = np.abs(np.arange(192) - middle) < 18
    hem = int(np.flatnonzero((segmentation[:, int(middle)] == 3)).max())
    teeth = np.where((np.arange(192) // 3 % 2 == 0) & inner, 7, 0)  # pixels by which the cloth reaches further down
    torn = segmentation.copy()
    torn[(rows > hem - 8) & inner & np.isin(segmentation, (3, 4))] = 4
    torn[(rows <= hem - 8 + teeth) & inner & (torn == 4)] = 3

    def roughness(picture):
        lowest = np.array([np.flatnonzero(column == 3).max() for column in picture[:, inner].T])
        return float(np.abs(np.diff(lowest)).sum())

    made = even_hem(torn, keypoints)
    assert roughness(torn) > 50 and roughness(made) < 0.2 * roughness(torn)
    np.testing.assert_array_equal(np.isin(made, (3, 4)), np.isin(torn, (3, 4)))  # garment or trousers, nothing else changes
    np.testing.assert_array_equal(np.where(np.isin(made, (3, 4)), 0, made), np.where(np.isin(torn, (3, 4)), 0, torn))
    lost = keypoints.copy()
    lost[[9, 12], 2] = 0
    np.testing.assert_array_equal(even_hem(torn, lost), torn)


def test_a_strip_along_a_bare_arm_goes_and_sleeves_stay(scene):
    segmentation, keypoints, _ = scene
    arm = segmentation == 6
    beside = (cv2.dilate(arm.astype(np.uint8), np.ones((1, 7), np.uint8)) > 0) & (segmentation == 0)  # three pixels wide
    beside &= np.arange(256)[:, None] > keypoints[3, 1] - 10  # from the elbow down, away from the sleeve
    assert beside.sum() > 60
    torn = np.where(beside, np.uint8(3), segmentation)
    made = without_slivers(torn, keypoints)
    assert (made[beside] == 0).mean() > 0.9 and (made == segmentation)[~beside].mean() > 0.998
    for kind in ("short", "long"):
        drawn = draw_pair(8, size=(256, 192), sleeves=kind, pose="hips")
        dressed = lip_to_13(drawn.parse)
        assert (without_slivers(dressed, drawn.keypoints) != dressed).sum() < 0.01 * (dressed == 3).sum()
