"""The page's server: health, headers, and a log without content."""

import logging
import threading

import gradio as gr
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from ui import page, serving
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
    assert answer.status_code == 422 and answer.json() == {"detail": serving.UNFIT}


def test_an_endpoint_that_there_is_not_is_one_sentence_and_other_faults_stay_faults():
    with gr.Blocks() as blocks:
        gr.Button("Go").click(lambda: None, api_name="go")
    app = gr.routes.App.create_app(blocks, app_kwargs=serving.app_options())
    with TestClient(app) as client:  # raises what the server does not answer
        for path, body in (
            ("/gradio_api/call/nothing", {"data": []}),
            ("/gradio_api/queue/join", {"fn_index": 9999, "data": [], "session_hash": "a"}),
        ):
            answer = client.post(path, json=body)
            assert answer.status_code == 404 and answer.json() == {"detail": serving.UNKNOWN}

    broken = FastAPI(**serving.app_options())

    @broken.get("/broken")
    def fault():
        return {}["missing"]

    with pytest.raises(KeyError, match="missing"):
        TestClient(broken).get("/broken")


def test_a_run_is_one_line_without_what_was_entered(caplog):
    with caplog.at_level(logging.INFO, "atelier"):
        translate_text(Services(translation_model="multi30k-en-de", device="cpu"), "A secret dog.", "en-de", 1, 0.6, 1)
    assert len(caplog.messages) == 1
    line = caplog.messages[0]
    assert line.startswith("translation: ") and "tokens" in line
    assert not any(word in line for word in ("secret", "dog", "Hund"))


def test_memory_is_given_back_after_every_try_on_also_where_the_system_cannot(monkeypatch):
    given = []
    monkeypatch.setattr(serving, "_libc", lambda: type("C", (), {"malloc_trim": staticmethod(given.append)}))
    services = Services()
    monkeypatch.setattr(services, "tryon", lambda key: None)
    assert list(services.stream_on_tryon(lambda tryon, on_stage: 1))[-1] == 1
    for thread in threading.enumerate():
        if thread.name == "try-on":
            thread.join()
    monkeypatch.setattr(serving, "_libc", lambda: None)
    serving.give_back_memory()
    assert given == [0]
