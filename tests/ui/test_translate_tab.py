import json
from types import SimpleNamespace

import gradio as gr
import pytest

from transformer.options import Sampling
from ui.page import build
from ui.services import Services, model_pairs
from ui.translate import decoding, languages, opening, visit
from ui.translate import work as translate
from ui.translate.layers import LayersView
from ui.translate.settings import search_in_words
from ui.translate.tab import TranslateTab
from ui.translate.view import CurrentTranslation
from ui.translate.what_if import WhatIfView


@pytest.mark.parametrize(
    "text, words", [("", "enter a sentence"), (" \n ", "enter a sentence"), ("a" * 10_000, "10,000 characters")]
)
def test_empty_and_endless_texts_are_refused_before_a_model_is_loaded(text, words):
    services = Services(translation_model="there is no such model")
    with pytest.raises(ValueError, match=words):
        translate.translate_text(services, text, "en-de", 4, 0.6, 1)


def test_hypothesis_rows_keep_the_library_s_numbers():
    services = Services()
    translation = translate.translate_text(services, "A man is riding a bicycle.", "en-de", 4, 0.6, 3)
    rows = translate.hypothesis_rows(translation.sentences[0])
    assert [row[0] for row in rows] == [1, 2, 3]
    for row, hypothesis in zip(rows, translation.sentences[0].hypotheses, strict=True):
        assert row[1] == hypothesis.text and row[2] == pytest.approx(hypothesis.score, abs=1e-3)
        assert row[3] == pytest.approx(hypothesis.logprob, abs=1e-3)
    scores = [row[2] for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_greedy_and_sampling_reach_the_library():
    services = Services()
    text = "A man is riding a bicycle."
    greedy = translate.translate_text(services, text, "en-de", 5, 0.6, 4, search="greedy")
    assert len(greedy.hypotheses) == 1
    assert greedy.text == services.translator().translate(text, beam=1).text
    drawn = [
        translate.translate_text(services, text, "en-de", 1, 0.6, 3, search="sampling", draws=Sampling(2.0, seed=seed))
        for seed in (1, 1, 2)
    ]
    texts = [[h.text for h in one.hypotheses] for one in drawn]
    assert len(texts[0]) == 3 and texts[0] == texts[1] and texts[0] != texts[2]
    with pytest.raises(ValueError, match="beam, read back, greedy or sampling"):
        translate.translate_text(services, text, "en-de", 4, 0.6, 1, search="magic")


def test_what_was_read_back_has_a_way_back():
    services = Services()
    text = "A man is riding a bicycle."
    pair = [translate.translate_text(services, text, "en-de", 4, 0.6, 4, "everyday", s) for s in ("beam", "read back")]
    plain, read = (translate.hypothesis_rows(one.sentences[0]) for one in pair)
    assert sorted(row[1] for row in plain) == sorted(row[1] for row in read)
    assert all(row[5] is None for row in plain) and all(row[5] < 0 for row in read)
    assert pair[1].hypotheses[0].score < max(h.score for h in pair[0].hypotheses)


def test_an_unknown_model_is_one_sentence():
    with pytest.raises(ValueError, match="There is no model"):
        translate.translate_text(Services(), "A dog runs.", "en-de", 4, 0.6, 1, model="../secrets")


def test_pairs_are_offered_in_words():
    services = Services(translation_model="multi30k-en-de")
    assert languages.pair_choices(services, None) == [("English → German", "en-de")]
    assert ("English → French", "en-fr") in languages.pair_choices(services, None, others=True)


def test_the_default_model_offers_its_pairs_and_nothing_twice():
    services = Services()
    own = [(languages.pair_label(*pair), "-".join(pair)) for pair in services.translator().pairs]
    assert languages.pair_choices(services, None) == own and own[0] == ("English → German", "en-de")
    every = [key for _, key in languages.pair_choices(services, None, others=True)]
    assert len(set(every)) == len(every) and {"en-de", "en-fr"} <= set(every)


def test_languages_bring_a_model_that_has_them(monkeypatch):
    captions = {"multi30k-en-de": [("en", "de")], "multi30k-en-fr": [("en", "fr")]}
    assert captions.items() <= model_pairs().items()
    services = Services(translation_model="multi30k-en-de")
    for model in (None, "multi30k-en-de"):  # of several models that have the languages, the chosen one stays
        assert languages.model_for(services, "en-de", model) == model
    other = languages.model_for(services, "en-fr", "multi30k-en-de")
    assert ("en", "fr") in services.pairs(other) and other != "multi30k-en-de"
    with pytest.raises(ValueError, match="No model here translates Korean → English"):
        languages.model_for(services, "ko-en", None)
    monkeypatch.setattr(languages, "model_pairs", lambda: captions)
    assert languages.model_for(services, "en-fr", "multi30k-en-de") == "multi30k-en-fr"
    with pytest.raises(ValueError, match="No model here translates German → English"):
        languages.model_for(services, "de-en", None)


def test_languages_set_the_length_penalty_that_suits_them(monkeypatch):
    monkeypatch.setattr("ui.services.read_penalties", lambda header: {"de-en": 1.4} if len(header["pairs"]) > 1 else {})
    with gr.Blocks():
        tab = TranslateTab(None, Services())
    settings, compare = tab.settings, tab.views[WhatIfView].compare
    side = compare.inputs["B"]
    german = CurrentTranslation(
        translation=SimpleNamespace(sentences=[SimpleNamespace(source_text="Ja.")]), pair="de-en", alpha=0.3
    )
    assert compare.offer_pairs("B", "everyday", german)[side.alpha] == 1.4
    assert compare.offer_pairs("B", "multi30k-en-de", german)[side.alpha] == 0.6
    assert compare.show(german, "", "")[side.alpha] == 0.3  # what is shown was translated with it
    for pair, model, alpha in (("de-en", None, 1.4), ("en-de", None, 0.6), ("en-de", "multi30k-en-de", 0.6)):
        assert settings.take_pair(pair, model)[settings.alpha] == alpha
        assert settings.offer_pairs(model, pair)[settings.alpha] == alpha
    services = Services(translation_model="multi30k-en-de")
    text = "A man is riding a bicycle."
    scores = [translate.translate_text(services, text, "en-de", 2, alpha, 1).score for alpha in (None, -1, 0.6, 1.0)]
    assert len(set(scores[:3])) == 1 and scores[2] != scores[3]


def test_every_pair_of_the_default_model_stays_with_it():
    services = Services()
    for source, target in services.pairs():
        assert languages.model_for(services, f"{source}-{target}", None) is None


def test_the_words_of_every_sentence_find_their_partners(monkeypatch):
    services = Services()
    translation = translate.translate_text(services, "A dog runs.\n🙂\nTwo girls are playing.", "en-de", 4, 0.6, 1)
    current = CurrentTranslation(translation, attention=services.translator().attend(translation))
    found = translate.word_partners(services, current)
    assert [one["source"] for one in found] == [["A", "dog", "runs."], ["Two", "girls", "are", "playing."]]
    for one in found:
        assert one["links"] and all(s < len(one["source"]) and t < len(one["target"]) for s, t in one["links"])
    monkeypatch.setattr(translate, "MAX_SENTENCES", 1)  # of a longer text only the chosen sentence
    assert translate.word_partners(services, current) == found[:1]


def test_languages_that_bring_another_model_say_so(monkeypatch):
    """Beside the translation; an example or the same model says nothing of it."""
    with gr.Blocks():
        tab = TranslateTab(None, Services())
    monkeypatch.setattr(
        tab, "translate", lambda *given: iter([{tab.status: "done", tab.current: CurrentTranslation()}])
    )

    def again(*given):
        (made,) = tab.translate_again(*given)
        return made

    before = CurrentTranslation(translation=SimpleNamespace(source_text="Hello."), model="everyday", pair="en-de")
    settings = [4, 0.6, 4, "parse", "beam", 1.0, 40, 0, False]
    said = again(True, before, "Hello.", "en-tree", *settings)[tab.status]
    assert "now parse" in said and said.endswith("done")
    assert again(False, before, "Hello.", "en-tree", *settings)[tab.status] == "done"
    settings[3] = "everyday"
    assert again(True, before, "Hello.", "de-en", *settings)[tab.status] == "done"
    assert again(True, before, "Hello.", "en-de", *settings) == gr.skip()


def test_the_page_says_when_the_products_were_of_8_bits(monkeypatch):
    services = Services(device="cpu")
    beam = ("everyday", "beam", 4, 0.6, 1.0, 0, 0)
    for able in (True, False):
        monkeypatch.setattr("transformer.translator.Translator.int8_available", lambda self, able=able: able)
        assert ("8 bits" in search_in_words(services, *beam, True)) == able
        assert "8 bits" not in search_in_words(services, *beam, False)


@pytest.mark.parametrize("beam, n_best, word", [(10**9, 1, "beam"), (0, 1, "beam"), (4, 10**30, "translations")])
def test_more_hypotheses_than_fit_into_memory_are_refused_before_anything_is_loaded(beam, n_best, word):
    with pytest.raises(ValueError, match=f"{word} has to be from 1 to 20"):
        translate.translate_text(Services(translation_model="none"), "A dog.", "en-de", beam, 0.6, n_best)


@pytest.mark.parametrize(
    "text, beam, word", [(" ", 4, "nothing"), ("x" * 5001, 4, "5,001"), ("A dog.", 10**9, "1 to 20")]
)
def test_what_is_too_much_to_follow_is_refused_before_anything_is_loaded(text, beam, word):
    with pytest.raises(ValueError, match=word):
        decoding.trace_text(Services(translation_model="none"), text, "en-de", beam, 0.6, None, 1)


def test_an_opening_page_asks_for_a_translation_only_where_one_is_missing():
    services = Services()
    page = build(services)
    events = {fn.api_name: fn for fn in page.fns.values()}
    asking = events["arrived"]
    assert asking.concurrency_limit is None and asking.queue
    assert events["translate_arrival"].targets == [(asking.outputs[0]._id, "change")]
    is_untranslated, kept = asking.fn, opening.load(services)
    assert not is_untranslated(kept, opening.TEXT, "en-de", None) and not is_untranslated(kept, " ", "en-de", None)
    for wanted in (("A dog.", "en-de", None), (opening.TEXT, "en-fr", None), (opening.TEXT, "en-de", "wide")):
        assert is_untranslated(kept, *wanted)
    assert is_untranslated(CurrentTranslation(), opening.TEXT, "en-de", None)


# -- long texts --------------------------------------------------------------------------------------------------------


LONG = "\n\n".join(["A dog runs. A cat sleeps. Two men talk."] * 6)


def test_a_long_text_comes_part_after_part_and_ends_as_a_whole():
    services = Services(translation_model="multi30k-en-de", device="cpu")
    *parts, whole = translate.translate_in_parts(services, LONG, "en-de", 1, 0.6, 1)
    assert [len(part.sentences) for part in parts] == [4, 16] and len(whole.sentences) == 18
    assert all(whole.text.startswith(part.text) and not part.source_text for part in parts)
    at_once = services.translator().translate(LONG, "en", "de", beam=1)
    assert whole.source_text == LONG and whole.text.count("\n\n") == 5
    assert (whole.text, whole.notes) == (at_once.text, at_once.notes)
    (short,) = translate.translate_in_parts(services, "A dog runs. A cat sleeps.", "en-de", 1, 0.6, 1)
    assert short.source_text


def test_the_page_shows_each_part_with_a_way_to_cancel():
    with gr.Blocks():
        tab = TranslateTab(None, Services(translation_model="multi30k-en-de", device="cpu"))
    *parts, last = tab.translate(LONG, "en-de", 1, 0.6, 1, None, "beam", 1.0, 40, 0, False)
    assert len(parts) == 2
    for part in parts:
        assert part[tab.cancel]["visible"] and last[tab.target].startswith(part[tab.target])
        assert "sentences so far" in part[tab.status] and tab.current not in part
    assert last[tab.cancel]["visible"] is False and last[tab.current].translation.source_text == LONG
    (refused,) = tab.translate("", "en-de", 1, 0.6, 1, None, "beam", 1.0, 40, 0, False)
    assert "alert" in refused[tab.status] and refused[tab.cancel]["visible"] is False


# -- addresses ---------------------------------------------------------------------------------------------------------


def told(**fields):
    return visit.read_visit(json.dumps(fields))


def test_an_address_leads_to_a_view_its_step_and_its_part():
    with gr.Blocks():
        tab = TranslateTab(None, Services())
    kept, views = opening.load(tab.services), tab.views
    led = tab.lead(told(view="one_head", step=4), kept)
    assert (led[views.open], led[tab.query]) == ("one_head", 3)
    assert tab.lead(told(view="what_if", part="model"), kept)[views[WhatIfView].part] == "model"
    assert views[WhatIfView].part not in tab.lead(told(view="what_if", part="<b>"), kept)
    for fields in ({"view": "<b>"}, {"view": "tree"}):  # the sentence that is shown has no tree
        assert tab.lead(told(**fields), kept) == {}
    assert tab.lead(told(view="tree"), None)[views.open] == "tree"
    assert set(tab.lead_outputs) >= set(led)


def test_addresses_of_earlier_views_lead_to_where_they_are_now():
    with gr.Blocks():
        tab = TranslateTab(None, Services())
    kept, views = opening.load(tab.services), tab.views
    compare = tab.lead(told(view="compare"), kept)
    assert (compare[views.open], compare[views[WhatIfView].part]) == ("what_if", "sides")
    learning = tab.lead(told(view="learning"), kept)
    assert (learning[views.open], learning[views[LayersView].question]) == ("layers", "learning")
    assert tab.lead(told(view="save"), kept)[views.open] == "attention"
    assert {"compare", "learning", "save"}.isdisjoint(views.items) and views.items["tree"].visible is False
