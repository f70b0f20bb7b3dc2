"""The whole way from two pictures to a try-on, with the shipped weights, on drawn people with known truth."""

import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from lab.tryon.synthetic import draw_pair
from training.assets import examples_dir, model_dir
from vton import STAGES, InputError, TryOn, attributes, labels, stages
from vton.inputs import parsing, photo
from vton.inputs.garment import with_attributes
from vton.joints import HIPS
from vton.maps import MAPS
from vton.metrics import colour_difference, coverage, mask_iou
from vton.networks import segmentation
from vton.registry import NETWORKS
from vton.rules import composite, final_picture, neckline
from vton.rules.final_picture import below_hem, compose, hair_rim, old_below_hem, own_skin, photograph_parts
from vton.stages import move_control_points
from vton.tryon import main

SIZE = (256, 192)
FILES = list(MAPS)
ATTRIBUTES = 7  # place of the attributes among the arguments of `segmentation.segment`


def photo_of(label_map, result):
    """A map of the frame at the photograph's own size."""
    return photo.uncrop(label_map, result.frame, result.photo.shape[:2], "nearest")


@pytest.fixture(scope="module")
def tryon(device):
    return TryOn.from_pretrained("tryon-lite", device)


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
        assert picture.shape[:2] == (result.photo.shape[:2] if name in ("region", "result") else SIZE), name
    assert set(np.unique(result.cloth_mask)) == {0, 255} and set(np.unique(result.misalignment)) <= {0, 255}
    assert result.keypoints.shape == (25, 3) and result.flow.shape == (128, 96, 2)
    assert result.theta is None and result.control_points is None  # the flow has none
    assert set(result.seconds) == set(STAGES)
    assert result.parse.max() <= 19 and result.segmentation.max() <= 12


def test_the_photograph_stays_outside_the_edited_region(result):
    outside = result.region == 0
    assert 0.3 < outside.mean() < 0.98
    assert np.array_equal(result.result[outside], result.photo[outside])
    assert np.abs(result.result.astype(int) - result.photo)[result.region > 250].mean() > 5  # and inside it changed


def test_face_and_hair_lie_outside_the_region(result):
    head = photo.uncrop(
        np.isin(result.parse, (1, 2, 4, 13)).astype(np.uint8), result.frame, result.photo.shape[:2], "nearest"
    )
    assert head.sum() > 500
    assert not result.region[head > 0].any()


def test_the_persons_own_neck_stays_where_it_stays_bare(result):
    """Neck that the garment does not cover is the photograph's own inside its soft border, neck under the predicted
    cloth is not, nor what lies right beside the old garment.
    """
    neck = (result.parse == labels.NECK_LIP) & (result.segmentation == 0)
    cross = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    old = cv2.dilate(np.isin(result.parse, labels.UPPER_LIP).astype(np.uint8), cross) > 0
    own = own_skin(result, (labels.NECK_LIP,))
    assert own.sum() > 0.75 * neck.sum() > 75 and not own[old].any()
    inner = photo_of(cv2.erode(own.astype(np.uint8), np.ones((3, 3), np.uint8)), result)
    assert (inner > 0).sum() > 50 and not result.region[inner > 0].any()


