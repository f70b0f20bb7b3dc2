"""The measures of Table 1 with their stand-ins, and the table itself on drawn people."""

import json

import cv2
import numpy as np
import pytest
import torch
from torchmetrics.functional.image import structural_similarity_index_measure
from torchmetrics.image import fid, lpip

from lab.tryon.evaluate import as_text, by_misaligned_area, drawing_case, evaluate_table, main, with_view
from lab.tryon.measures import frechet_distance, perceptual_distance
from lab.tryon.segmentation import conditions
from vton import labels
from vton.metrics import parser_features, structural_similarity
from vton.networks.config import ParserConfig
from vton.networks.parser import Parser
from vton.pipeline import TryOn
from vton.tensors import tensor_to_picture


@pytest.fixture
def offline(monkeypatch):
    """No pretrained network can be had."""

    def refuse(*_, **__):
        raise OSError("no connection")

    monkeypatch.setattr(lpip, "LearnedPerceptualImagePatchSimilarity", refuse)
    original = fid.FrechetInceptionDistance
    monkeypatch.setattr(
        fid, "FrechetInceptionDistance", lambda feature: refuse() if feature == 2048 else original(feature)
    )


@pytest.fixture(scope="module")
def parser():
    torch.manual_seed(0)
    return Parser(ParserConfig(widths=(4, 6, 8, 10, 12))).eval().requires_grad_(False)


def picture(seed, size=(64, 96)):
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    return cv2.resize(coarse, size[::-1], interpolation=cv2.INTER_LINEAR)


def test_structural_similarity_is_that_of_the_other_implementation():
    a, b = picture(0), cv2.GaussianBlur(picture(0), (0, 0), 4)
    x, y = (torch.from_numpy(one).permute(2, 0, 1)[None].float() / 255 for one in (a, b))
    wanted = float(structural_similarity_index_measure(x, y, data_range=1.0))
    assert structural_similarity(a, b) == pytest.approx(wanted, abs=1e-4)  # both count the border
    assert structural_similarity(a, a) == pytest.approx(1)


def test_parser_distance_by_plain_loops_and_its_order(parser, offline):
    name, distance = perceptual_distance(parser)
    assert name == "parser distance"
    a, b = picture(0), picture(1)
    wanted = 0.0
    with torch.no_grad():
        for one, other in zip(parser_features(parser, a), parser_features(parser, b)):
            places = []
            for y in range(one.shape[2]):
                for x in range(one.shape[3]):
                    u, v = one[0, :, y, x].numpy(), other[0, :, y, x].numpy()
                    places.append(
                        float(((u / max(np.linalg.norm(u), 1e-12) - v / max(np.linalg.norm(v), 1e-12)) ** 2).sum())
                    )
            wanted += np.mean(places)
    assert distance(a, b) == pytest.approx(wanted, rel=1e-4)
    assert distance(a, a) == 0
    little, much = (cv2.GaussianBlur(a, (0, 0), s) for s in (1, 8))
    assert 0 < distance(a, little) < distance(a, much)


def test_parser_frechet_distance_by_its_formula(parser, offline):
    name, distance = frechet_distance(parser)
    assert name == "parser Frechet distance"
    real, fake = ([picture(seed, (256, 192)) for seed in seeds] for seeds in (range(6), range(20, 26)))
    assert distance(real, real) == pytest.approx(0, abs=1e-4)
    means, covariances = [], []
    with torch.no_grad():
        for pictures in (real, fake):
            features = torch.cat([parser_features(parser, p)[-1].mean((2, 3)) for p in pictures]).double().numpy()
            means.append(features.mean(0)), covariances.append(np.cov(features.T))
    root = np.sqrt(np.linalg.eigvals(covariances[0] @ covariances[1]).astype(complex)).real.sum()
    wanted = ((means[0] - means[1]) ** 2).sum() + np.trace(covariances[0]) + np.trace(covariances[1]) - 2 * root
    assert distance(real, fake) == pytest.approx(wanted, rel=1e-2, abs=1e-5)


def test_published_names_belong_to_the_published_networks(parser, monkeypatch):
    class Downloaded:
        def __init__(self, net, normalize):
            assert (net, normalize) == ("alex", True)

        def __call__(self, a, b):
            assert a.shape == (1, 3, 64, 96) and float(a.max()) <= 1
            return (a - b).abs().mean()

    class Inception:
        def __init__(self, feature):
            assert feature == 2048

        def reset(self):
            self.seen = []

        def update(self, pictures, real):
            assert pictures.dtype == torch.uint8
            self.seen.append(real)

        def compute(self):
            return torch.tensor(float(sum(self.seen)))

    monkeypatch.setattr(lpip, "LearnedPerceptualImagePatchSimilarity", Downloaded)
    monkeypatch.setattr(fid, "FrechetInceptionDistance", Inception)
    (name, distance), (other, frechet) = perceptual_distance(parser), frechet_distance(parser)
    assert (name, other) == ("LPIPS", "FID")
    assert distance(picture(0), picture(0)) == 0 and distance(picture(0), picture(1)) > 0
    assert frechet([picture(0)] * 3, [picture(1)] * 3) == 3


