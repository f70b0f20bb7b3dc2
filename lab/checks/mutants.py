"""Wrong versions of the code that the tests have to notice: `python -m lab.checks.mutants`.

Each mutant of `mutants.json` changes one place of one module, as a slip of the pen could. In a copy of the project it
is made by itself, and the tests that belong to the module run until one fails. A mutant that no test notices has
survived: the tests are mended, not the list. Prints a line for each, and a Markdown table; the exit status is 1 if one
survived.

    python -m lab.checks.mutants --only warping agnostic     those whose module's path holds one of these words

The libraries are imported once; each mutant runs in a fork of that process (Linux and macOS), so it costs seconds.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training.arguments import CommandLine
from training.command import one_sentence

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("transformer", "vton", "gan", "training", "ui", "lab", "tests", "benchmarks")
LONGEST = 300  # seconds of one mutant's tests; one that never ends is noticed, too


@dataclass(frozen=True)
class Mutant:
    """One change.

    file: of the project; old: text that occurs once in it; new: what stands there instead; tests: paths that should
    notice.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def read_mutants() -> list[Mutant]:
    """All of `mutants.json`: of each module the tests, with blanks between, and the changes."""
    modules = json.loads(Path(__file__).with_name("mutants.json").read_text(encoding="utf-8"))
    return [
        Mutant(one["file"], old, new, tuple(one["tests"].split())) for one in modules for old, new in one["changes"]
    ]


MUTANTS = read_mutants()


@contextlib.contextmanager
def copy_of_project() -> Iterator[Path]:
    """A copy of the project's code and tests; what is large and stays, the weights and examples, is linked."""
    with tempfile.TemporaryDirectory(prefix="atelier-mutants-") as temporary:
        folder = Path(temporary)
        for name in PACKAGES:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("app.py", "pyproject.toml", "README.md", "requirements.txt"):
            shutil.copy(ROOT / name, folder)
        for name in ("assets", "docs"):
            (folder / name).symlink_to(ROOT / name)
        yield folder


def first_failure(folder: Path, tests: tuple[str, ...], log: Path) -> str:
    """What the tests say of the code in `folder`: "" if all pass, else the first failure. They run in a fork."""
    log.write_text("")
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            output = os.open(log, os.O_WRONLY | os.O_TRUNC)
            os.dup2(output, 1), os.dup2(output, 2)
            os.chdir(folder)
            sys.path[:] = [str(folder), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
            # This command has imported some of the project's own modules, which are not the copy's.
            for module in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
                del sys.modules[module]
            import pytest

            # -m "" runs the slow tests of these files too.
            status = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "", *tests])
            sys.stdout.flush()
            os._exit(int(status))
        os._exit(99)
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "did not end"
    if os.waitstatus_to_exitcode(status) == 0:
        return ""
    names = [line.split(" ")[1] for line in log.read_text().splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return names[0].rpartition("::")[2] if names else "does not run"


def check(mutants: list[Mutant]) -> dict[Mutant, str]:
    """What noticed each mutant, "" = nothing. Raises RuntimeError if the unchanged code fails, ValueError for a mutant
    whose place is not to be found.
    """
    sys.dont_write_bytecode = True
    import pytest  # noqa: F401  (every fork has these from here)
    import torch
    import torchvision  # noqa: F401

    torch.set_num_threads(1)  # a fork has no threads but its own
    results = {}
    with copy_of_project() as folder:
        log = folder / "log.txt"
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        wrong = [test for test in tests if first_failure(folder, (test,), log)]
        if wrong:
            raise RuntimeError(f"The unchanged code fails in {', '.join(wrong)}:\n{log.read_text()}")
        for mutant in mutants:
            path = folder / mutant.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                raise ValueError(f"{mutant.file}: {mutant.old!r} occurs {text.count(mutant.old)} times.")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            results[mutant] = first_failure(folder, mutant.tests, log)
            path.write_text(text, encoding="utf-8")
            outcome = f"noticed by {results[mutant]}" if results[mutant] else "SURVIVED"
            print(f"{mutant.file}: {one_line(mutant.old)} -> {one_line(mutant.new)}: {outcome}", flush=True)
    return results


def one_line(code: str) -> str:
    """Code on one line."""
    return " ".join(code.split()) or "(nothing)"


def table(results: dict[Mutant, str]) -> str:
    """Markdown: module, mutants, noticed."""
    files = dict.fromkeys(mutant.file for mutant in results)
    rows = []
    for file in files:
        own = [bool(test) for mutant, test in results.items() if mutant.file == file]
        rows.append(f"| `{file}` | {len(own)} | {sum(own)} |")
    return "\n".join(["| Module | Mutants | Noticed |", "|---|---|---|", *rows])


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = CommandLine(description="Check that the tests notice wrong versions of the code.")
    parser.add_argument("--only", nargs="+", default=[""], help="words of a module's path")
    options = parser.parse_args(argv)
    results = check([mutant for mutant in MUTANTS if any(word in mutant.file for word in options.only)])
    print(table(results))
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
