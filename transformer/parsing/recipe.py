"""Trains a Transformer on trees (section 6.3): `python -m transformer.train --preset parse --data DIR --run DIR`.

DIR holds train.mrg(.gz), and dev.mrg(.gz) where there is one: trees in Penn Treebank brackets.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

import training
from training import Recipe, Task
from training.optimizers import Muon
from training.recipe import AT_LEAST_1, SHARE, setting
from training.weights import fill, load_model, save_config, save_model
from transformer import config as configs
from transformer.config import TransformerConfig
from transformer.data import Batch, ParallelData
from transformer.loss import projected_cross_entropy
from transformer.model import Transformer
from transformer.options import SearchOptions
from transformer.parsing import evalb
from transformer.parsing.decode import Symbols
from transformer.parsing.linear import linearise, symbols
from transformer.parsing.parser import PAIR, Parser
from transformer.parsing.trees import TAG, TOP, Tree, indent_tree, read_trees
from transformer.parsing.variety import vary
from transformer.parsing.words import leaves_to_words, sentence, word_starts
from transformer.tokenizer import EOS, PAD, SPACE, Tokenizer
from transformer.translator import FORMAT

MAX_LENGTH = 1024  # positions of the model, either side
NEVER = -1e4  # logit bias of what is no token of a tree
MAX_SCORE_LENGTH = 40  # most words of a tree that is scored during training
SUFFIXES = (".mrg", ".mrg.gz")


@dataclass
class ParseRecipe(Recipe):
    """Section 6.3 for a small treebank and a small machine."""

    bounds = {
        "vocab_size": (1, 10**6),
        "tokens": AT_LEAST_1,
        "max_length": (2, 10**5),
        **dict.fromkeys(("warmup", "cooldown", "align_updates"), AT_LEAST_1),
        **dict.fromkeys(("dropout", "label_smoothing"), (-1, 1)),
        "exchange": SHARE,
    }

    size: str = setting("parse", "a name of config.PRESETS")
    data: str = setting("", "folder with train.mrg(.gz) and, if there is one, dev.mrg(.gz); or one file")
    vocab_size: int = setting(6000, "joint vocabulary: word pieces and the tokens of trees")
    tokens: int = setting(3072, "tokens of a micro-batch, each side")
    max_length: int = setting(320, "longest sentence, and longest linearised tree, that is learned from")
    warmup: int = setting(150, "updates over which the rate rises")
    rate: float = setting(2e-3, "its height")
    cooldown: int = setting(1000, "last updates, over which it falls to 0")
    dropout: float = setting(-1.0, "P_drop; -1 = as the size has it")
    label_smoothing: float = setting(-1.0, "epsilon_ls; -1 = as the size has it")
    scored: int = setting(100, "validation trees of at most 40 words that every evaluation parses greedily; 0 = none")
    align: float = setting(1.0, "weight at the first update of guided attention: a head is to look at the next word")
    align_updates: int = setting(700, "updates over which that weight falls to 0")
    copies: int = setting(0, "of the training trees and their clauses, with words exchanged; 0 = the trees alone")
    exchange: float = setting(0.25, "share of the words of open parts of speech that are exchanged in these copies")
    initial: str = setting("", "folder of a trained parser to start from, with its vocabulary")

    def check(self) -> None:
        """Raises `ValueError` with one sentence for fields that contradict each other."""
        super().check()
        if not self.data:
            raise ValueError("say where the trees are: --data FOLDER (with train.mrg or train.mrg.gz) or --data FILE.")
        if self.align < 0 or not 0 < self.rate < math.inf:
            raise ValueError("align is a weight of 0 or more, rate a learning rate above 0.")
        if self.tokens < self.max_length or not 2 <= self.max_length <= MAX_LENGTH:
            raise ValueError(
                f"max_length has to be from 2 to {MAX_LENGTH} and no more than tokens, got {self.max_length}."
            )

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """The model's configuration for a vocabulary of this size."""
        changes: dict[str, Any] = {"vocab_size": vocab_size, "max_length": MAX_LENGTH, "output_bias": True}
        if self.dropout >= 0:
            changes["dropout"] = self.dropout
        if self.label_smoothing >= 0:
            changes["label_smoothing"] = self.label_smoothing
        return configs.preset(self.size, **changes)


PRESETS: dict[str, dict] = {
    # CRAFT's 26,000 trees on one CPU core, about an hour
    "parse": {
        "steps": 2400,
        "dropout": 0.05,
        "save_every": 100,
        "evaluate_every": 400,
        "keep_last": 3,
        "precision": "bf16",
        "clip": 1.0,
        "threads": 1,
    },
}


def find_trees(data: str | Path, split: str) -> Path | None:
    """The file of a split ("train", "dev") in a folder, or None. `FileNotFoundError` if there is no such folder."""
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    return next((folder / f"{split}{suffix}" for suffix in SUFFIXES if (folder / f"{split}{suffix}").is_file()), None)


