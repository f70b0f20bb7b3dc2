"""The GAN tab's handlers: a game for each visitor, one sentence for what cannot be,
and files that hold what is shown.
"""

import base64
import csv
import gc
import io
import json
import re

import gradio as gr
import numpy as np
import pytest

from gan import laboratory
from gan.export import save_pair
from gan.networks import GanConfig, Pair
from ui.figures import floats
from ui.gan import exports, models
from ui.gan.api import Api
from ui.gan.digits import DigitsView, parzen_html, sigma_curves
from ui.gan.exports import encode
from ui.gan.game import OWN_POINTS, LineView, LossView, PlaneView
from ui.gan.tab import GanTab
from ui.kit import Views
from ui.services import Services

LINE = ["line", "non-saturating", 1, 5e-4, 1e-2, "adam", 1]
RING = ["ring", "non-saturating", 1, 2e-3, 6e-3, "adam", 1]


@pytest.fixture
def views():
    """A view of each kind, built as the page builds them."""
    with gr.Blocks():
        yield {kind.name: kind(None, Services()) for kind in (LineView, PlaneView, LossView)}


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A tiny pair in the place of the shipped one."""
    pair = Pair(GanConfig(784, 5, (6,), "relu", "sigmoid", 1.0, (4,), 2, 1.0, 1.0))
    save_pair(tmp_path / "digits", pair.config, pair.generator.state_dict(), pair.discriminator.state_dict())
    monkeypatch.setattr("training.assets.model_dir", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "shipped_model", lambda: tmp_path / "digits")
    return tmp_path / "digits"


def played(view, *settings):
    """A running game of that view, and `turn(speed)` that asks for its next picture as the page's script does."""
    made = view.start(None, *settings)
    key = made[view.game]["key"]
    return made[view.lab], lambda speed: view.frame({"key": key, "speed": speed})


def read(text):
    return np.frombuffer(base64.b64decode(text), np.float32)


def test_two_visitors_never_share_a_game(views):
    view = views["line"]
    (first, turn), (second, other) = (played(view, *LINE) for _ in range(2))
    turn(3)
    assert first.iteration == 3 and second.iteration == 0
    other(3)
    assert str(first.table()) == str(second.table())  # alike, but each by itself


def test_pause_ends_what_is_under_way(views):
    view = views["line"]
    game, turn = played(view, *LINE)
    turn(2)
    view.stop(game)
    assert turn(2) == {"over": True} and game.iteration == 2  # a request that was on its way
    game.advance(50, game.pause)
    assert game.iteration == 2 and len(game.moments) == 2
    again = view.start(game, *LINE)[view.game]["key"]
    view.frame({"key": again, "speed": 2})
    assert game.iteration == 4
    view.show(game, *LINE)  # back from another tab: shown as it was left
    assert view.frame({"key": again, "speed": 2}) == {"over": True}


def test_a_new_start_runs_on_only_if_the_game_ran(views):
    view = views["line"]
    game, turn = played(view, *LINE)
    made = view.begin(game, *LINE)
    assert made[view.game]["playing"] is True and turn(1) == {"over": True}
    view.stop(made[view.lab])
    assert view.begin(made[view.lab], *LINE)[view.game]["playing"] is False


def test_only_who_has_the_key_is_answered(views):
    view = views["line"]
    game, turn = played(view, *LINE)
    for asked in ({}, {"key": "guessed", "speed": 1}, None, ["key"], {"key": ["a"], "speed": 1}):
        assert "press Play" in view.frame(asked)["sentence"]
    for speed in (None, "fast", 1.5, float("nan")):
        assert "number of iterations" in turn(speed)["sentence"]
    turn(10**9)
    assert game.iteration == 50


@pytest.mark.parametrize("kind", ["line", "plane", "loss"])
def test_a_picture_holds_what_its_script_draws(views, kind):
    view = views[kind]
    _, turn = played(view, *(RING if kind == "plane" else LINE))
    shown = json.loads(json.dumps(turn(2), allow_nan=False))  # as it travels
    assert shown["row"]["iteration"] == 2 and shown["moments"] == 2
    rows = {name: read(column) for name, column in shown["rows"].items()}
    assert rows["iteration"].tolist() == [0, 2] and np.isfinite(rows["jsd"]).all()
    if kind == "plane":
        assert len(read(shown["measured"])) == 64**2 and len(read(shown["warped"])) == 22 * 25 * 2
    else:
        assert len(read(shown["data"])) == len(read(shown["best"])) == 240
    if kind == "loss":
        marks = read(shown["losses"]["marks"])
        assert marks.min() >= 0 and marks.max() <= 1 and len(read(shown["losses"]["minimax_by_logit"])) == 249


