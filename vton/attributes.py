"""What the segmentation generator may be told of a garment beside its picture: the sleeves.

Not the neckline, which is known of products and drawn garments alone: the network took it for the sign of a truth made
by rule. A garment's attributes stand as values of attributes.tsv, as groups of `garment_reader.GROUPS`, or, for the
network, as one vector: a one for the group of each attribute that is known, zeros for one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vton.inputs.reading import Attribute
from vton.networks.garment_reader import GROUPS

TOLD = {name: tuple(GROUPS[name]) for name in ("sleeves",)}  # attributes and their groups, in the vector
LENGTH = sum(map(len, TOLD.values()))  # of the vector
CERTAIN = 0.6  # probability from which on what was read of a garment counts as known
SURE = 0.8  # and from which on the network is told of it, which it follows even where it sees something else
LONG_SLEEVES = ("long", "long-rolled", "folded")  # as attributes.tsv calls them; they are put on down to the wrist
BETWEEN = "three-quarter"  # sleeves that are neither short nor long


def group_of(name: str, value: str) -> str:
    """The group of an attribute's value as in attributes.tsv; "" for values of no group, and for sleeves between."""
    if name == "sleeves" and value in LONG_SLEEVES:
        return "long"
    if value == BETWEEN:
        return ""
    return next((group for group, values in GROUPS[name].items() if value in values), "")


def known(attributes: Mapping[str, Attribute], least: float = CERTAIN) -> dict[str, str]:
    """The groups of what was read of a garment with a certainty of at least `least`; see `Garment.attributes`."""
    return {
        name: attributes[name].value
        for name in TOLD
        if name in attributes and attributes[name].certainty >= least and attributes[name].exact != BETWEEN
    }


def told(read: Mapping[str, Attribute], sleeves: str = "auto") -> dict[str, str]:
    """The groups that the segmentation generator is told, by attribute.

    read: what was read of the garment; sleeves: the option of a try-on. What a person says of them wins; with "auto" it
    is what was surely read; with any other value the network is told nothing.
    """
    if sleeves in TOLD["sleeves"]:
        return {"sleeves": sleeves}
    return {"sleeves": known(read, SURE).get("sleeves", "") if sleeves == "auto" else ""}


def vector(groups: Mapping[str, str]) -> np.ndarray:
    """(LENGTH,) float32 for groups by attribute, "" or missing = not known. Raises ValueError for unknown groups."""
    parts = []
    for name, possible in TOLD.items():
        group = groups.get(name, "")
        if group and group not in possible:
            raise ValueError(f"The {name} can be {', '.join(possible)}; not '{group}'.")
        parts += [float(group == one) for one in possible]
    return np.array(parts, np.float32)


def with_group(told: np.ndarray, name: str, group: str) -> np.ndarray:
    """A copy of a vector (LENGTH,) in which one attribute is another one; group "" = not known."""
    return vector({other: told_group(told, other) for other in TOLD} | {name: group})


def told_group(told: np.ndarray, name: str) -> str:
    """The group of an attribute in a vector (LENGTH,); "" = not known."""
    start = 0
    for other, possible in TOLD.items():
        if other == name:
            part = told[start : start + len(possible)]
            return possible[int(part.argmax())] if part.any() else ""
        start += len(possible)
    raise ValueError(f"'{name}' is not told; what is: {', '.join(TOLD)}.")
