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
    assert TOLD == {"sleeves": ("none", "short", "long")}
    assert vector({}).tolist() == [0] * LENGTH == [0] * 3
    short = vector({"sleeves": "short"})
    assert short.tolist() == [0, 1, 0] and told_group(short, "sleeves") == "short"
    other = with_group(short, "sleeves", "")
    assert other.tolist() == [0, 0, 0] and told_group(other, "sleeves") == "" and short[1] == 1
    assert with_group(short, "sleeves", "long").tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="none, short, long; not 'puffed'"):
        vector({"sleeves": "puffed"})
    with pytest.raises(ValueError, match="what is: sleeves"):
        told_group(short, "hem")


def test_only_what_was_read_with_certainty_is_known():
    read = {"sleeves": Attribute("short", 0.7, "elbow"), "neckline": Attribute("v", 0.5, "v")}
    assert known(read) == {"sleeves": "short"}
    assert known({"sleeves": Attribute("long", 0.9, "three-quarter"), "kind": Attribute("upper", 1.0, "tee")}) == {}


def test_what_a_person_says_wins_and_the_published_way_is_told_nothing():
    read = {"sleeves": Attribute("short", 0.9, "short"), "neckline": Attribute("v", 0.9, "v")}
    assert told(read) == {"sleeves": "short"}
    assert told(read, sleeves="long") == {"sleeves": "long"}
    assert told(read, sleeves="predicted") == {"sleeves": ""}
    assert told({}) == {"sleeves": ""}
    doubtful = {"sleeves": Attribute("short", 0.7, "short")}  # a rule may use it, the network would follow it blindly
    assert told(doubtful) == {"sleeves": ""} and known(doubtful) == {"sleeves": "short"}
