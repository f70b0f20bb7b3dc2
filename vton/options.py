"""What a visitor can set for a try-on: each option once, with its words and the first stage that reads it.

The command lines, the page, its API, the record and `TryOn.run` are all made from the fields of `Options`; a new option
is one new field. Nothing heavy is imported here, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.arguments import MAX_SEED, integer

SIZES = ((256, 192), (512, 384), (1024, 768))  # (H, W) of the maps
GRIDS = (5, 10)  # control points along a side
BY_NETWORK = ("By the network", "predicted")


@dataclass(frozen=True)
class About:
    """The words of an option. label: on the page; help: one clause for the command line and the API; read_by: the first
    stage that reads it; choices: (words, value) pairs, none = any value of the default's type; info: a sentence below
    the label; off: what leaving a True option out means; published: the paper's way where another is an addition.
    """

    label: str
    help: str
    read_by: str
    choices: tuple[tuple[str, Any], ...] = ()
    info: str = ""
    off: str = ""
    published: Any = None

    @property
    def values(self) -> tuple[Any, ...]:
        """Values of `choices` alone."""
        return tuple(value for _, value in self.choices)


def _option(default: Any, label: str, help: str, read_by: str, **more: Any) -> Any:
    return field(default=default, metadata={"about": About(label, help, read_by, **more)})


@dataclass(frozen=True)
class Options:
    """What a visitor can set; `ABOUT` tells the words and the reader of each field.

    size: (H, W) of the maps. seed: of both noises. fit: adapt the control points to the predicted region. norm: "alias"
    or "instance" (VITON-HD*). noise: the two noises of the paper's system. detail: bring what the photographs know into
    the final picture. grid: control points along a side of the spline; the network predicts 5, a finer grid goes on
    from the fitted warp with more freedom. sleeves: their length on the predicted segmentation: "predicted" by the
    network alone, "auto" the same but for sleeves that contradict the garment's, or "none", "short", "long" as a person
    says. neckline: "predicted", "bare" as a person says, or "auto": the garment's own, as far as its cut-out shows it.
    hem: "auto" is worn over trousers or skirt, "tucked" is tucked in, "predicted" as the network decides that is told
    neither. mirror: the segmentation is the mean of the network's answers for the picture and for its mirror image.
    warp: what bends the garment: "spline", the paper's, "flow" (ClothFlow), to which fit and grid do not apply, or
    "auto": the flow where the networks have one and neither fit nor grid was changed. reveal: the generator is shown
    what of the photograph stays as it was.
    """

    size: tuple[int, int] = _option(
        (512, 384),
        "Size",
        "256x192, 512x384 or 1024x768",
        "pose",
        choices=tuple((f"{h} × {w}{remark}", (h, w)) for (h, w), remark in zip(SIZES, (", quick", "", ", slow"))),
    )
    seed: int = _option(0, "Seed", "seed of the noise, a whole number", "segmentation")
    fit: bool = _option(
        True,
        "Fit the warp",
        "fit the warp's control points to the predicted cloth region",
        "warp",
        info="A few gradient steps on the control points; off shows the published behaviour.",
        off="leave the control points as the network predicts them",
        published=False,
    )
    norm: str = _option(
        "alias",
        "Normalisation",
        "alias, or instance for VITON-HD*",
        "synthesis",
        choices=(("ALIAS (the paper's)", "alias"), ("Instance (VITON-HD*)", "instance")),
    )
    noise: bool = _option(
        True, "Noise", "give both generators their noise", "segmentation", off="give the generators no noise"
    )
    detail: bool = _option(
        True,
        "Colours and detail from the photos",
        "bring colours and fine detail, background and skin tone from the photos into the final picture",
        "composite",
        off="leave colours and detail as the generator paints them",
        published=False,
    )
    grid: int = _option(
        GRIDS[0],
        "Control points",
        "control points along a side of the spline, 5 or 10",
        "warp",
        choices=tuple((f"{n} × {n}", n) for n in GRIDS),
        published=GRIDS[0],
    )
    sleeves: str = _option(
        "auto",
        "Sleeves of the garment",
        "auto, predicted (by the network alone), none, short or long",
        "segmentation",
        choices=(
            ("As seen", "auto"),
            BY_NETWORK,
            ("None", "none"),
            ("To the elbow", "short"),
            ("To the wrist", "long"),
        ),
        published="predicted",
    )
    neckline: str = _option(
        "auto",
        "Neckline",
        "auto (as the cut-out of the garment shows it), predicted (by the network alone), or bare",
        "segmentation",
        choices=(("As seen", "auto"), BY_NETWORK, ("Bare throat", "bare")),
        published="predicted",
    )
    hem: str = _option(
        "auto",
        "Hem",
        "auto (worn over trousers or skirt), predicted (by the network alone), or tucked (in)",
        "segmentation",
        choices=(("Loose", "auto"), BY_NETWORK, ("Tucked in", "tucked")),
        info="its lower edge",
        published="predicted",
    )
    mirror: bool = _option(
        True,
        "Segment the mirror image too",
        "segment the picture and its mirror image, and take the mean",
        "segmentation",
        off="predict the segmentation without its mirror image, as published",
        published=False,
    )
    warp: str = _option(
        "auto",
        "Warp",
        "spline (the paper's), flow (ClothFlow; it has no control points, so fit and grid do not apply), or auto "
        "(the flow where the networks have one, unless fit or grid are changed)",
        "warp",
        choices=(
            ("Flow where there is one", "auto"),
            ("Thin-plate spline (the paper's)", "spline"),
            ("Flow (ClothFlow)", "flow"),
        ),
        info="The flow has no control points: neither their number nor their fit applies to it.",
        published="spline",
    )
    reveal: bool = _option(
        True,
        "Show what stays",
        "show the generator the wall, hair and bare skin that the new garment leaves as they were",
        "synthesis",
        info="Off hides all that the agnostic image hides.",
        off="hide all that the agnostic image hides from the generator, as published",
        published=False,
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Options out of loosely typed values, each turned into its default's type and checked; None = the default.

        Raises ValueError with one sentence for values that do not exist, TypeError for names that do not.
        """
        settings = {name: value for name, value in values.items() if value is not None}
        options = cls(**{name: _as_default(name, value) for name, value in settings.items()})
        options.check()
        return options

    def check(self) -> None:
        """Raises ValueError with one sentence for values that do not exist."""
        for name, about in ABOUT.items():
            value = getattr(self, name)
            if about.choices and (tuple(value) if name == "size" else value) not in about.values:
                text = to_text(value) if value and not isinstance(value, str) else repr(value)
                raise ValueError(f"{name} must be one of {', '.join(map(to_text, about.values))}, but is {text}.")


