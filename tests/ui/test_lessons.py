"""The lessons: their times, their links, their gaps, and the pencil sheet as the browser gets it."""

import re

import pytest

from ui.lessons import paths, tab
from ui.page import TABS
from ui.services import Services
from ui.translate import opening
from ui.translate.tab import VIEWS as TRANSLATE
from ui.translate.words import plain
from ui.tryon import example

NAMES = {"attention": 45, "try-on": 45, "gan": 20}


def views_of():
    """Tab -> names of its views, as the page registers them."""
    from ui.gan.tab import VIEWS as GAN
    from ui.tryon.tab import VIEWS as TRYON

    found = {"translate": TRANSLATE, "try-on": TRYON, "gan": GAN, "lessons": tab.VIEWS}
    return {name: {view.name for view in views} for name, views in found.items()}


def facts(name):
    current = opening.load(Services(device="cpu"))
    stored = example.load_example().facts["settings"]
    return {"attention": lambda: paths.of_sentence(current), "try-on": lambda: paths.of_tryon(stored), "gan": dict}[
        name
    ]()


@pytest.mark.parametrize("name", NAMES)
def test_a_path_takes_its_time_and_every_stop_asks_tells_and_answers(name):
    path = paths.read_path(name)
    assert path.minutes == NAMES[name]
    for stop in path.stops:
        assert stop.title and stop.question.strip().endswith("?") and stop.do and stop.answer and stop.minutes > 0
    assert name in {view.name for view in tab.VIEWS}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_of_a_path_leads_to_a_view_of_the_page(name):
    html, known = paths.html(paths.read_path(name), name, facts(name)), views_of()
    links = re.findall(r'href="#([^"]*)"', html)
    assert len(links) > len(paths.read_path(name).stops)
    for link in links:
        told = dict(part.split("=") for part in link.replace("&amp;", "&").split("&"))
        where = told.get("tab", "translate")
        assert where in {kind.name for kind in TABS}
        assert told.get("view") is None or told["view"] in known[where], link
        assert told.get("kind") in (None, "cross", "encoder", "decoder")


def test_the_path_of_attention_speaks_of_the_sentence_that_is_shown():
    current = opening.load(Services(device="cpu"))
    told = paths.of_sentence(current)
    weights = current.attention.cross[-1].mean(0)
    row = [plain(token) for token in current.attention.target_tokens].index(re.sub("<.*?>", "", told["query"]))
    column = [plain(token) for token in current.attention.source_tokens].index(re.sub("<.*?>", "", told["key"]))
    assert told["weight"] == pytest.approx(weights[row, column], abs=1e-6)
    html = paths.html(paths.read_path("attention"), "attention", told)
    assert (
        opening.TEXT.replace("'", "&#x27;") in html
        and f"It reads {len(current.attention.source_tokens)} pieces" in html
    )
    assert "{" not in html
    size = len(current.attention.target_tokens)
    assert told["hidden"] == sum(1 for i in range(size) for j in range(size) if j > i)


def test_without_anything_on_the_page_a_path_says_what_to_do():
    from ui.translate.view import CurrentTranslation

    with pytest.raises(ValueError, match="Translate a sentence"):
        paths.of_sentence(CurrentTranslation())
    with pytest.raises(ValueError, match="Try a garment on"):
        paths.of_tryon(None)
    with pytest.raises(ValueError, match="Translate a sentence"):
        tab.experiments_html(Services(device="cpu"), CurrentTranslation())


def test_markup_of_a_visitor_stays_text():
    current = opening.load(Services(device="cpu"))
    current.translation.sentences[0].source_text = "<img src=x onerror=alert(1)>"
    html = paths.html(paths.read_path("attention"), "attention", paths.of_sentence(current))
    assert "<img" not in html and "&lt;img" in html


def test_the_sheet_is_all_numbers_for_the_browser():
    sheet = tab.sheet()
    cells = [value for step in sheet["steps"] for row in step["values"] for value in row]
    assert len(cells) == 100 and all(isinstance(value, float) for value in cells)
    assert [step["name"] for step in sheet["steps"]][0] == "Queries" and sheet["x"] == [[2, 0, 1, 1], [0, 2, 1, 1]]


def test_endless_nonsense_is_cut_and_compared_as_far_as_it_is_shown():
    words = [f"w{i}" for i in range(40)]
    assert tab.clip(" ".join(words[:12])) == " ".join(words[:12])
    assert tab.clip(" ".join(words)) == " ".join(words[:12]) + " …"
    assert tab.difference_html("a b", "a b") == "<i>the same</i>"
    assert tab.difference_html(" ".join(words), " ".join(words[:30])) == "<i>the same up to word 12</i>"
    assert "w12" not in tab.difference_html("a", " ".join(words))
