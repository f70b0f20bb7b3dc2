"""Beam-search decoding against transformers' MarianMTModel.generate: same weights, same outputs, one run.

    python -m benchmarks.decoding --threads 2

Prints one JSON object a measurement; `ratio` is their time divided by ours, the fastest of several alternating runs
each.
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from transformer import marian
from transformer.attention import key_mask
from transformer.data import collate
from transformer.model import Transformer
from transformer.search import TransformerDecoder, beam_search

VOCAB, EOS, UNK = 16000, 0, 1
PAD = VOCAB - 1
FIELDS = dict(
    vocab_size=VOCAB, d_model=256, encoder_layers=6, decoder_layers=6, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024, max_position_embeddings=512,
    activation_function="relu", scale_embedding=True, static_position_embeddings=True, pad_token_id=PAD,
    eos_token_id=EOS, bos_token_id=PAD, decoder_start_token_id=PAD, forced_eos_token_id=None, tie_word_embeddings=True,
    share_encoder_decoder_embeddings=True,
)  # fmt: skip


def models():
    """The same random weights twice: (theirs, ours)."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    theirs = MarianMTModel(MarianConfig(**FIELDS)).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    config = marian.config_from_marian(theirs.config.to_dict())
    ours = Transformer(config).eval()
    ours.load_state_dict(marian.state_from_marian(theirs.state_dict(), config))
    return theirs, ours


@torch.inference_mode()
def measure(theirs, ours, batch: int, beam: int, tokens: int, repeats: int) -> dict:
    """Seconds of both for `batch` sources of about 20 tokens and exactly `tokens` output tokens."""
    sources = [torch.randint(2, VOCAB - 1, (15 + i % 10,)).tolist() for i in range(batch)]
    src = collate([(s, []) for s in sources], pad=PAD, bos=PAD, eos=EOS).src
    mask = src != PAD

    def their_run():
        return theirs.generate(
            input_ids=src, attention_mask=mask.long(), num_beams=beam, length_penalty=0.0, max_new_tokens=tokens,
            min_new_tokens=tokens, bad_words_ids=[[PAD]], do_sample=False, early_stopping=False,
        )  # fmt: skip

    def our_run():
        decoder = TransformerDecoder(ours, src, key_mask(src, PAD))
        return beam_search(decoder, [tokens] * batch, PAD, EOS, beam, 0.0, [PAD], min_length=tokens)

    expected, found = their_run(), our_run()
    same = sum(f.candidates[0].ids == e[1 : tokens + 1].tolist() for f, e in zip(found, expected))
    times = {"theirs": [], "ours": []}
    for _ in range(repeats):
        for name, run in (("theirs", their_run), ("ours", our_run)):
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    best = {name: min(values) for name, values in times.items()}
    return dict(batch=batch, beam=beam, tokens=tokens, same_outputs=f"{same}/{batch}", seconds_theirs=best["theirs"],
                seconds_ours=best["ours"], ratio=best["theirs"] / best["ours"])  # fmt: skip


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--beam", type=int, default=4)
    options.add_argument("--tokens", type=int, default=30)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    theirs, ours = models()
    for batch in given.batches:
        result = measure(theirs, ours, batch, given.beam, given.tokens, given.repeats)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
