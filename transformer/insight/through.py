"""One position on its way through the whole model: every box of Figure 1 with the numbers that enter and leave it.

The arithmetic is written out once more, from the weights alone, so that each intermediate result can be shown; the
last numbers are the model's own log-probabilities. Axes: h heads, S keys, V vocabulary, d_model, d_ff, d_k, d_v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, causal_mask, neighbourhood_mask
from transformer.model import FeedForward, Transformer
from transformer.translator import Translation, Translator


@dataclass
class Embedded:
    """A token on its way in (sections 3.4 and 3.5)."""

    embedding: np.ndarray  # (d_model,) its row of the embedding matrix times sqrt(d_model)
    position: np.ndarray  # (d_model,) the positional encoding of its place
    total: np.ndarray  # (d_model,) their sum, the input of the first layer


@dataclass
class Norm:
    """Residual connection and layer normalisation, LayerNorm(x + Sublayer(x)) (section 3.1)."""

    given: np.ndarray  # (d_model,) x
    added: np.ndarray  # (d_model,) Sublayer(x)
    total: np.ndarray  # (d_model,) their sum
    mean: float  # of the sum's elements
    deviation: float  # sqrt(variance + eps)
    result: np.ndarray  # (d_model,) (sum - mean) / deviation * gain + bias


@dataclass
class AttentionPass:
    """Multi-head attention of one query position (section 3.2)."""

    query: np.ndarray  # (h, d_k) x W_i^Q of every head
    key: np.ndarray  # (h, S, d_k)
    value: np.ndarray  # (h, S, d_v)
    scores: np.ndarray  # (h, S) q k / sqrt(d_k); -inf where the mask forbids
    weights: np.ndarray  # (h, S) softmax of the scores (eq. 1)
    heads: np.ndarray  # (h, d_v) each head's weighted sum of values
    concatenated: np.ndarray  # (h * d_v,) the heads side by side
    output: np.ndarray  # (d_model,) concatenated W^O
    norm: Norm


@dataclass
class FeedForwardPass:
    """Equation 2 at one position."""

    inner: np.ndarray  # (d_ff,) x W_1 + b_1
    active: np.ndarray  # (d_ff,) after the activation
    output: np.ndarray  # (d_model,) active W_2 + b_2
    norm: Norm


@dataclass
class Walk:
    """A source position through one encoder layer, and a step through one decoder layer to the next token."""

    source: Embedded
    encoder_attention: AttentionPass
    encoder_feed_forward: FeedForwardPass
    target: Embedded
    decoder_attention: AttentionPass
    cross_attention: AttentionPass
    decoder_feed_forward: FeedForwardPass
    hidden: np.ndarray  # (d_model,) output of the last decoder layer at this step
    logits: np.ndarray  # (V,) hidden times the embedding matrix
    logprobs: np.ndarray  # (V,) log softmax of the logits


@dataclass
class NextToken:
    """The distribution that sampling would draw from."""

    tokens: list[int]  # ids of the likeliest, best first
    probabilities: np.ndarray  # (len(tokens),) after temperature and top-k; 0 for what top-k leaves out
    entropy: float  # of the whole distribution, nats


def _array(x: Tensor) -> np.ndarray:
    return x.float().cpu().numpy()


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x @ weight.T if bias is None else x @ weight.T + bias


def _add_and_norm(given: Tensor, added: Tensor, norm: nn.LayerNorm) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(sum, mean, deviation, normalised), row by row."""
    total = given + added
    mean = total.mean(-1, keepdim=True)
    deviation = (((total - mean) ** 2).mean(-1, keepdim=True) + norm.eps).sqrt()
    return total, mean, deviation, (total - mean) / deviation * norm.weight + norm.bias


def _norm_at(row: int, given: Tensor, added: Tensor, parts: tuple[Tensor, Tensor, Tensor, Tensor]) -> Norm:
    total, mean, deviation, result = parts
    return Norm(
        _array(given[row]),
        _array(added[row]),
        _array(total[row]),
        float(mean[row]),
        float(deviation[row]),
        _array(result[row]),
    )


def _attention(
    block: MultiHeadAttention, norm: nn.LayerNorm, x: Tensor, memory: Tensor, allowed: Tensor, row: int | None
) -> tuple[Tensor, AttentionPass | None]:
    """x (T, d_model) over memory (S, d_model); allowed (T, S), True = may be looked at. row: whose numbers to keep."""
    query_weight, key_weight, value_weight = block.qkv.weight.split(block.widths)
    biases = (None,) * 3 if block.qkv.bias is None else block.qkv.bias.split(block.widths)
    query = _affine(x, query_weight, biases[0]).unflatten(-1, (block.heads, -1)).transpose(0, 1)
    key = _affine(memory, key_weight, biases[1]).unflatten(-1, (block.heads, -1)).transpose(0, 1)
    value = _affine(memory, value_weight, biases[2]).unflatten(-1, (block.heads, -1)).transpose(0, 1)
    scores = (query @ key.transpose(1, 2) / math.sqrt(block.d_k)).masked_fill(~allowed, -torch.inf)
    weights = scores.softmax(-1)
    heads = weights @ value  # (h, T, d_v)
    concatenated = heads.transpose(0, 1).flatten(1)
    output = _affine(concatenated, block.output.weight, block.output.bias)
    parts = _add_and_norm(x, output, norm)
    if row is None:
        return parts[-1], None
    kept = AttentionPass(
        query=_array(query[:, row]),
        key=_array(key),
        value=_array(value),
        scores=_array(scores[:, row]),
        weights=_array(weights[:, row]),
        heads=_array(heads[:, row]),
        concatenated=_array(concatenated[row]),
        output=_array(output[row]),
        norm=_norm_at(row, x, output, parts),
    )
    return parts[-1], kept


