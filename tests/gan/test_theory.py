"""Section 4 against what is known by other means."""

import math

import pytest
import torch

from gan import measure, theory
from gan.algorithm import Plain, discriminator_step
from gan.densities import LIMIT, Mixture, distribution
from gan.losses import objective
from gan.networks import SMALL, Discriminator, Generator


def bump(centre, std=0.4):
    return Mixture(torch.tensor([[centre]]), std, torch.ones(1))


def on_line(mixture):
    return mixture.density(measure.grid(1))


CELL = 2 * LIMIT / measure.CELLS[1]


def test_equal_densities_have_no_divergence_and_disjoint_ones_log_2():
    p = on_line(distribution("two bumps"))
    assert theory.jsd(p, p, CELL) == 0
    assert theory.criterion(p, p, CELL) == pytest.approx(-math.log(4))
    far = theory.jsd(on_line(bump(-3.0, 0.1)), on_line(bump(3.0, 0.1)), CELL)
    assert far == pytest.approx(math.log(2), abs=1e-4)


def test_kl_of_gaussians_is_the_closed_form():
    found = theory.kl(on_line(bump(0.5, 0.5)), on_line(bump(-0.2, 0.7)), CELL)
    assert found == pytest.approx(math.log(0.7 / 0.5) + (0.25 + 0.49) / (2 * 0.49) - 0.5, abs=1e-3)


def test_jsd_in_the_plane_is_that_of_the_line_where_only_one_coordinate_differs():
    cells = measure.CELLS[2]
    grid = measure.grid(2)
    plane = [
        Mixture(torch.tensor([[x, 0.5]]), 0.5, torch.ones(1)).density(grid).view(cells, cells) for x in (-0.6, 0.7)
    ]
    line = [on_line(bump(x, 0.5)) for x in (-0.6, 0.7)]
    assert theory.jsd(*plane, (2 * LIMIT / cells) ** 2) == pytest.approx(theory.jsd(*line, CELL), abs=1e-3)


def test_the_best_discriminator_maximises_the_value_at_every_point():
    p, q = torch.tensor([0.3, 1.2, 0.0]), torch.tensor([0.6, 0.4, 2.0])
    best = theory.optimal_discriminator(p, q)
    assert best.tolist() == pytest.approx([1 / 3, 0.75, 0])
    d = torch.linspace(1e-4, 1 - 1e-4, 2001)
    value = p[:, None] * d.log() + q[:, None] * (1 - d).log()
    assert torch.allclose(d[value.argmax(1)], best, atol=1e-3)
    assert torch.isnan(theory.optimal_discriminator(torch.zeros(1), torch.zeros(1))).all()


def test_both_gradients_agree_with_autograd():
    logit = torch.linspace(-6, 6, 25, dtype=torch.float64)
    found = theory.generator_gradients(torch.sigmoid(logit))
    for name, loss in (("minimax", lambda d: (1 - d).log()), ("non_saturating", lambda d: -d.log())):
        d = torch.sigmoid(logit).requires_grad_()
        assert torch.allclose(getattr(found, name), loss(d))
        assert torch.allclose(getattr(found, f"{name}_by_d"), torch.autograd.grad(loss(d).sum(), d)[0])
        t = logit.clone().requires_grad_()
        assert torch.allclose(
            getattr(found, f"{name}_by_logit"), torch.autograd.grad(loss(torch.sigmoid(t)).sum(), t)[0]
        )
    # The two losses that training uses are the same functions.
    t = logit.clone().requires_grad_()
    objective("minimax").g(t).backward()
    assert torch.allclose(t.grad * len(t), found.minimax_by_logit)


def test_pushing_a_uniform_forward_gives_the_density_of_the_map():
    """x = z^2 sign(z) has density 1 / (4 sqrt |x|) on [-1, 1] for z uniform there."""
    z = torch.linspace(-1, 1, 2001)
    density = theory.push_forward(z * z.abs(), 4.0, 240)
    x = theory.cells(4.0, 240)
    inside = (x.abs() > 0.1) & (x.abs() < 0.95)
    assert torch.allclose(density[inside], 0.25 / x[inside].abs().sqrt(), rtol=0.02)
    assert float(density.sum() * (8 / 240)) == pytest.approx(1, abs=1e-5)


def test_deposited_and_blurred_points_have_the_density_of_their_smoothed_mixture():
    mixture = distribution("ring")
    points = mixture.sample(60_000, torch.Generator().manual_seed(0))
    width = 2 * LIMIT / 64
    found = theory.blur(theory.deposit(points, LIMIT, 64), width, measure.BANDWIDTH)
    wanted = measure.data_density(mixture)
    assert float(found.sum() * width**2) == pytest.approx(1, abs=1e-3)
    assert float((found - wanted).abs().max()) < 0.08 * float(wanted.max())


@pytest.fixture(scope="module")
def line():
    """A fresh generator on the line, and a discriminator that was trained against it alone."""
    random = torch.Generator().manual_seed(0)
    config, mixture = SMALL[1], distribution("line")
    G, D = Generator(config, random), Discriminator(config, random)
    adam = torch.optim.Adam(D.parameters(), lr=1e-2, betas=(0.9, 0.99))
    data = measure.data_density(mixture)

    def state():
        with torch.no_grad():
            fake = G(G.noise(20_000, random))
        real = mixture.sample(20_000, random)
        return measure.measure(G, D, objective("minimax"), data, real, fake)

    before = state()
    for step in range(300):
        for group in adam.param_groups:
            group["lr"] = 1e-2 * (1 - step / 300)
        discriminator_step(
            G,
            D,
            objective("minimax"),
            mixture.sample(512, random),
            G.noise(512, random),
            Plain({"discriminator": adam}),
        )
    return before, state()


def test_the_measured_discriminator_approaches_the_best_one(line):
    before, after = line
    assert before.error > 0.15 and after.error < 0.05


def test_the_criterion_from_samples_agrees_with_theorem_1(line):
    _, state = line
    assert state.jsd > 0.05
    assert state.criterion == pytest.approx(state.theorem, abs=0.03)
