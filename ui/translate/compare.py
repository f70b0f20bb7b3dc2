"""A part of What if: two texts, two models or two settings side by side."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import interpret
from transformer.insight.intervene import word_difference
from ui import messages, theme
from ui.gradio_private import hold
from ui.kit import QUICKLY, alerts
from ui.kit.dropdown import ChangingDropdown
from ui.services import Services
from ui.translate import answers, decoding_figures
from ui.translate.answers import Answer
from ui.translate.attention import KIND_LABELS, draw_map, layer_choices
from ui.translate.languages import model_for, pair_choices
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, Tab
from ui.translate.words import number_choices

MEAN = -1  # the choice "mean over heads"
SIDES = ("A", "B")
SETTINGS = ("text", "model", "pair", "beam", "alpha")
MAX_CHARACTERS = 1000
IT_TEXTS = [f"The animal didn't cross the street because it was too {word}." for word in ("tired", "wide")]
IT_NOTE = (
    "French shows what “it” stands for: l'animal is masculine (il … fatigué, large), la rue feminine (elle … fatiguée, "
    "large or grande). Press Compare and see whether the model knows, and where its heads look at “it”."
)


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


def map_of(attention: Any, kind: str, layer: int, head: int) -> tuple[str, int, int | str]:
    """The chosen map as `attention_map` takes it; a layer or head that the model does not have becomes its last one."""
    layers, heads = getattr(attention, kind).shape[:2]
    return kind, min(int(layer), layers - 1), interpret.MEAN if head == MEAN else min(int(head), heads - 1)


def draw_side(side: Side | None, kind: str, layer: int, head: int) -> dict | None:
    """One side's map."""
    if side is None or side.attention is None:
        return None
    return draw_map(side.attention, *map_of(side.attention, kind, layer, head))


# -- the view ---------------------------------------------------------------------------------------------------------


class SideInputs:
    """The fields of one of the two sides."""

    def __init__(self, side: str, services: Services) -> None:
        def field(kind: Callable[..., Any], key: str, *values: Any, **more: Any) -> Any:
            label, own = f"{theme.COMPONENTS[key]['label']} {side}", f"{key}-{side.lower()}"
            return theme.component(kind, key, *values, label=label, elem_id=own, **more)

        self.text = field(gr.Textbox, "compare-text")
        with gr.Row():
            models, first = services.translators(), services.translation_model
            self.model = field(gr.Dropdown, "compare-model", models, value=first, allow_custom_value=services.local)
            self.pair = field(ChangingDropdown, "compare-pair")
        with gr.Row():
            self.beam = field(gr.Slider, "compare-beam")
            self.alpha = field(gr.Slider, "compare-alpha")

    @property
    def settings(self) -> list:
        """Its components in the order of `SETTINGS`."""
        return [getattr(self, name) for name in SETTINGS]


