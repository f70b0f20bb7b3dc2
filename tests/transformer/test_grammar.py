"""The made sentences: correct by rule, fixed, held out; and the preset that learns them."""

import re

import numpy as np

from training import Run, fit
from transformer import grammar
from transformer.train import PRESETS, TranslationRecipe, TranslationTask


def test_sentences_are_fixed_different_and_held_out():
    train, val = grammar.splits(500, 50)
    assert (train, val) == grammar.splits(500, 50)
    assert len(set(train)) == 500 and len(set(val)) == 50 and not set(train) & set(val)
    assert grammar.pairs(20, 1) != grammar.pairs(20, 2)


def test_german_agrees_and_its_verb_moves():
    gender = {german: g for _, german, g in grammar.WORDS["people"] + grammar.WORDS["things"]}
    seen = set()
    for english, german in grammar.pairs(3000, 5):
        assert english[0].isupper() and english.endswith(".") and german.endswith(".")
        assert not re.search(r"\ba [aeiou]", english.lower()) and not re.search(r"\ban [^aeiou]", english.lower())
        for article, ending, noun in re.findall(
            r"\b(der|die|das|den|ein|eine|einen) (?:(?:\w+?)(e|er|es|en) )?(\w+)", german.lower()
        ):
            if noun.capitalize() not in gender:
                continue
            allowed = {"m": {"der", "den", "ein", "einen"}, "f": {"die", "eine"}, "n": {"das", "ein"}}
            assert article in allowed[gender[noun.capitalize()]], german
            wanted = {"der": "e", "die": "e", "das": "e", "den": "en", "eine": "e", "einen": "en"}
            if ending:
                assert ending == wanted.get(
                    article, {"m": "er", "n": "es"}[gender[noun.capitalize()]] if article == "ein" else ""
                ), german
        if ", dass" in german:
            assert german.rstrip(".").split()[-1] in {verb[3] for verb in grammar.WORDS["verbs"]}
            seen.add("clause")
        if re.search(r"\b(kann|muss|will)\b", german):
            assert german.rstrip(".").split()[-1] in {verb[4] for verb in grammar.WORDS["verbs"]}
            seen.add("modal")
        if " hat " in german:
            assert german.rstrip(".").split()[-1] in {verb[5] for verb in grammar.WORDS["verbs"]}
            seen.add("perfect")
    assert seen == {"clause", "modal", "perfect"}


def test_the_tiny_preset_learns_and_its_attention_is_recorded(tmp_path):
    """An eighth of the preset: loss and perplexity fall, and cross-attention leaves its even spread."""
    recipe = TranslationRecipe(
        **{**PRESETS["tiny"], "steps": 100, "evaluate_every": 50, "save_every": 50, "warmup": 40}
    )
    fit(TranslationTask(recipe), recipe, tmp_path / "run", quiet=True)
    run = Run(tmp_path / "run")
    events = list(run.events())
    losses = [event["losses"]["nll"] for event in events if event["event"] == "log"]
    perplexity = [event["figures"]["perplexity"] for event in events if event["event"] == "evaluation"]
    assert losses[-1] < 0.5 * losses[0] and perplexity[-1] < 0.1 * perplexity[0] and len(perplexity) == 3
    strongest = []
    for step in (0, 100):
        with np.load(run.samples(step) / "attention.npz", allow_pickle=False) as data:
            cross, source, said, read = data["cross"], data["source"], data["said"], data["read"]
            assert cross.shape[2:] == (len(said), len(source)) and data["decoder"].shape[2:] == (len(said), len(read))
            np.testing.assert_allclose(cross.astype(np.float32).sum(-1), 1, atol=0.01)
            assert np.triu(data["decoder"][0, 0].astype(np.float32), 1).max() == 0
            strongest.append(float(cross[-1].astype(np.float32).mean(0).max(-1).mean()))
    assert strongest[1] > 1.5 * strongest[0]
    assert read[0] == "<s>" and said[-1] == source[-1] == "</s>"
