from dataclasses import replace

import pytest
import torch
from torch.nn.utils import spectral_norm

from vton.networks import alias_inference
from vton.networks.alias import (
    EPS,
    AliasGenerator,
    AliasNorm,
    SpectralConv2d,
    gaussian_noise,
    misalignment,
    standardise,
)
from vton.networks.alias_inference import forward, gamma_and_beta, neighbourhoods
from vton.networks.config import LITE, PAPER, AliasConfig
from vton.networks.discriminator import MultiScaleDiscriminator, gradient_penalty
from vton.networks.losses import gradient_difference

SMALL = AliasConfig(width=8, widest=4, hidden=6, injected=3, levels=5, masked=3)


def by_equations(h, mask):
    """Equations 5 to 7 in plain loops, without gamma and beta; eps as in the released code."""
    out = torch.zeros_like(h)
    for n in range(h.shape[0]):
        for k in range(h.shape[1]):
            for region in (mask[n, 0] > 0, mask[n, 0] == 0):
                if region.any():
                    values = h[n, k][region]
                    mu = values.mean()
                    sigma2 = (values - mu).square().mean()
                    out[n, k][region] = (values - mu) / (sigma2 + EPS * region.numel() / region.sum()).sqrt()
    return out


@pytest.mark.parametrize("kind", ["some", "empty", "full", "one pixel"])
def test_standardise_equals_the_equations(kind):
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(2, 3, 6, 5, generator=generator) * 3 + 1
    mask = (torch.rand(2, 1, 6, 5, generator=generator) > 0.6).float()
    if kind != "some":
        mask[:] = float(kind == "full")
    if kind == "one pixel":
        mask[:, :, 2, 3] = 1
    torch.testing.assert_close(standardise(h, mask), by_equations(h, mask), atol=1e-4, rtol=1e-4)


def test_without_a_mask_it_is_instance_normalisation():
    h = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(standardise(h, None), torch.nn.InstanceNorm2d(3)(h))
    torch.testing.assert_close(
        standardise(h, torch.zeros(2, 1, 8, 8)), torch.nn.InstanceNorm2d(3)(h), atol=1e-4, rtol=1e-4
    )


def test_the_misaligned_region_does_not_touch_the_other():
    """The paper's point: what lies in the misaligned region leaves the other region's activations as they are."""
    h = torch.randn(1, 2, 8, 8, generator=torch.Generator().manual_seed(2))
    mask = torch.zeros(1, 1, 8, 8)
    mask[..., :3] = 1
    changed = h + 50 * mask
    torch.testing.assert_close(standardise(h, mask)[..., 3:], standardise(changed, mask)[..., 3:], atol=1e-5, rtol=0)
    assert (standardise(h, None)[..., 3:] - standardise(changed, None)[..., 3:]).abs().mean() > 0.3


def test_modulation_is_one_plus_gamma_and_beta():
    norm = AliasNorm(4, 7, 5)
    h, segmentation = torch.randn(1, 4, 6, 6), torch.rand(1, 7, 6, 6)
    shared = norm.conv_shared(segmentation)
    wanted = standardise(h, None) * (1 + norm.conv_gamma(shared)) + norm.conv_beta(shared)
    torch.testing.assert_close(norm(h, segmentation, None, None), wanted)
    noise = torch.randn(1, 1, 6, 6)
    torch.testing.assert_close(norm(h, segmentation, None, noise), wanted)  # noise_scale starts at zero
    with torch.no_grad():
        norm.noise_scale.fill_(0.5)
    assert not torch.allclose(norm(h, segmentation, None, noise), wanted)


def test_misalignment_by_hand():
    seven = torch.zeros(1, 7, 1, 4)
    seven[0, 2] = torch.tensor([[1.0, 1, 0, 0]])
    seven[0, 0] = torch.tensor([[0.0, 0, 1, 1]])
    warped = torch.tensor([[[[1.0, 0, 1, 0]]]])
    misalign, divided = misalignment(seven, warped)
    assert misalign.tolist() == [[[[0, 1, 0, 0]]]]  # in the region, but no cloth arrives
    assert divided[0, 2].tolist() == [[1, 0, 0, 0]]  # what is aligned
    assert divided[0, 7].tolist() == [[0, 1, 0, 0]]
    torch.testing.assert_close(divided.sum(1), torch.ones(1, 1, 4))
    assert seven[0, 2].tolist() == [[1, 1, 0, 0]]  # the input stays


