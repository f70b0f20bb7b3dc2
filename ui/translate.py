"""The Translate tab: text in, translation out, and below it the views of what happened inside."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import interpret
from transformer.translator import Sampling
from ui import attention, compare, decoding, figures, messages, one_head, save, theme, tour, what_if
from ui.languages import model_for, pair_choices
from ui.services import Services
from ui.shown import STATE_SECONDS, Refresh, Shown

EXAMPLES = [
    "I am a student.",
    "The animal didn't cross the street because it was too tired.",
    "Can you help me?",
    "Two young girls are playing soccer in the park.",
    "A woman in a red dress is reading a book on a bench.",
]
SEARCHES = [("Beam search", "beam"), ("Greedy", "greedy"), ("Sampling", "sampling")]
MAX_CHARACTERS = 5000
MOST_LINKED = 12  # sentences whose words are all shown with their partners; of a longer text it is the chosen one's


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def translate_text(
    services: Services,
    text: str,
    pair: str,
    beam: int,
    alpha: float,
    n_best: int,
    model: str | None = None,
    search: str = "beam",
    temperature: float = 1.0,
    top_k: int = 0,
    seed: int = 0,
) -> Any:
    """Translate a text of the page. pair: "en-de"; returns a Translation with at most `n_best` hypotheses.

    model: a key of `services.translator`; search: "beam", "greedy" (a beam of one) or "sampling" (n_best draws with
    this temperature, among the top_k likeliest pieces, 0 for all, and this seed).

    Raises ValueError for an empty text, one that is too long for the page, and whatever the translator refuses.
    """
    if not text or not text.strip():
        raise ValueError("There is nothing to translate yet; enter a sentence.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"The text has {len(text):,} characters and this page takes {MAX_CHARACTERS:,} at once; shorten it."
        )
    if search not in [key for _, key in SEARCHES]:
        raise ValueError(f"There is no search {search!r}; choose beam, greedy or sampling.")
    beam, n_best = (1 if search == "greedy" else int(beam)), int(n_best)
    sampling = Sampling(float(temperature), int(top_k or 0), int(seed or 0)) if search == "sampling" else None
    source, _, target = str(pair).partition("-")
    return services.translator(model or None).translate(
        text,
        source=source,
        target=target,
        beam=beam,
        alpha=float(alpha),
        n_best=n_best if sampling else min(n_best, beam),
        sampling=sampling,
    )


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


def linked_words(services: Services, shown: Shown) -> list[dict]:
    """The words of every sentence of the text with their partners, by the last layer's cross-attention, for the page.

    Sentences that were copied without the model have none. shown.attention is that of the chosen sentence, or None.
    """
    sentences, found = shown.translation.sentences, []
    for number in range(len(sentences)) if len(sentences) <= MOST_LINKED else [shown.sentence]:
        attention = shown.attention
        if number != shown.sentence:
            copied = not sentences[number].ids
            attention = None if copied else services.translator(shown.model).attend(shown.translation, sentence=number)
        if attention is not None:
            last = attention.cross.shape[0] - 1
            columns = interpret.alignment(attention.cross, last, attention.source_tokens)
            found.append(figures.word_links(attention.source_tokens, attention.target_tokens, columns))
    return found


# -- layout ---------------------------------------------------------------------------------------------------------


def _settings(tab: SimpleNamespace, services: Services) -> None:
    """The model and the search."""
    with gr.Row():
        tab.model = gr.Dropdown(
            services.translators(),
            value=services.translation_model,
            label="Model",
            info="Shipped with this page, or a run of the Train tab"
            + ("; or type a folder or a name like Helsinki-NLP/opus-mt-en-de." if services.local else "."),
            allow_custom_value=services.local,
            elem_id="translation-model",
        )
        tab.search = gr.Radio(SEARCHES, value="beam", label="Search", elem_id="search")
    with gr.Row(visible=True) as tab.beam_row:
        tab.beam = gr.Slider(1, 10, value=4, step=1, label="Beam size", info="1 is greedy search.", elem_id="beam")
        tab.alpha = gr.Slider(
            0,
            2,
            value=0.6,
            step=0.1,
            label="Length penalty α",
            info="0 favours short translations; the paper uses 0.6.",
            elem_id="alpha",
        )
    with gr.Row(visible=False) as tab.sampling_row:
        tab.temperature = gr.Slider(
            0.1,
            3,
            value=1,
            step=0.1,
            label="Temperature",
            info="Below 1 likely words gain, above 1 unlikely ones.",
            elem_id="temperature",
        )
        tab.top_k = gr.Number(
            0, label="Among the k likeliest", info="0 = among all.", precision=0, minimum=0, elem_id="top-k"
        )
        tab.seed = gr.Number(
            0, label="Seed", info="The same seed draws the same.", precision=0, elem_id="sampling-seed"
        )
    tab.n_best = gr.Slider(
        1,
        10,
        value=4,
        step=1,
        label="Translations to show",
        info="At most as many as the beam is wide.",
        elem_id="count",
    )


def layout(services: Services) -> SimpleNamespace:
    """Build the tab inside the current Blocks and return its components by name."""
    tab = SimpleNamespace()
    tab.shown = gr.State(Shown(), time_to_live=STATE_SECONDS)
    tab.view = gr.State("attention")  # name of the open view
    tab.refreshers = {}  # of `on_view`
    tab.query = gr.State(0)  # row of the query that was picked last
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
        tab.swap = gr.Button("⇄ Swap", scale=0, min_width=110, elem_id="swap-languages")
        tab.run = gr.Button("Translate", variant="primary", scale=1, min_width=160, elem_id="translate-button")
        tab.count = gr.HTML(
            None,
            html_template='<span class="count"></span>',
            js_on_load=theme.script("count.js"),
            most=MAX_CHARACTERS,
            scale=0,
            min_width=110,
            elem_id="character-count",
        )
        tab.status = gr.HTML(elem_id="translate-status", scale=4, min_width=200)
    with gr.Accordion("Model and search", open=False, elem_id="search-settings"):
        _settings(tab, services)
    gr.Examples(EXAMPLES, tab.source, label="Examples", elem_id="translate-examples")
    gr.Markdown(
        "Below a translation its insides open: who looks at whom in every layer and head, how it is decided token by "
        "token, and what changes if a head is switched off or a weight is another one.",
        elem_id="before",
        elem_classes="hint",
    )

    with gr.Column(visible=False, elem_id="attention") as tab.results:
        tab.sentence = gr.Dropdown([("1", 0)], value=0, label="Sentence", visible=False, elem_id="sentence")
        with gr.Column(elem_classes="card word-card") as tab.word_view:
            tab.words = theme.drawn("words.js", "words", "words")
            gr.Markdown(
                "Point at a word to see its partners: the cross-attention of the last layer, all heads together.",
                elem_classes="hint",
            )
        tab.table = gr.Dataframe(
            headers=["#", "translation", "score", "log p", "tokens"],
            datatype=["number", "str", "number", "number", "number"],
            label="Best hypotheses. Select one to see how it came about.",
            interactive=False,
            wrap=True,
            column_widths=["7%", "44%", "16%", "17%", "16%"],
            elem_id="n-best",
        )
        gr.Markdown("## Who looks at whom", elem_classes="section")
        tab.tour = tour.layout(tab, services)
        with gr.Tabs(elem_id="views") as tab.tabs:
            tab.views = {}
            with gr.Tab("Attention", id="attention") as tab.views["attention"]:
                tab.attention = attention.layout(tab, services)
            with gr.Tab("One head", id="one_head") as tab.views["one_head"]:
                tab.one_head = one_head.layout(tab, services)
            with gr.Tab("Decoding", id="decoding") as tab.views["decoding"]:
                tab.decoding = decoding.layout(tab, services)
            with gr.Tab("What if", id="what_if") as tab.views["what_if"]:
                tab.what_if = what_if.layout(tab, services)
            with gr.Tab("Compare", id="compare") as tab.views["compare"]:
                tab.compare = compare.layout(tab, services)
            with gr.Tab("Save", id="save") as tab.views["save"]:
                tab.save = save.layout(tab, services)
    return tab


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the tab built by `layout` on `page`, and publish `/translate`, `/attend` and `/ablate`."""

    def translate_page(text, pair, beam, alpha, n_best, model, search, temperature, top_k, seed):
        try:
            model = model_for(services, pair, model)
            start = time.perf_counter()
            translation = translate_text(
                services, text, pair, beam, alpha, n_best, model, search, temperature, top_k, seed
            )
            seconds = time.perf_counter() - start
        except Exception as error:  # every error becomes a sentence; what was entered stays
            return "", messages.alert(messages.sentence(error)), Shown(), gr.update(visible=False), [], gr.skip()
        tokens = len(translation.tokens)
        note = f"{seconds:.2f} s · {tokens} token{'s' * (tokens != 1)} · {tokens / max(seconds, 1e-9):.0f} tokens/s"
        sentences = translation.sentences
        choices = [(f"{number + 1}: {sentence.source_text[:80]}", number) for number, sentence in enumerate(sentences)]
        return (
            translation.text,
            messages.status(note) + messages.notes(translation.notes),
            Shown(translation, model=model, pair=pair),
            gr.update(visible=True),
            hypothesis_rows(sentences[0]),
            gr.update(choices=choices, value=0, visible=len(sentences) > 1),
        )

    def attend_page(shown, *values):
        """Recompute the attention of the sentence that is shown, and draw the view that is open."""
        if shown.translation is None:
            return [gr.skip()] * (len(seen) + len(refresh.outputs))
        note, links = "", []
        try:
            found = services.translator(shown.model).attend(
                shown.translation, hypothesis=shown.hypothesis, sentence=shown.sentence
            )
        except Exception as error:
            found, note = None, messages.alert(messages.sentence(error))
        shown = replace(shown, attention=found, changes=None)
        try:
            links = linked_words(services, shown)
        except Exception as error:
            note = note or messages.alert(messages.sentence(error))
        try:
            drawn = refresh(*values, known={tab.shown: shown, tab.query: 0})
        except Exception as error:
            drawn = [gr.skip()] * len(refresh.outputs)
            note = note or messages.alert(messages.sentence(error))
        return [shown, note, links, gr.update(visible=bool(links)), 0, *drawn]

    def choose_hypothesis(shown, event: gr.SelectData):
        return replace(shown, hypothesis=int(event.index[0]))

    def choose_sentence(shown, sentence):
        if shown.translation is None:
            return shown, []
        return (
            replace(shown, sentence=int(sentence), hypothesis=0),
            hypothesis_rows(shown.translation.sentences[int(sentence)]),
        )

    def offer_models():
        """The models that are there now, and the language pairs of the default one, which gets it ready, too."""
        models = gr.update(choices=services.translators())  # a visitor may have chosen one by now
        try:
            choices = pair_choices(services, None, others=True)
        except Exception as error:
            return models, gr.skip(), messages.alert(messages.sentence(error))
        return models, gr.update(choices=choices, value=choices[0][1]), gr.skip()

    def choose_model(model, pair):
        """Load another model and offer its language pairs first; the pair stays if the model has it."""
        try:
            own = [key for _, key in pair_choices(services, model)]
            choices = pair_choices(services, model, others=True)
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))
        return gr.update(choices=choices, value=pair if pair in own else own[0]), ""

    def choose_pair(pair, model):
        """Languages that the chosen model does not have bring the model that has them."""
        try:
            other = model_for(services, pair, model)
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))
        return (gr.skip(), "") if other == (model or None) else (other, messages.status(f"{other} does this."))

    def choose_search(search):
        shown_most = "How many to draw." if search == "sampling" else "At most as many as the beam is wide."
        return (
            gr.update(visible=search == "beam"),
            gr.update(visible=search == "sampling"),
            gr.update(visible=search != "greedy", info=shown_most),
        )

    def swap_languages(pair, model, source, target):
        """The other direction; what was translated becomes the text."""
        source_language, _, target_language = pair.partition("-")
        back = f"{target_language}-{source_language}"
        try:
            other = model_for(services, back, model)
        except Exception as error:
            return *[gr.skip()] * 4, messages.alert(messages.sentence(error))
        return back, gr.skip() if other == (model or None) else other, target or source, "", ""

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    device = {"concurrency_id": "device", "api_visibility": "private"}
    for view in (attention, one_head, decoding, what_if, compare, save, tour):
        view.events(tab, services, page)
    seen = [tab.shown, tab.attention.note, tab.words, tab.word_view, tab.query]
    refresh = Refresh(tab, always=("tour",), known=(tab.shown, tab.query))

    def then_attend(event, name):
        event.success(
            attend_page,
            [tab.shown, *refresh.inputs],
            [*seen, *refresh.outputs],
            api_name=f"attend_{name}",
            show_progress="hidden",
            **device,
        )

    page.load(
        offer_models, None, [tab.model, tab.pair, tab.status], api_name="models", show_progress="hidden", **device
    )
    tab.model.input(choose_model, [tab.model, tab.pair], [tab.pair, tab.status], api_name="choose_model", **device)
    tab.pair.input(choose_pair, [tab.pair, tab.model], [tab.model, tab.status], api_name="choose_pair",
                   show_progress="hidden", **device)  # fmt: skip
    # A training may have written a checkpoint since the page was opened.
    tab.model.focus(lambda: gr.update(choices=services.translators()), None, tab.model, api_name="checkpoints",
                    show_progress="hidden", queue=False, api_visibility="private")  # fmt: skip
    rows = [tab.beam_row, tab.sampling_row, tab.n_best]
    tab.search.input(choose_search, tab.search, rows, api_name="search", **quiet)
    tab.swap.click(
        swap_languages,
        [tab.pair, tab.model, tab.source, tab.target],
        [tab.pair, tab.model, tab.source, tab.target, tab.status],
        api_name="swap_languages",
        show_progress="hidden",
        **device,
    )
    settings = [tab.beam, tab.alpha, tab.n_best, tab.model, tab.search, tab.temperature, tab.top_k, tab.seed]
    translated = gr.on(
        [tab.run.click, tab.source.submit],
        translate_page,
        [tab.source, tab.pair, *settings],
        [tab.target, tab.status, tab.shown, tab.results, tab.table, tab.sentence],
        api_name="translate_page",
        show_progress_on=tab.target,
        **device,
    )
    then_attend(translated, "page")
    chosen = tab.table.select(choose_hypothesis, tab.shown, tab.shown, api_name="choose_hypothesis", **quiet)
    then_attend(chosen, "hypothesis")
    chosen = tab.sentence.input(
        choose_sentence, [tab.shown, tab.sentence], [tab.shown, tab.table], api_name="choose_sentence", **quiet
    )
    then_attend(chosen, "sentence")
    for name, view in tab.views.items():
        view.select(lambda name=name: name, None, tab.view, api_name=f"view_{name}", **quiet)
    tour.follow(tab, refresh)

    def translate(
        text: str,
        pair: str = "en-de",
        beam: int = 4,
        alpha: float = 0.6,
        n_best: int = 1,
        model: str = "",
        search: str = "beam",
        temperature: float = 1.0,
        top_k: int = 0,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Translate a text with the page's Transformer.

        Args:
            text: the text; line breaks are kept
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            alpha: length penalty, 0 to 2
            n_best: hypotheses to return for each sentence, at most the beam size
            model: a model of the page's list, by its key; empty for one that has these languages
            search: beam, greedy or sampling (n_best random draws)
            temperature: of sampling, above 0
            top_k: sampling draws among so many likeliest word pieces; 0 among all
            seed: of sampling

        Returns:
            text: the translation; sentences: for every sentence its tokens and its hypotheses with scores
        """
        try:
            model = model_for(services, pair, model)
            translation = translate_text(
                services, text, pair, beam, alpha, n_best, model, search, temperature, top_k, seed
            )
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
        text: str,
        pair: str = "en-de",
        kind: str = "cross",
        layer: int = 1,
        head: int = 0,
        beam: int = 4,
        without_ends: bool = False,
        model: str = "",
    ) -> dict[str, Any]:
        """Translate one sentence and return one of its attention maps.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            kind: cross, encoder or decoder
            layer: layer, from 1
            head: head, from 1; 0 is the mean over heads, -1 the largest over heads, -2 the rollout over layers
            beam: beam size, 1 is greedy search
            without_ends: leave out start and end of the sentence; rows are normalised again
            model: a model of the page's list, by its key; empty for one that has these languages

        Returns:
            translation: the text; rows: query tokens; columns: key tokens; weights: one list of weights a row, each
            row sums to 1 (not so for the largest over heads)
        """
        try:
            model = model_for(services, pair, model)
            translation = translate_text(services, text, pair, beam, 0.6, 1, model)
            weights = services.translator(model or None).attend(translation)
            head = {0: interpret.MEAN, -1: interpret.MAX, -2: interpret.ROLLOUT}.get(int(head), int(head) - 1)
            found = interpret.attention_map(weights, kind, int(layer) - 1, head, without_ends)
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        return {
            "translation": translation.sentences[0].hypotheses[0].text,
            "rows": found.rows,
            "columns": found.columns,
            "weights": found.weights.tolist(),
        }

    def ablate(text: str, pair: str = "en-de", beam: int = 4, model: str = "") -> dict[str, Any]:
        """Translate one sentence and tell what switching off each single head changes.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            model: a model of the page's list, by its key; empty for one that has these languages

        Returns:
            translation: the text; logprob: its log-probability; encoder, decoder, cross: the change of the
            log-probability without each head, a list of heads for each layer
        """
        try:
            model = model_for(services, pair, model)
            translation = translate_text(services, text, pair, beam, 0.6, 1, model)
            logprob, changes = interpret.ablation(services.translator(model or None), translation)
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error
        best = translation.sentences[0].hypotheses[0].text
        return {"translation": best, "logprob": logprob, **{kind: changes[kind].tolist() for kind in interpret.KINDS}}

    gr.api(ablate, api_name="ablate", concurrency_id="device")
    gr.api(translate, api_name="translate", concurrency_id="device")
    gr.api(attend, api_name="attend", concurrency_id="device")
