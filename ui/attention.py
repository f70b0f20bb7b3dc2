"""The Attention view of the Translate tab: maps, lines, bertviz, what every head does, and what attention is not."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from types import SimpleNamespace
from typing import Any, Callable

import gradio as gr

from transformer import interpret
from ui import bertviz, figures, messages, theme
from ui.services import Services
from ui.shown import Shown, on_view

KINDS = ("cross", "encoder", "decoder")
KIND_LABELS = [("Cross", "cross"), ("Encoder", "encoder"), ("Decoder", "decoder")]
COMBINED = [("Mean over heads", "mean"), ("Largest over heads", "max"), ("Rollout over layers", "rollout")]
LOOKS = [("Map", "map"), ("Lines", "lines"), ("bertviz: heads", "head"), ("bertviz: model", "model")]
QUERIES = {"cross": "target", "encoder": "source", "decoder": "target"}
KEYS = {"cross": "source", "encoder": "source", "decoder": "target so far"}
STATISTICS = ["layer", "head", "what it does", "largest", "entropy", "distance"]
STATISTICS += ["start/end", "one back", "own", "ahead"]


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def head_title(kind: str, layer: int, head: int | str) -> str:
    """What a map is called, for example "Cross attention, layer 4, mean over heads"."""
    name = {
        "mean": "mean over heads",
        "max": "largest over heads",
        "rollout": "through the rollout of the encoder" if kind == "cross" else "rollout of the layers up to it",
    }.get(head, f"head {head + 1}" if isinstance(head, int) else "")
    return f"{kind.capitalize()} attention, layer {layer + 1}, {name}"


def layer_choices(kind: str, layer: int | None, *attentions: Any) -> tuple[list[tuple[str, int]], int]:
    """What a visitor may choose as layer of one kind of attention, and the chosen one, or the last if it is not there.

    An encoder may have more layers than the decoder, and of two models one may have more than the other.
    """
    layers = max(getattr(one, kind).shape[0] for one in attentions)
    return [(str(n + 1), n) for n in range(layers)], layers - 1 if layer is None else min(int(layer), layers - 1)


def draw_map(attention: Any, kind: str, layer: int, head: int | str, without_ends: bool = False) -> dict:
    """The large heat map of one choice, ready for the page."""
    found = interpret.attention_map(attention, kind, layer, head, without_ends)
    return figures.heat_map(
        found.weights,
        found.rows,
        found.columns,
        head_title(kind, layer, head) + (", without start and end" if without_ends else ""),
        f"queries: {QUERIES[kind]}",
        f"keys: {KEYS[kind]}",
    )


def draw_lines(attention: Any, kind: str, layer: int, without_ends: bool = False) -> dict:
    """The lines of all heads of a layer, ready for the page."""
    rows, columns = interpret.labels(attention, kind)
    weights = getattr(attention, kind)[layer]
    if without_ends:
        weights, row_places, column_places = interpret.hide_ends(weights, rows, columns)
        rows, columns = [rows[i] for i in row_places], [columns[i] for i in column_places]
    title = f"{kind.capitalize()} attention, layer {layer + 1}" + (", without start and end" if without_ends else "")
    return figures.lines(weights, rows, columns, title, f"queries: {QUERIES[kind]}", f"keys: {KEYS[kind]}")


def draw_thumbnails(attention: Any, kind: str, without_ends: bool = False) -> dict:
    """All maps of one kind as small pictures."""
    maps = getattr(attention, kind)
    if without_ends:
        maps = interpret.hide_ends(maps, *interpret.labels(attention, kind))[0]
    return figures.thumbnails(maps)


def cell_note(attention: Any, kind: str, layer: int, head: int | str, without_ends: bool, row: int, column: int) -> str:
    """HTML of one cell of a map in every head of its layer; row and column are those of the map that is shown."""
    found = interpret.attention_map(attention, kind, layer, head, without_ends)
    if not (0 <= row < len(found.rows) and 0 <= column < len(found.columns)):
        raise ValueError("This cell is not on the map any more; point at it again.")
    own = getattr(attention, kind)[layer, :, found.row_places[row], found.column_places[column]]
    weights = "".join(f'<li>head {n + 1} <b title="{value}">{value:.4f}</b></li>' for n, value in enumerate(own))
    return (
        f'<div class="note note-status">In layer {layer + 1}, <b>{escape(found.rows[row])}</b> attends to '
        f'<b>{escape(found.columns[column])}</b> with</div><ul class="cell-heads">{weights}</ul>'
    )


def statistics_rows(attention: Any, kind: str) -> list[list[Any]]:
    """The table of one kind's heads, those that put most on single tokens first; layers and heads count from 1."""
    maps = getattr(attention, kind)
    found = interpret.statistics(maps, interpret.labels(attention, kind)[1])
    roles = interpret.roles(found)
    columns = (found.confidence, found.entropy, found.distance, found.ends, found.previous, found.same, found.following)
    rows = [
        [layer + 1, head + 1, roles[layer, head] or "mixed", *(round(float(one[layer, head]), 3) for one in columns)]
        for layer in range(maps.shape[0])
        for head in range(maps.shape[1])
    ]
    # A head that rests on start or end is confident too, but does nothing.
    return sorted(rows, key=lambda row: (row[2].startswith("rests"), -row[3]))


