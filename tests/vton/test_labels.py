"""The label tables against a table written by hand by name, and the map functions against plain loops."""

import numpy as np
import pytest

from vton import labels

# name in LIP -> name among the 13 classes, name among the 7 classes
BY_HAND = {
    "background": ("background", "background"),
    "hat": ("hair", "hair"),
    "hair": ("hair", "hair"),
    "glove": ("noise", "noise"),
    "sunglasses": ("face", "paste"),
    "upper-clothes": ("upper", "upper"),
    "dress": ("upper", "upper"),
    "coat": ("upper", "upper"),
    "socks": ("socks", "paste"),
    "pants": ("bottom", "paste"),
    "neck": ("background", "background"),
    "scarf": ("noise", "noise"),
    "skirt": ("bottom", "paste"),
    "face": ("face", "paste"),
    "left arm": ("left arm", "left arm"),
    "right arm": ("right arm", "right arm"),
    "left leg": ("left leg", "paste"),
    "right leg": ("right leg", "paste"),
    "left shoe": ("left shoe", "paste"),
    "right shoe": ("right shoe", "paste"),
}


def test_tables_follow_the_names():
    for label, name in enumerate(labels.LIP):
        thirteen, seven = BY_HAND[name]
        segmentation = labels.lip_to_13(np.array([[label]]))
        assert labels.SEGMENTATION[segmentation[0, 0]] == thirteen
        assert labels.ALIAS[labels.thirteen_to_7(segmentation)[0, 0]] == seven
    assert len(labels.LIP) == len(labels.LIP_COLOURS) == 20
    assert len(labels.SEGMENTATION) == len(labels.SEGMENTATION_COLOURS) == 13
    assert len(labels.ALIAS) == len(labels.ALIAS_COLOURS) == 7


@pytest.mark.parametrize(
    "names, flip", [(labels.LIP, labels.FLIP_LIP), (labels.SEGMENTATION, labels.FLIP_SEGMENTATION)]
)
def test_mirroring_swaps_left_and_right_and_nothing_else(names, flip):
    for i, name in enumerate(names):
        other = name.replace("left", "?").replace("right", "left").replace("?", "right")
        assert names[flip[i]] == other
    assert (flip[flip] == np.arange(len(names))).all()


def test_mirroring_commutes_with_the_tables():
    every = np.arange(20)
    assert (labels.lip_to_13(labels.FLIP_LIP[every]) == labels.FLIP_SEGMENTATION[labels.lip_to_13(every)]).all()
    every = np.arange(13)
    arms = np.arange(7)
    arms[[4, 5]] = 5, 4  # the left one and the right one
    assert (labels.thirteen_to_7(labels.FLIP_SEGMENTATION[every]) == arms[labels.thirteen_to_7(every)]).all()


def test_one_hot_and_colour_agree_with_loops():
    label_map = np.random.default_rng(0).integers(0, 13, (9, 7)).astype(np.uint8)
    before = label_map.copy()
    hot, painted = labels.one_hot(label_map, 13), labels.colour(label_map, labels.SEGMENTATION_COLOURS)
    assert hot.shape == (13, 9, 7) and hot.dtype == np.float32 and painted.dtype == np.uint8
    for y in range(9):
        for x in range(7):
            for k in range(13):
                assert hot[k, y, x] == (1.0 if label_map[y, x] == k else 0.0)
            assert tuple(painted[y, x]) == tuple(labels.SEGMENTATION_COLOURS[label_map[y, x]])
    assert (label_map == before).all()


def test_colours_of_a_map_are_told_apart():
    for palette in (labels.LIP_COLOURS, labels.SEGMENTATION_COLOURS, labels.ALIAS_COLOURS):
        assert len({tuple(c) for c in palette}) == len(palette)


@pytest.mark.parametrize(
    "call",
    [
        lambda: labels.lip_to_13(np.array([[20]])),
        lambda: labels.thirteen_to_7(np.array([[13]])),
        lambda: labels.one_hot(np.array([[7]]), 7),
        lambda: labels.colour(np.array([[-1]])),
        lambda: labels.lip_to_13(np.array([[0.5]])),
    ],
)
def test_foreign_labels_are_refused(call):
    with pytest.raises(ValueError, match="label"):
        call()
