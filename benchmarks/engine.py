"""What the training loop itself costs: `python -m benchmarks.engine transformer --preset tiny --steps 200`.

Everything that is not the task's own work (batches, forward, backward, optimizer) is counted by kind, in per cent of
the task's work: bookkeeping (learning rates, checks, log lines), samples, evaluation, checkpoints. With `--presets` the
seconds a step of the small presets on one thread are printed, as the Train tab shows them where nothing was measured
yet; `cpu_seconds_per_step` is the processor's time, the same on a machine that is busy with something else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from training import loop
from training.arguments import CommandLine, integer
from training.command import one_sentence
from training.recipe import Recipe
from training.task import Task
from ui.train.networks import NETWORKS

PRESETS = [
    ("transformer", "tiny"),
    ("parser", "draped"),
    ("segmentation", "draped"),
    ("matching", "draped"),
    ("alias", "draped"),
]


def task_of(network: str) -> type[Task]:
    """The class of a network's task."""
    from importlib import import_module

    return getattr(import_module(NETWORKS[network].module), NETWORKS[network].task)


def recipe_of(network: str, preset: str, **changes) -> Recipe:
    """A preset's recipe with changes."""
    return NETWORKS[network].recipe(**{**NETWORKS[network].values(preset), **changes})


def overhead(network: str, recipe: Recipe) -> dict[str, float]:
    """Trains in a folder that is thrown away; returns seconds by kind and the number of updates."""
    seconds: Counter = Counter()

    def timed(kind, function):
        def call(*args, **kwargs):
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[kind] += time.perf_counter() - start

        return call

    torch.manual_seed(recipe.seed)
    task = task_of(network)(recipe)
    for name, kind in (("batch", "work"), ("update", "work"), ("evaluate", "evaluation"), ("sample", "samples")):
        setattr(task, name, timed(kind, getattr(task, name)))
    real_save, real_loop = loop._save, loop._loop
    loop._save, loop._loop = timed("checkpoints", real_save), timed("all", real_loop)
    try:
        with tempfile.TemporaryDirectory() as folder:
            loop.fit(task, recipe, Path(folder) / "run", quiet=True)
    finally:
        loop._save, loop._loop = real_save, real_loop
    whole = seconds.pop("all")
    seconds["bookkeeping"] = whole - sum(seconds.values())
    return {**seconds, "steps": recipe.steps}


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """Prints the seconds of each side and their ratio."""
    options = CommandLine(description=__doc__.splitlines()[0])
    options.add_argument("network", nargs="?", choices=list(NETWORKS), default="transformer")
    options.add_argument("--preset", default="")
    options.add_argument("--steps", type=integer(1), default=200)
    options.add_argument("--threads", type=integer(0, 1024), default=0)
    options.add_argument("--presets", action="store_true", help="time a step of every small preset instead")
    given = options.parse_args(argv)
    if given.presets:
        for network, preset in PRESETS:  # each in a process of its own, as precision cannot change within one
            words = [sys.executable, *NETWORKS[network].words[1:], "--preset", preset, "--threads", "1", "--time", "5"]
            figures = json.loads(
                subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
            )
            steps = NETWORKS[network].values(preset)["steps"]
            print(json.dumps({"network": network, "preset": preset, "steps": steps, **figures}), flush=True)
        return
    preset = given.preset or NETWORKS[given.network].first
    recipe = recipe_of(given.network, preset, steps=given.steps, threads=given.threads)
    found = overhead(given.network, recipe)
    print(
        f"{given.network} {preset}: {given.steps} steps, {1000 * found['work'] / given.steps:.1f} ms of work a step, "
        f"{torch.get_num_threads()} threads"
    )
    for kind in ("bookkeeping", "samples", "evaluation", "checkpoints"):
        print(
            f"{kind:12s} {1000 * found[kind] / given.steps:8.2f} ms a step  {100 * found[kind] / found['work']:6.2f} %"
        )


if __name__ == "__main__":
    raise SystemExit(main())
