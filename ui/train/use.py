"""What to do with a checkpoint: take it home as a zip, try it beside the default model."""

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from training import card
from training.checkpoint import find_checkpoint, step_of
from training.run import Run, open_run
from ui import messages, theme
from ui.kit import alerts, on_queue
from ui.services import Services
from ui.train import watch
from ui.train.controls import checkpoint_choices, network_of
from ui.train.kinds import COMPARISON_SIZE, Network
from ui.train.networks import NETWORKS

EMPTY_OUTPUT = "This checkpoint ends the sentence before its first word: it has had too few updates."
SENTENCE = "The small dog sees a red apple in the garden."
ZIP_SECONDS = 3600  # of a zip that was made for a visitor
MAX_LETTERS = 300


# -- without Gradio -------------------------------------------------------------------------------------------------


def export_zip(runs: Path, name: str, step: int | None, out: Path) -> Path:
    """A zip of the model folder of one checkpoint, with its card, in `out`.

    Raises ValueError for an unknown run or step.
    """
    run = open_run(runs, name)
    step = step_of(find_checkpoint(run.checkpoints, step))
    network = network_of(run)
    with tempfile.TemporaryDirectory(prefix="atelier-") as temporary:
        folder = Path(temporary) / f"{name}-step-{step}"
        NETWORKS[network].export(run.folder, folder, step)
        (folder / "CARD.md").write_text(card.text(run, step, NETWORKS[network].title), encoding="utf-8")
        return Path(shutil.make_archive(str(out / folder.name), "zip", temporary, folder.name))


def sentence_of(run: Run) -> str:
    """A sentence that the run was not shown, in the language that it reads; a general one before its first sample."""
    for step in reversed(watch.sample_steps(run)):
        file = run.samples(step) / "translations.txt"
        match = re.search(r"^source +(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if file.exists() else None
        if match:
            return match[1][:MAX_LETTERS]
    return SENTENCE


# -- the section ------------------------------------------------------------------------------------------------------


class CheckpointUse:
    """The section below a run. view: the RunView, whose run it uses."""

    def __init__(self, services: Services, view: Any) -> None:
        self.services, self.runs, self.view_of = services, services.runs, view
        with gr.Column(visible=False, elem_id="use-view") as self.view:
            gr.Markdown(theme.text("train/use"), elem_classes="section")
            with gr.Row(elem_classes="actions"):
                self.step = theme.component(gr.Dropdown, "use-step")
                self.choice = gr.State(None)  # the step that a visitor chose; until then the newest one stands there
                self.export = theme.component(gr.Button, "use-export")
                self.file = theme.component(gr.DownloadButton, "use-file", visible=False)
            with gr.Row(visible=False) as self.words:
                self.text = theme.component(gr.Textbox, "use-text", SENTENCE)
                self.own = theme.component(gr.Textbox, "use-own")
                self.default = theme.component(gr.Textbox, "use-shipped")
            self.compare = theme.component(gr.Button, "use-compare")
            self.pictures = theme.gallery(
                "The same pair of photos", "use-pictures", columns=4, visible=False, buttons=["fullscreen"]
            )
            self.about = gr.HTML(elem_id="use-note")

    @property
    def components(self) -> list:
        """All that a look at a run may update."""
        words = [self.view, self.words, self.step, self.choice, self.text, self.own, self.default]
        return [*words, self.pictures, self.file, self.about]

    def refresh(self, snapshot: watch.RunSnapshot, values: dict, fresh: bool) -> dict:
        """The checkpoints of the run that is shown, the newest one chosen unless a visitor has picked another; `fresh`:
        another run, and what was made of the last one goes.
        """
        choices = checkpoint_choices(snapshot.run)
        steps = [step for _, step in choices]
        choice = None if fresh else values.get(self.choice)
        tries_text = snapshot.network is not None and NETWORKS[snapshot.network].tries_text
        updates: dict[Any, Any] = {
            self.view: gr.update(visible=bool(steps)),
            self.words: gr.update(visible=bool(steps) and tries_text),
            self.step: gr.update(choices=choices, value=choice if choice in steps else next(iter(steps), None)),
        }
        if fresh:
            away = gr.update(visible=False)
            updates |= {
                self.choice: None,
                self.text: sentence_of(snapshot.run),
                **dict.fromkeys((self.own, self.default, self.about), ""),
                **dict.fromkeys((self.pictures, self.file), away),
            }
        return updates

    # -- handlers --------------------------------------------------------------------------------------------------

    @alerts("about", hide="file")
    def make_zip(self, values: dict) -> dict:
        """A zip of the checkpoint; older ones of other visitors are swept away."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("export-*"):
            if time.time() - old.stat().st_mtime > ZIP_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
        place = Path(tempfile.mkdtemp(prefix="export-", dir=self.folder))
        archive = export_zip(self.runs, values[self.view_of.run], values[self.step], place)
        return {
            self.file: gr.update(value=str(archive), visible=True, label=f"Download {archive.name}"),
            self.about: "",
        }

    def _choice(self, values: dict) -> tuple[Network, str]:
        """Network and key of the checkpoint. Raises ValueError for one that is not there."""
        name = values[self.view_of.run]
        run = open_run(self.runs, name)
        return NETWORKS[network_of(run)], f"run:{name}@{step_of(find_checkpoint(run.checkpoints, values[self.step]))}"

    @alerts("about")
    def try_words(self, values: dict) -> Iterator[dict]:
        """The default model and the checkpoint on the same text, where it trains a Transformer."""
        network, key = self._choice(values)
        if network.elsewhere:
            yield {self.about: messages.status(network.elsewhere)}
        elif network.tries_text:
            yield {self.about: messages.status("Both models read it …")}
            default, own = network.compare_texts(self.services, key, values[self.text])
            silent = "" if own.strip() or not values[self.text].strip() else messages.status(EMPTY_OUTPUT)
            away = gr.update(visible=False)
            yield {self.default: default, self.own: own, self.pictures: away, self.about: silent}
        else:
            yield {self.pictures: gr.update(visible=False)}

    @alerts("about")
    def try_pictures(self, values: dict) -> Iterator[dict]:
        """The default set and the checkpoint in it on the same photographs, where it trains a network of a try-on."""
        network, key = self._choice(values)
        if not network.tries_pictures:
            yield {self.pictures: gr.skip()}
            return
        size = f"{COMPARISON_SIZE[0]} x {COMPARISON_SIZE[1]}"
        yield {self.about: messages.status(f"Both dress the same person at {size} …")}
        from ui.tryon.work import example_pairs

        pictures = network.compare_pictures(self.services, key, *example_pairs()[0])
        yield {self.pictures: gr.update(value=pictures, visible=True), self.about: ""}

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self, folder: Path) -> None:
        """Connect the components with the handlers. folder: where zips are made."""
        self.folder = folder
        inputs = {self.view_of.run, self.step}
        self.export.click(
            self.make_zip, inputs, [self.file, self.about], api_name="run_export", api_visibility="private"
        )
        self.step.input(lambda step: (gr.update(visible=False), step), self.step, [self.file, self.choice],
                        show_progress="hidden", queue=False, api_visibility="private")  # fmt: skip
        self.compare.click(
            self.try_words,
            {*inputs, self.text},
            [self.default, self.own, self.pictures, self.about],
            concurrency_id="translate",
            api_name="run_compare",
            api_visibility="private",
        ).then(
            self.try_pictures,
            inputs,
            [self.pictures, self.about],
            api_name="run_compare_pictures",
            **on_queue("try-on"),
        )
