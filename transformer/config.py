"""Sizes of a Transformer: one dataclass, and every row of Table 3 by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.weights import from_json

LONGEST = 100_000  # of max_length: the positions of a longer sequence would fill the memory
POSITIONS = ("sinusoidal", "learned", "sinusoidal-halves")
ACTIVATIONS = ("relu", "silu")

ALPHA = 0.6  # length penalty of the paper (section 6.1)


@dataclass(frozen=True)
class TransformerConfig:
    """What has to be known to build a `Transformer`; the defaults are the paper's base model (Table 3).

    Raises `ValueError` with one sentence when a field, or two together, make no sense.
    """

    vocab_size: int = 37000
    encoder_layers: int = 6  # N of the encoder
    decoder_layers: int = 6  # N of the decoder
    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8  # h
    d_k: int = 0  # width of one head's queries and keys; 0 means d_model / h (section 3.2.2)
    d_v: int = 0  # width of one head's values; 0 means d_model / h
    dropout: float = 0.1  # P_drop: sub-layer outputs, and embeddings plus positions (section 5.4)
    attention_dropout: float = 0.0  # on the attention weights; the paper has none
    label_smoothing: float = 0.1  # epsilon_ls (section 5.4)
    positions: str = "sinusoidal"  # section 3.5; "learned": row (E); "sinusoidal-halves": sines, then cosines (Marian)
    neighbourhood: int = 0  # r of restricted self-attention (section 4); 0 = every position
    activation: str = "relu"  # equation 2; Marian models use "silu"
    # A bias on the four projections. The paper writes plain matrices, but only with biases do all of Table 3's printed
    # sizes come out of one vocabulary.
    attention_bias: bool = True
    output_bias: bool = False  # a bias on the logits (Marian)
    max_length: int = 512  # longest sequence in tokens, either side
    pad: int = 0  # ids of the special tokens
    unk: int = 1
    bos: int = 2  # the decoder's first input
    eos: int = 3

    def __post_init__(self) -> None:
        self._check_kinds()
        for name in ("vocab_size", "d_model", "d_ff", "heads", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} has to be at least 1, got {getattr(self, name)}.")
        if self.max_length > LONGEST:
            raise ValueError(f"max_length can be at most {LONGEST:,}, got {self.max_length:,}.")
        for name in ("encoder_layers", "decoder_layers", "d_k", "d_v", "neighbourhood"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} cannot be negative, got {getattr(self, name)}.")
        if self.d_model % self.heads and not (self.d_k and self.d_v):
            raise ValueError(
                f"d_model {self.d_model} does not divide into {self.heads} heads; give d_k and d_v, or other heads."
            )
        for name in ("dropout", "attention_dropout", "label_smoothing"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} has to be in [0, 1), got {getattr(self, name)}.")
        if self.positions != "learned" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {self.d_model}.")
        special = (self.pad, self.unk, self.bos, self.eos)
        if not 0 <= min(special) <= max(special) < self.vocab_size:
            raise ValueError(f"the special tokens' ids do not fit into a vocabulary of {self.vocab_size}.")

    def _check_kinds(self) -> None:
        for name, choices in (("positions", POSITIONS), ("activation", ACTIVATIONS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} has to be one of {', '.join(choices)}; got {getattr(self, name)!r}.")

    @property
    def key_width(self) -> int:
        """d_k of one head."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v of one head."""
        return self.d_v or self.d_model // self.heads

    def layers(self, kind: str) -> int:
        """How many layers have this kind of attention: "encoder", "decoder" or "cross"."""
        return self.encoder_layers if kind == "encoder" else self.decoder_layers

    def to_dict(self) -> dict:
        """Plain values for a JSON file; `from_dict` reads them back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> TransformerConfig:
        """The inverse of `to_dict`. Raises `ValueError` as `training.weights.from_json` does."""
        return from_json(cls, values)


_MINI = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "d_ff": 128, "heads": 2, "attention_bias": False}
# few decoder layers: they are what a translation waits for (Kasai et al. 2021)
_EVERYDAY = {
    "encoder_layers": 6,
    "decoder_layers": 2,
    "d_model": 256,
    "d_ff": 1024,
    "heads": 4,
    "attention_bias": False,
}
# Each row changes only what Table 3 prints in it; everything else is base. The figure is the printed size in millions.
PRESETS: dict[str, dict] = {
    "mini": _MINI,
    "tiny": {
        **_MINI,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "d_model": 128,
        "d_ff": 256,
        "heads": 4,
        "dropout": 0.3,
    },
    "small": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 256, "d_ff": 1024, "heads": 4, "dropout": 0.2},
    "everyday": _EVERYDAY,
    # for long sentences and rare words: 13 million with 16,000 pieces
    "everyday-wide": {**_EVERYDAY, "d_ff": 1536},
    # for a GPU: 19.9 million with 16,000 pieces
    "everyday-large": {**_EVERYDAY, "d_model": 384, "d_ff": 1280, "heads": 6},
    # trees are longer than sentences, and the words are all on the source side: more encoder than decoder
    "parse": {**_EVERYDAY, "encoder_layers": 4, "d_model": 192, "d_ff": 576, "output_bias": True},
    "base": {},  # 65
    "A-h1": {"heads": 1, "d_k": 512, "d_v": 512},
    "A-h4": {"heads": 4, "d_k": 128, "d_v": 128},
    "A-h16": {"heads": 16, "d_k": 32, "d_v": 32},
    "A-h32": {"heads": 32, "d_k": 16, "d_v": 16},
    "B-dk16": {"d_k": 16},  # 58
    "B-dk32": {"d_k": 32},  # 60
    "C-n2": {"encoder_layers": 2, "decoder_layers": 2},  # 36
    "C-n4": {"encoder_layers": 4, "decoder_layers": 4},  # 50
    "C-n8": {"encoder_layers": 8, "decoder_layers": 8},  # 80
    "C-d256": {"d_model": 256, "d_k": 32, "d_v": 32},  # 28
    "C-d1024": {"d_model": 1024, "d_k": 128, "d_v": 128},  # 168
    "C-ff1024": {"d_ff": 1024},  # 53
    "C-ff4096": {"d_ff": 4096},  # 90
    "D-drop0.0": {"dropout": 0.0},
    "D-drop0.2": {"dropout": 0.2},
    "D-ls0.0": {"label_smoothing": 0.0},
    "D-ls0.2": {"label_smoothing": 0.2},
    "E": {"positions": "learned"},
    "big": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},  # 213
}


def preset(name: str, **changes) -> TransformerConfig:
    """The configuration of a row of Table 3 ("base", "B-dk16", ... "big") or of the project's "tiny" and "small".

    Raises `ValueError` with the known names for any other name.
    """
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}.")
    return TransformerConfig(**{**PRESETS[name], **changes})


def read_penalties(header: Mapping[str, Any]) -> dict[str, float]:
    """Length penalties by pair in a model's config.json, `{"length_penalty": {"de-en": 1.4}}`; none where it has none.

    Raises `ValueError` where they are not numbers from 0 to 2.
    """
    penalties = header.get("length_penalty", {})
    if not isinstance(penalties, dict) or not all(
        isinstance(alpha, (int, float)) and not isinstance(alpha, bool) and 0 <= alpha <= 2
        for alpha in penalties.values()
    ):
        raise ValueError('"length_penalty" in config.json has to be like {"de-en": 1.4}, from 0 to 2; this one is not.')
    return {str(pair): float(alpha) for pair, alpha in penalties.items()}
