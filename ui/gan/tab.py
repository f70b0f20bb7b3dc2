"""The GAN tab: its views, and which of them is open."""

import gradio as gr

from ui import theme
from ui.gan.api import Api
from ui.gan.digits import DigitsView
from ui.gan.game import GameView, LineView, LossView, PlaneView
from ui.gan.tryon import TryOnView
from ui.kit import QUICKLY, Stop, Tour, View, Views, read_stops

VIEWS: tuple[type[View], ...] = (LineView, PlaneView, LossView, DigitsView, TryOnView)


class GanTour(Tour):
    """A tour in six stops, the same for every game."""

    prefix = "gan-"
    invitation = "Take the tour: six stops"
    options = QUICKLY

    def stops(self) -> tuple[Stop, ...]:
        """The six stops."""
        return read_stops("gan", Stop)


class GanTab(View):
    """The tour, and the views below it."""

    name = "gan"
    title = "GAN"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("gan/gan"), elem_classes="section")
        self.tour = GanTour(self)
        with gr.Row():
            self.tour.build_start(220)
        self.tour.build_card()
        self.views = Views(VIEWS, self, self.services, elem_id="gan-views", item_id=None, prefix="gan_")

    def wire(self) -> None:
        """Connects the events. A game out of sight asks for no more pictures (static/gan/play.js)."""
        views = self.views
        views.wire()
        self.tour.wire()
        Api(views[DigitsView].models).publish()
        self.item.select(self.resume, views.inputs, views.outputs, api_name="gan_first", **QUICKLY)

    def resume(self, *values):
        """The tab comes into sight: a game as it was left. The other views stay as they are."""
        views = self.views
        game = any(view.name == values[0] for view in views if isinstance(view, GameView))
        return views.draw(values) if game else gr.skip()
