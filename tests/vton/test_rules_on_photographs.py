"""The rules' numbers on people who were photographed.

Joints and LIP labels of the shipped examples at 256x192, as the pose model and the human parser read them once. What
they wear was looked at in the photographs.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vton import labels
from vton.inputs import agnostic
from vton.joints import LEFT_HIP, LEFT_SHOULDER, MID_HIP, RIGHT_HIP, RIGHT_SHOULDER
from vton.labels import LIP, SEGMENTATION, lip_to_13
from vton.rules import neckline, sleeves

FOLDER = Path(__file__).parent / "people"
JOINTS = {
    name: np.array(points, np.float32) for name, points in json.loads((FOLDER / "joints.json").read_text()).items()
}
PARSES = {name: np.array(Image.open(FOLDER / f"{name}.png")) for name in JOINTS}
SLEEVES = {"man-blue-jacket": "long", "man-white-shirt": "long", "man-white-tee-office": "short"}  # others end between
UPPER = SEGMENTATION.index("upper")


def shares(part, *whole):
    """Of everybody, how much of `whole` (a mask made from parse and opening) lies in `part`."""
    found = []
    for name, parse in PARSES.items():
        hole = neckline.opening(JOINTS[name], parse.shape)
        inside = whole[0](parse, hole)
        found.append((part(parse, hole) & inside).sum() / inside.sum())
    return np.array(found)


def test_a_round_neckline_bares_a_throat_and_no_more():
    assert set(PARSES) == set(JOINTS) and len(JOINTS) == 7
    neck = shares(lambda parse, hole: hole, lambda parse, hole: parse == LIP.index("neck"))
    assert neck.min() > 0.65 and neck.mean() > 0.85  # of the necks that are seen
    skin = shares(lambda parse, hole: np.isin(parse, (labels.NECK_LIP, labels.FACE_LIP)), lambda parse, hole: hole)
    assert skin.mean() > 0.65
    beside = shares(lambda parse, hole: parse == labels.BACKGROUND, lambda parse, hole: hole)
    assert beside.max() < 0.04  # a wider one would reach past the neck
    cloth = shares(lambda parse, hole: hole, lambda parse, hole: np.isin(parse, labels.UPPER_LIP))
    assert cloth.max() < 0.05


@pytest.mark.parametrize("name", SLEEVES)
def test_the_sleeves_that_are_worn_contradict_nothing_and_others_do(name):
    segmentation, keypoints = lip_to_13(PARSES[name]), JOINTS[name]
    for kind in sleeves.KINDS:
        found = sleeves.contradicting(segmentation, keypoints, kind)
        assert set(found) == (set() if kind == SLEEVES[name] else set(labels.ARMS)), kind
        made = sleeves.set_length(segmentation, keypoints, kind)
        assert sleeves.contradicting(made, keypoints, kind) == ()
        outside = ~np.isin(segmentation, (UPPER, *labels.ARMS))
        np.testing.assert_array_equal(made[outside], segmentation[outside])
    area = [(sleeves.set_length(segmentation, keypoints, kind) == UPPER).sum() for kind in sleeves.KINDS]
    assert area[0] < area[1] < area[2]


@pytest.mark.parametrize("name", JOINTS)
def test_hips_out_of_the_picture_are_guessed_near_where_they_are(name):
    parse, keypoints = np.zeros((256, 192), np.uint8), JOINTS[name]
    person = np.zeros((256, 192, 3), np.uint8)
    hidden = keypoints.copy()
    hidden[[LEFT_HIP, RIGHT_HIP, MID_HIP]] = 0
    hidden[[3, 4, 6, 7]] = 0  # hands would reach further down than the trunk
    shown = keypoints.copy()
    shown[[3, 4, 6, 7]] = 0
    lowest = [np.nonzero(agnostic.agnostic_image(person, parse, k).any(2).any(1))[0].max() for k in (shown, hidden)]
    width = np.linalg.norm(keypoints[LEFT_SHOULDER, :2] - keypoints[RIGHT_SHOULDER, :2])
    assert abs(int(lowest[0]) - int(lowest[1])) < 0.25 * width
