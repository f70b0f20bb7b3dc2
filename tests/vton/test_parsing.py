"""Islands that no body has leave the parse, and so do collars that were taken for hair."""

import numpy as np

from vton import labels
from vton.inputs.parsing import cloth_called_hair, tidy

HAT, HAIR, FACE, COAT, DRESS, LEFT, RIGHT = (
    labels.LIP.index(n) for n in ("hat", "hair", "face", "coat", "dress", "left arm", "right arm")
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


def test_specks_go_and_a_parse_of_nothing_else_survives():
    parse, points = person()
    marked = parse.copy()
    marked[140:143, 80:83], marked[200, 20] = DRESS, COAT
    np.testing.assert_array_equal(tidy(marked, points), parse)
    only = np.zeros((64, 48), np.uint8)
    only[0, 0] = COAT
    assert not tidy(only, np.zeros((25, 3), np.float32)).any()


def collar(width, colour):
    """The person with "hair" on the right half of the coat's breast, `width` pixels of which pass the neck; and a
    photo.
    """
    parse, points = person()
    points[0], points[1] = (96, 45, 1), (96, 75, 1)  # nose and neck: the chin is at 57
    photo = np.full((*parse.shape, 3), 230, np.uint8)
    photo[parse == COAT] = (150, 60, 40)
    photo[parse == HAIR] = (40, 30, 25)
    parse[30:68, 116 - width : 116] = HAIR
    parse[66:110, 100:120] = HAIR
    photo[66:110, 100:120] = colour
    return parse, photo, points


def test_a_collar_that_hangs_on_the_head_by_a_thread_is_cloth():
    parse, photo, points = collar(3, (140, 66, 44))
    found = cloth_called_hair(parse, photo, points)
    assert found[70:106, 102:118].all() and not found[:60].any() and not found[parse != HAIR].any()
    assert not cloth_called_hair(parse, photo, np.zeros((25, 3), np.float32)).any()


def test_hair_of_its_own_colour_and_broad_strands_stay():
    assert not cloth_called_hair(*collar(3, (44, 32, 28))).any()
    assert not cloth_called_hair(*collar(16, (140, 66, 44))).any()


def test_hair_below_a_hat_stays_and_below_a_bald_head_it_is_cloth():
    parse, photo, points = collar(3, (140, 66, 44))
    parse[:58][parse[:58] == HAIR] = HAT
    assert not cloth_called_hair(parse, photo, points).any()
    parse[parse == HAT] = FACE
    assert cloth_called_hair(parse, photo, points)[70:106, 102:118].all()


def test_without_a_garment_nothing_is_cloth():
    parse, photo, points = collar(3, (140, 66, 44))
    parse[parse == COAT] = 0
    assert not cloth_called_hair(parse, photo, points).any()
