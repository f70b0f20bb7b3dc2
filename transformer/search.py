"""Greedy and beam search over whatever can say the log-probabilities of a next token.

Axes: B sentences, K hypotheses of a beam, V words. A hypothesis's log-probability is the sum over its tokens, eos
included; its score divides that by the length penalty of Wu et al. (2016), equation 14.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from transformer.cache import ActiveHypotheses, BeamCache, KeyValue
from transformer.config import ALPHA
from transformer.model import Encoding, Memory, Shortlist, Transformer
from transformer.options import DEFAULTS, Sampling, SearchOptions

# Tokens up to which a sentence alone keeps its encoding: the encoder's weights, L h S^2, stay under a megabyte.
MAX_SOURCE_TO_KEEP = 64
MIN_TEMPERATURE = 1e-6  # logits divided by less than this leave the range of 32 bits


class NextToken(Protocol):
    """What a search needs of a model; it keeps the state of B sentences with K hypotheses each."""

    shortlist: Shortlist | None  # whose words the V logits are about; None = the ids 0 to V - 1

    @property
    def device(self) -> torch.device | str:
        """Where it computes."""

    def step(self, tokens: Tensor, active: ActiveHypotheses | None = None) -> Tensor:
        """tokens (B, K), the last token of each hypothesis -> logits (B, K, V) of the next one.

        active: which of the B * K hypotheses there are; the logits are of these alone, (N, V).
        They are the caller's to overwrite.
        """

    def choose(self, parents: Tensor) -> None:
        """Makes hypothesis k of sentence b go on from hypothesis parents[b, k]; parents (B, K')."""

    def keep(self, sentences: Tensor) -> None:
        """Forgets all sentences but these; sentences (B',) are indices into the present ones."""


class Constraint(Protocol):
    """What the outputs of a decoder may be; it keeps the state of B sentences with K hypotheses each."""

    def read(self, tokens: Tensor) -> Tensor:
        """Hears of the last token of each hypothesis, (B, K); returns what the network reads in its place, (B, K)."""

    def restrict(self, logits: Tensor) -> Tensor:
        """Logits (B, K, V) of the next token -> the same with -inf for what must not come."""

    def choose(self, parents: Tensor) -> None:
        """As `NextToken.choose`."""

    def keep(self, sentences: Tensor) -> None:
        """As `NextToken.keep`."""

    def fork(self, positions: int) -> Constraint:
        """A constraint of its own that has heard of the first `positions` tokens of a single hypothesis."""


D = TypeVar("D", bound="TransformerDecoder")


class TransformerDecoder:
    """The decoder of a Transformer with its key/value cache, as a `NextToken`."""

    def __init__(
        self,
        model: Transformer,
        src: Tensor,
        src_mask: Tensor,
        encoded: Tensor | None = None,
        shortlist: Shortlist | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        """src (B, S) ids, src_mask (B, 1, 1, S) with True = may be looked at (no padding).

        encoded: (B, S, d_model), what is read in place of the encoder's output. Of one short sentence that is encoded
        here, `encoding` then holds the encoder's output and weights, for the attention maps.
        shortlist: V are its words only, as `beam_search` understands; sampling and a `Prefix` count with all ids.
        constraint: what the outputs may be; None = anything.
        """
        self.model, self.device, self.shortlist, self.constraint = model, src.device, shortlist, constraint
        keep = encoded is None and len(src) == 1 and src.shape[1] <= MAX_SOURCE_TO_KEEP
        mask = model.useful_mask(src_mask)
        weights: list[Tensor] = []
        if encoded is None:
            encoded, weights = model.encode(src, mask, need_weights=keep)
        self.encoding = Encoding(encoded, weights) if keep else None
        memory = model.remember(encoded, mask)
        # Every step reads these: laid out once as the products want them.
        self.memory = Memory(
            [KeyValue(own.key.contiguous(), own.value.contiguous()) for own in memory.layers], memory.mask
        )
        self.cache = BeamCache(len(model.decoder))

    def step(self, tokens: Tensor, active: ActiveHypotheses | None = None) -> Tensor:
        """As `NextToken.step`."""
        if self.constraint is None:
            return self.logits(tokens, active)
        logits = self.constraint.restrict(self.logits(self.constraint.read(tokens)).float())
        return logits if active is None else active.rows(logits)

    def logits(self, tokens: Tensor, active: ActiveHypotheses | None = None) -> Tensor:
        """As `step`, whatever the constraint says of it."""
        return self.model.step(tokens, self.memory, self.cache, self.shortlist, active)

    def choose(self, parents: Tensor) -> None:
        """As `NextToken.choose`."""
        self.cache.choose(parents)
        if self.constraint is not None:
            self.constraint.choose(parents)

    def keep(self, sentences: Tensor) -> None:
        """As `NextToken.keep`."""
        self.cache.keep(sentences)
        self.memory = self.memory.select(sentences)
        if self.constraint is not None:
            self.constraint.keep(sentences)

    def fork(self: D, positions: int) -> D:
        """A decoder of its own that has read only the first `positions` tokens; nothing is computed again.

        Raises `ValueError` if there is more than one hypothesis, or it has read fewer tokens.
        """
        twin = copy.copy(self)
        twin.cache = self.cache.fork(positions)
        twin.constraint = self.constraint and self.constraint.fork(positions)
        return twin


@dataclass
class Candidate:
    """One output of a search."""

    ids: list[int]  # without bos and eos
    logprob: float  # sum of the tokens' log-probabilities, eos included
    score: float  # logprob / length penalty
    finished: bool  # ended by eos; otherwise by the length limit
    back: float | None = None  # log-probability of the source given this output, where it was read back


@dataclass
class TraceStep:
    """One step of one sentence's search: which hypotheses went on, and which ended."""

    tokens: list[int]  # the token that each surviving hypothesis took, best first
    parents: list[int]  # index of the hypothesis of the step before that it went on from
    logprobs: list[float]  # sums so far
    finished: list[Candidate] = field(default_factory=list)  # hypotheses that took eos in this step
    candidates: list[tuple[int, int, float]] = field(default_factory=list)  # the best 2K: (parent, token, sum)


@dataclass
class Prefix:
    """What an output has to begin with. Its decoder has read all of it but the last token."""

    ids: list[int]  # without bos
    logprob: float  # of these tokens, as the model rates them


@dataclass
class SearchResult:
    """The outputs for one sentence, best first, and the trace if it was asked for."""

    candidates: list[Candidate]
    trace: list[TraceStep] | None = None


def length_penalty(length: int, alpha: float | None) -> float:
    """((5 + |Y|) / 6) ^ alpha (Wu et al. 2016, equation 14); length |Y| counts eos. alpha: None = the paper's 0.6."""
    return ((5.0 + length) / 6.0) ** (ALPHA if alpha is None else alpha)


@dataclass
class BeamNode:
    """One continuation that a search weighed; the nodes of a sentence make a tree."""

    parent: int  # number of the node that it continues; -1 for the root, which holds bos or the prefix
    step: int  # length with this token, without bos; the root's is that of the prefix
    token: int
    logprob: float  # sum so far
    state: str  # "beam": went on; "finished": took eos; "pruned": one of the 2K best, not one of the K


def beam_tree(trace: Sequence[TraceStep], bos: int, eos: int, prefix: Prefix | None = None) -> list[BeamNode]:
    """The tree of a search: the root, then each step's 2K best continuations, best first.

    trace: of one sentence, as `SearchOptions.trace` keeps it; prefix: what the outputs begin with, read before.
    """
    prefix = prefix or Prefix([], 0.0)
    start = len(prefix.ids)
    nodes = [BeamNode(-1, start, prefix.ids[-1] if start else bos, prefix.logprob, "beam")]
    active = [0]  # node of each hypothesis of the beam
    for number, step in enumerate(trace, start + 1):
        ends = [len(c.ids) for c in step.finished]
        going, next_active = 0, []
        for parent, token, logprob in step.candidates:
            if logprob == -float("inf"):
                continue  # a forbidden token, or the copy that fills the beam of a tiny vocabulary
            state = "pruned"
            if token == eos and ends:  # the finished ones come in the order of the candidates
                ends.pop()
                state = "finished"
            elif token != eos and going < len(step.tokens):
                going += 1
                state = "beam"
                next_active.append(len(nodes))
            nodes.append(BeamNode(active[parent], number, token, logprob, state))
        # A beam that is not full is filled with copies of its best hypothesis, which never win.
        active = next_active or active
    return nodes


def rank(candidates: Sequence[Candidate], alpha: float | None) -> list[Candidate]:
    """The same hypotheses with their scores under another length penalty, best first; nothing is decoded again.

    An unfinished hypothesis has no eos, so its length is that of its ids alone.
    """
    ranking = [replace(c, score=c.logprob / length_penalty(len(c.ids) + c.finished, alpha)) for c in candidates]
    return sorted(ranking, key=lambda c: -c.score)


def read_prefix(decoder: NextToken, ids: Sequence[int], bos: int) -> Prefix:
    """Makes a fresh decoder of one sentence read bos and `ids`, all but the last of them, as `Prefix` wants it."""
    total, last = 0.0, bos
    for token in ids:
        logits = decoder.step(torch.tensor([[last]], device=decoder.device))[0, 0].float()
        total += float(logits[token] - logits.logsumexp(-1))
        last = token
    return Prefix(list(ids), total)


# Hypotheses together from which leaving some out makes a step shorter. A margin of 1 nat gives up two in five: a search
# then took 0.69 to 0.85 of the time on one thread and 0.9 on two, and with fewer hypotheses just as long.
MIN_ROWS_TO_SKIP = 16
# Numbers of which `largest` looks at the maximum first. It sorts V / BLOCK + count * BLOCK numbers; for 16,000 words
# and a beam of 4 (count 8) that is least, among powers of two, at 32 and 64.
BLOCK = 64


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest numbers of the last axis and their places, as `Tensor.topk` returns them.

    values: (..., V). Those of a large vocabulary lie in at most `count` of its blocks, the ones with the largest
        maxima; finding them reads everything once, in long strides, where topk on a CPU sorts as it goes.
    """
    width = values.shape[-1]
    if values.device.type != "cpu" or width % BLOCK or width < 2 * count * BLOCK:
        return values.topk(min(count, width), -1)
    blocks = values.unflatten(-1, (-1, BLOCK))
    indices = blocks.amax(-1).topk(count, -1).indices
    best, places = blocks.gather(-2, indices[..., None].expand(*indices.shape, BLOCK)).flatten(-2).topk(count, -1)
    return best, indices.gather(-1, places // BLOCK) * BLOCK + places % BLOCK


def best_extensions(
    logits: Tensor, sums: Tensor, count: int, forbidden: Tensor, active: ActiveHypotheses | None = None
) -> tuple[Tensor, Tensor]:
    """The likeliest continuations of each sentence: their sums and places, (B, count) each, best first.

    On a CPU the logits are overwritten, so that they need not be in its cache twice.

    A place is that of hypothesis k and word w, k * V + w; there are K * V where those are fewer than count.

    logits: (B, K, V), or those of the active hypotheses alone, (N, V).
    sums: (B, K), log-probability of each hypothesis so far.
    count: how many.
    forbidden: ids that come last, with -inf; the probabilities of the others stay the model's own, as if nothing were
        forbidden.
    active: which these are; None = all.
    """
    on_cpu = logits.device.type == "cpu"
    logprobs = torch.log_softmax(logits, -1, out=logits if on_cpu else None).index_fill_(-1, forbidden, -torch.inf)
    if active is None:
        return largest(logprobs.add_(sums[..., None]).flatten(1), count)
    own, words = largest(logprobs.add_(sums.flatten()[active.places, None]), count)
    values = own.new_full((sums.numel(), own.shape[1]), -torch.inf)
    places = words.new_zeros(values.shape)
    values[active.places] = own
    places[active.places] = words + active.places[:, None] % sums.shape[1] * logits.shape[1]
    values, places = values.view(len(sums), -1), places.view(len(sums), -1)
    best, indices = values.topk(min(count, values.shape[1]), -1)
    return best, places.gather(1, indices)


Extension = tuple[int, int, float]  # how a hypothesis goes on: number of the one it continues, token, sum


@dataclass
class Row:
    """The search of one sentence. An active hypothesis whose sum is -inf only fills its place."""

    number: int  # of the sentence
    limit: int  # most tokens of an output, without eos
    ids: list[list[int]]  # of the active hypotheses
    sums: list[float]  # their log-probabilities so far
    finished: list[Candidate] = field(default_factory=list)
    trace: list[TraceStep] = field(default_factory=list)

    def finish(self, candidates: Sequence[Candidate], beam: int) -> None:
        """Adds outputs and keeps the best `beam` of all, best first."""
        self.finished = sorted([*self.finished, *candidates], key=lambda c: -c.score)[:beam]


class Frontier:
    """The sentences that are still decoded and their active hypotheses: what beam search and sampling share.

    rows: in the order of the decoder's sentences.
    every: all sentences, the finished ones too, in the order of their numbers.
    length: tokens of each active hypothesis, with the one that the last `step` was about.
    """

    def __init__(self, decoder: NextToken, limits: Sequence[int], bos: int, prefix: Prefix | None = None) -> None:
        """
        decoder: of these sentences; it has read nothing, or all of the prefix but its last token.
        limits: for each sentence, the most tokens of an output.
        bos: what a decoder reads first.
        prefix: what every output begins with.
        """
        self.words = None if decoder.shortlist is None else decoder.shortlist.ids
        prefix = prefix or Prefix([], 0.0)
        self.decoder, self.device, self.length = decoder, decoder.device, len(prefix.ids)
        self.rows = [Row(n, limit, [list(prefix.ids)], [prefix.logprob]) for n, limit in enumerate(limits)]
        self.every = list(self.rows)
        last = prefix.ids[-1] if prefix.ids else bos
        self.tokens = torch.full((len(self.rows), 1), last, dtype=torch.long, device=self.device)

    def step(self, active: ActiveHypotheses | None = None) -> Tensor:
        """Logits of every hypothesis's next token, fp32, as `NextToken.step` has them."""
        self.length += 1
        return self.decoder.step(self.tokens, active).float()

    def advance(self, extensions: Sequence[Sequence[Extension]]) -> None:
        """Goes on by each sentence's extensions, the same number in each; a sentence without any is done and leaves."""
        alive = [number for number, own in enumerate(extensions) if own]
        if alive and len(alive) < len(self.rows):
            self.decoder.keep(torch.tensor(alive, device=self.device))
        self.rows = [self.rows[number] for number in alive]
        if not alive:
            return
        going = [extensions[number] for number in alive]
        parents = [[parent for parent, _, _ in own] for own in going]
        tokens = [[token for _, token, _ in own] for own in going]
        sums = [[total for _, _, total in own] for own in going]
        for row, own_parents, own_tokens, own_sums in zip(self.rows, parents, tokens, sums):
            row.ids = [[*row.ids[parent], token] for parent, token in zip(own_parents, own_tokens)]
            row.sums = own_sums
        self.decoder.choose(torch.tensor(parents, device=self.device))
        self.tokens = torch.tensor(tokens, device=self.device)

    def best(self, count: int, forbidden: Tensor) -> list[list[Extension]]:
        """The best `count` continuations of each sentence, best first.

        forbidden: places among the logits of what comes last, with a sum of -inf.
        """
        sums = torch.tensor([row.sums for row in self.rows], device=self.device)
        active = None
        if sums.numel() >= MIN_ROWS_TO_SKIP and any(-math.inf in row.sums for row in self.rows):
            active = ActiveHypotheses(sums > -torch.inf)
        logits = self.step(active)
        values, places = best_extensions(logits, sums, count, forbidden, active)
        parents, tokens = places // logits.shape[-1], places % logits.shape[-1]
        tokens = tokens if self.words is None else self.words[tokens]
        columns = (parents.tolist(), tokens.tolist(), values.tolist())
        return [list(zip(*sentence)) for sentence in zip(*columns)]


def beam_search(
    decoder: NextToken,
    limits: Sequence[int],
    bos: int,
    eos: int,
    options: SearchOptions = DEFAULTS,
    forbidden: Sequence[int] = (),
    min_length: int = 0,
    prefix: Prefix | None = None,
) -> list[SearchResult]:
    """Beam search over B sentences at once; beam 1 is greedy search.

    Of the 2K best continuations, those that end with eos among the first K are frozen: they leave the beam with their
    score and change no more; the best K others go on. A sentence is done when K hypotheses are frozen and the best
    active one, were it to end now, is no better than the worst of them.

    decoder: of these sentences, as in `Frontier`.
    limits: for each sentence, the most tokens an output may have, without eos.
    bos, eos: ids.
    options: beam (K), alpha, trace and margin.
    forbidden: ids that are never chosen.
    min_length: eos is not chosen before so many tokens.
    prefix: what every output begins with (`read_prefix`, or a decoder's `fork`); it counts in ids, sums and lengths.
    Raises `ValueError` if the model's output is not a number.
    """
    beam = options.beam
    if beam < 1:
        raise ValueError(f"the beam has to be at least 1, got {beam}.")
    front = Frontier(decoder, limits, bos, prefix)
    never, not_yet = (
        torch.tensor(sorted(set(t)), dtype=torch.long, device=decoder.device) for t in (forbidden, (*forbidden, eos))
    )
    if front.words is not None:
        never, not_yet = (torch.isin(front.words, ids).nonzero()[:, 0] for ids in (never, not_yet))
    while front.rows:
        best = front.best(2 * beam, not_yet if front.length < min_length else never)
        front.advance(
            [_go_on(row, extensions, front.length, eos, options) for row, extensions in zip(front.rows, best)]
        )
    return [SearchResult(row.finished, row.trace if options.trace else None) for row in front.every]


def _go_on(row: Row, extensions: list[Extension], length: int, eos: int, options: SearchOptions) -> list[Extension]:
    """Freezes what ends among a sentence's best 2K extensions; returns the K that go on, none if it is done."""
    beam, penalty = options.beam, length_penalty(length, options.alpha)
    if math.isnan(extensions[0][2]):
        raise ValueError("the model's output is not a number; its weights are damaged.")
    ends = [
        Candidate(row.ids[parent], total, total / penalty, True)
        for parent, token, total in extensions[:beam]
        if token == eos and total > -math.inf
    ]
    going = [extension for extension in extensions if extension[1] != eos and extension[2] > -math.inf][:beam]
    going = [extension for extension in going if extension[2] >= going[0][2] - options.margin]
    row.finish(ends, beam)
    if options.trace:
        tokens, parents = [token for _, token, _ in going], [parent for parent, _, _ in going]
        row.trace.append(TraceStep(tokens, parents, [total for _, _, total in going], ends, extensions))
    if not going or (len(row.finished) >= beam and going[0][2] / penalty <= row.finished[-1].score):
        return []
    if length >= row.limit:
        row.finish([Candidate([*row.ids[p], token], s, s / penalty, False) for p, token, s in going], beam)
        return []
    # Where fewer than K go on, as with few words or a margin, a copy that can never win fills the beam.
    return going + [(*going[0][:2], -math.inf)] * (beam - len(going))


def sample_search(
    decoder: NextToken,
    limits: Sequence[int],
    bos: int,
    eos: int,
    options: SearchOptions,
    seeds: Sequence[int] = (0,),
    forbidden: Sequence[int] = (),
) -> list[SearchResult]:
    """Outputs drawn at random: each token by the model's probabilities, K outputs a sentence, best score first.

    A candidate's logprob is the model's own, at temperature 1 and over all words, so that it compares with a search's.

    decoder, limits, bos, eos, forbidden: as in `beam_search`.
    options: n_best (K), alpha, and sampling, whose temperature divides the logits.
    seeds: one for each sentence, so that its outputs do not depend on the others of its batch.
    Raises `ValueError` if n_best, temperature or top_k make no sense, or the model's output is not a number.
    """
    sampling, samples = options.sampling or Sampling(), options.n_best
    temperature, top_k = sampling.temperature, sampling.top_k
    if samples < 1:
        raise ValueError(f"The number of samples has to be at least 1, got {samples}.")
    if not MIN_TEMPERATURE <= temperature < float("inf"):
        raise ValueError(
            f"The temperature has to be at least {MIN_TEMPERATURE:g}, got {temperature:g}; "
            "greedy search takes the likeliest token."
        )
    if top_k < 0:
        raise ValueError(f"Top-k has to be 0 (all words) or more, got {top_k}.")
    if len(seeds) != len(limits):
        raise ValueError(f"{len(limits)} sentences need as many seeds, got {len(seeds)}.")
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    front = Frontier(decoder, limits, bos)
    while front.rows:
        logits = front.step()
        uniform = [torch.rand(samples, 1, generator=draws[row.number], dtype=torch.float64) for row in front.rows]
        tokens, logprobs = draw_tokens(logits, torch.stack(uniform).to(decoder.device), temperature, top_k, forbidden)
        columns = zip(front.rows, tokens.tolist(), logprobs.tolist())
        front.advance([_draw_on(row, words, own, front.length, eos) for row, words, own in columns])
    return [SearchResult(rank(row.finished, options.alpha)) for row in front.every]


def draw_tokens(
    logits: Tensor, uniform: Tensor, temperature: float, top_k: int, forbidden: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Tokens by the inverse of their distribution function, and the model's own log-probabilities of them, (B, K) each.

    logits: (B, K, V), or (B, 1, V) where all K go on from the same hypothesis.
    uniform: (B, K, 1) in [0, 1), double precision, so that no tail is lost.
    temperature, top_k: as in `Sampling`.
    forbidden: as in `sample_search`.
    Raises `ValueError` if the logits are not numbers.
    """
    logits = logits.expand(-1, uniform.shape[1], -1)
    total = logits.logsumexp(-1, keepdim=True)
    if not bool(total.isfinite().all()):
        raise ValueError("the model's output is not a number; its weights are damaged.")
    own = logits - total
    scores = logits.clone()
    scores[..., list(forbidden)] = -torch.inf
    if top_k:
        lowest = scores.topk(min(top_k, scores.shape[-1]), -1).values[..., -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    mass = (scores / temperature).softmax(-1).double().cumsum(-1)
    tokens = torch.searchsorted(mass, uniform * mass[..., -1:], right=True).clamp_max(mass.shape[-1] - 1)
    return tokens[..., 0], own.gather(-1, tokens)[..., 0]


def _draw_on(row: Row, words: list[int], logprobs: list[float], length: int, eos: int) -> list[Extension]:
    """The extensions of K outputs by the drawn words; those that end keep their place. None if all have ended."""
    extensions = []
    for k, (word, logprob) in enumerate(zip(words, logprobs)):
        parent = k if len(row.ids) > 1 else 0  # at first all outputs go on from the same beginning
        total = row.sums[parent] + logprob
        if total > -math.inf and (word == eos or length >= row.limit):
            own = row.ids[parent] if word == eos else [*row.ids[parent], word]
            row.finished.append(Candidate(own, total, total, word == eos))
            total = -math.inf
        extensions.append((parent, word, total))
    return extensions if any(total > -math.inf for _, _, total in extensions) else []
