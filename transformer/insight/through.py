"""One position on its way through the whole model: every box of Figure 1 with the numbers that enter and leave it.

The numbers are those of one recorded pass (`insight.trace`); the last ones are the model's own log-probabilities.
Axes: h heads, S keys, V vocabulary, d_model, d_ff, d_k, d_v.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.insight.trace import AttentionTrace, FeedForwardTrace, SubLayer, record
from transformer.model import Transformer
from transformer.translator import Translation, Translator


@dataclass
class TokenEmbedding:
    """A token on its way in (sections 3.4 and 3.5)."""

    embedding: np.ndarray  # (d_model,) its row of the embedding matrix times sqrt(d_model)
    position: np.ndarray  # (d_model,) the positional encoding of its place
    total: np.ndarray  # (d_model,) their sum, the input of the first layer


@dataclass
class Norm:
    """Residual connection and layer normalisation, LayerNorm(x + Sublayer(x)) (section 3.1)."""

    x: np.ndarray  # (d_model,) what enters the sub-layer
    branch: np.ndarray  # (d_model,) Sublayer(x)
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
    concat: np.ndarray  # (h * d_v,) the heads side by side
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

    source: TokenEmbedding
    encoder_attention: AttentionPass
    encoder_feed_forward: FeedForwardPass
    target: TokenEmbedding
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


def _norm_at(row: int, layer: SubLayer) -> Norm:
    total = layer.total[row]
    deviation = float((total.var(-1, correction=0) + layer.norm.eps).sqrt())
    x, branch = _array(layer.x[row]), _array(layer.branch[row])
    return Norm(x, branch, _array(total), float(total.mean()), deviation, _array(layer.output[row]))


def _attention_at(row: int, block: AttentionTrace) -> AttentionPass:
    rows = {name: _array(getattr(block, name)[:, row]) for name in ("query", "scores", "weights", "heads")}
    key, value, output = _array(block.key), _array(block.value), _array(block.branch[row])
    concat = rows["heads"].ravel()
    return AttentionPass(**rows, key=key, value=value, concat=concat, output=output, norm=_norm_at(row, block))


def _feed_forward_at(row: int, block: FeedForwardTrace) -> FeedForwardPass:
    inner, active, output = (_array(one[row]) for one in (block.inner, block.active, block.branch))
    return FeedForwardPass(inner, active, output, _norm_at(row, block))


def _embedding_at(model: Transformer, token: int, place: int, total: Tensor) -> TokenEmbedding:
    """total (T, d_model): what enters the first layer."""
    embedding = model.embedding.weight[token] * math.sqrt(model.config.d_model)
    return TokenEmbedding(_array(embedding), _array(model.positions[place]), _array(total[place]))


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
    model = translator.model
    trace = record(translator, translation, hypothesis, sentence)
    source_ids, read = trace.pair.src[0].tolist(), trace.pair.tgt[0].tolist()
    for number, most, name in (
        (place, len(source_ids), "source tokens"),
        (step, len(read), "steps"),
        (encoder_layer, len(model.encoder), "encoder layers"),
        (decoder_layer, len(model.decoder), "decoder layers"),
    ):
        if not 0 <= number < most:
            raise ValueError(f"There are {most} {name}; there is no number {number + 1}.")
    first, second, hidden = trace.encoder[encoder_layer], trace.decoder[decoder_layer], trace.decoder_states[-1][step]
    assert second.cross is not None, "a decoder's layer has it"
    logits = model.project(hidden)
    return Walk(
        _embedding_at(model, source_ids[place], place, trace.source),
        _attention_at(place, first.attention),
        _feed_forward_at(place, first.feed_forward),
        _embedding_at(model, read[step], step, trace.target),
        _attention_at(step, second.attention),
        _attention_at(step, second.cross),
        _feed_forward_at(step, second.feed_forward),
        hidden=_array(hidden),
        logits=_array(logits),
        logprobs=_array(logits.float().log_softmax(-1)),
    )


def next_token(logits: np.ndarray, temperature: float = 1.0, top_k: int = 0, most: int = 12) -> NextToken:
    """The next token's distribution, softmax(logits / temperature) among the top_k likeliest (0 = all).

    logits (V,); most: how many tokens to return. Raises `ValueError` for a temperature that is not above 0.
    """
    if temperature <= 0:
        raise ValueError(f"The temperature has to be above 0; got {temperature:g}.")
    scores = np.asarray(logits, dtype=np.float64) / temperature
    order = np.argsort(-scores, kind="stable")
    if top_k:
        scores[order[int(top_k) :]] = -np.inf
    powers = np.exp(scores - scores.max())
    probabilities = powers / powers.sum()
    positive = probabilities[probabilities > 0]
    best = order[:most]
    entropy = float(-(positive * np.log(positive)).sum())
    return NextToken(best.tolist(), probabilities[best].astype(np.float32), entropy)
