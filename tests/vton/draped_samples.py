"""Draped people whose garment a function alters, for the tests of what it changes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vton.data.draped.people import load_people
from vton.data.samples import Sampler

SIZE = (256, 192)


def altered(alter: Callable[[dict[str, Any], np.random.Generator], dict[str, Any]], count: int) -> list[tuple]:
    """(sample, the same as `alter` gives it back) of those of `count` draped people whose garment it alters."""
    sampler, pairs = Sampler(None, SIZE, "train", load_people(SIZE, "train", "", "")), []
    for number in range(count):
        rng = np.random.default_rng(number)
        sample = sampler.sample(rng, "draped")
        other = alter(sample, rng)
        if other is not sample:
            pairs.append((sample, other))
    return pairs
