"""Greedy and beam search over whatever can say the log-probabilities of a next token.

Axes: B sentences, K hypotheses of a beam, V words. A hypothesis's log-probability is the sum over its tokens, eos
included; its score divides that by the length penalty of Wu et al. (2016), equation 14.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Protocol, Sequence

import torch
from torch import Tensor

from transformer.attention import BeamCache, KeyValue
from transformer.model import Encoding, Memory, Transformer

KEPT_LENGTH = 64  # tokens up to which a sentence alone keeps its encoding: the encoder's weights stay under a megabyte


class NextToken(Protocol):
    """What a search needs of a model; it keeps the state of B sentences with K hypotheses each."""

    def step(self, tokens: Tensor) -> Tensor:
        """tokens (B, K), the last token of each hypothesis -> logits (B, K, V) of the next one."""

    def choose(self, parents: Tensor) -> None:
        """Makes hypothesis k of sentence b go on from hypothesis parents[b, k]; parents (B, K')."""

    def keep(self, sentences: Tensor) -> None:
        """Forgets all sentences but these; sentences (B',) are indices into the present ones."""


class TransformerDecoder:
    """The decoder of a Transformer with its key/value cache, as a `NextToken`."""

    def __init__(self, model: Transformer, src: Tensor, src_mask: Tensor) -> None:
        """src (B, S) ids, src_mask (B, 1, 1, S) with True = may be looked at (no padding).

        Of one short sentence, `encoding` then holds the encoder's output and weights, for the attention maps.
        """
        self.model = model
        kept = len(src) == 1 and src.shape[1] <= KEPT_LENGTH
        mask = model.needed_mask(src_mask)
        encoded, weights = model.encode(src, mask, need_weights=kept)
        self.encoding = Encoding(encoded, weights) if kept else None
        memory = model.remember(encoded, mask)
        # Every step reads these: laid out once as the products want them.
        self.memory = Memory([KeyValue(kept.key.contiguous(), kept.value.contiguous()) for kept in memory.layers], memory.mask)
        self.cache = BeamCache(len(model.decoder))

    def step(self, tokens: Tensor) -> Tensor:
        return self.model.step(tokens, self.memory, self.cache)

    def choose(self, parents: Tensor) -> None:
        self.cache.choose(parents)

    def keep(self, sentences: Tensor) -> None:
        self.cache.keep(sentences)
        self.memory = self.memory.select(sentences)

    def fork(self, positions: int) -> TransformerDecoder:
        """A decoder of its own that has read only the first `positions` tokens; nothing is computed again.

        Raises `ValueError` if there is more than one hypothesis, or it has read fewer tokens.
        """
        twin = copy.copy(self)
        twin.cache = self.cache.fork(positions)
        return twin


@dataclass
class Candidate:
    """One output of a search."""

    ids: list[int]  # without bos and eos
    logprob: float  # sum of the tokens' log-probabilities, eos included
    score: float  # logprob / length penalty
    finished: bool  # ended by eos; otherwise by the length limit


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


def length_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6) ^ alpha (Wu et al. 2016, equation 14); length |Y| counts eos."""
    return ((5.0 + length) / 6.0) ** alpha


@dataclass
class BeamNode:
    """One continuation that a search weighed; the nodes of a sentence make a tree."""

    parent: int  # number of the node that it continues; -1 for the root, which holds bos or the prefix
    step: int  # length with this token, without bos; the root's is that of the prefix
    token: int
    logprob: float  # sum so far
    state: str  # "beam": went on; "finished": took eos; "pruned": one of the 2K best, not one of the K


def beam_tree(trace: Sequence[TraceStep], bos: int, eos: int, prefix: Prefix | None = None) -> list[BeamNode]:
    """The tree of a search: the root, then each step's 2K best continuations, best first."""
    start = len(prefix.ids) if prefix else 0
    nodes = [BeamNode(-1, start, prefix.ids[-1] if start else bos, prefix.logprob if prefix else 0.0, "beam")]
    living = [0]  # node of each hypothesis of the beam
    for number, step in enumerate(trace, start + 1):
        ended = [len(c.ids) for c in step.finished]
        going, next_living = 0, []
        for parent, token, logprob in step.candidates:
            if logprob == -float("inf"):
                continue  # a forbidden token, or the copy that fills the beam of a tiny vocabulary
            state = "pruned"
            if token == eos and ended:  # the finished ones come in the order of the candidates
                ended.pop()
                state = "finished"
            elif token != eos and going < len(step.tokens):
                going += 1
                state = "beam"
                next_living.append(len(nodes))
            nodes.append(BeamNode(living[parent], number, token, logprob, state))
        # A beam that is not full is filled with copies of its best hypothesis, which never win.
        living = next_living or living
    return nodes


