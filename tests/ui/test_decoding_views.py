"""Decoding, What if and Compare without a browser: the page's numbers are the library's, and text stays text."""

import base64
import json

import numpy as np
import pytest
import torch

from transformer.attention import causal_mask, key_mask
from transformer.insight import interpret, intervene
from transformer.insight.intervene import Edit, Intervention
from transformer.options import SearchOptions
from ui.services import Services
from ui.translate import compare, decoding, decoding_figures, forcing, what_if
from ui.translate.view import CurrentTranslation
from ui.translate.words import plain, query_names

TEXT = "Two young girls are playing soccer in the park."
MARKUP = "A man <img src=x onerror=alert(1)> <b>rides</b>."


@pytest.fixture(scope="module")
def services():
    return Services(translation_model="multi30k-en-de")


@pytest.fixture(scope="module")
def translator(services):
    return services.translator()


def show(translator, text, n_best=2):
    translation = translator.translate(text, n_best=n_best)
    return CurrentTranslation(translation, attention=translator.attend(translation))


@pytest.fixture(scope="module")
def current(translator):
    return show(translator, TEXT)


@pytest.fixture(scope="module")
def followed(translator, current):
    return decoding.follow(translator, current, 4, 0.6)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_steps_carry_the_library_s_numbers(translator, current, followed):
    told = decoding_figures.steps(translator, followed.decoding)
    json.dumps(told)  # it travels
    attention = current.attention
    assert told["source"] == attention.source_tokens and told["chosen"] == attention.target_tokens
    assert told["read"] == attention.decoder_tokens
    assert sum(told["logprobs"]) == pytest.approx(current.translation.hypotheses[0].logprob, abs=1e-4)
    for step, row in enumerate(told["top"]):
        assert [p for _, p, _, _ in row] == [p for _, p in followed.decoding.top[step]]
        assert row[0][1] >= row[1][1] and sum(p for _, p, _, _ in row) <= 1 + 1e-6
    sizes = followed.decoding.cache_size(5)
    assert told["bytes"] * 6 == sizes[0].bytes and told["mask"][2] == "111" + "0" * (len(told["mask"]) - 3)


def test_the_loss_of_a_given_translation_is_that_of_training(translator, current):
    """Teacher forcing token by token gives the loss that one pass over the whole sentence gives."""
    text = "Zwei Mädchen spielen im Park."
    given, free = forcing.teacher_forcing(translator, current, text)
    assert intervene.text_of(translator, given.ids, given.stand_ins) == text
    model, config = translator.model, translator.model.config
    src, tgt = (torch.tensor([ids]) for ids in (given.source_ids, [config.bos, *given.ids]))
    with torch.inference_mode():
        logits = model(src, tgt, key_mask(src, config.pad), causal_mask(tgt.shape[1]))[0].float()
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor(given.labels), reduction="none")
    np.testing.assert_allclose(-given.logprobs, losses.numpy(), atol=1e-4)
    # By itself the model always chooses what is likeliest after its own words.
    assert free.ranks == [1] * len(free.labels) and min(free.logprobs) <= 0
    told = forcing.table(translator, given, free)
    assert f"{losses.mean():.3f} nats" in told and told.count("<tr>") == 1 + max(len(given.labels), len(free.labels))
    # Without a text it is the translation that is shown; markup stays text.
    own, _ = forcing.teacher_forcing(translator, current, "")
    assert own.logprob == pytest.approx(current.translation.hypotheses[0].logprob, abs=1e-4)
    with pytest.raises(ValueError, match="shorten it"):
        forcing.teacher_forcing(translator, current, "ein " * 240)


def test_a_layer_s_weights_arrive_exactly(followed):
    decoded = followed.decoding
    value = decoding_figures.layer_weights(decoded, 2)
    length, source = decoded.decoder.shape[-1], decoded.cross.shape[-1]
    own = floats(value["decoder"]).reshape(value["heads"], -1)
    for head in range(value["heads"]):
        for step in range(length):
            start = step * (step + 1) // 2
            sent = own[head, start : start + step + 1]
            np.testing.assert_array_equal(sent, decoded.decoder[2, head, step, : step + 1])
    np.testing.assert_array_equal(floats(value["cross"]).reshape(-1, length, source), decoded.cross[2])


def test_cached_numbers_arrive_exactly(followed):
    strip = decoding_figures.cache_strip(followed.decoding, 1, 3)
    key, value = followed.decoding.cache(1, len(followed.decoding.labels) - 1)
    np.testing.assert_array_equal(floats(strip["key"]).reshape(-1, strip["d_k"]), key[3])
    np.testing.assert_array_equal(floats(strip["value"]).reshape(-1, strip["d_v"]), value[3])
    assert strip["most"] == max(np.abs(key[3]).max(), np.abs(value[3]).max())


