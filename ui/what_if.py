"""The What if view of the Translate tab: change something inside the model and translate again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import interpret, intervene
from transformer.intervene import Edit, Surgery
from transformer.translator import Translator
from ui import decoding_figures, messages, theme
from ui.attention import KIND_LABELS, draw_map, heat
from ui.decoding import identity, search_beam
from ui.services import Services
from ui.shown import STATE_SECONDS, Shown, on_view

ALL = -1  # the choice "all heads" or "all rows"
MAX_CELLS = 50
OTHERS = [("share what is left", True), ("stay as they are", False)]


@dataclass
class Changes:
    """What one visitor has changed, and for which translation."""

    shown: tuple | None = None  # what tells the translation from any other
    surgery: Surgery = field(default_factory=Surgery)
    worth: dict[str, list] | None = None  # the change of the log-probability without each head, if asked for


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def read_switches(names: list[str], translator: Translator) -> frozenset[tuple[str, int, int]]:
    """Heads that the page names "kind/layer/head". Raises ValueError for one that the model does not have."""
    off = []
    for name in names[:10_000]:
        try:
            kind, layer, head = str(name).split("/")
            off.append((kind, int(layer), int(head)))
        except ValueError:
            raise ValueError("There is no head of that name; reload the page.") from None
    surgery = Surgery(off=frozenset(off))
    surgery.check(translator.model, 1)
    return surgery.off


def switch_state(surgery: Surgery) -> dict[str, Any]:
    """The heads that are off, as the page names them. The stamp makes it new for a page that holds the same names, so
    that switches which the visitor has turned meanwhile are set as well."""
    return {"names": ["/".join(map(str, place)) for place in sorted(surgery.off)], "stamp": time.time_ns()}


def make_edit(kind: str, layer: int, head: int, row: int, column: int, weight: float, renormalise: bool) -> Edit:
    """An edit as the page's controls say it; head and row may be ALL."""
    return Edit(
        kind, int(layer), None if head == ALL else int(head), None if row == ALL else int(row),
        ((int(column), float(weight)),), bool(renormalise),
    )  # fmt: skip


def add_edit(surgery: Surgery, edit: Edit) -> Surgery:
    """With one more edit. Cells of the same row of the same map become one edit, so that the other weights share what
    all of them leave, and a cell that is set again takes the new weight."""
    place = (edit.kind, edit.layer, edit.head, edit.row, edit.renormalise)
    cells, others = dict(edit.cells), []
    for old in surgery.edits:
        if (old.kind, old.layer, old.head, old.row, old.renormalise) == place:
            cells = {**dict(old.cells), **cells}
        else:
            others.append(old)
    return replace(surgery, edits=(*others, replace(edit, cells=tuple(sorted(cells.items())))))


def edit_sentence(attention: Any, edit: Edit) -> str:
    """An edit in words, with the tokens it is about."""
    rows, columns = interpret.labels(attention, edit.kind)
    head = "all heads" if edit.head is None else f"head {edit.head + 1}"
    row = "every row" if edit.row is None else f"row {edit.row + 1} “{rows[edit.row]}”"
    cells = ", ".join(f"“{columns[column]}” gets {weight:.2f}" for column, weight in edit.cells)
    rest = "the others share the rest" if edit.renormalise else "the others stay"
    return f"{edit.kind} layer {edit.layer + 1}, {head}, {row}: {cells}; {rest}"


def surgery_lines(attention: Any, surgery: Surgery) -> list[str]:
    """Everything that is changed, one line each; no line without a change."""
    lines = []
    for kind in interpret.KINDS:
        layers = sorted({layer for k, layer, _ in surgery.off if k == kind})
        for layer in layers:
            heads = sorted(head + 1 for k, n, head in surgery.off if (k, n) == (kind, layer))
            lines.append(f"{kind} layer {layer + 1}: head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))} off")
    return lines + [edit_sentence(attention, edit) for edit in surgery.edits]


