"""Where a model is good and where it is not: scores by source of the text, direction and length.

    python -m lab.translator.groups --model everyday --data DATA/test.tsv.gz --count 100

scores up to 100 pairs of each source and direction of a table that `transformer.prepare` wrote.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.translator.mixture import GENERAL, Mixture, read_rows, spread
from training.arguments import MAX_BEAM, CommandLine, a_device, a_number, an_existing_file, integer
from training.command import one_sentence
from transformer.options import DEFAULTS, SearchOptions
from transformer.tokenizer import language_token
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Translator

LENGTHS = ((1, 10), (11, 20), (21, 35), (36, 10**6))  # words of the source
MUCH_TOO_SHORT = 0.6  # of the reference's words
SMALLEST = 8  # pairs of which a score says something


@dataclass(frozen=True)
class Rating:
    """One translated pair."""

    origin: str  # its source without the languages: "wmt_news"
    direction: str  # "en-de"
    source: str
    reference: str
    output: str

    @property
    def length(self) -> str:
        """The bucket of LENGTHS that the source's words fall into: "11-20"."""
        words = len(self.source.split())
        first, last = next(bounds for bounds in LENGTHS if words <= bounds[1])
        return f"{first}-{last}" if last < LENGTHS[-1][1] else f"{first}+"


@dataclass
class GroupScores:
    """Figures of one group; BLEU and chrF from 0 to 100, shares in [0, 1]."""

    pairs: int
    bleu: float
    chrf: float
    too_short: float  # share of the outputs with less than MUCH_TOO_SHORT of the reference's words
    name_share: (
        float | None
    )  # share of the names common to source and reference that the output has; None without names


def names(source: str, reference: str) -> set[str]:
    """Capitalised words inside the source that the reference has, too: names, as a rule."""
    inside = re.findall(r"(?<=[\w,;] )[A-ZÀ-Ý]\w+", source)
    return set(inside) & set(re.findall(r"\w+", reference))


def group_scores(ratings: Iterable[Rating]) -> GroupScores:
    """The figures of some pairs, at least one."""
    from sacrebleu.metrics import BLEU, CHRF

    ratings = list(ratings)
    outputs, references = [one.output for one in ratings], [[one.reference for one in ratings]]
    short = copies = total = 0
    for one in ratings:
        theirs = len(one.reference.split())
        short += theirs > 3 and len(one.output.split()) < MUCH_TOO_SHORT * theirs
        own = names(one.source, one.reference)
        total += len(own)
        copies += len(own & set(re.findall(r"\w+", one.output)))
    return GroupScores(
        len(ratings),
        BLEU().corpus_score(outputs, references).score,
        CHRF().corpus_score(outputs, references).score,
        short / len(ratings),
        copies / total if total else None,
    )


def translate_sources(
    translator: Translator,
    path: Path,
    count: int,
    one_way: str = "firefox_teacher",
    options: SearchOptions = DEFAULTS,
) -> list[Rating]:
    """Translates up to `count` pairs of each source and direction, each source sentence whole.

    translator: a model whose directions have one language in common.
    path: table with a column a language and `origin`.
    one_way: as in `Mixture`; text that a machine wrote is no source.
    """
    languages = sorted({name for pair in translator.pairs for name in pair}, key=lambda name: -_count(translator, name))
    rows = read_rows(path, languages)
    own = translator.language_tokens
    prefixes = {pair: [translator.tokenizer.id(language_token(pair[1]))] * own for pair in translator.pairs}
    whole = Mixture(rows, translator.tokenizer, translator.model.config.max_length, prefixes, one_way=one_way)
    groups: dict[tuple[str, str], list[int]] = {}
    for indices in spread(whole, count).values():
        groups.setdefault(whole.directions[whole.direction[indices[0]]], []).extend(indices)
    ratings = []
    for pair, indices in groups.items():
        texts = [whole.text(index) for index in indices]
        sentences = translator.translate_sentences([s for s, _ in texts], *pair, options)
        for index, (source, reference), sentence in zip(indices, texts, sentences):
            origin = whole.origin(index).split(".")[0]
            ratings.append(Rating(origin, "-".join(pair), source, reference, sentence.hypotheses[0].text))
    return ratings


def _count(translator: Translator, language: str) -> int:
    return sum(language in pair for pair in translator.pairs)


def by_group(ratings: list[Rating]) -> list[dict]:
    """Figures by source and direction, by length and direction, and the mean over general sources of each direction.

    Groups of fewer than SMALLEST pairs are left out, also of the means.
    """
    out = []
    for direction in dict.fromkeys(one.direction for one in ratings):
        own = [one for one in ratings if one.direction == direction]
        general = []
        for origin in dict.fromkeys(one.origin for one in own):
            part = [one for one in own if one.origin == origin]
            if len(part) < SMALLEST:
                continue
            scores = group_scores(part)
            out.append({"direction": direction, "source": origin, **asdict(scores)})
            if origin in GENERAL:
                general.append(scores)
        for first, last in LENGTHS:
            part = [one for one in own if first <= len(one.source.split()) <= last]
            if len(part) >= SMALLEST:
                out.append({"direction": direction, "length": part[0].length, **asdict(group_scores(part))})
        if general:
            means = {
                name: sum(getattr(s, name) for s in general) / len(general) for name in ("bleu", "chrf", "too_short")
            }
            out.append(
                {"direction": direction, "source": "mean over general sources", "sources": len(general), **means}
            )
    return out


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object for each group."""
    parser = CommandLine(prog="python -m lab.translator.groups", description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=[DEFAULT_MODEL], help="names of shipped models, or folders")
    parser.add_argument(
        "--data", required=True, type=an_existing_file, help="table of transformer.prepare with held-out pairs"
    )
    parser.add_argument("--count", type=integer(1), default=100, help="pairs of each source and direction")
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=DEFAULTS.beam)
    parser.add_argument("--alpha", type=a_number(), default=None, help="length penalty; by default the model's")
    parser.add_argument("--read-back", action="store_true", help="choose among the beam by the way back, too")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    search = SearchOptions(options.beam, options.alpha, read_back=options.read_back)
    for name in options.model:
        translator = Translator.from_pretrained(name, options.device)
        for figures in by_group(translate_sources(translator, options.data, options.count, options=search)):
            print(json.dumps({"model": translator.name, **figures}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
