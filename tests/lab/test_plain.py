"""Plain sentences of daily life: the tables are whole, and what they make are trees of the treebank's kind."""

import random
import re

import pytest

from lab.translator import plain
from transformer.parsing.parser import Parser
from transformer.parsing.trees import bare, read_trees
from transformer.parsing.words import split_words

GLUED = {"n't", "'s", "'re", "'m", "'ll", "'ve", "'d", "'", *".,?!;”"}  # stand behind the word before them


@pytest.fixture(scope="module")
def grammar():
    return plain.Grammar.read()


@pytest.fixture(scope="module")
def trees():
    return plain.plain_trees(600, seed=3)


def text(words: list[str]) -> str:
    glue = [word in GLUED or before == "“" for before, word in zip(["“", *words], words)]
    return "".join(word if close else f" {word}" for word, close in zip(words, glue))


def test_the_same_seed_gives_the_same_sentences(trees):
    assert trees[:50] == plain.plain_trees(50, seed=3) != plain.plain_trees(50, seed=4)
    assert len({tuple(tree.words()) for tree in trees}) == 600


def test_every_gap_has_something_to_fill_it_and_every_kind_is_asked_for(grammar):
    bodies = [body for rules, _ in grammar.rules.values() for body in rules]
    asked = {kind for body in bodies for kind in re.findall(r"\{([\w-]+)", body)} | {plain.SENTENCE}
    assert asked == {*grammar.words, *grammar.rules} and not {*grammar.words} & {*grammar.rules}
    for kind in grammar.rules:
        for seed in range(20):
            form = random.Random(seed).choice(["VB", "VBZ", "VBP", "VBG", "VBN", "VBDS", "VBDP", "VBPI"])
            if not any(".%" in body for body in grammar.rules[kind][0]):
                form = ""
            filled = grammar.fill(kind, "NNS" if kind == "noun" else form, random.Random(seed))
            assert filled.count("(") == filled.count(")") and not set("{}%") & set(filled)


def test_a_word_has_all_its_forms(grammar):
    verbs = [word for words in grammar.words.values() for word in words if "VBG" in word]
    assert len({word["VB"] for word in verbs}) > 150
    assert {"VB": "stop", "VBZ": "stops", "VBD": "stopped", "VBN": "stopped", "VBG": "stopping"} in verbs
    assert next(word for word in verbs if word["VB"] == "be")["VBDP"] == "were"


def test_words_are_those_the_page_cuts_a_text_into(trees):
    for tree in trees:
        assert split_words(text(tree.words())) == tree.words()


def test_labels_are_those_the_shipped_parser_writes(trees):
    known = set(Parser.from_pretrained("parse", "cpu").symbols.labels)
    for tree in [*trees, *(tree for name in plain.APART for tree in read_trees(plain.TABLES / name))]:
        labels = {label for label, _, _ in tree.spans()[1:]}
        assert labels <= known and all(label == bare(label) for label in labels)


def test_sentences_begin_with_a_capital_and_end_with_a_sign(trees):
    for tree in trees:
        first = next(word for word in tree.words() if word != "“")
        assert first[0].isupper() or first[0].isdigit()
        assert tree.words()[-1] in (".", "?", "!", "”")


def test_the_article_is_that_of_the_next_word():
    brackets = "(NP (DT a) (JJ old) (NN man)) (NP (DT an) (NN uniform)) (NP (DT a) (NN hour))"
    assert plain.spell(brackets) == "(NP (DT An) (JJ old) (NN man)) (NP (DT a) (NN uniform)) (NP (DT an) (NN hour))"
    assert plain.spell("(`` “) (NP (PRP we))") == "(`` “) (NP (PRP We))"


def test_what_measures_a_parser_is_kept_apart(trees, monkeypatch):
    known = plain.apart()
    assert len(known) == 60 and not known & {tuple(tree.words()) for tree in trees}
    monkeypatch.setattr(plain, "apart", lambda: {tuple(trees[1].words())})
    assert plain.plain_trees(2, seed=3) == [trees[0], trees[2]]


def test_each_sentence_is_in_one_of_the_two_files_only():
    held, choosing = ({" ".join(tree.words()) for tree in read_trees(plain.TABLES / name)} for name in plain.APART)
    assert len(held) == 40 and len(choosing) == 20 and not held & choosing
