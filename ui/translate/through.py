"""The Through-the-model view of the Translate tab: one sentence on its way through every box of Figure 1."""

import base64
import json
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from transformer.insight import through
from transformer.insight.through import AttentionPass, FeedForwardPass, Norm, TokenEmbedding, Walk
from transformer.translator import Translator
from ui import figures, messages, theme
from ui.figures import percent
from ui.kit import QUICKLY, alerts
from ui.translate import answers
from ui.translate.attention import layer_choices
from ui.translate.view import QUIETLY_ON_DEVICE, STATE_SECONDS, CurrentTranslation, View
from ui.translate.words import number_choices, place_choices, plain, query_names

MAX_TOKENS = 12
# The boxes of Figure 1: title, one plain sentence, the view that shows more and its kind of attention.
BOXES = json.loads(theme.read("translate/figure1.json"))


# -- what the browser draws -----------------------------------------------------------------------------------------


def strip(
    name: str, symbol: str, numbers: np.ndarray, note: str = "", rows: Any = None, mark: int | None = None
) -> dict:
    """One vector, or several below each other, as coloured cells. numbers: (n,) or (R, n); rows: R labels; mark: the
    row that is followed. The numbers travel as float32, so what is read on hover is the library's own.
    """
    numbers = np.atleast_2d(np.asarray(numbers, dtype="<f4"))
    return {
        "name": name,
        "symbol": symbol,
        "note": note,
        "numbers": figures.floats(numbers),
        "count": numbers.shape[1],
        "rows": list(rows or [""] * numbers.shape[0]),
        "mark": mark,
    }


def bars(name: str, symbol: str, numbers: np.ndarray, labels: list[str], note: str = "") -> dict:
    """Shares in [0, 1] with a label each, as bars."""
    return {**strip(name, symbol, numbers, note), "labels": labels}


def embedding_part(token: str, place: int, vectors: TokenEmbedding) -> list[dict]:
    """Input or output embedding, and the position."""
    return [
        strip(f"Embedding of {token}", "E[token] · √d_model", vectors.embedding, "its row of the embedding matrix"),
        strip(f"Position {place + 1}", f"PE({place})", vectors.position, "sines and cosines (section 3.5)"),
        strip("Their sum, the first layer's input", "x", vectors.total),
    ]


def norm_part(step: Norm, what: str) -> list[dict]:
    """Add & Norm."""
    figures = f"mean {step.mean:.3f}, standard deviation {step.deviation:.3f}"
    return [
        strip("What came in (residual connection)", "x", step.x),
        strip(f"What {what} adds", "Sublayer(x)", step.branch),
        strip("Sum", "x + Sublayer(x)", step.total, figures),
        strip(
            "Normalised",
            "LayerNorm(x + Sublayer(x))",
            step.result,
            "minus mean, over deviation, times gain, plus bias",
        ),
    ]


def attention_part(step: AttentionPass, head: int, labels: list[str], asks: str, of: str) -> list[dict]:
    """Multi-head attention, one head in detail. asks: what the query does; of: where keys and values come from."""
    visible = np.isfinite(step.scores[head])
    count = int((~visible).sum())
    note = f"; {count} masked" if count else ""
    keys = [label for label, may in zip(labels, visible) if may]
    heads = [f"head {n + 1}" for n in range(len(step.heads))]
    return [
        strip(f"Query, {asks}", "x W_Q", step.query, "one for each head", heads, head),
        strip(f"Keys of {of}, head {head + 1}", "W_K", step.key[head], "", labels),
        bars(
            "How well query and keys agree, as weights",
            "softmax(q·k / √d_k)",
            step.weights[head][visible],
            keys,
            f"head {head + 1}{note}",
        ),
        strip(f"Values of {of}, head {head + 1}", "W_V", step.value[head], "", labels),
        strip("Weighted sums of the values", "head_i", step.heads, "one for each head", heads, head),
        strip("All heads side by side", "Concat(head_1, …, head_h)", step.concat),
        strip("Mixed by the output matrix", "Concat · W_O", step.output),
    ]


def feed_forward_part(step: FeedForwardPass, activation: str) -> list[dict]:
    """The feed-forward network."""
    name = {"relu": "max(0, ·)"}.get(activation, activation)
    share = float((step.active > 0).mean())
    return [
        strip("In", "x", step.norm.x),
        strip("Widened", "x W_1 + b_1", step.inner),
        strip("Negative numbers become 0", name, step.active, f"{percent(share)} are above 0")
        if activation == "relu"
        else strip("Activation", name, step.active),
        strip("Narrowed again", "· W_2 + b_2 (eq. 2)", step.output),
    ]


