"""What can be measured of a finished try-on and of the networks at work in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from vton import labels
from vton.inference import alias_input, warp_by, warp_cloth
from vton.inputs import photo
from vton.metrics import colour_difference, parser_distance, structural_similarity
from vton.networks import alias
from vton.pipeline import TryOn
from vton.result import TryOnResult
from vton.rules.fit import FitStep, fit_control_points
from vton.stages import NO_FLOW, conditions, fit_exceptions, painter_conditions, theta_of
from vton.tensors import labels_to_tensor, mask_to_tensor, picture_to_tensor, tensor_to_mask, tensor_to_picture
from vton.warps import BY_FLOW, WarpFigures, figures_of, grid_by, grid_of

OnStage = Callable[[str, int, int], None] | None
VIEW_STEPS = (0, 5, 10, 20, 40, 60)  # of the fit
VISIBLE = 2.3  # CIEDE2000; about what people just notice between two patches side by side (Mahy et al. 1994)


@dataclass(frozen=True)
class Difference:
    """How two pictures of one size differ."""

    map: np.ndarray  # (H, W) uint8, the mean absolute difference of the channels
    mean: float  # its mean over the region, 0 to 255
    change_share: float  # share of the region's pixels that differ by more than 8
    colour: float  # mean CIEDE2000 in the region
    ssim: float  # of the whole pictures, 1 = equal
    misalignment: float  # mean CIEDE2000 inside M_misalign, NaN where that is empty

    @property
    def visible(self) -> bool:
        """Whether an eye would see it: on the whole region, or where the garment is misaligned."""
        return self.colour > VISIBLE or self.misalignment > VISIBLE


def difference(a: np.ndarray, b: np.ndarray, region: np.ndarray, misalignment: np.ndarray) -> Difference:
    """Compare two (H, W, 3) uint8 pictures. region, misalignment: (H, W) bool. Raises ValueError for unequal sizes."""
    if a.shape != b.shape:
        raise ValueError(f"Two pictures of one size are needed, but they are {a.shape} and {b.shape}.")
    apart = np.abs(a.astype(np.int16) - b.astype(np.int16)).mean(2)
    inside = apart[region] if region.any() else apart.ravel()
    return Difference(
        map=apart.round().astype(np.uint8),
        mean=float(inside.mean()),
        change_share=float((inside > 8).mean()),
        colour=colour_difference(a, b, region if region.any() else None),
        ssim=structural_similarity(a, b, border=False),
        misalignment=colour_difference(a, b, misalignment),
    )


@dataclass(frozen=True)
class AliasLevel:
    """What ALIAS normalisation does in one block (Fig. 5, equation 5), each map (h, w) float32 over the channels."""

    block: str  # its name in the checkpoint
    size: tuple[int, int]
    channels: int
    mask: np.ndarray | None  # M_misalign at this size, 1 = misaligned, None where the block is not masked
    gamma: np.ndarray  # means of the modulation, gamma as the release adds it to 1
    beta: np.ndarray
    before: np.ndarray  # root mean square of the activations before and after the normalisation
    after: np.ndarray


def alias_levels(tryon: TryOn, r: TryOnResult) -> list[AliasLevel]:
    """The first normalisation of every block of the ALIAS generator, for a record from the stage "misalignment" on."""
    network: Any = tryon.alias
    levels: list[AliasLevel] = []
    hooks = []

    def watch(name: str) -> Callable:
        def hook(norm: alias.AliasNorm, arguments: tuple, answer: torch.Tensor) -> None:
            h, segmentation, mask = arguments[:3]
            features = norm.conv_shared(segmentation)
            maps = (norm.conv_gamma(features).mean(1), norm.conv_beta(features).mean(1), _rms(h), _rms(answer))
            plane = None if mask is None else mask[0, 0].cpu().numpy()
            levels.append(AliasLevel(name, tuple(h.shape[2:]), h.shape[1], plane, *(m[0].cpu().numpy() for m in maps)))

        return hook

    for name in network.block_names:
        hooks.append(getattr(network, name).norm_0.register_forward_hook(watch(name)))
    try:
        inputs = painter_conditions(tryon, r)
        seven = labels_to_tensor(labels.thirteen_to_7(r.segmentation), len(labels.ALIAS), tryon.device)
        misalign = mask_to_tensor(r.misalignment, tryon.device)
        x = alias_input(inputs, picture_to_tensor(r.warped_cloth, tryon.device))
        noise = alias.gaussian_noise(r.seed, tryon.device) if r.options.noise else None
        with torch.no_grad():
            network(x, seven, alias.divide(seven, misalign), misalign, norm=r.options.norm, noise=noise)
    finally:
        for hook in hooks:
            hook.remove()
    return levels


def _rms(h: torch.Tensor) -> torch.Tensor:
    return h.float().square().mean(1).sqrt()


def segmentation_doubt(tryon: TryOn, r: TryOnResult) -> tuple[np.ndarray, np.ndarray]:
    """How sure the segmentation generator is, for a record from the stage "agnostic" on.

    Returns probabilities (13, 256, 192) float32 that sum to 1, the mean with the mirror image where the record has it;
    entropy (256, 192) float32 in bits, from 0 to log2 13 = 3.7. Both before the rules on sleeves, neckline and hem.
    """
    outputs: list[torch.Tensor] = []
    hook = tryon.segmentation.register_forward_hook(lambda network, inputs, output: outputs.append(output.detach()))
    try:
        tryon.resume(r, "segmentation", until="segmentation")
    finally:
        hook.remove()
    probabilities = outputs[-1].softmax(1)
    if len(probabilities) == 2:
        probabilities = (probabilities[:1] + probabilities[1:].flip(-1)[:, labels.FLIP_SEGMENTATION.tolist()]) / 2
    entropy = -(probabilities * probabilities.clamp(min=1e-12).log2()).sum(1)
    return probabilities[0].cpu().numpy(), entropy[0].cpu().numpy()


def fit_steps(tryon: TryOn, r: TryOnResult) -> tuple[list[FitStep], list[tuple[int, np.ndarray, np.ndarray]]]:
    """The fit of the spline step by step, from theta as the network predicts it, for a record from the stage "warp" on,
    whatever has warped its garment.
    Returns every step with its loss; and of SHOWN_STEPS their number, W(c, theta) (H, W, 3) uint8 and W(M_c, theta) (H,
    W) uint8.
    """
    inputs = conditions(tryon, r)
    steps: list[FitStep] = []
    region = mask_to_tensor(r.segmentation == labels.UPPER, tryon.device)
    theta = torch.from_numpy(theta_of(tryon, r))[None].to(tryon.device)
    fit_control_points(theta, inputs.cloth_mask, region, watch=steps.append, exceptions=fit_exceptions(tryon, r))
    views = []
    for number in (n for n in VIEW_STEPS if n < len(steps)):
        warp = warp_cloth(steps[number].theta, inputs)
        views.append((number, tensor_to_picture(warp.cloth), tensor_to_mask(warp.mask)))
    return steps, views


@dataclass(frozen=True)
class WarpResult:
    """The garment of a record, warped in one of the ways of Fig. 13."""

    cloth: np.ndarray  # (H, W, 3) uint8
    mask: np.ndarray  # (H, W) uint8
    figures: WarpFigures  # against the region that was predicted for it
    seconds: float  # of the warp alone


def warp_by_name(tryon: TryOn, r: TryOnResult, name: str) -> WarpResult:
    """The garment by one of `warps.WARPS` or by "flow", for a record from the stage "segmentation" on.

    Raises ValueError with one sentence for a flow that these networks do not have.
    """
    if name == BY_FLOW and tryon.flow is None:
        raise ValueError(NO_FLOW)
    inputs, upper = conditions(tryon, r), r.segmentation == labels.UPPER
    grid, seconds = grid_by(tryon, name, inputs, mask_to_tensor(upper, tryon.device), fit_exceptions(tryon, r))
    warped = warp_by(grid, inputs)
    cloth, mask = tensor_to_picture(warped.cloth), tensor_to_mask(warped.mask)
    return WarpResult(cloth, mask, figures_of(grid, mask > 127, upper), seconds)


def grid_on_garment(r: TryOnResult, lines: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A square grid on the garment, and what the warp makes of it, (H, W, 3) uint8 each; record from "warp" on."""
    grid = grid_of(r, r.options.size)
    flat = F.affine_grid(torch.eye(2, 3)[None], [1, 1, *r.options.size], align_corners=False)
    return _draw_grid(r.cloth, flat[0].numpy(), lines), _draw_grid(r.warped_cloth, grid[0].numpy(), lines)


