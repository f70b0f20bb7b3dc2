"""What a translator still gets wrong of the common words and the most basic short texts that it has learned.

    python -m lab.translator.hard --model everyday --out OWN

Most of what is learned by heart is known after a few times, and going through all of it again costs general text as
much as it gains. So only what is wrong, letter for letter, is written, by direction: `hardwords.en-de.tsv.gz` and the
like, which a mixture learns in that direction alone (`--one-way hard`).
"""

from __future__ import annotations

from lab.translator.phrasebook import kinds
from training.arguments import CommandLine, a_folder_to_write
from training.command import one_sentence
from transformer.data import write_table
from transformer.translator import Translator

LANGUAGES = ("en", "de", "fr")
KINDS = ("basics", "words")


def bare(text: str) -> str:
    """A text as it is compared: whatever its capitals, apostrophes and last marks."""
    return text.lower().rstrip(".! ").replace("’", "'")


def wrong(translator: Translator, source: str, target: str, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs whose source the translator gives another text than any that it has here."""
    references: dict[str, set[str]] = {}
    for text, answer in pairs:
        references.setdefault(bare(text), set()).add(bare(answer))
    texts = sorted({text for text, _ in pairs}, key=lambda text: (len(text), text))
    answers = translator.translate(texts, source, target, beam=1)
    answer_of = {text: bare(answer.text) for text, answer in zip(texts, answers, strict=True)}
    return [pair for pair in dict.fromkeys(pairs) if answer_of[pair[0]] not in references[bare(pair[0])]]


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints how many pairs of each kind and direction are wrong."""
    parser = CommandLine(
        prog="python -m lab.translator.hard",
        description="Write what a translator still gets wrong of the words and basic texts that it has learned.",
    )
    parser.add_argument("--model", required=True, help="name of a shipped model, or a folder")
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder to write into")
    options = parser.parse_args(argv)
    translator, tables = Translator.from_pretrained(options.model), kinds()
    options.out.mkdir(parents=True, exist_ok=True)
    for source, target in translator.pairs:
        first, second = LANGUAGES.index(source), LANGUAGES.index(target)
        for kind in KINDS:
            pairs = [(row[first], row[second]) for row in tables[kind]]
            rows = wrong(translator, source, target, pairs)
            columns = ("en", source if target == "en" else target)
            path = options.out / f"hard{kind}.{source}-{target}.tsv.gz"
            write_table(path, columns, rows if source == "en" else [(b, a) for a, b in rows])
            print(f"{len(rows)} of {len(pairs)} pairs in {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
