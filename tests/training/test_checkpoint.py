"""Checkpoints by themselves: whole or absent, exactly what was saved, and which of them counts."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from training import checkpoint
from training.checkpoint import (
    average_checkpoints,
    find_checkpoint,
    latest_checkpoint,
    list_checkpoints,
    load_checkpoint,
    module_state,
    prune,
    save_checkpoint,
)


def task(seed, *names):
    """Networks of their own optimizers, after two updates."""
    torch.manual_seed(seed)
    modules = {name: nn.Linear(3, 2) for name in names or ("model",)}
    optimizers = {name: torch.optim.Adam(module.parameters(), lr=0.1) for name, module in modules.items()}
    for _ in range(2):
        for name, module in modules.items():
            module(torch.randn(4, 3)).square().sum().backward()
            optimizers[name].step()
            optimizers[name].zero_grad()
    return SimpleNamespace(modules=modules, optimizers=optimizers)


def flat(value):
    """Every number that a task holds, by name."""
    states = {name: module.state_dict() for name, module in value.modules.items()}
    for name, optimizer in value.optimizers.items():
        for index, own in optimizer.state_dict()["state"].items():
            states[f"{name} {index}"] = own
    return {f"{name} {key}": tensor.clone() for name, state in states.items() for key, tensor in state.items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_what_is_loaded_is_what_was_saved(tmp_path):
    saved, other = task(1, "generator", "critic"), task(2, "generator", "critic")
    other.optimizers["critic"].param_groups[0]["lr"] = 0.5
    before, draws = (
        flat(saved),
        {"cpu-0": torch.arange(5, dtype=torch.uint8), "python": torch.ones(2, dtype=torch.uint8)},
    )
    folder = save_checkpoint(tmp_path / "checkpoints", 12, saved, draws, {"best": 0.25})
    assert not same(flat(other), before)
    state, found = load_checkpoint(folder, other)
    assert same(flat(other), before) and same(flat(saved), before)
    assert state["step"] == 12 and state["best"] == 0.25 and other.optimizers["critic"].param_groups[0]["lr"] == 0.1
    assert found.keys() == draws.keys() and all(torch.equal(found[name], draws[name]) for name in draws)
    with pytest.raises(ValueError, match="no state of the optimizer 'reader'"):
        load_checkpoint(folder, SimpleNamespace(modules={}, optimizers={"reader": other.optimizers["critic"]}))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("content", [b"", b"x" * 99, b"[]", b"{}"])
def test_a_damaged_file_of_a_checkpoint_is_named(tmp_path, name, content):
    folder = save_checkpoint(tmp_path / "checkpoints", 12, task(1), {}, {})
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"^{name} in 'step-00000012' is damaged"):
        load_checkpoint(folder, task(2))
    if name == "model.safetensors":
        with pytest.raises(ValueError, match=f"^{name} in 'step-00000012' is damaged"):
            module_state(folder)


def test_only_whole_checkpoints_are_found_and_the_newest_counts(tmp_path):
    run = tmp_path / "one"
    folder = run / "checkpoints"
    assert list_checkpoints(folder) == [] and latest_checkpoint(folder) is None
    with pytest.raises(ValueError, match="'one' has no checkpoint yet"):
        find_checkpoint(folder)
    for step in (10, 2, 9):
        save_checkpoint(folder, step, task(step), {}, {})
    (folder / "step-00000099").mkdir()  # begun and never finished
    (folder / ".part-00000098").mkdir()
    assert [checkpoint.step_of(one) for one in list_checkpoints(folder)] == [2, 9, 10]
    assert latest_checkpoint(folder) == find_checkpoint(folder) == folder / "step-00000010"
    assert find_checkpoint(folder, 2) == folder / "step-00000002"
    with pytest.raises(ValueError, match="no checkpoint of update 3; it has 2, 9, 10"):
        find_checkpoint(folder, 3)


@pytest.mark.parametrize("keep, best, left", [(2, None, [3, 4]), (1, 2, [2, 4]), (2, 4, [3, 4]), (9, 1, [1, 2, 3, 4])])
def test_the_last_ones_and_the_best_one_are_kept(tmp_path, keep, best, left):
    for step in range(1, 5):
        save_checkpoint(tmp_path, step, task(step), {}, {})
    prune(tmp_path, keep, best)
    assert [checkpoint.step_of(one) for one in list_checkpoints(tmp_path)] == left


def test_the_mean_is_of_the_last_ones_up_to_an_update(tmp_path):
    weights = {}
    for step in range(1, 5):
        weights[step] = task(step).modules["model"].weight.detach().double()
        save_checkpoint(tmp_path / "checkpoints", step, task(step), {}, {})
    for n, last, steps in ((2, None, (3, 4)), (3, 3, (1, 2, 3)), (1, 2, (2,))):
        expected = sum(weights[step] for step in steps) / n
        torch.testing.assert_close(average_checkpoints(tmp_path, n, last=last)["weight"].double(), expected)
    with pytest.raises(ValueError, match="has 2 checkpoints, so the last 3"):
        average_checkpoints(tmp_path, 3, last=2)
    with pytest.raises(ValueError, match="no module named 'critic'"):
        average_checkpoints(tmp_path, 1, "critic")


@pytest.mark.parametrize("failing", [1, 2])
def test_a_full_disk_leaves_the_earlier_checkpoint_and_nothing_beside_it(tmp_path, monkeypatch, failing):
    first = task(1)
    folder, before, calls = save_checkpoint(tmp_path, 5, first, {}, {}), flat(first), []

    def full(tensors, path):
        calls.append(path)
        path.write_bytes(b"begun")
        if len(calls) == failing:
            raise OSError(28, "No space left")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(tmp_path, 5, task(2), {}, {})
    assert [one.name for one in tmp_path.iterdir()] == [folder.name]
    restored = task(3)
    load_checkpoint(folder, restored)
    assert same(flat(restored), before)
