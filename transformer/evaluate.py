"""Scores a model: BLEU, chrF and perplexity per word piece, beside what copying the source would score.

    python -m transformer.evaluate --model multi30k-en-de --data test.tsv.gz
    python -m transformer.evaluate --model everyday multi30k-en-de --data test.tsv.gz

Several models are scored on the same sentences, each in every direction that it has and the table has columns for.

Two BLEU figures that must not be mixed up: `bleu` is sacreBLEU on cased, untokenised text with its signature;
`bleu_lower_moses` is on lower-cased text tokenised by Moses' rules (sacremoses), as papers on Multi30k report it.
"""

import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from training.arguments import MAX_BEAM, CommandLine, a_device, a_number, an_existing_file, integer
from training.assets import model_or_dir
from training.command import one_sentence
from transformer import checklist
from transformer.data import read_parallel
from transformer.options import DEFAULTS, SearchOptions
from transformer.scoring import losses_of_ids
from transformer.tokenizer import language_token
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Translator


@dataclass
class Scores:
    """Figures of one test set; BLEU and chrF from 0 to 100."""

    sentences: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    bleu_lower_moses: float | None  # None without sacremoses
    perplexity: float  # of the references, per word piece
    seconds_per_sentence: float
    copy_bleu: float  # of the sources as they are
    copy_chrf: float


def text_scores(outputs: list[str], references: list[str], language: str) -> dict:
    """sacreBLEU and chrF with their signatures, and lower-cased Moses-tokenised BLEU where sacremoses is installed.

    language: of the text, for the Moses tokenizer.
    """
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(), CHRF()
    scores = {
        "bleu": bleu.corpus_score(outputs, [references]).score,
        "bleu_signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(outputs, [references]).score,
        "chrf_signature": str(chrf.get_signature()),
        "bleu_lower_moses": None,
    }
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        return scores
    tokenizer, punctuation = MosesTokenizer(lang=language), MosesPunctNormalizer(lang=language)

    def prepare(text: str) -> str:
        # As Multi30k's own task 1 files were made: lower case, normalised punctuation, Moses tokens.
        return tokenizer.tokenize(punctuation.normalize(text.lower()), escape=False, return_str=True)

    metric = BLEU(tokenize="none", force=True)
    moses = metric.corpus_score([prepare(o) for o in outputs], [[prepare(r) for r in references]])
    return {**scores, "bleu_lower_moses": moses.score}


def losses(translator: Translator, pairs: list[tuple[str, str]], target: str) -> list[tuple[float, int]]:
    """For each normalised pair, -log p(reference | source) in nats and the reference's word pieces, eos included.

    (0.0, 0) for a pair that is longer than the model reads, or has an empty side.
    """
    encode, longest = translator.tokenizer.encode, translator.model.config.max_length
    prefix = [translator.tokenizer.id(language_token(target))] if translator.language_tokens else []
    every = [([*prefix, *encode(source)], encode(reference)) for source, reference in pairs]
    numbers = [n for n, ids in enumerate(every) if all(pairs[n]) and max(map(len, ids)) < longest]
    results = [(0.0, 0)] * len(pairs)
    own = losses_of_ids(translator.model, [every[n] for n in numbers]) if numbers else []
    for number, loss in zip(numbers, own):
        results[number] = loss
    return results


def perplexity(translator: Translator, pairs: list[tuple[str, str]], target: str) -> float:
    """exp of the mean negative log-probability of the references' word pieces, eos included (Table 3's measure)."""
    sums, counts = zip(*losses(translator, pairs, target))
    if not sum(counts):
        raise ValueError(
            f"Every pair is longer than the {translator.model.config.max_length} word pieces that the model reads."
        )
    return math.exp(sum(sums) / sum(counts))


