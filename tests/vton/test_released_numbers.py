"""Number by number: the published networks on recorded inputs."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from released_weights import checkpoint, example_inputs, expected  # noqa: E402

from vton.networks import alias_inference
from vton.networks.alias import AliasGenerator  # noqa: E402
from vton.networks.segmentation import SegmentationGenerator  # noqa: E402
from vton.networks.warping import MatchingModule, sampling_grid  # noqa: E402


@pytest.fixture(scope="module")
def inputs():
    return example_inputs()


def millions(network):
    return sum(p.numel() for p in network.parameters()) / 1e6


@torch.inference_mode()
def test_segmentation_generator(inputs):
    network = SegmentationGenerator().eval()
    network.load_state_dict(checkpoint("seg_final.pth"))
    np.testing.assert_allclose(network.scores(inputs["seg"])[:, :, ::4, ::4], expected()["seg.output"], atol=1e-4)
    assert millions(network) == pytest.approx(34.5, abs=0.05)


@torch.inference_mode()
def test_matching_module_and_its_grid(inputs):
    network = MatchingModule().eval()
    network.load_state_dict(checkpoint("gmm_final.pth"))
    theta = network(inputs["person"], inputs["cloth"])
    np.testing.assert_allclose(theta.reshape(-1), expected()["gmm.theta"].reshape(-1), atol=1e-4)
    np.testing.assert_allclose(sampling_grid(theta, (1024, 768))[:, ::32, ::32], expected()["gmm.grid"], atol=1e-4)
    assert millions(network) == pytest.approx(19.0, abs=0.05)


@pytest.mark.slow
@torch.inference_mode()
def test_alias_generator(inputs):
    network = AliasGenerator().eval()
    network.load_state_dict(checkpoint("alias_final.pth"))
    given = [inputs[name] for name in ("alias", "seven", "divided", "misalign")]
    for out in (network(*given), alias_inference.forward(network, *given)):
        np.testing.assert_allclose(out[:, :, ::4, ::4], expected()["alias.output"], atol=1e-4)
    assert millions(network) == pytest.approx(100.5, abs=0.05)
