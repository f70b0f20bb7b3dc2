"""The pictures of a try-on in the order of Figure 3 of the VITON-HD paper: name, symbol, stage, one sentence each."""

from __future__ import annotations

from typing import NamedTuple


class Map(NamedTuple):
    """How one picture of a result is presented. symbol: the paper's, plain text, "_" before a subscript."""

    title: str
    symbol: str
    stage: str
    about: str


# The keys are those of TryOnResult.pictures() and the names of the files.
MAPS = {
    "pose": Map("Pose", "P", "pose", "The joints found in the photo, drawn as a skeleton: where shoulders, elbows and hips are."),
    "parse": Map("Parse", "S", "parse", "The human parser gives every pixel of the person one of 20 labels."),
    "garment": Map("Garment", "c", "garment", "The garment cut out of its photo and laid on the light grey of the training data."),
    "garment_mask": Map("Garment mask", "c_m", "garment", "White where the garment is."),
    "agnostic": Map("Agnostic image", "I_a", "agnostic",
                    "The person with the old garment and the arms painted grey, so that nothing of its shape is left to copy."),
    "agnostic_map": Map("Agnostic map", "S_a", "agnostic", "The parse with the same regions removed."),
    "segmentation": Map("Predicted segmentation", "Ŝ", "segmentation",
                        "Where cloth, arms and body will be in the new garment, predicted from the agnostic map, the pose and "
                        "the garment."),
    "warped_cloth": Map("Warped garment", "W(c, θ)", "warp",
                        "The garment bent into place by a thin-plate spline that a grid of control points steers."),
    "warped_mask": Map("Warped mask", "W(c_m, θ)", "warp", "The garment mask after the same warp."),
    "misalignment": Map("Misalignment", "M_misalign", "misalignment",
                        "Predicted cloth that the warped garment does not cover; here the generator has to invent cloth."),
    "divided": Map("Divided segmentation", "Ŝ_div", "misalignment",
                   "The segmentation as the ALIAS generator gets it: the misaligned cloth, in orange, is a class of its own."),
    "pasted": Map("Pasted garment", "baseline", "misalignment",
                  "What one would get without a generator: the warped garment laid on the agnostic image."),
    "synthesis": Map("Synthesis", "Î", "synthesis", "What the ALIAS generator paints from all of the above."),
    "region": Map("Edited region", "", "composite", "White where the photograph may change; everywhere else it stays byte for byte."),
    "result": Map("Result", "", "composite",
                  "The synthesis put back into the photograph; every pixel outside the edited region is the photo's own."),
}
