"""Packed photographs: what goes in comes out, bad files are named and skipped, and the figures can be computed from a
folder.
"""

import itertools
import json

import cv2
import numpy as np
import pytest
from PIL import Image

from lab.tryon.evaluate import evaluate_networks
from lab.tryon.labelled import evaluate_parser
from lab.tryon.segmentation import evaluate_rules, evaluate_segmentation, region_figures
from lab.tryon.synthetic import draw_pair
from vton import labels
from vton.attributes import decode
from vton.data.draped.body import Body
from vton.data.draped.pack import Drapes
from vton.data.draped.people import load_people
from vton.data.pack import Pack, change_colours, main, pack
from vton.data.samples import Sampler
from vton.geometry import affine, move_points, warp_picture
from vton.joints import present
from vton.pipeline import TryOn
from vton.rules.sleeves import KINDS, sleeve_kind


def palette_png(file, parse):
    picture = Image.fromarray(parse, "P")
    picture.putpalette(labels.LIP_COLOURS.reshape(-1).tolist())
    picture.save(file)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Six drawn people and five drawn garments in the layout of the training data."""
    root = tmp_path_factory.mktemp("data")
    people, garments = root / "people", root / "garments"
    for name in ("image", "image-parse", "openpose-json", "person-mask", "carried"):
        (people / name).mkdir(parents=True)
    for name in ("cloth", "cloth-mask"):
        (garments / name).mkdir(parents=True)
    rows = ["id\tx0\ty0\tx1\ty1"]
    for i in range(6):
        drawn = draw_pair(100 + i, size=(512, 384), pose="down", sleeves="short" if i % 2 else "long")
        name = f"{i:04d}"
        cv2.imwrite(str(people / "image" / f"{name}.jpg"), drawn.person[..., ::-1])
        palette_png(people / "image-parse" / f"{name}.png", drawn.parse)
        cv2.imwrite(str(people / "person-mask" / f"{name}.png"), (drawn.parse > 0).astype(np.uint8) * 255)
        Image.fromarray((drawn.parse == 9) & (np.arange(384) < 192)).save(people / "carried" / f"{name}.png")
        record = {"people": [{"pose_keypoints_2d": drawn.keypoints.reshape(-1).tolist()}]}
        (people / "openpose-json" / f"{name}_keypoints.json").write_text(json.dumps(record))
        rows.append(f"{name}\t0\t0\t384\t512")
        kind = "tshirt" if i % 2 else "longsleeve"
        cv2.imwrite(str(garments / "cloth" / f"{kind}_{i:04d}.jpg"), drawn.cloth[..., ::-1])
        cv2.imwrite(str(garments / "cloth-mask" / f"{kind}_{i:04d}.png"), drawn.cloth_mask)
    (people / "viton_crop.tsv").write_text("\n".join(rows) + "\n")
    (people / "train.txt").write_text("0000 0001 0002 0003\n")
    (people / "val.txt").write_text("0004 0005\n")
    return people, garments


@pytest.fixture(scope="module")
def packed(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("pack") / "pack.npz"
    assert pack(*folders, out, height=256)["skipped"] == []
    return Pack(out)


def test_what_goes_in_comes_out(folders, packed):
    assert packed.people("train") == [0, 1, 2, 3] and packed.people("val") == [4, 5]
    assert set(packed.garments("train")) | set(packed.garments("val")) == set(range(6))
    assert not set(packed.garments("train")) & set(packed.garments("val"))
    person, drawn = packed.person(1), draw_pair(101, size=(512, 384), pose="down", sleeves="short")
    assert person.image.shape == (256, 192, 3) and person.parse.max() <= 19
    assert np.array_equal(person.parse, cv2.resize(drawn.parse, (192, 256), interpolation=cv2.INTER_NEAREST))
    np.testing.assert_allclose(person.keypoints[:, :2], drawn.keypoints[:, :2] / 2, atol=1e-3)
    assert (
        np.abs(person.image.astype(int) - cv2.resize(drawn.person, (192, 256), interpolation=cv2.INTER_AREA)).mean() < 4
    )
    assert person.carried.any() and person.person_mask.max() == 1


def test_a_broken_picture_is_skipped_and_named(folders, tmp_path):
    import shutil

    people = tmp_path / "people"
    shutil.copytree(folders[0], people)
    (people / "image" / "0002.jpg").write_bytes(b"broken")
    palette_png(people / "image-parse" / "0003.png", np.full((512, 384), 77, np.uint8))
    palette_png(people / "image-parse" / "0001.png", np.zeros((10, 10), np.uint8))
    report = pack(people, None, tmp_path / "pack.npz", height=128)
    assert report["people"] == 3
    assert [line.split(":")[0] for line in report["skipped"]] == ["0001", "0002", "0003"]
    assert "label 77" in report["skipped"][2]


def test_nothing_is_written_when_nothing_can_be_packed(folders, tmp_path):
    import shutil

    people = tmp_path / "people"
    shutil.copytree(folders[0], people)
    (people / "viton_crop.tsv").write_text("id\tx0\ty0\tx1\ty1\n0000\t0\t0\t384\t512\n")
    (people / "openpose-json" / "0000_keypoints.json").unlink()
    with pytest.raises(
        ValueError, match="No photograph of 'people' can be packed; the first reason: 0000: There is no keypoint"
    ):
        pack(people, None, tmp_path / "pack.npz", height=128)
    (people / "train.txt").write_text("0001\n")
    with pytest.raises(ValueError, match="the first reason: 0001: viton_crop.tsv holds no frame for it"):
        pack(people, None, tmp_path / "pack.npz", height=128)
    for name in ("train.txt", "val.txt"):
        (people / name).write_text("")
    with pytest.raises(ValueError, match="train.txt and val.txt hold no names"):
        pack(people, None, tmp_path / "pack.npz", height=128)
    (people / "carried").rename(people / "bags")
    with pytest.raises(FileNotFoundError, match="'people' has no folder carried"):
        pack(people, None, tmp_path / "pack.npz", height=128)
    with pytest.raises(FileNotFoundError, match="'people' has no folder cloth"):
        pack(folders[0], folders[0], tmp_path / "pack.npz", height=128)
    assert [f.name for f in tmp_path.iterdir()] == ["people"]


def test_missing_folder_and_foreign_file_are_one_sentence(tmp_path, capsys):
    assert main(["--people", str(tmp_path), "--out", str(tmp_path / "x.npz")]) == 2
    assert capsys.readouterr().err == f"error: '{tmp_path.name}' has no folder image.\n"
    with pytest.raises(FileNotFoundError, match="python -m vton.data"):
        Pack(tmp_path / "none.npz")


@pytest.mark.parametrize("content", [b"", b"x", b"PK\x03\x04 nothing", b"\x93NUMPY\x01\x00", None])
@pytest.mark.parametrize("read", [Pack, Drapes, Body.load])
def test_what_is_no_packed_file_is_one_sentence(read, content, tmp_path):
    file = tmp_path / "x.npz"
    if content is None:  # whole, but of something else
        np.savez(file, other=np.arange(3))
    else:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=r"^'x.npz' is not a .* \("):
        read(file)


def test_samples_of_photographs_are_consistent(packed):
    sampler = Sampler(packed, (256, 192))
    sample = sampler.sample(np.random.default_rng(3), "worn")
    worn = sample["worn_mask"][0]
    assert worn.mean() > 0.03
    assert (sample["segmentation"][worn] == 3).mean() > 0.9  # the worn garment lies in the upper class of the truth
    assert (sample["worn"][~worn] == 246).all() and (sample["cloth"][~sample["cloth_mask"][0]] == 246).all()
    assert not sample["parse_agnostic"][3].any()  # no garment is left in S_a
    again = Sampler(packed, (256, 192)).sample(np.random.default_rng(3), "worn")
    assert all(np.array_equal(sample[k], again[k]) for k in sample)


def test_each_usable_person_comes_once(packed, monkeypatch):
    sampler, asked, photo = Sampler(packed, (256, 192)), [], Sampler._photo

    def first_is_unusable(self, rng, augment, index):
        asked.append(index)
        return photo(self, rng, augment, index) if index else None

    monkeypatch.setattr(Sampler, "_photo", first_is_unusable)
    pictures = [sample["person"] for sample in sampler.each("worn", 9)]
    assert asked == list(range(len(sampler.people))) and len(pictures) == len(asked) - 1 > 0
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    draped = Sampler(None, (128, 96), draped=load_people((128, 96)))
    endless = list(itertools.islice(draped.each("draped", 9), 3))
    again = next(iter(draped.each("draped", 9)))
    assert len(endless) == 3 and np.array_equal(again["person"], endless[0]["person"])


def test_of_a_worn_garment_the_sleeves_are_those_that_the_parse_shows(packed):
    sample = Sampler(packed, (256, 192)).sample(np.random.default_rng(3), "worn")
    assert decode(sample["attributes"], "sleeves") == sleeve_kind(sample["segmentation"], sample["keypoints"])


def test_what_a_bag_hides_does_not_count(packed):
    """Nobody knows what is behind a bag on a photograph: a prediction that differs only there is not worse."""
    sample = Sampler(packed, (256, 192), "val").sample(np.random.default_rng(1), "worn")
    truth, bag = sample["segmentation"], np.zeros((256, 192), bool)
    ys, xs = np.nonzero(truth == 3)
    bag[int(np.median(ys)) :, int(np.median(xs)) :] = True
    other = np.where(bag, np.uint8(0), truth)
    assert region_figures(other, sample, "worn")["region_iou"] < 0.9
    sample["carried"] = bag[None]
    assert region_figures(other, sample, "worn")["region_iou"] == 1


def test_affine_box_mirror_and_points():
    box = np.array([10, 20, 40, 60], float)
    matrix = affine(box, (80, 60))
    np.testing.assert_allclose(matrix @ [10, 20, 1], [0, 0], atol=1e-9)
    np.testing.assert_allclose(matrix @ [40, 60, 1], [60, 80], atol=1e-9)
    mirrored = affine(box, (80, 60), mirror=True)
    np.testing.assert_allclose(mirrored @ [40, 20, 1], [0, 0], atol=1e-9)
    keypoints = np.zeros((25, 3), np.float32)
    keypoints[4] = (10, 20, 1)  # right wrist
    moved = move_points(keypoints, mirrored, mirror=True)
    assert moved[7].tolist() == [60, 0, 1] and not moved[4].any()
    assert not present(move_points(keypoints, matrix))[[0, 1, 7]].any()
    picture = np.zeros((80, 60), np.uint8)
    picture[30:40, 20:30] = 7
    assert warp_picture(picture, matrix, (80, 60), nearest=True)[30, 30] == 7


def test_colour_changes_are_seeded_and_stay_in_range():
    picture = np.random.default_rng(0).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    one, same, other = (change_colours(picture, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other) and one.dtype == np.uint8


@pytest.mark.slow
def test_figures_of_the_parser_and_the_networks(folders, packed):
    tryon = TryOn.from_pretrained("tryon-lite", device="cpu")
    report = evaluate_parser(tryon.parser, folders[0])
    assert report["photographs"] == 2 and report["iou"]["background"] > 0.9
    assert 0 < report["mean_iou"] < 1 and "upper" in report["iou_in_frame"]
    figures = evaluate_networks(tryon, None, count=2)["draped"]
    assert figures["pairs"] == 2
    assert 0.3 < figures["region_iou"] <= 1 and figures["covered_fitted"] >= figures["covered"]
    assert {"ssim", "ssim_instance", "ssim_pasted", "region_iou_rules"} <= set(figures)
    alone = evaluate_segmentation(tryon, None, count=1)["draped"]
    assert alone["region_iou"] > 0.3 and {f"told_{kind}" for kind in KINDS} <= set(alone)
    rules = evaluate_rules(tryon, None, count=1)
    names = ("none", "closed cloth", "straight hem", "sleeves", "all")
    assert set(rules) == {f"draped, {name}" for name in names}
    assert rules["draped, none"]["changed"] == rules["draped, none"]["acted"] == 0
    assert rules["draped, all"]["acted"] == max(rules[f"draped, {name}"]["acted"] for name in names)
    assert all(0 <= row["changed"] <= row["acted"] <= 1 for row in rules.values())
    (folders[0] / "image-parse" / "0004.png").rename(folders[0] / "image-parse" / "moved.png")
    with pytest.raises((ValueError, OSError)):
        evaluate_parser(tryon.parser, folders[0])
