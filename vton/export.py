"""`python -m vton.export RUN OUT`: the averaged weights of a run's newest (or best) checkpoint as a model folder."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, fields
from pathlib import Path

from training.checkpoint import find_checkpoint, module_state, step_of
from training.command import one_sentence
from training.run import Run
from training.weights import save_model
from vton.recipes.registry import NETWORKS, RIVALS, network_of_task


def export(run: Path, out: Path, step: int | None = None) -> int:
    """Writes config.json and model.safetensors (fp16) of a try-on network; returns the checkpoint's update number.

    step: which checkpoint; None = the newest. Raises ValueError with one sentence when there is none.
    """
    saved = Run(run).recipe()
    key = network_of_task(saved["task"])
    if key is None:
        raise ValueError(f"'{run.name}' holds a run of {saved['task']}, which is not a try-on network.")
    network = (NETWORKS | RIVALS)[key]
    names = {f.name for f in fields(network.recipe)}
    recipe = network.recipe(**{k: v for k, v in saved.items() if k in names})
    config = network.recipes.network_config(recipe)
    chosen = find_checkpoint(run / "checkpoints", step)
    save_model(out, asdict(config), module_state(chosen, "ema"))
    return step_of(chosen)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m vton.export", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--step", type=int)
    options = parser.parse_args(argv)
    print(f"update {export(options.run, options.out, options.step)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
