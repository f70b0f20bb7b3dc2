"""The Train tab: a run that somebody else writes is seen live, also after a reload."""

import json
import zipfile

import numpy as np
import pytest
from driving import choose, open_training_form, set_up_training, typed
from PIL import Image

from training.run import Run

STARTS = 240_000  # milliseconds in which a process has begun to train, also on a machine with other work


def log(run, step, loss):
    run.log(
        "log",
        step=step,
        losses={"l1": loss},
        learning_rates={"g": 1e-3},
        gradient_norms={"g": 1.0},
        items_per_second=10.0,
        seconds_left=60.0,
        memory_mb=1000.0,
    )


def test_a_run_appears_moves_on_and_survives_a_reload(visit, runs):
    page = visit()
    page.get_by_role("tab", name="Train").click()
    page.locator("#run-status", has_text="There is no run").wait_for()

    run = Run(runs / "watched <b id=planted>")
    run.acquire()
    try:
        (run.folder / "recipe.json").write_text(json.dumps({"task": "AliasTask", "steps": 50}))
        run.log("start", step=0, steps=50)
        log(run, 10, 1.0)
        run.samples(10).mkdir(parents=True)
        Image.fromarray(np.full((32, 24, 3), 90, np.uint8)).save(run.samples(10) / "result.png")
        page.locator("#run-status", has_text="ALIAS generator is running at step 10 of 50").wait_for()
        page.locator("#plot-losses svg circle").wait_for()  # one point is a point
        page.locator("#sample-pictures img").first.wait_for()
        run.beat("training", 13, {"l1": 0.8})
        page.locator("#run-status .run-beat", has_text="step 13, just now: L1 0.8").wait_for()
        page.locator("#plot-losses", has_text="0.8").wait_for()
        assert page.locator("#run-status [role=progressbar]").get_attribute("aria-valuenow") == "26"
        assert page.locator("#run-stop").is_visible() and not page.locator("#run-delete").is_visible()

        log(run, 20, 0.5)
        page.locator("#run-status", has_text="at step 20 of 50").wait_for()
        page.reload()
        page.get_by_role("tab", name="Train").click()
        page.locator("#run-status", has_text="at step 20 of 50").wait_for()
    finally:
        run.release()
    page.locator("#run-status", has_text="was interrupted").wait_for()
    page.locator("#run-delete").wait_for()
    assert not page.locator("#run-stop").is_visible()
    assert page.locator("#planted").count() == 0


@pytest.mark.quick
def test_a_run_is_started_and_ends(visit, runs):
    page = visit()
    open_training_form(page, "800 steps")
    set_up_training(page, "short", steps="Steps in all: 2")
    page.click("#train-start")
    page.locator("#run-status", has_text="has finished at step 2 of 2").wait_for(timeout=STARTS)
    page.locator("#plot-losses svg").wait_for()
    assert (Run(runs / "short").checkpoints / "step-00000002").is_dir()


def test_on_a_public_page_a_run_is_changed_by_the_browser_that_started_it_alone(browser, serve_app, tmp_path):
    with serve_app("--no-local", "--training", "limited", "--runs", tmp_path) as address:
        contexts = [browser.new_context() for _ in range(2)]
        owner, other = (context.new_page() for context in contexts)
        for page in (owner, other):
            page.set_default_timeout(60_000)
            page.goto(address)
        open_training_form(owner, "steps")
        set_up_training(owner, "mine", steps="Steps in all: 2")
        owner.click("#train-start")
        owner.locator("#run-status", has_text="has finished at step 2").wait_for(timeout=STARTS)
        owner.locator("#run-delete").wait_for()

        other.get_by_role("tab", name="Train").click()
        other.locator("#run-status", has_text="has finished at step 2").wait_for()
        other.locator("#run-again", has_text="Fork").wait_for()
        assert not other.locator("#run-delete").is_visible()

        # The browser still knows after a reload.
        owner.reload()
        owner.get_by_role("tab", name="Train").click()
        owner.locator("#run-delete").wait_for()
        owner.click("#run-delete")
        owner.click("#run-delete-yes")
        owner.locator("#run-status", has_text="There is no run").wait_for()
        for context in contexts:
            context.close()