def test_settings_change_while_it_runs_and_bad_ones_are_a_sentence(views):
    view = views["line"]
    game, turn = played(view, *LINE)
    made = view.change(game, "line", "minimax", 4, 1e-3, 1e-3, "sgd", 1)
    assert game.settings.objective == "minimax" and game.settings.k == 4
    assert made[view.game]["playing"] is None and turn(1)["row"]["iteration"] == 1  # it goes on
    for field, value, sentence in (
        (3, None, "learning rate"),
        (2, 1.5, "k has to be a whole number"),
        (4, -1, "learning rate"),
    ):
        given = [*LINE]
        given[field] = value
        assert sentence in view.change(game, *given)[view.note]
    assert game.settings.k == 4


def test_a_learning_rate_of_100_ends_the_game_and_says_so(views):
    view = views["line"]
    game, turn = played(view, "line", "non-saturating", 1, 100.0, 100.0, "sgd", 1)
    shown = [turn(10) for _ in range(5)][-1]
    assert shown["failed"] and "last good state" in shown["note"]
    assert np.isfinite(read(shown["generated"])).all()


def test_lost_games_and_expired_ones(views):
    view = views["plane"]
    made = view.lose_modes(None, *RING)
    assert made[view.objective] == "minimax" and made[view.game]["playing"] is True
    assert made[view.lab].settings.lr_d == 2e-2
    key = made[view.game]["key"]
    assert view.frame({"key": key, "speed": 1})["row"]["iteration"] == 1
    del made  # as the page forgets a game after an hour
    gc.collect()
    assert "is gone" in view.frame({"key": key, "speed": 1})["sentence"]
    assert "no game to save" in view.write(None)[view.note]


def test_points_that_a_visitor_draws_begin_a_game(views):
    view = views["plane"]
    event = type("E", (), {"points": [[0, 1], [2, -2]]})
    made = view.draw(None, OWN_POINTS, *RING[1:], event)
    assert made[view.game]["drawing"] and made[view.game]["row"]["iteration"] == 0
    event.points = [[99, 1]]
    assert "have to lie within" in view.draw(None, OWN_POINTS, *RING[1:], event)[view.note]


@pytest.mark.parametrize("name", ["line", "ring"])
def test_csv_and_page_hold_the_game(name):
    game = laboratory.Laboratory(name)
    for _ in range(3):
        game.advance(1)
    rows = list(csv.DictReader(io.StringIO(exports.csv_text(game))))
    assert [row["iteration"] for row in rows] == ["0", "1", "2", "3"]
    assert float(rows[-1]["jsd"]) == pytest.approx(game.table()[-1]["jsd"])
    page = exports.html(game)
    assert "@@" not in page and "default-src 'none'" in page and "http://" not in page.replace("http://www.w3.org", "")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    frames = json.loads(data, parse_constant=pytest.fail)  # NaN is no JSON
    assert [frame["row"]["iteration"] for frame in frames] == [0, 1, 2, 3] and "<" not in data
    assert game.iteration == 3


def test_floats_travel_as_float32():
    assert read(floats([1, 2.5, float("nan")]))[:2].tolist() == [1, 2.5]
    assert read(encode({"rows": [], "x": laboratory.torch.ones(2, 2)})["x"]).tolist() == [1] * 4


def test_the_endpoints_alone_are_public(tmp_path):
    with gr.Blocks() as page:
        Views([GanTab], page, Services(runs=tmp_path), elem_id="pages").wire()
    public = {f.api_name for f in page.fns.values() if f.api_visibility == "public" and f.fn is not None}
    assert public == {"gan_step", "gan_sample"}


# -- digits and the endpoints ---------------------------------------------------------------------------------------


def test_without_weights_the_digits_view_says_so_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "shipped_model", lambda: None)
    with gr.Blocks():
        view = DigitsView(None, Services(runs=tmp_path))
    made = view.open(None)
    assert "python -m gan.train --preset digits" in made[view.note] and made[view.model]["choices"] == []
    assert "No weights" in view.sample(None, 0, 8, None, "")[view.note]
    with pytest.raises(gr.Error, match="No weights for digits"):
        Api(view.models).gan_sample(4)


