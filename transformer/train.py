"""Trains a Transformer by the recipe of section 5: `python -m transformer.train --preset multi30k --data DIR --run
DIR`.

DIR holds train.tsv(.gz) or train.csv(.gz), and val.* where there is one, with one column a language:
`--source en --target de` names the columns. A single file works too; then one pair in a hundred is held out.

`--directions "en-de de-en en-fr fr-en"` trains one model for all of these: a token before the source names the target
language. Rows without text in one of a direction's two columns are no pairs of it. `python -m transformer.prepare`
makes such tables, and with them `DIR/tokenizer.model`, which is used where it exists.

Several processes, one a card, or a few on a CPU without any card:
`accelerate launch --multi_gpu --num_processes 2 -m transformer.train ...`. (With `--cpu`, accelerate itself starts one
process whatever the number.) torchrun wants two dashes before the module, or it takes `--run` for an option of its own:
`torchrun --nproc_per_node 2 -m -- transformer.train ...`.
"""

from __future__ import annotations

import functools
import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

import training
from training import Recipe, Task
from training.arguments import CommandLine
from training.command import one_sentence
from training.memory import keep_memory
from training.optimizers import muon_and_adam
from training.recipe import AT_LEAST_1, SHARE, setting
from training.run import Run
from training.weights import fill, load_model, save_config, save_model
from transformer import align, grammar
from transformer import config as configs
from transformer.config import TransformerConfig
from transformer.data import PART, Batch, ParallelData, find_split, read_parallel
from transformer.loss import projected_cross_entropy
from transformer.model import Transformer
from transformer.options import SearchOptions
from transformer.schedule import dropout_at, learning_rate, trapezoid
from transformer.text.verbatim import with_stand_ins
from transformer.tokenizer import PAD, STAND_INS, UNK, Tokenizer, language_token
from transformer.translator import FORMAT, Translator


