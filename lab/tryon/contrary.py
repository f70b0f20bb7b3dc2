"""Trains the segmentation generator to follow the sleeves that it is told: `python -m lab.tryon.contrary --run DIR`.

In a pair the garment has the sleeves that the network is told, so that it may look at the garment alone. Here some
samples come in twos, draped people with garments of different sleeves, and in some the network is told other sleeves
than the garment's, which are then true as well. Every option of `python -m vton.train segmentation` is one here, too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from training.command import launch
from training.memory import keep_memory
from training.recipe import SHARE, setting
from vton.attributes import decode, group_of, with_group
from vton.data.draped.people import DrapedPeople
from vton.recipes import segmentation
from vton.recipes.common import generators
from vton.recipes.segmentation import PRESETS
from vton.rules.sleeves import KINDS, set_length

TRIES = 200  # people who are looked at for one with the sleeves that are asked for


@dataclass
class SegmentationRecipe(segmentation.SegmentationRecipe):
    """The segmentation generator's recipe, and how often garment and sleeves are taken apart."""

    bounds = dict.fromkeys(("flips", "contrary"), SHARE)

    flips: float = setting(0.0, "share of the samples in twos, draped people with garments of different sleeves")
    contrary: float = setting(0.0, "share of the samples with other sleeves than the garment's, given and true")


def number_with(people: DrapedPeople, sleeves: str, rng: np.random.Generator) -> int:
    """The number of a draped person whose garment has these sleeves: "none", "short" or "long"."""
    number = people.number(rng)
    for _ in range(TRIES):
        if group_of("sleeves", people.product(number).attributes["sleeves"]) == sleeves:
            break
        number = people.number(rng)
    return number


class SegmentationTask(segmentation.SegmentationTask):
    """Samples in twos, and with contrary sleeves. The name stands in every run's recipe.json."""

    recipe: SegmentationRecipe

    def __init__(self, recipe: SegmentationRecipe):
        super().__init__(recipe)
        if recipe.flips and not self.sampler.draped:
            raise ValueError("Samples in twos are draped people: with flips, set draped above 0.")

    def samples(self, step, micro, rank, world):
        """As of `PictureTask`, a share of them in twos."""
        recipe, samples = self.recipe, []
        rngs = generators(recipe.seed, step, micro, rank, world, recipe.batch)
        for i, rng in zip(range(rank, recipe.batch, world), rngs):
            two = np.random.default_rng([recipe.seed, step, micro, i // 2, 10**6])  # the same for both of two samples
            in_twos = two.random() < recipe.flips
            samples.append(self.change(self.twin(rng, two, i % 2), rng) if in_twos else self.sample_one(rng))
        return samples

    def twin(self, rng, two, number):
        """One of two draped people with different sleeves. two: generator that both share; number: 0 or 1."""
        sleeves = str(two.permutation(KINDS)[number])
        return self.sampler.sample(rng, "draped", index=number_with(self.sampler.draped, sleeves, rng))

    def condition(self, sample, rng):
        """As of the recipe, at times with other sleeves, which are then true as well."""
        code = sample["attributes"]
        if rng.random() < self.recipe.contrary:
            kind = str(rng.choice([kind for kind in KINDS if kind != decode(code, "sleeves")]))
            truth = set_length(sample["segmentation"], sample["keypoints"], kind)
            code, sample = with_group(code, "sleeves", kind), sample | {"segmentation": truth}
        return sample | {"attributes": self.hide_some(code, rng)}


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    description = "Trains the segmentation generator to follow the sleeves that it is told."
    return launch(SegmentationTask, SegmentationRecipe, PRESETS, argv, description)


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
