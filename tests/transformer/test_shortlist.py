"""Quick translation among the words of one language."""

import gzip
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from training.assets import model_dir
from transformer import Translator, kernels, mix, shortlist
from transformer.model import Shortlist
from transformer.shortlist import choose, count_pieces, load_shortlists
from transformer.tokenizer import BOS, EOS, PAD, STAND_INS, UNK, Tokenizer
from transformer.translator import Sampling, Sentence

MODEL = "everyday"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.load(model_dir(MODEL) / "tokenizer.model")


@pytest.fixture()
def folder(tmp_path):
    """The shipped model without its shortlists."""
    for name in ("config.json", "tokenizer.model", "model.safetensors"):
        shutil.copyfile(model_dir(MODEL) / name, tmp_path / name)
    return tmp_path


def test_the_most_frequent_pieces_are_held_and_whatever_spells(tokenizer):
    rng = np.random.default_rng(0)
    counts = rng.zipf(1.5, len(tokenizer)).clip(0, 10**6)
    counts[rng.random(len(counts)) < 0.3] = 0
    counts[[PAD, UNK, BOS]] = 0
    held = choose(counts, tokenizer, 0.98)
    assert held.dtype == torch.bool and held.shape == counts.shape
    assert int(held.sum()) % 64 == 0 and held.sum() < (counts > 0).sum()
    assert counts[held.numpy()].sum() >= 0.98 * counts.sum()
    best = np.sort(counts)[::-1]
    enough = next(n for n in range(1, len(best)) if best[:n].sum() >= 0.98 * counts.sum())
    assert held.numpy()[counts > best[enough - 1]].all() and enough <= held.sum() < enough + 500 + 64
    assert held[EOS] and not held[[PAD, UNK, BOS]].any()
    assert all(held[tokenizer.id(piece)] for piece in (*STAND_INS, "a", "\u2581Q", "7", "\u00df"))
    everything = choose(np.ones(len(tokenizer), int), tokenizer, 1.0)
    assert int(everything.sum()) == len(tokenizer) - 3
    with pytest.raises(ValueError, match="no text in this language"):
        choose(np.zeros(len(tokenizer), int), tokenizer)


def test_pieces_are_counted_as_they_are_written(tokenizer):
    text = "ein Haus und ein Garten"
    counts = count_pieces([text, text], tokenizer)
    assert counts.sum() == 2 * len(tokenizer.encode(text)) and counts[tokenizer.id("\u2581ein")] >= 2


def test_logits_of_a_shortlist_are_those_of_its_words():
    weight, bias, x = torch.randn(50, 8), torch.randn(50), torch.randn(2, 3, 8)
    ids = torch.tensor([3, 7, 49])
    for offset in (None, bias):
        logits = torch.nn.functional.linear(x, weight, offset)
        torch.testing.assert_close(Shortlist(ids, weight, offset).project(x), logits[..., ids])
    with torch.inference_mode():
        assert not Shortlist(ids, weight, bias).weight.is_inference()  # else it could not be packed


def test_the_command_writes_what_each_target_language_needs(folder, tmp_path, capsys):
    rows = [("The house is old.", "Das Haus ist alt.", ""), ("The garden is small.", "", "Le jardin est petit.")]
    table = tmp_path / "train.tsv.gz"
    with gzip.open(table, "wt", encoding="utf-8") as file:
        file.write("en\tde\tfr\torigin\n" + "".join("\t".join((*row, "own")) + "\n" for row in rows))
    argv = ["--model", str(folder), "--data", str(table), "--share", "1"]
    assert shortlist.main(argv) == 0
    lengths, found = json.loads(capsys.readouterr().out), load_shortlists(folder, 16000)
    assert {language: len(ids) for language, ids in found.items()} == lengths and set(lengths) == {"en", "de", "fr"}
    tokens = Tokenizer.load(folder / "tokenizer.model")
    assert set(tokens.encode("Das Haus ist alt.")) <= set(found["de"].tolist())
    assert set(tokens.encode("Le jardin est petit.")) <= set(found["fr"].tolist())
    assert set(tokens.encode("The house is old. The garden is small.")) <= set(found["en"].tolist())
    assert tokens.id("\u2581Haus") not in found["fr"] and tokens.id("\u2581jardin") not in found["de"]
    assert mix.main([f"{folder}=1", "--out", str(tmp_path / "mixed")]) == 0  # the vocabulary is the same
    assert load_shortlists(tmp_path / "mixed", 16000).keys() == found.keys()
    assert shortlist.main([*argv[:-1], "0"]) == 2
    assert "--share lies above 0" in capsys.readouterr().err


