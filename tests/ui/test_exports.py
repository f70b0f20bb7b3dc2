"""What is saved: pictures with the exact colours, numbers with every digit, and a page that carries all it needs."""

import base64
import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from transformer.insight import interpret
from ui import heat_map, theme
from ui.colours import RAMPS, paint
from ui.heat_map import HeatMap
from ui.services import Services
from ui.translate import exports, save
from ui.translate import work as translate
from ui.translate.view import CurrentTranslation
from ui.translate.words import plain

MARKUP = "<img src=x onerror=alert(1)>"
SETTINGS = {
    "kind": "cross",
    "layer": 3,
    "head": 2,
    "without_ends": False,
    "threshold": 0.0,
    "stretch": False,
    "look": "map",
    "model": "multi30k-en-de",
}


@pytest.fixture(scope="module")
def current():
    services = Services(translation_model="multi30k-en-de")
    translation = translate.translate_text(services, f"A man {MARKUP} rides, =1+1 & more.", "en-de", 4, 0.6, 2)
    return CurrentTranslation(translation, attention=services.translator().attend(translation))


@pytest.fixture(scope="module")
def one(current):
    return interpret.attention_map(current.attention, "cross", 2, 1)


def drawn(one, **more):
    return HeatMap(one, "Title", "queries", "keys", **more)


def opened(one, **more):
    return np.asarray(Image.open(io.BytesIO(drawn(one, **more).png())))


def test_png_paints_every_cell_in_the_colour_of_its_weight(one):
    frame = drawn(one).frame
    R, C = one.weights.shape
    rows, columns = (2 * (at + np.arange(count) * frame.cell + 2) for at, count in ((frame.top, R), (frame.left, C)))
    cells = np.ix_(rows, columns)  # near their corners, as numbers stand in their middles
    np.testing.assert_array_equal(opened(one)[cells], paint(one.weights, RAMPS["light"]))
    assert (opened(one, threshold=1.01)[cells] == RAMPS["light"][0]).all()
    place = np.unravel_index(one.weights.argmax(), one.weights.shape)
    assert opened(one, stretch=True)[rows[place[0]], columns[place[1]]].tolist() == RAMPS["light"][-1]


def test_both_pictures_hold_the_same_numbers(one):
    frame, large = drawn(one).frame, one.weights >= 0.005
    texts = [node.text for node in ElementTree.fromstring(drawn(one).svg()).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if re.fullmatch(r"1?\.\d\d", text or "")] == [
        f"{weight:.2f}".removeprefix("0") for weight in one.weights[large]
    ]
    picture, cell = opened(one), 2 * frame.cell
    for row, column in np.ndindex(*one.weights.shape):
        top, left = 2 * frame.top + row * cell, 2 * frame.left + column * cell
        inside = picture[top + 2 : top + cell - 2, left + 2 : left + cell - 2].reshape(-1, 3)
        assert (len(np.unique(inside, axis=0)) > 1) == large[row, column]


def test_svg_holds_exact_numbers_and_text_as_text(one):
    text = HeatMap(one, f"Title {MARKUP}", "queries", "keys").svg()
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    cells = [rect for rect in root.iter(f"{space}rect") if rect.find(f"{space}title") is not None]
    weights = np.array([np.float32(rect.find(f"{space}title").text.rsplit(": ", 1)[1]) for rect in cells])
    np.testing.assert_array_equal(weights.reshape(one.weights.shape), one.weights)
    fills = [[int(rect.get("fill")[i : i + 2], 16) for i in (1, 3, 5)] for rect in cells]
    np.testing.assert_array_equal(fills, paint(one.weights, RAMPS["light"]).reshape(-1, 3))
    assert root.find(f"{space}title").text == f"Title {MARKUP}"
    assert not list(root.iter(f"{space}img")) and "<img" not in text


def test_pictures_and_tables_speak_in_words(current, one):
    """No piece with the vocabulary's mark, and a query by what it does; JSON has the pieces as well."""
    names = exports.query_labels(current.attention, "cross", one)
    assert names[0] == f"after (start), choosing {plain(one.rows[0])}" and len(names) == len(one.rows)
    text = drawn(one, queries=names).svg()
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(text)
    told = [
        rect.find(f"{space}title").text for rect in root.iter(f"{space}rect") if rect.find(f"{space}title") is not None
    ]
    assert told[0].startswith(f"{names[0]} → {plain(one.columns[0])}: ") and "▁" not in text and "&lt;/s" not in text
    rows = list(csv.reader(io.StringIO(exports.csv_text(one, names))))
    assert [row[0] for row in rows[1:]] == names
    value = json.loads(exports.json_text(current.attention, one, SETTINGS))
    assert value["map"]["queries"] == names and value["map"]["rows"] == one.rows


def test_a_large_svg_carries_its_cells_as_one_picture(monkeypatch, one):
    monkeypatch.setattr(heat_map, "SEPARATE_CELLS", 10)
    root = ElementTree.fromstring(drawn(one).svg())
    (image,) = root.iter("{http://www.w3.org/2000/svg}image")
    data = base64.b64decode(image.get("href").removeprefix("data:image/png;base64,"))
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), paint(one.weights, RAMPS["light"]))


