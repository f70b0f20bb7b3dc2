"""The Tree view of the Translate tab: what the parser wrote, drawn; and `/parse`."""

from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.options import DEFAULTS, SearchOptions
from transformer.parsing.linear import Phrase, linearise, phrases
from transformer.parsing.parser import ALPHA, DEFAULT_MODEL, PAPER_BEAM, SentenceParse, phrase_weights
from transformer.parsing.trees import indent_tree
from ui import endpoints, messages, theme
from ui.heat_map import font
from ui.services import Services, model_pairs
from ui.translate.view import CurrentTranslation, View

MISSING = (
    "The parser is not on this page: its weights, assets/models/parse, are not installed; train them with "
    "python -m transformer.train --preset parse."
)
OTHER = "This view draws what a parser writes: choose English → phrase structure tree under Languages, and translate."
SIZE, LEVEL, GAP, EDGE = 15, 46, 18, 12  # pixels: letters, between levels, between words, around everything
MAX_CHARACTERS = 2000


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def parser_key(services: Services, model: str | None) -> str:
    """Key of a parser: the given one, or the shipped one. Raises ValueError with one sentence if there is none."""
    if model:
        return model
    if DEFAULT_MODEL not in model_pairs():
        raise ValueError(MISSING)
    return DEFAULT_MODEL


def current_tree(current: CurrentTranslation) -> SentenceParse | None:
    """The sentence that is shown, if it is one with trees."""
    if current.translation is None:
        return None
    one = current.entry
    return one if isinstance(one, SentenceParse) else None


def _width(text: str) -> float:
    return font(SIZE).getlength(text)


def _columns(words: list[str], parts: list[Phrase]) -> list[tuple[float, float]]:
    """(left, right) of each word in pixels: as wide as it is, and as the labels above it alone need."""
    widths = [_width(word) for word in words]
    for phrase in parts:
        if phrase.end - phrase.start == 1:
            widths[phrase.start] = max(widths[phrase.start], _width(phrase.label))
    columns, left = [], float(EDGE)
    for width in widths:
        columns.append((left, left + width))
        left += width + GAP
    return columns


