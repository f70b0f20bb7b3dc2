"""The One head view of the Translate tab: one query worked out step by step, and where the order comes from."""

from html import escape
from pathlib import Path

import gradio as gr
import numpy as np

from transformer.insight import interpret
from transformer.insight.intervene import word_difference
from transformer.options import SearchOptions
from ui import figures, theme
from ui.figures import percent
from ui.kit import alerts
from ui.services import Services
from ui.translate import answers, decoding_figures
from ui.translate.attention import KIND_LABELS, layer_choices
from ui.translate.view import ON_DEVICE, QUIETLY_ON_DEVICE, CurrentTranslation, View
from ui.translate.words import head_title, number_choices, place_choices, plain, query_names

WORDS = {
    True: "with positions",
    False: "without positions in the encoder",
}


# -- the work behind the events, without Gradio ---------------------------------------------------------------------


def draw_steps(
    services: Services, current: CurrentTranslation, kind: str, layer: int, head: int, row: int, scale: bool, mask: bool
) -> tuple[dict, dict]:
    """The six steps of one query, and its products with every key, ready for the page."""
    steps = read_head(services, current, kind, layer, head)
    one = interpret.query_steps(steps, row, scale, mask)
    title = query_title(current, kind, layer, head, row)
    name = query_names(current.attention, kind)[row]
    return figures.head_steps(one, name, steps.columns, title), draw_product(steps, row, title)


def read_head(services: Services, current: CurrentTranslation, kind: str, layer: int, head: int) -> interpret.HeadSteps:
    """Queries, keys and values of one head for the sentence that is shown."""
    translator = services.translator(current.model)
    return interpret.head_steps(
        translator, current.translation, kind, layer, head, current.hypothesis, current.sentence
    )


def query_title(current: CurrentTranslation, kind: str, layer: int, head: int, row: int) -> str:
    """What is worked out: "Cross attention, layer 2, head 2, query 4: after Tier, choosing überquerte"."""
    return f"{head_title(kind, layer, head)}, query {row + 1}: {query_names(current.attention, kind)[row]}"


def draw_product(steps: interpret.HeadSteps, row: int, title: str) -> dict:
    """The query times every key, number by number, ready for the page: a row sums to q · k."""
    product = interpret.query_steps(steps, row).factors
    key, number = np.unravel_index(int(np.abs(product).argmax()), product.shape)
    says = f"Number {number + 1} of “{plain(steps.columns[key])}” counts most: {product[key, number]:+.2f} of q · k."
    return figures.matrix(product, f"{title}, times every key, number by number", "key", "number", says=says)


def draw_positions(services: Services, current: CurrentTranslation) -> dict:
    """The positional encodings up to the longer of the two sentences, at least 40 positions."""
    model = services.translator(current.model).model
    length = max(40, len(current.attention.source_tokens), len(current.attention.target_tokens))
    kind = model.config.positions
    names = {"sinusoidal": ("sine", "cosine"), "sinusoidal-halves": ("sines, then cosines",)}.get(kind, ("learned",))
    title = {
        "sinusoidal": "Positional encodings: sine in the even dimensions, cosine in the odd ones",
        "sinusoidal-halves": "Positional encodings: all sines, then all cosines",
    }.get(kind, "Learned positional encodings")
    numbers = interpret.positions(model, length)
    alike = numbers[1:] @ numbers[0] / np.linalg.norm(numbers[1:], axis=1) / np.linalg.norm(numbers[0])
    near, far = alike.argmax(), alike.argmin()
    says = f"Position 0 is most like position {near + 1} (cosine {alike[near]:.2f}), least like position {far + 1}"
    return figures.matrix(numbers, title, "position", "dimension", names, f"{says} ({alike[far]:.2f}).")


def swap_html(swap: interpret.Swap) -> str:
    """HTML of what swapping two words changed; every word is escaped."""
    lines = []
    for positions, name in WORDS.items():
        before, after = swap.translations[positions]
        same = "<small>the same</small>" if before == after else ""
        shift = swap.changes[positions]
        lines.append(
            f"<tr><th>{name}</th><td dir='auto'>{escape(before)}</td>"
            f"<td>{decoding_figures.difference(word_difference(before, after))}{same}</td>"
            f"<td>{percent(shift.mean(), 1)}</td></tr>"
        )
    shifts = sorted(zip(swap.changes[True], swap.words), key=lambda pair: -pair[0])
    words = ", ".join(f"{escape(word)} {percent(change)}" for change, word in shifts)
    return (
        f'<p class="swap-text" dir="auto">{escape(" ".join(swap.words))} → {escape(" ".join(swap.permutation))}</p>'
        '<div class="step-scroll"><table class="swap-table"><tr><th></th><th>before</th><th>after</th>'
        f"<th>encodings moved by</th></tr>{''.join(lines)}</table></div>"
        f'<p class="hint">How far each word’s encoding moved, relative to its length, with positions: {words}. Without '
        "positions the encoder gives the same vectors in another order, so it cannot know who did what to whom.</p>"
    )


# -- the view ---------------------------------------------------------------------------------------------------------


