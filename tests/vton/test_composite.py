"""What the last stage takes from the photograph: background, skin tone, the garment's colours."""

import cv2
import numpy as np
import pytest

from vton import metrics
from vton.rules import composite


def difference(first, second):
    """Mean CIEDE2000 of two uint8 RGB pictures."""
    return metrics.ciede2000(*(composite._lab(np.ascontiguousarray(p)) for p in (first, second))).mean()


def gradient(height=96, width=72):
    rows, columns = np.mgrid[:height, :width]
    return np.stack([2 * rows, 120 + columns, 255 - 2 * rows], -1).astype(np.uint8)


def box(shape, top, bottom, left, right):
    mask = np.zeros(shape, bool)
    mask[top:bottom, left:right] = True
    return mask


def test_background_goes_on_behind_the_body_and_stays_elsewhere():
    wall = gradient()
    body = box(wall.shape[:2], 30, 60, 25, 45)
    picture = wall.copy()
    picture[body] = (255, 0, 255)
    before = picture.copy()
    filled = composite.continue_background(picture, body)
    assert np.array_equal(picture, before)
    assert np.array_equal(filled[~body], picture[~body])
    assert np.abs(filled[body].astype(int) - wall[body]).mean() < 12  # the wall, not the body
    assert np.abs(picture[body].astype(int) - wall[body]).mean() > 90


def test_background_of_a_picture_that_is_all_body_or_all_background_is_left_alone():
    wall = gradient()
    for body in (np.ones(wall.shape[:2], bool), np.zeros(wall.shape[:2], bool)):
        assert np.array_equal(composite.continue_background(wall, body), wall)


def test_large_pictures_keep_their_known_pixels_byte_for_byte():
    wall = cv2.resize(gradient(), (768, 1024))
    body = box(wall.shape[:2], 400, 700, 200, 500)
    assert np.array_equal(composite.continue_background(wall, body)[~body], wall[~body])


def test_painted_skin_takes_the_tone_of_the_face_and_keeps_its_shading():
    photograph = np.full((60, 60, 3), (92, 60, 44), np.uint8)
    face = box((60, 60), 0, 20, 20, 40)
    picture = np.full((60, 60, 3), 200, np.uint8)
    arms = box((60, 60), 30, 60, 0, 20)
    shade = np.linspace(0.8, 1.0, 30)[:, None, None]
    picture[30:, :20] = (np.array([224, 178, 150]) * shade).astype(np.uint8)
    out = composite.match_skin(picture, arms, photograph, face)
    assert np.array_equal(out[~arms], picture[~arms])
    middle = out[45, 10]
    assert difference(middle[None, None], photograph[:1, :1]) < 4
    assert out[58, 10].sum() > out[31, 10].sum()


def test_without_a_face_painted_skin_stays():
    picture = gradient()
    arms = box(picture.shape[:2], 50, 90, 0, 20)
    assert np.array_equal(composite.match_skin(picture, arms, picture, np.zeros(arms.shape, bool)), picture)


def test_the_garments_colours_are_carried_where_it_lies_and_go_on_beside_it():
    shape = (96, 72)
    region, aligned = box(shape, 20, 80, 10, 62), box(shape, 20, 80, 10, 50)
    warped = np.full((*shape, 3), 246, np.float32)
    warped[aligned] = (180, 30, 40)
    synthesis = np.full((*shape, 3), (120, 90, 130), np.float32)
    out = composite.carry_colours(synthesis, warped, region, aligned, sigma=4)
    wanted = warped[40:60, 20:40].astype(np.uint8)
    inside = difference(out[40:60, 20:40], wanted)
    assert inside < 0.5 * difference(synthesis[40:60, 20:40].astype(np.uint8), wanted)
    beside = out[45:55, 53:58].reshape(-1, 3).mean(0)
    assert (
        beside[0] > beside[1] + 40 and beside[0] > beside[2] + 40
    )  # red like the cloth, though the generator painted grey
    assert np.array_equal(out[~region], synthesis[~region].astype(np.uint8))


def test_no_aligned_garment_leaves_the_generators_picture():
    synthesis = gradient().astype(np.float32)
    nothing = np.zeros(synthesis.shape[:2], bool)
    out = composite.carry_colours(synthesis, synthesis, ~nothing, nothing, sigma=3)
    assert np.array_equal(out, synthesis.astype(np.uint8))


