"""Subword regularisation (Kudo 2018, "Subword Regularization", section 3): a small corpus read with other pieces each time."""

from __future__ import annotations

import math
import random
from bisect import bisect
from itertools import accumulate

from transformer.tokenizer import UNK, Tokenizer


class SubwordSampler:
    """Draws the pieces of a text from the vocabulary's unigram model instead of taking the likeliest ones.

    A segmentation x of a word has the probability P(x)^alpha / sum P(x')^alpha over the word's `best` likeliest ones, P
    being the product of its pieces' probabilities. No piece reaches over a blank, so the words of a sentence are drawn one
    by one, which makes their alternatives few enough to be kept. (SentencePiece samples too, but from a generator that
    cannot be set again, so an interrupted training could not go on with the same text.)
    """

    def __init__(self, tokenizer: Tokenizer, alpha: float, best: int = 64) -> None:
        """alpha: 0 = all segmentations alike, large = always the likeliest; the paper has 0.1 to 0.5."""
        self.tokenizer, self.alpha, self.best = tokenizer, alpha, best
        self._words: dict[str, tuple[list[list[int]], list[float]]] = {}

    def encode(self, text: str, draw: random.Random) -> list[int]:
        """Ids of a normalised sentence, without bos and eos; they decode to the same text as the tokenizer's own."""
        ids: list[int] = []
        for word in text.split(" "):
            segmentations, shares = self._words.get(word) or self._alternatives(word)
            ids += segmentations[bisect(shares, draw.random() * shares[-1])] if len(shares) > 1 else segmentations[0]
        return ids

    def _alternatives(self, word: str) -> tuple[list[list[int]], list[float]]:
        """The word's segmentations and the running sum of their shares."""
        found = [(ids, score) for ids, score in self.tokenizer.alternatives(word, self.best) if UNK not in ids]
        found = found or [(self.tokenizer.encode(word), 0.0)]  # an unknown character has no probability
        highest = max(score for _, score in found)
        shares = list(accumulate(math.exp(self.alpha * (score - highest)) for _, score in found))
        self._words[word] = [ids for ids, _ in found], shares
        return self._words[word]


class SampledPieces:
    """A sampler with its source of chance: reads text where a `Tokenizer` would."""

    def __init__(self, sampler: SubwordSampler, draw: random.Random) -> None:
        self.sampler, self.draw = sampler, draw

    def encode(self, text: str) -> list[int]:
        """Ids of a normalised sentence, drawn anew at each call."""
        return self.sampler.encode(text, self.draw)
