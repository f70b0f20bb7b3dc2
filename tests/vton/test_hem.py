"""Where the hem of a segmentation lies, and how the segmentation generator is given its place."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from tests.vton.draped_samples import SIZE
from tests.vton.test_hems import HEM, person
from training.weights import save_model
from vton import inference, labels
from vton.attributes import decode
from vton.data.draped.people import load_people
from vton.data.lengths import with_slim_cloth
from vton.data.samples import Sampler
from vton.inference import Conditions
from vton.inputs.hem import REACH, hem_plane, hem_row, plane_of
from vton.joints import LEFT_HIP
from vton.networks.config import LITE
from vton.networks.segmentation import SegmentationGenerator
from vton.recipes import segmentation

TRUNK = 40  # rows from the shoulders to the hips of `person`


def scalloped() -> tuple[np.ndarray, np.ndarray]:
    """S whose hem is cut up to row 58 in a third of its columns, and the joints."""
    segmentation, keypoints = person()
    segmentation[58:HEM, 15:25] = labels.BOTTOM
    return segmentation, keypoints


def test_the_hem_lies_where_it_lies_in_most_columns():
    segmentation, _ = scalloped()
    assert hem_row(segmentation == labels.UPPER, segmentation) == HEM - 1  # the last row of cloth
    assert hem_row(segmentation == labels.UPPER, np.where(segmentation == labels.BOTTOM, 0, segmentation)) is None


def test_the_plane_tells_how_far_above_the_hem_a_pixel_lies():
    segmentation, keypoints = scalloped()
    plane = plane_of(segmentation, keypoints)
    assert plane.dtype == np.float32 and plane.shape == segmentation.shape and (plane == plane[:, :1]).all()
    reach = REACH * TRUNK
    assert plane[HEM - 1, 0] == pytest.approx(0.5 / reach) and plane[HEM, 0] == pytest.approx(-0.5 / reach)
    assert (plane[: HEM - int(reach) - 1] == 1).all() and (plane[HEM + int(reach) + 1 :] == -1).all()


def test_without_a_hem_or_a_trunk_the_plane_is_zero():
    segmentation, keypoints = scalloped()
    assert not hem_plane(None, keypoints, segmentation.shape).any()
    keypoints[LEFT_HIP] = 0
    assert not plane_of(segmentation, keypoints).any()


class Answers(torch.nn.Module):
    """Stands for a generator: the same segmentation always; notes the plane of the hem that it was given."""

    def __init__(self, segmentation: np.ndarray):
        super().__init__()
        self.config = replace(LITE.segmentation, places_hem=True)
        small = torch.from_numpy(segmentation)[None, None].float()
        self.classes = torch.nn.functional.interpolate(small, (256, 192))[:, 0].long()
        self.planes: list[torch.Tensor] = []

    def scores(self, x, attributes=None):
        self.planes.append(x[:, 21:])
        return torch.nn.functional.one_hot(self.classes, 13).permute(0, 3, 1, 2).float()


def test_the_second_look_is_given_where_the_first_hem_lies():
    segmentation, keypoints = scalloped()
    h, w = segmentation.shape
    picture, mask = torch.zeros(1, 3, h, w), torch.ones(1, 1, h, w)
    inputs = Conditions(picture, picture, picture, mask, parse_agnostic=torch.zeros(1, 13, h, w))
    network = Answers(segmentation)
    inference.place_hem(network, inputs, keypoints, "loose")
    first, second = network.planes
    assert first.shape[1] == 0 and second.shape == (1, 1, 256, 192)
    away = (second[0, 0, :, 0].abs().argmin() + 0.5) / 256 * h - HEM
    assert abs(away) < 1.5
    network = Answers(np.where(segmentation == labels.BOTTOM, 0, segmentation))
    inference.place_hem(network, inputs, keypoints, "loose")
    assert len(network.planes) == 1  # there is no hem to look at again


@pytest.mark.parametrize(("hem", "takes_it"), [("tucked", True), ("", True), ("loose", False)])
def test_there_is_one_look_at_a_hem_that_is_not_loose_or_whose_place_is_not_taken(hem, takes_it):
    segmentation, keypoints = scalloped()
    h, w = segmentation.shape
    picture, mask = torch.zeros(1, 3, h, w), torch.ones(1, 1, h, w)
    network = Answers(segmentation)
    network.config = replace(network.config, places_hem=takes_it)
    inputs = Conditions(picture, picture, picture, mask, parse_agnostic=torch.zeros(1, 13, h, w))
    inference.place_hem(network, inputs, keypoints, hem)
    assert len(network.planes) == 1


def test_weights_that_knew_no_place_of_the_hem_begin_to_be_given_it(tmp_path):
    torch.manual_seed(1)
    plain = SegmentationGenerator(replace(LITE.segmentation, width=4)).eval()
    save_model(tmp_path / "plain", asdict(plain.config), plain.state_dict(), torch.float32)
    fields = {"width": 4, "attributes": True, "hem": True, "gan": 0.0, "batch": 4, "reduce": 4, "validation": 2}
    task = segmentation.SegmentationTask(
        segmentation.SegmentationRecipe(initial=str(tmp_path / "plain"), rows=1.0, unknown=0.0, **fields)
    )
    model, x = task.modules["model"].eval(), torch.rand(1, 22, 32, 32)
    assert model.config.places_hem
    torch.testing.assert_close(model(x), plain(x[:, :21]), atol=2e-4, rtol=0)  # the plane changes nothing yet
    torch.testing.assert_close(model(x[:, :21]), model(torch.cat((x[:, :21], torch.zeros(1, 1, 32, 32)), 1)))
    batch = task.batch(1, 0, 0, 1)
    loose = [decode(code, "hem") == "loose" for code in batch["attributes"].numpy()]
    assert any(loose)
    for plane, truth, is_loose in zip(batch["hem"][:, 0].numpy(), batch["segmentation"].numpy(), loose):
        row = hem_row(truth == labels.UPPER, truth)
        assert plane.any() == (is_loose and row is not None)
        if plane.any():
            assert abs(np.abs(plane[:, 0]).argmin() - row) < 0.06 * SIZE[0]
    sum(task.terms(batch).values()).backward()
    assert model.conv1[0].weight.grad[:, 21].abs().sum() > 0


def test_the_discriminator_sees_the_place_of_the_hem_too():
    fields = {"width": 4, "attributes": True, "hem": True, "batch": 2, "reduce": 4, "discriminator": 4}
    task = segmentation.SegmentationTask(segmentation.SegmentationRecipe(rows=1.0, gan=1.0, **fields))
    terms = task.terms(task.batch(1, 0, 0, 1))
    assert torch.isfinite(terms["adversarial"])


def test_a_garment_on_a_form_is_narrower_and_worn_as_before():
    sample = Sampler(None, SIZE, "train", load_people(SIZE, "train", "", "")).sample(np.random.default_rng(3), "draped")

    def proportion(mask):
        return mask.any(1).sum() / mask.any(0).sum()

    slim = with_slim_cloth(sample, 0.7)
    same = with_slim_cloth(sample, 1.0)
    assert proportion(slim["cloth_mask"][0]) == pytest.approx(proportion(same["cloth_mask"][0]) / 0.7, rel=0.04)
    assert slim["segmentation"] is sample["segmentation"] and slim["cloth"].shape == sample["cloth"].shape
