"""The Attention view of the Translate tab: maps, lines, bertviz, what every head does, and what attention is not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import interpret
from ui import figures, messages, theme
from ui.figures import percent
from ui.kit import QUICKLY, alerts
from ui.services import Services
from ui.translate import bertviz, save
from ui.translate.view import ON_DEVICE, CurrentTranslation, View
from ui.translate.words import WITHOUT_ENDS, axes, head_title, number_choices, plain, query_names

KINDS = ("cross", "encoder", "decoder")
KIND_LABELS = [
    ("Translation at text (cross)", "cross"),
    ("Text at itself (encoder)", "encoder"),
    ("Translation at itself (decoder)", "decoder"),
]
COMBINATIONS = [("Mean over heads", "mean"), ("Largest over heads", "max"), ("Rollout over layers", "rollout")]
DRAWINGS = [("Map", "map"), ("Lines", "lines"), ("bertviz", "bertviz")]
BERTVIZ = [("Heads", "head"), ("Model", "model")]
ROLE = "what it does"  # the one column of words
STATISTICS = ["layer", "head", ROLE, "largest", "entropy", "distance", "start/end"]
PLACE_COLUMNS = {  # the last three columns: where a head looks that always looks at the same place
    "cross": ["word before", "its word", "word after"],  # the word that is being translated, by all heads together
    "encoder": ["one back", "own", "ahead"],
    "decoder": ["one back", "own", "ahead"],
}


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def layer_choices(kind: str, layer: int | None, *attentions: Any) -> tuple[list[tuple[str, int]], int]:
    """What a visitor may choose as layer of one kind of attention, and the chosen one, or the last if it is not there.

    An encoder may have more layers than the decoder, and of two models one may have more than the other.
    """
    layers = max(getattr(one, kind).shape[0] for one in attentions)
    return number_choices(layers), layers - 1 if layer is None else min(int(layer), layers - 1)


def draw_map(attention: Any, kind: str, layer: int, head: int | str, without_ends: bool = False) -> dict:
    """The large heat map of one choice, ready for the page."""
    part = interpret.attention_map(attention, kind, layer, head, without_ends)
    names, title = query_names(attention, kind), head_title(kind, layer, head, without_ends)
    value = figures.heat_map(part.weights, part.rows, part.columns, title, *axes(kind))
    return {**value, "rowNames": [names[place] for place in part.row_places]}


def draw_lines(attention: Any, kind: str, layer: int, without_ends: bool = False, alone: int = -1) -> dict:
    """The lines of all heads of a layer, ready for the page. alone: the head that is looked at, -1 for all."""
    rows, columns = interpret.labels(attention, kind)
    names, weights = query_names(attention, kind), getattr(attention, kind)[layer]
    if without_ends:
        weights, row_places, column_places = interpret.hide_ends(weights, rows, columns)
        rows, columns = [rows[i] for i in row_places], [columns[i] for i in column_places]
        names = [names[i] for i in row_places]
    title = f"{kind.capitalize()} attention, layer {layer + 1}" + WITHOUT_ENDS * without_ends
    value = figures.lines(weights, rows, columns, title, *axes(kind))
    if alone >= 0:
        value["says"] = figures.heat_map(weights[alone], rows, columns, title, *axes(kind))["says"]
    return {**value, "rowNames": names}


def draw_thumbnails(attention: Any, kind: str, without_ends: bool = False) -> dict:
    """All maps of one kind as small pictures."""
    maps = getattr(attention, kind)
    if without_ends:
        maps = interpret.hide_ends(maps, *interpret.labels(attention, kind))[0]
    return figures.thumbnails(maps)


def cell_note(attention: Any, kind: str, layer: int, head: int | str, without_ends: bool, row: int, column: int) -> str:
    """HTML of one cell of a map in every head of its layer; row and column are those of the map that is shown."""
    part = interpret.attention_map(attention, kind, layer, head, without_ends)
    if not (0 <= row < len(part.rows) and 0 <= column < len(part.columns)):
        raise ValueError("This cell is not on the map any more; point at it again.")
    own = getattr(attention, kind)[layer, :, part.row_places[row], part.column_places[column]]
    name = query_names(attention, kind)[part.row_places[row]]
    weights = "".join(f'<li>head {n + 1} <b title="{value}">{value:.4f}</b></li>' for n, value in enumerate(own))
    return (
        f'<div class="note note-status">In layer {layer + 1}, <b>{escape(name)}</b>, attends to '
        f'<b translate="no">{escape(plain(part.columns[column]))}</b> with</div><ul class="cell-heads">{weights}</ul>'
    )


def statistics_rows(attention: Any, kind: str) -> list[list[Any]]:
    """The table of one kind's heads, those that put most on single tokens first; layers and heads count from 1."""
    maps = getattr(attention, kind)
    statistics = interpret.statistics(maps, interpret.labels(attention, kind)[1], interpret.centres(attention, kind))
    roles = interpret.roles(statistics, kind)
    names = ("confidence", "entropy", "distance", "ends", "previous", "same", "following")
    columns = [getattr(statistics, name) for name in names]
    rows = [
        [layer + 1, head + 1, roles[layer, head] or "mixed", *(round(float(one[layer, head]), 3) for one in columns)]
        for layer in range(maps.shape[0])
        for head in range(maps.shape[1])
    ]
    # A head that rests on start or end is confident too, but does nothing.
    return sorted(rows, key=lambda row: (row[2].startswith("rests"), -row[3]))


