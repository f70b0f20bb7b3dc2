"""Many sources of parallel text as one: how often each is drawn follows its worth, not its size.

A folder that `transformer.prepare` wrote says in the column `origin` where each pair came from. By size alone manuals
and parliament would drown news and conversation. Here a source with n pairs has a share proportional to worth * n^(1/T)
(the temperature T of Devlin et al. 2018 and Arivazhagan et al. 2019), and every pair of it the same chance.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np
import sentencepiece

from training.files import write_atomic
from transformer.data import Batch, batch_indices, collate
from transformer.marian import MarianTokenizer
from transformer.prepare import ORIGIN
from transformer.tokenizer import STAND_INS, Tokenizer

# Sources whose mean chooses the weights: text of every kind. A mixture's loss falls fastest on narrow text, such as
# manuals.
GENERAL = ("wmt_news", "news_commentary", "covost", "xnli", "xquad", "mlqe_pe", "firefox_teacher", "tatoeba")
SMOOTHING = 0.2  # alpha of `Sampler` (Kudo 2018, section 3.3): at 0 every segmentation is as likely
SEGMENTATIONS = 8  # l there: the best segmentations of a word, of which one is drawn
GROWTH = 1.15  # longest that noise may make a sentence, in its own lengths
Change = Callable[[str, str, random.Random], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One pair of the table: its two sides by language, and its source."""

    origin: str  # for example "wmt_news.en-de"
    languages: tuple[str, str]
    texts: tuple[str, str]


def read_rows(path: Path, languages: Sequence[str]) -> list[Row]:
    """The rows of a gzipped table of `transformer.prepare`; its text is normalised already.

    path: the table, with the columns of `languages` and `origin`.
    languages: the first is on every row, and each row has one of the others.
    Raises `ValueError` where a column is missing.
    """
    rows = []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        table = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = next(table, [])
        if missing := [name for name in (*languages, ORIGIN) if name not in names]:
            raise ValueError(f"{path.name} has no column {missing[0]!r}; make it with python -m transformer.prepare.")
        first, origin = names.index(languages[0]), names.index(ORIGIN)
        others = [(language, names.index(language)) for language in languages[1:]]
        for cells in table:
            for language, column in others:
                if cells[column]:
                    rows.append(Row(cells[origin], (languages[0], language), (cells[first], cells[column])))
    return rows


def parse_factors(text: str) -> dict[str, float]:
    """The factor of each source: "news=3 manuals=0.2" -> {"news": 3.0, "manuals": 0.2}.

    Raises `ValueError` for anything else, or a negative one.
    """
    factors = {}
    for part in text.split():
        name, sign, value = part.partition("=")
        try:
            factors[name] = float(value)
        except ValueError:
            sign = ""
        if not (name and sign and 0 <= factors[name] < float("inf")):
            raise ValueError(f"mixture is written NAME=WORTH, with numbers of 0 or more; got {part!r}.")
    return factors


def factor_of(origin: str, factors: Mapping[str, float]) -> float:
    """The factor of a source: that of the longest name that its own begins with, 1 without any."""
    return max(((len(name), value) for name, value in factors.items() if origin.startswith(name)), default=(0, 1.0))[1]


def shares(sizes: Mapping[str, int], factors: Mapping[str, float], temperature: float) -> dict[str, float]:
    """Share of each source in what is drawn; they sum to 1.

    sizes: pairs of each source.
    factors: factors by the beginning of a source's name; 1 for the others.
    temperature: T; 1 leaves the sizes' proportions as they are, and the higher it is the more equal they become.
    """
    parts = {name: factor_of(name, factors) * n ** (1 / temperature) for name, n in sizes.items()}
    total = sum(parts.values())
    if not total > 0:
        raise ValueError("no source of the mixture has a worth above 0.")
    return {name: part / total for name, part in parts.items()}


