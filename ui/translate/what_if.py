"""The What if view of the Translate tab: change something inside the model and translate again."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import interpret, intervene
from transformer.insight.intervene import Edit, Intervention
from transformer.options import SearchOptions
from transformer.translator import Translator
from ui import messages, theme
from ui.kit import QUICKLY, alerts
from ui.services import Services
from ui.translate import answers, decoding_figures
from ui.translate.attention import KIND_LABELS, draw_map
from ui.translate.compare import Compare
from ui.translate.decoding import identity, search_beam
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, View
from ui.translate.words import number_choices, place_choices, plain, query_names

ALL = -1  # the choice "all heads" or "all rows"
MAX_CELLS = 50
PARTS = [
    ("it began differently", "begin"),
    ("heads or weights were different", "model"),
    ("text, model or search were different", "sides"),
]
OTHERS = [("share what is left", True), ("stay as they are", False)]


@dataclass
class Changes:
    """What one visitor has changed, and for which translation."""

    identity: tuple | None = None  # what tells the translation from any other
    intervention: Intervention = field(default_factory=Intervention)
    head_effects: dict[str, list] | None = None  # the change of the log-probability without each head, if asked for


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
    intervention = Intervention(off=frozenset(off))
    intervention.check(translator.model, 1)
    return intervention.off


def switch_state(intervention: Intervention) -> dict[str, Any]:
    """The heads that are off, as the page names them. The stamp makes it new for a page that holds the same names, so
    that switches which the visitor has turned meanwhile are set as well.
    """
    return {"names": ["/".join(map(str, place)) for place in sorted(intervention.off)], "stamp": time.time_ns()}


def make_edit(kind: str, layer: int, head: int, row: int, column: int, weight: float, renormalise: bool) -> Edit:
    """An edit as the page's controls say it; head and row may be ALL."""
    return Edit(
        kind,
        int(layer),
        None if head == ALL else int(head),
        None if row == ALL else int(row),
        ((int(column), float(weight)),),
        bool(renormalise),
    )


def add_edit(intervention: Intervention, edit: Edit) -> Intervention:
    """The list with one more edit. Cells of the same row of the same map become one edit, so that the other weights
    share what all of them leave, and a cell that is set again takes the new weight.
    """
    place = (edit.kind, edit.layer, edit.head, edit.row, edit.renormalise)
    cells, others = dict(edit.cells), []
    for old in intervention.edits:
        if (old.kind, old.layer, old.head, old.row, old.renormalise) == place:
            cells = {**dict(old.cells), **cells}
        else:
            others.append(old)
    return replace(intervention, edits=(*others, replace(edit, cells=tuple(sorted(cells.items())))))


def edit_sentence(attention: Any, edit: Edit) -> str:
    """An edit in words, with the tokens whose weights it sets."""
    columns = interpret.labels(attention, edit.kind)[1]
    head = "all heads" if edit.head is None else f"head {edit.head + 1}"
    row = "every row" if edit.row is None else f"row {edit.row + 1} ({query_names(attention, edit.kind)[edit.row]})"
    cells = ", ".join(f"“{plain(columns[column])}” gets {weight:.2f}" for column, weight in edit.cells)
    rest = "the others share the rest" if edit.renormalise else "the others stay"
    return f"{edit.kind} layer {edit.layer + 1}, {head}, {row}: {cells}; {rest}"


def intervention_lines(attention: Any, intervention: Intervention) -> list[str]:
    """Everything that is changed, one line each; no line without a change."""
    lines = []
    for kind in interpret.KINDS:
        layers = sorted({layer for k, layer, _ in intervention.off if k == kind})
        for layer in layers:
            heads = sorted(head + 1 for k, n, head in intervention.off if (k, n) == (kind, layer))
            lines.append(f"{kind} layer {layer + 1}: head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))} off")
    return lines + [edit_sentence(attention, edit) for edit in intervention.edits]


def listing(current: CurrentTranslation, intervention: Intervention) -> str:
    """HTML of everything that is changed."""
    lines = intervention_lines(current.attention, intervention)
    return messages.notes(lines) if lines else messages.status("Nothing is changed.")


def map_of(current: CurrentTranslation, kind: str, layer: int, head: int) -> dict:
    """One map ready for the page; head may be ALL."""
    return draw_map(current.attention, kind, int(layer), interpret.MEAN if head == ALL else int(head))


