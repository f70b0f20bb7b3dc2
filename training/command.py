"""Command line of every recipe: a preset, single fields over it, and a run folder."""
from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import typing
from pathlib import Path
from typing import Callable

import torch

from training.loop import TrainingFailed, fit
from training.recipe import Recipe, Task
from training.run import Run


def launch(build: Callable[[Recipe], Task], recipe_class: type[Recipe], presets: dict[str, dict],
           argv: list[str] | None = None, description: str = "") -> int:
    """Parses `argv`, builds the recipe and the task, and trains; returns the exit status.

    Args:
        build: makes the Task from a finished recipe.
        presets: name -> the fields that differ from the dataclass's defaults. The first one is the default.

    With `--resume` the recipe of the run folder is used, with the fields given on the command line over it.
    Mistakes of the user are printed as one sentence on standard error (status 2).
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--preset", choices=list(presets), default=next(iter(presets)))
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="run folder")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    parser.add_argument("--export", type=Path, metavar="DIR", help="write the trained weights there at the end")
    hints = typing.get_type_hints(recipe_class)
    for field in dataclasses.fields(recipe_class):
        kind = hints[field.name]
        convert = _boolean if kind is bool else kind if kind in (int, float) else str
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=convert, default=None, metavar=kind.__name__.upper()
                            if hasattr(kind, "__name__") else "VALUE", help=argparse.SUPPRESS)
    parser.epilog = "Fields: " + ", ".join(f"--{f.name.replace('_', '-')}" for f in dataclasses.fields(recipe_class))
    options = parser.parse_args(argv)
    names = {f.name for f in dataclasses.fields(recipe_class)}
    given = {k: v for k, v in vars(options).items() if k in names and v is not None}
    try:
        fields = dict(presets[options.preset])
        if options.resume and (options.run / "recipe.json").exists():
            saved = Run(options.run).recipe()
            fields = {k: v for k, v in saved.items() if k in names}
        recipe = recipe_class(**{**fields, **given})
        recipe.check()
        print(json.dumps(dataclasses.asdict(recipe)), flush=True)
        torch.manual_seed(recipe.seed)  # the initial weights
        task = build(recipe)
        outcome = fit(task, recipe, options.run, resume=options.resume)
        if options.export:
            for module in task.modules.values():
                module.eval()
            task.export(options.export)
    except (ValueError, RuntimeError, OSError) as error:
        if isinstance(error, RuntimeError) and not isinstance(error, TrainingFailed) and "training in" not in str(error):
            raise  # a fault of the program, not of the user
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(outcome, flush=True)
    return 0


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "yes", "1", "on"):
        return True
    if text.lower() in ("false", "no", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")
