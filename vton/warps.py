"""Every way in which a garment can be warped: the grid that a record holds, and the rivals of Table 2 and Fig. 13."""

import time
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from vton import inference
from vton.inference import Conditions, Networks
from vton.metrics import coverage, mask_iou
from vton.networks.flow import flow_grid
from vton.networks.warping import control_grid, jacobian, sampling_grid
from vton.result import TryOnResult
from vton.rules.fit import FitExceptions

# The splines of Table 2 and Fig. 13: control points along a side, and whether they are fitted to the region.
WARPS = {
    "spline 5x5": (5, False),
    "spline 5x5, fitted": (5, True),
    "spline 10x10": (10, True),
    "spline 20x20": (20, True),
}
BY_FLOW = "flow"  # and their rival


class WarpFigures(NamedTuple):
    """A warped mask against the region that it should fill."""

    iou: float  # of the two
    coverage: float  # share of the region
    folds: float  # share of the warped cloth's pixels where it is folded, NaN where there is no cloth


def figures_of(grid: torch.Tensor, mask: np.ndarray, region: np.ndarray) -> WarpFigures:
    """grid: sampling grid (1,H,W,2); mask: the warped mask, region: what it should fill, both (H,W) bool."""
    folds = (jacobian(grid)[0].cpu().numpy() <= 0)[mask[:-1, :-1]]
    return WarpFigures(
        mask_iou(mask, region), coverage(mask, region), float(folds.mean()) if folds.size else float("nan")
    )


def grid_by(
    networks: Networks, name: str, inputs: Conditions, region: torch.Tensor, exceptions: FitExceptions | None = None
) -> tuple[torch.Tensor, float]:
    """The sampling grid (1,H,W,2) of one of WARPS, or of the flow, and the seconds that it took.

    region: S-hat_c (1,1,H,W). exceptions: where the fit of a spline goes by more than the masks; None = nowhere.
    """
    began = time.perf_counter()
    if name == BY_FLOW:
        assert networks.flow is not None
        grid = flow_grid(inference.predict_flow(networks.flow, inputs, region), inputs.size)
    else:
        points, fit = WARPS[name]
        _, theta = inference.predict_warp(networks.matching, inputs, region, fit, points, exceptions)
        grid = sampling_grid(theta, inputs.size)
    return grid, time.perf_counter() - began


def grid_of(r: TryOnResult, size: tuple[int, int], smooth: bool = False) -> torch.Tensor:
    """The sampling grid (1,H,W,2) of a record's warp at any size (H, W); record from the stage "warp" on.

    smooth: a spline is computed at a quarter of the size and enlarged, which is quicker and looks the same.
    """
    if r.flow is not None:
        return flow_grid(torch.from_numpy(r.flow).permute(2, 0, 1)[None], size)
    n = round(len(r.control_points) ** 0.5)
    theta = (torch.from_numpy(r.control_points) - control_grid(n)).T.reshape(1, -1)
    if not smooth:
        return sampling_grid(theta, size)
    grid = sampling_grid(theta, (max(2, size[0] // 4), max(2, size[1] // 4))).permute(0, 3, 1, 2)
    return F.interpolate(grid, size, mode="bilinear", align_corners=True).permute(0, 2, 3, 1)
