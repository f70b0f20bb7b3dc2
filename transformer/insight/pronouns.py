"""What a translated pronoun shows: which noun the model took "it" for (Levesque et al. 2012, "The Winograd Schema
Challenge", whose trophy and suitcase these are).
"""

import re
from dataclasses import dataclass

from training.files import read_table

SENTENCES = {  # -> what is put into the suitcase, and what "it" means
    "The trophy does not fit in the suitcase because it is too big.": ("trophy", "trophy"),
    "The trophy does not fit in the suitcase because it is too small.": ("trophy", "suitcase"),
    # Of another gender than the suitcase in German and in French.
    "The book does not fit in the suitcase because it is too big.": ("book", "book"),
    "The book does not fit in the suitcase because it is too small.": ("book", "suitcase"),
}
# Genders by language: of pronouns, of articles of a subject (and of "in den Koffer"), of trophies and books, and of
# what stands for the suitcase, whose article may hide it, after "dem", "l'" or a possessive.
_GENDERS = read_table(__file__)


@dataclass(frozen=True)
class Pronoun:
    """A pronoun of a translation and the nouns that it agrees with, of "suitcase" and what is put into it.

    Attributes:
        thing: what is put into it, "trophy" or "book".
        slip: a sentence on its noun and article in the translation, where they do not go together; otherwise empty.
    """

    word: str
    agrees: frozenset[str]
    thing: str = "trophy"
    slip: str = ""

    def verdict(self, noun: str) -> str:
        """Whether the translation shows that "it" was taken for the noun that is meant, and what is wrong beside it."""
        return f"{self._shows(noun)} {self.slip}".rstrip()

    def _shows(self, noun: str) -> str:
        other = self.thing if noun == "suitcase" else "suitcase"
        if self.agrees == {noun}:
            return f"Right: “{self.word}” can only be the {noun}."
        if self.agrees == {other}:
            return f"Wrong: “{self.word}” is the {other}, and the sentence means the {noun}."
        if self.agrees:
            return f"It does not show: “{self.word}” agrees with both nouns."
        return f"Wrong: “{self.word}” agrees with neither noun."


def last_pronoun(text: str, language: str, thing: str = "trophy") -> Pronoun | None:
    """The last subject pronoun of a translation; None where there is none, or a noun's gender cannot be told.

    language: "de" or "fr". thing: what the subject is, "trophy" or "book". It has the gender of its noun and, where the
    model chose an article of another one or a noun that is unknown, that of the article, too.
    """
    whole = re.findall(r"[^\W\d_]+", text)
    words = [word.lower() for word in whole]
    genders = {kind: own[language] for kind, own in _GENDERS.items()}
    pronouns = [word for word in words[1:] if word in genders["pronouns"]]
    if not pronouns:
        return None
    noun, suitcase = (next((word for word in words if word in genders[kind]), None) for kind in (thing, "suitcase"))
    article = genders["articles"].get(words[0])
    subject = {gender for gender in (genders[thing].get(noun), article) if gender}
    if not subject or suitcase is None:
        return None
    gender = genders["pronouns"][pronouns[-1]]
    agrees = [name for name, own in ((thing, subject), ("suitcase", {genders["suitcase"][suitcase]})) if gender in own]
    slip = ""
    if article and noun is None:
        slip = f"This page does not know the noun of “{words[0]} {whole[1]}”."
    elif article and noun and article != genders[thing][noun]:
        slip = f"The article of “{words[0]} {whole[words.index(noun)]}” is wrong."
    return Pronoun(pronouns[-1], frozenset(agrees), thing, slip)