class OneHeadView(View):
    """One query of one head in six steps, and what the positions do."""

    name = "one_head"
    title = "One head"
    fields = {"step": "query"}

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("translate/one_head"), elem_classes="section")
        self.note = gr.HTML(elem_id="one-head-note")
        self._controls()
        self.steps = theme.script_component("translate/one_head.js", "steps", "head-steps", "card heat-card")
        with gr.Accordion("Which numbers make a score?", open=False, elem_id="neurons"):
            gr.Markdown(theme.text("translate/one_head.neurons"), elem_classes="hint")
            self.product = theme.heat_map("product")
        self._order()

    def _controls(self) -> None:
        with gr.Row(elem_classes="attention-controls"):
            self.kind = theme.component(gr.Radio, "one-kind", KIND_LABELS)
            self.layer = theme.component(gr.Dropdown, "one-layer")
            self.head = theme.component(gr.Dropdown, "one-head")
            self.query = theme.component(gr.Dropdown, "one-query")
            self.scale = theme.component(gr.Checkbox, "one-scale")
            self.mask = theme.component(gr.Checkbox, "one-mask")

    def _order(self) -> None:
        """Positions, and two words swapped with and without them."""
        with gr.Accordion("Where does the order of the words come from?", open=False, elem_id="order"):
            gr.Markdown(theme.text("translate/one_head.order"), elem_classes="hint")
            self.positions = theme.heat_map("positions")
            gr.Markdown("Swap two words of your sentence, with these positions and without:", elem_classes="hint")
            with gr.Row():
                self.first = theme.component(gr.Dropdown, "swap-first")
                self.second = theme.component(gr.Dropdown, "swap-second")
                self.swap = theme.component(gr.Button, "swap-button")
            self.swap_result = gr.HTML(elem_id="swapped")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, switches = self.tab, [self.scale, self.mask]
        pictures = [self.steps, self.product, self.note]
        outputs = [self.kind, self.layer, self.head, self.query, *pictures, self.positions]
        outputs += [self.first, self.second, self.swap_result]
        inputs = [tab.current, tab.attention.kind, tab.attention.layer, tab.attention.head, tab.query, *switches]
        self.draw_with(inputs, outputs, concurrency_id="translate")
        own = [tab.current, self.kind, self.layer, self.head, self.query, *switches]
        self.save_with(own[:-2], self.write)
        places = [self.layer, self.query, *pictures]
        self.kind.input(self.choose_kind, own, places, api_name="one_kind", **QUIETLY_ON_DEVICE)
        for name in ("layer", "head", "query", "scale", "mask"):
            getattr(self, name).input(
                self.draw,
                own,
                pictures,
                api_name=f"one_{name}",
                trigger_mode="always_last",
                **QUIETLY_ON_DEVICE,
            )
        self.swap.click(
            self.swap_words,
            [tab.current, self.first, self.second],
            self.swap_result,
            api_name="swap_words",
            **ON_DEVICE,
        )

    @alerts("note")
    def draw(self, current, kind, layer, head, row, scale, mask):
        """The six steps of what is chosen."""
        if current.attention is None:
            return gr.skip()
        steps, product = draw_steps(self.services, current, kind, layer, head, row, scale, mask)
        return {self.steps: steps, self.product: product, self.note: ""}

    def write(self, folder: Path, current: CurrentTranslation, kind, layer, head, row) -> list[Path]:
        """The query that is worked out, as files."""
        if current.attention is None:
            raise ValueError("No attention was paid to this sentence; translate one with words.")
        steps = read_head(self.services, current, kind, layer, head)
        answer = answers.neurons_answer(steps, row, query_title(current, kind, layer, head, row))
        return answers.save(answer, current.caption, answers.table(answer), folder)

    @alerts("note", steps=None, product=None, swap_result="")
    def show(self, current, kind, layer, head, row, scale, mask):
        """The head and the query that are looked at in the Attention view, worked out."""
        if current.attention is None:
            raise ValueError("No attention was paid to this sentence; translate one with words.")
        layers, layer = layer_choices(kind, layer, current.attention)
        heads = current.attention.cross.shape[1]
        head = head if isinstance(head, int) and head < heads else 0
        queries = place_choices(query_names(current.attention, kind))
        row = row if row < len(queries) else 0
        translator = self.services.translator(current.model)
        sentence = current.entry
        groups = interpret.source_words(translator, sentence.source_ids)
        words = place_choices(interpret.text_of(translator, group, sentence.stand_ins) for group in groups)
        return {
            self.kind: kind,
            self.layer: gr.update(choices=layers, value=layer),
            self.head: gr.update(choices=number_choices(heads), value=head),
            self.query: gr.update(choices=queries, value=row),
            **self.draw(current, kind, layer, head, row, scale, mask),
            self.positions: draw_positions(self.services, current),
            self.first: gr.update(choices=words, value=min(1, len(words) - 1)),
            self.second: gr.update(choices=words, value=len(words) - 1),
            self.swap_result: "",
        }

    def choose_kind(self, current, kind, layer, head, row, scale, mask):
        """Another kind of attention: its layers, its queries."""
        if current.attention is None:
            return gr.skip()
        layers, layer = layer_choices(kind, layer, current.attention)
        queries = place_choices(query_names(current.attention, kind))
        row = row if row is not None and row < len(queries) else 0
        return {
            self.layer: gr.update(choices=layers, value=layer),
            self.query: gr.update(choices=queries, value=row),
            **self.draw(current, kind, layer, head, row, scale, mask),
        }

    @alerts()
    def swap_words(self, current, first, second):
        """Two words of the sentence change places."""
        if current.attention is None:
            return ""
        translator = self.services.translator(current.model)
        options = SearchOptions(current.beam, current.alpha)
        swap = interpret.swap_words(translator, current.translation, int(first), int(second), current.sentence, options)
        return swap_html(swap)
