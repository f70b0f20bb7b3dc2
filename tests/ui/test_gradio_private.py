"""Gradio's inside is touched in one file, which is written against one minor release."""

import ast
import gzip
import json
import shutil
import subprocess
from pathlib import Path

import brotli
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


@pytest.mark.parametrize("script", gradio_private.REPLACEMENTS)
def test_the_page_s_scripts_find_things_once_keep_what_is_typed_and_do_not_count_unseen(script):
    # of this release; another one may need another cure, or none
    (name,) = [one for one in gradio_private.scripts() if one.startswith(f"{script}-")]
    answer = TestClient(gradio_private.Assets(Starlette())).get(f"/assets/{name}")
    assert answer.headers["content-type"].startswith("text/javascript")
    before = (gradio_private.SCRIPTS / name).read_text(encoding="utf-8")
    for old, new in gradio_private.REPLACEMENTS[script].items():
        assert old in before and old not in answer.text and new in answer.text


def test_gradio_speaks_english_where_the_page_has_words_of_its_own():
    changed = tuple(f"{script}-" for script in gradio_private.REPLACEMENTS)
    words = {name: text for name, text in gradio_private.scripts().items() if not name.startswith(changed)}
    assert sorted(name[:3] for name in words) == [f"{language}-" for language in gradio_private.LANGUAGES]
    english = next(gradio_private.SCRIPTS.glob("en-*.js")).read_text(encoding="utf-8")
    assert all(text == english for text in words.values())


@pytest.mark.parametrize("accepted, encoding", [("gzip, br", "br"), ("gzip, deflate", "gzip"), ("identity", "")])
def test_scripts_and_styles_come_from_memory_and_may_be_kept(accepted, encoding):
    unpack = {"br": brotli.decompress, "gzip": gzip.decompress, "": bytes}[encoding]
    unknown = PlainTextResponse("unknown", status_code=404)
    client = TestClient(gradio_private.Assets(unknown), headers={"Accept-Encoding": accepted})
    for ending, kind in gradio_private.Assets.KINDS.items():
        file = next(
            one for one in gradio_private.SCRIPTS.glob(f"*{ending}") if one.name not in gradio_private.scripts()
        )
        answer = client.get(f"/assets/{file.name}")
        assert answer.headers.get("content-encoding", "") == encoding
        sent = unpack(_raw(client, file.name))
        assert sent == file.read_bytes() and answer.headers["content-type"].startswith(kind)
        assert "max-age" in answer.headers["cache-control"]
    for other in (
        "/assets/none.js",
        "/assets/..%2Fnone.js",
        f"/assets/{300 * 'n'}.js",
        "/assets/%00.js",
        "/assets/a.png",
        f"/{file.name}",
    ):
        assert client.get(f"/assets/{other}").text == "unknown"


def _raw(client, name):
    """What is sent of a script, before the client decompresses it."""
    with client.stream("GET", f"/assets/{name}") as answer:
        return b"".join(answer.iter_raw())


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
