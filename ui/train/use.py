"""What to do with a checkpoint: take it home as a zip, try it beside the default model."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from training import card
from training.checkpoint import find_checkpoint, step_of
from training.run import Run, open_run
from transformer.parsing.trees import indented
from ui import messages
from ui.services import Services
from ui.train import watch
from ui.train.controls import checkpoint_choices, network_of
from ui.train.networks import NETWORKS
from ui.translate.languages import model_for
from ui.translate.parse import parser_key
from vton.recipes.registry import NETWORKS as TRYON
from vton.recipes.registry import RIVALS

SILENT = "This checkpoint ends the sentence before its first word: it has seen too few updates."
SENTENCE = "The small dog sees a red apple in the garden."
COMPARED_SIZE = (256, 192)
KEPT_SECONDS = 3600  # of a zip that was made for a visitor
MOST_LETTERS = 300
ELSEWHERE = {
    "gan": "Open the GAN tab: under Digits, every checkpoint of a run on digits stands in the list.",
}


# -- without Gradio -------------------------------------------------------------------------------------------------


def exporter(network: str | None) -> Callable[[Path, Path, int | None], int]:
    """What writes the model folder of a checkpoint: of a run's folder, into a folder, at a step."""
    if network in ("transformer", "parse"):
        from transformer.export import export as export_text

        return export_text
    if network == "gan":
        from gan.export import export as export_gan

        return export_gan
    from vton.export import export as export_tryon

    return export_tryon


def export_zip(runs: Path, name: str, step: int | None, out: Path) -> Path:
    """A zip of the model folder of one checkpoint, with its card, in `out`.

    Raises ValueError for an unknown run or step.
    """
    run = open_run(runs, name)
    step = step_of(find_checkpoint(run.checkpoints, step))
    network = network_of(run)
    with tempfile.TemporaryDirectory(prefix="atelier-") as temporary:
        folder = Path(temporary) / f"{name}-step-{step}"
        exporter(network)(run.folder, folder, step)
        (folder / "CARD.md").write_text(card.text(run, step, NETWORKS[network].title), encoding="utf-8")
        return Path(shutil.make_archive(str(out / folder.name), "zip", temporary, folder.name))


