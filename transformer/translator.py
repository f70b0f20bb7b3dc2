"""Text in, translation out, and the attention behind it."""

import functools
import math
import re
import unicodedata
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch

from training import assets
from training.arguments import expect
from training.devices import choose_device
from training.weights import build, load_model
from transformer import marian
from transformer.attention import key_mask
from transformer.config import ALPHA, TransformerConfig, read_penalties
from transformer.data import Batch, collate, pad_rows
from transformer.kernels import has_int8, int8_products
from transformer.model import AttentionWeights, Encoding, Shortlist, Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.scoring import losses_of_ids, rank_by_reading_back
from transformer.search import (
    Constraint,
    NextToken,
    Prefix,
    SearchResult,
    TraceStep,
    TransformerDecoder,
    beam_search,
    sample_search,
)
from transformer.shortlist import load_shortlists
from transformer.text.casing import usual_case
from transformer.text.elision import elide
from transformer.text.languages import language_name
from transformer.text.layout import Segment, plain_segments, segment_lines, unwrap
from transformer.text.names import name_spans
from transformer.text.quantities import AFTER_CLUE, clue, readings
from transformer.text.sentences import split_clauses
from transformer.text.spelling import mend, respell
from transformer.text.verbatim import (
    MaskedSentence,
    find,
    mask,
    misses,
    restore,
    with_blanks,
    without_loops,
    word_numbers,
)
from transformer.threads import threads_for
from transformer.tokenizer import STAND_INS, Tokenizer, language_token, normalise

FORMAT = "atelier-transformer-1"
EXTRA_LENGTH = 50  # an output may be this much longer than its input (section 6.1)
BATCH_TOKENS = 2048  # source tokens decoded together
COMMON = 8  # of a language's words in a vocabulary, those in its first eighth are common
PARTS = (4, 12)  # sentences of a long text's first part, and of each later one
# Nats behind the best hypothesis of its sentence at which quick translation gives one up; docs/speed.md chose it.
MARGIN = 1.0
T = TypeVar("T", bound="Translator")
S = TypeVar("S", bound="Sentence")


@dataclass
class Hypothesis:
    """One translation of a text. For several sentences, tokens follow each other and log-probabilities are summed."""

    text: str
    tokens: list[str]  # word pieces, without special tokens
    score: float  # log-probability / length penalty; for several sentences their sum
    logprob: float  # natural logarithm
    back: float | None = None  # log-probability of the source given this translation, where it was read back


@dataclass
class Sentence:
    """One sentence of a text, as the model saw it."""

    source_text: str
    source_ids: list[int]  # with eos (and a language token in front, where the model has them)
    ids: list[list[int]]  # each hypothesis, without special tokens
    hypotheses: list[Hypothesis]
    trace: list[TraceStep] | None
    finished: bool = True  # False: the best hypothesis met the length limit
    has_loop: bool = False  # True: the best hypothesis repeated itself and was cut
    stand_ins: dict[str, str] = field(default_factory=dict)  # pieces that the model copied, and what they stand for
    usual_text: str = ""  # what the model was given: with the usual capitals (transformer.text.casing)
    elisions: list[tuple[str, str]] = field(default_factory=list)  # of the best hypothesis: before and after
    rewrites: list[tuple[str, str]] = field(default_factory=list)  # numbers and times: in the source, as translated
    segment: Segment = Segment("")  # what stands around it in the text, and of which longer sentence it is a clause
    # what the model read, and what was taken out of it
    masked: MaskedSentence | None = field(default=None, repr=False, compare=False)
    # of a short sentence that was translated alone: the model, and what its encoder made of it
    encoding: tuple[weakref.ref, Encoding] | None = field(default=None, repr=False, compare=False)

    def at(self: S, segment: Segment) -> S:
        """The same, noting where it stands in its text."""
        self.segment = segment
        return self


