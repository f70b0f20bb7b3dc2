"""The network of the human parser: photo, joints and person mask in, logits of the 20 LIP labels out.

The paper takes the parse from another network [7]. This one is small because joints and person mask come as
extra channels, so that it can learn from under a thousand labelled photos.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.networks.config import ParserConfig


class Residual(nn.Module):
    """x + conv-BN-ReLU-conv-BN(x), then ReLU (He et al. 2016)."""

    def __init__(self, channels: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        """x (B,C,H,W) -> the same shape."""
        return F.relu(x + self.body(x))


def convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """3x3 convolution, batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Parser(nn.Module):
    """A U-Net of residual blocks over strides 2 to 32."""

    def __init__(self, config: ParserConfig = ParserConfig()):
        super().__init__()
        self.config = config
        widths = config.widths
        self.down = nn.ModuleList()
        previous = 3 + config.joints + 1
        for level, channels in enumerate(widths):
            first = convolution(previous, channels, stride=2)
            self.down.append(nn.Sequential(first, *[Residual(channels) for _ in range(2 if level else 1)]))
            previous = channels
        self.up = nn.ModuleList()
        for channels in reversed(widths[:-1]):
            self.up.append(nn.Sequential(convolution(previous + channels, channels), Residual(channels)))
            previous = channels
        self.head = nn.Conv2d(previous, config.labels, 3, padding=1)

    def features(self, image: Tensor, joints: Tensor, person: Tensor) -> list[Tensor]:
        """Encoder activations at strides 2, 4, 8, 16 and 32; also serve as a perceptual space."""
        x, features = torch.cat((image, joints, person), 1), []
        for block in self.down:
            x = block(x)
            features.append(x)
        return features

    def forward(self, image: Tensor, joints: Tensor, person: Tensor) -> Tensor:
        """image (B,3,H,W) in [-1, 1], joints (B,25,H,W) and person (B,1,H,W) in [0, 1] -> logits (B,20,H,W); H and W
        are multiples of 32.
        """
        *skips, x = self.features(image, joints, person)
        for block, skip in zip(self.up, reversed(skips)):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat((x, skip), 1))
        return F.interpolate(self.head(x).float(), scale_factor=2, mode="bilinear", align_corners=False)