def evaluate(
    translator: Translator, pairs: list[tuple[str, str]], source: str, target: str, options: SearchOptions = DEFAULTS
) -> tuple[Scores, list[str]]:
    """Translates the sources of normalised (source, reference) pairs; returns the scores and the outputs."""
    start = time.perf_counter()
    # Each line is one segment of the test set: it is translated whole, as references are.
    sentences = translator.translate_sentences([s for s, _ in pairs], source, target, options)
    seconds = (time.perf_counter() - start) / len(pairs)
    outputs = [sentence.hypotheses[0].text for sentence in sentences]
    scores = text_scores(outputs, [reference for _, reference in pairs], target)
    ppl = perplexity(translator, pairs, target)
    copy = text_scores([s for s, _ in pairs], [reference for _, reference in pairs], target)
    return Scores(
        sentences=len(pairs),
        perplexity=ppl,
        seconds_per_sentence=seconds,
        copy_bleu=copy["bleu"],
        copy_chrf=copy["chrf"],
        **scores,
    ), outputs


def directions(translator: Translator, path: str, source: str | None, target: str | None) -> list[tuple[str, str]]:
    """The pairs to be scored on a table: the one that is asked for, or all of the model's that it has text for."""
    if source or target or len(translator.pairs) == 1:
        return [translator.check_pair(source, target)]
    pairs = []
    for pair in translator.pairs:
        try:
            read_parallel(path, *pair)
        except ValueError:
            continue
        pairs.append(pair)
    if not pairs:
        read_parallel(path, *translator.pairs[0])  # says what is missing
    return pairs


def run_checklist(translator: Translator, name: str, half: str, search: SearchOptions, output: str | None) -> None:
    """Prints the table of a model's checklist and stores it: at `output`, or beside the weights if all of it was asked.

    half: "all" or one of `checklist.HALVES`.
    """
    halves = checklist.HALVES if half == "all" else (half,)
    items = [item for item in checklist.read_items() if item.half in halves]
    rows = checklist.summary(checklist.answers(translator, items, search))
    print(translator.name)
    for one in halves:
        print(checklist.table(rows, one), flush=True)
    if output or half == "all":
        checklist.write(rows, Path(output) if output else model_or_dir(name) / checklist.FILE)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object for each file."""
    parser = CommandLine(
        prog="python -m transformer.evaluate",
        description="Score a model on parallel text: one column a language, named in the first line.",
    )
    parser.add_argument("--model", nargs="+", default=[DEFAULT_MODEL], help="names of shipped models, or folders")
    parser.add_argument(
        "--data", type=an_existing_file, default=[], nargs="+", help=".tsv or .csv files, gzipped or not"
    )
    parser.add_argument(
        "--checklist",
        nargs="?",
        const="all",
        choices=("all", *checklist.HALVES),
        help="count what is right in assets/checklist instead: all of it, or the half that chooses or makes the card",
    )
    parser.add_argument("--source", default=None, help="source language and column; by default all of the model's")
    parser.add_argument("--target", default=None, help="target language and column")
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=DEFAULTS.beam)
    parser.add_argument("--alpha", type=a_number(), default=None, help="length penalty; by default the model's")
    parser.add_argument("--limit", type=integer(), default=0, help="only the first so many pairs; 0 = all")
    parser.add_argument("--read-back", action="store_true", help="choose among the beam by the way back, too")
    parser.add_argument("--device", type=a_device, default="auto")
    parser.add_argument(
        "--output", default=None, help="write the translations (of the last scores) or the checklist there"
    )
    options = parser.parse_args(argv)
    if bool(options.data) == bool(options.checklist):
        parser.error("give either --data or --checklist")
    search = SearchOptions(options.beam, options.alpha, read_back=options.read_back)
    translators = [Translator.from_pretrained(name, options.device) for name in options.model]
    if options.checklist:
        for name, translator in zip(options.model, translators):
            run_checklist(translator, name, options.checklist, search, options.output)
    for path in options.data:
        for translator in translators:
            for source, target in directions(translator, path, options.source, options.target):
                pairs = read_parallel(path, source, target)[: options.limit or None]
                scores, outputs = evaluate(translator, pairs, source, target, search)
                head = {"model": translator.name, "data": str(path), "source": source, "target": target}
                alpha = translator.length_penalty(source, target, options.alpha)
                print(json.dumps({**head, "beam": options.beam, "alpha": alpha, **vars(scores)}), flush=True)
                if options.output:
                    with open(options.output, "w", encoding="utf-8") as file:
                        file.writelines(f"{line}\n" for line in outputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
