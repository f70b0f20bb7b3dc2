"""The recipe in two processes on a CPU, started by `accelerate launch`: the losses of one process, and its weights."""

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training import checkpoint
from training.run import Run

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6


def train(run, data, accumulate, launcher):
    # The update's batch is the same: two micro-batches in one process, or one in each of two.
    command = [
        sys.executable,
        *launcher,
        "-m",
        "transformer.train",
        "--preset",
        "quick",
        "--data",
        str(data),
        "--run",
        str(run),
        "--vocab-size",
        "60",
        "--tokens",
        "256",
        "--max-length",
        "40",
        "--steps",
        str(STEPS),
        "--save-every",
        str(STEPS),
        "--evaluate-every",
        "0",
        "--log-every",
        "1",
        "--warmup",
        "4",
        "--dropout",
        "0",
        "--threads",
        "1",
        "--accumulate",
        str(accumulate),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:]
    events = list(Run(run).events())
    return events, [event["losses"]["nll"] for event in events if event["event"] == "log"]


@pytest.fixture()
def data(tmp_path):
    draw = random.Random(0)
    lines = ["en\tde"]
    for _ in range(200):
        words = [draw.choice(["one", "two", "three", "red", "blue", "dog"]) for _ in range(draw.randint(2, 8))]
        lines.append(" ".join(words) + "\t" + " ".join(word[::-1] for word in words))
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "train.tsv"


@pytest.mark.slow
def test_two_processes_agree_with_one(data, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        str(port),
    ]
    events, losses = train(tmp_path / "two", data, 1, launcher)
    assert next(e for e in events if e["event"] == "start")["processes"] == 2
    _, alone = train(tmp_path / "one", data, 2, [])
    assert len(losses) == STEPS and losses == pytest.approx(alone, rel=1e-5)
    assert losses[-1] < losses[0]
    found = [
        checkpoint.module_state(checkpoint.latest_checkpoint(Run(tmp_path / n).checkpoints)) for n in ("one", "two")
    ]
    for name, value in found[0].items():
        assert torch.allclose(value, found[1][name], atol=1e-5), name
