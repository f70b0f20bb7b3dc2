"""Trains a Transformer by the recipe of section 5: `python -m transformer.train --preset multi30k --data DIR --run
DIR`.

DIR holds train.tsv(.gz) or train.csv(.gz), and val.* where there is one, with one column a language:
`--source en --target de` names the columns. A single file works too; then one pair in a hundred is held out.

`--directions "en-de de-en en-fr fr-en"` trains one model for all of these: a token before the source names the target
language. Rows without text in one of a direction's two columns are no pairs of it. `python -m transformer.prepare`
makes such tables, and with them `DIR/tokenizer.model`, which is used where it exists.

`docs/training.md` says how several processes learn together.
"""

import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import training
from training.arguments import CommandLine
from training.command import one_sentence
from training.memory import keep_memory
from training.recipe import SHARE, read_presets, setting
from training.run import Run
from transformer import align, grammar
from transformer.data import PART, SUFFIXES, Batch, ParallelData, read_parallel, read_splits
from transformer.loss import projected_cross_entropy
from transformer.options import SearchOptions
from transformer.schedule import dropout_at, learning_rate
from transformer.task import TransformerRecipe, TransformerTask
from transformer.text.verbatim import with_stand_ins
from transformer.tokenizer import PAD, STAND_INS, UNK, Tokenizer, language_token
from transformer.translator import Translator


@dataclass
class TranslationRecipe(TransformerRecipe):
    """Section 5 of the paper, and where the text is. Figures are the paper's unless a preset says otherwise."""

    # Mixtures of sources, and Muon with a rate of its own, have a recipe of their own since (lab.translator.train).
    former = {
        "mixture": "", "temperature": 1.5, "one_way": "", "noise": 0.0, "sampled": 0.0, "learned": "",
        "optimizer": "adam", "rate": 0.0, "decay": 0.3,
    }  # fmt: skip

    bounds = {"stand_ins": SHARE}

    data: str = setting(
        "", 'folder with train.* and val.*, or one file, or "grammar" for the sentences of transformer.grammar'
    )
    source: str = setting("en", "column of the source")
    target: str = setting("de", "column of the target")
    directions: str = setting("", 'several "source-target" with blanks between; instead of source and target')
    stand_ins: float = setting(
        0.0, "share of the pairs with a common name or number that learn to copy it (transformer.text.verbatim)"
    )
    rate_scale: float = setting(1.0, "factor on equation 3; the paper has 1")
    dropout_ramp: int = setting(
        0, "updates over which P_drop rises from 0 (schedule.ramped_dropout); the paper has none"
    )
    neighbourhood: int = setting(0, "r of restricted self-attention; 0 = unrestricted")
    average: int = setting(5, "checkpoints averaged for the exported weights (6.1)")
    bleu: int = setting(100, "validation sentences that every evaluation translates greedily and scores; 0 = none")

    def check(self) -> None:
        """Raises `ValueError` with one sentence for fields that contradict each other."""
        super().check()
        if not self.data:
            raise ValueError("say where the text is: --data FOLDER (with train.tsv or train.csv) or --data FILE.")
        for source, target in self.pairs():
            if source == target:
                raise ValueError(f"source and target are both the column {source!r}; name two different columns.")
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

    def sizes(self) -> dict[str, Any]:
        """Of the recipe's own, besides those of the model's name."""
        return {"max_length": self.max_length, "neighbourhood": self.neighbourhood}


SAMPLE_LENGTH = 48  # most tokens of a sample translation
MAX_SCORE_LENGTH = 64  # most tokens, on either side, of a sentence that is scored during training
GREEDY = SearchOptions(beam=1, alpha=0.0, max_length=MAX_SCORE_LENGTH)  # the search whose BLEU an evaluation tells

PRESETS = read_presets(__file__, "translate")


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
        pairs = [[(german, english) for english, german in part] for part in (train, val)]
        return (train, val) if source == "en" else (pairs[0], pairs[1])
    read = partial(read_parallel, source=source, target=target)
    return read_splits(recipe.data, read, "pair", ("train", "val"), SUFFIXES, every=100)


