"""The drawn skeleton against per-pixel loops, keypoint files, and MediaPipe on drawn people."""

import json
import threading

import numpy as np
import pytest

from lab.tryon.synthetic import EXAMPLE_PEOPLE, draw_pair
from vton.inputs import pose
from vton.inputs.photo import InputError
from vton.inputs.pose import Pose
from vton.joints import FLIP, JOINTS, present


def two_joints(a, b, place_a, place_b) -> np.ndarray:
    k = np.zeros((25, 3), np.float32)
    k[a], k[b] = (*place_a, 1), (*place_b, 1)
    return k


def test_a_limb_is_openposes_ellipse():
    """Shoulder to elbow at 768 x 1024, each pixel from the ellipse's equation; only the antialiased rim may differ."""
    a, b, W, H = np.array([300.0, 400.0]), np.array([360.0, 560.0]), 768, 1024
    picture = pose.draw_pose(two_joints(2, 3, a, b), (H, W)).astype(int)
    centre, axis = (a + b) / 2, (b - a) / np.linalg.norm(b - a)
    half = np.linalg.norm(b - a) / 2
    for y in range(390, 575, 3):
        for x in range(285, 375):
            u, v = (
                (x - centre[0]) * axis[0] + (y - centre[1]) * axis[1],
                (y - centre[1]) * axis[0] - (x - centre[0]) * axis[1],
            )
            value = (u / half) ** 2 + (v / 6.4) ** 2
            colour = np.zeros(3)
            if value <= 1:
                colour = 0.6 * np.array([255, 170, 0])
            for joint, shade in ((a, (255, 85, 0)), (b, (255, 170, 0))):
                if np.hypot(x - joint[0], y - joint[1]) <= 7.68:
                    colour = 0.4 * colour + 0.6 * np.array(shade)
            rim = abs(np.sqrt(value) - 1) * 6.4 < 1.2 or any(
                abs(np.hypot(x - j[0], y - j[1]) - 7.68) < 1.2 for j in (a, b)
            )
            if not rim:
                assert np.abs(picture[y, x] - colour).max() <= 1.01, (x, y)


def test_colours_are_those_of_the_published_renderings():
    """Colours at the middle of a limb, read off the published pictures."""
    k = np.zeros((25, 3), np.float32)
    for joint, x, y in (
        (0, 384, 160),
        (1, 384, 330),
        (2, 260, 330),
        (3, 200, 560),
        (4, 180, 780),
        (5, 508, 330),
        (6, 570, 560),
        (7, 590, 780),
        (8, 384, 700),
        (9, 300, 700),
        (12, 470, 700),
    ):
        k[joint] = x, y, 1
    picture = pose.draw_pose(k, (1024, 768))
    for (a, b), colour in {
        (1, 8): (153, 0, 0),
        (1, 2): (153, 51, 0),
        (1, 5): (102, 153, 0),
        (2, 3): (153, 102, 0),
        (3, 4): (153, 153, 0),
        (5, 6): (51, 153, 0),
        (6, 7): (0, 153, 0),
        (8, 9): (0, 153, 51),
        (8, 12): (0, 102, 153),
        (1, 0): (153, 0, 51),
    }.items():
        x, y = ((k[a, :2] + k[b, :2]) / 2).astype(int)
        assert np.abs(picture[y, x].astype(int) - colour).max() <= 1, (a, b)


def test_limb_width_scales_and_missing_joints_leave_gaps():
    k = two_joints(1, 8, (96, 60), (96, 180))
    picture = pose.draw_pose(k, (256, 192))
    width = (picture[120].max(1) > 60).sum()
    assert 2 <= width <= 5
    k[8] = 0
    alone = pose.draw_pose(k, (256, 192))
    assert alone[120].max() == 0 and alone.max() > 0
    assert pose.draw_pose(np.zeros((25, 3)), (256, 192)).max() == 0
    k[8] = (np.nan, 3, 1)
    assert (pose.draw_pose(k, (256, 192)) == alone).all()


def test_joints_beyond_the_picture_are_clipped():
    k = two_joints(1, 8, (96, 60), (400, 900))
    picture = pose.draw_pose(k, (256, 192))
    assert picture.shape == (256, 192, 3) and picture[-1].max() > 0
    k = two_joints(1, 8, (-900, -60), (-400, 9e6))
    assert pose.draw_pose(k, (256, 192)).max() == 0


