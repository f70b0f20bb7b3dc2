"""Views: the parts of a tab, each behind a tab of its own, and the registry that builds, wires and draws them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import gradio as gr
from gradio.events import Dependency

from ui.gradio_private import value_in
from ui.kit.handlers import QUICKLY, QUIETLY
from ui.services import Services

AnyView = TypeVar("AnyView", bound="View")


class View(ABC):
    """One view: components are attributes, handlers are methods that return updates by component.

    A subclass names itself, makes its components in `build`, connects them in `wire`, and draws in `show`. It is on the
    page once it stands in the tuple `VIEWS` of its tab.
    """

    name: ClassVar[str]  # its key among the views, and the stem of its events' names
    title: ClassVar[str]  # what stands on its tab
    in_sight: ClassVar[bool] = True  # whether its tab is there at first; an update of `item` brings it
    item: gr.Tab  # its tab; both are there when it is wired
    group: Views  # all views beside it

    def __init__(self, tab: Any, services: Services) -> None:
        """tab: the object that holds the view, whose components and views the handlers may use."""
        self.tab, self.services = tab, services
        self.build()

    @classmethod
    def available(cls) -> bool:
        """Whether there is anything to see in it on this machine."""
        return True

    @abstractmethod
    def build(self) -> None:
        """Makes the components, inside the current gr.Tab. The tab's other views need not be there yet."""

    def wire(self) -> None:  # noqa: B027 (a view may have no events)
        """Connects the components with the handlers, once all views are built."""

    def show(self, *values: Any, **options: Any) -> Any:
        """Draws the view, once `draw_with` has said from what. May be a generator."""
        return gr.skip()

    def draw_with(self, inputs: list, outputs: list, **options: Any) -> None:
        """Has `show` called when the view is opened, and when the open view is drawn anew (`Views.draw`).

        Args:
            inputs: the components whose values `show` is given.
            outputs: those that it may update.
            options: of the event that opens the view.
        """
        self.group.drawings[self.name] = Drawing(self.show, inputs, outputs, options)

    def save_with(self, inputs: list, write: Callable[..., list[Path]]) -> None:
        """Says what the view saves (`Views.save`).

        Args:
            inputs: the components whose values `write` is given.
            write: gets the folder to write into, then those values, and returns the files. May raise ValueError.
        """
        self.group.savings[self.name] = Saving(write, inputs)


@dataclass(frozen=True)
class Drawing:
    """How a view is drawn: its handler, what that reads and updates, and the options of the event that opens it."""

    show: Callable[..., Any]
    inputs: list
    outputs: list
    options: dict[str, Any]


@dataclass(frozen=True)
class Saving:
    """What a view saves: the function that writes the files, and what that reads."""

    write: Callable[..., list[Path]]
    inputs: list