def _feed_forward(
    block: FeedForward, norm: nn.LayerNorm, x: Tensor, row: int | None
) -> tuple[Tensor, FeedForwardPass | None]:
    """x (T, d_model). row: whose numbers to keep."""
    inner = _affine(x, block.inner.weight, block.inner.bias)
    active = block.activation(inner)
    output = _affine(active, block.outer.weight, block.outer.bias)
    parts = _add_and_norm(x, output, norm)
    if row is None:
        return parts[-1], None
    kept = FeedForwardPass(
        _array(inner[row]), _array(active[row]), _array(output[row]), _norm_at(row, x, output, parts)
    )
    return parts[-1], kept


def _embed(model: Transformer, ids: list[int], row: int) -> tuple[Tensor, Embedded]:
    """Ids (T) -> (T, d_model), and how one of them came about."""
    device = model.embedding.weight.device
    embedding = model.embedding.weight[torch.tensor(ids, device=device)] * math.sqrt(model.config.d_model)
    position = model.positions[: len(ids)]
    total = embedding + position
    return total, Embedded(_array(embedding[row]), _array(position[row]), _array(total[row]))


def _check_numbers(*given: tuple[int, int, str]) -> None:
    """Raises `ValueError` for a number from 0 on that is too high. given: the number, how many there are, of what."""
    for number, most, name in given:
        if not 0 <= number < most:
            raise ValueError(f"There are {most} {name}; there is no number {number + 1}.")


@torch.inference_mode()
def walk(
    translator: Translator,
    translation: Translation,
    place: int,
    step: int,
    encoder_layer: int = 0,
    decoder_layer: int = 0,
    hypothesis: int = 0,
    sentence: int = 0,
) -> Walk:
    """Follows one sentence through the model.

    place: position of the source token that is followed; step: number of the target token that is chosen;
    encoder_layer, decoder_layer: whose numbers are kept. All count from 0.

    Raises `ValueError` if there is no such place, step or layer, or the sentence was copied without the model.
    """
    model, config = translator.model, translator.model.config
    found, ids = translation.chosen(sentence, hypothesis)
    source_ids, read = found.source_ids, [config.bos, *ids]
    _check_numbers(
        (place, len(source_ids), "source tokens"),
        (step, len(read), "steps"),
        (encoder_layer, len(model.encoder), "encoder layers"),
        (decoder_layer, len(model.decoder), "decoder layers"),
    )
    x, source = _embed(model, source_ids, place)
    allowed = torch.ones(len(source_ids), len(source_ids), dtype=torch.bool, device=x.device)
    if config.neighbourhood:
        allowed = neighbourhood_mask(len(source_ids), config.neighbourhood, x.device)[0, 0]
    for number, layer in enumerate(model.encoder):
        row = place if number == encoder_layer else None
        x, attended = _attention(layer.attention, layer.attention_norm, x, x, allowed, row)
        x, fed = _feed_forward(layer.feed_forward, layer.feed_forward_norm, x, row)
        if attended and fed:
            encoder_attention, encoder_feed_forward = attended, fed
    memory = x
    x, target = _embed(model, read, step)
    allowed = causal_mask(len(read), x.device, config.neighbourhood)[0, 0]
    whole = torch.ones(len(read), len(source_ids), dtype=torch.bool, device=x.device)
    for number, block in enumerate(model.decoder):
        row = step if number == decoder_layer else None
        x, own = _attention(block.attention, block.attention_norm, x, x, allowed, row)
        x, cross = _attention(block.cross_attention, block.cross_attention_norm, x, memory, whole, row)
        x, fed = _feed_forward(block.feed_forward, block.feed_forward_norm, x, row)
        if own and cross and fed:
            decoder_attention, cross_attention, decoder_feed_forward = own, cross, fed
    logits = _affine(x[step], model.embedding.weight, model.output_bias)
    return Walk(
        source,
        encoder_attention,
        encoder_feed_forward,
        target,
        decoder_attention,
        cross_attention,
        decoder_feed_forward,
        hidden=_array(x[step]),
        logits=_array(logits),
        logprobs=_array(logits.float().log_softmax(-1)),
    )


def next_token(logits: np.ndarray, temperature: float = 1.0, top_k: int = 0, most: int = 12) -> NextToken:
    """The next token's distribution, softmax(logits / temperature) among the top_k likeliest (0 = all).

    logits (V,); most: how many tokens to return. Raises `ValueError` for a temperature that is not above 0.
    """
    if temperature <= 0:
        raise ValueError(f"The temperature has to be above 0; got {temperature:g}.")
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    order = np.argsort(-scaled, kind="stable")
    if top_k:
        scaled[order[int(top_k) :]] = -np.inf
    risen = np.exp(scaled - scaled.max())
    probabilities = risen / risen.sum()
    positive = probabilities[probabilities > 0]
    best = order[:most]
    entropy = float(-(positive * np.log(positive)).sum())
    return NextToken(best.tolist(), probabilities[best].astype(np.float32), entropy)
