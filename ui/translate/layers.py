"""The view "What it knows": by layer (logit lens, encoder lens), from where, which head, and since when."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from transformer.insight.contributions import Contributions, contributions
from transformer.insight.heads import TRAITS, typical_sentences
from transformer.insight.lenses import LogitLens, decoder_lens, logit_lens
from transformer.options import SearchOptions
from transformer.translator import Hypothesis
from ui import figures, messages, theme
from ui.figures import percent
from ui.kit import QUICKLY, alerts
from ui.translate import answers, learning
from ui.translate.answers import Answer, save, scroll_table
from ui.translate.attention import KIND_LABELS, layer_choices
from ui.translate.opening import EXAMPLES
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, View
from ui.translate.words import head_title, number_choices, plain

QUESTIONS = [
    ("When does the answer form?", "logit"),
    ("What has the encoder understood?", "encoder"),
    ("From the text or from what is written?", "contributions"),
    ("Where is a head most typical?", "find"),
    ("How was it learnt?", "learning"),
]

MAX_STEPS = 100  # steps of a lens's table at most


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def word(token: str) -> str:
    """A token as it is read: without the vocabulary's mark, escaped for HTML."""
    return escape(plain(token))


def lens_html(lens: LogitLens) -> str:
    """The logit lens: a row for each step, a column for each layer; the first column is what the decoder reads."""
    layers = range(len(lens.ranks))
    rows = [
        f'<th scope="row">{step + 1} · <span translate="no">{word(lens.tokens[step])}</span></th>'
        + "".join(_lens_cell(lens, layer, step) for layer in layers)
        for step in range(min(MAX_STEPS, len(lens.tokens)))
    ]
    head = ["chosen", *("embedding" if layer == 0 else f"layer {layer}" for layer in layers)]
    more = len(lens.tokens) - MAX_STEPS
    note = f'<p class="hint">The first {MAX_STEPS} of {len(lens.tokens)} steps are shown.</p>' if more > 0 else ""
    firsts = [int(first) for first in lens.settling_row if first < len(lens.ranks)]
    mean = f" On average, the answer is settled from layer {np.mean(firsts):.1f} on." if firsts else ""
    return scroll_table(head, rows, "Logit lens by layer and step") + (
        f'<p class="hint">Each cell: the likeliest word of that layer, its probability, and the rank of the word that '
        f"was finally chosen; bold where the two agree.{mean}</p>{note}"
    )


def _lens_cell(lens: LogitLens, layer: int, step: int) -> str:
    best, share = lens.top_tokens[layer][step][0], float(lens.top_probabilities[layer, step, 0])
    rank, own = int(lens.ranks[layer, step]), float(lens.probabilities[layer, step])
    likeliest = zip(lens.top_tokens[layer][step], lens.top_probabilities[layer, step])
    title = ", ".join(f"{plain(token)} {float(p):.3f}" for token, p in likeliest)
    title += f"; chosen: rank {rank}, {own:.4f}; entropy {float(lens.entropies[layer, step]):.2f} nats"
    tag = "b" if rank == 1 else "span"
    cell = f'<{tag} translate="no">{word(best)}</{tag}><small>{share:.2f} · #{rank}</small>'
    return f'<td class="lens-cell" style="--share:{share:.3f}" title="{escape(title)}">{cell}</td>'


def encoder_html(hypotheses: Sequence[Hypothesis]) -> str:
    """The translations from each encoder layer, one below the other."""
    names = ["embeddings", *(f"layer {layer}" for layer in range(1, len(hypotheses)))]
    rows = [
        f'<th scope="row">{name}</th><td dir="auto">{escape(one.text)}</td><td>{one.score:.2f}</td>'
        for name, one in zip(names, hypotheses)
    ]
    return scroll_table(["read from", "translation", "score"], rows, "Translations from each encoder layer")


def shares_html(parts: Contributions) -> str:
    """One bar a token: how much of it comes from the source, the rest from the prefix."""
    rows = []
    for token, share in zip(parts.tokens, parts.source_share):
        share = float(share)
        bar = (
            f'<span class="share-bar" style="--share:{share:.4f}" role="img" '
            f'aria-label="{percent(share)} from the text"></span>'
        )
        head = f'<th scope="row" translate="no">{word(token)}</th>'
        rows.append(f"{head}<td>{bar}</td><td>{percent(share, 1)}</td><td>{percent(1 - share, 1)}</td>")
    return scroll_table(["chosen", "text | written", "text", "written"], rows, "Text against what is written, by piece")


