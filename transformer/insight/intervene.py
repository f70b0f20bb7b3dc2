"""Decoding that can be watched step by step and changed: another token, a forced beginning, heads removed, weights set.

Axes: L layers, h heads, T target tokens, S source tokens. Layers, heads, rows, columns and steps count from 0. Row t of
the decoder's maps is the step that chooses target token t; it reads bos and the t tokens before it.
"""

from __future__ import annotations

import copy
import difflib
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention, attention_weights, key_mask
from transformer.cache import ActiveHypotheses, KeyValue
from transformer.insight.interpret import KINDS, text_of
from transformer.model import Gates, Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.search import (
    BeamNode,
    Candidate,
    Constraint,
    Prefix,
    SearchResult,
    TransformerDecoder,
    beam_tree,
    length_penalty,
    rank,
    read_prefix,
)
from transformer.threads import threads_for
from transformer.tokenizer import normalise
from transformer.translator import Hypothesis, Translation, Translator

# -- intervention ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """Weights of an attention map that are set by hand.

    cells: (column, weight in [0, 1]) pairs. renormalise: the other weights of the row share what is left to 1 in their
    old proportion (evenly, if they had none); otherwise they stay and the row may sum to anything. A row without other
    keys stands as given. In the decoder, a step's row sees only the columns up to its own number.
    """

    kind: str  # one of KINDS
    layer: int
    head: int | None  # None = every head
    row: int | None  # None = every row
    cells: tuple[tuple[int, float], ...]
    renormalise: bool = True


@dataclass(frozen=True)
class Intervention:
    """What is changed inside the model for one translation; without anything in it, the model is as it is."""

    off: frozenset[tuple[str, int, int]] = frozenset()  # (kind, layer, head) of the heads that are removed
    edits: tuple[Edit, ...] = ()  # made one after the other

    def __bool__(self) -> bool:
        return bool(self.off or self.edits)

    def check(self, model: Transformer, source_length: int) -> None:
        """Raises `ValueError` with one sentence for what the model does not have. source_length: S."""
        config = model.config
        places = [*self.off, *((e.kind, e.layer, e.head) for e in self.edits)]
        for kind, layer, head in places:
            if kind not in KINDS:
                raise ValueError(f"The kinds of attention are {', '.join(KINDS)}; got {kind!r}.")
            layers = config.layers(kind)
            if not 0 <= layer < layers or not (head is None or 0 <= head < config.heads):
                which = "" if head is None else f", head {head + 1}"
                raise ValueError(
                    f"The {kind} has layers 1 to {layers} with heads 1 to {config.heads}; got layer {layer + 1}{which}."
                )
        for edit in self.edits:
            rows = source_length if edit.kind == "encoder" else config.max_length
            columns = config.max_length if edit.kind == "decoder" else source_length
            if edit.row is not None and not 0 <= edit.row < rows:
                raise ValueError(f"This map has rows 1 to {rows}; got row {edit.row + 1}.")
            if not edit.cells:
                raise ValueError("An edit has to set at least one weight.")
            for column, weight in edit.cells:
                last = columns if edit.row is None or edit.kind != "decoder" else edit.row + 1
                if not 0 <= column < last:
                    raise ValueError(f"This row has columns 1 to {last}; got column {column + 1}.")
                if not 0.0 <= weight <= 1.0:
                    raise ValueError(f"An attention weight lies between 0 and 1; got {weight:g}.")
            if len({column for column, _ in edit.cells}) < len(edit.cells):
                raise ValueError("An edit sets the same cell twice.")
            if edit.renormalise and sum(weight for _, weight in edit.cells) > 1.0 + 1e-6:
                raise ValueError("The weights that are set sum to more than 1; lower them or keep the row as given.")

    def gates(self, model: Transformer) -> Gates:
        """The removed heads as factors."""
        config, gates = model.config, Gates()
        for kind, layer, head in self.off:
            if getattr(gates, kind) is None:
                setattr(gates, kind, model.embedding.weight.new_ones(config.layers(kind), 1, config.heads))
            getattr(gates, kind)[layer, 0, head] = 0.0
        return gates


def overwrite(
    weights: Tensor, where: Tensor, values: Tensor, renormalise: bool = True, mask: Tensor | None = None
) -> Tensor:
    """Attention weights with some of them set, as `Edit` says; rows in which none is set stay as they are.

    weights (..., T, S); where, True = is set, values, and mask, True = may be looked at, broadcastable to it.
    """
    where = where.expand_as(weights)
    entries = torch.where(where, values.expand_as(weights).to(weights.dtype), 0.0)
    if not renormalise:
        return torch.where(where, entries, weights)
    rest = weights.masked_fill(where, 0.0)
    free = ~where if mask is None else ~where & mask
    mass = rest.sum(-1, keepdim=True)
    even = free / free.sum(-1, keepdim=True).clamp_min(1)
    share = torch.where(mass > 1e-12, rest / mass.clamp_min(1e-12), even.to(weights.dtype))
    rest = (1.0 - entries.sum(-1, keepdim=True)).clamp_min(0.0)
    return torch.where(where.any(-1, keepdim=True), entries + rest * share, weights)


class OpenDecoder(TransformerDecoder):
    """A decoder whose attention can be watched and changed.

    With nothing to watch or to change it is a `TransformerDecoder`, bit for bit.
    """

    def __init__(
        self,
        model: Transformer,
        src: Tensor,
        src_mask: Tensor,
        intervention: Intervention | None = None,
        watch: bool = False,
        constraint: Constraint | None = None,
    ) -> None:
        """src (B, S) ids, src_mask (B, 1, 1, S), True = may be looked at. constraint: as in `TransformerDecoder`.
        watch: keep each step's weights until `take_weights` hands them over.

        Raises `ValueError` with one sentence if the intervention names what the model does not have.
        """
        self.intervention, self.watch = intervention or Intervention(), watch
        self.intervention.check(model, src.shape[1])
        self.gates = self.intervention.gates(model)
        self.weights: dict[str, list[Tensor]] = {}
        super().__init__(self.open(model), src, src_mask, constraint=constraint)

    def open(self, model: Transformer) -> Transformer:
        """The same network, with blocks of attention that follow this decoder."""
        encoder, decoder = (
            nn.ModuleList(
                exchange(layer, **{name: OpenAttention(getattr(layer, name), self, kind, n) for name, kind in kinds})
                for n, layer in enumerate(layers)
            )
            for layers, kinds in (
                (model.encoder, (("attention", "encoder"),)),
                (model.decoder, (("attention", "decoder"), ("cross_attention", "cross"))),
            )
        )
        return exchange(model, encoder=encoder, decoder=decoder)

    def take_weights(self) -> dict[str, list[Tensor]]:
        """The watched weights of the last step, which are then forgotten: by layer (B, h, K, used) of the decoder's own
        attention ("decoder") and (B, h, K, S) over the source ("cross").
        """
        weights, self.weights = self.weights, {}
        return weights

    def fork(self, positions: int) -> OpenDecoder:
        """As `TransformerDecoder.fork`; the new decoder is not watched."""
        twin = super().fork(positions)
        twin.watch, twin.weights = False, {}
        twin.model = twin.open(self.model)
        return twin

    def logits(self, tokens: Tensor, active: ActiveHypotheses | None = None) -> Tensor:
        """As `TransformerDecoder.logits`, with the intervention's changes; the weights are kept if they are watched."""
        self.weights = {}
        return super().logits(tokens, active)


