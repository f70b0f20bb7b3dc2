"""One visitor's game between a small generator and a small discriminator: step by step, back in time, never past NaN.

A Laboratory holds everything itself, random numbers included: the same seed gives the same curves, and two do not
interfere.
"""

import copy
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gan import algorithm, measure, theory
from gan.densities import DISTRIBUTIONS, LIMIT, Mixture, distribution, from_points
from gan.losses import OBJECTIVES, Objective, objective
from gan.measure import Modes, count_modes
from gan.networks import ROOT3, SMALL, Discriminator, Generator
from training.devices import one_thread

MAX_MOMENTS = 200  # kept with their weights; when there are more, every second one is dropped
MAX_ROWS = 4000  # of the table of numbers
FAR = 100.0  # |G(z)| beyond which a game in [-4, 4] is lost
MEASURE_SAMPLES = 1000  # samples behind C(G) and the modes
ARROWS = 25  # on the line
DOTS, LINES, ALONG = 160, 11, 25  # samples, grid lines and points along them in the plane


@dataclass(frozen=True)
class Settings:
    """What a visitor may change while it runs; `seed` begins a new game."""

    objective: str = "non-saturating"  # see gan.losses
    k: int = 1  # discriminator steps per generator step
    batch: int = 128  # minibatch m
    lr: float = 2e-3  # learning rate of the generator,
    lr_d: float = 6e-3  # and of the discriminator
    optimizer: str = "adam"  # with beta1 0 on the line and 0.5 in the plane, beta2 0.99; or "sgd" with momentum 0.5
    seed: int = 1
    width: int = 0  # of the generator's hidden layers, for a new game; 0 = as gan.networks.SMALL has them

    def check(self) -> None:
        """Raises ValueError with one sentence for what cannot be."""
        objective(self.objective)
        if self.optimizer not in ("adam", "sgd"):
            raise ValueError(f"The optimizer has to be adam or sgd, but is '{self.optimizer}'.")
        for name, value, most in (
            ("k", self.k, 20),
            ("the batch", self.batch, 1024),
            ("the seed", self.seed + 1, 2**31),
        ):
            if not (isinstance(value, int) and 1 <= value <= most):
                raise ValueError(f"{name[0].upper()}{name[1:]} has to be a whole number of at most {most}.")
        for name, rate in (("generator", self.lr), ("discriminator", self.lr_d)):
            if not (isinstance(rate, (int, float)) and math.isfinite(rate) and 0 < rate <= 1e4):
                raise ValueError(f"The {name}'s learning rate has to be more than 0 and at most 10,000.")


ON_LINE = Settings(batch=256, lr=5e-4, lr_d=1e-2)
IN_PLANE = Settings()


@dataclass(frozen=True)
class Row:
    """The numbers of one moment."""

    iteration: int
    d_steps: int
    g_steps: int
    value: float  # V(D, G) on samples
    criterion: float  # C(G) by equation 4 from samples
    theorem: float  # -log 4 + 2 JSD by quadrature
    jsd: float
    error: float  # mean |D - D*|
    d_real: float
    d_fake: float
    modes: float  # found, or NaN where there are none to count


@dataclass
class Moment:
    """A state of the game that one can return to."""

    row: int
    iteration: int
    state: dict[str, Any]