def test_what_200_tokens_send_is_bounded(translator):
    source = [*([41, 55, 77, 90, 120] * 40)[:199], 3]
    decoded = intervene.follow(translator, source, ([60, 70, 80, 90] * 50)[:199])
    sent = [decoding_figures.steps(translator, decoded), decoding_figures.layer_weights(decoded, 0)]
    sizes = [len(json.dumps(value)) for value in sent]
    assert decoded.cross.shape[-2:] == (200, 200)
    # One layer at a time: 4 bytes for each of 4 heads x (200 x 200 + 200 x 201 / 2) weights, a third more in base64.
    assert sizes[1] < 1.35 * 4 * 4 * (200 * 200 + 200 * 201 / 2) and sizes[0] < 250_000


def test_tree_and_ranking_carry_the_library_s_numbers(translator, current, followed):
    told = decoding_figures.tree(translator, followed.search, 4, 0.6)
    json.dumps(told)
    assert told["parent"][0] == -1 and set(told["state"]) == {"beam", "finished", "pruned"}
    best = told["ended"][0]
    assert best[0] == current.translation.text and best[3] is True
    assert best[1] / intervene.length_penalty(best[2], 0.6) == pytest.approx(current.translation.score, abs=1e-5)
    pruned = next(n for n, state in enumerate(told["state"]) if state == "pruned" and told["step"][n] == 3)
    assert len(decoding.path_to(followed, pruned)) == 3
    for node in (0, -1, 10**6, told["state"].index("finished")):
        with pytest.raises(ValueError, match="select another"):
            decoding.path_to(followed, node)


def test_the_same_output_is_recognised(translator, current):
    other = CurrentTranslation(current.translation, hypothesis=1, attention=current.attention)
    assert decoding.identity(current) == decoding.identity(show(translator, TEXT))
    assert decoding.identity(current) != decoding.identity(other)
    assert decoding.identity(CurrentTranslation()) is None and decoding.identity(show_copied(translator)) is None
    assert decoding.search_beam("greedy", 4) == 1 and decoding.search_beam("beam", 4.0) == 4


def show_copied(translator):
    return CurrentTranslation(translator.translate("1234"))


def test_trace_endpoint_tells_everything(services, translator, monkeypatch):
    told = decoding.trace_text(services, TEXT, "en-de", 4, 0.6, None, 2)
    json.dumps(told)
    attention = translator.attend(translator.translate(TEXT))
    assert told["translation"] == translator.translate(TEXT).text
    assert [step["token"] for step in told["steps"]] == attention.target_tokens
    for number, step in enumerate(told["steps"]):
        assert step["input"] == attention.decoder_tokens[: number + 1]
        np.testing.assert_allclose(step["cross"], attention.cross[1, :, number], atol=1e-5)
        np.testing.assert_allclose(step["decoder"], attention.decoder[1, :, number, : number + 1], atol=1e-5)
    assert told["finished"][0]["text"] == told["translation"]
    assert {node["state"] for node in told["tree"]} == {"beam", "finished", "pruned"}
    assert "cross" not in decoding.trace_text(services, TEXT, "en-de", 1, 0.6, "", 0)["steps"][0]
    good = {"text": TEXT, "pair": "en-de", "beam": 2, "alpha": 0.6, "model": "", "layer": 0}
    monkeypatch.setattr(services.translator(), "penalties", {"en-de": 1.5})
    own, long, paper = (decoding.trace_text(services, **{**good, "alpha": alpha}) for alpha in (-1, 1.5, 0.6))
    assert own["finished"] == long["finished"] != paper["finished"]
    for bad in ({"text": ""}, {"layer": 9}, {"model": "no such model"}, {"pair": "ko-en"}):
        with pytest.raises(ValueError):
            decoding.trace_text(services, **{**good, **bad})


