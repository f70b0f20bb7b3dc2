"""Label smoothing on a table written by hand, the fused loss, and equation 3."""

import math

import pytest
import torch

from transformer.loss import projected_cross_entropy
from transformer.schedule import learning_rate


def smoothed_cross_entropy(logits, targets, smoothing):
    """Cross-entropy against (1 - e) * one_hot(target) + e / V, per token (section 5.4).

    logits (N, V), targets (N,) ids, smoothing e in [0, 1). Returns (N,) in nats.
    """
    log_probs = logits.float().log_softmax(-1)
    own = log_probs.gather(-1, targets[:, None])[:, 0]
    return -(1.0 - smoothing) * own - smoothing * log_probs.mean(-1)


def test_label_smoothing_by_hand():
    # Four words, epsilon 0.2: the target gets 0.8 + 0.05, each other word 0.05.
    probs = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]]
    targets = [0, 3, 1]
    smoothed = [[0.85, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85], [0.05, 0.85, 0.05, 0.05]]
    expected = [-sum(q * math.log(p) for q, p in zip(*row)) for row in zip(smoothed, probs)]
    found = smoothed_cross_entropy(torch.tensor(probs).log(), torch.tensor(targets), 0.2)
    torch.testing.assert_close(found, torch.tensor(expected))
    plain = smoothed_cross_entropy(torch.tensor(probs).log(), torch.tensor(targets), 0.0)
    torch.testing.assert_close(plain, -torch.tensor([0.7, 0.25, 0.2]).log())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True])
def test_fused_loss_has_the_value_and_gradient_of_the_plain_one(smoothing, bias, monkeypatch):
    monkeypatch.setattr("transformer.loss.CHUNK_ELEMENTS", 7 * 40)  # several chunks, the last one shorter
    torch.manual_seed(0)
    hidden = torch.randn(23, 16, requires_grad=True)
    weight = torch.randn(40, 16, requires_grad=True)
    offset = torch.randn(40, requires_grad=True) if bias else None
    targets = torch.randint(40, (23,))
    inputs = [hidden, weight] + ([offset] if bias else [])
    loss, plain = projected_cross_entropy(hidden, weight, offset, targets, smoothing)
    found = torch.autograd.grad(loss * 0.5, inputs)
    logits = hidden @ weight.T + (offset if bias else 0)
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(loss, smoothed_cross_entropy(logits, targets, smoothing).sum())
    torch.testing.assert_close(plain, torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
    for own, other in zip(found, torch.autograd.grad(expected * 0.5, inputs)):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_fused_loss_in_bf16_stays_close():
    torch.manual_seed(0)
    hidden, weight = torch.randn(50, 32, requires_grad=True), torch.randn(300, 32, requires_grad=True) * 0.2
    weight.retain_grad()
    targets = torch.randint(300, (50,))
    exact, _ = projected_cross_entropy(hidden, weight, None, targets, 0.1)
    gradients = torch.autograd.grad(exact, (hidden, weight), retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low, _ = projected_cross_entropy(hidden, weight, None, targets, 0.1)
    assert low.item() == pytest.approx(exact.item(), rel=2e-3)
    for own, other in zip(torch.autograd.grad(low, (hidden, weight)), gradients):
        assert own.dtype == torch.float32
        assert (own - other).norm() / other.norm() < 0.02


def test_schedule_is_equation_3():
    for step in (1, 10, 4000, 4001, 100000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(step, 512, 4000) == expected
    rates = [learning_rate(s, 512, 50) for s in range(1, 200)]
    assert rates.index(max(rates)) == 49  # highest at the last step of the warm-up
    assert rates[9] == pytest.approx(10 * rates[0])
    assert learning_rate(7, 512, 50, scale=2.0) == 2 * learning_rate(7, 512, 50)
    with pytest.raises(ValueError, match="step"):
        learning_rate(0, 512, 4000)


def test_a_word_that_is_all_but_impossible_costs_what_it_costs():
    """Its probability is 0 in fp32; the loss and its gradient are not."""
    hidden = torch.tensor([[200.0, 0.0]], requires_grad=True)
    weight, target = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), torch.tensor([2])
    smoothed, plain = projected_cross_entropy(hidden, weight, None, target, 0.1)
    assert float(plain) == 400.0
    wanted = torch.nn.functional.cross_entropy(hidden @ weight.T, target, label_smoothing=0.1)
    torch.testing.assert_close(smoothed, wanted)
    torch.testing.assert_close(torch.autograd.grad(smoothed, hidden), torch.autograd.grad(wanted, hidden))
