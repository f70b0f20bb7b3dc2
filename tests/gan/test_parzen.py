"""The Parzen window against another implementation."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import gaussian_kde, multivariate_normal

from gan import parzen


def draws(count, dimensions, seed=0):
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed))


def test_log_likelihood_is_that_of_scipys_kernel_density():
    samples, x, sigma = draws(200, 1), draws(50, 1, 1), 0.4
    kernel = gaussian_kde(samples[:, 0].numpy(), bw_method=sigma / samples.numpy().std(ddof=1))
    found = parzen.log_likelihoods(x, samples, (sigma,))[0]
    assert np.allclose(found.numpy(), kernel.logpdf(x[:, 0].numpy()), atol=1e-4)


def test_log_likelihood_in_many_dimensions_is_that_of_scipys_mixture():
    samples, x = draws(40, 30), draws(9, 30, 1)
    for sigma, found in zip((0.3, 0.7), parzen.log_likelihoods(x, samples, (0.3, 0.7))):
        each = [multivariate_normal(row, sigma**2).logpdf(x.numpy()) for row in samples.numpy()]
        assert np.allclose(found.numpy(), logsumexp(each, axis=0) - np.log(40), atol=1e-3)


def test_sigma_is_chosen_on_the_validation_set_and_the_error_is_of_the_mean():
    samples, valid, test = draws(2000, 2), draws(300, 2, 1), draws(400, 2, 2)
    score = parzen.evaluate(samples, valid, test)
    assert [sigma for sigma, _ in score.curve] == pytest.approx(np.logspace(-1, 0, 10))
    assert score.sigma == max(score.curve, key=lambda point: point[1])[0]
    each = parzen.log_likelihoods(test, samples, (score.sigma,))[0]
    assert score.mean == pytest.approx(float(each.mean()))
    assert score.error == pytest.approx(float(each.numpy().std() / np.sqrt(400)))
    # The entropy of a standard Gaussian in two dimensions is log(2 pi e) = 2.84 nats.
    assert score.mean == pytest.approx(-2.84, abs=0.15)


def test_a_collapsed_sigma_is_finite_and_very_low():
    found = parzen.log_likelihoods(draws(10, 784, 1), draws(100, 784), (0.01,))
    assert torch.isfinite(found).all() and float(found.mean()) < -100_000


@pytest.mark.parametrize("shape", [(0, 4), (3, 5)])
def test_sets_that_do_not_fit_are_one_sentence(shape):
    with pytest.raises(ValueError, match="needs valid as rows of 4 numbers"):
        parzen.evaluate(draws(5, 4), torch.zeros(shape), draws(5, 4))
