"""What reaches a page: answers to events that are asked for while the visitor's stream closes, and every update."""

import asyncio
import time

import gradio as gr
import pytest
from starlette.middleware import Middleware

from ui import gradio_private
from ui.gradio_private import Page
from ui.serving import app_options

LATE = 1.0  # seconds


class Late:
    """Takes its time with the last words of every stream. before: until the page has them; otherwise the server's
    stream learns late that they were sent.
    """

    def __init__(self, app, before):
        self.app, self.before = app, before

    async def __call__(self, scope, receive, send):
        async def late(message):
            last = gradio_private.CLOSING in message.get("body", b"")
            if last and self.before:
                await asyncio.sleep(LATE)
            await send(message)
            if last and not self.before:
                await asyncio.sleep(LATE)

        await self.app(scope, receive, late if scope["type"] == "http" else send)


@pytest.fixture(params=["the network is slow", "the server is busy"])
def two_buttons(request):
    """Address of a page whose buttons write their names into a box."""
    with gr.Blocks() as page:
        said = gr.Textbox(elem_id="said")
        for name in ("first", "second"):
            gr.Button(name, elem_id=name).click(lambda name=name: name, None, said)
    options, slow = app_options(), request.param == "the network is slow"
    late = Middleware(Late, before=slow)
    options["middleware"] = [late, *options["middleware"]] if slow else [*options["middleware"], late]
    _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, app_kwargs=options)
    yield address
    page.close()


@pytest.mark.quick
def test_an_event_asked_for_while_the_stream_closes_is_answered(browser, two_buttons):
    page = browser.new_page()
    page.set_default_timeout(20_000)
    page.goto(two_buttons)
    for name in ("first", "second"):
        page.click(f"#{name}")
        page.wait_for_function("name => document.querySelector('#said textarea').value === name", arg=name)
    time.sleep(2 * LATE)  # no stream under way
    page.click("#first")
    page.wait_for_function("document.querySelector('#said textarea').value === 'first'")
    page.close()


@pytest.fixture
def quick_runs():
    """Address of a page whose runs are over at once: two updates, and a last one that changes nothing."""
    with Page() as page:
        number = gr.Number(1, elem_id="number")
        button, cancel = gr.Button("Run", elem_id="run"), gr.Button("Cancel", visible=False)
        others, said = [gr.HTML() for _ in range(12)], gr.HTML(elem_id="said")

        def run(given):
            for word, on in (("began", True), ("ended", False)):
                common = dict.fromkeys(others, gr.update(value=f"{word} {given}"))
                yield {cancel: gr.update(visible=on), said: gr.update(value=f"{word} {given}"), **common}
            yield gr.skip()

        button.click(run, number, [*others, cancel, said])
    # A click may come while the stream of the run before is being closed: what holds its answer back is served, too.
    _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, app_kwargs=app_options())
    yield address
    page.close()


@pytest.mark.quick
def test_no_update_of_a_quick_run_is_lost(browser, quick_runs):
    page = browser.new_page()
    page.set_default_timeout(20_000)
    page.goto(quick_runs)
    for number in range(2, 10):
        page.fill("#number input", str(number))
        page.click("#run")
        page.locator("#said", has_text=f"ended {number}").wait_for()
    page.close()