def inputs(config, size):
    generator = torch.Generator().manual_seed(3)
    seven = (
        torch.nn.functional.one_hot(torch.randint(0, 7, (1, *size), generator=generator), 7).permute(0, 3, 1, 2).float()
    )
    misalign, divided = misalignment(seven, (torch.rand(1, 1, *size, generator=generator) > 0.5).float())
    return torch.rand(1, config.inputs, *size, generator=generator) * 2 - 1, seven, divided, misalign


def test_generator_range_gradients_and_instance_variant():
    network = AliasGenerator(SMALL)
    x, seven, divided, misalign = inputs(SMALL, (64, 48))
    out = network(x, seven, divided, misalign, noise=gaussian_noise(0))
    assert out.shape == (1, 3, 64, 48) and out.abs().max() <= 1
    out.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())
    network.eval()
    with torch.no_grad():
        alias, instance = (network(x, seven, divided, misalign, norm=norm) for norm in ("alias", "instance"))
        assert (alias - instance).abs().max() > 1e-3
        nothing = torch.zeros_like(misalign)
        torch.testing.assert_close(
            network(x, seven, divided, nothing),
            network(x, seven, divided, nothing, norm="instance"),
            atol=1e-4,
            rtol=1e-4,
        )


def test_noise_follows_its_seed():
    network = AliasGenerator(SMALL).eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, AliasNorm):
                module.noise_scale.fill_(0.3)
        arguments = inputs(SMALL, (32, 32))
        one, same, other = (network(*arguments, noise=gaussian_noise(seed)) for seed in (5, 5, 6))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_channels_of_the_figure_and_errors():
    assert PAPER.alias.channels() == (1024, 1024, 1024, 512, 256, 128, 64, 32)
    assert len(LITE.alias.channels()) == LITE.alias.levels
    network = AliasGenerator(SMALL)
    with pytest.raises(ValueError, match="multiples of 16, but the picture is 40x48"):
        network(*inputs(SMALL, (40, 48)))
    with pytest.raises(ValueError, match="norm must be one of"):
        network(*inputs(SMALL, (32, 32)), norm="batch")


def test_spectral_normalisation_is_that_of_torch():
    """The same names in the state and the same answers, while learning and after it."""
    torch.manual_seed(0)
    ours, theirs = SpectralConv2d(5, 7, 3, padding=1), spectral_norm(torch.nn.Conv2d(5, 7, 3, padding=1))
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 5, 9, 9)
    for training in (True, True, False):
        torch.testing.assert_close(ours.train(training)(x), theirs.train(training)(x))
    torch.testing.assert_close(ours.state_dict(), dict(theirs.state_dict()), check_device=False)


def test_spectral_convolution_has_unit_norm():
    torch.manual_seed(0)
    layer = SpectralConv2d(6, 8, 3, padding=1)
    with torch.no_grad():
        layer.weight_orig.mul_(7)
    layer.train()
    for _ in range(300):
        layer(torch.rand(1, 6, 5, 5))
    layer.eval()
    assert float(torch.linalg.matrix_norm(layer.spectral_weight().detach().flatten(1), 2)) == pytest.approx(1, abs=1e-3)
    x = torch.rand(1, 6, 5, 5)
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(x, layer.spectral_weight(), layer.bias, padding=1))


# -- inference, where every distinct neighbourhood is computed once --------------------------------------------------


def one_hot(label_map, k=7):
    return torch.nn.functional.one_hot(label_map, k).movedim(-1, 0).float()


def label_maps(size):
    """Label maps (H, W) of several kinds: what networks predict, and what they never would."""
    generator, (height, width) = torch.Generator().manual_seed(4), size
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    regions = ((y - height / 2) ** 2 + (x - width / 3) ** 2 < (height / 3) ** 2).long() * 2 + (
        x > 0.8 * width
    ).long() * 3
    return {
        "regions": regions,
        "noise": torch.randint(0, 7, size, generator=generator),
        "one label": torch.full(size, 2),
    }