class TranslationTask(TransformerTask):
    """What the training loop needs to know of a Transformer that translates."""

    recipe: TranslationRecipe
    formula = "scale · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)   (equation 3)"

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe = recipe
        self.pairs = recipe.pairs()
        held_out = self.load_data()
        self.val_text = [(pair, val[: 8 if len(self.pairs) == 1 else 4]) for pair, val in held_out.items()]
        self.score_texts = [(pair, self.to_score(val)) for pair, val in held_out.items()]
        self.build()
        self.table: Tensor | None = None  # of transformer.align
        # beta and epsilon of section 5.3; the rate is set before each update
        adam = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.optimizers = {"model": adam}

    def load_data(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Makes `tokenizer`, `data` and `val` of the splits' pairs; returns the validation pairs of each direction."""
        splits = {pair: load_splits(self.recipe, *pair) for pair in self.pairs}
        self.tokenizer = self.vocabulary([train for train, _ in splits.values()])
        shares = self.recipe.stand_ins
        self.data = ParallelData.join([self.encode(train, pair, shares) for pair, (train, _) in splits.items()])
        self.val = ParallelData.join([self.encode(val, pair) for pair, (_, val) in splits.items()])
        return {pair: val for pair, (_, val) in splits.items()}

    def vocabulary(self, texts: list[list[tuple[str, str]]]) -> Tokenizer:
        """The one that is known, else one that is learned from these training pairs."""
        languages = list(dict.fromkeys(name for pair in self.pairs for name in pair)) if len(self.pairs) > 1 else []
        tokenizer = self.known_vocabulary()
        if tokenizer is None:
            sentences: Iterable[str] = (text for part in texts for pair in part for text in pair)
            if languages:  # each sentence comes in two directions
                sentences = dict.fromkeys(sentences)
            return Tokenizer.train(sentences, self.recipe.vocab_size, languages, stand_ins=self.recipe.stand_ins > 0)
        pieces = [language_token(target) for _, target in self.pairs] if languages else []
        pieces += STAND_INS if self.recipe.stand_ins else ()
        missing = [piece for piece in pieces if tokenizer.id(piece) == UNK]
        if missing:
            raise ValueError(
                f"The vocabulary tokenizer.model has no piece {', '.join(missing)}; make it again for these directions."
            )
        return tokenizer

    def to_score(self, val: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """This direction's share of the `bleu` sentences, always the same, spread evenly over its validation pairs.

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
        """Equation 3."""
        rate = learning_rate(step, self.config.d_model, self.recipe.warmup, self.recipe.rate_scale)
        return dict.fromkeys(self.optimizers, rate)

    def batch(self, step: int, micro: int, rank: int, world: int) -> Batch:
        """The batch with this number in the endless sequence of epochs; a pure function of its arguments."""
        number, indices = self.place(step, micro, rank, world)
        batch = self.collate(indices, number)
        batch = replace(batch, dropout=dropout_at(step, self.config.dropout, self.recipe.dropout_ramp))
        if weight := self.align_weight(step):
            batch = replace(batch, guide=weight * self.guide(batch))
        if self.device.type == "cuda":
            batch = replace(batch, in_parts=tuple(batch.parts(PART["cuda"])))
        return batch

    def collate(self, indices: Sequence[int], number: int) -> Batch:
        """The pairs of a batch; number: of the batch in the endless sequence."""
        return self.data.collate(indices, self.config.neighbourhood)

    def guide(self, batch: Batch) -> Tensor:
        """Where each target word is to look, (B, T, S), by `transformer.align`."""
        if self.table is None:  # only now: a run that is past this phase has no use for it
            self.table = align.model_1(self.data, self.config.vocab_size)
        rows = align.target_rows(batch.labels, batch.positions, batch.tgt.shape)
        return align.posterior(self.table, batch.src, rows) * (rows != PAD)[..., None]

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The smoothed loss, the plain one and that of guided alignment, in nats, summed over target tokens."""
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
        loss = self.validation_loss()
        return {"loss": loss, **self.bleu(), "perplexity": math.exp(min(loss, 50.0))}

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
        # About ten word pieces can be read at a glance.
        index = min(range(min(100, len(self.val.pairs))), key=lambda i: abs(len(self.val.pairs[i][1]) - 10))
        batch = self.validation_batch([index]).to(self.device)
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

    def header(self) -> dict[str, Any]:
        """The directions."""
        return {"pairs": self.pairs, "language_tokens": len(self.pairs) > 1}


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
