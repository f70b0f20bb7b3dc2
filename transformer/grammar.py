"""English and German sentences out of a small grammar of our own: text for a first training, with nothing to download.

The words agree in gender and case, and the verb moves (second place, last place), so that attention has to learn more
than one word after the other.
"""

import random
from collections.abc import Set

from training.files import read_table

NAME = "grammar"  # what stands for this text in the place of a file
# People and things in English and German, with the German gender; adjectives, places and modal verbs in both languages;
# of verbs present, base form and participle in English, present, infinitive and participle in German.
WORDS = read_table(__file__)
ARTICLES = {  # (definite, case) -> article and adjective ending by gender
    (True, "nominative"): {"m": ("der", "e"), "f": ("die", "e"), "n": ("das", "e")},
    (True, "accusative"): {"m": ("den", "en"), "f": ("die", "e"), "n": ("das", "e")},
    (False, "nominative"): {"m": ("ein", "er"), "f": ("eine", "e"), "n": ("ein", "es")},
    (False, "accusative"): {"m": ("einen", "en"), "f": ("eine", "e"), "n": ("ein", "es")},
}


def noun_phrase(draw: random.Random, nouns: list, case: str) -> tuple[str, str]:
    """A noun with its article and at most one adjective, in both languages."""
    definite, (english, german, gender) = draw.random() < 0.5, draw.choice(nouns)
    article, ending = ARTICLES[definite, case][gender]
    words, worte = [english], [german]
    if draw.random() < 0.6:
        adjective, stem = draw.choice(WORDS["adjectives"])
        words.insert(0, adjective)
        worte.insert(0, stem + ending)
    first = "the" if definite else "an" if words[0][0] in "aeiou" else "a"
    return " ".join([first, *words]), " ".join([article, *worte])


def sentence(draw: random.Random) -> tuple[str, str]:
    """One English sentence and its German translation."""
    who, wer = noun_phrase(draw, WORDS["people"], "nominative")
    what, was = noun_phrase(draw, draw.choice((WORDS["people"], WORDS["things"])), "accusative")
    place, ort = draw.choice(WORDS["places"])
    sees, see, participle, sieht, sehen, gesehen = draw.choice(WORDS["verbs"])
    modal, kann = draw.choice(WORDS["modals"])
    kind = draw.randrange(5)
    if kind == 0:
        pair = f"{who} {sees} {what} {place}", f"{wer} {sieht} {ort} {was}"
    elif kind == 1:  # the verb stays in the second place
        pair = f"{place} {who} {sees} {what}", f"{ort} {sieht} {wer} {was}"
    elif kind == 2:  # and its infinitive goes to the end
        pair = f"{who} {modal} {see} {what}", f"{wer} {kann} {was} {sehen}"
    elif kind == 3:
        pair = f"{who} has {participle} {what} {place}", f"{wer} hat {ort} {was} {gesehen}"
    else:  # in a clause the verb itself goes to the end
        says, sagt = noun_phrase(draw, WORDS["people"], "nominative")
        pair = f"{says} says that {who} {sees} {what}", f"{sagt} sagt, dass {wer} {was} {sieht}"
    english, german = (text[0].upper() + text[1:] + "." for text in pair)
    return english, german


def pairs(count: int, seed: int, without: Set[tuple[str, str]] = frozenset()) -> list[tuple[str, str]]:
    """`count` different (English, German) pairs, none of them in `without`; a function of its arguments alone."""
    draw = random.Random(seed)
    unique: dict[tuple[str, str], None] = {}  # in their order
    while len(unique) < count:
        pair = sentence(draw)
        if pair not in without:
            unique[pair] = None
    return list(unique)


def splits(train: int = 6000, val: int = 200, seed: int = 1) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Training and validation pairs; no validation sentence is among the training ones."""
    held_out = pairs(val, seed)
    return pairs(train, seed + 1, without=set(held_out)), held_out
