"""Marian models: the logits and the beam output of transformers' MarianMTModel with the same random weights."""

import json

import pytest
import torch
from safetensors.torch import save_file

from transformer import Translator, marian
from transformer.attention import key_mask
from transformer.data import collate
from transformer.model import Transformer
from transformer.options import SearchOptions
from transformer.search import TransformerDecoder, beam_search
from transformer.tokenizer import Tokenizer

EOS, UNK, PAD = 0, 1, 49  # the layout of OPUS-MT: eos first, padding last
FIELDS = {
    "vocab_size": 50,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "activation_function": "swish",
    "scale_embedding": True,
    "static_position_embeddings": True,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "bos_token_id": PAD,
    "decoder_start_token_id": PAD,
    "forced_eos_token_id": None,
    "tie_word_embeddings": True,
    "share_encoder_decoder_embeddings": True,
}


def random_marian(**changes):
    """A MarianMTModel whose outputs differ from word to word."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(11)
    model = MarianMTModel(MarianConfig(**{**FIELDS, **changes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.15)
        torch.manual_seed(11)
        model.final_logits_bias.copy_(torch.randn(1, 50))
        model.final_logits_bias[0, EOS] += 3.0  # so that sentences end, at different steps
    return model


@pytest.fixture(scope="module")
def theirs():
    return random_marian()


@pytest.fixture(scope="module")
def ours(theirs):
    config = marian.config_from_marian(theirs.config.to_dict())
    model = Transformer(config).eval()
    model.load_state_dict(marian.state_from_marian(theirs.state_dict(), config))
    return model


PAIRS = [([5, 6, 7, 8], [9, 10, 11]), ([12, 13], [14, 15, 16, 17, 18]), ([20, 21, 22], [])]


def batch_of():
    return collate(PAIRS, pad=PAD, bos=PAD, eos=EOS)


def their_logits(model, batch):
    mask = batch.src_mask[:, 0, 0].long()
    return model(input_ids=batch.src, attention_mask=mask, decoder_input_ids=batch.tgt).logits


def test_their_weights_in_our_model_give_their_logits(theirs, ours):
    batch = batch_of()
    with torch.no_grad():
        expected = their_logits(theirs, batch)
        found = ours(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
    assert (found - expected).abs().max() < 1e-4
    assert expected.std() > 1  # random, but not constant


def test_their_weights_of_other_sizes_and_another_activation_give_their_logits():
    sizes = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 24, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40}
    heads = {"encoder_attention_heads": 3, "decoder_attention_heads": 3}
    theirs = random_marian(**sizes, **heads, activation_function="relu", max_position_embeddings=32)
    config = marian.config_from_marian(theirs.config.to_dict())
    assert (config.d_model, config.d_ff, config.heads, config.activation) == (24, 40, 3, "relu")
    ours = Transformer(config).eval()
    ours.load_state_dict(marian.state_from_marian(theirs.state_dict(), config))
    batch = batch_of()
    with torch.no_grad():
        expected = their_logits(theirs, batch)
        assert (ours(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask) - expected).abs().max() < 1e-4
    assert expected.std() > 1


@pytest.mark.parametrize("minimum", [0, 4])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_the_same_beam_output_at_length_penalty_zero(theirs, ours, beam, minimum):
    torch.manual_seed(2)
    sources = [torch.randint(2, 49, (n,)).tolist() for n in (3, 7, 5, 1, 9, 6)]
    src = collate([(s, []) for s in sources], pad=PAD, bos=PAD, eos=EOS).src
    expected = theirs.generate(
        input_ids=src,
        attention_mask=(src != PAD).long(),
        num_beams=beam,
        num_return_sequences=beam,
        length_penalty=0.0,
        max_length=21,
        min_length=minimum + 1,
        bad_words_ids=[[PAD]],
        do_sample=False,
        early_stopping=False,
    )
    with torch.inference_mode():
        decoder = TransformerDecoder(ours, src, key_mask(src, PAD))
        found = beam_search(decoder, [20] * len(sources), PAD, EOS, SearchOptions(beam, 0.0), [PAD], min_length=minimum)
    for row, result in enumerate(found):
        for rank, candidate in enumerate(result.candidates):
            ids = [t for t in expected[row * beam + rank].tolist() if t != PAD]
            assert ([*candidate.ids, EOS] if candidate.finished else candidate.ids) == ids
    if beam == 4:
        assert len({len(c.ids) for r in found for c in r.candidates}) > 3  # they end at different steps


@pytest.fixture
def folder(tmp_path, theirs):
    """A local OPUS-MT folder: both SentencePiece models, vocab.json, config.json, weights."""
    tokenizer = Tokenizer.train(["ab ba abc cab bac acb cba dad add bad dab"] * 40, 44)
    folder = tmp_path / "opus-mt-en-de"
    folder.mkdir()
    pieces = [p for p in tokenizer.pieces(range(len(tokenizer))) if not p.startswith("<")]
    vocabulary = {"</s>": EOS, "<unk>": UNK, **{p: i for i, p in enumerate(pieces, 2)}, ">>deu<<": 48, "<pad>": PAD}
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(tokenizer.model)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({**theirs.config.to_dict(), "model_type": "marian"}))
    state = {k: v.clone().contiguous() for k, v in theirs.state_dict().items()}
    save_file(state, folder / "model.safetensors")
    return folder


def test_a_local_folder_translates(folder, theirs):
    translator = Translator.from_pretrained(folder, device="cpu")
    assert translator.pairs == [("en", "de")]
    out = translator.translate("ab dad cab", beam=2, alpha=0.0, max_length=12)
    ids = translator.tokenizer.encode("ab dad cab") + [EOS]
    expected = theirs.generate(
        input_ids=torch.tensor([ids]),
        num_beams=2,
        length_penalty=0.0,
        max_length=13,
        bad_words_ids=[[PAD], [UNK]],
        do_sample=False,
        early_stopping=False,
    )
    assert out.sentences[0].ids[0] == [t for t in expected[0].tolist() if t not in (PAD, EOS)]
    assert translator.attend(out).cross.shape[:2] == (3, 4)
    coded = translator.tokenizer.encode(">>deu<< ab")
    assert coded[0] == 48 and coded[1:] == translator.tokenizer.encode("ab")


def test_pickled_weights_load_without_running_code(folder, theirs):
    (folder / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), folder / "pytorch_model.bin")
    Translator.from_pretrained(folder, device="cpu")

    class Evil:
        def __reduce__(self):
            return print, ("this must not run",)

    torch.save({"weight": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="damaged or not a file of weights"):
        Translator.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "vocab.json").unlink(), "vocab.json is missing"),
        (lambda f: (f / "model.safetensors").unlink(), "neither"),
        (lambda f: (f / "source.spm").write_bytes(b"x"), "damaged"),
        (lambda f: (f / "vocab.json").write_text("{"), "JSON"),
        (lambda f: change(f, static_position_embeddings=False), "static_position_embeddings"),
        (lambda f: change(f, decoder_layers=4), "missing"),
        (lambda f: change(f, decoder_attention_heads=2), "attention_heads"),
        (lambda f: change(f, activation_function="gelu"), "gelu"),
    ],
)
def test_incomplete_and_foreign_folders_say_so(folder, damage, words):
    damage(folder)
    with pytest.raises(ValueError, match=words):
        Translator.from_pretrained(folder, device="cpu")


def change(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


def test_without_a_connection_the_words_are_clear(monkeypatch, tmp_path):
    import huggingface_hub

    def no_network(*args, **kwargs):
        raise ConnectionError("network is unreachable")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_network)
    with pytest.raises(ValueError, match="connection, or give a folder with its files"):
        Translator.from_pretrained("Helsinki-NLP/opus-mt-en-de")
    with pytest.raises(ValueError, match="neither a folder nor a name"):
        Translator.from_pretrained("../../somewhere/else")
