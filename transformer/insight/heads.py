"""One head looked at closer: what it is in words, and the sentences on which it is that most."""

from collections.abc import Sequence

import numpy as np

from transformer.insight.interpret import alignment, attention_map, is_end
from transformer.translator import Attention

TRAITS = {  # what a head can be, in words
    "previous": "looks at the piece before",
    "following": "looks at the piece after",
    "end": "rests on start or end",
    "aligned": "looks at the aligned word",
}
MAX_SENTENCES = 5  # that are named


def trait_shares(attention: Attention, kind: str, layer: int, head: int) -> dict[str, float]:
    """How much of a head's attention fits each of `TRAITS` in one sentence, in [0, 1].

    Args:
        attention: of the sentence.
        kind: "encoder", "decoder" or "cross". Places before and after mean something in self-attention only, the
            aligned word in cross-attention only: what most heads of all layers together look at, ends left out.
        layer, head: counted from 0.

    Rows that have no such place (nothing is before the first token), and rows of start and end, do not count.
    Raises `ValueError` for a kind, layer or head that is not there.
    """
    view = attention_map(attention, kind, layer, head)
    weights, rows, columns = view.weights, view.rows, view.columns
    text = [place for place, token in enumerate(rows) if not is_end(token)]

    def mean(places: Sequence[tuple[int, int]]) -> float:
        return float(np.mean([weights[place] for place in places])) if places else 0.0

    ends = [column for column, token in enumerate(columns) if is_end(token)]
    shares = {"end": float(weights[text][:, ends].sum(-1).mean()) if text and ends else 0.0}
    if kind == "cross":
        word = alignment(attention.cross, columns=columns)
        return {**shares, "aligned": mean([(row, word[row]) for row in text])}
    shares["previous"] = mean([(row, row - 1) for row in text if row > 0])
    if kind == "encoder":  # a decoder sees nothing that follows
        shares["following"] = mean([(row, row + 1) for row in text if row + 1 < len(columns)])
    return shares


def typical_sentences(
    attentions: Sequence[Attention], kind: str, layer: int, head: int
) -> tuple[str, list[tuple[int, float]]]:
    """What a head is by its mean over some sentences, and the sentences on which it is that most.

    Args:
        attentions: one for each sentence, at least one.
        kind, layer, head: as in `trait_shares`.

    Returns the name of the trait in `TRAITS` and (number of the sentence, share in [0, 1]), the largest share first.
    Raises `ValueError` without sentences, and as `trait_shares` does.
    """
    if not attentions:
        raise ValueError("Give at least one sentence to look for this head in.")
    shares = [trait_shares(attention, kind, layer, head) for attention in attentions]
    trait = max(shares[0], key=lambda name: sum(one[name] for one in shares))
    order = sorted(range(len(shares)), key=lambda number: -shares[number][trait])
    return trait, [(number, shares[number][trait]) for number in order[:MAX_SENTENCES]]
