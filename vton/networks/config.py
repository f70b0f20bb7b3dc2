"""Sizes of the try-on networks. `paper` has the published widths, `lite` the same code made narrow."""

from __future__ import annotations

from dataclasses import dataclass, field

NETWORK_SIZE = (256, 192)  # (H, W) at which the segmentation generator and the matching module work (section 4.1)


@dataclass(frozen=True)
class ParserConfig:
    """The human parser (not part of the paper, which takes a ready parse)."""

    labels: int = 20  # LIP
    joints: int = 25  # BODY_25
    widths: tuple[int, ...] = (32, 64, 128, 192, 256)  # channels at strides 2, 4, 8, 16, 32
    size: tuple[int, int] = (384, 288)  # (H, W) of the picture that it looks at in the try-on pipeline


@dataclass(frozen=True)
class SegmentationConfig:
    """Segmentation generator G_S (Fig. 10)."""

    width: int = 64  # channels of the first block; the deeper ones double
    classes: int = 13
    inputs: int = 21  # cloth mask 1, cloth 3, S_a 13, P 3, noise 1
    dropout: float = 0.5
    attributes: int = 0  # length of the vector that tells the garment's attributes (not in the paper); 0 = none
    hides_hem: bool = False  # S_a without trousers near a loose hem, see vton.inputs.agnostic (not in the paper)
    places_hem: bool = False  # one input more, the plane of the hem, see vton.inputs.hem (not in the paper)


@dataclass(frozen=True)
class MatchingConfig:
    """Geometric matching module (Fig. 11)."""

    width: int = 64  # channels of the first convolution
    grid: int = 5  # control points along one side (Fig. 13 compares 5, 10 and 20)
    person_inputs: int = 7  # S_c 1, P 3, I_a 3
    cloth_inputs: int = 3


WITHOUT_AGNOSTIC = 4  # inputs of a flow that sees S_c and P alone: in I_a it reads where the old garment ended


@dataclass(frozen=True)
class FlowConfig:
    """The flow warper (ClothFlow, Han et al. 2019), the rival of the matching module."""

    size: tuple[int, int] = (256, 192)  # (H, W) at which it works
    width: int = 64  # channels of the first block of each pyramid; the deeper ones double, to four times as many
    features: int = 128  # channels of each level of the pyramids
    levels: int = 5  # flows in the cascade, at strides 2 to 2**levels
    person_inputs: int = 7  # S_c 1, P 3, I_a 3; or WITHOUT_AGNOSTIC
    cloth_inputs: int = 4  # c 3, M_c 1


@dataclass(frozen=True)
class AliasConfig:
    """ALIAS generator (Fig. 12)."""

    width: int = 64  # base filters; the last block has half as many
    widest: int = 16  # the widest block has `widest * width` channels
    hidden: int = 128  # channels of the convolution on the label map inside each normalisation
    injected: int = 16  # channels of the resized input that each block is given
    inputs: int = 9  # I_a 3, P 3, W(c, theta) 3
    levels: int = 8  # residual blocks; the first works at H / 2**(levels - 1)
    masked: int = 5  # the first so many blocks standardise the misaligned region apart (A.2)
    classes: int = 7
    composition: bool = False  # a fourth output, the share alpha of the warped cloth itself (not in the paper)
    keeps: bool = False  # a fifth, the share of the photograph itself where it is shown (not in the paper)

    def channels(self) -> tuple[int, ...]:
        """Output channels of each residual block, widest first: 1024, 1024, 1024, 512, ..., 32 as published."""
        doubling = (self.width // 2 * 2**k for k in range(self.levels))
        return tuple(min(self.widest * self.width, channels) for channels in doubling)[::-1]


@dataclass(frozen=True)
class TryOnConfig:
    """All networks of one set of weights."""

    name: str = "paper"
    parser: ParserConfig = field(default_factory=ParserConfig)
    segmentation: SegmentationConfig = field(default_factory=SegmentationConfig)
    matching: MatchingConfig = field(default_factory=MatchingConfig)
    alias: AliasConfig = field(default_factory=AliasConfig)
    flow: FlowConfig = field(default_factory=FlowConfig)


PAPER = TryOnConfig()
LITE = TryOnConfig(
    name="lite",
    segmentation=SegmentationConfig(width=20),
    matching=MatchingConfig(width=24),
    alias=AliasConfig(width=24, widest=8, hidden=24, injected=8, levels=6, masked=4),
    flow=FlowConfig(size=(128, 96), width=24, features=40, levels=5, person_inputs=WITHOUT_AGNOSTIC),
)
