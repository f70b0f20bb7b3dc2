"""Words: text cut as the treebank cuts it, what the model reads of them, and where a tree's leaves are in that."""

import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from training.files import read_table
from transformer.tokenizer import SPACE, Tokenizer, normalise
from transformer.translator import shorten

_ABBREVIATIONS = r"al|e\.g|i\.e|Figs?|Dr|Mrs?|Ms|Prof|St|vs|Inc|ca|cf|etc"
_WORD = re.compile(
    rf"""
    https?://\S*[^\s.,;:!?)\]]                               # addresses
  | (?:(?:{_ABBREVIATIONS})|\b[A-Z]|(?:[A-Za-z]\.)+[A-Za-z])\.(?=\s+\S)   # abbreviations and initials, but no last word
  | \d+(?:[.,]\d+)+(?!\w)                                   # 1,000 and 3.5
  | \w+(?='[sS]\b|n't\b)                                    # before a clitic
  | n't\b|'(?:s|S|re|ve|ll|d|m)\b                           # clitics
  | \.\.\.|--
  | \w+
  | \S
    """,
    re.VERBOSE,
)
_NEGATION = re.compile(r"(?i)\b(\w+?)(n't)\b")


def split_words(text: str) -> list[str]:
    """The words of an English sentence as a treebank has them: punctuation, hyphens and clitics by themselves."""
    return _WORD.findall(_NEGATION.sub(r"\1 \2", normalise(text)))


MAX_WORDS = 100  # of one sentence; longer ones are too rare in a treebank to be learned from
# The most frequent words of each language.
_LANGUAGES = {language: frozenset(" ".join(lines).split()) for language, lines in read_table(__file__).items()}


def foreign_language(words: Sequence[str]) -> str | None:
    """The language, if by its most frequent words a sentence is rather in that one than in English; else None."""
    small = [word.lower() for word in words]
    counts = {language: sum(word in frequent for word in small) for language, frequent in _LANGUAGES.items()}
    best = max(counts, key=lambda language: (counts[language], language == "English"))
    return best if counts[best] > counts["English"] and (counts[best] > 1 or counts["English"] == 0) else None


def check_words(text: str, words: Sequence[str], unknown: Callable[[str], bool]) -> None:
    """Raises `ValueError` with one sentence for a sentence that is not to be parsed.

    It has no words, or more than MAX_WORDS, is in another language, or in letters the model cannot read. unknown:
    tells of a word whether it holds a character that the vocabulary lacks.
    """
    extract = shorten(text)
    with_letters = [word for word in words if any(character.isalpha() for character in word)]
    if not with_letters:
        raise ValueError(f"There is no word to parse in “{extract}”; please enter an English sentence.")
    if len(words) > MAX_WORDS:
        raise ValueError(
            f"The sentence “{extract}” has {len(words)} words and the parser takes {MAX_WORDS} at most; break it into "
            "shorter ones."
        )
    if 2 * sum(map(unknown, with_letters)) >= len(with_letters):
        raise ValueError(f"The parser cannot read the script of “{extract}”; please write in English.")
    if language := foreign_language(words):
        raise ValueError(f"“{extract}” looks {language}; the parser has learned English alone.")


def sentence(words: list[str]) -> str:
    """The text that the model reads: the words with a blank between them, each without blanks of its own."""
    return " ".join(normalise(word).replace(" ", "") or "?" for word in words)


def word_starts(tokenizer: Tokenizer) -> Tensor:
    """(V,) bool, for each piece whether it begins a word."""
    return torch.tensor([piece.startswith(SPACE) for piece in tokenizer.pieces(range(len(tokenizer)))])


def leaves_to_words(src: Tensor, tgt: Tensor, starts: Tensor, leaf: int, blank: int) -> Tensor:
    """tgt with the n-th leaf of each row replaced by the first piece of the n-th word of that row of src.

    The words of a tree are known, so the decoder may read them: it need not count how far it has come. src (B, S) and
    tgt (B, T) ids; starts as `word_starts` makes it; leaf: the id of XX; blank: that of the piece of a blank alone, for
    which the next piece stands.
    """
    begins = starts[src]
    rows, columns = begins.nonzero(as_tuple=True)
    firsts = torch.full_like(src, leaf)  # (B, S), column n: what stands for word n
    firsts[rows, begins.long().cumsum(1)[rows, columns] - 1] = src[rows, columns + (src[rows, columns] == blank)]
    number = (tgt == leaf).long().cumsum(1) - 1
    return torch.where(tgt == leaf, firsts.gather(1, number.clamp(0, src.shape[1] - 1)), tgt)


def leaf_words(source_ids: Sequence[int], starts: Tensor, blank: int) -> list[int]:
    """What the decoder reads for each word of one sentence; arguments as in `leaves_to_words`."""
    src = torch.tensor([list(source_ids)], device=starts.device)
    leaves = torch.full((1, int(starts[src].sum())), -1, device=starts.device)
    return leaves_to_words(src, leaves, starts, -1, blank)[0].tolist()
