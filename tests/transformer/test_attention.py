"""Attention against torch.nn.MultiheadAttention, against plain loops, and on its edges."""

import math

import pytest
import torch
from torch import nn

from transformer import attention as attention_module
from transformer import kernels
from transformer.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    key_mask,
    neighbourhood_mask,
    scaled_dot_product_attention,
)
from transformer.cache import BeamCache, KeyValue
from transformer.config import TransformerConfig
from transformer.kernels import (
    SHORT,
    SHORT_IN_USE,
    additive_mask,
    fused_attention,
    fused_is_quicker,
    linear,
    plain_attention,
)

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def equation_1(query, key, value, mask):
    """softmax(Q K^T / sqrt(d_k)) V in plain loops; rows without a key stay zero."""
    out = torch.zeros(query.shape[0], value.shape[1])
    for i in range(query.shape[0]):
        seen = [j for j in range(key.shape[0]) if mask[i, j]]
        scores = [sum(float(a * b) for a, b in zip(query[i], key[j])) / math.sqrt(query.shape[1]) for j in seen]
        total = sum(math.exp(s) for s in scores)
        for j, score in zip(seen, scores):
            out[i] += math.exp(score) / total * value[j]
    return out


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equation_1_on_both_paths(dtype):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 6)
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    expected = equation_1(query, key, value, mask)
    parts = [x.to(dtype)[None, None] for x in (query, key, value)]
    out, weights = scaled_dot_product_attention(*parts, mask)
    fused = fused_attention(*parts, mask)
    for found in (out, fused):
        assert found.dtype == dtype
        torch.testing.assert_close(found[0, 0].float(), expected, atol=TOLERANCE[dtype], rtol=0)
    sums = weights[0, 0].float().sum(-1)
    torch.testing.assert_close(sums, torch.tensor([1.0, 1.0, 0.0]), atol=TOLERANCE[dtype], rtol=0)
    assert not weights[0, 0][~mask].any()  # what may not be looked at has no weight at all


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_row_without_any_key_is_zero_and_has_a_finite_gradient(dtype):
    query = torch.randn(1, 2, 3, 4).to(dtype).requires_grad_()
    mask = torch.zeros(1, 1, 1, 5, dtype=torch.bool)
    key, value = torch.randn(1, 2, 5, 4).to(dtype), torch.randn(1, 2, 5, 4).to(dtype)
    for out in (scaled_dot_product_attention(query, key, value, mask)[0], fused_attention(query, key, value, mask)):
        assert out.abs().max() == 0
        (gradient,) = torch.autograd.grad(out.sum(), query)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("keys", (SHORT, SHORT + 1))
def test_learning_and_using_take_the_way_that_is_quicker_and_say_the_same(keys, monkeypatch):
    torch.manual_seed(0)
    attention = MultiHeadAttention(TransformerConfig(vocab_size=10, d_model=16, heads=2))
    x, mask = torch.randn(2, keys, 16), torch.rand(2, 1, 1, keys) < 0.7
    query, key, value = attention.project(x)
    plain = []
    original = attention_module.scaled_dot_product_attention
    monkeypatch.setattr(
        attention_module, "scaled_dot_product_attention", lambda *a: (plain.append(True), original(*a))[1]
    )
    learned, none = attention.attend(query, KeyValue(key, value), mask)
    assert none is None and bool(plain) == (keys == SHORT)
    with torch.no_grad():
        used, none = attention.attend(query, KeyValue(key, value), mask)
    assert none is None and len(plain) == (keys == SHORT)
    torch.testing.assert_close(learned.detach(), used, atol=1e-6, rtol=1e-5)
    halves = [part.bfloat16() for part in (query, key, value)]
    assert not fused_is_quicker(*halves[:2]) and fused_is_quicker(*(half.detach() for half in halves[:2]))