def draw_reasons(
    services: Services, shown: Shown, layer: int, report: Callable[[float, str], None] = lambda share, what: None
) -> tuple[dict, dict, str]:
    """Gradient times input and occlusion as maps like those of attention, and a line that compares the three.

    layer: of the cross-attention they stand beside, its last one if there is no such layer. report: hears how much is
    done, in [0, 1], and in words. Both take about as long.
    """
    translator, attention = services.translator(shown.model), shown.attention
    where = (translator, shown.translation, shown.hypothesis, shown.sentence)
    gradient = interpret.gradient_times_input(
        *where, report=lambda done, total: report(done / total / 2, f"Gradients: {done} of {total} target tokens")
    )
    occluded = interpret.occlusion(
        *where, report=lambda done, total: report(0.5 + done / total / 2, f"Occlusion: {done} of {total} source tokens")
    )
    axes = ("queries: target", "keys: source", "leans on")
    rows, columns = interpret.labels(attention, "cross")
    drawn = [
        figures.heat_map(interpret.shares(scores), rows, columns, title, *axes, raw=scores, unit="nats")
        for scores, title in (
            (gradient, "Gradient × input, share of each row"),
            (occluded, "Occlusion, share of each row"),
        )
    ]
    layer = min(layer, attention.cross.shape[0] - 1)  # an encoder may have more layers than the decoder
    mean = attention.cross[layer].mean(0)
    by_gradient, by_occlusion = (interpret.agreement(mean, interpret.shares(x)) for x in (gradient, occluded))
    between = interpret.agreement(interpret.shares(gradient), interpret.shares(occluded))
    line = (
        f"The most important source token is the same for attention (layer {layer + 1}, mean over heads) and the "
        "gradient "
        f"in {by_gradient:.0%} of the target tokens, for attention and occlusion in {by_occlusion:.0%}, for gradient "
        "and "
        f"occlusion in {between:.0%}."
    )
    return *drawn, line


def head_changes(shown: Shown, kind: str) -> list[list[float]] | None:
    """What switching off each head of one kind changes, (L, h) as lists; None if nobody has asked."""
    return None if shown.changes is None else shown.changes[kind].tolist()


# -- layout ---------------------------------------------------------------------------------------------------------