ABOUT: dict[str, About] = {f.name: f.metadata["about"] for f in dataclasses.fields(Options)}
# The system of the paper, without this project's additions.
PUBLISHED: dict[str, Any] = {name: about.published for name, about in ABOUT.items() if about.published is not None}
DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Options)}


def to_text(value: Any) -> str:
    """A value as it is written on a command line: a size as 512x384."""
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _as_default(name: str, value: Any) -> Any:
    """The value of an option in its default's type. Raises ValueError with one sentence where that would change it."""
    if name not in DEFAULTS:
        return value  # the constructor says which name does not exist
    kind = type(DEFAULTS[name])
    try:
        option = kind(value)
    except (TypeError, ValueError, OverflowError):
        option = None
    if option is None or (kind in (bool, int) and option != value and str(option) != value):
        words = {bool: "true or false", int: "a whole number"}.get(kind, "a height and a width")
        raise ValueError(f"{name} has to be {words}, but is {str(value)[:40]!r}.")
    return option


def read_size(text: str) -> tuple[int, int]:
    """(H, W) out of a text like "512x384". Raises ValueError with one sentence."""
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        raise ValueError(f"--size must look like 512x384, not '{text}'.")
    return int(sides[0]), int(sides[1])


def add_arguments(parser: argparse.ArgumentParser, skip: Iterable[str] = ()) -> None:
    """An argument for each option: --NAME VALUE, or --no-NAME where the default is True. skip: names left out."""
    for name, about in ABOUT.items():
        default = DEFAULTS[name]
        if name in skip:
            continue
        if isinstance(default, bool):
            parser.add_argument(f"--no-{name}", dest=name, action="store_false", help=about.off)
        elif name == "size":
            parser.add_argument("--size", default=to_text(default), help=f"of the maps: {about.help}")
        elif isinstance(default, str):
            parser.add_argument(f"--{name}", default=default, choices=about.values, help=about.help)
        else:
            parser.add_argument(f"--{name}", type=integer(0, MAX_SEED), default=default, help=about.help)


def from_arguments(arguments: argparse.Namespace) -> Options:
    """The options out of what a parser with `add_arguments` has read. Raises ValueError with one sentence."""
    values = {name: getattr(arguments, name) for name in ABOUT if hasattr(arguments, name)}
    return Options.of({**values, "size": read_size(values["size"])})
