"""Whatever the model prefers, the search ends in a tree over the sentence's words."""

import pytest
import torch

from transformer.options import SearchOptions
from transformer.parsing.decode import MAX_OPEN, Masks, State, Symbols, TreeConstraint, repairs
from transformer.parsing.linear import delinearise, symbols
from transformer.search import TransformerDecoder, beam_search
from transformer.tokenizer import BOS, EOS, PAD, UNK

TOKENS = symbols(["S", "NP", "VP"])


class Pieces:
    """A vocabulary of the special tokens, those of trees, and two words."""

    pieces = ["<pad>", "<unk>", "<s>", "</s>", *TOKENS, "a", "b"]

    def id(self, piece: str) -> int:
        return self.pieces.index(piece) if piece in self.pieces else UNK

    def __len__(self) -> int:
        return len(self.pieces)


class Nothing:
    """A cache, or a memory, that holds nothing."""

    def choose(self, parents):
        pass

    def keep(self, sentences):
        pass

    def select(self, rows):
        return self


class Whims(TransformerDecoder):
    """A decoder that wants something else at each step, the same every time; or always the same."""

    def __init__(self, seed: int, always: int | None = None) -> None:
        self.device, self.shortlist, self.constraint = "cpu", None, None
        self.cache = self.memory = Nothing()
        self.generator = torch.Generator().manual_seed(seed)
        self.always, self.seen = always, []

    def logits(self, tokens, active=None):
        logits = torch.randn(*tokens.shape, len(Pieces.pieces), generator=self.generator) * 4
        if self.always is not None:
            logits[..., self.always] = 30.0
        self.seen.append(logits.clone())
        return logits


def search(decoder, words, limits, beam):
    masks = Masks(Symbols(Pieces(), TOKENS, EOS))
    decoder.constraint = TreeConstraint(masks, [[UNK] * count for count in words], limits, PAD)
    # one more step than the tree has tokens, for the end
    return beam_search(
        decoder, [limit + 1 for limit in limits], BOS, EOS, SearchOptions(beam, 0.3), [PAD, UNK, BOS]
    ), masks


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beam", [1, 5])
def test_any_model_ends_in_a_tree(seed, beam):
    words = [1, 7, 3]
    limits = [3, 30, 303]
    found, _ = search(Whims(seed), words, limits, beam)
    for count, limit, result in zip(words, limits, found):
        assert result.candidates[0].finished
        for candidate in result.candidates:
            assert len(candidate.ids) <= limit
            tokens = [Pieces.pieces[i] for i in candidate.ids]
            assert delinearise(tokens, ["w"] * count).words() == ["w"] * count


@pytest.mark.parametrize("token", ["(NP", ")NP", "XX", "</s>", "a"])
def test_a_model_with_one_idea_ends_in_a_tree(token):
    found, _ = search(Whims(0, Pieces.pieces.index(token)), [4], [304], 3)
    tokens = [Pieces.pieces[i] for i in found[0].candidates[0].ids]
    assert delinearise(tokens, list("abcd")).words() == list("abcd")


def test_probabilities_stay_the_models_own():
    inner = Whims(3)
    found, _ = search(inner, [2], [12], 1)
    ids = found[0].candidates[0].ids
    own = sum(float(step[0, 0].log_softmax(-1)[token]) for step, token in zip(inner.seen, [*ids, EOS]))
    assert found[0].candidates[0].logprob == pytest.approx(own, abs=1e-4)


def test_repairs_are_steps_whose_favourite_was_forbidden():
    masks = Masks(Symbols(Pieces(), TOKENS, EOS))
    ids = [Pieces.pieces.index(t) for t in ["(S", "(NP", "XX", ")NP", "XX", ")S"]]
    logits = torch.zeros(len(ids) + 1, len(Pieces.pieces))
    for row, token in enumerate([*ids, EOS]):
        logits[row, token] = 1.0
    assert repairs(logits, ids, 2, 302, masks) == 0
    logits[1, EOS] = 2.0  # to end with a phrase open
    logits[4, Pieces.pieces.index(")VP")] = 2.0  # to close what is not open
    logits[2, Pieces.pieces.index("(VP")] = 2.0  # would have been a tree, too: no repair
    assert repairs(logits, ids, 2, 302, masks) == 2


def test_phrases_do_not_open_for_ever():
    state, symbols_ = State(1, 301), Symbols(Pieces(), TOKENS, EOS)
    for _ in range(MAX_OPEN):
        assert state.moves()[0]
        state = state.after(Pieces.pieces.index("(NP"), symbols_)
    assert state.moves() == (False, True, None, False)


def test_a_vocabulary_without_brackets_is_refused():
    with pytest.raises(ValueError, match="lacks a token"):
        Symbols(Pieces(), symbols(["S", "QP", "X"]), EOS)
