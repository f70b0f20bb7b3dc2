"""Drawn pairs: the truth that comes with a picture is true of the picture."""

import numpy as np
import pytest
import torch
from PIL import Image

from lab.tryon import synthetic
from lab.tryon.drawing.geometry import fold_share
from lab.tryon.synthetic import EXAMPLE_GARMENTS, EXAMPLE_PEOPLE, EXAMPLE_SIZE, draw_pair
from training.assets import examples_dir

SIZE = (256, 192)


def equal(a, b) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)


def test_equal_seeds_draw_equal_pairs():
    assert equal(draw_pair(5, SIZE), draw_pair(5, SIZE))
    assert not np.array_equal(draw_pair(5, SIZE).person, draw_pair(6, SIZE).person)


@pytest.mark.parametrize("size", [(256, 192), (512, 384), (768, 576)])
def test_shapes_and_types(size):
    pair = draw_pair(1, size)
    for name, shape, kind in (
        ("person", (*size, 3), np.uint8),
        ("parse", size, np.uint8),
        ("keypoints", (25, 3), np.float32),
        ("cloth", (*size, 3), np.uint8),
        ("cloth_mask", size, np.uint8),
        ("truth_mask", size, np.uint8),
        ("truth", (*size, 3), np.uint8),
        ("grid", (*size, 2), np.float32),
        ("control_points", (25, 2), np.float32),
    ):
        value = getattr(pair, name)
        assert value.shape == shape and value.dtype == kind, name
    assert (pair.cloth[pair.cloth_mask == 0] == 246).all()
    assert set(np.unique(pair.cloth_mask)) == set(np.unique(pair.truth_mask)) == {0, 255}


def test_sizes_show_the_same_person():
    small, large = draw_pair(2, (256, 192)), draw_pair(2, (512, 384))
    assert np.allclose(small.keypoints[:, :2] * 2, large.keypoints[:, :2], atol=0.01)
    halved = large.parse[::2, ::2]
    assert (halved == small.parse).mean() > 0.97


@pytest.mark.parametrize("seed", range(6))
def test_the_warp_is_exact(seed):
    """torch's grid_sample with the pair's grid gives the worn garment and its mask."""
    pair = draw_pair(seed, SIZE, pose="down")
    cloth = torch.from_numpy(pair.cloth).permute(2, 0, 1)[None].double()
    mask = torch.from_numpy(pair.cloth_mask)[None, None].double() / 255
    grid = torch.from_numpy(pair.grid)[None].double()
    warped = (
        torch.nn.functional.grid_sample(cloth, grid, padding_mode="border", align_corners=False)[0]
        .permute(1, 2, 0)
        .numpy()
    )
    covered = torch.nn.functional.grid_sample(mask, grid, padding_mode="border", align_corners=False)[0, 0].numpy()
    worn = pair.truth_mask > 0
    assert np.abs(warped - pair.truth)[worn].mean() < 1.5
    assert covered[worn].min() > 0.45
    # The mask leaves out nothing but a stray copy of the garment off the body.
    assert ((covered > 0.55) & ~worn).sum() < 0.05 * worn.sum()


def test_control_points_are_the_grid_at_the_lattice():
    pair = draw_pair(3, SIZE)
    H, W = SIZE
    for i in range(5):  # x varies slowest
        for j in range(5):
            expected = pair.grid[round(j * (H - 1) / 4), round(i * (W - 1) / 4)]
            assert np.array_equal(pair.control_points[5 * i + j], expected)


def test_the_picture_shows_the_warped_cloth():
    """Light changes brightness, not hue: where nothing hides it, the person wears the warped product."""
    pair = draw_pair(14, (512, 384), print_="stripes", sleeves="short", pose="down")
    visible = (pair.parse == 5) & (pair.truth_mask > 0)
    person, cloth = pair.person[visible].astype(float), pair.truth[visible].astype(float)
    correlation = np.corrcoef(person.ravel(), cloth.ravel())[0, 1]
    assert correlation > 0.95
    assert visible.sum() / (pair.parse == 5).sum() > 0.97


@pytest.mark.parametrize("pose", synthetic.POSES)
@pytest.mark.parametrize("sleeves", synthetic.SLEEVES)
def test_warps_do_not_turn_over(pose, sleeves):
    """Long sleeves on bent or raised arms crease in the armpit; everything else is free of folds."""
    shares = []
    for seed in range(5):
        pair = draw_pair(seed, SIZE, pose=pose, sleeves=sleeves)
        shares.append(fold_share(pair.grid, pair.truth_mask))
    assert max(shares) < (0.04 if sleeves == "long" and pose != "down" else 0.004)


