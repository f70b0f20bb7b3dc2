"""ALTI+ by hand on one layer, its sums, and its direction against occlusion."""

import numpy as np
import pytest
import torch

from transformer import Translator
from transformer.config import TransformerConfig
from transformer.data import collate
from transformer.insight.contributions import aggregate, contributions, layer_contributions
from transformer.insight.interpret import occlusion
from transformer.insight.trace import record_pass
from transformer.model import Transformer


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("everyday", device="cpu")


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=20, encoder_layers=1, decoder_layers=1, d_model=6, d_ff=8, heads=2, dropout=0.0, max_length=16
    )
    return Transformer(config).eval().requires_grad_(False)


def by_hand(x, memory, weights, attention, norm, y, u, own):
    """The shares of one sub-layer in plain loops: x (T, d) the residual, memory (S, d) what the values come from."""
    heads, d_v = attention.heads, attention.d_v
    w_v, w_o = attention.qkv.weight[-heads * d_v :], attention.output.weight
    shares = np.zeros((len(x), len(memory) + 1))
    for i in range(len(x)):
        parts = []
        for j in range(len(memory)):
            part = torch.zeros(len(x[0]))
            for h in range(heads):
                rows = slice(h * d_v, (h + 1) * d_v)
                part = part + weights[h, i, j] * (w_o[:, rows] @ (w_v[rows] @ memory[j]))
            parts.append(part + x[i] if own and i == j else part)
        parts.append(torch.zeros_like(x[i]) if own else x[i])
        sigma = (((u[i] - u[i].mean()) ** 2).mean() + norm.eps).sqrt()
        for j, part in enumerate(parts):
            through = (part - part.mean()) / sigma * norm.weight
            shares[i, j] = max(0.0, float(y[i].abs().sum() - (y[i] - through).abs().sum()))
        if own:
            shares[i, -1] = 0
        shares[i] /= shares[i].sum()
    return shares


def test_one_layer_by_hand(small):
    pair = collate([([5, 6, 7], [8, 9])])
    with torch.no_grad():
        trace = record_pass(small, pair)
        encoder, decoder, cross = ([trace.attention(kind, 0)] for kind in ("encoder", "decoder", "cross"))
        for seen, own in ((encoder[0], True), (decoder[0], True), (cross[0], False)):
            expected = by_hand(seen.x, seen.memory, seen.weights, seen.block, seen.norm, seen.output, seen.total, own)
            shares, rest = layer_contributions(seen, own)
            np.testing.assert_allclose(torch.cat((shares, rest[:, None]), 1).numpy(), expected, atol=1e-5)
        source, prefix = aggregate(
            [layer_contributions(encoder[0])[0]],
            [layer_contributions(decoder[0])[0]],
            [layer_contributions(cross[0], False)],
        )
        from_source, from_below = layer_contributions(cross[0], False)
    np.testing.assert_allclose(source, from_source @ layer_contributions(encoder[0])[0], atol=1e-6)
    np.testing.assert_allclose(prefix, from_below[:, None] * layer_contributions(decoder[0])[0], atol=1e-6)


def test_rows_sum_to_one_and_nothing_comes_from_what_is_not_yet_written(translator):
    found = contributions(translator, translator.translate("The old man does not like the cold rain.", "en", "de"))
    np.testing.assert_allclose(found.source.sum(1) + found.prefix.sum(1), 1.0, atol=1e-4)
    assert not np.triu(found.prefix, 1).any() and found.source.min() >= 0 and found.prefix.min() >= 0
    assert found.source.shape == (len(found.tokens), len(found.source_tokens))
    assert found.prefix_tokens[0] == "<s>" and found.tokens[-1] == "</s>"
    np.testing.assert_allclose(found.source_share, found.source.sum(1))


def test_what_occlusion_finds_necessary_contributes_more(translator):
    """Pieces of text whose loss costs a token much have larger shares of it than those whose loss costs nothing."""
    wins = []
    for text in ("The dog is sleeping in the garden.", "I bought three red apples yesterday."):
        translation = translator.translate(text, "en", "de")
        shares, loss = contributions(translator, translation).source, occlusion(translator, translation)
        shares, loss = shares[:-1, 1:-1], loss[:-1, 1:-1]  # the language token and the end are no words
        wins += [row[cost.argmax()] > np.median(row) for row, cost in zip(shares, loss) if cost.max() > 1]
    assert len(wins) >= 8 and np.mean(wins) > 0.75


def test_an_unknown_hypothesis_is_one_sentence(translator):
    translation = translator.translate("Good morning.", "en", "de")
    with pytest.raises(ValueError, match="translations"):
        contributions(translator, translation, hypothesis=4)
