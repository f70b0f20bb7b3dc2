"""The quick tests under other Pythons and other releases of torch: `python -m benchmarks.platforms`.

For each pair of them a fresh virtual environment gets the project's dependencies with that torch and runs the quick
tests without the browser; then it is deleted. Prints a Markdown table, a row a platform; the exit status is 1 if tests
failed or an environment could not be made (with `--short` only if tests failed).

    python -m benchmarks.platforms --pythons 3.12 --torches 2.8 2.11     some of them
    python -m benchmarks.platforms --short                               one other Python, a few tests, as .ci/run does

Interpreters are looked for on the PATH, among those of pyenv, and by uv where it is installed. pip's own variables hold
(an index of torch for CPUs alone saves 4 GB a platform). An environment takes up to 8 GB while it is there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12")
TORCHES = ("2.8", "2.11")  # the bounds of shared GPU Spaces
NEEDED_GB = 12  # free space below which no environment is begun
INSTALL_SECONDS, TEST_SECONDS = 3600, 3600
SHORT_INSTALL_SECONDS, SHORT_TEST_SECONDS = 360, 600
UNINSTALLED = "could not be installed"
QUICK = ("tests", "--ignore=tests/e2e")
SHORT = (
    "tests/transformer/test_transformer_model.py",
    "tests/transformer/test_search.py",
    "tests/gan/test_losses.py",
    "tests/training/test_weights.py",
    "tests/vton/test_alias.py",
)


@dataclass
class Outcome:
    """What became of one platform.

    version: the interpreter's; torch: the release that was installed; said: pytest's last line, or why there is none;
    good: whether everything passed; installing, testing: seconds.
    """

    version: str
    torch: str
    said: str
    good: bool
    installing: float = 0.0
    testing: float = 0.0

    def row(self) -> str:
        """A row of the Markdown table."""
        minutes = f"{self.installing / 60:.1f} + {self.testing / 60:.1f} min" if self.testing else ""
        return f"| {self.version} | {self.torch} | {self.said} | {minutes} |"


def interpreter(python: str) -> str | None:
    """Path of an interpreter of this release ("3.12"), None where there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [str(path) for path in sorted(root.glob(f"versions/{python}.*/bin/python"), reverse=True)]
    candidates += [found for found in [shutil.which(f"python{python}")] if found]
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", python], check=False, capture_output=True, text=True)
        candidates += found.stdout.split()
    for path in candidates:  # pyenv's shims lie on the PATH for releases that are not chosen, too
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        told = subprocess.run([path, "-c", code], check=False, capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.strip() == python:
            return path
    return None


def requirements(torch: str) -> list[str]:
    """What pip installs for a torch release: dependencies, what the tests need, and the torchvision of that release."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, torch.split("."))
    if major != 2:
        raise ValueError(f"torch {torch} is none of 2.x, whose torchvision is known.")
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    # The looser bounds go: pip would look at a newer torch first, which it may have to download for that.
    wanted = [one for one in wanted if not re.match(r"torch(vision)?\b", one)]
    return [f"torch=={torch}.*", f"torchvision==0.{minor + 15}.*", *wanted]


def run(command: Sequence[str], log: Path, seconds: float) -> int | None:
    """Exit status of a command whose output goes to a log; None if it took longer and was ended."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("w") as output:
        try:
            return subprocess.run(
                command,
                check=False,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
                env=environment,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def check(
    python: str, torch: str, tests: Sequence[str], limits: tuple[float, float] = (INSTALL_SECONDS, TEST_SECONDS)
) -> Outcome:
    """Makes one environment, runs the tests in it and deletes it.

    python: "3.12"; torch: "2.8"; tests: arguments for pytest; limits: seconds of installing and of the tests.
    """
    path = interpreter(python)
    if path is None:
        return Outcome(python, torch, "no such interpreter here", True)
    with tempfile.TemporaryDirectory(prefix="atelier-platform-") as temporary:
        folder = Path(temporary)
        free = shutil.disk_usage(folder).free / 1e9
        if free < NEEDED_GB:
            return Outcome(python, torch, f"{free:.0f} GB are free, {NEEDED_GB} are needed", False)
        own, log = folder / "venv" / "bin" / "python", folder / "log.txt"
        began = time.monotonic()
        subprocess.run([path, "-m", "venv", folder / "venv"], check=True)
        installed = run([str(own), "-m", "pip", "install", "--no-compile", *requirements(torch)], log, limits[0])
        if installed != 0:
            print(tail(log), file=sys.stderr)
            return Outcome(python, torch, UNINSTALLED, False)
        installing = time.monotonic() - began
        code = "import sys, torch; print(sys.version.split()[0], torch.__version__)"
        version, release = subprocess.run([own, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        began = time.monotonic()
        command = [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        status = run(command, log, limits[1])
        testing = time.monotonic() - began
        counts = re.findall(r"^.*\b\d+ (?:passed|failed|error).*$", log.read_text(errors="replace"), re.MULTILINE)
        said = re.sub(r"=|\s+in [\d.]+s.*", "", counts[-1]).strip() if counts else "no result"
        if status != 0:
            print(tail(log, 60), file=sys.stderr)
            said = "not done in time" if status is None else said
        return Outcome(version, release, said, status == 0, installing, testing)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Run the quick tests under other Pythons and releases of torch.")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="3.X")
    parser.add_argument("--torches", nargs="+", default=TORCHES, metavar="2.X")
    parser.add_argument("--tests", nargs="+", default=QUICK, help="arguments for pytest")
    parser.add_argument(
        "--short", action="store_true", help="the first other Python found, the oldest torch, few tests"
    )
    options = parser.parse_args(argv)
    if options.short:
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        others = [python for python in reversed(PYTHONS) if python != own and interpreter(python)]
        if not others:
            print(f"There is no Python beside {own} here; nothing was checked.")
            return 0
        outcomes = [check(others[0], TORCHES[0], SHORT, (SHORT_INSTALL_SECONDS, SHORT_TEST_SECONDS))]
        print(outcomes[0].row())
        if not outcomes[0].installing:
            return 0  # a slow registry or a full disk says nothing about the code
    else:
        print("| Python | torch | Tests | Installing + testing |\n|---|---|---|---|", flush=True)
        outcomes = []
        for python in options.pythons:
            for torch in options.torches:
                outcomes.append(check(python, torch, options.tests))
                print(outcomes[-1].row(), flush=True)
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
