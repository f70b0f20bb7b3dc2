"""The recipe of adversarial nets on the project's training engine: Algorithm 1 on a known distribution or on digits."""

import copy
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from gan import algorithm, measure, parzen, pictures
from gan.densities import DISTRIBUTIONS, distribution
from gan.digits import Digits, read_digits
from gan.losses import objective
from gan.measure import count_modes
from gan.networks import SMALL, Discriminator, GanConfig, Generator
from gan.parzen import SIGMAS
from gan.sampling import decode
from training.recipe import AT_LEAST_1, MOST, Recipe, read_presets, setting
from training.task import Task
from training.weights import save_config

SHEET = 64  # digits of a sample sheet
MEASURE_SAMPLES = 2000  # samples from which modes and C(G) are measured


@dataclass
class GanRecipe(Recipe):
    """Fields of the adversarial recipes."""

    bounds = {
        **dict.fromkeys(("k", "momentum_updates"), AT_LEAST_1),
        **dict.fromkeys(("batch", "samples"), (1, 2**20)),
        **dict.fromkeys(("noise", "hidden", "units", "pieces"), (0, 2**16)),
        "range_d": (-1, MOST),
    }

    data: str = setting("ring", "a distribution of gan.densities, or a folder with digits as IDX files")
    objective: str = setting("non-saturating", "see gan.losses")
    k: int = setting(1, "discriminator steps per generator step (Algorithm 1)")
    batch: int = setting(128, "minibatch m")
    optimizer: str = setting("adam", '"adam", or "sgd" with momentum as in the paper')
    lr: float = setting(1e-3, "of the generator")
    lr_d: float = setting(1e-3, "of the discriminator")
    beta1: float = setting(0.5, "of Adam")
    beta2: float = setting(0.99, "of Adam")
    momentum: float = setting(0.5, "of SGD at the start")
    momentum_end: float = setting(0.7, "and after `momentum_updates` updates, in a straight line")
    momentum_updates: int = setting(125_000, "over which it rises")
    decay: float = setting(1.0, "the learning rates are divided by this at every update")
    lowest: float = setting(1e-6, "learning rate at which that ends")
    final_share: float = setting(0.0, "share of the updates, at the end, whose rates are")
    final_rate: float = setting(0.25, "this part of what they would be")
    noise: int = setting(0, "size of z; 0 = that of the named networks")
    hidden: int = setting(0, "width of the generator's hidden layers; 0 = as they are")
    units: int = setting(0, "maxout units of the discriminator's hidden layers; 0 = as they are")
    pieces: int = setting(0, "of each maxout unit; 0 = as they are")
    range_d: float = setting(-1.0, "discriminator's weights begin uniform in +-range; -1 = as they are")
    samples: int = setting(10_000, "drawn for the Parzen window")

    def check(self) -> None:
        """Raises `ValueError` with one sentence for fields outside their range."""
        super().check()
        objective(self.objective)
        if self.optimizer not in ("adam", "sgd"):
            raise ValueError(f"optimizer must be 'adam' or 'sgd', but is '{self.optimizer}'.")
        for name in ("lr", "lr_d", "decay", "lowest", "final_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be more than 0, but is {getattr(self, name)}.")
        for name in ("beta1", "beta2", "momentum", "momentum_end", "final_share"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and less than 1, but is {getattr(self, name)}.")
        if not self.data:
            raise ValueError(
                "say where the digits are: --data FOLDER (with an IDX file such as t10k-images-idx3-ubyte.gz)."
            )


PRESETS = read_presets(__file__, "gan")


def network_config(recipe: GanRecipe) -> GanConfig:
    """The networks that a recipe trains."""
    base = SMALL[distribution(recipe.data).dimensions] if recipe.data in DISTRIBUTIONS else GanConfig()
    generator, discriminator = (recipe.hidden,) * len(base.generator), (recipe.units,) * len(base.discriminator)
    return dataclasses.replace(
        base,
        noise=recipe.noise or base.noise,
        generator=generator if recipe.hidden else base.generator,
        discriminator=discriminator if recipe.units else base.discriminator,
        pieces=recipe.pieces or base.pieces,
        range_d=recipe.range_d if recipe.range_d >= 0 else base.range_d,
    )


def optimizer_of(network: nn.Module, lr: float, recipe: GanRecipe) -> torch.optim.Optimizer:
    """Adam, or SGD with momentum; fused, which takes a third of the time that the plain ones take on a processor."""
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=lr, momentum=recipe.momentum, fused=True)
    return torch.optim.Adam(network.parameters(), lr=lr, betas=(recipe.beta1, recipe.beta2), fused=True)


