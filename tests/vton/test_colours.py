"""The photograph's own colours correct its parse."""

import numpy as np
import pytest

from vton import labels
from vton.inputs import colours
from vton.inputs.colours import PARTS, by_colour, likelihoods

SHIRT, DRESS, SKIRT, TROUSERS, HAIR = (
    labels.LIP.index(name) for name in ("upper-clothes", "dress", "skirt", "pants", "hair")
)
BLUE, WHITE, WALL = (60, 90, 160), (235, 235, 230), (150, 150, 150)


def doubtful(picture_of_hem):
    """A blue shirt over white trousers, and a strip between them that the network takes for a skirt rather than the
    shirt's hem: probabilities (20, 60, 40) and the photo.
    """
    photo = np.full((60, 40, 3), WALL, np.uint8)
    given = np.full((20, 60, 40), 1e-3, np.float32)
    given[0] = 1
    for rows, label, colour in ((slice(8, 30), SHIRT, BLUE), (slice(36, 58), TROUSERS, WHITE)):
        given[0, rows, 10:30], given[label, rows, 10:30], photo[rows, 10:30] = 1e-3, 1, colour
    given[0, 30:36, 10:30], given[SKIRT, 30:36, 10:30], given[SHIRT, 30:36, 10:30] = 1e-3, 0.6, 0.3
    given[DRESS, 30:36, 10:30] = 0.1
    photo[30:36, 10:30] = picture_of_hem
    return given / given.sum(0), photo


def test_a_hem_of_the_shirts_colour_is_the_shirts():
    given, photo = doubtful(BLUE)
    found = by_colour(given, photo)
    assert (given[:, 31:35, 14:26].argmax(0) == SKIRT).all()
    assert (found[:, 31:35, 14:26].argmax(0) == SHIRT).all()
    np.testing.assert_allclose(found.sum(0), 1, atol=1e-5)
    # Within a part nothing is weighed anew.
    np.testing.assert_allclose(found[DRESS, 33, 20] / found[SHIRT, 33, 20], 1 / 3, rtol=1e-3)


def test_a_skirt_of_the_trousers_colour_stays_theirs():
    found = by_colour(*doubtful(WHITE))
    assert (found[:, 31:35, 14:26].argmax(0) == SKIRT).all()


def test_where_all_is_one_colour_nothing_changes():
    given, photo = doubtful(BLUE)
    photo[:] = 128
    np.testing.assert_allclose(by_colour(given, photo), given, atol=1e-5)


def test_a_part_that_nobody_is_sure_of_has_no_colours():
    given, photo = doubtful(BLUE)
    found = likelihoods(np.stack([given[list(part)].sum(0).ravel() for part in PARTS]), colours.bins(photo))
    hair = next(i for i, part in enumerate(PARTS) if HAIR in part)
    assert (found[hair] == 1).all()
    assert found.max() <= colours.MAX_RATIO and found.min() > 0.99 / colours.MAX_RATIO


def test_likelihoods_by_counting(monkeypatch):
    """Two colours in bins of their own and no blur: shares of a part against the mean of both parts."""
    monkeypatch.setattr(colours, "BIN_BLUR", 1e-3)
    place = np.repeat([0, colours.BINS**3 - 1], 10)
    posterior = np.zeros((len(PARTS), 20))
    posterior[0, :10], posterior[0, 10:12], posterior[1, 12:] = 1, 1, 1  # 10 and 2 of one part, 0 and 8 of the other
    found = likelihoods(posterior, place)
    wanted = {0: (10 / 12) / (0.5 * (10 / 12)), 1: (2 / 12) / (0.5 * (2 / 12 + 1))}
    assert found[0, 0] == pytest.approx(wanted[0], rel=1e-3) and found[0, 15] == pytest.approx(wanted[1], rel=1e-3)
    assert found[1, 0] == pytest.approx(1 / colours.MAX_RATIO) and found[2, 0] == 1


def test_every_label_has_one_part_at_most():
    told = [label for part in PARTS for label in part]
    assert len(told) == len(set(told)) and set(range(20)) - set(told) == {labels.LIP.index("glove")}
