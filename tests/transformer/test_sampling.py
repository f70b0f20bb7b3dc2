"""Subword regularisation: the text stays, its pieces are drawn with the probabilities of the paper, and again at a resume."""

import math
import random
from collections import Counter

import pytest
import torch

from transformer.sampling import SubwordSampler
from transformer.tokenizer import UNK, Tokenizer
from transformer.train import TranslationRecipe, TranslationTask

TEXTS = ["a house and a housing of houses", "the hound is in the house", "a sound and a round pound", "hoses rose"]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 30, 60)


def test_the_text_stays_the_same(tokenizer):
    sampler, draw = SubwordSampler(tokenizer, 0.0), random.Random(0)
    for text in TEXTS:
        drawn = {tuple(sampler.encode(text, draw)) for _ in range(20)}
        assert len(drawn) > 1 and {tokenizer.decode(ids) for ids in drawn} == {text}


def test_words_are_drawn_with_the_powers_of_their_probabilities(tokenizer):
    alpha, word, count = 0.5, "houses", 20_000
    sampler, draw = SubwordSampler(tokenizer, alpha), random.Random(1)
    found = Counter(tuple(sampler.encode(word, draw)) for _ in range(count))
    powers = {tuple(ids): math.exp(alpha * score) for ids, score in tokenizer.alternatives(word, 64)}
    assert set(found) <= set(powers)
    for ids, power in powers.items():
        expected = power / sum(powers.values())
        assert abs(found[ids] / count - expected) < 4 * math.sqrt(expected / count) + 1e-3


def test_a_large_exponent_takes_the_likeliest_pieces(tokenizer):
    sampler, draw = SubwordSampler(tokenizer, 1e4), random.Random(2)
    for text in TEXTS:  # ties apart, which these texts do not have
        assert sampler.encode(text, draw) == tokenizer.encode(text)


def test_unknown_characters_stay_unknown(tokenizer):
    ids = SubwordSampler(tokenizer, 0.2).encode("a ☃ house", random.Random(3))
    assert UNK in ids and tokenizer.encode("☃")[-1] == UNK


def test_every_epoch_has_other_pieces_and_a_new_task_the_same_batches(tmp_path):
    lines = ["en\tde", *(f"{a}\t{b}" for a in TEXTS for b in TEXTS)]
    (tmp_path / "train.tsv").write_text("\n".join(lines * 4))
    options = TranslationRecipe(size="mini", data=str(tmp_path), vocab_size=60, tokens=256, max_length=64, sampling=0.2)
    first, second = TranslationTask(options), TranslationTask(options)
    steps = range(1, 3 * first.per_epoch)
    batches = {step: first.batch(step, 0, 0, 1) for step in steps}
    for step in reversed(steps):  # in another order, as a resumed run would ask for them
        assert torch.equal(batches[step].src, second.batch(step, 0, 0, 1).src)
        assert torch.equal(batches[step].tgt, second.batch(step, 0, 0, 1).tgt)
    assert first.epoch(0)[0].pairs != first.epoch(1)[0].pairs
    assert first.val.pairs == TranslationTask(options).val.pairs  # validation keeps the likeliest pieces
    with pytest.raises(ValueError, match="sampling is an exponent"):
        TranslationRecipe(data="x", sampling=-1.0).check()
