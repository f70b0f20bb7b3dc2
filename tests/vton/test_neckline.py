"""The rule that keeps the throat bare."""

import cv2
import numpy as np
import pytest

from vton import labels
from vton.joints import LEFT_SHOULDER, RIGHT_SHOULDER
from vton.rules import neckline

SIZE = (256, 192)


def joints(angle=0.0):
    """Shoulders 60 pixels apart around (96, 90), turned by `angle` degrees."""
    points = np.zeros((25, 3), np.float32)
    turn = np.deg2rad(angle)
    across = 30 * np.array([np.cos(turn), np.sin(turn)])
    points[2], points[5] = (*(np.array([96, 90]) - across), 1), (*(np.array([96, 90]) + across), 1)
    return points


@pytest.mark.parametrize("angle", [25, 90])
def test_the_opening_turns_with_the_shoulders(angle):
    turn = cv2.getRotationMatrix2D((96, 90), -angle, 1)
    level, turned = (neckline.opening(joints(one), SIZE).astype(np.uint8) for one in (0, angle))
    expected = cv2.warpAffine(level, turn, SIZE[::-1], flags=cv2.INTER_NEAREST)
    assert (turned != expected).sum() < 0.06 * level.sum()


def test_the_opening_lies_above_the_line_of_the_shoulders_and_grows_with_the_body():
    y, x = np.nonzero(neckline.opening(joints(), SIZE))
    assert (y < 90).mean() > 0.9 and abs(x.mean() - 95.5) < 1
    large = joints()
    large[[2, 5], 0] += (-30, 30)  # twice as far apart
    assert neckline.opening(large, SIZE).sum() == pytest.approx(4 * len(y), rel=0.05)


def test_a_deeper_opening_has_the_same_upper_end():
    round_, deep = (np.nonzero(neckline.opening(joints(), SIZE, lower).any(1))[0] for lower in (0, 0.5))
    assert abs(int(deep[0]) - int(round_[0])) <= 1 and deep[-1] - round_[-1] == pytest.approx(30, abs=1)


def test_a_missing_shoulder_opens_nothing():
    points = joints()
    points[5] = 0
    assert not neckline.opening(points, SIZE).any()


def test_only_cloth_before_the_throat_changes():
    segmentation = np.full(SIZE, neckline.UPPER, np.uint8)
    segmentation[:70] = 2  # the face
    before = segmentation.copy()
    bare = neckline.bare_throat(segmentation, joints())
    np.testing.assert_array_equal(segmentation, before)
    changed = bare != segmentation
    assert changed.any() and (bare[changed] == 0).all() and not changed[:70].any()
    y, x = np.nonzero(changed)
    assert y.max() <= 93 and abs(x - 96).max() <= 15  # from the face to the pit of the neck, as wide as a throat


def test_the_opening_is_as_wide_as_a_throat_and_ends_in_the_pit_of_the_neck():
    """In widths between the shoulder joints: a throat with a round neckline, neither a slit nor a boat neck."""
    y, x = np.nonzero(neckline.opening(joints(), SIZE))
    assert 0.38 < (x.max() - x.min() + 1) / 60 < 0.46
    assert abs(y.max() - 90) <= 3  # the pit of the neck lies between the shoulder joints


def test_a_bare_throat_leaves_the_shoulders_covered():
    """Of cloth over the whole picture, what a round neckline leaves bare at the height of the shoulders is narrow."""
    bare = neckline.bare_throat(np.full(SIZE, neckline.UPPER, np.uint8), joints())
    rows = np.arange(90 - 20, 90)
    for side in (slice(0, 96 - 14), slice(96 + 14, None)):
        assert (bare[rows, side] == neckline.UPPER).all()


def test_around_the_neck_cloth_is_where_the_warped_garment_is():
    segmentation = np.full(SIZE, neckline.UPPER, np.uint8)
    segmentation[:60] = 2  # the face
    segmentation[60:75, 90:102] = 0  # some of the throat is bare already
    warped = np.ones(SIZE, bool)
    warped[:100, 86:106] = False  # the garment's own deep neckline
    before, near = segmentation.copy(), neckline.around_neck(joints(), SIZE)
    made = neckline.follow_warp(segmentation, joints(), warped)
    np.testing.assert_array_equal(segmentation, before)
    elsewhere = ~near & ~neckline.above_neckline(warped, joints())
    np.testing.assert_array_equal(made[elsewhere], before[elsewhere])
    np.testing.assert_array_equal(made[:60], before[:60])
    inside = near & (before != 2)
    np.testing.assert_array_equal(made[inside] == neckline.UPPER, warped[inside])
    closed = neckline.follow_warp(segmentation, joints(), np.ones(SIZE, bool))  # a high collar
    assert (closed[near & (before != 2)] == neckline.UPPER).all()


