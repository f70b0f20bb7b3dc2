"""Text in, translation out, and the attention behind it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from training import assets
from training.weights import fill, load_model
from transformer import marian
from transformer.attention import causal_mask, key_mask
from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.search import TraceStep, TransformerDecoder, beam_search, sample_search
from transformer.tokenizer import Tokenizer, language_token, normalise

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
    for match in _END.finditer(line):
        words = line[start : match.start()].rsplit(" ", 1)
        last = words[-1].strip("\"'([«„“").lower()
        stop = match.group().strip()
        if stop == "." and (last in _ABBREVIATIONS or len(last) == 1 or last.isdigit()):
            continue
        sentences.append(line[start : match.end()].strip())
        start = match.end()
    rest = line[start:].strip()
    return sentences + ([rest] if rest else [])


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
            return cls(model.to(device), tokenizer, pairs, name=folder.name)
        header, state = load_model(folder)
        if header.get("format") != FORMAT:
            raise ValueError(f"{folder.name} holds no Transformer of this program: its config.json has another format.")
        config = TransformerConfig.from_dict(header["transformer"])
        model = Transformer(config)
        fill(model, state, folder.name)
        tokenizer = Tokenizer.load(folder / "tokenizer.model")
        return cls(model.to(device), tokenizer, header["pairs"], header.get("language_tokens", False), folder.name)

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

    def edges(self, sentence: str) -> tuple[str, str, str]:
        """(before, words, after) of a normalised sentence: emoji and other signs at its ends that the vocabulary lacks.

        The model would drop them; they are the same in every language, so they go around it.
        """
        words = sentence.split(" ")

        def foreign(word: str) -> bool:
            return not any(map(str.isalnum, word)) and self.model.config.unk in self.tokenizer.encode(word)

        first, last = 0, len(words)
        while first < last and foreign(words[first]):
            first += 1
        while last > first and foreign(words[last - 1]):
            last -= 1
        return " ".join(words[:first]), " ".join(words[first:last]), " ".join(words[last:])

    def encode(self, sentence: str, target: str) -> list[int]:
        """Source ids of a normalised sentence, with eos and, where the model has them, the language token.

        Raises `ValueError` if the sentence is too long, or holds letters but none that the vocabulary knows.
        """
        prefix = [self.tokenizer.id(language_token(target))] if self.language_tokens else []
        ids = self.tokenizer.encode(sentence)
        limit = self.model.config.max_length - len(prefix) - 1
        shown = sentence if len(sentence) <= 40 else sentence[:40] + "…"
        if len(ids) > limit:
            raise ValueError(
                f"The sentence “{shown}” has {len(ids)} word pieces and this model reads {limit} at most; "
                "break it into shorter sentences."
            )
        unk = self.model.config.unk
        known = "".join(p for i, p in zip(ids, self.tokenizer.pieces(ids)) if i != unk)
        if has_letters(sentence) and not has_letters(known):
            languages = " or ".join(sorted({LANGUAGES.get(pair[0], pair[0]) for pair in self.pairs}))
            raise ValueError(f"This model cannot read the script of “{shown}”; please write in {languages}.")
        return [*prefix, *ids, self.model.config.eos]

    @torch.inference_mode()
    def translate_sentences(
        self, sentences: list[str], source: str, target: str, beam: int, alpha: float, n_best: int,
        max_length: int | None, trace: bool, sampling: Sampling | None = None,
    ) -> list[Sentence]:
        """Each normalised sentence on its own, in batches of similar length; arguments as in `translate`."""
        config = self.model.config
        out: list[Sentence | None] = [None] * len(sentences)
        encoded, around = {}, {}
        for number, sentence in enumerate(sentences):
            if has_letters(sentence):
                before, words, after = self.edges(sentence)
                encoded[number], around[number] = self.encode(words, target), (before, after)
            else:  # numbers, punctuation and emoji are the same in every language
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
                decoder = TransformerDecoder(self.model, src, key_mask(src, config.pad))
                forbidden = sorted({config.pad, config.unk, config.bos} - {config.eos})
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
                    best = result.candidates[:n_best]
                    before, after = around[number]
                    texts = [" ".join(filter(None, (before, self.tokenizer.decode(c.ids), after))) for c in best]
                    pieces = [self.tokenizer.pieces(c.ids) for c in best]
                    hypotheses = [Hypothesis(t, p, c.score, c.logprob) for t, p, c in zip(texts, pieces, best)]
                    out[number] = Sentence(
                        sentences[number], row, [c.ids for c in best], hypotheses, result.trace, best[0].finished
                    )
        finally:
            self.model.train(training)
        return out

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
        cut = [s.source_text[:40] for s in sentences if not s.finished]
        notes = [f"The translation of “{start}” met the length limit and was cut." for start in cut]
        best = hypotheses[0]
        source_tokens = [t for s in sentences for t in self.source_tokens(s)]
        traces = [s.trace for s in sentences] if trace else None
        return Translation(
            best.text, best.tokens, text, source_tokens, best.score, hypotheses, traces, sentences, notes
        )

    def source_tokens(self, sentence: Sentence) -> list[str]:
        """The word pieces the encoder read, eos included; for a sentence that was only copied, its words."""
        return self.tokenizer.pieces(sentence.source_ids) if sentence.source_ids else sentence.source_text.split(" ")

    @torch.inference_mode()
    def attend(self, translation: Translation, hypothesis: int = 0, sentence: int = 0) -> Attention:
        """Every head's weights for one hypothesis of one sentence of a translation, in one teacher-forced pass.

        Raises `ValueError` if there is no such hypothesis or sentence, or the sentence was copied without the model.
        """
        if not 0 <= sentence < len(translation.sentences):
            raise ValueError(f"The text has {len(translation.sentences)} sentences; there is no number {sentence}.")
        chosen = translation.sentences[sentence]
        if not chosen.ids:
            raise ValueError("This sentence holds no words, so it was copied and no attention was paid to it.")
        if not 0 <= hypothesis < len(chosen.ids):
            raise ValueError(f"The sentence has {len(chosen.ids)} translations; there is no number {hypothesis}.")
        config = self.model.config
        src = torch.tensor([chosen.source_ids], device=self.device)
        tgt = torch.tensor([[config.bos, *chosen.ids[hypothesis]]], device=self.device)
        mask = causal_mask(tgt.shape[1], self.device, config.neighbourhood)
        training, _ = self.model.training, self.model.eval()
        try:
            weights = self.model.attend(src, tgt, key_mask(src, config.pad), mask)
        finally:
            self.model.train(training)
        stack = [torch.stack(w)[:, 0].float().cpu().numpy() for w in (weights.encoder, weights.decoder, weights.cross)]
        ids = chosen.ids[hypothesis]
        pieces = self.tokenizer.pieces
        return Attention(*stack, pieces(chosen.source_ids), pieces([*ids, config.eos]), pieces([config.bos, *ids]))
