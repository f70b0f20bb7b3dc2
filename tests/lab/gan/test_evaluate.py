"""Table 1's Parzen log-likelihood, and Theis et al.'s refutation of it."""

import pytest
import torch

from gan import parzen
from gan.digits import Digits
from lab.gan import evaluate


def draws(count, dimensions, seed=0):
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed))


def test_k_means_can_beat_the_data_themselves():
    """Theis et al. 2016, section 3.2: few noisy examples in many dimensions; centroids take the noise away."""
    random = torch.Generator().manual_seed(0)
    centres = torch.rand(20, 60, generator=random)

    def some(count):
        rows = centres[torch.randint(20, (count,), generator=random)]
        return rows + 0.15 * torch.randn(count, 60, generator=random)

    digits = Digits(some(600), some(200), some(200))
    scores = evaluate.table(draws(600, 60), digits, centroids=60)
    assert scores["k-means, 60 centroids"].mean > scores["training data"].mean + 5
    assert scores["training data"].mean > scores["Gaussian"].mean > scores["adversarial nets"].mean
    assert len(evaluate.lines(scores)) == 5


def test_k_means_lowers_its_cost_and_keeps_to_its_bounds():
    rows = draws(300, 4)
    cost = [
        float(parzen.squared_distances(rows, evaluate.k_means(rows, 12, rounds)).min(1).values.sum())
        for rounds in (0, 1, 10)
    ]
    assert cost[0] > cost[1] > cost[2]
    with pytest.raises(ValueError, match="1 to 300 centroids"):
        evaluate.k_means(rows, 301)


def test_the_gaussian_has_the_datas_moments():
    rows = draws(500, 3) @ torch.tensor([[2.0, 0.5, 0], [0, 1, 0], [0, 0, 0.1]]) + 3
    made = evaluate.gaussian(rows, 40_000)
    assert torch.allclose(made.mean(0), rows.mean(0), atol=0.05)
    assert torch.allclose(torch.cov(made.T), torch.cov(rows.T), atol=0.15)
