import numpy as np
import pytest

from tests.vton.draped_samples import SIZE, altered
from vton import labels
from vton.attributes import decode
from vton.data.draped.people import load_people
from vton.data.hems import hem_of
from vton.data.lengths import lengthen_flat, move_hem, stretch_rows, with_length
from vton.data.pairs import WHITE
from vton.data.samples import Sampler


def person() -> tuple[np.ndarray, np.ndarray]:
    """A segmentation with cloth above trousers and an arm across both, and the cloth."""
    segmentation = np.zeros((100, 60), np.uint8)
    segmentation[40:100, 22:38] = labels.BOTTOM
    segmentation[10:60, 20:40] = labels.UPPER
    segmentation[45:50, 5:30] = labels.LEFT_ARM
    return segmentation, segmentation == labels.UPPER


def test_a_longer_garment_covers_what_is_below_it_and_no_arm():
    segmentation, worn = person()
    longer = move_hem(segmentation, worn, 30, 15, 50)
    assert (longer[60:75, 20:40] == labels.UPPER).all() and (longer[75:, 22:38] == labels.BOTTOM).all()
    assert np.array_equal(longer == labels.LEFT_ARM, segmentation == labels.LEFT_ARM)
    changed = longer != segmentation
    assert not changed[:60].any() and not changed[75:].any() and not changed[:, :20].any()


def test_a_shorter_garment_leaves_trousers_bare_that_are_no_wider_than_its_hem():
    segmentation, worn = person()
    shorter = move_hem(segmentation, worn, 30, -8, 50)
    assert (shorter[52:60, 24:36] == labels.BOTTOM).all() and not (shorter[52:] == labels.UPPER).any()
    assert (shorter[30:45, 20:40] == labels.UPPER).all()
    assert np.array_equal(shorter == labels.LEFT_ARM, segmentation == labels.LEFT_ARM)
    assert np.isin(shorter[52:60, :22], labels.BACKGROUND).all()


def test_a_hem_keeps_its_shape():
    segmentation, _ = person()
    slope = np.arange(20) // 4
    for column, end in enumerate(60 + slope, 20):
        segmentation[60:end, column] = labels.UPPER
    moved = move_hem(segmentation, segmentation == labels.UPPER, 30, 11, 50)
    ends = [int(np.flatnonzero(moved[:, column] == labels.UPPER)[-1]) for column in range(20, 40)]
    assert np.array_equal(np.array(ends) - 70, slope)


def test_a_flat_garment_is_stretched_below_a_row_alone_and_its_sleeves_are_not():
    trunk = np.zeros((80, 60), bool)
    trunk[10:60, 20:40] = True
    mask = trunk.copy()
    mask[10:25, 10:50] = True  # sleeves
    cloth = np.where(mask[..., None], np.arange(80, dtype=np.uint8)[:, None, None], np.uint8(WHITE)).repeat(3, 2)
    picture, longer = lengthen_flat(cloth, mask, trunk, 30, 2.0)
    assert np.array_equal(longer[:30], mask[:30]) and not longer[:, :20][30:].any()
    assert abs(int(longer.any(1).sum()) - 80) <= 2  # 20 rows and twice the 30 below them, and a border between rows
    assert abs(int(picture[70, 30, 0]) - 50) <= 1 and np.array_equal(
        picture[10:30][mask[10:30]], cloth[10:30][mask[10:30]]
    )


def test_rows_are_found_where_they_were_before():
    picture = np.arange(40, dtype=np.uint8)[:, None].repeat(3, 1)
    assert np.array_equal(stretch_rows(picture, 10, 1.0, 40), picture)
    half = stretch_rows(picture, 10, 0.5, 40)[:, 0]
    assert half[10] == 10 and half[15] == 20 and half[24] == 38 and half[26] == 0


@pytest.fixture(scope="module")
def changes():
    """(sample, the same with another length) of draped people whose garment could be given one."""
    pairs = altered(with_length, 110)
    assert len(pairs) >= 40
    return pairs


def proportion(mask: np.ndarray) -> float:
    return mask.any(1).sum() / mask.any(0).sum()


def cloth_area(sample) -> int:
    return int((sample["segmentation"] == labels.UPPER).sum())


def test_flat_and_worn_garments_become_longer_together(changes):
    flat = np.array([proportion(b["cloth_mask"][0]) / proportion(a["cloth_mask"][0]) for a, b in changes])
    worn = np.array([cloth_area(b) - cloth_area(a) for a, b in changes])
    assert (flat > 1.1).sum() >= 20 and (flat < 0.95).sum() >= 10
    assert (worn[flat > 1.1] > 0).all() and (worn[flat < 0.95] < 0).all()


def test_hems_are_told_as_they_hang_and_nothing_else_of_the_sample_changes(changes):
    for sample, other in changes:
        assert decode(sample["attributes"], "hem") == "loose"
        assert decode(other["attributes"], "hem") == hem_of(other["segmentation"], other["keypoints"])
        assert all(
            other[name] is sample[name]
            for name in sample
            if name not in ("cloth", "cloth_mask", "segmentation", "attributes")
        )
        arms = np.isin(sample["segmentation"], labels.ARMS)
        assert np.array_equal(other["segmentation"][arms], sample["segmentation"][arms])
        assert (other["cloth"][~other["cloth_mask"][0]] == WHITE).all()


def test_a_garment_that_is_tucked_in_keeps_its_length():
    people = load_people(SIZE, "train", "", "")
    number = next(number for number in range(200) if people.hem(number) == "tucked")
    sample = Sampler(None, SIZE, "train", people).sample(np.random.default_rng(0), "draped", index=number)
    assert with_length(sample, np.random.default_rng(0)) is sample
