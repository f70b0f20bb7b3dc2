"""Random translations to be read, each with what a program can see of it:

python -m lab.translator.remarks --model everyday --data test.tsv.gz --source en --target de --show 50
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter

from training.arguments import MAX_BEAM, CommandLine, a_device, a_seed, an_existing_file, integer
from training.command import one_sentence
from transformer.data import read_parallel
from transformer.options import DEFAULTS, SearchOptions
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Translator


def remarks(source: str, output: str, reference: str) -> list[str]:
    """What a program can see of one translation: "as the reference", or signs of an error by their kind."""
    if output == reference:
        return ["as the reference"]
    signs = []
    ours, theirs = output.lower().split(), reference.lower().split()
    if sorted(re.findall(r"\d+", source)) != sorted(re.findall(r"\d+", output)):
        signs.append("numbers differ from the source")
    if len(ours) < 0.6 * len(theirs) and len(theirs) > 3:
        signs.append("much shorter than the reference")
    if len(ours) > 1.6 * len(theirs) and len(ours) > 5:
        signs.append("much longer than the reference")
    if any(a == b and a.isalpha() for a, b in zip(ours, ours[1:])):
        signs.append("a word twice running")
    names = set(re.findall(r"(?<=[\w,;] )[A-ZÀ-Ý]\w+", source)) & set(re.findall(r"\w+", reference))
    if not names <= set(re.findall(r"\w+", output)):
        signs.append("a name is lost")
    words = set(re.findall(r"[^\W\d_]+", reference.lower()))
    if words and not words & set(re.findall(r"[^\W\d_]+", output.lower())):
        signs.append("no word of the reference")
    return signs


def show(pairs: list[tuple[str, str]], outputs: list[str], count: int, seed: int) -> None:
    """Prints `count` random translations with source, reference and remarks, then how often each remark was made."""
    kinds = [remarks(source, output, reference) for (source, reference), output in zip(pairs, outputs)]
    for number in sorted(random.Random(seed).sample(range(len(pairs)), min(count, len(pairs)))):
        (source, reference), words = pairs[number], "; ".join(kinds[number])
        print(f"{number + 1}\n  source       {source}\n  reference    {reference}\n  translation  {outputs[number]}")
        print(f"  remarks      {words}" if words else "", flush=True)
    for remark, times in Counter(remark for one in kinds for remark in one).most_common():
        print(f"{times:6} {remark}")


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(
        prog="python -m lab.translator.remarks",
        description="Random translations with what a program can see of them.",
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, help="name of a shipped model, or a folder")
    parser.add_argument("--data", type=an_existing_file, required=True, help=".tsv or .csv file, gzipped or not")
    parser.add_argument("--source", help="source language and column; by default the model's first that fits")
    parser.add_argument("--target", help="target language and column")
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=DEFAULTS.beam)
    parser.add_argument("--show", type=integer(), default=50, help="random translations that are printed")
    parser.add_argument("--seed", type=a_seed, default=1, help="of the random choices")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    translator = Translator.from_pretrained(options.model, options.device)
    pair = translator.check_pair(options.source, options.target)
    pairs = read_parallel(options.data, *pair)
    sentences = translator.translate_sentences([source for source, _ in pairs], *pair, SearchOptions(options.beam))
    show(pairs, [sentence.hypotheses[0].text for sentence in sentences], options.show, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
