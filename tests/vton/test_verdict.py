"""A verdict names the stage at fault: each fault is drawn into a record that is otherwise as it should be."""

from dataclasses import replace

import numpy as np
import pytest

from vton import labels, verdict
from vton.inputs.photo import Frame
from vton.joints import HIPS, NECK, UPPER_BODY
from vton.options import Options
from vton.result import TryOnResult

SKIN_TONE, SHIRT = (210, 165, 140), (30, 90, 60)
SIZE = H, W = 256, 192


@pytest.fixture
def record() -> TryOnResult:
    """A person of boxes: head, a shirt from row 60 to 160, bare arms beside it, trousers below."""
    keypoints = np.zeros((25, 3), np.float32)
    keypoints[list(UPPER_BODY)] = (96, 100, 1)
    keypoints[NECK] = (96, 60, 1)
    keypoints[list(HIPS)] = ((76, 155, 1), (116, 155, 1))
    segmentation = np.zeros(SIZE, np.uint8)
    segmentation[20:60, 80:112] = labels.FACE
    segmentation[60:160, 66:126] = labels.UPPER
    segmentation[160:256, 70:122] = labels.BOTTOM
    segmentation[80:170, 50:66], segmentation[80:170, 126:142] = labels.RIGHT_ARM, labels.LEFT_ARM
    parse = np.zeros(SIZE, np.uint8)
    parse[segmentation == labels.FACE] = labels.LIP.index("face")
    parse[150:170, 50:66] = labels.RIGHT_ARM_LIP
    picture = np.full((H, W, 3), 235, np.uint8)
    picture[segmentation == labels.UPPER] = SHIRT
    picture[np.isin(segmentation, (labels.FACE, *labels.ARMS))] = SKIN_TONE
    return TryOnResult(
        options=Options(size=SIZE),
        frame=Frame(0, 0, W, H),
        person=picture,
        keypoints=keypoints,
        parse=parse,
        segmentation=segmentation,
        misalignment=np.zeros(SIZE, np.uint8),
        kept=np.zeros(SIZE, np.uint8),
        result=picture,
    )


def stages(record: TryOnResult) -> dict[str, int]:
    return {finding.stage: finding.grade for finding in verdict.findings(record)}


def test_nothing_stands_out(record):
    assert stages(record) == {} and verdict.grade([]) == 0


def test_patches_on_trousers(record):
    region = record.segmentation.copy()
    region[200:212, 80:110] = labels.UPPER
    found = verdict.findings(replace(record, segmentation=region))
    assert [f.stage for f in found if "apart" in f.sentence] == ["segmentation"]
    assert found[0].value == pytest.approx(12 * 30 / (12 * 30 + 100 * 60))


def test_a_sleeve_behind_an_arm_is_no_patch(record):
    region = record.segmentation.copy()
    region[100:112, 126:142] = labels.UPPER  # across the arm, so that it touches nothing else
    region[100:112, 126:132] = labels.LEFT_ARM
    assert not any("apart" in f.sentence for f in verdict.findings(replace(record, segmentation=region)))


def test_holes(record):
    region = record.segmentation.copy()
    region[100:115, 90:105] = labels.BOTTOM
    assert any("holes" in f.sentence for f in verdict.findings(replace(record, segmentation=region)))
    region[100:115, 90:105] = labels.RIGHT_ARM  # a hand before the body
    assert not any("holes" in f.sentence for f in verdict.findings(replace(record, segmentation=region)))


def test_a_ragged_and_a_low_hem(record):
    ragged, low = record.segmentation.copy(), record.segmentation.copy()
    ragged[130:160, 80:96] = labels.BOTTOM
    low[160:230, 70:122] = labels.UPPER
    assert [f.sentence for f in verdict.findings(replace(record, segmentation=ragged))][:1] == [
        "The hem is not one line."
    ]
    assert any("far below" in f.sentence and f.grade == 2 for f in verdict.findings(replace(record, segmentation=low)))
    slanted = record.segmentation.copy()
    for column in range(66, 126):  # a hem that is cut askew is one line
        slanted[150 - (column - 66) // 6 :, column][slanted[150 - (column - 66) // 6 :, column] == labels.UPPER] = 4
    assert not any("hem" in f.sentence for f in verdict.findings(replace(record, segmentation=slanted)))


def test_cloth_that_leaves_its_place_open(record):
    open_ = np.zeros(SIZE, np.uint8)
    open_[60:80, 66:126] = 255  # a fifth
    assert stages(replace(record, misalignment=open_)) == {"warp": 2}


def test_arms_of_another_colour(record):
    picture = record.result.copy()
    picture[np.isin(record.segmentation, labels.ARMS)] = (255, 204, 51)
    assert stages(replace(record, result=picture)) == {"synthesis": 2}
    assert stages(replace(record, result=picture, kept=np.full(SIZE, 255, np.uint8))) == {}  # the photograph's own


def test_a_sticker_is_no_skin(record):
    """The face is hidden: the hand alone tells the tone."""
    picture, person = record.result.copy(), record.person.copy()
    person[record.parse == labels.LIP.index("face")] = picture[np.isin(record.segmentation, labels.ARMS)] = (
        255,
        204,
        51,
    )
    parse = record.parse.copy()
    parse[120:170, 50:66] = labels.RIGHT_ARM_LIP
    assert stages(replace(record, person=person, result=picture, parse=parse)) == {"synthesis": 2}


def test_missing_joints(record):
    keypoints = record.keypoints.copy()
    keypoints[[3, 4]] = 0
    assert stages(replace(record, keypoints=keypoints)) == {"pose": 1}


def test_an_unfinished_record_has_no_verdict(record):
    with pytest.raises(ValueError, match="finished"):
        verdict.findings(replace(record, result=None))
