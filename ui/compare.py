"""The Compare view of the Translate tab: two inputs, two models or two settings side by side."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import interpret
from transformer.intervene import word_difference
from ui import decoding_figures, messages
from ui.attention import KIND_LABELS, draw_map, heat, layer_choices
from ui.dropdowns import hold
from ui.languages import pair_choices
from ui.services import Services
from ui.shown import STATE_SECONDS, Shown, on_view

MEAN = -1  # the choice "mean over heads"
SIDES = ("A", "B")
SETTINGS = ("text", "model", "pair", "beam", "alpha")
MAX_CHARACTERS = 1000


@dataclass
class Side:
    """One of the two translations."""

    translation: Any  # a Translation
    attention: Any  # its first sentence's Attention; None if that was copied without the model
    seconds: float
    target: str  # language


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def translate_side(
    services: Services, side: str, text: str, model: str | None, pair: str, beam: float, alpha: float
) -> Side:
    """Translate one of the two. Raises ValueError with the side's name in front for whatever is wrong with it."""
    try:
        if not text or not text.strip():
            raise ValueError("there is no text; enter a sentence.")
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"the text has {len(text):,} characters and {MAX_CHARACTERS:,} fit here; shorten it.")
        translator = services.translator(model or None)
        source, _, target = str(pair).partition("-")
        start = time.perf_counter()
        translation = translator.translate(text, source=source, target=target, beam=int(beam), alpha=float(alpha))
        seconds = time.perf_counter() - start
        attention = translator.attend(translation) if translation.sentences[0].ids else None
    except ValueError as error:
        raise ValueError(f"{side}: {error}") from error
    return Side(translation, attention, seconds, target)


def describe(left: Side, right: Side) -> str:
    """HTML of both translations: B's words against A's, and the figures of each."""
    same_language = left.target == right.target
    words = word_difference(left.translation.text, right.translation.text) if same_language else None
    figures = [
        (
            side,
            one.translation.text,
            one.translation.hypotheses[0].logprob,
            one.translation.score,
            len(one.translation.tokens),
            one.seconds,
        )
        for side, one in zip(SIDES, (left, right))
    ]
    return decoding_figures.side_by_side(figures, words)