def contributions_map(parts: Contributions) -> dict:
    """The token-to-token map: source tokens first, then the prefix; rows sum to 1."""
    both, columns = np.concatenate((parts.source, parts.prefix), 1), answers.contribution_columns(parts)
    return figures.heat_map(
        both, parts.tokens, columns, "Contributions (ALTI+)", "chosen", "text, then what is written", "draws on"
    )


def typical_sentences_html(texts: Sequence[str], trait: str, ranking: Sequence[tuple[int, float]], title: str) -> str:
    """The sentences in which a head is most typical."""
    rows = [f'<td dir="auto">{escape(texts[number])}</td><td>{percent(share, 1)}</td>' for number, share in ranking]
    return f"<p>{escape(title)} mostly <b>{TRAITS[trait]}</b>.</p>" + scroll_table(
        ["sentence", "share of its attention"], rows, "Sentences in which this head is most typical"
    )


# -- the view ---------------------------------------------------------------------------------------------------------


class LayersView(View):
    """What the model knows, in five questions."""

    name = "layers"
    title = "What it knows"
    fields = {"part": "question"}
    examples: Sequence[str] = EXAMPLES  # English sentences in which a head is looked for

    def build(self) -> None:
        """Makes the components."""
        self.readings = gr.State([], time_to_live=STATE_SECONDS)  # a sentence at every moment of a training
        self.question = theme.component(gr.Radio, "layers-question", QUESTIONS)
        self.about = gr.Markdown(theme.text("translate/layers.logit"), elem_classes="section", elem_id="layers-about")
        with gr.Row(visible=False) as self.training:
            entries = learning.choices(self.services.runs)
            first = entries[0][1] if entries else None
            self.series = theme.component(gr.Dropdown, "learning-series", entries, value=first)
            self.text = theme.component(gr.Textbox, "learning-text", learning.SENTENCE)
            self.read = theme.component(gr.Button, "learning-read")
        self.note = gr.HTML(elem_id="layers-note")
        with gr.Row(visible=False, elem_classes="attention-controls") as self.controls:
            self.place = theme.component(gr.Slider, "learning-place")
            self.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", scale=2, min_width=300)
            self.layer = theme.component(gr.Dropdown, "layers-layer")
            self.head = theme.component(gr.Dropdown, "layers-head")
        with gr.Column(visible=False) as self.map_card:
            self.map = theme.heat_map("lens-map")
        self.table = gr.HTML(elem_id="lens-table", elem_classes="card")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        inputs = [self.tab.current, self.question, self.kind, self.layer, self.head, self.readings, self.place]
        outputs = [self.about, self.training, self.note, self.controls, self.place, self.kind, self.layer, self.head]
        outputs += [self.table, self.map_card, self.map]
        self.draw_with(inputs, outputs, concurrency_id="translate")
        self.question.input(self.show, inputs, outputs, api_name="layers_question", **ON_DEVICE)
        for name in ("place", "kind", "layer", "head"):
            getattr(self, name).input(
                self.show,
                inputs,
                outputs,
                api_name=f"layers_{name}",
                trigger_mode="always_last",
                preprocess=False,  # a value and a new range may cross on their way, which Gradio calls an error
                **(QUICKLY if name == "place" else QUIETLY_ON_DEVICE),
            )
        gr.on(
            [self.read.click, self.text.submit],
            self.read_series,
            [self.series, self.text, *inputs],
            [self.readings, *outputs],
            api_name="learning",
            **ON_DEVICE,
        )
        self.series.focus(self.offer, None, self.series, api_name="learning_series", **QUICKLY)
        self.save_with(inputs, self.write)

    def offer(self):
        """The trainings that are there now."""
        return gr.update(choices=learning.choices(self.services.runs))

    @alerts("note")
    def read_series(self, key, text, current, question, kind, layer, head, *before):
        """The sentence at every moment of the chosen training."""
        readings = learning.moments(self.services.runs, key, text)
        last = len(readings)
        return {
            **self.show(current, question, kind, layer, head, readings, last),
            self.readings: readings,
            self.place: gr.update(maximum=max(2, last), value=last, info=f"1 to {last}, oldest first", visible=True),
        }

    def show(self, current, question, kind, layer, head, readings, place):
        """The answer to the chosen question."""
        learns = question == "learning"
        empty = {
            self.about: theme.text(f"translate/layers.{question}"),
            self.training: gr.update(visible=learns),
            self.note: "",
            self.controls: gr.update(visible=question == "find" or bool(learns and readings)),
            self.place: gr.update(visible=learns),
            self.kind: gr.update(visible=not learns),
            self.table: "",
            self.map_card: gr.update(visible=False),
        }
        if learns and not readings:
            return empty
        try:
            updates, _, html = self._answer(current, question, kind, layer, head, readings, place)
            return {**empty, **updates, self.table: html}
        except Exception as error:
            return {**empty, self.note: messages.failure(error)}

    def write(self, folder: Path, current: CurrentTranslation, question, *choice) -> list[Path]:
        """The answer that is shown, as files."""
        _, answer, html = self._answer(current, question, *choice)
        readings = choice[-2]
        learns = question == "learning"
        sentence = readings[0].translation.sentences[0].source_text if learns else current.caption
        return save(answer, sentence, html, folder)

    def _answer(
        self, current: CurrentTranslation, question: str, kind: str, layer: Any, head: Any, readings: list, place: Any
    ) -> tuple[dict, Answer, str]:
        """What a question changes on the page besides its table, the answer as it is saved, and the table's HTML."""
        if question == "learning":
            return self._learning(readings, int(place), layer, head)
        if current.attention is None:
            raise ValueError("Translate a sentence with words first.")
        translator = self.services.translator(current.model)
        where = (translator, current.translation, current.hypothesis, current.sentence)
        if question == "logit":
            lens = logit_lens(*where)
            return {}, answers.lens_answer(lens), lens_html(lens)
        if question == "encoder":
            source, _, target = str(current.pair or "").partition("-")
            read = decoder_lens(*where, source or None, target or None, SearchOptions(current.beam, current.alpha))
            return {}, answers.encoder_answer(read), encoder_html(read)
        if question == "contributions":
            parts = contributions(*where)
            return self._map_updates(contributions_map(parts)), answers.contributions_answer(parts), shares_html(parts)
        layers, layer = layer_choices(kind, layer, current.attention)
        heads = current.attention.cross.shape[1]
        head = head if isinstance(head, int) and head < heads else 0
        answer, html = self._find(where, current, kind, layer, head)
        return self._choices(layers, layer, heads, head), answer, html

    def _map_updates(self, value: dict | None) -> dict:
        return {self.map_card: gr.update(visible=value is not None), self.map: value}

    def _choices(self, layers: list, layer: int, heads: int, head: int) -> dict:
        return {
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=number_choices(heads), value=head),
        }

    def _learning(self, readings: list, place: int, layer: Any, head: Any) -> tuple[dict, Answer, str]:
        """One moment's map, and of every moment the translation and the same head's entropy."""
        if not readings:
            raise ValueError("Read a sentence first.")
        layers, heads = next((one.attention.cross.shape[:2] for one in readings if one.attention is not None), (1, 1))
        layer = min(layer, layers - 1) if isinstance(layer, int) else layers - 1
        head = head if isinstance(head, int) and head < heads else 0
        place = min(max(1, place), len(readings)) - 1
        updates = self._choices(number_choices(layers), layer, heads, head)
        updates |= self._map_updates(learning.map_at(readings, place, layer, head))
        answer = answers.learning_answer(readings, place, layer, head)
        return updates, answer, learning.moments_html(readings, layer, head)

    def _find(self, where: tuple, current: CurrentTranslation, kind: str, layer: int, head: int) -> tuple[Answer, str]:
        source, _, target = str(current.pair or "").partition("-")
        if source != "en" or not self.examples:
            raise ValueError("The example sentences are English; translate from English to look for a head in them.")
        translator = where[0]
        translations = translator.translate(list(self.examples), source, target)
        attentions = [translator.attend(one) for one in translations]
        trait, ranking = typical_sentences(attentions, kind, layer, head)
        facts = (self.examples, trait, ranking, head_title(kind, layer, head))
        return answers.typical_sentences_answer(*facts), typical_sentences_html(*facts)
