"""New sources for true targets: paraphrases by back-translation (Sennrich et al. 2016, section 3.1).

    python -m transformer.paraphrase --model everyday --data train.tsv.gz --origin fr de --source en --target de \
        --judge multi30k-en-de --out DIR/train.tsv.gz

A table with columns in three languages says everything three times. Translated to the source language by a model, its
third column is the source in other words, and so is the target column itself; either belongs to the target that a person
wrote. Machine translations err, so a model that knows the text judges each pair: what makes the target much less likely
than the true source does is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from training.command import one_sentence
from transformer.data import ParallelData, collate, read_parallel, write_table
from transformer.loss import smoothed_cross_entropy
from transformer.prepare import ORIGIN
from transformer.tokenizer import language_token
from transformer.translator import Translator

CHUNK = 500  # sentences between two lines of progress
TOKENS = 4096  # of a batch, each side


@torch.inference_mode()
def losses(judge: Translator, pairs: list[tuple[str, str]], target: str) -> list[float]:
    """-log p(target | source) of each normalised pair in nats per word piece, eos included; `inf` for an empty side.

    Raises `ValueError` if a pair is longer than the judge reads.
    """
    config, model = judge.model.config, judge.model.eval()
    prefix = [judge.tokenizer.id(language_token(target))] if judge.language_tokens else []
    full = [number for number, pair in enumerate(pairs) if all(pair)]
    found = [float("inf")] * len(pairs)
    if not full:
        return found
    data = ParallelData([pairs[number] for number in full], judge.tokenizer, config.max_length, prefix)
    if data.skipped:
        raise ValueError(f"{data.skipped} pairs are longer than the {config.max_length} word pieces that {judge.name} reads.")
    for indices in data.batches(TOKENS, 0, 0):
        chosen = [data.pairs[i] for i in indices]
        batch = collate(chosen, config.neighbourhood, config.pad, config.bos, config.eos).to(judge.device)
        logits = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask).flatten(0, 1)
        each = smoothed_cross_entropy(logits.index_select(0, batch.positions), batch.labels, 0.0)
        row = batch.positions // batch.tgt.shape[1]
        sums = each.new_zeros(len(indices)).index_add_(0, row, each)
        counts = each.new_zeros(len(indices)).index_add_(0, row, torch.ones_like(each))
        for number, loss in zip(indices, (sums / counts).tolist()):
            found[full[number]] = loss
    return found


def kept(
    judge: Translator, pairs: list[tuple[str, str]], sources: list[str], target: str, margin: float
) -> list[tuple[str, str]]:
    """The pairs (new source, true target) whose loss is at most `margin` above that of the true pair, without repeats.

    sources: one for each of the normalised true pairs; an empty one is left out.
    """
    new = [(source, truth) for source, (_, truth) in zip(sources, pairs, strict=True)]
    near = [pair for pair, ours, true in zip(new, losses(judge, new, target), losses(judge, pairs, target))
            if ours <= true + margin]
    known = set(pairs)
    return [pair for pair in dict.fromkeys(near) if pair not in known]


def translated(model: Translator, texts: list[str], language: str, source: str, beam: int, n_best: int) -> list[list[str]]:
    """`n_best` lists of a text's translations each, the likeliest first; an empty text where the search found fewer."""
    found: list[list[str]] = [[] for _ in range(n_best)]
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        for sentence in model.translate_sentences(chunk, language, source, beam, 0.6, n_best, None, False):
            said = [h.text for h in sentence.hypotheses] + [""] * n_best
            for column, text in zip(found, said):
                column.append(text)
        print(f"{language} {len(found[0])}/{len(texts)}", file=sys.stderr)
    return found


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints one JSON object with the counts."""
    options = argparse.ArgumentParser(
        prog="python -m transformer.paraphrase", description="Write a table with new sources beside the true ones.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument("--model", required=True, help="translates to the source language: a shipped model, or a folder")
    options.add_argument("--data", required=True, help=".tsv or .csv file, gzipped or not")
    options.add_argument("--origin", required=True, nargs="+", help="languages and columns that are translated")
    options.add_argument("--source", required=True, help="language and column of the source")
    options.add_argument("--target", required=True, help="language and column of the target")
    options.add_argument("--judge", required=True, help="translates source to target: a shipped model, or a folder")
    options.add_argument("--margin", type=float, default=0.7, help="nats per word piece above the true pair that are borne")
    options.add_argument("--beside", default=None, help="table whose pairs come first; by default those of --data")
    options.add_argument("--out", required=True, type=Path, help="table to write, ending in .tsv.gz")
    options.add_argument("--beam", type=int, default=3)
    options.add_argument("--best", type=int, default=1, help="translations of each text, at most --beam")
    options.add_argument("--device", default="auto")
    given = options.parse_args(argv)
    if not given.out.name.endswith(".tsv.gz"):
        raise ValueError(f"--out names a table to write, ending in .tsv.gz; got {given.out}.")
    if not 1 <= given.best <= given.beam:
        raise ValueError(f"--best has to be from 1 to the beam's {given.beam}; got {given.best}.")
    model, judge = (Translator.from_pretrained(name, given.device) for name in (given.model, given.judge))
    judge.check_pair(given.source, given.target)
    for language in given.origin:
        model.check_pair(language, given.source)
    pairs = read_parallel(given.data, given.source, given.target)
    first = read_parallel(given.beside, given.source, given.target) if given.beside else pairs
    known, rows, counts = set(first), [(*pair, "true") for pair in first], {"true": len(first)}
    for language in given.origin:
        texts = [t for _, t in pairs] if language == given.target else [
            t for t, _ in read_parallel(given.data, language, given.target)]
        if len(texts) != len(pairs):
            raise ValueError(f"{given.data}: the column '{language}' has other empty cells than '{given.source}'.")
        before = len(rows)
        for sources in translated(model, texts, language, given.source, given.beam, given.best):
            new = [pair for pair in kept(judge, pairs, sources, given.target, given.margin) if pair not in known]
            known.update(new)
            rows += [(*pair, language) for pair in new]
        counts[language] = len(rows) - before
    write_table(given.out, (given.source, given.target, ORIGIN), rows)
    print(json.dumps({**counts, "margin": given.margin, "beam": given.beam, "best": given.best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
