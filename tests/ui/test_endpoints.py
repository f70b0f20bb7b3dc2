"""What programs send: every argument is of its kind or refused with one sentence."""

import logging

import gradio as gr
import pytest

from ui import endpoints, gradio_private


class Counted:
    @endpoints.endpoint
    def count(
        self, text: str, times: int = 2, share: float = 0.5, both: bool = False, rest: list | None = None
    ) -> list:
        """Tells what it was given."""
        return [text, times, share, both, rest]


@pytest.mark.parametrize(
    "given, found",
    [
        (("a",), ["a", 2, 0.5, False, None]),
        (("a", None, None, None, [1]), ["a", 2, 0.5, False, [1]]),
        (("a", 3.0, 1, True), ["a", 3, 1.0, True, None]),
        (("\ud800b",), ["?b", 2, 0.5, False, None]),
    ],
)
def test_an_argument_of_its_kind_passes_and_a_missing_one_has_its_default(given, found):
    assert Counted().count(*given) == found
    assert [type(one) for one in Counted().count(*given)] == [type(one) for one in found]


@pytest.mark.parametrize(
    "given, words",
    [
        ((5,), "text has to be a text"),
        ((None,), "text has to be a text"),
        (("a", "3"), "times has to be a whole number, but is '3'"),
        (("a", 1.5), "times has to be a whole number"),
        (("a", True), "times has to be a whole number"),
        (("a", 10**30), "times has to be a whole number"),
        (("a", float("nan")), "times has to be a whole number"),
        (("a", 1, float("inf")), "share has to be a number"),
        (("a", 1, 1e308), "share has to be a number"),
        (("a", 1, 1, "yes"), "both has to be true or false"),
        ((["<b>"],), "&lt;b&gt;"),
    ],
)
def test_an_argument_of_another_kind_is_one_sentence(given, words):
    with pytest.raises(gr.Error, match=".") as refused:
        Counted().count(*given)
    assert words in refused.value.message and not refused.value.print_exception


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("y"), gr.Error("no such choice")])
def test_inputs_that_gradio_cannot_read_leave_no_traceback(error, caplog, apart):
    async def preprocess(inputs):
        raise error

    with caplog.at_level(logging.INFO, "atelier"), pytest.raises(gr.Error) as refused:
        apart(gradio_private.refusing(preprocess)("secret"))
    assert not refused.value.print_exception and "secret" not in caplog.text
    assert refused.value.message == ("no such choice" if isinstance(error, gr.Error) else gradio_private.UNFIT)


def test_the_api_tells_every_parameter_in_words_by_use_and_with_examples_of_ours():
    from ui import page
    from ui.services import Services

    named = page.build(Services()).get_api_info()["named_endpoints"]
    assert [name[1:] for name in named] == [name for names in endpoints.GROUPS.values() for name in names]
    for group, names in endpoints.GROUPS.items():
        assert all(named[f"/{name}"]["description"].startswith(f"{group}: ") for name in names)
    assert "gradio-app" not in str(named) and "/tmp/" not in str(named)
    for name, told in named.items():
        for parameter in told["parameters"]:
            words = parameter["python_type"]["description"]
            assert len(words) > 6 and words.endswith("."), f"{name}({parameter['parameter_name']}): {words}"
            needed = not parameter["parameter_has_default"]
            assert not needed or parameter["example_input"] == endpoints.EXAMPLES[parameter["parameter_name"]]
    assert [one["parameter_name"] for one in named["/try_on"]["parameters"] if not one["parameter_has_default"]] == [
        "person",
        "garment",
    ]
    assert all(one["parameter_has_default"] for one in named["/try_on_stage"]["parameters"])
