"""Multi-scale PatchGAN discriminators (section A.2; pix2pixHD, Wang et al. 2018)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.networks.alias import SpectralConv2d


class PatchDiscriminator(nn.Module):
    """One PatchGAN."""

    def __init__(self, inputs: int, channels: int = 64, layers: int = 3, normalise: bool = True):
        super().__init__()
        widths = [min(channels * 2**i, 8 * channels) for i in range(layers + 1)]
        blocks = [nn.Sequential(nn.Conv2d(inputs, widths[0], 4, 2, padding=2), nn.LeakyReLU(0.2))]
        for i in range(1, layers + 1):
            convolution = SpectralConv2d(widths[i - 1], widths[i], 4, stride=2 if i < layers else 1, padding=2)
            norm = [nn.InstanceNorm2d(widths[i])] if normalise else []
            blocks.append(nn.Sequential(convolution, *norm, nn.LeakyReLU(0.2)))
        blocks.append(nn.Sequential(nn.Conv2d(widths[-1], 1, 4, padding=2)))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> list[Tensor]:
        """x (B,C,H,W) -> activations of every layer, the last one the logits (B,1,h,w)."""
        activations = []
        for block in self.blocks:
            x = block(x)
            activations.append(x)
        return activations


class MultiScaleDiscriminator(nn.Module):
    """Two PatchGANs, the second one on the picture at half its size."""

    def __init__(self, inputs: int, channels: int = 64, layers: int = 3, normalise: bool = True):
        super().__init__()
        self.scales = nn.ModuleList(PatchDiscriminator(inputs, channels, layers, normalise) for _ in range(2))

    def forward(self, x: Tensor) -> list[list[Tensor]]:
        """x (B,C,H,W) -> one list of activations a scale, the finest first."""
        out = []
        for scale in self.scales:
            out.append(scale(x))
            x = F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False)
        return out


def logits(activations: list[list[Tensor]]) -> list[Tensor]:
    """The last activation of every scale."""
    return [scale[-1].float() for scale in activations]


def split(activations: list[list[Tensor]], n: int) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """Activations of a batch of n real and then n generated pictures, taken apart."""
    return [[a[:n] for a in scale] for scale in activations], [[a[n:] for a in scale] for scale in activations]


def with_detail(picture: Tensor) -> Tensor:
    """The picture (B,3,H,W) and, four times as strong, what is finer than a 5x5 mean: (B,6,H,W).

    Not in the paper. Blur shows in the second half at once, where a small critic would need thousands of updates to
    find the filter for it.
    """
    return torch.cat((picture, 4 * (picture - F.avg_pool2d(picture, 5, 1, 2, count_include_pad=False))), 1)


def gradient_penalty(critic: nn.Module, x: Tensor) -> Tensor:
    """R1: squared gradient of the logits at real pictures x (B,C,H,W), summed over a picture, mean over the batch.

    Mescheder, Geiger and Nowozin 2018. The mean of each scale's logits stands for the single answer of their
    discriminator, so the penalty does not depend on how many patches a picture has.
    """
    x = x.detach().float().requires_grad_(True)
    answer = sum(scale.mean((1, 2, 3)).sum() for scale in logits(critic(x)))
    (gradient,) = torch.autograd.grad(answer, x, create_graph=True)
    return gradient.square().sum((1, 2, 3)).mean()
