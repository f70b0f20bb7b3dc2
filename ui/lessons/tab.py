"""The Lessons tab: three paths with their stops, the experiments, and the sheet to be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import gradio as gr

from transformer.insight import experiments, pencil, pronouns
from transformer.insight.intervene import word_difference
from transformer.options import SearchOptions
from ui import theme
from ui.kit import QUICKLY, View, Views, alerts, on_queue
from ui.lessons import paths
from ui.translate import decoding_figures, opening
from ui.translate.languages import pair_label
from ui.translate.tab import TranslateTab
from ui.translate.view import CurrentTranslation
from ui.translate.work import translate_text
from ui.tryon import tour
from ui.tryon.tab import TryOnTab

# -- what the views show, without Gradio ------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; cells are HTML."""
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="lesson-scroll"><table class="lesson-table"><tr>{head}</tr>{body}</table></div>'


def verbatim(text: str) -> str:
    """HTML of what a visitor or a model wrote, which is in no language of the page's."""
    return f'<span dir="auto">{escape(text)}</span>'


NO_PRONOUN = "No pronoun, or a noun whose gender cannot be told here."
MAX_WORDS = 12  # of a translation that may be endless nonsense


def clip(text: str) -> str:
    """A text's first words, with an ellipsis where more follow."""
    words = text.split()
    return text if len(words) <= MAX_WORDS else " ".join(words[:MAX_WORDS]) + " …"


def difference_html(before: str, after: str) -> str:
    """HTML of what differs between two translations, as far as they are shown, or that nothing does."""
    if before == after:
        return "<i>the same</i>"
    before, after = clip(before), clip(after)
    if before == after:
        return f"<i>the same up to word {MAX_WORDS}</i>"
    return decoding_figures.difference(word_difference(before, after))


def outcomes(results: Sequence[Any]) -> list[tuple[str, str]]:
    """HTML of the translations of an experiment, and of what became of the first one in each."""
    first, *others = (one.text for one in results)
    return [(verbatim(first), ""), *((verbatim(clip(text)), difference_html(first, text)) for text in others)]


def experiments_html(services: Any, current: CurrentTranslation) -> str:
    """HTML of all four experiments on the sentence that is shown. Raises ValueError without one."""
    if current.translation is None:
        raise ValueError("Translate a sentence first; the experiments are about your own sentence.")
    translator = services.translator(current.model)
    options = SearchOptions(beam=current.beam, alpha=current.alpha)
    alone = experiments.heads_alone(translator, current.translation, current.sentence, options)
    heads = [(escape(one.change), *cells) for one, cells in zip(alone, outcomes(alone))]
    read = experiments.encoders(translator, current.translation, current.sentence, options)
    encoders = [(escape(one.change), verbatim(one.source), *cells) for one, cells in zip(read, outcomes(read))]
    return (
        "<h3>One head against all</h3>"
        + table(("heads", "translation", "what became of it"), heads)
        + "<h3>Positions off, words permuted, queries and keys exchanged</h3>"
        + table(("the encoder", "words as it read them", "translation", "against the first row"), encoders)
    )


def trophy_html(services: Any) -> str:
    """HTML of the trophy's sentences in German and French, each with what its pronoun shows."""
    rows = []
    for pair in ("en-de", "en-fr"):
        for text, (thing, referent) in pronouns.SENTENCES.items():
            output = translate_text(services, text, pair, 4, None, 1).text
            pronoun = pronouns.last_pronoun(output, pair[-2:], thing)
            verdict = pronoun.verdict(referent) if pronoun else NO_PRONOUN
            rows.append((escape(pair_label(*pair.split("-"))), verbatim(text), verbatim(output), escape(verdict)))
    return table(("", "sentence", "translation", "what the pronoun shows"), rows)


def sheet() -> dict[str, Any]:
    """The pencil sheet for `static/lessons/pencil.js`."""
    return {
        "words": list(pencil.WORDS),
        "x": pencil.X,
        "steps": [
            {
                "name": step.name,
                "symbol": step.symbol,
                "rule": step.rule,
                "source": step.source,
                "values": [[round(float(value), 4) for value in row] for row in step.values],
                "columns": list(step.columns),
                "given": [{"name": name, "rows": rows} for name, rows in step.inputs],
            }
            for step in pencil.sheet()
        ],
    }