class Compare:
    """Two translations side by side, and their maps."""

    def __init__(self, tab: Tab, services: Services) -> None:
        """Makes the components."""
        self.tab, self.services = tab, services
        self.sides = gr.State(None, time_to_live=STATE_SECONDS)
        gr.Markdown("Two texts, two models or two settings: change what you like in A or in B.", elem_classes="section")
        self.inputs, self.maps = {}, {}
        with gr.Row():
            for side in SIDES:
                with gr.Column(min_width=300, elem_classes="card"):
                    self.inputs[side] = SideInputs(side, self.services)
        with gr.Row():
            self.run = theme.component(gr.Button, "compare-button")
            self.it = theme.component(gr.Button, "compare-it")
        self.result = gr.HTML(elem_id="compare-result")
        with gr.Column(visible=False) as self.body:
            with gr.Row(elem_classes="attention-controls"):
                self.kind = theme.component(gr.Radio, "compare-kind", KIND_LABELS)
                self.layer = theme.component(gr.Dropdown, "compare-layer")
                self.head = theme.component(gr.Dropdown, "compare-head", [("Mean over heads", MEAN)], value=MEAN)
            with gr.Row():
                for side in SIDES:
                    with gr.Column(min_width=300):
                        gr.Markdown(f"**{side}**")
                        self.maps[side] = theme.heat_map(f"compare-map-{side.lower()}")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        a, b = (self.inputs[side] for side in SIDES)
        for side, own in self.inputs.items():
            hold(own.model.input, own.pair, name=f"hold_pairs_{side.lower()}")
            own.model.input(
                partial(self.offer_pairs, side),
                [own.model, self.tab.current],
                [own.pair, own.alpha, self.result],
                api_name=f"compare_pairs_{side.lower()}",
                **QUIETLY_ON_DEVICE,
            )
            own.pair.input(
                self.services.length_penalty,
                [own.model, own.pair],
                own.alpha,
                api_name=f"compare_penalty_{side.lower()}",
                **QUIETLY_ON_DEVICE,
            )
        self.it.click(
            self.take_it,
            None,
            [a.text, b.text, a.model, b.model, a.pair, b.pair, a.alpha, b.alpha, self.result],
            api_name="compare_it",
            **QUIETLY_ON_DEVICE,
        )
        look, maps = [self.kind, self.layer, self.head], list(self.maps.values())
        gr.on(
            [self.run.click, a.text.submit, b.text.submit],
            self.compare,
            [*look, *a.settings, *b.settings],
            [self.sides, self.result, self.body, self.layer, self.head, *maps],
            api_name="compare",
            **ON_DEVICE,
        )
        sides = [self.sides, *look]
        self.kind.input(self.choose_kind, sides, [self.layer, *maps], api_name="compare_kind", **QUICKLY)
        gr.on([self.layer.input, self.head.input], self.choose, sides, maps, api_name="compare_map", **QUICKLY)

    @property
    def show_inputs(self) -> list:
        """What `show` reads besides the translation."""
        return [self.inputs[side].text for side in SIDES]

    @property
    def places(self) -> list:
        """What `show` may update."""
        sides = [self.inputs[side] for side in SIDES]
        return [getattr(one, name) for one in sides for name in ("text", "model", "pair", "alpha")]

    def show(self, current: CurrentTranslation, *texts):
        """An empty side starts with what is shown; what the visitor entered stays."""
        a, b = (self.inputs[side] for side in SIDES)
        choices = self.services.translators()
        if current.translation is None or any(text and text.strip() for text in texts):
            return {side.model: gr.update(choices=choices) for side in (a, b)}
        sentence = current.entry.source_text
        model = current.model or self.services.translation_model
        try:
            pairs = pair_choices(self.services, model)
            pair = current.pair if current.pair in [key for _, key in pairs] else pairs[0][1]
        except Exception as error:  # the sentence that is shown has been translated by it, so this is rare
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        updates: dict = {}
        for side in (a, b):
            updates[side.text] = sentence
            updates[side.model] = gr.update(choices=choices, value=model)
            updates[side.pair] = gr.update(choices=pairs, value=pair)
            updates[side.alpha] = current.alpha
        return updates

    @alerts("result")
    def take_it(self):
        """Two sentences in which one word decides what "it" stands for, into French, which has to say so."""
        model = model_for(self.services, "en-fr", None) or self.services.translation_model
        pairs = pair_choices(self.services, model)
        updates: dict = {self.result: messages.status(IT_NOTE)}
        for side, text in zip(SIDES, IT_TEXTS):
            updates[self.inputs[side].text] = text
            updates[self.inputs[side].model] = model
            updates[self.inputs[side].pair] = gr.update(choices=pairs, value="en-fr")
            updates[self.inputs[side].alpha] = self.services.length_penalty(model, "en-fr")
        return updates

    def offer_pairs(self, side: str, model: str, current: CurrentTranslation) -> dict:
        """The language pairs of another model; those of the translation above, if the model has them; and the length
        penalty that suits them.
        """
        # Not the pair that stands there: a choice arrives twice, and the second time that pair is no choice any more.
        place = self.inputs[side].pair
        try:
            choices = pair_choices(self.services, model)
            pair = current.pair if current.pair in [key for _, key in choices] else choices[0][1]
            alpha = self.services.length_penalty(model, pair)
        except Exception as error:
            return {place: gr.update(interactive=True), self.result: messages.failure(error)}
        return {
            place: gr.update(choices=choices, value=pair, interactive=True),
            self.inputs[side].alpha: alpha,
            self.result: "",
        }

    @alerts("result")
    def compare(self, kind, layer, head, *values):
        """Translate both sides and draw their maps."""
        settings = [dict(zip(SETTINGS, values[: len(SETTINGS)])), dict(zip(SETTINGS, values[len(SETTINGS) :]))]
        left, right = (translate_side(self.services, side, **one) for side, one in zip(SIDES, settings))
        updates = {self.sides: (left, right), self.result: describe(left, right)}
        attentions = [one.attention for one in (left, right) if one.attention is not None]
        if not attentions:
            return {**updates, self.body: gr.update(visible=False)}
        layers, layer = layer_choices(kind, layer, *attentions)
        heads = max(one.cross.shape[1] for one in attentions)
        head = MEAN if head is None else min(int(head), heads - 1)
        choices = [("Mean over heads", MEAN)] + number_choices(heads)
        return {
            **updates,
            self.body: gr.update(visible=True),
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=choices, value=head),
            **self.choose((left, right), kind, layer, head),
        }

    def choose(self, sides, kind, layer, head):
        """Another map of both."""
        if sides is None:
            return gr.skip()
        return {self.maps[side]: draw_side(one, kind, layer, head) for side, one in zip(SIDES, sides)}

    def choose_kind(self, sides, kind, layer, head):
        """Another kind of attention, with its layers."""
        attentions = [one.attention for one in sides or () if one.attention is not None]
        if not attentions:
            return gr.skip()
        layers, layer = layer_choices(kind, layer, *attentions)
        return {self.layer: gr.update(choices=layers, value=layer), **self.choose(sides, kind, layer, head)}

    def write(self, folder: Path, sides, kind, layer, head) -> list[Path]:
        """Both translations and their maps, as files."""
        if sides is None:
            raise ValueError("Press Compare first; both translations and their maps are saved then.")
        files = []
        for side, one in zip(SIDES, sides):
            head_line = ["translation", "log p", "score", "tokens"]
            best = one.translation.hypotheses[0]
            rows: list[list[Any]] = [
                [one.translation.text, best.logprob, one.translation.score, len(one.translation.tokens)]
            ]
            part = None
            if one.attention is not None:
                part = interpret.attention_map(one.attention, *map_of(one.attention, kind, layer, head))
            value = dict(zip(head_line, rows[0]))
            answer = Answer(f"compare-{side.lower()}", f"Side {side}, {kind} attention", head_line, rows, value, part)
            caption = f"{one.translation.source_text} → {one.translation.text}"
            files += answers.save(answer, caption, answers.table(answer), folder)
        return files
