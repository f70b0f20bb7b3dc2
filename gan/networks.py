"""The two networks of section 5: a generator of rectifiers and a maxout discriminator with dropout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from training.weights import build, from_json, load_model

ROOT3 = 3**0.5  # z uniform in [-sqrt 3, sqrt 3] has variance 1


@dataclass(frozen=True)
class GanConfig:
    """Sizes of both networks; the defaults are those of the authors' code for handwritten digits."""

    data: int = 784  # size d of one x
    noise: int = 100  # size of one z, uniform in [-sqrt 3, sqrt 3]
    generator: tuple[int, ...] = (1200, 1200)  # widths of the generator's hidden layers
    activation: str = "relu"  # of those layers, as in the paper; or "tanh", smooth, for densities one wants to look at
    output: str = "sigmoid"  # of the generator, for pixels in [0, 1]; or "linear"
    scale: float = 1.0  # factor on a linear output
    discriminator: tuple[int, ...] = (240, 240)  # maxout units of the discriminator's hidden layers
    pieces: int = 5  # linear pieces of each maxout unit
    keep_input: float = 0.8  # probability with which dropout keeps an input of the first layer,
    keep_hidden: float = 0.5  # and of the later ones
    range_g: float = 0.05  # weights begin uniform in [-range, range]; 0 = in +-1/sqrt(inputs)
    range_d: float = 0.005

    def __post_init__(self) -> None:
        """Raises ValueError with one sentence for sizes that make no network."""
        sizes = (self.data, self.noise, self.pieces, *self.generator, *self.discriminator)
        if not all(isinstance(size, int) and 1 <= size <= 2**16 for size in sizes):
            raise ValueError("Every width of the networks has to be a whole number from 1 to 65536.")
        if not (0 < self.keep_input <= 1 and 0 < self.keep_hidden <= 1):
            raise ValueError("keep_input and keep_hidden are probabilities: more than 0 and at most 1.")
        if self.activation not in ("relu", "tanh") or self.output not in ("sigmoid", "linear"):
            raise ValueError("activation has to be 'relu' or 'tanh', and output 'sigmoid' or 'linear'.")


SMALL = {  # one-dimensional x from one-dimensional z, and two from two
    1: GanConfig(1, 1, (24, 24), "tanh", "linear", 2.0, (24, 24), 3, 1.0, 1.0, 0.0, 0.0),
    2: GanConfig(2, 2, (64, 64), "relu", "linear", 2.0, (64, 64), 3, 1.0, 1.0, 0.0, 0.0),
}


def uniform_(layer: nn.Linear, bound: float, generator: torch.Generator | None) -> nn.Linear:
    """Weights uniform in [-bound, bound], or in +-1/sqrt(inputs) for bound 0; biases 0."""
    bound = bound or layer.in_features**-0.5
    with torch.no_grad():
        layer.weight.copy_(torch.rand(layer.weight.shape, generator=generator) * 2 * bound - bound)
        layer.bias.zero_()
    return layer


class Maxout(nn.Module):
    """h_i(x) = max_j x^T W_ij + b_ij (Goodfellow et al. 2013, eq. 1)."""

    def __init__(self, inputs: int, units: int, pieces: int):
        super().__init__()
        self.units, self.pieces = units, pieces
        self.linear = nn.Linear(inputs, units * pieces)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, inputs) -> (B, units): of each unit the largest of its pieces."""
        return self.linear(x).unflatten(-1, (self.units, self.pieces)).amax(-1)


class Generator(nn.Module):
    """G(z; theta_g). forward: z (B, noise) -> x (B, data), in [0, 1] where the output is a sigmoid."""

    def __init__(self, config: GanConfig, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        widths = [config.noise, *config.generator]
        activation = nn.ReLU if config.activation == "relu" else nn.Tanh
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [uniform_(nn.Linear(inputs, outputs), config.range_g, generator), activation()]
        layers.append(uniform_(nn.Linear(widths[-1], config.data), config.range_g, generator))
        self.layers = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        """z (B, noise) -> x (B, data)."""
        x = self.layers(z).float()
        return torch.sigmoid(x) if self.config.output == "sigmoid" else self.config.scale * x

    def noise(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """`count` draws of z from its prior, (count, noise)."""
        return torch.rand(count, self.config.noise, generator=generator) * 2 * ROOT3 - ROOT3

    @torch.no_grad()
    def begin_at(self, marginals: Tensor) -> None:
        """Sets the output's biases so that it begins at the data's mean (pixels in [0, 1], as in the authors' code)."""
        mean = marginals.clamp(1e-3, 1 - 1e-3)
        output = self.layers[-1]
        assert isinstance(output, nn.Linear)
        output.bias.copy_(torch.log(mean / (1 - mean)))


class Discriminator(nn.Module):
    """D before its sigmoid. forward: x (B, data) -> logits (B,), D(x) = sigmoid(logit)."""

    def __init__(self, config: GanConfig, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        widths = [config.data, *config.discriminator]
        layers: list[nn.Module] = []
        for i, (inputs, units) in enumerate(pairwise(widths)):
            keep = config.keep_input if i == 0 else config.keep_hidden
            layers += [nn.Dropout(1 - keep)] if keep < 1 else []
            maxout = Maxout(inputs, units, config.pieces)
            uniform_(maxout.linear, config.range_d, generator)
            layers.append(maxout)
        layers += [nn.Dropout(1 - config.keep_hidden)] if config.keep_hidden < 1 else []
        layers.append(uniform_(nn.Linear(widths[-1], 1), config.range_d, generator))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, data) -> logits (B,)."""
        return self.layers(x).float().squeeze(-1)


class Pair(nn.Module):
    """A generator and the discriminator that it was trained against, as they are kept on disk."""

    def __init__(self, config: GanConfig, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        self.generator = Generator(config, generator)
        self.discriminator = Discriminator(config, generator)

    @classmethod
    def from_pretrained(cls, folder) -> Pair:
        """Reads config.json and model.safetensors. Raises ValueError with one sentence when they are no such pair."""
        config, state = load_model(folder)
        sizes = from_json(GanConfig, config)
        return build(lambda: cls(sizes), state, "these adversarial networks").eval()
