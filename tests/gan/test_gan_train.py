"""The recipes on the training engine, and the commands that use what they train."""

import gzip
import json
import struct

import cv2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from gan import sample
from gan.digits import read_digits, read_idx
from gan.export import main as export
from gan.networks import Pair
from gan.task import PRESETS, GanRecipe, GanTask
from gan.train import main as train
from lab.gan import evaluate
from training.checkpoint import latest_checkpoint
from training.run import Run

QUICK = ["--steps", "6", "--batch", "16", "--evaluate-every", "3", "--save-every", "3", "--log-every", "2"]
SMALL = [
    *QUICK,
    "--hidden",
    "12",
    "--units",
    "6",
    "--pieces",
    "2",
    "--noise",
    "5",
    "--samples",
    "40",
    "--precision",
    "no",
]


def write_digits(folder, count=60):
    """Blobs at random places, in the format of MNIST's files."""
    random = np.random.default_rng(0)
    pictures = np.zeros((count, 28, 28), np.uint8)
    for picture in pictures:
        cv2.circle(picture, tuple(int(v) for v in random.integers(8, 20, 2)), 5, 255, -1)
    folder.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">IIII", 0x803, count, 28, 28)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + pictures.tobytes()))
    rows = [f"{i}\t{('train', 'train', 'train', 'valid', 'test')[i % 5]}\n" for i in range(count)]
    (folder / "split.tsv").write_text("index\tpart\n" + "".join(rows))
    return pictures


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gan")
    write_digits(folder / "digits")
    assert train(["--preset", "digits", "--data", str(folder / "digits"), "--run", str(folder / "run"), *SMALL]) == 0
    return folder


@pytest.mark.parametrize("preset", ["line", "ring", "grid", "spiral"])
def test_a_known_distribution_leaves_a_whole_run_folder(tmp_path, preset):
    assert train(["--preset", preset, "--run", str(tmp_path / "run"), *QUICK]) == 0
    run = Run(tmp_path / "run")
    figures = [event["figures"] for event in run.events() if event["event"] == "evaluation"]
    assert len(figures) == 3 and all(0 <= f["jsd"] <= 0.7 for f in figures)
    assert ("modes" in figures[0]) == (preset in ("ring", "grid"))
    log = [event for event in run.events() if event["event"] == "log"][-1]
    assert {"discriminator", "generator", "value", "d_real", "d_fake"} == set(log["losses"])
    picture = cv2.imread(str(next(run.samples(6).glob("*.png"))))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3
    assert run.status() == "finished" and (run.model / "config.json").is_file()


def test_a_resumed_run_is_the_whole_run_bit_for_bit(tmp_path):
    common = ["--preset", "digits-authors", *SMALL, "--k", "2"]
    write_digits(tmp_path / "digits")
    common += ["--data", str(tmp_path / "digits")]
    assert train([*common, "--run", str(tmp_path / "whole")]) == 0
    assert train([*common, "--run", str(tmp_path / "half"), "--steps", "3"]) == 0
    assert train(["--run", str(tmp_path / "half"), "--resume", "--steps", "6"]) == 0
    for name in ("model.safetensors", "optimizer.safetensors"):
        states = [load_file(latest_checkpoint(tmp_path / run / "checkpoints") / name) for run in ("whole", "half")]
        assert states[0].keys() == states[1].keys()
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0]), name


def test_the_authors_rule_raises_momentum_and_lowers_the_rate(tmp_path):
    write_digits(tmp_path)
    task = GanTask(GanRecipe(**{**PRESETS["digits-authors"], "data": str(tmp_path), "hidden": 4, "units": 4}))
    rates = [task.learning_rates(step)["generator"] for step in (1, 125_000)]
    assert rates[0] == 0.1 and rates[1] == pytest.approx(0.1 * 1.000004**-124_999)

    final = GanTask(GanRecipe(**{**PRESETS["ring"], "steps": 100, "final_share": 0.3, "final_rate": 0.25}))
    rates = [final.learning_rates(step)["discriminator"] for step in (1, 70, 71, 100)]
    assert rates == pytest.approx([6e-3, 6e-3, 1.5e-3, 1.5e-3])

    class Nothing:
        world = 1
        autocast = staticmethod(lambda: torch.autocast("cpu", enabled=False))
        backward = staticmethod(lambda loss: loss.backward())
        step = staticmethod(lambda name: task.optimizers[name].zero_grad())
        total = staticmethod(lambda value: value)

    for step, momentum in ((1, 0.5), (62_501, 0.6), (125_001, 0.7)):
        task.update([{**task.batch(1, 0, 0, 1), "step": step}], Nothing())
        assert task.optimizers["discriminator"].param_groups[0]["momentum"] == pytest.approx(momentum)