def tree_svg(sentence: SentenceParse, hypothesis: int = 0) -> str:
    """A drawing of one tree, the words on one line below it.

    Phrases are groups with data-row, their place in `phrases`, and words groups with the rows that follow; every text
    is escaped.
    """
    words, parts = sentence.words, phrases(linearise(sentence.trees[hypothesis]))
    columns = _columns(words, parts)
    bottom = EDGE + SIZE + LEVEL * (1 + max(phrase.depth for phrase in parts))
    width, height = columns[-1][1] + EDGE, bottom + EDGE

    def middle(phrase: Phrase) -> tuple[float, float]:
        return (columns[phrase.start][0] + columns[phrase.end - 1][1]) / 2, EDGE + SIZE + LEVEL * phrase.depth

    lines: list[str] = []
    groups: list[str] = []
    around: dict[int, tuple[float, float]] = {}  # the foot of the last phrase of each depth
    covers: dict[int, tuple[float, float]] = {}  # and of the smallest one that covers each word, as it comes last
    for row, phrase in enumerate(parts):
        x, y = middle(phrase)
        parent = around.get(phrase.depth - 1)
        if parent:
            lines.append(_line(parent, (x, y - SIZE)))
        around[phrase.depth] = (x, y + 5)
        for word in range(phrase.start, phrase.end):
            covers[word] = (x, y + 5)
        groups.append(_label("tree-phrase", row, x, y, phrase.label, "middle", "bold"))
    for word, (left, right) in enumerate(columns):
        x = (left + right) / 2
        # First to the level of its sisters, then straight down, where nothing else stands.
        above = covers[word]
        lines.append(_line(above, (x, above[1] + LEVEL - SIZE - 5), (x, bottom - SIZE)))
        groups.append(_label("tree-word", len(parts) + word, x, bottom, words[word], "middle", "normal"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Tree of the sentence" '
        f'font-family="DejaVu Sans, IBM Plex Sans, sans-serif" font-size="{SIZE}">'
        f'<g stroke="currentColor" stroke-opacity="0.45" fill="none">{"".join(lines)}</g>{"".join(groups)}</svg>'
    )


def _line(*points: tuple[float, float]) -> str:
    return f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'


def _label(kind: str, row: int, x: float, y: float, text: str, anchor: str, weight: str) -> str:
    wide = _width(text) + 8
    return (
        f'<g class="{kind}" translate="no" data-row="{row}">'
        f'<rect x="{x - wide / 2:.1f}" y="{y - SIZE:.1f}" width="{wide:.1f}" height="{SIZE + 6}" rx="4" fill="none"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="currentColor">{escape(text)}</text></g>'
    )


def drawing(current: CurrentTranslation) -> dict:
    """What the page's script needs: the picture, the words of every row, and what its writing looked at.

    Raises ValueError if no tree is shown.
    """
    sentence = current_tree(current)
    if sentence is None:
        raise ValueError("There is no tree to draw yet; parse a sentence first.")
    parts = phrases(linearise(sentence.trees[current.hypothesis]))
    spans = [[phrase.start, phrase.end] for phrase in parts]
    spans += [[word, word + 1] for word in range(len(sentence.words))]
    looks = (
        [] if current.attention is None else phrase_weights(current.attention, sentence, current.hypothesis).tolist()
    )
    labels = [phrase.label for phrase in parts] + sentence.words
    return {"svg": tree_svg(sentence, current.hypothesis), "spans": spans, "looks": looks, "labels": labels,
            "words": sentence.words}  # fmt: skip


def summary(sentence: SentenceParse) -> str:
    """One line on how the tree came about."""
    count = len(sentence.words)
    if not sentence.repairs:
        return f"{count} words; no step had to be repaired: the model's favourite could become a tree every time."
    steps = "one step" if sentence.repairs == 1 else f"{sentence.repairs} steps"
    return f"{count} words; {steps} had to be repaired, where the model's favourite could not have become a tree."


def save(current: CurrentTranslation, folder: Path) -> list[Path]:
    """The tree as SVG and in brackets. Raises ValueError if none is shown."""
    sentence = current_tree(current)
    if sentence is None:
        raise ValueError("There is no tree to save yet; parse a sentence first.")
    picture, brackets = folder / "tree.svg", folder / "tree.mrg"
    picture.write_text(tree_svg(sentence, current.hypothesis), encoding="utf-8")
    brackets.write_text(str(sentence.trees[current.hypothesis]) + "\n", encoding="utf-8")
    return [picture, brackets]


def parse_text(services: Services, text: str, beam: int, alpha: float, model: str = "") -> list[dict[str, Any]]:
    """What `/parse` returns of each sentence. Raises ValueError with one sentence for whatever cannot be parsed."""
    if len(text or "") > MAX_CHARACTERS:
        raise ValueError(
            f"The text has {len(text):,} characters and {MAX_CHARACTERS:,} are parsed at once; shorten it."
        )
    if not 1 <= int(beam) <= PAPER_BEAM:
        raise ValueError(f"The beam has to be from 1 to {PAPER_BEAM}, the paper's; got {beam}.")
    parser = services.parser(parser_key(services, model))
    return [
        {
            "words": sentence.words,
            "tree": str(sentence.trees[0]),
            "phrases": [
                {"label": one.label, "start": one.start, "end": one.end, "depth": one.depth}
                for one in phrases(linearise(sentence.trees[0]))
            ],
            "logprob": float(sentence.hypotheses[0].logprob),
            "score": float(sentence.hypotheses[0].score),
            "repairs": sentence.repairs,
        }
        for sentence in parser.parse(text, SearchOptions(int(beam), float(alpha)))
    ]


# -- the view ---------------------------------------------------------------------------------------------------------


class TreeView(View):
    """The tree of the sentence that is shown."""

    name = "tree"
    title = "Tree"
    in_sight = False  # until a parser has written something

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("translate/tree"), elem_classes="section")
        self.note = gr.HTML(elem_id="tree-note")
        with gr.Column(visible=False) as self.results:
            self.tree = theme.script_component("translate/parse_tree.js", "parse-tree", "parse-tree", "card")
            self.brackets = theme.component(gr.Textbox, "tree-brackets")

    def wire(self) -> None:
        """Connect the components with the handlers below, and publish `/parse`."""
        self.draw_with([self.tab.current], [self.note, self.results, self.tree, self.brackets])
        self.save_with([self.tab.current], lambda folder, current: save(current, folder))
        gr.api(self.parse, api_name="parse", concurrency_id="translate")

    def show(self, current):
        """Draw the tree, or say why there is none."""
        sentence = current_tree(current)
        if sentence is None:
            says = OTHER if DEFAULT_MODEL in model_pairs() else MISSING
            return {self.note: messages.status(says), self.results: gr.update(visible=False)}
        return {
            self.note: messages.status(summary(sentence)),
            self.results: gr.update(visible=True),
            self.tree: drawing(current),
            self.brackets: indent_tree(sentence.trees[current.hypothesis], 80),
        }

    @endpoints.endpoint
    def parse(self, text: str, beam: int = DEFAULTS.beam, alpha: float = ALPHA, model: str = "") -> dict[str, Any]:
        """Parse English sentences into constituency trees.

        Args:
            text: English text
            beam: hypotheses kept at each step, 1 to 21; 21 is the paper's
            alpha: length penalty, 0.3 in the paper
            model: a parser of the page's list of models, by its key; empty for the shipped one

        Returns:
            sentences: of each its words, its tree in brackets, its phrases (label, first word, word after the last,
            depth), log-probability, score, and at how many steps the model's favourite could not have become a tree
        """
        return {"sentences": parse_text(self.services, text, beam, alpha, model)}
