"""Imports go one way and in no circle, those inside functions and for type checkers included; Gradio is the page's
alone.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# What each package may import besides itself.
MAY_IMPORT = {
    "training": set(),
    "gan": {"training"},
    "transformer": {"training"},
    "vton": {"training", "gan"},
    "ui": {"training", "gan", "transformer", "vton"},
    "app": {"training", "gan", "transformer", "vton", "ui"},
}
GRADIO = {"ui", "app"}  # the packages that may import gradio


def modules() -> dict[str, Path]:
    files = [ROOT / "app.py", *(file for package in MAY_IMPORT for file in (ROOT / package).rglob("*.py"))]
    names = {}
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


MODULES = modules()


def imported(file: Path) -> set[str]:
    """Names of the modules that a file imports anywhere in it; of the project's own, the exact module."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found


GRAPH = {name: imported(file) for name, file in MODULES.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, set()) & graph.keys()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1 or node in graph[node]:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_no_circle():
    assert circles(GRAPH) == []


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"numpy"}}
    assert circles(graph) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package):
    allowed = MAY_IMPORT[package] | {package}
    for name, others in GRAPH.items():
        if name.partition(".")[0] == package:
            wrong = {other for other in others if other.partition(".")[0] in MAY_IMPORT.keys() - allowed}
            assert not wrong, f"{name} imports {', '.join(sorted(wrong))}"


def test_gradio_is_imported_by_the_page_alone():
    users = {name for name, others in GRAPH.items() if any(other.partition(".")[0] == "gradio" for other in others)}
    assert users and {name.partition(".")[0] for name in users} <= GRADIO
