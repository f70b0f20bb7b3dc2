"""What a run folder holds may have been damaged or changed by hand: each such file is refused in one sentence."""

import pytest

from gan.task import GanRecipe
from training.run import Run


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"task": 5}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_recipe_is_one_sentence(tmp_path, content):
    (tmp_path / "recipe.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a run folder: recipe.json is missing or damaged\.$"):
        Run(tmp_path).recipe()


@pytest.mark.parametrize("values", [{"steps": "many"}, {"steps": None}, {"precision": 16}, {"compile": "yes"}])
def test_a_value_of_another_type_in_a_saved_recipe_is_named(values):
    (name,) = values
    with pytest.raises(ValueError, match=f"^The saved recipe is damaged: {name} has to be .*, but is of type "):
        GanRecipe.restore({"task": "GanTask", **values})
