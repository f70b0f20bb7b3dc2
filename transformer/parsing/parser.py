"""Text in, trees out: a `Translator` from English to linearised trees, so whatever looks into a translation looks into
a parse, too.
"""

import json
import weakref
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import torch

from training import assets
from transformer.attention import key_mask
from transformer.data import pad_rows
from transformer.kernels import int8_products
from transformer.marian import MarianTokenizer
from transformer.model import Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.parsing.decode import Masks, Symbols, TreeConstraint, repairs
from transformer.parsing.linear import delinearise, linearise, phrases
from transformer.parsing.trees import TAG, Tree, to_brackets
from transformer.parsing.words import check_words, leaf_words, leaves_to_words, sentence, split_words, word_starts
from transformer.search import SearchResult, TransformerDecoder
from transformer.text.layout import Segment
from transformer.text.verbatim import word_numbers
from transformer.threads import threads_for
from transformer.tokenizer import SPACE, Tokenizer
from transformer.translator import Attention, Hypothesis, Sentence, Translation, Translator, shorten

P = TypeVar("P", bound="Parser")
PAIR = ("en", "tree")
DEFAULT_MODEL = "parse"
EXTRA_LENGTH = 300  # a tree may have this many tokens more than the sentence has word pieces (section 6.3)
ALPHA = 0.3  # length penalty of section 6.3
PAPER_BEAM = 21  # of section 6.3; where somebody waits, that of `SearchOptions`


@dataclass
class SentenceParse(Sentence):
    """A sentence and its trees, the best one first."""

    words: list[str] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)  # of each hypothesis, under TOP
    repairs: int = 0  # steps of the best one at which the model's own favourite could not have become a tree


def sentence_parses(translation: Translation) -> list[SentenceParse]:
    """The sentences of what a `Parser` made of a text."""
    return cast("list[SentenceParse]", translation.sentences)


