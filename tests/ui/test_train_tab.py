"""What the Train tab reads of a run's folder: its state in words, its heartbeat, its curves, its samples."""

import base64
import json

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from training.run import Run, list_runs, open_run
from ui.services import Services
from ui.train import networks, recipes, watch
from ui.train.controls import sign
from ui.train.view import RunView


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


def look(runs, name):
    return watch.look(open_run(runs, name))


def test_runs_are_listed_and_only_listed_names_are_opened(runs):
    assert sorted(list_runs(runs)) == ["first", "second"]
    assert list_runs(runs / "nothing here") == []
    for name in ("..", "../first", "/etc", "third", None):
        with pytest.raises(ValueError, match="no run"):
            open_run(runs, name)


def test_report_says_state_step_and_speed(runs):
    seen = look(runs, "first")
    assert watch.report(seen).startswith("ALIAS generator was stopped and can be resumed at step 40 of 100.")
    html = watch.status_html(seen)
    assert (
        "12 pictures a second" in html
        and "test: SSIM 0.5" in html
        and 'aria-valuenow="40"' in html
        and "run-beat" not in html
    )
    assert "left" not in html  # nobody waits for a run that stands still
    assert watch.report(look(runs, "second")) == "ALIAS generator has not begun."


@pytest.mark.parametrize("network", list(networks.NETWORKS))
def test_a_run_of_every_network_is_called_by_its_name(runs, network):
    chosen = networks.NETWORKS[network]
    (runs / "first" / "recipe.json").write_text(json.dumps({"task": chosen.task, "steps": 100}))
    seen = look(runs, "first")
    assert seen.network == network and watch.report(seen).startswith(f"{chosen.title} was stopped")
    assert f"12 {chosen.counts} a second" in watch.status_html(seen)
    words = recipes.resume_command(network, runs / "first", {})
    assert "--resume" in words and ("--preset" in words) == (network == "parse")


def test_a_foreign_run_is_shown_by_the_name_of_its_task(runs):
    (runs / "first" / "recipe.json").write_text(json.dumps({"task": "<i>OtherTask", "steps": 100}))
    assert "&lt;i&gt;OtherTask was stopped" in watch.status_html(look(runs, "first"))


def test_report_of_a_run_that_works_tells_the_time_left_and_the_heartbeat(runs):
    worker = Run(runs / "first")
    worker.acquire()
    try:
        assert "is starting: its program is being loaded" in watch.report(
            look(runs, "first")
        )  # its last word is the old one
        worker.beat("preparing")
        (runs / "first" / "output.log").write_text('$ python -m x\n{"seed": 1, "steps": 100}\n')
        assert "is starting: reading its data" in watch.report(look(runs, "first"))
        worker.log("start", step=40, steps=100)
        worker.beat("training", 43, {"l1": 0.25, "gan": float("nan")})
        seen = look(runs, "first")
        html = watch.status_html(seen)
        worker.stop_file.touch()
        assert "is stopping: it finishes its step and saves" in watch.report(look(runs, "first"))
        worker.stop_file.unlink()
    finally:
        worker.release()
    assert "is running at step 43 of 100" in watch.report(seen) and "about 10 min left" in html
    assert "step 43, just now: L1 0.25" in html and "{" not in html and "nan" not in html
    assert look(runs, "first").state == "interrupted" and look(runs, "first").beat == {}


def test_the_curve_begins_with_the_first_heartbeat(runs):
    (runs / "second" / "recipe.json").write_text(json.dumps({"task": "AliasTask", "steps": 100}))
    worker = Run(runs / "second")
    worker.acquire()
    try:
        worker.log("start", step=0, steps=100)
        worker.beat("training", 1, {"l1": 2.0})
        (line,) = watch.losses(look(runs, "second"))["lines"]
        assert (line["name"], line["steps"], line["values"]) == ("L1", [1], [2.0])
        worker.log("log", step=2, losses={"l1": 1.5})
        assert watch.losses(look(runs, "second"))["lines"][0]["steps"] == [2]  # the log has gone past it
    finally:
        worker.release()


