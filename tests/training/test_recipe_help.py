"""The command line of a recipe explains every field, from the comments beside them."""

from dataclasses import dataclass, fields

import pytest

from gan.task import GanRecipe
from training.fields import explanations
from training.recipe import Recipe
from transformer.parsing.recipe import ParseRecipe
from transformer.train import TranslationRecipe, main
from vton.recipes.registry import NETWORKS, RIVALS

RECIPES = [TranslationRecipe, ParseRecipe, GanRecipe, *(network.recipe for network in (NETWORKS | RIVALS).values())]


@dataclass
class Plain(Recipe):
    """A recipe with fields of its own."""

    steps: int = 7
    width: float = max(
        0.5,
        0.25,  # of something whose "value" holds a # sign
    )
    bare: int = 1
    seed: int = 3  # anew


def test_comments_are_read_from_the_class_and_its_bases():
    found = explanations(Plain)
    assert list(found) == [field.name for field in fields(Plain)]
    assert found["width"] == 'of something whose "value" holds a # sign'
    assert found["steps"] == "optimizer updates in all" and found["seed"] == "anew" and found["bare"] == ""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_field_is_explained(recipe):
    assert [name for name, text in explanations(recipe).items() if not text] == []


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