def test_a_neck_opened_wider_than_the_garment_leaves_no_notch_beside_its_neckline():
    segmentation = np.full(SIZE, neckline.UPPER, np.uint8)
    segmentation[:70] = 0
    segmentation[70:100, 76:116] = 0  # what the network leaves bare
    warped = np.ones(SIZE, bool)
    warped[:74] = False
    warped[:100, 88:104] = False  # the garment's own neckline
    made = neckline.follow_warp(segmentation, joints(), warped)
    np.testing.assert_array_equal(made[74:100, 76:116] == neckline.UPPER, warped[74:100, 76:116])
    assert not made[:70].any()
    narrow = warped & (np.arange(SIZE[1]) > 70)  # outside of the neckline's ends nothing is taken away from the slope
    slope = (slice(80, 90), slice(72, 76))  # beside the throat, where network and garment have cloth
    assert (neckline.follow_warp(segmentation, joints(), narrow)[slope] == neckline.UPPER).all()
    covered = (slice(80, 90), slice(60, 70))  # there the warped garment has none, and the network's stays
    assert (neckline.follow_warp(segmentation, joints(), narrow)[covered] == neckline.UPPER).all()


def test_a_wide_neckline_is_open_from_end_to_end():
    """The network knows narrow openings; the garment's ends where its edge is highest on either side."""
    worn = np.zeros(SIZE, bool)
    for x in range(50, 142):  # shoulders that fall from 30 pixels beside the middle, and a round opening between
        beside = abs(x - 96)
        worn[80 + beside - 30 if beside >= 30 else 100 - beside**2 // 45 :, x] = True
    above = neckline.above_neckline(worn, joints())
    assert not (above & worn).any() and above[70:80, 68:125].all() and above[99, 96]
    assert not above[:20].any()  # there may be the sleeve of a raised arm
    assert not above[:, :66].any() and not above[:, 127:].any()
    made = neckline.follow_warp(np.where(np.indices(SIZE)[0] > 70, neckline.UPPER, 0), joints(), worn)
    assert not (made[above] == neckline.UPPER).any() and (made[worn][:50] == neckline.UPPER).all()
    assert not neckline.above_neckline(np.zeros(SIZE, bool), joints()).any()
    points = joints()
    points[5] = 0
    assert not neckline.above_neckline(worn, points).any()


def test_what_counts_as_around_the_neck_is_wide_below_the_shoulders_alone():
    near = neckline.around_neck(joints(), SIZE)
    throat, chest = (np.ptp(np.nonzero(near[row])[0]) / 60 for row in (84, 100))  # in widths between the shoulders
    assert 0.3 < throat < 0.5 and 0.55 < chest < 0.85
    assert not near[:50].any() and not near[150:].any()
    points = joints()
    points[2] = 0
    assert not neckline.around_neck(points, SIZE).any()


def test_skin_slopes_from_the_neck_to_the_shoulders():
    keypoints = np.zeros((25, 3), np.float32)
    keypoints[RIGHT_SHOULDER], keypoints[LEFT_SHOULDER] = (30, 60, 1), (70, 60, 1)
    found = neckline.on_shoulders(keypoints, (100, 100))
    assert found[50, 44:57].all() and found[56, 32:69].all() and not found[62:].any()
    assert not found[:, :30].any() and not found[:, 71:].any() and not found[48, :37].any()  # no wall above a shoulder
    keypoints[LEFT_SHOULDER] = 0
    assert not neckline.on_shoulders(keypoints, (100, 100)).any()


def test_an_opening_deeper_than_the_throat_is_followed_down_to_the_cloth():
    segmentation = np.zeros(SIZE, np.uint8)
    segmentation[80:200, 60:132] = labels.UPPER
    segmentation[150:160, 80:90] = 0  # a hole further down is no opening
    near = neckline.around_neck(joints(), SIZE)
    segmentation[80:140, 92:101] = 0
    assert near[:, 96].any() and not near[130:].any()
    border = neckline.neck_border(segmentation, joints())
    assert border[near].all() and border[110:140, 92:101].all()
    assert not border[140:].any() and not (border & ~near)[:, :92].any() and not (border & ~near)[:, 101:].any()
    filled = neckline.with_whole_neck(segmentation, joints())
    assert filled[110:140, 92:101].all() and not filled[150:160, 80:90].any()
    worn = neckline.follow_warp(segmentation, joints(), np.mgrid[: SIZE[0], : SIZE[1]][0] > 120)
    assert (worn[121:140, 92:101] == labels.UPPER).all()


def test_a_region_with_its_neck_filled_is_the_same_whatever_the_neckline():
    """Round, wide and high: the region tells nothing of it; hair, face and arms stay out."""
    segmentation = np.zeros(SIZE, np.uint8)
    segmentation[92:200, 60:132] = labels.UPPER
    segmentation[60:95, 60:70] = labels.HAIR
    high = segmentation.copy()
    high[neckline.around_neck(joints(), SIZE) & (high == 0)] = labels.UPPER
    bare = segmentation.copy()
    bare[neckline.around_neck(joints(), SIZE) & (bare == labels.UPPER)] = 0
    regions = [neckline.with_whole_neck(one, joints()) for one in (segmentation, high, bare)]
    assert np.array_equal(regions[0], regions[1]) and np.array_equal(regions[0], regions[2])
    assert regions[0][70:90, 90:102].all() and not regions[0][segmentation == labels.HAIR].any()
    assert np.array_equal(regions[0][120:], segmentation[120:] == labels.UPPER)
