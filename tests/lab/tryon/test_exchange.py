"""A garment exchanged on a draped person: two pictures that differ by it alone, and figures against worked cases."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from lab.tryon import exchange
from lab.tryon.draping import drape, panels
from lab.tryon.exchange import (
    bares_shoulder,
    draw_pair,
    group,
    is_upper,
    less,
    misplacement,
    picture_figures,
    region_figures,
    true_grid,
)
from training import assets
from vton import labels
from vton.data.draped.codec import decode
from vton.data.draped.draw import Drawing
from vton.data.draped.people import read_drapes
from vton.inputs.garment import Garment, place
from vton.joints import LEFT_ARM
from vton.networks.flow import flow_grid
from vton.options import Options
from vton.result import TryOnResult

SHORTER = 0.12  # metres that the second garment is shorter than the first


@pytest.fixture(scope="module")
def drapes():
    return read_drapes(assets.drapes_file())


@pytest.fixture(scope="module")
def tee(drapes) -> int:
    """The number of a validation tee that hangs loose over trousers, arms at the sides."""
    for number in drapes.numbers("val"):
        facts = drapes.record(number).facts
        if facts["attributes"]["kind"] == "tee" and facts["arms"] == "hanging" and not facts["tuck"]:
            return number
    raise AssertionError("no such tee")


@pytest.fixture(scope="module")
def pair(drapes, tee):
    record, cloth = drapes.record(tee), drapes.product(drapes.wearing[tee]).cloth
    high = record.vertices[:, 2] > record.vertices[:, 2].min() + SHORTER
    cropped = replace(record, faces=record.faces[high[record.faces].all(1)])
    return draw_pair(drapes.studio, (record, cropped), (cloth, 255 - cloth), 3, (256, 192))


def test_the_pictures_are_equal_where_neither_garment_is(pair):
    before, after = is_upper(pair.before), is_upper(pair.after)
    assert 50 < (before & ~after).sum() < 0.6 * before.sum() and not (after & ~before).any()
    far = cv2.dilate((before | after).astype(np.uint8), np.ones((9, 9))) == 0
    away = np.abs(pair.before.picture.astype(int) - pair.after.picture).max(2)
    assert far.mean() > 0.3 and away[far].mean() < 0.5 and away[after].mean() > 10
    np.testing.assert_array_equal(pair.before.parse[~before], pair.after.parse[~before])
    np.testing.assert_array_equal(pair.before.keypoints, pair.after.keypoints)


def test_figures_are_perfect_for_the_truth_and_tell_the_first_garment_from_it(pair):
    before, truth = is_upper(pair.before), is_upper(pair.after)
    everywhere = np.ones(truth.shape, bool)

    def distance(a, b):
        return float(np.abs(a.astype(float) - b).mean())

    right = region_figures(truth, pair.after)
    assert right.pop("region IoU") == 1 and set(right.values()) == {0.0}
    first = region_figures(before, pair.after)
    assert first["region IoU"] == pytest.approx(truth.sum() / before.sum())
    assert first["neckline"] == 0 and first["sleeve ends"] == 0 and first["hem"] > 5
    right = picture_figures(pair.after.picture, pair.after, before | truth, everywhere, distance)
    assert right.pop("changed SSIM") == pytest.approx(1) and set(right.values()) == {0.0}
    first = picture_figures(pair.before.picture, pair.after, before | truth, everywhere, distance)
    assert first["changed SSIM"] < 0.8 and first["garment"] > 10 and max(first["skin"], first["wall"]) < 3


@pytest.fixture
def cut() -> Garment:
    """A garment whose colours are the places of its pixels."""
    mask = np.zeros((180, 120), np.uint8)
    cv2.ellipse(mask, (55, 100), (30, 60), 20, 0, 360, 255, -1)
    y, x = np.mgrid[:180, :120]
    return Garment(np.stack([x, y, 0 * x], 2).astype(np.uint8), mask, "painted")


@pytest.mark.parametrize("size", [(256, 192), (512, 384)])
def test_places_in_the_photograph_are_found_on_the_canvas(cut, size):
    where = np.array([(55.0, 100.0), (50, 70), (62, 130)])
    grid = torch.from_numpy(true_grid(where, cut, size))[None, None].float()
    canvas = torch.from_numpy(place(cut, size).cloth).permute(2, 0, 1)[None].float()
    seen = torch.nn.functional.grid_sample(canvas, grid, align_corners=False)[0, :2, 0].T
    np.testing.assert_allclose(seen, where, atol=0.8)


def test_a_warp_that_is_off_by_a_tenth_of_the_width_is_said_to_be(cut):
    size = (256, 192)
    where = np.random.default_rng(0).uniform(40, 120, (*size, 2))
    where[:100] = np.nan  # no garment there
    truth = Drawing(None, None, None, where, np.zeros(size, bool))
    still = flow_grid(torch.zeros(1, 2, *size), size)[0].numpy()
    flow = np.nan_to_num(true_grid(where, cut, size) - still + (0.2, 0)).astype(np.float32)
    r = TryOnResult(Options(size=size), garment_cut=cut, flow=flow)
    assert misplacement(r, truth, cut.cloth) == pytest.approx(0.1 * size[1], rel=1e-3)
    assert np.isnan(misplacement(replace(r, garment_cut=replace(cut, turns=1)), truth, cut.cloth))


def test_skin_at_the_top_of_an_arm_is_a_bare_shoulder(pair):
    assert not bares_shoulder(pair.before)
    parse = pair.before.parse.copy()
    x, y = pair.before.keypoints[LEFT_ARM[0], :2].astype(int)
    parse[y : y + 12, x - 6 : x + 6] = labels.LIP.index("left arm")
    assert bares_shoulder(replace(pair.before, parse=parse))


def test_every_change_is_between_two_groups_of_garments(drapes):
    products = [drapes.product(name).attributes for name in set(drapes.wearing)]
    assert {kind for change in exchange.CHANGES for kind in change} <= {group(row) for row in products}
    assert all(one != other for one, other in exchange.CHANGES)


def test_only_pairs_that_both_have_are_compared():
    one, other = {"1": {"a": 3.0, "b": 1.0}, "2": {"a": 9.0}}, {"1": {"a": 1.0}, "3": {"a": 0.0}}
    assert less(one, other) == {"1": {"a": 2.0}}


def test_a_garment_is_draped_on_the_body_of_a_record(drapes, tee, monkeypatch):
    """The simulation itself needs the extra `render`; here the cloth stays as it is laid out."""
    monkeypatch.setattr(drape, "simulate", lambda cloth, start, *_: (start.copy(), np.zeros(len(start))))
    monkeypatch.setattr(drape, "inspect", lambda *_: None)
    like = drapes.record(drapes.numbers("train")[0])
    product = drapes.product(drapes.wearing[tee])
    row = product.attributes
    outline = panels.read_outline(product.mask, product.opening, row["sleeves"], row["neckline"])
    record = drape.drape(outline, row, drapes.studio.body, np.random.default_rng(0), like)
    again = exchange.Record.of(record | {"garment": product.name})
    np.testing.assert_array_equal(again.shape, like.shape)
    assert set(again.pose) == set(like.pose) and not again.facts["tuck"]
    assert all(np.allclose(again.pose[bone], turn, atol=1e-3) for bone, turn in like.pose.items())
    assert {key: again.facts[key] for key in ("waist", "trousers", "phenotype")} == {
        key: like.facts[key] for key in ("waist", "trousers", "phenotype")
    }


def test_a_stored_pair_is_measured(drapes, tee, tmp_path, capsys):
    arrays = decode(drapes.content("records", tee).tobytes())
    cloth = drapes.product(drapes.wearing[tee]).cloth
    for side, colours in (("a", 255 - cloth), ("b", cloth)):
        content = cv2.imencode(".png", np.ascontiguousarray(colours[..., ::-1]))[1]
        np.savez(exchange.file_of(tmp_path, 4, side), cloth=content, **arrays)
    words = [
        "measure",
        "--pairs",
        str(tmp_path),
        "--sheet",
        str(tmp_path / "new" / "s.png"),
        "--json",
        str(tmp_path / "other" / "f.json"),
    ]
    assert exchange.main(words) == 0
    systems = json.loads((tmp_path / "other" / "f.json").read_text())
    own, first = systems["try-on"]["4"], systems["picture A"]["4"]
    assert own["region IoU"] > 0.8 and own["warp misplaced"] < 15
    assert first["region IoU"] == 1 and first["garment"] > 2 * own["garment"]
    assert cv2.imread(str(tmp_path / "new" / "s.png")).shape == (512, 4 * 384, 3)
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 12 and f"{own['changed SSIM']:.3f}" in next(t for t in table if t.startswith("changed SSIM"))


def test_an_empty_folder_is_said_to_be(tmp_path, capsys):
    assert exchange.main(["measure", "--pairs", str(tmp_path)]) == 2
    assert "no pair" in capsys.readouterr().err
