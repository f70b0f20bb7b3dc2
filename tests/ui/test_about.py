import json

import gradio as gr
import pytest

from training import assets
from ui import first, theme
from ui.about import FAILURES, AboutTab, cards, parts


@pytest.mark.parametrize("name", assets.list_models())
def test_a_card_opens_with_what_the_model_can_and_cannot_do_and_loses_nothing(name):
    text = next(card for shown, card, _ in cards() if shown == name)
    can, cannot, rest = parts(text)
    assert can and cannot and not can.startswith(("|", "#", "```")) and "## " not in can + cannot
    body = text.split("\n", 1)[1].replace(FAILURES, "")
    assert sorted(f"{can} {cannot} {rest}".split()) == sorted(body.split())


def test_a_card_without_sections_is_shown_as_it_is():
    assert parts("This model has no card.") == ("This model has no card.", "", "")


def test_a_model_that_was_put_there_without_card_or_title_still_shows(monkeypatch, tmp_path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "config.json").write_text("{}")
    monkeypatch.setattr(assets, "assets_dir", lambda: tmp_path)
    assert cards() == [("mine", "This model has no card.", 0.0)]
    with gr.Blocks() as page:
        AboutTab("about", None).build()
    labels = [block.label for block in page.blocks.values() if isinstance(block, gr.Accordion)]
    assert "mine · 0.0 MB" in labels


def test_a_card_has_a_title_in_words_of_every_language():
    titles = json.loads(theme.read("about/titles.json"))
    assert sorted(titles) == sorted(assets.list_models()) and len(set(titles.values())) == len(titles)
    for language in set(first.LANGUAGES) - {"en"}:
        assert set(titles.values()) <= set(json.loads(theme.read(f"words/{language}.json")))
