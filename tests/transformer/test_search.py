"""Search on a hand-written table of probabilities, and with a real decoder and its cache."""

import dataclasses
import itertools
import math

import pytest
import torch

from transformer.attention import key_mask
from transformer.cache import ActiveHypotheses
from transformer.config import TransformerConfig
from transformer.data import collate
from transformer.model import Shortlist, Transformer
from transformer.options import Sampling, SearchOptions
from transformer.search import (
    Candidate,
    SearchResult,
    TransformerDecoder,
    beam_search,
    best_extensions,
    largest,
    length_penalty,
    rank,
    read_prefix,
    sample_search,
)

BOS, EOS, A, B = 0, 1, 2, 3

# P(next | words so far); what is not listed ends with eos. Greedy takes A (0.6) and reaches 0.6 * 0.4 * 1 = 0.24;
# the best output is B: 0.4 * 0.9 = 0.36.
TABLE = {
    (): {A: 0.6, B: 0.4},
    (A,): {A: 0.4, B: 0.3, EOS: 0.3},
    (B,): {EOS: 0.9, A: 0.1},
}


def greedy_search(decoder, limits, bos, eos):
    """The most probable token at each step, until eos or the limit: the oracle of a beam of one."""
    total = len(limits)
    out: list[list[int]] = [[] for _ in range(total)]
    sums = [0.0] * total
    ended = [False] * total
    tokens = torch.full((total, 1), bos, dtype=torch.long)
    for step in range(max(limits)):
        log_probs = decoder.step(tokens).float().log_softmax(-1)
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


class TableDecoder:
    """A `NextToken` that looks probabilities up by the words so far, one table a sentence."""

    device, shortlist = "cpu", None

    def __init__(self, *tables):
        self.tables, self.words, self.chosen = list(tables), [[()] for _ in tables], []

    def step(self, tokens, active=None):
        rows = []
        for table, histories, own in zip(self.tables, self.words, tokens.tolist()):
            grown = [h if t == BOS else (*h, t) for h, t in zip(histories, own)]
            histories[:] = grown
            rows.append([[table.get(h, {EOS: 1.0}).get(word, 0.0) for word in range(4)] for h in grown])
        logits = torch.tensor(rows).log()
        return logits if active is None else active.rows(logits)

    def choose(self, parents):
        self.chosen.append(parents.tolist())
        self.words = [[histories[p] for p in row] for histories, row in zip(self.words, parents.tolist())]

    def keep(self, sentences):
        self.tables = [self.tables[i] for i in sentences.tolist()]
        self.words = [self.words[i] for i in sentences.tolist()]


def asked(options):
    """The keywords of a search: those of `SearchOptions` as one, the others as they are."""
    own = {field.name for field in dataclasses.fields(SearchOptions)}
    rest = {name: value for name, value in options.items() if name not in own}
    return {"options": SearchOptions(**{name: options[name] for name in own & options.keys()}), **rest}


def search(*tables, limits=None, **options):
    return beam_search(TableDecoder(*tables), limits or [10] * len(tables), BOS, EOS, **asked(options))


def test_greedy_takes_the_likeliest_word_each_time():
    (found,) = greedy_search(TableDecoder(TABLE), [10], BOS, EOS)
    assert found.candidates[0].ids == [A, A]
    assert found.candidates[0].logprob == pytest.approx(math.log(0.6 * 0.4))


def test_a_beam_of_two_finds_the_better_sentence():
    (found,) = search(TABLE, beam=2, alpha=0.0)
    assert [c.ids for c in found.candidates] == [[B], [A, A]]
    assert [c.logprob for c in found.candidates] == pytest.approx([math.log(0.36), math.log(0.24)])
    assert all(c.finished for c in found.candidates)


