"""A guided tour of the Translate tab in thirteen short stops, each about the sentence that is shown."""

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import gradio as gr
import numpy as np

from transformer.insight import interpret
from ui import figures, kit
from ui.figures import percent
from ui.kit import Tour, read_stops
from ui.translate.attention import layer_choices
from ui.translate.view import QUIETLY_ON_DEVICE, CurrentTranslation
from ui.translate.words import plain, query_names, tokens_html


@dataclass(frozen=True)
class Stop(kit.Stop):
    """One stop, and which map the page shows there.

    In `STOPS` texts and `lead` have gaps for the facts of `_facts`, place is a key of `_places`, and points is the name
    of a fact, the cell that is marked; `stops` fills them in.
    """

    view: str = "attention"
    part: str = ""  # of the view, if it has several
    kind: str = "cross"
    place: str = "first"
    look: str = "map"
    layer: int = 0
    head: int | str = "mean"
    query: int = 0
    points: str = ""


STOPS = read_stops("translate", Stop)


def _word(token: str) -> str:
    return f'<b translate="no">{escape(plain(token))}</b>'


def _strongest(attention: Any, kind: str, layer: int, head: int | str) -> tuple[str, str, float, tuple[int, int]]:
    """(query, key, weight, cell) of the strongest pair of words in a map, as the map itself says it."""
    part = interpret.attention_map(attention, kind, layer, head)
    peak = figures.reading(part.weights, part.rows, part.columns)
    asks = f"<b>{escape(query_names(attention, kind)[peak.row])}</b>"
    return asks, _word(part.columns[peak.column]), peak.weight, (peak.row, peak.column)


def _resting(attention: Any, layer: int, head: int) -> tuple[int, int]:
    """The cell of a cross-attention where a head rests most: the largest weight on start or end."""
    weights = attention.cross[layer, head]
    ends = np.array([interpret.is_end(token) for token in attention.source_tokens])
    row, column = np.unravel_index(int(np.where(ends, weights, -1.0).argmax()), weights.shape)
    return int(row), int(column)


def _best(figure: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(int(figure.argmax()), figure.shape)
    return int(layer), int(head)


def _places(encoder: interpret.HeadStatistics, cross: interpret.HeadStatistics) -> dict[str, tuple[int, int | str]]:
    """(layer, head) of the maps that the stops speak of, from 0; head is "mean" where all heads are shown together."""
    return {
        "first": (0, "mean"),
        "last": (len(cross.entropy) - 1, "mean"),
        "sharp": _best(encoder.confidence - encoder.ends),
        "resting": _best(cross.ends),
        "one": _best(cross.confidence - cross.ends),
    }


def _facts(
    current: CurrentTranslation, encoder: interpret.HeadStatistics, cross: interpret.HeadStatistics, places: dict
) -> dict[str, Any]:
    """What the texts say of this sentence, by the names of their gaps; row: the query that "One head" opens with."""
    attention = current.attention
    layers, heads = encoder.entropy.shape
    steps = len(attention.target_tokens)
    role = interpret.roles(encoder, "encoder")[places["sharp"]] or "spreads its attention in a pattern of its own"
    query, key, weight, tie = _strongest(attention, "encoder", 0, "mean")
    target, source, link_weight, pair = _strongest(attention, "cross", *places["last"])
    asker, answerer, share, one_cell = _strongest(attention, "cross", *places["one"])
    return {
        "pieces": tokens_html(attention.source_tokens[:24]),
        "source_count": len(attention.source_tokens),
        "layers": layers,
        "heads": heads,
        "decoder_layers": len(cross.entropy),
        "role": escape(role),
        "query": query,
        "key": key,
        "weight": weight,
        "target": target,
        "source": source,
        "aligned": link_weight,
        "asked": asker,
        "answered": answerer,
        "share": share,
        "row": one_cell[0],
        "answered_key": one_cell[1],
        "tie": tie,
        "pair": pair,
        "first_cell": (0, 0),
        "rest_cell": _resting(attention, *places["resting"]),
        "sharp_thumb": places["sharp"],
        "rests": percent(cross.ends[places["resting"]]),
        "first_entropy": float(cross.entropy[0].mean()),
        "last_entropy": float(cross.entropy[-1].mean()),
        "spread": math.log(len(attention.source_tokens)),
        "steps": steps,
        "probability": percent(math.exp(current.output.logprob / steps)),
        "start": escape(plain(attention.decoder_tokens[0])),
        "last_word": _word(attention.target_tokens[-1]),
        **{name: [number + 1 for number in places[name]] for name in ("sharp", "resting", "one")},
    }


def stops(current: CurrentTranslation) -> list[Stop]:
    """All stops for the sentence that is shown. Raises ValueError if it has no attention maps."""
    attention = current.attention
    if attention is None:
        raise ValueError("Translate a sentence with words first; the tour is about your own sentence.")
    encoder = interpret.statistics(attention.encoder, attention.source_tokens)
    cross = interpret.statistics(attention.cross, attention.source_tokens)
    places = _places(encoder, cross)
    facts = _facts(current, encoder, cross, places)
    result = []
    for stop in STOPS:
        layer, head = places[stop.place]
        query = facts["row"] if stop.view == "one_head" else 0
        result.append(
            replace(
                stop,
                text=stop.text.format_map(facts),
                lead=stop.lead.format_map(facts),
                cell=facts[stop.points] if stop.points else None,
                layer=layer,
                head=head,
                query=query,
            )
        )
    return result


class TranslateTour(Tour):
    """The tour's button in the line above the views, and its card below that line."""

    invitation = f"Take the tour: {len(STOPS)} stops"
    options = QUIETLY_ON_DEVICE

    @property
    def inputs(self) -> list:
        """The sentence that the tour speaks of."""
        return [self.tab.current]

    @property
    def places(self) -> list:
        """The controls of the map that a stop speaks of."""
        attention = self.tab.attention
        parts = [view.address["part"] for view in self.tab.looks if "part" in view.address]
        return [attention.kind, attention.layer, attention.head, attention.look, attention.ends, self.tab.query, *parts]

    def stops(self, current: CurrentTranslation) -> list[Stop]:
        """All stops."""
        return stops(current)

    def arrive(self, stop: Stop, current: CurrentTranslation) -> dict:
        """Shows the map that a stop speaks of."""
        attention = self.tab.attention
        layers, layer = layer_choices(stop.kind, stop.layer, current.attention)
        return {
            attention.kind: stop.kind,
            attention.layer: gr.update(choices=layers, value=layer),
            attention.head: stop.head,
            attention.look: stop.look,
            attention.ends: False,
            self.tab.query: stop.query,
            **{view.address["part"]: stop.part for view in self.tab.looks if stop.part and view.name == stop.view},
        }