def test_a_run_is_started_watched_stopped_resumed_forked_used_and_deleted(visit, runs):
    page = visit()
    open_training_form(page, "800 steps")
    set_up_training(
        page,
        "class run",
        steps="Steps in all: 3000",
        save_every="Steps between two checkpoints: 20",
        evaluate_every="Steps between two tests: 20",
    )
    shown = " ".join(page.locator("#train-command").inner_text().split())
    page.click("#train-start")
    page.locator("#run-note", has_text="The run class run was started").wait_for(timeout=STARTS)

    # What was shown is what runs.
    ran = json.loads((runs / "class run" / "command.json").read_text())["shell"]
    assert "--preset tiny --steps 3000 --save-every 20 --evaluate-every 20" in ran and ran.endswith("class run'")
    assert ran in shown
    page.locator("#run-status", has_text="is running at step").wait_for(timeout=STARTS)
    page.locator("#plot-losses svg").wait_for()
    page.locator("#run-status .run-beat").wait_for()
    page.locator("#sample-map svg, #sample-map canvas").first.wait_for()
    page.locator("#sample-step", has_text="Sample after step").wait_for()

    # Nobody deletes what is at work; a stop saves.
    assert not page.locator("#run-delete").is_visible()
    page.click("#run-stop")
    page.locator("#run-status", has_text="was stopped and can be resumed").wait_for(timeout=STARTS)
    run = Run(runs / "class run")
    stopped = int(sorted(folder.name for folder in run.checkpoints.iterdir())[-1][5:])

    # Resumed to its end, at another number of steps.
    page.locator("#run-again", has_text="Resume or fork").click()
    typed(page, "run-changes", f"--steps {stopped + 5}")
    page.locator("#run-commands", has_text="--resume --steps").wait_for()
    page.click("#run-resume")
    page.locator("#run-status", has_text=f"has finished at step {stopped + 5:,} of").wait_for(timeout=STARTS)
    assert sum(event["event"] == "start" for event in run.events()) == 2

    # A fork goes its own way from a checkpoint.
    page.locator("#run-again", has_text="Go on or fork").click()
    typed(page, "run-changes", f"--rate-scale 0.1 --steps {stopped + 7}")
    typed(page, "run-fork-name", "fork of it")
    page.locator("#run-commands", has_text="--fork").wait_for()
    page.click("#run-fork")
    page.locator("#run-status", has_text=f"has finished at step {stopped + 7:,} of").wait_for(timeout=STARTS)
    assert Run(runs / "fork of it").recipe()["rate_scale"] == 0.1

    # The checkpoint translates beside the default model, and travels as a zip.
    page.click("#use-compare")
    page.wait_for_function("document.querySelector('#use-shipped textarea').value.includes('Apfel')", timeout=STARTS)
    # After so few updates it may know no word yet; then the page says so.
    own, silent = (
        page.locator("#use-own textarea").input_value(),
        page.get_by_text("ends the sentence before its first word"),
    )
    assert bool(own.strip()) != silent.is_visible()
    page.click("#use-export")
    page.locator("#use-file", has_text="fork of it-step-").wait_for()
    with page.expect_download() as download:
        page.locator("#use-file").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert {"config.json", "model.safetensors", "tokenizer.model", "CARD.md"} <= names

    # Deleting asks first.
    page.click("#run-delete")
    page.locator("#run-delete-ask", has_text="Delete the run fork of it for good").wait_for()
    page.click("#run-delete-no")
    page.locator("#run-delete-ask").wait_for(state="hidden")
    page.click("#run-delete")
    page.click("#run-delete-yes")
    page.locator("#run-note", has_text="fork of it was deleted").wait_for()
    page.wait_for_function("!['', 'fork of it'].includes(document.querySelector('#run input').value)")
    assert not (runs / "fork of it").exists() and (runs / "class run").exists()


def test_a_run_that_cannot_begin_tells_why(visit, runs, tmp_path):
    """Its validation table has another column, which nobody reads before the process: it ends, and the page says its
    last words."""
    (tmp_path / "train.tsv").write_text("english\tgerman\n" + "".join(f"a{i}\tb{i}\n" for i in range(5)))
    (tmp_path / "val.tsv").write_text("english\tfrench\nx\ty\n")
    page = visit(width=390)
    open_training_form(page, "800 steps")
    choose(page, "train-data", "A folder or file on this machine")
    typed(page, "train-folder", str(tmp_path))
    typed(page, "train-source", "english")
    page.locator("#train-source input").press("Enter")
    typed(page, "train-target", "german")
    page.locator("#train-target input").press("Enter")
    page.locator("#train-preview", has_text="5 pairs").wait_for()
    set_up_training(page, "short words")
    page.click("#train-start")
    page.locator("#run-status", has_text="has failed").wait_for(timeout=STARTS)
    page.locator("#run-status", has_text="there is no column 'german'").wait_for()
    assert "no column" in page.locator("#run-output textarea").input_value()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") == 0
