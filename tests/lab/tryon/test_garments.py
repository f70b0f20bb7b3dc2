"""The garment reader on the project's folders: openings marked by eye, corrected necklines, V necks made of round ones,
and the figures on labelled pictures.
"""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from lab.tryon import garments
from lab.tryon.garment_folders import names_of, read_folder
from lab.tryon.garments import (
    GarmentRecipe,
    GarmentTask,
    MarkedGarments,
    draw_opening,
    neck_openings,
    with_v_neck,
)
from lab.tryon.labelled import garment_confusion, main
from tests.lab.tryon.garment_folder import folder  # noqa: F401
from training.weights import save_model
from vton.data.garments import GarmentPicture
from vton.inputs.reading import Reading
from vton.networks.garment_reader import GROUPS, VALUES, GarmentReader, GarmentReaderConfig
from vton.recipes import garment


def test_corrected_necklines_are_learned_and_never_measured(folder, monkeypatch, tmp_path):  # noqa: F811
    (tmp_path / "necklines.tsv").write_text("folder\tid\tneckline\ngarments_more\tg2\tv\ngarments\tg3\tcollar\n")
    monkeypatch.setattr(garments, "__file__", str(tmp_path / "garments.py"))
    (tmp_path / "openings.tsv").write_text("folder\tid\n")
    neck_openings.cache_clear()
    try:
        learned = {p.name: p.attributes["neckline"] for p in MarkedGarments(folder).sources["photo"]}
        assert learned.pop("g2") == "v" and set(learned.values()) == {"round"}
        assert read_folder(folder / "garments_more", ["g2"])[0].attributes["neckline"] == "round"
    finally:
        neck_openings.cache_clear()