def rank(candidates: Sequence[Candidate], alpha: float) -> list[Candidate]:
    """The same hypotheses with their scores under another length penalty, best first; nothing is decoded again.

    An unfinished hypothesis has no eos, so its length is that of its ids alone.
    """
    scored = [replace(c, score=c.logprob / length_penalty(len(c.ids) + c.finished, alpha)) for c in candidates]
    return sorted(scored, key=lambda c: -c.score)


def read_prefix(
    decoder: NextToken, ids: Sequence[int], bos: int, device: torch.device | str = "cpu"
) -> Prefix:
    """Makes a fresh decoder of one sentence read bos and `ids`, all but the last of them, as `Prefix` wants it."""
    total, last = 0.0, bos
    for token in ids:
        logits = decoder.step(torch.tensor([[last]], device=device))[0, 0].float()
        total += float(logits[token] - logits.logsumexp(-1))
        last = token
    return Prefix(list(ids), total)


def best_words(logits: Tensor, count: int, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest words of each hypothesis: log-probabilities and ids (B, K, count or V), best first.

    logits (B, K, V) are used up. forbidden: ids that come last, with -inf; the probabilities of the others stay the
    model's own, as if nothing were forbidden.
    """
    held = logits.index_select(-1, forbidden)
    logits.index_fill_(-1, forbidden, -torch.inf)
    best, words = logits.topk(min(count, logits.shape[-1]), -1)
    # ln sum exp over all V, in place: with large batches most of the time would go into new memory.
    top = torch.cat((best[..., :1], held), -1).amax(-1, keepdim=True)
    mass = logits.sub_(top).exp_().sum(-1, keepdim=True) + (held - top).exp().sum(-1, keepdim=True)
    return best - (top + mass.log()), words


def beam_search(
    decoder: NextToken,
    limits: Sequence[int],
    bos: int,
    eos: int,
    beam: int = 4,
    alpha: float = 0.6,
    forbidden: Sequence[int] = (),
    min_length: int = 0,
    trace: bool = False,
    device: torch.device | str = "cpu",
    prefix: Prefix | None = None,
) -> list[SearchResult]:
    """Beam search over B sentences at once; beam 1 is greedy search.

    limits: for each sentence, the most tokens an output may have, without eos. forbidden: ids that are never chosen.
    min_length: eos is not chosen before so many tokens. Of the 2K best continuations, those that end with eos among the
    first K are frozen: they leave the beam with their score and change no more; the best K others go on. A sentence is
    done when K hypotheses are frozen and the best living one, were it to end now, is no better than the worst of them.
    prefix: what every output begins with (`read_prefix`, or a decoder's `fork`); it counts in ids, sums and lengths.

    Raises `ValueError` if the model's output is not a number.
    """
    if beam < 1:
        raise ValueError(f"the beam has to be at least 1, got {beam}.")
    total = len(limits)
    frozen: list[list[Candidate]] = [[] for _ in range(total)]
    traces: list[list[TraceStep]] = [[] for _ in range(total)]
    alive = list(range(total))  # numbers of the sentences that are still searched; row r of each tensor is alive[r]
    prefix = prefix or Prefix([], 0.0)
    tokens = torch.full((total, 1), prefix.ids[-1] if prefix.ids else bos, dtype=torch.long, device=device)
    sums = torch.full((total, 1), prefix.logprob, device=device)
    never, not_yet = (torch.tensor(sorted(set(t)), dtype=torch.long, device=device) for t in (forbidden, (*forbidden, eos)))
    ids: list[list[list[int]]] = [[list(prefix.ids)] for _ in range(total)]  # of the living hypotheses, by row
    length = len(prefix.ids)
    while alive:
        length += 1
        # The 2K best of a sentence are among the 2K best of each hypothesis.
        best, words = best_words(decoder.step(tokens).float(), 2 * beam, not_yet if length <= min_length else never)
        wide = words.shape[-1]
        continued = sums[..., None] + best
        chosen, where = continued.flatten(1).topk(min(2 * beam, continued[0].numel()), -1)
        rows = chosen.tolist()
        row_parents = (where // wide).tolist()
        row_words = words.flatten(1).gather(1, where).tolist()
        keep, next_tokens, next_parents, next_sums, next_ids = [], [], [], [], []
        for row, sentence in enumerate(alive):
            values, parents, taken = rows[row], row_parents[row], row_words[row]
            if values[0] != values[0]:
                raise ValueError("the model's output is not a number; its weights are damaged.")
            ended = [
                Candidate(ids[row][parents[i]], values[i], values[i] / length_penalty(length, alpha), True)
                for i in range(min(beam, len(values)))
                if taken[i] == eos and values[i] > -torch.inf
            ]
            going = [i for i in range(len(values)) if taken[i] != eos and values[i] > -torch.inf][:beam]
            frozen[sentence] = sorted(frozen[sentence] + ended, key=lambda c: -c.score)[:beam]
            if trace:
                traces[sentence].append(
                    TraceStep(
                        [taken[i] for i in going], [parents[i] for i in going], [values[i] for i in going], ended,
                        list(zip(parents, taken, values)),
                    )
                )
            own_ids = [ids[row][parents[i]] + [taken[i]] for i in going]
            best_score = values[going[0]] / length_penalty(length, alpha) if going else -torch.inf
            done = not going or (len(frozen[sentence]) >= beam and best_score <= frozen[sentence][-1].score)
            if not done and length >= limits[sentence]:
                cut = [
                    Candidate(own, values[i], values[i] / length_penalty(length, alpha), False)
                    for own, i in zip(own_ids, going)
                ]
                frozen[sentence] = sorted(frozen[sentence] + cut, key=lambda c: -c.score)[:beam]
                done = True
            if done:
                continue
            # A table with few words may offer fewer than K ways on; a copy that can never win fills the beam.
            spare = beam - len(going)
            keep.append(row)
            next_tokens.append([taken[i] for i in going] + [taken[going[0]]] * spare)
            next_parents.append([parents[i] for i in going] + [parents[going[0]]] * spare)
            next_sums.append([values[i] for i in going] + [-torch.inf] * spare)
            next_ids.append(own_ids + [own_ids[0]] * spare)
        if keep and len(keep) < len(alive):
            decoder.keep(torch.tensor(keep, device=device))
        alive = [alive[row] for row in keep]
        if alive:
            decoder.choose(torch.tensor(next_parents, device=device))
            tokens = torch.tensor(next_tokens, device=device)
            sums = torch.tensor(next_sums, device=device)
            ids = next_ids
    return [SearchResult(frozen[i], traces[i] if trace else None) for i in range(total)]


def greedy_search(
    decoder: NextToken, limits: Sequence[int], bos: int, eos: int, forbidden: Sequence[int] = (),
    device: torch.device | str = "cpu",
) -> list[SearchResult]:
    """The most probable token at each step, until eos or the limit: what `beam_search` gives for a beam of one."""
    total = len(limits)
    out: list[list[int]] = [[] for _ in range(total)]
    sums = [0.0] * total
    ended = [False] * total
    tokens = torch.full((total, 1), bos, dtype=torch.long, device=device)
    for step in range(max(limits, default=0)):
        log_probs = decoder.step(tokens).float().log_softmax(-1)
        for token in forbidden:
            log_probs[..., token] = -torch.inf
        values, words = log_probs.max(-1)
        for row in range(total):
            if ended[row] or step >= limits[row]:
                continue
            sums[row] += float(values[row, 0])
            if int(words[row, 0]) == eos:
                ended[row] = True
            else:
                out[row].append(int(words[row, 0]))
        if all(ended[row] or len(out[row]) >= limits[row] for row in range(total)):
            break
        tokens = words
    return [SearchResult([Candidate(o, s, s, e)]) for o, s, e in zip(out, sums, ended)]


def sample_search(
    decoder: NextToken,
    limits: Sequence[int],
    bos: int,
    eos: int,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    seeds: Sequence[int] = (0,),
    alpha: float = 0.6,
    forbidden: Sequence[int] = (),
    device: torch.device | str = "cpu",
) -> list[SearchResult]:
    """Outputs drawn at random: each token by the model's probabilities, K outputs a sentence, best score first.

    limits, forbidden: as in `beam_search`. temperature: logits are divided by it; below 1 the likely tokens gain, above
    1 the unlikely ones. top_k: draw among the k most probable tokens only; 0 = among all. seeds: one for each sentence,
    so a sentence's outputs do not depend on the others of its batch. alpha: length penalty of the scores. A candidate's
    logprob is the model's own, at temperature 1 and over all words, so that it compares with a search's.

    Raises `ValueError` if samples, temperature or top_k make no sense, or the model's output is not a number.
    """
    if samples < 1:
        raise ValueError(f"The number of samples has to be at least 1, got {samples}.")
    if not 0.0 < temperature < float("inf"):
        raise ValueError(
            f"The temperature has to be above 0, got {temperature:g}; greedy search takes the likeliest token."
        )
    if top_k < 0:
        raise ValueError(f"Top-k has to be 0 (all words) or more, got {top_k}.")
    total = len(limits)
    if len(seeds) != total:
        raise ValueError(f"{total} sentences need as many seeds, got {len(seeds)}.")
    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    tokens = torch.full((total, 1), bos, dtype=torch.long, device=device)
    ids: list[list[list[int]]] = [[[] for _ in range(samples)] for _ in range(total)]
    sums = [[0.0] * samples for _ in range(total)]
    open_ = [[True] * samples for _ in range(total)]
    ended = [[False] * samples for _ in range(total)]
    for step in range(max(limits, default=0)):
        logits = decoder.step(tokens).float()
        if step == 0:  # the outputs part ways here
            decoder.choose(torch.zeros(total, samples, dtype=torch.long, device=device))
            logits = logits.repeat(1, samples, 1)  # (B, K, V)
        total_mass = logits.logsumexp(-1, keepdim=True)
        if not bool(total_mass.isfinite().all()):
            raise ValueError("the model's output is not a number; its weights are damaged.")
        own = logits - total_mass
        for token in forbidden:
            logits[..., token] = -torch.inf
        if top_k:
            lowest = logits.topk(min(top_k, logits.shape[-1]), -1).values[..., -1:]
            logits = logits.masked_fill(logits < lowest, -torch.inf)
        # Inverse of the distribution function: one uniform number a token, in double precision so that no tail is lost.
        mass = (logits / temperature).softmax(-1).double().cumsum(-1)
        uniform = torch.stack([torch.rand(samples, 1, generator=g, dtype=torch.float64) for g in draws]).to(device)
        drawn = torch.searchsorted(mass, uniform * mass[..., -1:], right=True).clamp_max(mass.shape[-1] - 1)
        logprobs = own.gather(-1, drawn)[..., 0].tolist()
        words = drawn[..., 0].tolist()
        for row in range(total):
            for k in range(samples):
                if not open_[row][k]:
                    continue
                sums[row][k] += logprobs[row][k]
                if words[row][k] == eos:
                    ended[row][k] = True
                else:
                    ids[row][k].append(words[row][k])
                open_[row][k] = not ended[row][k] and len(ids[row][k]) < limits[row]
        if not any(map(any, open_)):
            break
        tokens = drawn[..., 0]
    return [
        SearchResult(rank([Candidate(i, s, s, e) for i, s, e in zip(*row)], alpha)) for row in zip(ids, sums, ended)
    ]
