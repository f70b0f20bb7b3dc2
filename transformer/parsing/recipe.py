"""Trains a Transformer on trees (section 6.3): `python -m transformer.train --preset parse --data DIR --run DIR`.

DIR holds train.mrg(.gz), and dev.mrg(.gz) where there is one: trees in Penn Treebank brackets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import training
from training.optimizers import muon_and_adam
from training.recipe import AT_LEAST_1, read_presets, setting
from transformer.data import Batch, ParallelData, read_splits
from transformer.loss import projected_cross_entropy
from transformer.options import SearchOptions
from transformer.parsing import evalb
from transformer.parsing.decode import Symbols
from transformer.parsing.linear import linearise, symbols
from transformer.parsing.parser import PAIR, Parser
from transformer.parsing.trees import TAG, TOP, Tree, indent_tree, read_trees
from transformer.parsing.words import leaves_to_words, sentence, word_starts
from transformer.task import TransformerRecipe, TransformerTask
from transformer.tokenizer import EOS, PAD, SPACE, Tokenizer

MAX_LENGTH = 1024  # positions of the model, either side
NEVER = -1e4  # logit bias of what is not a token of a tree
MAX_SCORE_LENGTH = 40  # most words of a tree that is scored during training
SUFFIXES = (".mrg", ".mrg.gz")


@dataclass
class ParseRecipe(TransformerRecipe):
    """Section 6.3 for a small treebank and a small machine."""

    former = {"copies": 0, "exchange": 0.25}  # lab.translator.variety writes them into the treebank
    bounds = {"cooldown": AT_LEAST_1}

    size: str = "parse"
    data: str = setting("", "folder with train.mrg(.gz) and, if there is one, dev.mrg(.gz); or one file")
    vocab_size: int = setting(6000, "joint vocabulary: word pieces and the tokens of trees")
    tokens: int = 3072
    max_length: int = setting(320, "longest sentence, and longest linearised tree, that is learned from")
    warmup: int = setting(150, "updates over which the rate rises")
    rate: float = setting(2e-3, "its height")
    cooldown: int = setting(1000, "last updates, over which it falls to 0")
    scored: int = setting(100, "validation trees of at most 40 words that every evaluation parses greedily; 0 = none")
    align: float = setting(1.0, "weight at the first update of guided attention: a head is to look at the next word")
    align_updates: int = 700

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

    def sizes(self) -> dict[str, Any]:
        """Those of every parser: trees may be longer than those that are learned from."""
        return {"max_length": MAX_LENGTH, "output_bias": True}


PRESETS = read_presets(__file__, "parse")


def load_splits(data: str | Path) -> tuple[list[Tree], list[Tree]]:
    """Training and validation trees; without a file for the latter, every twentieth tree is held out."""
    return read_splits(data, lambda path: list(read_trees(path)), "tree", ("train", "dev"), SUFFIXES, every=20)


def schedule(step: int, steps: int, rate: float, warmup: int, cooldown: int) -> float:
    """The learning rate of update `step` of `steps`: a linear rise over `warmup` updates, a
    plateau, and a linear fall over the last `cooldown`, to 0 after the end.
    """
    return rate * min(1.0, step / warmup, (steps + 1 - step) / cooldown)


class ParseTask(TransformerTask):
    """What the training loop needs to know of a Transformer that writes trees."""

    recipe: ParseRecipe
    formula = "rate · min(1, step / warmup, (steps + 1 − step) / cooldown)"

    def __init__(self, recipe: ParseRecipe) -> None:
        self.recipe = recipe
        train, dev = load_splits(recipe.data)
        labels = {label for tree in train for label, _, _ in tree.spans()} - {TOP}
        self.symbols = symbols(labels)
        self.tokenizer = self.vocabulary(train)
        self.kinds = self.tokenizer.id(self.symbols[-1]) + 1  # the ids below are the special tokens and those of trees
        self.leaf, self.blank = self.tokenizer.id(TAG), self.tokenizer.id(SPACE)
        self.dev = [tree for tree in dev if all(label in labels for label, _, _ in tree.spans() if label != TOP)]
        self.data, self.val = self.encode(train), self.encode(self.dev)
        self.starts = word_starts(self.tokenizer)
        self.build()
        assert self.model.output_bias is not None, "every size of a parser has it"
        if not recipe.initial:
            with torch.no_grad():
                self.model.output_bias[self.kinds :] = NEVER  # word pieces are read, never written
        optimizers = muon_and_adam(self.model)
        self.optimizers = {"matrices": optimizers["matrices"], "rest": optimizers["model"]}

    def vocabulary(self, trees: list[Tree]) -> Tokenizer:
        """The one that is known, else one learned from these trees' words."""
        tokenizer = self.known_vocabulary()
        if tokenizer is None:
            texts = (sentence(tree.words()) for tree in trees)
            return Tokenizer.train(texts, self.recipe.vocab_size, controls=self.symbols)
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
        batch, weight = self.data.collate(self.place(step, micro, rank, world)[1]), self.align_weight(step)
        return replace(self.with_words(batch), guide=weight * self.next_words(batch) if weight else None)

    def validation_batch(self, indices: Sequence[int]) -> Batch:
        """Validation pairs as the decoder reads them."""
        return self.with_words(super().validation_batch(indices))

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

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The smoothed loss, the plain one and that of guided attention, in nats, summed over tokens."""
        extra, read = {}, (batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
        hidden = self.networks["model"](*read, project=False, cross=batch.guide is not None)
        if batch.guide is not None:
            hidden, first, last = hidden
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
        return {"loss": self.validation_loss(), **self.f1()}

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

    def header(self) -> dict[str, Any]:
        """The tokens of trees."""
        return {"pairs": [PAIR], "symbols": self.symbols}


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return training.launch(
        ParseTask, ParseRecipe, PRESETS, argv, "Trains a Transformer to write trees by the recipe of section 6.3."
    )
