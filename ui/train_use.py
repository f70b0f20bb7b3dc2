"""The Train tab's lower half: what to do with a run. Stop, resume, fork, delete; export a checkpoint; compare it."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr

from training import card, start
from training.checkpoint import find_checkpoint, list_checkpoints, step_of
from training.run import Run, list_runs, open_run
from ui import messages
from ui import train_recipes as recipes
from ui.languages import model_for
from ui.services import NETWORK_OF_TASK, Services

# The map of a try-on in which each network's work is seen.
MAP_OF_NETWORK = {"parser": "parse", "segmentation": "segmentation", "matching": "warped_cloth", "alias": "synthesis"}
SILENT = "This checkpoint ends the sentence before its first word: it has seen too few updates."
SENTENCE = "The small dog sees a red apple in the garden."
COMPARED_SIZE = (256, 192)
KEPT_SECONDS = 3600  # of a zip that was made for a visitor


# -- without Gradio -------------------------------------------------------------------------------------------------


def checkpoint_choices(run: Run) -> list[tuple[str, int]]:
    """(label, step) of a run's checkpoints, the newest first."""
    steps = [step_of(folder) for folder in list_checkpoints(run.checkpoints)]
    return [(f"step {step:,}", step) for step in reversed(steps)]


def network_of(run: Run) -> str:
    """Key of the network that a run trains. Raises ValueError for a foreign one."""
    task = run.recipe().get("task", "")
    network = recipes.network_of_task(task)
    if network is None:
        raise ValueError(f"{run.folder.name!r} trains {task or 'nothing known'}, which this page cannot start again.")
    return network


def export_zip(runs: Path, name: str, step: int | None, out: Path) -> Path:
    """A zip of the model folder of one checkpoint, with its card, in `out`. Raises ValueError for an unknown run or step."""
    run = open_run(runs, name)
    step = step_of(find_checkpoint(run.checkpoints, step))
    network = network_of(run)
    with tempfile.TemporaryDirectory(prefix="atelier-") as temporary:
        folder = Path(temporary) / f"{name}-step-{step}"
        if network == "transformer":
            from transformer.export import export
        else:
            from vton.export import export
        export(run.folder, folder, step)
        (folder / "CARD.md").write_text(card.text(run, step, recipes.NETWORKS[network].title), encoding="utf-8")
        return Path(shutil.make_archive(str(out / folder.name), "zip", temporary, folder.name))


def compare_translation(services: Services, key: str, text: str) -> tuple[str, str]:
    """A shipped model's and the checkpoint's translation of a text, each by beam search in its first fitting pair."""
    own = services.translator(key)
    source, target = own.pairs[0]
    try:
        shipped = services.translator(model_for(services, f"{source}-{target}", None))
        first = shipped.translate(text, source, target).text
    except ValueError as error:  # no shipped model may know the run's languages
        first = str(error)
    return first, own.translate(text, source, target).text


def compare_tryon(services: Services, key: str, network: str, person: Any, garment: Any) -> list[tuple[Any, str]]:
    """The map that shows the network's work, and the result, by the default set and with the checkpoint in it."""
    pictures = []
    for label, model in (("default", None), ("this checkpoint", key)):
        *_, result = services.stream_tryon(person, garment, model=model, size=COMPARED_SIZE)
        maps = result.pictures()
        name = MAP_OF_NETWORK[network]
        pictures += [(maps[name], f"{name.replace('_', ' ')}: {label}"), (maps["result"], f"result: {label}")]
    return [pictures[i] for i in (0, 2, 1, 3)]


# -- layout ---------------------------------------------------------------------------------------------------------


def controls(services: Services) -> SimpleNamespace:
    """Build the row of buttons under a run's name."""
    use = SimpleNamespace()
    with gr.Row(visible=services.training is not None, elem_classes="actions run-buttons"):
        use.stop = gr.Button("Stop and save", size="sm", elem_id="run-stop", min_width=110)
        use.again = gr.Button("Resume or fork …", size="sm", elem_id="run-again", min_width=130)
        use.delete = gr.Button("Delete …", size="sm", elem_id="run-delete", min_width=90)
    with gr.Column(visible=False, elem_classes="card", elem_id="run-delete-ask") as use.ask:
        use.question = gr.HTML()
        with gr.Row(elem_classes="actions run-buttons"):
            use.yes = gr.Button("Yes, delete it", variant="stop", size="sm", elem_id="run-delete-yes", min_width=120)
            use.no = gr.Button("Keep it", size="sm", elem_id="run-delete-no", min_width=100)
    with gr.Column(visible=False, elem_classes="card", elem_id="run-again-form") as use.form:
        with gr.Row():
            use.changed = gr.Textbox(label="Changed settings", placeholder="--lr 0.0005 --steps 300", max_lines=1,
                                     info="as on the command line; empty: nothing changes", elem_id="run-changes")  # fmt: skip
            use.from_step = gr.Dropdown([], label="A fork begins at", allow_custom_value=True, elem_id="run-fork-step", min_width=140)
            use.new_name = gr.Textbox(label="Name of the fork", max_lines=1, elem_id="run-fork-name", min_width=160)
        use.commands = gr.Code(language="shell", label="Resume, and fork", interactive=False, wrap_lines=True, lines=2, max_lines=6,
                                   elem_id="run-commands")  # fmt: skip
        with gr.Row(elem_classes="actions"):
            use.resume = gr.Button("Resume", variant="primary", size="sm", elem_id="run-resume", min_width=110)
            use.fork = gr.Button("Fork", size="sm", elem_id="run-fork", min_width=110)
    use.note = gr.HTML(elem_id="run-note")
    return use