def force_text(services: Services, shown: Shown, text: str, beam: int, alpha: float) -> str:
    """Continue the translation that is shown from a beginning of the visitor's; returns the drawing."""
    translator = services.translator(shown.model)
    sentence, ids = shown.translation.chosen(shown.sentence, shown.hypothesis)
    names = sentence.stand_ins
    begin = intervene.prefix_ids(translator, text or "", names)
    found = intervene.decode_from(translator, sentence.source_ids, begin, beam, float(alpha), stand_ins=names)
    before = sentence.hypotheses[shown.hypothesis]
    words = intervene.word_difference(intervene.text_of(translator, ids, names), found.hypotheses[0].text)
    read = " ".join(translator.labels(begin, names)) or "nothing, so the search is free"
    how = f"Begun with: {read}; log-probability of that beginning {found.prefix.logprob:.3f}."
    return decoding_figures.branch(before, found, words, how)


def run_surgery(services: Services, shown: Shown, surgery: Surgery, beam: int, alpha: float) -> str:
    """Translate again with the changed model; returns the drawing."""
    if not surgery:
        raise ValueError("Nothing is changed yet; switch a head off or overwrite a weight first.")
    result = intervene.operate(
        services.translator(shown.model), shown.translation, surgery, shown.sentence, shown.hypothesis, beam,
        float(alpha),
    )  # fmt: skip
    lines = surgery_lines(shown.attention, surgery)
    what = "; ".join(lines[:6]) + (f"; and {len(lines) - 6} more" if len(lines) > 6 else "") + "."
    return decoding_figures.outcome(result, what[0].upper() + what[1:])


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.changes = gr.State(Changes(), time_to_live=STATE_SECONDS)
    view.note = gr.HTML(elem_id="what-if-note")
    with gr.Column(visible=False) as view.body:
        gr.Markdown(
            "## Begin it yourself\nWrite how the translation has to begin; the model goes on from there. The last word "
            "may be unfinished.",
            elem_classes="section",
        )
        with gr.Row(equal_height=True):
            view.prefix = gr.Textbox(
                label="Beginning", max_length=2000, scale=4, min_width=220, elem_id="prefix", placeholder="Ein"
            )
            view.force = gr.Button("Go on from here", scale=1, min_width=150, elem_id="prefix-button")
        view.forced = gr.HTML(elem_id="prefix-result")
        gr.Markdown(
            "## Operate on the model\nSwitch heads off, or set a weight of a map, and translate again. A head that is "
            "off adds nothing to its layer.",
            elem_classes="section",
        )
        with gr.Row():
            with gr.Column(scale=2, min_width=300, elem_classes="card"):
                gr.Markdown("A filled box is a head at work. Select it, or a whole layer, to switch it off and on.",
                            elem_classes="hint")  # fmt: skip
                view.switches = theme.drawn("head_switches.js", "switches", "head-switches", off=None, changes=None)
                with gr.Row():
                    view.matter = gr.Button("Which head matters?", size="sm", min_width=120, elem_id="matter-button")
                    view.restore = gr.Button("Undo all changes", size="sm", min_width=120, elem_id="restore-button")
                view.matter_note = gr.HTML(elem_id="matter-note")
            with gr.Column(scale=3, min_width=300):
                with gr.Row(elem_classes="attention-controls"):
                    view.kind = gr.Radio(KIND_LABELS, value="cross", label="Map", min_width=330, elem_id="edit-kind")
                    view.layer = gr.Dropdown([], label="Layer", min_width=90, elem_id="edit-layer")
                    view.head = gr.Dropdown(
                        [("All heads", ALL)], value=ALL, label="Head", min_width=120, elem_id="edit-head"
                    )
                view.map = heat("edit-map", clickable=True)
        with gr.Row(elem_classes="attention-controls"):
            view.row = gr.Dropdown(
                [("Every row", ALL)], value=ALL, label="Row (query)", min_width=150, elem_id="edit-row"
            )
            view.column = gr.Dropdown([], label="Column (key)", min_width=150, elem_id="edit-column")
            view.weight = gr.Slider(0, 1, value=1, step=0.01, label="New weight", min_width=200, elem_id="edit-weight")
            view.others = gr.Radio(
                OTHERS, value=True, label="Other weights of the row", min_width=230, elem_id="edit-others"
            )
            view.add = gr.Button("Set this weight", min_width=140, elem_id="edit-add")
        gr.Markdown(
            "Select a cell of the map to fill in its row and column. In cross and decoder a row is a step: once the "
            "translation changes, the same step may choose another word.",
            elem_classes="hint",
        )
        view.list = gr.HTML(elem_id="edit-list")
        view.run = gr.Button("Translate again", variant="primary", elem_id="surgery-button")
        view.outcome = gr.HTML(elem_id="surgery-result")
    return view


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.what_if."""
    view = tab.what_if

    def listing(shown: Shown, surgery: Surgery) -> str:
        lines = surgery_lines(shown.attention, surgery)
        return messages.notes(lines) if lines else messages.status("Nothing is changed.")

    def map_of(shown: Shown, kind: str, layer: int, head: int) -> Any:
        return draw_map(shown.attention, kind, int(layer), interpret.MEAN if head == ALL else int(head))

    def places(shown: Shown, kind: str, row: int | None = None, column: int | None = None):
        rows, columns = interpret.labels(shown.attention, kind)
        row_choices = [("Every row", ALL)] + [(f"{n + 1}: {token}", n) for n, token in enumerate(rows)]
        column_choices = [(f"{n + 1}: {token}", n) for n, token in enumerate(columns)]
        return (
            gr.update(choices=row_choices, value=ALL if row is None else row),
            gr.update(choices=column_choices, value=0 if column is None else column),
        )

    shapes = [
        view.changes, view.note, view.body, view.prefix, view.forced, view.switches, view.matter_note, view.kind,
        view.layer, view.head, view.map, view.row, view.column, view.list, view.outcome,
    ]  # fmt: skip

    def refresh(shown: Shown, changes: Changes):
        now = identity(shown)
        if now is None or shown.attention is None:
            note = "" if shown.translation is None else messages.alert(
                "This sentence holds no words, so it was copied and there is nothing to change."
            )
            return (Changes(), note, gr.update(visible=False), *[gr.skip()] * (len(shapes) - 3))
        if changes.shown == now:  # the visitor comes back: everything is as it was left
            return [gr.skip()] * len(shapes)
        attention = shown.attention
        layers = {kind: getattr(attention, kind).shape[0] for kind in interpret.KINDS}
        heads = attention.cross.shape[1]
        last = layers["cross"] - 1
        words = shown.translation.sentences[shown.sentence].hypotheses[shown.hypothesis].text.split()
        # Heads that are off stay off for the next sentence; weights were set for the words of this one.
        same_model = changes.shown is not None and changes.shown[0] == now[0]
        surgery = Surgery(off=changes.surgery.off) if same_model else Surgery()
        return (
            Changes(now, surgery),
            "",
            gr.update(visible=True),
            " ".join(words[:2]),
            "",
            # No changes at all take the numbers of the sentence before away; None would leave them where they are.
            gr.update(value={"layers": layers, "heads": heads}, off=switch_state(surgery), changes={}),
            "",
            "cross",
            gr.update(choices=[(str(n + 1), n) for n in range(layers["cross"])], value=last),
            gr.update(choices=[("All heads", ALL)] + [(str(n + 1), n) for n in range(heads)], value=ALL),
            map_of(shown, "cross", last, ALL),
            *places(shown, "cross"),
            listing(shown, surgery),
            "",
        )

    def force(shown, text, search, beam, alpha):
        try:
            return force_text(services, shown, text, search_beam(search, beam), alpha)
        except Exception as error:
            return messages.alert(messages.sentence(error))

    def switch(shown, changes, event: gr.EventData):
        if changes.shown is None:
            return gr.skip(), gr.skip()
        try:
            off = read_switches(list(event.off), services.translator(shown.model))
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))
        changes = replace(changes, surgery=replace(changes.surgery, off=off))
        return changes, listing(shown, changes.surgery)

    def restore(shown, changes):
        if changes.shown is None:
            return [gr.skip()] * 4
        # An update of an HTML component replaces all of its own properties, so each one names them all.
        switches = gr.update(off=switch_state(Surgery()), changes=changes.worth)
        return replace(changes, surgery=Surgery()), listing(shown, Surgery()), switches, ""

    def matter(shown, changes):
        """The change of the log-probability without each head, on its switch."""
        if changes.shown is None:
            return gr.skip(), gr.skip(), gr.skip()
        try:
            translator = services.translator(shown.model)
            logprob, found = interpret.ablation(translator, shown.translation, shown.hypothesis, shown.sentence)
        except Exception as error:
            return gr.skip(), gr.skip(), messages.alert(messages.sentence(error))
        note = (
            f"The translation has log-probability {logprob:.3f}. Each number is what it changes by when that head "
            "alone is off: below 0, the head helped. Compare the mean attention beside it: a head may look hard at a "
            "word and still not matter."
        )
        worth = {kind: values.tolist() for kind, values in found.items()}
        switches = gr.update(changes=worth, off=switch_state(changes.surgery))
        return replace(changes, worth=worth), switches, messages.status(note)

    def choose_kind(shown, kind, layer, head):
        if shown.attention is None:
            return [gr.skip()] * 4
        layers = getattr(shown.attention, kind).shape[0]
        layer = min(int(layer or 0), layers - 1)
        choices = gr.update(choices=[(str(n + 1), n) for n in range(layers)], value=layer)
        return choices, map_of(shown, kind, layer, head), *places(shown, kind)

    def choose_map(shown, kind, layer, head):
        return gr.skip() if shown.attention is None else map_of(shown, kind, layer, head)

    def pick(event: gr.EventData):
        return int(event.row), int(event.column)

    def add(shown, changes, kind, layer, head, row, column, weight, renormalise):
        if changes.shown is None:
            return gr.skip(), gr.skip()
        surgery = changes.surgery
        try:
            edit = make_edit(kind, layer, head, row, column, weight, renormalise)
            surgery = add_edit(surgery, edit)
            if sum(len(one.cells) for one in surgery.edits) > MAX_CELLS:
                raise ValueError(f"There are {MAX_CELLS} changed weights already; undo them to set another one.")
            surgery.check(services.translator(shown.model).model, len(shown.attention.source_tokens))
            return replace(changes, surgery=surgery), listing(shown, surgery)
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error)) + listing(shown, changes.surgery)

    def run(shown, changes, search, beam, alpha):
        if changes.shown is None:
            return gr.skip()
        try:
            return run_surgery(services, shown, changes.surgery, search_beam(search, beam), alpha)
        except Exception as error:
            return messages.alert(messages.sentence(error))

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    device = {"concurrency_id": "device", "api_visibility": "private"}
    settings = [tab.search, tab.beam, tab.alpha]
    on_view(tab, "what_if", refresh, [tab.shown, view.changes], shapes, "what_if", queue=False)
    gr.on(
        [view.force.click, view.prefix.submit],
        force,
        [tab.shown, view.prefix, *settings],
        view.forced,
        api_name="force_prefix",
        **device,
    )
    view.switches.switches(
        switch, [tab.shown, view.changes], [view.changes, view.list], api_name="switch_heads",
        trigger_mode="always_last", **quiet,
    )  # fmt: skip
    view.restore.click(
        restore, [tab.shown, view.changes], [view.changes, view.list, view.switches, view.outcome],
        api_name="restore_model", **quiet,
    )  # fmt: skip
    view.matter.click(
        matter,
        [tab.shown, view.changes],
        [view.changes, view.switches, view.matter_note],
        api_name="which_head_matters",
        **device,
    )
    look = [tab.shown, view.kind, view.layer, view.head]
    view.kind.input(choose_kind, look, [view.layer, view.map, view.row, view.column], api_name="edit_kind", **quiet)
    gr.on([view.layer.input, view.head.input], choose_map, look, view.map, api_name="edit_map", **quiet)
    view.map.cell(pick, None, [view.row, view.column], api_name="edit_cell", **quiet)
    view.add.click(
        add,
        [tab.shown, view.changes, view.kind, view.layer, view.head, view.row, view.column, view.weight, view.others],
        [view.changes, view.list],
        api_name="edit_add",
        **quiet,
    )
    view.run.click(run, [tab.shown, view.changes, *settings], view.outcome, api_name="operate", **device)