def test_mirroring_swaps_sides():
    for joint, name in enumerate(JOINTS):
        other = name.replace("left", "?").replace("right", "left").replace("?", "right")
        assert JOINTS[FLIP[joint]] == other


def test_keypoint_files(tmp_path):
    values = np.arange(75, dtype=float)
    file = tmp_path / "a_keypoints.json"
    file.write_text(json.dumps({"version": 1.3, "people": [{"pose_keypoints_2d": values.tolist()}]}))
    assert (pose.load_openpose_json(file) == values.reshape(25, 3)).all()
    file.write_text(json.dumps({"people": []}))
    assert (pose.load_openpose_json(file) == 0).all()
    for text in (
        "{",
        "[]",
        '{"people": [{}]}',
        '{"people": [{"pose_keypoints_2d": [1, 2, 3]}]}',
        '{"people": 3}',
        '{"people": [{"pose_keypoints_2d": ["a"]}]}',
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match="^a_keypoints"):
            pose.load_openpose_json(file)
    with pytest.raises(FileNotFoundError):
        pose.load_openpose_json(tmp_path / "none.json")


@pytest.mark.parametrize("name", EXAMPLE_PEOPLE)
def test_drawn_people_are_found(name, capfd):
    pair = draw_pair(size=(512, 384), **EXAMPLE_PEOPLE[name])
    before = pair.person.copy()
    found = pose.detect(pair.person)
    there = present(found.keypoints)
    assert there[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12]].all()
    error = np.linalg.norm(found.keypoints - pair.keypoints, axis=1)
    arms = [0, 1, 2, 3, 4, 5, 6, 7]
    assert error[arms].max() < 0.07 * 384 and np.median(error[arms]) < 0.03 * 384
    assert error[[8, 9, 12]].max() < 0.11 * 384
    silhouette, mask = pair.parse > 0, found.person_mask > 0.5
    assert found.person_mask.shape == (512, 384)
    assert (silhouette & mask).sum() / (silhouette | mask).sum() > 0.85
    assert pose.check(found, (512, 384)) == [] and found.others == 0
    assert (pair.person == before).all()
    assert capfd.readouterr().err == ""  # MediaPipe's log stays away


def test_keypoints_are_in_pixels_of_the_photo_whatever_its_size():
    small = draw_pair(size=(512, 384), **EXAMPLE_PEOPLE["person-1.png"]).person
    large = np.repeat(np.repeat(small, 3, 0), 3, 1)
    a, b = pose.detect(small), pose.detect(large)
    assert b.person_mask.shape == large.shape[:2]
    both = present(a.keypoints) & present(b.keypoints)
    assert both.sum() > 10
    assert np.linalg.norm(a.keypoints[both, :2] * 3 - b.keypoints[both, :2], axis=1).max() < 0.04 * large.shape[1]


def test_a_landscape_gets_one_sentence():
    y, x = np.mgrid[0:300, 0:400].astype(np.float32)
    hills = y > 180 + 30 * np.sin(x / 40)
    land = np.where(hills[..., None], (70, 120, 60), np.stack([150 + y / 4, 180 + y / 5, 240 + 0 * y], -1)).astype(
        np.uint8
    )
    for picture in (
        land,
        np.full((200, 200, 3), 128, np.uint8),
        np.random.default_rng(0).integers(0, 255, (200, 200, 3), np.uint8),
    ):
        with pytest.raises(InputError, match="No person was found"):
            pose.detect(picture)


def test_a_small_person_in_a_wide_scene_is_found():
    pair = draw_pair(size=(320, 240), **EXAMPLE_PEOPLE["person-1.png"])
    scene = np.random.default_rng(0).normal(150, 5, (1300, 1900, 3)).clip(0, 255).astype(np.uint8)
    scene[940:1260, 240:480] = pair.person
    with pytest.raises(InputError):
        pose.detect(scene, search=False)
    found = pose.detect(scene)
    error = np.linalg.norm(found.keypoints[:8, :2] - (pair.keypoints[:8, :2] + (240, 940)), axis=1)
    assert error.max() < 0.1 * 240
    inside = np.zeros(scene.shape[:2], bool)
    inside[920:1290, 220:500] = True
    assert (found.person_mask[~inside] < 0.5).all() and (found.person_mask[inside] > 0.5).mean() > 0.2


