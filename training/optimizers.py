"""Optimizers that several recipes may choose."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def muon(matrices: Iterable[Tensor], momentum: float = 0.95) -> Optimizer:
    """Muon with updates of the size of Adam's, see `muon_and_adam`.

    Raises ValueError with one sentence where torch has none.
    """
    if not hasattr(torch.optim, "Muon"):
        raise ValueError(f"Muon needs torch 2.9 or newer, and this is {torch.__version__}; choose another optimizer.")
    return torch.optim.Muon(
        matrices, lr=0.0, momentum=momentum, nesterov=True, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
    )


def muon_and_adam(
    module: nn.Module, momentum: float = 0.95, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-9
) -> dict[str, Optimizer]:
    """Muon for the matrices of all linear layers, Adam for embeddings, biases and norms.

    Muon (Jordan et al. 2024) makes each update of a matrix orthogonal by a few Newton-Schulz steps; its size is scaled
    to that of Adam's (Liu et al. 2025), so that one rate serves both. No weight decay.

    module: the network.
    momentum: Muon's, with Nesterov's look ahead.
    betas, eps: Adam's.
    Returns {"matrices": Muon, "model": Adam}, each with rate 0 until the loop sets it. Raises ValueError with one
        sentence where torch has no Muon.
    """
    linear = {id(m.weight) for m in module.modules() if isinstance(m, nn.Linear) and m.weight.requires_grad}
    tied = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    chosen = linear - tied
    matrices = [p for p in module.parameters() if id(p) in chosen]
    rest = [p for p in module.parameters() if id(p) not in chosen and p.requires_grad]
    return {
        "matrices": muon(matrices, momentum),
        "model": torch.optim.Adam(rest, lr=0.0, betas=betas, eps=eps, fused=True),
    }
