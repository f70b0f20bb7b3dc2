"""A look at a table of sentence pairs before anything is trained on it: which columns, how long, which characters."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from transformer.data import SUFFIXES, open_table
from transformer.tokenizer import Tokenizer, normalise

MAX_ROWS = 20_000  # that are read
SAMPLE_PAIRS = 2_000  # whose word pieces are counted exactly: a vocabulary of so few is made in a second
LONGEST = 512  # word pieces of a sentence that `fit` goes up to by itself
SPECIAL_PIECES = 4  # pieces that are no text: pad, unknown, beginning, end
# Names that columns have, the surest first.
SOURCES = ("source", "src", "input", "question", "prompt", "query", "english", "en", "text", "instruction", "context")
TARGETS = ("target", "tgt", "response", "output", "answer", "reply", "completion", "translation", "german", "de",
           "french", "fr", "summary")  # fmt: skip


@dataclass(frozen=True)
class Survey:
    """What the first `MAX_ROWS` rows of a table hold in two columns.

    Attributes:
        pairs: (source, target), normalised, both with text.
        lengths: characters of the longer side of each pair, ascending.
        characters: how many different characters there are.
        whole: whether these are all rows of the table.
    """

    pairs: tuple[tuple[str, str], ...]
    lengths: tuple[int, ...]
    characters: int
    whole: bool

    @property
    def min_vocabulary(self) -> int:
        """Word pieces without which some character could not be written."""
        return self.characters + SPECIAL_PIECES

    def fit(self, fields: dict[str, Any]) -> dict[str, int]:
        """The recipe's fields that have to grow for this table: `vocab_size`, `max_length`, `tokens`.

        A sentence has at most one word piece more than characters, so with this `max_length` none is left out that has
        up to `LONGEST` pieces.
        """
        changes = {}
        if fields["vocab_size"] < 1.25 * self.min_vocabulary:
            changes["vocab_size"] = -(-3 * self.min_vocabulary // 200) * 100
        longest = min(max(self.lengths) + 2, max(LONGEST, fields["max_length"]))
        if fields["max_length"] < longest:
            changes["max_length"] = longest
        if fields["tokens"] < longest:
            changes["tokens"] = longest
        return changes

    def count_too_long(self, fields: dict[str, Any]) -> int:
        """How many pairs have a side that is too long for `max_length`; counted in pieces where the table is small.

        Raises ValueError where `vocab_size` cannot write every character. Of a large table it is a bound: no
        more than so many.
        """
        if fields["vocab_size"] < self.min_vocabulary:
            raise ValueError(
                f"These texts have {self.characters} different characters, so the vocabulary needs at least "
                f"{self.min_vocabulary} word pieces; it has {fields['vocab_size']}."
            )
        longer = len(self.lengths) - bisect.bisect_right(self.lengths, fields["max_length"] - 2)
        if not longer or len(self.pairs) > SAMPLE_PAIRS:
            return longer
        tokenizer = Tokenizer.train((text for pair in self.pairs for text in pair), fields["vocab_size"])
        return sum(any(len(tokenizer.encode(text)) >= fields["max_length"] for text in pair) for pair in self.pairs)

    def check(self, fields: dict[str, Any]) -> None:
        """Raises ValueError with one sentence where a training with these fields could not begin."""
        if len(self.pairs) < 2:
            raise ValueError("The table holds one pair only; training needs at least two.")
        if self.count_too_long(fields) == len(self.pairs) and (self.whole and len(self.pairs) <= SAMPLE_PAIRS):
            raise ValueError(
                f"Every pair is longer than {fields['max_length']} word pieces, so nothing would be left to learn "
                f"from; the longest text has {self.lengths[-1]} characters."
            )


def columns(path: str | Path) -> list[str]:
    """The names in a table's first line. Raises ValueError with one sentence when it is no table of two columns."""
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path.name} has none of the endings {', '.join(SUFFIXES)}.")
    with open_table(path) as rows:
        names = [name for name in rows.fieldnames or [] if name]
    if len(names) < 2:
        raise ValueError(f"{path.name}, line 1: a table needs a header with at least two columns, found {len(names)}.")
    return names


def guess_columns(path: str | Path, names: Sequence[str]) -> tuple[str, str]:
    """The columns that look like source and target: by their names, else the first two that hold words.

    names: at least two columns of the table at `path`.
    """
    by_name = {name.strip().lower(): name for name in reversed(names)}
    source = next((by_name[name] for name in SOURCES if name in by_name), None)
    target = next((by_name[name] for name in TARGETS if name in by_name), None)
    wordy = [name for name in names if name not in (source, target)]
    if source is None or target is None:
        with open_table(path) as rows:
            first = list(islice(rows, 50))
        texts = {name: [row[name] or "" for row in first] for name in wordy}
        # Numbers and identifiers are no sentences.
        with_words = [name for name in wordy if any(any(c.isalpha() for c in text) for text in texts[name])]
        wordy = with_words + [name for name in wordy if name not in with_words]
    source = source or wordy.pop(0)
    return source, target or wordy.pop(0)


def survey(path: str | Path, source: str, target: str) -> Survey:
    """Reads up to `MAX_ROWS` rows. Raises ValueError for a table that cannot be read or holds no pair with text."""
    path, pairs, count = Path(path), [], 0
    with open_table(path) as rows:
        columns = rows.fieldnames or ()
        for name in (source, target):
            if name not in columns:
                raise ValueError(
                    f"{path.name}, line 1: there is no column {name!r}; the columns are {', '.join(columns)}."
                )
        for row in islice(rows, MAX_ROWS):
            count += 1
            pair = normalise(row[source] or ""), normalise(row[target] or "")
            if all(pair):
                pairs.append(pair)
        whole = count < MAX_ROWS or next(iter(rows), None) is None
    if not pairs:
        raise ValueError(f"{path.name} holds no pair with text in both {source!r} and {target!r}.")
    characters = {c for pair in pairs for text in pair for c in text.replace(" ", "\u2581")} | {"\u2581"}
    return Survey(tuple(pairs), tuple(sorted(max(map(len, pair)) for pair in pairs)), len(characters), whole)
