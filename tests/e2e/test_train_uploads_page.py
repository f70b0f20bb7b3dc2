"""The Train tab with data that visitors bring, with a run of a shell, and its checkpoint in the Translate tab."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from driving import ask_what_if, choose, enter, open_training_form, set_up_training, titled
from PIL import Image

from lab.tryon.synthetic import draw_pair
from training.run import Run

ENDS = 240_000  # milliseconds in which a process has begun and made a few steps, also on a machine with other work
ROOT = Path(__file__).resolve().parents[2]
NOUNS = (("dog", "Hund"), ("apple", "Apfel"), ("hat", "Hut"), ("garden", "Garten"), ("boy", "Junge"), ("tree", "Baum"))
MATCHING = "Matching module: bends the garment"
PHOTOGRAPHS, TABLE = "My own photographs (zip)", "My own table: two columns"
VERBS = (("sees", "sieht"), ("wants", "will"), ("finds", "findet"), ("likes", "mag"))


def drawn_set(people=4, extra=None):
    """A zip of drawn people in the layout of VITON-HD, as bytes. extra: (name, bytes) of one more member."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:

        def picture(name, array):
            file = io.BytesIO()
            Image.fromarray(array).save(file, "JPEG" if name.endswith("jpg") else "PNG")
            archive.writestr(f"set/train/{name}", file.getvalue())

        for i in range(people):
            pair, name = draw_pair(i, size=(256, 192)), f"{i:05d}_00"
            picture(f"image/{name}.jpg", pair.person)
            picture(f"image-parse-v3/{name}.png", pair.parse)
            picture(f"cloth/{name}.jpg", pair.cloth)
            picture(f"cloth-mask/{name}.jpg", pair.cloth_mask)
            joints = {"people": [{"pose_keypoints_2d": [float(v) for v in pair.keypoints.reshape(-1)]}]}
            archive.writestr(f"set/train/openpose_json/{name}_keypoints.json", json.dumps(joints))
        if extra:
            archive.writestr(*extra)
    return out.getvalue()


def test_an_uploaded_set_of_people_is_prepared_and_trained_on(visit, runs):
    page = visit()
    open_training_form(page, "800 steps")
    choose(page, "train-network", MATCHING)
    page.locator("#train-about", has_text="200 steps").wait_for()
    choose(page, "train-data", PHOTOGRAPHS)
    page.locator("#train-upload input[type=file]").set_input_files(
        {"name": "people.zip", "mimeType": "application/zip", "buffer": drawn_set()}
    )
    page.locator("#train-command", has_text="vton.prepare").wait_for()
    set_up_training(
        page,
        "four people",
        steps="Steps in all: 4",
        batch="Pictures a step: 2",
        width="Channels of the first layer: 8",
        save_every="Steps between two checkpoints: 2",
        evaluate_every="Steps between two tests: 2",
    )
    page.click("#train-start")
    page.locator("#run-note", has_text="The run four people was started").wait_for(timeout=ENDS)

    page.locator("#run-status", has_text="Matching module").wait_for(timeout=ENDS)
    page.reload()  # in the middle, or just after: the page finds the run again
    page.get_by_role("tab", name="Train").click()
    page.locator("#run-status", has_text="Matching module has finished at step 4 of 4").wait_for(timeout=ENDS)
    assert page.input_value("#run input") == "four people"
    page.locator("#plot-losses svg").wait_for()
    page.locator("#sample-pictures img").first.wait_for()
    run = Run(runs / "four people")
    recipe = run.recipe()
    assert recipe["pack"].endswith("prepared/pack.npz") and (recipe["steps"], recipe["width"]) == (4, 8)
    assert {folder.name for folder in run.checkpoints.iterdir()} >= {"step-00000004"}


@pytest.mark.parametrize(
    "network, name, content, words",
    [
        (
            "Transformer",
            "one.csv",
            b"english\nhello\n",
            "one.csv, line 1: a table needs a header with at least two columns",
        ),
        ("Transformer", "empty.tsv", b"", "empty.tsv, line 1: the file is empty"),
        ("Transformer", "bare.tsv", b"english\tgerman\n\t\n", "bare.tsv holds no pair with text"),
        ("Matching module", "up.zip", drawn_set(2, ("../../up.txt", b"x")), "leads out of its folder"),
        ("Matching module", "none.zip", b"PK no zip", "none.zip"),
    ],
)
def test_bad_data_is_one_sentence_and_leaves_no_run(visit, runs, network, name, content, words):
    page = visit()
    open_training_form(page, "800 steps")
    if network != "Transformer":
        choose(page, "train-network", MATCHING)
        page.locator("#train-about", has_text="200 steps").wait_for()
    before = sorted(folder.name for folder in runs.iterdir())
    people = network != "Transformer"
    choose(page, "train-data", PHOTOGRAPHS if people else TABLE)
    kind = "application/zip" if people else "text/plain"
    page.locator("#train-upload input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": content})
    if people:
        page.locator("#train-command", has_text="vton.prepare").wait_for()
        page.click("#train-start")
    alert = page.locator("#train-note [role=alert], #train-preview [role=alert]", has_text=words)
    alert.wait_for(timeout=ENDS)
    assert "Traceback" not in alert.inner_text() and "\n" not in alert.inner_text().strip()
    assert sorted(folder.name for folder in runs.iterdir()) == before and not (runs.parent / "up.txt").exists()


