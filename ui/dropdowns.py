"""Dropdowns whose choices depend on another one."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr


def hold(trigger: Callable, *dropdowns: gr.Dropdown, name: str) -> None:
    """Closes the dropdowns in the browser, at once, when `trigger` fires; whoever brings their choices opens them
    again.

    Gradio's list of options ends in a script error where it stands open while its choices become fewer. name: of the
    event.
    """
    closed = "{__type__: 'update', interactive: false}"
    trigger(
        None,
        None,
        list(dropdowns),
        js=f"() => ({closed})" if len(dropdowns) == 1 else f"() => [{', '.join([closed] * len(dropdowns))}]",
        api_name=name,
        api_visibility="private",
        show_progress="hidden",
    )