def heat(elem_id: str, clickable: bool = False) -> gr.HTML:
    """An empty large map. clickable: a click on a cell triggers `cell` with its row and column."""
    classes = ["card", "heat-card"] + ["clickable"] * clickable
    return theme.drawn("heat_map.js", "heat", elem_id, classes, stretch=False, threshold=0)


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    gr.Markdown(
        "Each row is a query and shares a weight of 1 among the keys. In **cross**-attention the word being written "
        "looks "
        "at the words being read. In the **encoder** the source looks at itself, in the **decoder** the word being "
        "written looks at those already there.",
        elem_classes="section",
    )
    view.note = gr.HTML(elem_id="attention-note")
    with gr.Column(visible=False) as view.body:
        with gr.Row(elem_classes="attention-controls"):
            view.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", scale=2, min_width=340, elem_id="kind")
            view.layer = gr.Dropdown([], label="Layer", scale=1, min_width=90, elem_id="layer")
            view.head = gr.Dropdown(COMBINED, value="mean", label="Head", scale=1, min_width=190, elem_id="head")
            view.look = gr.Radio(LOOKS, value="map", label="Shown as", scale=4, min_width=500, elem_id="look")
        with gr.Row(elem_classes="attention-views"):
            with gr.Column(scale=3, min_width=320):
                view.map = heat("heat-map", clickable=True)
                view.cell = gr.HTML(elem_id="cell-note")
                view.lines = theme.drawn(
                    "lines.js", "lines", "lines", "card heat-card", threshold=0, alone=-1, visible=False
                )
                view.bertviz = gr.HTML(visible=False, elem_id="bertviz", elem_classes="card")
            with gr.Column(scale=2, min_width=300):
                view.thumbs = theme.drawn(
                    "thumbnails.js", "thumbs", "thumbnails", "card", selected=[0, -1], stretch=False, change=None
                )
                gr.Markdown("All layers and heads; select one to open it.", elem_classes="hint")
                with gr.Row(elem_classes="look-options"):
                    view.stretch = gr.Checkbox(
                        False,
                        label="Stretch colours",
                        info="Darkest at each map's maximum.",
                        min_width=150,
                        elem_id="stretch",
                    )
                    view.ends = gr.Checkbox(
                        False,
                        label="Hide start and end",
                        info="And padding; rows sum to 1 again.",
                        min_width=150,
                        elem_id="hide-ends",
                    )
                view.threshold = gr.Slider(
                    0,
                    1,
                    value=0,
                    step=0.01,
                    label="Show weights from",
                    info="Smaller ones are left blank.",
                    elem_id="threshold",
                )
                view.ablate = gr.Button("Which heads matter?", size="sm", elem_id="ablate-button")
                view.ablate_note = gr.HTML(elem_id="ablate-note")
        with gr.Accordion("What each head does", open=False, elem_id="head-statistics"):
            gr.Markdown(
                "Means over the rows of each map, sharpest heads first; click a column's name to sort by it, and a "
                "row to see "
                "its map. *Entropy* in nats, *distance* in tokens, the others are shares of the attention.",
                elem_classes="hint",
            )
            view.statistics = gr.Dataframe(
                headers=STATISTICS,
                datatype=["number", "number", "str"] + ["number"] * 7,
                label="Heads",
                show_label=False,
                interactive=False,
                elem_id="statistics-table",
            )
        with gr.Accordion("Is attention an explanation?", open=False, elem_id="reasons"):
            gr.Markdown(
                "Not by itself: a head may look at a word and make nothing of it. Two other questions to the same "
                "translation: how fast does each target token's log-probability change with a source token's embedding "
                "(gradient × input), and how much is lost when nobody may look at that source token (occlusion)?",
                elem_classes="hint",
            )
            view.reason = gr.Button("Compare with gradients and occlusion", size="sm", elem_id="reasons-button")
            view.reason_note = gr.HTML(elem_id="reasons-note")
            with gr.Row(visible=False) as view.reason_maps:
                with gr.Column(min_width=320):
                    view.gradient = heat("gradient-map")
                with gr.Column(min_width=320):
                    view.occlusion = heat("occlusion-map")
    return view


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.attention."""
    view = tab.attention

    # An update of an HTML component replaces all of its own properties, so each update names them all.

    def drawing(shown, kind, layer, head, look, ends, stretched, least):
        """Values of map, cell note, lines and bertviz; those that are not looked at are put away."""
        hidden = gr.update(visible=False)
        values = [hidden, "", hidden, hidden]
        if look == "map":
            value = draw_map(shown.attention, kind, layer, head, ends)
            value["hint"] = "Point at a cell to read its weight; click it for every head."
            values[0] = gr.update(value=value, stretch=stretched, threshold=least, visible=True)
        elif look == "lines":
            one = head if isinstance(head, int) else -1
            value = draw_lines(shown.attention, kind, layer, ends)
            values[2] = gr.update(value=value, alone=one, threshold=least, visible=True)
        else:
            try:
                value = bertviz.frame(shown.attention, kind, look, layer)
            except (ValueError, FileNotFoundError) as error:
                value = messages.alert(messages.sentence(error))
            values[3] = gr.update(value=value, visible=True)
        return values

    def small(shown, kind, layer, head, stretched, **value):
        """Update of the thumbnails."""
        one = [layer, head if isinstance(head, int) else -1]
        # An empty list takes the numbers of the sentence before away; None would leave them where they are.
        return gr.update(selected=one, stretch=stretched, change=head_changes(shown, kind) or [], **value)

    def refresh(shown, kind, layer, head, look, ends, stretched, least):
        """Everything anew for the sentence that is shown."""
        if shown.attention is None:  # the note already says why
            return [gr.update(visible=False)] + [gr.skip()] * (len(outputs) - 1)
        # The last layer is shown first: there the words have found each other.
        layers, layer = layer_choices(kind, layer, shown.attention)
        heads = shown.attention.cross.shape[1]
        head = head if isinstance(head, str) or head < heads else "mean"
        try:
            drawn = drawing(shown, kind, layer, head, look, ends, stretched, least)
            thumbs = draw_thumbnails(shown.attention, kind, ends)
        except ValueError:  # a sentence of nothing but its end
            ends = False
            drawn = drawing(shown, kind, layer, head, look, ends, stretched, least)
            thumbs = draw_thumbnails(shown.attention, kind)
        return [
            gr.update(visible=True),
            gr.update(choices=layers, value=layer),
            gr.update(choices=COMBINED + [(str(n + 1), n) for n in range(heads)], value=head),
            ends,
            *drawn,
            small(shown, kind, layer, head, stretched, value=thumbs),
            gr.skip() if shown.changes is not None else "",
            statistics_rows(shown.attention, kind),
            "",
            gr.update(visible=False),
        ]

    def choose(shown, kind, layer, head, look, ends, stretched, least):
        """Another layer, head or way to draw."""
        if shown.attention is None:
            return [gr.skip()] * 5
        drawn = drawing(shown, kind, layer, head, look, ends, stretched, least)
        return [*drawn, small(shown, kind, layer, head, stretched)]

    def colour(shown, kind, layer, head, look, ends, stretched, least):
        """The same numbers in other colours, or fewer of them."""
        if shown.attention is None:
            return [gr.skip()] * 3
        one = head if isinstance(head, int) else -1
        return (
            gr.update(stretch=stretched, threshold=least),
            gr.update(alone=one, threshold=least),
            small(shown, kind, layer, head, stretched),
        )

    def pick(event: gr.EventData):
        return int(event.layer), int(event.head)

    def pick_row(table, event: gr.SelectData):
        layer, head = (int(value) for value in event.row_value[:2])
        return layer - 1, head - 1

    def pick_cell(shown, kind, layer, head, ends, event: gr.EventData):
        if shown.attention is None:
            return gr.skip(), gr.skip()
        try:
            row = interpret.attention_map(shown.attention, kind, layer, head, ends).row_places[int(event.row)]
            return cell_note(shown.attention, kind, layer, head, ends, int(event.row), int(event.column)), row
        except (ValueError, IndexError):
            return "", gr.skip()

    def ablate_page(shown, kind, layer, head, stretched):
        """Switch off every head in turn and write what that costs on its thumbnail."""
        if shown.attention is None:
            return shown, gr.skip(), gr.skip()
        try:
            logprob, changes = interpret.ablation(
                services.translator(shown.model), shown.translation, shown.hypothesis, shown.sentence
            )
        except Exception as error:
            return shown, gr.skip(), messages.alert(messages.sentence(error))
        shown = replace(shown, changes=changes)
        note = (
            f"This translation has log-probability {logprob:.3f}. Each number is the change when that one head is "
            "switched off: the more negative, the more this translation leans on it. A dark map is not always a head "
            "that matters."
        )
        return shown, small(shown, kind, layer, head, stretched), messages.status(note)

    def announce(shown):
        """What is about to be worked out: for a long sentence it takes a while, so the page says so at once."""
        if shown.attention is None:
            return gr.skip()
        rows, columns = shown.attention.cross.shape[-2:]
        return messages.status(f"Working out {rows} target tokens by {columns} source tokens …")

    def reasons(shown, layer, progress=gr.Progress()):
        if shown.attention is None:
            return gr.skip(), gr.skip(), "", gr.update(visible=False)
        try:
            gradient, occluded, line = draw_reasons(services, shown, layer, lambda done, what: progress(done, what))
        except Exception as error:
            return gr.skip(), gr.skip(), messages.alert(messages.sentence(error)), gr.update(visible=False)
        return gradient, occluded, messages.status(line), gr.update(visible=True)

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    device = {"concurrency_id": "device", "api_visibility": "private"}
    choice = [tab.shown, view.kind, view.layer, view.head, view.look, view.ends, view.stretch, view.threshold]
    drawn = [view.map, view.cell, view.lines, view.bertviz, view.thumbs]
    outputs = [view.body, view.layer, view.head, view.ends, *drawn, view.ablate_note, view.statistics]
    outputs += [view.reason_note, view.reason_maps]

    on_view(tab, "attention", refresh, choice, outputs, "attention")
    for name in ("kind", "ends"):
        getattr(view, name).input(refresh, choice, outputs, api_name=f"choose_{name}", **quiet)
    for name in ("layer", "head", "look"):
        getattr(view, name).input(choose, choice, drawn, api_name=f"choose_{name}", **quiet)
    here = [view.layer, view.head]
    picked = view.thumbs.pick(pick, None, here, api_name="pick", **quiet)
    picked.then(choose, choice, drawn, api_name="pick_map", **quiet)
    picked = view.statistics.select(pick_row, view.statistics, here, api_name="pick_row", **quiet)
    picked.then(choose, choice, drawn, api_name="row_map", **quiet)
    for name in ("stretch", "threshold"):
        getattr(view, name).input(
            colour, choice, [view.map, view.lines, view.thumbs], api_name=name, trigger_mode="always_last", **quiet
        )
    cell = [tab.shown, view.kind, view.layer, view.head, view.ends]
    view.map.cell(pick_cell, cell, [view.cell, tab.query], api_name="pick_cell", **quiet)
    view.ablate.click(
        ablate_page,
        [tab.shown, view.kind, view.layer, view.head, view.stretch],
        [tab.shown, view.thumbs, view.ablate_note],
        api_name="ablate_page",
        **device,
    )
    announced = view.reason.click(announce, tab.shown, view.reason_note, api_name="reasons_announce", **quiet)
    announced.then(
        reasons,
        [tab.shown, view.layer],
        [view.gradient, view.occlusion, view.reason_note, view.reason_maps],
        api_name="reasons",
        show_progress_on=view.reason_note,
        **device,
    )