def statistics_table(attention: Any, kind: str) -> dict[str, Any]:
    """The same for `gr.Dataframe`: numbers with three decimals each, though sorted by their values."""
    rows = statistics_rows(attention, kind)
    texts = [[f"{one:.3f}" if isinstance(one, float) else str(one) for one in row] for row in rows]
    return {
        "headers": STATISTICS + PLACE_COLUMNS[kind],
        "data": rows,
        "metadata": {"display_value": texts, "styling": None},
    }


def draw_reasons(
    services: Services,
    current: CurrentTranslation,
    layer: int,
    report: Callable[[float, str], None] = lambda share, what: None,
) -> tuple[dict, dict, str]:
    """Gradient times input and occlusion as maps like those of attention, and a line that compares the three.

    layer: of the cross-attention they stand beside, its last one if there is no such layer. report: hears how much is
    done, in [0, 1], and in words. Both take about as long.
    """
    translator, attention = services.translator(current.model), current.attention
    where = (translator, current.translation, current.hypothesis, current.sentence)
    gradient = interpret.gradient_times_input(
        *where, report=lambda count, total: report(count / total / 2, f"Gradients: {count} of {total} pieces")
    )
    occlusion = interpret.occlusion(
        *where, report=lambda count, total: report(0.5 + count / total / 2, f"Occlusion: {count} of {total} pieces")
    )
    names = ("queries: translation", "keys: text", "leans on")
    rows, columns = interpret.labels(attention, "cross")
    first, second = (
        figures.heat_map(interpret.shares(scores), rows, columns, title, *names, raw=scores, unit="nats")
        for scores, title in (
            (gradient, "Gradient × input, share of each row"),
            (occlusion, "Occlusion, share of each row"),
        )
    )
    layer = min(layer, attention.cross.shape[0] - 1)  # an encoder may have more layers than the decoder
    mean = attention.cross[layer].mean(0)
    by_gradient, by_occlusion = (interpret.agreement(mean, interpret.shares(x)) for x in (gradient, occlusion))
    between = interpret.agreement(interpret.shares(gradient), interpret.shares(occlusion))
    line = (
        f"The most important piece of the text is the same for attention (layer {layer + 1}, mean over heads) and the "
        f"gradient in {percent(by_gradient)} of the translation’s, for attention and occlusion in "
        f"{percent(by_occlusion)}, for gradient and occlusion in {percent(between)}."
    )
    return first, second, line


def head_changes(current: CurrentTranslation, kind: str) -> list[list[float]] | None:
    """What switching off each head of one kind changes, (L, h) as lists; None until it is asked for."""
    return None if current.changes is None else current.changes[kind].tolist()


# -- the view ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What the view's controls say."""

    kind: str
    layer: int
    head: int | str  # a number or one of `COMBINATIONS`
    look: str
    bertviz: str  # which of its views
    without_ends: bool
    stretch: bool
    threshold: float

    @property
    def alone(self) -> int:
        """The one head that is looked at, -1 for all."""
        return self.head if isinstance(self.head, int) else -1


