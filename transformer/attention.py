"""Scaled dot-product and multi-head attention (section 3.2 of "Attention Is All You Need").

Axes, everywhere in this package: B sentences, h heads, T queries (target side), S keys (source side).
Every mask here is boolean, and True means: this query may look at this key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.config import TransformerConfig


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


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0, full: bool = False
) -> Tensor:
    """Equation 1 by torch's fused kernels: the same output as `scaled_dot_product_attention`, no weights.

    full: the caller knows that each row of the mask allows a key.
    """
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        # The CPU kernel's backward pass is seven times slower in bf16 than in fp32.
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query.float(), key.float(), value.float(), mask, dropout, full).bfloat16()
    if query.stride(-1) != 1:  # a view that `linear` returned; the kernels want whole rows
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    if mask is not None and not full:
        # Kernels differ in what they return for a row without any key; here it is zero on each of them.
        context = context.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return context


def added_mask(mask: Tensor | None, heads: int, queries: int) -> Tensor | None:
    """What a mask adds to the scores of every head, 0 or -inf, as fp32 (B * h, T, S); None for None.

    mask: broadcastable to (B, 1, T, S), True = may be looked at.
    """
    if mask is None:
        return None
    added = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -torch.inf)
    return added.expand(-1, heads, queries, -1).reshape(-1, queries, mask.shape[-1])


def few_queries_attention(query: Tensor, key: Tensor, value: Tensor, added: Tensor | None = None) -> Tensor:
    """Equation 1 for a handful of queries, as in a decoding step: the output of `fused_attention`, without gradient.

    query (B, h, T, d_k), key (B, h, S, d_k), value (B, h, S, d_v); added as from `added_mask`, made once for all layers;
    each query may look at some key. On a CPU the fused kernel's own preparations take longer than these three products.
    """
    batch, heads, queries, width = query.shape
    if query.device.type != "cpu" or query.dtype != torch.float32:
        mask = None if added is None else added.view(batch, heads, queries, -1).to(query.dtype)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    query, key, value = query.reshape(-1, queries, width), key.flatten(0, 1).transpose(1, 2), value.flatten(0, 1)
    scores = torch.bmm(query, key).mul_(width**-0.5)
    if added is not None:
        scores.add_(added)  # by itself; within the product (baddbmm) it takes three to five times as long
    return torch.bmm(scores.softmax(-1), value).view(batch, heads, queries, -1)


FEW_ROWS, FEW_ROWS_SHARED = 8, 32  # for one thread and for several


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, as torch's linear: x (..., n), weight (m, n), bias (m,) -> (..., m).

    A decoding step has a handful of rows only, and one sentence has few. On a CPU the product is then up to twice as
    quick the other way round, as W x^T, because the weights are read in one sweep, and by all threads. The result is then a
    transposed view.
    """
    width = x.shape[-1]
    few = FEW_ROWS if torch.get_num_threads() == 1 else FEW_ROWS_SHARED
    if torch.is_grad_enabled() or x.numel() > few * width or x.device.type != "cpu":
        return F.linear(x, weight, bias)
    columns = x.contiguous().view(-1, width).T
    out = weight @ columns if bias is None else torch.addmm(bias[:, None], weight, columns)
    return out.T.view(*x.shape[:-1], -1)


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


@dataclass
class KeyValue:
    """What queries look at: key (B, h, S, d_k), value (B, h, S, d_v)."""

    key: Tensor
    value: Tensor

    def select(self, rows: Tensor) -> KeyValue:
        """The chosen rows; rows (B',) are indices into the first axis."""
        return KeyValue(self.key.index_select(0, rows), self.value.index_select(0, rows))


