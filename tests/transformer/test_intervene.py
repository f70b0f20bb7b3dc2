"""Steps, beginnings and intervention, against teacher forcing, against doing the work again, and by hand."""

import math

import numpy as np
import pytest
import torch

from transformer import Translator
from transformer.attention import MultiHeadAttention, attention_weights, causal_mask, key_mask
from transformer.cache import KeyValue
from transformer.config import TransformerConfig
from transformer.insight.interpret import KINDS, ablation
from transformer.insight.intervene import (
    Edit,
    Intervention,
    continue_from,
    decode_from,
    follow,
    logprob,
    open_decoder,
    operate,
    overwrite,
    prefix_ids,
    word_difference,
)
from transformer.options import Sampling, SearchOptions
from transformer.search import beam_tree, length_penalty, rank

TEXT = "A young girl is eating a red apple."


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de", device="cpu")


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, n_best=3)


@pytest.fixture(scope="module")
def sentence(translation):
    return translation.sentences[0]


@pytest.fixture(scope="module")
def decoding(translator, sentence):
    return follow(translator, sentence.source_ids, sentence.ids[0])


def teacher_forced(translator, source_ids, ids, change=lambda kind, layer, weights: weights):
    """Log-probabilities (T, V) of one pass over the whole target; `change` may edit every map (h, T, S)."""
    model, config = translator.model, translator.model.config
    with torch.no_grad():
        src = torch.tensor([source_ids])
        tgt = torch.tensor([[config.bos, *ids]])
        mask, causal = key_mask(src, config.pad), causal_mask(tgt.shape[1])

        def attend(kind, layer, block, query, kept, allowed):
            weights = change(kind, layer, attention_weights(query, kept.key, allowed)[0].clone())
            return block.merge(weights[None] @ kept.value)

        x = model.embed(src)
        for i, layer in enumerate(model.encoder):
            q, k, v = layer.attention.project(x)
            x = layer.attention_norm(x + attend("encoder", i, layer.attention, q, KeyValue(k, v), mask))
            x = layer.feed_forward_norm(x + layer.feed_forward(x))
        memory = [layer.cross_attention.project_memory(x) for layer in model.decoder]
        x = model.embed(tgt)
        for i, layer in enumerate(model.decoder):
            q, k, v = layer.attention.project(x)
            x = layer.attention_norm(x + attend("decoder", i, layer.attention, q, KeyValue(k, v), causal))
            q = layer.cross_attention.project_query(x)
            x = layer.cross_attention_norm(x + attend("cross", i, layer.cross_attention, q, memory[i], mask))
            x = layer.feed_forward_norm(x + layer.feed_forward(x))
        return model.project(x)[0].log_softmax(-1)


def rated(logprobs, ids, eos=3):
    return sum(float(logprobs[i, token]) for i, token in enumerate([*ids, eos]))


# -- one output, step by step


