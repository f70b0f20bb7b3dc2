"""People in their frames, and the training samples that are drawn from them."""

from dataclasses import replace

import numpy as np
import pytest

from vton.data.draped.people import load_people
from vton.data.pairs import WHITE
from vton.data.scenes import (
    ARMS,
    UPPER,
    Look,
    Scenes,
    below_hem,
    cut,
    dress,
    flatten,
    halve,
    random_crop,
)

SIZE = (128, 96)


@pytest.fixture(scope="module")
def scene():
    """A person as of a photograph, whose true warp nobody knows."""
    return replace(Scenes(None, SIZE, draped=load_people(SIZE))[3], warped_mask=np.zeros(SIZE, bool))


def test_a_scene_is_made_once_and_read_from_the_file(tmp_path, monkeypatch):
    people = load_people(SIZE)
    first = Scenes(None, SIZE, cache=tmp_path, draped=people)
    made = first[3]
    monkeypatch.setattr(Scenes, "_make", None)  # nobody makes it again
    read = Scenes(None, SIZE, cache=tmp_path, draped=people)[3]
    for name in ("picture", "pose", "classes", "gray", "silhouette"):
        assert np.array_equal(getattr(made, name), getattr(read, name)), name
    with pytest.raises(TypeError):
        Scenes(None, SIZE, cache=tmp_path, draped=people)[4]


def test_windows_and_halves_keep_the_maps_together(scene):
    window = random_crop(scene, np.random.default_rng(0))
    small = halve(scene)
    for part in (window, small):
        assert part.picture.shape == (64, 48, 3) and part.classes.shape == part.gray.shape == (64, 48)
    assert window.gray.any()
    corner = np.lib.stride_tricks.sliding_window_view(scene.classes, (64, 48))
    assert (corner == window.classes).all((2, 3)).any()  # a window is a window of the whole
    assert np.array_equal(small.classes == UPPER, (scene.classes == UPPER)[::2, ::2])


def test_a_plain_sample_is_the_photograph_and_its_garment(scene):
    sample = dress(scene, np.random.default_rng(0), Look(studio=0, recoloured=0, flattened=0, cut=0, bent=0))
    upper, person, region = scene.classes == UPPER, sample["person"], sample["region"][0]
    assert np.array_equal(sample["warped_mask"][0], upper) and region[scene.gray].all()
    assert np.array_equal(sample["warped"][upper], person[upper]) and (sample["warped"][~upper] == WHITE).all()
    assert (sample["agnostic"][region] == 128).all()
    assert np.array_equal(sample["agnostic"][~region], person[~region])
    assert not (sample["rim"] & ~sample["region"]).any() and not (sample["rim"][0] & upper).any()


def test_a_sample_is_a_function_of_its_generator(scene):
    look = Look(studio=1, recoloured=1, flattened=1, cut=1, bent=1)
    one, same, other = (dress(scene, np.random.default_rng(s), look) for s in (1, 1, 2))
    assert all(np.array_equal(one[k], same[k]) for k in one)
    assert not np.array_equal(one["person"], other["person"]) and not np.array_equal(one["warped"], other["warped"])


def test_a_wall_stands_behind_the_person_alone(scene):
    sample = dress(scene, np.random.default_rng(0), Look(studio=1, recoloured=0, flattened=0, cut=0, bent=0))
    far = scene.silhouette == 0
    assert sample["person"][far].astype(float).std() < scene.picture[far].astype(float).std() + 25
    again = dress(scene, np.random.default_rng(5), Look(studio=1, recoloured=0, flattened=0, cut=0, bent=0))
    assert np.abs(sample["person"][far].mean(0) - again["person"][far].mean(0)).max() > 5


def test_a_flat_garment_has_lost_the_broad_light_and_kept_its_pattern():
    columns = np.arange(96)[None].repeat(128, 0)
    light = 90 + 110 * columns / 96
    stripes = np.where(columns % 4 < 2, 12, -12)
    picture = np.clip(light + stripes, 0, 255).astype(np.uint8)[..., None].repeat(3, 2)
    upper = np.zeros((128, 96), bool)
    upper[20:110, 10:86] = True
    seed = next(s for s in range(50) if np.random.default_rng(s).uniform(8, 20) > 8)
    flat = flatten(picture, upper, np.random.default_rng(seed)).astype(float).mean(2)

    def slope(a):
        return abs(a[40:90, 60:80].mean() - a[40:90, 16:36].mean())

    def pattern(a):
        return np.abs(np.diff(a[40:90, 16:80], axis=1)).mean()

    assert slope(flat) < 0.75 * slope(picture.astype(float).mean(2))
    assert pattern(flat) > 0.7 * pattern(picture.astype(float).mean(2))
    assert np.array_equal(flat[~upper], picture.astype(float).mean(2)[~upper])


def test_what_is_cut_is_a_part_of_the_garment(scene):
    upper, shares = scene.classes == UPPER, []
    for seed in range(12):
        rest = cut(upper, np.random.default_rng(seed))
        assert not (rest & ~upper).any()
        shares.append(rest.sum() / upper.sum())
    assert min(shares) >= 0.5 and min(shares) < 0.9 < max(shares)


def test_what_a_sample_shows_stays_as_it_was(scene):
    hidden = dress(scene, np.random.default_rng(4), Look(studio=0, shown=0))
    shapes = set()
    for seed in range(12):
        sample = dress(scene, np.random.default_rng(seed), Look(studio=0, shown=1))
        gray = (sample["agnostic"] == 128).all(2)
        visible = sample["region"][0] & ~gray
        assert not visible[scene.classes == UPPER].any()
        assert (sample["agnostic"][visible] == sample["person"][visible]).all()
        shapes.add(visible.tobytes())
    assert len(shapes) > 6 and visible.any()  # how much is shown is a matter of chance
    assert (hidden["agnostic"] == 128).all(2)[hidden["region"][0]].all()


def test_a_longer_old_garment_hides_trousers_and_wall_below_the_hem(scene):
    hem = below_hem(scene, np.random.default_rng(0))
    upper = scene.classes == UPPER
    assert hem.any() and not (hem & upper).any() and not (hem & np.isin(scene.classes, ARMS)).any()
    rows, columns = np.nonzero(hem)
    lowest = np.array([np.flatnonzero(upper[:, column]).max(initial=-1) for column in columns])
    assert (lowest >= 0).all() and (rows - lowest <= 0.14 * SIZE[0] + 1).all()
    only = [
        dress(scene, np.random.default_rng(1), Look(studio=0, recoloured=0, flattened=0, cut=0, bent=0, lowered=p))
        for p in (0, 1)
    ]
    assert only[1]["region"].sum() > only[0]["region"].sum()
    assert (only[1]["agnostic"][only[1]["region"][0]] == 128).all()