def force_text(services: Services, current: CurrentTranslation, text: str, beam: int, alpha: float) -> str:
    """Continue the translation that is shown from a beginning of the visitor's; returns the drawing."""
    translator = services.translator(current.model)
    sentence, ids = current.entry_and_ids()
    names = sentence.stand_ins
    begin = intervene.prefix_ids(translator, text or "", names)
    continuation = intervene.decode_from(
        translator, sentence.source_ids, begin, SearchOptions(beam, float(alpha)), stand_ins=names
    )
    words = intervene.word_difference(intervene.text_of(translator, ids, names), continuation.hypotheses[0].text)
    read = " ".join(map(plain, translator.labels(begin, names))) or "nothing, so the search is free"
    how = f"Begun with: {read}; log-probability of that beginning {continuation.prefix.logprob:.3f}."
    return decoding_figures.branch(current.output, continuation, words, how)


def translate_with(
    services: Services, current: CurrentTranslation, intervention: Intervention, beam: int, alpha: float
) -> str:
    """Translate again with the changed model; returns the drawing."""
    if not intervention:
        raise ValueError("Nothing is changed yet; switch a head off or overwrite a weight first.")
    translator, options = services.translator(current.model), SearchOptions(beam, float(alpha))
    result = intervene.operate(
        translator, current.translation, intervention, current.sentence, current.hypothesis, options
    )
    lines = intervention_lines(current.attention, intervention)
    what = "; ".join(lines[:6]) + (f"; and {len(lines) - 6} more" if len(lines) > 6 else "") + "."
    return decoding_figures.outcome(result, what[0].upper() + what[1:])


# -- the view ---------------------------------------------------------------------------------------------------------