def test_trousers_go_on_where_a_longer_garment_hid_them(result):
    below = np.isin(result.segmentation, labels.BELOW)
    rows = np.nonzero(below)[0]
    removed = below & (np.arange(len(below)) < rows.min() + (np.ptp(rows) + 1) // 3)[:, None]
    parse = np.where(below, labels.PANTS_LIP, result.parse).astype(np.uint8)
    person = np.where(removed[..., None], 128, np.where(below[..., None], (20, 40, 160), result.person))
    long_coat = replace(result, parse=parse, person=person.astype(np.uint8))
    picture = np.full_like(person, 128, np.uint8)
    made = below_hem(long_coat, picture, removed)
    inner = cv2.erode(removed.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    assert inner.sum() > 50 and np.abs(made[inner].astype(int) - (20, 40, 160)).mean() < 8
    np.testing.assert_array_equal(made[~below], picture[~below])
    assert below_hem(long_coat, picture, np.zeros_like(removed)) is picture
    nothing_seen = replace(long_coat, parse=np.zeros_like(parse))
    assert below_hem(nothing_seen, picture, removed) is picture


def test_the_skirt_of_a_dress_and_tails_that_hide_all_below_them_stay(result):
    below = np.isin(result.segmentation, labels.BELOW)
    trousers = below & (np.cumsum(below) > below.sum() / 2).reshape(below.shape)  # the lower half

    def stays(old, under):
        parse = np.where(below & ~trousers, old, np.where(trousers, under, result.parse)).astype(np.uint8)
        return old_below_hem(replace(result, parse=parse))

    np.testing.assert_array_equal(stays(labels.DRESS_LIP, labels.PANTS_LIP), below & ~trousers)
    assert not stays(labels.COAT_LIP, labels.PANTS_LIP).any()
    np.testing.assert_array_equal(stays(labels.COAT_LIP, labels.BACKGROUND), below & ~trousers)
    worn = replace(result, parse=np.where(below, labels.DRESS_LIP, result.parse).astype(np.uint8))
    wider = np.roll(below, 6, 1) & (result.segmentation == labels.BACKGROUND)  # an A-line, wider than its prediction
    flared = replace(worn, parse=np.where(wider, labels.DRESS_LIP, worn.parse).astype(np.uint8))
    assert wider.sum() > 50 and (old_below_hem(flared) & wider).sum() > 0.9 * wider.sum()
    made = below_hem(worn, np.zeros_like(result.person), below)
    np.testing.assert_array_equal(made[below], result.person[below])
    assert not made[~below].any() and (photograph_parts(worn) & below).sum() == below.sum()


@pytest.mark.slow
def test_a_garment_goes_on_under_locks_of_hair(tryon, pictures):
    """Hair painted over both shoulders of a photographed person leaves the cloth under it."""
    person = tryon.run(examples_dir() / "person-astronaut.jpg", pictures[1], size=SIZE, until="warp")
    upper = person.segmentation == labels.UPPER
    rows, columns = (np.flatnonzero(upper.any(axis)) for axis in (1, 0))
    locks = np.zeros_like(upper)
    for x in (np.quantile(columns, 0.3), np.quantile(columns, 0.7)):
        locks[rows[0] : rows[0] + len(rows) // 2, int(x) - 18 : int(x) + 18] = True

    def covered(label):
        painted = np.where(upper & locks, label, person.segmentation).astype(np.uint8)
        made = tryon.resume(replace(person, segmentation=painted), "warp", until="warp")
        return (made.warped_mask > 127)[upper].mean()

    assert covered(labels.UPPER) > 0.95 and covered(labels.HAIR) > 0.85
    assert covered(labels.HAIR) >= covered(labels.BACKGROUND)


def test_the_outermost_hair_beside_the_new_garment_is_painted_and_the_rest_stays(result):
    upper = result.segmentation == labels.UPPER
    parse = result.parse.copy()
    rows = np.arange(len(upper)) < np.nonzero(upper)[0].min() + 12  # long hair over the shoulders
    parse[rows[:, None] & (upper | (parse == labels.BACKGROUND))] = labels.HAIR_LIP
    segmentation = np.where(parse == labels.HAIR_LIP, labels.HAIR, result.segmentation)
    long_haired = replace(result, parse=parse, segmentation=segmentation.astype(np.uint8))
    hair, rim = parse == labels.HAIR_LIP, hair_rim(long_haired)
    assert 5 < rim.sum() < hair.sum() / 4 and not rim[~hair].any()
    share = photo.uncrop(compose(long_haired)[1], result.frame, result.photo.shape[:2])
    region = photo.crop(share, result.frame, result.options.size, "nearest", 0)
    deep = cv2.erode((hair & ~rim).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    assert (region[rim] > 127).mean() > 0.8 and not region[deep].any()


@pytest.mark.slow
def test_the_persons_own_bare_arms_stay_under_short_sleeves(tryon, pictures, result):
    """Arms of the photograph that the garment leaves bare come back pixel by pixel inside their soft border."""
    bared = tryon.resume(result, "segmentation", sleeves="none")
    own = own_skin(bared)
    assert own.sum() > 200
    inner = cv2.erode(own.astype(np.uint8), np.ones((7, 7), np.uint8))
    inner = photo_of(inner, bared) > 0
    assert inner.sum() > 50
    assert np.abs(bared.result[inner].astype(int) - bared.photo[inner]).max() <= 1

    def error(**options):
        painted = tryon.resume(bared, "synthesis", detail=False, **options)
        return np.abs(painted.result[inner].astype(int) - bared.photo[inner]).mean()

    assert error(reveal=False) > 3  # the generator's own arms, which it has to invent
    assert error(reveal=True) < 3  # the person's, but for its share of paint


def test_a_collar_that_was_taken_for_a_neck_is_painted_over(tryon, result):
    """Where the parse says neck and the photograph shows cloth, the region is open and the result is no longer the
    cloth.
    """
    photograph = result.photo.copy()
    neck = (result.parse == labels.NECK_LIP) & (result.segmentation == 0)
    where = photo_of(neck.astype(np.uint8), result) > 0
    photograph[where] = (20, 20, 25)
    person = result.person.copy()
    person[neck] = (20, 20, 25)
    collared = tryon.resume(result, "composite", photo=photograph, person=person)
    core = photo_of(cv2.erode(neck.astype(np.uint8), np.ones((5, 5), np.uint8)), result) > 0
    assert core.sum() > 50 and collared.region[core].min() > 0
    assert np.median(collared.result[core]) > 60


def test_the_mirror_image_is_asked_unless_switched_off(tryon, result, monkeypatch):
    segment, asked = segmentation.segment, []

    def noted(network, cloth, cloth_mask, parse, pose_map, noise, mirrored, *known):
        asked.append((pose_map, mirrored))
        return segment(network, cloth, cloth_mask, parse, pose_map, noise, mirrored, *known)

    monkeypatch.setattr(segmentation, "segment", noted)
    on, off = [
        tryon.resume(result, "segmentation", until="segmentation", mirror=mirror).segmentation
        for mirror in (True, False)
    ]
    assert asked[-1][1] is None and (on != off).any()
    pose_map, mirrored = asked[0]
    seen = [np.asarray(picture[0].sum(0).cpu() > -3).astype(bool) for picture in (pose_map, mirrored.flip(-1))]
    assert (seen[0] & seen[1]).sum() > 0.9 * seen[0].sum()  # the same skeleton, mirrored
    assert not torch.equal(pose_map, mirrored.flip(-1))  # but in the colours of the other side


def test_the_generator_is_told_what_was_read_or_said_of_the_garment(tryon, result, monkeypatch):
    segment, told = segmentation.segment, []

    def noted(*inputs):
        told.append(inputs[ATTRIBUTES][0].numpy())
        return segment(*inputs)

    monkeypatch.setattr(segmentation, "segment", noted)
    for options in ({}, {"sleeves": "long"}, {"sleeves": "predicted", "neckline": "predicted", "hem": "predicted"}):
        before = len(told)
        tryon.resume(result, "segmentation", until="segmentation", **options)
        assert len(told) == before + 1 or (told.pop() == told[before]).all()  # the second look is told the same
    read = attributes.certain_groups(result.garment_cut.attributes) | {"hem": "loose"}
    assert read["sleeves"]
    assert told[0].tolist() == attributes.encode(read).tolist()
    assert told[1].tolist() == attributes.encode(read | {"sleeves": "long"}).tolist()
    assert not told[2].any()


def test_the_throat_follows_its_option(tryon, result, monkeypatch):
    segment, throat = segmentation.segment, neckline.opening(result.keypoints, result.options.size)

    def with_a_back_collar(*inputs):
        classes = segment(*inputs).clone()
        classes[:, torch.from_numpy(throat)] = labels.UPPER
        return classes

    monkeypatch.setattr(segmentation, "segment", with_a_back_collar)
    monkeypatch.setattr(stages, "carries_neckline", lambda r: False)  # else the garment's own is carried

    def predicted(**options):
        return tryon.resume(result, "segmentation", until="segmentation", **options).segmentation

    auto, by_network, bare = predicted(), predicted(neckline="predicted"), predicted(neckline="bare")
    np.testing.assert_array_equal(auto, by_network)
    np.testing.assert_array_equal(bare, neckline.bare_throat(by_network, result.keypoints))
    assert (bare != by_network).sum() > 20
    for name in ("neckline", "hem"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            tryon.resume(result, "segmentation", **{name: "low"})


@pytest.mark.slow
def test_a_hem_is_tucked_in_where_the_network_has_learned_it(tryon, result, monkeypatch):
    told, segment = [], segmentation.segment
    monkeypatch.setattr(segmentation, "segment", lambda *inputs: told.append(inputs[ATTRIBUTES]) or segment(*inputs))
    for hem, code in (("auto", [1, 0]), ("tucked", [0, 1]), ("predicted", [0, 0])):
        tryon.resume(result, "segmentation", until="segmentation", hem=hem)
        assert told[-1][0, -2:].tolist() == code
    monkeypatch.setattr(tryon.segmentation, "config", replace(tryon.segmentation.config, attributes=3))
    with pytest.raises(ValueError, match="have not learned to tuck"):
        tryon.resume(result, "segmentation", hem="tucked")


def test_agnostic_picture_hides_the_old_garment(result):
    old = np.isin(result.parse, labels.UPPER_LIP)
    assert (result.agnostic[old] == 128).all()
    assert not np.isin(result.parse_agnostic, labels.UPPER_LIP).any()


def test_what_stays_is_shown_to_the_painter_unless_switched_off(tryon, result):
    shown = result.unchanged > 127
    gray = (result.agnostic == 128).all(2)
    wall = shown & (result.parse == labels.BACKGROUND)
    assert wall.sum() > 500 and not shown[~gray].any() and not shown[result.segmentation == labels.UPPER].any()
    assert (result.alias_view[shown] == result.person[shown]).all() and (
        result.alias_view[~shown] == result.agnostic[~shown]
    ).all()
    assert not result.kept[result.segmentation == labels.UPPER].any() and np.median(result.kept[wall]) > 200
    hidden = tryon.resume(result, "synthesis", until="synthesis", reveal=False)
    assert not hidden.unchanged.any() and not hidden.kept[gray].any()
    seen, unseen = (colour_difference(r.synthesis, r.person, wall) for r in (result, hidden))
    assert seen < 2 and seen < unseen / 2, (seen, unseen)


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
        found = tryon.run(drawn.person, drawn.cloth, size=SIZE, until="parse")
        truth = photo.crop(drawn.parse, found.frame, SIZE, "nearest", 0)
        upper.append(mask_iou(np.isin(found.parse, labels.UPPER_LIP), truth == 5))
        face.append(mask_iou(found.parse == 13, truth == 13))
    assert np.mean(upper) > 0.7 and np.mean(face) > 0.5


def test_the_spline_warps_where_what_only_it_has_is_asked_for(tryon, result):
    for options in ({"fit": False}, {"grid": 10}, {"warp": "spline"}):
        spline = tryon.resume(result, "warp", until="warp", **options)
        n = options.get("grid", 5)
        assert spline.flow is None and spline.theta.shape == (50,) and spline.control_points.shape == (n * n, 2)


def test_the_fit_covers_more_of_the_region(tryon, result):
    result = tryon.by_spline(result)
    plain = tryon.resume(result, "warp", fit=False, until="warp")
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
    edited[upper[:, 0].max() - 12 :][edited[upper[:, 0].max() - 12 :] == 3] = 4  # a shorter garment
    shorter = tryon.resume(result, "warp", segmentation=edited)
    assert np.array_equal(shorter.segmentation, edited)
    assert not np.array_equal(shorter.result, result.result)
    assert result.segmentation is not edited and not np.array_equal(result.segmentation, edited)


def test_moved_control_points_move_the_cloth(tryon, result):
    result = tryon.by_spline(result)
    points = result.control_points.copy()
    points[:, 0] -= 0.2  # look further left in the cloth: the cloth moves right
    moved = tryon.resume(result, "misalignment", **move_control_points(tryon, result, points))
    before, after = (np.argwhere(r.warped_mask > 127)[:, 1].mean() for r in (result, moved))
    assert after > before + 3
    np.testing.assert_allclose(moved.control_points, points, atol=1e-6)


def test_seed_and_norm_matter_where_they_should(tryon, result):
    assert np.array_equal(tryon.resume(result, "synthesis").synthesis, result.synthesis)
    upper = result.segmentation == labels.UPPER
    torn = replace(result, misalignment=255 * (upper & (np.indices(upper.shape)[0] % 16 < 4)).astype(np.uint8))
    alias, instance = (tryon.resume(torn, "synthesis", norm=norm) for norm in ("alias", "instance"))
    assert not np.array_equal(instance.synthesis, alias.synthesis)


@pytest.mark.parametrize("kind", [*NETWORKS, "flow"])
def test_every_shipped_weight_file_matters(kind, tmp_path, tryon, result):
    folder = tmp_path / "model"
    shutil.copytree(model_dir("tryon-lite"), folder)
    file = folder / kind / "model.safetensors"
    state, generator = load_file(file), torch.Generator().manual_seed(0)
    for name, value in state.items():
        if value.is_floating_point() and value.dim() > 1:
            noise = torch.randn(value.shape, generator=generator)
            state[name] = value + (noise * value.float().std() * 0.5).to(value.dtype)
    save_file(state, file)
    noisy = TryOn.from_pretrained(folder, device="cpu")
    if kind == "garment":  # what it says of the same cut-out is something else
        assert with_attributes(result.garment_cut, noisy.garment).attributes != result.garment_cut.attributes
        return
    if kind == "matching":
        result = tryon.by_spline(result)
    stage, field = {
        "parser": ("parse", "parse"),
        "segmentation": ("segmentation", "segmentation"),
        "matching": ("warp", "theta"),
        "flow": ("warp", "flow"),
        "alias": ("synthesis", "synthesis"),
    }[kind]
    again = noisy.resume(result, stage, until=stage)
    assert not np.array_equal(getattr(again, field), getattr(result, field))


@pytest.mark.slow
def test_command_line_writes_every_map(tmp_path, pictures, result):
    assert (
        main([str(p) for p in pictures] + ["--out", str(tmp_path / "maps"), "--size", "256x192", "--device", "cpu"])
        == 0
    )
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


@pytest.mark.slow
def test_a_run_can_stop_before_the_slow_stage_and_goes_on_to_the_same_result(tryon, pictures, result):
    partial = tryon.run(*pictures, size=SIZE, until="misalignment")
    assert partial.synthesis is None and partial.result is None and set(partial.seconds) == set(STAGES[:8])
    assert list(partial.pictures()) == [n for n in MAPS if STAGES.index(MAPS[n].stage) <= 7]
    whole = tryon.resume(partial, "synthesis")
    assert np.array_equal(whole.result, result.result) and whole.resumed_from == "synthesis"
    with pytest.raises(ValueError, match="has not run yet"):
        tryon.resume(partial, "composite")
    with pytest.raises(ValueError, match="ends with one of"):
        tryon.run(*pictures, size=SIZE, until="dinner")


def test_the_divided_segmentation_is_equation_4(result):
    from vton.networks.alias import misalignment

    seven = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(result.segmentation), 7))[None]
    _, divided = misalignment(seven, torch.from_numpy((result.warped_mask > 127).astype(np.float32))[None, None])
    assert np.array_equal(labels.one_hot(result.divided, 8), divided[0].numpy())


def test_the_baseline_is_the_warped_cloth_on_the_agnostic_picture(result):
    inside = result.warped_mask > 127
    assert np.array_equal(result.baseline[inside], result.warped_cloth[inside])
    assert np.array_equal(result.baseline[~inside], result.agnostic[~inside])


@pytest.mark.parametrize(
    "name, first",
    [
        ("parse", "agnostic"),
        ("segmentation", "warp"),
        ("misalignment", "synthesis"),
        ("painted_mask", "garment"),
        ("control_points", "misalignment"),
    ],
)
def test_a_correction_runs_on_from_the_stage_that_reads_it(tryon, result, name, first):
    """The maps before are the very same arrays; those after are made anew; the record says what was corrected."""
    if name == "painted_mask":
        value = result.garment_cut.mask.copy()
        value[: value.shape[0] // 2] = 0  # only the lower half of the garment
    elif name == "control_points":
        result = tryon.by_spline(result, until="composite")
        value = result.control_points + np.float32(0.1)
    else:
        value = getattr(result, name).copy()
        value[100:140, 80:110] = {"parse": 9, "segmentation": 4, "misalignment": 255}[name]
    seen = []
    after = tryon.correct(result, name, value, on_stage=lambda stage, *_: seen.append(stage))
    assert seen == list(STAGES[STAGES.index(first) :]) and after.corrected == (name,) and after.resumed_from == first
    before = [
        n
        for n in ("photo", "person", "parse", "cloth", "agnostic", "segmentation", "warped_cloth", "misalignment")
        if n != name
        and STAGES.index({"cloth": "garment", "person": "pose", "warped_cloth": "warp"}.get(n, n)) < STAGES.index(first)
        and not (name == "control_points" and n == "warped_cloth")
    ]
    assert before and all(getattr(after, n) is getattr(result, n) for n in before)
    assert not np.array_equal(after.result, result.result)
    for stage in STAGES[: STAGES.index(first)]:
        assert after.seconds[stage] == result.seconds[stage]
    if name == "painted_mask":
        assert (after.cloth_mask > 0).any() and after.garment_cut.method == "painted"


@pytest.mark.slow
def test_a_correction_is_forgotten_when_its_map_is_made_again(tryon, result):
    once = tryon.correct(result, "segmentation", result.segmentation, until="misalignment")
    assert tryon.resume(once, "misalignment", until="misalignment").corrected == ("segmentation",)
    assert tryon.resume(once, "segmentation", until="misalignment").corrected == ()


@pytest.mark.parametrize(
    "name, value",
    [
        ("parse", np.full(SIZE, 20, np.uint8)),
        ("segmentation", np.full(SIZE, 13, np.uint8)),
        ("painted_mask", np.zeros((40, 40), np.uint8)),
        ("painted_mask", np.full((9, 99), 255, np.uint8)),
        ("control_points", np.full((25, 2), np.nan, np.float32)),
        ("control_points", np.zeros((7, 2), np.float32)),
        ("pose", np.zeros(3)),
    ],
)
def test_a_correction_that_cannot_be_is_refused_with_a_sentence(tryon, result, name, value):
    with pytest.raises(ValueError, match=r"\.$"):
        tryon.correct(result, name, value)


@pytest.mark.slow
def test_a_finer_grid_starts_from_the_same_warp_and_fits_at_least_as_well(tryon, result):
    from vton.networks import warping

    result = tryon.by_spline(result)
    theta = torch.from_numpy(result.theta)[None]
    coarse, fine = warping.sampling_grid(theta, (64, 48)), warping.sampling_grid(warping.refine(theta, 10), (64, 48))
    assert (coarse - fine).abs().max() < 0.05
    finer = tryon.resume(result, "warp", grid=10)
    assert finer.control_points.shape == (100, 2)
    region = result.segmentation == 3
    assert coverage(finer.warped_mask > 127, region) > coverage(result.warped_mask > 127, region) - 0.02


def test_a_stage_that_refuses_tells_how_far_the_run_came(tryon, pictures):
    nothing = np.full((300, 300, 3), 255, np.uint8)
    with pytest.raises(InputError) as error:
        tryon.run(pictures[0], nothing, size=SIZE)
    assert error.value.stage == "garment" and set(error.value.record.seconds) == {"photo", "pose", "parse"}
    mask = np.zeros((300, 300), np.uint8)
    mask[60:240, 80:220] = 255
    painted = tryon.correct(error.value.record, "painted_mask", mask, until="agnostic")
    assert painted.corrected == ("painted_mask",)
    whole = tryon.run(pictures[0], nothing, size=SIZE, painted_mask=mask, until="agnostic")
    assert np.array_equal(whole.cloth, painted.cloth) and np.array_equal(whole.agnostic, painted.agnostic)


def test_quality_says_what_the_result_rests_on(result):
    known = result.quality
    assert known["facing"] == "front" and 8 <= known["joints"] <= known["joints_wanted"] == 11
    assert known["misaligned_share"] == pytest.approx(result.misaligned_share, abs=1e-4)
    assert known["cloth_coverage"] == pytest.approx(1 - result.misaligned_share, abs=1e-4)


@pytest.mark.parametrize("colour", ((20, 20, 22), (255, 204, 51), None), ids=("phone", "sticker", "no head"))
def test_bare_arms_stay_the_persons_own_whatever_hides_the_face(tryon, result, colour):
    """A face behind a phone or a sticker, and none at all, tell no tone: hands and arms do."""
    bared = tryon.resume(result, "segmentation", sleeves="none", until="segmentation")
    face, before = bared.parse == labels.FACE_LIP, own_skin(bared)
    if colour:
        hidden = replace(bared, person=np.where(face[..., None], colour, bared.person).astype(np.uint8))
    else:
        head = np.isin(bared.parse, (labels.FACE_LIP, labels.NECK_LIP, labels.HAIR_LIP))
        hidden = replace(bared, parse=np.where(head, labels.BACKGROUND, bared.parse).astype(np.uint8))
    assert not composite.is_skin(hidden.person, face) or colour is None
    assert before.sum() > 200 and (own_skin(hidden) & before).sum() > 0.8 * before.sum()


def shifted(picture, part, lab):
    """A copy of a picture whose part (H, W) bool is moved by (3,) in CIELAB."""
    out = picture.copy()
    out[part] = composite._rgb(composite._lab(picture[part][None])[0] + np.array(lab, np.float32))
    return out


@pytest.mark.parametrize("hem, follows", [("auto", False), ("tucked", True)])
def test_a_loose_hem_does_not_depend_on_where_the_old_garment_let_the_trousers_be_seen(tryon, result, hem, follows):
    """Jackets stand open and parses are ragged there: none of that may be seen in the new garment."""
    hips = int(result.keypoints[list(HIPS), 1].mean())
    trousers = np.isin(result.parse_agnostic, labels.LOWER_LIP)
    ragged = result.parse_agnostic.copy()
    ragged[hips - 12 : hips + 8, ::9] = labels.BACKGROUND
    ragged[hips - 12 : hips + 8, 4::9] = labels.LIP.index("pants")
    assert trousers.any() and (ragged != result.parse_agnostic).any()
    worn = replace(result, options=replace(result.options, hem=hem))
    regions = [
        tryon.correct(worn, "parse_agnostic", one, until="segmentation").segmentation
        for one in (result.parse_agnostic, ragged)
    ]
    assert (regions[0] == labels.UPPER).any()
    assert bool(((regions[0] == labels.UPPER) != (regions[1] == labels.UPPER)).any()) is follows


def test_a_bag_that_is_carried_stays_before_the_new_garment_and_a_speck_of_one_does_not(result):
    cloth = final_picture.layers(result).cloth
    y, x = (int(v.mean()) for v in np.nonzero(cloth))
    bag, speck = np.zeros((2, *cloth.shape), bool)
    side = int((0.9e-3 * cloth.size) ** 0.5)
    bag[y - 20 : y + 20, x - 15 : x + 15], speck[y - 24 - side : y - 24, x : x + side] = True, True
    assert cloth[bag | speck].all()
    parse = np.where(bag | speck, np.uint8(labels.CARRIED_LIP), result.parse)
    person = np.where((bag | speck)[..., None], np.uint8((255, 0, 255)), result.person)
    carrying = replace(result, parse=parse, person=person)
    picture, opacity = compose(carrying)
    inside = cv2.resize(cv2.erode(bag.astype(np.uint8), np.ones((5, 5))), opacity.shape[::-1]) > 0
    assert inside.any() and not opacity[inside].any()  # the photograph, byte for byte
    over_speck = cv2.resize(speck.astype(np.uint8), opacity.shape[::-1]) > 0
    assert opacity[over_speck].min() > 250
    assert (photograph_parts(carrying) & bag).sum() == bag.sum() and not (photograph_parts(carrying) & speck).any()


@pytest.fixture
def sleeves_off(tryon, result):
    """A record whose arms go bare, as if long sleeves had hidden all but the hands; and these, (H, W) bool."""
    bared = tryon.resume(result, "segmentation", sleeves="none", until="synthesis")
    held = final_picture.hands(bared)
    sleeves = np.isin(bared.parse, labels.ARMS_LIP) & ~held
    return replace(bared, parse=np.where(sleeves, labels.UPPER_LIP[0], bared.parse).astype(np.uint8)), held


def arms_of(record, held):
    """The median colour (3,) of the arms that are painted, away from the hands, whose colour goes over into theirs;
    held as above.
    """
    reach = record.options.size[1] // 16
    away = np.isin(record.segmentation, labels.ARMS) & (cv2.dilate(held.astype(np.uint8), photo.disc(reach)) == 0)
    assert held.sum() > 200 and away.sum() > 200
    return np.median(final_picture.from_photograph(record)[away].astype(float), 0)


def test_arms_that_go_bare_take_their_tone_from_the_face_not_from_red_hands(sleeves_off):
    long, held = sleeves_off
    long = replace(long, person=shifted(long.person, long.parse == labels.FACE_LIP, (20, 0, 0)))  # in the light
    redder = np.clip(long.person + np.array((10.0, -8.0, -8.0)), 0, 255).astype(np.uint8)
    red = replace(long, person=np.where(held[..., None], redder, long.person))
    assert not final_picture.in_shade(red) and own_skin(red)[held].mean() > 0.3
    assert np.abs(arms_of(red, held) - arms_of(long, held)).max() <= 2


def test_where_the_face_lies_in_the_shade_hands_tell_how_light_the_arms_are_and_nothing_else(sleeves_off):
    long, held = sleeves_off
    shade = replace(long, person=shifted(long.person, long.parse == labels.FACE_LIP, (-25, 0, 0)))
    assert final_picture.in_shade(shade)
    lighter, redder = (replace(shade, person=shifted(shade.person, held, change)) for change in ((6, 0, 0), (0, 5, 0)))
    before, light, red = (
        composite._lab(arms_of(one, held)[None, None].astype(np.uint8))[0, 0] for one in (shade, lighter, redder)
    )
    assert 3 < light[0] - before[0] < 9 and np.abs(red - before).max() < 1.5


def test_a_throat_lies_in_the_light_in_which_the_face_lies(sleeves_off):
    """Whatever the hands are like: they may hang in the sun under a hat's shade."""
    long, _ = sleeves_off
    long = replace(
        long, parse=np.where(long.parse == labels.NECK_LIP, labels.UPPER_LIP[0], long.parse).astype(np.uint8)
    )
    shade = replace(long, person=shifted(long.person, long.parse == labels.FACE_LIP, (-25, 0, 0)))
    bare = final_picture.throat(shade)
    assert final_picture.in_shade(shade) and bare.sum() > 100
    light, dark = (
        np.median(composite._lab(final_picture.from_photograph(one)[bare][None])[0, :, 0]) for one in (long, shade)
    )
    assert 20 < light - dark < 30


def test_where_hair_shuts_in_a_collar_that_is_gone_there_is_skin_and_beside_the_wall_there_is_wall(result):
    size = result.options.size
    free = neckline.above_shoulders(result.keypoints, size)
    free &= ~neckline.around_neck(result.keypoints, size) & ~neckline.on_shoulders(result.keypoints, size)
    head = np.isin(result.parse, (labels.HAIR_LIP, labels.FACE_LIP)).astype(np.uint8)
    inner = (cv2.erode(head, np.ones((7, 7), np.uint8)) > 0) & free
    outer = (cv2.dilate(head, np.ones((9, 9), np.uint8)) > 0) & (result.parse == labels.BACKGROUND) & free
    pieces = inner | outer
    parse = np.where(pieces, labels.UPPER_LIP[0], result.parse).astype(np.uint8)
    classes = np.where(pieces, labels.BACKGROUND, result.segmentation).astype(np.uint8)
    throat = final_picture.throat(replace(result, parse=parse, segmentation=classes))
    assert inner.sum() > 50 and outer.sum() > 50 and throat[inner].all() and not throat[outer].any()


def test_a_scarf_is_taken_off_with_the_garment(tryon, pictures, result, monkeypatch):
    scarf = np.where(result.parse == labels.UPPER_LIP[0], labels.SCARF_LIP, result.parse).astype(np.uint8)
    half = len(scarf) // 2
    scarf[:half] = result.parse[:half]
    assert (scarf == labels.SCARF_LIP).any()
    monkeypatch.setattr(parsing, "parse", lambda *arguments: scarf.copy())
    read = tryon.run(*pictures, size=SIZE, until="parse")
    np.testing.assert_array_equal(read.parse, result.parse)