class OpenAttention(MultiHeadAttention):
    """A block of a model, with the same tensors, that does as an `OpenDecoder` says."""

    def __init__(self, block: MultiHeadAttention, decoder: OpenDecoder, kind: str, layer: int) -> None:
        """kind, layer: where `block` stands in the model."""
        vars(self).update(vars(block))
        self.decoder, self.kind, self.gate = weakref.proxy(decoder), kind, decoder.gates.at(kind, layer)
        self.edits = [e for e in decoder.intervention.edits if (e.kind, e.layer) == (kind, layer)]

    def attend(
        self,
        query: Tensor,
        key_value: KeyValue,
        mask: Tensor | None = None,
        need_weights: bool = False,
        gate: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `MultiHeadAttention.attend`, in the encoder."""
        if not self.edits:
            return super().attend(query, key_value, mask, need_weights, self.gate)
        weights = self.change(attention_weights(query, key_value.key, mask), self.edits, mask)
        return self.merge(weights @ key_value.value, self.gate), weights

    def attend_step(
        self,
        query: Tensor,
        key_value: KeyValue,
        additive: Tensor | None,
        gate: Tensor | None = None,
        active: ActiveHypotheses | None = None,
    ) -> Tensor:
        """As `MultiHeadAttention.attend_step`."""
        edits = [edit for edit in self.edits if edit.row in (None, self.decoder.cache.position - 1)]
        if edits or self.decoder.watch:
            mask = None if additive is None else additive == 0
            weights = self.change(attention_weights(query, key_value.key, mask), edits, mask)
            if self.decoder.watch:
                self.decoder.weights.setdefault(self.kind, []).append(weights)
            if edits:
                return self.merge(weights @ key_value.value, self.gate, active)
        # Without an edit the sum is that of a plain step, so that watching changes no bit of the output.
        return super().attend_step(query, key_value, additive, self.gate, active)

    def change(self, weights: Tensor, edits: Sequence[Edit], mask: Tensor | None) -> Tensor:
        """weights (B, h, T, S) after these edits, one after the other; mask: as in `attention_weights`."""
        rows, columns = (torch.arange(size, device=weights.device) for size in weights.shape[-2:])
        for edit in edits:
            where, values = torch.zeros_like(weights, dtype=torch.bool), torch.zeros_like(weights)
            heads = slice(None) if edit.head is None else slice(edit.head, edit.head + 1)
            for column, weight in edit.cells:
                place = columns == column
                if self.kind == "decoder":  # whose tokens lie in slots of the cache, each for its descendants
                    cache = self.decoder.cache
                    place = ((cache.slots == column)[:, None] & cache.ancestors)[:, None]
                elif self.kind == "encoder" and edit.row is not None:  # a step has but the one row
                    place = place & (rows == edit.row)[:, None]
                where[:, heads] |= place
                values[:, heads] = torch.where(place, weight, values[:, heads])
            weights = overwrite(weights, where, values, edit.renormalise, mask)
        return weights


M = TypeVar("M", bound=nn.Module)


def exchange(module: M, **parts: nn.Module) -> M:
    """The same module with the same tensors, but for these parts."""
    twin = copy.copy(module)
    twin._modules = {**module._modules, **parts}
    return twin


# -- one output, step by step -----------------------------------------------------------------------------------------


@dataclass
class CacheSize:
    """Keys and values that one decoder layer keeps of the tokens read so far."""

    key: tuple[int, ...]  # (h, t, d_k)
    value: tuple[int, ...]  # (h, t, d_v)
    bytes: int


@dataclass
class Decoding:
    """How a decoder comes to one output, with the cache it leaves behind; T = tokens with eos, if it was reached."""

    source_ids: list[int]
    ids: list[int]  # without bos and eos
    inputs: list[int]  # T, what the decoder read at each step: bos, then what came before
    finished: bool  # the last step chose eos
    logprobs: np.ndarray  # (T,) of each chosen token, nats
    entropy: np.ndarray  # (T,) of each step's distribution, nats
    ranks: list[int]  # T, place of the chosen token among all, from 1
    top: list[list[tuple[int, float]]]  # T x k most probable tokens (id, probability), best first
    decoder: np.ndarray  # (L, h, T, T) weights, zero above the diagonal; row t is step t
    cross: np.ndarray  # (L, h, T, S)
    mask: np.ndarray  # (T, T) bool, True = this step may look at this token
    state: OpenDecoder  # what the steps left: a single path
    stand_ins: dict[str, str]  # those of the `Sentence`

    @property
    def labels(self) -> list[int]:
        """The T chosen tokens."""
        return [*self.ids, self.state.model.config.eos] if self.finished else self.ids

    @property
    def logprob(self) -> float:
        """Of the whole output, eos included."""
        return float(self.logprobs.sum())

    def cache_size(self, step: int) -> list[CacheSize]:
        """For each layer what the cache holds when step `step` chooses: bos and the tokens before it."""
        cache = self.state.cache
        return [_size(cache.key_value(layer), step + 1) for layer in range(len(cache.layers))]

    def memory_size(self) -> list[CacheSize]:
        """For each layer the keys and values of the source, made once."""
        return [_size(key_value, key_value.key.shape[2]) for key_value in self.state.memory.layers]

    def cache(self, layer: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys (h, t, d_k) and values (h, t, d_v) of one layer, t = step + 1; float32."""
        key_value = self.state.cache.key_value(layer)
        key, value = (x[0, :, : step + 1].float().cpu().numpy() for x in (key_value.key, key_value.value))
        return key, value


def _size(key_value: KeyValue, length: int) -> CacheSize:
    key, value = ((x.shape[1], length, x.shape[3]) for x in (key_value.key, key_value.value))
    return CacheSize(key, value, (math.prod(key) + math.prod(value)) * key_value.key.element_size())


def open_decoder(
    translator: Translator, source_ids: Sequence[int], intervention: Intervention | None = None, watch: bool = False
) -> OpenDecoder:
    """A decoder of one sentence; watch: it keeps its weights. Raises `ValueError` if the intervention does not fit."""
    model = translator.model
    src = torch.tensor([list(source_ids)], device=translator.device)
    only = translator.constraint([source_ids])
    return OpenDecoder(model, src, key_mask(src, model.config.pad), intervention, watch, only)


@torch.inference_mode()
def follow(
    translator: Translator,
    source_ids: Sequence[int],
    ids: Sequence[int],
    finished: bool = True,
    intervention: Intervention | None = None,
    top: int = 10,
    stand_ins: dict[str, str] | None = None,
) -> Decoding:
    """Decodes one given output token by token, as the search does, and keeps what every step saw.

    ids: the output without bos and eos; finished: it ends with eos. top: how many likely tokens to keep of each step.
    stand_ins: those of the `Sentence`, for texts and labels.

    Raises `ValueError` if there is nothing to follow or the intervention does not fit.
    """
    config = translator.model.config
    labels = [*ids, config.eos] if finished else list(ids)
    if not labels:
        raise ValueError("There is no piece to follow.")
    state = open_decoder(translator, source_ids, intervention, watch=True)
    length, layers = len(labels), config.decoder_layers
    decoder = np.zeros((layers, config.heads, length, length), np.float32)
    cross = np.zeros((layers, config.heads, length, len(source_ids)), np.float32)
    pair = translator.pair(source_ids, ids)
    logprobs, entropy, ranks, likely, last = [], [], [], [], config.bos
    for step, label in enumerate(labels):
        logits = state.step(torch.tensor([[last]], device=translator.device))[0, 0].float()
        own = logits.log_softmax(-1)
        values, tokens = own.topk(min(top, len(own)))
        likely.append(list(zip(tokens.tolist(), values.exp().tolist())))
        logprobs.append(float(own[label]))
        entropy.append(float(-(own.exp() * own).nan_to_num(0.0).sum()))
        ranks.append(int((own > own[label]).sum()) + 1)
        weights = state.take_weights()
        for layer in range(layers):
            decoder[layer, :, step, : step + 1] = weights["decoder"][layer][0, :, 0].float().cpu().numpy()
            cross[layer, :, step] = weights["cross"][layer][0, :, 0].float().cpu().numpy()
        last = label
    return Decoding(
        list(source_ids),
        list(ids),
        pair.tgt[0, :length].tolist(),
        finished,
        np.array(logprobs),
        np.array(entropy),
        ranks,
        likely,
        decoder,
        cross,
        pair.tgt_mask[0, 0, :length, :length].cpu().numpy(),
        state,
        stand_ins or {},
    )


# -- the search, and going on from a beginning ------------------------------------------------------------------------


@dataclass
class Continuation:
    """What a search made of a beginning; hypotheses best first, their ids with the beginning."""

    hypotheses: list[Hypothesis]
    candidates: list[Candidate]
    prefix: Prefix
    cache_length: int  # tokens that were not read again, bos included
    tree: list[BeamNode]
    endings: list[Candidate]  # every hypothesis that ended during the search, also those that the beam dropped later
    stand_ins: dict[str, str]


def endings(result: SearchResult) -> list[Candidate]:
    """Every hypothesis that ended during a traced search, and those cut by the length limit; best first."""
    outputs = {tuple(c.ids): c for step in result.trace or [] for c in step.finished}
    outputs.update({tuple(c.ids): c for c in result.candidates})
    return sorted(outputs.values(), key=lambda c: -c.score)


def _search(
    translator: Translator,
    decoder: OpenDecoder,
    prefix: Prefix,
    most: int,
    options: SearchOptions,
    stand_ins: dict[str, str],
    cache_length: int = 0,
) -> Continuation:
    config = translator.model.config
    with threads_for(translator.model, options.beam):
        (result,) = translator.search(decoder, [most], replace(options, trace=True), prefix=prefix)
    tree = beam_tree(result.trace or [], config.bos, config.eos, prefix)
    hypotheses = [hypothesis(translator, c, stand_ins) for c in result.candidates]
    return Continuation(hypotheses, result.candidates, prefix, cache_length, tree, endings(result), stand_ins)


def hypothesis(translator: Translator, candidate: Candidate, stand_ins: dict[str, str]) -> Hypothesis:
    """A candidate with its text and word pieces."""
    pieces = translator.labels(candidate.ids, stand_ins)
    return Hypothesis(text_of(translator, candidate.ids, stand_ins), pieces, candidate.score, candidate.logprob)


def prefix_ids(translator: Translator, text: str, stand_ins: dict[str, str] | None = None) -> list[int]:
    """The word pieces of a forced beginning, written as text; its last word may be unfinished.

    stand_ins: those of the `Sentence`; where the text has their words, the model's beginning has the stand-ins.
    Raises `ValueError` if the vocabulary lacks one of its characters.
    """
    text = normalise(text)
    for piece, word in (stand_ins or {}).items():
        text = text.replace(word, piece)
    ids = translator.target_ids(text)
    special = set(translator.forbidden_ids()) | {translator.model.config.eos}
    if special & set(ids):
        raise ValueError("The beginning holds characters that this model's vocabulary lacks; write it without them.")
    return ids


@torch.inference_mode()
def decode_from(
    translator: Translator,
    source_ids: Sequence[int],
    ids: Sequence[int] = (),
    options: SearchOptions = DEFAULTS,
    intervention: Intervention | None = None,
    stand_ins: dict[str, str] | None = None,
) -> Continuation:
    """Searches for the best outputs that begin with `ids` (all of them, if it is empty), with a trace.

    stand_ins: those of the `Sentence`.
    Raises `ValueError` if the beginning is too long or the intervention does not fit the model.
    """
    most = translator.longest(source_ids)
    if len(ids) >= most:
        raise ValueError(f"The beginning has {len(ids)} word pieces and this translation may have {most}; shorten it.")
    with threads_for(translator.model, options.beam):  # the translation's own, so that the numbers are the same
        decoder = open_decoder(translator, source_ids, intervention)
        prefix = read_prefix(decoder, ids, translator.model.config.bos)
        return _search(translator, decoder, prefix, most, options, stand_ins or {})


@torch.inference_mode()
def continue_from(
    translator: Translator, decoding: Decoding, step: int, token: int, options: SearchOptions = DEFAULTS
) -> Continuation:
    """Takes another token at one step of an output and goes on from the same cache; what came before is not read again.

    `decoding` stays as it is, so that this can be asked again. Raises `ValueError` for a step or token that is not
    there, and for a token that no output may hold.
    """
    config = translator.model.config
    if not 0 <= step < len(decoding.labels):
        raise ValueError(f"This output has steps 1 to {len(decoding.labels)}; got step {step + 1}.")
    if not 0 <= token < config.vocab_size or token in translator.forbidden_ids():
        raise ValueError("No translation can hold this piece; choose another one.")
    before = decoding.ids[:step]
    likely = dict(decoding.top[step])
    if token in likely:
        logprob = float(np.log(likely[token]))
    else:  # the one step is read again, on the cache of those before it
        last = before[-1] if before else config.bos
        logits = decoding.state.fork(step).step(torch.tensor([[last]], device=translator.device))[0, 0].float()
        logprob = float(logits.log_softmax(-1)[token])
    total = float(decoding.logprobs[:step].sum()) + logprob
    if token == config.eos:
        ends = rank([Candidate(before, total, 0.0, True)], options.alpha)
        root = BeamNode(-1, step, before[-1] if before else config.bos, total - logprob, "beam")
        tree = [root, BeamNode(0, step + 1, token, total, "finished")]
        hypotheses = [hypothesis(translator, ends[0], decoding.stand_ins)]
        prefix = Prefix(before, total - logprob)
        return Continuation(hypotheses, ends, prefix, step + 1, tree, ends, decoding.stand_ins)
    most = translator.longest(decoding.source_ids)
    if step + 1 >= most:
        raise ValueError(f"This translation may have {most} word pieces at most, so none can follow here.")
    twin = decoding.state.fork(step + 1)
    return _search(translator, twin, Prefix([*before, token], total), most, options, decoding.stand_ins, step + 1)


# -- before and after -----------------------------------------------------------------------------------------------


def word_difference(before: str, after: str) -> list[tuple[str, str]]:
    """Words of two texts in reading order: (" ", both have it), ("-", only the first), ("+", only the second)."""
    old, new = before.split(), after.split()
    out: list[tuple[str, str]] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(" ", word) for word in old[i:j]]
        else:
            out += [("-", word) for word in old[i:j]] + [("+", word) for word in new[k:m]]
    return out


