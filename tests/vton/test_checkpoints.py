"""The released files: narrow stand-ins in the same format, what is wrong with wrong files, and the inference recipe."""

import json
import os
import pickle
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from lab.tryon.synthetic import draw_pair
from training.files import write_atomic
from vton import infer, labels
from vton.infer import main, result_name
from vton.inputs import pose
from vton.networks.alias import AliasGenerator
from vton.networks.checkpoints import FILES, load_alias, load_released, load_segmentation, read_state
from vton.networks.config import PAPER
from vton.networks.segmentation import SegmentationGenerator
from vton.networks.warping import MatchingModule
from vton.record import png


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    torch.manual_seed(0)
    networks = {
        "segmentation": SegmentationGenerator(replace(PAPER.segmentation, width=4)),
        "matching": MatchingModule(replace(PAPER.matching, width=4)),
        "alias": AliasGenerator(replace(PAPER.alias, width=4, hidden=8, injected=4)),
    }
    for kind, network in networks.items():
        torch.save(network.state_dict(), folder / FILES[kind])
    return folder, networks


def test_round_trip_with_the_width_read_from_the_shapes(released):
    folder, networks = released
    for kind, network in load_released(folder).items():
        assert network.config == networks[kind].config and not network.training
        for name, value in networks[kind].state_dict().items():
            assert torch.equal(network.state_dict()[name], value)


def test_half_download_wrong_file_and_code_are_refused(released, tmp_path):
    folder, _ = released
    half = tmp_path / "seg_final.pth"
    half.write_bytes((folder / "seg_final.pth").read_bytes()[:5000])
    with pytest.raises(ValueError, match="seg_final.pth is damaged or only partly downloaded"):
        load_segmentation(half)
    half.write_bytes(b"")
    with pytest.raises(ValueError, match="damaged or only partly downloaded"):
        load_segmentation(half)
    half.write_bytes(b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title>")
    with pytest.raises(ValueError, match="seg_final.pth is a web page, not a checkpoint"):
        load_segmentation(half)
    torch.save(load_segmentation(folder / "seg_final.pth").state_dict(), half, _use_new_zipfile_serialization=False)
    load_segmentation(half)  # the format of older files
    whole = half.read_bytes()
    for end in range(20, 2000, 7):  # wherever it is cut off
        half.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="damaged or only partly downloaded|more than tensors"):
            load_segmentation(half)
    with pytest.raises(ValueError, match="not the file of that network"):
        load_segmentation(folder / "gmm_final.pth")
    with pytest.raises(ValueError, match="not the file"):
        load_alias(folder / "seg_final.pth")

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "opened"), "w"))

    evil = tmp_path / "evil.pth"
    torch.save({"weight": Evil()}, evil)
    with pytest.raises(ValueError, match="more than tensors"):
        read_state(evil)
    evil.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="more than tensors"):
        read_state(evil)
    assert not (tmp_path / "opened").exists()
    with pytest.raises(FileNotFoundError, match="There is no seg_final.pth"):
        load_released(tmp_path / "nothing")
    torch.save({"a": [1, 2]}, evil)
    with pytest.raises(ValueError, match="not a set of named weights"):
        read_state(evil)


def data_set(root, new_names=False):
    """A drawn pair in the released layout."""
    drawn = draw_pair(4, size=(1024, 768))
    for name in (
        "image",
        "cloth",
        "cloth-mask",
        *(
            ("image-parse-v3", "openpose_json", "openpose_img")
            if new_names
            else ("image-parse", "openpose-json", "openpose-img")
        ),
    ):
        (root / "test" / name).mkdir(parents=True)
    get = lambda old, new: root / "test" / (new if new_names else old)  # noqa: E731
    cv2.imwrite(str(root / "test/image/00001_00.jpg"), drawn.person[..., ::-1])
    parse = Image.fromarray(drawn.parse, "P")
    parse.putpalette(labels.LIP_COLOURS.reshape(-1).tolist())
    parse.save(get("image-parse", "image-parse-v3") / "00001_00.png")
    people = {"people": [{"pose_keypoints_2d": drawn.keypoints.reshape(-1).tolist()}]}
    (get("openpose-json", "openpose_json") / "00001_00_keypoints.json").write_text(json.dumps(people))
    skeleton = pose.draw_pose(drawn.keypoints, (1024, 768))
    cv2.imwrite(str(get("openpose-img", "openpose_img") / "00001_00_rendered.png"), skeleton[..., ::-1])
    cv2.imwrite(str(root / "test/cloth/00002_00.jpg"), drawn.cloth[..., ::-1])
    cv2.imwrite(str(root / "test/cloth-mask/00002_00.jpg"), drawn.cloth_mask)
    (root / "test_pairs.txt").write_text("00001_00.jpg 00002_00.jpg\n")


def edit_joints(root, joints):
    file = root / "test/openpose-json/00001_00_keypoints.json"
    keypoints = np.array(json.loads(file.read_text())["people"][0]["pose_keypoints_2d"]).reshape(25, 3)
    for index, value in joints.items():
        keypoints[index] = value
    file.write_text(json.dumps({"people": [{"pose_keypoints_2d": keypoints.reshape(-1).tolist()}]}))


def arguments(root, folder, out):
    return [
        "--checkpoints",
        str(folder),
        "--data",
        str(root / "test"),
        "--pairs",
        str(root / "test_pairs.txt"),
        "--out",
        str(out),
        "--noise",
        "0",
        "--device",
        "cpu",
    ]


