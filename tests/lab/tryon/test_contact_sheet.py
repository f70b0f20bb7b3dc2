"""Many try-ons on one picture, from folders of photographs."""

import shutil

import numpy as np
import pytest
from PIL import Image

from lab.tryon import contact_sheet
from training.assets import examples_dir
from vton.contact_sheet import Row, draw


@pytest.fixture
def folders(tmp_path):
    people, garments = tmp_path / "people", tmp_path / "garments"
    people.mkdir()
    garments.mkdir()
    for name in ("person-1.png", "person-2.png"):
        shutil.copy(examples_dir() / name, people)
    shutil.copy(examples_dir() / "garment-stripes.png", garments / "b-stripes.png")
    (garments / "a-broken.jpg").write_text("no picture")
    (garments / "notes.txt").write_text("not looked at")
    return people, garments


def test_a_sheet_from_two_folders_with_one_bad_pair(folders, tmp_path, capsys):
    people, garments = folders
    target = tmp_path / "made" / "sheet.png"
    arguments = [
        "--people",
        str(people),
        "--garments",
        str(garments),
        "--out",
        str(target),
        "--size",
        "256x192",
        "--cell",
        "128",
    ]
    assert contact_sheet.main([*arguments, "--maps", "segmentation,pasted", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "person-1 + a-broken: This file is not a picture" in said and "1 results, 1 refused" in said
    sheet = np.asarray(Image.open(target))
    assert sheet.shape[1] == 5 * (96 + 6) + 6
    # The good pair's cells hold pictures, the bad pair's have no map.
    lower, upper = sheet[-150:-30], sheet[60:180]
    left, right = 6 + 2 * 102, 6 + 3 * 102
    assert lower[:, left:right].std() > 30 and lower[:, right : right + 96].std() > 30
    assert upper[:, 6:102].std() > 30


def test_more_rows_than_a_sheet_holds_go_to_the_next(tmp_path):
    table = [Row(f"row {i}", (), "", "Refused for a reason.") for i in range(3)]
    one = draw(table[:1], ("pose",), (64, 48))
    assert draw(table, ("pose",), (64, 48)).shape[0] == one.shape[0] + 2 * (64 + 20 + 6)


def test_pairs_walk_both_lists_or_take_every_one():
    people, garments = ["a", "b", "c"], ["x", "y"]
    assert contact_sheet.pairs(people, garments) == [("a", "x"), ("b", "y"), ("c", "x")]
    assert contact_sheet.pairs(people, garments, every=True) == [(p, g) for p in people for g in garments]
    assert contact_sheet.pairs(people, garments, count=5)[3:] == [("a", "y"), ("b", "x")]
    assert len(contact_sheet.pairs(["a"] * 100, ["x"] * 100, every=True)) == contact_sheet.MAX_PAIRS
    assert contact_sheet.pairs(people, garments, seed=1) == contact_sheet.pairs(people, garments, seed=1)


@pytest.mark.parametrize(
    "change, words",
    [
        (["--maps", "soul"], "no map 'soul'"),
        (["--people", "nowhere"], "nowhere"),
        (["--out", "x.gif"], "x.gif"),
        (["--cell", "5"], "--cell"),
        (["--size", "3x4"], "size must be one of"),
        (["--model", "no-such"], "no-such"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(folders, tmp_path, capsys, change, words):
    given = {
        "--people": str(folders[0]),
        "--garments": str(folders[1]),
        "--out": str(tmp_path / "s.png"),
        **dict([change]),
    }
    assert contact_sheet.main([part for pair in given.items() for part in pair]) == 2
    message = capsys.readouterr().err
    assert words in message and message.startswith("error: ") and message.count("\n") == 1
