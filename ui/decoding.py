"""The Decoding view of the Translate tab: how the translation comes about, token by token."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import intervene
from transformer.translator import Hypothesis, Translator
from ui import decoding_figures, messages, theme
from ui.languages import model_for
from ui.services import Services
from ui.shown import STATE_SECONDS, Shown, on_view

WHOLE_CACHE = -1  # the choice "sizes only"
INTO_VIEW = "() => document.getElementById('branch-card')?.scrollIntoView({block: 'nearest', behavior: 'smooth'})"


@dataclass
class Followed:
    """What one visitor follows: an output with its cache, and the search that found it."""

    of: tuple  # `identity` of the translation and the settings of the search
    model: str | None
    beam: int
    alpha: float
    decoding: intervene.Decoding
    search: intervene.Continuation
    branch: intervene.Continuation | None = None  # what another token or a forced beginning led to
    layer: int | None = None  # whose attention the page holds


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def search_beam(search: str, beam: float) -> int:
    """The beam that the search settings mean: greedy search is a beam of one."""
    return 1 if search == "greedy" else int(beam)


def identity(shown: Shown) -> tuple | None:
    """What tells the output that is shown from any other; None without one, or if it was copied without the model."""
    if shown.translation is None:
        return None
    sentence = shown.translation.sentences[shown.sentence]
    return (shown.model, *map(tuple, (sentence.source_ids, sentence.ids[shown.hypothesis]))) if sentence.ids else None


def follow_shown(translator: Translator, shown: Shown, beam: int, alpha: float) -> Followed:
    """Follow the output that is shown, and search again with a trace. Raises ValueError for a copied sentence."""
    sentence, ids = shown.translation.chosen(shown.sentence, shown.hypothesis)
    finished = len(ids) < intervene.limit(translator, sentence.source_ids)
    names = sentence.stand_ins
    decoding = intervene.follow(translator, sentence.source_ids, ids, finished, stand_ins=names)
    search = intervene.decode_from(translator, sentence.source_ids, (), int(beam), float(alpha), stand_ins=names)
    return Followed((identity(shown), beam, alpha), shown.model, int(beam), float(alpha), decoding, search)


def own_hypothesis(translator: Translator, followed: Followed) -> Hypothesis:
    """The output that is followed."""
    decoding = followed.decoding
    length = intervene.length_penalty(len(decoding.labels), followed.alpha)
    text = intervene.text_of(translator, decoding.ids, decoding.stand_ins)
    pieces = translator.labels(decoding.ids, decoding.stand_ins)
    return Hypothesis(text, pieces, decoding.logprob / length, decoding.logprob)


def path_to(followed: Followed, node: int) -> list[int]:
    """The tokens from the start of the output to one node of the search's tree. Raises ValueError if there is none."""
    tree = followed.search.tree
    if not 0 < node < len(tree) or tree[node].state == "finished":
        raise ValueError("No translation goes on from there; select another branch.")
    ids = []
    while node > 0:
        ids.append(tree[node].token)
        node = tree[node].parent
    return [*followed.search.prefix.ids, *reversed(ids)]


def draw_branch(translator: Translator, followed: Followed, found: intervene.Continuation, how: str) -> str:
    """What a changed beginning led to, beside the output that is followed."""
    before = own_hypothesis(translator, followed)
    words = intervene.word_difference(before.text, found.hypotheses[0].text)
    return decoding_figures.branch(before, found, words, how)


