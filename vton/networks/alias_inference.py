"""The ALIAS generator without gradients on a CPU: the same picture in less than half the time and memory.

Four fifths of the multiply-adds of the generator are convolutions on the label map. gamma and beta of a pixel depend
on the labels of its 5x5 neighbourhood alone (two 3x3 convolutions), and nearly all neighbourhoods of a picture are
equal: one label everywhere, or the same piece of a border. So gamma and beta are computed once for each distinct
neighbourhood, and together with mean and deviation they become one scale and one shift for each. No map of them is
ever stored: rows of the picture are modulated and convolved band by band. One picture's activations are (H,W,C) here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vton.networks.alias import EPS, AliasBlock, AliasGenerator, AliasNorm

BAND = 2**21  # numbers in one band of rows: small enough for the cache, large enough for the convolutions


@dataclass
class Neighbourhoods:
    """The distinct 5x5 neighbourhoods of a label map.

    index (H, W): which one lies around each pixel. kinds (P,5,5): the kinds of its pixels. values (kinds, K + 1): what
    each kind has in the segmentation's channels and, last, in M_misalign; the last kind is a pixel outside the picture,
    all zero.
    """

    index: Tensor
    kinds: Tensor
    values: Tensor

    @property
    def mask(self) -> Tensor:
        """(P,) M_misalign at the pixel in the middle."""
        return self.values[self.kinds[:, 2, 2], -1]


def neighbourhoods(segmentation: Tensor, mask: Tensor | None) -> Neighbourhoods:
    """Finds the distinct neighbourhoods of a segmentation (K,H,W); pixels with another `mask` (1,H,W) are different.

    One-hot pixels of one label are equal; a pixel with anything else (a soft border) is a kind of its own.
    """
    k, height, width = segmentation.shape
    mask = segmentation.new_zeros(1, height, width) if mask is None else mask.to(segmentation.dtype)
    one_hot = (segmentation.amax(0) == 1) & (segmentation.abs().sum(0) == 1) & ((mask[0] == 0) | (mask[0] == 1))
    kind = 2 * segmentation.argmax(0) + (mask[0] == 1)
    soft = int((~one_hot).sum())
    kind[~one_hot] = 2 * k + torch.arange(soft, device=kind.device)
    outside = 2 * k + soft
    # The values of each kind: the channels of the segmentation, then the mask.
    hard = torch.cat((torch.eye(k).repeat_interleave(2, 0), torch.tensor([[0.0], [1.0]]).repeat(k, 1)), 1)
    hard = hard.to(segmentation)
    values = torch.cat((hard, torch.cat((segmentation, mask))[:, ~one_hot].T, hard.new_zeros(1, k + 1)))

    padded = F.pad(kind, (2, 2, 2, 2), value=outside)
    windows = padded.unfold(0, 5, 1).unfold(1, 5, 1)  # (H, W, 5, 5)
    largest, smallest = (F.max_pool2d(sign * padded[None, None].double(), 5, stride=1)[0, 0] for sign in (1, -1))
    border = largest != -smallest  # more than one kind, or the picture's edge
    distinct, which = torch.unique(windows[border].flatten(1), dim=0, return_inverse=True)
    index = kind
    index[border] = outside + which
    uniform = torch.arange(outside, device=kind.device)[:, None].expand(-1, 25)
    return Neighbourhoods(index, torch.cat((uniform, distinct)).unflatten(1, (5, 5)), values)


def gamma_and_beta(norm: AliasNorm, around: Neighbourhoods, chunk: int = 4096) -> tuple[Tensor, Tensor]:
    """gamma and beta (P, C) of each distinct neighbourhood."""
    weight = torch.cat((norm.conv_gamma.weight, norm.conv_beta.weight)).flatten(1).T
    bias, rows = torch.cat((norm.conv_gamma.bias, norm.conv_beta.bias)), []
    for kinds in around.kinds.split(chunk):
        labels = around.values[kinds][..., :-1].permute(0, 3, 1, 2)
        # Outside the picture the second convolution sees zeros.
        inside = kinds[:, None, 1:4, 1:4] != len(around.values) - 1
        shared = F.relu(F.conv2d(labels, norm.conv_shared[0].weight, norm.conv_shared[0].bias)) * inside
        rows.append(torch.addmm(bias, shared.flatten(1), weight))
    gamma, beta = torch.cat(rows).chunk(2, 1)
    return gamma, beta


def bands(height: int, numbers: int) -> list[tuple[int, int]]:
    """First row and last row + 1 of bands of rows with `numbers` numbers each."""
    rows = max(8, BAND // numbers)
    return [(start, min(start + rows, height)) for start in range(0, height, rows)]


@dataclass
class Modulation:
    """One ALIAS normalisation of one picture: a scale and a shift (P, C) for each distinct neighbourhood.

    plane: noise (H,W) or None, with its strength per channel in `noise_scale`.
    """

    index: Tensor
    scale: Tensor
    shift: Tensor
    plane: Tensor | None
    noise_scale: Tensor

    def __call__(self, h: Tensor, first: int, last: int) -> Tensor:
        """Rows `first` to `last` of the activations (rows, W, C), normalised and modulated (equation 5)."""
        index = self.index[first:last].flatten()
        h = with_noise(h, self.plane, self.noise_scale, first, last)
        return self.shift.index_select(0, index).view_as(h).addcmul_(h, self.scale.index_select(0, index).view_as(h))


def with_noise(h: Tensor, plane: Tensor | None, noise_scale: Tensor, first: int, last: int) -> Tensor:
    """Rows of the activations with the learned noise."""
    return h if plane is None else torch.addcmul(h, plane[first:last, :, None], noise_scale)


def modulations(
    norms: list[AliasNorm],
    planes: list[Tensor | None],
    take,
    size: tuple[int, int],
    mask: Tensor | None,
    around: Neighbourhoods,
) -> list[Modulation]:
    """Mean and deviation of each region (equations 6 and 7, as in `standardise`) folded into gamma and beta.

    The norms look at the same activations, take(first, last) -> rows (rows, W, C), each with its own noise. mask:
    (1,H,W), or None for one region.
    """
    (height, width), channels = size, len(norms[0].noise_scale)
    regions = [None] if mask is None else [mask[0, :, :, None], 1 - mask[0, :, :, None]]
    shares = [1.0] if mask is None else [around.mask[:, None], 1 - around.mask[:, None]]
    pixels = torch.tensor([[height * width if r is None else max(1.0, float(r.sum()))] for r in regions])
    mean, variance = torch.zeros(2, len(norms), len(regions), channels, dtype=torch.float64)
    for total in (mean, variance):
        for first, last in bands(height, width * channels):
            rows = take(first, last)
            for n, (norm, plane) in enumerate(zip(norms, planes)):
                h = with_noise(rows, plane, norm.noise_scale, first, last)
                for i, region in enumerate(regions):
                    x = h if total is mean else h - mean[n, i].to(h.dtype)
                    x = x if region is None else x * region[first:last]
                    total[n, i] += (x if total is mean else x.square()).sum((0, 1))
        total /= pixels
    deviation = (variance + EPS * height * width / pixels).rsqrt()
    found = []
    for n, (norm, plane) in enumerate(zip(norms, planes)):
        gamma, beta = gamma_and_beta(norm, around)
        scale = sum(share * deviation[n, i].to(gamma.dtype) for i, share in enumerate(shares))
        shift = -sum(share * (deviation[n, i] * mean[n, i]).to(gamma.dtype) for i, share in enumerate(shares))
        found.append(Modulation(around.index, scale * (1 + gamma), shift * (1 + gamma) + beta, plane, norm.noise_scale))
    return found


def convolve(rows: Tensor, weight: Tensor, bias: Tensor, above: int, below: int) -> Tensor:
    """3x3 convolution of rows (n, W, C) with `above` and `below` rows of zeros added; zero padding at the sides."""
    x = F.pad(rows, (0, 0, 0, 0, above, below)) if above or below else rows
    return F.conv2d(x.permute(2, 0, 1)[None], weight, bias, padding=(0, 1))[0].permute(1, 2, 0)


def with_neighbours(height: int, numbers: int):
    """Bands with the rows that a 3x3 convolution also needs: (first, last), (first, last) with them, rows of zeros."""
    for first, last in bands(height, numbers):
        start, end = max(first - 1, 0), min(last + 1, height)
        yield (first, last), (start, end), (int(start == first), int(end == last))


def generate_block(
    block: AliasBlock,
    take,
    size: tuple[int, int],
    around: Neighbourhoods,
    mask: Tensor | None,
    planes: list[Tensor | None],
) -> Tensor:
    """One ALIAS residual block on one picture; its input is asked for in rows: take(first, last) -> (rows, W, C)."""
    height, width = size
    norms = [block.norm_s, block.norm_0] if block.learned_shortcut else [block.norm_0]
    *shortcut, modulate = modulations(norms, planes[:-1], take, size, mask, around)
    weight = block.conv_0.spectral_weight()
    middle = weight.new_empty(height, width, weight.shape[0])
    out = weight.new_empty(height, width, block.conv_1.out_channels)
    for (first, last), (start, end), zeros in with_neighbours(height, width * weight.shape[1]):
        h = take(start, end)
        inner = h[first - start : last - start]
        if shortcut:  # a 1x1 convolution is a matrix product
            inner = shortcut[0](inner, first, last) @ block.conv_s.spectral_weight().flatten(1).T
        out[first:last] = inner
        h = F.leaky_relu_(modulate(h, start, end), 0.2)
        middle[first:last] = convolve(h, weight, block.conv_0.bias, *zeros)
    (modulate,) = modulations([block.norm_1], planes[-1:], lambda first, last: middle[first:last], size, mask, around)
    weight = block.conv_1.spectral_weight()
    for (first, last), (start, end), zeros in with_neighbours(height, width * weight.shape[1]):
        h = F.leaky_relu_(modulate(middle[start:end], start, end), 0.2)
        out[first:last] += convolve(h, weight, block.conv_1.bias, *zeros)
    return out


def outputs(
    network: AliasGenerator, x: Tensor, segmentation: Tensor, divided: Tensor, misalign: Tensor | None, noise
) -> Tensor:
    """The generator's `outputs` in less time and memory; misalign: None = one region everywhere (VITON-HD*)."""
    batch, (height, width), levels = len(x), x.shape[2:], network.config.levels
    pictures: list[Any] = [None] * batch  # of each picture the last block's answer, (H,W,C)
    for level, name in enumerate(network.block_names):
        block, enter = getattr(network, name), getattr(network, f"conv_{level}")
        size = (height >> (levels - 1 - level), width >> (levels - 1 - level))
        # In the order in which the modules draw them: shortcut, first and second normalisation.
        planes = [noise and noise((batch, 1, *size)) for _ in range(3 if block.learned_shortcut else 2)]
        for i in range(batch):

            def small(maps, i=i, size=size):
                return F.interpolate(maps[i : i + 1], size, mode="nearest")

            maps = small(divided if block.masked else segmentation)[0]
            mask = small(misalign)[0] if block.masked and misalign is not None else None
            feature = enter(small(x))[0].permute(1, 2, 0).contiguous()
            pictures[i] = generate_block(
                block,
                _rows(pictures[i], feature),
                size,
                neighbourhoods(maps, mask),
                mask,
                [None if plane is None else plane[i, 0] for plane in planes],
            )
    out = x.new_empty(batch, network.conv_img.out_channels, height, width)
    for i, h in enumerate(pictures):
        for (first, last), (start, end), zeros in with_neighbours(height, width * h.shape[2]):
            rows = convolve(F.leaky_relu(h[start:end], 0.2), network.conv_img.weight, network.conv_img.bias, *zeros)
            out[i, :, first:last] = rows.permute(2, 0, 1)
    return out


def _rows(h: Tensor | None, feature: Tensor):
    """take(first, last): rows of a block's input, the last block's answer at twice its size beside the new features."""

    def take(first, last):
        if h is None:
            return feature[first:last]
        rows = feature.new_empty(last - first, feature.shape[1], h.shape[2] + feature.shape[2])
        doubled = h[torch.arange(first, last, device=h.device) // 2]
        rows.unflatten(1, (-1, 2))[..., : h.shape[2]] = doubled[:, :, None]
        rows[..., h.shape[2] :] = feature[first:last]
        return rows

    return take


@torch.no_grad()
def forward(
    network: AliasGenerator,
    x: Tensor,
    segmentation: Tensor,
    divided: Tensor,
    misalign: Tensor,
    norm: str = "alias",
    noise=None,
    parts: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """What `network(...)` answers, on the CPU, in float32 and without gradients; arguments as there."""
    network.check(x, norm)
    out = outputs(network, x, segmentation, divided, misalign if norm == "alias" else None, noise)
    return network.finish(out, x, divided, parts)
