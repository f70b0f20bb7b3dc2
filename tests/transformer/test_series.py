"""A run recorded as a series, and what it shows of one sentence."""

import json
import math

import pytest

from lab.translator.series import main
from transformer import series, train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    arguments = [
        "--steps",
        "6",
        "--save-every",
        "3",
        "--evaluate-every",
        "3",
        "--tokens",
        "256",
        "--bleu",
        "4",
        "--vocab-size",
        "300",
        "--threads",
        "1",
    ]
    assert train.main(["--preset", "tiny", "--run", str(folder), *arguments]) == 0
    return folder


def test_a_recorded_series_says_what_the_checkpoints_say(run, tmp_path, capsys):
    assert main(["--run", str(run), "--steps", "3", "6", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("3 {")
    found = series.Series.load(tmp_path / "out")
    assert found.steps == [3, 6] and set(found.figures_at(6)) >= {"bleu", "perplexity"}
    assert found.figures_at(-1) == {}
    moment = found.moment("the dog sees a cat", 6)
    assert moment.step == 6 and moment.figures == found.figures_at(6)
    if moment.attention is not None:
        assert 0 <= moment.entropy("cross", 0, 1) <= math.log(moment.attention.cross.shape[-1]) + 1e-6
    from transformer.export import export

    export(run, tmp_path / "one", 3)
    from transformer import Translator

    assert Translator.from_pretrained(tmp_path / "one").translate("the dog", beam=1).text == (
        found.moment("the dog", 3).translation.text
    )


def test_mistakes_are_one_sentence(run, tmp_path):
    with pytest.raises(ValueError, match="no checkpoint of update 4"):
        series.record(run, tmp_path / "out", [4])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    with pytest.raises(ValueError, match="is not empty"):
        series.record(run, tmp_path / "full")
    with pytest.raises(ValueError, match="no recorded series"):
        series.Series.load(tmp_path)
    (tmp_path / "series.json").write_text(json.dumps({"format": "other", "steps": [1], "figures": {}}))
    with pytest.raises(ValueError, match="of this program"):
        series.Series.load(tmp_path)
    with pytest.raises(ValueError, match="it has 3"):
        series.record(run, tmp_path / "again", [3]).translator(9)
