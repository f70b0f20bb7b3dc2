"""A model whose encoder has more layers than its decoder, with several languages and pieces that it copies: every view
offers the layers that are there, and no special piece is taken for a word."""

import json

import gradio as gr
import numpy as np
import pytest
import torch

from transformer.config import TransformerConfig
from transformer.insight import interpret
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.translator import Translator
from ui import figures, page
from ui.services import Services
from ui.translate import attention, one_head, tour
from ui.translate import work as translate
from ui.translate.compare import Side
from ui.translate.tab import TranslateTab
from ui.translate.view import CurrentTranslation
from ui.translate.what_if import Changes
from ui.translate.words import plain

TEXT, ADDRESS = "ab cad anna@example.com bad", "anna@example.com"
PAIRS = [("en", "de"), ("de", "en")]


@pytest.fixture(scope="module")
def services():
    words = "ab ba abc cab bac acb cba dad add bad dab cad"
    tokenizer = Tokenizer.train([words] * 40, 50, ["en", "de"], stand_ins=True)
    config = TransformerConfig(
        vocab_size=len(tokenizer), encoder_layers=4, decoder_layers=2, d_model=16, d_ff=32, heads=2, max_length=128
    )
    torch.manual_seed(0)
    translator = Translator(Transformer(config).eval(), tokenizer, PAIRS, language_tokens=True)
    made = Services()
    made.translator = lambda key=None: translator
    return made


@pytest.fixture(scope="module")
def current(services):
    translation = services.translator().translate(TEXT, "de", "en", beam=2, max_length=6)
    return CurrentTranslation(translation, attention=services.translator().attend(translation), pair="de-en")


@pytest.fixture(scope="module")
def events(services):
    """Every handler of the page by its event's name; what it returns is told by the components' ids."""

    def told(handler):
        def call(*values):
            return {one.elem_id: value for one, value in handler(*values).items()}

        return call

    return {f.api_name: told(f.fn) for f in page.build(services).fns.values()}


def numbers(update):
    return [value for _, value in update["choices"]]


def test_a_layer_is_chosen_among_those_of_its_kind(current):
    found = current.attention
    assert (found.encoder.shape[0], found.decoder.shape[0], found.cross.shape[0]) == (4, 2, 2)
    assert attention.layer_choices("encoder", 3, found) == ([("1", 0), ("2", 1), ("3", 2), ("4", 3)], 3)
    assert attention.layer_choices("cross", 3, found) == ([("1", 0), ("2", 1)], 1)
    assert attention.layer_choices("encoder", None, found)[1] == 3


def test_the_attention_view_offers_every_layer_of_the_encoder(events, current):
    drawn = events["choose_kind"](current, "encoder", 3, 1, "map", "head", False, False, 0)
    assert numbers(drawn["layer"]) == [0, 1, 2, 3] and drawn["layer"]["value"] == 3
    assert drawn["heat-map"]["value"]["title"] == "Encoder attention, layer 4, head 2"
    drawn = events["choose_kind"](current, "cross", 3, 1, "map", "head", False, False, 0)
    assert numbers(drawn["layer"]) == [0, 1]
    assert drawn["heat-map"]["value"]["title"] == "Cross attention, layer 2, head 2"


def test_one_head_offers_every_layer_of_the_encoder(events, current):
    drawn = events["one_kind"](current, "encoder", 3, 0, 2, True, True)
    assert numbers(drawn["one-layer"]) == [0, 1, 2, 3] and drawn["one-layer"]["value"] == 3
    assert drawn["one-head-note"] == "" and len(drawn["one-query"]["choices"]) == len(current.attention.source_tokens)
    assert drawn["head-steps"]["title"].startswith("Encoder attention, layer 4, head 1")
    drawn = events["one_kind"](current, "decoder", 3, 0, 0, True, True)
    assert numbers(drawn["one-layer"]) == [0, 1] and drawn["one-layer"]["value"] == 1
    assert drawn["head-steps"]["title"].startswith("Decoder attention, layer 2, head 1")


def test_what_is_saved_is_what_was_looked_at(current, services, tmp_path):
    with gr.Blocks():
        views = TranslateTab(None, services).views
    looked_at = (current, "encoder", 3, 1, False, 0, False, "map")
    files = {file.suffix: file for file in views[attention.AttentionView].write(tmp_path, *looked_at)}
    assert "Encoder attention, layer 4, head 2" in files[".svg"].read_text(encoding="utf-8")
    value = json.loads(files[".json"].read_text(encoding="utf-8"))
    assert value["layers"] == {"encoder": [1, 2, 3, 4], "decoder": [1, 2], "cross": [1, 2]}
    np.testing.assert_array_equal(np.array(value["map"]["weights"], np.float32), current.attention.encoder[3, 1])
    assert len(files) == 6