def test_folded_counts_turned_pixels():
    y, x = np.mgrid[0:20, 0:20].astype(np.float32)
    plain = np.stack([x, y], -1)
    everywhere = np.ones((20, 20))
    assert fold_share(plain, everywhere) == 0
    assert fold_share(plain[:, ::-1], everywhere) == 1
    half = plain.copy()
    half[:, 10:, 0] = 20 - x[:, 10:]
    assert 0.4 < fold_share(half, everywhere) < 0.6


@pytest.mark.parametrize("seed", range(8))
def test_joints_lie_on_their_parts(seed):
    pair = draw_pair(seed, (512, 384), pose="down")

    def label(joint):
        x, y = pair.keypoints[joint, :2].astype(int)
        return pair.parse[y, x]

    assert label(0) == 13 and label(15) == 13 and label(16) == 13
    assert label(4) in (5, 15) and label(7) in (5, 14)  # the person's right is at the left of the picture
    assert pair.keypoints[2, 0] < pair.keypoints[5, 0]
    assert label(8) in (5, 9, 12)
    assert np.allclose(pair.keypoints[1, :2], (pair.keypoints[2, :2] + pair.keypoints[5, :2]) / 2, atol=1e-3)
    arms = {label: np.flatnonzero((pair.parse == label).any(0)).mean() for label in (14, 15)}
    assert arms[15] < pair.keypoints[1, 0] < arms[14]


def test_sleeve_kinds_bare_the_arms():
    bare = [
        np.isin(draw_pair(7, SIZE, sleeves=kind, pose="down").parse, (14, 15)).sum()
        for kind in ("long", "short", "none")
    ]
    assert bare[0] < 0.6 * bare[1] < bare[1] < bare[2]


@pytest.mark.parametrize("print_", synthetic.PRINTS)
def test_prints_show(print_):
    pair = draw_pair(13, SIZE, print_=print_)
    spread = pair.cloth[pair.cloth_mask > 0].astype(float).std(0).max()
    assert (spread < 14) == (print_ == "plain") and pair.print_ == print_


@pytest.mark.parametrize("seeds", [(1, 2), (4, 9), (16, 11)])
def test_another_garment_leaves_the_person_alone(seeds):
    person, other = seeds
    own, swapped, source = draw_pair(person, SIZE), draw_pair(person, SIZE, garment_seed=other), draw_pair(other, SIZE)
    assert np.array_equal(swapped.cloth, source.cloth) and np.array_equal(swapped.keypoints, own.keypoints)
    assert swapped.sleeves == source.sleeves and swapped.print_ == source.print_
    for part in ((13,), (2,), (13, 2)):
        both = np.isin(own.parse, part) & np.isin(swapped.parse, part)
        assert (own.person[both] == swapped.person[both]).mean() > 0.98
    background = (own.parse == 0) & (swapped.parse == 0)
    assert (np.abs(own.person.astype(int) - swapped.person)[background].max(1) <= 1).mean() > 0.97
    assert not np.array_equal(own.person, swapped.person)


@pytest.mark.parametrize(
    "call",
    [
        lambda: draw_pair(0, (100, 75)),
        lambda: draw_pair(0, (512, 512)),
        lambda: draw_pair(0, SIZE, print_="zebra"),
        lambda: draw_pair(0, SIZE, sleeves="puffed"),
        lambda: draw_pair(0, SIZE, pose="handstand"),
    ],
)
def test_unknown_wishes_are_refused(call):
    with pytest.raises(ValueError):
        call()


def test_the_command_draws_the_shipped_examples(tmp_path, capsys):
    synthetic.main(["--out", str(tmp_path)])
    assert "Wrote 7 pictures" in capsys.readouterr().out
    shipped = examples_dir()
    for name in (*EXAMPLE_PEOPLE, *EXAMPLE_GARMENTS):
        drawn, kept = np.array(Image.open(tmp_path / name)), np.array(Image.open(shipped / name))
        assert drawn.shape == kept.shape == (*EXAMPLE_SIZE, 3)
        # Other versions of the libraries may round differently.
        assert np.abs(drawn.astype(int) - kept).mean() < 0.5, name