def load_splits(data: str | Path) -> tuple[list[Tree], list[Tree]]:
    """Training and validation trees; without a file for the latter, every twentieth tree is held out."""
    path = Path(data)
    train = path if path.is_file() else find_trees(path, "train")
    if train is None:
        raise FileNotFoundError(f"{path} holds no train.mrg or train.mrg.gz.")
    trees = list(read_trees(train))
    dev = None if path.is_file() else find_trees(path, "dev")
    if dev is not None:
        return trees, list(read_trees(dev))
    if len(trees) < 2:
        raise ValueError(f"{train.name} holds one tree only; training needs at least two.")
    every = min(20, len(trees))
    return [tree for i, tree in enumerate(trees) if i % every], trees[::every]


def schedule(step: int, steps: int, rate: float, warmup: int, cooldown: int) -> float:
    """The learning rate of update `step` of `steps`: a linear rise, a plateau, and a linear fall to 0 after the end."""
    return rate * min(1.0, step / warmup, (steps + 1 - step) / cooldown)


def parameter_groups(model: Transformer) -> tuple[list[Tensor], list[Tensor]]:
    """The matrices of the layers, which Muon moves, and everything else, which Adam does."""
    matrices: list[Tensor] = []
    rest: list[Tensor] = []
    for name, parameter in model.named_parameters():
        inner = parameter.ndim == 2 and name.split(".")[0] in ("encoder", "decoder")
        (matrices if inner else rest).append(parameter)
    return matrices, rest


