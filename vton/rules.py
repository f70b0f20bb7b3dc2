"""Both rules on a predicted segmentation, sleeves and neckline, in their order (not in the paper; each can be switched off)."""

from __future__ import annotations

import numpy as np

from vton import garment, neckline, sleeves


def corrected(segmentation: np.ndarray, keypoints: np.ndarray, cloth_mask: np.ndarray, outline: np.ndarray | None = None,
              sleeve: str = "auto", collar: str = "auto") -> tuple[np.ndarray, bool]:
    """The predicted segmentation after the rules, and whether bare arms were covered because the outline shows long sleeves.

    segmentation: (H, W) 13 classes; keypoints: (25, 3) in its pixels; cloth_mask: (H, W) the placed garment, above 0;
    outline: (h, w) the garment's mask at its own size, if it is finer; sleeve: "auto", "predicted" (no rule), "none",
    "short" or "long"; collar: "auto" or "predicted".
    """
    covered = False
    if sleeve in sleeves.KINDS:
        segmentation = sleeves.set_length(segmentation, keypoints, sleeve)
    elif sleeve == "auto":
        arms = sleeves.half_covered(segmentation, keypoints, garment.sleeves(cloth_mask if outline is None else outline))
        if arms:
            segmentation, covered = sleeves.set_length(segmentation, keypoints, "long", arms), True
    if collar == "auto" and not neckline.has_high_collar(cloth_mask):
        segmentation = neckline.bare_throat(segmentation, keypoints)
    return segmentation, covered
