"""The whole way from two pictures to a try-on, with the shipped weights, on drawn people with known truth."""
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from training.assets import examples_dir, model_dir
from vton import STAGES, InputError, TryOn, labels
from vton.metrics import coverage, mask_iou
from vton.pipeline import NETWORKS
from vton.synthetic import draw_pair
from vton.tryon import main

SIZE = (256, 192)
FILES = ["pose", "parse", "garment", "garment_mask", "agnostic", "agnostic_map", "segmentation", "warped_cloth", "warped_mask",
         "misalignment", "synthesis", "result"]


@pytest.fixture(scope="module")
def tryon():
    return TryOn.from_pretrained("tryon-lite", device="cpu")


@pytest.fixture(scope="module")
def pictures():
    folder = examples_dir()
    return folder / "person-1.png", folder / "garment-stripes.png"


@pytest.fixture(scope="module")
def result(tryon, pictures):
    seen = []
    done = tryon.run(*pictures, size=SIZE, on_stage=lambda *a: seen.append(a))
    assert seen == [(name, i, 10) for i, name in enumerate(STAGES)]
    return done


def test_every_map_is_there_in_its_form(result):
    maps = result.pictures()
    assert list(maps) == FILES
    for name, picture in maps.items():
        assert picture.dtype == np.uint8, name
        assert picture.shape[:2] == (result.photo.shape[:2] if name == "result" else SIZE), name
    assert set(np.unique(result.cloth_mask)) == {0, 255} and set(np.unique(result.misalignment)) <= {0, 255}
    assert result.keypoints.shape == (25, 3) and result.control_points.shape == (25, 2) and result.theta.shape == (50,)
    assert set(result.seconds) == set(STAGES)
    assert result.parse.max() <= 19 and result.segmentation.max() <= 12


def test_the_photograph_stays_outside_the_edited_region(result):
    outside = result.region == 0
    assert 0.3 < outside.mean() < 0.98
    assert np.array_equal(result.result[outside], result.photo[outside])
    assert np.abs(result.result.astype(int) - result.photo)[result.region > 250].mean() > 5  # and inside it changed


def test_face_and_hair_lie_outside_the_region(result):
    from vton import photo
    head = photo.uncrop(np.isin(result.parse, (1, 2, 4, 13)).astype(np.uint8), result.frame, result.photo.shape[:2], "nearest")
    assert head.sum() > 500
    assert not result.region[head > 0].any()


def test_the_persons_own_neck_stays_where_it_stays_bare(result):
    """Neck that the garment does not cover is the photograph's own, neck under the predicted cloth is not."""
    from vton import photo
    neck = result.parse == labels.NECK_LIP
    bare = photo.uncrop((neck & (result.segmentation == 0)).astype(np.uint8), result.frame, result.photo.shape[:2], "nearest")
    assert bare.sum() > 100
    assert not result.region[bare > 0].any()


def test_agnostic_picture_hides_the_old_garment(result):
    old = np.isin(result.parse, labels.UPPER_LIP)
    assert (result.agnostic[old] == 128).all()
    assert not np.isin(result.parse_agnostic, labels.UPPER_LIP).any()


def test_misalignment_is_the_region_without_cloth(result):
    upper = result.segmentation == 3
    wanted = upper & (result.warped_mask < 128)
    assert np.array_equal(result.misalignment > 127, wanted)
    assert result.misaligned_share == pytest.approx(wanted.sum() / upper.sum())


def test_parse_and_region_agree_with_the_drawing(tryon):
    """Of a drawn person the truth is known: the upper garment and the face are found where they were drawn."""
    upper, face = [], []
    for seed in (3, 12):
        drawn = draw_pair(seed, size=(512, 384), pose="down")
        found = tryon.run(drawn.person, drawn.cloth, size=SIZE)
        from vton import photo
        truth = photo.crop(drawn.parse, found.frame, SIZE, "nearest", 0)
        upper.append(mask_iou(np.isin(found.parse, labels.UPPER_LIP), truth == 5))
        face.append(mask_iou(found.parse == 13, truth == 13))
    assert np.mean(upper) > 0.7 and np.mean(face) > 0.5


def test_the_fit_covers_more_of_the_region(tryon, result):
    plain = tryon.resume(result, "warp", fit=False)
    region = result.segmentation == 3
    assert coverage(result.warped_mask > 127, region) >= coverage(plain.warped_mask > 127, region)
    assert mask_iou(result.warped_mask > 127, region) > 0.6
    np.testing.assert_allclose(plain.theta, result.theta)