def layout(use: SimpleNamespace, services: Services) -> None:
    """Build the section that uses a checkpoint."""
    with gr.Column(visible=False, elem_id="use-view") as use.view:
        gr.Markdown(
            "### Use a checkpoint\nIn **Translate** and **Try on** every checkpoint stands in the list of models.",
            elem_classes="section",
        )
        with gr.Row(elem_classes="actions"):
            use.step = gr.Dropdown([], label="Checkpoint", allow_custom_value=True, elem_id="use-step", min_width=160)
            use.export = gr.Button("Make a zip to download", elem_id="use-export", min_width=160)
            use.file = gr.DownloadButton("Download", visible=False, elem_id="use-file", min_width=160)
        with gr.Row(visible=False) as use.words:
            use.text = gr.Textbox(SENTENCE, label="A sentence for both models", lines=2, elem_id="use-text", min_width=260)
            use.shipped = gr.Textbox(label="Default model", lines=2, interactive=False, elem_id="use-shipped", min_width=220)
            use.own = gr.Textbox(label="This checkpoint", lines=2, interactive=False, elem_id="use-own", min_width=220)
        use.compare = gr.Button("Compare with the default model", elem_id="use-compare", min_width=200)
        use.pictures = gr.Gallery(label="The same pair of photos", columns=4, height="auto", object_fit="contain", format="png",
                                  visible=False, interactive=False, elem_id="use-pictures", buttons=["fullscreen"])  # fmt: skip
        use.about = gr.HTML(elem_id="use-note")


# -- events ---------------------------------------------------------------------------------------------------------


def refresh(services: Services, name: str, step: int | None, from_step: int | None) -> list[Any]:
    """Updates of (view, words, step, from_step) for the run that is shown."""
    run = open_run(services.runs, name)
    choices = checkpoint_choices(run)
    steps = [value for _, value in choices]
    newest = steps[0] if steps else None
    return [
        gr.update(visible=bool(steps)),
        gr.update(visible=run.recipe().get("task") == "TranslationTask" if steps else False),
        gr.update(choices=choices, value=step if step in steps else newest),
        gr.update(choices=choices, value=from_step if from_step in steps else newest),
    ]