def test_of_two_people_the_larger_is_taken():
    big = draw_pair(size=(512, 384), **EXAMPLE_PEOPLE["person-1.png"])
    small = draw_pair(size=(384, 288), **EXAMPLE_PEOPLE["person-3.png"]).person
    wall = np.full((512, 288 + 384, 3), small[0, 0], np.uint8)
    wall[:, 288:] = big.person
    wall[128:, :288] = small
    found = pose.detect(wall)
    assert found.others == 1
    assert np.abs(found.keypoints[1, :2] - (big.keypoints[1, :2] + (288, 0))).max() < 30
    assert any("Several people" in note for note in pose.check(found, wall.shape[:2]))


def test_two_threads_share_one_instance():
    pictures = [draw_pair(size=(256, 192), **options).person for options in EXAMPLE_PEOPLE.values()]
    alone = [pose.detect(p).keypoints for p in pictures]
    answers = [None] * 6

    def work(i):
        answers[i] = pose.detect(pictures[i % 3]).keypoints

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for i, answer in enumerate(answers):
        assert answer is not None and np.allclose(answer, alone[i % 3], atol=1e-3)


def standing() -> np.ndarray:
    k = np.zeros((25, 3), np.float32)
    for joint, x, y in (
        (0, 300, 150),
        (1, 300, 250),
        (2, 240, 250),
        (3, 220, 360),
        (4, 215, 460),
        (5, 360, 250),
        (6, 380, 360),
        (7, 385, 460),
        (8, 300, 430),
        (9, 265, 430),
        (10, 262, 600),
        (12, 335, 430),
        (13, 338, 600),
    ):
        k[joint] = x, y, 1
    return k


def notes_of(keypoints, others=0) -> str:
    notes = pose.check(Pose(keypoints, np.zeros((800, 600), np.float32), others), (800, 600))
    assert all(note[0].isupper() and note.endswith(".") for note in notes)
    return " ".join(notes)


def test_warnings_name_what_is_wrong():
    assert notes_of(standing()) == ""
    behind = standing()
    behind[[2, 3, 4, 5, 6, 7]] = behind[[5, 6, 7, 2, 3, 4]]
    assert "from behind" in notes_of(behind)
    sideways = standing()
    sideways[[2, 5], 0] = 290, 310
    assert "sideways" in notes_of(sideways)
    sitting = standing()
    sitting[[10, 13], 1] = 470
    assert "sit" in notes_of(sitting)
    crossed = standing()
    crossed[[4, 7], 0] = crossed[[7, 4], 0]
    assert "arms are crossed" in notes_of(crossed)
    cut = standing()
    cut[[3, 4, 7]] = 0
    assert "right arm" in notes_of(cut) and "left forearm" in notes_of(cut)
    portrait = standing()
    portrait[[8, 9, 10, 12, 13]] = 0
    assert "hips" in notes_of(portrait)
    assert "Several people" in notes_of(standing(), others=1)
    far = standing()
    far[:, :2] *= 0.25
    assert "small" in notes_of(far)


def test_the_side_that_is_seen():
    behind, sideways, nobody = standing(), standing(), np.zeros((25, 3), np.float32)
    behind[[2, 5]] = behind[[5, 2]]
    sideways[[2, 5], 0] = 290, 310
    assert [pose.facing(k) for k in (standing(), behind, sideways, nobody)] == ["front", "back", "side", "unknown"]


def test_wrong_arrays_are_refused():
    for call in (
        lambda: pose.detect(np.zeros((9, 9), np.uint8)),
        lambda: present(np.zeros((18, 3))),
        lambda: pose.draw_pose(np.zeros((25, 2)), (64, 48)),
    ):
        with pytest.raises(ValueError):
            call()


def test_the_mirror_image_has_left_joints_for_right_ones_and_absent_ones_stay_absent():
    keypoints = np.zeros((25, 3), np.float32)
    keypoints[2], keypoints[5], keypoints[1] = (
        (10, 20, 0.9),
        (40, 22, 0.8),
        (25, 21, 1),
    )  # right and left shoulder, neck
    found = pose.mirror_keypoints(keypoints, 64)
    np.testing.assert_allclose(found[5], (53, 20, 0.9))
    np.testing.assert_allclose(found[2], (23, 22, 0.8))
    np.testing.assert_allclose(found[1], (38, 21, 1))
    assert not found[[0, 3, 8, 24]].any()
    np.testing.assert_array_equal(pose.mirror_keypoints(found, 64), keypoints)
