"""Sleeves of another kind, on a figure drawn by hand and on drawn people."""

import numpy as np
import pytest

from vton.labels import SEGMENTATION, lip_to_13
from vton.sleeves import half_covered, set_length
from vton.synthetic import draw_pair

UPPER, LEFT, RIGHT = (SEGMENTATION.index(name) for name in ("upper", "left arm", "right arm"))


def figure(sleeve_end):
    """A figure with its arms out to the sides: trunk in columns 70 to 130, sleeves up to `sleeve_end` of 60 pixels."""
    keypoints = np.zeros((25, 3), np.float32)
    for joint, place in {1: (100, 40), 2: (75, 45), 3: (45, 45), 4: (15, 45), 5: (125, 45), 6: (155, 45), 7: (185, 45), 8: (100, 120),
                         9: (88, 120), 12: (112, 120)}.items():
        keypoints[joint] = *place, 1
    map_ = np.zeros((160, 200), np.uint8)
    map_[38:53, 4:75], map_[38:53, 125:197] = RIGHT, LEFT
    map_[38:53, 75 - sleeve_end:75], map_[38:53, 125:125 + sleeve_end] = UPPER, UPPER
    map_[38:120, 70:131] = UPPER
    return map_, keypoints


@pytest.mark.parametrize("start", [5, 25, 60])
def test_the_sleeve_ends_where_its_kind_ends(start):
    map_, keypoints = figure(start)
    for kind, end in (("none", 4), ("short", 24), ("long", 60)):
        made = set_length(map_, keypoints, kind)
        for row, step in ((45, 1), (45, -1)):
            shoulder = 125 if step > 0 else 75
            sleeve = [made[row, shoulder + step * (i + 7)] for i in range(55)]
            assert sum(label == UPPER for label in sleeve) == pytest.approx(max(end - 7, 0), abs=2), kind
        assert made[45, 6] == RIGHT and made[45, 194] == LEFT  # the hands
        np.testing.assert_array_equal(made[60:], map_[60:])  # the trunk
    with pytest.raises(ValueError, match="none, short, long"):
        set_length(map_, keypoints, "puffed")


def test_an_arm_that_is_cut_off_stays_as_it_is():
    map_, keypoints = figure(25)
    keypoints[4] = 0
    made = set_length(map_, keypoints, "long")
    np.testing.assert_array_equal(made[:, :100], map_[:, :100])
    assert (made[:, 100:] != map_[:, 100:]).any()


def test_on_drawn_people_more_sleeve_is_more_cloth():
    for seed in (2, 5):
        pair = draw_pair(seed, size=(256, 192), sleeves="short", pose="down")
        map_ = lip_to_13(pair.parse)
        area = [(set_length(map_, pair.keypoints, kind) == UPPER).sum() for kind in ("none", "short", "long")]
        assert area[0] < area[1] < area[2]
        assert (set_length(map_, pair.keypoints, "short") == map_).mean() > 0.97


def test_a_long_sleeve_that_is_left_bare_is_noticed_and_drawn_on_that_arm_alone():
    map_, keypoints = figure(60)
    assert half_covered(map_, keypoints, "long") == ()
    map_[38:53, 150:185] = LEFT  # bare from the elbow on
    assert half_covered(map_, keypoints, "long") == (LEFT,) and half_covered(map_, keypoints, "none") == ()
    strip, _ = figure(60)
    strip[48:53, 135:185] = LEFT  # no short sleeve covers the arm down to the wrist
    assert half_covered(strip, keypoints, "none") == (LEFT,)
    bare = strip.copy()
    bare[38:53, 15:60] = RIGHT
    assert half_covered(bare, keypoints, "none") == ()  # the other arm speaks for a short sleeve
    assert half_covered(strip, keypoints, "short") == ()  # the outline shows a short one
    strip[38:53, 15:35] = RIGHT
    assert set(half_covered(strip, keypoints, "none")) == {LEFT, RIGHT}  # two sleeves are of one length
    made = set_length(map_, keypoints, "long", (LEFT,))
    assert (made[45, 150:183] == UPPER).all() and half_covered(made, keypoints, "long") == ()
    shorter = set_length(map_, keypoints, "none", (RIGHT,))
    np.testing.assert_array_equal(shorter[:, 100:], map_[:, 100:])
    assert (shorter[:, :70] != map_[:, :70]).any()
