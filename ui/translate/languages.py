"""Language pairs: their names on the page, and which model translates which."""

import re

from training.files import read_table
from transformer.text.languages import language_name
from ui.services import Services, model_pairs


def pair_label(source: str, target: str) -> str:
    """How a language pair is written in a choice of languages."""
    return f"{language_name(source)} → {language_name(target)}"


def pair_choices(services: Services, model: str | None, others: bool = False) -> list[tuple[str, str]]:
    """(label, "source-target") of a model's language pairs; others: then those that only other shipped models have."""
    pairs = list(services.pairs(model or None))
    for own in model_pairs().values() if others else ():
        pairs += [pair for pair in own if pair not in pairs]
    return [(pair_label(*pair), "-".join(pair)) for pair in pairs]


def model_for(services: Services, pair: str, model: str | None) -> str | None:
    """Key of the model that translates "en-de": the chosen one if it can (None = the default one), else a shipped one.

    Raises ValueError with one sentence if there is none.
    """
    source, _, target = str(pair).partition("-")
    if (source, target) in services.pairs(model or None):
        return model or None
    for name, pairs in model_pairs().items():
        if (source, target) in pairs:
            return name
    raise ValueError(
        f"No model here translates {pair_label(source, target)}; choose another one under Model and search, or train "
        "one in the Train tab."
    )


# Frequent short words that belong to one of the languages alone, as far as these languages are concerned.
_FREQUENT = {language: frozenset(words.split()) for language, words in read_table(__file__).items()}


def plainly_in(text: str) -> str | None:
    """The language that a text is plainly written in, "de" for example, or None where that is not plain.

    Counts frequent words: one language has at least two of them, and more than twice as many as any other.
    """
    if any("\uac00" <= letter <= "\ud7a3" for letter in text):
        return "ko"
    words = re.findall(r"[^\W\d_]+", text.lower().replace("’", "'"))
    counts = sorted(
        ((sum(w in vocabulary for w in words), language) for language, vocabulary in _FREQUENT.items()), reverse=True
    )
    (most, language), (second, _) = counts[:2]
    return language if most >= 2 and most > 2 * second else None


def better_pair(services: Services, text: str, pair: str, model: str | None) -> str | None:
    """The pair for a text that is plainly not in the source language of `pair`, if a model here has one; else None."""
    source, _, target = pair.partition("-")
    language = plainly_in(text)
    if language is None or language == source:
        return None
    for other in (target, source):
        try:
            if language != other:
                model_for(services, f"{language}-{other}", model)
                return f"{language}-{other}"
        except ValueError:
            continue
    return None
