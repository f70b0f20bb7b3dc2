"""Word pairs out of parallel text.

    python -m lab.translator.lexicon --data *.tsv.gz --list ding.en-de.tsv.gz --source en --target de fr --out OUT

A word list such as Ding has rare senses beside common ones, and text says which is which: two words belong together as
far as they occur in the same sentence pairs (the coefficient of Dice 1945, as Smadja et al. 1996 use it). Of the
languages that a `--list` has, its pairs are kept whose words do so; of the others, the words that choose each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from training.arguments import CommandLine, a_folder_to_write, an_existing_file
from training.command import one_sentence
from transformer.data import open_table, read_parallel, write_table

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
ELISION = re.compile(r"\b(?:[cdjlmnst]|qu)['’]", re.IGNORECASE)
# Chosen by looking at 40 pairs at a time: below, one pair in ten was wrong.
MIN_LIST, MIN_MUTUAL = 0.05, 0.25
BESIDE_THE_BEST = 0.6  # a second translation needs this much of the first one's coefficient
MIN_TOGETHER = 3, 5  # sentence pairs, with a list and without
COMMON = 20_000  # words in more pairs are articles and the like, which go with everything
LONGEST = 22  # words; the longer a sentence, the less two words in it have to do with each other
PHRASE = 2, 8  # words of a phrase that is kept whole
COMMON_ENOUGH = 20  # pairs that each word of such a phrase occurs in


@dataclass
class Counts:
    """In how many sentence pairs words occur, and two words together."""

    source: Counter = field(default_factory=Counter)
    target: Counter = field(default_factory=Counter)
    together: Counter = field(default_factory=Counter)

    def dice(self, source: str, target: str) -> float:
        """2 * pairs with both / (pairs with one + pairs with the other), in [0, 1]."""
        return 2 * self.together[source, target] / max(1, self.source[source] + self.target[target])


def words_of(text: str) -> set[str]:
    """The words of a sentence in small letters, without elided articles."""
    return {word.lower() for word in WORD.findall(ELISION.sub(" ", text))}


def head(text: str) -> str:
    """An entry as it is looked for in text: small, English verbs without "to"."""
    return text.lower().removeprefix("to ")


def count(pairs: Iterable[tuple[str, str]], only: set[tuple[str, str]] | None) -> Counts:
    """Counts of sentence pairs.

    pairs: (source, target).
    only: the word pairs to count together, from `head`; None = all of sentences of up to LONGEST words.
    """
    partners: dict[str, set[str]] = {}
    for source, target in only or ():
        partners.setdefault(source, set()).add(target)
    counts = Counts()
    texts = []
    for source, target in pairs:
        left, right = words_of(source), words_of(target)
        if only is None and len(source.split()) > LONGEST:
            continue
        counts.source.update(left)
        counts.target.update(right)
        if only is None:
            texts.append((left, right))
        for word in left & partners.keys():
            counts.together.update((word, other) for other in partners[word] & right)
    least = MIN_TOGETHER[1]
    for left, right in texts:  # only now is it known which words are neither rare nor everywhere
        near = [word for word in right if least <= counts.target[word] < COMMON]
        counts.together.update(
            (word, other) for word in left if least <= counts.source[word] < COMMON for other in near
        )
    return counts


def of_list(entries: Sequence[tuple[str, str]], counts: Counts) -> list[tuple[str, str]]:
    """The entries of single words that text confirms, at most two translations of one word."""
    translations: dict[str, list[tuple[float, str, str]]] = {}
    for source, target in entries:
        if counts.together[key := (head(source), target.lower())] >= MIN_TOGETHER[0]:
            translations.setdefault(key[0], []).append((counts.dice(*key), source, target))
    result = []
    for rows in translations.values():
        rows.sort(reverse=True)
        least = max(MIN_LIST, BESIDE_THE_BEST * rows[0][0])
        result += [(source, target) for dice, source, target in rows[:2] if dice >= least]
    return result


def mutual(counts: Counts) -> list[tuple[str, str]]:
    """Words that are each other's best partner, MIN_MUTUAL or more, and not the same; in alphabetical order."""
    best: tuple[dict[str, tuple[float, str]], dict[str, tuple[float, str]]] = {}, {}
    for (source, target), number in counts.together.items():
        if number >= MIN_TOGETHER[1]:
            dice = counts.dice(source, target)
            best[0][source] = max(best[0].get(source, (0.0, "")), (dice, target))
            best[1][target] = max(best[1].get(target, (0.0, "")), (dice, source))
    return sorted(  # the order in which sets were read is another one in each process
        (source, target)
        for source, (dice, target) in best[0].items()
        if dice >= MIN_MUTUAL and best[1][target][1] == source != target
    )


def phrases(entries: Sequence[tuple[str, str]], counts: Counts) -> list[tuple[str, str]]:
    """The entries of several words, all of which are common in text."""

    def common(text: str, side: Counter) -> bool:
        return all(side[word] >= COMMON_ENOUGH for word in words_of(text))

    return [
        (source, target)
        for source, target in entries
        if PHRASE[0] <= len(head(source).split()) <= PHRASE[1]
        and common(source, counts.source)
        and common(target, counts.target)
    ]


def columns(path: Path) -> set[str]:
    """The names of a table's columns."""
    with open_table(path) as rows:
        return set(rows.fieldnames or ())


def tables(
    pairs: Iterable[tuple[str, str]], entries: Sequence[tuple[str, str]] | None
) -> dict[str, list[tuple[str, str]]]:
    """Word pairs as "lexicon", and of a word list its phrases as "dingphrases".

    pairs: (source, target) sentences.
    entries: of the word list; None = without one.
    """
    if entries is None:
        return {"lexicon": mutual(count(pairs, None))}
    single = [pair for pair in entries if len(head(pair[0]).split()) == len(pair[1].split()) == 1]
    counts = count(pairs, {(head(source), target.lower()) for source, target in single})
    return {"lexicon": of_list(single, counts), "dingphrases": phrases(entries, counts)}


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints how many pairs were written where."""
    parser = CommandLine(
        prog="python -m lab.translator.lexicon",
        description="Write word pairs that parallel text confirms: lexicon.SOURCE-TARGET.tsv.gz, and with a word list "
        "the phrases of it: dingphrases.SOURCE-TARGET.tsv.gz.",
    )
    parser.add_argument("--data", type=an_existing_file, required=True, nargs="+", help="tables of sentence pairs")
    parser.add_argument(
        "--list",
        type=an_existing_file,
        default=None,
        help="a table of words and phrases; it is no text, even in --data",
    )
    parser.add_argument("--source", required=True, help="column of the source")
    parser.add_argument("--target", required=True, nargs="+", help="columns of the targets")
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder to write into")
    options = parser.parse_args(argv)
    text = [path for path in options.data if options.list is None or not path.samefile(options.list)]
    lexicons = {}
    for target in options.target:
        in_list = options.list is not None and target in columns(options.list)
        own = [path for path in text if {options.source, target} <= columns(path)]
        if not own:
            raise ValueError(f"no table of --data has the columns {options.source!r} and {target!r}.")
        entries = read_parallel(options.list, options.source, target) if in_list else None
        pairs = (pair for path in own for pair in read_parallel(path, options.source, target))
        lexicons[target] = tables(pairs, entries)
    options.out.mkdir(parents=True, exist_ok=True)
    for target, parts in lexicons.items():
        for name, rows in parts.items():
            file = options.out / f"{name}.{options.source}-{target}.tsv.gz"
            write_table(file, (options.source, target), rows)
            print(f"{len(rows)} pairs in {file}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
