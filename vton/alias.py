"""ALIAS normalisation, residual block and generator (section 3.4, Figs. 4, 5 and 12).

Attribute names are those of the released checkpoint `alias_final.pth`: they are a file format.

The modules compute what the paper says, one map after the other; that is how they train. On a CPU without gradients the
generator takes another way to the same picture (`generate`, below), which needs less than half the time and memory.
"""
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.config import AliasConfig

EPS = 1e-5
NORMS = ("alias", "instance")


class SpectralConv2d(nn.Conv2d):
    """A convolution whose weight is divided by its largest singular value (Miyato et al. 2018).

    The weight is stored as `weight_orig`; `weight_u` and `weight_v` are the singular vectors, refined by one power
    iteration per forward pass while training.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, **options):
        super().__init__(inputs, outputs, kernel, **options)
        weight = self.weight.detach()
        del self.weight
        self.weight_orig = nn.Parameter(weight)
        v = F.normalize(torch.randn(weight[0].numel()), dim=0)
        u = F.normalize(weight.flatten(1) @ v, dim=0)
        self.register_buffer("weight_u", u)
        self.register_buffer("weight_v", F.normalize(weight.flatten(1).T @ u, dim=0))

    def normalised_weight(self) -> Tensor:
        """weight_orig / sigma, sigma = u^T W v."""
        with torch.autocast(self.weight_orig.device.type, enabled=False):
            matrix = self.weight_orig.flatten(1)
            if self.training:
                with torch.no_grad():
                    self.weight_v.copy_(F.normalize(matrix.T @ self.weight_u, dim=0))
                    self.weight_u.copy_(F.normalize(matrix @ self.weight_v, dim=0))
            # Clones, because the next forward pass refines the vectors in place before this one's backward pass.
            return self.weight_orig / (self.weight_u.clone() @ matrix @ self.weight_v.clone())

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.normalised_weight(), self.bias)


def standardise(h: Tensor, mask: Tensor | None) -> Tensor:
    """(h - mu) / sigma per sample and channel, apart inside and outside the mask (equations 5 to 7).

    Args:
        h: (B,C,H,W). mask: (B,1,H,W), 1 = misaligned, 0 = the other region; None = one region, instance normalisation.

    Returns:
        (B,C,H,W). An empty region contributes nothing. As in the release, eps is weighted by the region's share of
        the picture: sigma^2 + eps * (all pixels / region pixels).
    """
    if mask is None:
        return F.instance_norm(h, eps=EPS)
    pixels = h.shape[2] * h.shape[3]
    out = 0
    for region in (mask, 1 - mask):
        region = region.to(h.dtype)
        size = region.sum((2, 3), keepdim=True, dtype=torch.float32).clamp(min=1)
        mu = (h * region).sum((2, 3), keepdim=True, dtype=torch.float32) / size  # eq. 6
        centred = (h - mu.to(h.dtype)) * region
        variance = centred.square().sum((2, 3), keepdim=True, dtype=torch.float32) / size  # eq. 7, squared
        out = out + centred * (variance + EPS * pixels / size).rsqrt().to(h.dtype)
    return out


class AliasNorm(nn.Module):
    """ALIAS normalisation (Fig. 5): standardise by region, then modulate by the segmentation (equation 5).

    forward(h (B,C,H,W), segmentation (B,7 or 8,H,W), mask (B,1,H,W) or None, noise (B,1,H,W) or None) -> (B,C,H,W).
    The release computes normalised * (1 + gamma) + beta where equation 5 has plain gamma.
    """

    def __init__(self, channels: int, labels: int, hidden: int):
        super().__init__()
        self.noise_scale = nn.Parameter(torch.zeros(channels))
        self.conv_shared = nn.Sequential(nn.Conv2d(labels, hidden, 3, padding=1), nn.ReLU())
        self.conv_gamma = nn.Conv2d(hidden, channels, 3, padding=1)
        self.conv_beta = nn.Conv2d(hidden, channels, 3, padding=1)

    def forward(self, h: Tensor, segmentation: Tensor, mask: Tensor | None, noise: Tensor | None) -> Tensor:
        if noise is not None:
            h = h + (noise * self.noise_scale[:, None, None]).to(h.dtype)
        normalised = standardise(h, mask)
        shared = self.conv_shared(segmentation)
        return normalised * (1 + self.conv_gamma(shared)) + self.conv_beta(shared)


class AliasBlock(nn.Module):
    """ALIAS residual block (Fig. 4 b): two convolutions and a learned shortcut where the width changes."""

    def __init__(self, inputs: int, outputs: int, labels: int, hidden: int, masked: bool):
        super().__init__()
        self.masked = masked
        middle = min(inputs, outputs)
        self.conv_0 = SpectralConv2d(inputs, middle, 3, padding=1)
        self.conv_1 = SpectralConv2d(middle, outputs, 3, padding=1)
        self.norm_0, self.norm_1 = AliasNorm(inputs, labels, hidden), AliasNorm(middle, labels, hidden)
        self.learned_shortcut = inputs != outputs
        if self.learned_shortcut:
            self.conv_s = SpectralConv2d(inputs, outputs, 1, bias=False)
            self.norm_s = AliasNorm(inputs, labels, hidden)

    def forward(self, x: Tensor, segmentation: Tensor, mask: Tensor | None, noise) -> Tensor:
        size = x.shape[2:]
        segmentation = F.interpolate(segmentation, size, mode="nearest")
        mask = F.interpolate(mask, size, mode="nearest") if self.masked and mask is not None else None

        def draw():
            return None if noise is None else noise((len(x), 1, *size))
        shortcut = self.conv_s(self.norm_s(x, segmentation, mask, draw())) if self.learned_shortcut else x
        dx = self.conv_0(F.leaky_relu(self.norm_0(x, segmentation, mask, draw()), 0.2))
        dx = self.conv_1(F.leaky_relu(self.norm_1(dx, segmentation, mask, draw()), 0.2))
        return shortcut + dx


class AliasGenerator(nn.Module):
    """ALIAS generator (Fig. 12): (I_a, P, W(c, theta)), guided by S-hat and M_misalign -> I-hat.

    forward(x (B,9,H,W) in [-1, 1], segmentation S (B,7,H,W), divided S_div (B,8,H,W), misalign (B,1,H,W)) -> (B,3,H,W)
    in [-1, 1]; H and W are multiples of 2**(levels - 1). `norm="instance"` standardises every block over the whole
    picture: the ablation VITON-HD* of Table 1, on the same weights. `noise(shape)` gives the Gaussian planes; None = no
    noise.
    """

    def __init__(self, config: AliasConfig = AliasConfig()):
        super().__init__()
        self.config = config
        self.stride = 2 ** (config.levels - 1)
        channels = config.channels()
        if len(channels) != config.levels or config.levels < 5:
            raise ValueError(f"The generator needs at least 5 levels, but the config has {config.levels}.")
        names = ["head_0", "G_middle_0", "G_middle_1"] + [f"up_{i}" for i in range(config.levels - 3)]
        self.block_names = names
        previous = channels[0]
        for level, (name, width) in enumerate(zip(names, channels)):
            setattr(self, f"conv_{level}",
                    nn.Conv2d(config.inputs, channels[0] if level == 0 else config.injected, 3, padding=1))
            masked = level < config.masked
            setattr(self, name, AliasBlock(previous + (config.injected if level else 0), width,
                                           config.classes + (1 if masked else 0), config.hidden, masked))
            previous = width
        self.conv_img = nn.Conv2d(previous, 3, 3, padding=1)

    def forward(self, x: Tensor, segmentation: Tensor, divided: Tensor, misalign: Tensor, norm: str = "alias",
                noise=None) -> Tensor:
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, but is '{norm}'.")
        height, width = x.shape[2:]
        if height % self.stride or width % self.stride:
            raise ValueError(f"Height and width must be multiples of {self.stride}, but the picture is "
                             f"{height}x{width}.")
        plain = self.training or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
        if x.device.type == "cpu" and not plain:
            return generate(self, x, segmentation, divided, misalign if norm == "alias" else None, noise)
        h = None
        for level, name in enumerate(self.block_names):
            size = (height >> (self.config.levels - 1 - level), width >> (self.config.levels - 1 - level))
            feature = getattr(self, f"conv_{level}")(F.interpolate(x, size, mode="nearest"))
            h = feature if h is None else torch.cat((F.interpolate(h, scale_factor=2, mode="nearest"), feature), 1)
            block = getattr(self, name)
            h = block(h, divided if block.masked else segmentation, misalign if norm == "alias" else None, noise)
        return self.conv_img(F.leaky_relu(h, 0.2)).float().tanh()


def misalignment(segmentation: Tensor, warped_mask: Tensor) -> tuple[Tensor, Tensor]:
    """M_misalign and S_div (equations 3 and 4).

    Args:
        segmentation: S (B,7,H,W) one-hot, channel 2 = upper. warped_mask: W(M_c, theta) (B,1,H,W) in [0, 1].

    Returns:
        misalign (B,1,H,W) = clamp(S_upper - warped_mask, 0); divided (B,8,H,W) = S with M_misalign taken from the
        upper channel and appended. M_align = S_upper - M_misalign.
    """
    misalign = (segmentation[:, 2:3] - warped_mask).clamp(min=0)
    divided = torch.cat((segmentation, misalign), 1)
    divided[:, 2:3] -= misalign
    return misalign, divided


def gaussian_noise(seed: int, device=None):
    """Source of the Gaussian planes, on the CPU so that a seed means the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return lambda shape: torch.randn(shape, generator=generator).to(device)


