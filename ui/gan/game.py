"""A game between generator and discriminator on the page: its controls, and the component that draws it."""

import secrets
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import gradio as gr

from gan import laboratory
from gan.laboratory import NAMES, OBJECTIVE_NAMES, Laboratory, Settings
from ui import messages, theme
from ui.gan import exports
from ui.gan.exports import encode
from ui.kit import QUICKLY, View, alerts

STATE_SECONDS = 3600
MAX_SPEED = 50
OWN_POINTS = "drawn"
LABELS = {
    "line": "One bump", "two bumps": "Two bumps", "three bumps": "Three bumps", "ring": "Ring of eight",
    "grid": "Grid of 25", "spiral": "Spiral", OWN_POINTS: "Points that I draw",
}  # fmt: skip
NO_GAME = "This game is more than an hour old and is gone; press Play for a new one."
FIRST_DATA = {"line": "line", "plane": "ring", "loss": "line"}
NARROW_WIDTH = 32  # width of a generator that does not find its way out of a few modes
HELVETICA: dict[str, Any] = {"objective": "minimax", "lr": 1e-3, "lr_d": 2e-2, "k": 1, "optimizer": "adam"}


def whole(value: Any, name: str) -> int:
    """A whole number from a field. Raises ValueError that names the field."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not float(value).is_integer():
        raise ValueError(f"{name} has to be a whole number.")
    return int(value)


def read_settings(dimensions: int, objective: str, k: Any, lr: Any, lr_d: Any, optimizer: str, seed: Any) -> Settings:
    """The fields of a view as Settings. Raises ValueError with one sentence."""
    usual = laboratory.ON_LINE if dimensions == 1 else laboratory.IN_PLANE
    settings = Settings(objective, whole(k, "k"), usual.batch, lr, lr_d, optimizer, whole(seed, "The seed"))
    settings.check()
    return settings


class GameView(View):
    """One game: on the line, in the plane, or on the line beside the two losses (name "loss").

    While a game runs, its script (`static/gan/play.js`) asks `frame` for one picture after the other, outside the
    page's events: an event costs the browser twenty times what drawing the picture does.
    """

    dimensions = 1

    def build(self) -> None:
        """Makes the components."""
        kind = self.name
        gr.Markdown(theme.text(f"gan/{kind}"), elem_classes="section")
        usual = laboratory.ON_LINE if self.dimensions == 1 else laboratory.IN_PLANE
        if kind == "loss":
            usual = Settings(**{**vars(usual), "objective": "minimax", "lr_d": 2e-2})
        self.lab = gr.State(None, time_to_live=STATE_SECONDS)
        self.running: WeakValueDictionary[str, Laboratory] = WeakValueDictionary()  # by the key that their visitor has
        name = f"gan-{kind}"
        self._buttons()
        self._settings(usual)
        self._rates(usual)
        self.note = gr.HTML(elem_id=f"{name}-note")
        if kind == "loss":
            self.losses = theme.script_component(("gan/paint.js", "gan/losses.js"), "losses", f"{name}-losses", "card")

        def frame(request):  # a function and no method, for Gradio marks it
            return self.frame(request)

        scripts = ("gan/paint.js", "gan/game.js", "gan/play.js")
        self.game = theme.script_component(scripts, "game", f"{name}-game", "card", server_functions=[frame])
        self.formula = gr.HTML(elem_id=f"{name}-formula", elem_classes="hint")
        with gr.Row(elem_classes="actions"):
            self.save = self.part(gr.Button, "save")
            self.files = self.part(gr.File, "files", visible=False)

    def part(self, kind: Callable[..., Any], name: str, *values: Any, **more: Any) -> Any:
        """A control that every game has one of; see `theme.component`."""
        return theme.component(kind, f"game-{name}", *values, elem_id=f"gan-{self.name}-{name}", **more)

    def _buttons(self) -> None:
        with gr.Row(elem_classes="actions game-buttons"):
            self.play = self.part(gr.Button, "play")
            self.pause = self.part(gr.Button, "pause")
            self.one = self.part(gr.Button, "one")
            self.step_d = self.part(gr.Button, "d")
            self.step_g = self.part(gr.Button, "g")
            self.restart = self.part(gr.Button, "restart")
            if self.name == "plane":
                self.collapse = self.part(gr.Button, "collapse")

    def _settings(self, usual: Settings) -> None:
        with gr.Row(elem_classes="game-settings"):
            choices = [(LABELS[n], n) for n in NAMES[self.dimensions] + ([OWN_POINTS] if self.name == "plane" else [])]
            self.data = self.part(gr.Dropdown, "data", choices, value=FIRST_DATA[self.name])
            self.objective = self.part(gr.Dropdown, "objective", OBJECTIVE_NAMES, value=usual.objective)
            self.k = self.part(gr.Slider, "k", 1, 10, usual.k)
            # "interactive", for Gradio takes what no event reads for fixed, and a script alone reads this.
            self.speed = self.part(gr.Slider, "speed", 1, MAX_SPEED, 5)

    def _rates(self, usual: Settings) -> None:
        with gr.Accordion("Learning rates and more", open=False), gr.Row(elem_classes="game-settings"):
            self.lr = self.part(gr.Number, "lr", usual.lr)
            self.lr_d = self.part(gr.Number, "lr-d", usual.lr_d)
            self.optimizer = self.part(gr.Radio, "rule")
            self.seed = self.part(gr.Number, "seed", usual.seed)

    # -- wiring ------------------------------------------------------------------------------------------------------

    @property
    def fields(self) -> list:
        """The components that are Settings, in the order of `read_settings`."""
        return [self.objective, self.k, self.lr, self.lr_d, self.optimizer, self.seed]

    @property
    def outputs(self) -> list:
        """The components that a picture fills."""
        return [self.lab, self.game, self.formula, self.note, *([self.losses] if self.name == "loss" else [])]

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        inputs = [self.lab, self.data, *self.fields]
        name = f"gan_{self.name}"
        self.play.click(self.start, inputs, self.outputs, api_name=f"{name}_play", **QUICKLY)
        self.pause.click(self.stop, self.lab, None, api_name=f"{name}_pause", **QUICKLY)
        self.draw_with(inputs, self.outputs, **QUICKLY)
        for button, act in ((self.one, "advance"), (self.step_d, "step_d"), (self.step_g, "step_g")):
            button.click(partial(self.step, act), inputs, self.outputs, api_name=f"{name}_{act}", **QUICKLY)
        self.restart.click(self.begin, inputs, self.outputs, api_name=f"{name}_restart", **QUICKLY)
        self.data.input(self.begin, inputs, self.outputs, api_name=f"{name}_data", **QUICKLY)
        rules = self.fields[:-1]
        gr.on([one.input for one in rules], self.change, inputs, self.outputs, trigger_mode="always_last",
              api_name=f"{name}_change", **QUICKLY)  # fmt: skip
        self.game.back(
            self.back, self.lab, self.outputs, trigger_mode="always_last", api_name=f"{name}_back", **QUICKLY
        )
        self.game.drawn(
            self.draw, inputs, self.outputs, trigger_mode="always_last", api_name=f"{name}_drawn", **QUICKLY
        )
        self.save.click(
            self.write, self.lab, [self.files, self.note], api_name=f"{name}_save", api_visibility="private"
        )
        if self.name == "plane":
            self.collapse.click(
                self.lose_modes, inputs, [*self.outputs, self.data, *rules], api_name=f"{name}_collapse", **QUICKLY
            )

    # -- handlers ----------------------------------------------------------------------------------------------------

    def picture(self, lab: Laboratory) -> dict[str, Any]:
        """The present moment of a game, as its script draws it."""
        frame = {**encode(lab.picture()), "drawing": lab.name == OWN_POINTS}
        return {**frame, "losses": encode({**lab.losses(), "rows": []})} if self.name == "loss" else frame

    def draw_picture(self, lab: Laboratory, playing: bool | None = False) -> dict:
        """The present moment of a game on all components. playing: whether it runs from now on; None: as before."""
        picture = self.picture(lab)
        losses = {self.losses: picture.pop("losses")} if self.name == "loss" else {}
        if playing:
            lab.pause.clear()
            picture["key"] = secrets.token_urlsafe(16)
            self.running[picture["key"]] = lab
        elif playing is False:
            lab.pause.set()
        formula = f'<p class="hint">D minimises {picture["formulas"][0]}<br>G minimises {picture["formulas"][1]}</p>'
        game = {**picture, "playing": playing}
        return {self.lab: lab, self.game: game, self.formula: formula, self.note: "", **losses}

    def ready(self, lab: Laboratory | None, data: str, *fields: Any) -> Laboratory:
        """The visitor's game with the present settings; a new one where there is none yet."""
        settings = read_settings(self.dimensions, *fields)
        if lab is None:
            # Before the first point is drawn there is one in the middle of the plane.
            return Laboratory(data, settings, [(0.0, 0.0)] if data == OWN_POINTS else None)
        lab.change(**{k: v for k, v in vars(settings).items() if k not in ("seed", "batch", "width")})
        return lab

    @alerts("note")
    def show(self, lab, data, *fields):
        """The view comes into sight: the game as it was left, or a new one."""
        return self.draw_picture(self.ready(lab, data, *fields))

    @alerts("note")
    def begin(self, lab, data, *fields):
        """A new game; it runs if the one before did."""
        running = lab is not None and not lab.pause.is_set()
        if running:
            lab.pause.set()
        return self.draw_picture(self.ready(None, data, *fields), playing=running)

    @alerts("note")
    def start(self, lab, data, *fields):
        """Play."""
        return self.draw_picture(self.ready(lab, data, *fields), playing=True)

    def stop(self, lab):
        """Pause: a picture that is being made ends at its next iteration, and none follows."""
        if lab is not None:
            lab.pause.set()

    def frame(self, request: Any) -> dict[str, Any]:
        """The next picture of a running game.

        Args:
            request: `key` of the game, from `start`, and `speed`, iterations until the picture.

        Returns the picture, or `sentence` where there is none, or `over` once the game was paused.
        """
        try:
            lab = self.running.get(str(request.get("key"))) if isinstance(request, dict) else None
            if lab is None:
                raise ValueError(NO_GAME)
            speed = min(max(whole(request.get("speed"), "The number of iterations"), 1), MAX_SPEED)
            if not lab.pause.is_set():
                lab.advance(speed, lab.pause)
            return {"over": True} if lab.pause.is_set() else self.picture(lab)
        except Exception as error:
            return {"sentence": messages.sentence(error)}

    @alerts("note")
    def step(self, act, lab, data, *fields):
        """One step of that name; the game pauses."""
        lab = self.ready(lab, data, *fields)
        lab.pause.set()
        getattr(lab, act)()
        return self.draw_picture(lab)

    @alerts("note")
    def change(self, lab, data, *fields):
        """A setting was changed; a running game goes on with it."""
        return self.draw_picture(self.ready(lab, data, *fields), playing=None)

    @alerts("note")
    def back(self, lab, event: gr.EventData):
        """An earlier moment, from the slider; the game pauses."""
        if lab is None:
            return gr.skip()
        lab.pause.set()
        lab.back(whole(event.moment, "The moment"))
        return self.draw_picture(lab)

    @alerts("note")
    def draw(self, _lab, _data, objective, k, lr, lr_d, optimizer, seed, event: gr.EventData):
        """Points were drawn: a new game on them."""
        settings = read_settings(self.dimensions, objective, k, lr, lr_d, optimizer, seed)
        return self.draw_picture(Laboratory(OWN_POINTS, settings, list(event.points)))

    @alerts("note")
    def lose_modes(self, lab, data, *fields):
        """The Helvetica scenario: a strong discriminator against the saturating loss, on the ring."""
        settings = replace(read_settings(self.dimensions, **HELVETICA, seed=fields[-1]), width=NARROW_WIDTH)
        updates = self.draw_picture(Laboratory("ring", settings), playing=True)
        rules = {getattr(self, name): value for name, value in HELVETICA.items()}
        return {**updates, **rules, self.data: "ring"}

    @alerts("note")
    def write(self, lab):
        """Files to take home."""
        if lab is None:
            raise ValueError("There is no game to save yet; press Play first.")
        files = exports.write(lab, Path(tempfile.mkdtemp(prefix="atelier-gan-")))
        return {self.files: gr.update(value=[str(file) for file in files], visible=True), self.note: ""}


class LineView(GameView):
    """Figure 1 of the paper while it is learned."""

    name = "line"
    title = "Figure 1 in motion"


class PlaneView(GameView):
    """The game in two dimensions."""

    name = "plane"
    title = "In two dimensions"
    dimensions = 2


class LossView(GameView):
    """Both losses of the generator beside a game on the line."""

    name = "loss"
    title = "Why the other loss"