def sentence_of(run: Run) -> str:
    """A sentence that the run was not shown, in the language that it reads; a general one before its first sample."""
    for step in reversed(watch.sample_steps(run)):
        file = run.samples(step) / "translations.txt"
        found = re.search(r"^source +(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if file.exists() else None
        if found:
            return found[1][:MOST_LETTERS]
    return SENTENCE


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


def compare_trees(services: Services, key: str, text: str) -> tuple[str, str]:
    """The shipped parser's and the checkpoint's tree of the first sentence of a text."""
    trees = [services.translator(one).parse(text)[0].trees[0] for one in (parser_key(services, ""), key)]
    return indented(trees[0]), indented(trees[1])


def compare_tryon(services: Services, key: str, network: str, person: Any, garment: Any) -> list[tuple[Any, str]]:
    """The map that shows the network's work, and the result, by the default set and with the checkpoint in it; a flow
    warper is seen beside the spline of the default set.
    """
    pictures = []
    for label, model in (("default", None), ("this checkpoint", key)):
        changed = {"warp": "flow"} if network == "flow" and model else {}
        *_, result = services.stream_tryon(person, garment, model=model, size=COMPARED_SIZE, **changed)
        maps = result.pictures()
        name = (TRYON | RIVALS)[network].map
        pictures += [(maps[name], f"{name.replace('_', ' ')}: {label}"), (maps["result"], f"result: {label}")]
    return [pictures[i] for i in (0, 2, 1, 3)]


# -- the section ------------------------------------------------------------------------------------------------------


class CheckpointUse:
    """The section below a run. view: the RunView, whose run it uses."""

    def __init__(self, services: Services, view: Any) -> None:
        self.services, self.runs, self.view_of = services, services.runs, view
        with gr.Column(visible=False, elem_id="use-view") as self.view:
            gr.Markdown(
                "### Use what it has learned\nIn **Translate** and **Try on** every checkpoint stands in "
                "the list of models.",
                elem_classes="section",
            )
            with gr.Row(elem_classes="actions"):
                self.step = gr.Dropdown(
                    [], label="Checkpoint", allow_custom_value=True, elem_id="use-step", min_width=160
                )
                self.export = gr.Button("Make a zip to download", elem_id="use-export", min_width=160)
                self.file = gr.DownloadButton("Download", visible=False, elem_id="use-file", min_width=160)
            with gr.Row(visible=False) as self.words:
                self.text = gr.Textbox(
                    SENTENCE, label="A sentence for both models", lines=2, elem_id="use-text", min_width=260
                )
                self.own = gr.Textbox(
                    label="This checkpoint says", lines=2, interactive=False, elem_id="use-own", min_width=220
                )
                self.shipped = gr.Textbox(
                    label="The default model says", lines=2, interactive=False, elem_id="use-shipped", min_width=220
                )
            self.compare = gr.Button("Try it beside the default model", elem_id="use-compare", min_width=200)
            self.pictures = gr.Gallery(
                label="The same pair of photos",
                columns=4,
                height="auto",
                object_fit="contain",
                format="png",
                visible=False,
                interactive=False,
                elem_id="use-pictures",
                buttons=["fullscreen"],
            )
            self.about = gr.HTML(elem_id="use-note")

    @property
    def components(self) -> list:
        """All that a look at a run may update."""
        return [
            self.view,
            self.words,
            self.step,
            self.text,
            self.own,
            self.shipped,
            self.pictures,
            self.file,
            self.about,
        ]

    def refresh(self, seen: watch.Seen, values: dict, fresh: bool) -> dict:
        """The checkpoints of the run that is shown; `fresh`: another one, and what was made of the last one goes."""
        choices = checkpoint_choices(seen.run)
        steps = [step for _, step in choices]
        chosen = values.get(self.step)
        made: dict[Any, Any] = {
            self.view: gr.update(visible=bool(steps)),
            self.words: gr.update(visible=bool(steps) and seen.network in ("transformer", "parse")),
            self.step: gr.update(choices=choices, value=chosen if chosen in steps else next(iter(steps), None)),
        }
        if fresh:
            hidden = gr.update(visible=False)
            made |= {self.text: sentence_of(seen.run), self.own: "", self.shipped: "", self.about: "",
                     self.pictures: hidden, self.file: hidden}  # fmt: skip
        return made

    # -- handlers --------------------------------------------------------------------------------------------------

    def make_zip(self, values: dict) -> dict:
        """A zip of the checkpoint; older ones of other visitors are swept away."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob("export-*"):
                if time.time() - old.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(old, ignore_errors=True)
            place = Path(tempfile.mkdtemp(prefix="export-", dir=self.folder))
            made = export_zip(self.runs, values[self.view_of.run], values[self.step], place)
        except Exception as error:
            return {self.file: gr.update(visible=False), self.about: messages.alert(messages.sentence(error))}
        return {self.file: gr.update(value=str(made), visible=True, label=f"Download {made.name}"), self.about: ""}

    def _chosen(self, values: dict) -> tuple[str, str]:
        """Network and key of the checkpoint. Raises ValueError for one that is not there."""
        name = values[self.view_of.run]
        run = open_run(self.runs, name)
        return network_of(run), f"run:{name}@{step_of(find_checkpoint(run.checkpoints, values[self.step]))}"

    def try_words(self, values: dict) -> Iterator[dict]:
        """The default model and the checkpoint on the same text, where it trains a Transformer."""
        try:
            network, key = self._chosen(values)
            if network in ELSEWHERE:
                yield {self.about: messages.status(ELSEWHERE[network])}
            elif network in ("transformer", "parse"):
                yield {self.about: messages.status("Both models read it …")}
                yield self._words(network, key, values[self.text])
            else:
                yield {self.pictures: gr.update(visible=False)}
        except Exception as error:
            yield {self.about: messages.alert(messages.sentence(error))}

    def try_pictures(self, values: dict) -> Iterator[dict]:
        """The default set and the checkpoint in it on the same photographs, where it trains a network of a try-on."""
        try:
            network, key = self._chosen(values)
            if network in (*ELSEWHERE, "transformer", "parse"):
                yield {self.pictures: gr.skip()}
                return
            size = f"{COMPARED_SIZE[0]} x {COMPARED_SIZE[1]}"
            yield {self.about: messages.status(f"Both dress the same person at {size} …")}
            yield self._pictures(network, key)
        except Exception as error:
            yield {self.about: messages.alert(messages.sentence(error))}

    def _words(self, network: str, key: str, text: str) -> dict:
        compare = compare_trees if network == "parse" else compare_translation
        shipped, own = compare(self.services, key, text)
        silent = "" if own.strip() or not text.strip() else messages.status(SILENT)
        return {self.shipped: shipped, self.own: own, self.pictures: gr.update(visible=False), self.about: silent}

    def _pictures(self, network: str, key: str) -> dict:
        from ui.tryon.work import example_pairs

        person, garment = example_pairs()[0]
        pictures = compare_tryon(self.services, key, network, person, garment)
        return {self.pictures: gr.update(value=pictures, visible=True), self.about: ""}

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self, folder: Path) -> None:
        """Connect the components with the handlers. folder: where zips are made."""
        self.folder = folder
        given = {self.view_of.run, self.step}
        self.export.click(
            self.make_zip, given, [self.file, self.about], api_name="run_export", api_visibility="private"
        )
        self.step.input(lambda: gr.update(visible=False), None, self.file, show_progress="hidden", queue=False,
                        api_visibility="private")  # fmt: skip
        self.compare.click(
            self.try_words,
            {*given, self.text},
            [self.shipped, self.own, self.pictures, self.about],
            concurrency_id="translate",
            api_name="run_compare",
            api_visibility="private",
        ).then(
            self.try_pictures,
            given,
            [self.pictures, self.about],
            concurrency_id="try-on",
            api_name="run_compare_pictures",
            api_visibility="private",
        )