class Parser(Translator):
    """A trained Transformer that writes trees, with its tokenizer."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, symbols: Sequence[str], name: str = "this parser"
    ) -> None:
        """symbols: the tokens of trees, as of `linear.symbols`. Raises `ValueError` if the vocabulary lacks one."""
        super().__init__(model, tokenizer, [PAIR], name=name)
        self.symbols = Symbols(tokenizer, symbols, model.config.eos)
        self.starts, self.blank = word_starts(tokenizer).to(self.device), tokenizer.id(SPACE)
        self.masks = Masks(self.symbols, self.device)

    @classmethod
    def of_header(
        cls: type[P], model: Transformer, tokenizer: Tokenizer | MarianTokenizer, header: dict, name: str
    ) -> P:
        """The parser that a model folder's config.json describes. Raises `ValueError` if it describes none."""
        if "symbols" not in header or not isinstance(tokenizer, Tokenizer):
            raise ValueError(f"{name} translates and writes no trees; choose a model of the preset parse.")
        return cls(model, tokenizer, header["symbols"], name)

    # -- parsing ---------------------------------------------------------------------------------------------------

    def parse(self, text: str, options: SearchOptions = DEFAULTS) -> list[SentenceParse]:
        """The sentences of an English text with their trees.

        options: of the search; an alpha of None is that of section 6.3.
        Raises `ValueError` with one sentence for a text without words, a sentence of more words than the parser takes,
        and one in another language.
        """
        return sentence_parses(self.translate(text, options=options))

    def parse_words(self, sentences: Sequence[Sequence[str]], options: SearchOptions = DEFAULTS) -> list[SentenceParse]:
        """The trees of sentences whose words are known already, whatever these are; arguments as in `parse`."""
        return self._search([list(words) for words in sentences], options)

    def length_penalty(self, source: str, target: str, alpha: float | None = None) -> float:
        """`alpha` if it is given, else that of section 6.3."""
        return ALPHA if alpha is None else alpha

    def segments(
        self, text: str, source: str, target: str, without: AbstractSet[str] = frozenset()
    ) -> list[list[Segment]]:
        """The sentences of each line; a tree has no place for what stands around them."""
        return super().segments(text, source, target, without | {"layout"})

    def translate_sentences(
        self, sentences: list[str], source: str, target: str, options: SearchOptions = DEFAULTS
    ) -> list[Sentence]:
        """As `Translator.translate_sentences`; each text of a result is its tree in brackets, never read back."""
        words = [split_words(sentence) for sentence in sentences]
        for text, own in zip(sentences, words):
            check_words(text, own, lambda word: self.model.config.unk in self.tokenizer.encode(word))
        with int8_products() if options.quick else nullcontext():
            parses = self._search(words, options)
        for one in parses if options.quick and self.int8_available() else []:
            one.encoding = None  # attention maps are computed with 32 bits
        return [replace(one, source_text=text, usual_text=text) for one, text in zip(parses, sentences)]

    @torch.inference_mode()
    def _search(self, sentences: list[list[str]], options: SearchOptions) -> list[SentenceParse]:
        """Sentences of known words, in batches of similar length."""
        options = replace(options, alpha=self.length_penalty(*PAIR, options.alpha))
        config = self.model.config
        encoded = {number: self.encode(sentence(words), PAIR[1]) for number, words in enumerate(sentences)}
        out: dict[int, SentenceParse] = {}
        for batch in self.batches(encoded):
            rows = [encoded[i] for i in batch]
            src = pad_rows(rows, config.pad).to(self.device)
            limits = [self.limit(row, options.max_length) for row in rows]
            steps = [limit + 1 for limit in limits]  # the end is a step, too
            with threads_for(self.model, len(batch) * options.hypotheses):
                only = self.trees(rows, limits)
                decoder = TransformerDecoder(self.model, src, key_mask(src, config.pad), constraint=only)
                results = self.search(decoder, steps, options, batch)
            for number, row, limit, result in zip(batch, rows, limits, results):
                parse = self.build_parse(sentences[number], row, limit, result, options.n_best)
                parse.encoding = (weakref.ref(self.model), decoder.encoding) if decoder.encoding else None
                out[number] = parse
        return [out[number] for number in range(len(sentences))]

    def build_parse(
        self, words: list[str], source_ids: list[int], limit: int, result: SearchResult, n_best: int
    ) -> SentenceParse:
        """What a search found for one sentence, as trees."""
        best = result.candidates[:n_best]
        trees, hypotheses = [], []
        for candidate in best:
            tree = delinearise([self.symbols.tokens[i] for i in candidate.ids], words)
            pieces = self.with_words(self.labels(candidate.ids, {}), words)
            trees.append(tree)
            hypotheses.append(Hypothesis(to_brackets(tree), pieces, candidate.score, candidate.logprob))
        ids = best[0].ids
        pair = self.pair(source_ids, ids)
        logits = self.model(pair.src, pair.tgt, pair.src_mask, pair.tgt_mask)[0]
        return SentenceParse(
            " ".join(words), source_ids, [candidate.ids for candidate in best], hypotheses, result.trace,
            words=words, trees=trees, repairs=repairs(logits, ids, len(words), limit, self.masks),
        )  # fmt: skip

    def present(self, sentence: Sentence, result: SearchResult, source: str, target: str) -> SentenceParse:
        """As `Translator.present`, of a sentence that was parsed."""
        assert isinstance(sentence, SentenceParse)
        return self.build_parse(sentence.words, sentence.source_ids, self.limit(sentence.source_ids), result, 1)

    def assemble(self, text: str, lines: list[list[Sentence]], options: SearchOptions) -> Translation:
        """As `Translator.assemble`, with the count of repairs where there were any."""
        translation = super().assemble(text, lines, options)
        for one in sentence_parses(translation):
            if one.repairs:
                times = "once" if one.repairs == 1 else f"{one.repairs} times"
                translation.notes.append(
                    f"In “{shorten(one.source_text)}” the model's favourite could not have become a tree {times}; "
                    "the likeliest token that could was taken."
                )
        return translation

    # -- what the views of a translation ask ------------------------------------------------------------------------

    def limit(self, source_ids: Sequence[int], max_length: int | None = None) -> int:
        """The most tokens of a tree: 300 more than the sentence has pieces, and what the model can read."""
        words = int(self.starts[torch.tensor(list(source_ids), device=self.device)].sum())
        length = max_length or len(source_ids) - 1 + EXTRA_LENGTH
        return max(words + 2, min(length, self.model.config.max_length - 2))

    def trees(self, rows: Sequence[Sequence[int]], limits: Sequence[int]) -> TreeConstraint:
        """Nothing but trees over these sentences, each of source ids; limits: the most tokens of each tree."""
        firsts = [leaf_words(row, self.starts, self.blank) for row in rows]
        return TreeConstraint(self.masks, firsts, limits, self.model.config.pad)

    def reads(self, source_ids: Sequence[int], ids: Sequence[int]) -> list[int]:
        """What the decoder reads to write a tree: bos, then its tokens, with words where the leaves are."""
        src, tgt = (
            torch.tensor([list(row)], device=self.device) for row in (source_ids, [self.model.config.bos, *ids])
        )
        return leaves_to_words(src, tgt, self.starts, self.symbols.leaf, self.blank)[0].tolist()

    def text(self, ids: Sequence[int]) -> str:
        """The tokens of a tree, or of the beginning of one."""
        return " ".join(self.tokenizer.pieces(ids))

    def target_ids(self, text: str) -> list[int]:
        """Tokens of trees with blanks between them; anything else, a word for example, counts as XX."""
        ids_by_token = {token: number for number, token in self.symbols.tokens.items()}
        return [ids_by_token.get(token, self.symbols.leaf) for token in text.split()]

    def labels(self, ids: list[int], stand_ins: dict[str, str]) -> list[str]:
        """As `Translator.labels`; the padding, to which `TreeConstraint` gives what is forbidden, says so."""
        return [
            "(no tree)" if i == self.model.config.pad else piece
            for i, piece in zip(ids, super().labels(ids, stand_ins))
        ]

    def longest(self, source_ids: Sequence[int]) -> int:
        """The most tokens of a tree, and the end."""
        return self.limit(source_ids) + 1

    def constraint(self, rows: Sequence[Sequence[int]]) -> TreeConstraint:
        """Nothing but trees over these sentences."""
        return self.trees(rows, [self.limit(row) for row in rows])

    def attend(self, translation: Translation, hypothesis: int = 0, sentence: int = 0) -> Attention:
        """As `Translator.attend`; leaves are labelled by their words."""
        attention = super().attend(translation, hypothesis, sentence)
        words = sentence_parses(translation)[sentence].words
        read = [attention.decoder_tokens[0], *self.with_words(attention.decoder_tokens[1:], words)]
        return replace(attention, target_tokens=self.with_words(attention.target_tokens, words), decoder_tokens=read)

    def output_labels(self, ids: list[int], sentence: Sentence) -> list[str]:
        """As `Translator.output_labels`; leaves are labelled by their words."""
        labels = super().output_labels(ids, sentence)
        return self.with_words(labels, sentence.words) if isinstance(sentence, SentenceParse) else labels

    def with_words(self, labels: Sequence[str], words: Sequence[str]) -> list[str]:
        """Labels of a tree's tokens with the words in place of XX, marked as pieces that open a word."""
        remaining = (f"▁{word}" for word in words)
        return [next(remaining, label) if label == TAG else label for label in labels]


