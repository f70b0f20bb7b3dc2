"""The chain of the three generators on tensors (Fig. 3): segmentation, warp, misalignment, synthesis.

Try-on, the released recipe and the figures of evaluation all run these steps; they differ in what they put in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from vton.attributes import LOOSE
from vton.inputs.hem import plane_of
from vton.networks import alias, alias_inference, flow, segmentation, warping
from vton.rules.fit import FitExceptions, fit_control_points


class Networks(Protocol):
    """The networks of one try-on system, in evaluation mode on one device."""

    parser: nn.Module
    segmentation: nn.Module
    matching: nn.Module
    alias: nn.Module
    garment: nn.Module
    flow: nn.Module | None
    device: torch.device


@dataclass(frozen=True)
class Conditions:
    """What the generators are given: pictures (1,3,H,W) in [-1, 1], the cloth's mask (1,1,H,W), S_a (1,13,H,W) one-hot,
    the garment's attributes (1,A) as in `vton.attributes`; alias_view: I_a as ALIAS is given it.
    """

    agnostic: Tensor  # I_a
    pose: Tensor  # P
    cloth: Tensor  # c
    cloth_mask: Tensor  # M_c
    parse_agnostic: Tensor | None = None  # S_a; only the segmentation reads it
    attributes: Tensor | None = None  # the same; None = not known
    hem: Tensor | None = None  # its plane (1,1,H,W), see `vton.inputs.hem`; the same
    alias_view: Tensor | None = None  # I_a with what stays as it was, see `agnostic.open_gray`; None = I_a itself

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the pictures."""
        height, width = self.pose.shape[-2:]
        return height, width


@dataclass(frozen=True)
class Warp:
    """The warped cloth: its sampling grid (1,H,W,2), W(c, theta) (1,3,H,W), W(M_c, theta) (1,1,H,W)."""

    grid: Tensor
    cloth: Tensor
    mask: Tensor


def place_hem(
    network: segmentation.SegmentationGenerator,
    inputs: Conditions,
    keypoints: np.ndarray,
    hem: str,
    noise: Tensor | None = None,
    mirror_pose: Tensor | None = None,
) -> Tensor:
    """S-hat, (1,H,W) int64 of 13 classes; where the hem is loose and the network takes its place, the second of two
    answers, which is given where the hem of the first one lies; see `vton.inputs.hem`.

    keypoints: (25, 3) in the pictures' pixels; hem: how it is worn, see `vton.attributes`; noise, mirror_pose: as in
    `predict_segmentation`.
    """
    first = predict_segmentation(network, inputs, noise, mirror_pose)
    if hem != LOOSE or not network.config.places_hem:
        return first
    plane = plane_of(first[0].cpu().numpy(), keypoints)
    if not plane.any():
        return first
    tensor = torch.from_numpy(plane)[None, None].to(inputs.pose.device)
    return predict_segmentation(network, replace(inputs, hem=tensor), noise, mirror_pose)


def predict_segmentation(
    network: nn.Module, inputs: Conditions, noise: Tensor | None = None, mirror_pose: Tensor | None = None
) -> Tensor:
    """S-hat (section 3.2), (1,H,W) int64 of 13 classes; see `vton.networks.segmentation.segment`."""
    return segmentation.segment(
        network,
        inputs.cloth,
        inputs.cloth_mask,
        inputs.parse_agnostic,
        inputs.pose,
        noise,
        mirror_pose,
        inputs.attributes,
        inputs.hem,
    )


def predict_warp(
    network: nn.Module,
    inputs: Conditions,
    region: Tensor,
    fit: bool = True,
    grid: int = 0,
    exceptions: FitExceptions | None = None,
) -> tuple[Tensor, Tensor]:
    """theta as the matching module gives it (section 3.3), and as it is used.

    region: S-hat_c (1,1,H,W).
    fit: gradient steps on the control points.
    grid: control points along a side of the spline that is used; 0 = as many as the network predicts, a finer grid goes
        on from the fitted answer.
    exceptions: where the fit goes by more than the masks; see `fit_control_points`.
    """
    theta = warping.match(network, region, inputs.pose, inputs.agnostic, inputs.cloth)
    final = fit_control_points(theta, inputs.cloth_mask, region, exceptions=exceptions) if fit else theta
    if grid and theta.shape[1] != 2 * grid**2:
        final = warping.refine(final, grid)
        final = fit_control_points(final, inputs.cloth_mask, region, exceptions=exceptions) if fit else final
    return theta, final


def predict_flow(network: nn.Module, inputs: Conditions, region: Tensor) -> Tensor:
    """The flow (1,2,h,w) that lays the cloth on the region S-hat_c (1,1,H,W); see `vton.networks.flow`."""
    return flow.match_flow(network, region, inputs.pose, inputs.agnostic, inputs.cloth, inputs.cloth_mask)


def warp_cloth(theta: Tensor, inputs: Conditions, soft_mask: bool = False) -> Warp:
    """W(c, theta) and W(M_c, theta) of a spline; see `warp_by`."""
    return warp_by(warping.sampling_grid(theta, inputs.size), inputs, soft_mask)


def warp_by(grid: Tensor, inputs: Conditions, soft_mask: bool = False) -> Warp:
    """The cloth and its mask through a sampling grid (1,H,W,2). soft_mask: as in the release, the mask as sampled at
    the border, not 0 or 1, and the cloth sampled bilinearly, which takes some of a print's sharpness.
    """
    if soft_mask:
        return Warp(grid, warping.warp(inputs.cloth, grid), warping.warp(inputs.cloth_mask, grid))
    whole = warping.warp(inputs.cloth, grid, sampling="bicubic")
    mask = (warping.warp(inputs.cloth_mask, grid, "zeros") > 0.5).float()
    cloth = torch.where(mask > 0, warping.warp_inside(inputs.cloth, inputs.cloth_mask, grid), whole)
    return Warp(grid, cloth.clamp(-1, 1), mask)


def synthesise(
    network: nn.Module, inputs: Conditions, warped_cloth: Tensor, seven: Tensor, misalign: Tensor, norm: str, noise=None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """I-hat (section 3.4) and what is rendered, (1,3,H,W) in [-1, 1]; alpha, the share of the cloth, and the share of
    the photograph, (1,1,H,W) in [0, 1].

    norm: "alias" or "instance"; noise: see `alias.gaussian_noise`. Without a composition both shares are 0, and all is
        rendered.
    """
    x = alias_input(inputs, warped_cloth)
    quick = x.device.type == "cpu"
    answer: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]] = (
        partial(alias_inference.forward, network) if quick else network
    )
    with torch.inference_mode():
        divided = alias.divide(seven, misalign)
        picture, rendered, *shares = answer(x, seven, divided, misalign, norm=norm, noise=noise, parts=True)
    alpha, photo_share = (share.expand_as(misalign) for share in shares)
    return picture, rendered, alpha, photo_share


def alias_input(inputs: Conditions, warped_cloth: Tensor) -> Tensor:
    """x (1,9,H,W) of the ALIAS generator: I_a, or more of the photograph where that is shown, P and W(c, theta)."""
    return torch.cat(
        (inputs.agnostic if inputs.alias_view is None else inputs.alias_view, inputs.pose, warped_cloth), 1
    )