def test_csv_reads_back_exactly_and_holds_no_formula(one):
    table = list(csv.reader(io.StringIO(exports.csv_text(one))))
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), one.weights)
    assert [cell.removeprefix("'") for cell in table[0][1:]] == one.columns
    assert exports.cell_text("=1+1") == "'=1+1" and exports.cell_text("-") == "-"
    assert not any(len(cell) > 1 and cell[0] in "=+@" for row in table for cell in row)


def test_json_and_npz_hold_every_weight_token_and_setting(current, one):
    value = json.loads(exports.json_text(current.attention, one, SETTINGS))
    archive = np.load(io.BytesIO(exports.npz(current.attention, one, SETTINGS)), allow_pickle=False)
    for kind in interpret.KINDS:
        truth = getattr(current.attention, kind)
        np.testing.assert_array_equal(np.array(value[kind], dtype=np.float32), truth)
        np.testing.assert_array_equal(archive[kind], truth)
    np.testing.assert_array_equal(np.array(value["map"]["weights"], np.float32), one.weights)
    assert archive["source_tokens"].tolist() == value["source_tokens"] == current.attention.source_tokens
    assert json.loads(str(archive["settings"])) == value["settings"] == SETTINGS


def test_a_long_sentence_saves_its_shown_layer_only(monkeypatch, current, one):
    monkeypatch.setattr(exports, "MAX_WEIGHTS", 10)
    value = json.loads(exports.json_text(current.attention, one, SETTINGS))
    assert value["layers"] == {"cross": [3]} and "encoder" not in value
    np.testing.assert_array_equal(np.array(value["cross"], dtype=np.float32), current.attention.cross[2:3])


def test_the_page_of_its_own_carries_the_numbers_and_escapes_text(current):
    text = save_all(current, {**SETTINGS, "head": "mean"})["html"].decode()
    assert MARKUP not in text and "&lt;img src=x onerror=alert(1)&gt;" in text
    assert not re.search(r"(src|href)=[\"']?https?:", text) and "default-src 'none'" in text and "@@" not in text
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))
    cross = data["kinds"]["cross"]
    sent = np.frombuffer(base64.b64decode(cross["weights"]), "<f4")
    truth = current.attention.cross
    L, h, T, S = truth.shape
    sent = sent.reshape(L, h + 3, T, S)
    np.testing.assert_array_equal(sent[:, :h], truth)
    np.testing.assert_array_equal(sent[1, h], interpret.attention_map(current.attention, "cross", 1, "mean").weights)
    rolled = interpret.attention_map(current.attention, "cross", 1, "rollout").weights
    np.testing.assert_array_equal(sent[1, h + 2], rolled)
    assert cross["rows"] == current.attention.target_tokens and data["settings"]["head"] == "mean"
    row, column = cross["marked"][1][0]
    assert f"{truth[1, 0, row, column]:.2f}" in cross["says"][1][0]


def save_all(current, settings):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return {file.suffix[1:]: file.read_bytes() for file in save.save(current, settings, Path(folder))}


def test_every_format_is_written(current):
    files = save_all(current, {**SETTINGS, "without_ends": True, "head": "max"})
    assert set(files) == {"png", "svg", "csv", "json", "npz", "html"} and b"without start and end" in files["svg"]
    rows = list(csv.reader(io.StringIO(files["csv"].decode())))
    assert len(rows) == len(current.attention.target_tokens)  # a head line more, and </s> less
    with pytest.raises(ValueError, match="translate a sentence"):
        save_all(CurrentTranslation(), SETTINGS)


def test_a_caption_is_whole_and_a_png_is_twice_as_large(one):
    told = "A very long sentence, " * 12 + "an" + "endless" * 40 + " word and its end."
    one_map = drawn(one, sentence=told)
    root = ElementTree.fromstring(one_map.svg())
    lines = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text") if node.get("x") == "10"]
    assert "".join(lines[2:]).replace(" ", "") == (one_map.says + told).replace(" ", "") and len(one_map.says) > 10
    assert max(heat_map.font(12).getlength(line) for line in lines[1:]) <= int(root.get("width")) - 20
    picture = Image.open(io.BytesIO(one_map.png()))
    assert picture.size == (2 * int(root.get("width")), 2 * int(root.get("height")))
    last = np.asarray(picture.convert("L"))[-2 * heat_map.LINE_HEIGHT - 12 :]
    assert last.min() < 160  # its last line is drawn


def test_the_map_of_eighty_pieces_is_sharp_on_a_wall_too():
    tokens = [f"▁{number}" for number in range(80)]
    places = list(range(80))
    eighty = heat_map.HeatMap(
        interpret.AttentionMap(np.eye(80), tokens, tokens, places, places), "Eighty", "rows", "columns"
    )
    assert Image.open(io.BytesIO(eighty.png())).width == 2 * eighty.frame.width > 4000


def test_a_marker_that_was_typed_stays_text():
    assert theme.fill_template("<@@ONE@@><@@TWO@@>", {"ONE": "@@TWO@@", "TWO": "@@ONE@@"}) == "<@@TWO@@><@@ONE@@>"
