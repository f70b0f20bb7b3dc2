"""Text in, translation out, and the attention behind it."""

from __future__ import annotations

import math
import re
import unicodedata
import weakref
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from training import assets
from training.weights import fill, load_model
from transformer import marian
from transformer.attention import causal_mask, key_mask
from transformer.casing import usual_case
from transformer.config import TransformerConfig
from transformer.elision import elide
from transformer.model import AttentionWeights, Encoding, Transformer
from transformer.search import SearchResult, TraceStep, TransformerDecoder, beam_search, sample_search
from transformer.threads import threads_for
from transformer.tokenizer import STAND_INS, Tokenizer, language_token, normalise
from transformer.verbatim import Masked, find, mask, put_back, without_loops, word_numbers

FORMAT = "atelier-transformer-1"
EXTRA_LENGTH = 50  # an output may be this much longer than its input (section 6.1)
BATCH_TOKENS = 2048  # source tokens decoded together
LANGUAGES = {"en": "English", "de": "German", "fr": "French"}  # for messages; other codes are shown as they are

_ABBREVIATIONS = {
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "e.g", "i.e", "no", "fig", "approx", "inc",
    "hr", "fr", "nr", "z.b", "d.h", "u.a", "ca", "usw", "bzw", "evtl", "ggf", "str", "vgl",
    "m", "mme", "mlle", "p.ex", "cf", "env",
}  # fmt: skip
_END = re.compile(r"[.!?…]+[\"')\]»”“]*\s+(?=[\"'(\[«„“¿¡]?[^\W_a-zß-öø-ÿ])")
# Where nothing has a capital, sentences begin without; three dots end none there.
_END_SMALL = re.compile(r"(?:(?<!\.)\.|[!?]+)[\"')\]»”“]*\s+(?=[\"'(\[«„“¿¡]?[^\W_])")


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
    read: str = ""  # what the model was given: with the usual capitals (transformer.casing)
    elided: list[tuple[str, str]] = field(default_factory=list)  # best hypothesis: what elision changed, before and after
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
            raise ValueError(f"The text has {len(self.sentences)} sentences; there is no number {sentence} (counted from 0).")
        found = self.sentences[sentence]
        if not found.ids:
            raise ValueError("This sentence holds no words, so it was copied and nothing was decoded.")
        if not 0 <= hypothesis < len(found.ids):
            raise ValueError(f"The sentence has {len(found.ids)} translations; there is no number {hypothesis} (counted from 0).")
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


def split_sentences(line: str) -> list[str]:
    """The sentences of a normalised line. A full stop after an abbreviation, an initial or a number ends none."""
    sentences, start = [], 0
    for match in (_END_SMALL if line == line.lower() else _END).finditer(line):
        words = line[start : match.start()].rsplit(" ", 1)
        last = words[-1].strip("\"'([«„“").lower()
        stop = match.group().strip()
        if stop == "." and (last in _ABBREVIATIONS or len(last) == 1 or last.isdigit()):
            continue
        sentences.append(line[start : match.end()].strip())
        start = match.end()
    rest = line[start:].strip()
    return sentences + ([rest] if rest else [])


def shortened(sentence: str) -> str:
    """A sentence for a message."""
    return sentence if len(sentence) <= 40 else sentence[:40] + "…"


def has_letters(text: str) -> bool:
    """True if any character is a letter of any script."""
    return any(unicodedata.category(c).startswith("L") for c in text)


