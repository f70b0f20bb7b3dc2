"""The Translate tab: text in, translation out, and every attention map behind it."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np

from transformer import interpret
from ui import compare, decoding, figures, messages, theme, what_if
from ui.services import Services
from ui.shown import STATE_SECONDS, Shown

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "cs": "Czech", "es": "Spanish", "ko": "Korean"}
EXAMPLES = [
    "A man is riding a bicycle.",
    "Two young girls are playing soccer in the park.",
    "A black dog is running through the snow.",
    "A woman in a red dress is reading a book on a bench.",
    "Several people are standing in front of a large building.",
]
KINDS = ("cross", "encoder", "decoder")
KIND_LABELS = [("Cross", "cross"), ("Encoder", "encoder"), ("Decoder", "decoder")]
MEAN = -1  # the choice "mean over heads"
MAX_CHARACTERS = 5000


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def translate_text(services: Services, text: str, pair: str, beam: int, alpha: float, n_best: int) -> Any:
    """Translate a text of the page. pair: "en-de"; returns a Translation with at most `beam` hypotheses.

    Raises ValueError for an empty text, one that is too long for the page, and whatever the translator refuses.
    """
    if not text or not text.strip():
        raise ValueError("There is nothing to translate yet; enter a sentence.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"The text has {len(text):,} characters and this page takes {MAX_CHARACTERS:,} at once; shorten it."
        )
    source, _, target = pair.partition("-")
    return services.translator().translate(
        text, source=source, target=target, beam=int(beam), alpha=float(alpha), n_best=min(int(n_best), int(beam))
    )


def select_map(attention: Any, kind: str, layer: int, head: int) -> tuple[np.ndarray, list[str], list[str]]:
    """One map with the labels of its rows (queries) and columns (keys).

    kind: "cross", "encoder" or "decoder"; layer and head from 0; head MEAN is the mean over heads.
    Returns weights (R, C), R row tokens, C column tokens.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no attention of kind {kind!r}; choose one of {', '.join(KINDS)}.")
    maps = getattr(attention, kind)
    if not 0 <= layer < maps.shape[0] or not MEAN <= head < maps.shape[1]:
        raise ValueError(f"This model has layers 1 to {maps.shape[0]} and heads 1 to {maps.shape[1]}.")
    weights = maps[layer].mean(axis=0) if head == MEAN else maps[layer, head]
    # A decoder row is labelled with the token that is chosen there, and its keys are the tokens read so far.
    rows = attention.source_tokens if kind == "encoder" else attention.target_tokens
    columns = attention.decoder_tokens if kind == "decoder" else attention.source_tokens
    return weights, list(rows), list(columns)


def draw_map(attention: Any, kind: str, layer: int, head: int) -> dict:
    """The large heat map of one choice, ready for the page."""
    weights, rows, columns = select_map(attention, kind, layer, head)
    queries, keys = {
        "cross": ("target", "source"),
        "encoder": ("source", "source"),
        "decoder": ("target", "target so far"),
    }[kind]
    name = "mean over heads" if head == MEAN else f"head {head + 1}"
    title = f"{kind.capitalize()} attention, layer {layer + 1}, {name}"
    return figures.heat_map(weights, rows, columns, title, f"queries: {queries}", f"keys: {keys}")


def hypothesis_rows(sentence: Any) -> list[list[Any]]:
    """The n-best table: rank, text, score (log-probability over the length penalty), log-probability, tokens."""
    return [
        [
            rank,
            hypothesis.text,
            round(float(hypothesis.score), 3),
            round(float(hypothesis.logprob), 3),
            len(hypothesis.tokens),
        ]
        for rank, hypothesis in enumerate(sentence.hypotheses, start=1)
    ]


def head_changes(shown: Shown, kind: str) -> list[list[float]] | None:
    """What switching off each head of one kind changes, (L, h) as lists; None if nobody has asked."""
    return None if shown.changes is None else shown.changes[kind].tolist()


