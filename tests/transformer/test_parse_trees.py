"""Trees: read, prepared, written; as sequences and back."""

import gzip

import pytest

from transformer.parsing import linear, trees
from transformer.parsing.trees import Leaf, Tree

CRAFT = (
    "( (S (NP-SBJ-1 (NP (NNS Genes)) (VP (VBN involved) (NP (-NONE- *)))) (VP (VBD were) (VP "
    "(VBN found) (NP-1 (-NONE- *))"
    " (PP-LOC (IN in) (NP (DT the) (NML (NN A) (HYPH /) (NN J)) (NNS strains) (-LRB- -LRB-) "
    "(CD 3) (-RRB- -RRB-))))) (. .)))"
)


def craft() -> Tree:
    return trees.prepare_tree(trees.add_top(trees.parse_brackets(CRAFT)))


def test_the_usual_preparation_leaves_no_function_tags_and_no_empty_elements():
    tree = craft()
    assert str(tree) == (
        "( (S (NP (NP (NNS Genes)) (VP (VBN involved))) (VP (VBD were) (VP (VBN found) "
        "(PP (IN in) (NP (DT the) (NML (NN A) (HYPH /) (NN J)) (NNS strains) (-LRB- -LRB-) (CD "
        "3) (-RRB- -RRB-))))) (. .)))"
    )
    assert tree.words()[-4:] == ["(", "3", ")", "."]
    assert trees.prepare_tree(trees.parse_brackets("( (S (NP (-NONE- *))))")) is None


@pytest.mark.parametrize(
    ("label", "bare"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("-NONE-", "-NONE-"), ("S", "S"), ("-x", "-x")],
)
def test_a_bare_label(label, bare):
    assert trees.bare(label) == bare


def test_a_linearised_tree_has_typed_brackets_and_one_symbol_for_every_word():
    tokens = linear.linearise(
        trees.add_top(trees.parse_brackets("(S (NP (DT The) (NN cell)) (VP (VBZ divides)) (. .))"))
    )
    assert " ".join(tokens) == "(S (NP XX XX )NP (VP XX )VP XX )S"


def test_linearising_is_reversible():
    tree = craft()
    tags = [leaf.tag for leaf in tree.leaves()]
    assert linear.delinearise(linear.linearise(tree), tree.words(), tags) == tree
    assert linear.linearise(linear.delinearise(linear.linearise(tree), tree.words())) == linear.linearise(tree)
    assert trees.parse_brackets(str(tree)) == tree
    assert trees.parse_brackets(trees.indent_tree(tree, 40)) == tree
    assert max(map(len, trees.indent_tree(tree, 40).splitlines())) < len(str(tree))


@pytest.mark.parametrize(
    "tokens",
    ["(S XX )NP", "(S XX", "XX )S", "(S )S", "(S XX )S", "(S XX XX XX )S", "(S XX word )S", "", "(S (NP XX )S XX )NP"],
)
def test_what_is_no_tree_over_two_words_is_one_sentence(tokens):
    with pytest.raises(ValueError, match=r"^[^\n]+\.$"):
        linear.delinearise(tokens.split(), ["The", "cell"])


def test_spans_count_words():
    tree = trees.parse_brackets("(S (NP (DT The) (NN cell)) (VP (VBZ divides)) (. .))")
    assert tree.spans() == [("S", 0, 4), ("NP", 0, 2), ("VP", 2, 3)]
    assert trees.add_top(tree).spans() == [("TOP", 0, 4), *tree.spans()]


@pytest.mark.parametrize(
    "text",
    ["(S (NN a)", "(S (NN a)))", "word", "(S)", "(S ())", "(S word (NN a))", "", "(" * 300, "((S (NN a)) (", "(S a b)"],
)
def test_broken_brackets_are_one_sentence(text):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        trees.parse_brackets(text)


def test_a_file_may_be_gzipped_and_trees_may_take_several_lines(tmp_path):
    text = CRAFT + "\n\n( (NP\n  (DT the)\n  (NN cell)))\n( (NP (-NONE- *)))\n"
    (tmp_path / "a.mrg").write_text(text)
    (tmp_path / "a.mrg.gz").write_bytes(gzip.compress(text.encode()))
    found = list(trees.read_trees(tmp_path / "a.mrg"))
    assert found == list(trees.read_trees(tmp_path / "a.mrg.gz"))
    assert [tree.words()[-1] for tree in found] == [".", "cell"]  # the third holds no word


def test_a_damaged_file_names_its_line(tmp_path):
    (tmp_path / "a.mrg").write_text(CRAFT + "\n(S (NN a) b)\n")
    with pytest.raises(ValueError, match="a.mrg, line 2: cannot be read as trees"):
        list(trees.read_trees(tmp_path / "a.mrg"))
    (tmp_path / "b.mrg").write_text(CRAFT + "\n(S (NN a)\n")
    with pytest.raises(ValueError, match="b.mrg, line 2: cannot be read as trees .a bracket is never closed"):
        list(trees.read_trees(tmp_path / "b.mrg"))
    (tmp_path / "c.mrg").write_text("\n")
    with pytest.raises(ValueError, match="c.mrg holds no tree"):
        list(trees.read_trees(tmp_path / "c.mrg"))
    with pytest.raises(FileNotFoundError, match="There is no file"):
        list(trees.read_trees(tmp_path / "d.mrg"))


def test_leaves_hold_brackets_as_printed():
    tree = trees.parse_brackets("(NP (-LRB- -LRB-) (NN a))")
    assert tree.leaves()[0] == Leaf("-LRB-", "(")
    assert str(tree) == "(NP (-LRB- -LRB-) (NN a))"
