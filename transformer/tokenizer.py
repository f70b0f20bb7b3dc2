"""One SentencePiece vocabulary for all languages, and the one place where text is normalised."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

PAD, UNK, BOS, EOS = 0, 1, 2, 3
STAND_INS = ("<x1>", "<x2>", "<x3>", "<x4>")  # pieces that stand for text that is copied as it is
SPACE = "\u2581"  # SentencePiece's mark for the blank before a word
_BLANKS = re.compile(r"\s+")
# Zero-width and direction marks, soft hyphen, byte-order mark; not U+200D, which joins emoji.
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def normalise(text: str) -> str:
    """NFC, the typographic apostrophe as ', blanks of every kind as one space, no outer or invisible characters.

    Corpora and visitors' text go through this one function, so a model meets what it was trained on.
    """
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).replace("\u2019", "'")
    # Control characters other than blanks carry no text; they come from copied documents.
    text = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cs"))
    return _BLANKS.sub(" ", text).strip()


def language_token(language: str) -> str:
    """The token that asks a model with several target languages for one of them, put before the source."""
    return f"<2{language}>"


def is_language_token(piece: str) -> bool:
    """True for the pieces that `language_token` makes."""
    return re.fullmatch("<2[^<>]+>", piece) is not None


class Tokenizer:
    """Text to word pieces and back. Ids 0-3 are pad, unk, bos and eos."""

    def __init__(self, model: bytes) -> None:
        """model: a serialised SentencePiece model. Raises `ValueError` if it is none, or has other special ids."""
        import sentencepiece

        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._pieces.get_piece_size()
        except (RuntimeError, OSError, TypeError):
            raise ValueError("The tokenizer file is damaged or not a SentencePiece model; copy it again.") from None
        special = (self._pieces.pad_id(), self._pieces.unk_id(), self._pieces.bos_id(), self._pieces.eos_id())
        if special != (PAD, UNK, BOS, EOS):
            raise ValueError(f"The tokenizer's special tokens have the ids {special}; this program needs (0, 1, 2, 3).")
        self.model = model

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        languages: Iterable[str] = (),
        stand_ins: bool = False,
        controls: Iterable[str] = (),
    ) -> Tokenizer:
        """Learns one joint vocabulary of `vocab_size` pieces, with a `language_token` for each of `languages`.

        stand_ins: adds the pieces of `transformer.text.verbatim` and writes each digit as a piece of its own, so that a
        model can copy what has no translation. controls: pieces that no text holds, with the ids from 4 on. texts:
        normalised sentences; if they hold fewer different pieces than that, the vocabulary is smaller. The result
        depends on the texts and sizes alone. Raises `ValueError` if their characters alone need more.
        """
        import sentencepiece

        out = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=out,
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                model_type="unigram",
                character_coverage=1.0,
                normalization_rule_name="identity",  # `normalise` has done it
                user_defined_symbols=[*map(language_token, languages), *(STAND_INS if stand_ins else ())],
                control_symbols=list(controls),
                split_digits=stand_ins,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=1,  # the order of sums, and with it the result, stays the same
                minloglevel=2,
            )
        except RuntimeError as error:
            few = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", str(error))
            hint = f"; their characters alone need {few[2]}" if few else ""
            raise ValueError(f"No vocabulary of {vocab_size} word pieces can be made of these texts{hint}.") from None
        return cls(out.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Reads what `save` wrote. Raises `ValueError` with one sentence if the file is missing or damaged."""
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"The model folder {path.parent.name} is not complete: {path.name} is missing.")
        return cls(path.read_bytes())

    def save(self, path: str | Path) -> None:
        """Writes the SentencePiece model to `path`."""
        Path(path).write_bytes(self.model)

    def __len__(self) -> int:
        return self._pieces.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids of a normalised sentence, without bos and eos; unknown characters become unk."""
        return self._pieces.encode(text)

    def inside(self, letters: str) -> list[int]:
        """Ids of some letters as they stand inside a word, without the blank before it."""
        ids = self._pieces.encode("\n" + letters)  # no vocabulary has a line break: `normalise` makes blanks of them
        return ids[ids.index(UNK) + 1 :]

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence of some ids; special tokens leave no trace."""
        return self._pieces.decode([int(i) for i in ids if int(i) not in (PAD, BOS, EOS)])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The written form of each id, for example '\u2581bicycle' or '</s>'."""
        return [self._pieces.id_to_piece(int(i)) for i in ids]

    def id(self, piece: str) -> int:
        """The id of one piece, unk's if there is none."""
        return self._pieces.piece_to_id(piece)
