"""The record of one try-on: every map that the stages have made so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vton import labels
from vton.inputs import pose
from vton.inputs.garment import Garment
from vton.inputs.photo import Frame
from vton.joints import UPPER_BODY, present
from vton.options import Options


def _later() -> Any:
    """The default of a field that a stage fills: None until then, and afterwards of the field's type."""
    return None


@dataclass(frozen=True)
class TryOnResult:
    """The record of one try-on. H, W = the size of the maps; H0, W0 = the photograph's size after its orientation.

    A field is None until its stage has run. Pictures are uint8 RGB, masks uint8 0/255.
    """

    options: Options
    sources: tuple[Any, Any] = _later()  # the two pictures as they were given, until they are decoded
    photo: np.ndarray = _later()  # (H0, W0, 3)
    garment_photo: np.ndarray = _later()  # (h, w, 3 or 4) as uploaded
    painted_mask: np.ndarray = _later()  # (h', w') the garment's mask where a person has painted it, 255 = garment
    garment_cut: Garment = _later()  # the cut-out at the uploaded picture's size
    frame: Frame = _later()  # 3:4 window in photo pixels
    person: np.ndarray = _later()  # (H, W, 3) the window's content, I
    keypoints: np.ndarray = _later()  # (25, 3) float32 x, y, confidence in pixels of `person`
    person_mask: np.ndarray = _later()  # (H, W) float32 in [0, 1]
    pose: np.ndarray = _later()  # (H, W, 3) skeleton P
    parse: np.ndarray = _later()  # (H, W) uint8 LIP labels, S
    cloth: np.ndarray = _later()  # (H, W, 3) c on (246, 246, 246)
    cloth_mask: np.ndarray = _later()  # (H, W) M_c
    agnostic: np.ndarray = _later()  # (H, W, 3) I_a
    parse_agnostic: np.ndarray = _later()  # (H, W) uint8 LIP labels, S_a
    segmentation: np.ndarray = _later()  # (H, W) uint8 13 classes, S-hat
    theta: np.ndarray = _later()  # (50,) float32 offsets as the network gave them; None where the flow has warped
    control_points: np.ndarray = _later()  # (25, 2) float32 places in the cloth, normalised, after the fit; as theta
    flow: np.ndarray = _later()  # (h, w, 2) float32 offsets x, y, normalised, at the network's size; None for a spline
    warped_cloth: np.ndarray = _later()  # (H, W, 3) W(c, theta)
    warped_mask: np.ndarray = _later()  # (H, W) W(M_c, theta)
    misalignment: np.ndarray = _later()  # (H, W) M_misalign
    synthesis: np.ndarray = _later()  # (H, W, 3) I-hat
    rendered: np.ndarray = _later()  # (H, W, 3) I-hat without the cloth's own share
    alpha: np.ndarray = _later()  # (H, W) share of W(c, theta) itself in I-hat; 0 without a composition
    unchanged: np.ndarray = _later()  # (H, W) what of the gray region ALIAS is shown, as it stays; 0 as published
    kept: np.ndarray = _later()  # (H, W) share of the photograph itself in I-hat; 0 in weights as published
    region: np.ndarray = _later()  # (H0, W0) opacity of the edit: 0 = the photograph stays byte for byte
    result: np.ndarray = _later()  # (H0, W0, 3)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    weights: str = ""
    corrected: tuple[str, ...] = ()  # maps that a person has changed, see READERS
    resumed_from: str = ""  # first stage of the last run, "" when all of them ran

    @property
    def seed(self) -> int:
        """Of the noise."""
        return self.options.seed

    @property
    def misaligned_share(self) -> float:
        """Share of the predicted cloth region that the warped cloth does not cover."""
        region = self.segmentation == labels.UPPER
        return float((self.misalignment[region] > 127).mean()) if region.any() else 0.0

    @property
    def divided(self) -> np.ndarray:
        """S-hat_div (eq. 4) as labels (H, W) uint8: ALIAS's 7 classes, and 7 where the upper garment is misaligned."""
        return np.where(self.misalignment > 127, np.uint8(labels.MISALIGNED), labels.thirteen_to_7(self.segmentation))

    @property
    def alias_view(self) -> np.ndarray:
        """(H, W, 3), I_a as ALIAS is given it: with the photograph where that stays unchanged."""
        if self.unchanged is None:
            return self.agnostic
        return np.where(self.unchanged[..., None] > 127, self.person, self.agnostic)

    @property
    def baseline(self) -> np.ndarray:
        """The baseline (H, W, 3): the warped garment laid on I_a, without any generator."""
        return np.where(self.warped_mask[..., None] > 127, self.warped_cloth, self.agnostic)

    @property
    def quality(self) -> dict[str, Any]:
        """What the result rests on: joints found, side seen, shares of the predicted cloth covered and left open."""
        there = present(self.keypoints)[list(UPPER_BODY)]
        figures = {"joints": int(there.sum()), "joints_wanted": len(there), "facing": pose.facing(self.keypoints)}
        if self.misalignment is not None:
            share = self.misaligned_share
            figures |= {"cloth_coverage": round(1 - share, 4), "misaligned_share": round(share, 4)}
        return figures

    def pictures(self) -> dict[str, np.ndarray]:
        """Every map so far as a uint8 picture, label maps coloured, in the order of Fig. 3; names as in vton.maps."""
        return {name: draw(self) for name, (source, draw) in PICTURES.items() if getattr(self, source) is not None}


# The pictures of a record: the field that has to be there, and how it is drawn.
PICTURES: dict[str, tuple[str, Callable[[TryOnResult], np.ndarray]]] = {
    "pose": ("pose", lambda r: r.pose),
    "parse": ("parse", lambda r: labels.colour(r.parse)),
    "garment": ("cloth", lambda r: r.cloth),
    "garment_mask": ("cloth_mask", lambda r: r.cloth_mask),
    "agnostic": ("agnostic", lambda r: r.agnostic),
    "agnostic_map": ("parse_agnostic", lambda r: labels.colour(r.parse_agnostic)),
    "segmentation": ("segmentation", lambda r: labels.colour(r.segmentation, labels.SEGMENTATION_COLOURS)),
    "warped_cloth": ("warped_cloth", lambda r: r.warped_cloth),
    "warped_mask": ("warped_mask", lambda r: r.warped_mask),
    "misalignment": ("misalignment", lambda r: r.misalignment),
    "divided": ("misalignment", lambda r: labels.colour(r.divided, labels.DIVIDED_COLOURS)),
    "pasted": ("misalignment", lambda r: r.baseline),
    "shown": ("unchanged", lambda r: r.alias_view),
    "rendered": ("rendered", lambda r: r.rendered),
    "alpha": ("alpha", lambda r: r.alpha),
    "kept": ("kept", lambda r: r.kept),
    "synthesis": ("synthesis", lambda r: r.synthesis),
    "region": ("region", lambda r: r.region),
    "result": ("result", lambda r: r.result),
}
