"""A guided tour of the Translate tab in ten short stops, each about the sentence that is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np

from transformer import interpret
from ui import messages, theme
from ui.attention import layer_choices
from ui.services import Services
from ui.shown import Refresh, Shown

CLOSED = -1


@dataclass(frozen=True)
class Stop:
    """One stop: what it says (text is HTML, tokens escaped) and what the page shows there."""

    title: str
    text: str
    view: str = "attention"
    kind: str = "cross"
    layer: int = 0
    head: int | str = "mean"
    look: str = "map"
    without_ends: bool = False
    query: int = 0


def _word(token: str) -> str:
    return f"<b>{escape(token.replace('▁', '')) or '▁'}</b>"


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
    return _word(found.rows[row]), _word(found.columns[column]), float(whole.weights[place]), place[0]


def _best(figure: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(figure.argmax()), figure.shape)
    return int(layer), int(head)


def stops(shown: Shown) -> list[Stop]:
    """The ten stops for the sentence that is shown. Raises ValueError if no attention was paid to it."""
    attention = shown.attention
    if attention is None:
        raise ValueError("Translate a sentence with words first; the tour is about your own sentence.")
    chosen = shown.translation.sentences[shown.sentence]
    hypothesis = chosen.hypotheses[shown.hypothesis]
    (layers, heads), last = attention.encoder.shape[:2], attention.cross.shape[0] - 1
    pieces = " ".join(f"<code>{escape(token)}</code>" for token in attention.source_tokens[:24])
    encoder = interpret.statistics(attention.encoder, attention.source_tokens)
    cross = interpret.statistics(attention.cross, attention.source_tokens)
    sharp = _best(encoder.confidence - encoder.ends)
    role = interpret.roles(encoder)[sharp] or "spreads its attention in a pattern of its own"
    resting = _best(cross.ends)
    one = _best(cross.confidence - cross.ends)
    query, key, weight, _ = _strongest(attention, "encoder", 0, "mean", apart=True)
    target, source, aligned, _ = _strongest(attention, "cross", last, "mean")
    asked, answered, share, row = _strongest(attention, "cross", *one)
    first_entropy, last_entropy = float(cross.entropy[0].mean()), float(cross.entropy[last].mean())
    tokens = len(attention.target_tokens)
    probability = math.exp(hypothesis.logprob / tokens)
    spread = math.log(len(attention.source_tokens))
    start = escape(attention.decoder_tokens[0])
    return [
        Stop(
            "Words become pieces",
            f"The model reads {len(attention.source_tokens)} pieces: {pieces}. The mark ▁ opens a word, &lt;/s&gt; "
            "ends the sentence. Rare words fall into several pieces; the hover above puts them together again.",
            layer=last,
        ),
        Stop(
            "The source looks at itself",
            "In the encoder every word gathers what it needs from the others. In the first layer "
            f"{query} attends to {key} with {weight:.2f}, the strongest tie between two different words.",
            kind="encoder",
        ),
        Stop(
            "Heads divide the work",
            f"In the encoder {layers} layers with {heads} heads each look at the same words in different ways. The "
            f"sharpest one here is head {sharp[1] + 1} of layer {sharp[0] + 1}: it {escape(role)}. The table “What "
            "each head does” lists all.",
            kind="encoder",
            layer=sharp[0],
            head=sharp[1],
        ),
        Stop(
            "The target looks at the source",
            "Each row is a word being written, each column a word being read. In the last layer "
            f"{target} looks at {source} with {aligned:.2f}: this is how words find their partners, and what the hover "
            "above shows.",
            layer=last,
        ),
        Stop(
            "Layers differ",
            f"How widely a row spreads is its entropy: 0 nats is a single word, {spread:.2f} all alike. Here it is "
            f"{first_entropy:.2f} on average in the first layer and {last_entropy:.2f} in the last; the small maps "
            "show it from top to bottom.",
            layer=0,
        ),
        Stop(
            "Lines, a colour for each head",
            "The same weights as lines, as in Figures 3 to 5 of the paper. "
            f"Click {target} to see its lines alone, and a number above to switch a head off.",
            layer=last,
            look="lines",
        ),
        Stop(
            "No looking ahead",
            "The decoder writes from left to right, so its map is empty above the diagonal: the mask sets those "
            f"scores to −∞ before the softmax. The first row can look at the start sign <code>{start}</code> only.",
            kind="decoder",
            layer=last,
        ),
        Stop(
            "One head, step by step",
            f"Head {one[1] + 1} of layer {one[0] + 1}: the query of {asked} is multiplied with every key, the softmax "
            f"gives {answered} the weight {share:.2f}, and the weighted values add up. Switch off the division by "
            "√d<sub>k</sub> and see the softmax saturate.",
            view="one_head",
            layer=one[0],
            head=one[1],
            query=row,
        ),
        Stop(
            "Heads that rest",
            f"Of all heads, head {resting[1] + 1} of layer {resting[0] + 1} leaves the largest share on start and "
            f"end of the sentence, {float(cross.ends[resting]):.0%}: places to look at when there is nothing to say. "
            "“Hide start and end” leaves them out and normalises the rows again.",
            layer=resting[0],
            head=resting[1],
        ),
        Stop(
            "Does the model need it?",
            f"The translation was written in {tokens} steps, with a probability of {probability:.0%} per token on "
            "average. A dark cell is not yet a reason: in this view heads can be switched off, beginnings forced and "
            "weights overwritten, and the model translates again.",
            view="what_if",
            layer=last,
        ),
    ]


def card(stop: Stop, number: int, total: int) -> str:
    """HTML of one stop."""
    return (
        f'<div class="tour-card" role="region" aria-label="Tour" data-stop="{number + 1}">'
        f'<div class="tour-title"><span class="tour-number">{number + 1} / {total}</span> {escape(stop.title)}</div>'
        f"<p>{stop.text}</p></div>"
    )


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the tour's line above the views and return its components by name."""
    view = SimpleNamespace()
    view.at = gr.State(CLOSED)
    with gr.Row():
        label = "Take the tour: ten stops through your sentence"
        view.start = gr.Button(label, size="sm", scale=0, min_width=340, elem_id="tour-start")
    with gr.Column(visible=False, elem_id="tour", elem_classes="card") as view.body:
        view.card = gr.HTML(
            "",
            html_template="${value}",
            js_on_load=theme.script("tour.js"),
            elem_id="tour-card",
        )
        with gr.Row(elem_classes="tour-buttons"):
            view.back = gr.Button("← Back", size="sm", min_width=90, elem_id="tour-back")
            view.next = gr.Button("Next →", size="sm", min_width=90, variant="primary", elem_id="tour-next")
            view.end = gr.Button("End the tour", size="sm", min_width=90, elem_id="tour-end")
    return view


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the tour built by `layout`, which is tab.tour."""
    view, attention = tab.tour, tab.attention

    def go(shown, at):
        """Show one stop: its text, and the view and the map that it speaks of."""
        try:
            found = stops(shown)
        except ValueError as error:
            alert = messages.alert(messages.sentence(error))
            return CLOSED, gr.update(visible=False), gr.update(visible=True), alert, *[gr.skip()] * 10
        at = min(max(at, 0), len(found) - 1)
        stop = found[at]
        layers, layer = layer_choices(stop.kind, stop.layer, shown.attention)
        return (
            at,
            gr.update(visible=True),
            gr.update(visible=False),
            card(stop, at, len(found)),
            gr.update(selected=stop.view),
            stop.view,
            stop.kind,
            gr.update(choices=layers, value=layer),
            stop.head,
            stop.look,
            stop.without_ends,
            stop.query,
            gr.update(interactive=at > 0),
            gr.update(interactive=at < len(found) - 1),
        )

    def step(by):
        return lambda shown, at: go(shown, at + by)

    def key(shown, at, event: gr.EventData):
        if at == CLOSED or int(event.by) not in (-1, 1):
            return [gr.skip()] * len(outputs)
        return go(shown, at + int(event.by))

    def end():
        return CLOSED, gr.update(visible=False), gr.update(visible=True)

    def refresh(shown, at):
        """Another sentence while the tour is on: the same stop, in its words."""
        if at == CLOSED or shown.attention is None:
            return gr.skip()
        found = stops(shown)
        return card(found[at], at, len(found))

    outputs = [view.at, view.body, view.start, view.card, tab.tabs, tab.view]
    outputs += [attention.kind, attention.layer, attention.head, attention.look, attention.ends, tab.query]
    outputs += [view.back, view.next]
    inputs = [tab.shown, view.at]
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    view.steps = [
        view.start.click(lambda shown, at: go(shown, 0), inputs, outputs, api_name="tour_start", **quiet),
        view.next.click(step(1), inputs, outputs, api_name="tour_next", **quiet),
        view.back.click(step(-1), inputs, outputs, api_name="tour_back", **quiet),
        view.card.step(key, inputs, outputs, api_name="tour_key", **quiet),
    ]
    for leave, name in ((view.end.click, "end"), (view.card.leave, "leave")):
        leave(end, None, [view.at, view.body, view.start], api_name=f"tour_{name}", **quiet)
    tab.refreshers["tour"] = refresh, inputs, [view.card]


def follow(tab: SimpleNamespace, draw: Refresh) -> None:
    """After every step, draw the view that the stop has opened."""
    for number, taken in enumerate(tab.tour.steps):
        taken.then(
            draw,
            draw.inputs,
            draw.outputs,
            api_name=f"tour_draw_{number}",
            show_progress="hidden",
            api_visibility="private",
            concurrency_id="device",
        )