def test_steps_equal_one_teacher_forced_pass(translator, translation, sentence, decoding):
    attention = translator.attend(translation)
    assert decoding.decoder.shape == attention.decoder.shape and decoding.cross.shape == attention.cross.shape
    np.testing.assert_allclose(decoding.decoder, attention.decoder, atol=1e-5)
    np.testing.assert_allclose(decoding.cross, attention.cross, atol=1e-5)
    np.testing.assert_allclose(decoding.decoder.sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(decoding.cross.sum(-1), 1.0, atol=1e-5)
    assert not np.triu(decoding.decoder, 1).any()
    expected = teacher_forced(translator, sentence.source_ids, sentence.ids[0])
    for step, label in enumerate(decoding.labels):
        own = expected[step]
        assert decoding.logprobs[step] == pytest.approx(float(own[label]), abs=1e-4)
        entropy = torch.distributions.Categorical(logits=own).entropy()
        assert decoding.entropy[step] == pytest.approx(float(entropy), abs=1e-4)
        assert decoding.ranks[step] == int((own > own[label]).sum()) + 1
        values, tokens = own.topk(10)
        assert [t for t, _ in decoding.top[step]] == tokens.tolist()
        assert [p for _, p in decoding.top[step]] == pytest.approx(values.exp().tolist(), abs=1e-5)
    assert decoding.logprob == pytest.approx(sentence.hypotheses[0].logprob, abs=1e-4)
    assert decoding.finished and decoding.labels == [*sentence.ids[0], 3]


def test_the_cache_grows_by_one_token_a_step_and_holds_the_keys(translator, sentence, decoding):
    config = translator.model.config
    for step in range(len(decoding.labels)):
        sizes = decoding.cache_size(step)
        assert len(sizes) == config.decoder_layers
        for size in sizes:
            assert size.key == (config.heads, step + 1, config.key_width)
            assert size.value == (config.heads, step + 1, config.value_width)
            assert size.bytes == (step + 1) * config.heads * (config.key_width + config.value_width) * 4
    assert decoding.memory_size()[0].key == (config.heads, len(sentence.source_ids), config.key_width)
    seen = {}
    layer = translator.model.decoder[0]
    with torch.no_grad():  # the first layer's keys are those of the embedded target
        _, seen["key"], seen["value"] = layer.attention.project(
            translator.model.embed(torch.tensor([[2, *sentence.ids[0]]]))
        )
    key, value = decoding.cache(0, 4)
    np.testing.assert_allclose(key, seen["key"][0, :, :5], atol=1e-5)
    np.testing.assert_allclose(value, seen["value"][0, :, :5], atol=1e-5)
    assert np.array_equal(decoding.mask, np.tril(np.ones_like(decoding.mask)))


def test_watching_changes_no_bit(translator, sentence):
    plain, watched = (open_decoder(translator, sentence.source_ids, watch=watch) for watch in (False, True))
    with torch.inference_mode():
        for token in [2, *sentence.ids[0]]:
            row = torch.tensor([[token]])
            assert torch.equal(plain.step(row), watched.step(row))


def test_an_empty_output_has_no_steps(translator, sentence):
    with pytest.raises(ValueError, match="no piece"):
        follow(translator, sentence.source_ids, [], finished=False)


# -- the search as a tree


def test_tree_holds_every_step_of_the_search(translator, translation, sentence):
    found = decode_from(translator, sentence.source_ids, options=SearchOptions(4))
    assert [h.text for h in found.hypotheses][:3] == [h.text for h in translation.hypotheses]
    tree = found.tree
    assert tree[0].parent == -1 and tree[0].step == 0 and tree[0].state == "beam"

    def words(node):
        return [] if node.parent < 0 else [*words(tree[node.parent]), node.token]

    for number, node in enumerate(tree[1:], 1):
        parent = tree[node.parent]
        assert node.parent < number and parent.state == "beam" and parent.step == node.step - 1
        assert node.logprob <= parent.logprob + 1e-5
    for step in range(1, tree[-1].step + 1):
        at = [node for node in tree if node.step == step]
        assert len(at) <= 8 and sum(node.state == "beam" for node in at) <= 4
        assert all(node.token == 3 for node in at if node.state == "finished")
        logprobs = [node.logprob for node in at]
        assert logprobs == sorted(logprobs, reverse=True)
    finished = {tuple(words(node)[:-1]): node.logprob for node in tree if node.state == "finished"}
    assert finished == {tuple(c.ids): c.logprob for c in found.endings}
    best = found.candidates[0]
    assert tuple(best.ids) in finished


def test_tree_by_hand():
    from transformer.search import Candidate, TraceStep

    trace = [
        TraceStep([5, 6], [0, 0], [-1.0, -2.0], [], [(0, 5, -1.0), (0, 6, -2.0), (0, 7, -3.0), (0, 3, -4.0)]),
        TraceStep([8], [1], [-2.5], [Candidate([5], -1.5, -1.2, True)], [(0, 3, -1.5), (1, 8, -2.5), (1, 3, -2.6)]),
    ]
    tree = beam_tree(trace, 2, 3)
    assert [(n.parent, n.step, n.token, n.state) for n in tree] == [
        (-1, 0, 2, "beam"),
        (0, 1, 5, "beam"),
        (0, 1, 6, "beam"),
        (0, 1, 7, "pruned"),
        (0, 1, 3, "pruned"),
        (1, 2, 3, "finished"),
        (2, 2, 8, "beam"),
        (2, 2, 3, "pruned"),
    ]


def test_another_length_penalty_needs_no_second_search(translator, sentence):
    found = decode_from(translator, sentence.source_ids, options=SearchOptions(6, 0.6))
    assert [c.score for c in rank(found.endings, 0.6)] == [c.score for c in found.endings]
    for alpha in (0.0, 1.0, 2.0):
        ranked = rank(found.endings, alpha)
        expected = sorted(-c.logprob / length_penalty(len(c.ids) + 1, alpha) for c in found.endings)
        assert [-c.score for c in ranked] == pytest.approx(expected)


# -- beginnings


def test_a_forced_beginning_is_kept_and_rated_by_the_model(translator, sentence):
    ids = prefix_ids(translator, " Das  kleine ")
    assert translator.tokenizer.decode(ids) == "Das kleine"
    found = decode_from(translator, sentence.source_ids, ids, options=SearchOptions(3))
    assert len(found.hypotheses) == 3 and found.prefix.ids == ids
    for candidate, hypothesis in zip(found.candidates, found.hypotheses):
        assert candidate.ids[: len(ids)] == ids and hypothesis.text.startswith("Das kleine")
        expected = rated(teacher_forced(translator, sentence.source_ids, candidate.ids), candidate.ids)
        assert candidate.logprob == pytest.approx(expected, abs=1e-3)
    assert found.tree[0].step == len(ids) and found.tree[1].step == len(ids) + 1


def test_bad_beginnings_get_one_sentence(translator, sentence):
    with pytest.raises(ValueError, match="vocabulary lacks"):
        prefix_ids(translator, "Ein 犬")
    with pytest.raises(ValueError, match="shorten it"):
        decode_from(translator, sentence.source_ids, [41] * 400)


@pytest.mark.parametrize("step, place", [(0, 1), (2, 1), (4, 3), (4, None), ("last", 1)])
def test_another_token_goes_on_from_the_cache_as_if_all_were_read_again(translator, sentence, decoding, step, place):
    step = len(decoding.labels) - 1 if step == "last" else step
    token = 777 if place is None else decoding.top[step][place][0]  # 777 is none of the kept likely ones
    before = [kept.key.clone() for kept in decoding.state.cache.layers]
    found = continue_from(translator, decoding, step, token, options=SearchOptions(4))
    ids = [*decoding.ids[:step], token]
    again = decode_from(translator, sentence.source_ids, ids, options=SearchOptions(4))
    assert found.prefix.ids == ids and found.cache_length == step + 1 and again.cache_length == 0
    assert [c.ids for c in found.candidates] == [c.ids for c in again.candidates]
    assert [c.logprob for c in found.candidates] == pytest.approx([c.logprob for c in again.candidates], abs=1e-3)
    for kept, old in zip(decoding.state.cache.layers, before):
        # The same question can be asked again. What is not used yet is memory as it was found, and may hold NaN.
        np.testing.assert_array_equal(kept.key.numpy(), old.numpy())


def test_going_on_reads_only_what_is_new(translator, decoding, monkeypatch):
    read = []
    original = type(translator.model).step

    def step(model, tokens, memory, cache, *others):
        read.append(cache.position)
        return original(model, tokens, memory, cache, *others)

    monkeypatch.setattr(type(translator.model), "step", step)
    monkeypatch.setattr(type(translator.model), "encode", None)  # the source is not read again either
    continue_from(translator, decoding, 3, decoding.top[3][1][0], options=SearchOptions(2))
    assert min(read) == 4  # bos and three tokens are in the cache


def test_ending_early_is_a_choice_too(translator, sentence, decoding):
    found = continue_from(translator, decoding, 3, 3)
    (candidate,) = found.candidates
    assert candidate.ids == decoding.ids[:3] and candidate.finished
    assert candidate.logprob == pytest.approx(logprob(translator, sentence.source_ids, candidate.ids), abs=1e-3)
    assert [node.state for node in found.tree] == ["beam", "finished"]


@pytest.mark.parametrize(
    "step, token, words", [(99, 41, "steps 1 to"), (0, 0, "No translation"), (0, -1, "No translation")]
)
def test_a_step_or_token_that_is_not_there(translator, decoding, step, token, words):
    with pytest.raises(ValueError, match=words):
        continue_from(translator, decoding, step, token)


# -- intervention


def test_no_intervention_changes_nothing_bit_for_bit(translator, translation, sentence):
    plain = decode_from(translator, sentence.source_ids)
    for intervention in (None, Intervention()):
        assert decode_from(translator, sentence.source_ids, intervention=intervention).candidates == plain.candidates
    assert [h.score for h in plain.hypotheses][:3] == [h.score for h in translation.hypotheses]
    outcome = operate(translator, translation, Intervention())
    assert outcome.change == 0.0 and outcome.after.text == outcome.before.text
    # Gates that remove nothing are multiplications by one.
    ones = open_decoder(translator, sentence.source_ids, Intervention(off=frozenset({("decoder", 0, 0)})))
    ones.gates.decoder.fill_(1.0)
    whole = open_decoder(translator, sentence.source_ids)
    with torch.inference_mode():
        for token in [2, *sentence.ids[0]]:
            assert torch.equal(ones.step(torch.tensor([[token]])), whole.step(torch.tensor([[token]])))


@pytest.mark.parametrize("kind", KINDS)
def test_all_heads_off_leaves_the_bias_of_the_output_projection(translator, sentence, kind):
    torch.manual_seed(0)
    block = MultiHeadAttention(TransformerConfig(vocab_size=10, d_model=16, heads=4))
    torch.nn.init.normal_(block.output.bias)
    x = torch.randn(1, 5, 16)
    query, key, value = block.project(x)
    out, _ = block.attend(query, KeyValue(key, value), gate=torch.zeros(1, 4))
    assert torch.equal(out, block.output.bias.expand(1, 5, -1))

    # In the whole model: as if the sub-layer's projection had no weights.
    config = translator.model.config
    intervention = Intervention(off=frozenset((kind, 1, head) for head in range(config.heads)))
    source, ids = sentence.source_ids, sentence.ids[0]
    expected = teacher_forced(translator, source, ids, lambda k, i, w: w * 0 if (k, i) == (kind, 1) else w)
    assert logprob(translator, source, ids, intervention=intervention) == pytest.approx(rated(expected, ids), abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_switching_off_one_head_costs_what_ablation_says(translator, translation, kind):
    _, changes = ablation(translator, translation)
    for layer, head in ((0, 1), (3, 2)):
        outcome = operate(translator, translation, Intervention(off=frozenset({(kind, layer, head)})))
        assert outcome.change == pytest.approx(float(changes[kind][layer, head]), abs=1e-3)


def edited(weights, edit):
    """What an edit makes of one layer's map (h, T, S), cell by cell."""
    out = weights.numpy().copy()
    for h in range(out.shape[0]) if edit.head is None else [edit.head]:
        for r in range(out.shape[1]) if edit.row is None else [edit.row]:
            cells = {c: v for c, v in edit.cells if edit.kind != "decoder" or c <= r}
            if not cells:
                continue
            others = [c for c in range(r + 1 if edit.kind == "decoder" else out.shape[2]) if c not in cells]
            if edit.renormalise and others:
                rest = sum(out[h, r, c] for c in others)
                for c in others:
                    out[h, r, c] *= (1 - sum(cells.values())) / rest
            for c, v in cells.items():
                out[h, r, c] = v
    return torch.from_numpy(out)


@pytest.mark.parametrize(
    "edit",
    [
        Edit("cross", 3, 1, 2, ((4, 1.0),)),
        Edit("cross", 0, None, None, ((1, 0.0),)),
        Edit("cross", 2, 0, 3, ((0, 0.3), (5, 0.9)), renormalise=False),
        Edit("decoder", 1, 2, 4, ((0, 0.0), (4, 1.0))),
        Edit("decoder", 2, None, None, ((3, 0.5),)),
        Edit("encoder", 1, 3, 2, ((0, 0.25), (6, 0.5))),
        Edit("encoder", 2, None, None, ((3, 0.0),), renormalise=False),
    ],
    ids=lambda edit: f"{edit.kind}-{edit.row}",
)
def test_an_edited_map_acts_as_in_a_whole_pass_with_that_map(translator, sentence, edit):
    source, ids = sentence.source_ids, sentence.ids[1]
    expected = teacher_forced(
        translator, source, ids, lambda k, i, w: edited(w, edit) if (k, i) == (edit.kind, edit.layer) else w
    )
    intervention = Intervention(edits=(edit,))
    found = logprob(translator, source, ids, intervention=intervention)
    assert found == pytest.approx(rated(expected, ids), abs=1e-3)
    assert abs(found - logprob(translator, source, ids)) > 1e-3  # it does act
    # A beam reads several hypotheses at once; each must see its own edited row.
    search = decode_from(translator, source, options=SearchOptions(4), intervention=intervention)
    for candidate in search.candidates:
        again = logprob(translator, source, candidate.ids, candidate.finished, intervention)
        assert candidate.logprob == pytest.approx(again, abs=1e-3)
    if edit.kind != "encoder":
        weights = getattr(follow(translator, source, ids, intervention=intervention), edit.kind)[edit.layer]
        for column, value in edit.cells:
            row = 5 if edit.row is None else edit.row
            assert weights[edit.head or 0, row, column] == pytest.approx(value, abs=1e-6)
            if edit.renormalise:
                np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_overwrite_by_hand():
    weights = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    first = torch.tensor([True, False, False])
    torch.testing.assert_close(
        overwrite(weights, first, torch.tensor(0.0)), torch.tensor([[0, 0.6, 0.4], [0, 0.5, 0.5]])
    )
    torch.testing.assert_close(
        overwrite(weights, first, torch.tensor(0.0), mask=torch.tensor([True, True, False])),
        torch.tensor([[0, 0.6, 0.4], [0, 1.0, 0.0]]),
    )
    torch.testing.assert_close(
        overwrite(weights, first, torch.tensor(0.25), renormalise=False), torch.tensor([[0.25, 0.3, 0.2], [0.25, 0, 0]])
    )
    rows = torch.tensor([[True], [False]]) & first
    torch.testing.assert_close(overwrite(weights, rows, torch.tensor(1.0)), torch.tensor([[1.0, 0, 0], [1.0, 0, 0]]))
    assert torch.equal(weights, torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    "intervention, words",
    [
        (Intervention(off=frozenset({("other", 0, 0)})), "encoder, decoder, cross"),
        (Intervention(off=frozenset({("cross", 4, 0)})), "layers 1 to 4"),
        (Intervention(off=frozenset({("cross", 0, 9)})), "heads 1 to 4"),
        (Intervention(edits=(Edit("encoder", 0, 0, 99, ((0, 1.0),)),)), "rows 1 to"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ((99, 1.0),)),)), "columns 1 to"),
        (Intervention(edits=(Edit("decoder", 0, 0, 2, ((3, 1.0),)),)), "columns 1 to 3"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ((0, 1.5),)),)), "between 0 and 1"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ((0, math.nan),)),)), "between 0 and 1"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ((0, 0.7), (1, 0.7))),)), "more than 1"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ((0, 0.1), (0, 0.2))),)), "twice"),
        (Intervention(edits=(Edit("cross", 0, 0, 0, ()),)), "at least one"),
    ],
)
def test_senseless_intervention_is_refused_with_one_sentence(translator, translation, intervention, words):
    with pytest.raises(ValueError, match=words):
        operate(translator, translation, intervention)


