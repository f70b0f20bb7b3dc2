"""Source against prefix: ALTI+ (Ferrando et al. 2022), how much of an output token comes from each token that was read.

Attention weights say where a head looks, not how much of what it sees arrives. ALTI writes every sub-layer's output as
a sum of vectors, one for each input token (the residual connection belongs to the token's own), and measures each part
by how near it lies to the whole. Layers are multiplied, as in attention rollout; feed-forward layers keep tokens apart,
so they do not count.

Axes: T queries, S keys, h heads.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.insight.trace import AttentionTrace, record
from transformer.translator import Translation, Translator


@dataclass
class Contributions:
    """Where each output token comes from; the rows of `source` and `prefix` together sum to 1."""

    source: np.ndarray  # (T, S) float32 in [0, 1], from each source token
    prefix: np.ndarray  # (T, T) float32 in [0, 1], from each token that the decoder had read; zero above the diagonal
    tokens: list[str]  # T labels of the rows: the token that is chosen there, the last one </s>
    source_tokens: list[str]  # S labels
    prefix_tokens: list[str]  # T labels: <s>, then the translation

    @property
    def source_share(self) -> np.ndarray:
        """(T,) float32 in [0, 1]: how much of each token comes from the source; the rest comes from the prefix."""
        return self.source.sum(-1)


@torch.inference_mode()
def contributions(
    translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0
) -> Contributions:
    """ALTI+ of one translated sentence, in one teacher-forced pass.

    Args:
        translator: the model and its vocabulary.
        translation: what was translated.
        hypothesis: which translation of the sentence, counted from 0.
        sentence: which sentence of the text, counted from 0.

    Raises `ValueError` if there is no such hypothesis or sentence.
    """
    trace = record(translator, translation, hypothesis, sentence)
    source, prefix = aggregate(
        [layer_contributions(layer.attention)[0] for layer in trace.encoder],
        [layer_contributions(layer.attention)[0] for layer in trace.decoder],
        [layer_contributions(layer.cross, own=False) for layer in trace.decoder if layer.cross],
    )
    entry, pair = translation.sentences[sentence], trace.pair
    target = translator.output_labels(pair.labels.tolist(), entry)
    read, bos = (translator.labels(ids, entry.stand_ins) for ids in (pair.src[0].tolist(), pair.tgt[0, :1].tolist()))
    inputs = [*bos, *target[:-1]]  # the decoder reads what it has chosen
    return Contributions(source.float().cpu().numpy(), prefix.float().cpu().numpy(), target, read, inputs)


def layer_contributions(trace: AttentionTrace, own: bool = True) -> tuple[Tensor, Tensor]:
    """How much of each output of an attention sub-layer comes from each of its inputs (ALTI, equations 4 to 8).

    The sub-layer's output is y_i = LN(sum_j T_i(x_j) + r_i) with T_i(x_j) = sum_h A^h_ij W_O^h W_V^h x_j and the
    residual r_i. LayerNorm with its own standard deviation is linear in that sum, so every part goes through it alone.
    A part's contribution is max(0, |y_i| - |y_i - part|) in the L1 norm, divided by the sum of the row.

    own: self-attention: the residual belongs to the token at the query's own place, and its share is all zeros.
    Returns the shares of the keys (T, S) and of the residual (T,); together each row sums to 1.
    """
    attention, heads = trace.block, trace.block.heads
    value_weight = attention.qkv.weight[-heads * attention.d_v :]  # biases belong to no token
    values = (trace.memory @ value_weight.T).view(-1, heads, attention.d_v)  # (S, h, d_v)
    out = attention.output.weight.view(-1, heads, attention.d_v)  # (d_model, h, d_v)
    vectors = torch.einsum("shv,dhv->hsd", values, out)
    parts = torch.einsum("hts,hsd->tsd", trace.weights, vectors)
    if own:
        parts = parts + torch.diag_embed(trace.x.T).permute(1, 2, 0)
    parts = torch.cat((parts, (torch.zeros_like(trace.x) if own else trace.x)[:, None]), 1)
    scale = (trace.total.var(-1, correction=0) + trace.norm.eps).rsqrt()[:, None, None]
    parts = (parts - parts.mean(-1, keepdim=True)) * scale * trace.norm.weight
    whole = trace.output[:, None]
    near = (whole.abs().sum(-1) - (whole - parts).abs().sum(-1)).clamp(min=0)
    if own:  # nothing but parts of the input; rounding must not give the empty one a share
        near[:, -1] = 0
    total = near.sum(-1, keepdim=True)
    # Where every part leads away from the output, all of it is laid to the residual's place.
    rest = torch.zeros_like(near)
    rows = torch.arange(len(near), device=near.device)
    rest[rows, rows if own else near.shape[1] - 1] = 1.0
    shares = torch.where(total > 0, near / total.clamp(min=1e-30), rest)
    return shares[:, :-1], shares[:, -1]


def aggregate(
    encoder: list[Tensor], decoder: list[Tensor], cross: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """All layers multiplied (ALTI+, equations 9 to 13): the shares of source tokens (T, S) and of the prefix (T, T).

    encoder: per layer (S, S); decoder: per layer (T, T) of self-attention; cross: per layer the shares of the encoder's
    outputs (T, S) and of what comes from below (T,). Rows of the two results together sum to 1.
    """
    length = len(cross[0][1])
    through = torch.eye(cross[0][0].shape[1], dtype=cross[0][0].dtype, device=cross[0][0].device)
    for layer in encoder:
        through = layer @ through
    prefix = torch.eye(length, dtype=through.dtype, device=through.device)
    source = torch.zeros(length, through.shape[1], dtype=through.dtype, device=through.device)
    for own, (from_source, from_below) in zip(decoder, cross):
        below = from_below[:, None] * own
        source = from_source @ through + below @ source
        prefix = below @ prefix
    return source, prefix