def _draw_grid(picture: np.ndarray, grid: np.ndarray, lines: int) -> np.ndarray:
    """A picture with a line wherever a coordinate of its sampling grid (H, W, 2) passes a multiple of 2 / lines."""
    cells = np.floor((grid + 1) / 2 * lines)
    edge = np.zeros(picture.shape[:2], bool)
    edge[:, 1:] |= (np.diff(cells, axis=1) != 0).any(-1)
    edge[1:] |= (np.diff(cells, axis=0) != 0).any(-1)
    canvas = picture.copy()
    canvas[edge] = (31, 111, 235)
    return canvas


def own_garment(r: TryOnResult) -> np.ndarray:
    """(H, W, 4) uint8, the garment that the person wears, cut out by the parse; record from "parse" on.

    Raises ValueError where the parse holds none.
    """
    mask = np.isin(r.parse, labels.UPPER_LIP)
    if mask.sum() < 50:
        raise ValueError("The parse holds no upper garment to put on again.")
    return np.dstack((r.person, mask.astype(np.uint8) * 255))


@dataclass(frozen=True)
class PairedComparison:
    """A try-on of the very garment that the person wears, where the photograph is the truth."""

    truth: np.ndarray  # (H, W, 3) uint8, as the other two
    garment: np.ndarray
    result: np.ndarray
    ssim: float  # 1 = equal
    distance: float  # the parser's perceptual one, 0 = equal


def compare_paired(tryon: TryOn, r: TryOnResult, on_stage: OnStage = None) -> PairedComparison:
    """Take the worn garment from the photograph, put it on again, and compare with the photograph (section 4.2)."""
    garment = own_garment(r)
    again = tryon.change_garment(r, garment, on_stage)
    result = photo.crop(again.result, again.frame, again.options.size)
    distance = parser_distance(tryon.parser)(result, r.person)
    return PairedComparison(r.person, garment, result, structural_similarity(result, r.person), distance)
