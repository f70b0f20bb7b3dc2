"""Collars drawn onto people for the parser: cloth where neck, hair or background were, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vton import labels
from vton.data.collars import CLOTH, with_collar
from vton.data.draped.people import load_people
from vton.data.pack import Person
from vton.joints import LEFT_SHOULDER, RIGHT_SHOULDER
from vton.recipes.parser import PRESETS, ParserRecipe, ParserTask


@pytest.fixture(scope="module")
def person() -> Person:
    """A draped person from the front."""
    return load_people((256, 192)).person(3)


def collared(person: Person, seed: int) -> Person:
    """The person with the collar of one seed, of his own cloth or a second one's."""
    return with_collar(person, load_people((256, 192)).person(4), np.random.default_rng(seed))


def test_a_collar_is_cloth_near_the_neck_and_leaves_the_face(person: Person):
    shoulders = person.keypoints[[RIGHT_SHOULDER, LEFT_SHOULDER], :2]
    unit = np.linalg.norm(shoulders[0] - shoulders[1])
    y, x = np.mgrid[: person.parse.shape[0], : person.parse.shape[1]]
    grown = 0
    for seed in range(12):
        changed = collared(person, seed)
        new = changed.parse != person.parse
        grown += int(new.sum())
        assert np.isin(changed.parse[new], CLOTH).all()
        assert not np.isin(person.parse[new], (labels.FACE_LIP, labels.HAT_LIP)).any()
        middle = shoulders.mean(0)
        assert (np.hypot(x - middle[0], y - middle[1])[new] < 1.5 * unit).all()
        face = person.parse == labels.FACE_LIP
        assert (changed.image[face] == person.image[face]).all()
    assert grown > 12 * 0.01 * unit**2


@pytest.mark.slow
def test_necks_hair_and_background_are_covered_at_times(person: Person):
    hidden = set()
    for seed in range(40):
        changed = collared(person, seed)
        hidden |= set(np.unique(person.parse[changed.parse != person.parse]).tolist())
    assert {labels.BACKGROUND, labels.NECK_LIP} <= hidden


def test_the_same_seed_draws_the_same_collar_and_the_person_stays_as_he_was(person: Person):
    image, parse = person.image.copy(), person.parse.copy()
    one, two = collared(person, 7), collared(person, 7)
    assert (one.image == two.image).all() and (one.parse == two.parse).all()
    assert (person.image == image).all() and (person.parse == parse).all()


def test_the_silhouette_grows_with_the_collar(person: Person):
    changed = next(c for c in (collared(person, seed) for seed in range(12)) if (c.parse != person.parse).any())
    new = changed.parse != person.parse
    assert (changed.person_mask[new] > 0.5).all() and (changed.person_mask >= person.person_mask).all()


def test_without_shoulders_or_cloth_nothing_is_drawn(person: Person):
    no_joints = replace(person, keypoints=np.zeros_like(person.keypoints))
    assert collared(no_joints, 1) is no_joints
    bare = replace(person, parse=np.where(np.isin(person.parse, CLOTH), 0, person.parse).astype(np.uint8))
    assert with_collar(bare, bare, np.random.default_rng(1)) is bare


@pytest.mark.slow
def test_the_parser_recipe_draws_collars_on_its_share_of_the_samples(monkeypatch: pytest.MonkeyPatch):
    drawn = []
    monkeypatch.setattr("vton.recipes.parser.with_collar", lambda person, other, rng: drawn.append(1) or person)
    task = ParserTask(ParserRecipe(height=64, width=48, collars=0.5))
    for seed in range(24):
        task.sample_one(np.random.default_rng(seed))
    assert 5 <= len(drawn) <= 19
    drawn.clear()
    ParserTask(ParserRecipe(height=64, width=48)).sample_one(np.random.default_rng(1))
    assert not drawn


@pytest.mark.parametrize("preset", ["lite-cpu", "lite-gpu"])
def test_a_parser_that_learns_from_photographs_learns_what_a_person_carries(person, monkeypatch, preset):
    bag = np.zeros(person.parse.shape, bool)
    bag[100:200, 50:150] = True
    recipe = ParserRecipe(**{**PRESETS[preset], "height": 64, "width": 48})
    task = ParserTask(recipe)
    monkeypatch.setattr(task, "draw", lambda rng: replace(person, carried=bag))
    target = task.sample_one(np.random.default_rng(1))["target"]
    assert (target == labels.CARRIED_LIP).any()