class Translator:
    """A trained Transformer with its tokenizer."""

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        pairs: list[tuple[str, str]],
        language_tokens: bool = False,
        name: str = "this model",
    ) -> None:
        """pairs: (source, target) languages; language_tokens: a token before the source names the target language."""
        self.model, self.tokenizer, self.language_tokens, self.name = model, tokenizer, language_tokens, name
        self.pairs = [tuple(pair) for pair in pairs]
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
    def from_pretrained(cls, name: str | Path, device: str = "auto") -> Translator:
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
            return cls(model.to(device).eval(), tokenizer, pairs, name=folder.name)
        header, state = load_model(folder)
        if header.get("format") != FORMAT:
            raise ValueError(f"{folder.name} holds no Transformer of this program: its config.json has another format.")
        config = TransformerConfig.from_dict(header["transformer"])
        model = Transformer(config)
        fill(model, state, folder.name)
        tokenizer = Tokenizer.load(folder / "tokenizer.model")
        return cls(model.to(device).eval(), tokenizer, header["pairs"], header.get("language_tokens", False), folder.name)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.embedding.weight.device

    def translate(
        self,
        text: str | list[str],
        source: str | None = None,
        target: str | None = None,
        beam: int = 4,
        alpha: float = 0.6,
        n_best: int = 1,
        max_length: int | None = None,
        trace: bool = False,
        sampling: Sampling | None = None,
    ) -> Translation | list[Translation]:
        """Translates a text, or each text of a list, all sentences in batches; line breaks stay where they are.

        source, target: languages, by default the model's first pair. beam >= n_best >= 1. alpha: length penalty, 0.6 in
        the paper. max_length: most tokens of a translated sentence, by default the source's plus 50. trace: keep
        every step of the search. sampling: draw n_best translations at random, each sentence with a seed of its own;
        beam and trace then mean nothing.

        Raises `ValueError` with one sentence for a pair the model does not have, an empty text, a sentence longer than
        the model can read, and a script that it cannot read.
        """
        source, target = self.check_pair(source, target)
        if beam < 1 or n_best < 1 or (n_best > beam and sampling is None):
            raise ValueError(f"Beam ({beam}) and number of translations ({n_best}) must be 1 <= number <= beam.")
        texts = [text] if isinstance(text, str) else list(text)
        if not texts:
            raise ValueError("There is no text to translate.")
        plans = []  # per text, per line: its sentences
        for number, one in enumerate(texts, 1):
            lines = [split_sentences(normalise(line)) for line in re.split(r"\r\n|\r|\n", one)]
            if not any(lines):
                where = "" if isinstance(text, str) else f" Text {number} of {len(texts)} is empty."
                raise ValueError(f"Please enter some text to translate.{where}")
            plans.append(lines)
        flat = [sentence for lines in plans for line in lines for sentence in line]
        done = iter(self.translate_sentences(flat, source, target, beam, alpha, n_best, max_length, trace, sampling))
        results = [
            self.assemble(one, [[next(done) for _ in line] for line in lines], n_best, trace)
            for one, lines in zip(texts, plans)
        ]
        return results[0] if isinstance(text, str) else results

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
        """A normalised sentence without what has no translation: see `transformer.verbatim`.

        source: its language. Names that the vocabulary has to spell are copied where the model has learned to copy, and
        not in German, where every noun is capitalised.
        """

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
        limit = self.model.config.max_length - len(prefix) - 1
        if len(ids) > limit:
            raise ValueError(
                f"The sentence “{shortened(sentence)}” has {len(ids)} word pieces and this model reads {limit} at most; "
                "break it into shorter sentences."
            )
        return [*prefix, *ids, self.model.config.eos]

    @torch.inference_mode()
    def translate_sentences(
        self, sentences: list[str], source: str, target: str, beam: int, alpha: float, n_best: int,
        max_length: int | None, trace: bool, sampling: Sampling | None = None,
    ) -> list[Sentence]:
        """Each normalised sentence on its own, in batches of similar length; arguments as in `translate`."""
        config = self.model.config
        out: list[Sentence | None] = [None] * len(sentences)
        read = [usual_case(sentence, source, self.piece_count) for sentence in sentences]
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
        training, _ = self.model.training, self.model.eval()
        try:
            for batch in self.batches(encoded):
                rows = [encoded[i] for i in batch]
                longest = max(map(len, rows))
                src = torch.tensor([r + [config.pad] * (longest - len(r)) for r in rows], device=self.device)
                limits = [min(max_length or len(r) + EXTRA_LENGTH, config.max_length - 1) for r in rows]
                forbidden = sorted({config.pad, config.unk, config.bos} - {config.eos})
                with threads_for(self.model, len(batch) * (beam if sampling is None else n_best)):
                    decoder = TransformerDecoder(self.model, src, key_mask(src, config.pad))
                    if sampling is None:
                        found = beam_search(
                            decoder, limits, config.bos, config.eos, beam, alpha, forbidden, trace=trace, device=self.device
                        )
                    else:
                        found = sample_search(
                            decoder, limits, config.bos, config.eos, n_best, sampling.temperature, sampling.top_k,
                            [sampling.seed + number for number in batch], alpha, forbidden, self.device,
                        )
                for number, row, result in zip(batch, rows, found):
                    made = self.sentence(sentences[number], masked[number], row, result, n_best, target)
                    made.read = read[number]
                    made.encoding = (weakref.ref(self.model), decoder.encoding) if decoder.encoding else None
                    out[number] = made
        finally:
            self.model.train(training)
        return out

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
            languages = " or ".join(sorted({LANGUAGES.get(pair[0], pair[0]) for pair in self.pairs}))
            raise ValueError(f"This model cannot read the script of “{shortened(sentence)}”; please write in {languages}.")

    def sentence(
        self, text: str, masked: Masked, source_ids: list[int], result: SearchResult, n_best: int, target: str
    ) -> Sentence:
        """What a search found for one sentence: loops cut, and everything that was taken out back in its place.

        French text gets its elisions; the pieces stay those of the model.
        """
        candidates = result.candidates
        if masked.stand_ins:  # those that copied them all, and once, come first
            wanted = sorted(self.tokenizer.id(piece) for piece in masked.stand_ins)
            all_stand_ins = {self.tokenizer.id(piece) for piece in self.stand_ins}
            candidates = sorted(candidates, key=lambda c: sorted(i for i in c.ids if i in all_stand_ins) != wanted)
        best = candidates[:n_best]

        def words(ids: list[int]) -> bool:
            return has_letters(self.tokenizer.decode(ids))

        repeated = without_loops(source_ids, words) != source_ids
        # A piece that is no text and stands for nothing here is no part of a translation.
        idle = {self.tokenizer.id(piece) for piece in self.silent if piece not in masked.stand_ins}
        said = [[i for i in c.ids if i not in idle] for c in best]
        ids = [own if repeated else without_loops(own, words) for own in said]
        hypotheses, elided = [], []
        for candidate, own in zip(best, ids):
            translated = re.sub(" +", " ", self.tokenizer.decode(own)).strip()
            if masked.removed or masked.stand_ins:
                translated = put_back(translated, masked, lambda word: self.follow(source_ids, own, word))
            if target == "fr":
                translated, changes = elide(translated)
                elided.append(changes)
            pieces = self.labels(own, masked.stand_ins)
            hypotheses.append(Hypothesis(translated, pieces, candidate.score, candidate.logprob))
        return Sentence(
            text, source_ids, ids, hypotheses, result.trace, best[0].finished, ids[0] != said[0],
            stand_ins=masked.stand_ins, elided=elided[0] if elided else [],
        )

    def labels(self, ids: list[int], stand_ins: dict[str, str]) -> list[str]:
        """The word pieces of some ids; a stand-in is shown as what it stands for."""
        return [stand_ins.get(piece, piece) for piece in self.tokenizer.pieces(ids)]

    def follow(self, source_ids: list[int], ids: list[int], words: int) -> int:
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

    def weights(self, source_ids: list[int], ids: list[int], encoding: Encoding | None = None) -> AttentionWeights:
        """Every head's weights for one pair of sentences, in one teacher-forced pass; encoding: as in `Transformer.attend`."""
        config = self.model.config
        src = torch.tensor([source_ids], device=self.device)
        tgt = torch.tensor([[config.bos, *ids]], device=self.device)
        mask = causal_mask(tgt.shape[1], self.device, config.neighbourhood)
        training, _ = self.model.training, self.model.eval()
        try:
            with threads_for(self.model, max(src.shape[1], tgt.shape[1])):
                return self.model.attend(src, tgt, key_mask(src, config.pad), mask, encoding)
        finally:
            self.model.train(training)

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
                )
            )
        notes = []
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
        traces = [s.trace for s in sentences] if trace else None
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
        stack = [torch.stack(w)[:, 0].float().cpu().numpy() for w in (weights.encoder, weights.decoder, weights.cross)]
        eos, bos = self.tokenizer.pieces([self.model.config.eos, self.model.config.bos])
        own = self.labels(ids, found.stand_ins)
        return Attention(*stack, self.source_tokens(found), [*own, eos], [bos, *own])
