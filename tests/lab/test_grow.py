"""A larger model from a smaller one: the same function where nothing but width grows, known pieces where words do."""

import pytest
import torch

from lab.translator.grow import copy_of_dimensions, grow_embedding, grow_weights, main, shares, widen, widen_model
from training.weights import load_model, save_model
from transformer import config as configs
from transformer import grammar
from transformer.data import collate
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.translator import FORMAT

TEXTS = ["the dogs are running home", "the cats are running away", "der Hund rennt nach Hause", "die Katzen rennen weg"]


@pytest.fixture(scope="module")
def tokenizers():
    texts = [text for pair in grammar.splits()[0][:800] for text in pair]
    return Tokenizer.train(texts, 80, ["de"]), Tokenizer.train(texts, 160, ["de"])


def save(folder, model, tokenizer):
    header = {"format": FORMAT, "pairs": [["en", "de"]], "language_tokens": False}
    save_model(folder, {**header, "transformer": model.config.to_dict()}, model.state_dict())
    tokenizer.save(folder / "tokenizer.model")


def small(tokenizer):
    torch.manual_seed(0)
    return Transformer(configs.preset("mini", vocab_size=len(tokenizer))).eval()


def test_a_wider_network_computes_the_same_function(tokenizers, monkeypatch):
    before, _ = tokenizers
    model = small(before)
    monkeypatch.setitem(configs.PRESETS, "mini-wide", {**configs.PRESETS["mini"], "d_ff": 200})
    config = configs.preset("mini-wide", vocab_size=len(before))
    wide = Transformer(config).eval()
    wide.load_state_dict(grow_weights(model.state_dict(), before, before, config))
    batch = collate([(before.encode(TEXTS[0]), before.encode(TEXTS[2]))])
    args = batch.src, batch.tgt, batch.src_mask, batch.tgt_mask
    with torch.no_grad():
        torch.testing.assert_close(wide(*args), model(*args), rtol=1e-5, atol=1e-5)
    assert wide.encoder[0].feed_forward.inner.weight[128:].std() > 0.01  # the new units can learn
    assert not wide.encoder[0].feed_forward.outer.weight[:, 128:].any()


def test_known_pieces_keep_their_embedding_and_new_ones_get_the_mean_of_their_parts(tokenizers):
    before, after = tokenizers
    old = torch.randn(len(before), 8, generator=torch.Generator().manual_seed(1))
    new = grow_embedding(old, before, after)
    pieces, known = after.pieces(range(len(after))), set(before.pieces(range(len(before))))
    fresh = [i for i, piece in enumerate(pieces) if piece not in known]
    assert fresh and len(fresh) < len(pieces) and new.shape == (len(after), 8)
    for i, piece in enumerate(pieces):
        if i not in fresh:
            assert torch.equal(new[i], old[before.id(piece)]), piece
    whole = next(i for i in fresh if pieces[i].startswith("\u2581") and len(pieces[i]) > 2)
    parts = before.encode(pieces[whole][1:])
    torch.testing.assert_close(new[whole], old[parts].mean(0))
    inside = next((i for i in fresh if not pieces[i].startswith("\u2581")), None)
    if inside is not None:  # without the blank that begins a text
        assert before.decode(before.inside(pieces[inside])) == pieces[inside]


def test_nothing_shrinks(tokenizers):
    with pytest.raises(ValueError, match="only grow"):
        widen(torch.ones(3, 2), torch.Size([2, 2]), torch.zeros(2, 2))
    before, _ = tokenizers
    deeper = configs.preset("mini", vocab_size=len(before), decoder_layers=3)
    with pytest.raises(ValueError, match="as many as before"):
        grow_weights(small(before).state_dict(), before, before, deeper)


def test_the_command_writes_a_model_to_start_from(tokenizers, tmp_path, monkeypatch, capsys):
    before, after = tokenizers
    model = small(before)
    save(tmp_path / "old", model, before)
    after.save(tmp_path / "new.model")
    monkeypatch.setitem(configs.PRESETS, "mini-wide", {**configs.PRESETS["mini"], "d_ff": 160})
    argv = ["--model", str(tmp_path / "old"), "--size", "mini-wide", "--tokenizer", str(tmp_path / "new.model")]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 0
    header, state = load_model(tmp_path / "out")
    assert header["transformer"]["d_ff"] == 160 and header["transformer"]["vocab_size"] == len(after)
    assert state["embedding.weight"].shape[0] == len(after) and header["pairs"] == [["en", "de"]]
    assert main([*argv[:3], "everyday-wide", "--out", str(tmp_path / "x")]) == 2
    assert "can grow" in capsys.readouterr().err


def test_a_model_of_more_dimensions_and_heads_begins_near_the_smaller_one(tokenizers, tmp_path, monkeypatch):
    """Exact but for layer normalisation and positions: trained weights lose little, and copies are not twins."""
    before, _ = tokenizers
    old = configs.preset("mini", vocab_size=len(before))
    new = configs.preset("mini", vocab_size=len(before), d_model=96, heads=3, d_ff=100)
    dims = copy_of_dimensions(64, 96)
    assert dims[:8].tolist() == [0, 1, 2, 3, 2, 3, 4, 5] and set(dims.tolist()) == set(range(64))
    drawn = shares(dims, 5)
    torch.testing.assert_close(torch.zeros(5, 64).index_add_(1, dims, drawn), torch.ones(5, 64))
    model, wide = small(before), Transformer(new).eval()
    for layer in (*model.encoder, *model.decoder):  # units without which the function is nearly the same
        layer.feed_forward.outer.weight.data[:, 100:] *= 1e-3
    wide.load_state_dict(widen_model(model.state_dict(), old, new))
    batch = collate([(before.encode(TEXTS[0]), before.encode(TEXTS[2])), (before.encode(TEXTS[1]), [7, 8])])
    with torch.no_grad():
        args = batch.src, batch.tgt, batch.src_mask, batch.tgt_mask
        ours, theirs = wide(*args), model(*args)
    assert torch.corrcoef(torch.stack((ours.flatten(), theirs.flatten())))[0, 1] > 0.97
    assert not torch.equal(*wide.encoder[0].attention.qkv.weight[:, 2:6].split(2, dim=1))
    with pytest.raises(ValueError, match="can grow"):
        widen_model(
            model.state_dict(), old, configs.preset("mini", vocab_size=len(before), d_model=96, d_ff=200, heads=3)
        )


def test_the_command_widens_a_model(tokenizers, tmp_path, monkeypatch):
    before, _ = tokenizers
    model = small(before)
    save(tmp_path / "old", model, before)
    larger = {**configs.PRESETS["mini"], "d_model": 96, "heads": 3}
    monkeypatch.setitem(configs.PRESETS, "mini-large", larger)
    assert main(["--model", str(tmp_path / "old"), "--size", "mini-large", "--out", str(tmp_path / "out")]) == 0
    header, state = load_model(tmp_path / "out")
    assert header["transformer"]["d_model"] == 96 and header["transformer"]["heads"] == 3
    assert state["embedding.weight"].shape == (len(before), 96)
