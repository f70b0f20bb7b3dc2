"""Keys and values that a decoder keeps from one step to the next.

Axes: B sentences, h heads, K hypotheses of a beam, S keys. Masks are boolean; True means: may be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class KeyValue:
    """What queries look at: key (B, h, S, d_k), value (B, h, S, d_v)."""

    key: Tensor
    value: Tensor

    def select(self, rows: Tensor) -> KeyValue:
        """The chosen rows; rows (B',) are indices into the first axis."""
        return KeyValue(self.key.index_select(0, rows), self.value.index_select(0, rows))

    def take(self, keys: Tensor) -> KeyValue:
        """Of each sentence the chosen keys and their values, in this order; keys (B, S') are indices into S."""
        sentences, heads, length, _ = self.key.shape
        first = torch.arange(sentences * heads, device=keys.device).view(sentences, heads, 1) * length
        rows = (first + keys[:, None]).flatten()  # whole rows are copied at once, which `gather` does not
        parts = (
            x.flatten(0, 2).index_select(0, rows).view(sentences, heads, -1, x.shape[3]) for x in (self.key, self.value)
        )
        return KeyValue(*parts)


class ActiveHypotheses:
    """Which of K places hold a hypothesis, where some of B sentences have fewer than K."""

    def __init__(self, active: Tensor) -> None:
        """active: (B, K), True = there is one."""
        self.shape, flat = active.shape, active.flatten()
        self.places = flat.nonzero()[:, 0]  # (N,), ascending
        self.rows_of_places = (flat.cumsum(0) - 1).clamp_min_(0)  # (B * K,), of each place the row that is put there

    def rows(self, x: Tensor) -> Tensor:
        """What is in the places that are taken: (B, K, n) -> (N, n)."""
        return x.flatten(0, 1).index_select(0, self.places)

    def scatter(self, x: Tensor) -> Tensor:
        """Rows in their places: (N, n) -> (B, K, n). In a free place there is a copy of some row."""
        return x.index_select(0, self.rows_of_places).view(*self.shape, -1)


# Dropping tokens copies those that stay. Room for 8 more of each hypothesis spreads that copy over 8 steps; where more
# than three quarters of the tokens stay (of the sentence with most that are alive), the steps that follow would be less
# than a quarter shorter, and none are dropped.
SPARE_TOKENS = 8
COMPACT_BELOW = 0.75


class BeamCache:
    """Keys and values of every token that any hypothesis of a beam has taken, and who may look at which.

    A hypothesis looks at its own ancestors only. So when hypotheses are chosen, nothing but a small mask is reordered;
    the keys and values, which are many, stay where they were written. When the room is used up, those that no active
    hypothesis goes back to are dropped, which are most: the hypotheses of a beam soon have their beginning in common.
    """

    def __init__(self, layers: int) -> None:
        self.layers: list[KeyValue | None] = [None] * layers  # (B, h, capacity, .), the first `length` slots are filled
        self.length = 0
        self.position = 0  # of the next token
        self.slots: Tensor | None = None  # (B, length), position of the token in each slot
        self.ancestors: Tensor | None = None  # (B, K, length), True = may be looked at

    def open(self, sentences: int, beams: int, device: torch.device, neighbourhood: int = 0) -> Tensor | None:
        """Makes room for the next token of K hypotheses; returns the mask (B, 1, K, length) of its attention.

        True = may be looked at: the hypothesis's own tokens so far and the new one (within r/2 positions, if r > 0).
        None if every slot may be looked at.
        """
        first = self.layers[0] if self.layers else None
        if first is not None and self.length and self.length + beams > first.key.shape[2]:
            self._compact(SPARE_TOKENS * beams)
        own = torch.eye(beams, dtype=torch.bool, device=device).expand(sentences, -1, -1)
        self.ancestors = own if self.ancestors is None else torch.cat((self.ancestors, own), 2)
        slots = torch.full((sentences, beams), self.position, device=device)
        self.slots = slots if self.slots is None else torch.cat((self.slots, slots), 1)
        self.position += 1
        self.length += beams
        if neighbourhood:
            near = self.slots >= self.position - 1 - neighbourhood // 2
            return (self.ancestors & near[:, None])[:, None]
        return None if beams == 1 and self.length == self.position else self.ancestors[:, None]

    def _compact(self, room: int) -> None:
        """Drops the tokens that no active hypothesis goes back to, if they are many, and makes room for `room` more."""
        assert self.ancestors is not None and self.slots is not None, "a token has been read"
        alive = self.ancestors.any(1)  # (B, length)
        most = int(alive.sum(1).max())
        if most > COMPACT_BELOW * self.length:
            return
        # A sentence with fewer fills up with dropped ones, which stay hidden.
        order = alive.byte().sort(dim=1, descending=True, stable=True).indices[:, :most]
        self.slots = self.slots.gather(1, order)
        self.ancestors = self.ancestors.gather(2, order[:, None].expand(-1, self.ancestors.shape[1], -1))
        keys = torch.cat((order, order.new_zeros(len(order), room)), 1)  # the free room may hold anything
        self.layers = [layer and layer.take(keys) for layer in self.layers]
        self.length = most

    def write(self, layer: int, key: Tensor, value: Tensor) -> KeyValue:
        """Adds the new token's key and value (B, h, K, .) of one layer; returns all there are (B, h, length, .)."""
        entry, beams = self.layers[layer], key.shape[2]
        if entry is None or entry.key.shape[2] < self.length:
            capacity = max(32, 2 * self.length)
            larger = KeyValue(*(x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in (key, value)))
            if entry is not None:
                before = self.length - beams
                larger.key[:, :, :before] = entry.key[:, :, :before]
                larger.value[:, :, :before] = entry.value[:, :, :before]
            entry = self.layers[layer] = larger
        entry.key.narrow(2, self.length - beams, beams).copy_(key)
        entry.value.narrow(2, self.length - beams, beams).copy_(value)
        return KeyValue(entry.key.narrow(2, 0, self.length), entry.value.narrow(2, 0, self.length))

    def fork(self, positions: int) -> BeamCache:
        """A cache of its own with the first `positions` tokens of a single hypothesis; what it holds is not copied.

        Raises `ValueError` if there is more than one hypothesis, or it has fewer tokens.
        """
        if self.length != self.position or not 0 <= positions <= self.length:
            raise ValueError(
                f"Only a single path can be forked, at one of its {self.position} tokens; got {positions}."
            )
        twin = BeamCache(len(self.layers))
        # Without spare room, so the next token makes a new tensor and leaves this cache's as it is.
        twin.layers = [
            entry and KeyValue(entry.key[:, :, :positions], entry.value[:, :, :positions]) for entry in self.layers
        ]
        twin.length = twin.position = positions
        twin.slots = None if self.slots is None else self.slots[:, :positions]
        twin.ancestors = None if self.ancestors is None else self.ancestors[..., :positions]
        return twin

    def key_value(self, layer: int) -> KeyValue:
        """What one layer keeps, with the room that is still free. Raises `ValueError` if no token has been read."""
        entry = self.layers[layer]
        if entry is None:
            raise ValueError("This cache holds no token yet.")
        return entry

    def choose(self, parents: Tensor) -> None:
        """Hypothesis k of sentence b goes on from hypothesis parents[b, k]; parents (B, K')."""
        assert self.ancestors is not None, "no token has been read"
        self.ancestors = self.ancestors.gather(1, parents[..., None].expand(-1, -1, self.length))

    def keep(self, sentences: Tensor) -> None:
        """Forgets all sentences but these; sentences (B',) are indices into the first axis."""
        assert self.ancestors is not None and self.slots is not None, "no token has been read"
        self.layers = [layer and layer.select(sentences) for layer in self.layers]
        self.ancestors = self.ancestors.index_select(0, sentences)
        self.slots = self.slots.index_select(0, sentences)
