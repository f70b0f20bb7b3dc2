"""docs/papers.md is true: what it names exists, and the code names the equation where it computes it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| `([^`]+)` \| `([^`]+)` \|$")
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [match.groups() for match in map(ROW.match, TEXT.splitlines()) if match]


def numbers(text: str) -> set[int]:
    """The equations that a text names: "eq. 5", "equations 5 to 7", "equations 3 and 4", "equations 2, 11 and 12"."""
    found: set[int] = set()
    for listed in re.findall(r"[Ee]q(?:uation)?s?\.? ((?:\d+(?:, | and | to )?)+)", text):
        parts = [int(number) for number in re.findall(r"\d+", listed)]
        found |= set(range(parts[0], parts[-1] + 1)) if " to " in listed else set(parts)
    return found


@pytest.mark.parametrize(("paper", "what", "file", "function"), ROWS, ids=lambda value: value[:40])
def test_what_the_page_names_exists_and_names_its_equation(paper, what, file, function):
    source = (ROOT / file).read_text(encoding="utf-8")
    kinds = ast.FunctionDef | ast.ClassDef
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds) and node.name == function]
    assert found, f"{file} has no {function}"
    if wanted := numbers(paper):
        named = set().union(*(numbers(ast.get_source_segment(source, node)) for node in found))
        assert wanted <= named, f"{function} in {file} does not name {paper}"


def test_every_equation_of_the_papers_stands_on_the_page():
    for title, last in (("Attention Is All You Need", 3), ("VITON-HD", 16)):
        part = TEXT.split(f"## {title}")[1].split("\n## ")[0]
        assert numbers(part) == set(range(1, last + 1)), title
    assert len(ROWS) > 40
