"""Warping the cloth by appearance flow: two feature pyramids and a cascade of flows (ClothFlow, Han et al. 2019).

The rival of VITON-HD's spline: each pixel of the output has an offset of its own, so the cloth may follow any outline,
and may be torn where the spline only bends. Coordinates as in `vton.networks.warping`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.networks.config import FlowConfig
from vton.networks.warping import warp


def identity_grid(size: tuple[int, int], device=None) -> Tensor:
    """(1,H,W,2) of the places of the pixels themselves, for `grid_sample` with `align_corners=False`."""
    ys, xs = ((2 * torch.arange(n, device=device) + 1) / n - 1 for n in size)
    return torch.stack(torch.meshgrid(xs, ys, indexing="xy"), -1)[None]


def _block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class FeaturePyramid(nn.Module):
    """Features at strides 2, 4, ... with what the coarser ones know added to the finer (Lin et al. 2017)."""

    def __init__(self, inputs: int, channels: int, features: int, levels: int):
        super().__init__()
        widths = [min(channels * 2**i, 4 * channels) for i in range(levels)]
        self.down = nn.ModuleList(_block(a, b, 2) for a, b in zip([inputs, *widths], widths))
        self.across = nn.ModuleList(nn.Conv2d(w, features, 1) for w in widths)

    def forward(self, x: Tensor) -> list[Tensor]:
        """x (B,C,H,W) -> list of (B,features,h,w), finest first."""
        maps = []
        for block in self.down:
            x = block(x)
            maps.append(x)
        out: list[Tensor] = []
        for across, x in zip(reversed(self.across), reversed(maps)):
            x = across(x)
            out.insert(0, x + F.interpolate(out[0], x.shape[2:], mode="nearest") if out else x)
        return out


class FlowWarper(nn.Module):
    """The cascaded flow (ClothFlow, section 3.2): each level refines the flow of the coarser one."""

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.config = config
        sizes = (config.width, config.features, config.levels)
        self.person, self.cloth = (FeaturePyramid(n, *sizes) for n in (config.person_inputs, config.cloth_inputs))
        self.steps = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(2 * config.features, config.features, 3, padding=1),
                nn.LeakyReLU(0.1),
                nn.Conv2d(config.features, config.features, 3, padding=1),
                nn.LeakyReLU(0.1),
                nn.Conv2d(config.features, 2, 3, padding=1),
            )
            for _ in range(config.levels)
        )
        for step in self.steps:  # begin with the identity
            nn.init.zeros_(step[-1].weight), nn.init.zeros_(step[-1].bias)  # type: ignore[index]

    def forward(self, person: Tensor, cloth: Tensor) -> list[Tensor]:
        """person (B,7,H,W), cloth (B,4,H,W) -> offsets (B,2,h,w) in normalised units, one for each level, coarsest
        first, and last at (H, W). person: region S_c 1, P 3, I_a 3, of which the first `config.person_inputs` are seen;
        cloth: c 3, M_c 1. Zero is the identity; H and W are multiples of 2**levels.
        """
        person = person[:, : self.config.person_inputs]
        flow, flows = None, []
        for step, target, source in zip(self.steps, reversed(self.person(person)), reversed(self.cloth(cloth))):
            if flow is not None:
                flow = F.interpolate(flow, target.shape[2:], mode="bilinear", align_corners=False)
                source = warp(source.float(), flow_grid(flow)).to(target.dtype)
            further = step(torch.cat((source, target), 1)).float()
            flow = further if flow is None else flow + further
            flows.append(flow)
        return [*flows, F.interpolate(flow, person.shape[2:], mode="bilinear", align_corners=False)]


def flow_grid(flow: Tensor, size: tuple[int, int] | None = None) -> Tensor:
    """Offsets (B,2,h,w) -> sampling grid (B,H,W,2) for `warp`. size: (H, W); None = (h, w)."""
    if size is not None:
        flow = F.interpolate(flow, size, mode="bilinear", align_corners=False)
    return identity_grid((flow.shape[2], flow.shape[3]), flow.device) + flow.permute(0, 2, 3, 1)


@torch.inference_mode()
def match_flow(
    network: FlowWarper, region: Tensor, pose: Tensor, agnostic: Tensor, cloth: Tensor, cloth_mask: Tensor
) -> Tensor:
    """The flow (B,2,h,w) at the network's own size, to which the inputs are resized; see `flow_grid`.

    region S_c (B,1,H,W), pose P, agnostic I_a and cloth c (B,3,H,W), cloth_mask M_c (B,1,H,W).
    """
    person, garment = (
        F.interpolate(x, network.config.size, mode="bilinear", align_corners=False)
        for x in (torch.cat((region, pose, agnostic), 1), torch.cat((cloth, cloth_mask), 1))
    )
    return network(person, garment)[-1]


def roughness(flow: Tensor) -> Tensor:
    """Second-order smoothness of a flow (B,2,H,W) (PF-AFN, Ge et al. 2021): mean generalised Charbonnier norm of the
    second differences across, down and along both diagonals, in pixels.
    """
    scale = flow.new_tensor(flow.shape[:1:-1])[None, :, None, None] / 2  # normalised units -> pixels
    x, total = flow * scale, 0
    middle = x[..., 1:-1, 1:-1]
    for one, other in (
        (x[..., 1:-1, :-2], x[..., 1:-1, 2:]),
        (x[..., :-2, 1:-1], x[..., 2:, 1:-1]),
        (x[..., :-2, :-2], x[..., 2:, 2:]),
        (x[..., :-2, 2:], x[..., 2:, :-2]),
    ):
        total = total + ((one + other - 2 * middle).square() + 1e-6).pow(0.45).mean()
    return total / 4  # type: ignore[return-value]
