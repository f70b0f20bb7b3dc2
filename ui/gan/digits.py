"""The Digits view: samples with their neighbours, a walk in z, D's opinion, the training, Parzen's table."""

import base64
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from PIL import Image

from gan import parzen, pictures, sampling
from gan.digits import centre
from ui import messages, theme
from ui.figures import enlarge
from ui.gan import models
from ui.gan.game import whole
from ui.gan.models import DigitModels
from ui.kit import View, alerts

WALK = 11  # digits of the strip
COLUMNS, COUNTS = 8, (8, 16, 32, 64)
SLOW: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_id": "gan"}
MAX_LETTERS = 8000  # letters of base64

ZOOM = 3  # pixels of the page for one of a digit, so that the browser need not smooth them


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def parzen_html(results: dict[str, Any]) -> str:
    """The table of log-likelihoods, best first, with what must be said beside it."""
    scores = sorted(results["scores"].items(), key=lambda item: -item[1]["mean"])
    lines = "".join(
        f'<tr class="{"own" if name == "adversarial nets" else ""}"><td>{escape(name)}</td><td>{_number(s["mean"])} ± '
        f"{s['error']:.1f}</td><td>{s['sigma']:.3f}</td></tr>"
        for name, s in scores
    )
    first = scores[0][0]
    data = results["scores"].get("training data")
    above = [name for name, s in scores if data and s["mean"] > data["mean"] and name != "training data"]
    remark = (
        f"<b>{escape(above[0])}</b> score above the training data themselves, which no honest measure of likeness "
        "would allow: Theis, van den Oord and Bethge (2016) showed this, and it holds here."
        if above
        else f"First in this table: {escape(first)}."
    )
    return (
        '<div class="parzen-scroll"><table class="parzen-table"><tr><th>centres of the window</th><th>log-likelihood '
        f'of a test digit, nats</th><th>σ</th></tr>{lines}</table></div><p class="hint">{remark}</p>'
        f'<p class="hint">{escape(parzen.APART)}</p>'
    )


def sigma_curves(results: dict[str, Any]) -> dict[str, Any]:
    """Log-likelihood of the validation set over sigma for `static/train/chart.js`, what lies below -400 left out."""
    lines = []
    for name, score in results["scores"].items():
        steps, values = zip(*((sigma, value) for sigma, value in score["curve"] if value > -400))
        lines.append({"name": name, "steps": steps, "values": values})
    return {"title": "Validation: the log-likelihood over σ", "axis": "σ", "lines": lines}


