"""What one can ask of attention: maps, rollout, statistics, ablation, alignment, the six steps of one head, and what
else than attention tells which source token mattered: gradients and occlusion.

Axes: L layers, h heads, T queries (rows), S keys (columns). Arrays are numpy, float32.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.attention import key_mask
from transformer.config import TransformerConfig
from transformer.data import Batch
from transformer.insight.trace import record, teacher_forced
from transformer.model import Gates, Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.search import TransformerDecoder
from transformer.tokenizer import is_language_token
from transformer.translator import Attention, Translation, Translator

KINDS = ("encoder", "decoder", "cross")  # source at source, target at earlier target, target at source
MEAN, MAX, ROLLOUT = "mean", "max", "rollout"  # instead of the number of a head
ENDS = ("<s>", "</s>", "<pad>")  # start, end and padding: where idle heads rest, as at a language token
FLOATS = 8_000_000  # most attention weights of one layer, or logits, in a batched pass; more rows are done in chunks


def rollout(weights: np.ndarray) -> np.ndarray:
    """Attention rollout (Abnar and Zuidema 2020): how much of each input reaches each position of the top layer.

    weights (L, h, T, T) of one self-attention stack. Each layer counts as half attention (mean over heads) and half
    residual connection; the layers are multiplied. Returns (T, T), rows sum to 1.
    """
    length = weights.shape[-1]
    through = np.eye(length, dtype=np.float32)
    for layer in weights.mean(1):
        through = (0.5 * layer + 0.5 * np.eye(length, dtype=np.float32)) @ through
    return through.astype(np.float32)


@dataclass
class AttentionMap:
    """One map with its labels. Rows are queries, columns are keys."""

    weights: np.ndarray  # (R, C) float32 in [0, 1]
    rows: list[str]  # R labels
    columns: list[str]  # C labels
    row_places: list[int]  # where each row stands among the map's queries before any were hidden
    column_places: list[int]  # and each column among its keys


def labels(attention: Attention, kind: str) -> tuple[list[str], list[str]]:
    """(rows, columns): the tokens of the queries and of the keys of one kind of attention.

    A decoder's row is labelled with the token that is chosen there; its keys are the tokens that were read so far.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no attention of kind {kind!r}; choose one of {', '.join(KINDS)}.")
    rows = attention.source_tokens if kind == "encoder" else attention.target_tokens
    columns = attention.decoder_tokens if kind == "decoder" else attention.source_tokens
    return list(rows), list(columns)


def is_end(token: str) -> bool:
    """True for what is no part of the text: start, end, padding, and the token that asks for a language."""
    return token in ENDS or is_language_token(token)