def test_every_epoch_shows_every_digit_once(tmp_path):
    write_digits(tmp_path, 50)  # 30 of them to train
    task = GanTask(GanRecipe(**{**PRESETS["digits"], "data": str(tmp_path), "batch": 10, "hidden": 4, "units": 4}))
    for epoch in (0, 1):
        seen = torch.cat([task.batch(3 * epoch + i, 0, 0, 1)["x"][0] for i in (1, 2, 3)])
        assert torch.equal(seen.sum(0), task.digits.train.sum(0))


def test_the_commands_use_an_exported_run(digits_run, tmp_path, capsys):
    model = tmp_path / "model"
    assert export([str(digits_run / "run"), str(model)]) == 0
    assert Pair.from_pretrained(model).config.noise == 5
    out = tmp_path / "samples.png"
    assert sample.main(["--model", str(model), "--count", "20", "--out", str(out)]) == 0
    assert cv2.imread(str(out), cv2.IMREAD_GRAYSCALE).shape == (2 * 30 + 2, 16 * 30 + 2)
    data = ["--data", str(digits_run / "digits")]
    assert sample.main(["--model", str(model), "--count", "3", "--out", str(out), *data]) == 0
    assert cv2.imread(str(out), cv2.IMREAD_GRAYSCALE).shape == (30 + 2, 3 * 58 + 2)
    assert sample.main(["--model", str(model), "--count", "2", "--walk", "--out", str(out)]) == 0
    found = tmp_path / "scores.json"
    assert (
        evaluate.main(["--model", str(model), *data, "--samples", "50", "--centroids", "9", "--json", str(found)]) == 0
    )
    scores = json.loads(found.read_text())["scores"]
    assert set(scores) == {"adversarial nets", "k-means, 9 centroids", "Gaussian", "training data"}
    assert "225 ± 2 cannot be compared with" in capsys.readouterr().out


def test_digits_are_read_as_their_split_says(tmp_path):
    pictures = write_digits(tmp_path)
    digits = read_digits(tmp_path)
    assert [len(part) for part in (digits.train, digits.valid, digits.test)] == [36, 12, 12]
    assert np.array_equal((digits.test[0].view(28, 28) * 255).round().numpy(), pictures[4])
    (tmp_path / "split.tsv").unlink()
    assert [len(part) for part in (read_digits(tmp_path).train, read_digits(tmp_path).valid)] == [48, 6]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not digits", "not an IDX file of pictures"),
        (gzip.compress(bytes(4000), mtime=0)[:-9], "cut off or damaged"),
        (struct.pack(">IIII", 0x803, 9, 28, 28) + bytes(100), "as its header says"),
        (struct.pack(">IIII", 0x803, 1, 20, 28) + bytes(560), "28 x 28"),
    ],
)
def test_foreign_files_are_one_sentence(tmp_path, content, sentence):
    (tmp_path / "x-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_idx(tmp_path / "x-images-idx3-ubyte")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "digits"], "say where the digits are"),
        (["--preset", "ring", "--objective", "wasserstein"], "known are: minimax"),
        (["--preset", "ring", "--k", "0"], "k must be at least 1"),
        (["--preset", "ring", "--lr", "0"], "lr must be more than 0"),
        (["--preset", "ring", "--data", "nowhere"], "holds no IDX file"),
        (["--preset", "line", "--optimizer", "sgd", "--lr", "1e9", "--lr-d", "1e9", *QUICK], "Lower the learning rate"),
    ],
)
def test_a_wrong_recipe_is_one_sentence(tmp_path, capsys, arguments, sentence):
    assert train([*arguments, "--run", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and sentence in said and said.count("\n") == 1
