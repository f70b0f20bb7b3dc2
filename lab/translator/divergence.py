"""The divergence of a model's next words from those that another model says, chunk by chunk as `transformer.loss`."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.loss import chunk_rows, product_type


class _ProjectedDivergence(torch.autograd.Function):
    """As `transformer.loss` does it, with another model's probabilities in place of the targets."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, target_hidden, target_weight, target_bias):  # noqa: ANN001, ANN205
        rows, low = chunk_rows(hidden, weight.shape[0]), product_type(hidden)
        hidden_low, weight_low, target_low = hidden.to(low), weight.to(low), target_weight.to(low)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = hidden.new_zeros((), dtype=torch.float32)

        def logprobs(part, matrix, offset):  # noqa: ANN001, ANN202
            logits = part @ matrix.T
            return torch.log_softmax(logits if offset is None else logits + offset, -1, dtype=torch.float32)

        with torch.autocast(hidden.device.type, enabled=False):
            for start in range(0, hidden.shape[0], rows):
                part = hidden_low[start : start + rows]
                own = logprobs(part, weight_low, bias)
                target = logprobs(target_hidden[start : start + rows].to(low), target_low, target_bias)
                p = target.exp()
                total += (p * (target - own)).sum()
                grad = own.exp_().sub_(p)  # d KL(p || q) / d logits of q
                if grad_bias is not None:
                    grad_bias += grad.sum(0)
                grad = grad.to(low)
                grad_hidden[start : start + rows] = grad @ weight_low
                grad_weight += grad.T @ part
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx, grad):  # noqa: ANN001, ANN205
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        grad_bias = None if grad_bias is None else grad_bias * grad
        return grad_hidden * grad, grad_weight * grad, grad_bias, None, None, None


def projected_divergence(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target_hidden: Tensor,
    target_weight: Tensor,
    target_bias: Tensor | None,
) -> Tensor:
    """KL(p || q) of another model's next word, p, from this one's, q, summed over the tokens, in nats; differentiable.

    hidden (N, d_model), weight (V, d_model), bias (V,) or None: of q = softmax(hidden @ weight^T + bias).
    target_hidden, target_weight, target_bias: of p, likewise; its width may be another. No gradient goes there.
    """
    return _ProjectedDivergence.apply(hidden, weight, bias, target_hidden, target_weight, target_bias)