@torch.inference_mode()
def logprob(
    translator: Translator,
    source_ids: Sequence[int],
    ids: Sequence[int],
    finished: bool = True,
    intervention: Intervention | None = None,
) -> float:
    """Log-probability (nats) of an output, and of eos behind it if finished; intervention None: nothing is changed."""
    config = translator.model.config
    labels = [*ids, config.eos] if finished else list(ids)
    return read_prefix(open_decoder(translator, source_ids, intervention), labels, config.bos).logprob


@dataclass
class Outcome:
    """A translation before and after an intervention."""

    before: Hypothesis  # the translation as it was; its log-probability is read anew from the whole model
    before_logprob: float  # log-probability of the same words under the intervention
    after: Hypothesis  # the new translation, rated by the changed model
    after_ids: list[int]
    whole: float  # log-probability of the new translation in the whole model
    difference: list[tuple[str, str]]  # `word_difference`
    search: Continuation

    @property
    def change(self) -> float:
        """Of the old translation's log-probability by the intervention; below 0 if what was changed had helped it."""
        return self.before_logprob - self.before.logprob


@torch.inference_mode()
def operate(
    translator: Translator,
    translation: Translation,
    intervention: Intervention,
    sentence: int = 0,
    hypothesis_number: int = 0,
    options: SearchOptions = DEFAULTS,
) -> Outcome:
    """Translates a sentence again with a changed model, and rates old and new translation with and without the change.

    Raises `ValueError` with one sentence if the intervention does not fit or the model never read the sentence.
    """
    entry, ids = translation.sentence_and_ids(sentence, hypothesis_number)
    source_ids = entry.source_ids
    finished = len(ids) < translator.longest(source_ids)
    old = logprob(translator, source_ids, ids, finished)
    candidate = Candidate(ids, old, old / length_penalty(len(ids) + finished, options.alpha), finished)
    before = hypothesis(translator, candidate, entry.stand_ins)
    search = decode_from(translator, source_ids, (), options, intervention, entry.stand_ins)
    after = search.hypotheses[0]
    best = search.candidates[0]
    return Outcome(
        before,
        logprob(translator, source_ids, ids, finished, intervention),
        after,
        best.ids,
        logprob(translator, source_ids, best.ids, best.finished),
        word_difference(before.text, after.text),
        search,
    )
