"""What the segmentation generator is told of a garment: groups, the vector, and who has the last word."""

import pytest

from vton.attributes import LENGTH, TOLD, group_of, known, told, told_group, vector, with_group
from vton.inputs.reading import Attribute


@pytest.mark.parametrize(
    ("name", "value", "group"),
    [
        ("sleeves", "cap", "none"),
        ("sleeves", "elbow", "short"),
        ("sleeves", "long-rolled", "long"),
        ("sleeves", "folded", "long"),
        ("sleeves", "three-quarter", ""),
        ("sleeves", "", ""),
        ("neckline", "scoop", "round"),
        ("neckline", "hood", "high"),
        ("neckline", "other", ""),
    ],
)
def test_values_of_the_table_belong_to_groups(name, value, group):
    assert group_of(name, value) == group


def test_the_vector_has_a_one_for_each_known_attribute():
    assert TOLD == {"sleeves": ("none", "short", "long"), "neckline": ("round", "v", "collar", "high")}
    assert vector({}).tolist() == [0] * LENGTH == [0] * 7
    both = vector({"sleeves": "short", "neckline": "high"})
    assert both.tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert (told_group(both, "sleeves"), told_group(both, "neckline")) == ("short", "high")
    other = with_group(both, "sleeves", "")
    assert other.tolist() == [0, 0, 0, 0, 0, 0, 1] and told_group(other, "sleeves") == "" and both[1] == 1
    with pytest.raises(ValueError, match="none, short, long; not 'puffed'"):
        vector({"sleeves": "puffed"})
    with pytest.raises(ValueError, match="sleeves, neckline"):
        told_group(both, "hem")


def test_only_what_was_read_with_certainty_is_known():
    read = {"sleeves": Attribute("short", 0.7, "elbow"), "neckline": Attribute("v", 0.5, "v")}
    assert known(read) == {"sleeves": "short"}
    assert known({"sleeves": Attribute("long", 0.9, "three-quarter"), "kind": Attribute("upper", 1.0, "tee")}) == {}


def test_what_a_person_says_wins_and_the_published_way_is_told_nothing():
    read = {"sleeves": Attribute("short", 0.9, "short"), "neckline": Attribute("v", 0.9, "v")}
    assert told(read) == {"sleeves": "short", "neckline": "v"}
    assert told(read, sleeves="long", neckline="bare") == {"sleeves": "long", "neckline": ""}
    assert told(read, sleeves="predicted", neckline="predicted") == {"sleeves": "", "neckline": ""}
    assert told({}) == {"sleeves": "", "neckline": ""}
