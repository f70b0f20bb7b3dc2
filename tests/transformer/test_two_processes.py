"""The recipe in two processes on a CPU: the losses of one process, and the same weights.

Each process gets the variables that `accelerate launch` and torchrun give to theirs.
"""

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


def train(run, data, accumulate, ranks):
    # The update's batch is the same: two micro-batches in one process, or one in each of two.
    command = [
        sys.executable, "-m", "transformer.train", "--preset", "quick", "--data", str(data), "--run", str(run),
        "--vocab-size", "60", "--tokens", "256", "--max-length", "40", "--steps", str(STEPS), "--save-every", str(STEPS),
        "--evaluate-every", "0", "--log-every", "1", "--warmup", "4", "--dropout", "0", "--threads", "1",
        "--accumulate", str(accumulate),
    ]  # fmt: skip
    base = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            command, cwd=ROOT, env={**base, **variables}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for variables in ranks
    ]
    try:
        for process in started:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output[-4000:]
    finally:
        for process in started:
            process.kill()
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


def test_two_processes_agree_with_one(data, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    two = [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
    events, losses = train(tmp_path / "two", data, 1, two)
    assert next(e for e in events if e["event"] == "start")["processes"] == 2
    _, alone = train(tmp_path / "one", data, 2, [{}])
    assert len(losses) == STEPS and losses == pytest.approx(alone, rel=1e-5)
    assert losses[-1] < losses[0]
    found = [checkpoint.module_state(checkpoint.latest_checkpoint(Run(tmp_path / n).checkpoints)) for n in ("one", "two")]
    for name, value in found[0].items():
        assert torch.allclose(value, found[1][name], atol=1e-5), name
