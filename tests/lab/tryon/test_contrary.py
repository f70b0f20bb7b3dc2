"""The segmentation generator learns to follow the sleeves that it is told: samples in twos, and contrary ones."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from lab.tryon.contrary import SegmentationRecipe, SegmentationTask, number_with
from vton.attributes import decode
from vton.data.draped.people import load_people
from vton.data.samples import Sampler
from vton.recipes import segmentation
from vton.rules.sleeves import contradicting, sleeve_kind


def sleeve_task(**fields):
    """A task on draped people in twos, at a quarter of the size."""
    fields = {"width": 4, "attributes": True, "gan": 0.0, "batch": 4, "reduce": 4, "unknown": 0.0} | fields
    return SegmentationTask(SegmentationRecipe(**{"flips": 1.0} | fields))


@pytest.mark.slow
def test_samples_in_twos_have_different_sleeves_and_contrary_ones_show_what_is_told():
    batch = sleeve_task().batch(3, 0, 0, 1)
    kinds = segmentation.sleeves(batch)
    assert kinds[0] != kinds[1] and kinds[2] != kinds[3] and all(kinds)
    contrary = sleeve_task(contrary=1.0).batch(3, 0, 0, 1)
    told = segmentation.sleeves(contrary)
    assert all(one != other for one, other in zip(kinds, told))
    same = (batch["cloth"] == contrary["cloth"]).all() and (batch["pose"] == contrary["pose"]).all()
    assert same and (batch["segmentation"] != contrary["segmentation"]).any()
    for truth, keypoints, kind in zip(contrary["segmentation"].numpy(), contrary["keypoints"].numpy(), told):
        assert not contradicting(truth.astype(np.uint8), keypoints, kind)


def test_samples_with_the_sleeves_asked_for_are_told_and_show_them():
    sampler = Sampler(None, (256, 192), draped=load_people((256, 192)))
    for kind in ("short", "long"):
        rng = np.random.default_rng(5)
        sample = sampler.sample(rng, "draped", index=number_with(sampler.draped, kind, rng))
        assert decode(sample["attributes"], "sleeves") == kind
        assert sleeve_kind(sample["segmentation"], sample["keypoints"]) == kind


def test_without_twins_and_contrary_sleeves_it_is_the_plain_recipe():
    plain = {"width": 4, "attributes": True, "gan": 0.0, "batch": 2, "reduce": 4}
    task = segmentation.SegmentationTask(segmentation.SegmentationRecipe(**plain))
    ours, theirs = sleeve_task(**plain, flips=0.0, unknown=0.15).batch(2, 1, 0, 1), task.batch(2, 1, 0, 1)
    assert ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in theirs)


def test_a_run_with_twins_goes_on_here_alone():
    plain, here = asdict(segmentation.SegmentationRecipe(steps=7)), asdict(SegmentationRecipe(flips=0.1))
    earlier = plain | {"flips": 0.0, "contrary": 0.0}
    assert segmentation.SegmentationRecipe.restore(earlier) == segmentation.SegmentationRecipe(steps=7)
    with pytest.raises(ValueError, match="field 'flips'"):
        segmentation.SegmentationRecipe.restore(here)
    assert SegmentationRecipe.restore(here) == replace(SegmentationRecipe(), flips=0.1)