def test_the_search_goes_on_while_a_living_hypothesis_may_win_and_no_longer():
    """Both times two hypotheses, a full beam, are finished after two steps: nothing (0.4 or 0.6), and A."""
    better = {(): {A: 0.6, EOS: 0.4}, (A,): {A: 0.7, EOS: 0.3}}  # A A lives on with 0.42
    (found,) = search(better, beam=2, alpha=0.0)
    assert [c.ids for c in found.candidates] == [[A, A], []]
    assert [c.logprob for c in found.candidates] == pytest.approx([math.log(0.42), math.log(0.4)])
    worse = {(): {EOS: 0.6, A: 0.4}, (A,): {EOS: 0.9, A: 0.1}}  # with 0.04
    (found,) = search(worse, beam=2, alpha=0.0, trace=True)
    assert [c.ids for c in found.candidates] == [[], [A]] and len(found.trace) == 2


def test_length_penalty_is_that_of_wu_et_al():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    # With alpha 0, B wins (0.36 against 0.24); a strong penalty prefers the longer A A.
    (found,) = search(TABLE, beam=3, alpha=5.0)
    assert found.candidates[0].ids == [A, A]
    assert found.candidates[0].score == pytest.approx(math.log(0.24) / ((5 + 3) / 6) ** 5)


def test_wide_beam_equals_trying_everything():
    torch.manual_seed(0)
    table = {}
    for length in range(4):
        for words in itertools.product((A, B), repeat=length):
            p = torch.rand(3).softmax(0).tolist()
            table[words] = {EOS: p[0], A: p[1], B: p[2]}
    everything = []
    for length in range(5):  # after four words the table ends the sentence
        for words in itertools.product((A, B), repeat=length):
            logprob = sum(math.log(table[words[:i]][words[i]]) for i in range(length))
            logprob += math.log(table[words][EOS]) if words in table else 0.0
            everything.append((logprob / length_penalty(length + 1, 0.6), list(words)))
    everything.sort(reverse=True)
    (found,) = search(table, beam=31, alpha=0.6)
    assert [c.ids for c in found.candidates] == [words for _, words in everything]
    assert [c.score for c in found.candidates] == pytest.approx([score for score, _ in everything], abs=1e-5)


def test_a_batch_of_tables_is_like_each_alone():
    other = {(): {B: 0.9, EOS: 0.1}, (B,): {B: 0.5, EOS: 0.5}, (B, B): {A: 0.7, EOS: 0.3}}
    tables = [TABLE, other, {}, TABLE]
    together = search(*tables, beam=2)
    for table, found in zip(tables, together):
        (alone,) = search(table, beam=2)
        assert found == alone


def test_the_limit_cuts_and_says_so():
    endless = {(A,) * n: {A: 1.0} for n in range(20)}
    (found,) = search(endless, limits=[5], beam=2)
    assert found.candidates[0].ids == [A] * 5 and not found.candidates[0].finished


def test_forbidden_words_and_minimum_length():
    (found,) = search(TABLE, beam=2, forbidden=[B])
    assert all(B not in c.ids for c in found.candidates)
    (found,) = search(TABLE, beam=2, alpha=0.0, min_length=2)
    assert all(len(c.ids) >= 2 for c in found.candidates) and found.candidates[0].ids == [A, A]


def test_trace_tells_the_whole_search():
    (found,) = search(TABLE, beam=2, alpha=0.0, trace=True)
    first, second, third = found.trace
    assert (first.tokens, first.parents) == ([A, B], [0, 0])
    assert first.logprobs == pytest.approx([math.log(0.6), math.log(0.4)])
    # B ends as the best of all; A A and A B go on; A's own end, third best, is not frozen by a beam of two.
    assert [c.ids for c in second.finished] == [[B]]
    assert (second.tokens, second.parents) == ([A, B], [0, 0])
    assert second.candidates[0] == (1, EOS, pytest.approx(math.log(0.36)))
    assert [c.ids for c in third.finished] == [[A, A], [A, B]]
    (plain,) = search(TABLE, beam=2, alpha=0.0)
    assert plain.trace is None and plain.candidates == found.candidates


