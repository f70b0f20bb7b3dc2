"""`python -m transformer.export RUN OUT`: one checkpoint of a run, or the mean of the last ones, as a model folder."""

import shutil
import sys
from pathlib import Path

from training.checkpoint import average_checkpoints, find_checkpoint, module_state, step_of
from training.command import launch_export
from training.run import Run
from training.weights import load_config, save_model
from transformer.translator import FORMAT

TASKS = ("TranslationTask", "ParseTask")  # of older runs, which do not say more


def export(run: Path, out: Path, step: int | None = None, average: int = 1) -> int:
    """Writes what `Translator.from_pretrained` reads; returns the update of the newest checkpoint in it.

    step: which checkpoint, None = the newest; average: mean of that many checkpoints up to it (section 6.1).
    Raises `ValueError` with one sentence for another network's run, and for a checkpoint that is not there.
    """
    recipe, folder = Run(run).recipe(), Run(run).model
    has_config = (folder / "config.json").is_file()
    if load_config(folder).get("format") != FORMAT if has_config else recipe.get("task") not in TASKS:
        raise ValueError(f"'{run.name}' holds a run of {recipe.get('task')}, which is not a Transformer.")
    if not (folder / "tokenizer.model").is_file():
        raise ValueError(
            f"'{run.name}' holds no tokenizer beside its checkpoints; resume the run once to have it written."
        )
    checkpoint = find_checkpoint(run / "checkpoints", step)
    state = module_state(checkpoint) if average == 1 else average_checkpoints(run, average, last=step_of(checkpoint))
    save_model(out, load_config(folder), state)
    shutil.copyfile(folder / "tokenizer.model", out / "tokenizer.model")
    return step_of(checkpoint)


def main(argv: list[str] | None = None) -> int:
    """The command line; prints the exported update."""
    return launch_export(export, "transformer.export", __doc__, argv, average=True)


if __name__ == "__main__":
    sys.exit(main())