class DigitsView(View):
    """The authors' experiment with handwritten digits."""

    name = "digits"
    title = "Digits"

    def build(self) -> None:
        """Makes the components."""
        self.models = DigitModels(self.services)
        gr.Markdown(theme.text("gan/digits"), elem_classes="section")
        self.note = gr.HTML(elem_id="gan-digits-note")
        self._samples()
        self._walk()
        self._opinion()
        gr.Markdown("### From noise to digits: the same z at every checkpoint", elem_classes="section")
        self.moment = theme.component(gr.Slider, "gan-digits-moment", 0, 1, 0)
        self.past = self.picture("Samples during the training", "gan-digits-past")
        self._parzen()

    def _samples(self) -> None:
        with gr.Row(elem_classes="game-settings"):
            self.model = theme.component(gr.Dropdown, "gan-digits-model")
            self.seed = theme.component(gr.Number, "gan-digits-seed", 0)
            self.count = theme.component(gr.Radio, "gan-digits-count", COUNTS, value=32)
            self.draw = theme.component(gr.Button, "gan-digits-draw")
        self.caption = gr.HTML(elem_id="gan-digits-caption", elem_classes="gan-caption")
        self.sheet = self.picture("Samples, fair draws", "gan-digits-sheet")
        with gr.Accordion("The nearest training digit beside each (Figure 2)", open=False):
            gr.Markdown(theme.text("gan/digits.nearest"), elem_classes="hint")
            with gr.Row():
                self.upload = theme.component(gr.File, "gan-digits-upload")
                self.folder = theme.component(gr.Textbox, "gan-digits-folder", visible=self.services.local)

    def _walk(self) -> None:
        gr.Markdown("### A walk between two z (Figure 3)", elem_classes="section")
        with gr.Row(elem_classes="game-settings"):
            self.start = theme.component(gr.Number, "gan-digits-from", 1)
            self.end = theme.component(gr.Number, "gan-digits-to", 2)
            self.part = theme.component(gr.Slider, "gan-digits-part", 0, 1, 0.5)
        with gr.Row():
            self.strip = self.picture("z in a straight line", "gan-digits-strip", scale=4)
            self.here = self.picture("G(z) here", "gan-digits-here", scale=1)

    def _opinion(self) -> None:
        gr.Markdown("### What D thinks of a digit that you draw", elem_classes="section")
        with gr.Row():
            with gr.Column(min_width=280):
                self.pad = theme.script_component("gan/pad.js", "pad", "gan-digits-pad")
            with gr.Column(min_width=240):
                self.opinion = gr.HTML(elem_id="gan-digits-opinion")
                self.input_picture = self.picture("What D sees, fitted as MNIST fits its digits", "gan-digits-seen")

    def _parzen(self) -> None:
        gr.Markdown(theme.text("gan/digits.parzen"), elem_classes="section")
        self.table = gr.HTML(elem_id="gan-digits-parzen")
        self.curve = theme.script_component(
            "train/chart.js", "chart", "gan-digits-curve", "card chart-cell", visible=False
        )

    @staticmethod
    def picture(label: str, elem_id: str, **more: Any) -> gr.Image:
        """An empty picture of digits."""
        return theme.component(gr.Image, "digit-sheet", label=label, alt_text=label, elem_id=elem_id, **more)

    def wire(self) -> None:
        """Connects the events; the view fills itself when it is opened."""
        sheet = [self.model, self.seed, self.count, self.upload, self.folder]
        walk = [self.model, self.start, self.end, self.part]
        sheet_places, walk_places = [self.sheet, self.caption, self.note], [self.strip, self.here, self.note]
        past = [self.moment, self.past]
        everything = list(dict.fromkeys([*sheet, *walk]))
        results = list(dict.fromkeys([*sheet_places, *walk_places, *past]))
        self.draw_with(everything, [self.model, self.table, self.curve, self.folder, *results], **SLOW)
        self.model.input(self.choose, everything, results, api_name="gan_digits_model", **SLOW)
        gr.on(
            [self.draw.click, self.count.input, self.seed.submit, self.upload.change, self.folder.submit],
            self.sample, sheet, sheet_places, api_name="gan_digits_draw", **SLOW,
        )  # fmt: skip
        gr.on(
            [self.part.input, self.start.input, self.end.input], self.walk, walk, walk_places,
            trigger_mode="always_last", api_name="gan_digits_walk", **SLOW,
        )  # fmt: skip
        latest: dict[str, Any] = {"trigger_mode": "always_last", **SLOW}
        places = [self.opinion, self.input_picture]
        self.pad.drawn(self.ask, self.model, places, api_name="gan_digits_opinion", **latest)
        # A value and a new range may cross on their way, which Gradio calls an error.
        latest["preprocess"] = False
        self.moment.input(self.scrub, [self.model, self.moment], past, api_name="gan_digits_scrub", **latest)

    # -- handlers ----------------------------------------------------------------------------------------------------

    def show(self, model, seed, count, upload, folder, *walk):
        """The networks that there are, then samples, walk and checkpoints of the chosen ones as they are made."""
        updates = self.open(model, folder)
        # Gradio takes updates apart as it sends them.
        model, folder = updates[self.model]["value"], updates[self.folder]
        yield updates
        yield from self.choose(model, seed, count, upload, folder, *walk)

    def choose(self, model, seed, count, upload, folder, *walk):
        """Samples, walk and checkpoints of other networks, one after the other."""
        yield self.sample(model, seed, count, upload, folder)
        yield self.walk(model, *walk)
        yield self.first(model)

    def open(self, model, folder=""):
        """The list of networks, and Parzen's table; on a local page also the digits of a run, to compare with."""
        networks = models.choices(self.services)
        place = (folder or "").strip() or (models.folder_of_digits(self.services) if self.services.local else "")
        keys = [key for _, key in networks]
        scores = models.evaluation()
        return {
            self.model: gr.update(choices=networks, value=model if model in keys else next(iter(keys), None)),
            self.table: parzen_html(scores) if scores else messages.status("The shipped weights come without scores."),
            self.curve: gr.update(value=sigma_curves(scores), visible=True) if scores else gr.update(visible=False),
            self.note: "" if networks else messages.status(models.NO_WEIGHTS),
            self.folder: place,
        }

    @alerts("note")
    def sample(self, model, seed, count, upload, folder):
        """A sheet of fair draws, with neighbours where there are digits to look among."""
        if not models.choices(self.services):
            return {self.note: messages.status(models.NO_WEIGHTS)}
        rows = sampling.sample(
            self.models.pair(model).generator, whole(count, "The number of samples"), whole(seed, "The seed")
        )
        local = (folder or "").strip() if self.services.local else ""
        place = upload or (str(Path(local).expanduser()) if local else "")
        if not place:
            sheet, caption = pictures.sheet(rows, 2 * COLUMNS), "Fair draws, none left out."
        else:
            training = self.models.comparison_digits(place)
            neighbours, distance = sampling.nearest(rows, training)
            sheet = pictures.sheet(rows, COLUMNS, training[neighbours])
            caption = (
                f"Each sample and, framed, the nearest of {len(training):,} digits, {distance.min():.1f} to "
                f"{distance.max():.1f} away; a copy would be at 0."
            )
        return {self.sheet: enlarge(sheet, ZOOM), self.caption: messages.status(caption), self.note: ""}

    @alerts("note")
    def walk(self, model, start, end, part):
        """The strip from one z to the other, and the digit at the slider."""
        if not models.choices(self.services):
            return gr.skip()
        generator = self.models.pair(model).generator
        first, last = (sampling.noise(generator, 1, whole(seed, "The seed"))[0] for seed in (start, end))
        steps = sampling.walk(first, last, WALK)
        strip = pictures.sheet(sampling.decode(generator, steps), WALK)
        here = sampling.decode(generator, first[None].lerp(last[None], float(part)))
        return {
            self.strip: enlarge(strip, ZOOM),
            self.here: gr.update(value=enlarge(pictures.to_pictures(here)[0], 5), label=f"G(z) at {float(part):.2f}"),
            self.note: "",
        }

    @alerts("opinion")
    def ask(self, model, event: gr.EventData):
        """D(x) of the drawn digit."""
        side, raw = whole(event.side, "The drawing's side"), base64.b64decode(str(event.pixels)[:MAX_LETTERS])
        if not 1 <= side <= 64 or len(raw) != side * side:
            raise ValueError("The drawing did not arrive whole; draw again.")
        x = centre(np.frombuffer(raw, np.uint8).reshape(side, side))
        opinion = float(sampling.opinion(self.models.pair(model).discriminator, x[None])[0])
        sentence = (
            f"D(x) = {opinion:.3f}: D takes it for {'a digit of the data' if opinion > 0.5 else 'a sample of G'}."
        )
        return {
            self.opinion: messages.status(sentence),
            self.input_picture: enlarge(pictures.to_pictures(x[None])[0], 5),
        }

    def moments(self, model: str | None) -> list[int]:
        """Updates that can be looked at, oldest first."""
        if model == models.OWN:
            return list(models.history())
        return models.runs_of_digits(self.services).get((model or "").removeprefix("run:"), [])

    def first(self, model):
        """The newest checkpoint on the slider."""
        return self.scrub(model, len(self.moments(model)) - 1)

    def scrub(self, model, index):
        """Samples of fixed z at a checkpoint."""
        steps = self.moments(model)
        if not steps:
            absent = gr.update(interactive=False, maximum=1, value=0, label="Checkpoint: there are none yet")
            return {self.moment: absent, self.past: None}
        try:
            index = min(max(whole(index, "The checkpoint"), 0), len(steps) - 1)
            if model == models.OWN:
                picture = np.asarray(Image.open(models.history()[steps[index]]).convert("L"))
            else:
                picture = pictures.sheet(sampling.sample(self.models.pair(model, steps[index]).generator, 64, 5), 16)
            label = f"After update {steps[index]:,}"
            return {
                self.moment: gr.update(
                    maximum=max(1, len(steps) - 1),
                    value=index,
                    label=f"Checkpoint: {label}",
                    interactive=len(steps) > 1,
                ),
                self.past: gr.update(value=enlarge(picture, 2), label=label),
            }
        except Exception as error:
            return {self.moment: gr.update(label=f"Checkpoint: {messages.sentence(error)}")}
