"""A run's checkpoints in use: forks and resumes as commands, the zip with its card, the comparison."""

import json
import zipfile

import gradio as gr
import pytest

from training import card, fit
from training.run import Run
from training.start import PUBLIC
from transformer import Translator
from transformer.train import TranslationRecipe, TranslationTask
from ui.services import Services
from ui.train import use as train_use
from ui.train import watch
from ui.train.networks import NETWORKS
from ui.train.view import RunView


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with one run of a tiny Transformer: checkpoints at steps 1 and 2."""
    folder = tmp_path_factory.mktemp("runs")
    table = tmp_path_factory.mktemp("data") / "pairs.tsv"
    table.write_text(
        "en\tde\n"
        + "".join(f"the {a} {b} hat\tder {a} {b} hut\n" for a in ("red", "old", "new") for b in ("big", "tiny"))
    )
    recipe = TranslationRecipe(
        size="mini", data=str(table), vocab_size=40, tokens=512, steps=2, save_every=1, evaluate_every=1, threads=1
    )
    fit(TranslationTask(recipe), recipe, folder / "words", quiet=True)
    return folder


def test_the_zip_holds_a_model_folder_that_translates_and_its_card(runs, tmp_path):
    made = train_use.export_zip(runs, "words", 1, tmp_path)
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path / "out")
    folder = tmp_path / "out" / "words-step-1"
    assert Translator.from_pretrained(folder, device="cpu").pairs == [("en", "de")]
    text = (folder / "CARD.md").read_text()
    assert (
        text.startswith("# Translator (Transformer), update 1 of the run words")
        and "| loss, validation |" in text
        and "| warmup | 4000 |" in text
    )
    assert train_use.export_zip(runs, "words", None, tmp_path).name == "words-step-2.zip"
    for name, step in (("../words", None), ("words", 7), ("nothing", None)):
        with pytest.raises(ValueError):
            train_use.export_zip(runs, name, step, tmp_path)


def test_a_card_holds_no_markup_of_others(tmp_path):
    run = Run(tmp_path / "a|b")
    run.folder.mkdir()
    (run.folder / "recipe.json").write_text(json.dumps({"task": "T", "data": "x|y\n# <img src=x>"}))
    assert "<img" not in card.text(run, 1, "Net") and "\n# &lt;img" not in card.text(run, 1, "Net")


def test_both_models_translate_the_same_text(runs):
    services = Services(runs=runs)
    shipped, own = NETWORKS["transformer"].compare_texts(services, "run:words@2", "the red tiny hat")
    assert shipped and own != shipped
    assert own == services.translator("run:words@2").translate("the red tiny hat").text


def test_a_network_of_a_run_is_compared_by_the_map_of_its_stage():
    asked = []

    class Result:
        def __init__(self, model):
            self.model = model

        def pictures(self):
            return {
                name: f"{name} of {self.model}"
                for name in ("parse", "segmentation", "warped_cloth", "synthesis", "result")
            }

    class Fake:
        def stream_tryon(self, person, garment, model=None, **options):
            asked.append((person, garment, model, options))
            yield "progress"
            yield Result(model)

    pictures = NETWORKS["matching"].compare_pictures(Fake(), "run:x@1", "person", "garment")
    assert pictures == [
        ("warped_cloth of None", "warped cloth: default"),
        ("warped_cloth of run:x@1", "warped cloth: this checkpoint"),
        ("result of None", "result: default"),
        ("result of run:x@1", "result: this checkpoint"),
    ]
    assert [call[2] for call in asked] == [None, "run:x@1"] and asked[0][3] == asked[1][3]
    NETWORKS["flow"].compare_pictures(Fake(), "run:x@1", "person", "garment")
    assert [call[3].get("warp") for call in asked[2:]] == [None, "flow"]  # beside the spline of the default set


def controls_of(services):
    """The buttons of the run that is looked at."""
    with gr.Blocks(), gr.Tab("Train") as tab:
        view = RunView(services)
        view.wire(tab, [], services.runs)
    return view.controls


def given(controls, name, changed="", step=None, new_name=""):
    return {controls.view.run: name, controls.changes: changed, controls.from_step: step, controls.new_name: new_name}


def test_the_commands_of_resume_and_fork(runs, monkeypatch):
    started = []

    def begin(folder, commands):
        folder.mkdir(exist_ok=True)
        started.append((folder, commands))

    monkeypatch.setattr("training.start.start", begin)
    controls = controls_of(Services(runs=runs, local=True))
    made = controls.unfold(given(controls, "words"))
    assert made[controls.form]["visible"] and made[controls.new_name] == "words-fork-1"
    assert made[controls.from_step]["value"] == 2 and "--fork-step 2" in made[controls.commands]
    wanted = given(controls, "words", "--steps 9", 1, "words two")
    resume, fork = controls.plan(wanted)[controls.commands].splitlines()
    assert resume == f"python -m transformer.train --run {runs / 'words'} --resume --steps 9"
    assert (
        fork
        == f"python -m transformer.train --fork {runs / 'words'} --fork-step 1 --run '{runs / 'words two'}' --steps 9"
    )
    assert controls.plan(given(controls, "words", "--lr"))[controls.commands].startswith("# Write changed settings")
    assert "words goes on" in controls.resume_it(wanted)[controls.note]
    made = controls.fork_it(wanted)
    assert "begins at step 1 of words" in made[controls.note] and made[controls.form]["visible"] is False
    assert [folder.name for folder, _ in started] == ["words", "words two"] and started[0][1][0][-2:] == [
        "--steps",
        "9",
    ]
    for asked, sentence in (
        (("words", "", 7, "x"), "no checkpoint of update 7"),
        (("words", "", 1, "../x"), "name begins"),
        (("words", "", 1, "words"), "already"),
        (("no", "", 1, "x"), "no run"),
    ):
        assert sentence in controls.fork_it(given(controls, *asked))[controls.note]
    assert len(started) == 2

    limited = controls_of(Services(runs=runs, training=PUBLIC, local=True))
    assert "steps at most" in limited.resume_it(given(limited, "words", "--steps 999999"))[limited.note]
    assert "cannot be changed" in limited.resume_it(given(limited, "words", "--tokens 99999"))[limited.note]
    assert len(started) == 2


def test_deleting_asks_and_needs_a_run_of_the_folder(runs):
    controls = controls_of(Services(runs=runs, local=True))
    made = controls.ask_first(given(controls, "words"))
    assert made[controls.note] == "" and made[controls.ask]["visible"]
    assert "Delete the run words for good, with 2 checkpoints" in made[controls.question]
    assert (runs / "words").exists()
    for handler in (controls.ask_first, controls.delete_it):
        assert "no run" in handler(given(controls, "../data"))[controls.note]


def test_the_newest_checkpoint_stands_in_the_list_until_another_is_picked(runs):
    with gr.Blocks():
        view = RunView(Services(runs=runs))
    use, seen = view.use, watch.look(Run(runs / "words"))
    assert use.refresh(seen, {}, fresh=True)[use.step]["value"] == 2
    # While the run went on, step 1 stood there; nobody had picked it.
    assert use.refresh(seen, {use.step: 1, use.choice: None}, fresh=False)[use.step]["value"] == 2
    assert use.refresh(seen, {use.step: 1, use.choice: 1}, fresh=False)[use.step]["value"] == 1
    # Another run begins anew.
    again = use.refresh(seen, {use.choice: 1}, fresh=True)
    assert again[use.step]["value"] == 2 and again[use.choice] is None
