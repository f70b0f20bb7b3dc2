"""ALIAS normalisation, residual block and generator (section 3.4, Figs. 4, 5 and 12).

Attribute names are those of the released checkpoint `alias_final.pth`: they are a file format.

The modules compute what the paper says, one map after the other. On a CPU without gradients the same picture can be had
in less than half the time and memory: see `vton.networks.alias_inference`.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton import labels
from vton.networks.config import AliasConfig

EPS = 1e-5
NORMS = ("alias", "instance")
UPPER = labels.ALIAS_UPPER
GRAY = 128 / 127.5 - 1  # of what I_a hides


class SpectralConv2d(nn.Conv2d):
    """A convolution whose weight is divided by its largest singular value (Miyato et al. 2018).

    The weight is stored as `weight_orig`; `weight_u` and `weight_v` are the singular vectors, refined by one power
    iteration per forward pass while training. The names and the answers are those of `torch.nn.utils.spectral_norm`,
    whose modules can neither be copied once they have run nor tell the weight without running.
    """

    weight_u: Tensor
    weight_v: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, **options):
        super().__init__(inputs, outputs, kernel, **options)
        weight = self.weight.detach()
        del self.weight
        self.weight_orig = nn.Parameter(weight)
        v = F.normalize(torch.randn(weight[0].numel()), dim=0)
        u = F.normalize(weight.flatten(1) @ v, dim=0)
        self.register_buffer("weight_u", u)
        self.register_buffer("weight_v", F.normalize(weight.flatten(1).T @ u, dim=0))

    def spectral_weight(self) -> Tensor:
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
        """x (B,inputs,H,W) -> (B,outputs,H',W'), by the normalised weight."""
        return self._conv_forward(x, self.spectral_weight(), self.bias)


def standardise(h: Tensor, mask: Tensor | None) -> Tensor:
    """(h - mu) / sigma per sample and channel, apart inside and outside the mask (equations 5 to 7).

    h: (B,C,H,W). mask: (B,1,H,W), 1 = misaligned, 0 = the other region; None = one region, instance normalisation.
    Returns (B,C,H,W). An empty region contributes nothing. As in the release, eps is weighted by the region's share of
    the picture: sigma^2 + eps * (all pixels / region pixels).
    """
    if mask is None:
        # Of one picture the two are the same, and this one keeps the memory layout that convolutions like best.
        return F.batch_norm(h, None, None, training=True, eps=EPS) if len(h) == 1 else F.instance_norm(h, eps=EPS)
    pixels = h.shape[2] * h.shape[3]
    out = torch.zeros_like(h)
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

    The release computes normalised * (1 + gamma) + beta where equation 5 has plain gamma.
    """

    def __init__(self, channels: int, labels: int, hidden: int):
        super().__init__()
        self.noise_scale = nn.Parameter(torch.zeros(channels))
        self.conv_shared = nn.Sequential(nn.Conv2d(labels, hidden, 3, padding=1), nn.ReLU())
        self.conv_gamma = nn.Conv2d(hidden, channels, 3, padding=1)
        self.conv_beta = nn.Conv2d(hidden, channels, 3, padding=1)

    def forward(self, h: Tensor, segmentation: Tensor, mask: Tensor | None, noise: Tensor | None) -> Tensor:
        """h (B,C,H,W) normalised by region and modulated by the segmentation (B,labels,H,W); mask (B,1,H,W) or None."""
        if noise is not None:
            h = torch.addcmul(h, noise.to(h.dtype), self.noise_scale[:, None, None].to(h.dtype))
        normalised = standardise(h, mask)
        shared = self.conv_shared(segmentation)
        # The one of 1 + gamma is added to the bias, which saves a map.
        bias = 1 + cast(Tensor, self.conv_gamma.bias)
        scale = F.conv2d(shared, self.conv_gamma.weight, bias, padding=1)
        return torch.addcmul(self.conv_beta(shared), normalised, scale)


