"""Sleeves of another kind, on a figure drawn by hand and on drawn people."""

import numpy as np
import pytest

from lab.tryon.synthetic import draw_pair
from vton.labels import SEGMENTATION, lip_to_13
from vton.rules.sleeves import cloth_shares, contradicting, set_length, sleeve_kind

UPPER, LEFT, RIGHT = (SEGMENTATION.index(name) for name in ("upper", "left arm", "right arm"))


def figure(sleeve_end):
    """A figure with its arms out to the sides: trunk in columns 70 to 130, sleeves up to `sleeve_end` of 60 pixels."""
    keypoints = np.zeros((25, 3), np.float32)
    for joint, place in {
        1: (100, 40),
        2: (75, 45),
        3: (45, 45),
        4: (15, 45),
        5: (125, 45),
        6: (155, 45),
        7: (185, 45),
        8: (100, 120),
        9: (88, 120),
        12: (112, 120),
    }.items():
        keypoints[joint] = *place, 1
    map_ = np.zeros((160, 200), np.uint8)
    map_[38:53, 4:75], map_[38:53, 125:197] = RIGHT, LEFT
    map_[38:53, 75 - sleeve_end : 75], map_[38:53, 125 : 125 + sleeve_end] = UPPER, UPPER
    map_[38:120, 70:131] = UPPER
    return map_, keypoints


@pytest.mark.parametrize("start", [5, 25, 60])
def test_the_sleeve_ends_where_its_kind_ends(start):
    map_, keypoints = figure(start)
    for kind, end in (("none", 0), ("short", 24), ("long", 60)):
        made = set_length(map_, keypoints, kind)
        assert kind != "none" or not (made[38:53, 131:] == UPPER).any()  # no cap over the shoulder
        for row, step in ((45, 1), (45, -1)):
            shoulder = 125 if step > 0 else 75
            sleeve = [made[row, shoulder + step * (i + 7)] for i in range(55)]
            assert sum(label == UPPER for label in sleeve) == pytest.approx(max(end - 7, 0), abs=2), kind
        assert made[45, 6] == RIGHT and made[45, 194] == LEFT  # the hands
        np.testing.assert_array_equal(made[60:], map_[60:])  # the trunk
    with pytest.raises(ValueError, match="none, short, long"):
        set_length(map_, keypoints, "puffed")


def test_a_bare_forearm_across_the_body_cuts_nothing_out_of_the_trunk():
    map_, keypoints = figure(5)
    keypoints[6], keypoints[7] = (140, 90, 1), (105, 105, 1)
    map_[38:53, 132:] = 0
    map_[:, 131:160][38:120] = UPPER  # a wide shirt, or a body turned to one side
    for (x0, y0), (x1, y1) in (((132, 67), (140, 90)), ((140, 90), (105, 105))):  # half the upper arm, the forearm
        for i in range(60):
            x, y = x0 + (x1 - x0) * i / 60, y0 + (y1 - y0) * i / 60
            map_[round(y) - 4 : round(y) + 5, round(x) - 4 : round(x) + 5] = LEFT
    made = set_length(map_, keypoints, "short", (LEFT,))
    assert ((made == UPPER) | (map_ != UPPER)).all()
    assert set_length(np.where(map_ == LEFT, UPPER, map_), keypoints, "short", (LEFT,))[97, 122] == LEFT


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


def test_arms_that_contradict_what_was_read_are_named_and_changed_alone():
    long, keypoints = figure(60)
    assert contradicting(long, keypoints, "long") == ()
    assert set(contradicting(long, keypoints, "short")) == set(contradicting(long, keypoints, "none")) == {LEFT, RIGHT}
    half = long.copy()
    half[38:53, 150:185] = LEFT  # bare from the elbow on
    assert contradicting(half, keypoints, "long") == (LEFT,) and contradicting(half, keypoints, "short") == (RIGHT,)
    bare, _ = figure(3)
    assert contradicting(bare, keypoints, "none") == ()
    assert set(contradicting(bare, keypoints, "short")) == {LEFT, RIGHT}
    made = set_length(half, keypoints, "long", (LEFT,))
    assert (made[45, 150:183] == UPPER).all() and contradicting(made, keypoints, "long") == ()
    for kind in ("none", "short", "long"):
        for start in (long, half, bare):
            arms = contradicting(start, keypoints, kind)
            changed = set_length(start, keypoints, kind, arms) if arms else start
            assert contradicting(changed, keypoints, kind) == (), kind


def test_an_arm_that_nothing_is_seen_of_contradicts_nobody():
    map_, keypoints = figure(60)
    map_[:, :70], map_[:, 131:] = 0, 0  # both arms behind the back
    keypoints[7] = 0
    assert all(contradicting(map_, keypoints, kind) == () for kind in ("none", "short"))