def test_markup_becomes_text_in_every_drawing(services, translator):
    current = show(translator, MARKUP)
    followed = decoding.follow(translator, current, 2, 0.6)
    found = intervene.decode_from(translator, followed.decoding.source_ids, options=SearchOptions(2))
    words = [("-", "<b>"), ("+", "<img src=x onerror=alert(1)>"), (" ", "&")]
    drawings = [
        decoding_figures.difference(words),
        decoding.draw_branch(translator, followed, found, "<i>how</i>"),
        what_if.force_text(services, current, "Ein Mann", 2, 0.6),
        what_if.translate_with(services, current, Intervention(off=frozenset({("cross", 3, 0)})), 2, 0.6),
        decoding_figures.side_by_side([("<u>", MARKUP, -1.0, -1.0, 3, 0.1)] * 2, words),
    ]
    for html in drawings:
        assert "<img" not in html and "<b>rides" not in html and "<i>" not in html and "<u>" not in html
    assert "Begun with: Ein Mann;" in drawings[2] and "▁" not in drawings[2]
    assert "&lt;img src=x onerror=alert(1)&gt;" in drawings[0] and "−" in drawings[0] and "+" in drawings[0]
    two_languages = decoding_figures.side_by_side([("A", "ein Hund", -1.0, -1.0, 2, 0.1)] * 2, None)
    assert "Two languages" in two_languages and "word-gone" not in two_languages


def test_intervention_in_words_and_in_numbers(services, translator, current):
    intervention = Intervention(
        frozenset({("cross", 3, 0), ("cross", 3, 2), ("encoder", 0, 1)}),
        (what_if.make_edit("cross", 1, what_if.ALL, 2, 4, 1, True), Edit("decoder", 0, 1, None, ((0, 0.5),), False)),
    )
    lines = what_if.intervention_lines(current.attention, intervention)
    columns = interpret.labels(current.attention, "cross")[1]
    assert "cross layer 4: heads 1, 3 off" in lines and "encoder layer 1: head 2 off" in lines
    cell = f"row 3 ({query_names(current.attention, 'cross')[2]}): “{plain(columns[4])}” gets 1.00"
    assert f"cross layer 2, all heads, {cell}; the others share the rest" in lines
    assert any(line.startswith("decoder layer 1, head 2, every row") and line.endswith("stay") for line in lines)
    html = what_if.translate_with(services, current, intervention, 4, 0.6)
    result = intervene.operate(translator, current.translation, intervention)
    for number in (result.before.logprob, result.before_logprob, result.whole, result.after.logprob):
        assert f"{number:.3f}" in html
    assert decoding_figures.signed_number(result.change) in html
    with pytest.raises(ValueError, match="switch a head off"):
        what_if.translate_with(services, current, Intervention(), 4, 0.6)


def test_cells_of_one_row_are_set_together(translator, current):
    intervention = Intervention()
    for column, weight in ((4, 0.5), (1, 0.25), (4, 0.75)):
        intervention = what_if.add_edit(intervention, what_if.make_edit("cross", 3, 0, 2, column, weight, True))
    assert intervention.edits == (Edit("cross", 3, 0, 2, ((1, 0.25), (4, 0.75))),)
    both = what_if.add_edit(intervention, what_if.make_edit("cross", 3, 0, 3, 0, 1, True))
    assert len(both.edits) == 2 and both.edits[0] == intervention.edits[0]
    ids = current.translation.sentences[0]
    found = intervene.follow(translator, ids.source_ids, ids.ids[0], intervention=intervention).cross[3, 0, 2]
    expected = np.zeros_like(found)
    expected[[1, 4]] = 0.25, 0.75
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_switches_name_heads_of_this_model_only(translator):
    assert what_if.read_switches(["cross/3/1", "encoder/0/0"], translator) == {("cross", 3, 1), ("encoder", 0, 0)}
    for name in ("cross/9/0", "other/0/0", "cross", "cross/a/b", "cross/0/99"):
        with pytest.raises(ValueError, match="head of that name|layers|kinds|heads"):
            what_if.read_switches([name], translator)


def test_signs_are_written_out():
    assert [decoding_figures.signed_number(x) for x in (1.5, -2.25, 0.0, -0.0001)] == [
        "+1.500",
        "−2.250",
        "0.000",
        "0.000",
    ]


def test_compare_names_the_side_that_is_wrong(services):
    side = compare.translate_side(services, "A", TEXT, None, "en-de", 4, 0.6)
    other = compare.translate_side(services, "B", "Two young boys are playing soccer in the park.", "", "en-de", 1, 0.6)
    html = compare.describe(side, other)
    assert side.translation.text in html and other.translation.text in html and "word-new" in html
    value = compare.draw_side(side, "cross", 99, 99)  # the other side's model may have more
    np.testing.assert_array_equal(floats(value["weights"]), side.attention.cross[3, 3].ravel())
    assert compare.draw_side(None, "cross", 0, 0) is None
    bad = (("", None, "B: there is no text"), ("a" * 2000, None, "B: the text has"), ("a", "x", "B: "))
    for text, model, words in bad:
        with pytest.raises(ValueError, match=words):
            compare.translate_side(services, "B", text, model, "en-de", 4, 0.6)