class Views:
    """The views of a tab, in the order of their registry; `open` is the State with the name of the open one."""

    def __init__(
        self,
        registry: Sequence[type[View]],
        tab: Any,
        services: Services,
        elem_id: str,
        item_id: str | None = "view-{}",
        prefix: str = "",
    ) -> None:
        """Builds the views inside the current Blocks.

        Args:
            registry: their classes.
            tab: what holds them.
            services: for the views.
            elem_id: of the row of tabs.
            item_id: pattern of the id of each tab, None for no id.
            prefix: of the names of the events that open a view.
        """
        self.prefix = prefix
        self._views: dict[type[View], View] = {}
        self.drawings: dict[str, Drawing] = {}
        self.savings: dict[str, Saving] = {}
        self.always: list[str] = []  # names of drawings that are made whichever view is open
        self.transients: list = []  # components that go out of sight when another view opens, or this one is drawn anew
        self._later: list[Callable[[], Any]] | None = []  # events that draw views, until all of them are wired
        kinds = [kind for kind in registry if kind.available()]
        self.open = gr.State(kinds[0].name)
        with gr.Tabs(elem_id=elem_id, selected=kinds[0].name) as self.tabs:
            for kind in kinds:
                place = item_id.format(kind.name) if item_id else None
                with gr.Tab(kind.title, id=kind.name, elem_id=place, visible=kind.in_sight) as item:
                    view = self._views[kind] = kind(tab, services)
                    view.item, view.group = item, self

    def __getitem__(self, kind: type[AnyView]) -> AnyView:
        """The view of that class."""
        view = self._views[kind]
        assert isinstance(view, kind)
        return view

    def __iter__(self) -> Iterator[View]:
        return iter(self._views.values())

    @property
    def items(self) -> dict[str, gr.Tab]:
        """Name -> the view's own tab."""
        return {view.name: view.item for view in self}

    def draw_always(self, name: str, show: Callable[..., Any], inputs: list, outputs: list) -> None:
        """Has `show` called whenever the open view is drawn anew; before `wire`. Arguments as of `View.draw_with`."""
        assert self._later is not None, "what is drawn has to be known before the events are wired"
        self.drawings[name] = Drawing(show, inputs, outputs, {})
        self.always.append(name)

    def wire(self) -> None:
        """Wires every view, then the opening of each; a view out of sight costs nothing."""
        for view in self:
            view.wire()
        for view in self if self.drawings else ():
            drawing = self.drawings.get(view.name, Drawing(lambda: {}, [], [], QUICKLY))
            opening = self._opening(view.name, drawing.show)
            options = {**QUIETLY, **drawing.options, "api_name": f"open_{self.prefix}{view.name}"}
            view.item.select(opening, drawing.inputs, [self.open, *drawing.outputs, *self.transients], **options)
        later, self._later = self._later or [], None
        for connect in later:
            connect()

    def _opening(self, name: str, show: Callable[..., Any]) -> Callable[..., Any]:
        """A handler that opens a view and draws it."""

        def run(*values: Any) -> dict:
            updates = show(*values)
            return {**self._away(), **({} if updates == gr.skip() else updates), self.open: name}

        def stream(*values: Any) -> Iterator[dict]:
            for updates in show(*values):
                yield {**self._away(), **updates, self.open: name}

        return stream if inspect.isgeneratorfunction(show) else run

    def redraw_on(self, trigger: Callable, handler: Callable, inputs: list, outputs: list, **options: Any) -> None:
        """Connects an event that changes what the views show: the open one is drawn in the same round trip.

        Args:
            trigger: of a component, `button.click` for example.
            handler: gets the values of `inputs` and returns updates of `outputs`; a parameter `event`, if it has one,
                comes first.
            inputs, outputs: components.
            options: of the event.
        """
        count = len(inputs)

        def plain(*values: Any) -> Any:
            updates = handler(*values[:count])
            return self._with_drawing(updates, values[count:])

        def with_event(event: gr.EventData, *values: Any) -> Any:
            updates = handler(event, *values[:count])
            return self._with_drawing(updates, values[count:])

        def connect() -> None:
            act = with_event if "event" in inspect.signature(handler).parameters else plain
            places = list(dict.fromkeys([*outputs, *self.outputs]))
            trigger(act, [*inputs, *self.inputs], places, **options)

        self._after_wiring(connect)

    def redraw_after(self, event: Dependency, **options: Any) -> None:
        """Draws the open view anew once `event` has ended. options: of the event that does it."""
        self._after_wiring(lambda: event.then(self.stream, self.inputs, self.outputs, **options))

    def _after_wiring(self, connect: Callable[[], Any]) -> None:
        # A view that is wired later draws with components of its own, which the event has to read, too.
        if self._later is None:
            connect()
        else:
            self._later.append(connect)

    def _with_drawing(self, updates: dict, values: Sequence[Any]) -> dict:
        """Updates, and the open view drawn with them; a view that they open is drawn by its own event."""
        if updates == gr.skip() or updates.get(self.open, values[0]) != values[0]:
            return updates
        return {**updates, **self.draw(values, updates)}

    def _away(self) -> dict:
        return {one: gr.update(visible=False) for one in self.transients}

    # -- saving what the open view shows -----------------------------------------------------------------------------

    @property
    def save_inputs(self) -> list:
        """What `save` reads: the name of the open view, and what any of them saves from."""
        return list(dict.fromkeys([self.open, *(one for saving in self.savings.values() for one in saving.inputs)]))

    def save(self, folder: Path, *values: Any) -> list[Path]:
        """Writes the files of the open view into a folder. values: of `save_inputs`.

        Raises ValueError with one sentence where there is nothing to save.
        """
        by_component = dict(zip(self.save_inputs, values, strict=True))
        saving = self.savings.get(by_component[self.open])
        if saving is None:
            raise ValueError("There is nothing to save in this view.")
        return saving.write(folder, *(by_component[one] for one in saving.inputs))

    # -- drawing the open view anew ----------------------------------------------------------------------------------

    @property
    def inputs(self) -> list:
        """What `draw` reads: the name of the open view, and what any of them is given."""
        return list(dict.fromkeys([self.open, *(one for drawing in self.drawings.values() for one in drawing.inputs)]))

    @property
    def outputs(self) -> list:
        """What `draw` may update."""
        places = (one for drawing in self.drawings.values() for one in drawing.outputs)
        return list(dict.fromkeys([*places, *self.transients]))

    def stream(self, *values: Any) -> Iterator[dict]:
        """As `draw`, for an event of its own, and with the values one by one as views make them."""
        by_component = dict(zip(self.inputs, values, strict=True))
        for name in dict.fromkeys([by_component[self.open], *self.always]):
            drawing = self.drawings.get(name)
            updates = drawing.show(*(by_component[one] for one in drawing.inputs)) if drawing else gr.skip()
            if inspect.isgenerator(updates):
                yield from updates
            else:
                yield updates

    def draw(self, values: Sequence[Any], fresh: dict | None = None) -> dict:
        """Updates that draw the open view, and what is always drawn, as one event for them all.

        Args:
            values: of `inputs`.
            fresh: values or updates of components that are newer than those.
        """
        newer = {one: value_in(update) for one, update in (fresh or {}).items()}
        by_component = {**dict(zip(self.inputs, values, strict=True)), **newer}
        updates: dict = self._away()
        for name in dict.fromkeys([by_component[self.open], *self.always]):
            drawing = self.drawings.get(name)
            if drawing is None:  # a view of something else
                continue
            drawing_updates = drawing.show(*(by_component[one] for one in drawing.inputs))
            if drawing_updates != gr.skip():
                updates.update(drawing_updates)
        return updates
