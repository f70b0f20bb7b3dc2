"""Names say what a thing is: nouns and verbs of the field, and no participle that says only what was done to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("vton", "transformer", "training", "gan", "ui", "benchmarks", "lab", "app.py")
PARTICIPLES = """asked begun built changed chosen clothed done drawn dressed ended filled found framed given grown
    held ignored joined kept laid listed lost made marked meant measured mirrored misplaced moved named opened painted
    placed remembered removed said seen shown shut sought spared started taken told tracked tried wanted went
    worth written"""
VAGUE = frozenset(PARTICIPLES.split())
# Words of the list that are names of the field nevertheless.
TERMS = {
    "held_out": "pairs that training does not see",
}
# Names that stay, with their module.
EXCEPTIONS = {
    ("vton/recipes/alias.py", "shown"): "a field of recipes",
    ("vton/data/scenes.py", "shown"): "the same field, see `AliasRecipe`",
    ("vton/result.py", "kept"): "a map of stored records",
    ("vton/result.py", "painted_mask"): "likewise",
    ("vton/pipeline.py", "painted_mask"): "likewise",
    ("vton/networks/garment_reader.py", "placed"): "in the configuration of weights",
    ("vton/networks/segmentation.py", "told"): "in the names of tensors in weights",
    ("vton/networks/alias_inference.py", "found"): "no edits in code that is compared bit for bit",
}


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a module gives, with its line: functions, classes, parameters, fields, constants, variables."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def vague_names(source: str) -> list[tuple[str, int]]:
    """The names in a module's text that hold a word of `VAGUE` and are no term, with their lines."""
    return [
        (name, line)
        for name, line in names(ast.parse(source))
        if name not in TERMS and VAGUE & set(name.lower().strip("_").split("_"))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_nouns_and_verbs_of_the_field(package):
    place = ROOT / package
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    modules = {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
    vague = [(module, name, line) for module, source in modules.items() for name, line in vague_names(source)]
    assert modules and not [place for place in vague if place[:2] not in EXCEPTIONS]


def script_names(source: str) -> list[str]:
    """The names that a script declares, and hold a word of `VAGUE`."""
    names = re.findall(r"(?:\b(?:const|let|var|function)\s+|^\s+)([A-Za-z]\w*)(?=\s*(?:=(?![=>])|\())", source, re.M)
    return [name for name in names if VAGUE & set(re.sub(r"([A-Z])", r"_\1", name).lower().split("_"))]


def test_scripts_too_name_things_by_what_they_are():
    scripts = sorted((ROOT / "ui" / "static").rglob("*.js"))
    vague = [(file.name, name) for file in scripts for name in script_names(file.read_text(encoding="utf-8"))]
    assert scripts and vague == []
    assert script_names("const shown = 1;\n  made = 2;\nfunction takenAway(given) {}\nshow(made === 3);") == [
        "shown",
        "made",
        "takenAway",
    ]


def test_no_exception_is_left_over():
    vague = {(module, name) for module, _ in EXCEPTIONS for name, _ in vague_names((ROOT / module).read_text())}
    assert set(EXCEPTIONS) == vague


def test_a_vague_name_is_noticed_wherever_it_stands():
    source = (
        "class Kept:\n  shown: int\n  def told(self, given):\n    self.made = [chosen for chosen in given]\nSEEN = 1"
    )
    assert {name for name, _ in vague_names(source)} == {"Kept", "shown", "told", "given", "made", "chosen", "SEEN"}
