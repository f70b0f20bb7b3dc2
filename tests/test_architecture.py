"""docs/ARCHITECTURE.md: what it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
TREE = TEXT.split("## The tree")[1].split("```")[1].strip().splitlines()


def places() -> list[tuple[Path, bool]]:
    """(file or folder that the tree names, whether users run it as a module)."""
    found, package = [], ROOT
    for line in TREE:
        names = re.split(r"\s{2,}", line.strip())[0].split()
        runs = line.rstrip().endswith("modules that users run")
        if not line.startswith(" "):
            package = ROOT / names[0] if names[0].endswith("/") else ROOT
            found.append((ROOT / names[0], False))
        else:
            found += [(package / (f"{name}.py" if runs else name), runs) for name in names]
        if line.startswith(" "):
            room = package / names[0] if names[0].endswith("/") else package
            found += [(room / name, False) for name in re.findall(r"\b\w+\.py\b", line)]
    return found


@pytest.mark.parametrize("path, runs", places(), ids=lambda value: str(value).removeprefix(f"{ROOT}/"))
def test_the_tree_names_what_is_there(path, runs):
    assert path.exists()
    if runs:
        assert 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")


def test_every_package_has_its_line():
    named = {path for path, _ in places()}
    assert all(folder.parent in named for folder in ROOT.glob("*/__init__.py") if folder.parent.name != "tests")


def test_the_journeys_and_recipes_name_files_that_exist():
    rest = TEXT.split("## The way of a sentence")[1]
    inside = ("", "transformer", "vton", "vton/recipes", "vton/networks", "ui", "ui/translate")
    for name in set(re.findall(r"`([\w/]+\.py)`", rest)):
        assert any((ROOT / folder / name).is_file() for folder in inside), name
    for module in set(re.findall(r"`python -m ([\w.]+)", rest)):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
