"""The Attention and One head views without a browser: what is sent to the page is what the library says."""

import base64
import json
import re
from html import unescape

import numpy as np
import pytest

from transformer.insight import interpret
from transformer.translator import Attention
from ui import colours, figures
from ui.kit.tour import card
from ui.services import Services
from ui.translate import attention, bertviz, one_head, tour
from ui.translate import work as translate
from ui.translate.view import CurrentTranslation
from ui.translate.words import query_names

MARKUP = "<img src=x onerror=alert(1)>"


def floats(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def made(source, target, layers=2, heads=3, seed=0):
    """An Attention of random weights between the given tokens; rows sum to 1, the decoder sees no later tokens."""
    random = np.random.default_rng(seed)
    T, S = len(target), len(source)
    shapes = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}
    maps = {kind: random.random((layers, heads, *shape)).astype(np.float32) for kind, shape in shapes.items()}
    maps["decoder"] = np.tril(maps["decoder"])
    maps = {kind: (one / one.sum(-1, keepdims=True)).astype(np.float32) for kind, one in maps.items()}
    return Attention(**maps, source_tokens=source, target_tokens=target, decoder_tokens=["<s>", *target[:-1]])


@pytest.fixture
def drawn():
    return made(["▁a", "▁b", "▁c", "</s>"], ["▁v", "▁w", MARKUP, "▁y", "</s>"])


@pytest.fixture(scope="module")
def services():
    return Services(translation_model="multi30k-en-de")


@pytest.fixture(scope="module")
def current(services):
    translation = translate.translate_text(services, "Two young girls are playing soccer.", "en-de", 4, 0.6, 2)
    return CurrentTranslation(translation, attention=services.translator().attend(translation))


def test_the_map_and_the_lines_carry_the_library_s_numbers(current):
    found = current.attention
    T, S = len(found.target_tokens), len(found.source_tokens)
    value = attention.draw_map(found, "cross", 0, 1)
    np.testing.assert_array_equal(floats(value["weights"], T, S), found.cross[0, 1])
    assert value["rows"] == found.target_tokens and value["columns"] == found.source_tokens
    assert value["title"] == "Cross attention, layer 1, head 2" and value["rowAxis"] == "queries: the word being chosen"
    assert value["rowNames"] == query_names(found, "cross") and len(value["rowNames"]) == T
    lines = attention.draw_lines(found, "decoder", 2)
    heads = lines["heads"]
    np.testing.assert_array_equal(floats(lines["weights"], heads, T, T), found.decoder[2])
    assert lines["columns"][0] == "<s>" and lines["rows"] == found.target_tokens


def test_lines_of_layer_five_of_six_show_heads_five_and_six():
    """What Figures 3 to 5 of the paper show can be shown here."""
    found = made([f"▁{n}" for n in range(11)] + ["</s>"], ["▁v", "</s>"], layers=6, heads=8)
    value = attention.draw_lines(found, "encoder", 4)
    weights = floats(value["weights"], 8, 12, 12)
    assert value["title"] == "Encoder attention, layer 5" and value["rows"] == value["columns"] == found.source_tokens
    for head in (5, 6):
        np.testing.assert_array_equal(weights[head - 1], found.encoder[4, head - 1])
    with pytest.raises(ValueError, match="heads, queries, keys"):
        figures.lines(found.encoder, value["rows"], value["columns"], "", "", "")


def test_hidden_ends_leave_map_lines_and_thumbnails_alike(drawn):
    value = attention.draw_map(drawn, "cross", 1, 2, without_ends=True)
    lines = attention.draw_lines(drawn, "cross", 1, without_ends=True)
    thumbs = attention.draw_thumbnails(drawn, "cross", without_ends=True)
    expected = drawn.cross[1, 2, :4, :3] / drawn.cross[1, 2, :4, :3].sum(-1, keepdims=True)
    np.testing.assert_allclose(floats(value["weights"], 4, 3), expected, rtol=1e-6)
    np.testing.assert_array_equal(floats(lines["weights"], 3, 4, 3)[2], floats(value["weights"], 4, 3))
    assert (thumbs["rows"], thumbs["columns"]) == (4, 3) and "without start and end" in value["title"]
    assert lines["columns"] == value["columns"] == ["▁a", "▁b", "▁c"]


def test_a_clicked_cell_tells_every_head_and_is_escaped(drawn):
    html = attention.cell_note(drawn, "cross", 1, "mean", True, 2, 1)
    assert MARKUP not in html and "&lt;img" in html and '<b translate="no">b</b>' in html
    numbers = [float(x) for x in re.findall(r'title="([^"]+)"', html)]
    np.testing.assert_allclose(numbers, drawn.cross[1, :, 2, 1], rtol=1e-6)
    with pytest.raises(ValueError, match="not on the map"):
        attention.cell_note(drawn, "cross", 1, "mean", True, 4, 0)


