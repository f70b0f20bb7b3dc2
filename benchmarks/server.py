"""The page in a process of its own, as an operator starts it, for what drives it from outside."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
STARTING = 400  # seconds until the page counts as not starting


def chromium() -> str | None:
    """The browser of this machine."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Server:
    """`with Server("--training", "off") as server:` starts `app.py` with these options on a free port of this machine.

    runs: the folder of its runs; address: of the page, with a slash at its end.
    """

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="atelier-server-"))  # of its log, uploads and runs
        self.options, self.runs = options, self.folder / "runs"
        self._log, self._offset = self.folder / "log.txt", 0

    def __enter__(self) -> Server:
        self.runs.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/"
        with self._log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "app.py", "--port", str(port), "--runs", str(self.runs), *self.options],
                cwd=ROOT,
                stdout=output,
                stderr=output,
                env={**os.environ, "GRADIO_TEMP_DIR": str(self.folder / "uploads")},
            )
        deadline = time.monotonic() + STARTING
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                log = self.log
                self.__exit__()
                raise RuntimeError(f"The page did not start:\n{log}")
            time.sleep(0.3)
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log(self) -> str:
        """What the server has said since it began, or since `forget`."""
        return self._log.read_bytes()[self._offset :].decode(errors="replace")

    def forget(self) -> None:
        """Leaves out of `log` what it has said so far."""
        self._offset = self._log.stat().st_size

    def answers(self, seconds: float = 5) -> bool:
        """Whether it lives and says so within this time."""
        if self.process.poll() is not None:
            return False
        try:
            urllib.request.urlopen(f"{self.address}health", timeout=seconds).close()
        except OSError:
            return False
        return True

    def memory(self) -> float:
        """Its resident memory in MB."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6
