"""Decoding, changed decodings and their differences as values that the browser draws; see `ui.figures`."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from transformer.insight import intervene
from transformer.insight.intervene import Continuation, Decoding, Outcome
from transformer.translator import Hypothesis, Translator
from ui import figures

MAX_HYPOTHESES = 100  # hypotheses that travel to the page; a search of 200 steps may end some hundreds


def steps(translator: Translator, decoding: Decoding) -> dict[str, Any]:
    """All steps of one output but their attention, for `decoding.js`: tokens, probabilities, cache, mask."""
    config, labels = translator.model.config, decoding.labels

    def pieces(ids):
        return translator.labels(ids, decoding.stand_ins)

    forbidden_ids = translator.forbidden_ids()
    size, memory = decoding.cache_size(0)[0], decoding.memory_size()[0]
    return {
        "source": pieces(decoding.source_ids),
        "read": pieces(decoding.inputs),
        "chosen": pieces(labels),
        "logprobs": decoding.logprobs.tolist(),
        "entropy": decoding.entropy.tolist(),
        "ranks": decoding.ranks,
        "top": [
            [
                [piece, probability, token, token not in forbidden_ids]
                for (token, probability), piece in zip(row, pieces([token for token, _ in row]))
            ]
            for row in decoding.top
        ],
        "layers": config.decoder_layers,
        "key": [size.key[0], size.key[2]],
        "value": [size.value[0], size.value[2]],
        "bytes": size.bytes,  # of one token in one layer
        "memory": memory.bytes,  # of the source in one layer
        "mask": ["".join("1" if visible else "0" for visible in row) for row in decoding.mask],
    }


def layer_weights(decoding: Decoding, layer: int) -> dict[str, Any]:
    """The attention of every head of one decoder layer at every step, as exact float32.

    decoder: per head the rows t = 0, 1, ... with t + 1 weights each; cross: (h, T, S).
    """
    weights = decoding.decoder[layer]
    rows, columns = np.tril_indices(weights.shape[-1])
    return {
        "layer": layer,
        "heads": weights.shape[0],
        "decoder": figures.floats(weights[:, rows, columns]),
        "cross": figures.floats(decoding.cross[layer]),
    }


def cache_strip(decoding: Decoding, layer: int, head: int) -> dict[str, Any]:
    """The cached keys and values of one head, (T, d) float32 each, with the largest magnitude of both."""
    key, value = (x[head] for x in decoding.cache(layer, len(decoding.labels) - 1))
    return {
        "layer": layer,
        "head": head,
        "key": figures.floats(key),
        "value": figures.floats(value),
        "d_k": key.shape[1],
        "d_v": value.shape[1],
        "most": float(max(np.abs(key).max(), np.abs(value).max())),
    }


def tree(translator: Translator, continuation: Continuation, beam: int, alpha: float) -> dict[str, Any]:
    """A search as a tree for `beam_tree.js`, and every hypothesis that ended, to be ranked by any alpha."""
    nodes, names = continuation.tree, continuation.stand_ins
    return {
        "parent": [node.parent for node in nodes],
        "step": [node.step for node in nodes],
        "token": translator.labels([node.token for node in nodes], names),
        "logprob": [node.logprob for node in nodes],
        "state": [node.state for node in nodes],
        "ended": [
            [intervene.text_of(translator, c.ids, names), c.logprob, len(c.ids) + c.finished, c.finished]
            for c in continuation.endings[:MAX_HYPOTHESES]
        ],
        "beam": beam,
        "alpha": alpha,
    }


def difference(words: Sequence[tuple[str, str]]) -> str:
    """HTML of a word difference: deletions with a minus and struck out, insertions with a plus; every word escaped."""
    marks = {
        "-": '<del class="word-gone"><span class="sign">−</span>{}</del>',
        "+": '<ins class="word-new"><span class="sign">+</span>{}</ins>',
        " ": "{}",
    }
    parts = " ".join(marks[sign].format(escape(word)) for sign, word in words)
    return f'<p class="word-difference" dir="auto">{parts}</p>'


def signed_number(number: float) -> str:
    """A change with its sign, three decimals."""
    return "0.000" if abs(number) < 0.0005 else f"{number:+.3f}".replace("-", "−")


def branch(before: Hypothesis, continuation: Continuation, words: Sequence[tuple[str, str]], how: str) -> str:
    """HTML of what a changed beginning led to. how: one sentence, escaped here."""
    best = continuation.hypotheses[0]
    rows = "".join(
        f'<tr><td>{rank}</td><td dir="auto">{escape(h.text)}</td><td>{h.logprob:.3f}</td><td>{h.score:.3f}</td></tr>'
        for rank, h in enumerate(continuation.hypotheses, 1)
    )
    return (
        f'<div class="outcome"><p class="outcome-how">{escape(how)}</p>{difference(words)}'
        f'<p class="outcome-change">log p {before.logprob:.3f} → {best.logprob:.3f} '
        f"<b>({signed_number(best.logprob - before.logprob)})</b></p>"
        '<table class="outcome-table"><thead><tr><th>#</th><th>translation</th><th>log p</th><th>score</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def outcome(result: Outcome, what: str) -> str:
    """HTML of a translation before and after an intervention. what: what was changed, escaped here."""
    same = result.before.text == result.after.text
    heading = "The translation stays the same." if same else "The translation changes:"
    return (
        f'<div class="outcome"><p class="outcome-how">{escape(what)}</p><p><b>{heading}</b></p>'
        f"{difference(result.difference)}"
        '<table class="outcome-table"><thead><tr><td></td><th>whole model</th><th>changed model</th><th>change</th>'
        "</tr></thead><tbody>"
        f'<tr><th scope="row">log p of the translation before</th><td>{result.before.logprob:.3f}</td>'
        f"<td>{result.before_logprob:.3f}</td><td><b>{signed_number(result.change)}</b></td></tr>"
        f'<tr><th scope="row">log p of the new translation</th><td>{result.whole:.3f}</td>'
        f"<td>{result.after.logprob:.3f}</td><td><b>{signed_number(result.after.logprob - result.whole)}</b></td></tr>"
        "</tbody></table></div>"
    )


def side_by_side(
    sides: Sequence[tuple[str, str, float, float, int, float]], words: Sequence[tuple[str, str]] | None
) -> str:
    """HTML of two translations. sides: (name, text, log-probability, score, tokens, seconds) of each; words: their
    difference, from the first to the second; None where the languages differ.
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td dir="auto">{escape(text)}</td><td>{logprob:.3f}</td>'
        f"<td>{score:.3f}</td><td>{tokens}</td><td>{seconds:.2f} s</td></tr>"
        for name, text, logprob, score, tokens, seconds in sides
    )
    if words is None:
        heading, change = "Two languages, so there are no words to compare; look at the maps below.", ""
    else:
        heading = "Both translations are the same." if sides[0][1] == sides[1][1] else "From A to B:"
        change = difference(words)
    return (
        f'<div class="outcome"><p><b>{heading}</b></p>{change}'
        '<div class="rank-scroll"><table class="outcome-table"><thead><tr><td></td><th>translation</th><th>log p</th>'
        f"<th>score</th><th>pieces</th><th>time</th></tr></thead><tbody>{rows}</tbody></table></div></div>"
    )
