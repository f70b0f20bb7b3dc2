"""`python -m vton.export RUN OUT`: the averaged weights of a run's newest (or best) checkpoint as a model folder."""

import sys
from dataclasses import asdict
from pathlib import Path

from training.arguments import CommandLine, a_folder_to_write, an_existing_folder, integer
from training.checkpoint import find_checkpoint, module_state, step_of
from training.command import one_sentence
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


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(prog="python -m vton.export", description=__doc__)
    parser.add_argument("run", type=an_existing_folder)
    parser.add_argument("out", type=a_folder_to_write)
    parser.add_argument("--step", type=integer())
    options = parser.parse_args(argv)
    print(f"update {export(options.run, options.out, options.step)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
