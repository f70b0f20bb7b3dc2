"""A training step against torch.nn.Transformer: same size, loss, masks, batch and optimizer, in one run.

    python -m benchmarks.training_step --threads 2

Prints one JSON object a precision; `ratio` is their time divided by ours, the fastest of several alternating steps
each. Both share one embedding matrix between source, target and output, use post-norm and the same dropout, and see
padding.
"""

import json
import math
import random
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.arguments import CommandLine, integer
from training.command import one_sentence
from transformer.config import TransformerConfig
from transformer.data import Batch, collate
from transformer.loss import projected_cross_entropy
from transformer.model import Transformer, sinusoids

CLOCK = time.perf_counter


class Theirs(nn.Module):
    """torch.nn.Transformer with embeddings, positions and output around it, as its tutorial builds it."""

    positions: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.width = config.d_model
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("positions", sinusoids(config.max_length, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            config.d_model,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens (B, T) -> (B, T, width), with positions and dropout."""
        return self.dropout(self.embedding(tokens) * math.sqrt(self.width) + self.positions[: tokens.shape[1]])

    def forward(self, batch: Batch) -> Tensor:
        """Logits (B, T, V)."""
        padding = ~batch.src_mask[:, 0, 0]
        future = ~batch.tgt_mask[0, 0]
        x = self.transformer(
            self.embed(batch.src),
            self.embed(batch.tgt),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(x, self.embedding.weight)


def their_loss(model: Theirs, batch: Batch, labels: Tensor, smoothing: float) -> Tensor:
    """Smoothed cross-entropy, mean over real tokens; labels (B, T), -100 where there is padding."""
    return F.cross_entropy(model(batch).flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=smoothing)


def our_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """The same by this program: only real positions reach the vocabulary."""
    hidden = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, project=False)
    hidden = hidden.flatten(0, 1).index_select(0, batch.positions)
    loss, _ = projected_cross_entropy(hidden, model.embedding.weight, None, batch.labels, smoothing)
    return loss / batch.labels.numel()


def measure(config: TransformerConfig, tokens: int, length: int, precision: str, repeats: int) -> dict:
    """Seconds a step of both on sentences of `length` tokens, give or take two."""
    draw = random.Random(1)

    def sentence() -> list[int]:
        return [draw.randrange(4, config.vocab_size) for _ in range(draw.randint(length - 2, length + 2))]

    batch = collate([(sentence(), sentence()) for _ in range(tokens // (length + 3))])
    labels = torch.full((batch.tgt.numel(),), -100)
    labels[batch.positions] = batch.labels
    torch.manual_seed(1)
    theirs, ours = Theirs(config).train(), Transformer(config).train()
    models: dict[str, nn.Module] = {"theirs": theirs, "ours": ours}
    adam = {k: torch.optim.Adam(m.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True) for k, m in models.items()}

    def step(name: str) -> float:
        start = CLOCK()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            if name == "theirs":
                loss = their_loss(theirs, batch, labels.view(batch.tgt.shape), config.label_smoothing)
            else:
                loss = our_loss(ours, batch, config.label_smoothing)
        loss.backward()
        adam[name].step()
        adam[name].zero_grad(set_to_none=True)
        return CLOCK() - start

    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(repeats + 1):  # the first one warms up
        for name in models:
            times[name].append(step(name))
    best = {name: min(values[1:]) for name, values in times.items()}
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}
    return {
        "precision": precision,
        "sentences": len(batch.src),
        "tokens": batch.labels.numel(),
        "parameters": sizes,
        "seconds_theirs": best["theirs"],
        "seconds_ours": best["ours"],
        "ratio": best["theirs"] / best["ours"],
    }


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--tokens", type=integer(1), default=2048)
    parser.add_argument("--length", type=integer(1), default=25)
    parser.add_argument("--vocab", type=integer(1), default=8000)
    parser.add_argument("--repeats", type=integer(1), default=5)
    parser.add_argument("--precisions", nargs="+", default=["no", "bf16"], choices=["no", "bf16"])
    parser.add_argument("--cpu-time", action="store_true", help="measure the process's CPU time (on a busy machine)")
    options = parser.parse_args(argv)
    global CLOCK
    CLOCK = time.process_time if options.cpu_time else time.perf_counter
    torch.set_num_threads(options.threads)
    config = TransformerConfig(vocab_size=options.vocab, d_model=256, d_ff=1024, heads=4, max_length=256)
    for precision in options.precisions:
        print(json.dumps(measure(config, options.tokens, options.length, precision, options.repeats)), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