class AttentionView(View):
    """All maps of a sentence: one large, all of them small, and what each head does."""

    name = "attention"
    title = "Who looks at whom"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("translate/attention"), elem_classes="hint")
        self.note = gr.HTML(elem_id="attention-note")
        with gr.Column(visible=False) as self.body:
            self._controls()
            with gr.Row(elem_classes="attention-views"):
                with gr.Column(scale=3, min_width=320, elem_classes="large-map"):
                    self.map = theme.heat_map("heat-map", clickable=True)
                    self.cell = gr.HTML(elem_id="cell-note")
                    self.lines = theme.script_component(
                        "translate/lines.js", "lines", "lines", "card heat-card", threshold=0, alone=-1, visible=False
                    )
                    with gr.Column(visible=False, elem_id="bertviz-card") as self.bertviz_card:
                        self.bertviz_view = theme.component(gr.Radio, "bertviz-view", BERTVIZ)
                        self.bertviz = gr.HTML(elem_id="bertviz", elem_classes="card")
                with gr.Column(scale=2, min_width=300):
                    self._side()
            self._statistics()
            self._reasons()

    def _controls(self) -> None:
        with gr.Row(elem_classes="attention-controls"):
            self.kind = theme.component(gr.Radio, "kind", KIND_LABELS)
            self.layer = theme.component(gr.Dropdown, "layer")
            self.head = theme.component(gr.Dropdown, "head", COMBINATIONS)

    def _side(self) -> None:
        """The small maps and how maps are drawn."""
        self.look = theme.component(gr.Radio, "look", DRAWINGS)
        self.thumbs = theme.script_component(
            "translate/thumbnails.js", "thumbs", "thumbnails", "card", selected=[0, -1], stretch=False, change=None
        )
        gr.Markdown("All layers and heads; select one to open it.", elem_classes="hint")
        with gr.Row(elem_classes="look-options"):
            self.stretch = theme.component(gr.Checkbox, "stretch")
            self.ends = theme.component(gr.Checkbox, "hide-ends")
        self.threshold = theme.component(gr.Slider, "threshold")
        self.ablate = theme.component(gr.Button, "ablate-button")
        self.ablate_note = gr.HTML(elem_id="ablate-note")

    def _statistics(self) -> None:
        with gr.Accordion("What each head does", open=False, elem_id="head-statistics"):
            gr.Markdown(theme.text("translate/attention.statistics"), elem_classes="hint")
            self.statistics = theme.component(
                gr.Dataframe,
                "statistics-table",
                headers=STATISTICS + PLACE_COLUMNS["cross"],
                datatype=["str" if name == ROLE else "number" for name in STATISTICS + PLACE_COLUMNS["cross"]],
            )

    def _reasons(self) -> None:
        with gr.Accordion("Is attention an explanation?", elem_id="reasons"):
            gr.Markdown(theme.text("translate/attention.reasons"), elem_classes="hint")
            self.reason = theme.component(gr.Button, "reasons-button")
            self.reason_note = gr.HTML(elem_id="reasons-note")
            with gr.Row(visible=False) as self.reason_maps:
                with gr.Column(min_width=320):
                    self.gradient = theme.heat_map("gradient-map")
                with gr.Column(min_width=320):
                    self.occlusion = theme.heat_map("occlusion-map")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        choice = [self.tab.current, self.kind, self.layer, self.head, self.look, self.bertviz_view]
        choice += [self.ends, self.stretch, self.threshold]
        pictures = [self.map, self.cell, self.lines, self.bertviz_card, self.bertviz, self.thumbs]
        outputs = [self.body, self.layer, self.head, self.ends, *pictures, self.ablate_note, self.statistics]
        outputs += [self.reason_note, self.reason_maps]
        self.draw_with(choice, outputs)
        for name in ("kind", "ends"):
            getattr(self, name).input(self.show, choice, outputs, api_name=f"choose_{name}", **QUICKLY)
        for name in ("layer", "head", "look", "bertviz_view"):
            getattr(self, name).input(self.choose, choice, pictures, api_name=f"choose_{name}", **QUICKLY)
        here = [self.layer, self.head, *pictures]
        self.thumbs.pick(self.pick, choice, here, api_name="pick", **QUICKLY)
        self.statistics.select(self.pick_row, choice, here, api_name="pick_row", **QUICKLY)
        for name in ("stretch", "threshold"):
            getattr(self, name).input(
                self.colour,
                choice,
                [self.map, self.lines, self.thumbs],
                api_name=name,
                trigger_mode="always_last",
                **QUICKLY,
            )
        cell = [self.tab.current, self.kind, self.layer, self.head, self.ends]
        self.map.cell(self.pick_cell, cell, [self.cell, self.tab.query], api_name="pick_cell", **QUICKLY)
        settings = [self.kind, self.layer, self.head, self.ends, self.threshold, self.stretch, self.look]
        self.save_with([self.tab.current, *settings], self.write)
        self.ablate.click(
            self.ablate_heads,
            [self.tab.current, self.kind, self.layer, self.head, self.stretch],
            [self.tab.current, self.thumbs, self.ablate_note],
            api_name="ablate_page",
            **ON_DEVICE,
        )
        event = self.reason.click(
            self.announce, self.tab.current, self.reason_note, api_name="reasons_announce", **QUICKLY
        )
        event.then(
            self.reasons,
            [self.tab.current, self.layer],
            [self.gradient, self.occlusion, self.reason_note, self.reason_maps],
            api_name="reasons",
            show_progress_on=self.reason_note,
            **ON_DEVICE,
        )

    def write(
        self, folder: Path, current: CurrentTranslation, kind, layer, head, ends, threshold, stretch, look
    ) -> list[Path]:
        """The map that is looked at, as files."""
        if current.attention is None:
            raise ValueError("There is no attention to save yet; translate a sentence first.")
        layer, heads = layer_choices(kind, layer, current.attention)[1], current.attention.cross.shape[1]
        settings = {  # as the files tell it: layers and heads from 1
            "kind": kind,
            "layer": layer + 1,
            "head": min(head, heads - 1) + 1 if isinstance(head, int) else head,
            "without_ends": bool(ends),
            "threshold": float(threshold),
            "stretch": bool(stretch),
            "look": look,
            "model": current.model or self.services.translation_model,
        }
        return save.save(current, settings, folder)

    # An update of an HTML component replaces all of its own properties, so each update names them all.

    def _drawing(self, current: CurrentTranslation, look: Look) -> dict:
        """Map, cell note, lines and bertviz; those that are not looked at are put away."""
        updates: dict[Any, Any] = {one: gr.update(visible=False) for one in (self.map, self.lines, self.bertviz_card)}
        updates[self.cell] = ""
        if look.look == "map":
            value = draw_map(current.attention, look.kind, look.layer, look.head, look.without_ends)
            value["hint"] = "Point at a cell to read its weight; click it for every head."
            updates[self.map] = gr.update(value=value, stretch=look.stretch, threshold=look.threshold, visible=True)
        elif look.look == "lines":
            value = draw_lines(current.attention, look.kind, look.layer, look.without_ends, look.alone)
            updates[self.lines] = gr.update(value=value, alone=look.alone, threshold=look.threshold, visible=True)
        else:
            try:
                head = look.alone if look.alone >= 0 else None
                frame = bertviz.frame(current.attention, look.kind, look.bertviz, look.layer, head)
            except (ValueError, FileNotFoundError) as error:
                frame = messages.failure(error)
            updates[self.bertviz_card] = gr.update(visible=True)
            updates[self.bertviz] = frame
        return updates

    def _small(
        self, current: CurrentTranslation, kind: str, layer: int, head: int | str, stretch: bool, **value: Any
    ) -> dict:
        """Update of the thumbnails."""
        one = [layer, head if isinstance(head, int) else -1]
        # An empty list takes the numbers of the sentence before away; None would leave them where they are.
        change = head_changes(current, kind) or []
        return {self.thumbs: gr.update(selected=one, stretch=stretch, change=change, **value)}

    def show(self, current, kind, layer, head, look, view, ends, stretch, threshold):
        """Draw all of the view for the sentence that is shown."""
        if current.attention is None:  # the note already says why
            return {self.body: gr.update(visible=False)}
        # The last layer is shown first: there the words have found each other.
        layers, layer = layer_choices(kind, layer, current.attention)
        heads = current.attention.cross.shape[1]
        head = head if isinstance(head, str) or head < heads else "mean"
        controls = Look(kind, layer, head, look, view, ends, stretch, threshold)
        try:
            drawing = self._drawing(current, controls)
            thumbs = draw_thumbnails(current.attention, kind, ends)
        except ValueError:  # a sentence of nothing but its end
            ends = False
            drawing = self._drawing(current, replace(controls, without_ends=False))
            thumbs = draw_thumbnails(current.attention, kind)
        return {
            self.body: gr.update(visible=True),
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=COMBINATIONS + number_choices(heads), value=head),
            self.ends: ends,
            **drawing,
            **self._small(current, kind, layer, head, stretch, value=thumbs),
            self.ablate_note: gr.skip() if current.changes is not None else "",
            self.statistics: statistics_table(current.attention, kind),
            self.reason_note: "",
            self.reason_maps: gr.update(visible=False),
        }

    def choose(self, current, *controls):
        """Another layer, head or way to draw."""
        if current.attention is None:
            return gr.skip()
        look = Look(*controls)
        return {**self._drawing(current, look), **self._small(current, look.kind, look.layer, look.head, look.stretch)}

    def colour(self, current, *controls):
        """The same numbers in other colours, or fewer of them."""
        if current.attention is None:
            return gr.skip()
        look = Look(*controls)
        return {
            self.map: gr.update(stretch=look.stretch, threshold=look.threshold),
            self.lines: gr.update(alone=look.alone, threshold=look.threshold),
            **self._small(current, look.kind, look.layer, look.head, look.stretch),
        }

    def pick(self, event: gr.EventData, *choice):
        """A small map was clicked."""
        return self._go_to(choice, int(event.layer), int(event.head))

    def pick_row(self, event: gr.SelectData, *choice):
        """A row of the table of heads was clicked."""
        layer, head = (int(value) for value in event.row_value[:2])
        return self._go_to(choice, layer - 1, head - 1)

    def _go_to(self, choice: tuple, layer: int, head: int) -> dict:
        current, kind, _, _, *look = choice
        updates = self.choose(current, kind, layer, head, *look)
        return updates if updates == gr.skip() else {**updates, self.layer: layer, self.head: head}

    def pick_cell(self, current, kind, layer, head, ends, event: gr.EventData):
        """A cell of the large map was clicked: its weight in every head, and its row is the query from now on."""
        if current.attention is None:
            return gr.skip()
        try:
            row = interpret.attention_map(current.attention, kind, layer, head, ends).row_places[int(event.row)]
            note = cell_note(current.attention, kind, layer, head, ends, int(event.row), int(event.column))
        except (ValueError, IndexError):
            return {self.cell: ""}
        return {self.cell: note, self.tab.query: row}

    @alerts("ablate_note")
    def ablate_heads(self, current, kind, layer, head, stretch):
        """Switch off every head in turn and write what that costs on its thumbnail."""
        if current.attention is None:
            return gr.skip()
        logprob, changes = interpret.ablation(
            self.services.translator(current.model), current.translation, current.hypothesis, current.sentence
        )
        current = replace(current, changes=changes)
        note = (
            f"This translation has log-probability {logprob:.3f}. Each number is the change when that one head is "
            "switched off: the more negative, the more this translation leans on it. A dark map is not always a head "
            "that matters."
        )
        small = self._small(current, kind, layer, head, stretch)
        return {self.tab.current: current, **small, self.ablate_note: messages.status(note)}

    def announce(self, current):
        """What is about to be worked out: for a long sentence it takes a while, so the page says so at once."""
        if current.attention is None:
            return gr.skip()
        rows, columns = current.attention.cross.shape[-2:]
        return messages.status(f"Working out {rows} pieces of the translation by {columns} pieces of the text …")

    @alerts("reason_note", hide="reason_maps")
    def reasons(self, current, layer, progress=gr.Progress()):
        """Gradients and occlusion beside attention."""
        if current.attention is None:
            return {self.reason_note: "", self.reason_maps: gr.update(visible=False)}
        gradient, occlusion, line = draw_reasons(self.services, current, layer, progress)
        return {
            self.gradient: gradient,
            self.occlusion: occlusion,
            self.reason_note: messages.status(line),
            self.reason_maps: gr.update(visible=True),
        }
