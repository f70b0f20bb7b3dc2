"""The page's server: health, headers, and a log without content."""

import errno
import logging
import threading
from types import SimpleNamespace

import gradio as gr
import pytest
from fastapi import FastAPI
from gradio_client import Client
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from training import memory
from ui import gradio_private, page, serving
from ui.services import Services
from ui.translate.work import translate_text


@pytest.fixture(scope="module")
def client():
    options = serving.app_options()
    options["routes"].append(
        Route("/page", lambda request: PlainTextResponse("x", headers={"Referrer-Policy": "origin"}))
    )
    return TestClient(Starlette(**options))


def test_a_proxy_is_told_that_the_page_is_there(client):
    answer = client.get("/health")
    assert answer.status_code == 200 and answer.json() == {"status": "ok"}


def test_every_answer_carries_the_headers_and_keeps_its_own(client):
    answer = client.get("/page")
    assert (
        "'self'" in answer.headers["content-security-policy"] and answer.headers["x-content-type-options"] == "nosniff"
    )
    assert answer.headers["referrer-policy"] == "origin"
    assert page.launch_options()["app_kwargs"]["routes"][0].path == "/health"


def test_a_body_of_another_shape_is_refused_without_being_repeated():
    app = FastAPI(**serving.app_options())

    @app.post("/numbers")
    def numbers(given: dict[str, int]):
        return given

    answer = TestClient(app).post("/numbers", content=b"NaN", headers={"content-type": "application/json"})
    assert answer.status_code == 422 and answer.json() == {"detail": gradio_private.UNFIT}


@pytest.fixture
def small_page():
    """A client of a page with one endpoint, `go`, which raises what the server does not answer."""
    with gr.Blocks() as blocks:
        field = gr.Textbox()
        gr.Button("Go").click(lambda text: text, field, field, api_name="go")
    app = gr.routes.App.create_app(blocks.queue(), app_kwargs=serving.app_options())
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(
    "path, body",
    [
        ("call/nothing", {"data": []}),
        ("call/v2/nothing", {"data": []}),
        ("call/v2/go", {"other": 1, "more": 2}),
        ("queue/join", {"fn_index": 9999, "data": [], "session_hash": "a"}),
        ("component_server", {"component_id": 9999, "data": 1, "session_hash": "a", "fn_name": "x"}),
    ],
)
def test_an_endpoint_that_there_is_not_is_one_sentence(small_page, path, body):
    answer = small_page.post(f"/gradio_api/{path}", json=body)
    assert answer.status_code == 404 and answer.json() == {"detail": gradio_private.UNKNOWN}


@pytest.mark.parametrize(
    "path, status",
    [
        ("/?page=nothing", 404),
        ("/static/" + "a" * 3000, 404),
        ("/gradio_api/heartbeat/%00", 400),
    ],
)
def test_an_address_that_nothing_can_have_is_one_sentence(small_page, path, status):
    answer = small_page.get(path)
    assert answer.status_code == status and answer.json()["detail"] in (gradio_private.UNKNOWN, gradio_private.UNFIT)


@pytest.mark.parametrize("path", ["call/go/nothing", "call/v2/go/nothing", "queue/data?session_hash=nothing"])
def test_a_run_that_there_is_not_is_one_event_that_says_so(small_page, path):
    answer = small_page.get(f"/gradio_api/{path}")
    assert answer.status_code == 404 and answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("data: ") == 1 and gradio_private.UNKNOWN_RUN in answer.text


def test_a_run_that_there_is_is_told():
    waiting = SimpleNamespace(
        event_ids_to_events={"running": SimpleNamespace(session_hash="one")},
        pending_event_ids_session={"two": {"ended"}},
        pending_messages_per_session={"one": [], "two": [], "alone": []},
    )
    kept = SimpleNamespace(lock=threading.Lock(), session_data={"one": 1, "alone": 2}, time_last_used={"alone": 3})
    app = Starlette(routes=[Route("/{any:path}", lambda request: PlainTextResponse("told"))])
    app.get_blocks = lambda: SimpleNamespace(_queue=waiting, state_holder=kept)
    app.add_middleware(gradio_private.Gate)
    client = TestClient(app)
    for path in ("call/go/running", "call/go/ended", "call/v2/go/alone", "queue/data?session_hash=two"):
        assert client.get(f"/gradio_api/{path}").text == "told"
    assert kept.session_data == {"one": 1} and kept.time_last_used == {}  # who called alone is forgotten
    del waiting.pending_messages_per_session["one"]
    assert client.get("/gradio_api/call/go/running").status_code == 404