def test_large_scores_do_not_overflow_in_half_precision():
    query = torch.full((1, 1, 1, 64), 30.0, dtype=torch.float16)
    key = torch.cat((query, -query), 2)
    weights = attention_weights(query, key, torch.tensor([[True, True]]))
    assert weights.tolist() == [[[[1.0, 0.0]]]]


@pytest.fixture
def pair():
    """Our attention and torch's with the same weights."""
    torch.manual_seed(1)
    config = TransformerConfig(vocab_size=10, d_model=24, heads=3, attention_bias=True, dropout=0.0)
    ours, theirs = MultiHeadAttention(config), nn.MultiheadAttention(24, 3, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    with torch.no_grad():
        ours.qkv.weight.copy_(theirs.in_proj_weight)
        ours.qkv.bias.copy_(theirs.in_proj_bias)
        ours.output.weight.copy_(theirs.out_proj.weight)
        ours.output.bias.copy_(theirs.out_proj.bias)
    return ours.eval(), theirs.eval()


@pytest.mark.parametrize("need_weights", [False, True])
def test_agrees_with_torch_over_a_padded_memory(pair, need_weights):
    ours, theirs = pair
    x, memory = torch.randn(2, 4, 24), torch.randn(2, 6, 24)
    tokens = torch.tensor([[5, 5, 5, 5, 5, 5], [5, 5, 5, 0, 0, 0]])
    mask = key_mask(tokens, pad=0)
    expected, expected_weights = theirs(
        x, memory, memory, key_padding_mask=tokens == 0, average_attn_weights=False, need_weights=True
    )
    out, weights = ours.attend(ours.project_query(x), ours.project_memory(memory), mask, need_weights)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    if need_weights:
        torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=1e-5)
    else:
        assert weights is None


def test_agrees_with_torch_on_causal_self_attention(pair):
    ours, theirs = pair
    x = torch.randn(2, 5, 24)
    expected, _ = theirs(x, x, x, attn_mask=~causal_mask(5)[0, 0])
    query, key, value = ours.project(x)
    out, _ = ours.attend(query, KeyValue(key, value), causal_mask(5))
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_acts_on_the_weights_and_in_training_alone(need_weights):
    torch.manual_seed(2)
    attention = MultiHeadAttention(TransformerConfig(vocab_size=10, d_model=8, heads=2, attention_dropout=0.5)).eval()
    query, key, value = attention.project(torch.randn(1, 3, 8))
    with torch.no_grad():
        plain, whole = attention.attend(query, KeyValue(key, value), need_weights=True)
        again, _ = attention.attend(query, KeyValue(key, value), need_weights=need_weights)
        torch.testing.assert_close(again, plain, atol=1e-6, rtol=1e-5)
        attention.train()
        drawn = [attention.attend(query, KeyValue(key, value), need_weights=need_weights) for _ in range(2000)]
    outputs = torch.stack([out for out, _ in drawn])
    assert (outputs.std(0) > 0.05).any()
    torch.testing.assert_close(outputs.mean(0), plain, atol=0.06, rtol=0)  # what is dropped is made up for
    if need_weights:
        torch.testing.assert_close(drawn[0][1], whole)  # as they were before dropout


