"""Trees as sequences and back, after Vinyals et al. (2014), "Grammar as a Foreign Language".

    (S (NP (DT The) (NN cell)) (VP (VBZ divides)) (. .))   ->   (S (NP XX XX )NP (VP XX )VP XX )S

Closing brackets carry their label, and each word is the same token XX: a tree is given back its words, which the
reader knows. Part-of-speech tags do not survive the way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformer.parsing.trees import TAG, TOP, Leaf, Tree


def opening(label: str) -> str:
    """The token that begins a phrase."""
    return f"({label}"


def closing(label: str) -> str:
    """The token that ends it."""
    return f"){label}"


def linearise(tree: Tree) -> list[str]:
    """The tokens of a prepared tree; a phrase TOP leaves no token of its own."""
    tokens = []
    for child in tree.children:
        tokens += linearise(child) if isinstance(child, Tree) else [TAG]
    return tokens if tree.label == TOP else [opening(tree.label), *tokens, closing(tree.label)]


def delinearise(tokens: Sequence[str], words: Sequence[str], tags: Sequence[str] = ()) -> Tree:
    """The inverse: the tree, under TOP, that these tokens write over these words.

    tags: one for each word; by default each is XX, since the tokens say nothing of them. Raises `ValueError` with one
    sentence for tokens that are not a tree over exactly that many words.
    """
    open_phrases: list[tuple[str, list[Tree | Leaf]]] = [(TOP, [])]
    count = 0
    for token in tokens:
        if token == TAG:
            if count == len(words):
                raise ValueError(f"the tree has more leaves than the {len(words)} words of the sentence.")
            open_phrases[-1][1].append(Leaf(tags[count] if tags else TAG, words[count]))
            count += 1
        elif token.startswith("("):
            open_phrases.append((token[1:], []))
        elif token.startswith(")"):
            label, children = open_phrases.pop()
            if not open_phrases or label != token[1:]:
                raise ValueError(f"the bracket {token} closes no phrase {token[1:]}.")
            if not children:
                raise ValueError(f"the phrase {label} holds no word.")
            open_phrases[-1][1].append(Tree(label, tuple(children)))
        else:
            raise ValueError(f"{token!r} is not a token of a tree.")
    if len(open_phrases) > 1:
        raise ValueError(f"the phrase {open_phrases[-1][0]} is never closed.")
    if count < len(words) or not words:
        raise ValueError(f"the tree has {count} leaves and the sentence {len(words)} words.")
    return Tree(TOP, tuple(open_phrases[0][1]))


def symbols(labels: Iterable[str]) -> list[str]:
    """Every token that trees with these labels are written in: XX, then the opening and closing brackets in order."""
    names = sorted(set(labels) - {TOP})
    return [TAG, *map(opening, names), *map(closing, names)]


@dataclass(frozen=True)
class Phrase:
    """One phrase of a linearised tree."""

    label: str
    start: int  # its first word
    end: int  # the word after its last
    opens: int  # place of its opening token
    closes: int  # place of its closing token
    depth: int  # phrases around it


def phrases(tokens: Sequence[str]) -> list[Phrase]:
    """The phrases that the tokens of a tree write, in the order of their opening tokens."""
    by_place: dict[int, Phrase] = {}
    stack: list[tuple[str, int, int]] = []
    words = 0
    for place, token in enumerate(tokens):
        if token == TAG:
            words += 1
        elif token.startswith("("):
            stack.append((token[1:], words, place))
        else:
            label, start, opens = stack.pop()
            by_place[opens] = Phrase(label, start, words, opens, place, len(stack))
    return [by_place[opens] for opens in sorted(by_place)]