def draw_side(side: Side | None, kind: str, layer: int, head: int) -> dict | None:
    """One side's map; a layer or head that its model does not have becomes its last one."""
    if side is None or side.attention is None:
        return None
    layers, heads = getattr(side.attention, kind).shape[:2]
    head = interpret.MEAN if head == MEAN else min(int(head), heads - 1)
    return draw_map(side.attention, kind, min(int(layer), layers - 1), head)


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.sides = gr.State(None, time_to_live=STATE_SECONDS)
    gr.Markdown(
        "## Side by side\nTwo sentences, two models or two settings: change what you like in A or in B.",
        elem_classes="section",
    )
    with gr.Row():
        for side in SIDES:
            name = side.lower()
            with gr.Column(min_width=300, elem_classes="card"):
                text = gr.Textbox(label=f"Text {side}", lines=2, max_length=2000, elem_id=f"compare-text-{name}")
                with gr.Row():
                    model = gr.Dropdown(
                        services.translators(),
                        value=services.translation_model,
                        label=f"Model {side}",
                        allow_custom_value=services.local,
                        min_width=170,
                        elem_id=f"compare-model-{name}",
                    )
                    pair = gr.Dropdown(
                        [("English → German", "en-de")], value="en-de", label=f"Languages {side}", min_width=170,
                        elem_id=f"compare-pair-{name}",
                    )  # fmt: skip
                with gr.Row():
                    beam = gr.Slider(
                        1, 10, value=4, step=1, label=f"Beam size {side}", min_width=140, elem_id=f"compare-beam-{name}"
                    )
                    alpha = gr.Slider(
                        0, 2, value=0.6, step=0.1, label=f"Length penalty {side}", min_width=140,
                        elem_id=f"compare-alpha-{name}",
                    )  # fmt: skip
            setattr(view, side, SimpleNamespace(text=text, model=model, pair=pair, beam=beam, alpha=alpha))
    view.run = gr.Button("Compare", variant="primary", elem_id="compare-button")
    view.result = gr.HTML(elem_id="compare-result")
    with gr.Column(visible=False) as view.maps:
        with gr.Row(elem_classes="attention-controls"):
            view.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", min_width=280, elem_id="compare-kind")
            view.layer = gr.Dropdown([], label="Layer", min_width=90, elem_id="compare-layer")
            view.head = gr.Dropdown(
                [("Mean over heads", MEAN)], value=MEAN, label="Head", min_width=140, elem_id="compare-head"
            )
        with gr.Row():
            for side in SIDES:
                with gr.Column(min_width=300):
                    gr.Markdown(f"**{side}**")
                    setattr(view, f"map_{side}", heat(f"compare-map-{side.lower()}"))
    return view


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.compare."""
    view = tab.compare
    inputs = [getattr(getattr(view, side), name) for side in SIDES for name in SETTINGS]
    maps = [view.map_A, view.map_B]

    def refresh(shown: Shown, *texts):
        """An empty side starts with what is shown; what the visitor entered stays."""
        choices = gr.update(choices=services.translators())
        if shown.translation is None:
            return [gr.skip()] * 2 + [choices] * 2 + [gr.skip()] * 2
        sentence = shown.translation.sentences[shown.sentence].source_text
        model = shown.model or services.translation_model
        try:
            pairs = pair_choices(services, model)
            pair = shown.pair if shown.pair in [key for _, key in pairs] else pairs[0][1]
        except Exception as error:  # the sentence that is shown has been translated by it, so this is rare
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        if any(text and text.strip() for text in texts):
            return [gr.skip()] * 2 + [choices] * 2 + [gr.skip()] * 2
        chosen = gr.update(choices=services.translators(), value=model)
        return [sentence, sentence, chosen, chosen] + [gr.update(choices=pairs, value=pair)] * 2

    def offer_pairs(model, shown):
        """The language pairs of another model; those of the translation above, if the model has them."""
        # Not the pair that stands there: a choice is told twice, and by then the pair is none of the choices any more.
        try:
            choices = pair_choices(services, model)
        except Exception as error:
            return gr.update(interactive=True), messages.alert(messages.sentence(error))
        kept = shown.pair if shown.pair in [key for _, key in choices] else choices[0][1]
        return gr.update(choices=choices, value=kept, interactive=True), ""

    def run(kind, layer, head, *values):
        values = [dict(zip(SETTINGS, values[: len(SETTINGS)])), dict(zip(SETTINGS, values[len(SETTINGS) :]))]
        try:
            left, right = (translate_side(services, side, **value) for side, value in zip(SIDES, values))
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error)), *[gr.skip()] * 5
        shown = [one.attention for one in (left, right) if one.attention is not None]
        if not shown:
            return (left, right), describe(left, right), gr.update(visible=False), *[gr.skip()] * 4
        layers, layer = layer_choices(kind, layer, *shown)
        heads = max(one.cross.shape[1] for one in shown)
        head = MEAN if head is None else min(int(head), heads - 1)
        return (
            (left, right),
            describe(left, right),
            gr.update(visible=True),
            gr.update(choices=layers, value=layer),
            gr.update(choices=[("Mean over heads", MEAN)] + [(str(n + 1), n) for n in range(heads)], value=head),
            *[draw_side(one, kind, layer, head) for one in (left, right)],
        )

    def choose(sides, kind, layer, head):
        if sides is None:
            return gr.skip(), gr.skip()
        return tuple(draw_side(one, kind, layer, head) for one in sides)

    def choose_kind(sides, kind, layer, head):
        shown = [one.attention for one in sides or () if one.attention is not None]
        if not shown:
            return [gr.skip()] * 3
        layers, layer = layer_choices(kind, layer, *shown)
        return gr.update(choices=layers, value=layer), *choose(sides, kind, layer, head)

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    a, b = view.A, view.B
    on_view(
        tab,
        "compare",
        refresh,
        [tab.shown, a.text, b.text],
        [a.text, b.text, a.model, b.model, a.pair, b.pair],
        "compare",
        concurrency_id="device",
    )
    for side in SIDES:
        own = getattr(view, side)
        hold(own.model.input, own.pair, name=f"hold_pairs_{side.lower()}")
        own.model.input(
            offer_pairs, [own.model, tab.shown], [own.pair, view.result], api_name=f"compare_pairs_{side.lower()}",
            concurrency_id="device", show_progress="hidden", api_visibility="private",
        )  # fmt: skip
    look = [view.kind, view.layer, view.head]
    gr.on(
        [view.run.click, a.text.submit, b.text.submit],
        run,
        [*look, *inputs],
        [view.sides, view.result, view.maps, view.layer, view.head, *maps],
        api_name="compare",
        concurrency_id="device",
        api_visibility="private",
    )
    view.kind.input(choose_kind, [view.sides, *look], [view.layer, *maps], api_name="compare_kind", **quiet)
    gr.on(
        [view.layer.input, view.head.input],
        choose,
        [view.sides, *look],
        maps,
        api_name="compare_map",
        **quiet,
    )
