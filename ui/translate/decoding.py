"""The Decoding view of the Translate tab: how the translation comes about, token by token."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import intervene
from transformer.options import SearchOptions
from transformer.translator import Hypothesis, Translator
from ui import endpoints, messages, theme
from ui.kit import QUICKLY, alerts
from ui.services import Services
from ui.translate import answers, decoding_figures
from ui.translate.forcing import Forcing
from ui.translate.languages import model_for
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, View
from ui.translate.words import number_choices, plain
from ui.translate.work import check_size

WHOLE_CACHE = -1  # the choice "sizes only"
INTO_VIEW = "() => document.getElementById('branch-card')?.scrollIntoView({block: 'nearest', behavior: 'smooth'})"


@dataclass
class Trail:
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


def identity(current: CurrentTranslation) -> tuple | None:
    """What tells the output that is shown from any other; None without one, or if it was copied without the model."""
    if current.translation is None:
        return None
    sentence = current.entry
    return (
        (current.model, *map(tuple, (sentence.source_ids, sentence.ids[current.hypothesis]))) if sentence.ids else None
    )


def follow(translator: Translator, current: CurrentTranslation, beam: int, alpha: float) -> Trail:
    """Follow the output that is shown, and search again with a trace. Raises ValueError for a copied sentence."""
    sentence, ids = current.entry_and_ids()
    complete = len(ids) < translator.longest(sentence.source_ids)
    names = sentence.stand_ins
    decoding = intervene.follow(translator, sentence.source_ids, ids, complete, stand_ins=names)
    search = intervene.decode_from(
        translator, sentence.source_ids, (), SearchOptions(int(beam), float(alpha)), stand_ins=names
    )
    return Trail((identity(current), beam, alpha), current.model, int(beam), float(alpha), decoding, search)


def own_hypothesis(translator: Translator, trail: Trail) -> Hypothesis:
    """The output that is followed."""
    decoding = trail.decoding
    length = intervene.length_penalty(len(decoding.labels), trail.alpha)
    text = intervene.text_of(translator, decoding.ids, decoding.stand_ins)
    pieces = translator.labels(decoding.ids, decoding.stand_ins)
    return Hypothesis(text, pieces, decoding.logprob / length, decoding.logprob)


def path_to(trail: Trail, node: int) -> list[int]:
    """The tokens from the start of the output to one node of the search's tree. Raises ValueError if there is none."""
    tree = trail.search.tree
    if not 0 < node < len(tree) or tree[node].state == "finished":
        raise ValueError("No translation goes on from there; select another branch.")
    ids = []
    while node > 0:
        ids.append(tree[node].token)
        node = tree[node].parent
    return [*trail.search.prefix.ids, *reversed(ids)]


def draw_branch(translator: Translator, trail: Trail, continuation: intervene.Continuation, how: str) -> str:
    """What a changed beginning led to, beside the output that is followed."""
    before = own_hypothesis(translator, trail)
    words = intervene.word_difference(before.text, continuation.hypotheses[0].text)
    return decoding_figures.branch(before, continuation, words, how)


def cache_of(trail: Trail, layer: int, head: int) -> dict | None:
    """The cached numbers of one head, or None where only sizes are wanted."""
    return None if head == WHOLE_CACHE else decoding_figures.cache_strip(trail.decoding, layer, head)


