"""Figures of a parser beside the baseline that knows nothing."""

import json

from lab.translator.parsing import main, right_branching
from transformer.parsing.trees import add_top, parse_brackets, prepare_tree

GOLD = "(S (NP (DT The) (NN cell)) (VP (VBZ divides) (ADVP (RB again))) (. .))"


def tree(text: str):
    return prepare_tree(add_top(parse_brackets(text)))


def test_the_baseline_branches_to_the_right():
    assert str(right_branching(tree(GOLD))) == "( (S (DT The) (NP (NN cell) (NP (VBZ divides) (RB again))) (. .)))"
    assert str(right_branching(tree("(NP (NN A))"))) == "( (S (NN A)))"


def test_the_command_prints_figures(tmp_path, capsys):
    (tmp_path / "dev.mrg").write_text(f"{GOLD}\n(S (NP (NNS Mice)) (VP (VBP sleep)) (. .))\n{GOLD}\n")
    argv = ["--data", str(tmp_path / "dev.mrg"), "--beam", "2", "--limit", "2", "--device", "cpu"]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentences"] == 2 and found["f1"] > 90 > found["right_branching_f1"]
    assert {"precision", "recall", "complete", "repairs"} <= found.keys()
    assert main(["--data", str(tmp_path / "dev.mrg"), "--longest", "1"]) == 2
    assert "no sentence of at most 1 words" in capsys.readouterr().err