def test_damaged_output_and_empty_beams_say_so():
    class Broken(TableDecoder):
        def step(self, tokens, active=None):
            return super().step(tokens, active) * float("nan")

    with pytest.raises(ValueError, match="not a number"):
        beam_search(Broken(TABLE), [10], BOS, EOS)
    with pytest.raises(ValueError, match="beam"):
        search(TABLE, beam=0)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(7)
    size = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "heads": 4, "max_length": 60}
    config = TransformerConfig(vocab_size=30, **size)
    model = Transformer(config).eval()
    with torch.no_grad():  # sharper than at the start of training, so that hypotheses differ
        for parameter in model.parameters():
            parameter.mul_(1.5)
        model.embedding.weight[3].add_(0.15)
    return model


SOURCES = [[4, 5, 6], [7, 8, 9, 10, 11, 12], [13], [14, 15, 16, 17]]


class UncachedDecoder:
    """The same model without any cache: the whole prefix is read again for each token."""

    device, shortlist = "cpu", None

    def __init__(self, model, src):
        self.model, self.src, self.prefix = model, src, None

    def step(self, tokens, active=None):
        self.prefix = tokens[..., None] if self.prefix is None else torch.cat((self.prefix, tokens[..., None]), -1)
        sentences, beams, length = self.prefix.shape
        src = self.src.repeat_interleave(beams, 0)
        mask = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        logits = self.model(src, self.prefix.reshape(-1, length), key_mask(src, 0), mask)
        return logits[:, -1].reshape(sentences, beams, -1) if active is None else logits[active.places, -1]

    def choose(self, parents):
        self.prefix = self.prefix.gather(1, parents[..., None].expand(-1, -1, self.prefix.shape[-1]))

    def keep(self, sentences):
        self.prefix, self.src = self.prefix[sentences], self.src[sentences]


def run(model, sources, cached=True, **options):
    src = collate([(s, []) for s in sources]).src
    with torch.inference_mode():
        decoder = TransformerDecoder(model, src, key_mask(src, 0)) if cached else UncachedDecoder(model, src)
        return beam_search(decoder, [20] * len(sources), 2, 3, **asked(options))


