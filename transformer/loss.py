"""Cross-entropy with label smoothing (section 5.4), without ever storing the smoothed targets."""

import torch
from torch import Tensor

CHUNK_ELEMENTS = 1 << 22  # logits of one chunk: 16 MB in fp32, which stays in a CPU's last cache


def chunk_rows(hidden: Tensor, vocab: int) -> int:
    """Tokens whose logits are computed together."""
    return max(1, CHUNK_ELEMENTS // vocab) if hidden.device.type == "cpu" else 8192


def product_type(hidden: Tensor) -> torch.dtype:
    """Inside autocast the products run in its dtype; sums stay in fp32."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


class _ProjectedLoss(torch.autograd.Function):
    """The logits of a chunk, its loss and its gradient, while the chunk is still in the cache.

    Storing the logits of a whole batch (tokens times vocabulary) would cost more time than the product itself.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, targets, smoothing):  # noqa: ANN001, ANN205
        vocab = weight.shape[0]
        rows, low = chunk_rows(hidden, vocab), product_type(hidden)
        need = any(ctx.needs_input_grad[:3])
        hidden_low, weight_low = hidden.to(low), weight.to(low)
        grad_hidden = torch.empty_like(hidden if need else hidden[:0])
        grad_weight = torch.zeros_like(weight if need else weight[:0])
        grad_bias = torch.zeros_like(bias) if need and bias is not None else None
        loss = hidden.new_zeros((), dtype=torch.float32)
        plain = hidden.new_zeros((), dtype=torch.float32)
        with torch.autocast(hidden.device.type, enabled=False):
            for start in range(0, hidden.shape[0], rows):
                part, target = hidden_low[start : start + rows], targets[start : start + rows, None]
                logits = part @ weight_low.T
                if bias is not None:
                    logits = logits + bias
                # One pass that reads the logits as they are and sums in fp32. The likeliest word's p is 1/V or more, so
                # its logarithm is exact where a word's own might be that of 0.
                probs = torch.softmax(logits, -1, dtype=torch.float32)
                log_z = logits.amax(-1).float() - probs.amax(-1).log()
                own, mean = logits.gather(-1, target)[:, 0].float(), logits.mean(-1, dtype=torch.float32)
                loss += (log_z - (1.0 - smoothing) * own - smoothing * mean).sum()
                plain += (log_z - own).sum()
                if need:
                    # d loss / d logits = p - smoothed target
                    probs.sub_(smoothing / vocab)
                    probs.scatter_add_(-1, target, probs.new_full((1, 1), smoothing - 1.0).expand_as(target))
                    if grad_bias is not None:
                        grad_bias += probs.sum(0)
                    grad = probs.to(low)
                    grad_hidden[start : start + rows] = grad @ weight_low
                    if low == weight.dtype:
                        grad_weight.addmm_(grad.T, part)
                    else:
                        grad_weight += grad.T @ part
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx, grad, _):  # noqa: ANN001, ANN205
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        grad_bias = None if grad_bias is None else grad_bias * grad
        return grad_hidden * grad, grad_weight * grad, grad_bias, None, None


def projected_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss of hidden @ weight^T + bias, summed over the tokens, and the plain one for perplexity.

    hidden (N, d_model), weight (V, d_model), bias (V,) or None, targets (N,). Returns two scalars in nats: the sum of
    the smoothed loss (differentiable), and the sum of -log p(target) (only to be looked at).
    """
    return _ProjectedLoss.apply(hidden, weight, bias, targets, smoothing)
