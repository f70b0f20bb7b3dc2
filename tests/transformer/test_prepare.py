"""Cleaning and splitting tables into a training folder."""

import json

import pytest

from transformer.data import read_parallel
from transformer.prepare import main, prepare, reason_to_drop, split_of
from transformer.tokenizer import Tokenizer


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


def test_no_held_out_translation_is_in_train():
    pairs = [(f"Sentence number {i}.", f"Satz {i % 50}.") for i in range(1000)]
    splits, dropped = prepare(pairs, val=0.01, test=0.01)
    held_out = {target for name in ("val", "test") for _, target in splits[name]}
    assert held_out and not held_out & {target for _, target in splits["train"]}
    assert sum(map(len, splits.values())) + dropped["its translation is held out"] == 1000


def test_several_languages_make_one_table(tmp_path, capsys):
    (tmp_path / "one.tsv").write_text(
        "en\tde\n" + "".join(f"word {i}\tWort {i}\n" for i in range(100)), encoding="utf-8"
    )
    (tmp_path / "two.csv").write_text("fr,en\n" + "".join(f"mot {i},word {i}\n" for i in range(60)), encoding="utf-8")
    (tmp_path / "three.tsv").write_text("en\tde\tfr\nA dog.\tEin Hund.\tUn chien.\n", encoding="utf-8")
    (tmp_path / "bad.tsv").write_bytes(b"\xff\xfe\x00")
    files = [str(tmp_path / name) for name in ("one.tsv", "two.csv", "three.tsv", "bad.tsv", "missing.tsv")]
    argv = ["--data", *files, "--source", "en", "--target", "de", "fr", "--val", "0.1", "--test", "0.1"]
    argv += ["--vocab-size", "70", "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    printed = capsys.readouterr()
    counts = json.loads(printed.out)
    assert sorted(counts["skipped"]) == sorted(files[3:]) and "5/5 missing.tsv: 0 pairs" in printed.err
    assert counts["train"] + counts["val"] + counts["test"] == 162
    german = {s: read_parallel(tmp_path / "out" / f"{s}.tsv.gz", "en", "de") for s in ("train", "val", "test")}
    french = {s: read_parallel(tmp_path / "out" / f"{s}.tsv.gz", "en", "fr") for s in ("train", "val", "test")}
    assert sum(map(len, german.values())) == 101
    # the same English sentence is in the same split for both languages
    for split, pairs in german.items():
        assert {s for s, _ in french[split]} - {s for s, _ in pairs} == set()
        assert len(set(french[split])) == len(french[split])
    origins = {row for row, _ in read_parallel(tmp_path / "out" / "train.tsv.gz", "origin", "en")}
    assert origins <= {"one", "two", "three"} and len(origins) >= 2
    tokenizer = Tokenizer.load(tmp_path / "out" / "tokenizer.model")
    assert all(tokenizer.id(piece) > 3 for piece in ("<2en>", "<2de>", "<2fr>", "<x1>", "<x4>"))
    assert not list((tmp_path / "out").glob("*.part"))


def test_an_interrupted_run_goes_on(tmp_path, capsys, monkeypatch):
    for name, word in (("one", "red"), ("two", "blue"), ("bad", "")):
        rows = "".join(f"{word} word {i}\t{word} Wort {i}\n" for i in range(100)) if word else ""
        (tmp_path / f"{name}.tsv").write_text(f"en\tde\n{rows}", encoding="utf-8")
    argv = ["--data", *(str(tmp_path / f"{n}.tsv") for n in ("one", "two", "bad")), "--source", "en", "--target", "de"]
    argv += ["--vocab-size", "40", "--val", "0.1"]
    assert main([*argv, "--out", str(tmp_path / "whole")]) == 0
    expected = json.loads(capsys.readouterr().out)
    out = tmp_path / "out"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Tokenizer, "train", interrupted)
        main([*argv, "--out", str(out)])
    assert len(list((out / "unfinished").iterdir())) == 2
    with (tmp_path / "two.tsv").open("a", encoding="utf-8") as file:  # one table grows in the meantime
        file.write("a new word\tein neues Wort\n")
    capsys.readouterr()
    assert main([*argv, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "one.tsv: 100 pairs, read before\n" in printed.err and "two.tsv: 101 pairs\n" in printed.err
    counts = json.loads(printed.out)
    assert counts["skipped"] == expected["skipped"] and "bad.tsv" in str(counts["skipped"])
    assert counts["train"] + counts["val"] + counts["test"] == sum(expected[s] for s in ("train", "val", "test")) + 1
    whole = read_parallel(tmp_path / "whole" / "train.tsv.gz", "en", "de")
    found = read_parallel(out / "train.tsv.gz", "en", "de")
    assert [pair for pair in found if pair[0] != "a new word"] == whole
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in (tmp_path / "whole").iterdir())


def test_mistakes_are_one_sentence(tmp_path, capsys):
    argv = ["--data", str(tmp_path / "no.tsv"), "--source", "en", "--target", "de", "--out", str(tmp_path / "out")]
    assert main(argv) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ") and "No table could be read. There is no file" in error
