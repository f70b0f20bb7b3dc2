"""The model against torch.nn.Transformer, and the properties that the paper gives it."""

import math

import pytest
import torch
from torch import nn

from transformer.attention import causal_mask, key_mask
from transformer.cache import BeamCache
from transformer.config import TransformerConfig
from transformer.data import collate
from transformer.model import Gates, Transformer, dropout, sinusoids

SMALL = {
    "vocab_size": 50,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "d_model": 32,
    "d_ff": 64,
    "heads": 4,
    "dropout": 0.0,
    "max_length": 40,
}


def build(**changes) -> Transformer:
    torch.manual_seed(3)
    return Transformer(TransformerConfig(**{**SMALL, **changes})).eval()


@pytest.fixture
def batch():
    return collate([([4, 5, 6, 7], [8, 9]), ([10, 11], [12, 13, 14, 15, 16])])


def copy_torch_layer(ours, theirs, decoder: bool) -> None:
    """Copies a torch encoder or decoder layer's weights into ours."""
    attentions = [(ours.attention, theirs.self_attn)]
    norms = [(ours.attention_norm, theirs.norm1)]
    if decoder:
        attentions.append((ours.cross_attention, theirs.multihead_attn))
        norms.append((ours.cross_attention_norm, theirs.norm2))
    norms.append((ours.feed_forward_norm, theirs.norm3 if decoder else theirs.norm2))
    for own, other in attentions:
        own.qkv.weight.copy_(other.in_proj_weight)
        own.qkv.bias.copy_(other.in_proj_bias)
        own.output.load_state_dict(other.out_proj.state_dict())
    for own, other in norms:
        own.load_state_dict(other.state_dict())
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())


def test_agrees_with_torch_transformer(batch):
    model = build(attention_bias=True)
    theirs = nn.Transformer(32, 4, 2, 3, 64, dropout=0.0, batch_first=True).eval()
    theirs.encoder.norm = theirs.decoder.norm = None  # torch adds one norm after each stack, the paper has none
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)  # biases and norms away from 0 and 1
        for own, other in zip(model.encoder, theirs.encoder.layers):
            copy_torch_layer(own, other, decoder=False)
        for own, other in zip(model.decoder, theirs.decoder.layers):
            copy_torch_layer(own, other, decoder=True)
        x, y = (model.embedding(t) * math.sqrt(32) + sinusoids(t.shape[1], 32) for t in (batch.src, batch.tgt))
        # In torch's masks True means the opposite: not to be looked at.
        expected = theirs(
            x,
            y,
            tgt_mask=~batch.tgt_mask[0, 0],
            src_key_padding_mask=batch.src == 0,
            memory_key_padding_mask=batch.src == 0,
        )
        out = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, project=False)
        logits = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
    assert (out - expected).abs().max() < 1e-5
    torch.testing.assert_close(logits, expected @ model.embedding.weight.T, atol=1e-4, rtol=1e-5)


def test_sinusoids_are_section_3_5():
    table = sinusoids(30, 16)
    for position in (0, 1, 7, 29):
        for i in range(8):
            angle = position / 10000 ** (2 * i / 16)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)
    halves = sinusoids(30, 16, halves=True)
    assert torch.equal(halves[:, :8], table[:, 0::2]) and torch.equal(halves[:, 8:], table[:, 1::2])


def test_embeddings_are_scaled_and_positions_added():
    model = build()
    tokens = torch.tensor([[5, 6]])
    expected = model.embedding.weight[[5, 6]] * math.sqrt(32) + sinusoids(5, 32)[3:5]
    torch.testing.assert_close(model.embed(tokens, start=3)[0], expected)


def test_one_matrix_serves_source_target_and_output(batch):
    """Tying is shown by changing the matrix and seeing all three places change."""
    model = build()
    assert len([n for n, p in model.named_parameters() if p.shape == (50, 32)]) == 1
    args = batch.src, batch.tgt, batch.src_mask, batch.tgt_mask
    with torch.no_grad():
        encoded, hidden, logits = model.encode(batch.src, batch.src_mask)[0], model(*args, project=False), model(*args)
        model.embedding.weight[30] += 1.0  # a word that is in neither sentence: only its logit can change
        assert torch.equal(model(*args, project=False), hidden)
        changed = (model(*args) - logits).abs().amax((0, 1)) > 0
        assert changed.nonzero().flatten().tolist() == [30]
        model.embedding.weight[4] += 1.0  # a source word
        assert not torch.allclose(model.encode(batch.src, batch.src_mask)[0], encoded)
        hidden = model(*args, project=False)
        model.embedding.weight[8] += 1.0  # a target word
        assert not torch.allclose(model(*args, project=False), hidden)


