"""The lists of `assets/spelling`: the words of the phrasebook that are often typed without their accents or umlauts.

python -m lab.translator.spelling
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from training.assets import assets_dir
from training.command import one_sentence
from transformer.text.spelling import ANOTHER, ENGLISH, german_spellings, without_accents

RARE = 0.05  # share of a word's occurrences below which another with the same letters counts for nothing
PHRASEBOOK = Path(__file__).resolve().parents[1] / "phrasebook"


def count_words() -> dict[str, Counter[str]]:
    """How often each word stands in the phrasebook's whole sentences, by language."""
    counts: dict[str, Counter[str]] = {language: Counter() for language in ("en", "de", "fr")}
    for name in ("written.tsv", "rarer.tsv"):
        with open(PHRASEBOOK / name, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                for language, count in counts.items():
                    count.update(re.findall(r"[^\W\d_]+", row[language] or ""))
    return counts


def common_case(counts: Counter[str]) -> Counter[str]:
    """The same, each word in the capitals that it has most often."""
    forms: dict[str, Counter[str]] = {}
    for word, count in counts.items():
        forms.setdefault(word.lower(), Counter())[word] += count
    return Counter({form.most_common(1)[0][0]: form.total() for form in forms.values()})


def count_lines(words: Iterable[tuple[str, int]], forms: Callable[[str], set[str]], english: set[str]) -> list[str]:
    """The lines of a list: of words with how often each stands in a text, those that may be typed otherwise.

    forms: how a word may be typed. english: English words in small letters.
    """
    counts = dict(words)
    small = {word.lower(): count for word, count in counts.items()}
    spellings: dict[str, int] = {}  # how often the commonest word that is typed so stands there
    for word, count in counts.items():
        for one in forms(word):
            spellings[one.lower()] = max(count, spellings.get(one.lower(), 0))
    lines = []
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        others = {one.lower() for one in forms(word)} - {word.lower()}
        if others and all(counts[word] > RARE * spellings[one] for one in others):
            another = any(small.get(one, 0) > RARE * counts[word] for one in others)
            lines.append((ANOTHER if another else ENGLISH if others & english else "") + word)
    return lines


@one_sentence
def main() -> int:
    """Writes both lists."""
    counts = count_words()
    english = {word.lower() for word in counts["en"]}
    out = assets_dir() / "spelling"
    out.mkdir(exist_ok=True)
    for language, forms in (("de", german_spellings), ("fr", lambda word: {without_accents(word)})):
        lines = count_lines(common_case(counts[language]).items(), forms, english)
        (out / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
