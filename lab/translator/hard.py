"""What a translator still gets wrong of the common words and the most basic short texts that it has learned.

Most of what is learned by heart is known after a few times, and going through all of it again costs general text as
much as it gains. So only what is wrong, letter for letter, is written, by direction: `hardwords.en-de.tsv.gz` and the
like, which a mixture learns in that direction alone. `lab.translator.phrasebook --model` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transformer.translator import Translator

LANGUAGES = ("en", "de", "fr")
KINDS = ("basics", "words")


def bare(text: str) -> str:
    """A text as it is compared: whatever its capitals, apostrophes and last marks."""
    return text.lower().rstrip(".! ").replace("’", "'")


def wrong(translator: Translator, source: str, target: str, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs whose source the translator gives another text than any that it has here."""
    references: dict[str, set[str]] = {}
    for text, answer in pairs:
        references.setdefault(bare(text), set()).add(bare(answer))
    texts = sorted({text for text, _ in pairs}, key=lambda text: (len(text), text))
    answers = translator.translate(texts, source, target, beam=1)
    answer_of = {text: bare(answer.text) for text, answer in zip(texts, answers, strict=True)}
    return [pair for pair in dict.fromkeys(pairs) if answer_of[pair[0]] not in references[bare(pair[0])]]


def hard_tables(
    translator: Translator, tables: Mapping[str, Sequence[Sequence[str]]]
) -> dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Columns and rows of each table of what is wrong, by its name such as "hardwords.en-de"; English comes first.

    tables: rows in English, German and French by kind, those of `KINDS` at least.
    """
    result: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {}
    for source, target in translator.pairs:
        first, second = LANGUAGES.index(source), LANGUAGES.index(target)
        for kind in KINDS:
            rows = wrong(translator, source, target, [(row[first], row[second]) for row in tables[kind]])
            turn = -1 if target == "en" else 1
            result[f"hard{kind}.{source}-{target}"] = ((source, target)[::turn], [row[::turn] for row in rows])
    return result