def trace_text(services: Services, text: str, pair: str, beam: int, alpha: float, model: str | None, layer: int) -> Any:
    """The answer of `/trace`: everything this view shows, as plain values."""
    check_size(text, beam)
    model = model_for(services, pair, model)
    translator = services.translator(model)
    source, _, target = pair.partition("-")
    alpha = translator.length_penalty(source, target, None if alpha < 0 else float(alpha))
    translation = translator.translate(text, source=source, target=target, beam=int(beam), alpha=alpha)
    trail = follow(translator, CurrentTranslation(translation, model=model), beam, alpha)
    decoding, layers = trail.decoding, translator.model.config.decoder_layers
    if not 0 <= layer <= layers:
        raise ValueError(f"This model's decoder has layers 1 to {layers}; 0 leaves the attention out.")
    record = decoding_figures.steps(translator, decoding)
    steps = [
        {
            "input": record["read"][: step + 1],
            "token": record["chosen"][step],
            "logprob": record["logprobs"][step],
            "rank": record["ranks"][step],
            "entropy": record["entropy"][step],
            "top": [{"token": piece, "probability": p} for piece, p, _, _ in record["top"][step]],
            "cache_bytes": sum(size.bytes for size in decoding.cache_size(step)),
        }
        for step in range(len(record["chosen"]))
    ]
    if layer:
        for step, row in enumerate(steps):
            row["decoder"] = decoding.decoder[layer - 1, :, step, : step + 1].tolist()
            row["cross"] = decoding.cross[layer - 1, :, step].tolist()
    tree = decoding_figures.tree(translator, trail.search, trail.beam, trail.alpha)
    nodes = zip(tree["parent"], tree["step"], tree["token"], tree["logprob"], tree["state"])
    names = ("parent", "step", "token", "logprob", "state")
    return {
        "translation": own_hypothesis(translator, trail).text,
        "source": record["source"],
        "steps": steps,
        "tree": [dict(zip(names, node)) for node in nodes],
        "finished": [
            {"text": hypothesis, "logprob": logprob, "tokens": length, "score": candidate.score}
            for (hypothesis, logprob, length, _), candidate in zip(tree["ended"], trail.search.endings)
        ],
    }


# -- the view ---------------------------------------------------------------------------------------------------------


