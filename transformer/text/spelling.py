"""Words as dictionaries have them, for text typed without umlauts, ß, accents or apostrophes, or misspelt.

`assets/spelling` lists the words of the phrasebook that have such letters, the commonest first; the command
`lab.translator.spelling` writes the lists. In front of a word, ~ says that it is another word without them (marché,
marche), ? that it is an English word then (thé, the). `en.txt` has common misspellings, each with what is meant.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

from training.assets import assets_dir
from training.files import read_table

ANOTHER, ENGLISH = "~", "?"
# English contractions that are no words without their apostrophe.
_NOT = re.compile(r"\b((?:do|does|did|is|are|was|were|ca|could|would|should|have|has|had|must)n)t\b", re.IGNORECASE)
_IS = re.compile(
    r"\b(i(?=m\b|ve\b)|(?:you|they)(?=re\b|ve\b)|we(?=ve\b)|(?:that|what|where|there)(?=s\b))", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")
_LONG_ENOUGH, _MIN_PIECES = 5, 3  # letters of a word that may hold a slip; pieces of one that the vocabulary lacks
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_SUFFIX = 6  # letters of the last part of a German compound that is known as a word
# French: what often follows "a" where it is a form of avoir; "the" is English, but for what stands before tea.
_FRENCH = {name: frozenset(" ".join(lines).split()) for name, lines in read_table(__file__).items()}
_PARTICIPLE = re.compile(r"(?:é|i|u|is|it|rt|é[es]?s?)$")


def without_accents(word: str) -> str:
    """A French word as it is typed without accents."""
    plain = word.replace("œ", "oe").replace("Œ", "Oe").replace("æ", "ae")
    return "".join(c for c in unicodedata.normalize("NFD", plain) if unicodedata.category(c) != "Mn")


def german_spellings(word: str) -> set[str]:
    """A German word as it is typed without umlauts, without ß, or without both."""
    return {word.translate(_UMLAUTS), word.replace("ß", "ss"), word.translate(_UMLAUTS).replace("ß", "ss")} - {word}


@cache
def lexicon(language: str) -> dict[str, list[str]]:
    """From how a word is typed, in small letters, to its spellings with their marks, the commonest first."""
    spellings: dict[str, list[str]] = {}
    path = assets_dir() / "spelling" / f"{language}.txt"
    for line in path.read_text(encoding="utf-8").split():
        word = line.lstrip(ANOTHER + ENGLISH)
        forms = german_spellings(word) if language == "de" else {without_accents(word)}
        for one in forms:
            spellings.setdefault(one.lower(), []).append(line)
    return spellings


@cache
def misspellings() -> dict[str, str]:
    """From English words as they are often misspelt, in small letters, to what is meant."""
    lines = (assets_dir() / "spelling" / "en.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def respell(sentence: str, language: str, capitals: bool = True) -> str:
    """A normalised sentence with the letters that a keyboard or a habit left out; often unchanged.

    Where umlauts, ß or accents stand anywhere in the sentence, its writer has them, and what lacks them is meant.
    capitals: whether its capitals are the writer's; otherwise nouns get theirs from the list.
    """
    if language == "en":
        text = _WORD.sub(lambda m: _like(misspellings().get(m[0].lower(), m[0]), m[0], capitals=False), sentence)
        return _IS.sub(r"\1'", _NOT.sub(r"\1't", text))
    if language == "de":
        return _WORD.sub(lambda match: _german(match.group(), sentence, capitals), sentence)
    bare = all(c.isascii() for c in sentence if c.isalpha())
    return _french(sentence) if language == "fr" and bare else sentence


def mend(sentence: str, pieces: Callable[[str], float], is_word: Callable[[str], bool]) -> str:
    """A normalised sentence without the slips that are sure: two letters exchanged (freind), one doubled (allways) or
    not doubled (tomorow), in a word that the vocabulary lacks, where it has the word without the slip.

    pieces: in how many pieces the vocabulary writes a word.
    is_word: whether it has it as one of the sentence's language.
    """

    def correct(match: re.Match) -> str:
        word = match.group()
        if len(word) < _LONG_ENOUGH or not word.islower() or pieces(word) < _MIN_PIECES:
            return word
        return next((one for one in _without_slip(word) if is_word(one)), word)

    return _WORD.sub(correct, sentence)


def _without_slip(word: str) -> Iterator[str]:
    """What a word may have been meant as, the likeliest first; its first letter stays."""
    places = range(1, len(word))
    yield from (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1])
    yield from (word[:i] + word[i + 1 :] for i in places if word[i] == word[i - 1])
    yield from (word[:i] + word[i] + word[i:] for i in places)


def _like(word: str, model: str, capitals: bool = True) -> str:
    """`word` with the capitals of `model`."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[0].isupper() else word.lower() if capitals else word


def _german(word: str, sentence: str, capitals: bool) -> str:
    """A German word with its umlauts and ß."""
    low = word.lower()
    has_umlauts = re.search("[äöüÄÖÜ]", sentence) is not None
    if not (("ss" in low and "ß" not in sentence) or (re.search("ae|oe|ue", low) and not has_umlauts)):
        return word
    words = lexicon("de")
    for start in range(max(1, len(low) - _SUFFIX + 1)):
        entry = words.get(low[start:], [ANOTHER])[0]
        if not entry.startswith(ANOTHER):
            spelling = entry.lstrip(ENGLISH)
            return _like(spelling, word, capitals) if not start else word[:start] + spelling.lower()
    return word


def _french(sentence: str) -> str:
    """A French sentence with its accents, if words that are none without them show that they were left out."""
    words = _WORD.findall(sentence)
    entries = lexicon("fr")
    if not any(
        word.islower() and (entry := entries.get(word)) and entry[0][0] not in ANOTHER + ENGLISH for word in words
    ):
        return sentence
    result: list[str] = []
    for number, word in enumerate(words):
        before = result[-1].lower() if result else ""
        after = words[number + 1].lower() if number + 1 < len(words) else ""
        result.append(_french_word(word, before, after))
    spellings = iter(result)
    return _WORD.sub(lambda _: next(spellings), sentence)


def _french_word(word: str, before: str, after: str) -> str:
    """A French word with its accents, by the word before it and the one that follows, as that was typed."""
    low = word.lower()
    following = [one.lstrip(ANOTHER + ENGLISH) for one in lexicon("fr").get(after, [after])]
    if low == "a":
        is_verb = before in _FRENCH["subjects"] or any(
            _PARTICIPLE.search(one) or one in _FRENCH["after avoir"] for one in following
        )
        return word if is_verb else _like("à", word)
    if low == "the":
        return _like("thé", word) if word.islower() and before in _FRENCH["before tea"] else word
    if low == "ou":
        return _like("où", word) if not before or after in ("est", "sont", "se", "vas", "va") else word
    entries = lexicon("fr").get(low, [])
    plain = [one.lstrip(ANOTHER + ENGLISH) for one in entries]
    past = [one for one in plain if re.search("é[es]?s?$", one)]
    if before in _FRENCH["auxiliaries"] and past:
        return _like(past[0], word)
    if not entries or entries[0].startswith(ANOTHER):
        return word
    others = [one for one in plain if one not in past]
    return _like((others or plain)[0] if len(plain) > 1 and plain[0] in past else plain[0], word)