def hide_ends(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> tuple[np.ndarray, list[int], list[int]]:
    """Leaves out what `is_end` says, as queries and as keys, and renormalises every row over what is left.

    weights (..., R, C). Returns the smaller weights and the places of the rows and columns that stay. A row that looked
    at nothing else becomes zero. Raises `ValueError` if nothing would be left.
    """
    row_places = [place for place, token in enumerate(rows) if not is_end(token)]
    column_places = [place for place, token in enumerate(columns) if not is_end(token)]
    if not row_places or not column_places:
        raise ValueError("There is nothing here but start and end of the sentence; show them again.")
    part = weights[..., row_places, :][..., column_places]
    total = part.sum(-1, keepdims=True)
    return (part / np.where(total > 0, total, 1.0)).astype(np.float32), row_places, column_places


def attention_map(
    attention: Attention, kind: str, layer: int, head: int | str, without_ends: bool = False
) -> AttentionMap:
    """One map of an `Attention`. kind: one of `KINDS`; layer and head count from 0.

    head may also be MEAN or MAX over the heads of the layer, or ROLLOUT: all layers up to this one multiplied; for
    cross-attention its mean over heads times the rollout of the encoder, so that the columns are what was read rather
    than what the encoder made of it. Rows sum to 1, but for MAX, and but for rows left empty by `without_ends`, which
    leaves out start and end (`hide_ends`).

    Raises `ValueError` for a kind, layer or head that is not there.
    """
    rows, columns = labels(attention, kind)
    maps = getattr(attention, kind)
    by_name = head in (MEAN, MAX, ROLLOUT)
    if not 0 <= layer < maps.shape[0] or not (by_name or (isinstance(head, int) and 0 <= head < maps.shape[1])):
        raise ValueError(
            f"This model has layers 1 to {maps.shape[0]} and heads 1 to {maps.shape[1]}; "
            f"{MEAN}, {MAX} and {ROLLOUT} stand for all heads."
        )
    if head == MEAN:
        weights = maps[layer].mean(0)
    elif head == MAX:
        weights = maps[layer].max(0)
    elif head == ROLLOUT:
        weights = maps[layer].mean(0) @ rollout(attention.encoder) if kind == "cross" else rollout(maps[: layer + 1])
    else:
        weights = maps[layer, head]
    row_places, column_places = list(range(len(rows))), list(range(len(columns)))
    if without_ends:
        weights, row_places, column_places = hide_ends(weights, rows, columns)
    return AttentionMap(
        weights, [rows[i] for i in row_places], [columns[i] for i in column_places], row_places, column_places
    )


@dataclass
class HeadStatistics:
    """Figures of every head, each (L, h) and a mean over the rows."""

    entropy: np.ndarray  # nats; 0 looks at one token, log S at all alike
    confidence: np.ndarray  # largest weight of a row, in (0, 1]
    distance: np.ndarray  # |centre - column| weighed by attention, in tokens; the centre is the row's own or `centres`'
    previous: np.ndarray  # weight on the position before the centre
    same: np.ndarray  # weight on the centre
    following: np.ndarray  # weight on the position after
    ends: np.ndarray  # weight on what `is_end` says, where idle heads rest; without labels, on the last column


def centres(attention: Attention, kind: str) -> list[int] | None:
    """The column that `previous`, `same` and `following` of `HeadStatistics` are counted from, for each row.

    In self-attention None: the row's own place. In cross-attention the source token that is being translated, that is,
    the one that all heads of all layers together look at most.
    """
    return alignment(attention.cross, columns=attention.source_tokens) if kind == "cross" else None


def statistics(
    weights: np.ndarray, columns: Sequence[str] | None = None, centres: Sequence[int] | None = None
) -> HeadStatistics:
    """`HeadStatistics` of weights (L, h, T, S).

    columns: S labels, to tell which of them are no part of the text; centres: T columns, see the function of that name.
    """
    if columns is None:
        resting = np.arange(weights.shape[-1]) == weights.shape[-1] - 1
    else:
        resting = np.array([is_end(token) for token in columns])
    row, column = np.arange(weights.shape[-2])[:, None], np.arange(weights.shape[-1])[None, :]
    if centres is not None:
        row = np.asarray(centres)[:, None]

    def share(where: np.ndarray) -> np.ndarray:
        return (weights * where).sum(-1).mean(-1)

    safe = np.where(weights > 0, weights, 1.0)  # 0 log 0 = 0
    return HeadStatistics(
        entropy=-(weights * np.log(safe)).sum(-1).mean(-1),
        confidence=weights.max(-1).mean(-1),
        distance=share(np.abs(row - column)),
        previous=share(column == row - 1),
        same=share(column == row),
        following=share(column == row + 1),
        ends=share(np.broadcast_to(resting, weights.shape[-2:])),
    )


ROLES = (  # figure, what a head with a high one does
    ("ends", "rests on start or end"),
    ("previous", "looks one back"),
    ("same", "looks at its own place"),
    ("following", "looks one ahead"),
)
CROSS_ROLES = (  # the same of cross-attention, where places are counted from the word that is being translated
    ("ends", "rests on start or end"),
    ("previous", "looks at the word before the one it translates"),
    ("same", "looks at the word it translates"),
    ("following", "looks at the word after the one it translates"),
)
CLEAR = 0.5  # share of the attention from which a head is said to do one thing


def roles(figures: HeadStatistics, kind: str = "encoder") -> np.ndarray:
    """What each head of one kind of attention mostly does, in words, (L, h) of str; "" for none of the simple patterns,
    "picks single pieces" for a head that is confident without a fixed place, "looks everywhere" for a spread one.
    """
    out = np.empty(figures.entropy.shape, dtype=object)
    for place in np.ndindex(out.shape):
        shares = {words: getattr(figures, name)[place] for name, words in (CROSS_ROLES if kind == "cross" else ROLES)}
        words, share = max(shares.items(), key=lambda item: item[1])
        if share >= CLEAR:
            out[place] = words
        elif figures.confidence[place] >= CLEAR:
            out[place] = "picks single pieces"
        else:
            out[place] = "looks everywhere" if figures.confidence[place] < CLEAR / 2 else ""
    return out


def alignment(cross: np.ndarray, layer: int | None = None, columns: Sequence[str] | None = None) -> list[int]:
    """For each target row the source column it looks at most, by the mean over heads (of one layer, or of all).

    cross (L, h, T, S). The last source column (eos) is left out unless it is the only one: heads rest there. columns: S
    labels, so that a language token in front is left out, too.
    """
    mean = (cross if layer is None else cross[layer : layer + 1]).mean((0, 1))
    first = int(columns is not None and len(columns) > 2 and is_language_token(columns[0]))
    words = mean[:, first:-1] if mean.shape[1] > 1 else mean
    return (words.argmax(1) + first).tolist()


def every_head(config: TransformerConfig) -> list[tuple[str, int, int]]:
    """(kind, layer, head) of all heads of a model."""
    return [
        (kind, layer, head) for kind in KINDS for layer in range(config.layers(kind)) for head in range(config.heads)
    ]


@torch.inference_mode()
def ablation(
    translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0
) -> tuple[float, dict[str, np.ndarray]]:
    """How the log-probability of a translation changes when one head is removed, for every head, in one batched pass.

    Returns the log-probability as it is (nats, eos included), and for each of `KINDS` an (L, h) array of the change:
    negative where the head helped this translation.
    """
    model = translator.model
    config = model.config
    pair = teacher_forced(translator, translation, hypothesis, sentence)
    heads = every_head(config)
    # Row 0 of the batch is untouched; row i has head i - 1 removed.
    gates = {
        kind: torch.ones(config.layers(kind), len(heads) + 1, config.heads, device=translator.device) for kind in KINDS
    }
    for row, (kind, layer, head) in enumerate(heads, 1):
        gates[kind][layer, row, head] = 0.0
    gate = Gates(**gates)
    source = _embed_source(model, pair).expand(len(heads) + 1, -1, -1)
    logprobs = _token_logprobs(model, pair, source, pair.src_mask, gates=gate).sum(1)
    change = (logprobs[1:] - logprobs[0]).cpu().numpy()
    arrays = {kind: np.zeros((config.layers(kind), config.heads), dtype=np.float32) for kind in KINDS}
    for (kind, layer, head), value in zip(heads, change):
        arrays[kind][layer, head] = value
    return float(logprobs[0]), arrays


@dataclass
class HeadSteps:
    """Equation 1 in six steps for one head of one sentence."""

    query: np.ndarray  # (T, d_k)   1. Q
    key: np.ndarray  # (S, d_k)     2. K
    value: np.ndarray  # (S, d_v)   3. V
    scores: np.ndarray  # (T, S)    4. Q K^T / sqrt(d_k); -inf where the mask forbids
    weights: np.ndarray  # (T, S)   5. softmax
    output: np.ndarray  # (T, d_v)  6. weights V
    rows: list[str]  # T labels
    columns: list[str]  # S labels


@torch.inference_mode()
def head_steps(
    translator: Translator,
    translation: Translation,
    kind: str,
    layer: int,
    head: int,
    hypothesis: int = 0,
    sentence: int = 0,
) -> HeadSteps:
    """The six steps of one head. kind: one of `KINDS`; layer and head count from 0.

    Raises `ValueError` for a kind, layer or head that the model does not have.
    """
    config = translator.model.config
    if kind not in KINDS:
        raise ValueError(f"The kinds of attention are {', '.join(KINDS)}; got {kind!r}.")
    layers = config.layers(kind)
    if not (0 <= layer < layers and 0 <= head < config.heads):
        counts = f"{layers} layers and {config.heads} heads"
        raise ValueError(f"There are {counts}, counted from 0; got layer {layer} and head {head}.")
    trace = record(translator, translation, hypothesis, sentence)
    block, pair = trace.attention(kind, layer), trace.pair
    names = translation.sentences[sentence].stand_ins
    source, target, decoder = (
        translator.labels(ids.tolist(), names) for ids in (pair.src[0], pair.labels, pair.tgt[0])
    )
    columns = {"encoder": source, "decoder": decoder, "cross": source}[kind]

    def numbers(tensor: Tensor) -> np.ndarray:
        return tensor[head].float().cpu().numpy()

    rows = source if kind == "encoder" else target
    query, key, value = map(numbers, (block.query, block.key, block.value))
    scores, weights, output = map(numbers, (block.scores, block.weights, block.heads))
    return HeadSteps(query, key, value, scores, weights, output, rows, columns)


@dataclass
class QuerySteps:
    """The six steps of *The Illustrated Transformer* for one query of one head, over S keys."""

    query: np.ndarray  # (d_k,)           1. the query's vector, the keys' and the values'
    key: np.ndarray  # (S, d_k)
    value: np.ndarray  # (S, d_v)
    factors: np.ndarray  # (S, d_k)       2. query times key, number by number (Vig 2019, the neuron view)
    dots: np.ndarray  # (S,)              and their sums, q . k
    scores: np.ndarray  # (S,)            3. divided by sqrt(d_k); -inf where the mask forbids
    weights: np.ndarray  # (S,)           4. softmax
    products: np.ndarray  # (S, d_v)      5. each value times its weight
    output: np.ndarray  # (d_v,)          6. their sum
    visible: np.ndarray  # (S,) bool, False = the mask forbids
    divisor: float  # sqrt(d_k), or 1 if the scale is switched off


def query_steps(steps: HeadSteps, row: int, scale: bool = True, mask: bool = True) -> QuerySteps:
    """Works out one row of a head anew; scale=False leaves out the division by sqrt(d_k), mask=False the mask.

    With both switched on, the weights and the output are the model's own. Raises `ValueError` if there is no such row.
    """
    if not 0 <= row < len(steps.rows):
        raise ValueError(f"There are queries 1 to {len(steps.rows)}; there is no number {row + 1}.")
    query, key, value = steps.query[row], steps.key, steps.value
    visible = np.isfinite(steps.scores[row])
    divisor = math.sqrt(query.shape[0]) if scale else 1.0
    dots = key @ query
    scores = dots / np.float32(divisor)
    if mask:
        scores = np.where(visible, scores, -np.inf).astype(np.float32)
    powers = np.exp(scores - scores.max())
    weights = (powers / powers.sum()).astype(np.float32)
    products = weights[:, None] * value
    output = products.sum(0)
    return QuerySteps(query, key, value, query * key, dots, scores, weights, products, output, visible, divisor)


def positions(model: Transformer, length: int) -> np.ndarray:
    """What the model adds to the embedding at each position (section 3.5), (length, d_model) float32, interleaved sine
    and cosine in the paper's layout; at most the model's longest sequence.
    """
    return model.positions[:length].detach().float().cpu().numpy()


def _rows_at_once(length: int, heads: int) -> int:
    return max(1, FLOATS // (heads * length * length))


def _embed_source(model: Transformer, pair: Batch) -> Tensor:
    """(1, S, d_model), the source's scaled embeddings without positions."""
    return model.embedding(pair.src) * math.sqrt(model.config.d_model)


def _token_logprobs(
    model: Transformer, pair: Batch, x: Tensor, mask: Tensor, at: Tensor | None = None, gates: Gates | None = None
) -> Tensor:
    """Log-probabilities (B, T) of the target of one pair, read from B versions of its source.

    x (B, S, d_model), as of `_embed_source`; mask (B or 1, 1, 1, S), True = may be looked at; gates: factors of
    the heads. at (B,): the one place in the target that each row is asked for; the answer is then (B,).
    """
    end = pair.tgt.shape[1] if at is None else int(at.max()) + 1  # no token depends on what follows it
    tgt, labels = (ids[:, :end].expand(len(x), -1) for ids in (pair.tgt, pair.labels[None]))
    encoded, _ = model.encode_embedded(x + model.positions[: x.shape[1]], mask, gates=gates)
    hidden, _, _ = model.decode(tgt, pair.tgt_mask[..., :end, :end], model.remember(encoded, mask), gates=gates)
    if at is not None:  # the vocabulary is by far the widest layer, so only what is asked for is projected
        rows = torch.arange(len(at), device=at.device)
        hidden, labels = hidden[rows, at], labels[rows, at]
    logits = model.project(hidden)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0]


def gradient_times_input(
    translator: Translator,
    translation: Translation,
    hypothesis: int = 0,
    sentence: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Gradient times input (Shrikumar et al. 2016; Denil et al. 2014) of every target token at every source token.

    Returns (T, S) float32, signed: the derivative of the token's log-probability (nats) along the source token's
    embedding, that is, how it would change per relative change in the embedding's length. report(done, total) hears of
    the target tokens that are done; the time grows with T * (S + T / 2).
    """
    model = translator.model
    pair = teacher_forced(translator, translation, hypothesis, sentence)
    with torch.no_grad():
        embedded = _embed_source(model, pair)
    length, parts = pair.tgt.shape[1], []
    at_once = _rows_at_once(max(pair.src.shape[1], length), model.config.heads)
    for rows in torch.arange(length, device=embedded.device).split(at_once):
        with torch.enable_grad():
            # A copy of the sentence for every target token, so that one backward pass serves them all.
            x = embedded.expand(len(rows), -1, -1).clone().requires_grad_()
            logprobs = _token_logprobs(model, pair, x, pair.src_mask, at=rows)
            (gradient,) = torch.autograd.grad(logprobs.sum(), x)
        parts.append((gradient * x.detach()).sum(-1))
        if report is not None:
            report(int(rows[-1]) + 1, length)
    return torch.cat(parts).float().cpu().numpy()


@torch.inference_mode()
def occlusion(
    translator: Translator,
    translation: Translation,
    hypothesis: int = 0,
    sentence: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """How much of each target token's log-probability is lost when one source token is hidden from every head.

    Returns (T, S) float32, nats: positive where the source token helped. A hidden token is masked as padding is, in the
    encoder and in cross-attention; the others keep their positions. report(done, total) hears of the source tokens that
    are done; the time grows with S * (S + T).
    """
    model = translator.model
    pair = teacher_forced(translator, translation, hypothesis, sentence)
    whole, size, length = pair.src_mask, pair.src.shape[1], pair.tgt.shape[1]
    others = whole & ~torch.eye(size, dtype=torch.bool, device=whole.device)[:, None, None, :]
    masks = torch.cat((whole, others))  # row 0 sees all
    embedded = _embed_source(model, pair)
    parts, count = [], 0
    at_once = _rows_at_once(max(size, length), model.config.heads)
    at_once = max(1, min(at_once, FLOATS // (length * model.config.vocab_size)))
    for mask in masks.split(at_once):
        parts.append(_token_logprobs(model, pair, embedded.expand(len(mask), -1, -1), mask))
        count += len(mask)
        if report is not None:
            report(count - 1, size)
    logprobs = torch.cat(parts)
    return (logprobs[0] - logprobs[1:]).T.float().cpu().numpy()


def shares(scores: np.ndarray) -> np.ndarray:
    """Signed scores (T, S) as shares of each row, so that they can stand beside attention: |score| / sum of the row."""
    size = np.abs(scores)
    total = size.sum(-1, keepdims=True)
    return (size / np.where(total > 0, total, 1.0)).astype(np.float32)


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the rows, in [0, 1], in which two maps (T, S) have their largest weight in the same column."""
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def without_positions(model: Transformer) -> Transformer:
    """The same network with the same weights, but for positions, which are all zero."""
    bare, zeros = model.twin(), torch.zeros_like(model.positions)
    trainable = model.config.positions == "learned"
    bare.positions = torch.nn.Parameter(zeros, requires_grad=False) if trainable else zeros
    return bare


@dataclass
class Swap:
    """A sentence and the same with two words swapped, read with and without positions in the encoder."""

    words: list[str]  # of the source, W
    permutation: list[str]
    translations: dict[bool, tuple[str, str]]  # with positions or without -> (before, after)
    changes: dict[bool, np.ndarray]  # -> (W,) how far each word's encoding moved, relative to its length


def text_of(translator: Translator, ids: Sequence[int], stand_ins: dict[str, str]) -> str:
    """The text of some ids, with what its stand-ins stand for."""
    text = translator.text(ids)
    for piece, word in stand_ins.items():
        text = text.replace(piece, word)
    return text


def source_words(translator: Translator, ids: Sequence[int]) -> list[list[int]]:
    """Source ids by words, without eos and language token; a piece with the mark of a blank begins a word."""
    pieces = translator.tokenizer.pieces(ids)
    groups: list[list[int]] = []
    for place, (token, piece) in enumerate(zip(ids, pieces)):
        if token == translator.model.config.eos or (place == 0 and is_language_token(piece)):
            continue
        if piece.startswith("▁") or not groups:
            groups.append([])
        groups[-1].append(token)
    return groups


def permute_words(
    translator: Translator, source_ids: list[int], groups: list[list[int]], orders: Sequence[Sequence[int]]
) -> tuple[Tensor, int]:
    """Ids (B, S) of a sentence with its words (`source_words`) in each of these orders, and at which place they begin:
    behind a language token, where there is one.
    """
    start = len(source_ids) - 1 - sum(map(len, groups))
    ends = source_ids[:start], source_ids[-1:]
    rows = [[*ends[0], *(token for place in order for token in groups[place]), *ends[1]] for order in orders]
    return torch.tensor(rows, device=translator.device), start


def translate_both(translator: Translator, reader: Transformer, src: Tensor, options: SearchOptions) -> list[list[int]]:
    """The best ids for each row of src (B, S), read by the encoder of `reader`, written by the translator's decoder."""
    config, rows = translator.model.config, src.tolist()
    mask = key_mask(src, config.pad)
    read, _ = reader.encode(src, reader.useful_mask(mask))
    decoder = TransformerDecoder(translator.model, src, mask, read, constraint=translator.constraint(rows))
    results = translator.search(decoder, [translator.longest(row) for row in rows], options)
    return [result.candidates[0].ids for result in results]


@torch.inference_mode()
def swap_words(
    translator: Translator,
    translation: Translation,
    first: int,
    second: int,
    sentence: int = 0,
    options: SearchOptions = DEFAULTS,
) -> Swap:
    """Swaps two words of a sentence, counted from 0, and translates both orders, with positions and without.

    Without positions the encoder cannot tell the orders apart: its outputs are the same, in another order
    (section 3.5). The decoder keeps its positions. Raises `ValueError` if there are no such two words.
    """
    model, config = translator.model, translator.model.config
    entry, _ = translation.sentence_and_ids(sentence)
    groups = source_words(translator, entry.source_ids)
    if not (0 <= first < len(groups) and 0 <= second < len(groups)) or first == second:
        raise ValueError(f"Choose two different words among 1 to {len(groups)}.")
    order = list(range(len(groups)))
    order[first], order[second] = second, first
    src, start = permute_words(translator, entry.source_ids, groups, (range(len(groups)), order))
    # Where each piece of the sentence went.
    lengths = [len(group) for group in groups]
    spans = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
    back = np.concatenate([spans[i] for i in order]).argsort() + start
    translations, changes = {}, {}
    for with_positions in (True, False):
        reader = model if with_positions else without_positions(model)
        encoded, _ = reader.encode(src, key_mask(src, config.pad))
        own, other = encoded[0, start:-1], encoded[1, back]
        change = ((other - own).norm(dim=-1) / own.norm(dim=-1)).float().cpu().numpy()
        changes[with_positions] = np.array([change[span].mean() for span in spans], dtype=np.float32)
        first_best, second_best = translate_both(translator, reader, src, options)
        translations[with_positions] = (
            text_of(translator, first_best, entry.stand_ins),
            text_of(translator, second_best, entry.stand_ins),
        )
    words = [text_of(translator, group, entry.stand_ins) for group in groups]
    return Swap(words, [words[i] for i in order], translations, changes)
