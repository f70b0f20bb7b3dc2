"""Parallel text from TSV and CSV files, and batches of about equally long sentences."""

from __future__ import annotations

import csv
import gzip
import random
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from training.files import write_atomic
from transformer.attention import causal_mask, key_mask
from transformer.marian import MarianTokenizer
from transformer.tokenizer import BOS, EOS, PAD, Tokenizer, normalise

T = TypeVar("T")
SUFFIXES = (".tsv", ".tsv.gz", ".csv", ".csv.gz")
# Tokens whose time one more part of a batch costs: its hundreds of calls, and sums of gradients.
PART = {"cpu": 128, "cuda": 20000}


@contextmanager
def open_table(path: str | Path) -> Iterator[csv.DictReader]:
    """The rows of a .tsv or .csv file, gzipped or not. TSV is read without quoting, as corpora are written; CSV with
    the usual quotation marks. Raises `FileNotFoundError`, or `ValueError` with file and line for what is no table.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path.name} has none of the endings {', '.join(SUFFIXES)}.")
    tabs = ".tsv" in path.suffixes[-2:]
    open_text = gzip.open if path.suffix == ".gz" else open
    options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"delimiter": ","}
    line = 0
    try:
        with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, **options)
            if not rows.fieldnames:
                raise ValueError(f"{path.name}, line 1: the file is empty; the first line has to name the columns.")
            try:
                yield rows
            finally:
                line = rows.line_num
    except (UnicodeDecodeError, zlib.error, gzip.BadGzipFile, EOFError, csv.Error) as error:
        raise ValueError(f"{path.name}, line {line + 1}: cannot be read as a UTF-8 table ({error}).") from None


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes a gzipped table that `read_parallel` reads, whole or not at all: the columns' names, then a line a row."""
    lines = ["\t".join(cells) + "\n" for cells in (columns, *rows)]
    write_atomic(path, gzip.compress("".join(lines).encode()))


def read_parallel(path: str | Path, source: str, target: str) -> list[tuple[str, str]]:
    """Normalised (source, target) pairs from two named columns of a table that `open_table` reads.

    source, target: a column's name, or several joined by "+", whose texts are joined by a blank.
    Rows with an empty side are left out.
    Raises `FileNotFoundError`, or `ValueError` naming what is wrong with the file.
    """
    path = Path(path)
    pairs = []
    with open_table(path) as rows:
        names = list(rows.fieldnames or ())
        sides = [[side] if side in names else side.split("+") for side in (source, target)]
        for column in sides[0] + sides[1]:
            if column not in names:
                raise ValueError(
                    f"{path.name}, line 1: there is no column {column!r}; the columns are {', '.join(names)}."
                )
        for row in rows:
            first, second = (normalise(" ".join(row[column] or "" for column in side)) for side in sides)
            if first and second:
                pairs.append((first, second))
    if not pairs:
        raise ValueError(f"{path.name} holds no pair with text in both {source!r} and {target!r}.")
    return pairs


def find_split(data: str | Path, split: str, suffixes: Sequence[str] = SUFFIXES) -> Path | None:
    """The file of a split ("train", "val") in a folder, or None. `FileNotFoundError` if there is no such folder."""
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    return next((folder / f"{split}{suffix}" for suffix in suffixes if (folder / f"{split}{suffix}").is_file()), None)


def read_splits(
    data: str | Path,
    read: Callable[[Path], list[T]],
    one: str,
    names: tuple[str, str],
    suffixes: Sequence[str],
    every: int,
) -> tuple[list[T], list[T]]:
    """What is learned and what is held out for validation, each as `read` reads it from its file.

    data: a folder with a file of each of the two `names`, or a single file. Without the second file every so many-th
        (at least one) is held out.
    one: what is read, such as "pair".

    Raises `FileNotFoundError`, or `ValueError` for a single one.
    """
    path = Path(data)
    train = path if path.is_file() else find_split(path, names[0], suffixes)
    held_out = None if path.is_file() else find_split(path, names[1], suffixes)
    if train is None:
        *most, last = (names[0] + suffix for suffix in suffixes)
        raise FileNotFoundError(f"{path} holds no {', '.join(most)} or {last}.")
    items = read(train)
    if held_out is not None:
        return items, read(held_out)
    if len(items) < 2:
        raise ValueError(f"{train.name} holds one {one} only; training needs at least two.")
    every = min(every, len(items))
    return [item for number, item in enumerate(items) if number % every], items[::every]