# -- inference -----------------------------------------------------------------------------------------------------
#
# Four fifths of the multiply-adds of the generator are convolutions on the label map. gamma and beta of a pixel depend
# on the labels of its 5x5 neighbourhood alone (two 3x3 convolutions), and nearly all neighbourhoods of a picture are
# equal: one label everywhere, or the same piece of a border. So gamma and beta are computed once for each distinct
# neighbourhood, and together with mean and deviation they become one scale and one shift for each. No map of them is
# ever stored: rows of the picture are modulated and convolved band by band. One picture's activations are (H,W,C) here.

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
    return torch.cat(rows).chunk(2, 1)


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


def modulations(norms: list[AliasNorm], planes: list[Tensor | None], take, size: tuple[int, int], mask: Tensor | None,
                around: Neighbourhoods) -> list[Modulation]:
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


def generate_block(block: AliasBlock, take, size: tuple[int, int], around: Neighbourhoods, mask: Tensor | None,
                   planes: list[Tensor | None]) -> Tensor:
    """One ALIAS residual block on one picture; its input is asked for in rows: take(first, last) -> (rows, W, C)."""
    height, width = size
    norms = [block.norm_s, block.norm_0] if block.learned_shortcut else [block.norm_0]
    *shortcut, modulate = modulations(norms, planes[:-1], take, size, mask, around)
    weight = block.conv_0.normalised_weight()
    middle = weight.new_empty(height, width, weight.shape[0])
    out = weight.new_empty(height, width, block.conv_1.out_channels)
    for (first, last), (start, end), zeros in with_neighbours(height, width * weight.shape[1]):
        h = take(start, end)
        inner = h[first - start:last - start]
        if shortcut:  # a 1x1 convolution is a matrix product
            inner = shortcut[0](inner, first, last) @ block.conv_s.normalised_weight().flatten(1).T
        out[first:last] = inner
        h = F.leaky_relu_(modulate(h, start, end), 0.2)
        middle[first:last] = convolve(h, weight, block.conv_0.bias, *zeros)
    modulate, = modulations([block.norm_1], planes[-1:], lambda first, last: middle[first:last], size, mask, around)
    weight = block.conv_1.normalised_weight()
    for (first, last), (start, end), zeros in with_neighbours(height, width * weight.shape[1]):
        h = F.leaky_relu_(modulate(middle[start:end], start, end), 0.2)
        out[first:last] += convolve(h, weight, block.conv_1.bias, *zeros)
    return out


