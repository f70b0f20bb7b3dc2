"""The Transformer of "Attention Is All You Need": positions, sub-layers, encoder, decoder (Figure 1).

Post-norm, as published: LayerNorm(x + Dropout(Sublayer(x))), and no norm after the last layer.
Axes: B sentences, S source tokens, T target tokens, h heads, L layers, K hypotheses of a beam, V words.
Parameter names are the file format of every saved checkpoint: renaming one makes old weights unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, neighbourhood_mask
from transformer.cache import ActiveHypotheses, BeamCache, KeyValue
from transformer.config import TransformerConfig
from transformer.kernels import additive_mask, linear


def sinusoids(length: int, d_model: int, halves: bool = False) -> Tensor:
    """Positional encodings of section 3.5, (length, d_model) fp32: sine in the even dimensions, cosine in the odd ones.

    halves: all sines first, then all cosines, as Marian lays them out.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    if halves:
        return torch.cat((angle.sin(), angle.cos()), 1).float()
    return torch.stack((angle.sin(), angle.cos()), 2).flatten(1).float()


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Zeroes each element with probability p and divides the others by 1 - p (section 5.4).

    On a CPU, torch draws one random number per element, which takes a tenth of a training step; here four elements
    share the 64 bits of one draw, which makes p a multiple of 1/65536.
    """
    if not training or p == 0.0 or x.device.type != "cpu":
        return F.dropout(x, p, training)
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    threshold = round(p * 65536)
    keep = (draws.view(torch.int16)[: x.numel()] >= threshold - 32768).view(x.shape)
    return x * keep.to(x.dtype).mul_(65536 / (65536 - threshold))


@dataclass
class AttentionWeights:
    """Weights of every head after the softmax and before dropout; rows are queries, columns keys, rows sum to 1."""

    encoder: list[Tensor]  # per layer (B, h, S, S): source looks at source
    decoder: list[Tensor]  # per layer (B, h, T, T): target looks at earlier target
    cross: list[Tensor]  # per layer (B, h, T, S): target looks at source


@dataclass
class Encoding:
    """What `attend` needs of the encoder, where a search has kept it."""

    output: Tensor  # (B, S, d_model)
    weights: list[Tensor]  # per layer (B, h, S, S)


@dataclass
class Gates:
    """A factor for every head's output, 1 as it is and 0 removed; each broadcastable to (L, B, h), or None."""

    encoder: Tensor | None = None
    decoder: Tensor | None = None
    cross: Tensor | None = None

    def at(self, kind: str, layer: int) -> Tensor | None:
        """The (B, h) factors of one layer."""
        gate = getattr(self, kind)
        return None if gate is None else gate[layer]


@dataclass
class Memory:
    """What the decoder needs of the source, computed once a sentence: each layer's keys and values, and the mask."""

    layers: list[KeyValue]  # L x (B, h, S, .)
    mask: Tensor | None  # (B, 1, 1, S), True = may be looked at; None = all

    def select(self, rows: Tensor) -> Memory:
        """The memory of the chosen sentences; rows (B',) index the first axis."""
        mask = None if self.mask is None else self.mask.index_select(0, rows)
        return Memory([layer.select(rows) for layer in self.layers], mask)


class FeedForward(nn.Module):
    """Equation 2: max(0, x W1 + b1) W2 + b2, at each position separately."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.activation = F.relu if config.activation == "relu" else F.silu
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, d_model) -> the same shape."""
        inference = not torch.is_grad_enabled()
        at_once = inference and self.activation is F.relu
        inner = linear(x, self.inner.weight, self.inner.bias, relu=at_once)
        if not at_once:
            inner = self.activation(inner, inplace=inference)
        return linear(inner, self.outer.weight, self.outer.bias)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with residual connection and norm (section 3.1)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = config.dropout

    def drop(self, x: Tensor) -> Tensor:
        """`dropout` at this layer's rate."""
        return dropout(x, self.dropout, self.training)

    def forward(
        self, x: Tensor, mask: Tensor | None, need_weights: bool = False, gate: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, S, d_model), mask (B, 1, 1 or S, S) with True = may be looked at -> x and, on request, (B, h, S, S)."""
        query, key, value = self.attention.project(x)
        out, weights = self.attention.attend(query, KeyValue(key, value), mask, need_weights, gate)
        x = self.attention_norm(x + self.drop(out))
        return self.feed_forward_norm(x + self.drop(self.feed_forward(x))), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the memory, feed-forward (section 3.1)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = config.dropout

    def drop(self, x: Tensor) -> Tensor:
        """`dropout` at this layer's rate."""
        return dropout(x, self.dropout, self.training)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory: KeyValue,
        memory_mask: Tensor | None,
        need_weights: bool = False,
        gate: Tensor | None = None,
        cross_gate: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """x (B, T, d_model) of a whole target; masks with True = may be looked at.

        Returns x and, on request, the weights of self-attention (B, h, T, T) and over the memory (B, h, T, S).
        """
        query, key, value = self.attention.project(x)
        out, weights = self.attention.attend(query, KeyValue(key, value), mask, need_weights, gate)
        x = self.attention_norm(x + self.drop(out))
        query = self.cross_attention.project_query(x)
        out, cross = self.cross_attention.attend(query, memory, memory_mask, need_weights, cross_gate)
        x = self.cross_attention_norm(x + self.drop(out))
        return self.feed_forward_norm(x + self.drop(self.feed_forward(x))), weights, cross

    def step(
        self,
        x: Tensor,
        cache: BeamCache,
        layer: int,
        additive: Tensor | None,
        memory: KeyValue,
        memory_additive: Tensor | None,
        active: ActiveHypotheses | None = None,
    ) -> Tensor:
        """One more token of K hypotheses a sentence: x (B, K, d_model) -> the same shape; the cache grows.

        additive: (B, 1, K, used), what the mask of `BeamCache.open` adds to the scores (`additive_mask`).
        memory_additive: (B, 1, 1, S), that of the memory's.
        active: which hypotheses there are; x holds these alone, (N, d_model).

        The hypotheses of a sentence are the queries of one attention over their common memory and over all their
        tokens, so nothing is copied per beam.
        """
        query, key, value = self.attention.project(x, active)
        key_value = cache.write(layer, key, value)
        x = self.attention_norm(x + self.attention.attend_step(query, key_value, additive, active=active))
        query = self.cross_attention.project_query(x, active)
        out = self.cross_attention.attend_step(query, memory, memory_additive, active=active)
        x = self.cross_attention_norm(x + out)
        return self.feed_forward_norm(x + self.feed_forward(x))