def test_outcome_tells_both_translations_apart(translator, translation, sentence):
    every = frozenset(("cross", 3, head) for head in range(4)) | frozenset(("cross", 2, head) for head in range(4))
    outcome = operate(translator, translation, Intervention(off=every))
    assert outcome.before.text == translation.text and outcome.after.text != outcome.before.text
    assert outcome.change == outcome.before_logprob - outcome.before.logprob < -1
    assert " ".join(w for s, w in outcome.difference if s in " -") == outcome.before.text
    assert " ".join(w for s, w in outcome.difference if s in " +") == outcome.after.text
    whole = rated(teacher_forced(translator, sentence.source_ids, outcome.after_ids), outcome.after_ids)
    assert outcome.whole == pytest.approx(whole, abs=1e-3)
    assert outcome.after.logprob >= outcome.before_logprob - 1e-3  # what the changed model prefers


def test_word_difference():
    assert word_difference("a b c", "a x c d") == [(" ", "a"), ("-", "b"), ("+", "x"), (" ", "c"), ("+", "d")]
    assert word_difference("", "a") == [("+", "a")]


def test_a_copied_sentence_has_nothing_to_change(translator):
    with pytest.raises(ValueError, match="copied"):
        operate(translator, translator.translate("🙂 1234"), Intervention())


# -- sampling through the translator


def test_samples_depend_on_the_seed_alone(translator):
    one = translator.translate(TEXT, n_best=3, sampling=Sampling(1.0, 0, seed=3))
    again = translator.translate(TEXT, n_best=3, sampling=Sampling(1.0, 0, seed=3))
    other = translator.translate(TEXT, n_best=3, sampling=Sampling(1.0, 0, seed=4))
    assert [h.text for h in one.hypotheses] == [h.text for h in again.hypotheses] != [h.text for h in other.hypotheses]
    first = one.sentences[0]
    for ids, hypothesis in zip(first.ids, first.hypotheses):
        expected = rated(teacher_forced(translator, first.source_ids, ids), ids)
        assert hypothesis.logprob == pytest.approx(expected, abs=1e-3)


def test_a_cold_draw_is_greedy_search(translator):
    greedy = translator.translate(TEXT, beam=1)
    cold = translator.translate(TEXT, beam=1, n_best=2, sampling=Sampling(temperature=1e-4))
    assert {h.text for h in cold.hypotheses} == {greedy.text}