@dataclass
class Batch:
    """Sentences side by side. The target's shift and all masks are made here, once, by `collate`."""

    src: Tensor  # (B, S) ids, each row ends with eos, then padding
    tgt: Tensor  # (B, T) ids, what the decoder reads: bos, then the target
    labels: Tensor  # (N,) ids, what it has to say at the N real positions: the target, then eos
    positions: Tensor  # (N,) indices of those positions in the flattened (B * T)
    src_mask: Tensor  # (B, 1, 1, S), True = may be looked at: no padding
    tgt_mask: Tensor  # (1, 1, T, T), True = may be looked at: itself and what is before; padding comes last, unseen
    dropout: float | None = None  # P_drop while this batch is learned; None = the model's own
    # (B, T, S): how much a head is to look where, by `transformer.align`; None = as it likes
    guide: Tensor | None = None
    # The batch's parts, where they were made before it went to a GPU, which would wait for them
    in_parts: tuple[Batch, ...] = ()

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return type(self)(**{**vars(self), **tensors, "in_parts": tuple(part.to(device) for part in self.in_parts)})

    def parts(self, part: int = PART["cpu"]) -> list[Batch]:
        """The same sentences in parts whose sources are alike in length; itself where that saves nothing.

        Neighbours in a batch are alike as their texts stand. A few that are written otherwise when they are drawn (with
        slips, or cut into smaller pieces) would pad all the others to twice their length.

        part: tokens that could be computed in the time that one more part takes.
        """
        if self.in_parts:
            return list(self.in_parts)
        groups = alike(self.src_mask[:, 0, 0].sum(-1).tolist(), part)
        return [self] if len(groups) == 1 else [self.rows(torch.tensor(g, device=self.src.device)) for g in groups]

    def rows(self, indices: Tensor) -> Batch:
        """The batch of the sentences with these indices (B',), padded to the longest of them: S' <= S, T' <= T."""
        labels = self.labels.new_full((self.tgt.numel(),), -1)
        labels[self.positions] = self.labels
        labels = labels.view_as(self.tgt)[indices]
        width, height = int(self.src_mask[indices].sum(-1).max()), int((labels >= 0).sum(-1).max())
        labels = labels[:, :height].flatten()
        positions = (labels >= 0).nonzero()[:, 0]
        return Batch(
            self.src[indices, :width],
            self.tgt[indices, :height],
            labels[positions],
            positions,
            self.src_mask[indices, ..., :width],
            self.tgt_mask[..., :height, :height],
            self.dropout,
            None if self.guide is None else self.guide[indices, :height, :width],
        )


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Ids of different lengths -> (B, longest) int64, padded at the end."""
    longest = max(len(row) for row in rows)
    return torch.tensor([list(row) + [pad] * (longest - len(row)) for row in rows], dtype=torch.long)


def collate(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    neighbourhood: int = 0,
    pad: int = PAD,
    bos: int = BOS,
    eos: int = EOS,
) -> Batch:
    """(source ids, target ids), both without special tokens -> `Batch`; foreign models have their own pad, bos, eos."""
    src = pad_rows([[*source, eos] for source, _ in pairs], pad)
    tgt = pad_rows([[bos, *target] for _, target in pairs], pad)
    labels = pad_rows([[*target, eos] for _, target in pairs], -1).flatten()
    positions = (labels >= 0).nonzero()[:, 0]
    masks = key_mask(src, pad), causal_mask(tgt.shape[1], neighbourhood=neighbourhood)
    return Batch(src, tgt, labels[positions], positions, *masks)


def alike(lengths: Sequence[int], part: int = PART["cpu"]) -> list[list[int]]:
    """Indices of sentences in parts of about equal length, so that padding and parts together cost least.

    lengths: tokens of each.
    part: tokens that could be computed in the time that one more part takes.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    ends = [n for n in range(1, len(order)) if lengths[order[n]] > lengths[order[n - 1]]] + [len(order)]
    # end of the sentences that are dealt with -> their least cost, and where their last part begins
    best: dict[int, tuple[int, int]] = {0: (0, 0)}
    for end in ends:
        longest = lengths[order[end - 1]]
        best[end] = min((cost + (end - start) * longest + part, start) for start, (cost, _) in best.items())
    groups, end = [], len(order)
    while end:
        start = best[end][1]
        groups.append(order[start:end])
        end = start
    return groups[::-1]


