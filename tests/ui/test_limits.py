"""What a model cannot do is told by its stored checklist, as text."""

import json

from training.assets import model_dir
from transformer import checklist
from ui.translate import limits


def test_weak_kinds_are_named_with_what_became_of_them(monkeypatch):
    rows = [
        {"kind": "words", "half": "card", "pair": "en-de", "right": 5, "of": 10, "wrong": [["<b>Save", "Saub"]]},
        {"kind": "clock", "half": "card", "pair": "en-de", "right": 10, "of": 10, "wrong": []},
        {"kind": "words", "half": "choosing", "pair": "en-de", "right": 0, "of": 10, "wrong": []},
        {"kind": "words", "half": "card", "pair": "de-en", "right": 0, "of": 10, "wrong": []},
    ]
    monkeypatch.setattr(checklist, "load_summary", lambda folder: rows)
    html = limits.limits("everyday", "en-de")
    assert "15 come out right (75 %)" in html and "clock" not in html
    assert "<strong>words</strong>: 50 % right" in html and "“&lt;b&gt;Save” became “Saub”" in html


def test_a_model_without_a_checklist_says_so():
    assert "has not been counted" in limits.limits("run:mine@3", "en-de")
    assert "has not been counted" in limits.limits("everyday", "de-fr")


def test_the_shipped_model_has_been_counted():
    rows = json.loads((model_dir("everyday") / checklist.FILE).read_text(encoding="utf-8"))
    html = limits.limits("everyday", "en-de")
    own = [row for row in rows if row["pair"] == "en-de" and row["half"] == "card"]
    assert len(own) == 14 and f"Of {sum(row['of'] for row in own)} short texts of 14 kinds" in html
