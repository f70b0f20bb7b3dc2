"""Segmentation generator G_S: (S_a, P, c) -> the segmentation of the person in the new garment (section 3.2, Fig. 10).

Attribute names are those of the released checkpoint `seg_final.pth`: they are a file format.
"""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton import labels
from vton.networks.config import NETWORK_SIZE, SegmentationConfig

NORM_END = 5  # layers of a ConvBlk up to its second instance normalisation
GAIN = 16.0  # of the attributes' scales and shifts, which begin at zero and would learn slowly without


def _block(inputs: int, outputs: int, *more: nn.Module) -> nn.Sequential:
    """ConvBlk(x): two series of 3x3 convolution, instance normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.InstanceNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.InstanceNorm2d(outputs),
        nn.ReLU(),
        *more,
    )


def _up(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.InstanceNorm2d(outputs),
        nn.ReLU(),
    )


class SegmentationGenerator(nn.Module):
    """The U-Net of Fig. 10.

    forward(x (B,21,H,W), attributes (B,A)) -> logits (B,13,H,W); H and W are multiples of 16. The channels of x: cloth
    mask 1, cloth times mask 3, S_a one-hot 13, P 3, noise 1. The release applies a sigmoid to the logits (`scores`).
    With `config.places_hem` the plane of the hem is one channel more (`vton.inputs.hem`); zeros, or no channel = not
    known.

    With `config.attributes` = A it takes attributes of the garment, zeros or None = not known: they scale and
    shift what each ConvBlk's last normalisation gives (conditional instance normalisation: Dumoulin, Shlens and Kudlur,
    ICLR 2017, eq. 5). Constant planes beside x would say nothing, because the first normalisation takes constants away.
    Without the option, as published, attributes are not read.
    """

    def __init__(self, config: SegmentationConfig = SegmentationConfig()):
        super().__init__()
        self.config = config
        w = config.width
        self.conv1 = _block(config.inputs + config.places_hem, w)
        self.conv2 = _block(w, 2 * w)
        self.conv3 = _block(2 * w, 4 * w)
        self.conv4 = _block(4 * w, 8 * w)
        self.conv5 = _block(8 * w, 16 * w)
        self.up6, self.conv6 = _up(16 * w, 8 * w), _block(16 * w, 8 * w)
        self.up7, self.conv7 = _up(8 * w, 4 * w), _block(8 * w, 4 * w)
        self.up8, self.conv8 = _up(4 * w, 2 * w), _block(4 * w, 2 * w)
        self.up9 = _up(2 * w, w)
        self.conv9 = _block(2 * w, w, nn.Conv2d(w, config.classes, 3, padding=1))
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(config.dropout)
        if config.attributes:
            widths = [w * factor for factor in (1, 2, 4, 8, 16, 8, 4, 2, 1)]
            self.told = nn.ModuleList(nn.Linear(config.attributes, 2 * width, bias=False) for width in widths)
            for linear in self.told:
                nn.init.zeros_(linear.weight)  # at first nothing is changed

    def forward(self, x: Tensor, attributes: Tensor | None = None) -> Tensor:
        """x (B,inputs,H,W), or one channel more; attributes (B,config.attributes or more, the first are read) or None
        -> logits (B,classes,H,W).
        """
        block = partial(self._block, attributes)
        if x.shape[1] == self.config.inputs and self.config.places_hem:
            x = F.pad(x, (0, 0, 0, 0, 0, 1))
        c1 = block(1, x)
        c2 = block(2, self.pool(c1))
        c3 = block(3, self.pool(c2))
        c4 = self.drop(block(4, self.pool(c3)))
        c5 = self.drop(block(5, self.pool(c4)))
        c6 = block(6, torch.cat((c4, self.up6(c5)), 1))
        c7 = block(7, torch.cat((c3, self.up7(c6)), 1))
        c8 = block(8, torch.cat((c2, self.up8(c7)), 1))
        return block(9, torch.cat((c1, self.up9(c8)), 1))

    def _block(self, attributes: Tensor | None, number: int, x: Tensor) -> Tensor:
        """ConvBlk `number`, 1 to 9, with the scales and shifts of the attributes where there are any."""
        layers: nn.Sequential = getattr(self, f"conv{number}")
        if attributes is None or not self.config.attributes:
            return layers(x)
        code = attributes[:, : self.config.attributes]
        scale, shift = (GAIN * self.told[number - 1](code))[..., None, None].chunk(2, 1)
        return layers[NORM_END:](layers[:NORM_END](x) * (1 + scale) + shift)

    def scores(self, x: Tensor, attributes: Tensor | None = None) -> Tensor:
        """The release's last activation, sigmoid of the logits, (B,13,H,W) in [0, 1]; its argmax is theirs."""
        return self(x, attributes).sigmoid()


