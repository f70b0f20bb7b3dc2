"""What a translated pronoun shows: which noun the model took "it" for (Levesque et al. 2012, "The Winograd Schema
Challenge", whose trophy and suitcase these are).
"""

import re
from dataclasses import dataclass

SENTENCES = {  # -> what "it" means
    "The trophy does not fit in the suitcase because it is too big.": "trophy",
    "The trophy does not fit in the suitcase because it is too small.": "suitcase",
}
PRONOUNS = {"de": {"er": "m", "sie": "f", "es": "n"}, "fr": {"il": "m", "elle": "f"}}
ARTICLES = {
    "de": {"der": "m", "den": "m", "die": "f", "das": "n"},  # of a subject; and of "in den Koffer"
    "fr": {"le": "m", "la": "f"},
}
# Nouns whose article hides their gender, after "dem", "l'" or a possessive.
NOUNS = {
    "de": {"koffer": "m", "tasche": "f", "reisetasche": "f", "handkoffer": "m"},
    "fr": {"valise": "f", "malle": "f", "mallette": "f", "sac": "m", "étui": "m"},
}
TROPHIES = {
    "de": {"trophäe": "f", "pokal": "m", "preis": "m", "auszeichnung": "f"},
    "fr": {"trophée": "m", "coupe": "f", "prix": "m"},
}


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
    pronouns = [word for word in words[1:] if word in PRONOUNS[language]]
    if not pronouns:
        return None
    trophy = next((TROPHIES[language][word] for word in words if word in TROPHIES[language]), None)
    trophy = trophy or ARTICLES[language].get(words[0])
    suitcase = next((NOUNS[language][word] for word in words if word in NOUNS[language]), None)
    if trophy is None or suitcase is None:
        return None
    gender = PRONOUNS[language][pronouns[-1]]
    agrees = [name for name, own in (("trophy", trophy), ("suitcase", suitcase)) if own == gender]
    return Pronoun(pronouns[-1], frozenset(agrees))
