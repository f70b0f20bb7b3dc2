"""How a hem is worn, and S_a as another old garment would have left it."""

import numpy as np
import pytest

from vton import labels
from vton.data.hems import gaps, hem_noise, hem_of, near_hem, with_old_hem
from vton.joints import LEFT_HIP, LEFT_SHOULDER, RIGHT_HIP, RIGHT_SHOULDER

HEM = 70


def person(hem: int = HEM, below: int = labels.BOTTOM) -> tuple[np.ndarray, np.ndarray]:
    """S (120, 60) of cloth that ends before row `hem`, and joints: shoulders at 20, hips at 60."""
    truth = np.zeros((120, 60), np.uint8)
    truth[20:hem, 15:45] = labels.UPPER
    truth[hem:, 15:45] = below
    keypoints = np.zeros((25, 3), np.float32)
    places = {RIGHT_SHOULDER: (18, 20), LEFT_SHOULDER: (42, 20), RIGHT_HIP: (22, 60), LEFT_HIP: (38, 60)}
    for joint, place in places.items():
        keypoints[joint] = (*place, 1)
    return truth, keypoints


def agnostic_of(truth: np.ndarray) -> np.ndarray:
    """S_a of S."""
    return np.where(truth == labels.UPPER, labels.BACKGROUND, truth).astype(np.uint8)


@pytest.mark.parametrize(("hem", "worn"), [(50, "tucked"), (54, "tucked"), (58, ""), (62, "loose"), (75, "loose")])
def test_a_hem_is_tucked_in_above_the_hips_and_loose_below_them(hem, worn):
    assert hem_of(*person(hem)) == worn


def test_a_hem_that_is_not_seen_above_trousers_tells_nothing():
    assert hem_of(*person(below=labels.BACKGROUND)) == ""
    assert hem_of(*person(120)) == ""  # the picture ends first
    truth, keypoints = person(50)
    keypoints[LEFT_HIP] = 0
    assert hem_of(truth, keypoints) == ""


def test_the_trousers_begin_somewhere_else_and_nothing_beside_them_changes():
    truth, keypoints = person()
    begins = []
    for seed in range(120):
        changed = with_old_hem(agnostic_of(truth), truth, keypoints, np.random.default_rng(seed))
        trousers = (changed == labels.BOTTOM).any(1)
        assert trousers.any() and trousers[np.flatnonzero(trousers)[0] :].all()  # one piece, down to the picture's end
        assert set(np.unique(changed)) == {labels.BACKGROUND, labels.BOTTOM}
        assert not ((changed == labels.BOTTOM) & ~np.isin(truth, (labels.UPPER, labels.BOTTOM))).any()
        begins.append(int(trousers.argmax()))
    assert min(begins) >= 60 - 0.3 * 40 - 3  # never above the waist
    assert min(begins) < HEM - 5 and max(begins) > HEM + 12 and abs(np.median(begins) - HEM) < 6


def test_an_old_hem_that_is_not_seen_stays():
    rng = np.random.default_rng(1)
    truth, keypoints = person(below=labels.BACKGROUND)
    assert not with_old_hem(agnostic_of(truth), truth, keypoints, rng).any()
    truth, keypoints = person()
    keypoints[LEFT_HIP] = 0
    assert np.array_equal(with_old_hem(agnostic_of(truth), truth, keypoints, rng), agnostic_of(truth))


def test_an_old_hem_waves_and_at_times_stands_open():
    """Waves stay small; an open jacket shows the trousers further up, in one place and upwards alone."""
    columns = np.arange(-30.0, 31.0)
    noises = [hem_noise(columns, 20.0, np.random.default_rng(seed)) for seed in range(200)]
    assert all(noise.shape == columns.shape and np.ptp(noise) > 0 for noise in noises)
    assert max(noise.max() for noise in noises) < 0.12
    deep = np.mean([noise.min() < -0.12 for noise in noises])
    assert 0.15 < deep < 0.35
    straight = [noise for noise in noises if noise.min() < -0.3 and (noise < noise.min() + 0.05).sum() > 8]
    assert straight  # a jacket's halves may hang straight, not only meet at the top


def test_a_parse_at_times_misses_trousers_near_the_hem():
    rows, columns = np.mgrid[:120, -30:30]
    maps = [gaps(rows, columns, 70.0, 15.0, 40.0, np.random.default_rng(seed)) for seed in range(200)]
    torn = [one for one in maps if one.any()]
    assert 0.15 < len(torn) / len(maps) < 0.35
    for one in torn:
        assert one.mean() < 0.05 and not one[: 70 - 10].any() and not one[70 + 20 :].any()


def test_near_the_hem_is_a_band_around_where_the_cloth_ends_and_nothing_else():
    truth, keypoints = person()
    band = near_hem(truth, keypoints, 0.1)  # a tenth of a trunk of 40 rows
    rows, columns = np.flatnonzero(band.any(1)), np.flatnonzero(band.any(0))
    assert (rows[0], rows[-1]) == (HEM - 1 - 4, HEM - 1 + 4)
    assert columns[0] in (13, 14, 15) and columns[-1] in (44, 45, 46)
    assert band[HEM - 5 : HEM + 4, 15:45].all()
    assert not near_hem(truth, np.zeros_like(keypoints), 0.1).any()
    high, keypoints = person(40)  # ends far above the waist: an arm or a bag hides the hem
    assert not near_hem(high, keypoints, 0.1).any()