@dataclass
class TranslationRecipe(Recipe):
    """Section 5 of the paper, and where the text is. Figures are the paper's unless a preset says otherwise."""

    # Mixtures of sources have a recipe of their own since (lab.translator.train).
    former = {"mixture": "", "temperature": 1.5, "one_way": "", "noise": 0.0, "sampled": 0.0, "learned": ""}

    bounds = {
        "vocab_size": (1, 10**6),
        "tokens": AT_LEAST_1,
        "max_length": (2, 10**5),
        "warmup": AT_LEAST_1,
        "align_updates": AT_LEAST_1,
        **dict.fromkeys(("stand_ins", "decay"), SHARE),
        **dict.fromkeys(("dropout", "label_smoothing"), (-1, 1)),
    }

    size: str = setting("base", "a name of config.PRESETS")
    data: str = setting(
        "", 'folder with train.* and val.*, or one file, or "grammar" for the sentences of transformer.grammar'
    )
    source: str = setting("en", "column of the source")
    target: str = setting("de", "column of the target")
    directions: str = setting("", 'several "source-target" with blanks between; instead of source and target')
    stand_ins: float = setting(
        0.0, "share of the pairs with a common name or number that learn to copy it (transformer.text.verbatim)"
    )
    vocab_size: int = setting(37000, "joint vocabulary (5.1)")
    tokens: int = setting(25000, "tokens of a micro-batch, each side (5.1)")
    max_length: int = setting(512, "longest sentence in tokens")
    warmup: int = setting(4000, "warm-up steps of equation 3 (5.3)")
    rate_scale: float = setting(1.0, "factor on equation 3; the paper has 1")
    rate: float = setting(0.0, "a rate of its own for schedule.trapezoid, after `warmup` updates; 0 = equation 3")
    decay: float = setting(0.3, "share of all updates over which that rate falls to 0")
    optimizer: str = setting("adam", '"adam" (5.3), or "muon" for the matrices of linear layers (training.optimizers)')
    dropout: float = setting(-1.0, "P_drop; -1 = as the size has it")
    align: float = setting(
        0.0, "weight of guided alignment at the first update (transformer.align); the paper has none"
    )
    align_updates: int = setting(4000, "updates over which that weight falls to 0")
    dropout_ramp: int = setting(
        0, "updates over which P_drop rises from 0 (schedule.ramped_dropout); the paper has none"
    )
    label_smoothing: float = setting(-1.0, "epsilon_ls; -1 = as the size has it")
    neighbourhood: int = setting(0, "r of restricted self-attention; 0 = unrestricted")
    average: int = setting(5, "checkpoints averaged for the exported weights (6.1)")
    initial: str = setting("", "folder of a trained model to start from, with its vocabulary")
    bleu: int = setting(100, "validation sentences that every evaluation translates greedily and scores; 0 = none")

    def check(self) -> None:
        """Raises `ValueError` with one sentence for fields that contradict each other."""
        super().check()
        if not self.data:
            raise ValueError("say where the text is: --data FOLDER (with train.tsv or train.csv) or --data FILE.")
        for source, target in self.pairs():
            self.check_columns(source, target)
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer has to be one of {', '.join(OPTIMIZERS)}; got {self.optimizer!r}.")
        if not 0.0 <= self.rate < 1.0:
            raise ValueError("rate has to be in [0, 1).")
        if self.tokens < self.max_length:
            raise ValueError(f"a batch of {self.tokens} tokens cannot hold a sentence of max_length {self.max_length}.")

    def pairs(self) -> list[tuple[str, str]]:
        """(source, target) of each direction. Raises `ValueError` if `directions` is not written as it should be."""
        if not self.directions.split():
            return [(self.source, self.target)]
        unique: dict[tuple[str, str], None] = {}  # in their order
        for text in self.directions.replace(",", " ").split():
            source, dash, target = text.partition("-")
            if not (source and target) or "-" in target:
                raise ValueError(f'directions are written like "en-de de-en"; got {self.directions!r}.')
            unique[source, target] = None
        return list(unique)

    @staticmethod
    def check_columns(source: str, target: str) -> None:
        """Raises `ValueError` if both are the same."""
        if source == target:
            raise ValueError(f"source and target are both the column {source!r}; name two different columns.")

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """The model's configuration for a vocabulary of this size."""
        changes: dict[str, Any] = {
            "vocab_size": vocab_size,
            "max_length": self.max_length,
            "neighbourhood": self.neighbourhood,
        }
        if self.dropout >= 0:
            changes["dropout"] = self.dropout
        if self.label_smoothing >= 0:
            changes["label_smoothing"] = self.label_smoothing
        return configs.preset(self.size, **changes)


OPTIMIZERS = ("adam", "muon")
SAMPLE_LENGTH = 48  # most tokens of a sample translation
MAX_SCORE_LENGTH = 64  # most tokens, on either side, of a sentence that is scored during training
GREEDY = SearchOptions(beam=1, alpha=0.0, max_length=MAX_SCORE_LENGTH)  # the search whose BLEU an evaluation tells

PRESETS: dict[str, dict] = {
    # two minutes on a laptop, with nothing to download: the sentences of transformer.grammar
    "tiny": {
        "size": "mini",
        "data": grammar.NAME,
        "vocab_size": 300,
        "tokens": 1024,
        "max_length": 64,
        "warmup": 150,
        "rate_scale": 0.3,
        "dropout": 0.0,
        "steps": 800,
        "log_every": 10,
        "save_every": 100,
        "evaluate_every": 100,
        "keep_last": 9,
        "average": 3,
        "threads": 1,
    },
    # Multi30k on one CPU core, 0.3 s an update; the start of the shipped weights. So narrow a model needs a low rate:
    # with a peak above 2e-3 its attention over the source stays uniform, and it learns a bag of words.
    "multi30k": {
        "size": "tiny",
        "vocab_size": 8000,
        "tokens": 2048,
        "warmup": 400,
        "rate_scale": 0.2,
        "dropout": 0.1,
        "steps": 8000,
        "save_every": 100,
        "evaluate_every": 400,
        "keep_last": 8,
        "average": 8,
    },
    # a few hundred thousand pairs of general text in several directions, one CPU core, 1.5 s an update, over days:
    # nothing is seen more than a few times, so little dropout. Without guided alignment its encoder gave every position
    # the same output after 2,000 updates, and there was nothing left to attend to.
    "everyday": {
        "size": "everyday-large",
        "vocab_size": 16000,
        "directions": "en-de de-en en-fr fr-en",
        "stand_ins": 0.25,
        "tokens": 2048,
        "max_length": 160,
        "align": 1.0,
        "align_updates": 4000,
        "warmup": 600,
        "rate_scale": 0.25,
        "dropout": 0.05,
        "steps": 40000,
        "save_every": 200,
        "evaluate_every": 600,
        "keep_last": 8,
        "average": 8,
        "precision": "bf16",
    },
    # one GPU, a few hundred thousand pairs
    "small": {
        "size": "small",
        "vocab_size": 16000,
        "tokens": 16384,
        "warmup": 4000,
        "steps": 40000,
        "save_every": 1000,
        "evaluate_every": 2000,
        "keep_last": 5,
        "precision": "bf16",
    },
    # the paper: 8 GPUs, or accumulation
    "base": {"size": "base", "steps": 100000, "save_every": 1000, "evaluate_every": 5000, "keep_last": 5},
    "big": {"size": "big", "steps": 300000, "save_every": 1000, "evaluate_every": 5000, "keep_last": 20, "average": 20},
    # two minutes on a CPU with any small table, to see everything move
    "quick": {
        "size": "mini",
        "vocab_size": 1000,
        "tokens": 2048,
        "warmup": 100,
        "rate_scale": 0.25,
        "steps": 300,
        "save_every": 100,
        "evaluate_every": 100,
        "keep_last": 3,
        "average": 3,
    },
}


