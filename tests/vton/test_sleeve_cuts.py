"""Sleeves cut from draped garments, flat and worn alike."""

import cv2
import numpy as np
import pytest

from tests.vton.draped_samples import SIZE, altered
from vton import labels
from vton.attributes import decode
from vton.data.sleeve_cuts import (
    flat_places,
    flat_sleeves,
    flat_straps,
    reading_of,
    with_armholes,
    with_cut_sleeves,
    with_straps,
)
from vton.inputs.pose import along_arm
from vton.rules.sleeves import JOINTS


def shirt() -> np.ndarray:
    """(120, 100) bool: a trunk of columns 30 to 69 with sleeves of columns 10 to 29 and 70 to 89 down to row 49."""
    mask = np.zeros((120, 100), bool)
    mask[20:100, 30:70] = True
    mask[20:50, 10:90] = True
    return mask


def test_the_sleeves_of_a_flat_garment_are_what_stands_out_beside_its_trunk():
    right, left = flat_sleeves(shirt())
    expected = np.zeros_like(shirt())
    expected[20:50, 70:90] = True
    assert np.array_equal(right, expected) and np.array_equal(left, expected[:, ::-1])


def test_with_an_inset_the_shoulders_go_too_and_nothing_below_the_armpits():
    for own, before in zip(flat_sleeves(shirt(), 0.4), flat_sleeves(shirt())):
        assert (own >= before).all() and own.sum() > before.sum()
        assert not own[50:].any() and np.all(np.diff(own[20:50].sum(1)) <= 0)  # the armhole narrows downwards


def test_a_garment_without_armpits_has_no_sleeves():
    trunk = np.zeros((120, 100), bool)
    assert flat_sleeves(trunk) is None
    trunk[20:100, 30:70] = True
    assert flat_sleeves(trunk) is None


@pytest.fixture(scope="module")
def changes():
    """(sample, the same with its sleeves cut) of a dozen draped people whose sleeves could be cut."""
    pairs = altered(with_cut_sleeves, 40)
    assert len(pairs) >= 12
    return pairs


def test_what_is_cut_off_the_flat_garment_is_what_the_person_no_longer_wears(changes):
    for sample, cut in changes:
        off = sample["cloth_mask"][0] & ~cut["cloth_mask"][0]
        assert off.any() and not (cut["cloth_mask"] & ~sample["cloth_mask"]).any()
        rows, columns = flat_places(sample["grid"])
        worn = sample["placed"][0] & (sample["segmentation"] == labels.UPPER)
        gone = worn & off[rows, columns]
        changed = cut["segmentation"] != sample["segmentation"]
        assert changed.any() and not (changed & ~gone).any()
        assert np.isin(cut["segmentation"][changed], (*labels.ARMS, labels.BACKGROUND)).all()
        assert np.array_equal(cut["person"], sample["person"])


def cloth_end(sample) -> float:
    """How far along the arms the cloth reaches: 0 shoulder, 1 elbow, 2 wrist; nan where no bare arm is seen."""
    ends = []
    for arm, joints in JOINTS.items():
        place, distance = along_arm(sample["keypoints"], joints, SIZE)
        bones = distance < 0.08
        worn, skin = (place[bones & (sample["segmentation"] == one)] for one in (labels.UPPER, arm))
        if len(skin) > 20:
            ends.append(np.quantile(worn, 0.9) if len(worn) > 5 else 0.0)
    return float(np.mean(ends)) if ends else np.nan


def test_sleeves_end_where_their_group_says(changes):
    groups = np.array([decode(cut["attributes"], "sleeves") for _, cut in changes])
    ends = np.array([cloth_end(cut) for _, cut in changes])
    assert np.nanmean(ends[groups == "none"]) < 0.45 and np.nanmax(ends[groups == "none"]) < 0.7
    assert 0.3 < np.nanmean(ends[groups == "short"]) < 1.1


def test_lengths_between_short_and_long_are_no_group_but_where_a_reader_errs():
    rng = np.random.default_rng(1)
    assert reading_of(0.8, "long", rng) == "short" and reading_of(1.8, "long", rng) == "long"
    between = [reading_of(1.3, "long", rng) for _ in range(200)]
    assert set(between) == {"", "short", "long"} and 0.4 < between.count("") / 200 < 0.8


