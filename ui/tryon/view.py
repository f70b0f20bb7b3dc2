"""What the views of the Try on tab have in common."""

from typing import Any

import gradio as gr

from ui import kit


class View(kit.View):
    """A view below a try-on; one with nothing of its own to draw takes the note of the last one away."""

    products: tuple[gr.components.Component, ...] = ()  # what the view has made of a record, besides its controls

    def remember(self, *products: gr.components.Component) -> None:
        """In `build`: these show what was made of a record, and go when the page shows another one."""
        self.products, self.of = products, gr.State(None)

    def wire(self) -> None:
        """Has the note cleared when the view is opened, and what was made of another record."""
        inputs = [self.tab.session, self.of] if self.products else []
        self.draw_with(inputs, [self.tab.note, *self.products, *([self.of] if self.products else [])])

    def show(self, *values: Any, **options: Any) -> Any:
        """An empty note, and nothing of a record that the page no longer shows."""
        if not values or values[1] is None or values[1] is values[0].result:
            return {self.tab.note: ""}
        return {self.tab.note: "", self.of: None, **{one: empty(one) for one in self.products}}


def empty(component: gr.components.Component) -> Any:
    """The update that empties a component; a gallery and a button to download go out of sight."""
    hides = isinstance(component, (gr.Gallery, gr.DownloadButton))
    return gr.update(value=None, visible=False) if hides else gr.update(value=None)
