"""Beam-search decoding against transformers' MarianMTModel.generate and CTranslate2: same weights and outputs, one run.

    python -m benchmarks.decoding --threads 2

Prints one JSON object a line: what the 200th token costs against the 20th; then, for each batch, how many times as long
transformers and CTranslate2 (fp32; extra `bench`) take as we do, and how many times as long as our quick mode
CTranslate2's int8 and our own fp32 take: the median of five runs with the smallest and the largest. Quick mode has
products of 8 bits, where the processor has them, a shortlist of as many words as the longest one of the shipped
translator, and gives up what falls far behind. In each run all take turns, so that whatever else the machine does meets
all alike; the time is the wall's, or with `--cpu-time` the processor's, which other work disturbs less.
"""

import functools
import json
import math
import statistics
import tempfile
import time
from contextlib import nullcontext
from operator import eq
from typing import Any

import torch

from training import assets
from training.arguments import MAX_BEAM, CommandLine, integer
from training.command import one_sentence
from training.memory import keep_memory
from transformer import config as configs
from transformer import marian
from transformer.attention import key_mask
from transformer.cache import ActiveHypotheses
from transformer.data import collate
from transformer.kernels import has_int8, int8_products
from transformer.model import Shortlist, Transformer
from transformer.options import SearchOptions
from transformer.search import TransformerDecoder, beam_search
from transformer.shortlist import load_shortlists
from transformer.threads import threads_for
from transformer.translate import DEFAULT_MODEL
from transformer.translator import MARGIN

CLOCK = time.perf_counter
PAUSE = 0.25  # seconds
# What is compared with which of ours.
RATIOS = (("theirs", "ours"), ("ctranslate2", "ours"), ("ctranslate2_int8", "quick"), ("ours", "quick"))
VOCAB, EOS, UNK = 16000, 0, 1
PAD = VOCAB - 1
SIZE = configs.preset("everyday-large")  # of the shipped translator
FIELDS: dict[str, Any] = {
    "vocab_size": VOCAB,
    "d_model": SIZE.d_model,
    "encoder_layers": SIZE.encoder_layers,
    "decoder_layers": SIZE.decoder_layers,
    "encoder_attention_heads": SIZE.heads,
    "decoder_attention_heads": SIZE.heads,
    "encoder_ffn_dim": SIZE.d_ff,
    "decoder_ffn_dim": SIZE.d_ff,
    "max_position_embeddings": 512,
    "activation_function": "relu",
    "scale_embedding": True,
    "static_position_embeddings": True,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "bos_token_id": PAD,
    "decoder_start_token_id": PAD,
    "forced_eos_token_id": None,
    "tie_word_embeddings": True,
    "share_encoder_decoder_embeddings": True,
}


