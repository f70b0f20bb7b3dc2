"""Which word pieces quick translation searches among."""

import gzip
import json

import numpy as np
import pytest
import torch

from lab.translator import mix, shortlist
from lab.translator.shortlist import choose, count_pieces
from training.assets import model_dir
from transformer.shortlist import load_shortlists
from transformer.tokenizer import BOS, EOS, PAD, STAND_INS, UNK, Tokenizer

MODEL = "everyday"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.load(model_dir(MODEL) / "tokenizer.model")


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


def test_the_command_writes_what_each_target_language_needs(without_shortlists, tmp_path, capsys):
    rows = [("The house is old.", "Das Haus ist alt.", ""), ("The garden is small.", "", "Le jardin est petit.")]
    table = tmp_path / "train.tsv.gz"
    with gzip.open(table, "wt", encoding="utf-8") as file:
        file.write("en\tde\tfr\torigin\n" + "".join("\t".join((*row, "own")) + "\n" for row in rows))
    argv = ["--model", str(without_shortlists), "--data", str(table), "--share", "1"]
    assert shortlist.main(argv) == 0
    lengths, found = json.loads(capsys.readouterr().out), load_shortlists(without_shortlists, 16000)
    assert {language: len(ids) for language, ids in found.items()} == lengths and set(lengths) == {"en", "de", "fr"}
    tokens = Tokenizer.load(without_shortlists / "tokenizer.model")
    assert set(tokens.encode("Das Haus ist alt.")) <= set(found["de"].tolist())
    assert set(tokens.encode("Le jardin est petit.")) <= set(found["fr"].tolist())
    assert set(tokens.encode("The house is old. The garden is small.")) <= set(found["en"].tolist())
    assert tokens.id("\u2581Haus") not in found["fr"] and tokens.id("\u2581jardin") not in found["de"]
    assert mix.main([f"{without_shortlists}=1", "--out", str(tmp_path / "mixed")]) == 0  # the vocabulary is the same
    assert load_shortlists(tmp_path / "mixed", 16000).keys() == found.keys()
    assert shortlist.main([*argv[:-1], "0"]) == 2
    assert "--share: it has to be more than 0" in capsys.readouterr().err
