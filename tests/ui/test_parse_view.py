"""The tree that is drawn is the parser's, every text escaped; `/parse` and the files carry the same."""

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch

from transformer.config import preset
from transformer.model import Transformer
from transformer.parsing.linear import linearise, phrases, symbols
from transformer.parsing.parser import Parser
from transformer.parsing.trees import parse_brackets
from transformer.tokenizer import Tokenizer
from ui import page
from ui.services import Services
from ui.translate import parse
from ui.translate.view import CurrentTranslation
from ui.translate.words import plain

TEXT = 'The <b>cell</b> & "its" wall divide.'


@pytest.fixture(scope="module")
def parser():
    """Untrained: whatever it prefers, it writes trees."""
    tokens = symbols(["S", "NP", "VP", "PP"])
    texts = ["The cell divides .", "A gene of the mouse moves .", TEXT] * 20
    tokenizer = Tokenizer.train(texts, 90, controls=tokens)
    torch.manual_seed(3)
    config = preset("mini", vocab_size=len(tokenizer), output_bias=True, max_length=400)
    model = Transformer(config)
    with torch.no_grad():
        model.output_bias[4 + len(tokens) :] = -1e4
    return Parser(model.eval(), tokenizer, tokens)


@pytest.fixture
def services(parser, tmp_path, monkeypatch):
    services = Services(runs=tmp_path)
    monkeypatch.setattr(services, "translator", lambda key=None: parser)
    return services


def current(parser, text=TEXT, **options) -> CurrentTranslation:
    found = parser.translate(text, beam=2, alpha=0.3, n_best=2, max_length=40, **options)
    return CurrentTranslation(
        found, hypothesis=1, attention=parser.attend(found, hypothesis=1), model="parse", pair="en-tree"
    )


def test_the_drawing_is_the_tree(parser):
    look = current(parser)
    sentence = look.translation.sentences[0]
    root = ElementTree.fromstring(parse.tree_svg(sentence, 1))
    groups = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("data-row")]
    texts = ["".join(g.itertext()) for g in groups]
    found = phrases(linearise(sentence.trees[1]))
    assert texts == [one.label for one in found] + sentence.words
    assert "<" in texts and "&" in texts  # as text, which a drawing that parses shows to be escaped
    lines = list(root.iter("{http://www.w3.org/2000/svg}path"))
    assert len(lines) == len(found) - 1 + len(sentence.words)  # each node but the topmost hangs from one


def test_rows_carry_their_words_and_what_they_looked_at(parser):
    look = current(parser)
    made = parse.drawing(look)
    sentence = look.translation.sentences[0]
    spans = [(one.start, one.end) for one in phrases(linearise(sentence.trees[1]))]
    assert [tuple(span) for span in made["spans"]] == spans + [(i, i + 1) for i in range(len(sentence.words))]
    assert len(made["looks"]) == len(made["spans"]) == len(made["labels"])
    assert all(len(row) == len(sentence.words) and 0 < sum(row) <= 1.0001 for row in made["looks"])


def test_the_view_says_why_it_is_empty(services, parser, monkeypatch):
    class Component(SimpleNamespace):
        __hash__ = object.__hash__

    view = parse.TreeView.__new__(parse.TreeView)
    view.services = services
    for name in ("note", "results", "tree", "brackets"):
        setattr(view, name, Component(name=name))
    monkeypatch.setattr(parse, "model_pairs", lambda: {})
    assert "not installed" in view.show(CurrentTranslation())[view.note]
    monkeypatch.setattr(parse, "model_pairs", lambda: {"parse": [("en", "tree")]})
    assert "choose English" in view.show(CurrentTranslation())[view.note]
    drawn = view.show(current(parser))
    assert "repaired" in drawn[view.note] and parse_brackets(drawn[view.brackets]).words()[0] == "The"


def test_files(parser, tmp_path):
    look = current(parser)
    picture, brackets = parse.save(look, tmp_path)
    ElementTree.parse(picture)
    assert parse_brackets(brackets.read_text()) == look.translation.sentences[0].trees[1]
    with pytest.raises(ValueError, match="no tree to save"):
        parse.save(CurrentTranslation(), tmp_path)


def test_the_api(services, monkeypatch):
    blocks = page.build(services)
    api = {f.api_name: f for f in blocks.fns.values()}["parse"]
    assert api.api_visibility == "public"
    monkeypatch.setattr(parse, "model_pairs", lambda: {"parse": [("en", "tree")]})
    (sentence,) = api.fn("The cell divides.", beam=3)["sentences"]
    assert parse_brackets(sentence["tree"]).words() == sentence["words"] == ["The", "cell", "divides", "."]
    assert sentence["phrases"][0]["start"] == 0 and sentence["phrases"][0]["end"] == 4
    assert sentence["repairs"] >= 0


@pytest.mark.parametrize(
    ("text", "beam", "says"),
    [
        ("Das ist nicht die Zelle.", 4, "looks German"),
        ("word " * 200, 4, "200 words"),
        ("", 4, "enter some text"),
        ("x" * 3000, 4, "3,000 characters"),
        ("The cell.", 50, "from 1 to 21"),
    ],
)
def test_what_cannot_be_parsed_is_one_sentence(services, monkeypatch, text, beam, says):
    monkeypatch.setattr(parse, "model_pairs", lambda: {"parse": [("en", "tree")]})
    with pytest.raises(ValueError, match=says) as error:
        parse.parse_text(services, text, beam, 0.3)
    assert "\n" not in str(error.value)


def test_a_leaf_is_a_word_and_not_a_piece_that_goes_on_with_one(parser):
    look = current(parser)
    leaves = [plain(token) for token in look.attention.target_tokens if not token.startswith(("(", ")", "<"))]
    assert leaves == look.translation.sentences[0].words


def test_without_weights_it_says_so(services, monkeypatch):
    monkeypatch.setattr(parse, "model_pairs", lambda: {})
    with pytest.raises(ValueError, match="weights, assets/models/parse, are not installed"):
        parse.parse_text(services, "The cell divides.", 4, 0.3)
