"""What a first look into a translation costs: `python -m benchmarks.insight --tokens 40`.

A sentence of so many tokens is translated, then every view of it is worked out once, as the page does. Prints for each
the milliseconds of the processor (smallest of several runs, one thread; the same on a machine that is busy with
something else) and how many times the translation's own that is.
"""

import json
import time
import timeit
from collections.abc import Callable

import torch

from training.arguments import CommandLine, integer
from training.command import one_sentence
from transformer import Translator
from transformer.insight.contributions import contributions
from transformer.insight.interpret import head_steps, query_steps
from transformer.insight.lenses import decoder_lens, logit_lens
from transformer.translate import DEFAULT_MODEL

TEXT = (
    "A young woman in a red dress is sitting on a wooden bench in the park and reading a book while two small children "
    "are playing with a brown dog near the lake and an old man is watching them from his window"
)


def sentence(translator: Translator, tokens: int) -> str:
    """The first words of a text that the model reads as at most so many tokens."""
    words = TEXT.split()
    while len(words) > 1 and len(translator.encode(" ".join(words), translator.pairs[0][1])) > tokens:
        words.pop()
    return " ".join(words)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Measure every view on one sentence."""
    parser = CommandLine(description="What a look into a translation costs.")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="shipped model or folder")
    parser.add_argument("--tokens", type=integer(1), default=40, help="of the source sentence, at most")
    parser.add_argument("--runs", type=integer(1), default=5)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    translator = Translator.from_pretrained(options.model, device="cpu")
    text = sentence(translator, options.tokens)
    translation = translator.translate(text)
    work: dict[str, Callable[[], object]] = {
        "translation": lambda: translator.translate(text),
        "attention": lambda: translator.attend(translation),
        "logit lens": lambda: logit_lens(translator, translation),
        "DecoderLens": lambda: decoder_lens(translator, translation),
        "source against prefix": lambda: contributions(translator, translation),
        "neurons": lambda: query_steps(head_steps(translator, translation, "cross", 0, 0), 0),
    }
    times = {
        name: 1000 * min(timeit.repeat(one, timer=time.process_time, number=1, repeat=options.runs))
        for name, one in work.items()
    }
    whole = times["translation"]
    figures = {
        name: {"cpu_ms": round(value, 1), "translations": round(value / whole, 2)} for name, value in times.items()
    }
    sizes = {
        "model": translator.name,
        "source": len(translation.sentences[0].source_ids),
        "target": len(translation.tokens),
    }
    print(json.dumps({**sizes, **figures}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
