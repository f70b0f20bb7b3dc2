"""`python -m gan.export RUN OUT`: both networks of one checkpoint of a training run as a model folder."""

import dataclasses
import sys
from pathlib import Path

from torch import Tensor

from gan.networks import GanConfig, Pair
from training.arguments import CommandLine, a_folder_to_write, an_existing_folder, integer
from training.checkpoint import find_checkpoint, module_state, step_of
from training.command import one_sentence
from training.run import Run
from training.weights import fill, from_json, load_config, save_model


def save_pair(out: Path, config: GanConfig, generator: dict[str, Tensor], discriminator: dict[str, Tensor]) -> None:
    """Writes config.json and model.safetensors (fp16) of both networks, as `gan.networks.Pair` reads them."""
    state = {f"generator.{name}": value for name, value in generator.items()}
    state |= {f"discriminator.{name}": value for name, value in discriminator.items()}
    save_model(out, dataclasses.asdict(config), state)


def pair_of(run: Path, step: int | None = None) -> Pair:
    """Both networks of one checkpoint of a run, the newest for None, ready to sample.

    Raises ValueError with one sentence for another network's run, and for a checkpoint that is not there.
    """
    config, checkpoint = _config_and_checkpoint(run, step)
    pair = Pair(config)
    for name, module in (("model", pair.generator), ("discriminator", pair.discriminator)):
        fill(module, module_state(checkpoint, name), f"the networks of '{run.name}'")
    return pair.eval()


def _config_and_checkpoint(run: Path, step: int | None) -> tuple[GanConfig, Path]:
    recipe = Run(run).recipe()
    if recipe.get("task") != "GanTask":
        raise ValueError(f"'{run.name}' holds a run of {recipe.get('task')}, which is no adversarial net.")
    return from_json(GanConfig, load_config(Run(run).model)), find_checkpoint(Run(run).checkpoints, step)


def export(run: Path, out: Path, step: int | None = None) -> int:
    """Writes the model folder; returns the checkpoint's update number.

    step: which checkpoint; None = the newest. Raises ValueError with one sentence when there is none.
    """
    config, checkpoint = _config_and_checkpoint(run, step)
    save_pair(out, config, module_state(checkpoint), module_state(checkpoint, "discriminator"))
    return step_of(checkpoint)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints the exported update."""
    parser = CommandLine(prog="python -m gan.export", description=__doc__)
    parser.add_argument("run", type=an_existing_folder)
    parser.add_argument("out", type=a_folder_to_write)
    parser.add_argument("--step", type=integer(), help="update of the checkpoint; the newest one if left out")
    options = parser.parse_args(argv)
    print(f"update {export(options.run, options.out, options.step)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