def test_armpits_are_found_below_sleeves_that_hang_aslant_and_not_beside_a_waist_or_in_a_neckline():
    mask = np.zeros((120, 100), np.uint8)
    cv2.fillPoly(mask, [np.array([[30, 20], [70, 20], [94, 48], [84, 58], [70, 44], [70, 100], [30, 100], [30, 44],
                                  [16, 58], [6, 48]])], 1)  # fmt: skip
    cv2.circle(mask, (50, 20), 15, 0, -1)
    right, left = flat_sleeves(mask > 0)
    assert right[:, 74:].sum() == mask[:, 74:].sum() and not right[:, :70].any() and abs(right.sum() - left.sum()) < 60
    waist = np.zeros((120, 100), np.uint8)
    cv2.fillPoly(waist, [np.array([[30, 20], [70, 20], [60, 60], [75, 100], [25, 100], [40, 60]])], 1)
    assert flat_sleeves(waist > 0) is None


def test_a_thread_by_which_the_outline_meets_itself_changes_no_sleeve():
    mask = shirt()
    mask[[18, 18, 19], [60, 61, 62]] = True
    assert np.array_equal(flat_sleeves(mask), flat_sleeves(shirt()))


def arm_cover(sample) -> float:
    """Share of cloth on the first third of the upper arms, 0.3 of their length to both sides."""
    cloth = skin = 0
    for arm, joints in JOINTS.items():
        place, distance = along_arm(sample["keypoints"], joints, SIZE)
        near = (place > 0) & (place < 0.33) & (distance < 0.3)
        cloth += (near & (sample["segmentation"] == labels.UPPER)).sum()
        skin += (near & (sample["segmentation"] == arm)).sum()
    return cloth / (cloth + skin)


def test_sleeveless_garments_end_at_the_shoulders_and_nothing_else_changes():
    pairs = [(a, b) for a, b in altered(with_armholes, 40) if decode(a["attributes"], "sleeves") == "none"]
    changed = [(a, b) for a, b in pairs if not np.array_equal(a["segmentation"], b["segmentation"])]
    assert len(changed) >= 3
    for sample, cut in changed:
        places = cut["segmentation"] != sample["segmentation"]
        assert (sample["segmentation"][places] == labels.UPPER).all()
        assert np.isin(cut["segmentation"][places], (*labels.ARMS, labels.BACKGROUND)).all()
        assert cut["cloth_mask"] is sample["cloth_mask"] and cut["attributes"] is sample["attributes"]
        assert arm_cover(cut) <= arm_cover(sample)
    assert np.mean([arm_cover(cut) for _, cut in changed]) < 0.7 < np.mean([arm_cover(s) for s, _ in changed])


def test_a_garment_with_sleeves_keeps_its_shoulders():
    sample = {"cloth_mask": shirt()[None], "keypoints": np.zeros((25, 3)), "segmentation": np.zeros((120, 100))}
    assert with_armholes(sample, np.random.default_rng(0)) is sample


def test_straps_are_two_strips_above_a_top_that_stays_whole_below_its_neckline():
    trunk = shirt()
    trunk[:, :30] = trunk[:, 70:] = False
    widths = set()
    for seed in range(30):
        top = flat_straps(shirt(), np.random.default_rng(seed))
        assert not (top & ~trunk).any() and np.array_equal(top[64:], trunk[64:])
        assert np.array_equal(top, top[:, ::-1])  # the same on both sides
        first = np.flatnonzero(np.diff(np.concatenate(([0], top[21].astype(int), [0]))))
        assert len(first) == 4  # two strips
        widths.add(int(first[1] - first[0]))
    assert min(widths) <= 2 and max(widths) >= 4


def test_a_garment_without_armpits_gets_no_straps():
    trunk = np.zeros((120, 100), bool)
    trunk[20:100, 30:70] = True
    assert flat_straps(trunk, np.random.default_rng(0)) is None


def test_a_person_in_a_top_on_straps_has_bare_shoulders_and_wears_what_is_left_of_the_flat_garment():
    ends, pairs = [], altered(with_straps, 30)
    for sample, top in pairs:
        rows, columns = flat_places(sample["grid"])
        upper, placed = sample["segmentation"] == labels.UPPER, sample["placed"][0]
        left = upper & placed & top["cloth_mask"][0][rows, columns]
        assert np.array_equal((top["segmentation"] == labels.UPPER) & placed, left)
        changed = top["segmentation"] != sample["segmentation"]
        assert changed.any() and not (changed & ~upper).any()
        assert np.isin(top["segmentation"][changed], (*labels.ARMS, labels.BACKGROUND)).all()
        assert decode(top["attributes"], "sleeves") == "none"
        ends.append(cloth_end(top))
    assert len(pairs) >= 8 and np.nanmedian(ends) < 0.4