def test_resume_repeats_nothing_before_the_stage_and_equals_the_whole_run(tryon, result):
    seen = []
    again = tryon.resume(result, "segmentation", on_stage=lambda name, i, n: seen.append(name))
    assert seen == list(STAGES[5:])
    assert again.parse is result.parse and again.agnostic is result.agnostic
    assert np.array_equal(again.result, result.result)


def test_an_edited_map_is_continued_from(tryon, result):
    edited = result.segmentation.copy()
    upper = np.argwhere(edited == 3)
    edited[upper[:, 0].max() - 12:][edited[upper[:, 0].max() - 12:] == 3] = 4  # a shorter garment
    shorter = tryon.resume(result, "warp", segmentation=edited)
    assert np.array_equal(shorter.segmentation, edited)
    assert not np.array_equal(shorter.result, result.result)
    assert result.segmentation is not edited and not np.array_equal(result.segmentation, edited)


def test_moved_control_points_move_the_cloth(tryon, result):
    points = result.control_points.copy()
    points[:, 0] -= 0.2  # look further left in the cloth: the cloth moves right
    moved = tryon.resume(result, "misalignment", **tryon.move_control_points(result, points))
    before, after = (np.argwhere(r.warped_mask > 127)[:, 1].mean() for r in (result, moved))
    assert after > before + 3
    np.testing.assert_allclose(moved.control_points, points, atol=1e-6)


def test_seed_and_norm_matter_where_they_should(tryon, result):
    assert np.array_equal(tryon.resume(result, "synthesis").synthesis, result.synthesis)
    instance = tryon.resume(result, "synthesis", norm="instance")
    assert not np.array_equal(instance.synthesis, result.synthesis)


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_shipped_weight_file_matters(kind, tmp_path, pictures, result):
    folder = tmp_path / "model"
    shutil.copytree(model_dir("tryon-lite"), folder)
    file = folder / kind / "model.safetensors"
    state, generator = load_file(file), torch.Generator().manual_seed(0)
    for name, value in state.items():
        if value.is_floating_point() and value.dim() > 1:
            noise = torch.randn(value.shape, generator=generator)
            state[name] = value + (noise * value.float().std() * 0.5).to(value.dtype)
    save_file(state, file)
    changed = TryOn.from_pretrained(folder, device="cpu").run(*pictures, size=SIZE)
    field = {"parser": "parse", "segmentation": "segmentation", "matching": "theta", "alias": "synthesis"}[kind]
    assert not np.array_equal(getattr(changed, field), getattr(result, field))
    assert not np.array_equal(changed.result, result.result)


def test_command_line_writes_every_map(tmp_path, pictures, result):
    assert main([str(p) for p in pictures] + ["--out", str(tmp_path / "maps"), "--size", "256x192", "--device", "cpu"]) == 0
    for name, picture in result.pictures().items():
        assert np.array_equal(np.asarray(Image.open(tmp_path / "maps" / f"{name}.png")), picture), name
    assert (tmp_path / "maps" / "settings.json").exists()


def test_bad_pictures_give_one_sentence_and_no_files(tmp_path, pictures, capsys):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"not a picture")
    assert main([str(broken), str(pictures[1]), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1 and "Traceback" not in message
    assert not (tmp_path / "out").exists()
    assert main([str(pictures[0]), str(pictures[1]), "--out", str(tmp_path / "out"), "--size", "large"]) == 2


def test_nobody_in_the_picture_is_said_in_a_sentence(tryon, pictures):
    landscape = np.zeros((300, 400, 3), np.uint8)
    landscape[:150] = (120, 170, 230)
    landscape[150:] = (60, 120, 50)
    with pytest.raises(InputError):
        tryon.run(landscape, pictures[1], size=SIZE)


def test_wrong_options_are_named(tryon, result, pictures):
    with pytest.raises(ValueError, match="size must be one of"):
        tryon.run(*pictures, size=(100, 100))
    with pytest.raises(ValueError, match="no stage 'melting'"):
        tryon.resume(result, "melting")
    with pytest.raises(ValueError, match="cannot be edited"):
        tryon.resume(result, "warp", colour=3)
    with pytest.raises(ValueError, match="must have shape"):
        tryon.resume(result, "warp", segmentation=np.zeros((2, 2), np.uint8))


def test_cancelling_stops_before_the_next_stage(tryon, pictures):
    class Enough(Exception):
        pass

    def cancel(name, index, total):
        if name == "parse":
            raise Enough

    with pytest.raises(Enough):
        tryon.run(*pictures, size=SIZE, on_stage=cancel)


def test_unknown_model_lists_the_known_ones():
    with pytest.raises((FileNotFoundError, ValueError), match="tryon-lite"):
        TryOn.from_pretrained("no-such-model")
