"""The attributes on which the segmentation generator is conditioned beside the garment's picture: sleeves and hem.

A flat garment does not show whether it will be tucked in, so a network without this attribute has to guess, and cuts
hems to lobes. The neckline is not among them: it is known of products alone, and the network took it for the sign of a
truth made by rule.
A garment's attributes stand as values of attributes.tsv, as groups of `garment_reader.GROUPS`, or, for the network, as
a code of one vector: a one for the group of each attribute that is known, zeros for one that is not.
"""

from collections.abc import Mapping

import numpy as np

from vton.inputs.reading import Attribute
from vton.networks.garment_reader import GROUPS

HEMS = LOOSE, TUCKED = "loose", "tucked"
# With their groups, in the order of the code; weights that know fewer were trained on its beginning.
ATTRIBUTES = {"sleeves": tuple(GROUPS["sleeves"]), "hem": HEMS}
LENGTH = sum(map(len, ATTRIBUTES.values()))  # of the code
# Probability from which on what was read of a garment counts as known: the network is given it, and follows it even
# where it sees something else. With 0.9 the sleeves of worn validation pairs were right on 0.81, with 0.8 on 0.91. If
# it is less sure than that, the network is right more often where they differ (region of 16 pairs 0.851 and 0.770).
CERTAIN = 0.8
LONG_SLEEVES = ("long", "long-rolled", "folded")  # as attributes.tsv calls them
BETWEEN = "three-quarter"  # sleeves that are neither short nor long


def group_of(name: str, value: str) -> str:
    """The group of an attribute's value as in attributes.tsv; "" for values of no group, and for sleeves between."""
    if name == "sleeves" and value in LONG_SLEEVES:
        return "long"
    if value == BETWEEN:
        return ""
    return next((group for group, values in GROUPS[name].items() if value in values), "")


def certain_groups(attributes: Mapping[str, Attribute]) -> dict[str, str]:
    """The groups of what was read of a garment with a certainty of at least `CERTAIN`; see `Garment.attributes`."""
    return {
        name: attributes[name].value
        for name in ATTRIBUTES
        if name in attributes and attributes[name].certainty >= CERTAIN and attributes[name].exact != BETWEEN
    }


def condition_groups(
    attributes: Mapping[str, Attribute], sleeves: str = "auto", hem: str = "predicted"
) -> dict[str, str]:
    """The groups on which the segmentation generator is conditioned, by attribute; "" = none.

    attributes: what was read of the garment.
    sleeves: the option of a try-on. A length that a person names wins; "auto" takes what was surely read; any other
        value conditions on nothing.
    hem: the option of a try-on. "auto" is worn over trousers and skirts, as shops show it; "tucked" is tucked in;
        any other value conditions on nothing.
    """
    if sleeves not in ATTRIBUTES["sleeves"]:
        sleeves = certain_groups(attributes).get("sleeves", "") if sleeves == "auto" else ""
    return {"sleeves": sleeves, "hem": {"auto": LOOSE, TUCKED: TUCKED}.get(hem, "")}


def encode(groups: Mapping[str, str]) -> np.ndarray:
    """The code (LENGTH,) float32 of groups by attribute, "" or missing = not known.

    Raises ValueError for unknown groups.
    """
    parts = []
    for name, possible in ATTRIBUTES.items():
        group = groups.get(name, "")
        if group and group not in possible:
            raise ValueError(f"The {name} can be {', '.join(possible)}; not '{group}'.")
        parts += [float(group == one) for one in possible]
    return np.array(parts, np.float32)


def with_group(code: np.ndarray, name: str, group: str) -> np.ndarray:
    """A copy of a code (LENGTH,) with another group of one attribute; "" = not known."""
    return encode({other: decode(code, other) for other in ATTRIBUTES} | {name: group})


def decode(code: np.ndarray, name: str) -> str:
    """The group of an attribute in a code (LENGTH,); "" = not known."""
    start = 0
    for other, possible in ATTRIBUTES.items():
        if other == name:
            part = code[start : start + len(possible)]
            return possible[int(part.argmax())] if part.any() else ""
        start += len(possible)
    raise ValueError(f"'{name}' is not in the code; what is: {', '.join(ATTRIBUTES)}.")
