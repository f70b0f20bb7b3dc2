"""Which word of the source a word of the target belongs to: a statistical guess that teaches a Transformer to attend.

Early in training a small model may learn to write plausible sentences before it learns to look at the source. A word
alignment from counts alone (Brown et al. 1993, Model 1, with a preference for the diagonal as in Dyer et al. 2013)
shows two heads where to look (guided alignment: Chen et al. 2016; Garg et al. 2019). Its weight falls to nothing, and
the rest of the training is the paper's.
"""

import torch
from torch import Tensor

from transformer.data import ParallelData
from transformer.tokenizer import PAD

DIAGONAL = 4.0  # how fast the preference falls with the distance from the diagonal
BATCH = 1 << 15  # tokens a side


def diagonal(targets: int, sources: int) -> Tensor:
    """exp(-DIAGONAL |i / T - j / S|), (T, S)."""
    i, j = (torch.arange(targets) + 0.5) / targets, (torch.arange(sources) + 0.5) / sources
    return (-DIAGONAL * (i[:, None] - j[None, :]).abs()).exp()


def posterior(table: Tensor, src: Tensor, labels: Tensor) -> Tensor:
    """The share of each source position in each target word, (B, T, S) in [0, 1]; what a row lacks to 1 has no source.

    table (V, V): p(target piece | source piece), row PAD for no source word at all; src (B, S), labels (B, T) ids.
    """
    vocabulary = table.shape[1]
    flat = table.flatten()
    joint = flat[(src[:, None, :] * vocabulary + labels[:, :, None])].float()
    joint = joint * diagonal(labels.shape[1], src.shape[1]) * (src != PAD)[:, None, :]
    nobody = table[PAD, labels].float() * 0.3
    return joint / (joint.sum(-1) + nobody + 1e-9)[..., None]


def model_1(data: ParallelData, vocab_size: int, rounds: int = 3, limit: int = 150_000) -> Tensor:
    """p(target piece | source piece) by expectation maximisation, (V, V) fp16; row PAD is for no source word.

    rounds: of expectation and maximisation; limit: pairs that are counted, spread evenly over the data.
    """
    step = max(1, -(-len(data.pairs) // limit))
    part = ParallelData(data.pairs[::step])
    table = torch.full((vocab_size, vocab_size), 1.0 / vocab_size)
    for _ in range(rounds):
        counts = torch.full_like(table, 1e-7)
        for indices in part.batches(BATCH, 0, 0):
            batch = part.collate(indices)
            labels = target_rows(batch.labels, batch.positions, batch.tgt.shape)
            share = posterior(table, batch.src, labels) * (labels != PAD)[..., None]
            where = batch.src[:, None, :] * vocab_size + labels[:, :, None]
            counts.view(-1).scatter_add_(0, where.flatten(), share.flatten())
            nobody = ((1.0 - share.sum(-1)) * (labels != PAD)).flatten()
            counts[PAD].scatter_add_(0, labels.flatten(), nobody)
        table = counts.div_(counts.sum(1, keepdim=True))
    return table.half()


def loss(guide: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Cross-entropy of two heads' weights against `guide` (B, T, S), summed over tokens, in nats.

    last (B, h, T, S): head 0 of the decoder's last layer is to look at the word that is to be written. first: the last
    head of its first layer is to look at the word that was written before, which is easier and says how far it is.
    """
    ahead = guide * last[:, 0].float().clamp_min(1e-6).log()
    behind = guide[:, :-1] * first[:, -1, 1:].float().clamp_min(1e-6).log()
    return -(ahead.sum() + behind.sum())


def target_rows(labels: Tensor, positions: Tensor, shape: torch.Size) -> Tensor:
    """The labels of a batch as (B, T), PAD where there is none."""
    rows = labels.new_full((shape.numel(),), PAD)
    rows[positions] = labels
    return rows.view(shape)
