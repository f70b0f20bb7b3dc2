"""`python -m gan.train --preset line|ring|grid|spiral|digits --run DIR`: trains a generator and a discriminator."""

import sys

from gan.task import PRESETS, GanRecipe, GanTask
from training.command import launch
from training.memory import keep_memory


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return launch(GanTask, GanRecipe, PRESETS, argv, description="Trains generative adversarial nets by Algorithm 1.")


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
