"""A guided tour of the Translate tab in twelve short stops, each about the sentence that is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import gradio as gr
import numpy as np

from transformer.insight import interpret
from ui import messages, theme
from ui.services import Services
from ui.translate.attention import layer_choices
from ui.translate.shown import QUIETLY, QUIETLY_ON_DEVICE, Refresh, Shown, Tab, View
from ui.translate.words import plain, query_names

CLOSED = -1


@dataclass(frozen=True)
class Stop:
    """One stop: what it says (text is HTML, tokens escaped) and what the page shows there.

    In `STOPS` the text has gaps for the facts of `_facts`, and place is a key of `_places`; `stops` fills both in.
    """

    title: str
    text: str
    view: str = "attention"
    kind: str = "cross"
    place: str = "first"
    look: str = "map"
    layer: int = 0
    head: int | str = "mean"
    query: int = 0


STOPS = (
    Stop(
        "Words become pieces",
        "The model reads {source_count} pieces: {pieces}. A piece that goes on with a word begins with a hyphen here; "
        "rare words fall into several pieces. Pointing at a word in the boxes above lights up its partners.",
        place="last",
    ),
    Stop(
        "The source looks at itself",
        "In the encoder every word gathers what it needs from the others. In the first layer the query {query} attends "
        "to {key} with {weight:.2f}, the strongest tie between two different words.",
        kind="encoder",
    ),
    Stop(
        "Heads divide the work",
        "In the encoder {layers} layers with {heads} heads each look at the same words in different ways. The sharpest "
        "one here is head {sharp[1]} of layer {sharp[0]}: it {role}. The table “What each head does” lists all.",
        kind="encoder",
        place="sharp",
    ),
    Stop(
        "The target looks at the source",
        "Each row is a word being written, each column a word being read. In the last layer the query {target} looks "
        "at {source} with {aligned:.2f}: this is how words find their partners, and what lights up in the boxes above.",
        place="last",
    ),
    Stop(
        "Layers differ",
        "How widely a row spreads is its entropy: 0 nats is a single word, {spread:.2f} all alike. Here it is "
        "{first_entropy:.2f} on average in the first layer and {last_entropy:.2f} in the last; the small maps show it "
        "from top to bottom.",
    ),
    Stop(
        "Lines, a colour for each head",
        "The same weights as lines, as in Figures 3 to 5 of the paper. Click a word to see its lines alone ({target}), "
        "and a number above to switch a head off.",
        place="last",
        look="lines",
    ),
    Stop(
        "No looking ahead",
        "The decoder writes from left to right, so its map is empty above the diagonal: the mask sets those scores to "
        "−∞ before the softmax. The first row can look at the start sign <code>{start}</code> only.",
        kind="decoder",
        place="last",
    ),
    Stop(
        "One head, step by step",
        "Head {one[1]} of layer {one[0]}: the query {asked} is multiplied with every key, the softmax gives {answered} "
        "the weight {share:.2f}, and the weighted values add up. Switch off the division by √d<sub>k</sub> and see the "
        "softmax saturate.",
        view="one_head",
        place="one",
    ),
    Stop(
        "Heads that rest",
        "Of all heads, head {resting[1]} of layer {resting[0]} leaves the largest share on start and end of the "
        "sentence, {rests:.0%}: places to look at when there is nothing to say. “Hide start and end” leaves them out "
        "and normalises the rows again.",
        place="resting",
    ),
    Stop(
        "Does the model need it?",
        "The translation was written in {steps} steps, with a probability of {probability:.0%} per token on average. "
        "A dark cell is not yet a reason: in this view heads can be switched off, beginnings forced and weights "
        "overwritten, and the model translates again.",
        view="what_if",
        place="last",
    ),
    Stop(
        "When does the answer form?",
        "Below each of the {steps} words that were chosen stands what every decoder layer would have said (logit "
        "lens); the last row ends in {last_word}. The other questions ask what the encoder has understood by each "
        "layer, and how much of a word comes from the source.",
        view="layers",
        place="last",
    ),
    Stop(
        "Attention is learnt",
        "Nothing of this was built in. Read a sentence with a small model as it was at several moments of its "
        "training, and move the slider: grey becomes a diagonal, the entropy falls, and the words come.",
        view="learning",
        place="last",
    ),
)


def _word(token: str) -> str:
    return f"<b>{escape(plain(token))}</b>"


def _strongest(
    attention: Any, kind: str, layer: int, head: int | str, apart: bool = False
) -> tuple[str, str, float, int]:
    """(query, key, weight, row) of the strongest pair of words in a map, start and end left out."""
    try:
        found = interpret.attention_map(attention, kind, layer, head, without_ends=True)
        whole = interpret.attention_map(attention, kind, layer, head)
    except ValueError:  # nothing but start and end
        found = whole = interpret.attention_map(attention, kind, layer, head)
    row, column = interpret.strongest(found, apart)
    place = found.row_places[row], found.column_places[column]
    asks = f"<b>{escape(query_names(attention, kind)[place[0]])}</b>"
    return asks, _word(found.columns[column]), float(whole.weights[place]), place[0]


def _best(figure: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(figure.argmax()), figure.shape)
    return int(layer), int(head)


def _places(encoder: interpret.HeadStatistics, cross: interpret.HeadStatistics) -> dict[str, tuple[int, int | str]]:
    """(layer, head) of the maps that the stops speak of, from 0; head is "mean" where all heads are shown together."""
    return {
        "first": (0, "mean"),
        "last": (len(cross.entropy) - 1, "mean"),
        "sharp": _best(encoder.confidence - encoder.ends),
        "resting": _best(cross.ends),
        "one": _best(cross.confidence - cross.ends),
    }


def _facts(
    shown: Shown, encoder: interpret.HeadStatistics, cross: interpret.HeadStatistics, places: dict
) -> dict[str, Any]:
    """What the texts say of this sentence, by the names of their gaps; row: the query that "One head" opens with."""
    attention = shown.attention
    hypothesis = shown.translation.sentences[shown.sentence].hypotheses[shown.hypothesis]
    layers, heads = encoder.entropy.shape
    steps = len(attention.target_tokens)
    role = interpret.roles(encoder, "encoder")[places["sharp"]] or "spreads its attention in a pattern of its own"
    query, key, weight, _ = _strongest(attention, "encoder", 0, "mean", apart=True)
    target, source, aligned, _ = _strongest(attention, "cross", *places["last"])
    asked, answered, share, row = _strongest(attention, "cross", *places["one"])
    return {
        "pieces": " ".join(f"<code>{escape(plain(token))}</code>" for token in attention.source_tokens[:24]),
        "source_count": len(attention.source_tokens),
        "layers": layers,
        "heads": heads,
        "role": escape(role),
        "query": query,
        "key": key,
        "weight": weight,
        "target": target,
        "source": source,
        "aligned": aligned,
        "asked": asked,
        "answered": answered,
        "share": share,
        "row": row,
        "rests": float(cross.ends[places["resting"]]),
        "first_entropy": float(cross.entropy[0].mean()),
        "last_entropy": float(cross.entropy[-1].mean()),
        "spread": math.log(len(attention.source_tokens)),
        "steps": steps,
        "probability": math.exp(hypothesis.logprob / steps),
        "start": escape(plain(attention.decoder_tokens[0])),
        "last_word": _word(attention.target_tokens[-1]),
        **{name: [number + 1 for number in places[name]] for name in ("sharp", "resting", "one")},
    }


def stops(shown: Shown) -> list[Stop]:
    """The twelve stops for the sentence that is shown. Raises ValueError if no attention was paid to it."""
    attention = shown.attention
    if attention is None:
        raise ValueError("Translate a sentence with words first; the tour is about your own sentence.")
    encoder = interpret.statistics(attention.encoder, attention.source_tokens)
    cross = interpret.statistics(attention.cross, attention.source_tokens)
    places = _places(encoder, cross)
    facts = _facts(shown, encoder, cross, places)
    found = []
    for stop in STOPS:
        layer, head = places[stop.place]
        query = facts["row"] if stop.view == "one_head" else 0
        found.append(replace(stop, text=stop.text.format_map(facts), layer=layer, head=head, query=query))
    return found


def card(stop: Stop, number: int, total: int) -> str:
    """HTML of one stop."""
    return (
        f'<div class="tour-card" role="region" aria-label="Tour" data-stop="{number + 1}">'
        f'<div class="tour-title"><span class="tour-number">{number + 1} / {total}</span> {escape(stop.title)}</div>'
        f"<p>{stop.text}</p></div>"
    )


class Tour(View):
    """The tour's line above the views: its button, and the card of the stop that is shown."""

    name = "tour"

    def __init__(self, tab: Tab, services: Services) -> None:
        super().__init__(tab, services)
        self.at = gr.State(CLOSED)
        self.start = gr.Button("Take the tour: twelve stops", size="sm", scale=0, min_width=190, elem_id="tour-start")

    def place_card(self) -> None:
        """The card, in a place of its own."""
        with gr.Column(visible=False, elem_id="tour", elem_classes="card") as self.body:
            script = theme.script("translate/tour.js")
            self.card = gr.HTML("", html_template="${value}", js_on_load=script, elem_id="tour-card")
            with gr.Row(elem_classes="tour-buttons"):
                self.back = gr.Button("← Back", size="sm", min_width=90, elem_id="tour-back")
                self.next = gr.Button("Next →", size="sm", min_width=90, variant="primary", elem_id="tour-next")
                self.end = gr.Button("End the tour", size="sm", min_width=90, elem_id="tour-end")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, seen = self.tab, self.tab.attention
        outputs = [self.at, self.body, self.start, self.card, tab.tabs, tab.view]
        outputs += [seen.kind, seen.layer, seen.head, seen.look, seen.ends, tab.query, self.back, self.next]
        inputs = [tab.shown, self.at]
        self.steps = [
            self.start.click(self.begin, tab.shown, outputs, api_name="tour_start", **QUIETLY),
            self.next.click(self.forward, inputs, outputs, api_name="tour_next", **QUIETLY),
            self.back.click(self.backward, inputs, outputs, api_name="tour_back", **QUIETLY),
            self.card.step(self.key, inputs, outputs, api_name="tour_key", **QUIETLY),
        ]
        for leave, name in ((self.end.click, "end"), (self.card.leave, "leave")):
            leave(self.leave, None, [self.at, self.body, self.start], api_name=f"tour_{name}", **QUIETLY)
        tab.refreshers[self.name] = self.refresh, inputs, [self.card]

    def draw_with(self, draw: Refresh) -> None:
        """After every step, draw the view that the stop has opened."""
        for number, taken in enumerate(self.steps):
            api_name = f"tour_draw_{number}"
            taken.then(draw, draw.inputs, draw.outputs, api_name=api_name, **QUIETLY_ON_DEVICE)

    def go(self, shown: Shown, at: int) -> dict:
        """Show one stop: its text, and the view and the map that it speaks of."""
        try:
            found = stops(shown)
        except ValueError as error:
            return {**self.leave(), self.card: messages.alert(messages.sentence(error))}
        at = min(max(at, 0), len(found) - 1)
        stop, seen = found[at], self.tab.attention
        layers, layer = layer_choices(stop.kind, stop.layer, shown.attention)
        return {
            self.at: at,
            self.body: gr.update(visible=True),
            self.start: gr.update(visible=False),
            self.card: card(stop, at, len(found)),
            self.tab.tabs: gr.update(selected=stop.view),
            self.tab.view: stop.view,
            seen.kind: stop.kind,
            seen.layer: gr.update(choices=layers, value=layer),
            seen.head: stop.head,
            seen.look: stop.look,
            seen.ends: False,
            self.tab.query: stop.query,
            self.back: gr.update(interactive=at > 0),
            self.next: gr.update(interactive=at < len(found) - 1),
        }

    def begin(self, shown):
        """The first stop."""
        return self.go(shown, 0)

    def forward(self, shown, at):
        """The next stop."""
        return self.go(shown, at + 1)

    def backward(self, shown, at):
        """The stop before."""
        return self.go(shown, at - 1)

    def key(self, shown, at, event: gr.EventData):
        """An arrow key: one stop on or back."""
        by = int(event.by)
        return gr.skip() if at == CLOSED or by not in (-1, 1) else self.go(shown, at + by)

    def leave(self):
        """The tour ends."""
        return {self.at: CLOSED, self.body: gr.update(visible=False), self.start: gr.update(visible=True)}

    def refresh(self, shown, at):
        """Another sentence while the tour is on: the same stop, in its words."""
        if at == CLOSED or shown.attention is None:
            return gr.skip()
        found = stops(shown)
        return {self.card: card(found[at], at, len(found))}
