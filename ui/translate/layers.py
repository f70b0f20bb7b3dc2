"""The view "What layers know": logit lens, encoder lens, source against prefix, find a head."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from transformer.insight.contributions import Contributions, contributions
from transformer.insight.heads import TRAITS, most_itself
from transformer.insight.lenses import LogitLens, decoder_lens, logit_lens
from transformer.options import SearchOptions
from transformer.translator import Hypothesis
from ui import figures, messages, theme
from ui.translate import answers
from ui.translate.answers import Answer, save
from ui.translate.attention import KIND_LABELS, layer_choices
from ui.translate.opening import EXAMPLES
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, CurrentTranslation, View
from ui.translate.words import head_title, numbered, plain

QUESTIONS = [
    ("When does the answer form?", "logit"),
    ("What has the encoder understood?", "encoder"),
    ("From the source or from the prefix?", "contributions"),
    ("Where is a head most typical?", "find"),
]

WIDEST = 100  # steps of a lens's table at most


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def word(token: str) -> str:
    """A token as it is read: without the vocabulary's mark, escaped for HTML."""
    return escape(plain(token))


def table(head: Sequence[str], rows: Sequence[str], label: str) -> str:
    """HTML of a table that scrolls inside itself. head: cells; rows: HTML of their cells; label: for screen readers."""
    cells = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="step-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="swap-table lens-table"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def lens_html(lens: LogitLens) -> str:
    """The logit lens: a row for each step, a column for each layer; the first column is what the decoder reads."""
    layers = range(len(lens.ranks))
    rows = [
        f'<th scope="row" translate="no">{step + 1} · {word(lens.tokens[step])}</th>'
        + "".join(_lens_cell(lens, layer, step) for layer in layers)
        for step in range(min(WIDEST, len(lens.tokens)))
    ]
    head = ["chosen", *("embedding" if layer == 0 else f"layer {layer}" for layer in layers)]
    more = len(lens.tokens) - WIDEST
    note = f'<p class="hint">The first {WIDEST} of {len(lens.tokens)} steps are shown.</p>' if more > 0 else ""
    firsts = [int(first) for first in lens.settling_row if first < len(lens.ranks)]
    mean = f" On average, the answer is settled from layer {np.mean(firsts):.1f} on." if firsts else ""
    return table(head, rows, "Logit lens by layer and step") + (
        f'<p class="hint">Each cell: the likeliest word of that layer, its probability, and the rank of the word that '
        f"was finally chosen; bold where the two agree.{mean}</p>{note}"
    )


def _lens_cell(lens: LogitLens, layer: int, step: int) -> str:
    best, share = lens.top_tokens[layer][step][0], float(lens.top_probabilities[layer, step, 0])
    rank, own = int(lens.ranks[layer, step]), float(lens.probabilities[layer, step])
    likeliest = zip(lens.top_tokens[layer][step], lens.top_probabilities[layer, step])
    title = ", ".join(f"{plain(token)} {float(p):.3f}" for token, p in likeliest)
    title += f"; chosen: rank {rank}, {own:.4f}; entropy {float(lens.entropies[layer, step]):.2f} nats"
    name = f"<b>{word(best)}</b>" if rank == 1 else word(best)
    cell = f'<span translate="no">{name}</span><small>{share:.2f} · #{rank}</small>'
    return f'<td class="lens-cell" style="--share:{share:.3f}" title="{escape(title)}">{cell}</td>'


def encoder_html(hypotheses: Sequence[Hypothesis]) -> str:
    """The translations from each encoder layer, one below the other."""
    names = ["embeddings", *(f"layer {layer}" for layer in range(1, len(hypotheses)))]
    rows = [
        f'<th scope="row">{name}</th><td dir="auto">{escape(one.text)}</td><td>{one.score:.2f}</td>'
        for name, one in zip(names, hypotheses)
    ]
    return table(["read from", "translation", "score"], rows, "Translations from each encoder layer")


def shares_html(parts: Contributions) -> str:
    """One bar a token: how much of it comes from the source, the rest from the prefix."""
    rows = []
    for token, share in zip(parts.tokens, parts.source_share):
        share = float(share)
        bar = f'<span class="share-bar" style="--share:{share:.4f}" role="img" aria-label="{share:.0%} source"></span>'
        head = f'<th scope="row" translate="no">{word(token)}</th>'
        rows.append(f"{head}<td>{bar}</td><td>{share:.1%}</td><td>{1 - share:.1%}</td>")
    return table(["chosen", "source | prefix", "source", "prefix"], rows, "Source against prefix by piece")


def contributions_map(parts: Contributions) -> dict:
    """The token-to-token map: source tokens first, then the prefix; rows sum to 1."""
    columns = [*parts.source_tokens, *(f"▁{plain(token)} (written)" for token in parts.prefix_tokens)]
    both = np.concatenate((parts.source, parts.prefix), 1)
    return figures.heat_map(
        both, parts.tokens, columns, "Contributions (ALTI+)", "chosen", "text, then what is written", "draws on"
    )