def parts(walk: Walk, head: int, tokens: dict[str, Any], activation: str) -> dict[str, dict]:
    """Every box of Figure 1 by its key: as in `BOXES`, and what is drawn.

    tokens: source and read (labels), place and step, asks_source and asks_target (what the two queries do).
    """
    source, read, place, step = (tokens[name] for name in ("source", "read", "place", "step"))
    asks, prefix = tokens["asks_target"], "the translation so far"
    rows = {
        "source": embedding_part(source[place], place, walk.source),
        "encoder_attention": attention_part(walk.encoder_attention, head, source, tokens["asks_source"], "the text"),
        "encoder_norm": norm_part(walk.encoder_attention.norm, "attention"),
        "encoder_feed_forward": feed_forward_part(walk.encoder_feed_forward, activation),
        "encoder_norm_2": norm_part(walk.encoder_feed_forward.norm, "the network"),
        "target": embedding_part(read[step], step, walk.target),
        "decoder_attention": attention_part(walk.decoder_attention, head, read, asks, prefix),
        "decoder_norm": norm_part(walk.decoder_attention.norm, "attention"),
        "cross_attention": attention_part(walk.cross_attention, head, source, asks, "the text"),
        "cross_norm": norm_part(walk.cross_attention.norm, "attention"),
        "decoder_feed_forward": feed_forward_part(walk.decoder_feed_forward, activation),
        "decoder_norm_2": norm_part(walk.decoder_feed_forward.norm, "the network"),
        "linear": [
            strip("Output of the last decoder layer", "x", walk.hidden),
            strip("Scores of the whole vocabulary", "x Eᵀ (logits)", walk.logits),
        ],
        "softmax": [],
    }
    pieces = len(walk.logits)
    return {key: {**box, "says": box["says"].format(pieces=pieces), "rows": rows[key]} for key, box in BOXES.items()}


def next_bars(translator: Translator, logits: np.ndarray, token: int, temperature: float = 1.0, top_k: int = 0) -> dict:
    """The likeliest next tokens under a temperature and top-k, for the page; token: the token that the search took."""
    likeliest = through.next_token(logits, temperature, top_k, MAX_TOKENS)
    return {
        "tokens": [plain(piece) for piece in translator.labels(likeliest.tokens, {})],
        "probabilities": likeliest.probabilities.tolist(),
        "chosen": likeliest.tokens.index(token) if token in likeliest.tokens else -1,
        "entropy": likeliest.entropy,
        "temperature": temperature,
        "top_k": top_k,
    }


# -- the view ---------------------------------------------------------------------------------------------------------


