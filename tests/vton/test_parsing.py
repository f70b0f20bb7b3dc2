"""Islands that no body has leave the parse."""

import numpy as np

from vton import labels
from vton.inputs.parsing import tidy

HAIR, FACE, COAT, DRESS, SKIRT, LEFT, RIGHT = (
    labels.LIP.index(n) for n in ("hair", "face", "coat", "dress", "skirt", "left arm", "right arm")
)


def person():
    """A face under hair, a coat, both arms hanging, (H, W) = (256, 192), and the joints."""
    parse = np.zeros((256, 192), np.uint8)
    parse[20:60, 76:116] = HAIR
    parse[30:60, 82:110] = FACE
    parse[66:180, 66:126] = COAT
    parse[90:170, 52:66], parse[90:170, 126:140] = RIGHT, LEFT
    points = np.zeros((25, 3), np.float32)
    for joint, place in {2: (66, 76), 3: (59, 120), 4: (57, 165), 5: (126, 76), 6: (133, 120), 7: (135, 165)}.items():
        points[joint] = (*place, 1)
    return parse, points


def test_a_tidy_parse_stays_as_it_is():
    parse, points = person()
    np.testing.assert_array_equal(tidy(parse, points), parse)


def test_hair_away_from_the_head_becomes_what_surrounds_it():
    parse, points = person()
    marked = parse.copy()
    marked[100:120, 90:104] = HAIR
    np.testing.assert_array_equal(tidy(marked, points), parse)
    assert (marked[100:120, 90:104] == HAIR).all()  # the given map is not changed


def test_a_lock_that_touches_the_head_stays():
    parse, points = person()
    parse[58:100, 76:82] = HAIR
    np.testing.assert_array_equal(tidy(parse, points), parse)


def test_the_edge_of_a_high_collar_is_no_face():
    parse, points = person()
    parse[60:66, 86:106] = labels.NECK_LIP
    marked = parse.copy()
    marked[64:66, 84:108] = FACE
    tidied = tidy(marked, points)
    assert not (tidied[60:] == FACE).any() and np.array_equal(tidied[:60], parse[:60])
    marked[60:66, 86:106] = FACE  # a chin that reaches down to the collar
    np.testing.assert_array_equal(tidy(marked, points)[60:64], marked[60:64])


def test_stripes_and_folds_beside_the_hair_are_no_hair():
    parse, points = person()
    parse[58:110, 76:88] = HAIR  # a lock, wider than twice a sliver
    marked = parse.copy()
    for row in (80, 90, 100):
        marked[row : row + 2, 88:96] = HAIR
    np.testing.assert_array_equal(tidy(marked, points), parse)
    wall = parse.copy()
    wall[24:26, 116:124] = HAIR  # a strand before the wall
    np.testing.assert_array_equal(tidy(wall, points), wall)


def test_hair_without_a_face_stays():
    parse, points = person()
    parse[parse == FACE] = 0
    np.testing.assert_array_equal(tidy(parse, points), parse)


def test_an_arm_far_from_its_bones_is_no_arm():
    parse, points = person()
    marked = parse.copy()
    marked[150:175, 170:185] = LEFT
    np.testing.assert_array_equal(tidy(marked, points), parse)
    points[7] = 0  # without the wrist nobody knows where the forearm is
    np.testing.assert_array_equal(tidy(marked, points), marked)


def test_skin_inside_the_trunk_is_no_arm_where_the_hand_is_not_seen():
    parse, points = person()
    for joint, place in {9: (72, 176), 12: (120, 176)}.items():
        points[joint] = (*place, 1)
    marked = parse.copy()
    marked[150:160, 85:110] = LEFT
    seen = marked.copy()
    points[3:5] = points[6:8] = 0
    np.testing.assert_array_equal(tidy(marked, points), parse)
    points[7] = (100, 155, 1)  # the hand lies there
    np.testing.assert_array_equal(tidy(seen, points), seen)


def test_patches_of_a_dress_in_a_skirt_are_skirt_and_a_dress_beside_it_stays():
    parse, points = person()
    parse[180:250, 60:132] = SKIRT
    marked = parse.copy()
    marked[195:203, 70:90], marked[225:240, 95:103] = DRESS, COAT
    np.testing.assert_array_equal(tidy(marked, points), parse)
    marked[180:250, 96:132] = DRESS
    np.testing.assert_array_equal(tidy(marked, points)[180:, 96:132], marked[180:, 96:132])


def test_specks_go_and_a_parse_of_nothing_else_survives():
    parse, points = person()
    marked = parse.copy()
    marked[140:143, 80:83], marked[200, 20] = DRESS, COAT
    np.testing.assert_array_equal(tidy(marked, points), parse)
    only = np.zeros((64, 48), np.uint8)
    only[0, 0] = COAT
    assert not tidy(only, np.zeros((25, 3), np.float32)).any()


def test_patches_in_jeans_are_jeans_and_what_is_seen_beside_them_stays():
    parse, points = person()
    pants, leg, skirt = (labels.LIP.index(n) for n in ("pants", "left leg", "skirt"))
    parse[180:250, 70:122] = pants
    marked = parse.copy()
    marked[190:200, 76:90], marked[210:222, 100:112], marked[176:186, 92:98] = skirt, leg, leg
    made = tidy(marked, points)
    np.testing.assert_array_equal(made[190:250], parse[190:250])
    assert set(np.unique(made[176:186, 92:98])) <= {COAT, pants, leg}
    bare = parse.copy()
    bare[238:250, 70:122] = leg  # below the hem, with the wall and the border beside it
    np.testing.assert_array_equal(tidy(bare, points), bare)