def test_corrections_name_necklines_that_there_are():
    with Path(garments.__file__).with_name("necklines.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 5 and all(row["neckline"] in VALUES["neckline"] for row in rows)
    assert len({(row["folder"], row["id"]) for row in rows}) == len(rows)


def test_evaluate_garments_on_folders(folder, tmp_path, capsys):  # noqa: F811
    torch.manual_seed(0)
    tiny = GarmentReaderConfig(widths=(4, 4, 8, 8, 8), blocks=(0, 0, 0, 0, 0), pyramid=(4, 4, 4, 4, 4), placed=2)
    save_model(tmp_path / "garment", asdict(tiny), GarmentReader(tiny).state_dict())
    where = ["--data", str(folder / "garments_more"), str(folder / "not_upper"), "--model", str(tmp_path / "garment")]
    assert main(["garments", *where]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["sleeves_pictures"] == figures["mask_iou_pictures"] == 10 and figures["upper_pictures"] == 12
    assert sum(n for row in figures["taken_for"]["sleeves"].values() for n in row.values()) == 10
    assert main(["garments", *where, "--held-out"]) == 0
    assert json.loads(capsys.readouterr().out)["upper_pictures"] == 3
    assert main(["garments", "--data", str(tmp_path), *where[3:]]) == 2
    assert "neither attributes.tsv nor kinds.tsv" in capsys.readouterr().err


def test_a_marked_opening_is_what_lies_above_the_neckline_on_the_garment():
    mask = np.zeros((100, 80), np.uint8)
    mask[10:90, 10:70] = 255
    round_, pointed = (draw_opening((0.3, 0.15, 0.7, 0.15, 0.5, 0.4, power), mask) > 127 for power in (2.0, 1.0))
    for found in (round_, pointed):
        rows, columns = np.nonzero(found)
        assert not found[mask == 0].any() and rows.min() == 10 and rows.max() == pytest.approx(40, abs=1)
        assert columns.min() == pytest.approx(24, abs=1) and columns.max() == pytest.approx(56, abs=1)
    # On the way from the lowest point to an end a V has risen by a half where a parabola has risen by a quarter.
    assert [np.nonzero(found[:, 48])[0].max() for found in (round_, pointed)] == pytest.approx([33.75, 27.5], abs=1.2)
    assert not draw_opening((), mask).any()


def test_a_hood_is_marked_however_wide_it_is():
    mask = np.zeros((100, 80), np.uint8)
    mask[10:30, 15:65] = mask[30:90, 10:70] = 255  # wider than its base, which is marked
    found = draw_opening((0.3, 0.3, 0.7, 0.3, 0.5, 0.35, 2.0), mask, hood=True) > 127
    assert found[10:29, 15:65].all() and found[33, 39:41].all() and not found[36:].any() and not found[mask == 0].any()


def test_a_round_neck_becomes_a_v_that_shows_the_inside_of_the_back():
    image, mask = np.full((120, 100, 3), (200, 40, 40), np.uint8), np.zeros((120, 100), np.uint8)
    mask[10:110, 10:90] = 255
    mark = (0.35, 0.1, 0.65, 0.1, 0.5, 0.2, 2.0)
    opening = draw_opening(mark, mask)
    image[opening > 0], image[mask == 0] = (20, 20, 120), 255
    tee = GarmentPicture("tee", image, mask, {"neckline": "round", "sleeves": "short"}, opening=opening)
    made = with_v_neck(tee, mark, np.random.default_rng(0))
    assert made.attributes == {"neckline": "v", "sleeves": "short"} and tee.attributes["neckline"] == "round"
    np.testing.assert_array_equal(made.image[mask == 0], image[mask == 0])
    np.testing.assert_array_equal(made.image[60:], image[60:])
    rows, widths = np.flatnonzero(made.opening.any(1)), (made.opening > 0).sum(1)
    assert rows[-1] > np.flatnonzero(opening.any(1))[-1] + 3  # deeper than it was
    slopes = np.diff(widths[12 : rows[-1] - 1])
    assert (slopes <= 0).all() and slopes.std() < 1.2  # straight sides
    inside = made.image[cv2.erode(made.opening, np.ones((7, 7))) > 0].astype(int)
    assert (inside[:, 2] > inside[:, 0]).all()  # blue as the back, not red as the front
    with pytest.raises(ValueError, match="opening"):
        with_v_neck(replace(tee, opening=None), mark, np.random.default_rng(0))


def test_every_mark_is_a_place_in_its_picture():
    marks = neck_openings()
    seen = [mark for mark in marks.values() if mark]
    assert len(seen) > 160 and len(marks) - len(seen) > 20
    for left_x, left_y, right_x, right_y, bottom_x, bottom_y, power in seen:
        assert 0 <= left_x < bottom_x < right_x <= 1 and 0 <= max(left_y, right_y) < bottom_y <= 1 and 1 <= power <= 3


def test_marked_pictures_are_a_source_and_all_of_those_held_out_are_measured(folder, monkeypatch):  # noqa: F811
    mark = (0.4, 0.2, 0.6, 0.2, 0.5, 0.3, 2.0)
    held, kept = (names_of(folder / "garments_more", held_out=held_out) for held_out in (True, False))
    marks = {("garments_more", name): mark for name in (held[-1], kept[0])} | {("garments_more", kept[1]): ()}
    monkeypatch.setattr(garments, "neck_openings", lambda: marks)
    task = GarmentTask(GarmentRecipe(data=str(folder), height=96, width=64, batch=1))
    drawn = {p.name: p for p in task.garments.sources["marked"]}
    assert set(drawn) == set(kept[:2]) and not drawn[kept[1]].opening.any()
    assert [p.name for p in task.garments.sources["marked"]].count(kept[0]) == 2  # once more with a V
    measured = [(p.name, p.opening is not None) for p in task.validation(3)]
    assert measured.count((held[-1], True)) == 1 and not {name for name, _ in measured} & set(kept)


def test_with_the_pyramid_alone_attributes_stay_as_they_are(folder):  # noqa: F811
    task = GarmentTask(GarmentRecipe(data=str(folder), height=96, width=64, batch=2, pyramid=True))
    model, image, prior = task.networks["model"], torch.rand(2, 3, 96, 64), torch.zeros(2, 1, 96, 64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    mask, logits, _ = model.eval()(image, prior)
    model.train()
    _, _, opening = model(image, prior)
    opening.sum().backward()
    task.optimizers["model"].step()
    changed = {name.split(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"side", "smooth", "opening"}
    again, same, _ = model.eval()(image, prior)
    assert all(torch.equal(same[name], logits[name]) for name in logits) and not torch.equal(again, mask)


def test_what_was_taken_for_what():
    values = {name: dict.fromkeys(v, 0.0) for name, v in VALUES.items()}
    groups = {name: {group: float(group == "round") for group in GROUPS[name]} for name in GROUPS}
    reading = Reading(np.zeros((4, 4)), np.zeros((4, 4)), groups, values)
    assert garment_confusion("neckline", [reading, reading], [{"neckline": "v"}, {}]) == {"v": {"round": 1}}


def test_folders_are_read_and_what_is_held_out_is_never_drawn(folder):  # noqa: F811
    held, kept = (names_of(folder / "garments_more", held_out=h) for h in (True, False))
    assert sorted(held + kept) == sorted(names_of(folder / "garments_more")) and not set(held) & set(kept)
    pictures = read_folder(folder / "garments_more", ["g2", "g1"])
    assert pictures[0].attributes == {"sleeves": "long", "neckline": "round", "view": "flat", "kind": "upper"}
    assert [p.sure for p in pictures] == [0.5, 1.0] and not pictures[0].cut
    assert pictures[0].image.shape == (256, 192, 3) and pictures[0].mask.shape == (256, 192)
    assert read_folder(folder / "garments_more", ["g2"], longest=128)[0].image.shape == (128, 96, 3)
    assert [p.attributes for p in read_folder(folder / "not_upper", ["p0", "p1"])] == [
        {"kind": "pants"},
        {"kind": "skirt"},
    ]
    drawn = MarkedGarments(folder)
    assert {p.name for p in drawn.sources["photo"]} == set(kept) and {p.name for p in drawn.sources["other"]} == {"p1"}
    with pytest.raises(ValueError, match="no readable picture of 'g99'"):
        read_folder(folder / "garments_more", ["g99"])


def test_a_sample_knows_what_may_be_true_and_nothing_more(folder):  # noqa: F811
    task = GarmentTask(GarmentRecipe(data=str(folder), height=96, width=64, batch=1))
    seen = set()
    for i in range(40):
        sample = task.sample_one(np.random.default_rng(i))
        assert sample["image"].shape == (96, 64, 3) and sample["prior"].shape == sample["mask"].shape == (1, 96, 64)
        kind, second = sample["candidates_kind"], bool(sample["prior"].any())
        uppers = len(GROUPS["kind"]["upper"])
        seen.add((kind.sum(), second))
        assert kind.sum() in (1, uppers, len(kind)) and (kind.sum() == len(kind)) == second
        if kind.sum() == 1:  # trousers: no mask is learned
            assert kind[uppers:].any() and (sample["mask"] == -1).all() and sample["candidates_sleeves"].all()
        else:
            assert sample["mask"].min() >= 0 and sample["mask"].max() <= 1 and 0.05 < sample["mask"].mean() < 0.95
    assert len(seen) == 3


def test_a_look_at_the_neck_teaches_neckline_mask_and_opening_alone(folder):  # noqa: F811
    recipe = GarmentRecipe(data=str(folder), height=96, width=64, batch=1, second=0.0, neck=1.0)
    task, looks = GarmentTask(recipe), 0
    for i in range(40):
        sample = task.sample_one(np.random.default_rng(i))
        if not sample["prior"].any():  # no upper garment, or none whose mask is known
            continue
        looks += 1
        assert all(sample[f"candidates_{name}"].all() for name in VALUES if name != "neckline")
        assert sample["mask"].min() == 0 and sample["mask"][0, -1].mean() > 0.5  # the trunk runs out of the frame
    assert looks > 10 and task.networks["model"].config.neck


def test_a_run_on_folders_goes_on_here_alone(folder):  # noqa: F811
    plain, here = asdict(garment.GarmentRecipe(steps=7)), asdict(GarmentRecipe(data=str(folder), pyramid=True))
    earlier = {"data": "", "pyramid": False, "opening": True, "drawn": 12}
    assert garment.GarmentRecipe.restore(plain | earlier) == garment.GarmentRecipe(steps=7)
    with pytest.raises(ValueError, match="field 'data'"):
        garment.GarmentRecipe.restore(here)
    assert GarmentRecipe.restore(here | {"opening": True}) == GarmentRecipe(data=str(folder), pyramid=True)