def test_a_wide_blur_on_a_smaller_copy_is_the_same_to_the_eye():
    random = np.random.default_rng(0)
    picture = cv2.GaussianBlur(random.normal(50, 30, (600, 450, 3)).astype(np.float32), (0, 0), 3)
    known = box((600, 450), 100, 500, 90, 340)
    weight = known.astype(np.float32)
    exact = (
        cv2.GaussianBlur(picture * weight[..., None], (0, 0), 24)
        / np.maximum(cv2.GaussianBlur(weight, (0, 0), 24), 1e-6)[..., None]
    )
    assert np.abs(composite._blur(picture, known, 24) - exact)[known].max() < 0.5


def beside_a_face():
    """A photograph with a face, a bare arm in its shade and a blue sleeve that was taken for an arm."""
    photograph = np.full((96, 72, 3), 240, np.uint8)
    face, arms = np.zeros((96, 72), bool), np.zeros((96, 72), bool)
    face[4:24, 26:46], arms[40:90, 4:20], arms[40:90, 50:66] = True, True, True
    photograph[face] = (210, 160, 130)
    photograph[40:90, 4:20], photograph[40:90, 50:66] = (165, 122, 98), (60, 80, 160)
    return photograph, face, arms


def test_own_skin_is_told_from_a_sleeve_by_the_tone_of_the_face():
    photograph, face, arms = beside_a_face()
    found = composite.like_skin(photograph, arms, face)
    assert found[45:85, 6:18].all() and not found[:, 40:].any() and (found <= arms).all()
    assert not composite.like_skin(photograph, arms, np.zeros_like(face)).any()


def test_a_bracelet_on_own_skin_stays():
    photograph, face, arms = beside_a_face()
    photograph[60:61, 4:20] = (20, 20, 20)
    assert composite.like_skin(photograph, arms, face)[60, 6:18].all()


def test_smoothing_takes_lines_off_painted_skin_and_nothing_else():
    picture = np.full((64, 48, 3), (200, 150, 120), np.uint8)
    painted = np.zeros((64, 48), bool)
    painted[10:54, 10:38] = True
    picture[:, 24] = (255, 90, 90)
    smooth = composite.smooth(picture, painted, 4)
    np.testing.assert_array_equal(smooth[~painted], picture[~painted])
    assert (
        np.ptp(smooth[20:44, 14:34].astype(int), axis=1).max()
        < 0.5 * np.ptp(picture[20:44, 14:34].astype(int), axis=1).max()
    )


def test_a_limb_darkens_towards_its_outline_and_keeps_its_brightness():
    picture = np.full((96, 72, 3), (200, 150, 120), np.uint8)
    painted = np.zeros((96, 72), bool)
    painted[:, 28:44] = True
    shaded = composite.round_limbs(picture, painted, painted)
    np.testing.assert_array_equal(shaded[~painted], picture[~painted])
    row = shaded[48, 28:44, 0].astype(int)
    assert row[7] > row[2] > row[0] and abs(row[7] - row[8]) <= 2
    assert shaded[painted].mean() == pytest.approx(picture[painted].mean(), rel=0.04)


def test_painted_skin_takes_the_tone_of_the_skin_beside_it():
    picture = np.full((96, 72, 3), (220, 170, 150), np.uint8)
    photograph = picture.copy()
    photograph[:48], photograph[48:] = (236, 186, 164), (196, 150, 132)
    skin, painted = np.zeros((96, 72), bool), np.zeros((96, 72), bool)
    skin[:, :36], painted[:, 36:] = True, True
    picture[:, 50:] -= np.uint8(20)  # the painting's own shade
    joined = composite.join_skin(picture, painted, photograph, skin, sigma=3).astype(int)
    for row, tone in ((10, (236, 186, 164)), (86, (196, 150, 132))):
        assert np.abs(joined[row, 37] - tone).max() < 6 and np.abs(joined[row, 33] - tone).max() < 6  # no seam
    assert (joined[10, 46] - joined[10, 54]).min() > 8
    np.testing.assert_array_equal(joined[~(painted | skin)], picture[~(painted | skin)])
    photograph[:, :36] = (40, 40, 90)  # a glove: no more than a little of it goes on
    assert np.abs(composite.join_skin(picture, painted, photograph, skin, sigma=3).astype(int) - picture).max() < 50
    apart = np.zeros_like(skin)
    apart[:, :30] = True
    np.testing.assert_array_equal(composite.join_skin(picture, painted, photograph, apart, sigma=3), picture)


