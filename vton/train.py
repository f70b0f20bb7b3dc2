"""`python -m vton.train NETWORK --preset NAME --run DIR ...`: one recipe per network; `all` trains all in turn."""

from __future__ import annotations

import sys

from training.command import launch
from training.memory import keep_memory
from vton.recipes.registry import NETWORKS, RIVALS
from vton.train_all import main as train_all


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] == "all":
        return train_all(argv[1:])
    known = NETWORKS | RIVALS
    if not argv or argv[0] not in known:
        wanted = argv[:1] in (["-h"], ["--help"])
        print(
            f"usage: python -m vton.train {{{','.join(known)}}} --preset NAME --run DIR [--pack FILE] [--resume]\n"
            "       python -m vton.train all --budget MINUTES --preset NAME --run DIR [--pack FILE]",
            file=sys.stdout if wanted else sys.stderr,
        )
        return 0 if wanted else 2
    network = known[argv[0]]
    return launch(network.task, network.recipe, network.presets, argv[1:], f"Trains the {argv[0]} network.")


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
