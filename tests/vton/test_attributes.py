"""What the segmentation generator is told of a garment: groups, the vector, and who has the last word."""

import pytest

from vton.attributes import ATTRIBUTES, LENGTH, certain_groups, condition_groups, decode, encode, group_of, with_group
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
    assert ATTRIBUTES == {"sleeves": ("none", "short", "long"), "hem": ("loose", "tucked")}
    assert encode({}).tolist() == [0] * LENGTH == [0] * 5
    short = encode({"sleeves": "short", "hem": "tucked"})
    assert (
        short.tolist() == [0, 1, 0, 0, 1] and decode(short, "sleeves") == "short" and decode(short, "hem") == "tucked"
    )
    other = with_group(short, "sleeves", "")
    assert other.tolist() == [0, 0, 0, 0, 1] and decode(other, "sleeves") == "" and short[1] == 1
    assert with_group(short, "sleeves", "long").tolist() == [0, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="none, short, long; not 'puffed'"):
        encode({"sleeves": "puffed"})
    with pytest.raises(ValueError, match="what is: sleeves, hem"):
        decode(short, "neckline")


def test_only_what_was_read_with_certainty_is_known():
    read = {"sleeves": Attribute("short", 0.85, "elbow"), "neckline": Attribute("v", 0.5, "v")}
    assert certain_groups(read) == {"sleeves": "short"}
    assert (
        certain_groups({"sleeves": Attribute("long", 0.9, "three-quarter"), "kind": Attribute("upper", 1.0, "tee")})
        == {}
    )


def test_what_a_person_says_wins_and_the_published_way_is_told_nothing():
    read = {"sleeves": Attribute("short", 0.9, "short"), "neckline": Attribute("v", 0.9, "v")}
    assert condition_groups(read, hem="auto") == {"sleeves": "short", "hem": "loose"}
    assert condition_groups(read, sleeves="long", hem="tucked") == {"sleeves": "long", "hem": "tucked"}
    assert condition_groups(read, sleeves="predicted", hem="predicted") == {"sleeves": "", "hem": ""}
    assert condition_groups({}) == {"sleeves": "", "hem": ""}
    doubtful = {"sleeves": Attribute("short", 0.75, "short")}  # neither a rule nor the network is to follow it
    assert condition_groups(doubtful)["sleeves"] == "" and certain_groups(doubtful) == {}
