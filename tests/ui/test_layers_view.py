"""The views of what layers know and of learning in time: every number shown is the library's, every text escaped."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from transformer import train
from transformer.insight.contributions import contributions
from transformer.insight.lenses import logit_lens
from ui import page
from ui.services import Services
from ui.translate import answers, layers, learning
from ui.translate.api import lens_answer
from ui.translate.view import CurrentTranslation


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    return Services(translation_model="multi30k-en-de", device="cpu", runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def current(services):
    translator = services.translator()
    translation = translator.translate("A man is riding a <b>bicycle</b>.", "en", "de")
    return CurrentTranslation(translation, attention=translator.attend(translation), model=None, pair="en-de")


@pytest.fixture(scope="module")
def view(services):
    made = {}
    build = layers.LayersView.__init__

    def keep(self, *arguments, **options):
        build(self, *arguments, **options)
        made["view"] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers.LayersView, "__init__", keep)
        page.build(services)
    return made["view"]


@pytest.fixture(scope="module")
def readings(services):
    return learning.moments(services.runs, learning.RECORDING, "A dog.")


def test_the_lens_table_shows_the_librarys_numbers(services, current):
    lens = logit_lens(services.translator(), current.translation)
    drawn = layers.lens_html(lens)
    assert drawn.count("<tr>") == len(lens.tokens) + 1 and drawn.count("lens-cell") == lens.ranks.size
    # The end has a name in the page's language, which is found where it is all that an element says.
    texts = re.sub(r'title="[^"]*"', "", drawn)
    assert texts.count("(end)") == texts.count('translate="no">(end)</') > 0
    assert f"{float(lens.top_probabilities[1, 2, 0]):.2f} · #{lens.ranks[1, 2]}" in drawn
    lens.top_tokens[0][0][0] = "<img src=x>"
    assert "<img" not in layers.lens_html(lens)


@pytest.mark.parametrize("question", [key for _, key in layers.QUESTIONS])
def test_every_question_has_an_answer(view, current, readings, question):
    answer = view.show(current, question, "cross", 0, 1, readings, 2)
    assert answer[view.note] == "" and "<table" in answer[view.table]
    assert "<b>bicycle" not in answer[view.table]


@pytest.mark.parametrize("question", [key for _, key in layers.QUESTIONS])
def test_every_answer_can_be_saved(view, current, readings, question, tmp_path, monkeypatch):
    written, choice = {}, (question, "cross", 0, 1, readings, 2)

    def keep(answer, sentence, drawn, folder):
        files = answers.save(answer, sentence, drawn, tmp_path)
        written.update({file.suffix: file.read_bytes() for file in files})
        return files

    monkeypatch.setattr(layers, "save", keep)
    assert len(view.write(tmp_path, current, *choice)) == len(written)
    assert {".csv", ".json", ".html"} <= written.keys()
    assert (".svg" in written) == (".png" in written) == (question in ("contributions", "learning"))
    page = written[".html"].decode()
    assert "@@" not in page and "<b>bicycle" not in page and view.show(current, *choice)[view.table] in page
    rows = list(csv.DictReader(io.StringIO(written[".csv"].decode())))
    value = json.loads(written[".json"], parse_constant=pytest.fail)
    where = (view.services.translator(), current.translation)
    if question == "logit":
        lens = logit_lens(*where)
        ranks = [int(row["rank"]) for row in rows]
        assert ranks == lens.ranks.ravel().tolist() and value["ranks"] == lens.ranks.tolist()
        assert [np.float32(row["probability"]) for row in rows] == lens.probabilities.ravel().tolist()
    elif question == "encoder":
        assert rows[-1]["translation"] == current.translation.text == value["translations"][-1]["text"]
    elif question == "contributions":
        shares = [np.float32(row["from the text"]) for row in rows]
        assert shares == contributions(*where).source_share.tolist()  # every digit
        assert ElementTree.fromstring(written[".svg"]) is not None
    elif question == "learning":
        assert [int(row["update"]) for row in rows] == [one.step for one in readings]
        assert f"update {readings[1].step:,}, layer 1, head 2" in value["title"]
    else:
        assert len(rows) == 5 and float(rows[0]["share of its attention"]) >= float(rows[4]["share of its attention"])


def test_a_marker_or_a_formula_in_a_sentence_stays_text(current, tmp_path):
    answer = answers.Answer("a", "=A1", ["=B1"], [["=C1", float("nan")]], {"x": float("-inf")})
    files = answers.save(answer, "@@CSS@@ <i>", "<table></table>", tmp_path)
    contents = {file.suffix: file.read_text() for file in files}
    assert '<p dir="auto">@@CSS@@ &lt;i&gt;</p>' in contents[".html"]
    assert contents[".csv"].splitlines() == ["'=B1", "'=C1,nan"]
    assert json.loads(contents[".json"])["x"] is None


def test_without_a_sentence_and_from_another_language_it_says_so(view, current):
    assert "Translate a sentence" in view.show(CurrentTranslation(), "logit", "cross", 0, 0, [], 1)[view.note]
    german = CurrentTranslation(current.translation, attention=current.attention, pair="de-en")
    assert "examples sentences" in view.show(german, "find", "cross", 0, 0, [], 1)[view.note].replace(
        "example", "examples"
    )


def test_shares_are_those_of_the_library(services, current):
    found = contributions(services.translator(), current.translation)
    drawn = layers.shares_html(found)
    assert f"{100 * found.source_share[0]:.1f} %" in drawn
    assert layers.contributions_map(found)["columns"][-1].startswith("▁✎ ")


def test_the_api_answers_each_kind(services, current):
    translator = services.translator()
    answer = lens_answer(translator, current.translation, "en-de", "logit", 4)
    assert answer["ranks"][-1] == logit_lens(translator, current.translation).ranks[-1].tolist()
    assert lens_answer(translator, current.translation, "en-de", "encoder", 4)["encoder"][-1] == answer["translation"]
    shares = lens_answer(translator, current.translation, "en-de", "contributions", 4)
    assert sum(shares["source"][0]) + sum(shares["prefix"][0]) == pytest.approx(1, abs=1e-4)
    with pytest.raises(ValueError, match="no lens"):
        lens_answer(translator, current.translation, "en-de", "x", 4)


def test_a_run_is_read_at_every_checkpoint(services, tmp_path):
    arguments = [
        "--steps",
        "4",
        "--save-every",
        "2",
        "--evaluate-every",
        "2",
        "--tokens",
        "256",
        "--bleu",
        "4",
        "--vocab-size",
        "300",
        "--threads",
        "1",
    ]
    assert train.main(["--preset", "tiny", "--run", str(services.runs / "mine"), *arguments]) == 0
    assert ("run mine", "run:mine") in learning.choices(services.runs)
    found = learning.moments(services.runs, "run:mine", "the dog sees a cat")
    assert [one.step for one in found] == [2, 4]
    drawn = learning.moments_html(found, 0, 0)
    assert drawn.count('scope="row"') == 2
    shown_map = learning.map_at(found, 1, 0, 0)
    assert shown_map is None or shown_map["title"].startswith("Update 4")
    answer = answers.learning_answer(found, 1, 0, 0)
    assert [row[:2] for row in answer.rows] == [[one.step, one.translation.text] for one in found]
    assert answer.rows[1][3] == found[1].figures["bleu"] and "update 4" in answer.title
    names = {file.suffix for file in answers.save(answer, "the dog", "<table></table>", tmp_path)}
    assert {".csv", ".json", ".html"} <= names
    for key, text in (("run:../x", "hello"), ("other", "hello"), ("run:mine", " "), ("run:mine", "x" * 400)):
        with pytest.raises(ValueError):
            learning.moments(services.runs, key, text)


def test_a_piece_is_read_without_the_vocabulary_s_mark():
    assert [layers.word(token) for token in ("▁Tier", "quer", "</s>", "<b>")] == ["Tier", "‑quer", "(end)", "&lt;b&gt;"]
