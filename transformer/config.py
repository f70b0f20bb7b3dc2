"""Sizes of a Transformer: one dataclass, and every row of Table 3 by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.recipe import read_presets
from training.weights import from_json

LONGEST = 100_000  # of max_length: the positions of a longer sequence would fill the memory
POSITIONS = ("sinusoidal", "learned", "sinusoidal-halves")
ACTIVATIONS = ("relu", "silu")
LEAST = {
    **dict.fromkeys(("vocab_size", "d_model", "d_ff", "heads", "max_length"), 1),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "d_k", "d_v", "neighbourhood"), 0),
}

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
        for name, choices in (("positions", POSITIONS), ("activation", ACTIVATIONS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} has to be one of {', '.join(choices)}; got {getattr(self, name)!r}.")
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} has to be at least {least}, got {getattr(self, name)}.")
        if self.max_length > LONGEST:
            raise ValueError(f"max_length can be at most {LONGEST:,}, got {self.max_length:,}.")
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


# The rows of Table 3 and the project's own sizes: what each changes of the base model.
PRESETS = read_presets(__file__, "sizes")


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