class AliasBlock(nn.Module):
    """ALIAS residual block (Fig. 4 b): two convolutions and a learned shortcut where the number of channels changes."""

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
        """x (B,inputs,H,W) -> (B,outputs,H,W); segmentation and mask take its size, noise: shape -> tensor."""
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

    With `config.composition` (not in the paper; CP-VTON+, PF-AFN) a fourth output is the share alpha of the warped
    cloth, see `compose`; `parts=True` then gives (I-hat, rendered (B,3,H,W), alpha (B,1,H,W), kept (B,1,H,W)). With
    `config.keeps`, too, a fifth is the share of I_a where I_a shows the photograph and no cloth goes.
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
        previous = 0
        for level, (name, outputs) in enumerate(zip(names, channels)):
            masked, injected = level < config.masked, config.injected if level else channels[0]
            setattr(self, f"conv_{level}", nn.Conv2d(config.inputs, injected, 3, padding=1))
            block = AliasBlock(previous + injected, outputs, config.classes + masked, config.hidden, masked)
            setattr(self, name, block)
            previous = outputs
        if config.keeps and not config.composition:
            raise ValueError("A generator that keeps parts of the photograph needs a composition.")
        self.conv_img = nn.Conv2d(previous, 3 + config.composition + config.keeps, 3, padding=1)

    def forward(
        self,
        x: Tensor,
        segmentation: Tensor,
        divided: Tensor,
        misalign: Tensor,
        norm: str = "alias",
        noise=None,
        parts: bool = False,
    ) -> Tensor | tuple[Tensor, ...]:
        """I-hat (B,3,H,W) in [-1, 1], or with `parts` what it is composed of, too; for the arguments see the class."""
        self.check(x, norm)
        out = self.outputs(x, segmentation, divided, misalign if norm == "alias" else None, noise)
        return self.finish(out, x, divided, parts)

    def finish(self, out: Tensor, x: Tensor, divided: Tensor, parts: bool = False) -> Tensor | tuple[Tensor, ...]:
        """I-hat, or with `parts` also what it is composed of, from the answer of `outputs`."""
        rendered = out[:, :3].tanh()
        alpha = photo_share = rendered.new_zeros(())
        picture = rendered
        if self.config.composition:
            alpha = out[:, 3:4].sigmoid() * divided[:, UPPER : UPPER + 1]
            picture = compose(rendered, x[:, -3:], alpha)
        if self.config.keeps:
            cloth = divided[:, UPPER : UPPER + 1] + divided[:, -1:]
            photo_share = out[:, 4:].sigmoid() * (1 - cloth) * visible_mask(x[:, :3])
            picture = compose(picture, x[:, :3], photo_share)
        return (picture, rendered, alpha, photo_share) if parts else picture

    def check(self, x: Tensor, norm: str) -> None:
        """Raises ValueError with one sentence for a normalisation or a picture size that does not exist."""
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, but is '{norm}'.")
        height, width = x.shape[2:]
        if height % self.stride or width % self.stride:
            raise ValueError(
                f"Height and width must be multiples of {self.stride}, but the picture is {height}x{width}."
            )

    def outputs(self, x: Tensor, segmentation: Tensor, divided: Tensor, misalign: Tensor | None, noise=None) -> Tensor:
        """The last convolution's answer, before any activation; misalign: None = one region everywhere."""
        height, width = x.shape[2:]
        h = None
        for level, name in enumerate(self.block_names):
            size = (height >> (self.config.levels - 1 - level), width >> (self.config.levels - 1 - level))
            feature = getattr(self, f"conv_{level}")(F.interpolate(x, size, mode="nearest"))
            h = feature if h is None else torch.cat((F.interpolate(h, scale_factor=2, mode="nearest"), feature), 1)
            block = getattr(self, name)
            h = block(h, divided if block.masked else segmentation, misalign, noise)
        return self.conv_img(F.leaky_relu(h, 0.2)).float()


def compose(rendered: Tensor, source: Tensor, share: Tensor) -> Tensor:
    """I = share * source + (1 - share) * rendered; of W(c, theta) that is the cloth's own detail under the generator's
    light.

    rendered, source (B,3,H,W) in [-1, 1]; share (B,1,H,W) in [0, 1].
    """
    return torch.lerp(rendered, source.to(rendered.dtype), share)


def visible_mask(agnostic: Tensor) -> Tensor:
    """(B,1,H,W), 1 where I_a (B,3,H,W) in [-1, 1] shows the photograph, 0 where it is gray."""
    return ((agnostic - GRAY).abs().amax(1, keepdim=True) > 1e-3).to(agnostic.dtype)


def misalignment(segmentation: Tensor, warped_mask: Tensor) -> tuple[Tensor, Tensor]:
    """M_misalign and S_div (equations 3 and 4).

    segmentation: S (B,7,H,W) one-hot, channel 2 = upper. warped_mask: W(M_c, theta) (B,1,H,W) in [0, 1].
    Returns misalign (B,1,H,W) = clamp(S_upper - warped_mask, 0); divided (B,8,H,W) = S with M_misalign taken from the
    upper channel and appended. M_align = S_upper - M_misalign.
    """
    misalign = (segmentation[:, UPPER : UPPER + 1] - warped_mask).clamp(min=0)  # eq. 3
    return misalign, divide(segmentation, misalign)


def divide(segmentation: Tensor, misalign: Tensor) -> Tensor:
    """S_div (B,8,H,W) (eq. 4): S (B,7,H,W) with M_misalign (B,1,H,W) taken from the upper garment and appended."""
    divided = torch.cat((segmentation, misalign), 1)
    divided[:, UPPER : UPPER + 1] -= misalign
    return divided


def gaussian_noise(seed: int, device=None):
    """Source of the Gaussian planes, on the CPU so that a seed means the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return lambda shape: torch.randn(shape, generator=generator).to(device)
