"""The view that opens the networks: ALIAS normalisation, the segmentation's doubt, fit and grid of the warp, a pair."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import gradio as gr
import numpy as np

from ui import colours, figures, messages, theme
from ui.figures import percent
from ui.kit import QUICKLY, QUIETLY, alerts
from ui.services import Progress
from ui.tryon import work
from ui.tryon.bar import with_quiet_end
from ui.tryon.figures import data_url, warp_overlay
from ui.tryon.session import Session
from ui.tryon.steps import StepsView
from ui.tryon.view import View
from ui.tryon.views import not_yet
from vton import insight, labels
from vton.pipeline import STAGES

SIDE = 288  # height in pixels of a painted map of activations
LEAST = 192  # width in pixels at which a picture is shown


def _figure(picture: np.ndarray, caption: str) -> str:
    width = max(picture.shape[1], LEAST)  # a pixel of the picture is a pixel of the page
    return (
        f'<figure style="width: {width}px"><img src="{data_url(picture)}" '
        f'alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _row(title: str, cells: list[str], about: str = "") -> str:
    line = f'<p class="map-about">{escape(about)}</p>' if about else ""
    return f'<h4>{escape(title)}</h4>{line}<div class="inside-row">{"".join(cells)}</div>'


def _map(values: np.ndarray, most: float | None = None) -> np.ndarray:
    """Values in the page's colours: from 0 to `most`, or without it around 0, blue below and orange above; every place
    of a small map is a square.
    """
    if most is None:
        picture = colours.paint(0.5 + values / max(float(np.abs(values).max()), 1e-9) / 2, colours.SIGNED["light"])
    else:
        picture = colours.paint(values / max(most, 1e-9), colours.RAMPS["light"])
    return figures.enlarge(picture, max(1, SIDE // picture.shape[0]))


def alias(tryon: Any, result: Any, on_stage: Any) -> str:
    """Every block of the ALIAS generator."""
    on_stage("synthesis", STAGES.index("synthesis"), len(STAGES))
    rows = []
    for level in insight.alias_levels(tryon, result):
        most = max(float(level.before.max()), float(level.after.max()))
        maps = [
            _figure(_map(level.mask, 1.0), "M_misalign at this size")
            if level.mask is not None
            else "<figure><figcaption>No mask: this block standardises the whole picture.</figcaption></figure>",
            _figure(_map(level.gamma), f"γ, {level.gamma.min():.2f} to {level.gamma.max():.2f}"),
            _figure(_map(level.beta), f"β, {level.beta.min():.2f} to {level.beta.max():.2f}"),
            _figure(_map(level.before, most), f"activations before, rms {level.before.mean():.2f}"),
            _figure(_map(level.after, most), f"and after, rms {level.after.mean():.2f}"),
        ]
        rows.append(_row(f"{level.block}: {level.size[0]} × {level.size[1]}, {level.channels} channels", maps))
    about = (
        "ALIAS normalisation standardises the activations separately inside and outside the misaligned region, then "
        "scales and shifts them by γ and β, which it reads from the divided segmentation (equations 5 to 7). Means "
        "over the channels; the release adds γ to 1. Blue is below 0, orange above."
    )
    return f'<p class="map-about">{escape(about)}</p>{"".join(rows)}'


def doubt(tryon: Any, result: Any, on_stage: Any) -> str:
    """Class probabilities and entropy of the predicted segmentation."""
    on_stage("segmentation", STAGES.index("segmentation"), len(STAGES))
    probabilities, entropy = insight.segmentation_doubt(tryon, result)
    share = probabilities.reshape(len(probabilities), -1).mean(1)
    order = np.argsort(-share)
    classes = [
        _figure(_map(probabilities[c], 1.0), f"{labels.SEGMENTATION[c]}, {percent(share[c], 1)}")
        for c in order
        if share[c] > 0.0005
    ]
    about = (
        f"Entropy in bits: 0 is certain, {np.log2(len(probabilities)):.1f} would be all classes alike. Here it is "
        f"{entropy.mean():.3f} on average and {entropy.max():.2f} at most; it is highest along the borders and where "
        f"sleeves end."
    )
    picture = labels.colour(probabilities.argmax(0), labels.SEGMENTATION_COLOURS)
    first = [_figure(_map(entropy, float(entropy.max())), "entropy"), _figure(picture, "the likeliest class")]
    return _row("Where it is unsure", first, about) + _row("Probability of each class, before the rules", classes)


def fit(tryon: Any, result: Any, on_stage: Any) -> str:
    """The fit of the spline step by step."""
    on_stage("warp", STAGES.index("warp"), len(STAGES))
    steps, moments = insight.fit_steps(tryon, result)
    frames = []
    for number, cloth, mask in moments:
        picture = warp_overlay(result, cloth, mask)
        frames.append(_figure(picture, f"step {number}: loss {steps[number].loss:.3f}"))
    best = min(range(len(steps)), key=lambda number: steps[number].loss)
    about = (
        f"From θ as the network predicts it (step 0). {len(steps) - 1} gradient steps bring the loss from "
        f"{steps[0].loss:.3f} to {steps[best].loss:.3f} at step {best}. Orange is predicted cloth that is not covered."
    )
    return _row("The garment on its way", frames, about) + _curves(steps)


def _curves(steps: list[Any]) -> str:
    """The loss and its terms over the steps, as SVG."""
    width, height, left, low = 640, 220, 46, 26
    most = max(step.loss for step in steps) or 1.0
    lines, legend = [], []
    for index, name in enumerate(("loss", "misfit", "bending", "keep", "fold", "uneven")):
        colour = colours.HEADS["light"][index]
        places = " ".join(
            f"{left + i * (width - left) / max(len(steps) - 1, 1):.1f},"
            f"{(height - low) * (1 - getattr(s, name) / most):.1f}"
            for i, s in enumerate(steps)
        )
        lines.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        legend.append(f'<li><span class="swatch" style="background:{colour}"></span>{name}</li>')
    axes = (
        f'<text x="{left - 6}" y="12" text-anchor="end">{most:.2f}</text><text x="{left - 6}" y="{height - low}" '
        f'text-anchor="end">0</text><text x="{width}" y="{height - 6}" text-anchor="end">step {len(steps) - 1}</text>'
    )
    return (
        f'<h4>The loss and its terms</h4><svg class="curves" viewBox="0 0 {width + 8} {height}" role="img" '
        f'aria-label="Loss of the fit over its steps">{axes}{"".join(lines)}</svg>'
        f'<ul class="legend">{"".join(legend)}</ul>'
    )


def grid(tryon: Any, result: Any, on_stage: Any) -> str:
    """A square grid before and after the warp."""
    flat, warp = insight.grid_on_garment(result)
    bender = "flow" if result.flow is not None else "thin-plate spline"
    about = (
        f"The same square grid on the garment's picture and after the {bender}: where cells grow, cloth is stretched."
    )
    return _row(f"The {bender} on the garment", [_figure(flat, "c with a grid"), _figure(warp, "W(c, θ)")], about)


def pair(tryon: Any, result: Any, on_stage: Any) -> str:
    """The worn garment put on again, where the photograph is the truth."""
    trial = insight.compare_paired(tryon, result, on_stage)
    about = (
        f"The garment in the photograph is cut out by the parse and put on again, so the photograph itself is the "
        f"ground truth. SSIM {trial.ssim:.3f} (1 = equal), parser distance {trial.distance:.3f} (0 = equal). This is "
        "easier than a product picture: light and folds of the cloth are right already."
    )
    garment = np.where(trial.garment[..., 3:] > 127, trial.garment[..., :3], 246).astype(np.uint8)
    pictures = [(trial.truth, "the photograph"), (garment, "the worn garment"), (trial.result, "put on again")]
    return _row("A paired try-on", [_figure(picture, caption) for picture, caption in pictures], about)


# What can be opened: title, the last stage that the record must have, and what makes the HTML.
SUBJECTS: dict[str, tuple[str, str, Callable]] = {
    "alias": ("ALIAS normalisation", "misalignment", alias),
    "doubt": ("Uncertainty of the segmentation", "segmentation", doubt),
    "fit": ("The fit of the spline", "warp", fit),
    "grid": ("The warp as a grid", "warp", grid),
    "pair": ("A paired try-on: SSIM", "composite", pair),
}


# Which of them a network of Figure 3 opens, by its name there.
OF_NETWORK = {"G_S": "doubt", "GMM": "fit", "ALIAS": "alias"}


class InsideView(View):
    """One part of the machine opened, for the record on the page."""

    name = "inside"
    title = "Inside"

    def build(self) -> None:
        """Makes the components."""
        self.bar = self.tab.bar
        gr.Markdown("One part of the machine opened, with the numbers of the result on the page.", elem_classes="hint")
        subjects = [(title, name) for name, (title, _, _) in SUBJECTS.items()]
        self.subject = theme.component(gr.Radio, "inside-subject", subjects)
        with gr.Row():
            self.button = theme.component(gr.Button, "inside-button")
        self.result = gr.HTML(elem_id="inside-shown")
        self.remember(self.result)
        self.bar.resting.append(self.button)

    def wire(self) -> None:
        """Connects the button, and the networks of Figure 3, with a look inside."""
        super().wire()
        tab, inputs = self.tab, [self.tab.session, self.subject]
        tab.connect_run(self.button.click, self.run, inputs, self.components, "look_inside")
        # Another choice never stands above the picture of the last one.
        self.subject.input(None, None, self.result, js="() => ''", api_name="choose_inside", **QUIETLY)
        tab.connect_run(self.subject.input, self.follow, inputs, self.components, "look_inside_chosen")
        figure = self.group[StepsView].figure
        event = figure.network(self.choose, None, [self.group.tabs, self.subject], api_name="open_network", **QUICKLY)
        event.then(None, js="handlers.showViews", api_visibility="private", api_name="show_network")
        tab.connect_run(event.then, self.run, inputs, self.components, "look_inside_network")

    @property
    def components(self) -> list[gr.components.Component]:
        """All that `run` updates."""
        return [self.result, self.of, *self.bar.components]

    def choose(self, event: gr.EventData) -> list:
        """A network of Figure 3 was clicked: updates of the views' tabs, which open this one, and of the subject."""
        return [gr.update(selected="inside"), OF_NETWORK.get(str(event.name), "alias")]

    def follow(self, session: Session, name: str) -> Iterator[dict]:
        """Opens what was chosen, where there is a record to open."""
        if session.result is None:
            yield {self.result: messages.status(not_yet(session))}
        else:
            yield from self.run(session, name)

    @with_quiet_end
    @alerts("fail")
    def run(self, session: Session, name: str) -> Iterator[dict]:
        """Compute and show one subject; cancellable like every other run."""
        title, stage, draw = SUBJECTS[name]
        if session.result is None or stage not in session.result.seconds:
            raise ValueError(work.NO_RECORD)
        start = {self.result: "", self.button: gr.update(interactive=False)}
        yield {**self.bar.working(f"{title}: starting …"), **start}
        for report in self.services.stream_on_tryon(lambda t, on_stage: draw(t, session.result, on_stage), session.key):
            if isinstance(report, Progress):
                yield self.bar.follow(title, report)
            else:
                html = f'<div class="inside inside-{name} card">{report}</div>'
                yield {self.result: html, self.of: session.result, **self.bar.rest()}

    def fail(self, error: Exception) -> dict:
        """The sentence of an error, and nothing opened."""
        return {self.result: messages.status(""), **self.bar.fail(error)}