def typical_sentences_html(texts: Sequence[str], trait: str, ranking: Sequence[tuple[int, float]], title: str) -> str:
    """The sentences in which a head is most typical."""
    rows = [f'<td dir="auto">{escape(texts[number])}</td><td>{share:.1%}</td>' for number, share in ranking]
    return f"<p>{escape(title)} mostly <b>{TRAITS[trait]}</b>.</p>" + table(
        ["sentence", "share of its attention"], rows, "Sentences in which this head is most typical"
    )


# -- the view ---------------------------------------------------------------------------------------------------------


class LayersView(View):
    """What the layers know, in four questions."""

    name = "layers"

    title = "Layers"
    fields = {"part": "question"}
    examples: Sequence[str] = EXAMPLES  # English sentences in which a head is looked for

    def build(self) -> None:
        """Makes the components."""
        self.question = gr.Radio(QUESTIONS, value="logit", label="Question", elem_id="layers-question")
        self.about = gr.Markdown(theme.text("translate/layers.logit"), elem_classes="section", elem_id="layers-about")
        self.note = gr.HTML(elem_id="layers-note")
        with gr.Row(visible=False, elem_classes="attention-controls") as self.controls:
            self.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", scale=2, min_width=300)
            self.layer = gr.Dropdown([], label="Layer", min_width=90, elem_id="layers-layer")
            self.head = gr.Dropdown([], label="Head", min_width=90, elem_id="layers-head")
        self.table = gr.HTML(elem_id="lens-table", elem_classes="card")
        with gr.Column(visible=False) as self.map_card:
            self.map = theme.heat_map("lens-map")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        inputs = [self.tab.current, self.question, self.kind, self.layer, self.head]
        outputs = [self.about, self.note, self.controls, self.kind, self.layer, self.head]
        outputs += [self.table, self.map_card, self.map]
        self.draw_with(inputs, outputs, concurrency_id="translate")
        self.question.input(self.show, inputs, outputs, api_name="layers_question", **ON_DEVICE)
        for name in ("kind", "layer", "head"):
            event = getattr(self, name).input
            event(self.show, inputs, outputs, api_name=f"layers_{name}", **QUIETLY_ON_DEVICE)
        self.save_with(inputs, self.write)

    def show(self, current, question, kind, layer, head):
        """The answer to the chosen question for the sentence that is shown."""
        empty = {
            self.about: theme.text(f"translate/layers.{question}"),
            self.note: "",
            self.controls: gr.update(visible=question == "find"),
            self.table: "",
            self.map_card: gr.update(visible=False),
        }
        if current.attention is None:
            return {**empty, self.note: messages.alert("Translate a sentence with words first.")}
        try:
            updates, _, html = self._answer(current, question, kind, layer, head)
            return {**empty, **updates, self.table: html}
        except Exception as error:
            return {**empty, self.note: messages.failure(error)}

    def write(self, folder: Path, current: CurrentTranslation, question, kind, layer, head) -> list[Path]:
        """The answer that is shown, as files."""
        if current.attention is None:
            raise ValueError("Translate a sentence with words first.")
        _, answer, html = self._answer(current, question, kind, layer, head)
        return save(answer, current.caption, html, folder)

    def _answer(
        self, current: CurrentTranslation, question: str, kind: str, layer: Any, head: Any
    ) -> tuple[dict, Answer, str]:
        """What a question changes on the page besides its table, the answer as it is saved, and the table's HTML."""
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
            map_updates = {self.map_card: gr.update(visible=True), self.map: contributions_map(parts)}
            return map_updates, answers.contributions_answer(parts), shares_html(parts)
        layers, layer = layer_choices(kind, layer, current.attention)
        heads = current.attention.cross.shape[1]
        head = head if isinstance(head, int) and head < heads else 0
        choices = {
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=numbered(heads), value=head),
        }
        answer, html = self._find(where, current, kind, layer, head)
        return choices, answer, html

    def _find(self, where: tuple, current: CurrentTranslation, kind: str, layer: int, head: int) -> tuple[Answer, str]:
        source, _, target = str(current.pair or "").partition("-")
        if source != "en" or not self.examples:
            raise ValueError("The example sentences are English; translate from English to look for a head in them.")
        translator = where[0]
        translations = translator.translate(list(self.examples), source, target)
        attentions = [translator.attend(one) for one in translations]
        trait, ranking = most_itself(attentions, kind, layer, head)
        facts = (self.examples, trait, ranking, head_title(kind, layer, head))
        return answers.typical_sentences_answer(*facts), typical_sentences_html(*facts)
