"""A decoder that can only write trees: at each step it is left with the tokens that may still become one.

Every phrase holds a word, brackets balance, there is one phrase around everything, and as many leaves as words. The
probabilities stay the model's own: those of forbidden tokens are not shared out among the others, so a hypothesis that
was not on its way to a tree scores less.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transformer.parsing.linear import closing, opening
from transformer.parsing.trees import TAG
from transformer.tokenizer import Tokenizer

MAX_OPEN = 10  # phrases that may begin one after the other without a word; the treebank has 8 at most


class Symbols:
    """The ids of a tree's tokens in one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, tokens: Sequence[str], eos: int) -> None:
        """tokens: as `linear.symbols` lists them. Raises `ValueError` if the vocabulary lacks one."""
        ids = {token: tokenizer.id(token) for token in tokens}
        if len(set(ids.values())) < len(ids) or TAG not in ids:
            raise ValueError("The vocabulary lacks a token that trees are written in.")
        self.tokens = {number: token for token, number in ids.items()}
        self.leaf, self.eos, self.size = ids[TAG], eos, len(tokenizer)
        self.labels = sorted(token[1:] for token in tokens if token.startswith("("))
        self.open = {ids[opening(label)]: label for label in self.labels}
        self.close = {label: ids[closing(label)] for label in self.labels}


@dataclass(frozen=True)
class State:
    """How far a hypothesis has come."""

    words: int  # of the sentence
    room: int  # tokens that may still be written, eos not counted
    leaves: int = 0  # so far
    stack: tuple[str, ...] = ()  # labels of the open phrases
    openings: int = 0  # phrases begun since the last word or closing bracket

    def moves(self) -> tuple[bool, bool, str | None, bool]:
        """What may come next: a phrase, a word, the closing bracket of this label, the end."""
        remaining = self.words - self.leaves
        # What has to come in any case is a leaf for each word and a closing bracket for each phrase.
        phrase = remaining > 0 and self.openings < MAX_OPEN and self.room >= remaining + len(self.stack) + 2
        close = self.stack and not self.openings and (len(self.stack) > 1 or not remaining)
        end = self.leaves > 0 and not self.stack
        return phrase, bool(remaining and self.stack), self.stack[-1] if close else None, end

    def after(self, token: int, symbols: Symbols) -> State:
        """The state with one more token, which has to be one that `moves` allows."""
        room = self.room - 1
        if token == symbols.leaf:
            return replace(self, room=room, leaves=self.leaves + 1, openings=0)
        if token in symbols.open:
            stack = (*self.stack, symbols.open[token])
            return replace(self, room=room, stack=stack, openings=self.openings + 1)
        return replace(self, room=room, stack=self.stack[:-1], openings=0)


class Masks:
    """For each set of `State.moves`, the ids that it forbids; made once and kept."""

    def __init__(self, symbols: Symbols, device: torch.device | str = "cpu") -> None:
        self.symbols, self.device = symbols, device
        self.masks: dict[tuple, Tensor] = {}

    def forbidden(self, state: State) -> Tensor:
        """(V,) bool, True = must not come next."""
        moves = state.moves()
        if moves not in self.masks:
            phrase, word, label, end = moves
            ids = list(self.symbols.open) if phrase else []
            ids += [self.symbols.leaf] if word else []
            ids += [self.symbols.close[label]] if label is not None else []
            ids += [self.symbols.eos] if end else []
            mask = torch.ones(self.symbols.size, dtype=torch.bool, device=self.device)
            mask[ids] = False
            self.masks[moves] = mask
        return self.masks[moves]


class TreeConstraint:
    """Leaves a decoder only what can become a tree; the probability of all that is forbidden goes to `sink`."""

    def __init__(self, masks: Masks, words: Sequence[Sequence[int]], limits: Sequence[int], sink: int) -> None:
        """
        words: of each sentence, what the network reads for each of its words in place of the leaf's XX.
        limits: of each sentence, the most tokens of its output.
        sink: an id that is never chosen.
        """
        self.masks, self.sink = masks, sink
        self.words = [list(row) for row in words]
        self.states = [[State(len(row), limit)] for row, limit in zip(self.words, limits)]
        self.first = self.states[0][0]
        self.has_bos = False  # bos has been read
        self.path: list[int] = []  # what a single hypothesis has read, for `fork`

    def read(self, tokens: Tensor) -> Tensor:
        """As `Constraint.read`: in place of a leaf the network reads its word."""
        rows, leaf = tokens.tolist(), self.masks.symbols.leaf
        if tokens.numel() == 1:
            self.path = [*self.path, rows[0][0]]
        if not self.has_bos:
            self.has_bos = True
            return tokens
        self.states = [[self.after(state, token) for state, token in zip(*row)] for row in zip(self.states, rows)]
        read = [
            [own[state.leaves - 1] if token == leaf else token for state, token in zip(*row)]
            for own, *row in zip(self.words, self.states, rows)
        ]
        return torch.tensor(read, device=tokens.device)

    def restrict(self, logits: Tensor) -> Tensor:
        """As `Constraint.restrict`; `sink` has the logarithm of all that the forbidden tokens had together."""
        forbidden = torch.stack([torch.stack([self.masks.forbidden(state) for state in row]) for row in self.states])
        rest = logits.masked_fill(~forbidden, -torch.inf).logsumexp(-1)
        logits = logits.masked_fill(forbidden, -torch.inf)
        logits[..., self.sink] = rest
        return logits

    def after(self, state: State, token: int) -> State:
        """The state with one more token. Raises `ValueError` with one sentence if no tree can go on so."""
        if self.masks.forbidden(state)[token] or token == self.masks.symbols.eos:
            name = self.masks.symbols.tokens.get(token, "this token")
            raise ValueError(f"No tree of this sentence can go on with {name} there.")
        return state.after(token, self.masks.symbols)

    def choose(self, parents: Tensor) -> None:
        """As `NextToken.choose`."""
        self.states = [[row[parent] for parent in own] for row, own in zip(self.states, parents.tolist())]

    def keep(self, sentences: Tensor) -> None:
        """As `NextToken.keep`."""
        self.states = [self.states[sentence] for sentence in sentences.tolist()]
        self.words = [self.words[sentence] for sentence in sentences.tolist()]

    def fork(self, positions: int) -> TreeConstraint:
        """As `Constraint.fork`."""
        twin = copy.copy(self)
        twin.path, twin.has_bos = self.path[:positions], positions > 0
        state = self.first
        for token in twin.path[1:]:
            state = state.after(token, self.masks.symbols)
        twin.states = [[state]]
        return twin


def repairs(logits: Tensor, ids: Sequence[int], words: int, limit: int, masks: Masks) -> int:
    """At how many steps of an output the model's own favourite could not have become a tree.

    logits (T, V) of each next token along the output, eos included; ids: the output without eos; limit: as it was made.
    """
    state, count = State(words, limit), 0
    for favourite, token in zip(logits.argmax(-1).tolist(), [*ids, masks.symbols.eos]):
        count += bool(masks.forbidden(state)[favourite])
        state = state if token == masks.symbols.eos else state.after(token, masks.symbols)
    return count