def test_a_file_that_does_not_belong_there_gets_a_sentence(folder):
    file = folder / shortlist.FILE
    assert load_shortlists(folder, 16000) == {}
    for content in ({"de": torch.ones(15999, dtype=torch.bool)}, {"de": torch.ones(16000)}):
        save_file(content, file)
        with pytest.raises(ValueError, match="another vocabulary"):
            Translator.from_pretrained(folder, "cpu")
    without_eos = torch.ones(16000, dtype=torch.bool)
    without_eos[EOS] = False
    save_file({"de": without_eos}, file)
    with pytest.raises(ValueError, match="another vocabulary"):
        load_shortlists(folder, 16000)
    file.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is damaged"):
        load_shortlists(folder, 16000)


def seen(sentence: Sentence) -> set[int]:
    """Every word that a search looked at."""
    assert sentence.trace
    return {token for step in sentence.trace for _, token, _ in step.candidates}


@pytest.mark.skipif(not kernels.has_bytes(), reason="no processor for products of 8 bits")
def test_quick_beam_search_alone_stays_within_the_shortlist(folder):
    """The words that the exact search writes are taken out; only a quick beam search does without them."""
    translator, text = Translator.from_pretrained(folder, "cpu"), "The dog is sleeping in the garden."
    (exact,) = translator.translate_sentences([text], "en", "de", 4, None, 1, None, True)
    wanted = exact.ids[0]
    rest = torch.ones(16000, dtype=torch.bool)
    rest[[PAD, UNK, BOS, *wanted]] = False
    translator.shortlists = {"de": rest.nonzero()[:, 0]}
    (quick,) = translator.translate_sentences([text], "en", "de", 4, None, 1, None, True, quick=True)
    assert quick.finished and quick.ids[0] and not seen(quick) & set(wanted) and EOS in seen(quick)
    (slow,) = translator.translate_sentences([text], "en", "de", 4, None, 1, None, True)
    assert slow.ids == exact.ids
    drawing = Sampling(0.1)
    (drawn,) = translator.translate_sentences([text], "en", "de", 4, None, 1, None, False, drawing, quick=True)
    assert set(drawn.ids[0]) & set(wanted)
    (other,) = translator.translate_sentences([text], "en", "fr", 4, None, 1, None, False, quick=True)
    assert "chien" in other.hypotheses[0].text  # a language without a shortlist has all words


def test_the_shipped_shortlists_hold_what_is_written_in_their_language():
    translator = Translator.from_pretrained(MODEL, "cpu")
    assert translator.shortlists.keys() == {target for _, target in translator.pairs}
    for language, text in (
        ("en", "Would you rather pay in cash or by card? The museum is closed on Mondays."),
        ("de", "Möchten Sie lieber bar oder mit Karte bezahlen? Das Museum ist montags geschlossen."),
        ("fr", "Préférez-vous payer en espèces ou par carte ? Le musée est fermé le lundi."),
    ):
        ids = translator.shortlists[language]
        assert len(ids) % 64 == 0 and len(ids) < 0.6 * translator.model.config.vocab_size
        assert set(translator.tokenizer.encode(text)) <= set(ids.tolist())
