from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from vton.networks.config import LITE
from vton.networks.segmentation import (
    GAIN,
    SegmentationGenerator,
    binary_noise,
    generator_input,
    likeliest,
    segment,
    upscale,
)


def test_input_channels_are_in_the_released_order():
    cloth, mask = torch.full((1, 3, 2, 2), 0.5), torch.tensor([[[[1.0, 0], [1, 0]]]])
    parse, pose, noise = torch.full((1, 13, 2, 2), 2.0), torch.full((1, 3, 2, 2), 3.0), torch.full((1, 1, 2, 2), 4.0)
    x = generator_input(cloth, mask, parse, pose, noise)
    assert x.shape == (1, 21, 2, 2)
    assert torch.equal(x[:, :1], mask)
    assert x[0, 1:4, 0].tolist() == [[0.5, 0]] * 3  # the cloth is masked
    assert x[0, 4:, 0, 0].tolist() == [2] * 13 + [3] * 3 + [4]


def test_noise_is_binary_with_the_measured_share_and_seeded():
    noise = binary_noise((1, 1, 256, 192), torch.Generator().manual_seed(1))
    assert set(noise.unique().tolist()) == {0.0, 1.0}
    assert float(noise.mean()) == pytest.approx(0.159, abs=0.01)
    assert torch.equal(noise, binary_noise((1, 1, 256, 192), torch.Generator().manual_seed(1)))


def test_upscale_is_the_released_blur_at_full_size():
    """Bilinear, then a 15x15 Gaussian of sigma 3 with zero padding."""
    scores = torch.rand(1, 2, 8, 6, generator=torch.Generator().manual_seed(0))
    big = torch.nn.functional.interpolate(scores, (1024, 768), mode="bilinear", align_corners=False)
    t = torch.arange(-7, 8, dtype=torch.float32)
    kernel = torch.exp(-(t**2) / 18)
    kernel = (kernel / kernel.sum()).outer(kernel / kernel.sum())
    wanted = torch.nn.functional.conv2d(big.transpose(0, 1), kernel[None, None], padding=7).transpose(0, 1)
    torch.testing.assert_close(upscale(scores, (1024, 768)), wanted, atol=1e-5, rtol=0)


def test_the_likeliest_class_is_the_argmax():
    scores = torch.rand(2, 13, 40, 30, generator=torch.Generator().manual_seed(3))
    scores[0, 5] = scores[0, 9] = 2.0  # of equal ones the first
    assert torch.equal(likeliest(scores), scores.argmax(1)) and (likeliest(scores)[0] == 5).all()


def test_segment_gives_classes_at_the_input_size_and_gradients_flow():
    network = SegmentationGenerator(LITE.segmentation)
    out = network(torch.rand(2, 21, 64, 48))
    assert out.shape == (2, 13, 64, 48)
    out.square().mean().backward()
    assert all(p.grad is not None for p in network.parameters())
    network.eval()
    args = torch.rand(1, 3, 128, 96), torch.ones(1, 1, 128, 96), torch.rand(1, 13, 128, 96), torch.rand(1, 3, 128, 96)
    classes = segment(network, *args)
    assert classes.shape == (1, 128, 96) and int(classes.max()) <= 12
    assert torch.equal(classes, segment(network, *args))


def test_with_the_mirrored_pose_the_mirror_image_of_the_input_gives_the_mirror_image_of_the_answer():
    torch.manual_seed(2)
    network = SegmentationGenerator(LITE.segmentation).eval()
    cloth, mask, parse = torch.rand(1, 3, 128, 96), torch.ones(1, 1, 128, 96), torch.rand(1, 13, 128, 96)
    pose, mirrored, noise = torch.rand(1, 3, 128, 96), torch.rand(1, 3, 128, 96), torch.rand(1, 1, 256, 192)
    sides = torch.tensor([0, 1, 2, 3, 4, 6, 5, 8, 7, 10, 9, 11, 12])
    one = segment(network, cloth, mask, parse, pose, noise, mirrored)
    other = segment(network, cloth.flip(-1), mask.flip(-1), parse.flip(-1)[:, sides], mirrored, noise.flip(-1), pose)
    assert len(one.unique()) > 2
    assert (sides[other.flip(-1)] == one).float().mean() > 0.999
    alone = segment(network, cloth, mask, parse, pose, noise)
    assert (alone != one).any()
    assert (
        sides[
            segment(network, cloth.flip(-1), mask.flip(-1), parse.flip(-1)[:, sides], mirrored, noise.flip(-1)).flip(-1)
        ]
        != alone
    ).float().mean() > 0.01


def told_network():
    """A small generator with random scales and shifts of seven attributes, and the same without."""
    torch.manual_seed(4)
    network = SegmentationGenerator(replace(LITE.segmentation, width=6, attributes=7)).eval()
    plain = SegmentationGenerator(replace(LITE.segmentation, width=6)).eval()
    plain.load_state_dict({k: v for k, v in network.state_dict().items() if not k.startswith("told.")})
    return network, plain


def test_attributes_change_nothing_at_first_and_unknown_ones_never():
    network, plain = told_network()
    x, known = torch.rand(2, 21, 32, 32), torch.eye(7)[[0, 4]]
    for told in (None, known, torch.zeros(2, 7)):
        torch.testing.assert_close(network(x, told), plain(x), atol=1e-5, rtol=0)
    torch.testing.assert_close(plain(x, known), plain(x))  # the published network does not read them
    for linear in network.told:
        torch.nn.init.normal_(linear.weight, std=0.05)
    torch.testing.assert_close(network(x, torch.zeros(2, 7)), plain(x), atol=1e-5, rtol=0)
    assert (network(x, known) - plain(x)).abs().mean() > 0.01
    assert (network(x, known) - network(x, known.flip(0))).abs().mean() > 0.01


def test_attributes_scale_and_shift_the_last_normalisation_by_hand():
    network, plain = told_network()
    torch.nn.init.normal_(network.told[1].weight, std=0.1)
    x, told = torch.rand(1, 6, 8, 8), torch.tensor([[0, 1.0, 0, 0, 0, 0, 1]])
    h = F.relu(F.instance_norm(plain.conv2[0](x)))
    h = F.instance_norm(plain.conv2[3](h))
    weight = network.told[1].weight[:, 1] + network.told[1].weight[:, 6]
    scale, shift = (GAIN * weight)[:12, None, None], (GAIN * weight)[12:, None, None]
    torch.testing.assert_close(network._block(told, 2, x), F.relu(h * (1 + scale) + shift), atol=1e-5, rtol=0)


def test_constant_planes_beside_the_input_would_say_nothing():
    """Why attributes are not given as planes: away from the border the first normalisation takes a constant away."""
    _, plain = told_network()
    x = torch.rand(1, 21, 32, 32)
    told = torch.cat((x[:, :20], torch.full_like(x[:, 20:], 5.0)), 1)
    x = torch.cat((x[:, :20], torch.zeros_like(x[:, 20:])), 1)
    conv, inside = plain.conv1[0], (..., slice(1, -1), slice(1, -1))
    assert (conv(told) - conv(x))[inside].abs().max() > 0.1
    one, other = (F.instance_norm(conv(y)[inside]) for y in (told, x))
    torch.testing.assert_close(one, other, atol=1e-4, rtol=0)
