"""Trains a translator on many sources of text at once: `python -m lab.translator.train --data DIR --run DIR`.

DIR is a folder of `transformer.prepare`, whose column `origin` says where each pair came from. Every option of
`python -m transformer.train` is one here, too; runs that it began on a mixture go on here.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import training
from lab.translator.divergence import projected_divergence
from lab.translator.mixture import GENERAL, Mixture, parse_factors, read_rows, spread, token_lengths
from lab.translator.noise import as_heading, with_names, with_noise
from training.memory import keep_memory
from training.optimizers import muon_and_adam
from training.recipe import SHARE, setting
from transformer.data import Batch, ParallelData
from transformer.text.verbatim import with_stand_ins
from transformer.tokenizer import language_token
from transformer.train import PRESETS, TranslationRecipe, TranslationTask

OPTIMIZERS = ("adam", "muon")
PER_SOURCE = 60  # validation pairs of each source and direction

# The last part of the shipped weights (assets/models/everyday/CARD.md): what visitors meet first is learned on one
# processor thread, while news, encyclopedic text and talk hold the model to what it said before. The worth of a large
# source is low, so that some thousands of its pairs come up; a word list as it stands (`ding`) is no text.
KINDS = {
    **PRESETS["everyday"],
    "learned": "hardwords hardbasics basics stops words notices lists names short numbers sense turns lexicon "
    "dingphrases interface tatoeba phrasebook hours written",
    "mixture": "hardwords=260 hardbasics=240 basics=30 stops=6 words=16 notices=20 lists=16 names=10 short=40 "
    "numbers=12 sense=14 turns=14 lexicon=4 dingphrases=1.3 interface=1.0 tatoeba=0.8 phrasebook=3 "
    "hours=6 written=3 rarer=1.5 wmt_news.en-de=2 wmt_news.en-fr=4 news_commentary=3 xquad=14 mlqe_pe=6 "
    "pud=14 ntrex=14 covost=1.2 klexikon_back=0.12 hansard=0.06 europarl=0.6 opensubtitles=0.5 "
    "wesnoth=0.28 chat24=1 bcontrast=1 books=1 guides=0.8 train=0.1 dynamics365=0.1 debian_web=0.12 "
    "ding=0",
    "temperature": 1.0,
    "one_way": "klexikon_back hard",
    "noise": 0.2,
    "names": 0.5,
    "headings": 0.4,
    "stand_ins": 0.1,
    "align": 0.0,
    "dropout": 0.0,
    "rate": 3e-4,
    "warmup": 20,
    "decay": 0.7,
    "steps": 300,
    "tokens": 1280,
    "max_length": 80,
    "accumulate": 3,
    "seed": 373,
    "threads": 1,
    "bleu": 0,
    "save_every": 25,
    "keep_last": 6,
    "evaluate_every": 300,
    "log_every": 10,
}


def trapezoid(step: int, steps: int, warmup: int, decay: float) -> float:
    """Share of the full rate in [0, 1]: rises over `warmup` updates, stays, and falls to 0 over the last ones.

    step: number of the update, from 1.
    steps: updates in all.
    decay: share of them over which it falls (Hu et al. 2024, "warmup-stable-decay"), in [0, 1].
    Raises `ValueError` for a step or a warm-up below 1, or another decay.
    """
    if step < 1 or warmup < 1 or not 0.0 <= decay <= 1.0:
        raise ValueError(f"step and warmup are 1 or more and decay is in [0, 1]; got {step}, {warmup} and {decay}.")
    falling = (steps - step) / (decay * steps) if decay and step > steps * (1.0 - decay) else 1.0
    return max(0.0, min(1.0, step / warmup, falling))


@dataclass
class MixtureRecipe(TranslationRecipe):
    """A translator's recipe, and how often each source of its text is drawn."""

    bounds = dict.fromkeys(("decay", "noise", "names", "headings", "sampled"), SHARE)

    optimizer: str = setting("adam", '"adam" (5.3), or "muon" for the matrices of linear layers (training.optimizers)')
    rate: float = setting(0.0, "a rate of its own for `trapezoid`, after `warmup` updates; 0 = equation 3")
    decay: float = setting(0.3, "share of all updates over which that rate falls to 0")
    mixture: str = setting("", 'worth of sources and directions, "news=3 en-fr=1.5"; empty = all alike')
    temperature: float = setting(1.5, "the higher, the more equal sources of different sizes")
    one_way: str = setting(
        "", "beginnings of the names of sources learned only in the direction that the name ends with"
    )
    noise: float = setting(0.0, "share of the pairs whose source is written as visitors write")
    names: float = setting(0.0, "share of the pairs with Tom or Mary in which names stand that are words")
    headings: float = setting(0.0, "share of the words and short phrases that are written as headings")
    sampled: float = setting(0.0, "share of the batches cut into pieces by subword regularisation")
    learned: str = setting("", "sources that are learned, while the others hold the model to `initial`; empty = all")

    def check(self) -> None:
        """As `TranslationRecipe.check`."""
        super().check()
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer has to be one of {', '.join(OPTIMIZERS)}; got {self.optimizer!r}.")
        if not 0.0 <= self.rate < 1.0:
            raise ValueError("rate has to be in [0, 1).")
        if not self.temperature > 0:
            raise ValueError(f"temperature has to be above 0, got {self.temperature}.")
        parse_factors(self.mixture)
        if not all(self.languages()[0] in pair for pair in self.pairs()):
            raise ValueError("the directions of a mixture have one language in common, which each pair of it has.")
        if self.learned and not self.initial:
            raise ValueError("learned names sources of a mixture, and needs the trained weights that hold the rest.")

    def languages(self) -> list[str]:
        """Every language of the directions, the one that they have in common first."""
        names = [name for pair in self.pairs() for name in pair]
        return sorted(dict.fromkeys(names), key=lambda name: -names.count(name))


