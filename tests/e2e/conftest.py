"""The real page with the real weights, in a process of its own, and a browser to visit it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # for `driving`, what several of these tests do
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-default-apps --disable-extensions"
).split()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folder of the runs that the page watches; empty at first."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def site(tmp_path_factory, runs):
    """Address of the page, started with `app.py` as a visitor's operator would."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("site") / "log.txt"
    environment = {**os.environ, "GRADIO_TEMP_DIR": str(tmp_path_factory.mktemp("uploads"))}
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(port), "--runs", str(runs)],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            env=environment,
        )
    address = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 180
        while True:
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the page did not start:\n{log.read_text()}")
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.3)
        yield address
        assert server.poll() is None, f"the page died:\n{log.read_text()}"
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        server.terminate()
        server.wait(timeout=30)


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
    """`visit(width=, dark=)` opens the page as a new visitor. At the end no visitor may have seen an error of the
    page's scripts, nor asked any other host."""
    contexts, wrong = [], []

    def open_page(width=1280, height=900, dark=False, theme=None):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: message.type == "error" and wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: request.url.startswith((site, "data:", "blob:")) or wrong.append(f"asked: {request.url}"),
        )
        page.goto(site + ("?__theme=dark" if dark else "?__theme=light"))
        page.locator("#source-text textarea").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