def test_a_gray_sleeve_is_no_pale_skin():
    photograph, face, arms = beside_a_face()
    photograph[face], photograph[arms] = (205, 185, 175), (170, 168, 168)
    assert not composite.like_skin(photograph, arms, face).any()


def test_beyond_the_warped_garment_its_cloth_goes_on_and_not_the_ground_of_its_picture():
    warped = np.full((64, 48, 3), 246, np.float32)
    warped[24:, 8:40] = (30, 60, 130)
    region, aligned = np.zeros((64, 48), bool), np.zeros((64, 48), bool)
    region[12:, 8:40], aligned[24:, 8:40] = True, True
    synthesis = np.full((64, 48, 3), 240, np.float32)  # a generator that has painted the ground instead of cloth
    made = composite.carry_colours(synthesis, warped, region, aligned, 3).astype(int)
    assert (
        made[16:22, 14:34].mean((0, 1))[0] < 110
        and made[16:22, 14:34].mean((0, 1))[2] > made[16:22, 14:34].mean((0, 1))[0] + 40
    )


def test_beyond_the_warped_garment_a_print_goes_on_instead_of_running_out():
    columns = (np.arange(48) // 4 % 2)[None, :, None] * np.float32(200) + 20  # stripes across the outline
    warped = np.broadcast_to(columns, (64, 48, 3)).copy()
    region = np.zeros((64, 48), bool)
    region[8:, 4:44] = True
    aligned = region & (np.arange(64) >= 16)[:, None]
    warped[~aligned] = 246  # the ground of its picture
    synthesis = np.full((64, 48, 3), 128, np.float32)  # a generator that paints the stripes' mean
    made = composite.carry_colours(synthesis, warped, region, aligned, sigma=6).astype(float)
    beyond, within = made[10:15, 8:40, 1], made[24:32, 8:40, 1]
    assert beyond.std() > 0.7 * within.std()
    assert np.corrcoef(beyond.mean(0), within.mean(0))[0, 1] > 0.9


def test_a_phone_a_mask_and_a_sticker_are_no_skin_and_faces_of_all_tones_are():
    whole = np.ones((30, 30), bool)
    for colour in ((20, 20, 22), (255, 204, 51), (150, 200, 225), (240, 240, 240), (60, 140, 80)):
        assert not composite.is_skin(np.full((30, 30, 3), colour, np.uint8), whole), colour
    for colour in ((245, 214, 196), (224, 172, 138), (180, 128, 96), (124, 80, 56), (74, 48, 36)):
        assert composite.is_skin(np.full((30, 30, 3), colour, np.uint8), whole), colour
    assert not composite.is_skin(np.full((30, 30, 3), (224, 172, 138), np.uint8), np.zeros_like(whole))


def test_painted_skin_does_not_keep_the_hue_of_the_cloth_that_the_generator_mirrors_in_it():
    photograph, face, _ = beside_a_face()
    picture, arms = np.full((96, 72, 3), (220, 170, 150), np.uint8), np.zeros((96, 72), bool)
    arms[40:90, 4:20] = True
    picture[40:50, 4:20] = (215, 185, 110)  # yellow below a yellow sleeve
    made = composite.match_skin(picture, arms, photograph, face)

    def apart(of):
        return difference(of[42:48, 6:18], of[70:76, 6:18])

    assert apart(made) < 0.6 * apart(picture)


@pytest.mark.parametrize(("face", "hands", "shaded"), [(55, 70, True), (70, 62, False), (66, 70, False)])
def test_a_face_darker_than_the_hands_lies_in_the_shade(face, hands, shaded):
    photograph = np.zeros((40, 40, 3), np.uint8)
    parts = np.zeros((2, 40, 40), bool)
    parts[0, :20], parts[1, 20:] = True, True
    for part, lightness in zip(parts, (face, hands)):
        photograph[part] = composite._rgb(np.array([[lightness, 12.0, 15.0]], np.float32))
    assert composite.is_shaded(photograph, *parts) == shaded