@dataclass
class Translation:
    """A translated text; `text`, `tokens` and `score` are those of the best hypothesis."""

    text: str
    tokens: list[str]
    source_text: str
    source_tokens: list[str]
    score: float
    hypotheses: list[Hypothesis]
    trace: list[list[TraceStep]] | None  # per sentence, if asked for
    sentences: list[Sentence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a reader should know, one sentence each

    def sentence_and_ids(self, sentence: int = 0, hypothesis: int = 0) -> tuple[Sentence, list[int]]:
        """A sentence and the ids of one of its hypotheses. Raises `ValueError` if the model had no part in it."""
        if not 0 <= sentence < len(self.sentences):
            raise ValueError(
                f"The text has {len(self.sentences)} sentences; there is no number {sentence} (counted from 0)."
            )
        entry = self.sentences[sentence]
        if not entry.ids:
            raise ValueError("This sentence holds no words, so it was copied and nothing was decoded.")
        if not 0 <= hypothesis < len(entry.ids):
            raise ValueError(
                f"The sentence has {len(entry.ids)} translations; there is no number {hypothesis} (counted from 0)."
            )
        return entry, entry.ids[hypothesis]


@dataclass
class Attention:
    """The weights of every head for one sentence, float32 in [0, 1]; rows are queries, columns keys, rows sum to 1."""

    encoder: np.ndarray  # (L, h, S, S)
    decoder: np.ndarray  # (L, h, T, T), zero above the diagonal; its columns are `decoder_tokens`
    cross: np.ndarray  # (L, h, T, S)
    source_tokens: list[str]  # S labels, the last one </s>
    target_tokens: list[str]  # T labels of the rows: the token that is being chosen there, the last one </s>
    decoder_tokens: list[str]  # T labels of what the decoder read: <s>, then the target


def shorten(sentence: str) -> str:
    """A sentence for a message."""
    return sentence if len(sentence) <= 40 else sentence[:40] + "…"


def has_letters(text: str) -> bool:
    """True if any character is a letter of any script."""
    return any(unicodedata.category(c).startswith("L") for c in text)


def read_pairs(header: dict) -> list[tuple[str, str]]:
    """The (source, target) languages in a model's config.json. Raises `ValueError` where they are not pairs."""
    pairs = header.get("pairs")
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) and one for one in pair)
        for pair in pairs
    ):
        raise ValueError('config.json must hold "pairs", a list like [["en", "de"]]; this one does not.')
    return [(source, target) for source, target in pairs]


