"""The One head view of the Translate tab: one query worked out step by step, and where the order comes from."""

from __future__ import annotations

from html import escape
from typing import Any

import gradio as gr

from transformer.insight import interpret
from transformer.insight.intervene import word_difference
from ui import figures, messages, theme
from ui.services import Services
from ui.translate import decoding_figures
from ui.translate.attention import KIND_LABELS, head_title, layer_choices
from ui.translate.shown import ON_DEVICE, QUIETLY_ON_DEVICE, Shown, Tab, View
from ui.translate.words import query_names

WORDS = {
    True: "with positions",
    False: "without positions in the encoder",
}


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def tokens_of(attention: Any, kind: str) -> list[tuple[str, int]]:
    """(label, row) of the queries of one kind: what each of them does, numbered, because a token may come twice."""
    return [(f"{row + 1} · {name}", row) for row, name in enumerate(query_names(attention, kind))]


def draw_steps(
    services: Services, shown: Shown, kind: str, layer: int, head: int, row: int, scale: bool, mask: bool
) -> dict:
    """The six steps of one query, ready for the page."""
    steps = interpret.head_steps(
        services.translator(shown.model), shown.translation, kind, layer, head, shown.hypothesis, shown.sentence
    )
    one = interpret.query_steps(steps, row, scale, mask)
    name = query_names(shown.attention, kind)[row]
    title = f"{head_title(kind, layer, head)}, query {row + 1}: {name}"
    return figures.head_steps(one, name, steps.columns, title)


def draw_positions(services: Services, shown: Shown) -> dict:
    """The positional encodings up to the longer of the two sentences, at least 40 positions."""
    model = services.translator(shown.model).model
    length = max(40, len(shown.attention.source_tokens), len(shown.attention.target_tokens))
    kind = model.config.positions
    names = {"sinusoidal": ("sine", "cosine"), "sinusoidal-halves": ("sines, then cosines",)}.get(kind, ("learned",))
    title = {
        "sinusoidal": "Positional encodings: sine in the even dimensions, cosine in the odd ones",
        "sinusoidal-halves": "Positional encodings: all sines, then all cosines",
    }.get(kind, "Learned positional encodings")
    return figures.matrix(interpret.positions(model, length), title, "position", "dimension", names)


def swap_html(found: interpret.Swap) -> str:
    """HTML of what swapping two words changed; every word is escaped."""
    lines = []
    for positioned, name in WORDS.items():
        before, after = found.translations[positioned]
        same = "<small>the same</small>" if before == after else ""
        moved = found.changes[positioned]
        lines.append(
            f"<tr><th>{name}</th><td dir='auto'>{escape(before)}</td>"
            f"<td>{decoding_figures.difference(word_difference(before, after))}{same}</td>"
            f"<td>{moved.mean():.1%}</td></tr>"
        )
    changed = sorted(zip(found.changes[True], found.words), key=lambda pair: -pair[0])
    words = ", ".join(f"{escape(word)} {change:.0%}" for change, word in changed)
    return (
        f'<p class="swap-text" dir="auto">{escape(" ".join(found.words))} → {escape(" ".join(found.swapped))}</p>'
        '<div class="step-scroll"><table class="swap-table"><tr><th></th><th>before</th><th>after</th>'
        f"<th>encodings moved by</th></tr>{''.join(lines)}</table></div>"
        f'<p class="hint">How far each word’s encoding moved, relative to its length, with positions: {words}. Without '
        "positions the encoder gives the same vectors in another order, so it cannot know who did what to whom.</p>"
    )


# -- the view ---------------------------------------------------------------------------------------------------------


