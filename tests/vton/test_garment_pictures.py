"""Pictures of garments as people have them: white on white, transparent, turned, several at once.

All are made of the shipped photographs, whose own cut-outs are the truth.
"""

from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from training.assets import examples_dir, model_dir
from vton import stages
from vton.inputs import garment, photo
from vton.inputs.photo import InputError
from vton.options import Options
from vton.pipeline import load_network
from vton.result import TryOnResult

NAMES = ("polo-green", "t-shirt-white", "t-shirt-printed")


@pytest.fixture(scope="module")
def reader():
    return load_network("garment", model_dir("tryon-lite") / "garment")


@pytest.fixture(scope="module")
def pictures():
    return {name: photo.load_image(examples_dir() / "garments" / f"{name}.jpg") for name in NAMES}


@pytest.fixture(scope="module")
def cuts(reader, pictures):
    return {name: garment.cut_out(picture, reader) for name, picture in pictures.items()}


def iou(a, b) -> float:
    return float(((a > 0) & (b > 0)).sum() / ((a > 0) | (b > 0)).sum())


def shop_picture(cut):
    """A cut-out as shops light it: all but white on white."""
    light = (cut.cloth / np.percentile(cut.cloth[cut.mask > 0], 50)).clip(0, 1) ** 0.5 * 0.985
    return np.where(cut.mask[..., None] > 0, (light * 255).round(), 255).astype(np.uint8)


def test_white_on_white_is_cut_out_whole(reader, cuts):
    cut = cuts["t-shirt-white"]
    for print_on_it in (False, True):
        picture = shop_picture(cut)
        if print_on_it:
            cv2.circle(picture, (cut.mask.shape[1] // 2, cut.mask.shape[0] // 2), 20, (30, 30, 40), -1)
        assert garment.pale(picture)
        assert iou(garment.cut_out(picture, reader).mask, cut.mask) > 0.95
    assert not any(garment.pale(other.cloth) for name, other in cuts.items() if name != "t-shirt-white")


@pytest.mark.parametrize("quarters, name", ((1, "polo-green"), (2, "t-shirt-printed"), (3, "polo-green")))
def test_a_turned_garment_is_set_upright_and_the_visitor_reads_so(reader, pictures, cuts, quarters, name):
    turned = np.ascontiguousarray(np.rot90(pictures[name], quarters))
    record = TryOnResult(Options(size=(256, 192)), garment_photo=turned, painted_mask=None, notes=())
    fields = stages.cut_garment(SimpleNamespace(garment=reader), record)
    assert fields["garment_cut"].turns == 4 - quarters and fields["notes"] == (stages.TURN_NOTE,)
    np.testing.assert_array_equal(fields["garment_photo"], pictures[name])
    assert iou(fields["garment_cut"].mask, cuts[name].mask) > 0.97
    again = replace(record, garment_photo=fields["garment_photo"], notes=fields["notes"])
    fields = stages.cut_garment(SimpleNamespace(garment=reader), again)
    assert fields["garment_cut"].turns == 0 and fields["notes"] == ()


def test_two_garments_are_refused_in_a_sentence(reader, pictures):
    one, other = pictures["polo-green"], pictures["t-shirt-printed"]
    both = np.concatenate([one, cv2.resize(other, one.shape[1::-1])], 1)
    with pytest.raises(InputError, match="more than one garment"):
        garment.cut_out(both, reader)


def test_two_garments_on_a_transparent_ground_are_refused_too(reader, cuts):
    cut = cuts["polo-green"]
    one = np.dstack([cut.cloth, cut.mask])
    with pytest.raises(InputError, match="more than one garment"):
        garment.cut_out(np.concatenate([one, one], 1), reader)


def test_a_transparent_picture_loses_the_inside_of_its_back_as_any_other(reader, pictures, cuts):
    """Its transparency is the whole outline, as a shop cuts it, with what is seen of the back in the neck."""
    small = garment.shrink(pictures["polo-green"])
    whole = garment.outline(small, garment.read_garment(reader, small))[0]
    cut = garment.cut_out(np.dstack([small, whole.astype(np.uint8) * 255]), reader)
    assert cut.method == "alpha" and cut.open_neck
    behind = whole & (cuts["polo-green"].mask == 0)
    core = cv2.erode(behind.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0  # without the rim that is taken off
    assert core.sum() > 100 and (cut.mask[core] == 0).mean() > 0.9
    assert iou(cut.mask, cuts["polo-green"].mask) > 0.96