class DecodingView(View):
    """One output token by token with its cache, and the search that found it."""

    name = "decoding"
    title = "Word by word"

    def build(self) -> None:
        """Makes the components."""
        self.trail = gr.State(None, time_to_live=STATE_SECONDS)
        gr.Markdown(theme.text("translate/decoding"), elem_classes="section")
        self.note = gr.HTML(elem_id="decoding-note")
        with gr.Column(elem_id="decoding-body") as self.body:
            with gr.Row(elem_classes="attention-controls"):
                self.layer = theme.component(gr.Dropdown, "decoding-layer")
                self.cache_layer = theme.component(gr.Dropdown, "cache-layer")
                self.cache_head = theme.component(
                    gr.Dropdown, "cache-head", [("Sizes only", WHOLE_CACHE)], value=WHOLE_CACHE
                )
            self.steps = theme.script_component(
                "translate/decoding.js", "decode-view", "decoding-steps", attention=None
            )
            self.cache = theme.script_component("translate/cache_values.js", "cache-values", "cache-values")
            self.forcing = Forcing(self.tab, self.services)
            self.tree = theme.script_component("translate/beam_tree.js", "beam", "beam-tree", "card")
            with gr.Column(visible=False, elem_classes="card", elem_id="branch-card") as self.branch_card:
                self.branch = gr.HTML(elem_id="branch")
                with gr.Row():
                    self.adopt = theme.component(gr.Button, "branch-adopt")
                    self.back = theme.component(gr.Button, "branch-back")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, look = self.tab, [self.layer, self.cache_layer, self.cache_head]
        settings = [tab.current, tab.settings.search, tab.settings.beam, tab.settings.alpha, *look]
        places = [self.trail, self.note, self.body, *look, self.steps, self.cache, self.branch_card, self.tree]
        places.append(self.forcing.result)
        self.forcing.wire()
        self.draw_with(
            [*settings, self.trail],
            places,
            concurrency_id="translate",
            show_progress="minimal",
            show_progress_on=self.steps,
        )
        self.layer.input(
            self.choose_layer,
            [self.trail, self.layer],
            [self.trail, self.steps],
            api_name="decoding_layer",
            **QUIETLY_ON_DEVICE,
        )
        gr.on(
            [self.cache_layer.input, self.cache_head.input],
            self.choose_cache,
            [self.trail, self.cache_layer, self.cache_head],
            self.cache,
            api_name="decoding_cache",
            **QUICKLY,
        )
        branch_places = [self.trail, self.branch, self.branch_card]
        for event, act, name, place in (
            (self.steps.branch, self.branch_off, "branch", self.steps),
            (self.tree.force, self.force, "force", self.tree),
        ):
            # A long sentence takes a while.
            options = {**ON_DEVICE, "show_progress": "minimal", "show_progress_on": place}
            event(act, self.trail, branch_places, api_name=f"decoding_{name}", **options).then(js=INTO_VIEW)
        self.save_with([self.tab.current, self.trail], self.write)
        self.adopt.click(self.adopt_branch, [self.trail, *look], places, api_name="decoding_adopt", **QUIETLY_ON_DEVICE)
        self.back.click(self.show, settings, places, api_name="decoding_back", **QUIETLY_ON_DEVICE)
        gr.api(self.trace, api_name="trace", concurrency_id="translate")

    def draw(self, trail: Trail, note: str, layer, cache_layer, cache_head) -> dict:
        """Everything but the tree."""
        translator = self.services.translator(trail.model)
        config = translator.model.config
        layers = config.decoder_layers
        # What the visitor looks at stays, as far as this model has it; the last layer comes first.
        layer = layers - 1 if layer is None else min(int(layer), layers - 1)
        cache_layer, cache_head = min(int(cache_layer or 0), layers - 1), min(int(cache_head), config.heads - 1)
        choices = number_choices(layers)
        heads = [("Sizes only", WHOLE_CACHE)] + number_choices(config.heads)
        # As text: the browser's side of Gradio watches and copies every list of a value, which takes seconds here.
        steps = json.dumps(decoding_figures.steps(translator, trail.decoding))
        weights = decoding_figures.layer_weights(trail.decoding, layer)
        return {
            self.trail: replace(trail, layer=layer),
            self.note: messages.status(note) if note else "",
            self.body: gr.update(visible=True),
            self.layer: gr.update(choices=choices, value=layer),
            self.cache_layer: gr.update(choices=choices, value=cache_layer),
            self.cache_head: gr.update(choices=heads, value=cache_head),
            self.steps: gr.update(value=steps, attention=weights),
            self.cache: cache_of(trail, cache_layer, cache_head),
            self.branch_card: gr.update(visible=False),
        }

    @alerts("note", hide="body branch_card", trail=None)
    def show(self, current: CurrentTranslation, search, beam, alpha, layer, cache_layer, cache_head, trail=None):
        """Follow the output that is shown."""
        if current.translation is None:
            return {self.trail: None, self.note: "", self.body: gr.update(visible=False)}
        beam = search_beam(search, beam)
        if trail is not None and trail.of == (identity(current), beam, alpha):
            return gr.skip()  # the visitor comes back: everything is as it was left
        translator = self.services.translator(current.model)
        fresh = follow(translator, current, beam, alpha)
        tree = decoding_figures.tree(translator, fresh.search, fresh.beam, fresh.alpha)
        updates = self.draw(fresh, "", layer, cache_layer, cache_head)
        return {**updates, self.tree: json.dumps(tree), self.forcing.result: ""}

    def choose_layer(self, trail, layer):
        """Another layer's attention."""
        # A dropdown says twice that it was used; the attention of a long sentence is a megabyte, so it is sent once.
        if trail is None or trail.layer == int(layer):
            return gr.skip()
        weights = decoding_figures.layer_weights(trail.decoding, int(layer))
        return {self.trail: replace(trail, layer=int(layer)), self.steps: gr.update(attention=weights)}

    def choose_cache(self, trail, layer, head):
        """Another head's cached numbers."""
        return gr.skip() if trail is None else cache_of(trail, int(layer), int(head))

    @alerts("branch", show="branch_card")
    def branch_off(self, trail, event: gr.EventData):
        """Another token at one step, on the cache of the tokens before it."""
        if trail is None:
            return gr.skip()
        translator = self.services.translator(trail.model)
        step, token = int(event.step), int(event.token)
        decoding = trail.decoding
        continuation = intervene.continue_from(
            translator, decoding, step, token, SearchOptions(trail.beam, trail.alpha)
        )
        usual, instead = translator.labels([decoding.labels[step], token], decoding.stand_ins)
        how = (
            f"“{plain(instead)}” instead of “{plain(usual)}” at step {step + 1}; "
            f"{continuation.cache_length} cached pieces were used again, the rest was searched anew."
        )
        return self._show_branch(trail, continuation, how)

    @alerts("branch", show="branch_card")
    def force(self, trail, event: gr.EventData):
        """A branch of the tree, alive or pruned, as the beginning."""
        if trail is None:
            return gr.skip()
        translator = self.services.translator(trail.model)
        ids = path_to(trail, int(event.node))
        decoding = trail.decoding
        options = SearchOptions(trail.beam, trail.alpha)
        continuation = intervene.decode_from(
            translator, decoding.source_ids, ids, options, stand_ins=decoding.stand_ins
        )
        beginning = intervene.text_of(translator, ids, decoding.stand_ins)
        return self._show_branch(trail, continuation, f"Begun with “{beginning}”, as that branch of the search does.")

    def _show_branch(self, trail: Trail, continuation: intervene.Continuation, how: str) -> dict:
        drawing = draw_branch(self.services.translator(trail.model), trail, continuation, how)
        return {
            self.trail: replace(trail, branch=continuation),
            self.branch: drawing,
            self.branch_card: gr.update(visible=True),
        }

    @alerts("note")
    def adopt_branch(self, trail, layer, cache_layer, cache_head):
        """Follow what the branch led to."""
        if trail is None or trail.branch is None:
            return gr.skip()
        best, before = trail.branch.candidates[0], trail.decoding
        translator = self.services.translator(trail.model)
        decoding = intervene.follow(translator, before.source_ids, best.ids, best.finished, stand_ins=before.stand_ins)
        note = f"These are the steps of “{trail.branch.hypotheses[0].text}”."
        trail = replace(trail, decoding=decoding, branch=None)
        return self.draw(trail, note, layer, cache_layer, cache_head)

    def write(self, folder: Path, current: CurrentTranslation, trail: Trail | None) -> list[Path]:
        """Every step of the output that is followed, and the search, as files."""
        if trail is None:
            raise ValueError("There are no steps to save; translate a sentence with words.")
        translator = self.services.translator(trail.model)
        record = decoding_figures.steps(translator, trail.decoding)
        tree = decoding_figures.tree(translator, trail.search, trail.beam, trail.alpha)
        count = min(len(row) for row in record["top"])
        head = ["step", "chosen", "log p", "rank", "entropy"]
        head += [f"{name} {place + 1}" for place in range(count) for name in ("token", "probability")]
        figures = zip(record["chosen"], record["logprobs"], record["ranks"], record["entropy"])
        rows = [
            [step + 1, *numbers, *(part for option in record["top"][step][:count] for part in option[:2])]
            for step, numbers in enumerate(figures)
        ]
        answer = answers.Answer("word-by-word", "Every step of the decoding", head, rows, {**record, "search": tree})
        return answers.save(answer, current.caption, answers.table(answer), folder)

    @endpoints.endpoint
    def trace(
        self, text: str, pair: str = "en-de", beam: int = 4, alpha: float = -1.0, model: str = "", layer: int = 0
    ) -> dict[str, Any]:
        """Translate one sentence and return every step of its decoding and the search as a tree.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            alpha: length penalty, 0 to 2; below 0 the one that suits the model in these languages
            model: key of a model, empty for the page's default
            layer: decoder layer whose attention is returned with every step, from 1; 0 leaves it out

        Returns:
            translation: the text; source: its tokens; steps: for every step the input so far, the chosen token, its
            log-probability and rank, the entropy (nats), the likeliest tokens and the size of the key/value cache, and
            with a layer the weights of each head; tree: the nodes of the search with the number of their parent, step,
            token, log-probability so far and state (beam, finished, pruned); finished: every hypothesis that ended
        """
        return trace_text(self.services, text, pair, beam, alpha, model, int(layer))