class Translator:
    """A trained Transformer with its tokenizer."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer | marian.MarianTokenizer,
        pairs: list[tuple[str, str]],
        language_tokens: bool = False,
        name: str = "this model",
        longest: int = 0,
        penalties: Mapping[str, float] | None = None,
    ) -> None:
        """
        model, tokenizer: with a vocabulary in common; the model is put into evaluation mode.
        pairs: (source, target) languages.
        language_tokens: a token before the source names the target language.
        name: for messages.
        longest: words of the longest sentences that it was trained on; longer ones are cut into clauses. 0 = unknown.
        penalties: length penalty by pair, such as {"de-en": 1.4}, where another than ALPHA suits the model.
        """
        self.penalties = dict(penalties or {})
        self.longest_words = longest
        self.model, self.tokenizer, self.language_tokens, self.name = model.eval(), tokenizer, language_tokens, name
        self.pairs = [(source, target) for source, target in pairs]
        self.shortlists: dict[str, torch.Tensor] = {}  # ids by target language, for quick translation
        self._shortlists: dict[str, Shortlist] = {}  # those that have been used
        # pieces that the model has learned to copy
        self.stand_ins = [piece for piece in STAND_INS if tokenizer.id(piece) != model.config.unk]
        tokens = [language_token(target) for _, target in self.pairs] if language_tokens else []
        self.silent = [*self.stand_ins, *dict.fromkeys(tokens)]  # pieces that are no text
        if len(tokenizer) != model.config.vocab_size:
            raise ValueError(
                f"The tokenizer has {len(tokenizer)} word pieces and the model {model.config.vocab_size}; "
                "they do not belong together."
            )

    @classmethod
    def from_pretrained(cls: type[T], name: str | Path, device: str = "auto") -> T:
        """Loads a shipped model by name, or a folder with config.json, model.safetensors and tokenizer.model.

        A folder in Marian's format and a name like Helsinki-NLP/opus-mt-en-de are read by `transformer.marian`.

        device: "auto" is CUDA where there is one. Raises `ValueError` or `FileNotFoundError` with one sentence for an
        unknown name and for files that are missing, damaged or foreign.
        """
        expect("name", name, (str, Path), "a name or a folder")
        place = choose_device(device, usual=("cuda", "cpu"))
        if Path(name).is_dir():
            folder = Path(name)
        else:  # a shipped model, or somebody/else's
            folder = marian.download(str(name)) if "/" in str(name) else assets.model_dir(str(name))
        if marian.is_marian(folder):
            model, tokenizer, pairs = marian.load(folder)
            network = model.to(place).eval().requires_grad_(False)
            return cls.of_header(network, tokenizer, {"pairs": [list(pair) for pair in pairs]}, folder.name)
        header, state = load_model(folder)
        if header.get("format") != FORMAT:
            raise ValueError(f"{folder.name} holds no Transformer of this program: its config.json has another format.")
        config = TransformerConfig.from_dict(header.get("transformer") or {})
        model = build(lambda: Transformer(config), state, folder.name)
        own = folder / "tokenizer.model"
        # The models of a series (transformer.series) share the tokenizer beside their folders.
        vocabulary = Tokenizer.load(own if own.is_file() else folder.parent / "tokenizer.model")
        translator = cls.of_header(model.to(place).eval().requires_grad_(False), vocabulary, header, folder.name)
        translator.shortlists = load_shortlists(folder, config.vocab_size)
        return translator

    @classmethod
    def of_header(
        cls: type[T], model: Transformer, tokenizer: Tokenizer | marian.MarianTokenizer, header: dict, name: str
    ) -> T:
        """The translator that a model folder's config.json describes. Raises `ValueError` if it describes a parser."""
        if "symbols" in header:
            raise ValueError(f"{name} writes trees and does not translate; python -m transformer.parse uses it.")
        words = header.get("longest_words")
        longest = words if isinstance(words, int) and words > 0 else 0
        pairs, penalties = read_pairs(header), read_penalties(header)
        return cls(model, tokenizer, pairs, header.get("language_tokens") is True, name, longest, penalties)

    def length_penalty(self, source: str, target: str, alpha: float | None = None) -> float:
        """`alpha` if it is given, else what suits the model in these languages: ALPHA unless it says otherwise."""
        return self.penalties.get(f"{source}-{target}", ALPHA) if alpha is None else alpha

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.embedding.weight.device

    @overload
    def translate(
        self,
        text: str,
        source: str | None = ...,
        target: str | None = ...,
        options: SearchOptions = ...,
        **changes: Any,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: list[str],
        source: str | None = ...,
        target: str | None = ...,
        options: SearchOptions = ...,
        **changes: Any,
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | list[str],
        source: str | None = None,
        target: str | None = None,
        options: SearchOptions = DEFAULTS,
        **changes: Any,
    ) -> Translation | list[Translation]:
        """Translates a text, or each text of a list, all sentences in batches; line breaks stay where they are.

        source, target: languages, by default the model's first pair.
        options: of the search. With `quick` the model multiplies by weights of 8 bits (`kernels.int8_products`) where
            the processor is made for it, searches among the words of the target language alone (`shortlist`) where it
            names them, and, for one translation, gives up hypotheses that fall far behind (`MARGIN`); attention maps
            are computed with 32 bits all the same. `read_back` needs a model that has both directions.
        changes: single fields of the options, such as beam=1.

        Raises `ValueError` with one sentence for a pair the model does not have, an empty text, a sentence longer than
        the model can read, and a script that it cannot read.
        """
        options = replace(options, **changes)
        source, target = self.check_pair(source, target)
        options.check()
        expect("text", text, (str, list, tuple), "a text or a list of texts")
        for number, one in enumerate(text if not isinstance(text, str) else ()):
            expect(f"text[{number}]", one, str, "a text")
        texts = [text] if isinstance(text, str) else list(text)
        if not texts:
            raise ValueError("There is no text to translate.")
        plans = []  # the segments of each line of each text
        for number, one in enumerate(texts, 1):
            lines = self.segments(one, source, target, options.without)
            if not any(lines):
                where = "" if isinstance(text, str) else f" Text {number} of {len(texts)} is empty."
                raise ValueError(f"Please enter some text to translate.{where}")
            plans.append(lines)
        flat = [segment.text for lines in plans for line in lines for segment in line]
        sentences = iter(self.translate_sentences(flat, source, target, options))
        results = [
            self.assemble(one, [[next(sentences).at(segment) for segment in line] for line in lines], options)
            for one, lines in zip(texts, plans)
        ]
        for result in results:
            result.notes += self._unmet(source, target, options)
        return results[0] if isinstance(text, str) else results

    def translate_parts(
        self, text: str, source: str | None = None, target: str | None = None, options: SearchOptions = DEFAULTS
    ) -> Iterator[Translation]:
        """As `translate` for one text, part after part in reading order, so that a long one can be read meanwhile.

        Yields the translation of the text up to each part, whose `source_text` is empty but for the last, which is that
        of the whole text. A text of few sentences (PARTS[-1]) is one part.
        """
        source, target = self.check_pair(source, target)
        options.check()
        expect("text", text, str, "a text")
        lines = self.segments(text, source, target, options.without)
        flat = [segment for line in lines for segment in line]
        if not flat:
            raise ValueError("Please enter some text to translate.")
        sentences: list[Sentence] = []
        while len(sentences) < len(flat):
            size = len(flat) if len(flat) <= PARTS[-1] else PARTS[bool(sentences)]
            part = flat[len(sentences) : len(sentences) + size]
            batch = self.translate_sentences([segment.text for segment in part], source, target, options)
            sentences += [sentence.at(segment) for sentence, segment in zip(batch, part)]
            rest, so_far = iter(sentences), []
            for line in lines:
                so_far.append(list(islice(rest, len(line))))
                if len(so_far[-1]) < len(line):
                    break
            whole = len(sentences) == len(flat)
            translation = self.assemble(text if whole else "", so_far, options)
            translation.notes += self._unmet(source, target, options)
            yield translation

    def _unmet(self, source: str, target: str, options: SearchOptions) -> list[str]:
        """What was asked for and cannot be had here, one sentence each."""
        notes = []
        if options.quick and not self.int8_available():
            notes.append("This processor has no fast 8-bit products; the model ran in 32 bits.")
        if options.read_back and not self.reads_back(source, target):
            notes.append("This model does not translate the other way round, so nothing was read back.")
        return notes

    def reads_back(self, source: str, target: str) -> bool:
        """Whether `read_back` makes a difference for this pair."""
        return (target, source) in self.pairs

    def int8_available(self) -> bool:
        """Whether `quick` makes a difference where this model is."""
        return self.device.type == "cpu" and has_int8()

    def shortlist(self, target: str) -> Shortlist | None:
        """The words of a target language with their rows of the output matrix, cut out at its first quick translation;
        None where the model does not name them.
        """
        if target in self.shortlists and target not in self._shortlists:
            output = self.model.embedding.weight, self.model.output_bias
            self._shortlists[target] = Shortlist(self.shortlists[target].to(self.device), *output)
        return self._shortlists.get(target)

    def segments(self, text: str, source: str, target: str, without: Set[str] = frozenset()) -> list[list[Segment]]:
        """The sentences of each line, and the clauses of those that are too long, with what stands around them.

        Lines that were broken in mid-sentence are joined. without: as in `SearchOptions`.
        """
        lines = re.split(r"\r\n|\r|\n", text)

        def clauses(sentence: str) -> list[str]:
            return split_clauses(sentence, self.fits)

        if "layout" in without:
            return [plain_segments(normalise(line), clauses) for line in lines]
        return segment_lines([normalise(line) for line in unwrap(lines, source == "de")], clauses)

    def fits(self, text: str) -> bool:
        """Whether the model reads so long a text, and has been trained on texts as long."""
        if self.longest_words and len(text.split()) > self.longest_words:
            return False
        return len(self.tokenizer.encode(text)) <= self.most_pieces()

    def most_pieces(self) -> int:
        """Word pieces of the longest sentence that the model reads, without language token and eos."""
        return self.model.config.max_length - self.language_tokens - 1

    def check_pair(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The pair that is meant; missing languages are taken from the first pair that fits. Raises `ValueError`."""
        for name, language in (("source", source), ("target", target)):
            expect(name, language, (str, type(None)), "a language such as en, or None")
        for pair in self.pairs:
            if (source is None or source == pair[0]) and (target is None or target == pair[1]):
                return pair
        pairs = ", ".join(f"{a} to {b}" for a, b in self.pairs)  # codes, as they are to be written
        request = f"{source or 'any language'} to {target or 'any language'}"
        raise ValueError(f"{self.name} does not translate {request}; it translates {pairs}.")

    def usual(self, sentence: str, source: str, without: Set[str] = frozenset()) -> str:
        """A normalised sentence with the capitals and the spelling that the model has met; often unchanged.

        source: its language. without: as in `SearchOptions`.
        """

        def is_word(word: str) -> bool:
            return self.knows(word, source)

        def is_common(word: str) -> bool:  # a vocabulary begins with what is most frequent
            return is_word(word) and self.tokenizer.encode(word)[0] < len(self.tokenizer) / COMMON

        text = sentence
        if "casing" not in without:
            text = self.known_case(usual_case(sentence, source, self.piece_count, is_common))
        without_capitals = text != sentence and sentence in (sentence.upper(), sentence.lower())
        if "spelling" in without:
            return text
        return mend(respell(text, source, not without_capitals), self.piece_count, is_word)

    def known_case(self, text: str) -> str:
        """A text whose capitals that the vocabulary lacks are small where it has these, as the œ of "Œuf"."""
        return "".join(c.lower() if self.piece_count(c) == math.inf > self.piece_count(c.lower()) else c for c in text)

    def piece_count(self, word: str) -> float:
        """In how many pieces the vocabulary writes a word; infinite if it cannot."""
        ids = self.tokenizer.encode(word)
        return math.inf if self.model.config.unk in ids else len(ids)

    def knows(self, word: str, language: str) -> bool:
        """Whether the vocabulary has a word as one piece, among those of the language where the model names them."""
        ids = self.tokenizer.encode(word)
        own = self.shortlists.get(language)
        return len(ids) == 1 and ids[0] != self.model.config.unk and (own is None or bool((own == ids[0]).any()))

    def mask(
        self, sentence: str, source: str, without: Set[str] = frozenset(), target: str = "", exact: bool = True
    ) -> MaskedSentence:
        """A normalised sentence without what has no translation: see `transformer.text.verbatim`.

        source: its language.
        without: as in `SearchOptions`.
        target: the language whose way of writing numbers and times get; none: that of the sentence.
        exact: takes numbers, times and names out, too; otherwise these are left to the model, and `needs` of it.
        """
        if "verbatim" in without:
            return mask(sentence, [], self.stand_ins)

        def lacks(character: str) -> bool:
            return self.model.config.unk in self.tokenizer.encode(character)

        quantities = {} if "quantities" in without else readings(sentence, source, target)
        name_ranges = name_spans(sentence, source) if self.stand_ins else ()
        spans = find(sentence, lacks, [*quantities, *name_ranges])
        full = mask(sentence, spans, self.stand_ins, quantities, functools.partial(clue, source=source))
        if exact or not self.has_words(full):  # numbers alone need no model
            return full
        plain = mask(sentence, find(sentence, lacks, numbers=False), self.stand_ins)
        if len(self.tokenizer.encode(plain.text)) > self.most_pieces():
            return full
        plain.needs = list((Counter(full.words) - Counter(plain.words)).elements())
        return plain

    def encode(self, sentence: str, target: str) -> list[int]:
        """Source ids of a normalised sentence, with eos and, where the model has them, the language token.

        Raises `ValueError` if the sentence is too long.
        """
        prefix = [self.tokenizer.id(language_token(target))] if self.language_tokens else []
        ids = self.tokenizer.encode(sentence)
        limit = self.most_pieces()
        if len(ids) > limit:
            raise ValueError(
                f"The sentence “{shorten(sentence)}” has {len(ids)} word pieces and this model reads {limit} at most; "
                "break it into shorter sentences."
            )
        return [*prefix, *ids, self.model.config.eos]

    @torch.inference_mode()
    def translate_sentences(
        self, sentences: list[str], source: str, target: str, options: SearchOptions = DEFAULTS
    ) -> list[Sentence]:
        """Each normalised sentence on its own, in batches of similar length; arguments as in `translate`."""
        options = self.search_options(source, target, options)
        texts = [self.usual(sentence, source, options.without) for sentence in sentences]
        out: dict[int, Sentence] = {}
        masked: dict[int, MaskedSentence] = {}
        for number, sentence in enumerate(sentences):
            own = self.mask(texts[number], source, options.without, target, exact=False)
            if self.has_words(own):
                masked[number] = own
            else:  # numbers, addresses, punctuation and emoji are the same in every language
                self.check_script(sentence, own)
                same = restore(own.text, own, lambda words: words) if has_letters(sentence) else sentence
                copy = [Hypothesis(same, same.split(" "), 0.0, 0.0)]
                out[number] = Sentence(sentence, [], [], copy, [] if options.trace else None)
        out |= self._translate_masked(sentences, masked, source, target, options)
        again = {
            number: self.mask(texts[number], source, options.without, target)
            for number, own in masked.items()
            if misses(out[number].hypotheses[0].text, own.needs)
        }
        out |= self._translate_masked(sentences, again, source, target, options)
        for number in masked:
            out[number].usual_text = texts[number]
        return [out[number] for number in range(len(sentences))]

    def _translate_masked(
        self,
        sentences: Sequence[str],
        masked: Mapping[int, MaskedSentence],
        source: str,
        target: str,
        options: SearchOptions,
    ) -> dict[int, Sentence]:
        """Those of the sentences, by number, that `masked` has as the model reads them; options: `search_options`."""
        config, quick, out = self.model.config, options.quick, {}
        encoded = {number: self.encode(own.text, target) for number, own in masked.items()}
        for batch in self.batches(encoded):
            rows = [encoded[i] for i in batch]
            src = pad_rows(rows, config.pad).to(self.device)
            limits = [min(options.max_length or len(r) + EXTRA_LENGTH, config.max_length - 1) for r in rows]
            shortlist = self.shortlist(target) if quick and options.sampling is None else None
            with int8_products() if quick else nullcontext():
                with threads_for(self.model, len(batch) * options.hypotheses):
                    decoder = TransformerDecoder(self.model, src, key_mask(src, config.pad), shortlist=shortlist)
                    results = self.search(decoder, limits, options, batch)
                if options.read_back and options.sampling is None and self.reads_back(source, target):
                    results = self.read_back(rows, results, source, options.alpha)
            for number, row, result in zip(batch, rows, results):
                entry = self.sentence(sentences[number], masked[number], row, result, target, options)
                # Attention maps are computed with 32 bits.
                entry.encoding = (weakref.ref(self.model), decoder.encoding) if decoder.encoding and not quick else None
                out[number] = entry
        return out

    def search(
        self,
        decoder: NextToken,
        limits: list[int],
        options: SearchOptions = DEFAULTS,
        numbers: Sequence[int] = (),
        prefix: Prefix | None = None,
    ) -> list[SearchResult]:
        """What beam search finds, or what is drawn, for a batch of sentences.

        decoder, limits: of these sentences.
        options: with the length penalty of the model's languages (`search_options`).
        numbers: of the sentences in the whole text, so that each draws with a seed of its own.
        prefix: as in `beam_search`.
        """
        ends = self.model.config.bos, self.model.config.eos
        if options.sampling is None:
            return beam_search(decoder, limits, *ends, options, self.forbidden_ids(), prefix=prefix)
        seeds = [options.sampling.seed + number for number in numbers]
        return sample_search(decoder, limits, *ends, options, seeds, self.forbidden_ids())

    def forbidden_ids(self) -> list[int]:
        """The ids that no output holds: padding, unknown, bos."""
        config = self.model.config
        return sorted({config.pad, config.unk, config.bos} - {config.eos})

    def search_options(self, source: str, target: str, options: SearchOptions) -> SearchOptions:
        """The options with the model's own length penalty where they name none; quick only where that is possible."""
        quick = options.quick and self.int8_available()
        # Whoever asks for several translations is shown what the search would have given up.
        margin = MARGIN if quick and options.n_best == 1 and not options.read_back else options.margin
        alpha = self.length_penalty(source, target, options.alpha)
        return replace(options, alpha=alpha, quick=quick, margin=margin)

    def read_back(
        self, rows: list[list[int]], results: list[SearchResult], source: str, alpha: float | None
    ) -> list[SearchResult]:
        """The same outputs, ranked by how surely the model comes back from them to the source, too.

        rows: the source ids of each search, with language token and eos. source: their language. alpha: length penalty.
        """
        prefix = [self.tokenizer.id(language_token(source))]
        sources = [row[len(prefix) : -1] for row in rows]
        pairs = [([*prefix, *c.ids], ids) for ids, result in zip(sources, results) for c in result.candidates]
        with threads_for(self.model, sum(len(y) + len(x) for y, x in pairs)):
            logprobs = iter([-loss for loss, _ in losses_of_ids(self.model, pairs)])
        return [
            replace(result, candidates=rank_by_reading_back(result.candidates, list(islice(logprobs, count)), alpha))
            for result in results
            for count in [len(result.candidates)]
        ]

    def has_words(self, masked: MaskedSentence) -> bool:
        """True if there is anything to translate besides what was taken out."""
        rest = masked.text
        for stand_in in masked.stand_ins:
            rest = re.sub(re.escape(stand_in) + (AFTER_CLUE if stand_in in masked.clues else ""), "", rest)
        return has_letters(rest)

    def check_script(self, sentence: str, masked: MaskedSentence) -> None:
        """Raises `ValueError` if the words that were taken out are all there is, in letters the model cannot read."""
        words = [*masked.stand_ins.values(), *(extract.text for extract in masked.extracts)]
        letters = "".join(c for c in "".join(words) if has_letters(c))
        if self.model.config.unk in self.tokenizer.encode(letters):
            languages = " or ".join(sorted({language_name(pair[0]) for pair in self.pairs}))
            raise ValueError(
                f"This model cannot read the script of “{shorten(sentence)}”; please write in {languages}."
            )

    def sentence(
        self,
        text: str,
        masked: MaskedSentence,
        source_ids: list[int],
        result: SearchResult,
        target: str,
        options: SearchOptions = DEFAULTS,
    ) -> Sentence:
        """What a search found for one sentence: loops cut, and everything that was taken out back in its place.

        French text gets its elisions; the pieces stay those of the model. Of several hypotheses that read the same, cut
        into other pieces, only the best is kept; draws are shown as they came.
        """
        candidates = result.candidates
        if masked.stand_ins:  # those that copied them all, and once, come first
            copies = sorted(self.tokenizer.id(piece) for piece in masked.stand_ins)
            all_stand_ins = {self.tokenizer.id(piece) for piece in self.stand_ins}
            candidates = sorted(candidates, key=lambda c: sorted(i for i in c.ids if i in all_stand_ins) != copies)

        def words(ids: list[int]) -> bool:
            return has_letters(self.tokenizer.decode(ids))

        source_loops = without_loops(source_ids, words) != source_ids
        # A piece that is no text and stands for nothing here is no part of a translation.
        idle = {self.tokenizer.id(piece) for piece in self.silent if piece not in masked.stand_ins}
        ids: list[list[int]] = []
        hypotheses: list[Hypothesis] = []
        elisions: list[tuple[str, str]] = []
        has_loop = False
        for candidate in candidates:
            tokens = [i for i in candidate.ids if i not in idle]
            own = tokens if source_loops else without_loops(tokens, words)
            translation = re.sub(" +", " ", self.tokenizer.decode(own)).strip()
            if masked.extracts or masked.stand_ins:
                translation = self._restore(translation, masked, source_ids, own)
            translation = with_blanks(translation, masked.needs)
            changes: list[tuple[str, str]] = []
            if target == "fr" and "elision" not in options.without:
                translation, changes = elide(translation)
            if options.sampling is None and any(translation == other.text for other in hypotheses):
                continue
            if not hypotheses:
                elisions, has_loop = changes, own != tokens
            ids.append(own)
            pieces = self.labels(own, masked.stand_ins)
            hypotheses.append(Hypothesis(translation, pieces, candidate.score, candidate.logprob, candidate.back))
            if len(hypotheses) == options.n_best:
                break
        return Sentence(
            text,
            source_ids,
            ids,
            hypotheses,
            result.trace,
            candidates[0].finished,
            has_loop,
            stand_ins=masked.stand_ins,
            rewrites=masked.rewrites,
            elisions=elisions,
            masked=masked,
        )

    def present(self, sentence: Sentence, result: SearchResult, source: str, target: str) -> Sentence:
        """What another search over the ids of a translated sentence found, as `translate` presents it.

        source, target: languages of the translation.
        """
        own = sentence.masked or self.mask(sentence.usual_text, source, target=target, exact=False)
        return self.sentence(sentence.source_text, own, sentence.source_ids, result, target)

    def output_labels(self, ids: list[int], sentence: Sentence) -> list[str]:
        """The labels of what was written for a sentence, eos with them."""
        return self.labels(ids, sentence.stand_ins)

    def labels(self, ids: list[int], stand_ins: dict[str, str]) -> list[str]:
        """The word pieces of some ids; a stand-in is shown as what it stands for."""
        return [stand_ins.get(piece, piece) for piece in self.tokenizer.pieces(ids)]

    def _word_attention(self, source_ids: list[int], ids: list[int]) -> np.ndarray:
        """How much each word of a translation looks at each word of its source, (T, S) in [0, 1].

        By the last decoder layer's attention, mean of its heads and of a target word's pieces. Empty without words.
        """
        prefix = 1 if self.language_tokens else 0
        source = word_numbers(self.tokenizer.pieces(source_ids[prefix:-1]))
        target = word_numbers(self.tokenizer.pieces(ids))
        cross = self.weights(source_ids, ids).cross[-1][0].mean(0).float().cpu().numpy()
        cross = cross[: len(target), prefix : prefix + len(source)]
        columns = np.zeros((len(source), source[-1] + 1 if source else 0))
        columns[np.arange(len(source)), source] = 1
        rows = np.zeros((target[-1] + 1 if target else 0, len(target)))
        rows[target, np.arange(len(target))] = 1
        return rows / np.maximum(rows.sum(1, keepdims=True), 1) @ cross @ columns

    def _restore(self, text: str, masked: MaskedSentence, source_ids: list[int], ids: list[int]) -> str:
        """A translation with what was taken out of its source: behind the word that looks at the word it stood behind,
        and tags of a pair around the words that look most at those between them.
        """

        @functools.cache
        def links() -> np.ndarray:
            return self._word_attention(source_ids, ids)

        def words_before(words: int) -> int:
            shape = links().shape
            return int(links()[:, words - 1].argmax()) + 1 if words < shape[1] and shape[0] else shape[0]

        def partners(first: int, end: int) -> tuple[int, int]:
            if not links().size:
                return 0, len(links())
            inside = links()[:, first:end].sum(1) if first < links().shape[1] else links()[:, -1]
            strongest = int(inside.argmax())
            looks = [row == strongest or first <= partner < end for row, partner in enumerate(links().argmax(1))]
            begin, stop = strongest, strongest + 1
            while begin and looks[begin - 1]:
                begin -= 1
            while stop < len(looks) and looks[stop]:
                stop += 1
            return begin, stop

        return restore(text, masked, words_before, partners)

    def reads(self, source_ids: Sequence[int], ids: Sequence[int]) -> list[int]:
        """What the decoder reads to write `ids`: bos, then these."""
        return [self.model.config.bos, *ids]

    def text(self, ids: Sequence[int]) -> str:
        """What some target ids say."""
        return self.tokenizer.decode(ids)

    def target_ids(self, text: str) -> list[int]:
        """The ids of the beginning of an output, written as text; unknown characters become unk."""
        return self.tokenizer.encode(text)

    def longest(self, source_ids: Sequence[int]) -> int:
        """The most tokens of an output: the source's plus 50 (section 6.1), and what the model can read."""
        return min(len(source_ids) + EXTRA_LENGTH, self.model.config.max_length - 1)

    def constraint(self, rows: Sequence[Sequence[int]]) -> Constraint | None:
        """What the outputs for sentences of these source ids may be; None = anything that the vocabulary can write."""
        return None

    def pair(self, source_ids: Sequence[int], ids: Sequence[int]) -> Batch:
        """What one teacher-forced pass over a sentence and an output of it reads, with its masks, and has to say."""
        config = self.model.config
        *source, end = source_ids
        assert end == config.eos, "as `encode` ends a source"
        batch = collate([(source, ids)], config.neighbourhood, config.pad, config.bos, config.eos)
        return replace(batch, tgt=torch.tensor([self.reads(source_ids, ids)])).to(self.device)

    def weights(self, source_ids: list[int], ids: list[int], encoding: Encoding | None = None) -> AttentionWeights:
        """Every head's weights in one teacher-forced pass over a pair; encoding: as in `Transformer.attend`."""
        pair = self.pair(source_ids, ids)
        with threads_for(self.model, max(pair.src.shape[1], pair.tgt.shape[1])):
            return self.model.attend(pair.src, pair.tgt, pair.src_mask, pair.tgt_mask, encoding)

    def batches(self, encoded: dict[int, list[int]]) -> list[list[int]]:
        """Numbers of the sentences, longest first, in groups of at most BATCH_TOKENS tokens with padding."""
        order = sorted(encoded, key=lambda i: -len(encoded[i]))
        groups: list[list[int]] = []
        for number in order:
            if groups and len(encoded[groups[-1][0]]) * (len(groups[-1]) + 1) <= BATCH_TOKENS:
                groups[-1].append(number)
            else:
                groups.append([number])
        return groups

    def assemble(self, text: str, lines: list[list[Sentence]], options: SearchOptions) -> Translation:
        """Puts translated sentences together again, with what stood around them, line by line."""
        sentences = [sentence for line in lines for sentence in line]
        count = min(options.n_best, max(len(s.hypotheses) for s in sentences))
        hypotheses = []
        for rank in range(count):
            # A sentence with fewer hypotheses than asked for stands with its last one.
            picks = [[s.hypotheses[min(rank, len(s.hypotheses) - 1)] for s in line] for line in lines]
            parts = [h for line in picks for h in line]
            hypotheses.append(
                Hypothesis(
                    "\n".join(
                        "".join(s.segment.around(h.text) for s, h in zip(line, row)) for line, row in zip(lines, picks)
                    ),
                    [t for h in parts for t in h.tokens],
                    sum(h.score for h in parts),
                    sum(h.logprob for h in parts),
                    sum(back) if (back := [h.back for h in parts if h.back is not None]) else None,
                )
            )
        notes = []
        if len(lines) < len(text.splitlines()):
            notes.append("Lines that were broken in mid-sentence were joined.")
        for whole in dict.fromkeys(s.segment.whole for s in sentences if s.segment.whole != s.segment.text):
            count = sum(s.segment.whole == whole for s in sentences)
            notes.append(
                f"The sentence “{shorten(whole)}” is longer than those that the model was trained on; "
                f"it was translated in {count} parts, cut at its clauses."
            )
        usual = [s.usual_text for s in sentences if s.usual_text and s.usual_text != s.source_text]
        if usual:
            more = f" (and {len(usual) - 1} more)" if len(usual) > 1 else ""
            same = all(s.usual_text.lower() == s.source_text.lower() for s in sentences if s.usual_text)
            what = "capitals" if same else "spelling"
            notes.append(f"The model was given the usual {what}: “{shorten(usual[0])}”{more}.")
        for sentence in sentences:
            if sentence.has_loop:
                notes.append(f"The model repeated itself in “{sentence.source_text[:40]}”; the repetition was cut.")
            elif not sentence.finished:
                notes.append(f"The translation of “{sentence.source_text[:40]}” met the length limit and was cut.")
        rules = {
            "Numbers and times were written by rule; what the text has is in brackets": "rewrites",
            "French elision was set by its rule; the model's own words are in brackets": "elisions",
        }
        for words, name in rules.items():
            changes = list(dict.fromkeys(change for sentence in sentences for change in getattr(sentence, name)))
            if changes:
                examples = ", ".join(f"“{after}” (“{before}”)" for before, after in changes[:4])
                notes.append(f"{words}: {examples}.")
        best = hypotheses[0]
        source_tokens = [t for s in sentences for t in self.source_tokens(s)]
        traces = [s.trace or [] for s in sentences] if options.trace else None
        return Translation(
            best.text, best.tokens, text, source_tokens, best.score, hypotheses, traces, sentences, notes
        )

    def source_tokens(self, sentence: Sentence) -> list[str]:
        """The word pieces the encoder read, eos included; for a sentence that was only copied, its words."""
        if not sentence.source_ids:
            return sentence.source_text.split(" ")
        return self.labels(sentence.source_ids, sentence.stand_ins)

    @torch.inference_mode()
    def attend(self, translation: Translation, hypothesis: int = 0, sentence: int = 0) -> Attention:
        """Every head's weights for one hypothesis of one sentence of a translation, in one teacher-forced pass.

        Raises `ValueError` if there is no such hypothesis or sentence, or the sentence was copied without the model.
        """
        expect("translation", translation, Translation, "a Translation")
        entry, ids = translation.sentence_and_ids(sentence, hypothesis)
        model, encoding = entry.encoding or (None, None)
        weights = self.weights(entry.source_ids, ids, encoding if model and model() is self.model else None)
        encoder, decoder, cross = (
            torch.stack(w)[:, 0].float().cpu().numpy() for w in (weights.encoder, weights.decoder, weights.cross)
        )
        eos, bos = self.tokenizer.pieces([self.model.config.eos, self.model.config.bos])
        own = self.labels(ids, entry.stand_ins)
        return Attention(encoder, decoder, cross, self.source_tokens(entry), [*own, eos], [bos, *own])
