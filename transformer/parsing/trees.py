"""Phrase structure trees in the brackets of the Penn Treebank: reading, the usual preparation, writing."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = "TOP"  # label of the outer pair of brackets, which has none in the files
TAG = "XX"  # stands for every part-of-speech tag after Vinyals et al.
MAX_DEPTH = 200  # levels that are read; trees of the treebanks have about 30

_SUFFIXES = (".mrg", ".mrg.gz", ".txt", ".txt.gz")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_ESCAPES = {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-"}
_SIGNS = {escape: sign for sign, escape in _ESCAPES.items()}
_WHOLE = frozenset({"-NONE-", *_SIGNS})  # tags whose hyphens part nothing


@dataclass(frozen=True)
class Leaf:
    """One word under its tag; brackets stand as they are printed, not as -LRB-."""

    tag: str
    word: str


@dataclass(frozen=True)
class Tree:
    """A phrase: its label and what it spans, from left to right."""

    label: str
    children: tuple[Tree | Leaf, ...]

    def leaves(self) -> list[Leaf]:
        """All words from left to right, with their tags."""
        return [leaf for child in self.children for leaf in (child.leaves() if isinstance(child, Tree) else [child])]

    def words(self) -> list[str]:
        """All words from left to right."""
        return [leaf.word for leaf in self.leaves()]

    def spans(self, start: int = 0) -> list[tuple[str, int, int]]:
        """(label, first word, word after the last) of this phrase and all below it, each before its parts."""
        inner, position = [], start
        for child in self.children:
            if isinstance(child, Tree):
                inner += child.spans(position)
                position += len(child.leaves())
            else:
                position += 1
        return [(self.label, start, position), *inner]

    def __str__(self) -> str:
        return to_brackets(self)


def to_brackets(node: Tree | Leaf) -> str:
    """The tree on one line, as in the files: `(NP (DT the) (NN cell))`; the outermost label TOP is left out."""
    if isinstance(node, Leaf):
        return f"({node.tag} {_escape(node.word)})"
    label = "" if node.label == TOP else node.label
    return f"({label} {' '.join(map(to_brackets, node.children))})"


def indent_tree(node: Tree, width: int = 100, depth: int = 0) -> str:
    """The tree on several lines: a phrase that does not fit into `width` characters has one line for each part."""
    line = "  " * depth + to_brackets(node)
    if len(line) <= width or all(isinstance(child, Leaf) for child in node.children):
        return line
    first = node.children[0]
    if node.label == TOP and len(node.children) == 1 and isinstance(first, Tree):
        return f"( {indent_tree(first, width, depth).lstrip()})"
    label = "" if node.label == TOP else node.label
    parts = [
        indent_tree(child, width, depth + 1) if isinstance(child, Tree) else "  " * (depth + 1) + to_brackets(child)
        for child in node.children
    ]
    return "  " * depth + f"({label}\n" + "\n".join(parts) + ")"


def _escape(word: str) -> str:
    return _ESCAPES.get(word, word.replace("(", "-LRB-").replace(")", "-RRB-"))


def parse_brackets(text: str) -> Tree:
    """One tree from its brackets, as it stands; an outer pair without a label becomes `TOP`.

    Raises `ValueError` with one sentence for text that is no tree: brackets that do not balance, a phrase of nothing,
    a word beside phrases without a tag, more than MAX_DEPTH levels, or more than one tree.
    """
    open_phrases: list[list] = []  # what each holds so far, its label first
    tree: Tree | Leaf | None = None
    for token in _TOKEN.findall(text):
        if tree is not None:
            raise ValueError("a tree has ended and something follows it")
        if token == "(":
            if len(open_phrases) == MAX_DEPTH:
                raise ValueError(f"a tree of more than {MAX_DEPTH} levels")
            open_phrases.append([])
        elif not open_phrases:
            outside = f"{token[:20]!r} stands outside the brackets"
            raise ValueError("a bracket closes and none is open" if token == ")" else outside)
        elif token != ")":
            open_phrases[-1].append(token)
        else:
            node = _close(open_phrases.pop(), outermost=not open_phrases)
            if open_phrases:
                open_phrases[-1].append(node)
            else:
                tree = node
    if not isinstance(tree, Tree):
        raise ValueError("a bracket is never closed" if open_phrases else "no tree")
    return tree


def _close(parts: list, outermost: bool) -> Tree | Leaf:
    """A phrase, or a word, of what stands between its brackets; the outermost need not have a label."""
    if not (outermost or parts and isinstance(parts[0], str)):
        raise ValueError("a phrase without a label")
    label, *children = parts if parts and isinstance(parts[0], str) else (TOP, *parts)
    words = [child for child in children if isinstance(child, str)]
    if not children:
        raise ValueError(f"the phrase {label!r} holds nothing")
    if words and len(children) > 1:
        raise ValueError(f"the word {words[0][:20]!r} has no tag of its own")
    return Leaf(label, _SIGNS.get(words[0], words[0])) if words else Tree(label, tuple(children))


def bare(label: str) -> str:
    """A label without function tags and indices: NP-SBJ-1 -> NP."""
    return label if label in _WHOLE else re.split("[-=]", label, maxsplit=1)[0] or label


def prepare_tree(tree: Tree) -> Tree | None:
    """The usual preparation: no function tags, no empty elements, no phrase over empty elements alone.

    None if no word is left.
    """
    children: list[Tree | Leaf] = []
    for child in tree.children:
        if isinstance(child, Tree):
            inner = prepare_tree(child)
            children += [inner] if inner else []
        elif child.tag != "-NONE-":
            children.append(Leaf(bare(child.tag), child.word))
    return Tree(bare(tree.label), tuple(children)) if children else None


def add_top(tree: Tree) -> Tree:
    """The same tree under the label TOP, which the files do not write."""
    return tree if tree.label == TOP else Tree(TOP, (tree,))


def read_trees(path: str | Path) -> Iterator[Tree]:
    """The prepared trees of a file, gzipped or not; a tree may take several lines, as the Penn Treebank's do.

    Raises `FileNotFoundError`, or `ValueError` that names file and line for what cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.name.endswith(_SUFFIXES):
        raise ValueError(f"{path.name} has none of the endings {', '.join(_SUFFIXES)}.")
    number, count, first, depth, lines = 0, 0, 1, 0, []
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not depth and not line.strip():
                    continue
                first = first if depth else number
                lines.append(line)
                depth += line.count("(") - line.count(")")
                if depth > 0:
                    continue
                tree = prepare_tree(add_top(parse_brackets("".join(lines))))
                lines, depth, count = [], 0, count + 1
                if tree:
                    yield tree
            if lines:
                raise ValueError("a bracket is never closed")
    except (UnicodeDecodeError, zlib.error, gzip.BadGzipFile, EOFError, ValueError) as error:
        raise ValueError(
            f"{path.name}, line {first if lines else number + 1}: cannot be read as trees ({error})."
        ) from None
    if not count:
        raise ValueError(f"{path.name} holds no tree.")