class GanTask(Task):
    """Algorithm 1 as a task: `modules["model"]` is the generator."""

    formula = "lr / decay^step, not below `lowest`; times `final_rate` in the last `final_share` of the updates"

    def __init__(self, recipe: GanRecipe):
        self.recipe = recipe
        self.objective = objective(recipe.objective)
        self.config = network_config(recipe)
        generator, discriminator = Generator(self.config), Discriminator(self.config)
        self.mixture = distribution(recipe.data) if recipe.data in DISTRIBUTIONS else None
        self.digits: Digits | None = None
        if self.mixture is None:
            self.digits = read_digits(recipe.data)
            generator.begin_at(self.digits.train.mean(0))
        else:
            self.density = measure.data_density(self.mixture)
        self.best = ("parzen", "max") if self.digits else ("jsd", "min")
        self.modules = {"model": generator, "discriminator": discriminator}
        self.optimizers = {
            "generator": optimizer_of(generator, recipe.lr, recipe),
            "discriminator": optimizer_of(discriminator, recipe.lr_d, recipe),
        }
        self._epoch: tuple[int, np.ndarray] = (-1, np.empty(0))

    # -- data --------------------------------------------------------------------------------------------------------

    def learning_rates(self, step: int) -> dict[str, float]:
        """Both rates by `formula`."""
        factor = self.recipe.decay ** -(step - 1)
        if step > self.recipe.steps * (1 - self.recipe.final_share):
            factor *= self.recipe.final_rate
        rates = {"generator": self.recipe.lr, "discriminator": self.recipe.lr_d}
        return {name: max(self.recipe.lowest, rate * factor) for name, rate in rates.items()}

    def batch(self, step: int, micro: int, rank: int, world: int) -> dict:
        """k minibatches of data, and k + 1 of noise, of this process's share."""
        recipe = self.recipe
        seed = np.random.SeedSequence([recipe.seed, step, micro]).generate_state(1)[0]
        rng, first = torch.Generator().manual_seed(int(seed)), ((step - 1) * recipe.accumulate + micro) * recipe.k
        x = [self._data(recipe.batch, rng, first + i) for i in range(recipe.k)]
        z = [self.generator.noise(recipe.batch, rng) for _ in range(recipe.k + 1)]
        return {"x": [part[rank::world] for part in x], "z": [part[rank::world] for part in z], "step": step}

    def _data(self, count: int, rng: torch.Generator, number: int) -> Tensor:
        """Minibatch `number` of the data: a draw of the distribution, or the next digits of a shuffled epoch."""
        if self.mixture is not None:
            return self.mixture.sample(count, rng)
        digits = self.digits
        assert digits is not None, "data are either a distribution or digits"
        total = len(digits.train)
        per_epoch = max(1, total // count)
        epoch = number // per_epoch
        if self._epoch[0] != epoch:
            self._epoch = (epoch, np.random.default_rng([self.recipe.seed, epoch]).permutation(total))
        start = number % per_epoch * count
        return digits.train[torch.from_numpy(self._epoch[1][start : start + count])]

    def count(self, batch: dict) -> int:
        """Data of all k minibatches."""
        return sum(len(x) for x in batch["x"])

    # -- training ----------------------------------------------------------------------------------------------------

    def update(self, batches, trainer) -> dict[str, float]:
        """One iteration of Algorithm 1; with several micro-batches, one for each of them."""
        recipe = self.recipe
        sums: dict[str, float] = {}
        if recipe.optimizer == "sgd":
            share = min(1.0, (batches[0]["step"] - 1) / recipe.momentum_updates)
            for optimizer in self.optimizers.values():
                for group in optimizer.param_groups:
                    group["momentum"] = recipe.momentum + share * (recipe.momentum_end - recipe.momentum)
        networks = self.networks["model"], self.networks["discriminator"]
        for batch in batches:
            data, noise = iter(batch["x"]).__next__, iter(batch["z"]).__next__
            terms = algorithm.iteration(*networks, self.objective, data, noise, trainer, recipe.k)
            for name, value in terms.items():
                sums[name] = sums.get(name, 0.0) + trainer.total(value) / (len(batches) * trainer.world)
        return sums

    # -- figures and samples -----------------------------------------------------------------------------------------

    @property
    def generator(self) -> Generator:
        """The network that makes the samples."""
        return cast(Generator, self.modules["model"])

    def draw(self, count: int, seed: int) -> Tensor:
        """`count` samples (count, d) of fixed noise, on the CPU."""
        return decode(self.generator, self.generator.noise(count, torch.Generator().manual_seed(seed)))

    def measure_state(self) -> measure.State:
        """Densities, D and D*, C(G) and JSD; of a known distribution only."""
        assert self.mixture is not None, "nobody knows the density of digits"
        generator, critic = copy.deepcopy(self.generator).cpu(), copy.deepcopy(self.modules["discriminator"]).cpu()
        real = self.mixture.sample(MEASURE_SAMPLES, torch.Generator().manual_seed(2))
        return measure.measure(generator, critic, self.objective, self.density, real, self.draw(MEASURE_SAMPLES, 3))

    def evaluate(self) -> dict[str, float]:
        """Of digits the Parzen window's log-likelihood, else JSD, C(G), the error of D and the modes covered."""
        if self.digits is not None:
            samples = self.draw(self.recipe.samples, 1)
            curve = parzen.log_likelihoods(self.digits.valid, samples, SIGMAS).mean(1)
            best = int(curve.argmax())
            return {"parzen": float(curve[best]), "sigma": SIGMAS[best]}
        assert self.mixture is not None
        state = self.measure_state()
        figures = {"jsd": state.jsd, "criterion": state.criterion, "d_error": state.error}
        modes = count_modes(self.draw(MEASURE_SAMPLES, 4), self.mixture)
        return {**figures, "modes": float(modes.count), "on_modes": modes.quality} if modes else figures

    def sample(self, folder: Path, step: int) -> None:
        """A sheet of digits, the densities of a line, or points of the plane."""
        if self.digits is not None:
            pictures.save(folder / "digits.png", pictures.sheet(self.draw(SHEET, 5), 16))
            return
        assert self.mixture is not None
        if self.mixture.dimensions == 1:
            state = self.measure_state()
            pictures.save(folder / "line.png", pictures.line(state.data, state.generator, state.d))
        else:
            real = self.mixture.sample(500, torch.Generator().manual_seed(2))
            pictures.save(folder / "plane.png", pictures.plane(real, self.draw(1000, 3)))

    def describe(self, folder: Path) -> None:
        """config.json with the networks' sizes."""
        save_config(folder, dataclasses.asdict(self.config))

    def export(self, folder: Path) -> None:
        """Both networks, which `gan.sampling.load` reads."""
        from gan.export import save_pair

        save_pair(folder, self.config, self.modules["model"].state_dict(), self.modules["discriminator"].state_dict())
