"""What the GAN tab offers to programs: `/gan_step` and `/gan_sample`."""

import base64
from typing import Any

import cv2
import gradio as gr

from gan import laboratory, pictures, sampling
from gan.laboratory import Settings
from ui import endpoints, figures
from ui.gan import models
from ui.gan.models import DigitModels

MAX_SAMPLES = 256


class Api:
    """The endpoints, on top of the Digits view's networks."""

    def __init__(self, pairs: DigitModels) -> None:
        self.pairs = pairs

    def publish(self) -> None:
        """Add the endpoints to the current Blocks."""
        gr.api(self.gan_step, api_name="gan_step", concurrency_id="gan")
        gr.api(self.gan_sample, api_name="gan_sample", concurrency_id="gan")

    @endpoints.endpoint
    def gan_step(
        self,
        data: str = "line",
        iterations: int = 100,
        every: int = 10,
        objective: str = "non-saturating",
        k: int = 1,
        lr_generator: float = 0.0005,
        lr_discriminator: float = 0.01,
        optimizer: str = "adam",
        seed: int = 1,
        points: list[list[float]] | None = None,
    ) -> dict[str, Any]:
        """Play Algorithm 1 from the start on a distribution whose density is known.

        Args:
            data: line, two bumps, three bumps, ring, grid, spiral, or drawn (then give points)
            iterations: of Algorithm 1, 1 to 5000
            every: iterations between two rows of the table
            objective: minimax, non-saturating, lsgan or hinge
            k: steps of the discriminator for each of the generator
            lr_generator: learning rate of the generator
            lr_discriminator: learning rate of the discriminator
            optimizer: adam or sgd
            seed: the same one gives the same numbers
            points: pairs x, y within -4 and 4

        Returns:
            table: iteration, V(D, G), C(G), -log 4 + 2 JSD, JSD, mean |D - D*| and modes, a row each; samples: of the
            end; note: a sentence where the game had to stop or lost its modes
        """
        settings = Settings(objective, k, 128, lr_generator, lr_discriminator, optimizer, seed)
        game, rows = laboratory.play(data, settings, iterations, max(1, every), points)
        picture = game.picture()
        samples = picture["samples"] if "samples" in picture else picture["x"]
        return {"table": figures.finite(rows), "samples": samples.tolist(), "note": picture["note"]}

    @endpoints.endpoint
    def gan_sample(self, count: int = 16, seed: int = 0, model: str = models.OWN) -> dict[str, Any]:
        """Draw handwritten digits from a trained generator.

        Args:
            count: 1 to 256
            seed: the same one gives the same digits
            model: digits, the shipped networks, or run:NAME for a run of this page

        Returns:
            png: a sheet of the digits as base64; opinions: D(x) of each, the probability that it came from the data
        """
        if not 1 <= count <= MAX_SAMPLES:
            raise ValueError(f"The number of samples has to be from 1 to {MAX_SAMPLES}, but is {count}.")
        pair = self.pairs.pair(model)
        rows = sampling.sample(pair.generator, count, seed)
        _, data = cv2.imencode(".png", pictures.sheet(rows, 16))
        opinions = sampling.opinion(pair.discriminator, rows)
        return {
            "png": base64.b64encode(data.tobytes()).decode(),
            "opinions": [round(v, 4) for v in opinions.tolist()],
        }