def test_statistics_put_the_sharp_heads_first():
    found = made(["▁a", "▁b", "▁c", "</s>"], ["▁v", "▁w", "▁x", "▁y", "</s>"])
    sharp, resting = np.eye(5, 4, dtype=np.float32), np.zeros((5, 4), np.float32)
    sharp[4, 3], resting[:, 3] = 1, 1
    found.cross[1, 2], found.cross[0, 0] = sharp, resting
    found.encoder[1, 2] = np.eye(4, dtype=np.float32)
    rows = attention.statistics_rows(found, "cross")
    headers = attention.STATISTICS + attention.PLACE_COLUMNS["cross"]
    assert len(rows) == 6 and all(len(row) == len(headers) for row in rows)
    assert rows[0][:2] == [2, 3] and rows[0][3] == 1.0
    assert rows[-1][:3] == [1, 1, "rests on start or end"] and rows[-1][6] == 1.0
    assert attention.statistics_rows(found, "encoder")[0][:4] == [2, 3, "looks at its own place", 1.0]
    table = attention.statistics_table(found, "cross")
    assert table["data"] == rows and table["headers"] == headers
    texts = table["metadata"]["display_value"]
    assert texts[0][:2] == ["2", "3"] and {len(one.partition(".")[2]) for row in texts for one in row[3:]} == {3}


def test_cross_attention_is_told_from_the_word_that_is_translated():
    found = made(["▁a", "▁b", "▁c", "▁d", "</s>"], ["▁v", "▁w", "▁x", "</s>"])
    aligned, ahead = np.eye(4, 5, dtype=np.float32), np.eye(4, 5, k=1, dtype=np.float32)
    found.cross[:] = aligned
    found.cross[0, 1] = ahead
    roles = {tuple(row[:2]): row[2] for row in attention.statistics_rows(found, "cross")}
    assert roles[1, 2] == "looks at the word after the one it translates"
    assert roles[2, 1] == "looks at the word it translates"


def test_gradient_and_occlusion_stand_beside_attention(services, current):
    gradient, occluded, line = attention.draw_reasons(services, current, 3)
    where = (services.translator(), current.translation)
    T, S = current.attention.cross.shape[-2:]
    truth = interpret.occlusion(*where)
    np.testing.assert_allclose(floats(occluded["raw"], T, S), truth, atol=1e-5)
    np.testing.assert_allclose(floats(occluded["weights"], T, S), interpret.shares(truth), atol=1e-5)
    np.testing.assert_allclose(floats(gradient["raw"], T, S), interpret.gradient_times_input(*where), atol=1e-5)
    share = interpret.agreement(current.attention.cross[3].mean(0), interpret.shares(truth))
    assert f"attention and occlusion in {100 * share:.0f} %" in line


def test_long_maps_are_pooled_so_that_no_peak_is_lost():
    maps = np.zeros((1, 2, 200, 130), np.float32)
    maps[0, 1, 77, 129] = 1
    value = figures.thumbnails(maps)
    assert value["rows"] <= 64 and value["columns"] <= 64
    sent = np.frombuffer(base64.b64decode(value["bytes"]), np.uint8).reshape(2, value["rows"], value["columns"])
    assert sent[0].max() == 0 and (sent[1] == 255).sum() == 1 and sent[1, 77 // 4, 129 // 3] == 255


def test_python_and_the_ramp_s_ends_agree():
    for ramp in (*colours.RAMPS.values(), *colours.SIGNED.values()):
        painted = colours.paint(np.array([0.0, 0.25, 0.5, 1.0, 2.0]), ramp)
        np.testing.assert_array_equal(painted, [ramp[0], ramp[1], ramp[2], ramp[4], ramp[4]])
    steps = [[0, 0, 0], [10, 0, 0], [20, 0, 0], [30, 0, 0], [41, 0, 0]]
    assert colours.paint(np.array([0.125]), steps).tolist() == [[5, 0, 0]]
    light = [sum(c * w for c, w in zip(colour, (0.3, 0.59, 0.11))) for colour in colours.RAMPS["light"]]
    assert light == sorted(light, reverse=True)


# -- bertviz ---------------------------------------------------------------------------------------------------------


def test_bertviz_gets_the_weights_and_asks_nobody(drawn):
    for view in bertviz.SCRIPTS:
        text = bertviz.document(drawn, "cross", view, 1)
        params = json.loads(re.search(r"const params = (\{.*?\}); //", text).group(1))
        (one,) = params["attention"]
        np.testing.assert_allclose(one["attn"], drawn.cross, atol=5.1e-5)
        assert one["left_text"][0] == "v" and one["left_text"][2] == MARKUP and one["right_text"][-1] == "(end)"
        assert MARKUP not in text
        assert "default-src 'none'" in text and not re.search(r"<(script|link)[^>]+(src|href)=", text)
        frame = bertviz.frame(drawn, "cross", view, 1)
        assert frame.count("<") == 2 and 'sandbox="allow-scripts"' in frame
        assert unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1)) == text


