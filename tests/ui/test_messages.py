import logging

import pytest

from ui import messages


def test_a_sentence_of_the_library_passes_through_on_one_line():
    assert (
        messages.sentence(ValueError("No person was found;\n use another photo."))
        == "No person was found; use another photo."
    )
    assert messages.sentence(FileNotFoundError("There is no such model.")) == "There is no such model."


@pytest.mark.parametrize(
    "error",
    [
        KeyError("secret"),
        RuntimeError("/private/place"),
        ValueError(),
        FileNotFoundError(2, "No such file", "/private/place"),
    ],
)
def test_everything_else_is_general_and_logged(error, caplog):
    with caplog.at_level(logging.ERROR, logger="atelier"):
        text = messages.sentence(error)
    assert text == messages.GENERAL
    assert caplog.records and caplog.records[0].exc_info[1] is error


def test_memory_has_its_own_sentence():
    assert "smaller" in messages.sentence(MemoryError())


@pytest.mark.parametrize("make", [messages.alert, messages.status, lambda text: messages.notes([text])])
def test_notes_escape_what_a_visitor_typed(make):
    html = make('<img src=x onerror="alert(1)">')
    assert "<img" not in html and "&lt;img src=x onerror=&quot;" in html


def test_no_notes_is_nothing():
    assert messages.notes([]) == ""
