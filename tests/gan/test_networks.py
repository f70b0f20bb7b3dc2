"""The two networks, and the files that keep them."""

import dataclasses
import json

import pytest
import torch

from gan.export import save_pair
from gan.networks import ROOT3, SMALL, Discriminator, GanConfig, Generator, Maxout, Pair

TINY = GanConfig(data=9, noise=4, generator=(6,), discriminator=(5, 3), pieces=2)


def test_maxout_is_the_loop_over_units_and_pieces():
    layer = Maxout(4, 3, 5)
    x = torch.randn(7, 4)
    weight = layer.linear.weight.detach().view(3, 5, 4)
    bias = layer.linear.bias.detach().view(3, 5)
    looped = [[max(float(weight[i, j] @ row + bias[i, j]) for j in range(5)) for i in range(3)] for row in x]
    assert torch.allclose(layer(x), torch.tensor(looped), atol=1e-6)


def test_the_default_sizes_are_those_of_the_authors_code():
    pair = Pair(GanConfig())
    shapes = [tuple(p.shape) for p in pair.parameters() if p.ndim == 2]
    assert shapes == [(1200, 100), (1200, 1200), (784, 1200), (1200, 784), (1200, 240), (1, 240)]
    keep = [1 - m.p for m in pair.discriminator.modules() if isinstance(m, torch.nn.Dropout)]
    assert keep == pytest.approx([0.8, 0.5, 0.5])
    assert float(pair.generator.layers[0].weight.abs().max()) == pytest.approx(0.05, abs=1e-4)
    assert float(pair.discriminator.layers[1].linear.weight.abs().max()) == pytest.approx(0.005, abs=1e-5)


def test_noise_is_uniform_with_variance_1_and_fixed_by_its_seed():
    generator = Generator(SMALL[2])
    z = generator.noise(20_000, torch.Generator().manual_seed(3))
    assert float(z.abs().max()) <= ROOT3 and float(z.var()) == pytest.approx(1, abs=0.02)
    assert torch.equal(z, generator.noise(20_000, torch.Generator().manual_seed(3)))


def test_the_generator_begins_at_the_marginals():
    generator = Generator(dataclasses.replace(TINY, range_g=1e-6))
    marginals = torch.linspace(0.1, 0.9, 9)
    generator.begin_at(marginals)
    assert torch.allclose(generator(generator.noise(3))[0], marginals, atol=1e-3)


def test_the_same_generator_of_random_numbers_gives_the_same_weights():
    made = [Discriminator(TINY, torch.Generator().manual_seed(5)).state_dict() for _ in range(2)]
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def test_dropout_only_while_training():
    pair, x = Pair(TINY), torch.rand(4, 9)
    torch.manual_seed(0)
    assert not torch.equal(pair.discriminator(x), pair.discriminator(x))
    pair.eval()
    assert torch.equal(pair.discriminator(x), pair.discriminator(x))


def test_a_pair_comes_back_from_its_folder(tmp_path):
    pair = Pair(TINY).eval()
    save_pair(tmp_path, TINY, pair.generator.state_dict(), pair.discriminator.state_dict())
    again = Pair.from_pretrained(tmp_path)
    assert again.config == TINY
    z = pair.generator.noise(3)
    assert torch.allclose(again.generator(z), pair.generator(z), atol=2e-3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"noise": 0}, "whole number from 1"),
        ({"keep_hidden": 0.0}, "probabilities"),
        ({"activation": "gelu"}, "'relu' or 'tanh'"),
        ({"layers": 3}, "Unknown field 'layers'"),
    ],
)
def test_impossible_configs_are_one_sentence(tmp_path, change, sentence):
    save_pair(tmp_path, TINY, Generator(TINY).state_dict(), Discriminator(TINY).state_dict())
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=sentence):
        Pair.from_pretrained(tmp_path)