class ThroughView(View):
    """Figure 1 as a picture to click, and beside it the numbers of the box that was clicked."""

    name = "through"
    title = "Through the model"
    fields = {"step": "step"}

    def build(self) -> None:
        """Makes the components."""
        self.logits = gr.State(None, time_to_live=STATE_SECONDS)  # (model, logits, chosen token) of the step
        gr.Markdown(theme.text("translate/through"), elem_classes="section")
        self.note = gr.HTML(elem_id="through-note")
        with gr.Column(visible=False) as self.body:
            with gr.Row(elem_classes="attention-controls"):
                self.place = theme.component(gr.Dropdown, "through-place")
                self.step = theme.component(gr.Dropdown, "through-step")
                self.encoder_layer = theme.component(gr.Dropdown, "through-encoder")
                self.decoder_layer = theme.component(gr.Dropdown, "through-decoder")
                self.head = theme.component(gr.Dropdown, "through-head")
            self.figure = theme.script_component("translate/through.js", "through", "through", "card", bars=None)

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        tab, attention = self.tab, self.tab.attention
        controls = [self.place, self.step, self.encoder_layer, self.decoder_layer, self.head]
        outputs = [self.logits, self.note, self.body, *controls, self.figure]
        inputs = [tab.current, attention.kind, attention.layer, attention.head, tab.query]
        self.draw_with(inputs, outputs, concurrency_id="translate")
        gr.on(
            [one.input for one in controls],
            self.choose,
            [tab.current, *controls],
            [self.logits, self.note, self.figure],
            api_name="through_choose",
            trigger_mode="always_last",
            **QUIETLY_ON_DEVICE,
        )
        self.figure.draw(
            self.draw_next, self.logits, self.figure, api_name="through_next", trigger_mode="always_last", **QUICKLY
        )
        self.save_with([self.tab.current, *controls], self.write)
        # The picture is linked to the views that show more of a box.
        places = [self.group.tabs, self.group.open, attention.kind, attention.layer, attention.head, tab.query]
        self.group.redraw_on(
            self.figure.open,
            self.open_view,
            [tab.current, *controls],
            places,
            api_name="through_open",
            **QUIETLY_ON_DEVICE,
        )

    def show(self, current: CurrentTranslation, kind, layer, head, query):
        """The sentence that is shown, from its first piece to its first word; the head that is looked at elsewhere."""
        if current.attention is None:
            note = "" if current.translation is None else messages.alert("This sentence was copied, not translated.")
            return {self.note: note, self.body: gr.update(visible=False)}
        attention = current.attention
        names = query_names(attention, "cross")
        # Where nothing was picked yet, the second word: the first step has nothing to look back at.
        place = min(query if kind == "encoder" and query else 2, len(attention.source_tokens) - 1)
        step = min(query if kind != "encoder" and query else 1, len(names) - 1)
        head = head if isinstance(head, int) and head < attention.cross.shape[1] else 0
        encoder = layer_choices("encoder", layer if kind == "encoder" else None, attention)
        decoder = layer_choices("cross", layer if kind != "encoder" else None, attention)
        places, steps = place_choices(map(plain, attention.source_tokens)), place_choices(names)
        heads = number_choices(attention.cross.shape[1])
        return {
            self.body: gr.update(visible=True),
            self.place: gr.update(choices=places, value=place),
            self.step: gr.update(choices=steps, value=step),
            self.encoder_layer: gr.update(choices=encoder[0], value=encoder[1]),
            self.decoder_layer: gr.update(choices=decoder[0], value=decoder[1]),
            self.head: gr.update(choices=heads, value=head),
            **self.choose(current, place, step, encoder[1], decoder[1], head),
        }

    @alerts("note")
    def choose(self, current, place, step, encoder_layer, decoder_layer, head):
        """Another piece, step, layer or head."""
        if current.attention is None:
            return gr.skip()
        value, walk = self._read(current, place, step, encoder_layer, decoder_layer, head)
        translator = self.services.translator(current.model)
        ids = [*current.entry_and_ids()[1], translator.model.config.eos]
        return {
            self.logits: (current.model, walk.logits, ids[int(step)]),
            self.note: "",
            # As text: the browser's side of Gradio watches and copies every list of a value.
            self.figure: gr.update(value=json.dumps(value), bars=next_bars(translator, walk.logits, ids[int(step)])),
        }

    def _read(self, current: CurrentTranslation, *controls: Any) -> tuple[dict, Walk]:
        """All boxes with their numbers, as the page draws them. controls: place, step, both layers, head."""
        place, step, encoder_layer, decoder_layer, head = map(int, controls)
        translator = self.services.translator(current.model)
        where = (place, step, encoder_layer, decoder_layer, current.hypothesis, current.sentence)
        walk = through.walk(translator, current.translation, *where)
        attention, config = current.attention, translator.model.config
        tokens = {
            "source": [plain(token) for token in attention.source_tokens],
            "read": [plain(token) for token in attention.decoder_tokens],
            "place": place,
            "step": step,
            "asks_source": query_names(attention, "encoder")[place],
            "asks_target": query_names(attention, "cross")[step],
        }
        value = {
            "parts": parts(walk, head, tokens, config.activation),
            "tokens": tokens,
            "layers": [config.encoder_layers, config.decoder_layers],
            "at": [encoder_layer + 1, decoder_layer + 1],
        }
        return value, walk

    def write(self, folder: Path, current: CurrentTranslation, *controls: Any) -> list[Path]:
        """Every number of every box, as files."""
        if current.attention is None:
            raise ValueError("No attention was paid to this sentence; translate one with words.")
        value = self._read(current, *controls)[0]
        rows: list[list[Any]] = []
        for box in value["parts"].values():
            for vector in box["rows"]:
                numbers = np.frombuffer(base64.b64decode(vector["numbers"]), "<f4").reshape(-1, vector["count"])
                rows += [
                    [box["title"], vector["name"], vector["symbol"], label, *line]
                    for label, line in zip(vector["rows"], numbers)
                ]
        asks = value["tokens"]["asks_target"]
        answer = answers.Answer(
            "through-the-model",
            f"Figure 1 with the numbers of one step: {asks}",
            ["box", "vector", "symbol", "row", "numbers"],
            rows,
            {
                "tokens": value["tokens"],
                "vectors": [dict(zip(("box", "vector", "symbol", "row"), row)) | {"numbers": row[4:]} for row in rows],
            },
        )
        return answers.save(answer, current.caption, answers.table(answer), folder)

    def draw_next(self, state, event: gr.EventData):
        """The next token under another temperature or top-k."""
        if state is None:
            return gr.skip()
        model, logits, token = state
        temperature, top_k = min(max(float(event.temperature), 0.1), 3.0), min(max(int(event.top_k), 0), len(logits))
        return gr.update(bars=next_bars(self.services.translator(model), logits, token, temperature, top_k))

    def open_view(self, event: gr.EventData, current, place, step, encoder_layer, decoder_layer, head):
        """The view that shows more of a box, at the same layer, head and query."""
        if current.attention is None or str(event.view) not in self.group.items:
            return gr.skip()
        attention, kind, view = self.tab.attention, str(event.kind), str(event.view)
        updates: dict[Any, Any] = {self.group.tabs: gr.update(selected=view), self.group.open: view}
        if kind in ("encoder", "decoder", "cross"):
            layer = int(encoder_layer) if kind == "encoder" else int(decoder_layer)
            choices, layer = layer_choices(kind, layer, current.attention)
            updates[attention.kind] = kind
            updates[attention.layer] = gr.update(choices=choices, value=layer)
            updates[attention.head] = int(head)
            updates[self.tab.query] = int(place) if kind == "encoder" else int(step)
        return updates
