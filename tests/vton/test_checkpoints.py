"""The released files: narrow stand-ins in the same format, what is wrong with wrong files, and the inference recipe."""
import json
import pickle
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from vton import labels, pose
from vton.alias import AliasGenerator
from vton.checkpoints import FILES, load_alias, load_released, load_segmentation, read_state
from vton.config import PAPER
from vton.infer import main
from vton.segmentation import SegmentationGenerator
from vton.synthetic import draw_pair
from vton.warping import MatchingModule


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    torch.manual_seed(0)
    networks = {"segmentation": SegmentationGenerator(replace(PAPER.segmentation, width=4)),
                "matching": MatchingModule(replace(PAPER.matching, width=4)),
                "alias": AliasGenerator(replace(PAPER.alias, width=4, hidden=8, injected=4))}
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
    for name in ("image", "cloth", "cloth-mask", *(("image-parse-v3", "openpose_json", "openpose_img") if new_names
                                                   else ("image-parse", "openpose-json", "openpose-img"))):
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


def arguments(root, folder, out):
    return ["--checkpoints", str(folder), "--data", str(root / "test"), "--pairs", str(root / "test_pairs.txt"), "--out", str(out),
            "--noise", "0", "--device", "cpu"]


def test_inference_in_both_naming_styles(released, tmp_path):
    for style in (False, True):
        root = tmp_path / str(style)
        data_set(root, style)
        assert main(arguments(root, released[0], root / "out")) == 0
        assert [f.name for f in (root / "out").iterdir()] == ["00001_00002_00.png"]
    old, new = (cv2.imread(str(tmp_path / str(s) / "out" / "00001_00002_00.png")) for s in (False, True))
    assert old.shape == (1024, 768, 3) and old.std() > 0
    assert np.array_equal(old, new)


@pytest.mark.parametrize("break_it, sentence", [
    (lambda r: (r / "test/openpose-json/00001_00_keypoints.json").unlink(), "00001_00_keypoints.json is missing"),
    (lambda r: (r / "test_pairs.txt").write_text("\n"), "holds no pair"),
    (lambda r: (r / "test_pairs.txt").write_text("../x.jpg a.jpg\n"), "line 1"),
    (lambda r: (r / "test/cloth").rename(r / "test/clothes"), "has no folder cloth"),
    (lambda r: cv2.imwrite(str(r / "test/image-parse/00001_00.png"), np.full((1024, 768), 33, np.uint8)), "label 33"),
    (lambda r: cv2.imwrite(str(r / "test/image-parse/00001_00.png"), np.zeros((10, 10), np.uint8)), "has size 10x10"),
])
def test_bad_data_is_named_and_nothing_is_written(released, tmp_path, capsys, break_it, sentence):
    data_set(tmp_path)
    break_it(tmp_path)
    assert main(arguments(tmp_path, released[0], tmp_path / "out")) == 2
    assert sentence in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*.png"))
