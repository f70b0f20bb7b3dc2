"""One recorded pass of a model over a sentence and one of its outputs: what every view and lens reads.

Hooks keep what enters and leaves each LayerNorm, so the sums are the model's own; queries, keys, weights and whatever
else lies between are worked out of them when somebody asks. Axes: T queries, S keys, h heads, d_model.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, attention_weights, neighbourhood_mask
from transformer.data import Batch
from transformer.model import FeedForward, Transformer
from transformer.translator import Translation, Translator


@dataclass
class SubLayer:
    """A sub-layer with its residual connection and norm: LayerNorm(x + Sublayer(x)) (section 3.1)."""

    x: Tensor  # (T, d_model), what enters
    total: Tensor  # (T, d_model), x + Sublayer(x), what enters LayerNorm
    output: Tensor  # (T, d_model), what leaves it
    norm: nn.LayerNorm

    @property
    def branch(self) -> Tensor:
        """(T, d_model), Sublayer(x)."""
        return self.total - self.x


@dataclass
class AttentionTrace(SubLayer):
    """Multi-head attention at work (section 3.2)."""

    block: MultiHeadAttention
    memory: Tensor  # (S, d_model), what keys and values are made of
    mask: Tensor  # (T, S) bool, True = may be looked at

    @cached_property
    def query(self) -> Tensor:
        """(h, T, d_k)."""
        return self.block.project_query(self.x[None])[0]

    @cached_property
    def _memory(self) -> tuple[Tensor, Tensor]:
        memory = self.block.project_memory(self.memory[None])
        return memory.key[0], memory.value[0]

    @property
    def key(self) -> Tensor:
        """(h, S, d_k)."""
        return self._memory[0]

    @property
    def value(self) -> Tensor:
        """(h, S, d_v)."""
        return self._memory[1]

    @cached_property
    def scores(self) -> Tensor:
        """(h, T, S), q k / sqrt(d_k); -inf where the mask forbids."""
        return (self.query @ self.key.transpose(1, 2) / math.sqrt(self.block.d_k)).masked_fill(~self.mask, -torch.inf)

    @cached_property
    def weights(self) -> Tensor:
        """(h, T, S), their softmax (equation 1)."""
        return attention_weights(self.query, self.key, self.mask)

    @cached_property
    def heads(self) -> Tensor:
        """(h, T, d_v), each head's weighted sum of values."""
        return self.weights @ self.value


@dataclass
class FeedForwardTrace(SubLayer):
    """The feed-forward network at work (equation 2)."""

    block: FeedForward

    @cached_property
    def inner(self) -> Tensor:
        """(T, d_ff), x W_1 + b_1."""
        return nn.functional.linear(self.x, self.block.inner.weight, self.block.inner.bias)

    @cached_property
    def active(self) -> Tensor:
        """(T, d_ff), after the activation."""
        return self.block.activation(self.inner)


@dataclass
class LayerTrace:
    """A layer at work; an encoder's has no attention over the source."""

    attention: AttentionTrace
    cross: AttentionTrace | None
    feed_forward: FeedForwardTrace


@dataclass
class Trace:
    """All of one pass over S source and T target tokens."""

    pair: Batch  # what was read, and what had to be said
    source: Tensor  # (S, d_model), embeddings and positions
    target: Tensor  # (T, d_model)
    encoder: list[LayerTrace]
    decoder: list[LayerTrace]

    @property
    def encoder_states(self) -> list[Tensor]:
        """What enters the encoder and what each of its layers hands on, L + 1 tensors (S, d_model)."""
        return [self.source, *(layer.feed_forward.output for layer in self.encoder)]

    @property
    def decoder_states(self) -> list[Tensor]:
        """What enters the decoder and what each of its layers hands on, L + 1 tensors (T, d_model)."""
        return [self.target, *(layer.feed_forward.output for layer in self.decoder)]

    def attention(self, kind: str, layer: int) -> AttentionTrace:
        """One attention block. kind: "encoder", "decoder" or "cross"; layer counts from 0."""
        if kind == "encoder":
            return self.encoder[layer].attention
        block = self.decoder[layer]
        return block.attention if kind == "decoder" or block.cross is None else block.cross


def teacher_forced(translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0) -> Batch:
    """What a pass over one hypothesis of a translated sentence reads, and what it has to say.

    hypothesis, sentence: counted from 0. Raises `ValueError` if there is no such one.
    """
    entry, ids = translation.sentence_and_ids(sentence, hypothesis)
    return translator.pair(entry.source_ids, ids)


@torch.inference_mode()
def record(translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0) -> Trace:
    """The pass over one hypothesis of a translated sentence; arguments and errors as those of `teacher_forced`."""
    return record_pass(translator.model, teacher_forced(translator, translation, hypothesis, sentence))


def record_pass(model: Transformer, pair: Batch) -> Trace:
    """The pass of a model over one sentence and one target."""
    norms: dict[nn.Module, tuple[Tensor, Tensor]] = {}
    hooks = [
        module.register_forward_hook(lambda norm, args, out: norms.update({norm: (args[0][0], out[0])}))
        for module in model.modules()
        if isinstance(module, nn.LayerNorm)
    ]
    try:
        encoded, _ = model.encode(pair.src, pair.src_mask)
        model.decode(pair.tgt, pair.tgt_mask, model.remember(encoded, pair.src_mask))
    finally:
        for hook in hooks:
            hook.remove()
    source, target = model.embed(pair.src)[0], model.embed(pair.tgt)[0]
    (rows, columns), near, device = (len(target), len(source)), model.config.neighbourhood, source.device
    everywhere = torch.ones(rows, columns, dtype=torch.bool, device=device)
    nearby = neighbourhood_mask(columns, near or 2 * columns, device)[0, 0]
    before = pair.tgt_mask[0, 0]
    encoder, decoder, x = [], [], source
    for layer in model.encoder:
        own = AttentionTrace(x, *norms[layer.attention_norm], layer.attention_norm, layer.attention, x, nearby)
        x, last = own.output, layer.feed_forward_norm
        encoder.append(LayerTrace(own, None, FeedForwardTrace(x, *norms[last], last, layer.feed_forward)))
        x = encoder[-1].feed_forward.output
    memory, x = encoded[0], target
    for block in model.decoder:
        own = AttentionTrace(x, *norms[block.attention_norm], block.attention_norm, block.attention, x, before)
        x, norm = own.output, block.cross_attention_norm
        cross = AttentionTrace(x, *norms[norm], norm, block.cross_attention, memory, everywhere)
        x, last = cross.output, block.feed_forward_norm
        decoder.append(LayerTrace(own, cross, FeedForwardTrace(x, *norms[last], last, block.feed_forward)))
        x = decoder[-1].feed_forward.output
    return Trace(pair, source, target, encoder, decoder)
