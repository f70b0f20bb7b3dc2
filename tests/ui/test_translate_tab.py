import numpy as np
import pytest

from transformer.translator import Attention
from ui import translate
from ui.services import Services


@pytest.fixture
def attention():
    """Two layers, three heads, four source and five target tokens; every cell differs from every other."""
    source, target = ["▁a", "▁b", "▁c", "</s>"], ["▁v", "▁w", "▁x", "▁y", "</s>"]
    shapes = {"encoder": (2, 3, 4, 4), "decoder": (2, 3, 5, 5), "cross": (2, 3, 5, 4)}
    values = {
        kind: np.random.default_rng(i).random(shape, np.float32) for i, (kind, shape) in enumerate(shapes.items())
    }
    return Attention(**values, source_tokens=source, target_tokens=target, decoder_tokens=["<s>", *target[:-1]])


@pytest.mark.parametrize(
    "kind, rows, columns",
    [
        ("encoder", "source_tokens", "source_tokens"),
        ("decoder", "target_tokens", "decoder_tokens"),
        ("cross", "target_tokens", "source_tokens"),
    ],
)
def test_rows_are_queries_and_columns_are_keys(attention, kind, rows, columns):
    weights, row_labels, column_labels = translate.select_map(attention, kind, 1, 2)
    assert row_labels == getattr(attention, rows) and column_labels == getattr(attention, columns)
    np.testing.assert_array_equal(weights, getattr(attention, kind)[1, 2])


def test_mean_over_heads_is_the_mean_of_that_layer(attention):
    weights, _, _ = translate.select_map(attention, "cross", 0, translate.MEAN)
    np.testing.assert_allclose(
        weights, (attention.cross[0, 0] + attention.cross[0, 1] + attention.cross[0, 2]) / 3, rtol=1e-6
    )


@pytest.mark.parametrize(
    "kind, layer, head", [("cross", 2, 0), ("cross", -1, 0), ("cross", 0, 3), ("cross", 0, -2), ("other", 0, 0)]
)
def test_a_map_that_is_not_there_is_refused_with_what_is(attention, kind, layer, head):
    with pytest.raises(ValueError, match="layers 1 to 2 and heads 1 to 3|cross, encoder, decoder"):
        translate.select_map(attention, kind, layer, head)


@pytest.mark.parametrize(
    "text, words", [("", "enter a sentence"), (" \n ", "enter a sentence"), ("a" * 10_000, "10,000 characters")]
)
def test_empty_and_endless_texts_are_refused_before_a_model_is_loaded(text, words):
    services = Services(translation_model="there is no such model")
    with pytest.raises(ValueError, match=words):
        translate.translate_text(services, text, "en-de", 4, 0.6, 1)


def test_hypothesis_rows_keep_the_library_s_numbers():
    services = Services()
    translation = translate.translate_text(services, "A man is riding a bicycle.", "en-de", 4, 0.6, 3)
    rows = translate.hypothesis_rows(translation.sentences[0])
    assert [row[0] for row in rows] == [1, 2, 3]
    for row, hypothesis in zip(rows, translation.sentences[0].hypotheses, strict=True):
        assert row[1] == hypothesis.text and row[2] == pytest.approx(hypothesis.score, abs=1e-3)
        assert row[3] == pytest.approx(hypothesis.logprob, abs=1e-3)
    scores = [row[2] for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_drawn_map_equals_the_library():
    """The numbers on the page are those of Translator.attend."""
    import base64

    translator = Services().translator()
    translation = translator.translate("A dog runs.")
    attention = translator.attend(translation)
    value = translate.draw_map(attention, "cross", 0, 1)
    sent = np.frombuffer(base64.b64decode(value["weights"]), "<f4")
    np.testing.assert_array_equal(sent, attention.cross[0, 1].ravel())
    np.testing.assert_allclose(sent.reshape(attention.cross[0, 1].shape).sum(-1), 1, atol=1e-5)
    assert value["rows"] == attention.target_tokens and value["columns"] == attention.source_tokens
