"""`python -m gan.export RUN OUT`: both networks of one checkpoint of a training run as a model folder."""

import dataclasses
import sys
from pathlib import Path

from torch import Tensor

from gan.networks import GanConfig, Pair
from training.checkpoint import find_checkpoint, module_state, step_of
from training.command import launch_export
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
        raise ValueError(f"'{run.name}' holds a run of {recipe.get('task')}, which is not an adversarial net.")
    return from_json(GanConfig, load_config(Run(run).model)), find_checkpoint(Run(run).checkpoints, step)


def export(run: Path, out: Path, step: int | None = None) -> int:
    """Writes the model folder; returns the checkpoint's update number.

    step: which checkpoint; None = the newest. Raises ValueError with one sentence when there is none.
    """
    config, checkpoint = _config_and_checkpoint(run, step)
    save_pair(out, config, module_state(checkpoint), module_state(checkpoint, "discriminator"))
    return step_of(checkpoint)


def main(argv: list[str] | None = None) -> int:
    """The command line; prints the exported update."""
    return launch_export(export, "gan.export", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