class OneHeadView(View):
    """One query of one head in six steps, and what the positions do."""

    name = "one_head"

    def __init__(self, tab: Tab, services: Services) -> None:
        super().__init__(tab, services)
        gr.Markdown(
            "One word asks, and this is how it gets its answer: its **query** is multiplied with every **key**; the "
            "products are divided by √d<sub>k</sub> and become weights by the softmax; the **values**, each times its "
            "weight, add up to the head’s output. All numbers are those of your sentence.",
            elem_classes="section",
        )
        self.note = gr.HTML(elem_id="one-head-note")
        self._controls()
        self.steps = theme.drawn("translate/one_head.js", "steps", "head-steps", "card heat-card")
        self._order()

    def _controls(self) -> None:
        with gr.Row(elem_classes="attention-controls"):
            self.kind = gr.Radio(
                KIND_LABELS, value="cross", label="Attention", scale=2, min_width=340, elem_id="one-kind"
            )
            self.layer = gr.Dropdown([], label="Layer", scale=1, min_width=90, elem_id="one-layer")
            self.head = gr.Dropdown([], label="Head", scale=1, min_width=90, elem_id="one-head")
            self.query = gr.Dropdown([], label="Word that asks (query)", scale=2, min_width=170, elem_id="one-query")
            self.scale = gr.Checkbox(
                True, label="Divide by √d_k", info="Off: the softmax saturates.", min_width=150, elem_id="one-scale"
            )
            self.mask = gr.Checkbox(
                True, label="Mask", info="Off: a decoder looks ahead.", min_width=150, elem_id="one-mask"
            )

    def _order(self) -> None:
        """Positions, and two words swapped with and without them."""
        with gr.Accordion("Where does the order of the words come from?", open=False, elem_id="order"):
            gr.Markdown(
                "Attention itself does not know which word comes first. So a pattern of sines and cosines is added to "
                "each word’s embedding, another one at every position (section 3.5 of the paper).",
                elem_classes="hint",
            )
            self.positions = theme.drawn("translate/matrix.js", "matrix", "positions", "card heat-card")
            gr.Markdown("Swap two words of your sentence, with these positions and without:", elem_classes="hint")
            with gr.Row():
                self.first = gr.Dropdown([], label="This word", min_width=140, elem_id="swap-first")
                self.second = gr.Dropdown([], label="and this one", min_width=140, elem_id="swap-second")
                self.swap = gr.Button("Swap and translate", size="sm", min_width=160, elem_id="swap-button")
            self.swapped = gr.HTML(elem_id="swapped")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, switches = self.tab, [self.scale, self.mask]
        outputs = [self.kind, self.layer, self.head, self.query, self.steps, self.note, self.positions]
        outputs += [self.first, self.second, self.swapped]
        looked_at = [tab.shown, tab.attention.kind, tab.attention.layer, tab.attention.head, tab.query, *switches]
        self.on_open(self.refresh, looked_at, outputs, concurrency_id="translate")
        own = [tab.shown, self.kind, self.layer, self.head, self.query, *switches]
        chosen = [self.layer, self.query, self.steps, self.note]
        self.kind.input(self.choose_kind, own, chosen, api_name="one_kind", **QUIETLY_ON_DEVICE)
        for name in ("layer", "head", "query", "scale", "mask"):
            getattr(self, name).input(
                self.draw,
                own,
                [self.steps, self.note],
                api_name=f"one_{name}",
                trigger_mode="always_last",
                **QUIETLY_ON_DEVICE,
            )
        self.swap.click(
            self.swap_words,
            [tab.shown, self.first, self.second],
            self.swapped,
            api_name="swap_words",
            **ON_DEVICE,
        )

    def draw(self, shown, kind, layer, head, row, scale, mask):
        """The six steps of what is chosen."""
        if shown.attention is None:
            return gr.skip()
        try:
            drawn = draw_steps(self.services, shown, kind, layer, head, row, scale, mask)
            return {self.steps: drawn, self.note: ""}
        except Exception as error:
            return {self.note: messages.alert(messages.sentence(error))}

    def refresh(self, shown, kind, layer, head, row, scale, mask):
        """The head and the query that are looked at in the Attention view, worked out."""
        if shown.attention is None:
            return self._nothing("No attention was paid to this sentence; translate one with words.")
        try:
            return self._everything(shown, kind, layer, head, row, scale, mask)
        except Exception as error:
            return self._nothing(messages.sentence(error))

    def _nothing(self, sentence: str) -> dict:
        return {self.steps: None, self.note: messages.alert(sentence), self.swapped: ""}

    def _everything(self, shown, kind, layer, head, row, scale, mask) -> dict:
        layers, layer = layer_choices(kind, layer, shown.attention)
        heads = shown.attention.cross.shape[1]
        head = head if isinstance(head, int) and head < heads else 0
        queries = tokens_of(shown.attention, kind)
        row = row if row < len(queries) else 0
        translator = self.services.translator(shown.model)
        chosen = shown.translation.sentences[shown.sentence]
        groups = interpret.source_words(translator, chosen.source_ids)
        texts = [interpret.text_of(translator, group, chosen.stand_ins) for group in groups]
        words = [(f"{n + 1} · {text}", n) for n, text in enumerate(texts)]
        return {
            self.kind: kind,
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=[(str(n + 1), n) for n in range(heads)], value=head),
            self.query: gr.update(choices=queries, value=row),
            **self.draw(shown, kind, layer, head, row, scale, mask),
            self.positions: draw_positions(self.services, shown),
            self.first: gr.update(choices=words, value=min(1, len(words) - 1)),
            self.second: gr.update(choices=words, value=len(words) - 1),
            self.swapped: "",
        }

    def choose_kind(self, shown, kind, layer, head, row, scale, mask):
        """Another kind of attention: its layers, its queries."""
        if shown.attention is None:
            return gr.skip()
        layers, layer = layer_choices(kind, layer, shown.attention)
        queries = tokens_of(shown.attention, kind)
        row = row if row is not None and row < len(queries) else 0
        return {
            self.layer: gr.update(choices=layers, value=layer),
            self.query: gr.update(choices=queries, value=row),
            **self.draw(shown, kind, layer, head, row, scale, mask),
        }

    def swap_words(self, shown, first, second):
        """Two words of the sentence change places."""
        if shown.attention is None:
            return ""
        try:
            translator = self.services.translator(shown.model)
            found = interpret.swap_words(
                translator, shown.translation, int(first), int(second), shown.sentence, shown.beam, shown.alpha
            )
        except Exception as error:
            return messages.alert(messages.sentence(error))
        return swap_html(found)