def models():
    """The same random weights twice: (theirs, ours)."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    theirs = MarianMTModel(MarianConfig(**FIELDS)).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.05)
        theirs.model.shared.weight[PAD] = 0.0  # a decoder's first input, which CTranslate2 takes to be zero
    config = marian.config_from_marian(theirs.config.to_dict())
    ours = Transformer(config).eval().requires_grad_(False)
    ours.load_state_dict(marian.state_from_marian(theirs.state_dict(), config))
    return theirs, ours


def third(theirs, folder: str, threads: int) -> dict:  # noqa: ANN001
    """The same weights in CTranslate2, fp32 and int8, by name; empty where it is not installed."""
    try:
        import ctranslate2
        from ctranslate2.converters.transformers import MarianMTLoader
    except ImportError:
        return {}
    loader = MarianMTLoader()
    spec = loader.get_model_spec(theirs)
    loader.set_vocabulary(spec, ["</s>", "<unk>", *(f"w{i}" for i in range(2, PAD))])
    spec.config.eos_token = spec.config.decoder_start_token = "</s>"
    spec.config.unk_token = "<unk>"
    spec.config.add_source_eos = False
    spec.validate()
    spec.save(folder)
    options = {"inter_threads": 1, "intra_threads": threads}
    return {
        "ctranslate2": ctranslate2.Translator(folder, "cpu", compute_type="float32", **options),
        "ctranslate2_int8": ctranslate2.Translator(folder, "cpu", compute_type="int8", **options),
    }


def shortlist_of(ours: Transformer) -> Shortlist:
    """Random words, as many as the longest shortlist of the shipped translator has, eos among them."""
    lengths = map(len, load_shortlists(assets.model_dir(DEFAULT_MODEL), VOCAB).values())
    others = torch.randperm(VOCAB - 2)[: max(lengths) - 1] + 1
    return Shortlist(torch.cat((torch.tensor([EOS]), others)), ours.embedding.weight)


@torch.inference_mode()
def measure(theirs, ours, faster, batch: int, beam: int, tokens: int, repeats: int) -> dict:  # noqa: ANN001
    """Seconds of all for `batch` sources of about 20 tokens and exactly `tokens` output tokens."""
    torch.manual_seed(batch)
    sources = [torch.randint(2, VOCAB - 1, (15 + i % 10,)).tolist() for i in range(batch)]
    src = collate([(s, []) for s in sources], pad=PAD, bos=PAD, eos=EOS).src
    mask = src != PAD

    def their_run():
        return theirs.generate(
            input_ids=src,
            attention_mask=mask.long(),
            num_beams=beam,
            length_penalty=0.0,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            bad_words_ids=[[PAD]],
            do_sample=False,
            early_stopping=False,
        )

    def our_run(numbers=nullcontext, shortlist=None, margin=math.inf):
        with numbers(), threads_for(ours, batch * beam):
            decoder = TransformerDecoder(ours, src, key_mask(src, PAD), shortlist=shortlist)
            return beam_search(
                decoder, [tokens] * batch, PAD, EOS, SearchOptions(beam, 0.0, margin=margin), [PAD], tokens
            )

    words = [["</s>" if i == EOS else "<unk>" if i == UNK else f"w{i}" for i in [*s, EOS]] for s in sources]

    def third_run(translator):
        results = translator.translate_batch(
            words,
            beam_size=beam,
            length_penalty=0.0,
            min_decoding_length=tokens,
            max_decoding_length=tokens,
            max_batch_size=0,
        )
        return [[UNK if w == "<unk>" else int(w[1:]) for w in f.hypotheses[0]] for f in results]

    runs = {"theirs": their_run, "ours": our_run}
    if has_int8():
        runs["quick"] = functools.partial(our_run, int8_products, shortlist_of(ours), MARGIN)
    runs |= {name: functools.partial(third_run, translator) for name, translator in faster.items()}
    outputs = {name: run() for name, run in runs.items()}
    outputs["theirs"] = [e[1 : tokens + 1].tolist() for e in outputs["theirs"]]
    outputs |= {name: [f.candidates[0].ids for f in outputs[name]] for name in ("ours", "quick") if name in outputs}
    result: dict[str, Any] = {"batch": batch, "beam": beam, "tokens": tokens}
    for name, ids in outputs.items():
        if name != "ours":
            result[f"same_outputs_{name}"] = f"{sum(map(eq, ids, outputs['ours']))}/{batch}"
    times = alternating(runs, repeats)
    result |= {f"seconds_{name}": statistics.median(seconds) for name, seconds in times.items()}
    for other, own in RATIOS:
        if {other, own} <= set(runs):
            ratios = sorted(long / short for long, short in zip(times[other], times[own]))
            bounds = {"median": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}
            result[f"ratio_{other}_{own}"] = bounds
    return result


def alternating(runs: dict, repeats: int) -> dict[str, list[float]]:
    """Seconds of each run, all taking turns; between them a pause,
    in which waiting threads of the others go to sleep.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            time.sleep(PAUSE)
            start = CLOCK()
            run()
            times[name].append(CLOCK() - start)
    return times


class StopwatchDecoder(TransformerDecoder):
    """Notes the seconds of each step."""

    def step(self, tokens: torch.Tensor, active: ActiveHypotheses | None = None) -> torch.Tensor:
        """As the decoder, with its seconds noted."""
        start = CLOCK()
        out = super().step(tokens, active)
        self.seconds = [*getattr(self, "seconds", []), CLOCK() - start]
        return out


@torch.inference_mode()
def late_tokens(ours, beam: int, repeats: int) -> dict:  # noqa: ANN001
    """What the 200th token of one sentence costs against the 20th."""
    src = torch.randint(2, VOCAB - 1, (1, 20))
    rows = []
    for _ in range(repeats):
        with threads_for(ours, beam):
            decoder = StopwatchDecoder(ours, src, key_mask(src, PAD))
            beam_search(decoder, [205], PAD, EOS, SearchOptions(beam, 0.0), [PAD], min_length=205)
        rows.append(decoder.seconds)
    early, late = (statistics.median(min(row[i] for row in rows) for i in range(n - 4, n + 5)) for n in (20, 200))
    return {"beam": beam, "seconds_token_20": early, "seconds_token_200": late, "ratio": late / early}


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=4)
    parser.add_argument("--tokens", type=integer(1), default=30)
    parser.add_argument("--repeats", type=integer(1), default=5)
    parser.add_argument("--batches", type=integer(1), nargs="+", default=[1, 8, 32])
    parser.add_argument("--cpu-time", action="store_true", help="measure the process's CPU time (on a busy machine)")
    options = parser.parse_args(argv)
    global CLOCK
    CLOCK = time.process_time if options.cpu_time else time.perf_counter
    torch.set_num_threads(options.threads)
    keep_memory()
    theirs, ours = models()
    print(json.dumps(late_tokens(ours, options.beam, options.repeats)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        faster = third(theirs, folder, options.threads)
        for batch in options.batches:
            result = measure(theirs, ours, faster, batch, options.beam, options.tokens, options.repeats)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
