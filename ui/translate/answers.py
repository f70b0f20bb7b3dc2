"""Files of what the layers know and of a training: CSV, JSON, a picture where there is a map, and a page of its own."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from transformer.insight import interpret
from transformer.insight.contributions import Contributions
from transformer.insight.heads import TRAITS
from transformer.insight.interpret import AttentionMap, HeadSteps
from transformer.insight.lenses import LogitLens
from transformer.series import Moment
from transformer.translator import Hypothesis
from ui import figures, theme
from ui.heat_map import HeatMap, digits
from ui.translate import exports
from ui.translate.words import plain


@dataclass
class Answer:
    """One answer as it is saved."""

    name: str  # of the files
    title: str
    head: list[str]  # of the table
    rows: list[list[Any]]
    value: dict[str, Any]  # all numbers by name
    map: AttentionMap | None = None
    axes: tuple[str, str] = ("query", "key")


def lens_answer(lens: LogitLens) -> Answer:
    """The logit lens: a row for every layer and step."""
    count = lens.top_probabilities.shape[-1]
    head = ["layer", "step", "chosen", "rank", "probability", "entropy"]
    head += [f"{name} {place + 1}" for place in range(count) for name in ("word", "probability")]
    rows = []
    for layer, step in np.ndindex(lens.ranks.shape):
        top = zip(lens.top_tokens[layer][step], lens.top_probabilities[layer, step])
        rows.append(
            [layer, step + 1, lens.tokens[step], lens.ranks[layer, step], lens.probabilities[layer, step]]
            + [lens.entropies[layer, step], *(part for pair in top for part in pair)]
        )
    value = {**asdict(lens), "settled": lens.settling_row}
    return Answer("logit-lens", "Logit lens: what each decoder layer would have said", head, rows, value)


def encoder_answer(hypotheses: Sequence[Hypothesis]) -> Answer:
    """DecoderLens: a row for every encoder layer."""
    rows: list[list[Any]] = [[layer, one.text, one.score] for layer, one in enumerate(hypotheses)]
    value = {"translations": [{"layer": layer, "text": text, "score": score} for layer, text, score in rows]}
    title = "DecoderLens: the translation from each encoder layer"
    return Answer("decoder-lens", title, ["layer", "translation", "score"], rows, value)


def contribution_columns(shares: Contributions) -> list[str]:
    """The tokens that were read: those of the source, then those already written, which begin with a pencil."""
    return [*shares.source_tokens, *(f"▁✎ {plain(token)}" for token in shares.prefix_tokens)]


def contributions_answer(shares: Contributions) -> Answer:
    """Source against prefix: a row for every token, with its shares of all that was read."""
    columns = contribution_columns(shares)
    both = np.concatenate((shares.source, shares.prefix), 1)
    rows = [
        [token, share, 1 - share, *weights] for token, share, weights in zip(shares.tokens, shares.source_share, both)
    ]
    attention_map = AttentionMap(both, shares.tokens, columns, list(range(len(both))), list(range(len(columns))))
    value = {**asdict(shares), "source_share": shares.source_share}
    head = ["chosen", "from the text", "from what is written", *columns]
    axes = ("chosen piece", "text, then what is written")
    return Answer("contributions", "Text against what is written (ALTI+)", head, rows, value, attention_map, axes)


def neurons_answer(steps: HeadSteps, row: int, title: str) -> Answer:
    """One query against every key: q . k, score, weight and the products, number by number."""
    one = interpret.query_steps(steps, row)
    head = ["key", "q · k", "score", "weight", *(f"product {place + 1}" for place in range(len(one.query)))]
    rows = [
        [key, dot, score, weight, *factors]
        for key, dot, score, weight, factors in zip(steps.columns, one.dots, one.scores, one.weights, one.factors)
    ]
    value = {name: getattr(one, name) for name in ("query", "key", "dots", "scores", "weights")}
    value |= {"asks": steps.rows[row], "keys": steps.columns, "product": one.factors}
    return Answer("neurons", title, head, rows, value)


def typical_sentences_answer(
    texts: Sequence[str], trait: str, ranking: Sequence[tuple[int, float]], title: str
) -> Answer:
    """The sentences on which a head is most itself."""
    rows: list[list[Any]] = [[texts[number], share] for number, share in ranking]
    title = f"{title} mostly {TRAITS[trait]}"
    value = {"trait": trait, "sentences": [{"text": text, "share": share} for text, share in rows]}
    return Answer("find-a-head", title, ["sentence", "share of its attention"], rows, value)


def learning_answer(moments: Sequence[Moment], place: int, layer: int, head: int) -> Answer:
    """One sentence at every update, and the map of the moment and head that are looked at."""
    rows: list[list[Any]] = [
        [one.step, one.translation.text, one.entropy("cross", layer, head), one.figures.get("bleu", "")]
        for one in moments
    ]
    names = ["update", "translation", "entropy", "BLEU"]
    attention, part = moments[place].attention, None
    if attention is not None:
        part = interpret.attention_map(attention, "cross", min(layer, len(attention.cross) - 1), head)
    title = f"Learning: cross attention at update {moments[place].step:,}, layer {layer + 1}, head {head + 1}"
    return Answer("learning", title, names, rows, {"moments": [dict(zip(names, row)) for row in rows]}, part)


def cell(value: Any) -> str:
    """A value in a CSV file: text that no spreadsheet takes for a formula, numbers with all their digits."""
    if isinstance(value, str):
        return exports.cell_text(value)
    return digits(value) if isinstance(value, float | np.floating) else str(value)


def csv_text(answer: Answer) -> str:
    """The table as CSV."""
    return exports.table_text([map(cell, row) for row in [answer.head, *answer.rows]])


def table(answer: Answer) -> str:
    """The table as HTML, every cell escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in answer.head)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell(value))}</td>' for value in row)}</tr>" for row in answer.rows)
    return f'<table class="swap-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def scroll_table(head: Sequence[str], rows: Sequence[str], label: str) -> str:
    """HTML of a table that scrolls inside itself. head: cells; rows: HTML of their cells; label: for screen readers."""
    cells = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="step-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="swap-table lens-table"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def html(answer: Answer, sentence: str, table_html: str, picture: str) -> str:
    """One page with the table as the view shows it, and the map; it opens without a connection.

    sentence: that it is about; table_html: HTML of the table; picture: SVG or nothing.
    """
    parts = {
        "TITLE": escape(answer.title),
        "SENTENCE": escape(sentence),
        "CSS": theme.css(),
        "TABLE": table_html,
        "PICTURE": picture,
    }
    return theme.fill_template(theme.read("translate/answer.html"), parts)


def save(answer: Answer, sentence: str, table_html: str, folder: Path) -> list[Path]:
    """Writes CSV, JSON and the page, and a map as SVG and PNG, into a folder; arguments as in `html`."""
    contents: dict[str, str | bytes] = {"csv": csv_text(answer)}
    record = {"title": answer.title, "sentence": sentence, **figures.finite(answer.value)}
    contents["json"] = json.dumps(record, ensure_ascii=False, allow_nan=False)
    picture = ""
    if answer.map is not None:
        drawing = HeatMap(answer.map, answer.title, *answer.axes, sentence=sentence)
        picture = drawing.svg()
        contents |= {"svg": picture, "png": drawing.png()}
    contents["html"] = html(answer, sentence, table_html, picture)
    return exports.write(folder / answer.name, contents)
