"""`app.py --mcp` as an agent meets it: with the official client, over HTTP."""

import ast
import base64

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from training.assets import examples_dir
from vton.pipeline import STAGES

pytestmark = pytest.mark.slow
CALLED = ("translate", "attend", "try_on")


async def ask(address, use):
    """What `use(session)` returns, on a session of its own."""
    async with (
        httpx.AsyncClient(timeout=300, follow_redirects=True) as client,
        streamable_http_client(f"{address}gradio_api/mcp/", http_client=client) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return await use(session)


def inline(file):
    """A picture as a data URL."""
    return f"data:image/{file.suffix[1:]};base64,{base64.b64encode(file.read_bytes()).decode()}"


def value(answer):
    """The Python value that a tool answered with as text."""
    (content,) = answer.content
    assert not answer.isError, content.text
    return ast.literal_eval(content.text)


@pytest.fixture(scope="module")
def address(serve_app, tmp_path_factory):
    with serve_app("--mcp", "--device", "cpu", "--runs", tmp_path_factory.mktemp("runs")) as found:
        yield found


def test_every_argument_of_every_tool_is_described(address, apart):
    tools = {tool.name: tool for tool in apart(ask(address, lambda session: session.list_tools())).tools}
    assert set(CALLED) <= set(tools)
    for tool in tools.values():
        assert tool.description and len(tool.description) > 40, tool.name
        for name, told in tool.inputSchema["properties"].items():
            assert len(told.get("description", "")) > 4, f"{tool.name}({name})"
            # A choice that contradicts its own type could never be made: the server checks arguments against both.
            kinds = {"string": str, "integer": int}
            assert all(isinstance(one, kinds[told["type"]]) for one in told.get("enum", ())), f"{tool.name}({name})"


def test_an_agent_translates_and_looks_at_the_attention(address, apart):
    async def use(session):
        text = {"text": "A man is riding a bicycle.\n\nTwo dogs play.", "beam": 3, "n_best": 2}
        translated = await session.call_tool("translate", text)
        attended = await session.call_tool(
            "attend", {"text": "Two dogs play.", "kind": "encoder", "layer": 2, "head": 1}
        )
        refused = await session.call_tool("translate", {"text": "A dog.", "pair": "en-xx"})
        return translated, attended, refused

    translated, attended, refused = apart(ask(address, use))
    found = value(translated)
    assert found["text"].startswith("Ein Mann fährt") and "\n\nZwei Hunde" in found["text"]
    for sentence in found["sentences"]:
        first, *others = sentence["hypotheses"]
        assert first["text"] in found["text"] and len(others) < 2  # fewer than two where all read the same
        assert all(first["score"] >= other["score"] and first["text"] != other["text"] for other in others)
    assert len(found["sentences"][0]["hypotheses"]) == 2
    weights = value(attended)
    assert weights["rows"] == weights["columns"] and "▁dogs" in weights["rows"]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in weights["weights"])
    assert refused.isError and "en → xx" in refused.content[0].text.replace("English", "en")
    assert "Traceback" not in refused.content[0].text


def test_an_agent_tries_a_garment_on(address, apart):
    pictures = {
        "person": inline(examples_dir() / "person-1.png"),
        "garment": inline(examples_dir() / "garment-stripes.png"),
    }
    settings = {"size": "256x192", "grid": 5, "seed": 3, "mirror": False}
    answer = apart(ask(address, lambda session: session.call_tool("try_on", {**pictures, **settings})))
    text = "\n".join(content.text for content in answer.content if content.type == "text")
    assert not answer.isError, text
    assert "try-on.zip" in text and "result.png" in text and "agnostic_map.png" in text
    assert all(f"'{stage}'" in text for stage in STAGES) and "256" in text
