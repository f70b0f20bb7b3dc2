"""French elision: "le animal" is written "l'animal". A model that knows a word from few examples breaks this rule of
spelling.

Before a vowel the rule has hardly an exception. Whether an h is mute has to be known word by word, so the model's
choice stands there, as it does before y.
"""

import re

_VOWEL = "aeiouàâäéèêëîïôöùûüæœ"
_ELISION = re.compile(
    # not behind a hyphen: "puis-je avoir", "prends-le avec toi"
    r"(?<![\w'’-])(?:"
    rf"(?:le|la|je|me|te|se|ne|de|que|jusque|lorsque|puisque|quoique) (?=[{_VOWEL}]|y\b)"
    r"(?!onz|oui\b|ouistiti|uhlan|ulul)"
    r"|si (?=ils?\b)"
    r"|quelque (?=une?s?\b)"
    r")",
    re.IGNORECASE,
)
_NEXT_WORD = re.compile(r"[\w'’-]*")


def elide(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A French text with its elisions, and what was changed: (as it stood, as it stands), in the text's order.

    "Le animal que elle aime" gives "L'animal qu'elle aime" and [("Le animal", "L'animal"), ("que elle", "qu'elle")].
    """
    changes = []

    def shorten(match: re.Match) -> str:
        short = match.group()[:-2] + "'"
        next_word = _NEXT_WORD.match(text, match.end())
        following = next_word.group() if next_word else ""
        changes.append((match.group() + following, short + following))
        return short

    return _ELISION.sub(shorten, text), changes
