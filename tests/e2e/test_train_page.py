"""The Train tab: a run that somebody else writes is seen live, also after a reload."""

import json

import numpy as np
from PIL import Image

from training.run import Run


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
        page.locator("#run-status", has_text="AliasTask is running at step 10 of 50").wait_for()
        page.locator("#plot-losses canvas, #plot-losses svg").first.wait_for()
        page.locator("#sample-pictures img").first.wait_for()

        log(run, 20, 0.5)
        page.locator("#run-status", has_text="at step 20 of 50").wait_for()
        page.reload()
        page.get_by_role("tab", name="Train").click()
        page.locator("#run-status", has_text="at step 20 of 50").wait_for()
    finally:
        run.release()
    page.locator("#run-status", has_text="was interrupted").wait_for()
    assert page.locator("#planted").count() == 0
