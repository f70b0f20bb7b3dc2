"""The One head view of the Translate tab: one query worked out step by step, and where the order comes from."""

from __future__ import annotations

from html import escape
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import interpret
from transformer.intervene import word_difference
from ui import decoding_figures, figures, messages, theme
from ui.attention import KIND_LABELS, head_title, layer_choices
from ui.services import Services
from ui.shown import Shown, on_view

WORDS = {
    True: "with positions",
    False: "without positions in the encoder",
}


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def tokens_of(attention: Any, kind: str) -> list[tuple[str, int]]:
    """(label, row) of the queries of one kind, numbered, because a token may come twice."""
    return [(f"{row + 1} · {token}", row) for row, token in enumerate(interpret.labels(attention, kind)[0])]


def draw_steps(
    services: Services, shown: Shown, kind: str, layer: int, head: int, row: int, scale: bool, mask: bool
) -> dict:
    """The six steps of one query, ready for the page."""
    steps = interpret.head_steps(
        services.translator(shown.model), shown.translation, kind, layer, head, shown.hypothesis, shown.sentence
    )
    one = interpret.query_steps(steps, row, scale, mask)
    title = f"{head_title(kind, layer, head)}, query {row + 1}: {steps.rows[row]}"
    return figures.head_steps(one, steps.rows[row], steps.columns, title)


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


# -- layout ---------------------------------------------------------------------------------------------------------


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    gr.Markdown(
        "One word asks, and this is how it gets its answer: its **query** is multiplied with every **key**; the "
        "products are divided by √d<sub>k</sub> and become weights by the softmax; the **values**, each times its "
        "weight, add up to the head’s output. All numbers are those of your sentence.",
        elem_classes="section",
    )
    view.note = gr.HTML(elem_id="one-head-note")
    with gr.Row(elem_classes="attention-controls"):
        view.kind = gr.Radio(KIND_LABELS, value="cross", label="Attention", scale=2, min_width=340, elem_id="one-kind")
        view.layer = gr.Dropdown([], label="Layer", scale=1, min_width=90, elem_id="one-layer")
        view.head = gr.Dropdown([], label="Head", scale=1, min_width=90, elem_id="one-head")
        view.query = gr.Dropdown([], label="Word that asks (query)", scale=2, min_width=170, elem_id="one-query")
        view.scale = gr.Checkbox(
            True, label="Divide by √d_k", info="Off: the softmax saturates.", min_width=150, elem_id="one-scale"
        )
        view.mask = gr.Checkbox(
            True, label="Mask", info="Off: a decoder looks ahead.", min_width=150, elem_id="one-mask"
        )
    view.steps = theme.drawn("one_head.js", "steps", "head-steps", "card heat-card")
    with gr.Accordion("Where does the order of the words come from?", open=False, elem_id="order"):
        gr.Markdown(
            "Attention itself does not know which word comes first. So a pattern of sines and cosines is added to each "
            "word’s embedding, another one at every position (section 3.5 of the paper).",
            elem_classes="hint",
        )
        view.positions = theme.drawn("matrix.js", "matrix", "positions", "card heat-card")
        gr.Markdown("Swap two words of your sentence, with these positions and without:", elem_classes="hint")
        with gr.Row():
            view.first = gr.Dropdown([], label="This word", min_width=140, elem_id="swap-first")
            view.second = gr.Dropdown([], label="and this one", min_width=140, elem_id="swap-second")
            view.swap = gr.Button("Swap and translate", size="sm", min_width=160, elem_id="swap-button")
        view.swapped = gr.HTML(elem_id="swapped")
    return view


# -- events ---------------------------------------------------------------------------------------------------------


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.one_head."""
    view = tab.one_head

    def steps(shown, kind, layer, head, row, scale, mask):
        if shown.attention is None:
            return gr.skip(), gr.skip()
        try:
            return draw_steps(services, shown, kind, layer, head, row, scale, mask), ""
        except Exception as error:
            return gr.skip(), messages.alert(messages.sentence(error))

    def refresh(shown, kind, layer, head, row, scale, mask):
        """The head and the query that are looked at in the Attention view, worked out."""
        if shown.attention is None:
            return nothing("No attention was paid to this sentence; translate one with words.")
        try:
            return everything(shown, kind, layer, head, row, scale, mask)
        except Exception as error:
            return nothing(messages.sentence(error))

    def nothing(sentence):
        return [gr.skip()] * 4 + [None, messages.alert(sentence)] + [gr.skip()] * 3 + [""]

    def everything(shown, kind, layer, head, row, scale, mask):
        layers, layer = layer_choices(kind, layer, shown.attention)
        heads = shown.attention.cross.shape[1]
        head = head if isinstance(head, int) and head < heads else 0
        queries = tokens_of(shown.attention, kind)
        row = row if row < len(queries) else 0
        drawn, note = steps(shown, kind, layer, head, row, scale, mask)
        translator = services.translator(shown.model)
        chosen = shown.translation.sentences[shown.sentence]
        groups = interpret.source_words(translator, chosen.source_ids)
        texts = [interpret.text_of(translator, group, chosen.stand_ins) for group in groups]
        words = [(f"{n + 1} · {text}", n) for n, text in enumerate(texts)]
        first, second = min(1, len(words) - 1), len(words) - 1
        return [
            kind,
            gr.update(choices=layers, value=layer),
            gr.update(choices=[(str(n + 1), n) for n in range(heads)], value=head),
            gr.update(choices=queries, value=row),
            drawn,
            note,
            draw_positions(services, shown),
            gr.update(choices=words, value=first),
            gr.update(choices=words, value=second),
            "",
        ]

    def choose_kind(shown, kind, layer, head, row, scale, mask):
        if shown.attention is None:
            return [gr.skip()] * 4
        layers, layer = layer_choices(kind, layer, shown.attention)
        queries = tokens_of(shown.attention, kind)
        row = row if row is not None and row < len(queries) else 0
        drawn = steps(shown, kind, layer, head, row, scale, mask)
        return gr.update(choices=layers, value=layer), gr.update(choices=queries, value=row), *drawn

    def swap(shown, first, second):
        if shown.attention is None:
            return ""
        try:
            found = interpret.swap_words(
                services.translator(shown.model), shown.translation, int(first), int(second), shown.sentence
            )
        except Exception as error:
            return messages.alert(messages.sentence(error))
        return swap_html(found)

    device = {"concurrency_id": "device", "api_visibility": "private", "show_progress": "hidden"}
    switches = [view.scale, view.mask]
    outputs = [view.kind, view.layer, view.head, view.query, view.steps, view.note, view.positions]
    outputs += [view.first, view.second, view.swapped]
    looked_at = [tab.shown, tab.attention.kind, tab.attention.layer, tab.attention.head, tab.query, *switches]
    on_view(tab, "one_head", refresh, looked_at, outputs, "one_head", concurrency_id="device")
    own = [tab.shown, view.kind, view.layer, view.head, view.query, *switches]
    chosen = [view.layer, view.query, view.steps, view.note]
    view.kind.input(choose_kind, own, chosen, api_name="one_kind", **device)
    for name in ("layer", "head", "query", "scale", "mask"):
        getattr(view, name).input(
            steps, own, [view.steps, view.note], api_name=f"one_{name}", trigger_mode="always_last", **device
        )
    view.swap.click(
        swap, [tab.shown, view.first, view.second], view.swapped, api_name="swap_words",
        concurrency_id="device", api_visibility="private",
    )