def test_the_view_fills_itself_when_it_is_opened(tmp_path, shipped):
    with gr.Blocks():
        view = DigitsView(None, Services(runs=tmp_path))
    seen = []
    for made in view.show(None, 3, 8, None, "", 1, 2, 0.25):
        seen += [one for one in made if made[one] not in (None, "")] if view.model in made else list(made)
        for update in made.values():
            if isinstance(update, dict):
                update.clear()  # as Gradio does
    assert {view.model, view.sheet, view.strip, view.past} <= set(seen)


def test_samples_walk_and_opinion(tmp_path, shipped):
    with gr.Blocks():
        view = DigitsView(None, Services(runs=tmp_path))
    assert view.open(None)[view.model]["value"] == "digits"
    first, again = (view.sample("digits", 3, 8, None, "")[view.sheet] for _ in range(2))
    assert first.shape == ((28 + 4) * 3, (8 * 30 + 2) * 3) and (first == again).all()
    made = view.walk("digits", 1, 2, 0.25)
    assert made[view.strip].shape[1] == (11 * 30 + 2) * 3 and "0.25" in made[view.here]["label"]
    drawing = np.zeros((56, 56), np.uint8)
    drawing[10:40, 26:32] = 255
    event = type("E", (), {"side": 56, "pixels": base64.b64encode(drawing.tobytes()).decode()})
    assert "D(x) = 0." in view.ask("digits", event)[view.opinion]
    event.pixels = base64.b64encode(bytes(56 * 56)).decode()
    assert "Draw a digit first." in view.ask("digits", event)[view.opinion]
    event.side = 999
    assert "did not arrive whole" in view.ask("digits", event)[view.opinion]
    assert "networks are gone" in view.sample("run:nothing", 0, 8, None, "")[view.note]
    early = view.sample(None, 3, 8, None, "")  # as the tour asks, before the list of networks is there
    np.testing.assert_array_equal(early[view.sheet], first)
    assert early[view.note] == ""


def test_a_local_page_compares_with_the_digits_of_its_run(tmp_path, shipped, monkeypatch):
    data, run = tmp_path / "data", tmp_path / "runs" / "one"
    data.mkdir()
    run.mkdir(parents=True)
    (run / "recipe.json").write_text(json.dumps({"task": "GanTask", "data": str(data)}))
    monkeypatch.setattr(models, "runs_of_digits", lambda services: {"one": [1]})
    for local, before, folder in ((True, "", str(data)), (True, "/mine", "/mine"), (False, "", "")):
        with gr.Blocks():
            view = DigitsView(None, Services(runs=tmp_path / "runs", local=local))
        assert view.open(None, before)[view.folder] == folder


def test_parzens_table_names_what_refutes_it():
    score = {"mean": 1.0, "error": 0.1, "sigma": 0.2, "curve": [[0.1, -9000.0], [0.2, 5.0]]}
    found = {
        "scores": {
            "adversarial nets": score,
            "training data": {**score, "mean": 2.0},
            "k-means": {**score, "mean": 3.0},
        }
    }
    html = parzen_html(found)
    assert html.index("k-means") < html.index("training data") < html.index("adversarial nets")
    assert "<b>k-means</b> score above the training data" in html and "225 ± 2 cannot be compared with" in html
    # One point of each curve is too low to be shown.
    assert [one["values"] for one in sigma_curves(found)["lines"]] == [(5.0,)] * 3


def test_the_endpoints(tmp_path, shipped):
    api = Api(models.DigitModels(Services(runs=tmp_path)))
    found = api.gan_step("ring", iterations=4, every=2)
    assert [row["iteration"] for row in found["table"]] == [0, 2, 4] and len(found["samples"][0]) == 2
    json.dumps(found, allow_nan=False)
    assert api.gan_step("line", 2)["table"][-1]["modes"] is None
    drawn = api.gan_sample(3, seed=1)
    assert base64.b64decode(drawn["png"])[:4] == b"\x89PNG" and len(drawn["opinions"]) == 3
    for call, sentence in (
        (lambda: api.gan_step("torus"), "Unknown distribution"),
        (lambda: api.gan_step("line", 10**9), "from 1 to 5,000"),
        (lambda: api.gan_sample(10**6), "from 1 to 256"),
    ):
        with pytest.raises(gr.Error, match=sentence):
            call()
