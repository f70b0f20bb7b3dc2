"""Every command that the documentation shows exists and knows the options that it is shown with."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "assets").glob("**/CARD.md")),
]
OURS = ("transformer", "vton", "gan", "training", "benchmarks", "lab")
# Their first word says which network, and so which options.
WITH_A_SUBJECT = ("vton.train", "lab.tryon.labelled", "lab.tryon.evaluate")
_COMMAND = re.compile(rf"python -m ((?:{'|'.join(OURS)})\.[\w.]+)([^\n`&]*(?:\\\n[^\n`&]*)*)")


def shown() -> dict[tuple[str, str, str], set[str]]:
    """Options by (module, subject, preset) of all commands here; a command goes on after a backslash or an indent,
    and ends where `&&` begins another.

    `--resume` without a preset takes that of the run, so nothing is known of its options. All benchmarks are among
    them, which the documentation names together.
    """
    found: dict[tuple[str, str, str], set[str]] = {
        (f"benchmarks.{file.stem}", "", ""): set()
        for file in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in file.read_text(encoding="utf-8")
    }
    for page in PAGES:
        text = re.sub(r"\n {8}(?=--)", " ", page.read_text(encoding="utf-8"))
        for module, rest in _COMMAND.findall(text):
            rest = rest.replace("\\\n", " ").split("#")[0]
            preset = re.search(r"--preset[ =]([\w-]+)", rest)
            subject = rest.split()[0] if module in WITH_A_SUBJECT else ""
            options = set() if "--resume" in rest else set(re.findall(r"(?<!\S)--[a-z][\w-]*", rest))
            if module != "benchmarks.NAME":
                found.setdefault((module, subject, preset[1] if preset else ""), set()).update(options)
    return found


def help_of(module: str, subject: str, preset: str, monkeypatch, capsys) -> str:
    given = [*([subject] if subject else []), *(["--preset", preset] if preset else [])]
    monkeypatch.setattr(sys, "argv", [module, *given, "--help"])
    monkeypatch.setattr("training.memory.keep_memory", lambda: None)  # of this process
    with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        warnings.simplefilter("ignore", RuntimeWarning)  # the module is imported already
        runpy.run_module(module, run_name="__main__")
    assert ended.value.code in (0, None), module
    return capsys.readouterr().out


@pytest.mark.parametrize("module, subject, preset", sorted(shown()), ids=lambda part: part or "any")
def test_a_documented_command_knows_its_options(module, subject, preset, monkeypatch, capsys):
    told = help_of(module, subject, preset, monkeypatch, capsys)
    # argparse breaks lines at hyphens, in the middle of an option too.
    flat = re.sub(r"\s+", "", told)
    missing = [option for option in shown()[module, subject, preset] if option not in flat]
    assert not missing, f"{' '.join(['python -m', module, subject, preset])} has no {missing}"
