"""The GAN tab: its views, and which of them is open."""

from __future__ import annotations

import gradio as gr

from ui.gan.api import Api
from ui.gan.digits import DigitsView
from ui.gan.game import QUICKLY, GameView
from ui.gan.tour import Tour
from ui.gan.tryon import TryOnView
from ui.services import Services

ABOUT = {
    "line": "A generator turns evenly spread z into x, a discriminator tells its samples from "
    "the data: **Figure 1** of "
    "the paper, measured at every step. D(x) is what the network says, D*(x) the best answer there is (Proposition 1).",
    "plane": "The same game in two dimensions. On the left what D thinks of every place, the "
    "samples, and where D pushes "
    "them; on the right how G bends the grid of z, and which modes it has found.",
    "loss": "Section 3: log(1 − D(G(z))) flattens just where the generator is poor and needs "
    "to learn; −log D(G(z)) does "
    "not. Play, let D win, and switch the objective while it runs.",
    "digits": "The paper’s experiment with the networks of the authors’ code: 100 numbers become a digit of 28 × 28.",
}
TITLES = {"line": "Figure 1 in motion", "plane": "In two dimensions", "loss": "Why the other loss"}


class GanTab:
    """The tab's components as attributes; built inside the current gr.Tab."""

    def __init__(self, services: Services) -> None:
        gr.Markdown(
            "## Two networks against each other\nGenerative adversarial nets (Goodfellow et al. 2014) on distributions "
            "that are known, so that the paper’s theory can be checked while they learn, and on handwritten digits.",
            elem_classes="section",
        )
        self.tour = Tour()
        self.games: dict[str, GameView] = {}
        self.tabs: dict[str, gr.Tab] = {}
        with gr.Tabs(elem_id="gan-views", selected="line") as self.views:
            for kind, title in TITLES.items():
                with gr.Tab(title, id=kind) as self.tabs[kind]:
                    gr.Markdown(ABOUT[kind], elem_classes="section")
                    self.games[kind] = GameView(kind)
            with gr.Tab("Digits", id="digits") as self.tabs["digits"]:
                gr.Markdown(ABOUT["digits"], elem_classes="section")
                self.digits = DigitsView(services)
            with gr.Tab("From here to try-on", id="tryon") as self.tabs["tryon"]:
                self.tryon = TryOnView(services)
        self.open = gr.State("line")

    def wire(self, own: gr.Tab) -> None:
        """Connect the events. own: the page's tab. A game out of sight asks for no more pictures
        (static/gan/play.js).
        """
        self.tour.wire(self.views)
        Api(self.digits.models).publish()
        for name, tab in self.tabs.items():
            tab.select(lambda name=name: name, None, self.open, api_name=f"gan_view_{name}", **QUICKLY)
        self.digits.wire(self.tabs["digits"])
        self.tryon.wire(self.tabs["tryon"])
        for kind, game in self.games.items():
            given = [game.lab, game.data, *game.fields]

            def opened(view, *given, kind=kind, game=game):
                return game.open(*given) if view == kind else gr.skip()

            self.tabs[kind].select(game.open, given, game.shown, api_name=f"gan_open_{kind}", **QUICKLY)
            own.select(opened, [self.open, *given], game.shown, api_name=f"gan_first_{kind}", **QUICKLY)
            game.wire()
