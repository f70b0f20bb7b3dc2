"""Gradio's inside is touched in one file, which is written against one minor release."""

import ast
import json
import shutil
import subprocess
from pathlib import Path

import gradio
import pytest
import tomllib
from packaging.requirements import Requirement
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

import ui
from ui import gradio_private

FOLDER = Path(ui.__file__).parent
ROOT = FOLDER.parent
INSIDE = ("gradio.route_utils", "gradio.utils", "gradio.processing_utils", "gradio.context", "gradio.data_classes",
          "gradio.helpers", "gradio.queueing", "gradio.state_holder", "gradio.routes")  # fmt: skip


def inside(tree: ast.AST) -> list[str]:
    """What a module takes of another object's inside, or of modules of Gradio that its documentation does not name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in INSIDE:
            found.append(node.module)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradio"):
            found += [alias.name for alias in node.names if alias.name in ("BlockFunction",)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in INSIDE]
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            private = node.attr.startswith("_") and not node.attr.startswith("__") and not own
            if private or node.attr in ("GRADIO_CACHE", "preprocess_data", "is_template"):
                found.append(node.attr)
        elif isinstance(node, ast.Constant) and node.value == "__type__":
            found.append("__type__")
    return found


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.py")), ids=lambda file: str(file.relative_to(FOLDER)))
def test_one_file_leans_on_gradio_s_inside(file):
    found = inside(ast.parse(file.read_text(encoding="utf-8")))
    if file.name == "gradio_private.py":
        assert {"_queue", "gradio.route_utils", "__type__"} <= set(found)
    elif file.name == "page.py":
        assert found == ["preprocess_data"] * 2  # its errors are the caller's
    else:
        assert found == []


def test_gradio_is_pinned_to_the_minor_release_that_runs_here():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["mcp"]]
    pins = [one for one in map(Requirement, wanted) if one.name == "gradio"]
    major, minor = map(int, gradio.__version__.split(".")[:2])
    assert len(pins) == 2
    for pin in pins:
        assert pin.specifier.contains(gradio.__version__) and not pin.specifier.contains(f"{major}.{minor + 1}.0")


def test_the_page_s_scripts_find_things_once_and_keep_what_is_typed():
    # of this release; another one may need another cure, or none
    (route,) = [one for one in gradio_private.scripts() if "/core-" in one.path]
    app = Starlette(routes=[route])
    answer = TestClient(app).get(route.path)
    assert answer.headers["content-type"].startswith("text/javascript")
    before = (gradio_private.SCRIPTS / route.path.rpartition("/")[2]).read_text(encoding="utf-8")
    for old, new in gradio_private.REPLACEMENTS.items():
        assert old in before and old not in answer.text and new in answer.text


def test_gradio_speaks_english_where_the_page_has_words_of_its_own():
    routes = [one for one in gradio_private.scripts() if "/core-" not in one.path]
    assert sorted(one.path[len("/assets/") :][:3] for one in routes) == [
        f"{name}-" for name in gradio_private.LANGUAGES
    ]
    english = next(gradio_private.SCRIPTS.glob("en-*.js")).read_text(encoding="utf-8")
    client = TestClient(Starlette(routes=routes))
    assert all(client.get(one.path).text == english for one in routes)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_events_found_once_are_those_that_were_searched_for():
    (slow, quick), _ = gradio_private.SEARCHES.items()
    events = [
        {"targets": [[1, "click"], [2, None]]},
        {"targets": [[2, "input"], [2, "change"], [1, "load"]]},
        {"targets": []},
    ]
    script = f"""
      const t = {json.dumps(events)};
      const before = (e) => {{ {slow} return n; }}, after = (e) => {{ {quick} return n; }};
      console.log(JSON.stringify([1, 2, 3].map((id) => [before({{id}}), after({{id}})])));
    """
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    pairs = json.loads(done.stdout)
    assert pairs[0][0] == ["click", "load"] and all(before == after for before, after in pairs)


@pytest.mark.parametrize("wraps", [False, True])
def test_two_streams_of_a_page_that_goes_leave_no_traceback(wraps):
    def stream_that_misses(name):
        async def app(scope, receive, send):
            await PlainTextResponse("data: {}")(scope, receive, send)
            if wraps:  # as Starlette does where an error has a handler
                raise RuntimeError("response already started") from KeyError(name)
            raise KeyError(name)

        return TestClient(gradio_private.Streams(app)).get("/gradio_api/queue/data?session_hash=abc")

    assert stream_that_misses("abc").text == "data: {}"
    with pytest.raises(RuntimeError if wraps else KeyError, match="started" if wraps else "other"):
        stream_that_misses("other")
