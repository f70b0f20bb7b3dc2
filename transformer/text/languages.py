"""The names of languages, by the codes that models use."""

LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "cs": "Czech",
    "es": "Spanish",
    "ko": "Korean",
    "tree": "phrase structure tree",
}


def language_name(code: str) -> str:
    """The English name of a language: "German" for "de"; an unknown code stays as it is."""
    return LANGUAGES.get(code, code)
