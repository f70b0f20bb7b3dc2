"""Cleaning and splitting tables into a training folder."""

import json

import pytest

from transformer.data import read_parallel
from transformer.prepare import main, prepare, reason_to_drop, split_of


def test_what_is_dropped_and_why():
    good = ("A dog runs.", "Ein Hund rennt.")
    assert reason_to_drop(*good, 100, 3.0) is None
    assert reason_to_drop("a " * 5, "b", 4, 3.0) == "too long"
    assert reason_to_drop("A short one.", "x" * 60, 100, 3.0) == "lengths differ too much"
    assert reason_to_drop("Yes.", "Jawohl, gern.", 100, 3.0) is None  # short texts may differ
    assert reason_to_drop("left as it was", "left as it was", 100, 3.0) == "copied, not translated"
    assert reason_to_drop("Berlin", "Berlin", 100, 3.0) is None
    splits, dropped = prepare([good, good, ("A b", "A b")], val=0, test=0)
    assert splits["train"] == [good] and dropped == {"twice": 1, "copied, not translated": 1}


def test_a_source_is_in_one_split_only():
    pairs = [(f"Sentence number {i}.", f"Satz Nummer {i}, {v}.") for i in range(2000) for v in "ab"]
    splits, _ = prepare(pairs, val=0.1, test=0.2)
    sources = {name: {s for s, _ in part} for name, part in splits.items()}
    assert sum(map(len, sources.values())) == 2000  # no source is in two
    assert abs(len(sources["val"]) - 200) < 50 and abs(len(sources["test"]) - 400) < 70
    assert prepare(reversed(pairs), val=0.1, test=0.2)[0]["val"] == splits["val"][::-1]  # not a matter of order
    assert split_of("Hello", 0.5, 0.5) == split_of("HELLO", 0.5, 0.5)


def test_the_command_writes_what_training_reads(tmp_path, capsys):
    rows = [f'"질문, {i}","답변 {i}"' for i in range(200)]
    (tmp_path / "a.csv").write_text("Instruction,Response\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text('Instruction\tResponse\n"x\ty"\n', encoding="utf-8")
    argv = ["--data", str(tmp_path / "a.csv"), str(tmp_path / "b.tsv")]
    argv += ["--source", "Instruction", "--target", "Response"]
    assert main([*argv, "--out", str(tmp_path / "out"), "--val", "0.1", "--test", "0"]) == 0
    counts = json.loads(capsys.readouterr().out)
    train = read_parallel(tmp_path / "out" / "train.tsv.gz", "Instruction", "Response")
    val = read_parallel(tmp_path / "out" / "val.tsv.gz", "Instruction", "Response")
    assert (len(train), len(val)) == (counts["train"], counts["val"]) and len(train) + len(val) == 201
    assert not (tmp_path / "out" / "test.tsv.gz").exists()
    assert main([*argv[:3], "--source", "X", "--target", "Y", "--out", str(tmp_path / "o")]) == 2
    assert "no column 'X'" in capsys.readouterr().err


def test_shares_that_make_no_sense_say_so():
    with pytest.raises(ValueError, match="shares"):
        prepare([("a", "b")], val=0.7)
    with pytest.raises(ValueError, match="No pair"):
        prepare([("a b", "a b")])
