"""Options of the whole test run, and pages that tests start in processes of their own."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from training.assets import model_dir

# Where several tests run at a time, a process has one core: more threads would only wait for each other. Read when
# torch and OpenCV are imported, and by the pages that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", OPENCV_FOR_THREADS_NUM="1")

ROOT = Path(__file__).resolve().parents[1]
STARTS_WITHIN = 400  # seconds until a page has to answer


def pytest_addoption(parser):
    parser.addoption("--device", default="auto", help="of the tests that use one: auto takes the fastest")
    parser.addoption("--no-skips", action="store_true", help="fail if any test was skipped")


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    # What the processor cannot do, no installation mends.
    skipped = [report for report in skipped if "no processor for" not in str(report.longrepr)]
    if session.config.getoption("--no-skips") and skipped and exitstatus == 0:
        reporter.write_line(f"{len(skipped)} tests were skipped, which --no-skips does not allow", red=True)
        session.exitstatus = 1


@pytest.fixture
def without_shortlists(tmp_path):
    """A folder of the shipped translator without what quick mode chooses among."""
    for name in ("config.json", "tokenizer.model", "model.safetensors"):
        shutil.copyfile(model_dir("everyday") / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def apart():
    """`apart(coroutine)`: its result, from an event loop in another thread; Playwright's own runs in this one."""

    def result_of(coroutine):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, coroutine).result()

    return result_of


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serve(
    command: Sequence[str], port: int, folder: Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Address of the page that `command` serves on `port`, once it answers; stopped at the end.

    folder: gets the log and the uploads; environment: variables besides those of this process. Fails if the page does
    not come, dies early or logs a traceback.
    """
    log = folder / "log.txt"
    uploads = {"GRADIO_TEMP_DIR": str(folder / "uploads")}
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=cwd, stdout=output, stderr=output, env={**os.environ, **uploads, **(environment or {})}
        )
    address = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the page did not start:\n{log.read_text()}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(address + "health", timeout=5).close()
                break
            time.sleep(0.3)
        yield address
        assert server.poll() is None, f"the page died:\n{log.read_text()}"
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="session")
def serve_app(tmp_path_factory):
    """`serve_app(*words)` starts `app.py` with these words; a context manager, see `serve`."""

    def start(*words):
        port = unused_port()
        command = [sys.executable, "app.py", "--port", str(port), *map(str, words)]
        return serve(command, port, tmp_path_factory.mktemp("site"))

    return start


@pytest.fixture(scope="session")
def served():
    """`serve`, for tests with a command line of their own."""
    return serve


@pytest.fixture
def free_port():
    """A port of this machine that nobody listens on."""
    return unused_port()


@pytest.fixture(scope="session")
def device(request):
    """Name of the device that tests use: "cuda" where there is a card.

    Those that compare numbers inside a network with NumPy stay on the CPU.
    """
    from training.devices import choose_device

    return choose_device(request.config.getoption("--device")).type