class ParseTask(Task):
    """What the training loop needs to know of a Transformer that writes trees."""

    best = ("loss", "min")
    formula = "rate · min(1, step / warmup, (steps + 1 − step) / cooldown)"

    def __init__(self, recipe: ParseRecipe) -> None:
        self.recipe = recipe
        train, dev = load_splits(recipe.data)
        labels = {label for tree in train for label, _, _ in tree.spans()} - {TOP}
        self.symbols = symbols(labels)
        self.tokenizer = self.vocabulary(train)
        self.kinds = self.tokenizer.id(self.symbols[-1]) + 1  # the ids below are the special tokens and those of trees
        self.leaf, self.blank = self.tokenizer.id(TAG), self.tokenizer.id(SPACE)
        self.config = recipe.model_config(len(self.tokenizer))
        self.dev = [tree for tree in dev if all(label in labels for label, _, _ in tree.spans() if label != TOP)]
        if recipe.copies:
            train = vary(train, recipe.copies, recipe.exchange, recipe.seed)
        self.data, self.val = self.encode(train), self.encode(self.dev)
        self.starts = word_starts(self.tokenizer)
        torch.manual_seed(recipe.seed)
        model = Transformer(self.config)
        assert model.output_bias is not None, "every size of a parser has it"
        with torch.no_grad():
            model.output_bias[self.kinds :] = NEVER  # word pieces are read, never written
        if recipe.initial:
            fill(model, load_model(recipe.initial)[1], f"a parser of size '{recipe.size}'")
        self.modules = {"model": model}
        matrices, rest = parameter_groups(model)
        self.optimizers = {
            "matrices": Muon(matrices),
            "rest": torch.optim.Adam(rest, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True),
        }
        self.weights = {"loss": 1.0, "nll": 0.0}
        self.order = functools.lru_cache(maxsize=2)(lambda epoch: self.data.batches(recipe.tokens, recipe.seed, epoch))
        self.per_epoch = len(self.order(0))

    @property
    def model(self) -> Transformer:
        """The network itself."""
        return cast(Transformer, self.modules["model"])

    def vocabulary(self, trees: list[Tree]) -> Tokenizer:
        """That of `initial`, else the data folder's own where it has one, else one learned from these trees' words."""
        file = Path(self.recipe.initial or self.recipe.data) / "tokenizer.model"
        if not file.is_file() and not self.recipe.initial:
            return Tokenizer.train(
                (sentence(tree.words()) for tree in trees), self.recipe.vocab_size, controls=self.symbols
            )
        tokenizer = Tokenizer.load(file)
        Symbols(tokenizer, self.symbols, EOS)  # has to have them all
        return tokenizer

    def encode(self, trees: list[Tree]) -> ParallelData:
        """The ids of these trees' words and of their linearisations; those that are too long are left out."""
        encode = self.tokenizer.encode
        ids = (
            (encode(sentence(tree.words())), [self.tokenizer.id(token) for token in linearise(tree)]) for tree in trees
        )
        return ParallelData(ids, self.recipe.max_length)

    def learning_rates(self, step: int) -> dict[str, float]:
        """The same rate for both optimizers: Muon's updates are scaled to the size of Adam's."""
        recipe = self.recipe
        rate = schedule(step, recipe.steps, recipe.rate, recipe.warmup, recipe.cooldown)
        return dict.fromkeys(self.optimizers, rate)

    def batch(self, step: int, micro: int, rank: int, world: int) -> Batch:
        """The batch with this number in the endless sequence of epochs; a pure function of its arguments."""
        number = ((step - 1) * self.recipe.accumulate + micro) * world + rank
        batches = self.order(number // self.per_epoch)
        batch = self.data.collate(batches[number % self.per_epoch % len(batches)])
        weight = self.recipe.align * max(0.0, 1.0 - (step - 1) / self.recipe.align_updates)
        return replace(self.with_words(batch), guide=weight * self.next_words(batch) if weight else None)

    def with_words(self, batch: Batch) -> Batch:
        """The batch as the decoder reads it: each leaf's XX is the first piece of its word."""
        return replace(batch, tgt=leaves_to_words(batch.src, batch.tgt, self.starts, self.leaf, self.blank))

    def next_words(self, batch: Batch) -> Tensor:
        """(B, T, S): which pieces belong to the first word that has no leaf yet, rows of 1 or, beyond the tree, of 0.

        When all words have their leaves, that is the end token. batch: as collated, with XX.
        """
        src, tgt = batch.src, batch.tgt
        word = torch.where(src == PAD, -1, (self.starts[src] | (src == EOS)).long().cumsum(1) - 1)
        read = (tgt == self.leaf).long().cumsum(1)
        guide = (word[:, None, :] == read[:, :, None]).float()
        guide = guide / guide.sum(-1, keepdim=True).clamp_min(1.0)
        return guide * (tgt != PAD)[..., None]

    def count(self, batch: Batch) -> int:
        """Target tokens, eos included."""
        return batch.labels.numel()

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The smoothed loss that is minimised, the plain one, and that of guided attention, in nats, summed over
        tokens.
        """
        extra, network = {}, self.networks["model"]
        if batch.guide is None:
            hidden = network(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, project=False)
        else:
            hidden, first, last = network(
                batch.src, batch.tgt, batch.src_mask, batch.tgt_mask, project=False, cross=True
            )
            looks = first[:, 0].float().clamp_min(1e-6).log() + last[:, 0].float().clamp_min(1e-6).log()
            extra["align"] = -(batch.guide * looks).sum()
        hidden = hidden.flatten(0, 1).index_select(0, batch.positions)
        model, kinds = self.model, self.kinds
        # The other rows of the matrix have a probability of 0 (NEVER), so they may as well be left out.
        assert model.output_bias is not None
        loss, plain = projected_cross_entropy(
            hidden, model.embedding.weight[:kinds], model.output_bias[:kinds], batch.labels, self.config.label_smoothing
        )
        return {"loss": loss, "nll": plain, **extra}

    def evaluate(self) -> dict[str, float]:
        """Validation loss (plain, nats a token), and F1 of the `scored` trees."""
        device = next(self.modules["model"].parameters()).device
        total, tokens = 0.0, 0
        for indices in self.val.batches(self.recipe.tokens, 0, 0):
            batch = self.with_words(self.val.collate(indices)).to(device)
            total += float(self.terms(batch)["nll"])
            tokens += self.count(batch)
        return {"loss": total / tokens, **self.f1()}

    def parser(self) -> Parser:
        """A Parser of the weights as they are now."""
        return Parser(self.model, self.tokenizer, self.symbols)

    def f1(self) -> dict[str, float]:
        """Labelled F1 in percent of the first `scored` short validation trees; empty without any."""
        gold = [tree for tree in self.dev if len(tree.leaves()) <= MAX_SCORE_LENGTH][: self.recipe.scored]
        if not gold:
            return {}
        parses = self.parser().parse_words([tree.words() for tree in gold], SearchOptions(beam=1))
        return {"f1": evalb.score(zip(gold, (sentence.trees[0] for sentence in parses))).f1}

    def sample(self, folder: Path, step: int) -> None:
        """The first validation trees, and what the network makes of their words."""
        gold = [tree for tree in self.dev if len(tree.leaves()) <= MAX_SCORE_LENGTH][:4]
        parses = self.parser().parse_words([tree.words() for tree in gold], SearchOptions(beam=1)) if gold else []
        lines = [
            f"reference\n{indent_tree(tree)}\nfound\n{indent_tree(own.trees[0])}\n" for tree, own in zip(gold, parses)
        ]
        (folder / "trees.txt").write_text("\n".join(lines), encoding="utf-8")

    def describe(self, folder: Path) -> None:
        """config.json and tokenizer.model: with any checkpoint's weights they make a folder that parses."""
        self.save_header(folder)

    def save_header(self, folder: Path) -> dict:
        """Writes everything that a parser's folder holds except the weights; returns what stands in config.json."""
        own = configs.preset(self.recipe.size)
        same = replace(self.config, dropout=own.dropout, label_smoothing=own.label_smoothing)
        header = {"format": FORMAT, "pairs": [PAIR], "symbols": self.symbols, "transformer": same.to_dict()}
        save_config(folder, header)
        self.tokenizer.save(folder / "tokenizer.model")
        return header

    def export(self, folder: Path) -> None:
        """config.json, model.safetensors (fp16), tokenizer.model."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_model(folder, self.save_header(folder), self.modules["model"].state_dict())


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return training.launch(
        ParseTask, ParseRecipe, PRESETS, argv, "Trains a Transformer to write trees by the recipe of section 6.3."
    )
