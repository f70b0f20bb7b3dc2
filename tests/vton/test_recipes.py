"""The training recipes on draped people: each network overfits one pair, and a short run is whole and exportable."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lab.tryon.synthetic import draw_pair
from training import Run, fit
from training.weights import save_model
from vton import labels
from vton import train as command
from vton.attributes import ATTRIBUTES, LENGTH, decode, encode
from vton.data.draped.people import load_people
from vton.data.pairs import WHITE, person_skeleton
from vton.data.samples import Sampler
from vton.export import export
from vton.inputs.agnostic import agnostic_image
from vton.inputs.parsing import joint_maps, to_tensors
from vton.inputs.pose import draw_pose
from vton.metrics import mask_iou
from vton.networks.config import LITE
from vton.networks.losses import second_order
from vton.networks.parser import Parser
from vton.networks.segmentation import SegmentationGenerator, generator_input
from vton.networks.warping import MatchingModule, sampling_grid, warp
from vton.pipeline import load_network
from vton.recipes import alias, flow, garment, matching, parser, segmentation
from vton.recipes.common import collate, cut_locks, rate_factor, roughen_outline
from vton.registry import NETWORKS

MODULES = {
    "parser": (parser, parser.ParserTask, parser.ParserRecipe),
    "segmentation": (segmentation, segmentation.SegmentationTask, segmentation.SegmentationRecipe),
    "matching": (matching, matching.MatchingTask, matching.MatchingRecipe),
    "alias": (alias, alias.AliasTask, alias.AliasRecipe),
    "garment": (garment, garment.GarmentTask, garment.GarmentRecipe),
}


def small_recipe(kind, **fields):
    module, _, recipe = MODULES[kind]
    return recipe(
        **{
            **module.PRESETS["draped"],
            "steps": 4,
            "batch": 2,
            "log_every": 2,
            "save_every": 2,
            "evaluate_every": 4,
            "validation": 2,
            "precision": "no",
            **fields,
        }
    )


# One network quickly: what stops and resumes is shared.
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "matching" else pytest.mark.slow) for kind in MODULES]
)
def test_short_run_stops_resumes_exactly_and_exports(kind, tmp_path):
    task_class = MODULES[kind][1]
    recipe = small_recipe(kind)

    def start(folder, steps, resume=False):
        torch.manual_seed(recipe.seed)
        fit(task_class(replace(recipe, steps=steps)), replace(recipe, steps=steps), folder, resume=resume, quiet=True)

    start(tmp_path / "whole", 4)
    start(tmp_path / "halves", 2)
    start(tmp_path / "halves", 4, resume=True)
    logs = [[e["losses"] for e in Run(tmp_path / name).events() if e["event"] == "log"] for name in ("whole", "halves")]
    assert logs[0] == logs[1] and len(logs[0]) == 2
    assert all(np.isfinite(v) for log in logs[0] for v in log.values())
    assert export(tmp_path / "whole", tmp_path / "a") == 4
    export(tmp_path / "halves", tmp_path / "b")
    one, other = (load_network(kind, tmp_path / name).state_dict() for name in ("a", "b"))
    assert all(torch.equal(one[k], other[k]) for k in one)
    assert any((tmp_path / "whole" / "samples" / "step-00000004").iterdir())


def test_every_loss_term_is_logged_apart():
    terms = {}
    for kind, (_, task_class, _) in MODULES.items():
        task = task_class(small_recipe(kind, batch=1))
        batch = task.batch(1, 0, 0, 1)
        if kind != "alias":
            terms[kind] = set(task.terms(batch))
    assert terms == {
        "parser": {"cross_entropy", "dice"},
        "segmentation": {"cross_entropy", "adversarial"},
        "matching": {"l1", "second_order", "mask", "place"},
        "garment": {"mask", "opening", "sleeves", "neckline", "front", "view", "kind"},
    }


def train(network, loss, steps, lr=2e-3):
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    network.eval()


@pytest.mark.slow
def test_parser_overfits_one_drawing():
    torch.manual_seed(0)
    person = load_people((256, 192)).person(3)
    inputs = to_tensors(person.image[::2, ::2], person.keypoints * (0.5, 0.5, 1), person.person_mask[::2, ::2])
    target = torch.from_numpy(person.parse[::2, ::2].astype(np.int64))[None]
    network = Parser(replace(LITE.parser, widths=(16, 24, 32, 48, 64)))
    twice = [torch.cat((x, x)) for x in inputs]  # batch norm needs more than one value at the deepest level
    train(network, lambda: F.cross_entropy(network(*twice), torch.cat((target, target))), 120, 4e-3)
    network.train()
    answer = network(*twice)[0].argmax(0).numpy()
    for label in np.unique(target):
        if (target == label).sum() > 60:
            assert mask_iou(answer == label, target[0].numpy() == label) > 0.9, label
    assert mask_iou(answer == 5, target[0].numpy() == 5) > 0.95


def one_pair():
    """A batch of one draped person."""
    return collate([Sampler(None, (256, 192), draped=load_people((256, 192))).sample(np.random.default_rng(5))])


@pytest.mark.slow
def test_segmentation_generator_overfits_one_drawing():
    torch.manual_seed(0)
    b = one_pair()
    x = generator_input(b["cloth"], b["cloth_mask"], b["parse_agnostic"], b["pose"], torch.zeros(1, 1, 256, 192))[
        ..., ::4, ::4
    ]
    target = b["segmentation"][:, ::4, ::4]
    network = SegmentationGenerator(replace(LITE.segmentation, width=12, dropout=0.0))
    train(network, lambda: F.cross_entropy(network(x), target), 150)
    answer = network(x).argmax(1)
    assert mask_iou(answer == 3, target == 3) > 0.95


def told_task(**fields):
    """A task of the segmentation generator on draped people, at a quarter of the size."""
    recipe = segmentation.SegmentationRecipe(
        width=4, attributes=True, gan=0.0, batch=4, reduce=4, validation=2, unknown=0.0, **fields
    )
    return segmentation.SegmentationTask(recipe)


def test_weights_that_were_told_nothing_begin_to_be_told(tmp_path):
    torch.manual_seed(1)
    plain = SegmentationGenerator(replace(LITE.segmentation, width=4)).eval()
    save_model(tmp_path / "plain", asdict(plain.config), plain.state_dict(), torch.float32)
    task = told_task(initial=str(tmp_path / "plain"))
    x, told = torch.rand(1, 21, 32, 32), torch.eye(LENGTH)[:1]
    model = task.modules["model"].eval()
    torch.testing.assert_close(model(x, told), plain(x), atol=2e-4, rtol=0)  # layouts in memory differ
    before = [linear.weight.clone() for linear in model.told]
    batch = task.batch(1, 0, 0, 1)
    sum(task.terms(batch).values()).backward()
    assert all(linear.weight.grad.abs().sum() > 0 for linear in model.told)
    assert all((linear.weight == b).all() for linear, b in zip(model.told, before))


def test_weights_that_were_told_the_sleeves_begin_to_be_told_the_hem(tmp_path):
    torch.manual_seed(1)
    config = replace(LITE.segmentation, width=4, attributes=len(ATTRIBUTES["sleeves"]))
    told = SegmentationGenerator(config).eval()
    for linear in told.told:
        torch.nn.init.normal_(linear.weight, std=0.05)
    save_model(tmp_path / "told", asdict(told.config), told.state_dict(), torch.float32)
    task = told_task(initial=str(tmp_path / "told"), hem=True)
    x, code = torch.rand(1, 21, 32, 32), torch.from_numpy(encode({"sleeves": "long", "hem": "tucked"}))[None]
    model = task.modules["model"].eval()
    torch.testing.assert_close(model(x, code), told(x, code), atol=2e-4, rtol=0)  # the hem changes nothing yet
    assert model.told[0].weight.shape[1] == LENGTH
    with pytest.raises(ValueError, match="set attributes to true"):
        segmentation.network_config(replace(task.recipe, attributes=False))


def test_what_is_unknown_is_told_to_nobody():
    unknown = told_task(hem=True)
    unknown.recipe = replace(unknown.recipe, unknown=1.0)
    assert not unknown.batch(3, 0, 0, 1)["attributes"].any()


@pytest.mark.slow
def test_the_hem_is_hidden_where_it_is_loose_and_garments_are_cut_to_straps():
    plain = told_task(hem=True).batch(3, 0, 0, 1)
    hidden = told_task(hem=True, hides=1.0).batch(3, 0, 0, 1)
    loose = [decode(code, "hem") == "loose" for code in plain["attributes"].numpy()]
    assert any(loose)
    for one, other, is_loose in zip(plain["parse_agnostic"], hidden["parse_agnostic"], loose):
        gone = (one != other).any(0)
        assert gone.any() == (is_loose and one[labels.BOTTOM].any())
        assert not other[labels.BOTTOM][gone].any()
    straps = told_task(straps=1.0).batch(3, 0, 0, 1)
    cut = (straps["cloth_mask"] != plain["cloth_mask"]).flatten(1).any(1)
    assert cut.any() and all(kind == "none" for kind, own in zip(segmentation.sleeves(straps), cut) if own)


@pytest.mark.slow
def test_matching_module_overfits_one_drawing():
    torch.manual_seed(0)
    drawn = draw_pair(int(np.random.default_rng(5).integers(2**31)), size=(256, 192))
    visible = drawn.parse == 5
    pair = {
        "cloth": drawn.cloth,
        "worn": np.where(visible[..., None], drawn.person, WHITE).astype(np.uint8),
        "worn_mask": visible[None],
        "pose": draw_pose(drawn.keypoints, (256, 192)),
        "agnostic": agnostic_image(drawn.person, drawn.parse, drawn.keypoints, thorough=True),
    }
    b = collate([pair])
    network = MatchingModule(replace(LITE.matching, width=8))
    person, twice = (
        torch.cat((b["worn_mask"], b["pose"], b["agnostic"]), 1).repeat(2, 1, 1, 1),
        b["cloth"].repeat(2, 1, 1, 1),
    )

    def warped():
        return warp(b["cloth"], sampling_grid(network(person, twice)[:1], (256, 192)))

    def loss():
        theta = network(person, twice)
        return (b["worn"] - warp(b["cloth"], sampling_grid(theta[:1], (256, 192)))).abs().mean() + 0.002 * second_order(
            theta
        )

    before = float((b["worn"] - warped()).detach().abs().mean()) / 2
    train(network, loss, 150)
    network.train()
    after = float((b["worn"] - warped()).detach().abs().mean()) / 2  # in units of the full range
    assert after < 0.03 and after < 0.4 * before


@pytest.mark.slow
def test_alias_generator_overfits_one_drawing():
    torch.manual_seed(0)
    recipe = small_recipe(
        "alias", height=64, pictures_wide=48, levels=5, masked=3, gan=0.0, feature_matching=0.0, batch=1
    )
    task = alias.AliasTask(recipe)
    batch = task.batch(1, 0, 0, 1)
    network = task.modules["model"]
    train(network, lambda: (task.generate(network, batch)[0][0] - batch["person"]).abs().mean(), 220, 5e-3)
    assert float((task.generate(network, batch)[0][0] - batch["person"]).abs().mean().detach()) / 2 < 0.03


@pytest.mark.slow
def test_a_share_of_the_alias_updates_has_twice_as_many_pictures_of_half_the_size():
    task = alias.AliasTask(small_recipe("alias", half=0.5))
    shapes = [tuple(task.batch(step, 0, 0, 1)["person"].shape) for step in range(1, 25)]
    assert set(shapes) == {(2, 3, 128, 96), (4, 3, 64, 48)} and 6 <= shapes.count((4, 3, 64, 48)) <= 18
    small = 1 + shapes.index((4, 3, 64, 48))
    assert [tuple(task.batch(small, 0, rank, 2)["person"].shape) for rank in range(2)] == [(2, 3, 64, 48)] * 2
    whole = alias.AliasTask(small_recipe("alias"))
    assert {tuple(whole.batch(step, 0, 0, 1)["person"].shape) for step in range(1, 9)} == {(2, 3, 128, 96)}
    with pytest.raises(ValueError, match="half must be at most 1"):
        small_recipe("alias", half=1.5).check()


def test_a_batch_is_a_function_of_the_step_and_shared_between_processes():
    task = matching.MatchingTask(small_recipe("matching", batch=4))
    whole, again, other = task.batch(3, 0, 0, 1), task.batch(3, 0, 0, 1), task.batch(4, 0, 0, 1)
    halves = [task.batch(3, 0, rank, 2) for rank in range(2)]
    assert torch.equal(whole["cloth"], again["cloth"]) and not torch.equal(whole["cloth"], other["cloth"])
    assert torch.equal(whole["cloth"][0::2], halves[0]["cloth"]) and torch.equal(
        whole["cloth"][1::2], halves[1]["cloth"]
    )


def test_rate_of_the_cosine_by_hand():
    recipe = parser.ParserRecipe(steps=110, warmup=10, schedule="cosine")
    assert [rate_factor(s, recipe) for s in (5, 10, 60, 110)] == pytest.approx([0.5, 1.0, 0.505, 0.01])


def test_a_schedule_that_there_is_not_is_refused_before_there_is_a_folder(tmp_path, capsys):
    assert command.main(["parser", "--run", str(tmp_path / "new"), "--schedule", "linear"]) == 2
    assert capsys.readouterr().err == "error: schedule must be 'constant' or 'cosine', but is 'linear'.\n"
    assert not (tmp_path / "new").exists()


def test_joint_maps_peak_at_the_joints_and_leave_missing_ones_out():
    keypoints = np.zeros((25, 3), np.float32)
    keypoints[4] = (30.5, 60.5, 0.9)
    maps = joint_maps(keypoints, (96, 72))
    assert np.unravel_index(maps[4].argmax(), (96, 72)) == (60, 30) and maps[4].max() == pytest.approx(1)
    assert not maps[[0, 1, 24]].any()


def test_bones_of_a_person_join_shoulders_and_hips():
    drawn = draw_pair(3, size=(256, 192), sleeves="none", pose="down")
    body = person_skeleton(drawn.keypoints)
    assert body.width == pytest.approx(np.linalg.norm(drawn.keypoints[2, :2] - drawn.keypoints[5, :2]), rel=1e-5)
    assert person_skeleton(np.zeros((25, 3), np.float32)) is None


def test_exported_folders_hold_a_config_that_a_reader_knows(tmp_path):
    from dataclasses import asdict

    from training.weights import save_model

    network = MatchingModule(replace(LITE.matching, width=8))
    save_model(tmp_path / "m", asdict(network.config), network.state_dict())
    assert json.loads((tmp_path / "m" / "config.json").read_text())["width"] == 8
    assert load_network("matching", tmp_path / "m").config == network.config
    (tmp_path / "m" / "config.json").write_text('{"colour": 3}')
    with pytest.raises(ValueError, match="Unknown field 'colour'"):
        load_network("matching", tmp_path / "m")
    assert set(NETWORKS) == set(MODULES)


def test_trained_matching_goes_on_where_it_was(tmp_path):
    fields = {"width": 4, "batch": 1, "validation": 1}
    fresh = matching.MatchingTask(matching.MatchingRecipe(**fields)).modules["model"]
    assert not fresh.regression.linear.bias.any() and fresh.regression.linear.weight.abs().max() < 0.02
    torch.nn.init.normal_(fresh.regression.linear.bias)
    save_model(tmp_path / "known", asdict(fresh.config), fresh.state_dict(), torch.float32)
    again = matching.MatchingTask(matching.MatchingRecipe(**fields, initial=str(tmp_path / "known"))).modules["model"]
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in fresh.state_dict().items())


def test_a_region_under_locks_has_gaps_from_its_upper_edge():
    region = torch.zeros(1, 60, 40)
    region[:, 20:50, 5:35] = 1
    for seed in range(20):
        hidden = cut_locks(region, np.random.default_rng(seed))
        gone = (region - hidden)[0]
        assert gone.min() >= 0 and 0 < gone.mean() < 0.6 * region.mean()
        assert (gone[20] >= gone[21:50].amax(0)).all()  # nothing is hidden below what is seen
    fields = {"width": 4, "batch": 2, "validation": 1}
    batch = matching.MatchingTask(matching.MatchingRecipe(**fields, locks=1.0)).batch(1, 0, 0, 1)
    assert (batch["region"] <= batch["worn_mask"]).all() and (batch["region"] < batch["worn_mask"]).any()


def test_a_ragged_outline_stays_near_the_true_one():
    region = torch.zeros(1, 128, 96)
    region[:, 20:100, 20:80] = 1
    inner, outer = torch.zeros_like(region), torch.zeros_like(region)
    inner[:, 32:88, 32:68] = 1
    outer[:, 8:112, 8:92] = 1
    for seed in range(10):
        wrong = roughen_outline(region, np.random.default_rng(seed))
        assert (wrong >= inner).all() and (wrong <= outer).all()
        assert 0.005 < (wrong - region).abs().mean() / region.mean() < 0.2
    recipe = flow.FlowRecipe(width=4, features=4, levels=2, batch=2, validation=1, outlines=1.0)
    batch = flow.FlowTask(recipe).batch(1, 0, 0, 1)
    assert (batch["region"] != batch["worn_mask"]).any()
