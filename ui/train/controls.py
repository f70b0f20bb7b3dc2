"""The buttons of a run: stop, resume, fork, delete; each is there only while it can do something."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from training import start
from training.checkpoint import find_checkpoint, list_checkpoints, step_of
from training.run import Run, list_runs, open_run
from ui import messages, theme
from ui.kit import QUICKLY, alerts
from ui.services import Services
from ui.train import recipes, watch
from ui.train.networks import network_of_task

SIGNATURE = "visitor"  # file of a run's folder


def checkpoint_choices(run: Run) -> list[tuple[str, int]]:
    """(label, step) of a run's checkpoints, the newest first."""
    steps = [step_of(folder) for folder in list_checkpoints(run.checkpoints)]
    return [(f"step {step:,}", step) for step in reversed(steps)]


def network_of(run: Run) -> str:
    """Key of the network that a run trains. Raises ValueError for a foreign one."""
    task = run.recipe().get("task", "")
    network = network_of_task(task)
    if network is None:
        raise ValueError(f"{run.folder.name!r} trains {task or 'nothing known'}, which this page cannot start again.")
    return network


def sign(folder: Path, visitor: str | None) -> None:
    """Notes in a run's folder whose browser started it. visitor: the secret that the browser keeps."""
    (folder / SIGNATURE).write_text(_signature(visitor), encoding="utf-8")


def is_own(run: Run, visitor: str | None) -> bool:
    """Whether that visitor's browser started the run from the page."""
    file = run.folder / SIGNATURE
    return bool(visitor) and file.is_file() and file.read_text(encoding="utf-8") == _signature(visitor)


def _signature(visitor: str | None) -> str:
    return hashlib.sha256((visitor or "").encode()).hexdigest()


def action(changes: bool = True) -> Callable[[Callable], Callable]:
    """A handler of `RunControls` out of a method that returns a sentence and the run to show; an error becomes a note.

    changes: it is about the run itself, which not everybody may change, and not about a copy.
    """

    def decorate(work: Callable) -> Callable:
        @alerts("note")
        @functools.wraps(work)
        def run(self: RunControls, values: dict) -> dict:
            self._check_right(values, changes)
            text, name = work(self, values)
            away = {self.form: gr.update(visible=False), self.ask: gr.update(visible=False)}
            return {**self.view.show(name, {self.visitor: values.get(self.visitor)}), **away, **self.tell(text, name)}

        return run

    return decorate


