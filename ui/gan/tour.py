"""A guided tour of the GAN tab in six short stops; each opens the view that it speaks of."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from ui import theme
from ui.gan.game import QUICKLY

CLOSED = -1


@dataclass(frozen=True)
class Stop:
    """One stop: its title, what it says (HTML of ours alone), and the view it opens."""

    title: str
    text: str
    view: str


STOPS = (
    Stop(
        "A counterfeiter and the police",
        "G turns evenly spread numbers z, the lower line, into x, the upper one; where the "
        "arrows crowd, its density (green) "
        "is high. D (blue, dashed) says how likely an x is to be data (dotted). Press <b>Play</b>.",
        "line",
    ),
    Stop(
        "The best answer D could give",
        "Press <b>Pause</b>, then <b>One step of D</b> a few times: the blue curve moves onto the orange one, "
        "D*(x) = p<sub>data</sub> / (p<sub>data</sub> + p<sub>g</sub>). That is Proposition "
        "1, and it is measured here.",
        "line",
    ),
    Stop(
        "Two numbers that must agree",
        "Below, C(G) is worked out from samples by equation 4, and −log 4 + 2 JSD from the two densities by Theorem 1. "
        "They agree at every step; at −log 4 the generator has found the data, and D is ½ everywhere.",
        "line",
    ),
    Stop(
        "The Helvetica scenario",
        "Press <b>Lose the modes</b>: a strong discriminator against the saturating loss. G "
        "maps many z to the same few "
        "x, the grid of z folds up, and most of the eight modes are crossed out (section 6).",
        "plane",
    ),
    Stop(
        "Why the other loss",
        "Where D is sure, near 0, log(1 − D) has no slope left for G to follow by the logit, and "
        "−log D has nearly all of it "
        "(section 3). Play until D wins, then switch the objective.",
        "loss",
    ),
    Stop(
        "Digits, and how they are judged",
        "The networks of the authors’ code on handwritten digits: fair draws, walks in z, D’s "
        "opinion of your own digit; and "
        "at the end the measure of Table 1, by which centroids of k-means beat the data themselves.",
        "digits",
    ),
)


def card(at: int) -> str:
    """HTML of one stop."""
    stop = STOPS[at]
    return (
        f'<div class="tour-card" role="region" aria-label="Tour" data-stop="{at + 1}">'
        f'<div class="tour-title"><span class="tour-number">{at + 1} / {len(STOPS)}</span> {stop.title}</div>'
        f"<p>{stop.text}</p></div>"
    )


class Tour:
    """The tour's button and its card, above the views."""

    def __init__(self) -> None:
        self.at = gr.State(CLOSED)
        with gr.Row():
            self.start = gr.Button(
                "Take the tour: six stops", size="sm", scale=0, min_width=220, elem_id="gan-tour-start"
            )
        with gr.Column(visible=False, elem_id="gan-tour", elem_classes="card") as self.body:
            script = theme.script("translate/tour.js")
            self.card = gr.HTML("", html_template="${value}", js_on_load=script, elem_id="gan-tour-card")
            with gr.Row(elem_classes="tour-buttons"):
                self.back = gr.Button("← Back", size="sm", min_width=90, elem_id="gan-tour-back")
                self.next = gr.Button("Next →", size="sm", min_width=90, variant="primary", elem_id="gan-tour-next")
                self.end = gr.Button("End the tour", size="sm", min_width=90, elem_id="gan-tour-end")

    def wire(self, views: gr.Tabs) -> None:
        """Connect the buttons; views are the tab's views."""
        outputs = [self.at, self.body, self.start, self.card, self.back, self.next, views]

        def go(at):
            at = min(max(at, 0), len(STOPS) - 1)
            return [
                at,
                gr.update(visible=True),
                gr.update(visible=False),
                card(at),
                gr.update(interactive=at > 0),
                gr.update(interactive=at < len(STOPS) - 1),
                gr.update(selected=STOPS[at].view),
            ]

        def key(at, event: gr.EventData):
            by = int(event.by)
            return gr.skip() if at == CLOSED or by not in (-1, 1) else go(at + by)

        def leave():
            return [CLOSED, gr.update(visible=False), gr.update(visible=True)]

        self.start.click(lambda: go(0), None, outputs, api_name="gan_tour_start", **QUICKLY)
        self.next.click(lambda at: go(at + 1), self.at, outputs, api_name="gan_tour_next", **QUICKLY)
        self.back.click(lambda at: go(at - 1), self.at, outputs, api_name="gan_tour_back", **QUICKLY)
        self.card.step(key, self.at, outputs, api_name="gan_tour_key", **QUICKLY)
        for event, name in ((self.end.click, "end"), (self.card.leave, "leave")):
            event(leave, None, outputs[:3], api_name=f"gan_tour_{name}", **QUICKLY)