def test_drawn_people_show_the_sleeves_that_they_wear():
    for kind in ("none", "short", "long"):
        drawn = [draw_pair(seed, size=(256, 192), sleeves=kind, pose="down") for seed in range(6)]
        assert sum(bool(contradicting(lip_to_13(d.parse), d.keypoints, kind)) for d in drawn) <= 1, kind


def test_the_sleeves_shown_are_those_of_both_arms():
    for start, kind in ((60, "long"), (27, "short"), (3, "none")):
        assert sleeve_kind(*figure(start)) == kind
    half, keypoints = figure(60)
    half[38:53, 150:185] = LEFT
    assert sleeve_kind(half, keypoints) == ""  # long on one arm alone
    assert sleeve_kind(half * np.uint8(0), keypoints) == ""  # nothing is seen


def test_the_covered_shares_of_an_arm_by_hand():
    """An upper arm is 30 pixels from x = 125; cloth up to x = 150."""
    shares = cloth_shares(*figure(25))
    assert set(shares) == {LEFT, RIGHT}
    whole, upper, lower = shares[LEFT]
    assert lower == 0 and upper == 1  # of x = 160 to 179, of x = 134 to 147
    assert whole == pytest.approx((150 - 129) / (179 - 129), abs=0.04)
    missing, keypoints = figure(25)
    keypoints[7] = 0
    assert set(cloth_shares(missing, keypoints)) == {RIGHT}


def wide_sleeves(half):
    """The figure of `figure`, with arms along row 45 of bones 30 pixels long and cloth `half` pixels on either side of
    them.
    """
    map_, keypoints = figure(60)
    map_[:38], map_[53:, :70], map_[53:, 131:] = 0, 0, 0
    map_[45 - half : 45 + half + 1, 4:75] = UPPER
    map_[45 - half : 45 + half + 1, 125:197] = UPPER
    return map_, keypoints


def test_what_lies_further_from_the_bones_than_a_sleeve_is_not_cut():
    """An upper arm is 30 pixels here: an arm reaches 4 pixels from its bone, a sleeve 10, a cape 14."""
    map_, keypoints = wide_sleeves(18)
    made = set_length(map_, keypoints, "none")
    column = slice(150, 180)
    assert (made[45 - 3 : 45 + 4, column] == LEFT).all()
    assert not made[45 - 9 : 45 - 5, column].any() and not made[45 + 6 : 45 + 10, column].any()  # the sleeve has gone
    for rows in (slice(45 - 18, 45 - 13), slice(45 + 14, 45 + 19)):
        assert (made[rows, column] == UPPER).all()  # what hangs from the shoulders stays


def hanging(width):
    """A figure with both arms down in sleeves to the wrist, `width` pixels to each side of the bones; arms 60 long."""
    keypoints = np.zeros((25, 3), np.float32)
    places = {
        1: (100, 30),
        2: (70, 40),
        3: (66, 100),
        4: (64, 160),
        5: (130, 40),
        6: (134, 100),
        7: (136, 160),
        8: (100, 140),
    }
    for joint, place in {**places, 9: (85, 140), 12: (115, 140)}.items():
        keypoints[joint] = *place, 1
    map_ = np.zeros((200, 200), np.uint8)
    map_[32:150, 66 - width : 135 + width] = UPPER
    map_[150:170, 58:70], map_[150:170, 130:142] = RIGHT, LEFT
    return map_, keypoints


@pytest.mark.parametrize("kind", ["none", "short"])
def test_a_wide_old_sleeve_leaves_an_arm_as_wide_as_arms_are(kind):
    map_, keypoints = hanging(20)
    made = set_length(map_, keypoints, kind)
    forearm = made[130]
    for arm, bone in ((RIGHT, 65), (LEFT, 135)):
        columns = np.nonzero(forearm == arm)[0]
        assert 6 <= len(columns) <= 20 and abs(columns.mean() - bone) < 2
    assert not forearm[:50].any() and not forearm[150:].any()  # nothing where the sleeve was wider
    assert (made[60:140, 90:110] == UPPER).all()  # the trunk


def test_on_the_outer_side_a_sleeve_may_be_wider_but_a_cape_stays():
    map_, keypoints = hanging(54)
    made = set_length(map_, keypoints, "none")
    assert not made[90, 66 - 34 : 66 - 14].any() and not made[90, 133 + 14 : 133 + 34].any()
    assert (made[90, 66 - 50 : 66 - 40] == UPPER).all() and (made[90, 133 + 40 : 133 + 50] == UPPER).all()
