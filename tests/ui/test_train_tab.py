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
    assert "AliasTask was stopped and can be resumed at step 40 of 100" in text and "12 pictures/s" in text
    assert "left" not in text  # nobody waits for a run that stands still
    assert train.report(train.open_run(runs, "second"), []) == "AliasTask has not begun."


def test_report_of_a_run_that_works_tells_the_time_left(runs):
    run = train.open_run(runs, "first")
    worker = Run(runs / "first")
    worker.acquire()
    try:
        text = train.report(run, list(run.events()))
    finally:
        worker.release()
    assert "is running at step 40 of 100" in text and "about 10 min left" in text


def test_curves_hold_every_finite_number(runs):
    events = list(train.open_run(runs, "first").events())
    losses = train.curves(events, "log", "losses")
    assert losses.to_dict("list") == {"step": [20, 40], "value": [1 / 20, 1 / 40], "name": ["l1", "l1"]}
    assert train.curves(events, "evaluation", "figures")["value"].tolist() == [0.5]
    assert train.curves([], "log", "losses").empty


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