def test_the_future_and_padding_are_invisible(batch):
    model = build()
    with torch.no_grad():
        before = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
        later = batch.tgt.clone()
        later[1, 3:] = 20
        after = model(batch.src, later, batch.src_mask, batch.tgt_mask)
        assert torch.equal(before[1, :3], after[1, :3]) and not torch.allclose(before[1, 3:], after[1, 3:])
        alone = collate([([10, 11], [12, 13, 14, 15, 16])])
        single = model(alone.src, alone.tgt, alone.src_mask, alone.tgt_mask)
    torch.testing.assert_close(single[0], before[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"neighbourhood": 2}, {"positions": "learned"}, {"d_k": 5, "d_v": 6}])
def test_one_token_at_a_time_equals_the_whole_sentence(batch, changes):
    model = build(**changes)
    mask = causal_mask(batch.tgt.shape[1], neighbourhood=model.config.neighbourhood)
    with torch.no_grad():
        whole = model(batch.src, batch.tgt, batch.src_mask, mask)
        encoded, _ = model.encode(batch.src, batch.src_mask)
        memory, cache = model.remember(encoded, batch.src_mask), BeamCache(len(model.decoder))
        for position in range(batch.tgt.shape[1]):
            # Two hypotheses a sentence, the same tokens: both have to equal the teacher-forced pass.
            tokens = batch.tgt[:, position : position + 1].expand(-1, 2)
            logits = model.step(tokens, memory, cache)
            for beam in range(2):
                torch.testing.assert_close(logits[:, beam], whole[:, position], atol=1e-5, rtol=1e-4)


def test_attention_is_captured_without_changing_the_result(batch):
    model = build()
    args = batch.src, batch.tgt, batch.src_mask, batch.tgt_mask
    weights = model.attend(*args)
    assert [len(w) for w in (weights.encoder, weights.decoder, weights.cross)] == [2, 3, 3]
    assert weights.encoder[0].shape == (2, 4, 5, 5)
    assert weights.decoder[0].shape == (2, 4, 6, 6)
    assert weights.cross[0].shape == (2, 4, 6, 5)  # rows target, columns source
    for group in (weights.encoder, weights.decoder, weights.cross):
        for layer in group:
            torch.testing.assert_close(layer.sum(-1), torch.ones_like(layer.sum(-1)))
    assert not weights.cross[0][1, :, :, 3:].any()  # the second source has three tokens with eos
    assert not weights.decoder[0].triu(1).any()
    with torch.no_grad():
        encoded, _ = model.encode(batch.src, batch.src_mask, need_weights=True)
        memory = model.remember(encoded, batch.src_mask)
        hidden, _, _ = model.decode(batch.tgt, batch.tgt_mask, memory, need_weights=True)
        torch.testing.assert_close(model.project(hidden), model(*args), atol=1e-5, rtol=1e-4)


def test_gates_of_one_change_nothing_and_of_zero_do(batch):
    model = build()
    with torch.no_grad():
        plain, _ = model.encode(batch.src, batch.src_mask)
        same, _ = model.encode(batch.src, batch.src_mask, gates=Gates(encoder=torch.ones(2, 1, 4)))
        gate = torch.ones(2, 1, 4)
        gate[1, 0, 2] = 0.0
        other, _ = model.encode(batch.src, batch.src_mask, gates=Gates(encoder=gate))
    assert torch.equal(plain, same) and not torch.allclose(plain, other)


def test_every_parameter_gets_a_finite_gradient(batch):
    for changes in ({}, {"positions": "learned", "attention_bias": True, "output_bias": True}):
        model = build(**changes).train()
        model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask).square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().sum() > 0 or name.endswith("qkv.bias"), name


def test_restricted_attention_sees_only_its_neighbourhood():
    model = build(neighbourhood=2, encoder_layers=1)
    src = torch.arange(4, 20)[None]
    mask = key_mask(src, 0)
    with torch.no_grad():
        before, _ = model.encode(src, mask)
        src[0, 10] = 40
        after, _ = model.encode(src, mask)
    changed = ((before - after).abs().amax(-1)[0] > 0).nonzero().flatten().tolist()
    assert changed == [9, 10, 11]


def test_dropout_keeps_the_mean_and_the_rate():
    torch.manual_seed(0)
    x = torch.ones(1000, 301)
    out = dropout(x, 0.3, True)
    assert (out == 0).float().mean() == pytest.approx(0.3, abs=0.005)
    assert out.mean() == pytest.approx(1.0, abs=0.005)
    assert out.max() == pytest.approx(1 / 0.7, rel=1e-4)
    assert torch.equal(x, torch.ones(1000, 301))
    assert dropout(x, 0.3, False) is x and dropout(x, 0.0, True) is x
    torch.manual_seed(5)
    first = dropout(x, 0.3, True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.3, True), first)
    # Neighbouring elements share a draw; they must still be independent.
    zero = (out == 0).float().flatten()
    assert ((zero[:-1] - 0.3) * (zero[1:] - 0.3)).mean().abs() < 0.003


def test_a_sequence_beyond_max_length_says_so():
    model = build()
    with pytest.raises(ValueError, match="41 tokens.*40"):
        model.embed(torch.ones(1, 41, dtype=torch.long))
