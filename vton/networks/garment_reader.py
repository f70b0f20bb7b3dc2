"""A small network that reads the picture of a garment: its mask, and what an eye sees of it.

Not part of the paper, whose data set comes with cut-out garments. A residual encoder (He et al. 2016) with a light
pyramid for the mask (Lin et al., Feature Pyramid Networks, CVPR 2017) and one linear layer for all attributes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.networks.parser import Residual, convolution

NOT_UPPER = ("dress", "hat", "pants", "shoes", "shorts", "skirt", "person", "nothing")
UPPER_KINDS = ("tee", "shirt", "sweater", "jacket", "blouse", "vest", "polo", "coat", "hoodie", "top")
# Values of each attribute as in attributes.tsv; groups of them are what try-on distinguishes.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "sleeves": {"none": ("none", "cap"), "short": ("short", "elbow"), "long": ("three-quarter", "long")},
    "neckline": {
        "round": ("round", "scoop", "boat", "square", "strap"),
        "v": ("v",),
        "collar": ("collar", "lapel"),
        "high": ("high", "hood"),
    },
    "front": {"closed": ("closed",), "buttoned": ("buttoned",), "open": ("open",)},
    "view": {"flat": ("flat",), "hanger": ("hanger",), "worn": ("worn",)},
    "kind": {"upper": UPPER_KINDS, "not upper": NOT_UPPER},
}
VALUES = {name: tuple(v for values in groups.values() for v in values) for name, groups in GROUPS.items()}
ABSENT_LOGIT = -20.0  # logit of what is surely not there
NECK = 0.55  # side of the window around the neck, of the garment's mean side
CELLS = (5, 4)  # grid over the picture on which the attributes are read


@dataclass(frozen=True)
class GarmentReaderConfig:
    """Sizes of the reader."""

    widths: tuple[int, ...] = (20, 40, 80, 160, 256)  # channels at strides 2, 4, 8, 16, 32
    blocks: tuple[int, ...] = (0, 1, 2, 2, 2)  # residual blocks at each stride
    pyramid: tuple[int, ...] = (12, 24, 48, 64, 64)  # channels of the mask's pyramid at each stride
    placed: int = 32  # channels that keep their place on the grid of CELLS
    size: tuple[int, int] = (160, 128)  # (H, W) of the pictures that it learned from
    opening: bool = False  # whether it also tells the neck opening from the cloth around it
    neck: bool = False  # whether it has learned to look at the neck alone, larger


class GarmentReader(nn.Module):
    """Mask, attributes and neck opening of a garment's picture."""

    def __init__(self, config: GarmentReaderConfig = GarmentReaderConfig()):
        super().__init__()
        self.config = config
        self.down, self.side, self.smooth = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        previous = 4
        for channels, blocks, pyramid in zip(config.widths, config.blocks, config.pyramid):
            first = convolution(previous, channels, stride=2)
            self.down.append(nn.Sequential(first, *[Residual(channels) for _ in range(blocks)]))
            self.side.append(nn.Conv2d(channels, pyramid, 1))
            previous = channels
        for lower, upper in zip(config.pyramid[1:], config.pyramid):
            self.smooth.append(convolution(lower + upper, upper))
        self.mask = nn.Conv2d(config.pyramid[0], 1, 3, padding=1)
        self.opening = nn.Conv2d(config.pyramid[0], 1, 3, padding=1) if config.opening else None
        self.place = nn.Sequential(
            nn.Conv2d(previous, config.placed, 1, bias=False), nn.BatchNorm2d(config.placed), nn.ReLU()
        )
        self.dropout = nn.Dropout(0.3)
        cells = config.placed * CELLS[0] * CELLS[1]
        self.attributes = nn.Linear(previous + cells, sum(len(values) for values in VALUES.values()))

    def forward(self, image: Tensor, prior: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
        """image (B,3,H,W) in [-1, 1], prior (B,1,H,W) in [0, 1] -> mask logits (B,1,H,W), logits of each attribute
        `name` (B, len(VALUES[name])), opening logits (B,1,H,W); H and W are multiples of 32.

        prior: the garment's mask where it is known, for a second look at the cut-out garment, otherwise zeros. The
        opening is what lies above the front neckline, the inside of the back or a hood, which a neck hides when worn;
        weights that do not tell it find none.
        """
        x, features = torch.cat((image, prior), 1), []
        for block in self.down:
            x = block(x)
            features.append(x)
        placed = F.adaptive_avg_pool2d(self.place(x), CELLS).flatten(1)
        logits = self.attributes(self.dropout(torch.cat((x.mean((2, 3)), placed), 1))).float()
        split = logits.split([len(values) for values in VALUES.values()], 1)
        y = self.side[-1](x)
        for feature, side, smooth in zip(features[-2::-1], self.side[-2::-1], reversed(self.smooth)):
            y = F.interpolate(y, scale_factor=2, mode="nearest")
            y = smooth(torch.cat((y, side(feature)), 1))
        mask = F.interpolate(self.mask(y).float(), scale_factor=2, mode="bilinear", align_corners=False)
        opening = torch.full_like(mask, ABSENT_LOGIT)
        if self.opening is not None:
            opening = F.interpolate(self.opening(y).float(), scale_factor=2, mode="bilinear", align_corners=False)
        return mask, dict(zip(VALUES, split)), opening


def group_matrix(name: str) -> Tensor:
    """(groups, values) float, 1 where a value of attribute `name` belongs to a group."""
    groups = GROUPS[name].values()
    return torch.tensor([[float(value in group) for value in VALUES[name]] for group in groups])


def partial_cross_entropy(logits: Tensor, candidates: Tensor) -> Tensor:
    """(B,), -log of the probability of a set of labels: an example may leave several open; with all open it costs 0.

    logits (B, C); candidates (B, C), 1 for each label that may be true.
    """
    inside = logits.masked_fill(candidates < 0.5, float("-inf"))
    return torch.logsumexp(logits, 1) - torch.logsumexp(inside, 1)
