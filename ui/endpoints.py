"""What programs send: every argument is checked for its kind before it is used; an error is a sentence."""

import functools
import inspect
from collections.abc import Callable
from html import escape
from typing import Any, get_type_hints

import gradio as gr

from ui import messages, theme

WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
MOST = 2**63 - 1  # of a whole number
# Endpoints by heading, and what the API's page shows for parameters without a default.
GROUPS, EXAMPLES = theme.data("api.json").values()


def argument(name: str, value: Any, kind: Any) -> Any:
    """A value as its kind. kind: str, int, float or bool are checked, everything else is handed on.

    Raises ValueError with one sentence. Half of a surrogate pair, which no encoder takes, becomes a question mark.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is str and isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and number and abs(value) <= MOST and value == int(value):
        return int(value)
    if kind is float and number and abs(value) <= MOST:  # no infinity and no NaN, either
        return float(value)
    if kind in WORDS:
        raise ValueError(f"{name} has to be {WORDS[kind]}, but is {str(value)[:40]!r}.")
    return value


def endpoint(function: Callable) -> Callable:
    """An endpoint whose arguments are checked against its annotations, and whose errors are one sentence to the caller.

    An argument that is left out or null has its default.
    """
    parameters = inspect.signature(function).parameters
    kinds = get_type_hints(function)

    @functools.wraps(function)
    def run(self: Any, *values: Any, **keywords: Any) -> Any:
        try:
            request = dict(zip([name for name in parameters if name != "self"], values)) | keywords
            arguments = {}
            for name, value in request.items():
                default = parameters[name].default
                missing = value is None and default is not inspect.Parameter.empty
                arguments[name] = default if missing else argument(name, value, kinds.get(name))
            return function(self, **arguments)
        except Exception as error:
            raise gr.Error(escape(messages.sentence(error), quote=False), print_exception=False) from error

    return run


def describe(entry: dict[str, Any], name: str, summary: str, words: dict[str, str], answer: list[str]) -> None:
    """Completes what the API's page tells of an endpoint with the words of its docstring, and examples of ours.

    Args:
        entry: Gradio's description of the endpoint, which is changed.
        name: of the endpoint.
        summary, words, answer: its docstring's first lines, what that says of every parameter, and of what it returns.
    """
    group = next((group for group, names in GROUPS.items() if name in names), "")
    entry["description"] = f"{group}: {summary} Answers with {' '.join(answer)}."
    for parameter in entry["parameters"]:
        key = parameter["parameter_name"]
        about = f"{words[key]}."
        parameter["label"] = key
        parameter["python_type"]["description"] = about
        parameter["type"] = {**parameter["type"], "description": about}
        if not parameter["parameter_has_default"] or parameter["parameter_default"] is None:
            parameter["example_input"] = EXAMPLES.get(key, parameter["parameter_default"])
    for output in entry["returns"]:
        if output["component"] == "Api":
            output["label"] = "answer"
