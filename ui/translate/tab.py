"""The Translate tab: text in, translation out, and below it the views of what happened inside."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import gradio as gr

from transformer.insight import intervene
from transformer.options import SearchOptions
from transformer.parsing.parser import DEFAULT_MODEL as DEFAULT_PARSER
from transformer.parsing.parser import PAIR as PARSED
from transformer.text.languages import language_name
from ui import kit, messages, theme
from ui.kit import QUICKLY, QUIETLY, Views, alerts
from ui.services import model_pairs
from ui.translate import opening, visit, words
from ui.translate.api import Api
from ui.translate.attention import COMBINATIONS, AttentionView
from ui.translate.decoding import DecodingView, search_beam
from ui.translate.languages import better_pair, pair_label
from ui.translate.layers import LayersView
from ui.translate.limits import Limits
from ui.translate.one_head import OneHeadView
from ui.translate.parse import TreeView, current_tree
from ui.translate.save import SaveButton
from ui.translate.settings import Settings, search_in_words
from ui.translate.through import ThroughView
from ui.translate.tour import TranslateTour
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, View
from ui.translate.what_if import WhatIfView
from ui.translate.work import (
    MAX_CHARACTERS,
    first_pieces,
    hypothesis_rows,
    sampling_options,
    translate_in_parts,
    whole_text,
    with_continuation,
    word_partners,
)

WORDS = '<p class="hint">Point at a word for its partner; click it for another one.</p>'
EXAMPLE_NOTE = "A stored example with its maps: write a sentence of your own, or choose another one."


VIEWS: tuple[type[View], ...] = (
    AttentionView,
    ThroughView,
    OneHeadView,
    DecodingView,
    LayersView,
    WhatIfView,
    TreeView,
)


class TranslateTab(kit.View):
    """The two boxes, the settings and the views below them."""

    name = "translate"
    title = "Translate"

    def build(self) -> None:
        """Makes the components, and the views below a translation."""
        services = self.services
        self.current = gr.State(CurrentTranslation(), time_to_live=STATE_SECONDS)
        self.query = gr.State(0)  # row of the query that was picked last
        self.better = gr.State("")  # the pair that the text seems to want
        self.visit = visit.carrier()
        self.waits = gr.State(False)  # whether the page has opened with a text that waits for its translation
        self.settings = Settings(services)
        with gr.Row(elem_classes="actions"):
            self._actions()
        with gr.Row(equal_height=True, elem_classes="translator"):
            self._boxes()
        self.words = theme.script_component("translate/boxes.js", "boxes", "words", choices=None)
        with gr.Row(elem_classes="folds"):
            self._folds()
        with gr.Column(visible=False, elem_id="attention") as self.results:
            self._results()

    def _actions(self) -> None:
        self.settings.languages()
        self.run = theme.component(gr.Button, "translate-button")
        self.cancel = theme.component(gr.Button, "translate-cancel", visible=False)
        self.turn = theme.component(gr.Button, "better-pair", visible=False)
        self.status = gr.HTML(elem_id="translate-status", scale=4, min_width=200)
        self.link = theme.component(gr.Button, "copy-link")

    def _boxes(self) -> None:
        with gr.Column(min_width=300):
            self.source = theme.component(gr.Textbox, "source-text", opening.TEXT)
            self.count = gr.HTML(
                None,
                html_template='<span class="count"></span>',
                js_on_load=theme.script("translate/count.js"),
                most=MAX_CHARACTERS,
                elem_id="character-count",
            )
        with gr.Column(min_width=300):
            self.target = theme.component(gr.Textbox, "target-text")
            gr.HTML(WORDS, elem_id="words-hint")

    def _folds(self) -> None:
        """Everything that folds away once there is a translation."""
        with gr.Accordion("Examples", open=False, elem_id="examples-fold") as self.examples_fold:
            source = gr.Textbox(visible=False)
            self.examples = gr.Dataset(
                components=[source],
                samples=[[one] for one in opening.EXAMPLES],
                type="index",
                elem_id="translate-examples",
                elem_classes="notranslate",
            )
        with gr.Accordion("Other translations it found", open=False, elem_id="hypotheses-fold") as self.hypotheses_fold:
            self.table = theme.component(gr.Dataframe, "n-best")
        with gr.Accordion("Model and search", open=False, elem_id="search-settings"):
            self.settings.model_and_search()
        self.limits = Limits(self.services)

    def _results(self) -> None:
        with gr.Row(elem_id="now-row"):
            self.now = gr.HTML(elem_id="now", scale=4, min_width=200)
            self.sentence = theme.component(gr.Dropdown, "sentence", visible=False)
            self.save = SaveButton()
            self.save.build_button()
            self.tour = TranslateTour(self)
            self.tour.build_start()
        self.save.build_files()
        self.tour.build_card()
        self.views = Views(VIEWS, self, self.services, "views")

    @property
    def attention(self) -> AttentionView:
        """The view whose controls say which map is looked at, everywhere below the translation."""
        return self.views[AttentionView]

    # -- wiring ----------------------------------------------------------------------------------------------------

    def wire(self) -> None:
        """Connects the components with the handlers below, and publishes the endpoints."""
        Api(self.services).publish()  # first, and so on the API's page
        self.views.draw_always("tour", self.tour.show, [self.tour.at, self.current], [self.tour.card])
        self.views.transients = [self.save.files, self.save.status]
        self.views.wire()
        self.save.wire(self.views)
        self.tour.wire(draws=True)
        self.settings.wire()
        self.limits.wire(self.settings.model, self.settings.pair)
        places = [self.current, self.attention.note, self.words, self.now, self.views[TreeView].item]
        places += [self.views.tabs, self.views.open]
        self.attention_places = list(dict.fromkeys([*places, *self.views.outputs]))
        self.translation_events: list = []  # the events that translate, which "Cancel" ends
        self._wire_arrival()
        self._wire_translation()
        self._wire_choices()
        visit.remember(self)

    def _wire_arrival(self) -> None:
        page: gr.Blocks = self.tab
        settings, attention = self.settings, self.attention
        places = [self.source, self.target, self.status, self.results, self.table, self.views.tabs]
        places += [settings.pair, settings.model, settings.alpha, attention.kind, attention.layer, attention.head]
        places = list(dict.fromkeys([*places, *self.attention_places, *self.lead_outputs]))
        inputs = [self.visit, *self.views.inputs]
        event = page.load(self.arrive, inputs, places, js=visit.RECALL, api_name="arrive", **QUICKLY)
        # The opening is there without a model; what a link or a visit before brought is translated anew, and only that
        # waits in the queue. The browser hears that a State has changed from events on a queue alone: this one has no
        # bound.
        question = [self.current, self.source, settings.pair, settings.model]
        event.success(self.is_stale, question, self.waits, api_name="arrived", concurrency_limit=None, **QUIETLY)
        self._then_translate(self.waits.change, "arrival", self.translate_arrival)
        page.load(self.warm, None, None, api_name="models", **QUICKLY)  # nobody who comes waits in the queue

    def _wire_translation(self) -> None:
        run = gr.on(
            [self.run.click, self.source.submit],
            self.translate,
            [self.source, *self.settings.values],
            self._translation_outputs,
            api_name="translate_page",
            show_progress_on=self.target,
            **ON_DEVICE,
        )
        self.translation_events.append(run)
        self._then_attend(run, "page")
        settings, pair = self.settings, [self.settings.pair, self.settings.model]
        for event, act, inputs, outputs, name in (
            (self.examples.click, self.take_example, [self.examples], [self.source], "take_example"),
            (settings.pair.input, self.choose_pair, pair, [settings.model, settings.alpha, self.status], "choose_pair"),
            (settings.model.input, self.choose_model, pair, [*pair, settings.alpha, self.status], "choose_model"),
            (settings.swap.click, self.swap, [*pair, self.source, self.target], self._turn_outputs, "swap_languages"),
            (self.turn.click, self.take_better, [self.better, settings.model], self._turn_outputs, "take_better_pair"),
        ):
            # Nobody's translation waits for a download.
            quietly = QUIETLY if event is settings.model.input else QUIETLY_ON_DEVICE
            step = event(act, inputs, outputs, api_name=name, **quietly)
            languages = event not in (self.examples.click, settings.model.input)
            self._then_translate(step.success, name, partial(self.translate_again, languages))
        self.cancel.click(
            self.cancel_translation,
            None,
            [self.cancel, self.status],
            cancels=self.translation_events,
            api_name="cancel_translation",
            **QUICKLY,
        )
        forget = "said => said.includes('role=\"alert\"') ? '' : said"  # what was wrong with a text before
        self.source.input(None, self.status, self.status, js=forget, api_name="forget_error", **QUICKLY)

    @property
    def _translation_outputs(self) -> list:
        """Outputs of `translate`."""
        boxes = [self.target, self.status, self.current, self.results, self.table, self.sentence]
        return [*boxes, self.turn, self.better, self.examples_fold, self.hypotheses_fold, self.cancel, self.query]

    @property
    def _turn_outputs(self) -> list:
        """Outputs of the event that swaps the languages."""
        settings = self.settings
        return [settings.pair, settings.model, settings.alpha, self.source, self.target, self.status, self.turn]

    def _wire_choices(self) -> None:
        """Another hypothesis, another sentence, another word."""
        boxes = [self.current, self.target]
        event = self.table.select(self.choose_hypothesis, self.current, boxes, api_name="choose_hypothesis", **QUICKLY)
        self._then_attend(event, "hypothesis")
        sentence = [self.current, self.sentence]
        event = self.sentence.input(
            self.choose_sentence, sentence, [*boxes, self.table], api_name="choose_sentence", **QUICKLY
        )
        self._then_attend(event, "sentence")
        search = [self.current, self.settings.search, self.settings.beam, self.settings.alpha]
        self.words.word(self.alternatives, self.current, self.words, api_name="alternatives", **QUIETLY_ON_DEVICE)
        outputs = [*boxes, self.table, self.words, self.status]
        step = self.words.take(self.take_alternative, search, outputs, api_name="take_alternative", **QUIETLY_ON_DEVICE)
        self._then_attend(step, "alternative")

    def _then_translate(self, listen: Callable, name: str, act: Callable) -> None:
        """Translate what an event has put into the boxes, if there is anything.

        listen: method of the event or of a component that takes a handler; act: the handler.
        """
        inputs = [self.current, self.source, *self.settings.values]
        event = listen(
            act,
            inputs,
            self._translation_outputs,
            api_name=f"translate_{name}",
            show_progress_on=self.target,
            **ON_DEVICE,
        )
        self.translation_events.append(event)
        self._then_attend(event, f"after_{name}")

    def _then_attend(self, event: Any, name: str) -> None:
        inputs = [self.current, *self.views.inputs]
        event.success(self.attend, inputs, self.attention_places, api_name=f"attend_{name}", **QUIETLY_ON_DEVICE)

    # -- arriving --------------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Get the default model ready. Where that fails, the first translation says why."""
        try:
            self.services.translator()
        except Exception as error:
            messages.sentence(error)  # into the log, if it is none of ours

    def arrive(self, fields, *values):
        """What a link or this visitor's last visit asks for; otherwise the sentence that the page opens with."""
        goal = visit.read_visit(fields)
        if goal.view == TreeView.name and not goal.pair and DEFAULT_PARSER in model_pairs():
            goal = replace(goal, pair="-".join(PARSED), model=DEFAULT_PARSER)
        updates: dict[Any, Any] = {self.settings.model: gr.update(choices=self.services.translators())}
        try:
            updates.update(self.settings.offer_pairs(goal.model, goal.pair))
            if goal.model:
                updates[self.settings.model] = gr.update(choices=self.services.translators(), value=goal.model)
        except Exception as error:
            updates[self.status] = messages.failure(error)
        controls = self.attention
        if goal.text:  # otherwise the opening's text is there already, or what was typed over it meanwhile
            updates[self.source] = goal.text
        current = opening.load(self.services) if opening.is_opening(goal) else None
        updates.update(self.lead(goal, current))
        updates[controls.kind] = goal.kind
        # Choices are known to the server only once they were offered; the drawing offers all of them.
        if goal.layer is not None:
            updates[controls.layer] = gr.update(choices=[(str(goal.layer + 1), goal.layer)], value=goal.layer)
        if isinstance(goal.head, int):
            choice = (str(goal.head + 1), goal.head)
            updates[controls.head] = gr.update(choices=[*COMBINATIONS, choice], value=goal.head)
        else:
            updates[controls.head] = goal.head
        if current is not None:
            fresh: dict[Any, Any] = {controls.kind: goal.kind, controls.head: goal.head, controls.layer: goal.layer}
            fresh |= {self.views.open: updates.get(self.views.open, self.views[AttentionView].name)}
            updates.update(self._draw(current, values, fresh))
            updates[self.target] = current.translation.text
            updates[self.status] = messages.status(EXAMPLE_NOTE)
            updates[self.results] = gr.update(visible=True)
            updates[self.table] = hypothesis_rows(current.translation.sentences[0])
        return updates

    @property
    def looks(self) -> list[View]:
        """The views."""
        return [view for view in self.views if isinstance(view, View)]

    @property
    def lead_outputs(self) -> list:
        """What `lead` may update."""
        parts = [view.address["part"] for view in self.looks if "part" in view.address]
        return [self.views.tabs, self.views.open, self.query, *parts]

    def lead(self, goal: visit.Visit, current: CurrentTranslation | None) -> dict:
        """Updates that open the view that an address names, at its step and part.

        current: the translation, None where it is still to come. A tree opens where there is one, or will be.
        """
        view = next((one for one in self.looks if one.name == goal.view), None)
        if view is None or (isinstance(view, TreeView) and current is not None and current_tree(current) is None):
            return {}
        updates: dict[Any, Any] = {self.views.tabs: gr.update(selected=view.name), self.views.open: view.name}
        updates[self.query] = goal.step
        part = view.address.get("part")
        if isinstance(part, gr.Radio) and goal.part in [key for _, key in part.choices]:
            updates[part] = goal.part
        return updates

    # -- translating -----------------------------------------------------------------------------------------------

    @alerts("status", hide="cancel")
    def translate(self, text, pair, *settings):
        """Translate what stands in the box; of a long text part after part is shown."""
        beam, alpha, n_best, model, search, *draws, quick = settings
        model = self.settings.take_pair(pair, model).get(self.settings.model, model or None)
        start = time.perf_counter()
        how = beam, alpha, n_best, model, search, sampling_options(*draws), quick
        for translation in translate_in_parts(self.services, text, pair, *how):
            if not translation.source_text:
                note = messages.status(f"{len(translation.sentences)} sentences so far …")
                yield {self.target: translation.text, self.status: note, self.cancel: gr.update(visible=True)}
        seconds = time.perf_counter() - start
        tokens = len(translation.tokens)
        search_words = search_in_words(self.services, model, search, beam, alpha, *draws, quick)
        note = f"{search_words} · {tokens} piece{'s' * (tokens != 1)}"
        note += f" in {seconds:.2f} s ({tokens / max(seconds, 1e-9):.0f} pieces/s)"
        better = better_pair(self.services, text, pair, model)
        if better:
            note = f"This reads like {language_name(better.partition('-')[0])}. {note}"
        sentences = translation.sentences
        choices = [(f"{number + 1}: {sentence.source_text[:80]}", number) for number, sentence in enumerate(sentences)]
        yield {
            self.target: translation.text,
            self.status: messages.status(note) + messages.notes(translation.notes),
            self.cancel: gr.update(visible=False),
            self.query: 0,
            self.current: CurrentTranslation(
                translation, model=model, pair=pair, beam=1 if search == "greedy" else int(beam), alpha=float(alpha)
            ),
            self.results: gr.update(visible=True),
            self.table: hypothesis_rows(sentences[0]),
            self.sentence: gr.update(choices=choices, value=0, visible=len(sentences) > 1),
            self.examples_fold: gr.update(open=False),
            self.hypotheses_fold: gr.update(open=False),
            self.better: better or "",
            self.turn: gr.update(
                value=f"Read it as {language_name(better.partition('-')[0])}" if better else "", visible=bool(better)
            ),
        }

    def is_stale(self, current, text, pair, model):
        """Whether there is a text whose translation into these languages by this model is not what is shown."""
        if not text or not text.strip():
            return False
        same = current.translation is not None and current.translation.source_text == text and current.pair == pair
        default = self.services.translation_model
        return not same or (current.model or default) != (model or default)

    def translate_again(self, languages, current, text, pair, *settings):
        """As `translate`, but nothing happens without a text, or where its translation is there already.

        languages: the visitor has chosen languages; that these have brought another model is said.
        """
        if not self.is_stale(current, text, pair, settings[3]):
            yield gr.skip()
            return
        default = self.services.translation_model
        before, now = current.model or default, settings[3] or default
        for updates in self.translate(text, pair, *settings):
            if languages and current.translation is not None and before != now and self.current in updates:
                label = pair_label(*str(pair).split("-", 1))
                updates[self.status] = messages.status(f"{label} is another model’s: now {now}.") + updates[self.status]
            yield updates

    def translate_arrival(self, *values):
        """As `translate_again`, for the text that a link or a visit before has brought, and its step stays."""
        for updates in self.translate_again(False, *values):
            yield {one: update for one, update in updates.items() if one is not self.query}

    def cancel_translation(self):
        """What is translated by now stays."""
        return {self.cancel: gr.update(visible=False), self.status: messages.status("Cancelled; what is done stays.")}

    def _draw(self, current: CurrentTranslation, values: Any, fresh: dict | None = None) -> dict:
        """The boxes' words and the open view for a sentence whose attention is known."""
        note, links, drawing = "", [], {}
        fresh, tree = {**(fresh or {}), self.current: current}, current_tree(current) is not None
        view = fresh.get(self.views.open, values[0])
        fresh[self.views.open] = AttentionView.name if view == TreeView.name and not tree else view
        try:
            links = word_partners(self.services, current)
            drawing = self.views.draw(values, fresh=fresh)
        except Exception as error:
            note = messages.failure(error)
        value = {"text": current.translation.source_text, "translation": whole_text(current), "pair": current.pair}
        return {
            self.current: current,
            self.attention.note: note,
            self.words: gr.update(value={**value, "sentences": links}, choices=None),
            self.now: f'<div class="now"><span dir="auto">{escape(current.entry.source_text)}</span> → '
            f'<span dir="auto">{escape(current.output.text)}</span></div>',
            self.views[TreeView].item: gr.update(visible=tree),
            **({self.views.tabs: gr.update(selected=fresh[self.views.open])} if view == TreeView.name else {}),
            self.views.open: fresh[self.views.open],
            **drawing,
        }

    def attend(self, current, *values):
        """Recompute the attention of the sentence that is shown, and draw the view that is open."""
        if current.translation is None or current.attention is not None:
            return gr.skip()
        note = None
        try:
            attention = self.services.translator(current.model).attend(
                current.translation, hypothesis=current.hypothesis, sentence=current.sentence
            )
        except Exception as error:
            attention, note = None, messages.failure(error)
        updates = self._draw(replace(current, attention=attention, changes=None), values)
        return {**updates, self.attention.note: note or updates[self.attention.note]}

    # -- choosing --------------------------------------------------------------------------------------------------

    def take_example(self, number):
        """An example goes into the box."""
        return opening.EXAMPLES[int(number)]

    def choose_hypothesis(self, current, event: gr.SelectData):
        """Another translation of the sentence: it stands in the box, and its attention below."""
        current = replace(current, hypothesis=int(event.index[0]), attention=None)
        return {self.current: current, self.target: whole_text(current)}

    def choose_sentence(self, current, sentence):
        """Another sentence of the text."""
        if current.translation is None:
            return gr.skip()
        current = replace(current, sentence=int(sentence), hypothesis=0, attention=None)
        return {self.current: current, self.target: whole_text(current), self.table: hypothesis_rows(current.entry)}

    def alternatives(self, current, event: gr.EventData):
        """What else could stand at a word of the translation."""
        if current.attention is None or int(event.sentence) != current.sentence:
            return gr.skip()
        word = int(event.word)
        try:
            translator = self.services.translator(current.model)
            step = first_pieces(current.attention.target_tokens)[word]
            sentence, ids = current.entry_and_ids()
            decoding = intervene.follow(
                translator, sentence.source_ids, ids[: step + 1], finished=False, stand_ins=sentence.stand_ins
            )
            options = words.alternatives(translator, decoding, step)
        except Exception as error:
            return gr.update(choices={"word": word, "error": messages.sentence(error), "options": []})
        return gr.update(choices={"word": word, "sentence": current.sentence, "step": step, "options": options})

    @alerts("status")
    def take_alternative(self, current, search, beam, alpha, event: gr.EventData):
        """Another word at its place, and the model goes on from there."""
        if current.attention is None:
            return gr.skip()
        translator, step = self.services.translator(current.model), int(event.step)
        sentence, ids = current.entry_and_ids()
        begin = [*ids[:step], int(event.token)]
        continuation = intervene.decode_from(
            translator,
            sentence.source_ids,
            begin,
            SearchOptions(search_beam(search, beam), float(alpha)),
            stand_ins=sentence.stand_ins,
        )
        current = replace(with_continuation(current, continuation), attention=None)
        return {
            self.current: current,
            self.target: whole_text(current),
            self.table: hypothesis_rows(current.entry),
            self.words: gr.update(choices=None),
            self.status: messages.status("Your word, and what the model makes of it; all translations are below."),
        }

    @alerts("status")
    def choose_model(self, pair, model):
        """Fetch another model where it is not here yet, and offer its language pairs; the pair stays if it has it."""
        try:
            for line in self.services.fetch_translator(model):
                yield {self.status: messages.status(line)}
        except Exception as error:
            alert = messages.failure(error)
            yield {self.settings.model: self.services.translation_model, self.status: alert}
            return
        yield {**self.settings.offer_pairs(model, pair), self.status: ""}

    @alerts("status")
    def choose_pair(self, pair, model):
        """Languages that the chosen model does not have bring the model that has them."""
        updates = self.settings.take_pair(pair, model)
        return {self.status: "", **{one: value for one, value in updates.items() if one is not self.settings.pair}}

    @alerts("status")
    def swap(self, pair, model, source, target):
        """The other direction; what was translated becomes the text."""
        source_language, _, target_language = pair.partition("-")
        updates = self.settings.take_pair(f"{target_language}-{source_language}", model)
        return {**updates, self.source: target or source, self.target: "", self.status: ""}

    @alerts("status")
    def take_better(self, pair, model):
        """The languages that the text seems to be in."""
        updates = self.settings.take_pair(pair, model)
        return {**updates, self.turn: gr.update(visible=False), self.status: ""}