class RunControls:
    """The buttons under a run's name, and what they unfold. view: the RunView, which shows the run afterwards."""

    def __init__(self, services: Services, view: Any) -> None:
        self.services, self.runs, self.view = services, services.runs, view
        with gr.Row(visible=services.training is not None, elem_classes="actions run-buttons"):
            self.stop = theme.component(gr.Button, "run-stop", visible=False)
            self.again = theme.component(gr.Button, "run-again", visible=False)
            self.delete = theme.component(gr.Button, "run-delete", visible=False)
        # Rendered by `wire`, outside the tab: what is in a tab is not in the browser before the tab is opened.
        self.visitor = gr.BrowserState("", storage_key="atelier-visitor", secret="atelier", render=False)
        self.note_run = gr.State("")  # the run at work that the note is about, "" for none

    def build_folds(self) -> None:
        """Builds what the buttons unfold, and the note that says what they did."""
        with gr.Column(visible=False, elem_classes="card", elem_id="run-delete-ask") as self.ask:
            self.question = gr.HTML()
            with gr.Row(elem_classes="actions run-buttons"):
                self.yes = theme.component(gr.Button, "run-delete-yes")
                self.no = theme.component(gr.Button, "run-delete-no")
        with gr.Column(visible=False, elem_classes="card", elem_id="run-again-form") as self.form:
            self._build_form()
        self.note = gr.HTML(elem_id="run-note")

    def _build_form(self) -> None:
        with gr.Row():
            self.changes = theme.component(gr.Textbox, "run-changes")
            self.from_step = theme.component(gr.Dropdown, "run-fork-step")
            self.new_name = theme.component(gr.Textbox, "run-fork-name")
        self.commands = theme.component(gr.Code, "run-commands")
        with gr.Row(elem_classes="actions"):
            self.resume = theme.component(gr.Button, "run-resume")
            self.fork = theme.component(gr.Button, "run-fork")

    @property
    def components(self) -> list:
        """Components that `refresh` may update."""
        buttons = [self.stop, self.again, self.delete, self.ask, self.form, self.resume, self.fork]
        return [*buttons, self.from_step, self.note, self.note_run, self.visitor]

    # -- updates ---------------------------------------------------------------------------------------------------

    def refresh(self, snapshot: watch.RunSnapshot, values: dict) -> dict:
        """Updates of the buttons for the run's state. values: of `from_step` and `visitor`, where they are known."""
        busy, is_ours = snapshot.state in watch.BUSY, snapshot.network is not None
        own = self._may_change(snapshot.run, values)
        choices = checkpoint_choices(snapshot.run)
        steps = [step for _, step in choices]
        choice = values.get(self.from_step)
        label = "Go on or fork …" if snapshot.state == "finished" else "Resume or fork …"
        stopping = snapshot.state == "stopping"
        updates: dict[Any, Any] = {
            self.stop: gr.update(
                visible=busy and own, interactive=not stopping, value="Stopping …" if stopping else "Stop and save"
            ),
            self.again: gr.update(visible=bool(steps) and is_ours, value=label if own and not busy else "Fork …"),
            self.delete: gr.update(visible=own and not busy),
            self.resume: gr.update(visible=own and not busy),
            self.fork: gr.update(visible=bool(steps)),
            self.from_step: gr.update(choices=choices, value=choice if choice in steps else next(iter(steps), None)),
        }
        if busy:
            updates[self.ask] = gr.update(visible=False)
        elif values.get(self.note_run) == snapshot.run.folder.name:  # what was said of it ends with it
            updates |= {self.note: "", self.note_run: ""}
        return updates

    def tell(self, text: str, run: str | None) -> dict:
        """Updates that say what was done with a run; the line goes once the run has ended."""
        return {self.note: messages.status(text), self.note_run: run or ""}

    def hide(self) -> dict:
        """Updates that hide the buttons while there is no run."""
        return {one: gr.update(visible=False) for one in (self.stop, self.again, self.delete, self.ask, self.form)}

    # -- handlers --------------------------------------------------------------------------------------------------

    def _may_change(self, run: Run, values: dict) -> bool:
        """Whether the visitor may stop, resume or delete the run: who started it, or the operator of a local page."""
        return self.services.local or is_own(run, values.get(self.visitor))

    def _check_right(self, values: dict, changes: bool = True) -> None:
        """Raises ValueError with one sentence. changes: it is about the run itself, not about a copy."""
        if self.services.training is None:
            raise ValueError("Training runs cannot be started or changed from this page.")
        if changes and not self._may_change(open_run(self.runs, values[self.view.run]), values):
            raise ValueError("This browser did not start that run, so it cannot stop, resume or delete it.")

    def _read_plan(self, name: str, line: str) -> tuple[Run, str, dict[str, Any], dict[str, Any]]:
        """(run, network, the run's fields, changed ones) for a resume or a fork."""
        run = open_run(self.runs, name)
        network = network_of(run)
        fields = recipes.read_changes(network, line)
        recipe = run.recipe()
        if self.services.training is not None:
            recipes.check_public(network, recipe, fields, self.services.training)
            fields = {**fields, **self.services.training.fields()}
        return run, network, recipe, fields

    def plan(self, values: dict) -> dict:
        """The commands of resume and fork as they are filled in; a comment says what is wrong with them."""
        name, step, new_name = values[self.view.run], values[self.from_step], (values[self.new_name] or "").strip()
        if not name:  # the lists are filled before a run is chosen
            return {self.commands: ""}
        try:
            run, network, _, fields = self._read_plan(name, values[self.changes])
            lines = [start.shell_text([recipes.resume_command(network, run.folder, fields)])]
            if step is not None and new_name:
                command = recipes.fork_command(network, run.folder, step, self.runs / new_name, fields)
                lines.append(start.shell_text([command]))
            return {self.commands: "\n".join(lines)}
        except Exception as error:
            return {self.commands: f"# {messages.sentence(error)}"}

    @action()
    def stop_it(self, values: dict) -> tuple[str, str]:
        """Ask the process of the run to end."""
        name = values[self.view.run]
        start.stop(open_run(self.runs, name))
        return "The run was asked to stop; its last step is saved.", name

    @action()
    def resume_it(self, values: dict) -> tuple[str, str]:
        """Resume the run from its newest checkpoint."""
        name = values[self.view.run]
        run, network, recipe, fields = self._read_plan(name, values[self.changes])
        self.services.limits().check(self.runs, fields.get("steps", recipe["steps"]), new=False)
        if not (any(run.events()) or run.checkpoints.exists()):
            raise ValueError(f"{name!r} never began; delete it and start a new one.")
        start.start(run.folder, [recipes.resume_command(network, run.folder, fields)])
        return f"{name} goes on.", name

    @action(changes=False)
    def fork_it(self, values: dict) -> tuple[str, str]:
        """A run of its own from a checkpoint of this one."""
        name, step = values[self.view.run], values[self.from_step]
        run, network, recipe, fields = self._read_plan(name, values[self.changes])
        find_checkpoint(run.checkpoints, step)
        self.services.limits().check(self.runs, fields.get("steps", recipe["steps"]), new=True)
        folder = start.check_name(self.runs, values[self.new_name])
        start.start(folder, [recipes.fork_command(network, run.folder, step, folder, fields)])
        sign(folder, values.get(self.visitor))
        return f"{folder.name} begins at step {step:,} of {name}.", folder.name

    @alerts("note", hide="ask")
    def ask_first(self, values: dict) -> dict:
        """Ask before the run is deleted."""
        self._check_right(values)
        name = values[self.view.run]
        run = open_run(self.runs, name)
        if start.is_busy(run):
            raise ValueError(f"{name!r} is running; stop it first.")
        count = len(list_checkpoints(run.checkpoints))
        whose = "" if is_own(run, values.get(self.visitor)) else " It was not started in this browser."
        text = f"Delete the run {name} for good, with {count} checkpoints and {run.megabytes():.0f} MB?{whose}"
        return {self.note: "", self.question: messages.status(text), self.ask: gr.update(visible=True)}

    @action()
    def delete_it(self, values: dict) -> tuple[str, str | None]:
        """Deletes the run, and shows the one that was written last."""
        name = values[self.view.run]
        start.delete(self.runs, name)
        return f"{name} was deleted.", next(iter(list_runs(self.runs)), None)

    def unfold(self, values: dict) -> dict:
        """Resume and fork, with a name that is free and the newest checkpoint."""
        name, number = values[self.view.run], 1
        while (self.runs / f"{name}-fork-{number}").exists():
            number += 1
        try:
            steps = [step for _, step in checkpoint_choices(open_run(self.runs, name))]
        except ValueError:  # deleted meanwhile
            steps = []
        boxes = {
            self.new_name: f"{name}-fork-{number}"[-60:],
            self.from_step: gr.update(value=steps[0] if steps else None),
        }
        now = {**values, self.new_name: boxes[self.new_name], self.from_step: steps[0] if steps else None}
        return {self.form: gr.update(visible=True), **boxes, **self.plan(now)}

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self) -> None:
        """Connect the buttons with the handlers."""
        self.visitor.render()
        run, places = self.view.run, self.view.components
        own = {run, self.visitor}
        inputs = {*own, self.changes, self.from_step, self.new_name}
        folds = [self.form, self.new_name, self.from_step, self.commands]
        self.again.click(self.unfold, inputs, folds, api_name="run_again", **QUICKLY)
        # One event for all boxes: answers to two of them could overtake each other.
        gr.on(
            [self.changes.change, self.from_step.change, self.new_name.change],
            self.plan,
            inputs,
            [self.commands],
            trigger_mode="always_last",
            api_name="run_commands",
            **QUICKLY,
        )
        self.stop.click(self.stop_it, own, places, api_name="run_stop", **QUICKLY)
        self.resume.click(self.resume_it, inputs, places, api_name="run_resume", **QUICKLY)
        self.fork.click(self.fork_it, inputs, places, api_name="run_fork", **QUICKLY)
        self.delete.click(self.ask_first, own, [self.note, self.question, self.ask], api_name="run_ask", **QUICKLY)
        self.no.click(lambda: gr.update(visible=False), None, self.ask, **QUICKLY)
        self.yes.click(self.delete_it, own, places, api_name="run_delete", **QUICKLY)
