"""Language pairs: their names on the page, and which model translates which."""

from __future__ import annotations

from ui.services import Services, shipped_pairs

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "cs": "Czech", "es": "Spanish", "ko": "Korean"}


def pair_label(source: str, target: str) -> str:
    """How a language pair is written in a choice of languages."""
    return f"{LANGUAGES.get(source, source)} → {LANGUAGES.get(target, target)}"


def pair_choices(services: Services, model: str | None, others: bool = False) -> list[tuple[str, str]]:
    """(label, "source-target") of a model's language pairs; others: then those that only other shipped models have."""
    pairs = list(services.pairs(model or None))
    for found in shipped_pairs().values() if others else ():
        pairs += [pair for pair in found if pair not in pairs]
    return [(pair_label(*pair), "-".join(pair)) for pair in pairs]


def model_for(services: Services, pair: str, model: str | None) -> str | None:
    """Key of the model that translates "en-de": the chosen one if it can (None = the default one), else a shipped one.

    Raises ValueError with one sentence if there is none.
    """
    source, _, target = str(pair).partition("-")
    if (source, target) in services.pairs(model or None):
        return model or None
    for name, pairs in shipped_pairs().items():
        if (source, target) in pairs:
            return name
    raise ValueError(
        f"No model here translates {pair_label(source, target)}; choose another one under Model and search, or train "
        "one in the Train tab."
    )