class Sampler:
    """Words cut into pieces as chance has it, not always the likeliest way.

    Subword regularisation (Kudo, ACL 2018, section 3): a segmentation x has the probability P(x)^alpha / sum, with P by
    the unigram model. No piece goes beyond a blank, so each word is drawn for itself. A word with a stand-in keeps it
    whole.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
        self.segmentations = lru_cache(100_000)(self._segmentations)

    def encode(self, text: str, draw: random.Random) -> list[int]:
        """Ids of a normalised sentence; `draw` is the source of chance."""
        ids: list[int] = []
        for word in text.split(" "):
            ways, shares = self.segmentations(word)
            ids += ways[0] if len(ways) == 1 else draw.choices(ways, shares)[0]
        return ids

    def _segmentations(self, word: str) -> tuple[list[list[int]], list[float]]:
        """The best segmentations of a word and the weight of each, 1 for the best."""
        if any(piece in word for piece in STAND_INS):
            return [self.tokenizer.encode(word)], [1.0]
        ways = self.pieces.nbest_encode(word, nbest_size=SEGMENTATIONS)
        scores = [sum(map(self.pieces.get_score, way)) for way in ways]
        return ways, [math.exp(SMOOTHING * (score - scores[0])) for score in scores]


class Mixture:
    """Pairs in several directions from many sources, encoded as they are drawn.

    Each epoch draws anew from every source, so a function of (seed, epoch) says which pairs come and in which batches.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        tokenizer: Tokenizer | MarianTokenizer,
        max_length: int,
        prefixes: Mapping[tuple[str, str], Sequence[int]],
        *,
        factors: Mapping[str, float] | None = None,
        temperature: float = 1.0,
        one_way: str = "",
        change: Change | None = None,
        sampled: float = 0.0,
        lengths: np.ndarray | None = None,
    ) -> None:
        """
        rows: the pairs.
        tokenizer: encodes them.
        max_length: longest side in tokens with eos; longer pairs are left out.
        prefixes: (source, target) language of each direction, and the ids before its sources.
        factors, temperature: as in `shares`; each direction has a mixture of its own. The factor of a direction
            ("en-fr") is its share beside the other directions.
        one_way: beginning of the names of sources that are learned only in the direction that their name ends with.
        change: (source, target, generator) -> the pair as it is learned this time.
        sampled: share of the batches whose pairs are cut into pieces by `Sampler`.
        lengths: (N, 2) pieces of both sides as from `token_lengths`; None = counted here.
        """
        self.rows, self.tokenizer, self.max_length, self.change = rows, tokenizer, max_length, change
        self.sampled = sampled
        if sampled:
            self.sampler = Sampler(cast(Tokenizer, tokenizer))
        self.directions = list(prefixes)
        self.prefixes = [list(prefix) for prefix in prefixes.values()]
        pieces = token_lengths(rows, tokenizer) if lengths is None else lengths
        self.row, self.direction, forward = self._items(one_way)
        sides = pieces[self.row].astype(np.int64)
        before = np.array([len(prefix) for prefix in self.prefixes], dtype=np.int64)[self.direction]
        self.lengths = np.stack([np.where(forward, sides[:, 0], sides[:, 1]) + before,
                                 np.where(forward, sides[:, 1], sides[:, 0])], 1)  # fmt: skip
        fits = self.lengths.max(1, initial=0) < max_length
        self.omissions = int((~fits).sum())
        self.row, self.direction, self.lengths = self.row[fits], self.direction[fits], self.lengths[fits]
        if not len(self.row):
            raise ValueError(f"the mixture has no pair of these directions with less than {max_length} tokens a side.")
        self.copies, self.share = self._copies(factors or {}, temperature)

    def _items(self, one_way: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row and direction of every item, and whether its source is the row's first text."""
        parts = []
        for number, pair in enumerate(self.directions):
            both, name = set(pair), f".{'-'.join(pair)}"
            ok: dict[tuple[str, tuple[str, str]], bool] = {}  # by source and languages, of which there are few
            for row in self.rows:
                if (key := (row.origin, row.languages)) not in ok:
                    free = not (one_way and row.origin.startswith(one_way)) or row.origin.endswith(name)
                    ok[key] = set(row.languages) == both and free
            indices = [index for index, row in enumerate(self.rows) if ok[row.origin, row.languages]]
            forward = [self.rows[index].languages[0] == pair[0] for index in indices]
            parts.append(
                (np.array(indices, dtype=np.int64), np.full(len(indices), number), np.array(forward, dtype=bool))
            )
        rows, directions, is_first = (np.concatenate(columns) for columns in zip(*parts))
        return rows, directions, is_first

    def _copies(self, factors: Mapping[str, float], temperature: float) -> tuple[np.ndarray, dict[str, float]]:
        """How often each item comes in an epoch on average, and the share of each source in a direction."""
        numbers = {name: i for i, name in enumerate(dict.fromkeys(row.origin for row in self.rows))}
        names, origin = list(numbers), np.array([numbers[row.origin] for row in self.rows])[self.row]
        copies, rates = np.zeros(len(self.row)), {}
        weight = np.array([factors.get("-".join(pair), 1.0) for pair in self.directions])
        if not weight.any():
            raise ValueError("no direction of the mixture has a worth above 0.")
        for number, pair in enumerate(self.directions):
            own = self.direction == number
            counts = np.bincount(origin[own], minlength=len(names))
            sizes = {name: int(count) for name, count in zip(names, counts) if count}
            if not sizes:
                continue
            part = shares(sizes, factors, temperature)
            rates.update({f"{name} {'-'.join(pair)}": value for name, value in part.items()})
            # An epoch has as many items as there are, and each direction its part of it.
            each = np.array([part.get(name, 0.0) / max(count, 1) for name, count in zip(names, counts)])
            copies[own] = each[origin[own]] * len(self.row) * weight[number] / weight.sum()
        return copies, rates

    def __len__(self) -> int:
        return len(self.row)

    def text(self, index: int) -> tuple[str, str]:
        """(source, target) of one item as it stands in the table."""
        row = self.rows[self.row[index]]
        first, second = row.texts
        return (first, second) if row.languages[0] == self.directions[self.direction[index]][0] else (second, first)

    def origin(self, index: int) -> str:
        """Name of an item's source."""
        return self.rows[self.row[index]].origin

    def draw(self, seed: int, epoch: int) -> np.ndarray:
        """Indices of the items of one epoch, in random order; a pair whose source is worth it comes several times."""
        generator = np.random.default_rng([seed, epoch])
        whole = np.floor(self.copies)
        times = whole + (generator.random(len(self.copies)) < self.copies - whole)
        order = np.repeat(np.arange(len(self.copies)), times.astype(np.int64))
        generator.shuffle(order)
        return order

    def batches(self, tokens: int, seed: int, epoch: int) -> list[list[int]]:
        """Indices of each batch of one epoch, as `ParallelData.batches` has them."""
        order = self.draw(seed, epoch)
        lengths = self.lengths[order]
        order = order[np.lexsort((lengths[:, 0], lengths[:, 1]))]  # stable: ties stay shuffled
        batches = batch_indices(order.tolist(), self.lengths[order].max(1).tolist(), tokens)
        random.Random(f"{seed}/{epoch}").shuffle(batches)
        return batches

    def ids(self, index: int, draw: random.Random | None = None, sampled: bool = False) -> tuple[list[int], list[int]]:
        """Source ids with their prefix, and target ids, of one item.

        index: of the item.
        draw: decides how `change` changes it; None = not at all. What would be much longer stays as it was: it would
            pad its whole batch.
        sampled: cut into pieces by `Sampler`.
        """
        source, target = pair = self.text(index)
        if draw is not None and self.change is not None:
            source, target = self.change(source, target, draw)
        prefix = self.prefixes[self.direction[index]]
        encode = self.tokenizer.encode
        if draw is not None and sampled:
            encode = partial(self.sampler.encode, draw=draw)
            room = self.max_length
        else:
            room = min(self.max_length, int(GROWTH * self.lengths[index].max()) + 2)
        ids = [*prefix, *encode(source)], encode(target)
        if max(map(len, ids)) < room and ids[0] and ids[1]:
            return ids
        return [*prefix, *self.tokenizer.encode(pair[0])], self.tokenizer.encode(pair[1])

    def collate(self, indices: Sequence[int], neighbourhood: int = 0, draw: random.Random | None = None) -> Batch:
        """The batch of these items; draw: decides how they are changed, None = they are not.

        All of a batch are cut into pieces by `Sampler`, or none, so that their lengths stay alike.
        """
        sampled = draw is not None and draw.random() < self.sampled
        return collate([self.ids(index, draw, sampled) for index in indices], neighbourhood)

    @property
    def pairs(self) -> Sequence[tuple[list[int], list[int]]]:
        """The encoded pairs of all items, made one by one as they are asked for."""
        return _Part(self, range(len(self)))


def spread(mixture: Mixture, count: int) -> dict[str, list[int]]:
    """Up to `count` items of each source and direction, spread evenly over them: "news.en-de de-en" -> indices."""
    places: dict[str, list[int]] = {}
    for index in range(len(mixture)):
        name = f"{mixture.origin(index)} {'-'.join(mixture.directions[mixture.direction[index]])}"
        places.setdefault(name, []).append(index)
    return {
        name: [indices[i * len(indices) // share] for i in range(share)]
        for name, indices in sorted(places.items())
        for share in [min(count, len(indices))]
    }


class _Part(Sequence):
    """Items of a mixture as ids."""

    def __init__(self, mixture: Mixture, indices: range) -> None:
        self.mixture, self.indices = mixture, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int | slice) -> tuple[list[int], list[int]] | list[tuple[list[int], list[int]]]:
        if isinstance(index, slice):
            return [self.mixture.ids(i) for i in self.indices[index]]
        return self.mixture.ids(self.indices[index])

    def __iter__(self) -> Iterator[tuple[list[int], list[int]]]:
        return (self.mixture.ids(i) for i in self.indices)


def token_lengths(
    rows: Sequence[Row], tokenizer: Tokenizer | MarianTokenizer, folder: Path | None = None
) -> np.ndarray:
    """Pieces of both sides of each row, (N, 2) int16.

    folder: of a file that holds them for next time, named after the vocabulary and the number of rows; counting a
    million pairs takes a minute.
    """
    file = None
    if folder is not None and isinstance(tokenizer, Tokenizer):
        key = hashlib.sha256(tokenizer.model + str(len(rows)).encode()).hexdigest()[:16]
        file = folder / f"lengths-{key}.npy"
    if file is not None and file.is_file():
        lengths = np.load(file, allow_pickle=False)
        if lengths.shape == (len(rows), 2):
            return lengths
    lengths = np.array([[len(tokenizer.encode(text)) for text in row.texts] for row in rows], dtype=np.int16).reshape(
        -1, 2
    )
    if file is not None:
        buffer = io.BytesIO()
        np.save(buffer, lengths)
        write_atomic(file, buffer.getvalue())
    return lengths
