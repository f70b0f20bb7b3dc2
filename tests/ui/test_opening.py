"""What the page opens with is what the shipped model gives, and what a link asks for is checked."""

import json

import numpy as np
import pytest

from transformer.insight.interpret import KINDS
from ui.services import Services
from ui.translate import languages, opening, visit
from ui.translate.words import plain, query_names


def test_what_is_kept_is_what_the_shipped_model_gives():
    """If this fails after new weights: python -m ui.translate.opening"""
    services = Services(device="cpu")
    kept, made = opening.load(services), opening.record(services)
    assert kept.translation.text == made["translation"]["text"]
    assert [h.text for h in kept.translation.hypotheses] == [h["text"] for h in made["translation"]["hypotheses"]]
    for kind in KINDS:
        own = opening._decode(made["attention"][kind])
        np.testing.assert_allclose(getattr(kept.attention, kind), own, atol=1e-3)
    assert kept.attention.source_tokens == made["attention"]["source_tokens"]
    assert opening.FILE.stat().st_size < 300_000


def test_another_default_model_has_no_opening_of_its_own():
    assert opening.load(Services(translation_model="multi30k-en-de")) is None


def test_queries_are_named_by_what_they_do():
    attention = opening.load(Services()).attention
    names = query_names(attention, "cross")
    assert names[0].startswith("after (start), choosing ") and names[-1].endswith(", choosing (end)")
    assert query_names(attention, "decoder") == names and query_names(attention, "encoder")[2] == "reading animal"
    assert [plain(t) for t in ("▁Tier", "quer", ",", "</s>", "<2de>", "▁")] == [
        "Tier",
        "‑quer",
        ",",
        "(end)",
        "(to German)",
        "␣",
    ]


def test_a_link_is_read_with_care():
    told = {"text": "A dog.", "pair": "en-fr", "view": "through", "kind": "encoder", "layer": "2", "head": "3"}
    assert visit.read_visit(json.dumps(told)) == visit.Visit("A dog.", "en-fr", None, "through", "encoder", 1, 2)
    assert visit.read_visit(json.dumps({"head": "rollout", "layer": 1})).head == "rollout"
    strange = {"text": ["x"], "pair": 3, "kind": "../secrets", "layer": "-1", "head": "<b>", "model": "m" * 999}
    for carried in (None, "", "[1]", "not json", json.dumps(strange), json.dumps({"text": "a" * 5001})):
        assert visit.read_visit(carried) == visit.Visit()


@pytest.mark.parametrize(
    "text, language",
    [
        ("Der Hund ist nicht auf der Straße.", "de"),
        ("Le chat est dans la rue et il est fatigué.", "fr"),
        ("The animal didn't cross the street.", "en"),
        ("Taxi", None),
        ("Anna Karenina", None),
    ],
)
def test_a_language_is_noticed_where_it_is_plain(text, language):
    assert languages.plainly_in(text) == language
    better = languages.better_pair(Services(), text, "en-de", None)
    assert better == {"de": "de-en", "fr": "fr-en"}.get(language)
