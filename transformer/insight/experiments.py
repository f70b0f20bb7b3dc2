"""Four experiments with a trained model and one sentence: one head against all, positions off, words permuted, and
queries exchanged with keys. Nothing is trained: the same weights, with one thing taken away or turned round.
"""

import random
from dataclasses import dataclass

import torch
from torch import nn

from transformer.insight.interpret import (
    every_head,
    permute_words,
    source_words,
    text_of,
    translate_both,
    without_positions,
)
from transformer.insight.intervene import Intervention, decode_from
from transformer.model import Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.translator import Translation, Translator

SEED = 1  # of the order of the permuted words


@dataclass(frozen=True)
class Reading:
    """One translation: what was changed, the words as the model read them, and what came of them."""

    change: str
    source: str
    text: str


def queries_for_keys(model: Transformer) -> Transformer:
    """The same network, but every self-attention of the encoder has W^Q and W^K exchanged.

    The first layer's matrix of scores is then the transpose of what it was: who asked is asked.
    """
    twin = model.twin()
    for layer in twin.encoder:
        block = layer.attention
        query, key, value = block.qkv.weight.split(block.widths)
        block.qkv.weight = nn.Parameter(torch.cat([key, query, value]), requires_grad=False)
        if block.qkv.bias is not None:
            query, key, value = block.qkv.bias.split(block.widths)
            block.qkv.bias = nn.Parameter(torch.cat([key, query, value]), requires_grad=False)
    return twin


def single_head(model: Transformer, head: int) -> Intervention:
    """Every head but this one (from 0) off, in each attention of the model."""
    return Intervention(off=frozenset(place for place in every_head(model.config) if place[2] != head))


def permutation(words: int, seed: int = SEED) -> list[int]:
    """The places 0 to words - 1 in an order drawn by the seed, never the order that they have (of two or more)."""
    order, draw = list(range(words)), random.Random(seed)
    while words > 1 and order == sorted(order):
        draw.shuffle(order)
    return order


@torch.inference_mode()
def heads_alone(
    translator: Translator, translation: Translation, sentence: int = 0, options: SearchOptions = DEFAULTS
) -> list[Reading]:
    """The sentence with all heads, then with each number of head alone. Raises `ValueError` for a copied sentence."""
    entry, _ = translation.sentence_and_ids(sentence)
    heads = translator.model.config.heads
    readings = []
    for head in (None, *range(heads)):
        change = f"all {heads} heads" if head is None else f"head {head + 1} alone"
        intervention = None if head is None else single_head(translator.model, head)
        continuation = decode_from(translator, entry.source_ids, (), options, intervention, entry.stand_ins)
        readings.append(Reading(change, entry.source_text, continuation.hypotheses[0].text))
    return readings


@torch.inference_mode()
def encoders(
    translator: Translator, translation: Translation, sentence: int = 0, options: SearchOptions = DEFAULTS
) -> list[Reading]:
    """The sentence as the encoder reads it, in its own order of words and in another one: as it is, without positions,
    and with queries and keys exchanged. Raises `ValueError` for a copied sentence.
    """
    (entry, _), model = translation.sentence_and_ids(sentence), translator.model
    groups = source_words(translator, entry.source_ids)
    orders = [list(range(len(groups))), permutation(len(groups))]
    src, _ = permute_words(translator, entry.source_ids, groups, orders)
    words = [text_of(translator, group, entry.stand_ins) for group in groups]
    sources = [" ".join(words[place] for place in order) for order in orders]
    readings = []
    for change, reader in (
        ("as it is", model),
        ("without positions", without_positions(model)),
        ("queries and keys exchanged", queries_for_keys(model)),
    ):
        outputs = translate_both(translator, reader, src, options)
        texts = [text_of(translator, ids, entry.stand_ins) for ids in outputs]
        readings += [Reading(change, source, text) for source, text in zip(sources, texts)]
    return readings
