"""The comparison of devices, and what does not change from one to another."""

import pytest
import torch

from benchmarks import gpu
from training.devices import has_bf16


def test_without_a_card_one_sentence_says_so(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "present_devices", lambda: ["cpu"])
    monkeypatch.setattr(gpu, "measure", lambda *rest: pytest.fail("nothing may be measured"))
    assert gpu.main([]) == 2
    said = capsys.readouterr()
    assert said.err == "error: There is no CUDA device here; `--device cpu` measures the CPU against itself.\n"
    assert not said.out


def test_a_difference_beyond_the_bounds_is_no_agreement():
    good = {
        "differences": {"segmentation": 0.0, "warped_cloth": 1.0, "result": 2.0},
        "other translations": 0, "first loss": 3.0, "last loss": 2.0,
    }  # fmt: skip
    assert gpu.agrees(good)
    worse = [{"other translations": 1}, {"last loss": 3.5}, {"differences": {"segmentation": 0.0, "result": 3.0}}]
    worse += [{"differences": {"segmentation": 5.0, "result": 0.0}}]
    assert not any(gpu.agrees(good | change) for change in worse)


@pytest.mark.slow
def test_the_device_of_the_tests_agrees_with_the_cpu(device, monkeypatch):
    """On a machine without a card it is the CPU itself, so that at least the comparison is run."""
    if device == "cpu":
        monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    figures = gpu.measure(torch.device(device), (256, 192), sentences=3, batch=2, repeats=1, steps=8)
    assert gpu.agrees(figures), figures
    if device == "cpu":
        assert not any(figures["differences"].values())
    kinds = ("fp32", "bf16") if has_bf16(device) else ("fp32",)
    assert all(figures[f"{what} a second, {kind}"] > 0 for what in ("tokens", "pictures") for kind in kinds)
    assert f"pictures a second, {kinds[-1]}" in gpu.table(figures, (256, 192)) and figures["peak MiB"] > 100
