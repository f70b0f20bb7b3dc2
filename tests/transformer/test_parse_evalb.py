"""Labelled bracketing by EVALB's rules, on cases worked out by hand."""

import pytest

from transformer.parsing import evalb
from transformer.parsing.trees import add_top, parse_brackets, prepare_tree


def tree(text: str):
    return prepare_tree(add_top(parse_brackets(text)))


GOLD = "(S (NP (DT The) (NN cell)) (VP (VBZ divides) (ADVP (RB again))) (. .))"


def counts(gold: str, found: str) -> tuple[int, int, int]:
    return evalb.match(tree(gold), tree(found))


def test_a_tree_matches_itself():
    assert counts(GOLD, GOLD) == (4, 4, 4)  # S, NP, VP, ADVP; TOP and tags are none


def test_a_wrong_label_and_a_wrong_span():
    #                  the label NP is right only over "The cell"; VP ends too early; ADVP is missing
    assert counts(GOLD, "(S (PP (XX The) (XX cell)) (VP (XX divides)) (XX again) (XX .))") == (4, 3, 1)


def test_punctuation_is_taken_out_by_the_references_tags():
    gold = "(S (NP (DT The) (NN cell)) (, ,) (VP (VBZ divides)) (. .))"
    inside = "(S (NP (XX The) (XX cell) (XX ,)) (VP (XX divides) (XX .)))"
    assert counts(gold, inside) == (3, 3, 3)


def test_a_phrase_of_punctuation_alone_is_none():
    assert counts("(S (NP (NN A)) (PRN (: :)) (VP (VBZ is)))", "(S (NP (XX A)) (XX :) (VP (XX is)))") == (3, 3, 3)


def test_round_brackets_are_words():
    gold = "(NP (NN A) (PRN (-LRB- -LRB-) (NN B) (-RRB- -RRB-)))"
    assert counts(gold, "(NP (XX A) (XX -LRB-) (PRN (XX B) (XX -RRB-)))") == (2, 2, 1)


def test_particles_and_adverbs_are_one_label():
    assert counts("(VP (VB carry) (PRT (RP out)))", "(VP (XX carry) (ADVP (XX out)))") == (2, 2, 2)


def test_equal_brackets_count_as_often_as_they_are_there():
    assert counts("(NP (NP (NN A)))", "(NP (XX A))") == (2, 1, 1)
    assert counts("(NP (NN A))", "(NP (NP (NP (XX A))))") == (1, 3, 1)


def test_figures_of_two_sentences():
    wrong = "(S (NP (XX The) (XX cell)) (VP (XX divides) (XX again)) (XX .))"  # no ADVP: 3 of 3 are right
    found = evalb.score([(tree(GOLD), tree(GOLD)), (tree(GOLD), tree(wrong))])
    assert (found.sentences, found.brackets, found.complete) == (2, 8, 50.0)
    assert found.precision == pytest.approx(100.0)
    assert found.recall == pytest.approx(100 * 7 / 8)
    assert found.f1 == pytest.approx(2 * 100 * 87.5 / 187.5)


def test_nothing_right_is_zero():
    found = evalb.score([(tree("(NP (NN A) (NN B))"), tree("(VP (XX A) (XX B))"))])
    assert (found.precision, found.recall, found.f1, found.complete) == (0.0, 0.0, 0.0, 0.0)


def test_other_words_are_one_sentence():
    with pytest.raises(ValueError, match="different numbers of words, 2 and 1"):
        counts("(NP (NN A) (NN B))", "(NP (XX A))")
    with pytest.raises(ValueError, match="no sentence"):
        evalb.score([])