def lively(network):
    """The network in evaluation mode, with noise and modulation that leave their traces."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, AliasNorm):
                module.noise_scale.normal_(0, 0.3)
                module.conv_gamma.weight.mul_(3)
    return network.eval()


def both_ways(network, *arguments, **options):
    """The answers of the modules as they train, and of the quick way without gradients."""
    return network(*arguments, **options).detach(), forward(network, *arguments, **options)


@pytest.mark.parametrize("size", [(9, 7), (3, 2), (6, 11)])
def test_gamma_and_beta_of_the_distinct_neighbourhoods_equal_the_full_maps(size):
    torch.manual_seed(5)
    for kind, labels in label_maps(size).items():
        maps = one_hot(labels)
        if kind == "regions":
            maps[:, 1] = torch.rand(7, size[1])  # a soft row
        norm, around = AliasNorm(4, 7, 5), neighbourhoods(maps, None)
        gamma, beta = gamma_and_beta(norm, around, chunk=3)
        shared = norm.conv_shared(maps[None])
        for table, convolution in ((gamma, norm.conv_gamma), (beta, norm.conv_beta)):
            torch.testing.assert_close(
                table[around.index].movedim(-1, 0)[None], convolution(shared), atol=1e-6, rtol=1e-5
            )


def test_few_neighbourhoods_are_distinct_in_a_picture_of_regions():
    maps = one_hot(label_maps((128, 96))["regions"])
    assert len(neighbourhoods(maps, None).kinds) < 0.12 * 128 * 96
    # A pixel counts as another where the mask differs, even in the middle of one label.
    mask = torch.zeros(1, 128, 96)
    mask[:, 60:70, 20:30] = 1
    around = neighbourhoods(maps, mask)
    assert torch.equal(around.mask[around.index], mask[0])


@pytest.mark.parametrize("mask", ["some", "empty", "full", "soft"])
@pytest.mark.parametrize("kind", ["regions", "noise", "one label"])
def test_without_gradients_the_answer_is_the_same(kind, mask, monkeypatch):
    monkeypatch.setattr(alias_inference, "BAND", 4096)  # several bands in every level
    torch.manual_seed(6)
    network, (height, width) = lively(AliasGenerator(SMALL)), (80, 48)
    x, *_ = inputs(SMALL, (height, width))
    seven = one_hot(label_maps((height, width))[kind])[None]
    warped = {
        "some": (torch.rand(1, 1, height, width) > 0.5).float(),
        "empty": torch.ones(1, 1, height, width),
        "full": torch.zeros(1, 1, height, width),
        "soft": torch.rand(1, 1, height, width),
    }[mask]
    misalign, divided = misalignment(seven, warped)
    for norm in ("alias", "instance"):
        slow, quick = both_ways(network, x, seven, divided, misalign, norm=norm)
        torch.testing.assert_close(quick, slow, atol=1e-5, rtol=0)
        assert slow.std() > 0.01


def test_the_same_with_noise_in_a_batch_at_odd_levels():
    config = AliasConfig(width=8, widest=4, hidden=6, injected=3, levels=6, masked=4)
    torch.manual_seed(7)
    network = lively(AliasGenerator(config))
    pairs = [inputs(config, (96, 32)), inputs(config, (96, 32))]
    pairs[1] = (pairs[1][0].flip(3), *(t.flip(2) for t in pairs[1][1:]))
    arguments = [torch.cat(parts) for parts in zip(*pairs)]
    slow = network(*arguments, noise=gaussian_noise(3)).detach()
    quick, other = (forward(network, *arguments, noise=gaussian_noise(seed)) for seed in (3, 4))
    torch.testing.assert_close(quick, slow, atol=1e-5, rtol=0)
    assert not torch.allclose(quick, other, atol=1e-3) and not torch.allclose(quick[0], quick[1], atol=1e-3)


def test_inputs_stay_as_they_are_and_bad_ones_are_refused():
    network = lively(AliasGenerator(SMALL))
    arguments = inputs(SMALL, (32, 32))
    copies = [a.clone() for a in arguments]
    assert not forward(network, *arguments).requires_grad
    assert all(torch.equal(a, c) for a, c in zip(arguments, copies))
    with pytest.raises(ValueError, match="multiples of 16, but the picture is 40x48"):
        forward(network, *inputs(SMALL, (40, 48)))
    with pytest.raises(ValueError, match="norm must be one of"):
        forward(network, *arguments, norm="batch")


def test_composition_lays_the_share_alpha_of_the_cloth_over_the_rendered_picture():
    torch.manual_seed(0)
    network = AliasGenerator(replace(SMALL, composition=True)).eval()
    assert network.conv_img.out_channels == 4 and AliasGenerator(SMALL).conv_img.out_channels == 3
    x, segmentation = torch.rand(2, 9, 32, 16) * 2 - 1, torch.zeros(2, 7, 32, 16)
    segmentation[:, 2, 8:24], segmentation[:, 0, :8], segmentation[:, 0, 24:] = 1, 1, 1
    warped_mask = torch.zeros(2, 1, 32, 16)
    warped_mask[:, :, 4:20] = 1
    misalign, divided = misalignment(segmentation, warped_mask)
    quick = forward(network, x, segmentation, divided, misalign, parts=True)
    plain = network(x, segmentation, divided, misalign, parts=True)
    for one, other in zip(quick, plain):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    picture, rendered, alpha, kept = plain
    assert not kept.any()
    torch.testing.assert_close(picture, alpha * x[:, 6:] + (1 - alpha) * rendered)
    assert alpha.shape == (2, 1, 32, 16) and float(alpha[:, :, 8:20].min()) > 0 and float(alpha.max()) < 1
    assert not alpha[:, :, :8].any() and not alpha[:, :, 20:].any()  # outside the region, and where there is no cloth
    torch.testing.assert_close(network(x, segmentation, divided, misalign), picture)


def test_without_composition_the_picture_is_what_is_rendered():
    network = AliasGenerator(SMALL).eval()
    x, segmentation = torch.rand(1, 9, 16, 16), torch.zeros(1, 7, 16, 16)
    misalign, divided = misalignment(segmentation, torch.zeros(1, 1, 16, 16))
    picture, rendered, alpha, kept = network(x, segmentation, divided, misalign, parts=True)
    assert picture is rendered and not alpha.any() and not kept.any()


def test_the_photograph_is_kept_where_it_is_shown_and_no_cloth_goes():
    torch.manual_seed(0)
    network = AliasGenerator(replace(SMALL, composition=True, keeps=True)).eval()
    assert network.conv_img.out_channels == 5
    x, segmentation = torch.rand(2, 9, 32, 16) * 2 - 1, torch.zeros(2, 7, 32, 16)
    segmentation[:, 2, 8:24], segmentation[:, 0, :8], segmentation[:, 0, 24:] = 1, 1, 1
    x[:, :3, :, 8:] = 128 / 127.5 - 1  # gray, as a picture's 128 becomes
    warped_mask = torch.zeros(2, 1, 32, 16)
    warped_mask[:, :, 4:20] = 1
    misalign, divided = misalignment(segmentation, warped_mask)
    quick = forward(network, x, segmentation, divided, misalign, parts=True)
    picture, rendered, alpha, kept = plain = network(x, segmentation, divided, misalign, parts=True)
    for one, other in zip(quick, plain):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    shown_wall = torch.zeros(2, 1, 32, 16, dtype=torch.bool)
    shown_wall[:, :, :8, :8] = shown_wall[:, :, 24:, :8] = True
    assert ((kept > 0) == shown_wall).all() and float(kept.max()) < 1
    painted = alpha * x[:, 6:] + (1 - alpha) * rendered
    torch.testing.assert_close(picture, kept * x[:, :3] + (1 - kept) * painted)
    with pytest.raises(ValueError, match="needs a composition"):
        AliasGenerator(replace(SMALL, keeps=True))


def test_gradient_difference_by_hand():
    real, fake = torch.zeros(1, 1, 2, 3), torch.tensor([[[[0.0, 1.0, 1.0], [0.0, 1.0, 3.0]]]])
    ones = torch.ones(1, 1, 2, 3)
    assert float(gradient_difference(real, fake, ones)) == pytest.approx((1 + 0 + 1 + 2) / 4 + (0 + 0 + 2) / 3)
    assert float(gradient_difference(fake, fake + 5, ones)) == 0
    assert float(gradient_difference(real, fake, 0 * ones)) == 0


def test_the_gradient_penalty_is_the_squared_slope_of_the_critic():
    torch.manual_seed(0)
    critic = MultiScaleDiscriminator(4, 4, layers=2).double().eval()
    x, step = torch.rand(1, 4, 32, 32, dtype=torch.float64), 1e-5
    critic.float()
    penalty = gradient_penalty(critic, x)
    penalty.backward()
    assert all(p.grad is not None for n, p in critic.named_parameters() if n.endswith("0.weight_orig"))
    critic.double()
    direction = torch.randn_like(x)

    def answer(y):
        return float(sum(scale[-1].mean() for scale in critic(y)))

    directional = (answer(x + step * direction) - answer(x - step * direction)) / (2 * step)
    y = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(sum(scale[-1].mean() for scale in critic(y)), y)
    assert directional == pytest.approx(float((gradient * direction).sum()), rel=1e-4)
    assert float(penalty) == pytest.approx(float(gradient.square().sum()), rel=1e-3)
