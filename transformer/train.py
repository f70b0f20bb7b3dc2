"""Trains a Transformer by the recipe of section 5: `python -m transformer.train --preset tiny --data DIR --run DIR`.

DIR holds train.tsv(.gz) or train.csv(.gz), and val.* where there is one, with one column a language:
`--source en --target de` names the columns. A single file works too; then one pair in a hundred is held out.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import training
from training import Recipe, Task
from training.weights import save_model
from transformer import config as configs
from transformer.config import TransformerConfig
from transformer.data import Batch, ParallelData, find_split, read_parallel
from transformer.loss import projected_cross_entropy
from transformer.model import Transformer
from transformer.schedule import learning_rate
from transformer.tokenizer import Tokenizer
from transformer.translator import FORMAT, Translator


@dataclass
class TranslationRecipe(Recipe):
    """Section 5 of the paper, and where the text is. Figures are the paper's unless a preset says otherwise."""

    size: str = "base"  # a name of config.PRESETS
    data: str = ""  # folder with train.* and val.*, or one file
    source: str = "en"  # column of the source
    target: str = "de"  # column of the target
    vocab_size: int = 37000  # joint vocabulary (5.1)
    tokens: int = 25000  # tokens of a micro-batch, each side (5.1)
    max_length: int = 512  # longest sentence in tokens
    warmup: int = 4000  # warm-up steps of equation 3 (5.3)
    rate_scale: float = 1.0  # factor on equation 3; the paper has 1
    dropout: float = -1.0  # P_drop; -1 = as the size has it
    label_smoothing: float = -1.0  # epsilon_ls; -1 = as the size has it
    neighbourhood: int = 0  # r of restricted self-attention; 0 = unrestricted
    average: int = 5  # checkpoints averaged for the exported weights (6.1)

    def check(self) -> None:
        """Raises `ValueError` with one sentence for fields that contradict each other."""
        super().check()
        if not self.data:
            raise ValueError("say where the text is: --data FOLDER (with train.tsv or train.csv) or --data FILE.")
        if self.source == self.target:
            raise ValueError(f"source and target are both the column {self.source!r}; name two different columns.")
        if self.tokens < self.max_length:
            raise ValueError(f"a batch of {self.tokens} tokens cannot hold a sentence of max_length {self.max_length}.")

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """The model's configuration for a vocabulary of this size."""
        changes = {"vocab_size": vocab_size, "max_length": self.max_length, "neighbourhood": self.neighbourhood}
        if self.dropout >= 0:
            changes["dropout"] = self.dropout
        if self.label_smoothing >= 0:
            changes["label_smoothing"] = self.label_smoothing
        return configs.preset(self.size, **changes)


PRESETS: dict[str, dict] = {
    # Multi30k on one CPU core, 0.3 s an update; the start of the shipped weights. So narrow a model needs a low rate: with
    # a peak above 2e-3 its attention over the source stays uniform, and it learns a bag of words.
    "tiny": dict(size="tiny", vocab_size=8000, tokens=2048, warmup=400, rate_scale=0.2, dropout=0.1, steps=8000,
                 save_every=100, evaluate_every=400, keep_last=8, average=8),
    # one GPU, a few hundred thousand pairs
    "small": dict(size="small", vocab_size=16000, tokens=16384, warmup=4000, steps=40000, save_every=1000,
                  evaluate_every=2000, keep_last=5, precision="bf16"),
    # the paper: 8 GPUs, or accumulation
    "base": dict(size="base", steps=100000, save_every=1000, evaluate_every=5000, keep_last=5),
    "big": dict(size="big", steps=300000, save_every=1000, evaluate_every=5000, keep_last=20, average=20),
    # two minutes on a CPU with any small table, to see everything move
    "quick": dict(size="mini", vocab_size=1000, tokens=2048, warmup=100, rate_scale=0.25, steps=300, save_every=100,
                  evaluate_every=100, keep_last=3, average=3),
}