class Shortlist:
    """Some words, among which the next one is sought, and their rows of the output matrix (`transformer.shortlist`)."""

    def __init__(self, ids: Tensor, weight: Tensor, bias: Tensor | None = None) -> None:
        """
        ids: (N,) of the words, each once.
        weight, bias: (V, d_model) and (V,) or None, of all words; the rows are copied.
        """
        self.ids = ids
        with torch.inference_mode(False):  # a weight that is made within it cannot be packed
            self.weight = nn.Parameter(weight.detach()[ids], requires_grad=False)
            self.bias = None if bias is None else nn.Parameter(bias.detach()[ids], requires_grad=False)

    def project(self, x: Tensor) -> Tensor:
        """As `Transformer.project`, of these words alone: (..., d_model) -> logits (..., N)."""
        return linear(x, self.weight, self.bias)


class Transformer(nn.Module):
    """Encoder and decoder with one embedding matrix for source, target and output (section 3.4).

    The paper shares "the same weight matrix between the two embedding layers and the pre-softmax linear
    transformation" and multiplies it by sqrt(d_model) "in the embedding layers": only there, not before the softmax.
    """

    positions: Tensor
    encoder: Sequence[EncoderLayer]  # `nn.ModuleList`s, whose kind of layer torch does not tell
    decoder: Sequence[DecoderLayer]

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        if config.positions == "learned":  # row (E)
            self.positions = nn.Parameter(torch.randn(config.max_length, config.d_model) * config.d_model**-0.5)
        else:
            table = sinusoids(config.max_length, config.d_model, halves=config.positions == "sinusoidal-halves")
            self.register_buffer("positions", table, persistent=False)
        encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.encoder = cast("Sequence[EncoderLayer]", encoder)
        self.decoder = cast("Sequence[DecoderLayer]", decoder)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        self.dropout = config.dropout

    def twin(self) -> Transformer:
        """A network of its own with the same tensors: a part that is exchanged in one stays in the other."""
        with torch.device("meta"):
            twin = Transformer(self.config)
        twin.load_state_dict(self.state_dict(), assign=True)
        if self.config.positions != "learned":  # a table that is no part of the state
            twin.positions = self.positions
        return twin.train(self.training).requires_grad_(False)

    def set_dropout(self, p: float) -> None:
        """P_drop of every place from now on; the configuration's holds until this is called."""
        self.dropout = p
        layers: list[EncoderLayer | DecoderLayer] = [*self.encoder, *self.decoder]
        for layer in layers:
            layer.dropout = p

    def embed(self, tokens: Tensor, start: int = 0) -> Tensor:
        """tokens (B, T) ids at positions start, start + 1, ... -> (B, T, d_model), dropout applied (section 5.4).

        Raises `ValueError` if the sequence is longer than the configuration's max_length.
        """
        end = start + tokens.shape[1]
        if end > self.config.max_length:
            raise ValueError(f"a sequence of {end} tokens is longer than this model's {self.config.max_length}.")
        x = self.embedding(tokens) * math.sqrt(self.config.d_model) + self.positions[start:end]
        return dropout(x, self.dropout, self.training)

    def encode(
        self, src: Tensor, src_mask: Tensor | None, need_weights: bool = False, gates: Gates | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """src (B, S) ids, src_mask (B, 1, 1, S) with True = may be looked at (no padding); None = all.

        Returns the encoder's output (B, S, d_model) and, on request, each layer's weights (B, h, S, S).
        """
        return self.encode_embedded(self.embed(src), src_mask, need_weights, gates)

    def encode_embedded(
        self, x: Tensor, src_mask: Tensor | None, need_weights: bool = False, gates: Gates | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """As `encode`, from x (B, S, d_model), embeddings with their positions."""
        mask, maps = src_mask, []
        if self.config.neighbourhood:
            near = neighbourhood_mask(x.shape[1], self.config.neighbourhood, x.device)
            mask = near if mask is None else mask & near
        for index, layer in enumerate(self.encoder):
            x, weights = layer(x, mask, need_weights, gates.at("encoder", index) if gates else None)
            maps.append(weights)
        return x, maps if need_weights else []

    def remember(self, encoded: Tensor, src_mask: Tensor | None) -> Memory:
        """Each decoder layer's keys and values of the encoder's output (B, S, d_model)."""
        return Memory([layer.cross_attention.project_memory(encoded) for layer in self.decoder], src_mask)

    def decode(
        self,
        tgt: Tensor,
        tgt_mask: Tensor,
        memory: Memory,
        need_weights: bool | Collection[int] = False,
        gates: Gates | None = None,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Teacher forcing: tgt (B, T) ids that begin with bos, tgt_mask (1, 1, T, T) with True = may be looked at.

        need_weights: of all layers, or of those with these numbers.
        Returns the decoder's output (B, T, d_model), which `project` turns into logits, and the weights that are
        needed, of self-attention (B, h, T, T) and over the memory (B, h, T, S), layer by layer.
        """
        x, own, cross = self.embed(tgt), [], []
        for index, layer in enumerate(self.decoder):
            gate = (gates.at("decoder", index), gates.at("cross", index)) if gates else (None, None)
            returns = need_weights if isinstance(need_weights, bool) else index in need_weights
            x, weights, cross_weights = layer(x, tgt_mask, memory.layers[index], memory.mask, returns, *gate)
            if returns:
                own.append(weights)
                cross.append(cross_weights)
        return x, own, cross

    def step(
        self,
        tokens: Tensor,
        memory: Memory,
        cache: BeamCache,
        shortlist: Shortlist | None = None,
        active: ActiveHypotheses | None = None,
    ) -> Tensor:
        """Logits (B, K, V) of the next token from the last one, tokens (B, K) ids; the cache grows by it.

        shortlist: the logits are those of its words, in its order.
        active: which of the B * K hypotheses there are; nothing is computed for the others, and the logits are (N, V).
        """
        sentences, beams = tokens.shape
        x = self.embed(tokens.reshape(-1, 1), cache.position).reshape(sentences, beams, -1)
        x = x if active is None else active.rows(x)
        mask = cache.open(sentences, beams, tokens.device, self.config.neighbourhood)
        additive, memory_additive = (additive_mask(m) for m in (mask, memory.mask))
        for index, layer in enumerate(self.decoder):
            x = layer.step(x, cache, index, additive, memory.layers[index], memory_additive, active)
        return (shortlist or self).project(x).contiguous()

    def project(self, x: Tensor) -> Tensor:
        """Decoder output (..., d_model) -> logits (..., V), by the embedding matrix (section 3.4)."""
        return linear(x, self.embedding.weight, self.output_bias)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor, project: bool = True, cross: bool = False
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Logits (B, T, V) of each next token; project=False leaves the decoder's output (B, T, d_model).

        src (B, S) and tgt (B, T) ids; src_mask (B, 1, 1, S), tgt_mask (1, 1, T, T), True = may be looked at. cross:
        also return the first and the last layer's weights over the source, (B, h, T, S) each.
        """
        encoded, _ = self.encode(src, src_mask)
        memory = self.remember(encoded, src_mask)
        x, _, weights = self.decode(tgt, tgt_mask, memory, (0, len(self.decoder) - 1) if cross else False)
        x = self.project(x) if project else x
        return (x, weights[0], weights[-1]) if cross else x

    def useful_mask(self, src_mask: Tensor) -> Tensor | None:
        """The mask (B, 1, 1, S), or None where it hides nothing: attention without a mask is quicker."""
        return src_mask if self.config.neighbourhood or not bool(src_mask.all()) else None

    @torch.no_grad()
    def attend(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor, encoding: Encoding | None = None
    ) -> AttentionWeights:
        """All attention weights of one teacher-forced pass; arguments as in `forward`.

        encoding: what `TransformerDecoder` has kept of the same sentences, so that they need not be encoded again.
        """
        mask = self.useful_mask(src_mask)
        encoding = encoding or Encoding(*self.encode(src, mask, need_weights=True))
        _, decoder, cross = self.decode(tgt, tgt_mask, self.remember(encoding.output, mask), need_weights=True)
        return AttentionWeights(encoding.weights, decoder, cross)