def test_thirds_by_misaligned_area_by_hand():
    measured = [
        {"misaligned": m, "LPIPS": v}
        for m, v in ((0.3, 6.0), (0.1, 2.0), (0.0, 1.0), (0.2, 3.0), (0.5, 9.0), (0.2, 5.0))
    ]
    assert by_misaligned_area(measured, "LPIPS") == {
        "small": 1.5,
        "small_share": 0.05,
        "medium": 4.0,
        "medium_share": 0.2,
        "large": 7.5,
        "large_share": 0.4,
    }


def test_a_drawn_person_in_the_other_garment_is_the_same_person():
    sample, truth = drawing_case(5, (256, 192), garment_seed=77)
    own, photograph = drawing_case(5, (256, 192))
    assert np.array_equal(sample["person"], photograph) and np.array_equal(own["person"], photograph)
    assert not np.array_equal(sample["cloth"], own["cloth"])
    outside = (sample["segmentation"] == own["segmentation"]) & np.isin(own["segmentation"], (0, 1, 2))
    assert np.abs(truth.astype(int) - photograph)[outside].mean() < 2  # head and background are the same
    assert np.abs(truth.astype(int) - photograph)[own["segmentation"] == 3].mean() > 5
    assert np.array_equal(sample["agnostic"], own["agnostic"])  # which garment was worn does not show


@pytest.mark.slow
def test_table_of_drawn_people(offline, tmp_path, capsys, monkeypatch):
    tryon = TryOn.from_pretrained("tryon-lite", device="cpu")
    report = evaluate_table(tryon, None, count=3, sizes=((256, 192),))
    rows = {(r["setting"], r["system"]): r for r in report["rows"]}
    assert set(rows) == {("paired", s) for s in ("VITON-HD", "VITON-HD*", "cloth pasted on I_a")} | {
        ("unpaired", s) for s in ("VITON-HD", "VITON-HD*", "cloth pasted on I_a", "copy of the photograph")
    }
    assert report["measures"] == {
        "similarity": "SSIM",
        "distance": "parser distance",
        "frechet": "parser Frechet distance",
    }
    for row in rows.values():
        assert row["pictures"] == 3 and 0.2 < row["SSIM"] < 1 and row["parser distance"] > 0
        assert row["parser Frechet distance"] is None  # of three pictures none is given
    assert [a["system"] for a in report["by_misaligned_area"]] == ["VITON-HD", "VITON-HD*", "cloth pasted on I_a"]
    assert all(a["small_share"] <= a["medium_share"] <= a["large_share"] for a in report["by_misaligned_area"])
    text = as_text(report)
    assert "'parser distance'" in text and "not comparable with published" in text
    assert "drawn, unpaired (3 at 256x192)" in text and f"{rows['unpaired', 'VITON-HD']['SSIM']:.4f}" in text

    monkeypatch.setattr(TryOn, "from_pretrained", lambda *_: tryon)
    assert main(["table", "--count", "1", "--sizes", "256x192", "--json", str(tmp_path / "new" / "table.json")]) == 0
    assert "drawn, paired (1 at 256x192)" in capsys.readouterr().out
    assert json.loads((tmp_path / "new" / "table.json").read_text())["protocol"]["noise"] is False
    assert main(["table", "--pack", str(tmp_path / "none.npz")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_the_table_shows_alias_what_a_segmentation_leaves_as_it_was():
    """Wall stays in sight but for a margin; what the segmentation gives to the garment stays hidden."""
    tryon = TryOn.from_pretrained("tryon-lite")
    sample, _ = drawing_case(10**6, (256, 192))
    wall = (sample["parse"] == 0) & (sample["agnostic"] == 128).all(2)
    inner = cv2.erode(wall.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    assert inner.sum() > 100
    covered = np.full_like(sample["segmentation"], labels.UPPER)
    for classes, is_seen in ((sample["segmentation"], True), (covered, False)):
        shown = tensor_to_picture(with_view(tryon, sample, conditions(sample), classes).alias_view)
        assert np.array_equal(shown[inner], (sample["person"] if is_seen else sample["agnostic"])[inner])
