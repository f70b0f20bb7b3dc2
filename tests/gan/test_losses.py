import math

import pytest
import torch

from gan.losses import OBJECTIVES, minimax_d, minimax_g, non_saturating_g, objective, over_scales

REAL, FAKE = torch.tensor([-2.0, 0.0, 3.0]), torch.tensor([-1.0, 0.5, 2.0])


def sigmoid(t):
    return 1 / (1 + math.exp(-t))


def test_minimax_is_the_formula_of_goodfellow():
    value = sum(math.log(sigmoid(t)) for t in REAL) / 3 + sum(math.log(1 - sigmoid(t)) for t in FAKE) / 3
    assert float(minimax_d(REAL, FAKE)) == pytest.approx(-value, rel=1e-5)
    assert float(minimax_g(FAKE)) == pytest.approx(sum(math.log(1 - sigmoid(t)) for t in FAKE) / 3, rel=1e-5)
    assert float(non_saturating_g(FAKE)) == pytest.approx(-sum(math.log(sigmoid(t)) for t in FAKE) / 3, rel=1e-5)


def test_stable_where_the_formula_is_not():
    far = torch.tensor([200.0, -200.0])
    assert torch.isfinite(minimax_d(far, far)) and torch.isfinite(non_saturating_g(far))


def test_gradient_of_a_hopeless_generator():
    """Section 3: minimax saturates where the discriminator is sure, the other objective does not."""
    gradients = []
    for loss in (minimax_g, non_saturating_g):
        logits = torch.tensor([-12.0], requires_grad=True)
        loss(logits).backward()
        gradients.append(abs(float(logits.grad)))
    assert gradients[0] < 1e-4 and gradients[1] == pytest.approx(1, abs=1e-4)


def test_least_squares_and_hinge_by_hand():
    assert float(OBJECTIVES["lsgan"].d(REAL, FAKE)) == pytest.approx(0.5 * ((9 + 1 + 4) / 3 + (1 + 0.25 + 4) / 3))
    assert float(OBJECTIVES["lsgan"].g(FAKE)) == pytest.approx(0.5 * (4 + 0.25 + 1) / 3)
    assert float(OBJECTIVES["hinge"].d(REAL, FAKE)) == pytest.approx((3 + 1 + 0) / 3 + (0 + 1.5 + 3) / 3)
    assert float(OBJECTIVES["hinge"].g(FAKE)) == pytest.approx(-(-1 + 0.5 + 2) / 3)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_side_improves_against_its_gradient(name):
    pair = objective(name)
    for loss in (lambda t: pair.d(t, FAKE), lambda t: pair.d(REAL, t), pair.g):
        t = torch.tensor([-0.5, 0.2, 0.4], requires_grad=True)
        before = loss(t)
        before.backward()
        assert loss((t - 0.05 * t.grad).detach()) < before.detach()


def test_scales_are_averaged_and_names_are_checked():
    loss = over_scales(OBJECTIVES["hinge"].g, [torch.tensor([1.0]), torch.tensor([3.0])])
    assert float(loss) == pytest.approx(-2)
    with pytest.raises(ValueError, match="known are: minimax"):
        objective("wasserstein")