def generator_input(
    cloth: Tensor, cloth_mask: Tensor, parse_agnostic: Tensor, pose: Tensor, noise: Tensor, hem: Tensor | None = None
) -> Tensor:
    """The 21 channels of G_S, or 22 with the plane of a hem.

    cloth (B,3,H,W) in [-1, 1]; cloth_mask (B,1,H,W) 0 or 1; parse_agnostic S_a (B,13,H,W) one-hot;
    pose P (B,3,H,W) in [-1, 1]; noise (B,1,H,W); hem (B,1,H,W) in [-1, 1].
    """
    x = (cloth_mask, cloth * cloth_mask, parse_agnostic, pose, noise)
    return torch.cat(x if hem is None else (*x, hem), 1)


def binary_noise(shape: tuple[int, ...], generator: torch.Generator | None = None, device=None) -> Tensor:
    """The noise channel of the release: ones with probability 0.159 (a standard normal above 1), else zeros."""
    return (torch.randn(shape, generator=generator) > 1).float().to(device)


def upscale(scores: Tensor, size: tuple[int, int]) -> Tensor:
    """Scores (B,13,h,w) to full size as in the release: bilinear, then a 15x15 Gaussian of sigma 3 with zero padding.

    The blur is given in pixels of a 1024-high picture; at other heights its sigma shrinks in proportion, so that the
    border between two classes is equally smooth.
    """
    from torchvision.transforms.functional import gaussian_blur  # training has to do without torchvision

    scores = F.interpolate(scores, size, mode="bilinear", align_corners=False)
    sigma = 3 * size[0] / 1024
    radius = max(1, round(7 * size[0] / 1024))
    padded = F.pad(scores, (radius,) * 4)
    return gaussian_blur(padded, [2 * radius + 1] * 2, [sigma] * 2)[..., radius:-radius, radius:-radius]


def likeliest(scores: Tensor) -> Tensor:
    """argmax over the classes: (B,C,H,W) -> (B,H,W) int64, the first of equal ones.

    Plane by plane: torch's own argmax over a dimension that does not lie densely in memory takes several times as long.
    """
    best, classes = scores[:, 0].clone(), torch.zeros_like(scores[:, 0], dtype=torch.int64)
    for number in range(1, scores.shape[1]):
        classes[scores[:, number] > best] = number
        torch.maximum(best, scores[:, number], out=best)
    return classes


@torch.inference_mode()
def segment(
    network: SegmentationGenerator,
    cloth: Tensor,
    cloth_mask: Tensor,
    parse_agnostic: Tensor,
    pose: Tensor,
    noise: Tensor | None = None,
    mirror_pose: Tensor | None = None,
    attributes: Tensor | None = None,
    hem: Tensor | None = None,
) -> Tensor:
    """Predicted segmentation at the size of the inputs, (B,H,W) int64 classes 0-12.

    The network works at 256x192 (section 4.1); inputs are resized bilinearly. noise: (B,1,256,192); None = zeros.
    mirror_pose: P of the mirror image, drawn from `pose.mirrored` joints. With it the answer is the mean of the
    probabilities for the picture and for its mirror image, which the paper does not do; without it, the release's.
    attributes: (B,A) of the garment, see `SegmentationGenerator`; None = not known.
    hem: (B,1,H,W) its plane, for networks that take one; None = not known.
    """

    def small(x):
        return F.interpolate(x, NETWORK_SIZE, mode="bilinear", align_corners=False)

    noise = torch.zeros(len(cloth), 1, *NETWORK_SIZE, device=cloth.device) if noise is None else noise
    # The product of cloth and mask is formed at full size, as in the release.
    cloth, cloth_mask, parse_agnostic = small(cloth * cloth_mask), small(cloth_mask), small(parse_agnostic)
    last = noise if hem is None else torch.cat((noise, small(hem)), 1)
    x = torch.cat((cloth_mask, cloth, parse_agnostic, small(pose), last), 1)
    if mirror_pose is None:
        return likeliest(upscale(network.scores(x, attributes), pose.shape[-2:]))
    sides = labels.FLIP_SEGMENTATION.tolist()  # left arm for right arm, and so on
    y = torch.cat(
        [v.flip(-1) for v in (cloth_mask, cloth, parse_agnostic[:, sides])] + [small(mirror_pose), last.flip(-1)], 1
    )
    attributes = attributes if attributes is None else torch.cat((attributes, attributes))
    answer, mirror = network(torch.cat((x, y)), attributes).softmax(1).chunk(2)
    return likeliest(upscale((answer + mirror.flip(-1)[:, sides]) / 2, pose.shape[-2:]))