def same(left, right):
    assert [c.ids for c in left.candidates] == [c.ids for c in right.candidates]
    assert [c.score for c in left.candidates] == pytest.approx([c.score for c in right.candidates], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_cached_decoding_equals_uncached(model, beam):
    for cached, uncached in zip(run(model, SOURCES, beam=beam), run(model, SOURCES, cached=False, beam=beam)):
        same(cached, uncached)


@pytest.mark.parametrize("beam", [1, 3])
def test_batch_equals_one_by_one(model, beam):
    together = run(model, SOURCES, beam=beam)
    assert len({len(r.candidates[0].ids) for r in together}) > 1  # they end at different steps
    for source, found in zip(SOURCES, together):
        same(found, run(model, [source], beam=beam)[0])


def test_logits_of_some_hypotheses_are_those_among_all(model):
    src = collate([(s, []) for s in SOURCES]).src
    with torch.inference_mode():
        decoders = [TransformerDecoder(model, src, key_mask(src, 0)) for _ in range(2)]
        for decoder in decoders:
            decoder.step(torch.full((4, 1), 2))
            decoder.choose(torch.zeros(4, 3, dtype=torch.long))
        taken = torch.zeros(4, 3, dtype=torch.bool)
        taken[:, 0] = taken[1] = taken[3, 2] = True
        tokens, active = torch.arange(12).view(4, 3) + 4, ActiveHypotheses(taken)
        for _ in range(2):  # what is written for the others is looked at by none
            every, some = decoders[0].step(tokens), decoders[1].step(tokens, active)
            torch.testing.assert_close(some, every[taken], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("margin", [0.05, 0.4, 2.0, 50.0])
def test_what_is_given_up_is_not_computed_and_changes_nothing_else(model, margin):
    class Counting(TransformerDecoder):
        computed, every = 0, 0

        def step(self, tokens, active=None):
            logits = super().step(tokens, active)
            self.computed += logits.numel() // logits.shape[-1]
            self.every += tokens.numel()
            return logits

    src = collate([(s, []) for s in SOURCES]).src
    with torch.inference_mode():
        decoder = Counting(model, src, key_mask(src, 0))
        found = beam_search(decoder, [20] * 4, 2, 3, SearchOptions(trace=True, margin=margin))
    for cached, uncached in zip(found, run(model, SOURCES, cached=False, beam=4, margin=margin)):
        same(cached, uncached)
    steps = [step for result in found for step in result.trace]
    assert all(total >= step.logprobs[0] - margin for step in steps for total in step.logprobs)
    assert (decoder.computed < decoder.every) == (margin < 50.0)
    assert margin < 50.0 or found == run(model, SOURCES, beam=4, trace=True)


def test_what_falls_behind_by_more_than_the_margin_is_given_up():
    (found,) = search(TABLE, beam=2, alpha=0.0, margin=0.4, trace=True)  # log 0.6 - log 0.4 = 0.405
    assert [step.tokens for step in found.trace] == [[A], [A, B], []] and found.candidates[0].ids == [A, A]
    (found,) = search(TABLE, beam=2, alpha=0.0, margin=0.41)
    assert found == search(TABLE, beam=2, alpha=0.0)[0]


def test_beam_of_one_is_greedy(model):
    src = collate([(s, []) for s in SOURCES]).src
    with torch.inference_mode():
        greedy = greedy_search(TransformerDecoder(model, src, key_mask(src, 0)), [20] * 4, 2, 3)
    for found, expected in zip(run(model, SOURCES, beam=1), greedy):
        assert found.candidates[0].ids == expected.candidates[0].ids
        assert found.candidates[0].logprob == pytest.approx(expected.candidates[0].logprob, abs=1e-4)


def teacher_forced(model, source, candidate):
    """The log-probability of a candidate in one pass over the whole of it, and its labels."""
    batch = collate([(source, candidate.ids)])
    with torch.no_grad():
        logits = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)[0].log_softmax(-1)
    labels = [*candidate.ids, 3] if candidate.finished else candidate.ids
    return sum(float(logits[i, label]) for i, label in enumerate(labels)), labels


def test_scores_are_those_of_teacher_forcing(model):
    for source, found in zip(SOURCES, run(model, SOURCES, beam=4, alpha=0.6)):
        for candidate in found.candidates:
            expected, labels = teacher_forced(model, source, candidate)
            assert candidate.logprob == pytest.approx(expected, abs=1e-4)
            assert candidate.score == pytest.approx(expected / length_penalty(len(labels), 0.6), abs=1e-4)


def test_another_length_penalty_ranks_the_same_hypotheses_anew():
    table = {**TABLE, (A,): {A: 0.4, B: 0.31, EOS: 0.29}}  # of equal ones either may go on
    found = search(table, beam=3, alpha=0.0)[0].candidates
    ranked = rank(found, 5.0)
    assert ranked == search(table, beam=3, alpha=5.0)[0].candidates  # here a new search finds no others
    assert [c.ids for c in ranked] != [c.ids for c in found] and found[0].score == found[0].logprob
    cut = Candidate([A, A], -1.0, 0.0, finished=False)
    assert rank([cut], 1.0)[0].score == pytest.approx(-6 / 7)  # no eos: two tokens


def sample(*tables, seeds=None, limits=None, samples=1, forbidden=(), **draws):
    seeds, options = seeds or range(len(tables)), SearchOptions(n_best=samples, sampling=Sampling(**draws))
    return sample_search(TableDecoder(*tables), limits or [10] * len(tables), BOS, EOS, options, list(seeds), forbidden)


def test_samples_come_as_often_as_the_model_says():
    (found,) = sample(TABLE, samples=2000)
    share = sum(c.ids == [B] for c in found.candidates) / 2000
    assert share == pytest.approx(0.36, abs=0.04)  # 3.7 standard deviations
    for candidate in found.candidates[:50]:
        words = [*candidate.ids, EOS]
        expected = sum(math.log(TABLE.get(tuple(words[:i]), {EOS: 1.0})[word]) for i, word in enumerate(words))
        assert candidate.finished and candidate.logprob == pytest.approx(expected, abs=1e-5)
    scores = [c.score for c in found.candidates]
    assert scores == sorted(scores, reverse=True)


def test_temperature_and_top_k_narrow_the_draw():
    (hot,) = sample(TABLE, samples=2000, temperature=1e6)
    assert sum(c.ids == [B] for c in hot.candidates) / 2000 == pytest.approx(1 / 4, abs=0.04)  # two words, twice
    (cold,) = sample(TABLE, samples=50, temperature=0.01)
    (first,) = sample(TABLE, samples=50, top_k=1)
    for found in (cold, first):
        assert {tuple(c.ids) for c in found.candidates} == {(A, A)}  # what greedy search takes
        assert found.candidates[0].logprob == pytest.approx(math.log(0.24), abs=1e-5)  # the model's, not the draw's


def test_a_seed_gives_the_same_samples_whatever_else_is_in_the_batch():
    other = {(): {B: 0.5, A: 0.5}}
    together = sample(other, TABLE, other, seeds=[5, 6, 7], samples=8)
    (alone,) = sample(TABLE, seeds=[6], samples=8)
    assert together[1] == alone
    (again,) = sample(TABLE, seeds=[8], samples=8)
    assert again != alone


@pytest.mark.parametrize("width", [50, 640, 2048, 2050])
def test_the_largest_are_those_of_topk(width):
    values = torch.randn(3, 4, width, generator=torch.Generator().manual_seed(width))
    values[0, 0, 5:] = -torch.inf  # fewer numbers than are asked for
    values[0, 1, :64] += 9  # all in one block
    for count in (1, 5, 8):
        best, places = largest(values, count)
        expected = values.topk(count, -1)
        assert torch.equal(best, expected.values)
        assert torch.equal(values.gather(-1, places), best)
        finite = best.isfinite()
        assert torch.equal(places[finite], expected.indices[finite])
    values[2, 3, width // 2] = torch.nan  # what a search recognises damaged weights by
    assert largest(values, 4)[0][2, 3, 0].isnan()


@pytest.mark.parametrize("forbidden", [[], [3], [3, 17, 3]])
def test_best_ways_are_rated_as_if_nothing_were_forbidden(forbidden):
    torch.manual_seed(2)
    logits, sums = torch.randn(2, 3, 40) * 4, torch.tensor([[-1.0, -2.5, -torch.inf], [0.0, -0.5, -9.0]])
    logits[..., 3] = 12.0  # the likeliest word of all
    expected = logits.log_softmax(-1)
    expected[..., forbidden] = -torch.inf
    values, where = (sums[..., None] + expected).flatten(1).topk(5, -1)
    found, places = best_extensions(logits.clone(), sums, 5, torch.tensor(sorted(set(forbidden)), dtype=torch.long))
    assert torch.equal(places, where)
    torch.testing.assert_close(found, values, atol=1e-5, rtol=1e-5)
    active = ActiveHypotheses(sums > -torch.inf)
    some = best_extensions(active.rows(logits), sums, 5, torch.tensor(sorted(set(forbidden)), dtype=torch.long), active)
    assert torch.equal(some[1], where)
    torch.testing.assert_close(some[0], values, atol=1e-5, rtol=1e-5)


def test_samples_keep_limits_and_forbidden_words():
    endless = {(A,) * n: {A: 0.5, B: 0.5} for n in range(20)}
    (found,) = sample(endless, limits=[3], samples=20, forbidden=[B])
    assert all(c.ids == [A] * 3 and not c.finished for c in found.candidates)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"temperature": 0.0}, "at least 1e-06"),
        ({"temperature": 1e-38}, "at least 1e-06"),
        ({"samples": 0}, "at least 1"),
        ({"top_k": -1}, "0 \\(all words\\)"),
    ],
)
def test_senseless_sampling_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        sample(TABLE, **options)


