import base64

import numpy as np
import pytest

from ui import figures


def test_heat_map_carries_the_exact_weights_and_raw_labels():
    weights = np.random.default_rng(0).random((2, 3), dtype=np.float32)
    value = figures.heat_map(weights, ["<s>", "▁ein"], ["▁a", "<img src=x>", "</s>"], "Title", "queries", "keys")
    sent = np.frombuffer(base64.b64decode(value["weights"]), "<f4").reshape(2, 3)
    np.testing.assert_array_equal(sent, weights)
    # Labels are data here; the browser's side sets them as text.
    assert value["columns"] == ["▁a", "<img src=x>", "</s>"] and value["rows"] == ["<s>", "▁ein"]


def test_heat_map_refuses_swapped_labels():
    with pytest.raises(ValueError, match="2 queries and 3 keys"):
        figures.heat_map(np.zeros((3, 2)), ["a", "b"], ["c", "d", "e"], "", "", "")


# -- what to look at ---------------------------------------------------------------------------------------------------

SOURCE, TARGET = ["<2de>", "▁the", "▁cat", ".", "</s>"], ["▁die", "▁Katze", ".", "</s>"]


def test_a_map_says_its_largest_weight_between_two_words():
    weights = np.array(
        [
            [0.0, 0.7, 0.2, 0.0, 0.1],
            [0.1, 0.1, 0.61, 0.19, 0.0],
            [0.0, 0.0, 0.0, 0.9, 0.1],  # marks of punctuation are no words
            [0.95, 0.0, 0.0, 0.05, 0.0],  # nor is the end
        ]
    )
    value = figures.heat_map(weights, TARGET, SOURCE, "", "", "")
    assert value["says"] == "“die” gives 0.70 to “the”, the most between two words here."
    assert value["marked"] == [0, 1]
    leaning = figures.heat_map(weights, TARGET, SOURCE, "", "", "", verb="leans on")
    assert leaning["says"].startswith("“die” leans on “the” with 0.70")


def test_a_map_that_rests_on_its_ends_says_so():
    weights = np.full((4, 5), 0.05)
    weights[:, 4] = 0.8
    weights[1, 2] = 0.06
    value = figures.heat_map(weights, TARGET, SOURCE, "", "", "")
    assert value["says"].startswith("85 % of what words give goes to start and end")
    assert value["says"].endswith("between words, “Katze” gives 0.06 to “cat” at most.") and value["marked"] == [1, 2]


def test_of_a_sentence_at_itself_two_different_words_count():
    tokens = ["▁bi", "cycle", "▁red", "</s>"]
    weights = np.eye(4) * 0.6
    weights[0, 1], weights[2, 0] = 0.4, 0.3  # within one word, and between two
    assert figures.heat_map(weights, tokens, tokens, "", "", "")["marked"] == [2, 0]
    alone = figures.heat_map(np.array([[0.9, 0.1], [0.5, 0.5]]), ["▁dog", "</s>"], ["▁dog", "</s>"], "", "", "")
    assert alone["marked"] == [0, 0]  # one word has no other
    nothing = figures.heat_map(np.array([[0.2, 0.8]]), ["</s>"], ["<s>", "</s>"], "", "", "")
    assert nothing["marked"] == [0, 1]


def test_lines_say_which_head():
    weights = np.zeros((2, 4, 5))
    weights[0, 0, 1], weights[1, 1, 2] = 0.4, 0.8
    value = figures.lines(weights, TARGET, SOURCE, "", "", "")
    assert value["says"] == "In head 2, “Katze” gives 0.80 to “cat”, the most between two words in any head."


def test_thumbnails_are_within_half_a_byte_and_in_order():
    maps = np.random.default_rng(1).random((2, 3, 4, 5)).astype(np.float32)
    value = figures.thumbnails(maps)
    sent = np.frombuffer(base64.b64decode(value["bytes"]), np.uint8)
    assert (value["layers"], value["heads"], value["rows"], value["columns"]) == (2, 3, 4, 5)
    assert np.abs(sent.reshape(maps.shape) / 255 - maps).max() <= 1 / 510 + 1e-6


def test_thumbnails_of_six_layers_and_eight_heads_stay_small():
    value = figures.thumbnails(np.zeros((6, 8, 40, 40), np.float32))
    assert len(value["bytes"]) < 150 * 1024


def test_word_pieces_become_words_and_links_follow_them():
    source = ["▁a", "▁bi", "cycle", ".", "</s>"]
    target = ["▁ein", "▁Fahr", "rad", ".", "</s>"]
    value = figures.word_links(source, target, [0, 1, 2, 4, 3])
    assert value["source"] == ["a", "bicycle."] and value["target"] == ["ein", "Fahrrad."]
    # "." looks at </s>, and </s> at ".": neither is a link between words of the text.
    assert value["links"] == [[0, 0], [1, 1]]


def test_words_of_a_language_without_leading_space_marks_are_kept_whole():
    assert figures.merge_words(["x", "y", "▁z", "</s>"]) == (["xy", "z", "</s>"], [0, 0, 1, 2])


def test_legend_names_only_what_occurs_with_its_share():
    label_map = np.array([[0, 0, 0, 2]])
    html = figures.legend(label_map, ["ground", "hat", "<hair>"], np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
    assert "ground" in html and "75.0 %" in html and "rgb(1, 2, 3)" in html
    assert "hat" not in html and "<hair>" not in html and "&lt;hair&gt;" in html
    assert html.index("ground") < html.index("&lt;hair&gt;")


def test_outline_marks_the_border_of_a_region_and_leaves_its_input_alone():
    picture, mask = np.zeros((40, 30, 3), np.uint8), np.zeros((40, 30), np.uint8)
    mask[10:20, 5:15] = 255
    drawn = figures.outline(picture, mask)
    assert (picture == 0).all()
    assert (drawn[10, 5:15] == (255, 140, 0)).all() and (drawn[10:20, 14] == (255, 140, 0)).all()
    assert (drawn[12:18, 7:13] == 0).all() and (drawn[22:] == 0).all()
    np.testing.assert_array_equal(figures.outline(picture, np.zeros_like(mask)), picture)
