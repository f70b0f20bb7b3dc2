"""The real page with the real weights, in a process of its own, and a browser to visit it."""

import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))  # for `driving`, what several of these tests do
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
]


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """A browser takes its time: tests here are slow unless marked `quick`."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("quick"):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folder of the runs that the page watches; empty at first."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def site(serve_app, runs):
    """Address of the page, started with `app.py` as a visitor's operator would."""
    with serve_app("--runs", runs) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium on the PATH (Debian and Ubuntu: apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, site):
    """`visit(width=, dark=, locale=, prepare=)` opens the page as a new visitor, after `prepare(page)`.

    At the end no visitor may have seen an error of the page's scripts, nor asked any other host.
    """
    contexts, wrong = [], []

    def open_page(width=1280, height=900, dark=False, theme=None, locale="en-US", prepare=None):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
            locale=locale,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        # A reload ends Gradio's own requests under way, which it then reports as errors.
        page.on(
            "console",
            lambda message: (
                message.type == "error"
                and "AbortError" not in message.text
                and "Connection errored out" not in message.text
                and wrong.append(f"console: {message.text}")
            ),
        )
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url.startswith((site, "data:", "blob:")) or wrong.append(f"asked: {request.url}"),
        )
        if prepare is not None:
            prepare(page)
        page.goto(site + ("?__theme=dark" if dark else "?__theme=light"))
        page.locator("#heat-map .heat-title").wait_for()  # the sentence that the page opens with
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