def trace_text(services: Services, text: str, pair: str, beam: int, alpha: float, model: str | None, layer: int) -> Any:
    """The answer of `/trace`: everything this view shows, as plain values."""
    if not text or not text.strip():
        raise ValueError("There is nothing to translate yet; enter a sentence.")
    model = model_for(services, pair, model)
    translator = services.translator(model)
    source, _, target = pair.partition("-")
    translation = translator.translate(text, source=source, target=target, beam=int(beam), alpha=float(alpha))
    followed = follow_shown(translator, Shown(translation, model=model), beam, alpha)
    decoding, layers = followed.decoding, translator.model.config.decoder_layers
    if not 0 <= layer <= layers:
        raise ValueError(f"This model's decoder has layers 1 to {layers}; 0 leaves the attention out.")
    told = decoding_figures.steps(translator, decoding)
    steps = [
        {
            "input": told["read"][: step + 1],
            "token": told["chosen"][step],
            "logprob": told["logprobs"][step],
            "rank": told["ranks"][step],
            "entropy": told["entropy"][step],
            "top": [{"token": piece, "probability": p} for piece, p, _, _ in told["top"][step]],
            "cache_bytes": sum(size.bytes for size in decoding.cache_size(step)),
        }
        for step in range(len(told["chosen"]))
    ]
    if layer:
        for step, row in enumerate(steps):
            row["decoder"] = decoding.decoder[layer - 1, :, step, : step + 1].tolist()
            row["cross"] = decoding.cross[layer - 1, :, step].tolist()
    drawn = decoding_figures.tree(translator, followed.search, followed.beam, followed.alpha)
    nodes = zip(drawn["parent"], drawn["step"], drawn["token"], drawn["logprob"], drawn["state"])
    names = ("parent", "step", "token", "logprob", "state")
    return {
        "translation": own_hypothesis(translator, followed).text,
        "source": told["source"],
        "steps": steps,
        "tree": [dict(zip(names, node)) for node in nodes],
        "finished": [
            {"text": ended, "logprob": logprob, "tokens": length, "score": candidate.score}
            for (ended, logprob, length, _), candidate in zip(drawn["ended"], followed.search.ended)
        ],
    }


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.followed = gr.State(None, time_to_live=STATE_SECONDS)
    gr.Markdown(
        "## One token at a time\nThe decoder reads what it has written so far and rates every token that could come "
        "next. Move the slider, or use the arrow keys, to see what it sees at each step.",
        elem_classes="section",
    )
    view.note = gr.HTML(elem_id="decoding-note")
    with gr.Column() as view.body:
        with gr.Row(elem_classes="attention-controls"):
            view.layer = gr.Dropdown([], label="Layer of the attention", min_width=150, elem_id="decoding-layer")
            view.cache_layer = gr.Dropdown([], label="Layer of the cache", min_width=150, elem_id="cache-layer")
            view.cache_head = gr.Dropdown(
                [("Sizes only", WHOLE_CACHE)],
                value=WHOLE_CACHE,
                label="Cached numbers of head",
                min_width=150,
                elem_id="cache-head",
            )
        view.steps = theme.drawn("decoding.js", "decode-view", "decoding-steps", attention=None)
        view.cache = theme.drawn("cache_values.js", "cache-values", "cache-values")
        with gr.Column(visible=False, elem_classes="card", elem_id="branch-card") as view.branch_card:
            view.branch = gr.HTML(elem_id="branch")
            with gr.Row():
                view.adopt = gr.Button("Show its steps", size="sm", min_width=150, elem_id="branch-adopt")
                view.back = gr.Button("Back to the translation", size="sm", min_width=150, elem_id="branch-back")
        gr.Markdown(
            "## The search\nBeam search keeps the best few beginnings at every step. Alive branches lead to the "
            "beginnings kept at the current step.",
            elem_classes="section",
        )
        view.tree = theme.drawn("beam_tree.js", "beam", "beam-tree", "card")
    return view


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.decoding, and publish `/trace`."""
    view = tab.decoding
    drawn = [
        view.followed, view.note, view.body, view.layer, view.cache_layer, view.cache_head, view.steps, view.cache,
        view.branch_card, view.tree,
    ]  # fmt: skip

    def draw(followed: Followed, note: str, layer, cache_layer, cache_head, with_tree: bool = True):
        translator = services.translator(followed.model)
        config = translator.model.config
        layers = config.decoder_layers
        # What the visitor looks at stays, as far as this model has it; the last layer comes first.
        layer = layers - 1 if layer is None else min(int(layer), layers - 1)
        cache_layer, cache_head = min(int(cache_layer or 0), layers - 1), min(int(cache_head), config.heads - 1)
        choices = [(str(n + 1), n) for n in range(layers)]
        heads = [("Sizes only", WHOLE_CACHE)] + [(str(n + 1), n) for n in range(config.heads)]
        # As text: the browser's side of Gradio watches and copies every list of a value, which takes seconds here.
        steps = decoding_figures.steps(translator, followed.decoding)
        weights = decoding_figures.layer_weights(followed.decoding, layer)
        held = cache_of(followed, cache_layer, cache_head)
        found = decoding_figures.tree(translator, followed.search, followed.beam, followed.alpha) if with_tree else None
        return (
            replace(followed, layer=layer),
            messages.status(note) if note else "",
            gr.update(visible=True),
            gr.update(choices=choices, value=layer),
            gr.update(choices=choices, value=cache_layer),
            gr.update(choices=heads, value=cache_head),
            gr.update(value=json.dumps(steps), attention=weights),
            held,
            gr.update(visible=False),
            json.dumps(found) if with_tree else gr.skip(),
        )

    def cache_of(followed: Followed, layer: int, head: int):
        """The cached numbers of one head, or None where only sizes are wanted."""
        return None if head == WHOLE_CACHE else decoding_figures.cache_strip(followed.decoding, layer, head)

    def refresh(shown: Shown, search, beam, alpha, layer, cache_layer, cache_head, followed=None):
        if shown.translation is None:
            return (None, "", gr.update(visible=False), *[gr.skip()] * (len(drawn) - 3))
        beam = search_beam(search, beam)
        if followed is not None and followed.of == (identity(shown), beam, alpha):
            return [gr.skip()] * len(drawn)  # the visitor comes back: everything is as it was left
        try:
            found = follow_shown(services.translator(shown.model), shown, beam, alpha)
            return draw(found, "", layer, cache_layer, cache_head)
        except Exception as error:
            hidden = gr.update(visible=False)
            return (None, messages.alert(messages.sentence(error)), hidden, *[gr.skip()] * 5, hidden, gr.skip())

    def choose_layer(followed, layer):
        # A dropdown says twice that it was used; the attention of a long sentence is a megabyte, so it is sent once.
        if followed is None or followed.layer == int(layer):
            return gr.skip(), gr.skip()
        weights = decoding_figures.layer_weights(followed.decoding, int(layer))
        return replace(followed, layer=int(layer)), gr.update(attention=weights)

    def choose_cache(followed, layer, head):
        if followed is None:
            return gr.skip()
        return cache_of(followed, int(layer), int(head))

    def branch(followed, event: gr.EventData):
        """Another token at one step, on the cache of the tokens before it."""
        if followed is None:
            return gr.skip(), gr.skip(), gr.skip()
        try:
            translator = services.translator(followed.model)
            step, token = int(event.step), int(event.token)
            decoding = followed.decoding
            found = intervene.continue_from(translator, decoding, step, token, followed.beam, followed.alpha)
            chosen, instead = translator.labels([decoding.labels[step], token], decoding.stand_ins)
            how = (
                f"“{instead}” instead of “{chosen}” at step {step + 1}; "
                f"{found.reused} cached tokens were used again, the rest was searched anew."
            )
            drawing = draw_branch(translator, followed, found, how)
        except Exception as error:
            return followed, messages.alert(messages.sentence(error)), gr.update(visible=True)
        return replace(followed, branch=found), drawing, gr.update(visible=True)

    def force(followed, event: gr.EventData):
        """A branch of the tree, alive or pruned, as the beginning."""
        if followed is None:
            return gr.skip(), gr.skip(), gr.skip()
        try:
            translator = services.translator(followed.model)
            ids = path_to(followed, int(event.node))
            decoding = followed.decoding
            found = intervene.decode_from(
                translator, decoding.source_ids, ids, followed.beam, followed.alpha, stand_ins=decoding.stand_ins
            )
            begun = intervene.text_of(translator, ids, decoding.stand_ins)
            how = f"Begun with “{begun}”, as that branch of the search does."
            drawing = draw_branch(translator, followed, found, how)
        except Exception as error:
            return followed, messages.alert(messages.sentence(error)), gr.update(visible=True)
        return replace(followed, branch=found), drawing, gr.update(visible=True)

    def adopt(followed, layer, cache_layer, cache_head):
        """Follow what the branch led to."""
        if followed is None or followed.branch is None:
            return [gr.skip()] * len(drawn)
        try:
            best = followed.branch.candidates[0]
            before = followed.decoding
            decoding = intervene.follow(
                services.translator(followed.model), before.source_ids, best.ids, best.finished,
                stand_ins=before.stand_ins,
            )  # fmt: skip
            note = f"These are the steps of “{followed.branch.hypotheses[0].text}”."
            followed = replace(followed, decoding=decoding, branch=None)
            return draw(followed, note, layer, cache_layer, cache_head, with_tree=False)
        except Exception as error:
            return (followed, messages.alert(messages.sentence(error)), *[gr.skip()] * (len(drawn) - 2))

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    device = {"concurrency_id": "device", "api_visibility": "private", "show_progress": "hidden"}
    look = [view.layer, view.cache_layer, view.cache_head]
    settings = [tab.shown, tab.search, tab.beam, tab.alpha, *look]
    on_view(tab, "decoding", refresh, [*settings, view.followed], drawn, "decoding", concurrency_id="device",
            show_progress="minimal", show_progress_on=view.steps)  # fmt: skip
    view.layer.input(choose_layer, [view.followed, view.layer], [view.followed, view.steps], api_name="decoding_layer",
                     **device)  # fmt: skip
    gr.on(
        [view.cache_layer.input, view.cache_head.input],
        choose_cache,
        [view.followed, view.cache_layer, view.cache_head],
        view.cache,
        api_name="decoding_cache",
        **quiet,
    )
    branched = [view.followed, view.branch, view.branch_card]
    for event, act, place in ((view.steps.branch, branch, view.steps), (view.tree.force, force, view.tree)):
        seen = {**device, "show_progress": "minimal", "show_progress_on": place}  # a long sentence takes a while
        event(act, view.followed, branched, api_name=f"decoding_{act.__name__}", **seen).then(js=INTO_VIEW)
    view.adopt.click(adopt, [view.followed, *look], drawn, api_name="decoding_adopt", **device)
    view.back.click(refresh, settings, drawn, api_name="decoding_back", **device)

    def trace(
        text: str, pair: str = "en-de", beam: int = 4, alpha: float = 0.6, model: str = "", layer: int = 0
    ) -> dict[str, Any]:
        """Translate one sentence and return every step of its decoding and the search as a tree.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            alpha: length penalty, 0 to 2
            model: key of a model, empty for the page's default
            layer: decoder layer whose attention is returned with every step, from 1; 0 leaves it out

        Returns:
            translation: the text; source: its tokens; steps: for every step the input so far, the chosen token, its
            log-probability and rank, the entropy (nats), the likeliest tokens and the size of the key/value cache, and
            with a layer the weights of each head; tree: the nodes of the search with the number of their parent, step,
            token, log-probability so far and state (beam, finished, pruned); finished: every hypothesis that ended
        """
        try:
            return trace_text(services, text, pair, beam, alpha, model, int(layer))
        except Exception as error:
            raise gr.Error(messages.sentence(error), print_exception=False) from error

    gr.api(trace, api_name="trace", concurrency_id="device")
