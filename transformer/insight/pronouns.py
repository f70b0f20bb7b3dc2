"""What a translated pronoun shows: which noun the model took "it" for (Levesque et al. 2012, "The Winograd Schema
Challenge", whose trophy and suitcase these are).
"""

import re
from dataclasses import dataclass

from training.files import read_table

SENTENCES = {  # -> what "it" means
    "The trophy does not fit in the suitcase because it is too big.": "trophy",
    "The trophy does not fit in the suitcase because it is too small.": "suitcase",
}
# Genders by language: of pronouns, of articles of a subject (and of "in den Koffer"), of trophies, and of what stands
# for the suitcase, whose article may hide it, after "dem", "l'" or a possessive.
_GENDERS = read_table(__file__)


@dataclass(frozen=True)
class Pronoun:
    """A pronoun of a translation and the nouns that it agrees with, of "trophy" and "suitcase"."""

    word: str
    agrees: frozenset[str]

    def verdict(self, noun: str) -> str:
        """One sentence: whether the translation shows that "it" was taken for the noun that is meant."""
        other = "suitcase" if noun == "trophy" else "trophy"
        if self.agrees == {noun}:
            return f"Right: “{self.word}” can only be the {noun}."
        if self.agrees == {other}:
            return f"Wrong: “{self.word}” is the {other}, and the sentence means the {noun}."
        if self.agrees:
            return f"It does not show: “{self.word}” agrees with both nouns."
        return f"Wrong: “{self.word}” agrees with neither noun."


def last_pronoun(text: str, language: str) -> Pronoun | None:
    """The last subject pronoun of a translation; None where there is none, or a noun's gender cannot be told.

    language: "de" or "fr". The subject's gender is that of its noun, or of its article where the noun is unknown.
    """
    words = re.findall(r"[^\W\d_]+", text.lower())
    genders = {kind: own[language] for kind, own in _GENDERS.items()}
    pronouns = [word for word in words[1:] if word in genders["pronouns"]]
    if not pronouns:
        return None
    trophy, suitcase = (
        next((genders[kind][word] for word in words if word in genders[kind]), None) for kind in ("trophies", "nouns")
    )
    trophy = trophy or genders["articles"].get(words[0])
    if trophy is None or suitcase is None:
        return None
    gender = genders["pronouns"][pronouns[-1]]
    agrees = [name for name, own in (("trophy", trophy), ("suitcase", suitcase)) if own == gender]
    return Pronoun(pronouns[-1], frozenset(agrees))