def test_compare_offers_the_layers_of_the_kind_that_is_shown(events, current):
    side = Side(current.translation, current.attention, 0.1, "en")
    drawn = events["compare_kind"]((side, side), "encoder", 3, 1)
    assert numbers(drawn["compare-layer"]) == [0, 1, 2, 3] and drawn["compare-layer"]["value"] == 3
    titles = [drawn[f"compare-map-{name}"]["title"] for name in "ab"]
    assert titles == ["Encoder attention, layer 4, head 2"] * 2
    copied = Side(current.translation, None, 0.1, "en")
    drawn = events["compare_kind"]((side, copied), "cross", 3, 1)
    assert numbers(drawn["compare-layer"]) == [0, 1] and drawn["compare-map-b"] is None
    assert drawn["compare-map-a"]["title"] == "Cross attention, layer 2, head 2"


def test_compare_begins_with_the_languages_that_are_shown(events, current):
    drawn = events["what_if_part"](current, Changes(), "sides", "", "")
    assert drawn["compare-pair-a"]["value"] == drawn["compare-pair-b"]["value"] == "de-en"
    assert events["compare_pairs_a"]("another", current)["compare-pair-a"]["value"] == "de-en"
    assert events["compare_pairs_b"]("another", CurrentTranslation(pair="fr-en"))["compare-pair-b"]["value"] == "en-de"


def test_the_tour_shows_the_layer_that_it_speaks_of(services, current):
    with gr.Blocks():
        tab = TranslateTab(None, services)
    sharp = tour.stops(current)[3]
    assert sharp.kind == "encoder" and "In the encoder 4 layers with 2 heads each" in sharp.text
    for number, stop in enumerate(tour.stops(current)):
        drawn = {one.elem_id: value for one, value in tab.tour.go(1, number - 1, current).items()}
        assert drawn["kind"] == stop.kind and drawn["head"] == stop.head
        assert drawn["layer"]["value"] == stop.layer
        assert len(drawn["layer"]["choices"]) == getattr(current.attention, stop.kind).shape[0]
        assert "&lt;2" not in stop.text or number == 1  # among the pieces that are read, but in no pair of words


def test_reasons_stand_beside_the_last_layer_if_the_encoder_s_is_deeper(services, current):
    assert "attention (layer 2, " in attention.draw_reasons(services, current, 3)[2]


def test_neither_language_nor_stand_in_is_a_word(services, current):
    found = current.attention
    assert found.source_tokens[0] == "<2en>" and ADDRESS in found.source_tokens
    (words,) = translate.word_partners(services, current)
    assert words["source"] == TEXT.split()
    assert all(0 <= s < 4 and t < len(words["target"]) for s, t in words["links"]) and words["links"]
    steps = interpret.head_steps(services.translator(), current.translation, "encoder", 3, 0)
    assert steps.rows == steps.columns == found.source_tokens
    assert [name for name, _ in one_head.place_choices(one_head.query_names(found, "encoder"))] == [
        f"{n + 1} · reading {plain(token)}" for n, token in enumerate(found.source_tokens)
    ]
    swap = interpret.swap_words(services.translator(), current.translation, 0, 2)
    assert swap.words == TEXT.split() and swap.permutation == [ADDRESS, "cad", "ab", "bad"]
    value = attention.draw_map(found, "encoder", 0, 0, without_ends=True)
    assert value["rows"] == value["columns"] == found.source_tokens[1:-1]
    rests = interpret.statistics(found.encoder, found.source_tokens).ends
    np.testing.assert_allclose(rests, found.encoder[..., [0, -1]].sum(-1).mean(-1), rtol=1e-5)


def test_links_count_words_without_the_language():
    source, target = ["<2de>", "▁a", "▁bi", "cycle", "</s>"], ["▁ein", "▁Rad", "</s>"]
    value = figures.word_links(source, target, [1, 3, 0])
    assert value == {"source": ["a", "bicycle"], "target": ["ein", "Rad"], "links": [[0, 0], [1, 1]]}
    assert figures.word_links(source, target, [0, 2, 1])["links"] == [[1, 1]]  # the language is nobody's partner
    cross = np.array([[[[0.6, 0.3, 0.0, 0.0, 0.1], [0.4, 0.1, 0.2, 0.3, 0.0]]]], dtype=np.float32)
    assert interpret.alignment(cross) == [0, 0] and interpret.alignment(cross, columns=source) == [1, 3]