def phrase_weights(attention: Attention, sentence: SentenceParse, hypothesis: int = 0) -> np.ndarray:
    """How much each phrase, and each word's leaf, looked at each word: (P + W, W), rows sum to 1 at most.

    Rows: the phrases in the order of `linear.phrases`, each the mean over its tokens, then the words. The mean over the
    heads of the last cross-attention, pieces of a word added up; what went to the end token is left out. attention: of
    this hypothesis.
    """
    tokens = linearise(sentence.trees[hypothesis])
    numbers = word_numbers(attention.source_tokens[:-1])
    by_word = np.zeros((len(tokens), len(sentence.words)), dtype=np.float32)
    weights = attention.cross[-1].mean(0)[: len(tokens), : len(numbers)]
    np.add.at(by_word.T, numbers, weights.T)
    spans = [by_word[phrase.opens : phrase.closes + 1].mean(0) for phrase in phrases(tokens)]
    leaves = [by_word[place] for place, token in enumerate(tokens) if token == TAG]
    return np.stack([*spans, *leaves])


def from_pretrained(name: str | Path, device: str = "auto") -> Translator:
    """A `Parser` where the folder's config.json names the tokens of trees, else a `Translator`.

    Arguments and errors as those of `Translator.from_pretrained`.
    """
    return (Parser if _writes_trees(name) else Translator).from_pretrained(name, device)


def _writes_trees(name: str | Path) -> bool:
    """False, too, for whatever `Translator.from_pretrained` will say something of."""
    try:
        folder = assets.model_or_dir(name)
        return "symbols" in json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
