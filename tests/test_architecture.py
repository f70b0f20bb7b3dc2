"""docs/ARCHITECTURE.md: what it names is there, and its recipes hold."""

import dataclasses
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from training import assets
from transformer import translator as translator_module
from transformer.options import SearchOptions
from transformer.translator import Translator
from ui.train.networks import NETWORKS, PRESETS
from vton import stages
from vton.maps import MAPS
from vton.registry import ALL_NETWORKS
from vton.result import PICTURES, TryOnResult

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


# -- the recipes of "How to add", each followed ------------------------------------------------------------------------

FOLLOWED = {
    "A stage": "tests/test_architecture.py::test_a_stage_is_a_row_and_its_fields_and_pictures_follow",
    "An option of try-on": "tests/vton/test_options.py::test_the_command_line_sets_every_option",
    "A lens on the Transformer": "tests/test_architecture.py::test_a_lens_reads_the_recorded_pass_alone",
    "An option of a search": "tests/test_architecture.py::test_an_option_of_a_search_travels_whole",
    "A network": "tests/test_architecture.py::test_a_network_is_an_entry_and_the_train_tab_knows_its_recipe",
    "A view": "tests/ui/test_kit.py::test_the_recipe_for_a_view_is_one_line",
    "A tab": "tests/ui/test_kit.py::test_every_view_is_on_the_page",
    "A preset": "tests/test_architecture.py::test_a_preset_has_its_words",
    "A language of the page": "tests/ui/test_words.py::test_tables_have_the_same_keys",
    "After new weights": "tests/test_architecture.py::test_the_journeys_and_recipes_name_files_that_exist",
    "A set of weights": "tests/test_architecture.py::test_a_set_of_weights_is_configuration_weights_and_card",
}


def test_every_recipe_is_followed_by_a_test():
    recipes = TEXT.split("## How to add")[1].split("\n## ")[0]
    assert re.findall(r"^\* \*\*(.+?)\*\*", recipes, re.M) == list(FOLLOWED)
    for place in FOLLOWED.values():
        file, name = place.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), place


def test_a_stage_is_a_row_and_its_fields_and_pictures_follow():
    record = {field.name for field in dataclasses.fields(TryOnResult)}
    for number, stage in enumerate(stages.TABLE, 1):
        assert stage.run.__module__ == "vton.stages" and stage.run.__doc__.startswith(f"{number} {stage.name}: ")
        assert set(stage.makes) | set(stage.reads) <= record
    assert set(MAPS) == set(PICTURES) and {one.stage for one in MAPS.values()} <= set(stages.STAGES)


def test_a_lens_reads_the_recorded_pass_alone():
    """Only `trace` and what repeats a pass with something changed calls the model's own methods."""
    folder, changes = ROOT / "transformer" / "insight", {"trace", "interpret", "intervene"}
    for file in folder.glob("*.py"):
        called = re.findall(r"\b(?:model|reader)\.(encode|decode|remember)\(", file.read_text(encoding="utf-8"))
        assert not called or file.stem in changes, (file.name, called)


def test_an_option_of_a_search_travels_whole(monkeypatch):
    """What `translate` is given reaches `beam_search` as one object, fields that this test has never heard of too."""

    class Wider(SearchOptions):
        """With an option more."""

    class Reached(Exception):
        pass

    def search(decoder, limits, bos, eos, options, *_, **__):
        raise Reached(type(options), options.beam)

    translator = Translator.from_pretrained("multi30k-en-de", device="cpu")
    monkeypatch.setattr(translator_module, "beam_search", search)
    with pytest.raises(Reached) as found:
        translator.translate("A dog.", options=Wider(beam=3))
    assert found.value.args == (Wider, 3)


@pytest.mark.parametrize("key", ALL_NETWORKS)
def test_a_network_is_an_entry_and_the_train_tab_knows_its_recipe(key):
    known, shown = ALL_NETWORKS[key], NETWORKS[key]
    assert (shown.recipe, shown.task, shown.presets) == (known.recipe, known.task_name, known.presets)
    assert type(shown).__module__ == "ui.train.kinds" and shown.first in known.presets
    fields = {field.name for field in dataclasses.fields(known.recipe)}
    assert {setting.field for setting in shown.settings} <= fields
    config = known.recipes.network_config(known.recipe())
    assert type(config) is known.config and known.network.__module__.startswith("vton.networks.")


def test_a_preset_has_its_words():
    assert {preset for network in NETWORKS.values() for preset in network.presets} == set(PRESETS)


def test_a_set_of_weights_is_configuration_weights_and_card():
    for name in assets.list_models():
        folder = assets.model_dir(name)
        assert (folder / "CARD.md").is_file() and list(folder.rglob("model.safetensors"))
        for file in folder.rglob("model.safetensors"):
            assert (file.parent / "config.json").is_file(), file
            kinds = {value.dtype for value in load_file(file).values()}
            assert torch.float16 in kinds and torch.float32 not in kinds, (file, kinds)