class Laboratory:
    """A game on one distribution.

    name: of a distribution in gan.densities, or "drawn".
    settings: see Settings; None = those that suit the distribution.
    points: pairs (x, y), for "drawn" alone.

    Every public method holds the lock, so that a click and a running game never meet. Raises ValueError with one
    sentence for an unknown distribution or impossible settings.
    """

    def __init__(self, name: str = "line", settings: Settings | None = None, points: list | None = None):
        self.mixture: Mixture = from_points(points or []) if name == "drawn" else distribution(name)
        self.name = name
        self.settings = settings or (ON_LINE if self.mixture.dimensions == 1 else IN_PLANE)
        self.settings.check()
        self.lock = threading.RLock()
        self.pause = threading.Event()  # for who plays it: what is under way ends at its next iteration
        self.random = torch.Generator().manual_seed(self.settings.seed)
        config = SMALL[self.mixture.dimensions]
        if self.settings.width:
            config = replace(config, generator=(self.settings.width,) * len(config.generator))
        self.generator = Generator(config, self.random).eval()
        self.discriminator = Discriminator(config, self.random).eval()
        self.data = measure.data_density(self.mixture)
        self.real = self.mixture.sample(MEASURE_SAMPLES, torch.Generator().manual_seed(2))
        self.z = self.generator.noise(MEASURE_SAMPLES, torch.Generator().manual_seed(3))
        self.iteration = self.d_steps = self.g_steps = 0
        self.note, self.failed = "", False
        self.rows: list[Row] = []
        self.moments: list[Moment] = []
        self.at = 0
        self._measures: tuple | None = None  # what was measured of the present weights
        self._make_optimizers()
        with self._alone():
            self._note_moment()

    # -- acting ------------------------------------------------------------------------------------------------------

    def change(self, **settings: Any) -> None:
        """Changes settings while the game goes on; a new optimizer begins with empty averages."""
        with self._alone():
            new = replace(self.settings, **settings)
            new.check()
            anew = new.optimizer != self.settings.optimizer
            self._measures = self._measures if new.objective == self.settings.objective else None
            if new != self.settings:
                self.failed, self.note = False, ""
            self.settings = new
            if anew:
                self._make_optimizers()
            self._set_rates()

    def advance(self, iterations: int = 1, halt: threading.Event | None = None) -> None:
        """So many iterations of Algorithm 1, and a moment to return to; none any more once `halt` is set."""

        def act() -> None:
            for _ in range(iterations):
                if halt is not None and halt.is_set():
                    return
                terms = algorithm.iteration(*self._game, self._data, self._noise, self._plain, self.settings.k)
                self._check(terms)
                self.iteration += 1
                self.d_steps += self.settings.k
                self.g_steps += 1

        self._act(act, halt)

    def step_d(self) -> None:
        """One step of the discriminator alone."""

        def act() -> None:
            self._check(algorithm.discriminator_step(*self._game, self._data(), self._noise(), self._plain))
            self.d_steps += 1

        self._act(act)

    def step_g(self) -> None:
        """One step of the generator alone."""

        def act() -> None:
            self._check(algorithm.generator_step(*self._game, self._noise(), self._plain))
            self.g_steps += 1

        self._act(act)

    def back(self, moment: int) -> None:
        """Shows an earlier moment (from 0). The later ones are given up when the game goes on from there."""
        with self._alone():
            self.at = min(max(int(moment), 0), len(self.moments) - 1)
            self._restore(self.moments[self.at])
            self.failed, self.note = False, ""

    # -- looking -----------------------------------------------------------------------------------------------------

    def measure_state(self) -> tuple[measure.State, Tensor, Modes | None]:
        """Densities, D and D* and the rest; samples (1000, d) of fixed z; the modes that they reach."""
        if self._measures is not None:
            return self._measures
        with torch.no_grad():
            fake = self.generator(self.z)
        state = measure.measure(self.generator, self.discriminator, self._objective, self.data, self.real, fake)
        self._measures = state, fake, count_modes(fake, self.mixture)
        return self._measures

    def picture(self) -> dict[str, Any]:
        """Everything that the present moment shows: tensors, numbers and sentences by name."""
        with self._alone():
            state, fake, modes = self.measure_state()
            with torch.no_grad():
                p_fake = self._objective.probability(self.discriminator(fake))
            row = self.moments[self.at].row
            common = {
                "dimensions": self.mixture.dimensions,
                "title": self.mixture.name,
                "limit": LIMIT,
                "settings": asdict(self.settings),
                "formulas": [self._objective.formula_d, self._objective.formula_g],
                "row": asdict(self.rows[row]),
                "rows": [asdict(r) for r in thin(self.rows[: row + 1])],
                "moment": self.at,
                "moments": len(self.moments),
                "fooled": p_fake[:DOTS],
                "measured": state.d,
                "note": self.note or helvetica(modes),
                "failed": self.failed,
            }
            parts = self._on_line(state) if self.mixture.dimensions == 1 else self._in_plane(fake, modes)
            return {**common, **parts}

    def losses(self) -> dict[str, Any]:
        """Section 3: both losses of G and their slopes over D,
        the present D(G(z)) and what each would pass on there.
        """
        with self._alone():
            _, fake, _ = self.measure_state()
            with torch.no_grad():
                p_fake = torch.sigmoid(self.discriminator(fake))
        d = torch.linspace(0.004, 0.996, 249)
        mean = float(p_fake.mean())
        gradients = theory.generator_gradients(p_fake.double().clamp(1e-12, 1 - 1e-12))
        words = (
            f"D(G(z)) is {mean:.3f} on average. What reaches G there is "
            f"{-float(gradients.minimax_by_logit.mean()):.3f} of a full "
            f"push with log(1 − D), and {-float(gradients.non_saturating_by_logit.mean()):.3f} with −log D."
        )
        return {"d": d, **theory.generator_gradients(d)._asdict(), "marks": p_fake[:DOTS], "mean": mean, "words": words}

    def pictures(self, most: int) -> list[dict[str, Any]]:
        """Pictures of at most `most` moments from the first to the present one; the game stays where it is."""
        with self._alone():
            here, note = self.at, (self.failed, self.note)
            places = torch.linspace(0, here, min(most, here + 1)).round().int().tolist()
            out = []
            try:
                for place in places:
                    self.back(place)
                    out.append(self.picture())
            finally:
                self.back(here)
                self.failed, self.note = note
            return out

    def table(self) -> list[dict[str, float]]:
        """The numbers of all moments up to the present one, one dict a row."""
        with self._alone():
            return [asdict(row) for row in self.rows[: self.moments[self.at].row + 1]]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One caller at a time, on one thread: these networks are far too small for more."""
        with self.lock, one_thread():
            yield

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _objective(self):
        return objective(self.settings.objective)

    @property
    def _game(self) -> tuple[Generator, Discriminator, Objective]:
        return self.generator, self.discriminator, self._objective

    def _data(self) -> Tensor:
        return self.mixture.sample(self.settings.batch, self.random)

    def _noise(self) -> Tensor:
        return self.generator.noise(self.settings.batch, self.random)

    def _make_optimizers(self) -> None:
        networks = {"generator": self.generator, "discriminator": self.discriminator}
        # On the line the game turns in circles; momentum would make them wider.
        betas = (0.0 if self.mixture.dimensions == 1 else 0.5, 0.99)
        make: Any = partial(torch.optim.Adam, betas=betas)
        if self.settings.optimizer == "sgd":
            make = partial(torch.optim.SGD, momentum=0.5)
        self._plain = algorithm.Plain({n: make(net.parameters(), lr=1.0, fused=True) for n, net in networks.items()})
        self._set_rates()

    def _set_rates(self) -> None:
        for name, rate in (("generator", self.settings.lr), ("discriminator", self.settings.lr_d)):
            for group in self._plain.optimizers[name].param_groups:
                group["lr"] = rate

    def _act(self, act, halt: threading.Event | None = None) -> None:
        """Acts, measures, and notes the moment; or returns to the last good one with a sentence."""
        with self._alone():
            if self.failed or (halt is not None and halt.is_set()):
                return
            del self.moments[self.at + 1 :]
            del self.rows[self.moments[self.at].row + 1 :]
            self.note = ""
            try:
                act()
                self._note_moment()
            except FloatingPointError as error:
                last = self.moments[self.at]
                self._restore(last)
                self.failed = True
                self.note = (
                    f"{error} The game stopped, and the last good state is shown, iteration {last.iteration:,}. "
                    "Lower the learning rates and go on."
                )

    def _check(self, terms: dict[str, float]) -> None:
        for name, value in terms.items():
            if not math.isfinite(value):
                raise FloatingPointError(f"'{name.replace('_', ' ')}' is no longer a finite number.")

    def _note_moment(self) -> None:
        self._measures = None
        state, fake, modes = self.measure_state()
        if not bool(torch.isfinite(fake).all()) or float(fake.abs().max()) > FAR:
            raise FloatingPointError(f"The samples have left the picture: G(z) is not finite or beyond {FAR:g}.")
        with torch.no_grad():
            p_real = self._objective.probability(self.discriminator(self.real))
            p_fake = self._objective.probability(self.discriminator(fake))
        numbers = (algorithm.value(p_real, p_fake), state.criterion, state.theorem, state.jsd, state.error)
        if not all(math.isfinite(number) for number in numbers):
            raise FloatingPointError("The discriminator is no longer a finite number.")
        hits = float(modes.count) if modes else math.nan
        self.rows.append(
            Row(self.iteration, self.d_steps, self.g_steps, *numbers, float(p_real.mean()), float(p_fake.mean()), hits)
        )
        if len(self.moments) >= MAX_MOMENTS:
            self.moments = self.moments[::2]
        if len(self.rows) >= MAX_ROWS:
            count = len(self.rows)
            rows = sorted({moment.row for moment in self.moments} | {*range(0, count, 2), count - 1})
            places = {row: place for place, row in enumerate(rows)}
            self.rows = [self.rows[row] for row in rows]
            for moment in self.moments:
                moment.row = places[moment.row]
        state_now = {
            "generator": copy.deepcopy(self.generator.state_dict()),
            "discriminator": copy.deepcopy(self.discriminator.state_dict()),
            "optimizers": {k: copy.deepcopy(o.state_dict()) for k, o in self._plain.optimizers.items()},
            "kind": self.settings.optimizer,
            "random": self.random.get_state(),
            "counts": (self.iteration, self.d_steps, self.g_steps),
        }
        self.moments.append(Moment(len(self.rows) - 1, self.iteration, state_now))
        self.at = len(self.moments) - 1

    def _restore(self, moment: Moment) -> None:
        state, self._measures = moment.state, None
        self.generator.load_state_dict(state["generator"])
        self.discriminator.load_state_dict(state["discriminator"])
        self.random.set_state(state["random"])
        self.iteration, self.d_steps, self.g_steps = state["counts"]
        self._make_optimizers()
        if state["kind"] == self.settings.optimizer:
            for name, averages in state["optimizers"].items():
                self._plain.optimizers[name].load_state_dict(copy.deepcopy(averages))
            self._set_rates()

    def _on_line(self, state: measure.State) -> dict[str, Any]:
        """Figure 1: the densities, D*, and the arrows from z to x."""
        z = torch.linspace(-ROOT3, ROOT3, ARROWS)[:, None]
        with torch.no_grad():
            x = self.generator(z)
        arrows = {"z": z[:, 0] / ROOT3, "x": x[:, 0]}
        return {"data": state.data, "generated": state.generator, "best": state.best, **arrows}

    def _in_plane(self, fake: Tensor, modes: Modes | None) -> dict[str, Any]:
        """Samples and where D pushes them, the warped grid of z, and the modes."""
        points = fake[:DOTS].clone().requires_grad_()
        # The generator's own loss at each sample: its negative gradient is the way down.
        loss = self._objective.g(self.discriminator(points)) * len(points)
        (push,) = torch.autograd.grad(loss, points)
        ticks = torch.linspace(-ROOT3, ROOT3, LINES)
        along = torch.linspace(-ROOT3, ROOT3, ALONG)
        rows = torch.stack([along.repeat(LINES), ticks.repeat_interleave(ALONG)], 1)
        with torch.no_grad():
            grid = self.generator(torch.cat([rows, rows.flip(1)])).view(2 * LINES, ALONG, 2)
        return {
            "samples": fake[:DOTS],
            "push": -push,
            "warped": grid,
            "real": self.real[:DOTS],
            "centres": self.mixture.centres if modes else None,
            "found": list(modes.hits) if modes else None,
            "quality": modes.quality if modes else None,
        }


def thin(rows: list[Row], most: int = 300) -> list[Row]:
    """At most `most` rows at equal distances, the first and the last among them."""
    if len(rows) <= most:
        return rows
    return [rows[place] for place in torch.linspace(0, len(rows) - 1, most).round().int().tolist()]


def helvetica(modes: Modes | None) -> str:
    """A sentence where the Helvetica scenario has happened, else none."""
    if modes is None or not modes.helvetica:
        return ""
    missing = ", ".join(str(place) for place, hit in enumerate(modes.hits, 1) if not hit)
    return (
        f"The Helvetica scenario (section 6): {100 * modes.quality:.0f} % of the samples lie on modes, but on "
        f"{modes.count} of {len(modes.hits)}; lost are {missing}. G maps too many z to the same x."
    )


def play(
    name: str, settings: Settings, iterations: int, every: int = 10, points: list | None = None
) -> tuple[Laboratory, list[dict[str, float]]]:
    """A whole game at once: the laboratory at its end and its table, a row every `every` iterations.

    Raises ValueError with one sentence for more than 5,000 iterations, and as `Laboratory` does.
    """
    if not 1 <= iterations <= 5000:
        raise ValueError(f"The number of iterations has to be from 1 to 5,000, but is {iterations}.")
    game = Laboratory(name, settings, points)
    for start in range(0, iterations, every):
        game.advance(min(every, iterations - start))
        if game.failed:
            break
    return game, game.table()


NAMES = {d: [name for name in DISTRIBUTIONS if distribution(name).dimensions == d] for d in (1, 2)}
OBJECTIVE_NAMES = list(OBJECTIVES)