class MixtureTask(TranslationTask):
    """A Transformer that learns from a mixture of sources (`lab.translator.mixture`)."""

    recipe: MixtureRecipe
    data: Mixture

    def __init__(self, recipe: MixtureRecipe) -> None:
        super().__init__(recipe)
        if recipe.optimizer == "muon":
            self.optimizers = muon_and_adam(self.model)

    def learning_rates(self, step: int) -> dict[str, float]:
        """Equation 3, or the trapezoid of a rate of its own; the same for both optimizers."""
        recipe = self.recipe
        if not recipe.rate:
            return super().learning_rates(step)
        rate = recipe.rate * trapezoid(step, recipe.steps, recipe.warmup, recipe.decay)
        return dict.fromkeys(self.optimizers, rate)

    def load_data(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """As `TranslationTask.load_data`, for a folder of many sources that are drawn by their worth.

        The validation pairs are `PER_SOURCE` of each general source and direction, always the same ones.
        """
        recipe, folder = self.recipe, Path(self.recipe.data)
        rows, held_out = (read_rows(folder / f"{name}.tsv.gz", recipe.languages()) for name in ("train", "val"))
        self.tokenizer = self.vocabulary([[row.texts for row in rows]])
        prefixes = {pair: [self.tokenizer.id(language_token(pair[1]))] * (len(self.pairs) > 1) for pair in self.pairs}
        common = (self.tokenizer, recipe.max_length, prefixes)
        self.data = Mixture(
            rows,
            *common,
            factors=parse_factors(recipe.mixture),
            temperature=recipe.temperature,
            one_way=recipe.one_way,
            change=self.change,
            sampled=recipe.sampled,
            lengths=token_lengths(rows, self.tokenizer, folder),
        )
        whole = Mixture(held_out, *common, one_way=recipe.one_way)
        self.by_source = spread(whole, PER_SOURCE)
        every = [index for indices in self.by_source.values() for index in indices]
        self.val = ParallelData([whole.ids(index) for index in every])
        numbers = dict(zip(every, range(len(every))))
        self.by_source = {name: [numbers[i] for i in indices] for name, indices in self.by_source.items()}
        self.characters = [len(whole.text(index)[1]) for index in every]
        texts: dict[tuple[str, str], list[tuple[str, str]]] = {pair: [] for pair in self.pairs}
        for index in every:
            texts[self.pairs[whole.direction[index]]].append(whole.text(index))
        return texts

    def change(self, source: str, target: str, draw: random.Random) -> tuple[str, str]:
        """A pair as it is learned this time: some with other names, some with stand-ins, some with noise."""
        if self.recipe.names and draw.random() < self.recipe.names:
            source, target = with_names(source, target, draw)
        if self.recipe.headings and draw.random() < self.recipe.headings:
            source, target = as_heading(source, target, draw)
        if draw.random() < self.recipe.stand_ins:
            source, target = with_stand_ins(source, target, draw)
        return with_noise(source, target, draw) if draw.random() < self.recipe.noise else (source, target)

    def collate(self, indices: Sequence[int], number: int) -> Batch:
        """As `TranslationTask.collate`; how the pairs are changed this time is a function of the number."""
        draw = random.Random(f"{self.recipe.seed}/{number}")
        return self.data.collate(indices, self.config.neighbourhood, draw)

    def evaluate(self) -> dict[str, float]:
        """As `TranslationTask.evaluate`; the loss is the mean over general sources and directions, in nats a character,
        and `narrow` that over the others.
        """
        device = next(self.modules["model"].parameters()).device
        return {**self.losses_by_source(device), **self.bleu()}

    def losses_by_source(self, device: torch.device) -> dict[str, float]:
        """`loss` and `narrow`: means over sources and directions; general sources one by one, too.

        In nats a character of the target, so that vocabularies can be compared.
        """
        sums: dict[str, list[float]] = {}
        for name, indices in self.by_source.items():
            part, total = ParallelData([self.val.pairs[i] for i in indices]), 0.0
            for numbers in part.batches(self.recipe.tokens, 0, 0):
                batch = part.collate(numbers, self.config.neighbourhood).to(device)
                total += float(self.learning(batch)["nll"])
            characters = sum(self.characters[i] for i in indices)
            sums.setdefault(name.split(".")[0], []).append(total / characters)
        general = {name: losses for name, losses in sums.items() if name in GENERAL}
        narrow = [loss for name, losses in sums.items() if name not in GENERAL for loss in losses]
        figures = {name: sum(losses) / len(losses) for name, losses in general.items()}
        every = [loss for losses in general.values() for loss in losses] or narrow
        return {"loss": sum(every) / len(every), **({"narrow": sum(narrow) / len(narrow)} if narrow else {}), **figures}


@dataclass
class AnchoredBatch(Batch):
    """A batch some of whose sentences are not learned."""

    anchors: Tensor | None = None  # (B,) True = the model is held there to the one that it began with


class AnchoredTask(MixtureTask):
    """Learns some sources of a mixture, while the others hold the model to the one that it began with (Dakwale and Monz
    2017; Khayrallah et al. 2018).
    """

    def __init__(self, recipe: MixtureRecipe) -> None:
        super().__init__(recipe)
        self.before = copy.deepcopy(self.model).eval().requires_grad_(False)

    def load_data(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """As `MixtureTask.load_data`. Raises `ValueError` for a source that is not there."""
        texts = super().load_data()
        strangers = set(self.recipe.learned.split()) - {row.origin.split(".")[0] for row in self.data.rows}
        if strangers:
            raise ValueError(f"the mixture has no source {', '.join(sorted(strangers))} to learn.")
        return texts

    def batch(self, step: int, micro: int, rank: int, world: int) -> AnchoredBatch:
        """As `TranslationTask.batch`, with the sentences that are not learned marked."""
        batch, (_, indices) = super().batch(step, micro, rank, world), self.place(step, micro, rank, world)
        sources = self.recipe.learned.split()
        origins = [self.data.origin(index).split(".")[0] for index in indices]
        anchors = torch.tensor([origin not in sources for origin in origins])
        return AnchoredBatch(**{**vars(batch), "in_parts": ()}, anchors=anchors)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """`loss` and `nll` are those of the learned sentences, `held` is the divergence of the others from what the
        model said of them before, in nats summed over target tokens.
        """
        if not isinstance(batch, AnchoredBatch) or batch.anchors is None:
            return super().terms(batch)
        if batch.dropout is not None:
            self.model.set_dropout(batch.dropout)
        terms: dict[str, Tensor] = {}
        if not bool(batch.anchors.all()):
            terms |= self.learning(batch.rows((~batch.anchors).nonzero()[:, 0]))
        if bool(batch.anchors.any()):
            terms["held"] = self.divergence(batch.rows(batch.anchors.nonzero()[:, 0]))
        nothing = batch.src.new_zeros((), dtype=torch.float32)
        return {"loss": nothing, "nll": nothing, "held": nothing} | terms

    def divergence(self, batch: Batch) -> Tensor:
        """KL(before || now) of the sentences' target tokens, summed, in nats."""
        states, targets = [], []
        before = self.before.to(batch.src.device)
        for part in batch.parts():
            read = part.src, part.tgt, part.src_mask, part.tgt_mask
            hidden = self.networks["model"](*read, project=False)
            states.append(hidden.flatten(0, 1).index_select(0, part.positions))
            with torch.no_grad():
                targets.append(before(*read, project=False).flatten(0, 1).index_select(0, part.positions))
        now = self.model.embedding.weight, self.model.output_bias
        then = before.embedding.weight, before.output_bias
        return projected_divergence(torch.cat(states), *now, torch.cat(targets), *then)


def task_of(recipe: MixtureRecipe) -> MixtureTask:
    """The task of a recipe: anchored where it names what is learned."""
    return AnchoredTask(recipe) if recipe.learned else MixtureTask(recipe)


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    presets = {**{name: PRESETS[name] for name in ("everyday", "small", "base", "big", "quick")}, "kinds": KINDS}
    return training.launch(task_of, MixtureRecipe, presets, argv, __doc__)


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
