"""Text in, translation out, and the attention behind it."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
import weakref
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch

from training import assets
from training.weights import build, load_model
from transformer import marian
from transformer.attention import causal_mask, key_mask
from transformer.config import ALPHA, TransformerConfig, read_penalties
from transformer.data import pad_rows
from transformer.kernels import has_bytes, in_bytes
from transformer.model import AttentionWeights, Encoding, Shortlist, Transformer
from transformer.scoring import losses_of_ids, rank_by_reading_back
from transformer.search import NextToken, SearchResult, TraceStep, TransformerDecoder, beam_search, sample_search
from transformer.shortlist import load_shortlists
from transformer.text.casing import usual_case
from transformer.text.elision import elide
from transformer.text.languages import language_name
from transformer.text.sentences import split_clauses, split_sentences
from transformer.text.verbatim import Masked, find, mask, restore, without_loops, word_numbers
from transformer.threads import threads_for
from transformer.tokenizer import STAND_INS, Tokenizer, language_token, normalise

FORMAT = "atelier-transformer-1"
EXTRA_LENGTH = 50  # an output may be this much longer than its input (section 6.1)
BATCH_TOKENS = 2048  # source tokens decoded together
MARGIN = 1.0  # nats behind the best hypothesis of its sentence at which quick translation gives one up
T = TypeVar("T", bound="Translator")


@dataclass(frozen=True)
class Sampling:
    """Draw translations at random instead of searching for the likeliest; see `search.sample_search`."""

    temperature: float = 1.0  # above 0; below 1 likely words gain, above 1 unlikely ones
    top_k: int = 0  # draw among the k likeliest word pieces only; 0 = among all
    seed: int = 0  # the same seed gives the same translations


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
    looped: bool = False  # True: the best hypothesis repeated itself and was cut
    stand_ins: dict[str, str] = field(default_factory=dict)  # pieces that the model copied, and what they stand for
    read: str = ""  # what the model was given: with the usual capitals (transformer.text.casing)
    elided: list[tuple[str, str]] = field(
        default_factory=list
    )  # best hypothesis: what elision changed, before and after
    clause_of: str = ""  # the sentence that was too long for the model, where this is a part of it
    # of a short sentence that was translated alone: the model, and what its encoder made of it
    encoding: tuple[weakref.ref, Encoding] | None = field(default=None, repr=False, compare=False)


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

    def chosen(self, sentence: int = 0, hypothesis: int = 0) -> tuple[Sentence, list[int]]:
        """A sentence and the ids of one of its hypotheses. Raises `ValueError` if the model had no part in it."""
        if not 0 <= sentence < len(self.sentences):
            raise ValueError(
                f"The text has {len(self.sentences)} sentences; there is no number {sentence} (counted from 0)."
            )
        found = self.sentences[sentence]
        if not found.ids:
            raise ValueError("This sentence holds no words, so it was copied and nothing was decoded.")
        if not 0 <= hypothesis < len(found.ids):
            raise ValueError(
                f"The sentence has {len(found.ids)} translations; there is no number {hypothesis} (counted from 0)."
            )
        return found, found.ids[hypothesis]


@dataclass
class Attention:
    """The weights of every head for one sentence, float32 in [0, 1]; rows are queries, columns keys, rows sum to 1."""

    encoder: np.ndarray  # (L, h, S, S)
    decoder: np.ndarray  # (L, h, T, T), zero above the diagonal; its columns are `decoder_tokens`
    cross: np.ndarray  # (L, h, T, S)
    source_tokens: list[str]  # S labels, the last one </s>
    target_tokens: list[str]  # T labels of the rows: the token that is being chosen there, the last one </s>
    decoder_tokens: list[str]  # T labels of what the decoder read: <s>, then the target


def shortened(sentence: str) -> str:
    """A sentence for a message."""
    return sentence if len(sentence) <= 40 else sentence[:40] + "…"


def has_letters(text: str) -> bool:
    """True if any character is a letter of any script."""
    return any(unicodedata.category(c).startswith("L") for c in text)


def read_pairs(header: dict) -> list[tuple[str, str]]:
    """The (source, target) languages in a model's config.json. Raises `ValueError` where they are
    not written as pairs.
    """
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
        self.trained_words = longest
        self.model, self.tokenizer, self.language_tokens, self.name = model.eval(), tokenizer, language_tokens, name
        self.pairs = [(source, target) for source, target in pairs]
        self.without: frozenset[str] = frozenset()  # rules around the model that are left out, of transformer.worth
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
        if Path(name).is_dir():
            folder = Path(name)
        else:  # a shipped model, or somebody/else's
            folder = marian.download(str(name)) if "/" in str(name) else assets.model_dir(str(name))
        device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        if marian.is_marian(folder):
            model, tokenizer, pairs = marian.load(folder)
            told = {"pairs": [list(pair) for pair in pairs]}
            return cls.of_header(model.to(device).eval().requires_grad_(False), tokenizer, told, folder.name)
        header, state = load_model(folder)
        if header.get("format") != FORMAT:
            raise ValueError(f"{folder.name} holds no Transformer of this program: its config.json has another format.")
        config = TransformerConfig.from_dict(header.get("transformer") or {})
        model = build(lambda: Transformer(config), state, folder.name)
        own = folder / "tokenizer.model"
        # The models of a series (transformer.series) share the tokenizer beside their folders.
        vocabulary = Tokenizer.load(own if own.is_file() else folder.parent / "tokenizer.model")
        found = cls.of_header(model.to(device).eval().requires_grad_(False), vocabulary, header, folder.name)
        found.shortlists = load_shortlists(folder, config.vocab_size)
        return found

    @classmethod
    def of_header(
        cls: type[T], model: Transformer, tokenizer: Tokenizer | marian.MarianTokenizer, header: dict, name: str
    ) -> T:
        """The translator that a model folder's config.json describes. Raises `ValueError` if it describes a parser."""
        if "symbols" in header:
            raise ValueError(f"{name} writes trees and does not translate; python -m transformer.parse uses it.")
        told = header.get("longest_words")
        longest = told if isinstance(told, int) and told > 0 else 0
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
        source: str | None = None,
        target: str | None = None,
        beam: int = 4,
        alpha: float | None = None,
        n_best: int = 1,
        max_length: int | None = None,
        trace: bool = False,
        sampling: Sampling | None = None,
        quick: bool = False,
        read_back: bool = False,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: list[str],
        source: str | None = None,
        target: str | None = None,
        beam: int = 4,
        alpha: float | None = None,
        n_best: int = 1,
        max_length: int | None = None,
        trace: bool = False,
        sampling: Sampling | None = None,
        quick: bool = False,
        read_back: bool = False,
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | list[str],
        source: str | None = None,
        target: str | None = None,
        beam: int = 4,
        alpha: float | None = None,
        n_best: int = 1,
        max_length: int | None = None,
        trace: bool = False,
        sampling: Sampling | None = None,
        quick: bool = False,
        read_back: bool = False,
    ) -> Translation | list[Translation]:
        """Translates a text, or each text of a list, all sentences in batches; line breaks stay where they are.

        source, target: languages, by default the model's first pair. beam >= n_best >= 1; of hypotheses that
        read the same one is told. alpha: length penalty, 0.6 in the paper; None = `length_penalty` of the model.
        max_length: most tokens of a translated sentence, by default the source's plus 50. trace: keep every step of
        the search. sampling: draw n_best translations at random, each sentence with a seed of its own; beam and trace
        then mean nothing. quick: multiply by weights of 8 bits (`kernels.in_bytes`), where the processor is made for
        it, search among the words of the target language alone (`shortlist`), where the model names them, and, for
        one translation, give up hypotheses that fall far behind (`MARGIN`); attention maps are computed with 32 bits
        all the same.
        read_back: what the search found is ranked by the way back as well (`scoring.rank_by_reading_back`), by a model
        that has both directions.

        Raises `ValueError` with one sentence for a pair the model does not have, an empty text, a sentence longer than
        the model can read, and a script that it cannot read.
        """
        source, target = self.check_pair(source, target)
        if beam < 1 or n_best < 1 or (n_best > beam and sampling is None):
            raise ValueError(f"Beam ({beam}) and number of translations ({n_best}) must be 1 <= number <= beam.")
        texts = [text] if isinstance(text, str) else list(text)
        if not texts:
            raise ValueError("There is no text to translate.")
        plans = []  # per text, per line: its sentences, and of which longer one each is a clause
        for number, one in enumerate(texts, 1):
            lines = [self.parts(normalise(line), target) for line in re.split(r"\r\n|\r|\n", one)]
            if not any(lines):
                where = "" if isinstance(text, str) else f" Text {number} of {len(texts)} is empty."
                raise ValueError(f"Please enter some text to translate.{where}")
            plans.append(lines)
        flat = [part for lines in plans for line in lines for part, _ in line]
        done = iter(
            self.translate_sentences(
                flat, source, target, beam, alpha, n_best, max_length, trace, sampling, read_back, quick
            )
        )
        results = [
            self.assemble(
                one, [[self.as_clause(next(done), whole) for _, whole in line] for line in lines], n_best, trace
            )
            for one, lines in zip(texts, plans)
        ]
        if quick and not self.can_hurry():
            for result in results:
                result.notes.append("This machine does not multiply quicker in 8 bits; the model ran with 32.")
        if read_back and not self.reads_back(source, target):
            for result in results:
                result.notes.append("This model does not translate the other way round, so nothing was read back.")
        return results[0] if isinstance(text, str) else results

    def reads_back(self, source: str, target: str) -> bool:
        """Whether `read_back` makes a difference for this pair."""
        return (target, source) in self.pairs

    def can_hurry(self) -> bool:
        """Whether `quick` makes a difference where this model is."""
        return self.device.type == "cpu" and has_bytes()

    def shortlist(self, target: str) -> Shortlist | None:
        """The words of a target language with their rows of the output matrix, cut out at its first quick translation;
        None where the model does not name them.
        """
        if target in self.shortlists and target not in self._shortlists:
            output = self.model.embedding.weight, self.model.output_bias
            self._shortlists[target] = Shortlist(self.shortlists[target].to(self.device), *output)
        return self._shortlists.get(target)

    def parts(self, line: str, target: str) -> list[tuple[str, str]]:
        """The sentences of a normalised line, and the clauses of those that are too long: (part, sentence) each."""
        return [
            (part, sentence)
            for sentence in split_sentences(line)
            for part in split_clauses(sentence, lambda text: self.fits(text, target))
        ]

    def fits(self, text: str, target: str) -> bool:
        """Whether the model reads so long a text, and has been trained on texts as long."""
        if self.trained_words and len(text.split()) > self.trained_words:
            return False
        return len(self.tokenizer.encode(text)) <= self.most_pieces()

    def most_pieces(self) -> int:
        """Word pieces of the longest sentence that the model reads, without language token and eos."""
        return self.model.config.max_length - self.language_tokens - 1

    @staticmethod
    def as_clause(sentence: Sentence, whole: str) -> Sentence:
        """Notes of which longer sentence this one is a clause."""
        if whole != sentence.source_text:
            sentence.clause_of = whole
        return sentence

    def check_pair(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The pair that is meant; missing languages are taken from the first pair that fits. Raises `ValueError`."""
        for pair in self.pairs:
            if (source is None or source == pair[0]) and (target is None or target == pair[1]):
                return pair
        known = ", ".join(f"{a} to {b}" for a, b in self.pairs)  # codes, as they are to be written
        asked = f"{source or 'any language'} to {target or 'any language'}"
        raise ValueError(f"{self.name} does not translate {asked}; it translates {known}.")

    def piece_count(self, word: str) -> float:
        """In how many pieces the vocabulary writes a word; infinite if it cannot."""
        ids = self.tokenizer.encode(word)
        return math.inf if self.model.config.unk in ids else len(ids)

    def mask(self, sentence: str, source: str) -> Masked:
        """A normalised sentence without what has no translation: see `transformer.text.verbatim`.

        source: its language. Names that the vocabulary has to spell are copied where the model has learned to copy, and
        not in German, where every noun is capitalised.
        """
        if "verbatim" in self.without:
            return mask(sentence, [], self.stand_ins)

        def unknown(character: str) -> bool:
            return self.model.config.unk in self.tokenizer.encode(character)

        names = self.stand_ins and source != "de"
        spans = find(sentence, unknown, (lambda word: len(self.tokenizer.encode(word))) if names else None)
        return mask(sentence, spans, self.stand_ins)

    def encode(self, sentence: str, target: str) -> list[int]:
        """Source ids of a normalised sentence, with eos and, where the model has them, the language token.

        Raises `ValueError` if the sentence is too long.
        """
        prefix = [self.tokenizer.id(language_token(target))] if self.language_tokens else []
        ids = self.tokenizer.encode(sentence)
        limit = self.most_pieces()
        if len(ids) > limit:
            raise ValueError(
                f"The sentence “{shortened(sentence)}” has {len(ids)} word pieces and this "
                f"model reads {limit} at most; "
                "break it into shorter sentences."
            )
        return [*prefix, *ids, self.model.config.eos]

    @torch.inference_mode()
    def translate_sentences(
        self,
        sentences: list[str],
        source: str,
        target: str,
        beam: int,
        alpha: float | None,
        n_best: int,
        max_length: int | None,
        trace: bool,
        sampling: Sampling | None = None,
        read_back: bool = False,
        quick: bool = False,
    ) -> list[Sentence]:
        """Each normalised sentence on its own, in batches of similar length; arguments as in `translate`."""
        alpha = self.length_penalty(source, target, alpha)
        quick = quick and self.can_hurry()
        config = self.model.config
        out: dict[int, Sentence] = {}
        cased = "casing" not in self.without
        read = [usual_case(s, source, self.piece_count) if cased else s for s in sentences]
        encoded, masked = {}, {}
        for number, sentence in enumerate(sentences):
            known = self.mask(read[number], source)
            if self.has_words(known):
                encoded[number], masked[number] = self.encode(known.text, target), known
            else:  # numbers, addresses, punctuation and emoji are the same in every language
                self.check_script(sentence, known)
                pieces = sentence.split(" ")
                copy = [Hypothesis(sentence, pieces, 0.0, 0.0)]
                out[number] = Sentence(sentence, [], [], copy, [] if trace else None)
        for batch in self.batches(encoded):
            rows = [encoded[i] for i in batch]
            src = pad_rows(rows, config.pad).to(self.device)
            limits = [min(max_length or len(r) + EXTRA_LENGTH, config.max_length - 1) for r in rows]
            shortlist = self.shortlist(target) if quick and sampling is None else None
            # Who asks for several translations is shown what the search would have given up.
            margin = MARGIN if quick and n_best == 1 and not read_back else math.inf
            with in_bytes() if quick else nullcontext():
                with threads_for(self.model, len(batch) * (beam if sampling is None else n_best)):
                    decoder = TransformerDecoder(self.model, src, key_mask(src, config.pad), shortlist=shortlist)
                    found = self.search(decoder, limits, batch, beam, alpha, n_best, trace, sampling, margin)
                if read_back and sampling is None and self.reads_back(source, target):
                    found = self.read_back(rows, found, source, alpha)
            for number, row, result in zip(batch, rows, found):
                distinct = sampling is None  # draws are shown as they came
                made = self.sentence(sentences[number], masked[number], row, result, n_best, target, distinct)
                made.read = read[number]
                # Attention maps are computed with 32 bits.
                made.encoding = (weakref.ref(self.model), decoder.encoding) if decoder.encoding and not quick else None
                out[number] = made
        return [out[number] for number in range(len(sentences))]

    def search(
        self,
        decoder: NextToken,
        limits: list[int],
        numbers: list[int],
        beam: int,
        alpha: float,
        n_best: int,
        trace: bool,
        sampling: Sampling | None,
        margin: float = math.inf,
    ) -> list[SearchResult]:
        """What beam search finds, or what is drawn, for a batch of sentences.

        decoder, limits: of these sentences.
        numbers: theirs in the whole text, so that each draws with a seed of its own.
        beam, alpha, n_best, trace, sampling: as in `translate`.
        margin: as in `beam_search`.
        """
        config = self.model.config
        forbidden = sorted({config.pad, config.unk, config.bos} - {config.eos})
        ends = config.bos, config.eos
        if sampling is None:
            return beam_search(decoder, limits, *ends, beam, alpha, forbidden, trace=trace, margin=margin)
        seeds = [sampling.seed + number for number in numbers]
        temperature, top_k = sampling.temperature, sampling.top_k
        return sample_search(decoder, limits, *ends, n_best, temperature, top_k, seeds, alpha, forbidden)

    def read_back(
        self, rows: list[list[int]], found: list[SearchResult], source: str, alpha: float
    ) -> list[SearchResult]:
        """The same outputs, ranked by how surely the model comes back from them to the source, too.

        rows: the source ids of each search, with language token and eos. source: their language. alpha: length penalty.
        """
        prefix = [self.tokenizer.id(language_token(source))]
        sources = [row[len(prefix) : -1] for row in rows]
        pairs = [([*prefix, *c.ids], ids) for ids, result in zip(sources, found) for c in result.candidates]
        with threads_for(self.model, sum(len(y) + len(x) for y, x in pairs)):
            logprobs = iter([-loss for loss, _ in losses_of_ids(self.model, pairs)])
        return [
            replace(result, candidates=rank_by_reading_back(result.candidates, list(islice(logprobs, count)), alpha))
            for result in found
            for count in [len(result.candidates)]
        ]

    def has_words(self, masked: Masked) -> bool:
        """True if there is anything to translate besides what was taken out."""
        rest = masked.text
        for stand_in in masked.stand_ins:
            rest = rest.replace(stand_in, "")
        return has_letters(rest)

    def check_script(self, sentence: str, masked: Masked) -> None:
        """Raises `ValueError` if the words that were taken out are all there is, in letters the model cannot read."""
        taken = [*masked.stand_ins.values(), *(removed.text for removed in masked.removed)]
        letters = "".join(c for c in "".join(taken) if has_letters(c))
        if self.model.config.unk in self.tokenizer.encode(letters):
            languages = " or ".join(sorted({language_name(pair[0]) for pair in self.pairs}))
            raise ValueError(
                f"This model cannot read the script of “{shortened(sentence)}”; please write in {languages}."
            )

    def sentence(
        self,
        text: str,
        masked: Masked,
        source_ids: list[int],
        result: SearchResult,
        n_best: int,
        target: str,
        distinct: bool = True,
    ) -> Sentence:
        """What a search found for one sentence: loops cut, and everything that was taken out back in its place.

        French text gets its elisions; the pieces stay those of the model.

        distinct: of several that read the same, cut into other pieces, only the best is kept.
        """
        candidates = result.candidates
        if masked.stand_ins:  # those that copied them all, and once, come first
            wanted = sorted(self.tokenizer.id(piece) for piece in masked.stand_ins)
            all_stand_ins = {self.tokenizer.id(piece) for piece in self.stand_ins}
            candidates = sorted(candidates, key=lambda c: sorted(i for i in c.ids if i in all_stand_ins) != wanted)

        def words(ids: list[int]) -> bool:
            return has_letters(self.tokenizer.decode(ids))

        repeated = without_loops(source_ids, words) != source_ids
        # A piece that is no text and stands for nothing here is no part of a translation.
        idle = {self.tokenizer.id(piece) for piece in self.silent if piece not in masked.stand_ins}
        ids: list[list[int]] = []
        hypotheses: list[Hypothesis] = []
        elided: list[tuple[str, str]] = []
        looped = False
        for candidate in candidates:
            said = [i for i in candidate.ids if i not in idle]
            own = said if repeated else without_loops(said, words)
            translated = re.sub(" +", " ", self.tokenizer.decode(own)).strip()
            if masked.removed or masked.stand_ins:
                translated = restore(translated, masked, functools.partial(self._words_before, source_ids, own))
            changes: list[tuple[str, str]] = []
            if target == "fr" and "elision" not in self.without:
                translated, changes = elide(translated)
            if distinct and any(translated == known.text for known in hypotheses):
                continue
            if not hypotheses:
                elided, looped = changes, own != said
            ids.append(own)
            pieces = self.labels(own, masked.stand_ins)
            hypotheses.append(Hypothesis(translated, pieces, candidate.score, candidate.logprob, candidate.back))
            if len(hypotheses) == n_best:
                break
        return Sentence(
            text,
            source_ids,
            ids,
            hypotheses,
            result.trace,
            candidates[0].finished,
            looped,
            stand_ins=masked.stand_ins,
            elided=elided,
        )

    def told(self, sentence: Sentence, result: SearchResult, source: str, target: str) -> Sentence:
        """What another search over the ids of a translated sentence found, as `translate` tells it.

        source, target: languages of the translation.
        """
        known = self.mask(sentence.read, source)
        return self.sentence(sentence.source_text, known, sentence.source_ids, result, 1, target)

    def output_labels(self, ids: list[int], sentence: Sentence) -> list[str]:
        """The labels of what was written for a sentence, eos with them."""
        return self.labels(ids, sentence.stand_ins)

    def labels(self, ids: list[int], stand_ins: dict[str, str]) -> list[str]:
        """The word pieces of some ids; a stand-in is shown as what it stands for."""
        return [stand_ins.get(piece, piece) for piece in self.tokenizer.pieces(ids)]

    def _words_before(self, source_ids: list[int], ids: list[int], words: int) -> int:
        """How many words of a translation come before what stood behind the first `words` words of its source.

        By the last decoder layer's attention, mean of its heads: what follows a word follows the word that looks at it.
        """
        prefix = 1 if self.language_tokens else 0
        source = word_numbers(self.tokenizer.pieces(source_ids[prefix:-1]))
        target = word_numbers(self.tokenizer.pieces(ids))
        if not source or not target or words > source[-1]:  # it stood at the end
            return len(target) and target[-1] + 1
        columns = [column + prefix for column, word in enumerate(source) if word == words - 1]
        cross = self.weights(source_ids, ids).cross[-1][0].mean(0)  # (T, S)
        return target[int(cross[: len(target), columns].sum(1).argmax())] + 1

    def reads(self, source_ids: list[int], ids: list[int]) -> list[int]:
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

    def opened(self, decoder: TransformerDecoder, rows: Sequence[Sequence[int]]) -> Any:
        """A fresh decoder of sentences of these source ids as a search of this model's outputs has it.

        What is returned has everything that `decoder` has.
        """
        return decoder

    def weights(self, source_ids: list[int], ids: list[int], encoding: Encoding | None = None) -> AttentionWeights:
        """Every head's weights for one pair of sentences, in one teacher-forced pass; encoding: as in
        `Transformer.attend`.
        """
        config = self.model.config
        src = torch.tensor([source_ids], device=self.device)
        tgt = torch.tensor([self.reads(source_ids, ids)], device=self.device)
        mask = causal_mask(tgt.shape[1], self.device, config.neighbourhood)
        with threads_for(self.model, max(src.shape[1], tgt.shape[1])):
            return self.model.attend(src, tgt, key_mask(src, config.pad), mask, encoding)

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

    def assemble(self, text: str, lines: list[list[Sentence]], n_best: int, trace: bool) -> Translation:
        """Puts translated sentences together again: one blank between them, lines as they were."""
        sentences = [sentence for line in lines for sentence in line]
        count = min(n_best, max(len(s.hypotheses) for s in sentences))
        hypotheses = []
        for rank in range(count):
            # A sentence with fewer hypotheses than asked for stands with its last one.
            chosen = [[s.hypotheses[min(rank, len(s.hypotheses) - 1)] for s in line] for line in lines]
            parts = [h for line in chosen for h in line]
            hypotheses.append(
                Hypothesis(
                    "\n".join(" ".join(h.text for h in line) for line in chosen),
                    [t for h in parts for t in h.tokens],
                    sum(h.score for h in parts),
                    sum(h.logprob for h in parts),
                    sum(back) if (back := [h.back for h in parts if h.back is not None]) else None,
                )
            )
        notes = []
        for whole in dict.fromkeys(s.clause_of for s in sentences if s.clause_of):
            count = sum(s.clause_of == whole for s in sentences)
            notes.append(
                f"The sentence “{shortened(whole)}” is longer than those that the model was trained on; "
                f"it was translated in {count} parts, cut at its clauses."
            )
        recased = [s.read for s in sentences if s.read and s.read != s.source_text]
        if recased:
            more = f" (and {len(recased) - 1} more)" if len(recased) > 1 else ""
            notes.append(f"The model was given the usual capitals: “{shortened(recased[0])}”{more}.")
        for sentence in sentences:
            if sentence.looped:
                notes.append(f"The model repeated itself in “{sentence.source_text[:40]}”; the repetition was cut.")
            elif not sentence.finished:
                notes.append(f"The translation of “{sentence.source_text[:40]}” met the length limit and was cut.")
        elided = dict.fromkeys(change for sentence in sentences for change in sentence.elided)
        if elided:
            shown = ", ".join(f"“{after}” (“{before}”)" for before, after in list(elided)[:4])
            notes.append(f"French elision was set by its rule; the model's own words are in brackets: {shown}.")
        best = hypotheses[0]
        source_tokens = [t for s in sentences for t in self.source_tokens(s)]
        traces = [s.trace or [] for s in sentences] if trace else None
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
        found, ids = translation.chosen(sentence, hypothesis)
        model, encoding = found.encoding or (None, None)
        weights = self.weights(found.source_ids, ids, encoding if model and model() is self.model else None)
        encoder, decoder, cross = (
            torch.stack(w)[:, 0].float().cpu().numpy() for w in (weights.encoder, weights.decoder, weights.cross)
        )
        eos, bos = self.tokenizer.pieces([self.model.config.eos, self.model.config.bos])
        own = self.labels(ids, found.stand_ins)
        return Attention(encoder, decoder, cross, self.source_tokens(found), [*own, eos], [bos, *own])