def test_gate_removes_a_head(pair):
    ours, _ = pair
    x = torch.randn(2, 5, 24)
    query, key, value = ours.project(x)
    gate = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    plain, _ = ours.attend(query, KeyValue(key, value))
    gated, _ = ours.attend(query, KeyValue(key, value), gate=gate)
    torch.testing.assert_close(gated[0], plain[0])
    head = (attention_weights(query, key) @ value)[1, 1]
    by_hand = plain[1] - head @ ours.output.weight[:, 8:16].T  # d_v = 8: the second head's columns of W^O
    torch.testing.assert_close(gated[1], by_hand, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 4, 6), (2, 1, 6), (1, 1, 6), (3, 5, 6)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_torchs_linear(shape, bias):
    torch.manual_seed(0)
    x, weight, offset = torch.randn(shape), torch.randn(10, 6), torch.randn(10) if bias else None
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight, offset), nn.functional.linear(x, weight, offset))
        torch.testing.assert_close(linear(x, weight, None, (2, 6)), nn.functional.linear(x, weight[2:6]))


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")
def test_packed_weights_give_the_same_product_and_follow_their_weight(monkeypatch):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    torch.manual_seed(0)
    weight, bias, x = nn.Parameter(torch.randn(24, 16), False), torch.randn(24), torch.randn(2, 5, 16)
    with torch.no_grad():
        assert kernels.can_pack(x, weight) and not kernels.can_pack(x.double(), weight)
        torch.testing.assert_close(linear(x, weight, bias), nn.functional.linear(x, weight, bias))
        part = linear(x, weight, bias, (8, 20))
        torch.testing.assert_close(part, nn.functional.linear(x, weight[8:20], bias[8:20]))
        first = kernels.pack(weight, 0, 24)
        assert kernels.pack(weight, 0, 24) is first  # made once
        weight.add_(1.0)
        torch.testing.assert_close(linear(x, weight), nn.functional.linear(x, weight))
    assert not kernels.can_pack(x, weight)  # with gradients
    weight.requires_grad_()
    linear(x, weight).sum().backward()
    assert weight.grad is not None
    count = len(kernels._packs)
    del weight, first
    assert len(kernels._packs) == count - 1


needs_bytes = pytest.mark.skipif(not kernels.has_int8(), reason="no processor for products of 8 bits")


@needs_bytes
@pytest.mark.parametrize("wide", [1, 1 << 20])  # both libraries
def test_products_in_bytes_are_rounded_and_only_within_their_block(monkeypatch, wide):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    monkeypatch.setattr(kernels, "WIDE", wide)
    torch.manual_seed(0)
    weight, bias, x = nn.Parameter(torch.randn(24, 16), False), torch.randn(24), torch.randn(2, 5, 16)
    weight[3] *= 1000  # each row has a scale of its own
    engine = torch.backends.quantized.engine
    with torch.no_grad():
        exact = linear(x, weight, bias)
        with kernels.int8_products():
            rounded, again, part = linear(x, weight, bias), linear(x, weight, bias), linear(x, weight, bias, (8, 20))
            shifted, none = linear(x, weight, bias + 1), linear(x, weight, relu=True)
            weight.mul_(2.0)  # a weight that changes is rounded anew
            doubled = linear(x, weight, bias)
            bias.mul_(2.0)  # and so is a bias
            whole = linear(x, weight, bias)
        assert torch.equal(linear(x, weight.div_(2.0), bias.div_(2.0)), exact)
    assert rounded.dtype == torch.float32 and not torch.equal(rounded, exact) and torch.equal(rounded, again)
    assert torch.backends.quantized.engine == engine
    # The sums' terms, each of which has an error of half a step, of which there are half as many without VNNI.
    size = weight.abs().sum(1).clamp_min(1) * (2 if kernels._overflows() else 1)
    for found, expected in (
        (rounded, exact),
        (shifted, exact + 1),
        (doubled, 2 * exact - bias),
        (whole, 2 * exact),
        (none, (exact - bias).relu()),
    ):
        assert ((found - expected).abs() < 0.02 * size).all()
    assert ((part - exact[..., 8:20]).abs() < 0.02 * size[8:20]).all()


@needs_bytes
@pytest.mark.parametrize("wide", [1, 1 << 20])
def test_products_in_bytes_of_the_largest_numbers_do_not_overflow(monkeypatch, wide):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    monkeypatch.setattr(kernels, "WIDE", wide)
    weight, x = nn.Parameter(torch.ones(24, 16), False), torch.ones(3, 16)
    with torch.no_grad(), kernels.int8_products():
        torch.testing.assert_close(linear(x, weight), torch.full((3, 24), 16.0), rtol=0.02, atol=0)


