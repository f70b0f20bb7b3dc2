"""How the page makes components of its own out of the library's."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import gradio as gr


class WithoutInterface(type(gr.Image)):  # type: ignore[misc]
    """Metaclass of a component that only handles its values in another way: it has the events and the arguments of its
    base, so the interface file that Gradio writes beside the source of every component would say nothing new.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
        """The class, without what the library's own kind of class would add."""
        return ABCMeta.__new__(cls, name, bases, members)


class Photograph(gr.Image, metaclass=WithoutInterface):
    """An image component that hands over the visitor's untouched file.

    Decoding it is left to `vton.inputs.photo.load_image`, the one place that orients, bounds and refuses pictures with
    a sentence; Gradio's own decoding drops alpha and answers a broken file with a general error. A class, because
    Gradio makes the component anew for a visitor whenever it is updated.
    """

    is_template = True  # to the browser it is an ordinary image

    def preprocess(self, payload: Any) -> Any:
        """The path of the file as it was uploaded."""
        return payload.path if payload is not None and payload.path else super().preprocess(payload)