# -- the views --------------------------------------------------------------------------------------------------------


class PathView(View):
    """A path of `static/lessons`; a subclass says from what its gaps are filled."""

    tab: LessonsTab

    def build(self) -> None:
        """Makes the components."""
        self.note = gr.HTML(elem_id=f"lesson-{self.name}-note")
        self.html = gr.HTML(
            "",
            html_template="${value}",
            js_on_load=theme.script("lessons/lesson.js"),
            elem_id=f"lesson-{self.name}",
            name=self.name,
        )

    @property
    def source(self) -> list:
        """The components whose values `facts` is given."""
        return []

    def facts(self, *values: Any) -> dict[str, Any]:
        """What fills the gaps. Raises ValueError with one sentence where there is nothing to tell yet."""
        return {}

    def wire(self) -> None:
        """Connects the drawing."""
        self.draw_with(self.source, [self.html, self.note], **QUICKLY)

    @alerts("note", html="")
    def show(self, *values):
        """The path, in the words of what is on the page."""
        text = paths.html(paths.read_path(self.name), self.name, self.facts(*values))
        return {self.html: gr.update(value=text, name=self.name), self.note: ""}


class AttentionPath(PathView):
    """How a Transformer translates, with the visitor's sentence."""

    name = "attention"
    title = "Attention · 45 min"

    @property
    def source(self) -> list:
        """The translation that is shown."""
        return [self.tab.group[TranslateTab].current]

    def facts(self, current):
        """Of the sentence, or of the one that the page opens with, where a link has led here before it came."""
        return paths.of_sentence(current if current.translation else opening.load(self.services) or current)


class TryOnPath(PathView):
    """How a photograph is dressed, with the visitor's try-on."""

    name = "try-on"
    title = "Try-on · 45 min"

    @property
    def source(self) -> list:
        """The record on the page."""
        return [self.tab.group[TryOnTab].session]

    def facts(self, session):
        """Of the record, or of the stored example."""
        return paths.of_tryon(tour.facts(session))


class GanPath(PathView):
    """Two networks at play."""

    name = "gan"
    title = "GAN · 20 min"


class ExperimentsView(View):
    """Four experiments with the visitor's sentence, and the trophy that does not fit."""

    name = "experiments"
    title = "Experiments"
    tab: LessonsTab

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("lessons/experiments"), elem_classes="section")
        self.run = theme.component(gr.Button, "experiments-run")
        self.tables = gr.HTML(elem_id="experiments-found")
        gr.Markdown(theme.text("lessons/trophy"), elem_classes="section")
        self.translate = theme.component(gr.Button, "trophy-run")
        self.trophy = gr.HTML(elem_id="trophy-found")

    def wire(self) -> None:
        """Connects the buttons."""
        options = on_queue("translate")
        current = self.tab.group[TranslateTab].current
        self.run.click(self.experiment, current, self.tables, api_name="experiments", **options)
        self.translate.click(self.ask, None, self.trophy, api_name="trophy", **options)

    @alerts()
    def experiment(self, current):
        """All four, as tables."""
        return experiments_html(self.services, current)

    @alerts()
    def ask(self):
        """The trophy in both languages."""
        return trophy_html(self.services)


class PencilView(View):
    """One head and one block to be worked out by hand."""

    name = "pencil"
    title = "Pencil"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("lessons/pencil"), elem_classes="section")
        self.sheet = theme.script_component("lessons/pencil.js", "pencil", "pencil")

    def wire(self) -> None:
        """The sheet comes when it is first looked at."""
        self.draw_with([], [self.sheet], **QUICKLY)

    def show(self):
        """The sheet."""
        return {self.sheet: sheet()}


VIEWS: tuple[type[View], ...] = (AttentionPath, TryOnPath, GanPath, ExperimentsView, PencilView)


class LessonsTab(View):
    """The paths, the experiments and the sheet."""

    name = "lessons"
    title = "Lessons"

    def build(self) -> None:
        """Makes the components."""
        self.views = Views(VIEWS, self, self.services, elem_id="lesson-views", item_id=None, prefix="lesson_")

    def wire(self) -> None:
        """Connects the views; what is on the other tabs may have changed when this one is opened."""
        views = self.views
        views.wire()
        self.item.select(lambda *values: views.draw(values), views.inputs, views.outputs, api_name="lessons", **QUICKLY)
