"""A recipe's fields carry their words; a saved recipe is taken whole or refused."""

from dataclasses import asdict, dataclass, fields

import pytest

from gan.task import GanRecipe
from training.recipe import Recipe, setting
from transformer.parsing.recipe import ParseRecipe
from transformer.train import TranslationRecipe, main
from vton.data.scenes import Look
from vton.recipes.alias import AliasRecipe
from vton.registry import ALL_NETWORKS

RECIPES = [TranslationRecipe, ParseRecipe, GanRecipe, *(network.recipe for network in ALL_NETWORKS.values())]


@dataclass
class Plain(Recipe):
    """A recipe with fields of its own."""

    steps: int = 7
    width: float = setting(0.5, 'of something whose "value" holds a # sign')
    bare: int = 1
    seed: int = setting(3, "anew")
    former = {"depth": 4}


def test_words_come_from_the_class_and_its_bases():
    found = Plain.meanings()
    assert list(found) == [field.name for field in fields(Plain)]
    assert found["width"] == 'of something whose "value" holds a # sign'
    assert found["steps"] == "optimizer updates in all" and found["seed"] == "anew" and found["bare"] == ""


def test_a_saved_recipe_comes_back_whole():
    recipe = Plain(steps=9, width=0.25)
    assert Plain.restore({"task": "PlainTask", **asdict(recipe)}) == recipe
    assert Plain.restore({**asdict(recipe), "depth": 4}, steps=11) == Plain(steps=11, width=0.25)


@pytest.mark.parametrize("field, value", [("widht", 0.5), ("depth", 5)])
def test_an_unknown_field_of_a_saved_recipe_is_an_error_that_names_it(field, value):
    with pytest.raises(ValueError, match=rf"the field '{field}' \('{value}'\), which a Plain does not have"):
        Plain.restore({"task": "PlainTask", field: value})


@pytest.mark.parametrize("network", ALL_NETWORKS.values(), ids=lambda network: network.key)
def test_a_preset_names_fields_of_its_recipe(network):
    for preset in network.presets.values():
        network.recipe(**preset).check()


def test_the_changes_of_a_scene_are_fields_of_the_recipe_that_sets_them():
    assert {field.name for field in fields(Look)} <= {field.name for field in fields(AliasRecipe)}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_field_is_explained(recipe):
    assert [name for name, text in recipe.meanings().items() if not text] == []


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        (
            [],
            ("--rate-scale FLOAT", "factor on equation 3", "(default: 1.0)", "multi30k: size 'tiny'", "--preset parse"),
        ),
        (["--preset", "parse"], ("--cooldown INT", "over which it falls to 0", "parse: steps 2400")),
    ],
)
def test_help_shows_fields_and_presets(capsys, preset, words):
    with pytest.raises(SystemExit) as end:
        main([*preset, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0 and [word for word in words if word not in printed] == []