class BeamCache:
    """Keys and values of every token that any hypothesis of a beam has taken, and who may look at which.

    A hypothesis looks at its own ancestors only. So when hypotheses are chosen, nothing but a small mask is reordered;
    the keys and values, which are many, stay where they were written.
    """

    def __init__(self, layers: int) -> None:
        self.kept: list[KeyValue | None] = [None] * layers  # (B, h, capacity, .), the first `used` slots are filled
        self.used = 0
        self.position = 0  # of the next token
        self.slots: list[int] = []  # position of the token in each slot
        self.ancestors: Tensor | None = None  # (B, K, used), True = may be looked at

    def open(self, sentences: int, beams: int, device: torch.device, neighbourhood: int = 0) -> Tensor | None:
        """Makes room for the next token of K hypotheses; returns the mask (B, 1, K, used) of its attention.

        True = may be looked at: the hypothesis's own tokens so far and the new one (within r/2 positions, if r > 0).
        None if every slot may be looked at.
        """
        own = torch.eye(beams, dtype=torch.bool, device=device).expand(sentences, -1, -1)
        self.ancestors = own if self.ancestors is None else torch.cat((self.ancestors, own), 2)
        self.slots += [self.position] * beams
        self.position += 1
        self.used += beams
        if neighbourhood:
            near = torch.tensor(self.slots, device=device) >= self.position - 1 - neighbourhood // 2
            return (self.ancestors & near)[:, None]
        return None if beams == 1 and self.used == self.position else self.ancestors[:, None]

    def write(self, layer: int, key: Tensor, value: Tensor) -> KeyValue:
        """Adds the new token's key and value (B, h, K, .) of one layer; returns all that are filled (B, h, used, .)."""
        kept, beams = self.kept[layer], key.shape[2]
        if kept is None or kept.key.shape[2] < self.used:
            capacity = max(32, 2 * self.used)
            grown = KeyValue(*(x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in (key, value)))
            if kept is not None:
                before = self.used - beams
                grown.key[:, :, :before] = kept.key[:, :, :before]
                grown.value[:, :, :before] = kept.value[:, :, :before]
            kept = self.kept[layer] = grown
        kept.key.narrow(2, self.used - beams, beams).copy_(key)
        kept.value.narrow(2, self.used - beams, beams).copy_(value)
        return KeyValue(kept.key.narrow(2, 0, self.used), kept.value.narrow(2, 0, self.used))

    def fork(self, positions: int) -> BeamCache:
        """A cache of its own with the first `positions` tokens of a single hypothesis; what it holds is not copied.

        Raises `ValueError` if there is more than one hypothesis, or it has fewer tokens.
        """
        if self.used != self.position or not 0 <= positions <= self.used:
            raise ValueError(
                f"Only a single path can be forked, at one of its {self.position} tokens; got {positions}."
            )
        twin = BeamCache(len(self.kept))
        # Without spare room, so the next token makes a new tensor and leaves this cache's as it is.
        twin.kept = [kept and KeyValue(kept.key[:, :, :positions], kept.value[:, :, :positions]) for kept in self.kept]
        twin.used = twin.position = positions
        twin.slots = self.slots[:positions]
        twin.ancestors = None if self.ancestors is None else self.ancestors[..., :positions]
        return twin

    def choose(self, parents: Tensor) -> None:
        """Hypothesis k of sentence b goes on from hypothesis parents[b, k]; parents (B, K')."""
        self.ancestors = self.ancestors.gather(1, parents[..., None].expand(-1, -1, self.used))

    def keep(self, sentences: Tensor) -> None:
        """Forgets all sentences but these; sentences (B',) are indices into the first axis."""
        self.kept = [layer.select(sentences) for layer in self.kept]
        self.ancestors = self.ancestors.index_select(0, sentences)


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
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, h, T, d) of one sequence x (B, T, d_model)."""
        query, key, value = linear(x, self.qkv.weight, self.qkv.bias).split(self.widths, dim=-1)
        return self.split(query), self.split(key), self.split(value)

    def project_query(self, x: Tensor) -> Tensor:
        """Queries (B, h, T, d_k) of x (B, T, d_model)."""
        width = self.widths[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[:width]
        return self.split(linear(x, self.qkv.weight[:width], bias))

    def project_memory(self, memory: Tensor) -> KeyValue:
        """Keys and values (B, h, S, d) of memory (B, S, d_model)."""
        width = self.widths[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[width:]
        key, value = F.linear(memory, self.qkv.weight[width:], bias).split(self.widths[1:], dim=-1)
        return KeyValue(self.split(key), self.split(value))

    def attend(
        self,
        query: Tensor,
        kept: KeyValue,
        mask: Tensor | None = None,
        need_weights: bool = False,
        gate: Tensor | None = None,
        full: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """query (B, h, T, d_k) over the keys and values of `kept`, concatenated and projected.

        mask: broadcastable to (B, h, T, S), True = may be looked at. gate: broadcastable to (B, h), multiplies each
        head's output (0 removes the head). full: as in `fused_attention`. Returns (B, T, d_model) and, if asked for, the
        weights (B, h, T, S).
        """
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            context, weights = scaled_dot_product_attention(query, kept.key, kept.value, mask, dropout)
        else:
            context = fused_attention(query, kept.key, kept.value, mask, dropout, full)
        return self.merge(context, gate), weights

    def attend_few(self, query: Tensor, kept: KeyValue, added: Tensor | None, gate: Tensor | None = None) -> Tensor:
        """As `attend` without weights, in a decoding step; added (B * h, T, S) as from `added_mask`."""
        return self.merge(few_queries_attention(query, kept.key, kept.value, added), gate)

    def merge(self, context: Tensor, gate: Tensor | None = None) -> Tensor:
        """The heads' outputs (B, h, T, d_v), each times its gate, concatenated and projected: (B, T, d_model)."""
        if gate is not None:
            context = context * gate[..., None, None]
        return linear(context.transpose(1, 2).flatten(2), self.output.weight, self.output.bias)