def generate(network: AliasGenerator, x: Tensor, segmentation: Tensor, divided: Tensor, misalign: Tensor | None,
             noise) -> Tensor:
    """The generator's answer without gradients, in less time and memory; arguments and result as in its forward pass.

    misalign: None = one region everywhere (VITON-HD*).
    """
    batch, (height, width), levels = len(x), x.shape[2:], network.config.levels
    pictures: list[Tensor | None] = [None] * batch
    for level, name in enumerate(network.block_names):
        block, enter = getattr(network, name), getattr(network, f"conv_{level}")
        size = (height >> (levels - 1 - level), width >> (levels - 1 - level))
        # In the order in which the modules draw them: shortcut, first and second normalisation.
        planes = [noise and noise((batch, 1, *size)) for _ in range(3 if block.learned_shortcut else 2)]
        for i in range(batch):
            def small(maps):
                return F.interpolate(maps[i:i + 1], size, mode="nearest")
            maps = small(divided if block.masked else segmentation)[0]
            mask = small(misalign)[0] if block.masked and misalign is not None else None
            feature = enter(small(x))[0].permute(1, 2, 0).contiguous()
            pictures[i] = generate_block(block, _rows(pictures[i], feature), size, neighbourhoods(maps, mask), mask,
                                         [None if plane is None else plane[i, 0] for plane in planes])
    out = x.new_empty(batch, 3, height, width)
    for i, h in enumerate(pictures):
        for (first, last), (start, end), zeros in with_neighbours(height, width * h.shape[2]):
            rows = convolve(F.leaky_relu(h[start:end], 0.2), network.conv_img.weight, network.conv_img.bias, *zeros)
            out[i, :, first:last] = rows.permute(2, 0, 1)
    return out.tanh_()


def _rows(h: Tensor | None, feature: Tensor):
    """take(first, last): rows of a block's input, the last block's answer at twice its size beside the new features."""
    def take(first, last):
        if h is None:
            return feature[first:last]
        rows = feature.new_empty(last - first, feature.shape[1], h.shape[2] + feature.shape[2])
        doubled = h[torch.arange(first, last, device=h.device) // 2]
        rows.unflatten(1, (-1, 2))[..., :h.shape[2]] = doubled[:, :, None]
        rows[..., h.shape[2]:] = feature[first:last]
        return rows
    return take