def swap(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same pairs in the other direction."""
    return [(target, source) for source, target in pairs]


def load_splits(
    recipe: TranslationRecipe, source: str | None = None, target: str | None = None
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Training and validation pairs of one direction, by default the recipe's source and target.

    Without a validation file, every hundredth pair (at least one) is held out.
    """
    source, target = source or recipe.source, target or recipe.target
    if recipe.data == grammar.NAME:
        if {source, target} != {"en", "de"}:
            raise ValueError(f"The sentences of {grammar.NAME!r} are in en and de, not in {source} and {target}.")
        train, val = grammar.splits()
        return (train, val) if source == "en" else (swap(train), swap(val))
    path = Path(recipe.data)
    one_file = path.is_file()
    table = path if one_file else find_split(path, "train")
    held_out = None if one_file else find_split(path, "val")
    if table is None:
        raise FileNotFoundError(f"{path} holds no train.tsv, train.tsv.gz, train.csv or train.csv.gz.")
    pairs = read_parallel(table, source, target)
    if held_out is not None:
        return pairs, read_parallel(held_out, source, target)
    if len(pairs) < 2:
        raise ValueError(f"{table.name} holds one pair only; training needs at least two.")
    every = min(100, len(pairs))
    return [p for i, p in enumerate(pairs) if i % every], pairs[::every]


class TranslationTask(Task):
    """What the training loop needs to know of a Transformer."""

    best = ("loss", "min")
    data: Any  # `ParallelData`, or what has its `batches` and `collate`
    formula = "scale · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)   (equation 3)"

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe = recipe
        self.pairs = recipe.pairs()
        held_out = self.load_data()
        self.config = recipe.model_config(len(self.tokenizer))
        self.val_text = [(pair, val[: 8 if len(self.pairs) == 1 else 4]) for pair, val in held_out.items()]
        self.score_texts = [(pair, self.to_score(val)) for pair, val in held_out.items()]
        torch.manual_seed(recipe.seed)
        model = Transformer(self.config)
        if recipe.initial:
            fill(model, load_model(recipe.initial)[1], f"a Transformer of size '{recipe.size}'")
        self.modules = {"model": model}
        self.table: Tensor | None = None  # of transformer.align
        # beta and epsilon of section 5.3; the rate is set before each update
        if recipe.optimizer == "muon":
            self.optimizers = muon_and_adam(model, betas=(0.9, 0.98), eps=1e-9)
        else:
            self.optimizers = {
                "model": torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
            }
        self.weights = {"loss": 1.0, "nll": 0.0}
        self.order = functools.lru_cache(maxsize=2)(lambda epoch: self.data.batches(recipe.tokens, recipe.seed, epoch))
        self.per_epoch = len(self.order(0))

    @property
    def model(self) -> Transformer:
        """The network itself."""
        return cast(Transformer, self.modules["model"])

    def load_data(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Makes `tokenizer`, `data` and `val` of the splits' pairs; returns the validation pairs of each direction."""
        splits = {pair: load_splits(self.recipe, *pair) for pair in self.pairs}
        self.tokenizer = self.vocabulary([train for train, _ in splits.values()])
        shares = self.recipe.stand_ins
        self.data = ParallelData.join([self.encode(train, pair, shares) for pair, (train, _) in splits.items()])
        self.val = ParallelData.join([self.encode(val, pair) for pair, (_, val) in splits.items()])
        return {pair: val for pair, (_, val) in splits.items()}

    def vocabulary(self, texts: list[list[tuple[str, str]]]) -> Tokenizer:
        """That of `initial`, else the data folder's own, else one that is learned from these training pairs."""
        file = Path(self.recipe.initial or self.recipe.data) / "tokenizer.model"
        languages = list(dict.fromkeys(name for pair in self.pairs for name in pair)) if len(self.pairs) > 1 else []
        if not file.is_file() and not self.recipe.initial:
            sentences: Iterable[str] = (text for part in texts for pair in part for text in pair)
            if languages:  # each sentence comes in two directions
                sentences = dict.fromkeys(sentences)
            return Tokenizer.train(sentences, self.recipe.vocab_size, languages, stand_ins=self.recipe.stand_ins > 0)
        tokenizer = Tokenizer.load(file)
        pieces = [language_token(target) for _, target in self.pairs] if languages else []
        pieces += STAND_INS if self.recipe.stand_ins else ()
        missing = [piece for piece in pieces if tokenizer.id(piece) == UNK]
        if missing:
            raise ValueError(f"{file} has no piece {', '.join(missing)}; make it again for these directions.")
        return tokenizer

    def to_score(self, val: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """This direction's share of the `bleu` sentences: spread evenly over its validation pairs, always the same
        ones.

        Long ones are left out, since an untrained network goes on to the limit, and those with unknown characters.
        """
        share = min(len(val), math.ceil(self.recipe.bleu / len(self.pairs)))
        pairs = [val[i * len(val) // share] for i in range(share)]
        longest = min(MAX_SCORE_LENGTH, self.recipe.max_length - 2)

        def fits(text: str) -> bool:
            ids = self.tokenizer.encode(text)
            return len(ids) <= longest and UNK not in ids

        return [pair for pair in pairs if all(map(fits, pair))]

    def encode(self, texts: list[tuple[str, str]], pair: tuple[str, str], stand_ins: float = 0.0) -> ParallelData:
        """The ids of one direction's pairs, some with stand-ins; which ones is a function of the seed alone."""
        prefix = [self.tokenizer.id(language_token(pair[1]))] if len(self.pairs) > 1 else []
        if stand_ins:
            draw = random.Random(f"{self.recipe.seed}/{'-'.join(pair)}")
            texts = [with_stand_ins(*text, draw) if draw.random() < stand_ins else text for text in texts]
        return ParallelData.encode(texts, self.tokenizer, self.recipe.max_length, prefix)

    def learning_rates(self, step: int) -> dict[str, float]:
        """Equation 3, or the trapezoid of a rate of its own; the same for both optimizers."""
        recipe = self.recipe
        if recipe.rate:
            rate = recipe.rate * trapezoid(step, recipe.steps, recipe.warmup, recipe.decay)
        else:
            rate = learning_rate(step, self.config.d_model, recipe.warmup, recipe.rate_scale)
        return dict.fromkeys(self.optimizers, rate)

    def batch(self, step: int, micro: int, rank: int, world: int) -> Batch:
        """The batch with this number in the endless sequence of epochs; a pure function of its arguments."""
        number, indices = self.place(step, micro, rank, world)
        batch = self.collate(indices, number)
        batch = replace(batch, dropout=dropout_at(step, self.config.dropout, self.recipe.dropout_ramp))
        weight = self.recipe.align * max(0.0, 1.0 - (step - 1) / self.recipe.align_updates)
        if weight:
            batch = replace(batch, guide=weight * self.guide(batch))
        if next(self.model.parameters()).is_cuda:
            batch = replace(batch, in_parts=tuple(batch.parts(PART["cuda"])))
        return batch

    def place(self, step: int, micro: int, rank: int, world: int) -> tuple[int, list[int]]:
        """The number of a batch in the endless sequence of epochs, and the indices of its pairs."""
        number = ((step - 1) * self.recipe.accumulate + micro) * world + rank
        # Epochs differ by a batch or two, as ties are shuffled; the first one's length counts for all.
        batches = self.order(number // self.per_epoch)
        return number, batches[number % self.per_epoch % len(batches)]

    def collate(self, indices: Sequence[int], number: int) -> Batch:
        """The pairs of a batch; number: of the batch in the endless sequence."""
        return self.data.collate(indices, self.config.neighbourhood)

    def guide(self, batch: Batch) -> Tensor:
        """Where each target word is to look, (B, T, S), by `transformer.align`."""
        if self.table is None:  # only now: a run that is past this phase has no use for it
            self.table = align.model_1(self.data, self.config.vocab_size)
        rows = align.target_rows(batch.labels, batch.positions, batch.tgt.shape)
        return align.posterior(self.table, batch.src, rows) * (rows != PAD)[..., None]

    def count(self, batch: Batch) -> int:
        """Target tokens, eos included."""
        return batch.labels.numel()

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The smoothed loss that is minimised, the plain one, and that of guided alignment, in nats summed over target
        tokens.
        """
        if batch.dropout is not None:
            self.model.set_dropout(batch.dropout)
        return self.learning(batch)

    def learning(self, batch: Batch) -> dict[str, Tensor]:
        """`terms` at the dropout that is set."""
        states, labels = [], []
        extra: dict[str, Tensor] = {}
        for part in batch.parts():
            hidden = self.networks["model"](
                part.src, part.tgt, part.src_mask, part.tgt_mask, project=False, cross=part.guide is not None
            )
            if part.guide is not None:
                hidden, first, last = hidden
                extra["align"] = extra.get("align", first.new_zeros(())) + align.loss(part.guide, first, last)
            # Only real positions reach the vocabulary: padding would cost as much as a word there.
            states.append(hidden.flatten(0, 1).index_select(0, part.positions))
            labels.append(part.labels)
        loss, plain = projected_cross_entropy(
            torch.cat(states),
            self.model.embedding.weight,
            self.model.output_bias,
            torch.cat(labels),
            self.config.label_smoothing,
        )
        return {"loss": loss, "nll": plain, **extra}

    def evaluate(self) -> dict[str, float]:
        """Validation loss (plain, nats a token), BLEU of the `scored` sentences, and perplexity per word piece."""
        device = next(self.modules["model"].parameters()).device
        total, tokens = 0.0, 0
        for indices in self.val.batches(self.recipe.tokens, 0, 0):
            batch = self.val.collate(indices, self.config.neighbourhood).to(device)
            total += float(self.terms(batch)["nll"])
            tokens += self.count(batch)
        return {"loss": total / tokens, **self.bleu(), "perplexity": math.exp(min(total / tokens, 50.0))}

    def bleu(self) -> dict[str, float]:
        """`bleu` of the scored sentences of all directions together: greedy, cased, sacreBLEU's own tokens, 0 to 100.

        Empty where there is nothing to score, and on a training machine without sacrebleu.
        """
        try:
            from sacrebleu.metrics import BLEU
        except ImportError:
            return {}
        translator, outputs, references = self.translator(), [], []
        for pair, texts in self.score_texts:
            sources = [source for source, _ in texts]
            sentences = translator.translate_sentences(sources, *pair, GREEDY)
            outputs += [sentence.hypotheses[0].text for sentence in sentences]
            references += [reference for _, reference in texts]
        return {"bleu": BLEU().corpus_score(outputs, [references]).score} if outputs else {}

    def sample(self, folder: Path, step: int) -> None:
        """Translations of the first validation sentences."""
        translator = self.translator()
        lines = []
        for pair, texts in self.val_text:
            # Together, and cut: an untrained network would go on for ever.
            together = translator.translate([source for source, _ in texts], *pair, beam=1, max_length=SAMPLE_LENGTH)
            for (source, reference), translation in zip(texts, together):
                lines += [f"source      {source}", f"reference   {reference}", f"translation {translation.text}", ""]
        (folder / "translations.txt").write_text("\n".join(lines), encoding="utf-8")
        self.save_attention(folder / "attention.npz")

    def save_attention(self, file: Path) -> None:
        """Every head's weights for one fixed validation pair, teacher-forced, so that training can be watched in them.

        The file holds encoder (L, h, S, S), decoder (L, h, T, T) and cross (L, h, T, S) as float16, and their labels
        source, read and said (what the decoder reads and what it should say), all without pickled objects.
        """
        device = next(self.modules["model"].parameters()).device
        # About ten word pieces can be read at a glance.
        index = min(range(min(100, len(self.val.pairs))), key=lambda i: abs(len(self.val.pairs[i][1]) - 10))
        batch = self.val.collate([index], self.config.neighbourhood).to(device)
        weights = self.model.attend(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
        maps = {
            kind: torch.stack(getattr(weights, kind))[:, 0].float().cpu().numpy().astype(np.float16)
            for kind in ("encoder", "decoder", "cross")
        }
        tokens = {"source": batch.src[0], "read": batch.tgt[0], "said": batch.labels}
        labels = {name: np.array(self.tokenizer.pieces(ids.tolist())) for name, ids in tokens.items()}
        np.savez_compressed(file, **maps, **labels)

    def translator(self) -> Translator:
        """A Translator of the weights as they are now."""
        return Translator(self.model, self.tokenizer, self.pairs, len(self.pairs) > 1)

    def describe(self, folder: Path) -> None:
        """config.json and tokenizer.model: with any checkpoint's weights they make a folder that translates.

        Dropout and label smoothing are of no use there, and a resumed run may have others: they are the size's own.
        """
        own = configs.preset(self.recipe.size)
        same = replace(self.config, dropout=own.dropout, label_smoothing=own.label_smoothing)
        save_header(folder, same, self.tokenizer, self.pairs)

    def export(self, folder: Path) -> None:
        """config.json, model.safetensors (fp16), tokenizer.model."""
        export(folder, self.modules["model"].state_dict(), self.config, self.tokenizer, self.pairs)


def export(
    folder: str | Path,
    state: dict[str, Tensor],
    config: TransformerConfig,
    tokenizer: Tokenizer,
    pairs: list[tuple[str, str]],
) -> None:
    """Writes what `Translator.from_pretrained` reads."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(folder, save_header(folder, config, tokenizer, pairs), state)


def save_header(folder: Path, config: TransformerConfig, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> dict:
    """Writes all that `Translator.from_pretrained` reads but the weights; returns what stands in config.json."""
    header = {
        "format": FORMAT,
        "pairs": [list(pair) for pair in pairs],
        "language_tokens": len(pairs) > 1,
        "transformer": config.to_dict(),
    }
    save_config(folder, header)
    tokenizer.save(folder / "tokenizer.model")
    return header


def load_recipe(argv: list[str]) -> dict[str, Any]:
    """The recipe of the run that a command line goes on with; of a new one {"task": "ParseTask"} for its preset."""
    parser = CommandLine(add_help=False, allow_abbrev=False)
    for option in ("--preset", "--run", "--fork"):
        parser.add_argument(option)
    options, _ = parser.parse_known_args([arg for arg in argv if arg not in ("-h", "--help")])
    if options.preset:
        return {"task": "ParseTask"} if options.preset == "parse" else {}
    runs = [Path(folder) for folder in (options.fork, options.run) if folder]
    return next((Run(run).recipe() for run in runs if (run / "recipe.json").is_file()), {})


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    recipe = load_recipe(argv)
    if recipe.get("task") == "ParseTask":
        from transformer.parsing import recipe as parsing

        return parsing.main(argv)
    if recipe.get("mixture"):
        print("error: this run draws from a mixture of sources; resume it by lab.translator.train.", file=sys.stderr)
        return 2
    description = (
        "Trains a Transformer to translate by the recipe of section 5.\n"
        "With --preset parse it learns to write trees (section 6.3); --preset parse --help explains those fields."
    )
    return training.launch(TranslationTask, TranslationRecipe, PRESETS, argv, description)


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