def test_bertviz_refuses_what_would_freeze_and_shows_one_layer_of_much(drawn, monkeypatch):
    monkeypatch.setattr(bertviz, "MAX_LINES", 100)
    text = bertviz.document(drawn, "cross", "model", 1)
    assert '"include_layers":[1]' in text
    monkeypatch.setattr(bertviz, "MAX_LINES", 10)
    with pytest.raises(ValueError, match="60 lines for 5 by 4 pieces"):
        bertviz.document(drawn, "cross", "head")


# -- one head --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", interpret.KINDS)
def test_the_six_steps_on_the_page_are_the_model_s(services, current, kind):
    value, product = one_head.draw_steps(services, current, kind, 1, 2, 1, True, True)
    weights = getattr(current.attention, kind)[1, 2, 1]
    np.testing.assert_allclose(floats(value["weights"], -1), weights, atol=2e-6)
    columns = interpret.labels(current.attention, kind)[1]
    assert value["row"] == query_names(current.attention, kind)[1] and value["columns"] == columns
    assert value["allowed"] == [kind != "decoder" or column <= 1 for column in range(len(columns))]
    # The neuron view: a row of products sums to its q . k.
    sums = floats(product["weights"], product["rows"], product["columns"]).sum(1)
    np.testing.assert_allclose(sums, floats(value["dots"], -1), atol=1e-3)
    unmasked, _ = one_head.draw_steps(services, current, kind, 1, 2, 1, False, False)
    assert unmasked["divisor"] == 1 and np.isfinite(floats(unmasked["scores"], -1)).all()


def test_positions_and_swapped_words_on_the_page(services, current):
    value = one_head.draw_positions(services, current)
    model = services.translator().model
    np.testing.assert_array_equal(
        floats(value["weights"], value["rows"], value["columns"]), interpret.positions(model, value["rows"])
    )
    assert value["columnNames"] == ["sine", "cosine"] and value["rows"] >= 40
    numbers = interpret.positions(model, value["rows"]).astype("f8")
    alike = [np.corrcoef([*numbers[0], *-numbers[0]], [*row, *-row])[0, 1] for row in numbers[1:]]  # around 0: cosine
    near, far = max(alike), min(alike)
    most = f"most like position {alike.index(near) + 1} (cosine {near:.2f})"
    assert value["says"] == f"Position 0 is {most}, least like position {alike.index(far) + 1} ({far:.2f})."
    html = one_head.swap_html(
        interpret.Swap(
            ["a", MARKUP],
            [MARKUP, "a"],
            {True: ("x", MARKUP), False: ("y", "y")},
            {True: np.array([0.5, 0.25]), False: np.zeros(2)},
        )
    )
    assert MARKUP not in html and "37.5 %" in html and "the same" in html


# -- tour ------------------------------------------------------------------------------------------------------------


def test_the_tour_speaks_of_the_sentence_and_shows_what_it_says(current):
    found = tour.stops(current)
    assert len(found) == 13 and found[0].view == "through"
    assert {stop.view for stop in found} == {"through", "attention", "one_head", "what_if", "layers"}
    layers, heads = current.attention.cross.shape[:2]
    for number, stop in enumerate(found):
        interpret.attention_map(current.attention, stop.kind, stop.layer, stop.head)
        assert f'data-stop="{number + 1}"' in card(stop, number, 13) and stop.lead
        if stop.cell:  # the very cell that the text speaks of
            seen = attention.draw_map(current.attention, stop.kind, stop.layer, stop.head)
            assert f'data-cell="{stop.cell[0]},{stop.cell[1]}"' in card(stop, number, 13)
            weight = floats(seen["weights"], len(seen["rows"]), len(seen["columns"]))[stop.cell]
            assert "with" not in stop.text or f"{weight:.2f}" in stop.text or stop.title != "The text looks at itself"
    step = found[8]
    row = current.attention.cross[step.layer, step.head, step.query]
    assert f"the weight {row[:-1].max():.2f}" in step.text
    assert current.attention.target_tokens[step.query].lstrip("▁") in step.text


def test_the_tour_escapes_tokens_and_needs_attention(drawn, current):
    drawn.source_tokens[1] = MARKUP
    text = "".join(stop.text for stop in tour.stops(CurrentTranslation(current.translation, attention=drawn)))
    assert MARKUP not in text and "&lt;img" in text
    with pytest.raises(ValueError, match="Translate a sentence"):
        tour.stops(CurrentTranslation(current.translation))
