"""Photos to a training set: made maps, given maps, broken files, and a second start."""

import json

import cv2
import numpy as np
import pytest
from PIL import Image

from lab.tryon.synthetic import draw_pair
from training import assets
from vton import labels
from vton.data.pack import Pack
from vton.data.samples import Sampler
from vton.prepare import find_set, main, prepare


def never():
    raise AssertionError("the set brings its own parse")


def write_set(root, count=6):
    """Drawn people in the layout of VITON-HD, without person masks."""
    for name in ("image", "image-parse-v3", "openpose_json", "cloth", "cloth-mask"):
        (root / name).mkdir(parents=True)
    for i in range(count):
        pair = draw_pair(i, size=(256, 192))
        Image.fromarray(pair.person).save(root / "image" / f"{i:05d}_00.jpg")
        Image.fromarray(pair.parse).save(root / "image-parse-v3" / f"{i:05d}_00.png")
        person = {"pose_keypoints_2d": [float(v) for v in pair.keypoints.reshape(-1)]}
        (root / "openpose_json" / f"{i:05d}_00_keypoints.json").write_text(json.dumps({"people": [person]}))
        Image.fromarray(pair.cloth).save(root / "cloth" / f"{i:05d}_00.jpg")
        Image.fromarray(pair.cloth_mask).save(root / "cloth-mask" / f"{i:05d}_00.jpg")
    return root


def test_a_set_of_the_layout_becomes_a_pack_that_trains(tmp_path):
    root = write_set(tmp_path / "zip" / "mine" / "train")
    result = prepare(tmp_path / "zip", tmp_path / "out", never, height=256, report=lambda line: None)
    assert result == {"people": 6, "garments": 6, "skipped": []}
    pack = Pack(tmp_path / "out" / "pack.npz")
    assert len(pack.people("train")) + len(pack.people("val")) == 6 and pack.people("val")
    person = pack.person(0)
    pair = draw_pair(int(person.name[:5]), size=(256, 192))
    assert (person.parse == pair.parse).mean() > 0.99
    np.testing.assert_allclose(
        person.keypoints[pair.keypoints[:, 2] > 0], pair.keypoints[pair.keypoints[:, 2] > 0], atol=0.6
    )
    assert np.abs(person.image.astype(int) - pair.person).mean() < 6
    sample = Sampler(pack, (256, 192)).sample(np.random.default_rng(1), "worn")
    assert sample["segmentation"].shape == (256, 192)
    assert (root / "image" / "00000_00.jpg").is_file()  # what was given stays as it was


def test_bad_files_are_skipped_and_named_and_the_second_start_makes_only_what_is_missing(tmp_path, capsys):
    root = write_set(tmp_path / "set")
    good = (root / "image" / "00001_00.jpg").read_bytes()
    (root / "image" / "00001_00.jpg").write_bytes(b"not a picture")
    wrong = np.asarray(Image.open(root / "image-parse-v3" / "00002_00.png")).copy()
    wrong[5, 5] = 77
    Image.fromarray(wrong).save(root / "image-parse-v3" / "00002_00.png")
    (root / "openpose_json" / "00003_00_keypoints.json").write_text("{")
    Image.new("L", (10, 10)).save(root / "cloth-mask" / "00004_00.jpg")
    assert main([str(root), "--out", str(tmp_path / "out"), "--height", "256"]) == 0
    printed = capsys.readouterr()
    assert "3 people, 5 garments, 4 skipped" in printed.out and "12/12" in printed.out
    for words in (
        "image/00001_00.jpg",
        "00002_00.png holds the label 77, the largest known is 19",
        "00003_00_keypoints.json",
        "cloth-mask/00004_00.jpg and the photo differ in size",
    ):
        assert words in printed.err
        assert words in (tmp_path / "out" / "skipped.txt").read_text()

    (root / "image" / "00001_00.jpg").write_bytes(good)
    old = {f: f.stat().st_mtime_ns for f in (tmp_path / "out" / "image").iterdir()}
    result = prepare(root, tmp_path / "out", never, height=256, report=lambda line: None)
    assert result["people"] == 4 and len(result["skipped"]) == 3
    assert all(f.stat().st_mtime_ns == t for f, t in old.items() if f.stem != "00001_00")


def test_plain_photos_get_pose_parse_and_masks(tmp_path):
    for number, name in ((1, "anna"), (2, "berta b")):
        picture = Image.open(assets.examples_dir() / f"person-{number}.png").convert("RGB")
        (tmp_path / "photos").mkdir(exist_ok=True)
        picture.save(tmp_path / "photos" / f"{name}.jpg", quality=95)
    Image.new("RGB", (400, 600), "white").save(tmp_path / "photos" / "nobody.png")
    from vton.pipeline import load_network

    result = prepare(
        tmp_path / "photos",
        tmp_path / "out",
        lambda: load_network("parser", assets.model_dir("tryon-lite") / "parser"),
        height=256,
        report=lambda line: None,
    )
    assert result["people"] == 2 and result["garments"] == 0
    assert len(result["skipped"]) == 1 and "photos/nobody.png" in result["skipped"][0]
    parse = cv2.imread(str(tmp_path / "out" / "image-parse" / "berta_b.png"), cv2.IMREAD_UNCHANGED)
    assert parse.shape == (256, 192) and np.isin(parse, labels.UPPER_LIP).mean() > 0.05
    pack = Pack(tmp_path / "out" / "pack.npz")
    assert sorted(pack.names) == ["anna", "berta_b"]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda root: None, "holds no photos"),
        (lambda root: (root / "image").mkdir(), "holds no photos"),
        (
            lambda root: (root / "image").mkdir() or (root / "image" / "a.jpg").write_bytes(b"x"),
            "at least two are needed",
        ),
    ],
)
def test_an_empty_or_useless_folder_is_one_sentence(tmp_path, capsys, make, sentence):
    root = tmp_path / "root"
    root.mkdir()
    make(root)
    assert main([str(root), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    with pytest.raises(FileNotFoundError):
        find_set(tmp_path / "nowhere")
