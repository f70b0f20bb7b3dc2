"""`python -m vton.train NETWORK --preset NAME --run DIR ...`: one recipe per network."""

import sys

from training.command import launch
from training.memory import keep_memory
from vton.registry import ALL_NETWORKS


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    networks = ALL_NETWORKS
    if not argv or argv[0] not in networks:
        asks = argv[:1] in (["-h"], ["--help"])
        print(
            f"usage: python -m vton.train {{{','.join(networks)}}} --preset NAME --run DIR [--pack FILE] [--resume]",
            file=sys.stdout if asks else sys.stderr,
        )
        return 0 if asks else 2
    network = networks[argv[0]]
    return launch(network.task, network.recipe, network.presets, argv[1:], f"Trains the {argv[0]} network.")


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