def pair_label(source: str, target: str) -> str:
    """How a language pair is written in the choice of languages."""
    return f"{LANGUAGES.get(source, source)} → {LANGUAGES.get(target, target)}"


# -- layout ---------------------------------------------------------------------------------------------------------


def _attention(tab: SimpleNamespace) -> None:
    gr.Markdown(
        "## Who looks at whom\nEach row is a query and shares a weight of 1 among the keys. In **cross**-attention "
        "the word being written looks at the words being read. In the **encoder** the source looks at itself, in "
        "the **decoder** the word being written looks at those already there.",
        elem_classes="section",
    )
    tab.attention_note = gr.HTML(elem_id="attention-note")
    with gr.Column(elem_classes="card word-card") as tab.word_view:
        tab.words = gr.HTML(
            None, html_template='<div class="words"></div>', js_on_load=theme.script("words.js"), elem_id="words"
        )
        gr.Markdown(
            "Point at a word to see its partners: the cross-attention of the last layer, all heads together.",
            elem_classes="hint",
        )
    with gr.Row(elem_classes="attention-controls"):
        tab.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", scale=3, min_width=300, elem_id="kind")
        tab.layer = gr.Dropdown([], label="Layer", scale=1, min_width=110, elem_id="layer")
        tab.head = gr.Dropdown(
            [("Mean over heads", MEAN)], value=MEAN, label="Head", scale=1, min_width=150, elem_id="head"
        )
        tab.stretch = gr.Checkbox(
            False,
            label="Stretch colours",
            info="Darkest at each map's own maximum.",
            scale=1,
            min_width=190,
            elem_id="stretch",
        )
    with gr.Row(elem_classes="attention-views") as tab.attention_views:
        with gr.Column(scale=3, min_width=320):
            tab.map = gr.HTML(
                None,
                html_template='<div class="heat"></div>',
                js_on_load=theme.script("heat_map.js"),
                stretch=False,
                elem_id="heat-map",
                elem_classes="card",
            )
        with gr.Column(scale=2, min_width=300):
            tab.thumbs = gr.HTML(
                None,
                html_template='<div class="thumbs"></div>',
                js_on_load=theme.script("thumbnails.js"),
                selected=[0, MEAN],
                stretch=False,
                change=None,
                elem_id="thumbnails",
                elem_classes="card",
            )
            gr.Markdown("All layers and heads; select one to open it.", elem_classes="hint")
            tab.ablate = gr.Button("Which heads matter?", size="sm", elem_id="ablate-button")
            tab.ablate_note = gr.HTML(elem_id="ablate-note")


