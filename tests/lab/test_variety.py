"""More trees out of a treebank: clauses as sentences, and sentences with other words."""

import random

import pytest

from lab.translator import variety
from lab.translator.plain import plain_trees
from transformer.parsing.recipe import load_splits
from transformer.parsing.trees import Tree, add_top, parse_brackets, to_brackets

SENTENCE = "(S (NP (PRP We)) (VP (VBP show) (SBAR (IN that) (S (NP (DT the) (NN cell)) (VP (VBZ divides))))) (. .))"
OTHERS = "(S (NP (NNP Mice) (NN food)) (VP (VBZ grows) (NP (JJ blue) (NN hair))) (. .))"


def tree(text: str) -> Tree:
    return add_top(parse_brackets(text))


def shape(node) -> list:
    return [shape(child) if isinstance(child, Tree) else child.tag for child in node.children]


def test_a_clause_is_a_sentence_with_a_capital_and_a_full_stop():
    found = list(variety.clauses(tree(SENTENCE)))
    assert [to_brackets(one) for one in found] == ["( (S (NP (DT The) (NN cell)) (VP (VBZ divides)) (. .)))"]


@pytest.mark.parametrize(
    "inner",
    [
        "(S (VP (TO to) (VP (VB divide) (ADVP (RB soon)))))",  # no subject
        "(S (VP (VBZ divides)) (NP (DT the) (NN cell)))",  # the verb first
        "(S (NP (NN it)) (VP (VBZ is)))",  # two words
        "(S (NP (DT the) (NN cell)) (VP (VBZ divides)) (. .))",  # a sentence already
    ],
)
def test_what_is_no_such_clause_is_left_out(inner):
    assert not list(variety.clauses(tree(f"(S (NP (PRP We)) (VP (VBP show) {inner}))")))


def test_words_are_exchanged_for_others_of_their_part_of_speech():
    words = variety.lexicon([tree(SENTENCE), tree(OTHERS)])
    assert words == {
        "VBP": ["show"],
        "NN": ["cell", "food", "hair"],
        "VBZ": ["divides", "grows"],
        "NNP": ["Mice"],
        "JJ": ["blue"],
    }
    before, seen = tree(OTHERS), set()
    for seed in range(30):
        after = variety.exchange_words(before, words, 1.0, random.Random(seed))
        assert shape(after) == shape(before)
        for old, new in zip(before.leaves(), after.leaves()):
            assert new.word == old.word if old.tag == "." else new.word in words[old.tag]
        seen.add(after.leaves()[1].word)
    assert seen == {"cell", "food", "hair"}


def test_a_capital_stays_where_it_was():
    before = tree("(S (NP (NN Food)) (VP (VBZ grows)))")
    after = variety.exchange_words(before, {"NN": ["hair"]}, 1.0, random.Random(0))
    assert after.words() == ["Hair", "grows"]


def test_the_share_is_the_share_of_exchanged_words():
    many = tree("(NP " + " ".join(["(NN cell)"] * 2000) + ")")
    words = variety.exchange_words(many, {"NN": ["food"]}, 0.25, random.Random(0)).words()
    assert words.count("food") / 2000 == pytest.approx(0.25, abs=0.03)
    assert variety.exchange_words(many, {"NN": ["food"]}, 0.0, random.Random(0)) == many


def test_the_trees_come_first_and_a_seed_gives_the_same_copies():
    trees = [tree(SENTENCE), tree(OTHERS)]
    found = variety.vary(trees, 2, 0.5, seed=1)
    assert found[:2] == trees and len(found) == 3 * 3  # two sentences and a clause, and two copies of them
    assert found == variety.vary(trees, 2, 0.5, seed=1) != variety.vary(trees, 2, 0.5, seed=2)


def test_the_command_writes_what_the_recipe_reads(tmp_path, capsys):
    trees = [tree(SENTENCE), tree(OTHERS), tree("(S (NP (NN food)) (VP (VBZ is) (-RRB- -RRB-)))")]
    (tmp_path / "train.mrg").write_text("\n".join(map(to_brackets, trees)))
    (tmp_path / "dev.mrg").write_text(to_brackets(trees[0]))
    argv = [
        "--data",
        str(tmp_path),
        "--copies",
        "2",
        "--exchange",
        "0.5",
        "--plain",
        "4",
        "--seed",
        "3",
        "--out",
        str(tmp_path / "out"),
    ]
    assert variety.main(argv) == 0 and capsys.readouterr().out == "train 16\ndev 1\n"
    expected = variety.vary(load_splits(tmp_path)[0], 2, 0.5, 3) + plain_trees(4, seed=3)
    assert load_splits(tmp_path / "out") == (expected, trees[:1])
