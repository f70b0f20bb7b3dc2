"""Optimizers that several recipes may choose."""

import math
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from training.devices import has_bf16


class Muon(Optimizer):
    """Muon (Jordan et al. 2024) with updates of the size of Adam's (Liu et al. 2025), without weight decay.

    torch's own class does the same and only in bf16, which many processors emulate at a hundredth of the speed; this
    one computes in fp32 there.

    matrices: parameters of two dimensions.
    momentum: of the gradient's running mean, with Nesterov's look ahead.
    """

    def __init__(self, matrices: Iterable[Tensor], momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": 0.0, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of every matrix that has a gradient."""
        for group in self.param_groups:
            for matrices in _group_by_shape([matrix for matrix in group["params"] if matrix.grad is not None]):
                ahead = [self._ahead(matrix, cast(Tensor, matrix.grad), group["momentum"]) for matrix in matrices]
                size = group["lr"] * 0.2 * math.sqrt(max(matrices[0].shape))
                updates = orthogonal(torch.stack(ahead)) if len(ahead) > 1 else [orthogonal(ahead[0])]
                for matrix, update in zip(matrices, updates):
                    matrix.add_(update, alpha=-size)

    def _ahead(self, matrix: Tensor, gradient: Tensor, momentum: float) -> Tensor:
        """The gradient's running mean, one step ahead (Nesterov)."""
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        mean = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(mean, momentum)


def _group_by_shape(matrices: list[Tensor]) -> list[list[Tensor]]:
    """On a GPU those of one shape, which would wait for a hundred calls each; on a CPU each by itself."""
    groups: dict[object, list[Tensor]] = {}
    for matrix in matrices:
        groups.setdefault(matrix.shape if matrix.is_cuda else id(matrix), []).append(matrix)
    return list(groups.values())


def orthogonal(matrix: Tensor) -> Tensor:
    """The nearest orthogonal matrix, roughly: singular values between about 0.7 and 1.2 (Jordan et al. 2024).

    matrix: (m, n), or several (k, m, n); it is not changed.
    Returns the same shape in bf16 where the hardware has it, otherwise in fp32.
    """
    a, b, c = 3.4445, -4.775, 2.0315  # the quintic a x + b x^3 + c x^5 drives every singular value towards 1
    x = matrix.to(torch.bfloat16 if has_bf16(matrix.device.type) else torch.float32, copy=True)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x.div_(x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7))
    product = torch.addmm if x.dim() == 2 else torch.baddbmm
    for _ in range(5):  # Newton and Schulz
        gram = x @ x.mT
        x = product(x, product(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def muon_and_adam(module: nn.Module) -> dict[str, Optimizer]:
    """Muon for the matrices of all linear layers of a network, Adam for embeddings, biases and norms.

    Both move a weight by about as much, so one rate serves both. No weight decay.
    Returns {"matrices": Muon, "model": Adam}, each with rate 0 until the loop sets it.
    """
    linear = {id(m.weight) for m in module.modules() if isinstance(m, nn.Linear) and m.weight.requires_grad}
    embeddings = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    ids = linear - embeddings
    matrices = [p for p in module.parameters() if id(p) in ids]
    rest = [p for p in module.parameters() if id(p) not in ids and p.requires_grad]
    return {
        "matrices": Muon(matrices),
        "model": torch.optim.Adam(rest, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True),
    }