class WhatIfView(View):
    """A beginning of the visitor's; heads switched off, weights set by hand; two translations side by side."""

    name = "what_if"
    title = "What if"
    fields = {"part": "part"}

    def build(self) -> None:
        """Makes the components."""
        self.changes = gr.State(Changes(), time_to_live=STATE_SECONDS)
        self.part = theme.component(gr.Radio, "what-if", PARTS)
        self.note = gr.HTML(elem_id="what-if-note")
        self.columns = {}
        with gr.Column(visible=False) as self.columns["begin"]:
            self._beginning()
        with gr.Column(visible=False) as self.columns["model"]:
            gr.Markdown(theme.text("translate/what_if.model"), elem_classes="section")
            with gr.Row(elem_classes="cause-effect"):
                with gr.Column(scale=3, min_width=300):
                    with gr.Column(elem_classes="card"):
                        self._switches()
                    self._map()
                    self._weight()
                with gr.Column(scale=2, min_width=280, elem_classes="effect"):
                    self.list = gr.HTML(elem_id="edit-list")
                    self.run = theme.component(gr.Button, "intervention-button")
                    self.outcome = gr.HTML(elem_id="intervention-result")
        with gr.Column(visible=False) as self.columns["sides"]:
            self.compare = Compare(self.tab, self.services)

    def _beginning(self) -> None:
        gr.Markdown(theme.text("translate/what_if.begin"), elem_classes="section")
        with gr.Row(equal_height=True):
            self.prefix = theme.component(gr.Textbox, "prefix")
            self.force = theme.component(gr.Button, "prefix-button")
        self.continuation = gr.HTML(elem_id="prefix-result")

    def _switches(self) -> None:
        gr.Markdown(theme.text("translate/what_if.switches"), elem_classes="hint")
        self.switches = theme.script_component(
            "translate/head_switches.js", "switches", "head-switches", off=None, changes=None
        )
        with gr.Row():
            self.matter = theme.component(gr.Button, "matter-button")
            self.restore = theme.component(gr.Button, "restore-button")
        self.matter_note = gr.HTML(elem_id="matter-note")

    def _map(self) -> None:
        with gr.Row(elem_classes="attention-controls"):
            self.kind = theme.component(gr.Radio, "edit-kind", KIND_LABELS)
            self.layer = theme.component(gr.Dropdown, "edit-layer")
            self.head = theme.component(gr.Dropdown, "edit-head", [("All heads", ALL)], value=ALL)
        self.map = theme.heat_map("edit-map", clickable=True)

    def _weight(self) -> None:
        with gr.Row(elem_classes="attention-controls"):
            self.row = theme.component(gr.Dropdown, "edit-row", [("Every row", ALL)], value=ALL)
            self.column = theme.component(gr.Dropdown, "edit-column")
            self.weight = theme.component(gr.Slider, "edit-weight")
            self.others = theme.component(gr.Radio, "edit-others", OTHERS)
            self.add = theme.component(gr.Button, "edit-add")
        gr.Markdown(theme.text("translate/what_if.weight"), elem_classes="hint")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, state = self.tab, [self.tab.current, self.changes]
        settings = [tab.settings.search, tab.settings.beam, tab.settings.alpha]
        drawing = [self.changes, self.note, *self.columns.values(), self.prefix, self.continuation, self.switches]
        drawing += [self.matter_note, self.kind, self.layer, self.head, self.map, self.row, self.column]
        drawing += [self.list, self.outcome, *self.compare.places]
        inputs = [*state, self.part, *self.compare.show_inputs]
        self.draw_with(inputs, drawing, concurrency_id="translate")
        self.part.input(self.show, inputs, drawing, api_name="what_if_part", **QUIETLY_ON_DEVICE)
        self.compare.wire()
        compare_state = [self.compare.sides, self.compare.kind, self.compare.layer, self.compare.head]
        self.save_with([*state, self.part, self.continuation, self.outcome, *compare_state], self.write)
        gr.on(
            [self.force.click, self.prefix.submit],
            self.begin,
            [tab.current, self.prefix, *settings],
            self.continuation,
            api_name="force_prefix",
            **ON_DEVICE,
        )
        self.switches.switches(
            self.switch,
            state,
            [self.changes, self.list],
            api_name="switch_heads",
            trigger_mode="always_last",
            **QUICKLY,
        )
        self.restore.click(
            self.undo,
            state,
            [self.changes, self.list, self.switches, self.outcome],
            api_name="restore_model",
            **QUICKLY,
        )
        self.matter.click(
            self.ask_which_matters,
            state,
            [self.changes, self.switches, self.matter_note],
            api_name="which_head_matters",
            **ON_DEVICE,
        )
        look = [tab.current, self.kind, self.layer, self.head]
        places = [self.layer, self.map, self.row, self.column]
        self.kind.input(self.choose_kind, look, places, api_name="edit_kind", **QUICKLY)
        gr.on([self.layer.input, self.head.input], self.choose_map, look, self.map, api_name="edit_map", **QUICKLY)
        self.map.cell(self.pick, None, [self.row, self.column], api_name="edit_cell", **QUICKLY)
        self.add.click(
            self.add_weight,
            [*state, self.kind, self.layer, self.head, self.row, self.column, self.weight, self.others],
            [self.changes, self.list],
            api_name="edit_add",
            **QUICKLY,
        )
        self.run.click(self.operate, [*state, *settings], self.outcome, api_name="operate", **ON_DEVICE)

    def _places(self, current: CurrentTranslation, kind: str) -> dict:
        """The rows and columns that may be chosen."""
        columns = interpret.labels(current.attention, kind)[1]
        names = query_names(current.attention, kind)
        return {
            self.row: gr.update(choices=[("Every row", ALL), *place_choices(names)], value=ALL),
            self.column: gr.update(choices=place_choices(map(plain, columns)), value=0),
        }

    @alerts("note")
    def show(self, current: CurrentTranslation, changes: Changes, part: str, *texts: str):
        """The chosen part. For a sentence that is new here its maps and its words; heads that are off stay off."""
        now = identity(current)
        words = current.attention is not None
        sight = {
            one: gr.update(visible=name == part and (words or part == "sides")) for name, one in self.columns.items()
        }
        if part == "sides":
            sight |= self.compare.show(current, *texts)
        if now is None or not words:
            alert = messages.alert("This sentence holds no words, so it was copied and there is nothing to change.")
            note = "" if current.translation is None or part == "sides" else alert
            return {**sight, self.changes: Changes(), self.note: note}
        if changes.identity == now:  # the visitor comes back: everything is as it was left
            return {**sight, self.note: ""}
        return {**sight, **self._anew(current, changes, now)}

    def _anew(self, current: CurrentTranslation, changes: Changes, now: tuple) -> dict:
        """A sentence that is new here."""
        attention = current.attention
        layers = {kind: getattr(attention, kind).shape[0] for kind in interpret.KINDS}
        heads, last = attention.cross.shape[1], layers["cross"] - 1
        # Heads that are off stay off for the next sentence; weights were set for the words of this one.
        same_model = changes.identity is not None and changes.identity[0] == now[0]
        intervention = Intervention(off=changes.intervention.off) if same_model else Intervention()
        # No changes at all take the numbers of the sentence before away; None would leave them where they are.
        switches = gr.update(value={"layers": layers, "heads": heads}, off=switch_state(intervention), changes={})
        return {
            self.changes: Changes(now, intervention),
            self.note: "",
            self.prefix: " ".join(current.output.text.split()[:2]),
            self.continuation: "",
            self.switches: switches,
            self.matter_note: "",
            self.kind: "cross",
            self.layer: gr.update(choices=number_choices(layers["cross"]), value=last),
            self.head: gr.update(choices=[("All heads", ALL)] + number_choices(heads), value=ALL),
            self.map: map_of(current, "cross", last, ALL),
            **self._places(current, "cross"),
            self.list: listing(current, intervention),
            self.outcome: "",
        }

    @alerts()
    def begin(self, current, text, search, beam, alpha):
        """Go on from the visitor's beginning."""
        return force_text(self.services, current, text, search_beam(search, beam), alpha)

    @alerts("list")
    def switch(self, current, changes, event: gr.EventData):
        """Heads were switched off or on."""
        if changes.identity is None:
            return gr.skip()
        off = read_switches(list(event.off), self.services.translator(current.model))
        changes = replace(changes, intervention=replace(changes.intervention, off=off))
        return {self.changes: changes, self.list: listing(current, changes.intervention)}

    def undo(self, current, changes):
        """The model as it was."""
        if changes.identity is None:
            return gr.skip()
        # An update of an HTML component replaces all of its own properties, so each one names them all.
        switches = gr.update(off=switch_state(Intervention()), changes=changes.head_effects)
        return {
            self.changes: replace(changes, intervention=Intervention()),
            self.list: listing(current, Intervention()),
            self.switches: switches,
            self.outcome: "",
        }

    @alerts("matter_note")
    def ask_which_matters(self, current, changes):
        """The change of the log-probability without each head, on its switch."""
        if changes.identity is None:
            return gr.skip()
        translator = self.services.translator(current.model)
        logprob, losses = interpret.ablation(translator, current.translation, current.hypothesis, current.sentence)
        note = (
            f"The translation has log-probability {logprob:.3f}. Each number is what it changes by when that head "
            "alone is off: below 0, the head helped. Compare the mean attention beside it: a head may look hard at a "
            "word and still not matter."
        )
        effects = {kind: values.tolist() for kind, values in losses.items()}
        return {
            self.changes: replace(changes, head_effects=effects),
            self.switches: gr.update(changes=effects, off=switch_state(changes.intervention)),
            self.matter_note: messages.status(note),
        }

    def choose_kind(self, current, kind, layer, head):
        """Another kind of attention: its layers, rows and columns."""
        if current.attention is None:
            return gr.skip()
        layers = getattr(current.attention, kind).shape[0]
        layer = min(int(layer or 0), layers - 1)
        return {
            self.layer: gr.update(choices=number_choices(layers), value=layer),
            self.map: map_of(current, kind, layer, head),
            **self._places(current, kind),
        }

    def choose_map(self, current, kind, layer, head):
        """Another layer or head."""
        return gr.skip() if current.attention is None else map_of(current, kind, layer, head)

    def pick(self, event: gr.EventData):
        """A cell was clicked."""
        return {self.row: int(event.row), self.column: int(event.column)}

    def add_weight(self, current, changes, kind, layer, head, row, column, weight, renormalise):
        """One more weight of the visitor's."""
        if changes.identity is None:
            return gr.skip()
        try:
            edit = make_edit(kind, layer, head, row, column, weight, renormalise)
            intervention = add_edit(changes.intervention, edit)
            if sum(len(one.cells) for one in intervention.edits) > MAX_CELLS:
                raise ValueError(f"There are {MAX_CELLS} changed weights already; undo them to set another one.")
            intervention.check(self.services.translator(current.model).model, len(current.attention.source_tokens))
        except Exception as error:
            return {self.list: messages.failure(error) + listing(current, changes.intervention)}
        return {self.changes: replace(changes, intervention=intervention), self.list: listing(current, intervention)}

    @alerts()
    def operate(self, current, changes, search, beam, alpha):
        """Translate again with the changed model."""
        if changes.identity is None:
            return gr.skip()
        return translate_with(self.services, current, changes.intervention, search_beam(search, beam), alpha)

    def write(self, folder: Path, current: CurrentTranslation, changes, part, beginning, outcome, *sides) -> list[Path]:
        """What was changed and what became of it, as files."""
        if part == "sides":
            return self.compare.write(folder, *sides)
        html = beginning if part == "begin" else outcome
        if not html or current.translation is None:
            raise ValueError("Change something and translate again first; the outcome is saved then.")
        lines = intervention_lines(current.attention, changes.intervention) if part == "model" else []
        answer = answers.Answer("what-if", "What if", ["change"], [[line] for line in lines], {"changes": lines})
        return answers.save(answer, current.caption, html, folder)