def test_curves_hold_every_finite_number(runs):
    events = look(runs, "first").log
    assert watch.curves(events, "log", "losses") == {"l1": [(20, 1 / 20), (40, 1 / 40)]}
    assert watch.curves(events, "evaluation", "figures") == {"ssim": [(40, 0.5)]}
    assert watch.curves([], "log", "losses") == {}


def test_bleu_shares_the_chart_with_the_validation_loss(runs):
    Run(runs / "second").log("evaluation", step=5, figures={"loss": 2.5, "bleu": 31.0, "perplexity": 12.0})
    lines = watch.tests(look(runs, "second"))["lines"]
    assert {line["name"]: line["values"] for line in lines} == {"loss": [2.5], "BLEU / 10": [3.1]}


def test_how_many_pictures_a_figure_is_a_mean_over_is_no_curve(runs):
    Run(runs / "second").log("evaluation", step=5, figures={"score": 0.5, "sleeves": 0.25, "sleeves_pictures": 90})
    seen = look(runs, "second")
    assert [line["name"] for line in watch.tests(seen)["lines"]] == ["mean of all", "sleeves"]
    assert "sleeves 0.25" in watch.status_html(seen) and "90" not in str(watch.figures_of(seen))


def test_slow_work_is_not_told_as_none(runs):
    run = Run(runs / "second")
    run.log("log", step=5, losses={"l1": 1.0}, items_per_second=0.37, seconds_left=3.0)
    assert "0.37 pictures a second" in watch.status_html(look(runs, "second"))


def test_long_curves_are_thinned_and_keep_their_ends():
    events = [{"event": "log", "step": step, "losses": {"a": step, "b": -step}} for step in range(1, 5001)]
    for points in watch.curves(events, "log", "losses").values():
        assert len(points) == watch.MAX_POINTS and points[0][0] == 1 and points[-1][0] == 5000


def test_samples_of_a_step(runs):
    run = open_run(runs, "first")
    assert watch.sample_steps(run) == [20, 40]
    pictures, text = watch.read_samples(run, 20)
    assert text == "<b>step 20</b>"
    ((picture, name),) = pictures
    assert name == "result, step 20" and (picture == 20).all()


