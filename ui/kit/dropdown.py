"""A list of choices that change while the page is open."""

from typing import Any

import gradio as gr

from ui.gradio_private import WithoutInterface


class ChangingDropdown(gr.Dropdown, metaclass=WithoutInterface):
    """A dropdown that also takes what was in its list a moment ago.

    Gradio checks a value against the choices that the last event has left. An event that was sent before them, with
    the old value, would be refused although nobody did anything wrong. Whoever reads the value says in a sentence that
    there is no such thing. A class, because Gradio makes the component anew for a visitor whenever it is updated.
    """

    is_template = True  # to the browser it is an ordinary dropdown

    def preprocess(self, payload: Any) -> Any:
        """The value as it was sent, if it is one."""
        return payload if payload is None or isinstance(payload, str) else super().preprocess(payload)