def events(use: SimpleNamespace, services: Services, tab: SimpleNamespace, show: Any, outputs: list, folder: Path) -> None:
    """Wire the controls. tab.run names the run; `show(name, step)` fills `outputs`; zips are made in `folder`."""
    runs = services.runs
    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}

    def allowed() -> None:
        if services.training is None:
            raise ValueError("Trainings cannot be started or changed from this page.")

    def planned(name, changed):
        """(run, network, the run's fields, changed ones) for a resume or a fork."""
        run = open_run(runs, name)
        network = network_of(run)
        fields = recipes.typed_changes(network, changed)
        saved = run.recipe()
        if services.training is not None:
            recipes.check_public(network, saved, fields, services.training)
            fields = {**fields, **services.training.fields()}
        return run, network, saved, fields

    def commands(name, changed, step, new_name):
        if not name:  # the lists are filled before a run is chosen
            return "", gr.skip()
        try:
            run, network, _, fields = planned(name, changed)
            lines = [start.shell_text([recipes.resume_command(network, run.folder, fields)])]
            if step is not None and (new_name or "").strip():
                lines.append(start.shell_text([recipes.fork_command(network, run.folder, step, runs / new_name.strip(), fields)]))
            return "\n".join(lines), ""
        except Exception as error:
            return "", messages.alert(messages.sentence(error))

    def said(work):
        """Runs `work`, which returns a sentence and the run to show; errors become a note."""
        try:
            allowed()
            text, name = work()
        except Exception as error:
            return [messages.alert(messages.sentence(error)), *[gr.skip()] * len(outputs)]
        return [messages.status(text), *show(name, None)]

    def stop(name):
        def work():
            start.stop(open_run(runs, name))
            return "The run finishes its step, saves and ends.", name
        return said(work)

    def resume(name, changed):
        def work():
            run, network, saved, fields = planned(name, changed)
            services.training.check(runs, fields.get("steps", saved["steps"]), new=False)
            begun = any(run.events()) or run.checkpoints.exists()
            if not begun:
                raise ValueError(f"{name!r} never began; delete it and start a new one.")
            start.start(run.folder, [recipes.resume_command(network, run.folder, fields)])
            return f"{name} goes on.", name
        return [*said(work), gr.update(visible=False)]

    def fork(name, changed, step, new_name):
        def work():
            run, network, saved, fields = planned(name, changed)
            find_checkpoint(run.checkpoints, step)
            services.training.check(runs, fields.get("steps", saved["steps"]), new=True)
            folder = start.check_name(runs, new_name)
            start.start(folder, [recipes.fork_command(network, run.folder, step, folder, fields)])
            return f"{folder.name} begins at step {step:,} of {name}.", folder.name
        return [*said(work), gr.update(visible=False)]

    def ask(name):
        try:
            allowed()
            run = open_run(runs, name)
            if start.is_busy(run):
                raise ValueError(f"{name!r} is running; stop it first.")
            count = len(list_checkpoints(run.checkpoints))
            text = f"Delete the run {name} for good, with {count} checkpoints and {run.megabytes():.0f} MB?"
        except Exception as error:
            return messages.alert(messages.sentence(error)), "", gr.update(visible=False)
        return "", messages.status(text), gr.update(visible=True)

    def delete(name):
        def work():
            start.delete(runs, name)
            return f"{name} was deleted.", (list_runs(runs) or [None])[0]
        return [*said(work), gr.update(visible=False)]

    def unfold(name):
        number = 1
        while (runs / f"{name}-fork-{number}").exists():
            number += 1
        try:
            steps = [step for _, step in checkpoint_choices(open_run(runs, name))]
        except ValueError:  # deleted meanwhile
            steps = []
        return gr.update(visible=True), f"{name}-fork-{number}"[-60:], gr.update(value=steps[0] if steps else None)

    def make_zip(name, step):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("export-*"):
                if time.time() - old.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(old, ignore_errors=True)
            place = Path(tempfile.mkdtemp(prefix="export-", dir=folder))
            made = export_zip(runs, name, step, place)
            return gr.update(value=str(made), visible=True, label=f"Download {made.name}"), ""
        except Exception as error:
            return gr.update(visible=False), messages.alert(messages.sentence(error))

    def compare(name, step, text):
        nothing = [gr.skip()] * 3
        try:
            run = open_run(runs, name)
            network, key = network_of(run), f"run:{name}@{step_of(find_checkpoint(run.checkpoints, step))}"
            if network == "transformer":
                yield [*nothing, messages.status("Both models translate …")]
                shipped, own = compare_translation(services, key, text)
                silent = "" if own.strip() or not text.strip() else messages.status(SILENT)
                yield [shipped, own, gr.update(visible=False), silent]
            else:
                from ui.tryon import example_pairs

                yield [*nothing, messages.status(f"Both dress the same person at {COMPARED_SIZE[0]} x {COMPARED_SIZE[1]} …")]
                person, garment = example_pairs()[0]
                pictures = compare_tryon(services, key, NETWORK_OF_TASK[run.recipe()["task"]], person, garment)
                yield [gr.skip(), gr.skip(), gr.update(value=pictures, visible=True), ""]
        except Exception as error:
            yield [*nothing, messages.alert(messages.sentence(error))]

    hide = {"fn": lambda: gr.update(visible=False), "inputs": None, **quiet}
    use.stop.click(stop, tab.run, [use.note, *outputs], api_name="run_stop", **quiet)
    use.again.click(unfold, tab.run, [use.form, use.new_name, use.from_step], api_name="run_again", **quiet).then(
        commands, [tab.run, use.changed, use.from_step, use.new_name], [use.commands, use.note], **quiet)  # fmt: skip
    # One event for all boxes: answers to two of them could overtake each other.
    gr.on([use.changed.change, use.from_step.change, use.new_name.change], commands,
          [tab.run, use.changed, use.from_step, use.new_name], [use.commands, use.note], trigger_mode="always_last",
          api_name="run_commands", **quiet)  # fmt: skip
    use.resume.click(resume, [tab.run, use.changed], [use.note, *outputs, use.form], api_name="run_resume", **quiet)
    use.fork.click(fork, [tab.run, use.changed, use.from_step, use.new_name], [use.note, *outputs, use.form], api_name="run_fork",
                   **quiet)  # fmt: skip
    use.delete.click(ask, tab.run, [use.note, use.question, use.ask], api_name="run_ask", **quiet)
    use.no.click(outputs=use.ask, **hide)
    use.yes.click(delete, tab.run, [use.note, *outputs, use.ask], api_name="run_delete", **quiet)
    use.export.click(make_zip, [tab.run, use.step], [use.file, use.about], api_name="run_export", api_visibility="private")
    use.step.input(outputs=use.file, **hide)
    use.compare.click(compare, [tab.run, use.step, use.text], [use.shipped, use.own, use.pictures, use.about],
                      concurrency_id="device", api_name="run_compare", api_visibility="private")  # fmt: skip