def test_a_sample_that_is_being_written_waits_for_the_next_look(runs):
    run = open_run(runs, "first")
    whole = next(run.samples(20).glob("*.png")).read_bytes()
    (run.samples(20) / "half.png").write_bytes(whole[: len(whole) // 2])
    (run.samples(20) / "no.png").write_bytes(b"")
    assert [name for _, name in watch.read_samples(run, 20)[0]] == ["result, step 20"]


@pytest.mark.parametrize("seconds, words", [(45, "45 s"), (600, "10 min"), (11_100, "3 h 05 min")])
def test_durations(seconds, words):
    assert recipes.duration(seconds) == words


def test_the_learning_rate_stands_beside_its_formula(runs):
    run = Run(runs / "first")
    run.write_plan("constant", {"g": [(1, 0.1), (100, 0.1)]})
    chart = watch.rates(look(runs, "first"))
    assert {line["name"]: (line["steps"], line["dashed"]) for line in chart["lines"]} == {
        "plan": ([1, 100], True),
        "used": ([20, 40], False),
    }
    assert chart["note"] == "Formula: constant" and watch.rates(look(runs, "second"))["lines"] == []


def write_attention(folder, peak):
    """Two layers of two heads, 3 target and 4 source tokens; head 1 of layer 2 looks at the source token `peak`."""
    cross = np.full((2, 2, 3, 4), 0.25, np.float16)
    cross[1, 0] = 0
    cross[1, 0, :, peak] = 1
    tokens = {
        "source": np.array(list("abc") + ["</s>"]),
        "read": np.array(["<s>", "x", "y"]),
        "said": np.array(["x", "y", "</s>"]),
    }
    maps = {
        "encoder": np.full((2, 2, 4, 4), 0.25, np.float16),
        "decoder": np.eye(3, dtype=np.float16)[None, None].repeat(2, 0),
        "cross": cross,
    }
    np.savez_compressed(folder / "attention.npz", **maps, **tokens)


def test_attention_of_one_sentence_over_time(runs):
    run = open_run(runs, "first")
    for step, peak in ((20, 0), (40, 2)):
        write_attention(run.samples(step), peak)
    attention = watch.read_attention(run, 40)
    assert watch.head_choices(attention, "cross")[:2] == [
        ("Layer 2, mean over heads", "1/mean"),
        ("Layer 2, head 1", "1/0"),
    ]
    shown = watch.attention_map(attention, "cross", "1/0", 40)
    weights = np.frombuffer(base64.b64decode(shown["weights"]), "<f4").reshape(3, 4)
    assert (weights.argmax(1) == 2).all() and shown["rows"] == ["x", "y", "</s>"] and shown["columns"][-1] == "</s>"
    assert shown["title"] == "Layer 2, head 1 · step 40"
    assert watch.attention_map(attention, "decoder", "7/9", 40)["columns"] == ["<s>", "x", "y"]
    earlier = watch.attention_map(watch.read_attention(run, 20), "cross", "1/0", 20)
    assert earlier["weights"] != shown["weights"]
    (run.samples(40) / "attention.npz").write_bytes(b"half")
    assert watch.read_attention(run, 40) is None


def test_the_last_words_of_a_run_that_failed(runs):
    run = Run(runs / "second")
    (run.folder / "output.log").write_text("step 1\n" + "error: <b>disk</b>\n" * 30)
    assert watch.output_of(look(runs, "second")) == ""
    run.log("failed", reason="The disk is full.")
    seen = look(runs, "second")
    assert watch.report(seen) == "ALIAS generator has failed, The disk is full."
    assert watch.output_of(seen).splitlines() == ["error: <b>disk</b>"] * watch.TAIL


# -- the view -------------------------------------------------------------------------------------------------------


@pytest.fixture
def view(runs):
    with gr.Blocks(), gr.Tab("Train") as tab:
        view = RunView(Services(runs=runs, local=True))
        view.wire(tab, [], runs)
    return view


def test_the_buttons_match_the_state(view, runs):
    controls = view.controls

    def shown(name):
        made = view.show(name)
        return {one for one in ("stop", "again", "delete", "resume", "fork") if made[getattr(controls, one)]["visible"]}

    assert shown("first") == {"delete", "resume"}  # it holds no checkpoint to go on from
    for step in (20, 40):
        (runs / "first" / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
        (runs / "first" / "checkpoints" / f"step-{step:08d}" / "state.json").write_text("{}")
    assert shown("first") == {"again", "delete", "resume", "fork"}
    assert view.show("first")[controls.again]["value"] == "Resume or fork …"
    worker = Run(runs / "first")
    worker.acquire()
    try:
        worker.log("start", step=40, steps=100)
        assert shown("first") == {"stop", "again", "fork"}
        worker.stop_file.touch()
        made = view.show("first")[controls.stop]
        assert made["value"] == "Stopping …" and made["interactive"] is False
        worker.stop_file.unlink()
    finally:
        worker.release()


def test_a_deleted_run_is_told_of_and_another_one_shown(view, runs):
    values = {view.run: "first", view.controls.changes: "", view.controls.from_step: None, view.controls.new_name: "n"}
    made = view.controls.delete_it(values)
    assert "first was deleted" in made[view.controls.note] and made[view.run]["value"] == "second"
    # What was on its way to the server when it went says nothing of a run that is not there.
    assert set(view.controls.plan(values)) == {view.controls.commands}
    watched = {view.run: "first", view.step: 1, view.memory: ("first", 2), view.kind: "cross", view.head: None}
    assert view.scrub(watched) == gr.skip()
    tick = view.tick(watched | {view.use.choice: None, view.controls.from_step: None})
    assert tick[view.run]["value"] == "second" and "That run was deleted" in tick[view.controls.note]
    made = view.controls.delete_it(values | {view.run: "second"})
    assert "second was deleted" in made[view.controls.note] and "There is no run in the folder" in made[view.status]
    assert made[view.view]["visible"] is False and made[view.controls.delete]["visible"] is False


def test_a_tick_sends_samples_only_once(view, runs):
    made = view.show("first")
    assert made[view.memory] == ("first", 2) and made[view.step]["value"] == 1 and made[view.pictures]["visible"]
    looked = {view.run: "first", view.step: 1, view.memory: ("first", 2), view.kind: "cross", view.head: None}
    assert view.pictures not in view.tick(looked)
    folder = Run(runs / "first").samples(60)
    folder.mkdir()
    (folder / "translations.txt").write_text("source      Ein <Hund>\nreference   x\n")
    made = view.tick(looked)  # the slider stood at its end and follows
    assert made[view.step]["value"] == 2 and made[view.text]["value"].startswith("source")
    assert view.tick({**looked, view.step: 0})[view.step]["value"] == 0  # and elsewhere it stays
    assert view.show("first")[view.use.text] == "Ein <Hund>"


def test_a_chart_has_at_most_four_lines_and_says_the_rest():
    points = {name: [(1, 0.0), (2, value)] for name, value in zip("abcdef", (0.1, 5.0, -7.0, 0.2, 3.0, 0.3))}
    made = watch.chart("Losses", {**points, "none yet": []}, note="Formula")
    assert [line["name"] for line in made["lines"]] == ["a", "b", "c", "e"]
    assert made["note"] == "Formula · d 0.2, f 0.3"
    few = watch.chart("Losses", {name: points[name] for name in "abcd"})
    assert len(few["lines"]) == 4 and few["note"] == ""


def test_the_columns_of_a_picture_of_samples_have_names(runs):
    run = open_run(runs, "first")
    Image.fromarray(np.zeros((4, 3, 3), np.uint8)).save(run.samples(40) / "warp.png")
    named = [name for _, name in watch.read_samples(run, 40)[0]]
    assert named == ["result, step 40", "warp, step 40; from the left: " + watch.COLUMNS["warp"]]


def test_what_was_said_of_a_run_ends_with_it(runs):
    with gr.Blocks():
        view = RunView(Services(runs=runs))
    controls = view.controls
    told = controls.tell("first goes on.", "first")
    assert told[controls.note_run] == "first" and "goes on" in told[controls.note]
    ended = controls.refresh(look(runs, "first"), told)
    assert ended[controls.note] == "" and ended[controls.note_run] == ""
    assert controls.note not in controls.refresh(look(runs, "first"), {controls.note_run: "second"})


def test_on_a_public_page_a_run_is_changed_only_by_the_browser_that_started_it(runs):
    with gr.Blocks():
        view = RunView(Services(runs=runs))
    controls, first = view.controls, runs / "first"
    sign(first, "secret of one")
    assert "secret" not in (first / "visitor").read_text()

    def asked(visitor):
        fields = {view.run: "first", controls.changes: "", controls.from_step: None, controls.new_name: "copy"}
        return fields | {controls.visitor: visitor}

    def buttons(visitor):
        made = view.show("first", {controls.visitor: visitor})
        return {one for one in ("stop", "delete", "resume") if made[getattr(controls, one)]["visible"]}

    assert buttons("secret of one") == {"delete", "resume"}
    for visitor in ("another", "", None):
        assert buttons(visitor) == set()
        for handler in (controls.stop_it, controls.resume_it, controls.ask_first, controls.delete_it):
            assert "did not start that run" in handler(asked(visitor))[controls.note]
        assert first.is_dir() and not (first / "STOP").exists()
    assert "not started in this browser" not in controls.ask_first(asked("secret of one"))[controls.question]
    assert "first was deleted" in controls.delete_it(asked("secret of one"))[controls.note] and not first.exists()
    # On a page of this machine alone everything is its operator's, who is told whose a run is.
    with gr.Blocks():
        local = RunView(Services(runs=runs, local=True))
    question = local.controls.ask_first({local.run: "second", local.controls.visitor: "another"})
    assert "not started in this browser" in question[local.controls.question]
