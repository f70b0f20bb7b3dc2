"""Teacher forcing against free generation: the loss of every token of a given translation, and of the model's own."""

from html import escape

import gradio as gr
import numpy as np

from transformer.insight import intervene
from transformer.insight.intervene import Decoding
from transformer.options import SearchOptions
from transformer.translator import Translator
from ui import theme
from ui.figures import percent
from ui.kit import alerts
from ui.services import Services
from ui.translate.view import ON_DEVICE, CurrentTranslation, Tab
from ui.translate.words import plain

MAX_CHARACTERS = 1000


def teacher_forcing(translator: Translator, current: CurrentTranslation, text: str) -> tuple[Decoding, Decoding]:
    """A given translation of the sentence that is shown, teacher-forced, and what greedy search writes by itself.

    text: the translation, empty for the one that is shown. Raises ValueError with one sentence for a text that is too
    long or has characters that the vocabulary lacks, and for a sentence that was copied without the model.
    """
    sentence, ids = current.entry_and_ids()
    names = sentence.stand_ins
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"The translation has {len(text):,} characters and {MAX_CHARACTERS:,} fit here; shorten it.")
    if text.strip():
        ids = intervene.prefix_ids(translator, text.strip(), names)
        most = translator.longest(sentence.source_ids)
        if len(ids) >= most:
            raise ValueError(
                f"That is {len(ids)} word pieces, and this model writes fewer than {most} here; shorten it."
            )
    reference = intervene.follow(translator, sentence.source_ids, ids, stand_ins=names)
    greedy = intervene.decode_from(
        translator, sentence.source_ids, (), SearchOptions(1, 0.0), stand_ins=names
    ).candidates[0]
    free = intervene.follow(translator, sentence.source_ids, greedy.ids, greedy.finished, stand_ins=names)
    return reference, free


def table(translator: Translator, reference: Decoding, free: Decoding) -> str:
    """HTML of both, token beside token, with each one's loss in nats."""
    rows = []
    mine, own = (translator.labels(one.labels, one.stand_ins) for one in (reference, free))
    likeliest = translator.labels([row[0][0] for row in reference.top], reference.stand_ins)
    most = float(max(-reference.logprobs.min(), -free.logprobs.min(), 1e-6))
    for step in range(max(len(mine), len(own))):
        cells = [f"<td>{step + 1}</td>"]
        if step < len(mine):
            agrees = reference.labels[step] == reference.top[step][0][0]
            instead = "the same" if agrees else f"{plain(likeliest[step])} ({percent(reference.top[step][0][1])})"
            cells += [_token(mine[step]), _loss(reference, step, most), f'<td dir="auto">{escape(instead)}</td>']
        else:
            cells.append("<td></td><td></td><td></td>")
        cells += [_token(own[step]), _loss(free, step, most)] if step < len(own) else ["<td></td><td></td>"]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="outcome"><p>{_summary("Teacher forcing", reference)} {_summary("Free generation", free)}</p>'
        '<div class="rank-scroll"><table class="outcome-table forcing"><thead><tr><th>#</th><th>your piece</th>'
        "<th>loss</th><th>it would have chosen</th><th>its own piece</th><th>loss</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def _token(piece: str) -> str:
    return f'<td dir="auto">{escape(plain(piece))}</td>'


def _loss(decoding: Decoding, step: int, most: float) -> str:
    loss = max(0.0, -float(decoding.logprobs[step]))
    return f'<td><span class="loss-bar" style="width: {60 * loss / most:.1f}px"></span> {loss:.3f}</td>'


def _summary(what: str, decoding: Decoding) -> str:
    mean = -float(decoding.logprobs.mean())
    return f"<b>{what}</b>: {mean:.3f} nats a piece, perplexity {np.exp(mean):.2f}."


class Forcing:
    """A fold of the view Word by word."""

    def __init__(self, tab: Tab, services: Services) -> None:
        self.tab, self.services = tab, services
        with gr.Accordion("A translation of yours: teacher forcing and loss per piece", open=False, elem_id="forcing"):
            gr.Markdown(theme.text("translate/forcing"), elem_classes="hint")
            with gr.Row(elem_classes="actions"):
                self.text = theme.component(gr.Textbox, "forcing-text", max_length=2 * MAX_CHARACTERS)
                self.button = theme.component(gr.Button, "forcing-button")
            self.result = gr.HTML(elem_id="forcing-result")

    def wire(self) -> None:
        """Connect the components with the handler below."""
        gr.on(
            [self.button.click, self.text.submit],
            self.run,
            [self.tab.current, self.text],
            self.result,
            api_name="forcing",
            show_progress_on=self.result,
            **ON_DEVICE,
        )

    @alerts()
    def run(self, current: CurrentTranslation, text: str) -> str:
        """Both as HTML, or one sentence that says why not."""
        if current.translation is None:
            raise ValueError("Translate a sentence first.")
        translator = self.services.translator(current.model)
        return table(translator, *teacher_forcing(translator, current, text or ""))