def test_two_visitors_run_at_once_and_the_second_run_of_one_sees_what_the_first_has_left():
    at_work, both = [], threading.Barrier(2)
    with gradio_private.Page() as blocks:
        runs, name, told = gr.State(0), gr.Textbox(), gr.Number()

        def run(before, visitor):
            at_work.append((visitor, before))
            if before == 0:
                both.wait(20)  # for the other visitor's run
            return before + 1, before + 1

        gr.Button("Run").click(run, [runs, name], [runs, told], api_name="run", concurrency_limit=2)
    _, address, _ = blocks.launch(prevent_thread_lock=True, quiet=True)
    try:
        one, other = (Client(address, verbose=False) for _ in range(2))
        jobs = [client.submit(who, api_name="/run") for client, who in ((one, "one"), (one, "one"), (other, "other"))]
        found = [job.result(20) for job in jobs]
    finally:
        blocks.close()
    assert sorted(found[:2]) == [1, 2] and found[2] == 1
    assert sorted(at_work[:2]) == [("one", 0), ("other", 0)] and at_work[2:] == [("one", 1)]


def test_agents_wait_for_a_busy_page(monkeypatch):
    from gradio import mcp

    monkeypatch.setattr(mcp, "Client", mcp.Client)  # as it was, afterwards
    gradio_private.make_agents_patient()
    assert mcp.Client.keywords == {"httpx_kwargs": {"timeout": 120.0}}
    assert "Client" in mcp.GradioMCPServer._get_or_create_client.__code__.co_names  # which makes it from that name


def test_a_stream_whose_run_is_ended_elsewhere_ends_too():
    async def torn(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"told", "more_body": True})
        raise RuntimeError("the answer has begun") from HTTPException(404)

    assert TestClient(gradio_private.Gate(torn)).get("/").text == "told"


def test_other_faults_stay_faults():
    broken = FastAPI(**serving.app_options())

    @broken.get("/broken")
    def fault():
        return {}["missing"]

    @broken.get("/full")
    def full():
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(KeyError, match="missing"):
        TestClient(broken).get("/broken")
    with pytest.raises(OSError, match="full"):
        TestClient(broken).get("/full")


def test_a_run_is_one_line_without_what_was_entered(caplog):
    with caplog.at_level(logging.INFO, "atelier"):
        translate_text(Services(translation_model="multi30k-en-de", device="cpu"), "A secret dog.", "en-de", 1, 0.6, 1)
    assert len(caplog.messages) == 1
    line = caplog.messages[0]
    assert line.startswith("translation: ") and "tokens" in line
    assert not any(word in line for word in ("secret", "dog", "Hund"))


def test_memory_is_given_back_after_every_try_on_also_where_the_system_cannot(monkeypatch):
    given = []
    monkeypatch.setattr(memory, "_libc", lambda: SimpleNamespace(malloc_trim=given.append))
    services = Services()
    monkeypatch.setattr(services, "tryon", lambda key: None)
    assert list(services.stream_on_tryon(lambda tryon, on_stage: 1))[-1] == 1
    for thread in threading.enumerate():
        if thread.name == "try-on":
            thread.join()
    monkeypatch.setattr(memory, "_libc", lambda: None)
    memory.give_back_memory()
    assert given == [0]


def test_rest_comes_once_after_several_runs():
    rested = threading.Semaphore(0)
    report = serving.AtRest(rested.release, 0.2)
    for _ in range(5):
        report()
    assert rested.acquire(timeout=60)
    assert not rested.acquire(timeout=0.5)


def test_a_page_keeps_the_state_of_so_many_visitors():
    assert page.launch_options()["state_session_capacity"] == page.MAX_VISITORS <= 1000
