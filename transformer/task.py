"""What the trainings of a `Transformer` have in common, whether it learns to translate or to write trees."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from training.recipe import AT_LEAST_1, Recipe, setting
from training.task import Task
from training.weights import fill, load_config, load_model, save_config, save_model
from transformer import config as configs
from transformer.config import TransformerConfig
from transformer.data import Batch, ParallelData
from transformer.model import Transformer
from transformer.tokenizer import Tokenizer
from transformer.translator import FORMAT


@dataclass
class TransformerRecipe(Recipe):
    """The fields that both recipes have. Figures are the paper's unless a preset or a recipe says otherwise."""

    bounds = {
        "vocab_size": (1, 10**6),
        "max_length": (2, 10**5),
        **dict.fromkeys(("tokens", "warmup", "align_updates"), AT_LEAST_1),
        **dict.fromkeys(("dropout", "label_smoothing"), (-1, 1)),
    }

    size: str = setting("base", "a name of config.PRESETS")
    data: str = setting("", "folder or file of the text")
    vocab_size: int = setting(37000, "joint vocabulary (5.1)")
    tokens: int = setting(25000, "tokens of a micro-batch, each side (5.1)")
    max_length: int = setting(512, "longest sentence in tokens")
    warmup: int = setting(4000, "warm-up steps of equation 3 (5.3)")
    dropout: float = setting(-1.0, "P_drop; -1 = as the size has it")
    label_smoothing: float = setting(-1.0, "epsilon_ls; -1 = as the size has it")
    align: float = setting(
        0.0, "weight of guided alignment at the first update (transformer.align); the paper has none"
    )
    align_updates: int = setting(4000, "updates over which that weight falls to 0")
    initial: str = setting("", "folder of a trained model to start from, with its vocabulary")

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """The model's configuration for a vocabulary of this size."""
        changes = {name: value for name in ("dropout", "label_smoothing") if (value := getattr(self, name)) >= 0}
        return configs.preset(self.size, vocab_size=vocab_size, **self.sizes(), **changes)

    def sizes(self) -> dict[str, Any]:
        """What else differs from the size of that name."""
        return {"max_length": self.max_length}


class TransformerTask(Task):
    """What the training loop needs to know of a Transformer; a subclass brings text, loss and samples."""

    best = ("loss", "min")
    recipe: Any  # a `TransformerRecipe`
    tokenizer: Tokenizer
    data: Any  # `ParallelData`, or what has its `batches` and `collate`
    val: ParallelData

    def build(self) -> None:
        """The network, by the recipe's seed or `initial`, and the order of the batches of `data`."""
        recipe = self.recipe
        self.config = recipe.model_config(len(self.tokenizer))
        torch.manual_seed(recipe.seed)
        model = Transformer(self.config)
        if recipe.initial:
            fill(model, load_model(recipe.initial)[1], f"a Transformer of size '{recipe.size}'")
        self.modules = {"model": model}
        self.weights = {"loss": 1.0, "nll": 0.0}
        self.order = functools.lru_cache(maxsize=2)(lambda epoch: self.data.batches(recipe.tokens, recipe.seed, epoch))
        self.per_epoch = len(self.order(0))

    @property
    def model(self) -> Transformer:
        """The network itself."""
        return cast(Transformer, self.modules["model"])

    @property
    def device(self) -> torch.device:
        """Where it learns."""
        return self.model.embedding.weight.device

    def known_vocabulary(self) -> Tokenizer | None:
        """That of `initial`, else the data folder's own; None where there is none yet."""
        file = Path(self.recipe.initial or self.recipe.data) / "tokenizer.model"
        return Tokenizer.load(file) if file.is_file() or self.recipe.initial else None

    def place(self, step: int, micro: int, rank: int, world: int) -> tuple[int, list[int]]:
        """The number of a batch in the endless sequence of epochs, and the indices of its pairs."""
        number = ((step - 1) * self.recipe.accumulate + micro) * world + rank
        # Epochs differ by a batch or two, as ties are shuffled; the first one's length counts for all.
        batches = self.order(number // self.per_epoch)
        return number, batches[number % self.per_epoch % len(batches)]

    def align_weight(self, step: int) -> float:
        """How much the heads that are told where to look count in this update."""
        return self.recipe.align * max(0.0, 1.0 - (step - 1) / self.recipe.align_updates)

    def count(self, batch: Batch) -> int:
        """Target tokens, eos included."""
        return batch.labels.numel()

    def validation_batch(self, indices: Sequence[int]) -> Batch:
        """Pairs of the validation set as the network reads them."""
        return self.val.collate(indices, self.config.neighbourhood)

    def validation_loss(self) -> float:
        """Plain, in nats a token."""
        total, tokens = 0.0, 0
        for indices in self.val.batches(self.recipe.tokens, 0, 0):
            batch = self.validation_batch(indices).to(self.device)
            total += float(self.terms(batch)["nll"])
            tokens += self.count(batch)
        return total / tokens

    def header(self) -> dict[str, Any]:
        """What config.json says besides the network's sizes."""
        raise NotImplementedError

    def describe(self, folder: Path) -> None:
        """config.json and tokenizer.model: with any checkpoint's weights they make a folder that can be used.

        Dropout and label smoothing are of no use there, and a resumed run may have others: they are the size's own.
        """
        own = configs.preset(self.recipe.size)
        same = replace(self.config, dropout=own.dropout, label_smoothing=own.label_smoothing)
        save_config(folder, {"format": FORMAT, **self.header(), "transformer": same.to_dict()})
        self.tokenizer.save(folder / "tokenizer.model")

    def export(self, folder: Path) -> None:
        """config.json, model.safetensors (fp16), tokenizer.model."""
        folder.mkdir(parents=True, exist_ok=True)
        self.describe(folder)
        save_model(folder, load_config(folder), self.modules["model"].state_dict())
