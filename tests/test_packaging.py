"""The install lists, the Space's card and the packages say the same thing."""

import re
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from setuptools.build_meta import build_wheel

from training import assets

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("transformer", "vton", "gan", "training", "ui")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def front_matter() -> dict[str, str]:
    """The simple `key: value` lines of README's front matter."""
    _, block, _ = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    pairs = (line.split(":", 1) for line in block.splitlines() if ":" in line and not line.startswith(" "))
    return {key.strip(): value.strip().strip('"') for key, value in pairs}


def requirement_set(lines) -> set[str]:
    return {str(Requirement(line)) for line in lines}


def test_requirements_txt_equals_the_dependencies():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line.strip() and not line.startswith("#")]
    assert requirement_set(listed) == requirement_set(PROJECT["project"]["dependencies"])


def test_space_card_agrees_with_the_project():
    card = front_matter()
    assert card["sdk"] == "gradio"
    assert card["app_file"] == "app.py" and (ROOT / card["app_file"]).is_file()
    (gradio,) = [
        requirement
        for requirement in map(Requirement, PROJECT["project"]["dependencies"])
        if requirement.name == "gradio"
    ]
    # The Space installs exactly sdk_version, which has to be the release that the bounds start from.
    assert Version(card["sdk_version"]) in gradio.specifier
    (lowest,) = [Version(part.version) for part in gradio.specifier if part.operator == ">="]
    assert Version(card["sdk_version"]) == lowest
    assert Version(card["python_version"]) in SpecifierSet(PROJECT["project"]["requires-python"])
    assert len(card["short_description"]) <= 60
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert card["license"] == PROJECT["project"]["license"].lower() == "mit" and licence.startswith("MIT License")


@pytest.mark.parametrize("torch_version", ["2.8.0", "2.9.1", "2.10.0", "2.11.0"])
def test_bounds_allow_the_torch_of_shared_gpu_spaces(torch_version):
    (torch,) = [r for r in map(Requirement, PROJECT["project"]["dependencies"]) if r.name == "torch"]
    assert Version(torch_version) in torch.specifier


def test_readme_names_the_system_libraries():
    packages = (ROOT / "packages.txt").read_text(encoding="utf-8").split()
    assert packages == ["libgl1", "libglib2.0-0"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"`{package}`" in readme or f" {package}" in readme for package in packages)


def test_every_python_folder_is_packaged():
    packages = set(PROJECT["tool"]["setuptools"]["packages"])
    folders = {
        str(init.parent.relative_to(ROOT)).replace("/", ".")
        for top in ("transformer", "vton", "gan", "training", "ui")
        for init in (ROOT / top).rglob("*.py")
    }
    assert folders <= packages, f"not in pyproject's packages: {sorted(folders - packages)}"
    assert packages - folders == {"atelier_assets"}


def test_wheel_carries_weights_cards_examples_and_the_page(tmp_path, monkeypatch):
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "app.py",
        "assets",
        "transformer",
        "vton",
        "gan",
        "training",
        "ui",
    ):
        (copy / name).symlink_to(ROOT / name)  # so that no build folder appears in the checkout
    monkeypatch.chdir(copy)
    (tmp_path / "dist").mkdir()
    wheel = tmp_path / "dist" / build_wheel(str(tmp_path / "dist"))
    files = set(zipfile.ZipFile(wheel).namelist())
    for name in assets.list_models():
        folder = assets.model_dir(name)
        for file in folder.rglob("*"):
            assert file.is_dir() or f"atelier_assets/models/{name}/{file.relative_to(folder)}" in files
    for file in assets.examples_dir().iterdir():
        assert file.is_dir() or f"atelier_assets/examples/{file.name}" in files
    for file in (ROOT / "ui" / "static").rglob("*"):
        assert file.is_dir() or file.relative_to(ROOT).as_posix() in files
    for file in (file for top in PACKAGES for file in (ROOT / top).rglob("*.json")):
        assert file.relative_to(ROOT).as_posix() in files
    packages = {str(file.parent.relative_to(ROOT)) for top in PACKAGES for file in (ROOT / top).rglob("__init__.py")}
    assert packages <= {str(Path(file).parent) for file in files if file.endswith("__init__.py")}
    assert "app.py" in files and not any(name.startswith(("tests/", "assets/")) for name in files)


def test_every_shipped_model_is_complete_and_small_enough():
    total = 0
    assert assets.list_models()
    for name in assets.list_models():
        folder = assets.model_dir(name)
        weights = list(folder.rglob("model.safetensors"))
        assert weights and all((file.parent / "config.json").is_file() for file in weights), name
        assert len((folder / "CARD.md").read_text(encoding="utf-8")) > 200, name
        for file in folder.rglob("*"):
            assert file.stat().st_size < 50e6, file.name
            total += file.stat().st_size
    assert total < 150e6


def test_unknown_model_is_one_sentence_with_the_known_names():
    with pytest.raises(FileNotFoundError) as error:
        assets.model_dir("../models")
    message = str(error.value)
    assert "'../models'" in message and "\n" not in message
    assert all(name in message for name in assets.list_models())


def test_libraries_do_not_import_the_page():
    for package in ("transformer", "vton", "gan", "training"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"^\s*(import|from)\s+(gradio|ui)\b", text, re.MULTILINE), file


def test_importing_is_cheap_and_starts_nothing():
    import subprocess
    import sys

    code = (
        "import sys, threading; import training, gan, vton, transformer, app; "
        "assert threading.active_count() == 1; assert 'gradio' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
