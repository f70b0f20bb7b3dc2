"""`python -m vton.train NETWORK --preset NAME --run DIR ...`: one recipe per network; `all` trains the four in turn."""
from __future__ import annotations

import sys
from importlib import import_module

from training.command import launch

RECIPES = {"parser": ("vton.recipes.parser", "ParserTask", "ParserRecipe"),
           "segmentation": ("vton.recipes.segmentation", "SegmentationTask", "SegmentationRecipe"),
           "matching": ("vton.recipes.matching", "MatchingTask", "MatchingRecipe"),
           "alias": ("vton.recipes.alias", "AliasTask", "AliasRecipe")}


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] == "all":
        from vton.train_all import main as train_all
        return train_all(argv[1:])
    if not argv or argv[0] not in RECIPES:
        print(f"usage: python -m vton.train {{{','.join(RECIPES)}}} --preset NAME --run DIR [--pack FILE] [--resume]\n"
              "       python -m vton.train all --budget MINUTES --preset NAME --run DIR [--pack FILE]", file=sys.stderr)
        return 2
    module, task, recipe = RECIPES[argv[0]]
    module = import_module(module)
    return launch(getattr(module, task), getattr(module, recipe), module.PRESETS, argv[1:],
                  description=f"Trains the {argv[0]} network.")


if __name__ == "__main__":
    sys.exit(main())
