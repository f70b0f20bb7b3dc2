"""The pictures of a try-on in the order of Figure 3 of the VITON-HD paper: name, symbol, stage, one sentence each."""

from __future__ import annotations

from typing import NamedTuple

from vton.result import PICTURES
from vton.stages import MAKERS


class Map(NamedTuple):
    """How one picture of a result is presented. symbol: the paper's, plain text, "_" before a subscript; stage: the one
    that makes it.
    """

    title: str
    symbol: str
    stage: str
    about: str


# Title, symbol and sentence; the keys are those of TryOnResult.pictures() and the names of the files.
_WORDS = {
    "pose": ("Pose", "P", "The joints found in the photo, drawn as a skeleton: where shoulders, elbows and hips are."),
    "parse": ("Parse", "S", "The human parser gives every pixel of the person one of 20 labels."),
    "garment": ("Garment", "c", "The garment cut out of its photo and laid on the light grey of the training data."),
    "garment_mask": ("Garment mask", "c_m", "White where the garment is."),
    "agnostic": (
        "Agnostic image",
        "I_a",
        "The person with the old garment and the arms painted grey, so that nothing of its shape is left to copy.",
    ),
    "agnostic_map": ("Agnostic map", "S_a", "The parse with the same regions removed."),
    "segmentation": (
        "Predicted segmentation",
        "Ŝ",
        "Where cloth, arms and body will be in the new garment, predicted from the agnostic map, the pose and "
        "the garment.",
    ),
    "warped_cloth": (
        "Warped garment",
        "W(c, θ)",
        "The garment bent into place by the flow, or by the paper's thin-plate spline, which control points steer.",
    ),
    "warped_mask": ("Warped mask", "W(c_m, θ)", "The garment mask after the same warp."),
    "misalignment": (
        "Misalignment",
        "M_misalign",
        "Predicted cloth that the warped garment does not cover; here the generator has to invent cloth.",
    ),
    "divided": (
        "Divided segmentation",
        "Ŝ_div",
        "The segmentation as the ALIAS generator gets it: the misaligned cloth, in orange, is a class of its own.",
    ),
    "pasted": (
        "Pasted garment",
        "baseline",
        "What one would get without a generator: the warped garment laid on the agnostic image.",
    ),
    "shown": (
        "What stays",
        "",
        "The agnostic image as ALIAS is given it: what the new garment leaves as it was is shown: wall, hair, skin.",
    ),
    "rendered": (
        "Painted",
        "",
        "What the ALIAS generator paints from all of the above, before the garment itself is laid on.",
    ),
    "alpha": (
        "Composition",
        "α",
        "How much of the warped garment itself stands in the synthesis; black everywhere in weights as published.",
    ),
    "kept": (
        "Kept photograph",
        "κ",
        "How much of the photograph itself stands in the synthesis; black everywhere in weights as published.",
    ),
    "synthesis": (
        "Synthesis",
        "Î",
        "The generator's picture: α parts of the warped garment, κ parts of the photograph, and paint for the rest.",
    ),
    "region": (
        "Edited region",
        "",
        "White where the photograph may change; everywhere else it stays byte for byte.",
    ),
    "result": (
        "Result",
        "",
        "The synthesis put back into the photograph; every pixel outside the edited region is the photo's own.",
    ),
}
MAPS = {name: Map(title, symbol, MAKERS[PICTURES[name][0]], about) for name, (title, symbol, about) in _WORDS.items()}