def forced(model, source, prefix, beam=3, fork=False):
    """Beam search behind a prefix; fork: the prefix's tokens are read on another output's cache."""
    src = collate([(source, [])]).src
    with torch.inference_mode():
        decoder = TransformerDecoder(model, src, key_mask(src, 0))
        if fork:  # another path reads three tokens more; the fork goes back to all but the last token of the prefix
            read_prefix(decoder, [*prefix[:-1], 20, 21, 22, 23], 2)
            held = decoder.cache.layers[0].key[:, :, : decoder.cache.length].clone()
            twin = decoder.fork(len(prefix))
        start = read_prefix(TransformerDecoder(model, src, key_mask(src, 0)) if fork else decoder, prefix, 2)
        found = beam_search(twin if fork else decoder, [20], 2, 3, SearchOptions(beam), prefix=start)[0]
        if fork:  # the first path's cache is as it was
            assert torch.equal(held, decoder.cache.layers[0].key[:, :, : decoder.cache.length])
    return found


@pytest.mark.parametrize("prefix", [[9], [9, 4, 17], [9, 4, 17, 11, 6]])
def test_a_prefix_is_kept_and_scored_as_teacher_forcing_scores_it(model, prefix):
    source = SOURCES[1]
    found = forced(model, source, prefix)
    assert len(found.candidates) == 3
    for candidate in found.candidates:
        assert candidate.ids[: len(prefix)] == prefix
        assert candidate.logprob == pytest.approx(teacher_forced(model, source, candidate)[0], abs=1e-4)


