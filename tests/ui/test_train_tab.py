import base64
import json

import numpy as np
import pytest
from PIL import Image

from training.run import Run
from ui import train


@pytest.fixture
def runs(tmp_path):
    """A folder with one run that stopped at step 40 of 100, and one that has not begun."""
    run = Run(tmp_path / "first")
    (tmp_path / "second").mkdir()
    for name in ("first", "second"):
        (tmp_path / name / "recipe.json").parent.mkdir(exist_ok=True)
        (tmp_path / name / "recipe.json").write_text(json.dumps({"task": "AliasTask", "steps": 100}))
    run.log("start", step=0, steps=100)
    for step in (20, 40):
        run.log(
            "log",
            step=step,
            losses={"l1": 1 / step, "gan": float("nan")},
            learning_rates={"g": 0.1},
            gradient_norms={"g": 2.0},
            items_per_second=12.0,
            seconds_left=600.0,
            memory_mb=1500.0,
        )
    run.log("evaluation", step=40, figures={"ssim": 0.5})
    run.log("stopped", step=40)
    for step in (20, 40):
        folder = run.samples(step)
        folder.mkdir(parents=True)
        Image.fromarray(np.full((4, 3, 3), step, np.uint8)).save(folder / "result.png")
        (folder / "translations.txt").write_text(f"<b>step {step}</b>")
    return tmp_path


def test_runs_are_listed_and_only_listed_names_are_opened(runs):
    assert sorted(train.list_runs(runs)) == ["first", "second"]
    assert train.list_runs(runs / "nothing here") == []
    for name in ("..", "../first", "/etc", "third", None):
        with pytest.raises(ValueError, match="no run"):
            train.open_run(runs, name)


def test_report_says_state_step_and_speed(runs):
    run = train.open_run(runs, "first")
    text = train.report(run, list(run.events()))
    assert "ALIAS generator was stopped and can be resumed at step 40 of 100" in text and "12 pictures/s" in text
    assert "left" not in text  # nobody waits for a run that stands still
    assert train.report(train.open_run(runs, "second"), []) == "ALIAS generator has not begun."


def test_report_of_a_run_that_works_tells_the_time_left(runs):
    run = train.open_run(runs, "first")
    worker = Run(runs / "first")
    worker.acquire()
    try:
        assert "is starting" in train.report(run, list(run.events()))  # it resumes: its last word is still the old one
        worker.log("start", step=40, steps=100)
        text = train.report(run, list(run.events()))
    finally:
        worker.release()
    assert train.state_of(run) == "interrupted"
    assert "is running at step 40 of 100" in text and "about 10 min left" in text


def test_curves_hold_every_finite_number(runs):
    events = list(train.open_run(runs, "first").events())
    losses = train.curves(events, "log", "losses")
    assert losses.to_dict("list") == {"step": [20, 40], "value": [1 / 20, 1 / 40], "name": ["l1", "l1"]}
    assert train.curves(events, "evaluation", "figures")["value"].tolist() == [0.5]
    assert train.curves([], "log", "losses").empty


def test_bleu_shares_the_chart_with_the_validation_loss():
    events = [{"event": "evaluation", "step": 5, "figures": {"loss": 2.5, "bleu": 31.0, "perplexity": 12.0}}]
    table = train.curves(events, "evaluation", "figures")
    assert dict(zip(table["name"], table["value"])) == {"loss": 2.5, "BLEU / 10": 3.1}


def test_long_curves_are_thinned_and_keep_their_ends():
    events = [{"event": "log", "step": step, "losses": {"a": step, "b": -step}} for step in range(1, 5001)]
    table = train.curves(events, "log", "losses")
    assert len(table) == 2 * train.MOST_POINTS
    assert table["step"].min() == 1 and table["step"].max() == 5000


def test_samples_of_a_step(runs):
    run = train.open_run(runs, "first")
    assert train.sample_steps(run) == [20, 40]
    pictures, text = train.read_samples(run, 20)
    assert text == "<b>step 20</b>"
    ((picture, name),) = pictures
    assert name == "result, step 20" and (picture == 20).all()


@pytest.mark.parametrize("seconds, words", [(45, "45 s"), (600, "10 min"), (11_100, "3 h 05 min")])
def test_durations(seconds, words):
    assert train.duration(seconds) == words


def test_the_learning_rate_stands_beside_its_formula(runs):
    run = Run(runs / "first")
    run.write_plan("constant", {"g": [(1, 0.1), (100, 0.1)]})
    table = train.rates(run, list(run.events()))
    assert table.groupby("name")["step"].apply(list).to_dict() == {"g, formula": [1, 100], "g, used": [20, 40]}
    assert train.rates(train.open_run(runs, "second"), []).empty


def write_attention(folder, peak):
    """Two layers of two heads, 3 target and 4 source tokens; head 1 of layer 2 looks at the source token `peak`."""
    cross = np.full((2, 2, 3, 4), 0.25, np.float16)
    cross[1, 0] = 0
    cross[1, 0, :, peak] = 1
    tokens = {"source": np.array(list("abc") + ["</s>"]), "read": np.array(["<s>", "x", "y"]), "said": np.array(["x", "y", "</s>"])}
    maps = {"encoder": np.full((2, 2, 4, 4), 0.25, np.float16), "decoder": np.eye(3, dtype=np.float16)[None, None].repeat(2, 0), "cross": cross}
    np.savez_compressed(folder / "attention.npz", **maps, **tokens)


def test_attention_of_one_sentence_over_time(runs):
    run = train.open_run(runs, "first")
    for step, peak in ((20, 0), (40, 2)):
        write_attention(run.samples(step), peak)
    attention = train.read_attention(run, 40)
    assert train.head_choices(attention, "cross")[:2] == [("Layer 2, mean over heads", "1/mean"), ("Layer 2, head 1", "1/0")]
    shown = train.attention_map(attention, "cross", "1/0", 40)
    weights = np.frombuffer(base64.b64decode(shown["weights"]), "<f4").reshape(3, 4)
    assert (weights.argmax(1) == 2).all() and shown["rows"] == ["x", "y", "</s>"] and shown["columns"][-1] == "</s>"
    assert shown["title"] == "Layer 2, head 1 · step 40"
    assert train.attention_map(attention, "decoder", "7/9", 40)["columns"] == ["<s>", "x", "y"]
    earlier = train.attention_map(train.read_attention(run, 20), "cross", "1/0", 20)
    assert earlier["weights"] != shown["weights"]
    (run.samples(40) / "attention.npz").write_bytes(b"half")
    assert train.read_attention(run, 40) is None


def test_the_last_words_of_a_run_that_failed(runs):
    run = Run(runs / "second")
    (run.folder / "output.log").write_text("step 1\n" + "error: <b>disk</b>\n" * 30)
    assert train.output_of(run) == ""
    run.log("failed", reason="The disk is full.")
    assert train.report(run, list(run.events())) == "ALIAS generator has failed, The disk is full."
    assert train.output_of(run).splitlines() == ["error: <b>disk</b>"] * train.TAIL
