"""`python -m vton.export RUN OUT`: the averaged weights of a run's newest (or best) checkpoint as a model folder."""

import sys
from dataclasses import asdict
from pathlib import Path

from training.checkpoint import find_checkpoint, module_state, step_of
from training.command import launch_export
from training.run import Run
from training.weights import save_model
from vton.registry import ALL_NETWORKS, network_of_task


def export(run: Path, out: Path, step: int | None = None) -> int:
    """Writes config.json and model.safetensors (fp16) of a try-on network; returns the checkpoint's update number.

    step: which checkpoint; None = the newest. Raises ValueError with one sentence when there is none.
    """
    recipe = Run(run).recipe()
    key = network_of_task(recipe["task"])
    if key is None:
        raise ValueError(f"'{run.name}' holds a run of {recipe['task']}, which is not a try-on network.")
    network = ALL_NETWORKS[key]
    config = network.recipes.network_config(network.recipe.restore(recipe))
    checkpoint = find_checkpoint(run / "checkpoints", step)
    save_model(out, asdict(config), module_state(checkpoint, "ema"))
    return step_of(checkpoint)


def main(argv: list[str] | None = None) -> int:
    """The command line; prints the exported update."""
    return launch_export(export, "vton.export", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
