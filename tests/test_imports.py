"""Imports go one way and in no circle, those inside functions and for type checkers included; Gradio is the page's
alone.
"""

import ast
from graphlib import CycleError, TopologicalSorter
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
    "lab": {"training", "gan", "transformer", "vton"},  # what the campaigns of training needed; nothing imports it
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


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle of imports, the first again at the end; empty where there is none."""
    try:
        TopologicalSorter({name: others & graph.keys() for name, others in graph.items()}).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that are imported with `start`, directly or by others; a module brings the packages it lies in."""
    found, new = set(), {start}
    while new:
        found |= new
        brought = {other for name in new for other in graph[name]}
        brought |= {".".join(name.split(".")[:n]) for name in brought for n in range(1, name.count(".") + 1)}
        new = (brought & graph.keys()) - found
    return found


def test_no_circle():
    assert circle(GRAPH) == []


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"numpy"}}
    assert set(circle(graph)) == {"a", "b", "c"}
    assert circle({"a": {"b"}, "b": set()}) == []


INPUTS = [name for name in MODULES if name.startswith("vton.inputs")]


@pytest.mark.parametrize("name", ["vton.pipeline", "vton.record", *INPUTS])
def test_a_try_on_imports_nothing_that_only_training_needs(name):
    training = {other for other in reached(name, GRAPH) if other.startswith(("vton.recipes", "vton.data", "gan"))}
    assert training == set()


def test_what_an_import_brings_is_found():
    graph = {"a.b": {"c", "d.e"}, "c": {"numpy"}, "d": set(), "d.e": {"f"}, "f": set(), "g": {"a.b"}}
    assert reached("a.b", graph) == {"a.b", "c", "d", "d.e", "f"}


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