def layout(services: Services) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace()
    tab.shown = gr.State(Shown(), time_to_live=STATE_SECONDS)
    tab.view = gr.State("attention")  # name of the open view
    tab.version = gr.State(0)  # counts the sentences shown
    with gr.Row(equal_height=True, elem_classes="translator"):
        with gr.Column(min_width=300):
            tab.source = gr.Textbox(
                label="Text",
                lines=5,
                max_lines=12,
                placeholder="A man is riding a bicycle.\n\nShift + Enter translates.",
                elem_id="source-text",
                max_length=20_000,
            )
        with gr.Column(min_width=300):
            tab.target = gr.Textbox(
                label="Translation", lines=5, max_lines=12, interactive=False, buttons=["copy"], elem_id="target-text"
            )
    with gr.Row(elem_classes="actions"):
        tab.pair = gr.Dropdown(
            [("English → German", "en-de")],
            value="en-de",
            label="Languages",
            scale=1,
            min_width=180,
            container=False,
            elem_id="pair",
        )
        tab.run = gr.Button("Translate", variant="primary", scale=1, min_width=160, elem_id="translate-button")
        tab.status = gr.HTML(elem_id="translate-status", scale=4, min_width=220)
    with gr.Accordion("Search settings", open=False, elem_id="search-settings"):
        with gr.Row():
            tab.beam = gr.Slider(1, 10, value=4, step=1, label="Beam size", info="1 is greedy search.")
            tab.alpha = gr.Slider(
                0,
                2,
                value=0.6,
                step=0.1,
                label="Length penalty α",
                info="0 favours short translations; the paper uses 0.6.",
            )
            tab.n_best = gr.Slider(
                1, 10, value=4, step=1, label="Translations to show", info="At most as many as the beam is wide."
            )
    gr.Examples(EXAMPLES, tab.source, label="Examples", elem_id="translate-examples")

    with gr.Column(visible=False, elem_id="attention") as tab.results:
        tab.sentence = gr.Dropdown([("1", 0)], value=0, label="Sentence", visible=False, elem_id="sentence")
        tab.table = gr.Dataframe(
            headers=["#", "translation", "score", "log p", "tokens"],
            datatype=["number", "str", "number", "number", "number"],
            label="Best hypotheses. Select one to see its attention.",
            interactive=False,
            wrap=True,
            column_widths=["7%", "44%", "16%", "17%", "16%"],
            elem_id="n-best",
        )
        with gr.Tabs(elem_id="views"):
            tab.views = {}
            with gr.Tab("Attention", id="attention") as tab.views["attention"]:
                _attention(tab)
            with gr.Tab("Decoding", id="decoding") as tab.views["decoding"]:
                tab.decoding = decoding.layout(tab, services)
            with gr.Tab("What if", id="what_if") as tab.views["what_if"]:
                tab.what_if = what_if.layout(tab, services)
            with gr.Tab("Compare", id="compare") as tab.views["compare"]:
                tab.compare = compare.layout(tab, services)
    return tab


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the tab built by `layout` on `page`, and publish `/translate`, `/attend` and `/ablate`."""

    def translate_page(text, pair, beam, alpha, n_best):
        try:
            start = time.perf_counter()
            translation = translate_text(services, text, pair, beam, alpha, n_best)
            seconds = time.perf_counter() - start
        except Exception as error:  # every error becomes a sentence; what was entered stays
            return "", messages.alert(messages.sentence(error)), Shown(), gr.update(visible=False), [], gr.skip()
        tokens = len(translation.tokens)
        note = f"{seconds:.2f} s · {tokens} tokens · {tokens / max(seconds, 1e-9):.0f} tokens/s"
        sentences = translation.sentences
        choices = [(f"{number + 1}: {sentence.source_text[:80]}", number) for number, sentence in enumerate(sentences)]
        return (
            translation.text,
            messages.status(note) + messages.notes(translation.notes),
            Shown(translation),
            gr.update(visible=True),
            hypothesis_rows(sentences[0]),
            gr.update(choices=choices, value=0, visible=len(sentences) > 1),
        )

    def attend_page(shown, kind, layer, head):
        """Recompute the attention of the sentence that is shown and draw it."""
        if shown.translation is None:
            return shown, gr.skip(), gr.skip(), gr.skip(), gr.skip(), "", gr.skip(), gr.skip(), gr.skip(), ""
        try:
            attention = services.translator().attend(
                shown.translation, hypothesis=shown.hypothesis, sentence=shown.sentence
            )
        except Exception as error:
            note = messages.alert(messages.sentence(error))
            hidden = gr.update(visible=False)
            return replace(shown, attention=None), gr.skip(), gr.skip(), None, None, note, hidden, None, hidden, ""
        layers, heads = attention.cross.shape[:2]
        # The last layer is shown first: there the words have found each other.
        layer = layers - 1 if layer is None else min(layer, layers - 1)
        head = min(head, heads - 1)
        return (
            replace(shown, attention=attention, changes=None),
            gr.update(choices=[(str(n + 1), n) for n in range(layers)], value=layer),
            gr.update(choices=[("Mean over heads", MEAN)] + [(str(n + 1), n) for n in range(heads)], value=head),
            draw_map(attention, kind, layer, head),
            gr.update(value=figures.thumbnails(getattr(attention, kind)), selected=[layer, head], change=None),
            "",
            gr.update(visible=True),
            figures.word_links(
                attention.source_tokens, attention.target_tokens, interpret.alignment(attention.cross, layers - 1)
            ),
            gr.update(visible=True),
            "",
        )

    def choose_kind(shown, kind, layer, head):
        if shown.attention is None:
            return gr.skip(), gr.skip()
        thumbs = gr.update(value=figures.thumbnails(getattr(shown.attention, kind)), change=head_changes(shown, kind))
        return draw_map(shown.attention, kind, layer, head), thumbs

    def ablate_page(shown, kind):
        """Switch off every head in turn and write what that costs on its thumbnail."""
        if shown.attention is None:
            return shown, gr.skip(), gr.skip()
        try:
            logprob, changes = interpret.ablation(
                services.translator(), shown.translation, hypothesis=shown.hypothesis, sentence=shown.sentence
            )
        except Exception as error:
            return shown, gr.skip(), messages.alert(messages.sentence(error))
        shown = replace(shown, changes=changes)
        note = (
            f"This translation has log-probability {logprob:.3f}. Each number is the change when that one head is "
            "switched off: the more negative, the more this translation leans on it. A dark map is not always a head "
            "that matters."
        )
        return shown, gr.update(change=head_changes(shown, kind)), messages.status(note)

    def choose_map(shown, kind, layer, head):
        if shown.attention is None:
            return gr.skip(), gr.skip()
        return draw_map(shown.attention, kind, layer, head), gr.update(selected=[layer, head])

    def stretch(on):
        return gr.update(stretch=on), gr.update(stretch=on)

    def pick(event: gr.EventData):
        return int(event.layer), int(event.head)

    def choose_hypothesis(shown, event: gr.SelectData):
        return replace(shown, hypothesis=int(event.index[0]))

    def choose_sentence(shown, sentence):
        if shown.translation is None:
            return shown, []
        return (
            replace(shown, sentence=int(sentence), hypothesis=0),
            hypothesis_rows(shown.translation.sentences[int(sentence)]),
        )

    def count(version):
        return version + 1

    def offer_pairs():
        """The language pairs of the model; asking for them also gets the model ready before the first sentence."""
        try:
            choices = [(pair_label(*pair), "-".join(pair)) for pair in services.pairs()]
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))
        return gr.update(choices=choices, value=choices[0][1]), gr.skip()

    look = [tab.shown, tab.kind, tab.layer, tab.head]
    drawn = [
        tab.shown,
        tab.layer,
        tab.head,
        tab.map,
        tab.thumbs,
        tab.attention_note,
        tab.attention_views,
        tab.words,
        tab.word_view,
        tab.ablate_note,
    ]
    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    device = {"concurrency_id": "device", "api_visibility": "private"}

    page.load(offer_pairs, None, [tab.pair, tab.status], api_name="pairs", show_progress="hidden", **device)
    gr.on(
        [tab.run.click, tab.source.submit],
        translate_page,
        [tab.source, tab.pair, tab.beam, tab.alpha, tab.n_best],
        [tab.target, tab.status, tab.shown, tab.results, tab.table, tab.sentence],
        api_name="translate_page",
        show_progress_on=tab.target,
        **device,
    ).success(attend_page, look, drawn, api_name="attend_page", show_progress="hidden", **device).then(
        count, tab.version, tab.version, api_name="count_page", show_progress="hidden", api_visibility="private"
    )
    for name, view in tab.views.items():
        view.select(lambda name=name: name, None, tab.view, api_name=f"view_{name}", **quiet)
    decoding.events(tab, services, page)
    what_if.events(tab, services, page)
    compare.events(tab, services, page)

    tab.kind.input(choose_kind, look, [tab.map, tab.thumbs], api_name="choose_kind", **quiet)
    tab.ablate.click(
        ablate_page,
        [tab.shown, tab.kind],
        [tab.shown, tab.thumbs, tab.ablate_note],
        api_name="ablate_page",
        show_progress="hidden",
        **device,
    )
    gr.on(
        [tab.layer.change, tab.head.change],
        choose_map,
        look,
        [tab.map, tab.thumbs],
        api_name="choose_map",
        trigger_mode="always_last",
        **quiet,
    )
    tab.stretch.input(stretch, tab.stretch, [tab.map, tab.thumbs], api_name="stretch", **quiet)
    tab.thumbs.pick(pick, None, [tab.layer, tab.head], api_name="pick_map", **quiet)
    tab.table.select(choose_hypothesis, tab.shown, tab.shown, api_name="choose_hypothesis", **quiet).success(
        attend_page, look, drawn, api_name="attend_hypothesis", show_progress="hidden", **device
    ).then(count, tab.version, tab.version, api_name="count_hypothesis", show_progress="hidden", api_visibility="private")
    tab.sentence.input(
        choose_sentence, [tab.shown, tab.sentence], [tab.shown, tab.table], api_name="choose_sentence", **quiet
    ).success(attend_page, look, drawn, api_name="attend_sentence", show_progress="hidden", **device).then(
        count, tab.version, tab.version, api_name="count_sentence", show_progress="hidden", api_visibility="private"
    )

    def translate(text: str, pair: str = "en-de", beam: int = 4, alpha: float = 0.6, n_best: int = 1) -> dict[str, Any]:
        """Translate a text with the page's Transformer.

        Args:
            text: the text; line breaks are kept
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            alpha: length penalty, 0 to 2
            n_best: hypotheses to return for each sentence, at most the beam size

        Returns:
            text: the translation; sentences: for every sentence its tokens and its hypotheses with scores
        """
        try:
            translation = translate_text(services, text, pair, beam, alpha, n_best)
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        return {
            "text": translation.text,
            "sentences": [
                {
                    "source": sentence.source_text,
                    "hypotheses": [
                        {"text": h.text, "tokens": list(h.tokens), "score": float(h.score), "logprob": float(h.logprob)}
                        for h in sentence.hypotheses
                    ],
                }
                for sentence in translation.sentences
            ],
        }

    def attend(
        text: str, pair: str = "en-de", kind: str = "cross", layer: int = 1, head: int = 0, beam: int = 4
    ) -> dict[str, Any]:
        """Translate one sentence and return one of its attention maps.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            kind: cross, encoder or decoder
            layer: layer, from 1
            head: head, from 1; 0 is the mean over heads
            beam: beam size, 1 is greedy search

        Returns:
            translation: the text; rows: query tokens; columns: key tokens; weights: one list of weights a row, each
            row sums to 1
        """
        try:
            translation = translate_text(services, text, pair, beam, 0.6, 1)
            attention = services.translator().attend(translation)
            weights, rows, columns = select_map(attention, kind, int(layer) - 1, int(head) - 1)
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        return {
            "translation": translation.sentences[0].hypotheses[0].text,
            "rows": rows,
            "columns": columns,
            "weights": weights.tolist(),
        }

    def ablate(text: str, pair: str = "en-de", beam: int = 4) -> dict[str, Any]:
        """Translate one sentence and tell what switching off each single head changes.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search

        Returns:
            translation: the text; logprob: its log-probability; encoder, decoder, cross: the change of the
            log-probability without each head, a list of heads for each layer
        """
        try:
            translation = translate_text(services, text, pair, beam, 0.6, 1)
            logprob, changes = interpret.ablation(services.translator(), translation)
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        best = translation.sentences[0].hypotheses[0].text
        return {"translation": best, "logprob": logprob, **{kind: changes[kind].tolist() for kind in KINDS}}

    gr.api(ablate, api_name="ablate", concurrency_id="device")
    gr.api(translate, api_name="translate", concurrency_id="device")
    gr.api(attend, api_name="attend", concurrency_id="device")
