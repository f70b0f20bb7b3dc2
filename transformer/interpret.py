"""What one can ask of attention: rollout, statistics of every head, ablation, alignment, and the six steps of one head.

Axes: L layers, h heads, T queries (rows), S keys (columns). Arrays are numpy, float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.attention import KeyValue, causal_mask, key_mask, neighbourhood_mask
from transformer.model import Gates
from transformer.translator import Translation, Translator

KINDS = ("encoder", "decoder", "cross")  # source at source, target at earlier target, target at source


def rollout(weights: np.ndarray) -> np.ndarray:
    """Attention rollout (Abnar and Zuidema 2020): how much of each input reaches each position of the top layer.

    weights (L, h, T, T) of one self-attention stack. Each layer counts as half attention (mean over heads) and half
    residual connection; the layers are multiplied. Returns (T, T), rows sum to 1.
    """
    length = weights.shape[-1]
    through = np.eye(length, dtype=np.float32)
    for layer in weights.mean(1):
        through = (0.5 * layer + 0.5 * np.eye(length, dtype=np.float32)) @ through
    return through.astype(np.float32)


@dataclass
class HeadStatistics:
    """Figures of every head, each (L, h) and a mean over the rows."""

    entropy: np.ndarray  # nats; 0 looks at one token, log S at all alike
    confidence: np.ndarray  # largest weight of a row, in (0, 1]
    distance: np.ndarray  # |row - column| weighed by attention, in tokens; self-attention only means something here
    previous: np.ndarray  # weight on the position before the row's own
    same: np.ndarray  # weight on the row's own position
    following: np.ndarray  # weight on the position after
    last: np.ndarray  # weight on the last column: eos, where idle heads rest


def statistics(weights: np.ndarray) -> HeadStatistics:
    """`HeadStatistics` of weights (L, h, T, S)."""
    rows, columns = np.arange(weights.shape[-2])[:, None], np.arange(weights.shape[-1])[None, :]

    def share(where: np.ndarray) -> np.ndarray:
        return (weights * where).sum(-1).mean(-1)

    safe = np.where(weights > 0, weights, 1.0)  # 0 log 0 = 0
    return HeadStatistics(
        entropy=-(weights * np.log(safe)).sum(-1).mean(-1),
        confidence=weights.max(-1).mean(-1),
        distance=share(np.abs(rows - columns)),
        previous=share(columns == rows - 1),
        same=share(columns == rows),
        following=share(columns == rows + 1),
        last=share(np.broadcast_to(columns == weights.shape[-1] - 1, weights.shape[-2:])),
    )


def alignment(cross: np.ndarray, layer: int | None = None) -> list[int]:
    """For each target row the source column it looks at most, by the mean over heads (of one layer, or of all).

    cross (L, h, T, S). The last source column (eos) is left out unless it is the only one: heads rest there.
    """
    mean = (cross if layer is None else cross[layer : layer + 1]).mean((0, 1))
    words = mean[:, :-1] if mean.shape[1] > 1 else mean
    return words.argmax(1).tolist()


def _pass(translator: Translator, translation: Translation, hypothesis: int, sentence: int):
    """(src, tgt, labels) ids of one teacher-forced pass, each (1, .)."""
    chosen = translation.sentences[sentence]
    if not chosen.ids:
        raise ValueError("This sentence holds no words, so it was copied and no attention was paid to it.")
    config, ids = translator.model.config, chosen.ids[hypothesis]
    rows = [chosen.source_ids], [[config.bos, *ids]], [[*ids, config.eos]]
    return tuple(torch.tensor(row, device=translator.device) for row in rows)


@torch.inference_mode()
def ablation(
    translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0
) -> tuple[float, dict[str, np.ndarray]]:
    """How the log-probability of a translation changes when one head is removed, for every head, in one batched pass.

    Returns the log-probability as it is (nats, eos included), and for each of `KINDS` an (L, h) array of the change:
    negative where the head helped this translation.
    """
    model = translator.model.eval()
    config = model.config
    src, tgt, labels = _pass(translator, translation, hypothesis, sentence)
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    heads = [(kind, layer, head) for kind in KINDS for layer in range(layers[kind]) for head in range(config.heads)]
    # Row 0 of the batch is untouched; row i has head i - 1 removed.
    gates = {kind: torch.ones(layers[kind], len(heads) + 1, config.heads, device=src.device) for kind in KINDS}
    for row, (kind, layer, head) in enumerate(heads, 1):
        gates[kind][layer, row, head] = 0.0
    gate = Gates(**gates)
    src, tgt, labels = (x.expand(len(heads) + 1, -1) for x in (src, tgt, labels))
    mask = key_mask(src, config.pad)
    encoded, _ = model.encode(src, mask, gates=gate)
    tgt_mask = causal_mask(tgt.shape[1], src.device, config.neighbourhood)
    hidden, _, _ = model.decode(tgt, tgt_mask, model.remember(encoded, mask), gates=gate)
    logprobs = model.project(hidden).float().log_softmax(-1).gather(-1, labels[..., None])[..., 0].sum(1)
    change = (logprobs[1:] - logprobs[0]).cpu().numpy()
    arrays = {kind: np.zeros((layers[kind], config.heads), dtype=np.float32) for kind in KINDS}
    for (kind, layer, head), value in zip(heads, change):
        arrays[kind][layer, head] = value
    return float(logprobs[0]), arrays


@dataclass
class HeadSteps:
    """Equation 1 in six steps for one head of one sentence."""

    query: np.ndarray  # (T, d_k)   1. Q
    key: np.ndarray  # (S, d_k)     2. K
    value: np.ndarray  # (S, d_v)   3. V
    scores: np.ndarray  # (T, S)    4. Q K^T / sqrt(d_k); -inf where the mask forbids
    weights: np.ndarray  # (T, S)   5. softmax
    output: np.ndarray  # (T, d_v)  6. weights V
    rows: list[str]  # T labels
    columns: list[str]  # S labels


@torch.inference_mode()
def head_steps(
    translator: Translator, translation: Translation, kind: str, layer: int, head: int, hypothesis: int = 0,
    sentence: int = 0,
) -> HeadSteps:
    """The six steps of one head. kind: one of `KINDS`; layer and head count from 0.

    Raises `ValueError` for a kind, layer or head that the model does not have.
    """
    model, config = translator.model.eval(), translator.model.config
    if kind not in KINDS:
        raise ValueError(f"The kinds of attention are {', '.join(KINDS)}; got {kind!r}.")
    stack = model.encoder if kind == "encoder" else model.decoder
    if not (0 <= layer < len(stack) and 0 <= head < config.heads):
        counts = f"{len(stack)} layers and {config.heads} heads"
        raise ValueError(f"There are {counts}, counted from 0; got layer {layer} and head {head}.")
    src, tgt, labels = _pass(translator, translation, hypothesis, sentence)
    mask = key_mask(src, config.pad)
    tgt_mask = causal_mask(tgt.shape[1], src.device, config.neighbourhood)
    seen: dict[str, Tensor] = {}
    block = stack[layer]
    # What goes into self-attention is the layer's input; into attention over the source, what the norm before it gives.
    watch = (
        block.attention_norm.register_forward_hook(lambda m, args, out: seen.update(x=out))
        if kind == "cross"
        else block.register_forward_pre_hook(lambda m, args: seen.update(x=args[0]))
    )
    try:
        encoded, _ = model.encode(src, mask)
        memory = model.remember(encoded, mask)
        model.decode(tgt, tgt_mask, memory)
    finally:
        watch.remove()
    if kind == "cross":
        query, kept, allowed = block.cross_attention.project_query(seen["x"]), memory.layers[layer], mask
    else:
        query, key, value = block.attention.project(seen["x"])
        kept, allowed = KeyValue(key, value), tgt_mask if kind == "decoder" else mask
        if kind == "encoder" and config.neighbourhood:
            allowed = allowed & neighbourhood_mask(src.shape[1], config.neighbourhood, src.device)
    query, key, value = query[0, head], kept.key[0, head], kept.value[0, head]
    scores = (query @ key.T / query.shape[-1] ** 0.5).masked_fill(~allowed[0, 0], -torch.inf)
    weights = scores.softmax(-1)
    pieces = translator.tokenizer.pieces
    source, target, decoder = pieces(src[0].tolist()), pieces(labels[0].tolist()), pieces(tgt[0].tolist())
    columns = {"encoder": source, "decoder": decoder, "cross": source}[kind]
    arrays = [x.float().cpu().numpy() for x in (query, key, value, scores, weights, weights @ value)]
    return HeadSteps(*arrays, rows=source if kind == "encoder" else target, columns=columns)
