"""The divergence from another model, against torch's own."""

import pytest
import torch

from lab.translator.divergence import projected_divergence


@pytest.mark.parametrize("bias", [False, True])
def test_divergence_has_the_value_and_gradient_of_the_plain_one(bias, monkeypatch):
    monkeypatch.setattr("transformer.loss.CHUNK_ELEMENTS", 7 * 40)
    torch.manual_seed(0)
    hidden, weight = torch.randn(23, 16, requires_grad=True), torch.randn(40, 16, requires_grad=True)
    wanted = torch.randn(23, 8), torch.randn(40, 8), torch.randn(40) if bias else None
    offset = torch.randn(40, requires_grad=True) if bias else None
    inputs = [hidden, weight] + ([offset] if bias else [])
    found = projected_divergence(hidden, weight, offset, *wanted)
    p = (wanted[0] @ wanted[1].T + (wanted[2] if bias else 0)).log_softmax(-1)
    q = (hidden @ weight.T + (offset if bias else 0)).log_softmax(-1)
    expected = torch.nn.functional.kl_div(q, p, reduction="sum", log_target=True)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(found * 0.5, inputs)
    for own, other in zip(gradients, torch.autograd.grad(expected * 0.5, inputs), strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)
    same = projected_divergence(hidden, weight, offset, hidden.detach(), weight.detach(), offset)
    assert same.item() == pytest.approx(0.0, abs=1e-4)