def batch_indices(order: Sequence[int], lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """`order` in pieces of at most `tokens` tokens a side, padding included.

    order: indices of sentence pairs, neighbours in length beside each other.
    lengths: tokens of the longer side of each, without bos or eos.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for index, length in zip(order, lengths):
        longest_now = max(longest, length + 1)
        if batch and longest_now * (len(batch) + 1) > tokens:
            batches.append(batch)
            batch, longest_now = [], length + 1
        batch.append(index)
        longest = longest_now
    batches.append(batch)
    return batches


class ParallelData:
    """Encoded pairs, dealt out in batches of about equal size whose order is a function of (seed, epoch)."""

    def __init__(self, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], max_length: int | None = None) -> None:
        """
        pairs: ids of each source, prefix included, and of its target.
        max_length: longest side in tokens with eos; longer pairs are left out.
        Raises `ValueError` if nothing is left.
        """
        pairs = list(pairs)
        self.pairs = [pair for pair in pairs if max_length is None or max(map(len, pair)) < max_length]
        if pairs and not self.pairs:
            raise ValueError(f"Every pair is longer than {max_length} tokens.")

    @classmethod
    def encode(
        cls,
        texts: Iterable[tuple[str, str]],
        tokenizer: Tokenizer | MarianTokenizer,
        max_length: int,
        prefix: Sequence[int] = (),
    ) -> ParallelData:
        """Pairs of normalised text as ids, all shorter than max_length tokens; prefix: ids before each source."""
        # Arrays, not lists: a million pairs of lists would take gigabytes.
        ids = (
            (array("i", [*prefix, *tokenizer.encode(source)]), array("i", tokenizer.encode(target)))
            for source, target in texts
        )
        return cls(ids, max_length)

    @classmethod
    def join(cls, parts: Sequence[ParallelData]) -> ParallelData:
        """The pairs of several sets as one, for a model that translates in several directions."""
        return cls(pair for part in parts for pair in part.pairs)

    def batches(self, tokens: int, seed: int, epoch: int) -> list[list[int]]:
        """Indices of each batch of one epoch; a batch has at most `tokens` tokens a side, padding included.

        Neighbours in length share a batch, so little padding is computed; which of the equally long ones meet, and the
        order of the batches, change with the epoch.
        """
        generator = random.Random(f"{seed}/{epoch}")
        order = list(range(len(self.pairs)))
        generator.shuffle(order)
        order.sort(key=lambda i: (len(self.pairs[i][1]), len(self.pairs[i][0])))  # stable: ties stay shuffled
        batches = batch_indices(order, [max(map(len, self.pairs[i])) for i in order], tokens)
        generator.shuffle(batches)
        return batches

    def collate(self, indices: Sequence[int], neighbourhood: int = 0) -> Batch:
        """The batch of these pairs."""
        return collate([self.pairs[i] for i in indices], neighbourhood)