def test_without_a_processor_for_it_nothing_is_rounded(monkeypatch):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    monkeypatch.setattr(kernels, "has_int8", lambda: False)
    weight, x = nn.Parameter(torch.randn(24, 16), False), torch.randn(2, 5, 16)
    with torch.no_grad(), kernels.int8_products():
        torch.testing.assert_close(linear(x, weight), nn.functional.linear(x, weight))


@pytest.mark.parametrize("min_pack_size", [0, 1 << 40])
def test_what_is_negative_becomes_zero_on_request(monkeypatch, min_pack_size):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", min_pack_size)
    weight, bias, x = nn.Parameter(torch.randn(24, 16), False), torch.randn(24), torch.randn(2, 5, 16)
    with torch.no_grad():
        expected = nn.functional.linear(x, weight, bias).relu()
        torch.testing.assert_close(linear(x, weight, bias, relu=True), expected)


@pytest.mark.parametrize("fused", [False, True])
def test_a_weight_that_learns_is_never_read_from_an_older_form(monkeypatch, fused):
    monkeypatch.setattr(kernels, "MIN_PACK_SIZE", 0)
    weight, x = nn.Parameter(torch.randn(24, 16)), torch.randn(2, 5, 16)
    optimizer = torch.optim.Adam([weight], lr=0.1, fused=fused)
    with torch.no_grad():
        linear(x, weight)
    weight.grad = torch.randn(24, 16)
    optimizer.step()  # a fused one leaves the version of the weight as it was
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight), nn.functional.linear(x, weight))


def test_masks_say_what_may_be_looked_at():
    assert causal_mask(3)[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    near = neighbourhood_mask(4, 2)[0, 0].int().tolist()
    assert near == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    both = causal_mask(4, neighbourhood=2)[0, 0].int().tolist()
    assert both == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert key_mask(torch.tensor([[7, 8, 0]]), 0).tolist() == [[[[True, True, False]]]]


def test_beam_cache_shows_each_hypothesis_its_own_ancestors():
    """One sentence, two hypotheses, three tokens; the slots are written in the order of their names."""
    cache = BeamCache(1)

    def token(name, beams):
        mask = cache.open(1, beams, torch.device("cpu"))
        key = torch.full((1, 1, beams, 1), float(name)) + torch.arange(beams)[:, None] / 10
        return mask, cache.write(0, key, key).key.flatten().tolist()

    mask, kept = token(1, beams=1)  # bos
    assert mask is None and kept == pytest.approx([1.0])
    cache.choose(torch.tensor([[0, 0]]))
    mask, kept = token(2, beams=2)
    assert kept == pytest.approx([1.0, 2.0, 2.1])
    assert mask[0, 0].tolist() == [[True, True, False], [True, False, True]]
    cache.choose(torch.tensor([[1, 1]]))  # both go on from the second
    mask, kept = token(3, beams=2)
    assert kept == pytest.approx([1.0, 2.0, 2.1, 3.0, 3.1])
    assert mask[0, 0].int().tolist() == [[1, 0, 1, 1, 0], [1, 0, 1, 0, 1]]


def test_beam_cache_grows_and_forgets_sentences():
    cache, written = BeamCache(2), []
    for _ in range(40):
        cache.open(3, 1, torch.device("cpu"))
        written.append(torch.randn(3, 2, 1, 4))
        for layer in range(2):
            seen = cache.write(layer, written[-1] + layer, written[-1] - layer)
    assert torch.equal(seen.key, torch.cat(written, 2) + 1) and torch.equal(seen.value, torch.cat(written, 2) - 1)
    cache.keep(torch.tensor([2, 0]))
    assert torch.equal(cache.layers[0].key[:, :, :40], torch.cat(written, 2)[[2, 0]])


def test_beam_cache_drops_tokens_that_no_hypothesis_goes_back_to():
    """Two sentences, three hypotheses that follow now one, now several of the last: what each may look at stays."""
    torch.manual_seed(3)
    cache, said, longest = BeamCache(2), None, 0  # said: of each hypothesis, the keys of its own tokens in order
    for step in range(60):
        beams = 3 if step else 1
        mask = cache.open(2, beams, torch.device("cpu"))
        new = torch.randn(2, 4, beams, 5)
        seen = cache.write(0, new, -new)
        own = new.transpose(1, 2)[:, :, None]  # (B, K, 1, h, d)
        said = own if said is None else torch.cat((said, own), 2)
        longest = max(longest, cache.length)
        for sentence in range(2):
            for k in range(beams):
                places = torch.ones(1, dtype=torch.bool) if mask is None else mask[sentence, 0, k]
                order = cache.slots[sentence][places].argsort()
                assert torch.equal(seen.key[sentence][:, places][:, order].transpose(0, 1), said[sentence, k])
                assert torch.equal(seen.value[sentence][:, places][:, order].transpose(0, 1), -said[sentence, k])
        parents = torch.randint(beams, (2, 3)) if step % 5 else torch.zeros(2, 3, dtype=torch.long)
        cache.choose(parents)
        said = said.gather(1, parents[:, :, None, None, None].expand(-1, -1, *said.shape[2:]))
        if step == 40:
            cache.keep(torch.tensor([1, 0]))
            said = said[[1, 0]]
    assert longest < 100  # of 178


@pytest.mark.parametrize("masked", [True, False])
def test_few_queries_get_the_fused_kernels_output(masked):
    torch.manual_seed(1)
    query, key, value = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 9, 8)[:, :, :6], torch.randn(2, 3, 9, 5)[:, :, :6]
    mask = None
    if masked:
        mask = torch.rand(2, 1, 4, 6) > 0.5
        mask[..., 2] = True
    out = plain_attention(query, key, value, additive_mask(mask))
    torch.testing.assert_close(out, fused_attention(query, key, value, mask), atol=1e-6, rtol=1e-5)
    halves = plain_attention(*(x.bfloat16() for x in (query, key, value)), additive_mask(mask))
    torch.testing.assert_close(halves.float(), out, atol=0.03, rtol=0.03)


