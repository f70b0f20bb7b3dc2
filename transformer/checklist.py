"""What visitors meet first: texts of the kinds that translators get wrong, each with a rule of right and wrong.

    python -m transformer.evaluate --checklist --model everyday

`assets/checklist` has a table for each kind: pair of languages, half (`choosing` serves to choose weights, `card` is
for the card alone), source and rule. The sign ⏎ stands for a line break. A rule is conditions joined by " & ", and each
of these alternatives joined by " / ", in which * stands for any letters:

    word / word   one of them stands in the translation, as whole words; capitals do not matter
    !word / word  none of them does
    @text         this stands there exactly as often as in the source, letter for letter
    = one / other the whole translation is one of these; capitals, articles and the mark at the end do not matter
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from training.assets import assets_dir
from transformer.options import DEFAULTS, SearchOptions
from transformer.translator import Translator

HALVES = ("choosing", "card")
FILE = "checklist.json"  # beside the weights
BREAK = "⏎"
EXAMPLES = 3  # wrong translations of a kind and pair that are stored
_ARTICLE = re.compile(
    r"^(?:(?:the|an?|to|der|die|das|den|dem|ein|eine|einen|zu|le|la|les|une?|des|du|de la|de)\s+|(?:de )?l'|d')"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One text of a kind, and the rule of its translation."""

    kind: str
    pair: str  # such as en-de
    half: str  # of HALVES
    source: str
    rule: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The translation of an item, and whether its rule holds."""

    item: Item
    output: str
    right: bool


def read_items(folder: Path | None = None) -> list[Item]:
    """The items of all tables in `folder`, by default those in `assets`. Raises `ValueError` for a damaged table."""
    items = []
    for path in sorted((folder or assets_dir() / "checklist").glob("*.tsv")):
        with open(path, encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
                if number == 1:
                    continue
                if len(row) != 4 or row[1] not in HALVES or not all(row):
                    halves = " or ".join(HALVES)
                    raise ValueError(f"{path.name}, line {number}: a row has pair, half ({halves}), source and rule.")
                pair, half, source, rule = row
                items.append(Item(path.stem, pair, half, source.replace(BREAK, "\n"), rule.replace(BREAK, "\n")))
    return items


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """What finds an alternative of a rule as whole words."""
    left = r"(?<!\w)" if words[0].isalnum() else ""
    right = r"(?!\w)" if words[-1].isalnum() else ""
    return re.compile(left + re.escape(words).replace(r"\*", r"\w*") + right, re.IGNORECASE)


def _plain(text: str) -> str:
    """With straight apostrophes and one kind of blank; line breaks stay."""
    return re.sub(r"[^\S\n]+", " ", text.replace("’", "'")).strip(" ")


def _bare(text: str) -> str:
    """A word or phrase without what does not matter to it: capitals, articles, the mark at its end."""
    return _ARTICLE.sub("", _plain(text).lower().strip(" .!?…"))


def holds(rule: str, source: str, output: str) -> bool:
    """Whether a translation of `source` fulfils a rule (see the module)."""
    text = _plain(output)
    for condition in rule.split(" & "):
        kind, rest = condition[0], condition[1:]
        if kind == "@":
            right = output.count(rest) == source.count(rest)
        elif kind == "=":
            right = _bare(text) in {_bare(one) for one in rest.split(" / ")}
        elif kind == "!":
            right = not any(_pattern(one).search(text) for one in rest.split(" / "))
        else:
            right = any(_pattern(one).search(text) for one in condition.split(" / "))
        if not right:
            return False
    return True


def answers(translator: Translator, items: Sequence[Item], options: SearchOptions = DEFAULTS) -> list[Answer]:
    """The translations of the items in the directions that the model has, in the items' order within each."""
    results = []
    for source, target in translator.pairs:
        own = [item for item in items if item.pair == f"{source}-{target}"]
        if own:
            outputs = translator.translate([item.source for item in own], source, target, options)
            results += [Answer(i, o.text, holds(i.rule, i.source, o.text)) for i, o in zip(own, outputs)]
    return results


def summary(results: Sequence[Answer]) -> list[dict]:
    """For each kind, half and pair: right, of, and some of the wrong translations as (source, output)."""
    groups: dict[tuple[str, str, str], list[Answer]] = defaultdict(list)
    for answer in results:
        groups[answer.item.kind, answer.item.half, answer.item.pair].append(answer)
    return [
        {
            "kind": kind,
            "half": half,
            "pair": pair,
            "right": sum(answer.right for answer in group),
            "of": len(group),
            "wrong": [[answer.item.source, answer.output] for answer in group if not answer.right][:EXAMPLES],
        }
        for (kind, half, pair), group in groups.items()
    ]


def table(rows: Sequence[dict], half: str) -> str:
    """The counts of one half as text: a line for each kind, a column for each pair, and the sum of both."""
    rows = [row for row in rows if row["half"] == half]
    pairs = list(dict.fromkeys(row["pair"] for row in rows))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))

    def cell(some: Sequence[dict]) -> str:
        right, of = (sum(row[key] for row in some) for key in ("right", "of"))
        return f"{right}/{of}".rjust(10)

    def line(name: str, own: Sequence[dict]) -> str:
        cells = [cell([row for row in own if row["pair"] == pair]) for pair in pairs]
        share = sum(row["right"] for row in own) / max(1, sum(row["of"] for row in own))
        return f"{name:<16}" + "".join(cells) + cell(own) + f"{share:7.0%}"

    head = f"{half:<16}" + "".join(pair.rjust(10) for pair in pairs) + "all".rjust(10)
    return "\n".join(
        [head, *(line(kind, [row for row in rows if row["kind"] == kind]) for kind in kinds), line("all", rows)]
    )


def write(rows: Sequence[dict], path: Path) -> None:
    """Stores the summary as JSON, for the card and the page."""
    path.write_text(json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def load_summary(folder: Path) -> list[dict]:
    """The summary that lies beside the weights in `folder`; empty where their checklist was never counted."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def weak_kinds(rows: Sequence[dict], pair: str, least: float = 0.9) -> list[tuple[str, float, list[list[str]]]]:
    """The kinds of which the card's half has a smaller share right than `least`, the worst first.

    Each with its share, and (source, output) of what went wrong.
    """
    own = [(row["kind"], row["right"] / row["of"], row["wrong"]) for row in rows
           if row["half"] == "card" and row["pair"] == pair]  # fmt: skip
    return sorted((kind for kind in own if kind[1] < least), key=lambda kind: kind[1])
