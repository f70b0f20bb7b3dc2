"""The options of a try-on on the page and in its API, made from the fields of `vton.options.Options`."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gradio as gr

from ui.gradio_private import describe
from ui.tryon import work
from vton.options import ABOUT, DEFAULTS, Options, to_text

Control = gr.Checkbox | gr.Dropdown | gr.Number


def component(name: str, **layout: Any) -> Control:
    """The component of an option, with its words, choices and default. layout: further arguments of the component."""
    about, default = ABOUT[name], DEFAULTS[name]
    words = {"label": about.label, "info": about.info or None, "elem_id": name, **layout}
    if about.choices:
        choices = [(label, component_value(name, value)) for label, value in about.choices]
        dropdown = gr.Dropdown(choices, value=component_value(name, default), **words)
        if isinstance(default, int):
            describe(dropdown, {"type": "integer", "enum": [value for _, value in choices]})
        return dropdown
    if isinstance(default, bool):
        return gr.Checkbox(default, **words)
    return gr.Number(default, step=1, **words)  # without rounding or bounds: 1.5 and -1 are refused with a sentence


def component_value(name: str, value: Any) -> Any:
    """A value as its component holds it: a size as 512x384."""
    return to_text(value) if name == "size" else value


def read_options(person: str | None, garment: str | None, settings: dict[str, Any]) -> Options:
    """The options out of what the page holds, and that both photos are there. Raises ValueError with one sentence."""
    return Options.of({**settings, **work.check_inputs(person, garment, settings["size"], settings["seed"])})


def spread_settings(function: Callable) -> Callable:
    """A generator function whose parameter `settings` is one parameter for each option, in the docstring too.

    The function gets them as one dictionary. In its docstring the line "settings: REMARK" stands for the lines of all
    options; the remark follows the first.
    """
    parameters = list(inspect.signature(function).parameters.values())
    at = next(i for i, parameter in enumerate(parameters) if parameter.name == "settings")

    def call(*values: Any) -> Any:
        settings = dict(zip(ABOUT, values[at:]))
        yield from function(*values[:at], settings, *values[at + len(ABOUT) :])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters[at : at + 1] = [inspect.Parameter(name, kind, default=parameters[at].default) for name in ABOUT]
    wrapper: Any = functools.wraps(function)(call)
    wrapper.__signature__ = inspect.Signature(parameters)
    lines = []
    for line in (function.__doc__ or "").split("\n"):
        name, mark, remark = line.partition("settings:")
        if mark and not name.strip():
            remarks = [remark.strip()] + [""] * len(ABOUT)
            lines += [f"{name}{option}: {about.help}{more}" for (option, about), more in zip(ABOUT.items(), remarks)]
        else:
            lines.append(line)
    wrapper.__doc__ = "\n".join(lines)
    return wrapper