def test_a_table_trains_a_model_that_translates_in_the_other_tab(visit, runs, tmp_path):
    """Started from the page with named columns, used in Translate without a restart, beside the shipped model."""
    table = tmp_path / "mine.csv"
    pairs = [
        (f"the {a[0]} {v[0]} the {b[0]}", f"{a[1]} {v[1]} {b[1]}")
        for a in NOUNS
        for v in VERBS
        for b in NOUNS
        if a != b
    ]
    lines = "".join(f"{n},{english},{german}\n" for n, (english, german) in enumerate(pairs))
    table.write_text("number,english,german\n" + lines)
    page = visit()
    open_training_form(page, "800 steps")
    choose(page, "train-data", TABLE)
    page.locator("#train-upload input[type=file]").set_input_files(table)
    page.locator("#train-command", has_text="--source english --target german").wait_for()  # by itself
    choose(page, "train-source", "number")
    page.locator("#train-preview", has_text="The first one:0→").wait_for()
    choose(page, "train-source", "english")
    page.locator("#train-command", has_text="--source english --target german").wait_for()
    set_up_training(
        page,
        "own words",
        steps="Steps in all: 6",
        vocab_size="Vocabulary: 80",
        save_every="Steps between two checkpoints: 3",
        evaluate_every="Steps between two tests: 3",
    )
    page.click("#train-start")
    page.locator("#run-status", has_text="Translator (Transformer) has finished at step 6 of 6").wait_for(timeout=ENDS)

    page.get_by_role("tab", name="Translate", exact=True).click()
    page.get_by_text("Model and search").click()
    choose(page, "translation-model", "run own words, step 6")
    page.wait_for_function("document.querySelector('#pair input').value === 'english → german'")
    enter(page, "the dog sees the apple")
    titled(page, "Cross attention")
    assert "pieces/s" in page.inner_text("#translate-status")

    # Another model has other languages: the old ones may be asked for once more, which is nobody's error.
    choose(page, "translation-model", "everyday")
    page.wait_for_function("document.querySelector('#pair input').value === 'English → German'")
    page.locator("#translate-status", has_text="everyday").wait_for()
    page.wait_for_timeout(1500)
    assert page.locator(".toast-body").count() == 0 and "Error" not in page.inner_text("#translate-status")
    choose(page, "translation-model", "run own words, step 6")
    page.wait_for_function("document.querySelector('#pair input').value === 'english → german'")
    enter(page, "the dog sees the apple")

    # Nobody translates the other way, and swapping says so.
    page.click("#swap-languages")
    page.locator("#translate-status [role=alert]", has_text="No model here translates german → english").wait_for()
    assert page.input_value("#source-text textarea") == "the dog sees the apple"

    # The run against the shipped model, on the same input.
    ask_what_if(page, "sides")
    page.wait_for_function("document.querySelector('#compare-model-a input')?.value === 'run own words, step 6'")
    choose(page, "compare-model-b", "multi30k-en-de")
    page.wait_for_function("document.querySelector('#compare-pair-b input')?.value === 'English → German'")
    page.click("#compare-button")
    titled(page, "Cross attention", "#compare-map-b")
    assert page.locator("#compare-map-a .heat-title").is_visible()
    assert page.input_value("#compare-text-a textarea") == page.input_value("#compare-text-b textarea")


def test_a_run_of_a_shell_is_seen_while_the_page_is_open(visit, runs):
    page = visit()
    page.get_by_role("tab", name="Train").click()
    command = (
        f"-m transformer.train --preset tiny --steps 60 --save-every 30 --evaluate-every 30 --run {runs}/of-a-shell"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    shell = subprocess.Popen(
        [sys.executable, *command.split()],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        page.click("#run input")  # the list knows it as soon as its folder is there
        page.locator("#run").get_by_role("option", name="of-a-shell", exact=True).click(timeout=ENDS)
        page.locator("#run-status", has_text="Translator (Transformer) has finished at step 60 of 60").wait_for(
            timeout=ENDS
        )
        assert page.input_value("#run input") == "of-a-shell"
        page.locator("#sample-text textarea").wait_for()
    finally:
        shell.terminate()
        shell.wait()