def test_a_mask_of_one_row_counts_for_every_query():
    mask = key_mask(torch.tensor([[7, 8, 0], [7, 0, 0]]), 0)
    added = additive_mask(mask)
    assert added.tolist() == [[[[0, 0, -math.inf]]], [[[0, -math.inf, -math.inf]]]] and additive_mask(None) is None
    query, key, value = torch.randn(2, 2, 5, 4), torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4)
    torch.testing.assert_close(plain_attention(query, key, value, added), fused_attention(query, key, value, mask))


@pytest.mark.parametrize("keys", (SHORT_IN_USE, SHORT_IN_USE + 1))
@pytest.mark.parametrize("empty", (False, True))
def test_few_keys_are_looked_at_without_the_fused_kernel_and_a_row_without_any_is_zero(keys, empty, monkeypatch):
    torch.manual_seed(3)
    attention = MultiHeadAttention(TransformerConfig(vocab_size=10, d_model=16, heads=2)).eval()
    query, key, value = attention.project(torch.randn(2, keys, 16))
    mask = torch.rand(2, 1, 1, keys) < 0.7
    mask[..., 0] = True
    mask[1] &= not empty
    calls = []
    for name in ("fused_attention", "plain_attention", "scaled_dot_product_attention"):
        own = getattr(attention_module, name)
        monkeypatch.setattr(attention_module, name, lambda *a, own=own, name=name: (calls.append(name), own(*a))[1])
    with torch.no_grad():
        out, _ = attention.attend(query, KeyValue(key, value), mask)
        few = "scaled_dot_product_attention" if empty else "plain_attention"
        assert calls == [few if keys == SHORT_IN_USE else "fused_attention"]
        expected, _ = attention.attend(query, KeyValue(key, value), mask, need_weights=True)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-5)
    assert bool((out[1] == 0).all()) == empty