def load_splits(recipe: TranslationRecipe) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Training and validation pairs of a recipe; without a validation file every hundredth pair (at least one)."""
    path = Path(recipe.data)
    if path.is_file():
        train, val = path, None
    else:
        train, val = find_split(path, "train"), find_split(path, "val")
        if train is None:
            raise FileNotFoundError(f"{path} holds no train.tsv, train.tsv.gz, train.csv or train.csv.gz.")
    pairs = read_parallel(train, recipe.source, recipe.target)
    if val is not None:
        return pairs, read_parallel(val, recipe.source, recipe.target)
    if len(pairs) < 2:
        raise ValueError(f"{train.name} holds one pair only; training needs at least two.")
    every = min(100, len(pairs))
    return [p for i, p in enumerate(pairs) if i % every], pairs[::every]


class TranslationTask(Task):
    """What the training loop needs to know of a Transformer."""

    best = ("loss", "min")

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe = recipe
        train, val = load_splits(recipe)
        texts = (text for pair in train for text in pair)
        self.tokenizer = Tokenizer.train(texts, recipe.vocab_size)
        self.config = recipe.model_config(len(self.tokenizer))
        self.data = ParallelData(train, self.tokenizer, recipe.max_length)
        self.val = ParallelData(val, self.tokenizer, recipe.max_length)
        self.val_text = val[:8]
        torch.manual_seed(recipe.seed)
        model = Transformer(self.config)
        self.modules = {"model": model}
        # beta and epsilon of section 5.3; the rate is set before each update
        fused = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.optimizers = {"model": fused}
        self.weights = {"loss": 1.0, "nll": 0.0}
        self.order = functools.lru_cache(maxsize=2)(
            lambda epoch: self.data.batches(recipe.tokens, recipe.seed, epoch)
        )
        self.per_epoch = len(self.order(0))

    def learning_rates(self, step: int) -> dict[str, float]:
        """Equation 3."""
        return {"model": learning_rate(step, self.config.d_model, self.recipe.warmup, self.recipe.rate_scale)}

    def batch(self, step: int, micro: int, rank: int, world: int) -> Batch:
        """The batch with this number in the endless sequence of epochs; a pure function of its arguments."""
        number = ((step - 1) * self.recipe.accumulate + micro) * world + rank
        # Epochs differ by a batch or two, as ties are shuffled; the first one's length counts for all.
        batches = self.order(number // self.per_epoch)
        return self.data.collate(batches[number % self.per_epoch % len(batches)], self.config.neighbourhood)

    def count(self, batch: Batch) -> int:
        """Target tokens, eos included."""
        return batch.labels.numel()

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The smoothed loss that is minimised, and the plain one, both in nats summed over target tokens."""
        hidden = self.networks["model"](batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, project=False)
        # Only real positions reach the vocabulary: padding would cost as much as a word there.
        hidden = hidden.flatten(0, 1).index_select(0, batch.positions)
        model = self.modules["model"]
        smoothed, plain = projected_cross_entropy(
            hidden, model.embedding.weight, model.output_bias, batch.labels, self.config.label_smoothing
        )
        return {"loss": smoothed, "nll": plain}

    def evaluate(self) -> dict[str, float]:
        """Validation loss (plain, nats a token) and perplexity per word piece."""
        device = next(self.modules["model"].parameters()).device
        total, tokens = 0.0, 0
        for indices in self.val.batches(self.recipe.tokens, 0, 0):
            batch = self.val.collate(indices, self.config.neighbourhood).to(device)
            total += float(self.terms(batch)["nll"])
            tokens += self.count(batch)
        return {"loss": total / tokens, "perplexity": math.exp(min(total / tokens, 50.0))}

    def sample(self, folder: Path, step: int) -> None:
        """Translations of the first validation sentences."""
        translator = self.translator()
        lines = []
        for source, reference in self.val_text:
            found = translator.translate(source, self.recipe.source, self.recipe.target, beam=1)
            lines += [f"source      {source}", f"reference   {reference}", f"translation {found.text}", ""]
        (folder / "translations.txt").write_text("\n".join(lines), encoding="utf-8")

    def translator(self) -> Translator:
        """A Translator of the weights as they are now."""
        return Translator(self.modules["model"], self.tokenizer, [(self.recipe.source, self.recipe.target)])

    def export(self, folder: Path) -> None:
        """config.json, model.safetensors (fp16), tokenizer.model."""
        export(folder, self.modules["model"].state_dict(), self.config, self.tokenizer,
               [(self.recipe.source, self.recipe.target)])


def export(folder: str | Path, state: dict[str, Tensor], config: TransformerConfig, tokenizer: Tokenizer,
           pairs: list[tuple[str, str]]) -> None:
    """Writes what `Translator.from_pretrained` reads."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "pairs": [list(pair) for pair in pairs], "transformer": config.to_dict()}
    save_model(folder, header, state)
    tokenizer.save(folder / "tokenizer.model")


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return training.launch(TranslationTask, TranslationRecipe, PRESETS, argv)


if __name__ == "__main__":
    sys.exit(main())