@pytest.mark.parametrize("prefix", [[9], [9, 4, 17]])
def test_going_on_from_a_cache_equals_reading_the_prefix_again(model, prefix):
    same(forced(model, SOURCES[1], prefix, fork=True), forced(model, SOURCES[1], prefix))


def test_the_best_output_s_own_prefix_leads_back_to_it(model):
    (free,) = run(model, [SOURCES[3]], beam=3)
    best = free.candidates[0]
    found = forced(model, SOURCES[3], best.ids[:2])
    assert found.candidates[0].ids == best.ids
    assert found.candidates[0].score == pytest.approx(best.score, abs=1e-4)


def test_a_cache_of_several_hypotheses_or_too_few_tokens_is_not_forked(model):
    src = collate([(SOURCES[0], [])]).src
    with torch.inference_mode():
        decoder = TransformerDecoder(model, src, key_mask(src, 0))
        decoder.step(torch.tensor([[2]]))
        with pytest.raises(ValueError, match="single path"):
            decoder.fork(2)
        decoder.choose(torch.tensor([[0, 0]]))
        decoder.step(torch.tensor([[4, 5]]))
        with pytest.raises(ValueError, match="single path"):
            decoder.fork(1)


class Renumbered(TableDecoder):
    """The same tables, with logits in the order of `words` and of these alone."""

    def __init__(self, words, *tables):
        super().__init__(*tables)
        self.shortlist = Shortlist(torch.tensor(words), torch.zeros(4, 1))

    def step(self, tokens, active=None):
        return super().step(tokens, active)[..., self.shortlist.ids]


def test_logits_may_be_about_some_words_in_any_order():
    tables = TABLE, {(): {B: 1.0}}
    plain = search(*tables, beam=2, alpha=0.0, trace=True)
    for order in ([EOS, A, B], [B, EOS, A], [A, B, BOS, EOS]):
        found = beam_search(Renumbered(order, *tables), [10, 10], BOS, EOS, SearchOptions(2, 0.0, trace=True))
        assert [[c.ids for c in r.candidates] for r in found] == [[c.ids for c in r.candidates] for r in plain]
        assert found[0].candidates[0].logprob == pytest.approx(plain[0].candidates[0].logprob)
        assert found[0].trace[0].tokens == plain[0].trace[0].tokens
    options = {"beam": 2, "alpha": 0.0, "min_length": 2, "forbidden": [B]}
    (longer,) = beam_search(Renumbered([B, EOS, A], TABLE), [10], BOS, EOS, **asked(options))
    assert longer.candidates[0].ids == search(TABLE, **options)[0].candidates[0].ids == [A, A]
    # Without B the rest has all the probability: A with 1, then A or the end with 4/7 and 3/7.
    (fewer,) = beam_search(Renumbered([EOS, A], TABLE), [10], BOS, EOS, SearchOptions(2, 0.0))
    assert fewer.candidates[0].ids == [A, A] and fewer.candidates[0].logprob == pytest.approx(math.log(4 / 7))
