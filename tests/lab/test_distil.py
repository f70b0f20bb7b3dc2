import gzip
import json

import pytest

from lab.translator import distil
from transformer import Translator
from transformer.data import read_parallel
from transformer.options import SearchOptions


def test_the_truth_comes_first_and_nothing_stands_twice_or_empty():
    pairs = [("a", "A"), ("a", "B"), ("b", "C"), ("c", "D")]
    rows = distil.add_teacher(pairs, ["B", "B", "X", ""])
    assert rows == [
        ("a", "A", "true"),
        ("a", "B", "true"),
        ("b", "C", "true"),
        ("c", "D", "true"),
        ("b", "X", "teacher"),
    ]
    with pytest.raises(ValueError):
        distil.add_teacher(pairs, ["B"])


def test_the_table_holds_what_the_teacher_says_in_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(distil, "CHUNK", 2)
    sources = ["A man is sleeping.", "Two dogs play in the snow.", "A girl is eating an apple."]
    teacher = Translator.from_pretrained("multi30k-en-de", device="cpu")
    said = [teacher.translate(s, beam=5).text for s in sources]
    table, out = tmp_path / "some.tsv", tmp_path / "more" / "train.tsv.gz"
    table.write_text("en\tde\n" + "".join(f"{s}\t{t}\n" for s, t in zip(sources, ["Falsch.", said[1], "Auch falsch."])))
    arguments = [
        "--model",
        "multi30k-en-de",
        "--data",
        str(table),
        "--source",
        "en",
        "--target",
        "de",
        "--device",
        "cpu",
    ]
    assert distil.main([*arguments, "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "true": 3,
        "teacher": 2,
        "beam": 5,
        "alpha": 0.6,
        "closest": False,
        "least": 0.0,
    }
    assert read_parallel(out, "en", "de")[3:] == [(sources[0], said[0]), (sources[2], said[2])]
    origins = [line.split("\t")[2] for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert origins == ["origin", "true", "true", "true", "teacher", "teacher"]


def test_the_closest_of_the_best_is_the_one_nearest_to_the_truth():
    teacher = Translator.from_pretrained("multi30k-en-de", device="cpu")
    source = "Two dogs play in the snow."
    best = [h.text for h in teacher.translate(source, beam=5, n_best=5).hypotheses]
    pairs = [(source, text) for text in (best[3], best[0], best[2])]
    assert list(distil.teacher_rows(teacher, pairs, "en", "de", SearchOptions(5), closest=True)) == [
        [best[3], best[0], best[2]]
    ]
    assert list(distil.teacher_rows(teacher, pairs, "en", "de", SearchOptions(5))) == [[best[0]] * 3]
    pairs[1] = (source, "Etwas ganz anderes.")
    for quick in (False, True):
        (found,) = distil.teacher_rows(
            teacher, pairs, "en", "de", closest=True, least=30.0, options=SearchOptions(5, quick=quick)
        )
        assert found[1] == "" and (quick or found == [best[3], "", best[2]])


def test_bad_input_gets_a_sentence_before_any_work(tmp_path, capsys):
    table = tmp_path / "some.tsv"
    table.write_text("en\tde\na\tb\n")
    base = ["--model", "multi30k-en-de", "--source", "en", "--device", "cpu", "--data", str(table)]
    assert distil.main([*base, "--target", "de", "--out", str(tmp_path / "train.tsv")]) == 2
    assert "has to end in .tsv.gz" in capsys.readouterr().err
    assert distil.main([*base, "--target", "fr", "--out", str(tmp_path / "train.tsv.gz")]) == 2
    assert "fr" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "train.tsv.gz").exists()