@pytest.mark.slow
def test_inference_in_both_naming_styles(released, tmp_path):
    for style in (False, True):
        root = tmp_path / str(style)
        data_set(root, style)
        assert main(arguments(root, released[0], root / "out")) == 0
        assert [f.name for f in (root / "out").iterdir()] == ["00001_00002_00.png"]
    old, new = (cv2.imread(str(tmp_path / str(s) / "out" / "00001_00002_00.png")) for s in (False, True))
    assert old.shape == (1024, 768, 3) and old.std() > 0
    assert np.array_equal(old, new)


@pytest.mark.parametrize(
    "break_it, sentence",
    [
        (lambda r: (r / "test/openpose-json/00001_00_keypoints.json").unlink(), "00001_00_keypoints.json is missing"),
        (lambda r: (r / "test_pairs.txt").write_text("\n"), "test_pairs.txt holds no pair"),
        (lambda r: (r / "test_pairs.txt").unlink(), "argument --pairs: there is no file"),
        (lambda r: (r / "test_pairs.txt").write_text("../x.jpg a.jpg\n"), "line 1"),
        (lambda r: (r / "test/cloth").rename(r / "test/clothes"), "has no folder cloth"),
        (lambda r: (r / "test/cloth-mask/00002_00.jpg").unlink(), "cloth-mask/00002_00.jpg is missing"),
        (
            lambda r: (r / "test/image/00001_00.jpg").write_bytes(b"half"),
            "image/00001_00.jpg cannot be read as a picture",
        ),
        (
            lambda r: (r / "test/openpose-json/00001_00_keypoints.json").write_text("{"),
            "00001_00_keypoints.json is not an OpenPose",
        ),
        (lambda r: edit_joints(r, {9: (0, 0, 0)}), "00001_00_keypoints.json does not hold both hips"),
        (
            lambda r: edit_joints(r, {9: (300, 700, 1), 12: (300, 700, 1)}),
            "00001_00_keypoints.json has both hips in one place",
        ),
        (
            lambda r: edit_joints(r, {2: (0, 0, 0), 5: (0, 0, 0)}),
            "00001_00_keypoints.json does not hold both shoulders",
        ),
        (
            lambda r: cv2.imwrite(str(r / "test/cloth-mask/00002_00.jpg"), np.zeros((20, 10), np.uint8)),
            "has size 20x10, its picture",
        ),
        (
            lambda r: cv2.imwrite(str(r / "test/image-parse/00001_00.png"), np.full((1024, 768), 33, np.uint8)),
            "label 33",
        ),
        (
            lambda r: cv2.imwrite(str(r / "test/image-parse/00001_00.png"), np.zeros((10, 10), np.uint8)),
            "has size 10x10",
        ),
    ],
)
def test_bad_data_is_named_and_nothing_is_written(released, tmp_path, capsys, break_it, sentence):
    data_set(tmp_path)
    break_it(tmp_path)
    assert main(arguments(tmp_path, released[0], tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.startswith("error: ") and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def second_pair(root):
    """A good pair, and after it one whose parse is broken."""
    for folder, name in (
        ("image", "{}.jpg"),
        ("image-parse", "{}.png"),
        ("openpose-json", "{}_keypoints.json"),
        ("openpose-img", "{}_rendered.png"),
    ):
        shutil.copy(root / "test" / folder / name.format("00001_00"), root / "test" / folder / name.format("00003_00"))
    cv2.imwrite(str(root / "test/image-parse/00003_00.png"), np.full((1024, 768), 20, np.uint8))
    (root / "test_pairs.txt").write_text("00001_00.jpg 00002_00.jpg\n00003_00.jpg 00002_00.jpg\n")


def test_a_bad_pair_at_the_end_is_found_before_the_first_is_dressed(released, tmp_path, capsys, monkeypatch):
    data_set(tmp_path)
    second_pair(tmp_path)
    assert main(arguments(tmp_path, released[0], tmp_path / "out")) == 2
    assert "image-parse/00003_00.png holds label 20" in capsys.readouterr().err and not (tmp_path / "out").exists()
    monkeypatch.setattr(infer, "synthesise", lambda *_: np.zeros((1024, 768, 3), np.uint8))
    assert main([*arguments(tmp_path, released[0], tmp_path / "out"), "--skip"]) == 0
    assert "skipped 00003_00.jpg 00002_00.jpg: image-parse/00003_00.png holds label 20" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["00001_00002_00.png"]
    (tmp_path / "test_pairs.txt").write_text("00003_00.jpg 00002_00.jpg\n")
    assert main([*arguments(tmp_path, released[0], tmp_path / "other"), "--skip"]) == 2
    assert "No pair of test_pairs.txt can be dressed" in capsys.readouterr().err


def test_names_of_the_results():
    assert result_name("08909_00.jpg", "06802_00.jpg") == "08909_06802_00.png"
    assert result_name("anna.jpg", "red-shirt.png") == "anna_red-shirt.png"


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    picture = np.random.default_rng(0).integers(0, 256, (8, 6, 3)).astype(np.uint8)
    write_atomic(tmp_path / "a.png", png(picture))
    assert np.array_equal(cv2.imread(str(tmp_path / "a.png"))[..., ::-1], picture)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        write_atomic(tmp_path / "b.png", png(picture))
    assert [f.name for f in tmp_path.iterdir()] == ["a.png"]
