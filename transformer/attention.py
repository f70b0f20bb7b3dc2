"""Scaled dot-product and multi-head attention (section 3.2 of "Attention Is All You Need").

Axes, everywhere in this package: B sentences, h heads, T queries (target side), S keys (source side).
Every mask here is boolean, and True means: this query may look at this key.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.cache import ActiveHypotheses, KeyValue
from transformer.config import TransformerConfig
from transformer.kernels import additive_mask, fused_attention, fused_is_quicker, learns, linear, plain_attention


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)), the weights of equation 1, before any dropout.

    query (..., T, d_k), key (..., S, d_k), mask broadcastable to (..., T, S), True = may be looked at.
    Returns (..., T, S) in query's dtype: each row sums to 1, or is all zeros where the mask allows no key.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    # The softmax runs in fp32, so that half precision can neither overflow nor lose the small weights.
    scores = scores.float()
    if mask is None:
        return scores.softmax(-1).to(query.dtype)
    # The lowest finite number, not -inf: a row without any key would otherwise be 0/0.
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~mask, 0.0).to(query.dtype)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Equation 1, with its weights.

    query (..., T, d_k), key (..., S, d_k), value (..., S, d_v); mask as in `attention_weights`, True = allowed.
    Returns the weighted sum (..., T, d_v) and the weights (..., T, S) as they were before dropout.
    """
    weights = attention_weights(query, key, mask)
    return F.dropout(weights, dropout) @ value, weights


def causal_mask(length: int, device: torch.device | str | None = None, neighbourhood: int = 0) -> Tensor:
    """(1, 1, T, T) mask of the decoder's self-attention; True = allowed: j <= i (and i - j <= r/2 if r > 0)."""
    mask = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if neighbourhood:
        mask &= neighbourhood_mask(length, neighbourhood, device)[0, 0]
    return mask[None, None]


def neighbourhood_mask(length: int, neighbourhood: int, device: torch.device | str | None = None) -> Tensor:
    """(1, 1, T, T) mask of restricted self-attention (section 4); True = may be looked at: |i - j| <= r/2.

    neighbourhood: r, the number of positions around (and besides) the query's own.
    """
    position = torch.arange(length, device=device)
    return ((position[:, None] - position[None, :]).abs() <= neighbourhood // 2)[None, None]


def key_mask(tokens: Tensor, pad: int) -> Tensor:
    """tokens (B, S) ids -> (B, 1, 1, S) mask for any query; True = may be looked at: the token is no padding."""
    return (tokens != pad)[:, None, None, :]


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): h attentions in parallel, concatenated, and projected by W^O.

    W^Q, W^K and W^V lie below each other in `qkv.weight`, so that self-attention needs one product for the three.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.d_k, self.d_v = config.heads, config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.widths = (self.heads * self.d_k, self.heads * self.d_k, self.heads * self.d_v)
        self.qkv = nn.Linear(config.d_model, sum(self.widths), bias=config.attention_bias)
        self.output = nn.Linear(self.heads * self.d_v, config.d_model, bias=config.attention_bias)
        for matrix in (*self.qkv.weight.split(self.widths), self.output.weight):
            nn.init.xavier_uniform_(matrix)  # each of the four matrices by its own size
        if config.attention_bias:
            nn.init.zeros_(self.qkv.bias)
            nn.init.zeros_(self.output.bias)

    def split(self, x: Tensor) -> Tensor:
        """(B, T, h * d) -> (B, h, T, d)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def project(self, x: Tensor, active: ActiveHypotheses | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, h, T, d) of one sequence x (B, T, d_model), or of its rows (N, d_model)."""
        qkv = linear(x, self.qkv.weight, self.qkv.bias)
        query, key, value = (active.scatter(qkv) if active else qkv).split(self.widths, dim=-1)
        return self.split(query), self.split(key), self.split(value)

    def project_query(self, x: Tensor, active: ActiveHypotheses | None = None) -> Tensor:
        """Queries (B, h, T, d_k) of x (B, T, d_model), or of its rows (N, d_model)."""
        query = linear(x, self.qkv.weight, self.qkv.bias, (0, self.widths[0]))
        return self.split(active.scatter(query) if active else query)

    def project_memory(self, memory: Tensor) -> KeyValue:
        """Keys and values (B, h, S, d) of memory (B, S, d_model)."""
        rows = (self.widths[0], sum(self.widths))
        key, value = linear(memory, self.qkv.weight, self.qkv.bias, rows).split(self.widths[1:], dim=-1)
        return KeyValue(self.split(key), self.split(value))

    def attend(
        self,
        query: Tensor,
        key_value: KeyValue,
        mask: Tensor | None = None,
        need_weights: bool = False,
        gate: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention over the keys and values of `key_value`, concatenated and projected.

        query: (B, h, T, d_k).
        key_value: what is looked at.
        mask: broadcastable to (B, h, T, S), True = may be looked at.
        need_weights: also return the weights.
        gate: broadcastable to (B, h), multiplies each head's output; 0 removes the head.
        Returns (B, T, d_model) and, if asked for, the weights (B, h, T, S).
        """
        dropout = self.dropout if self.training else 0.0
        if not need_weights and fused_is_quicker(query, key_value.key):
            return self.merge(fused_attention(query, key_value.key, key_value.value, mask, dropout), gate), None
        if not (need_weights or dropout or learns(query)) and (mask is None or bool(mask.any(-1).all())):
            return self.merge(plain_attention(query, key_value.key, key_value.value, additive_mask(mask)), gate), None
        context, weights = scaled_dot_product_attention(query, key_value.key, key_value.value, mask, dropout)
        return self.merge(context, gate), weights if need_weights else None

    def attend_step(
        self,
        query: Tensor,
        key_value: KeyValue,
        additive: Tensor | None,
        gate: Tensor | None = None,
        active: ActiveHypotheses | None = None,
    ) -> Tensor:
        """As `attend` without weights, in a decoding step; additive as from `kernels.additive_mask`."""
        return self.merge(plain_attention(query, key_value.key, key_value.value, additive), gate, active)

    def merge(self, context: Tensor, gate: Tensor | None = None, active: ActiveHypotheses | None = None) -> Tensor:
        """The heads' outputs (B, h, T, d_v), each times its gate, concatenated and projected: (B, T, d_model).

        active: only these rows of it, (N, d_model).
        """
        if gate is not None:
            context = context * gate[..., None, None]
        context = context.transpose(1, 2).flatten(2)
        return linear(active.rows(context) if active else context, self.output.weight, self.output.bias)
