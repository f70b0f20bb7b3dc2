"""Command line of every recipe: a preset, single fields over it, and a run folder."""

import argparse
import dataclasses
import functools
import json
import os
import shutil
import sys
import tempfile
import textwrap
import time
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from training.arguments import (
    MAX_SEED,
    CommandLine,
    a_boolean,
    a_folder_to_write,
    a_number,
    an_existing_folder,
    in_words,
    integer,
)
from training.checkpoint import average_checkpoints, latest_checkpoint, list_checkpoints
from training.fork import fork
from training.loop import TrainingError, fit, log_quietly
from training.recipe import Recipe
from training.run import Run, RunLockError
from training.task import Task

R = TypeVar("R", bound=Recipe)
# How the text of a field is read; what else a field asks for, `Recipe.check` says.
CONVERT: dict[type, Callable[[str], Any]] = {int: integer(-MAX_SEED, MAX_SEED), float: a_number(), bool: a_boolean}

# How torch says that sizes do not fit into memory, or not even into a number.
TOO_LARGE = ("can't allocate memory", "out of memory", "size calculation overflowed", "invalid argument of size")


def one_sentence(main: Callable[..., int | None]) -> Callable[..., int]:
    """Decorates a command's `main`: a mistake of the user is one sentence on standard error, and the exit status 2."""

    @functools.wraps(main)
    def explain(*args, **kwargs) -> int:
        try:
            return main(*args, **kwargs) or 0
        except OSError as error:
            print(f"error: {in_words(error)}", file=sys.stderr)
        except (ValueError, RunLockError, TrainingError) as error:
            print(f"error: {error}", file=sys.stderr)
        except (MemoryError, OverflowError, RuntimeError) as error:
            if not is_too_large(error):
                raise
            print("error: this does not fit into the memory; choose smaller numbers", file=sys.stderr)
        return 2

    return explain


def is_too_large(error: BaseException) -> bool:
    """Whether an error says that there is no memory for what was asked; torch has a word of its own on processors."""
    message = str(error)
    return not isinstance(error, RuntimeError) or any(words in message for words in TOO_LARGE)


@one_sentence
def launch(
    build: Callable[[R], Task],
    recipe_class: type[R],
    presets: dict[str, dict],
    argv: list[str] | None = None,
    description: str = "",
) -> int:
    """Parses `argv`, builds the recipe and the task, and trains; returns the exit status.

    build: makes the Task from a finished recipe.
    presets: name -> the fields that differ from the dataclass's defaults. The first one is the default.

    With `--resume` the recipe of the run folder is used, with `--fork` that of the other run, and the fields given on
    the command line over it.
    Mistakes of the user are printed as one sentence on standard error (status 2).
    """
    parser = _parser(recipe_class, presets, description)
    options = parser.parse_args(argv)
    names = {f.name for f in dataclasses.fields(recipe_class)}
    overrides = {k: v for k, v in vars(options).items() if k in names and v is not None}
    if options.time:
        print(json.dumps(timing(build, recipe_class(**{**presets[options.preset], **overrides}), options.time)))
        return 0
    if options.run is None:
        parser.error("the following arguments are required: --run")
    run = Run(options.run)
    new = not run.folder.exists()
    status = one_sentence(_work_and_tell)(run, build, recipe_class, presets[options.preset], overrides, options)
    is_empty = run.holds_lock and latest_checkpoint(run.checkpoints) is None
    if status and new and (is_empty or options.fork):
        shutil.rmtree(run.folder, ignore_errors=True)
    run.release()
    return status


def _parser(recipe_class: type[Recipe], presets: dict[str, dict], description: str) -> CommandLine:
    """The command line of a recipe: its presets, its folders, and one option for each field."""
    parser = CommandLine(description=description)
    first = next(iter(presets))
    parser.add_argument("--preset", choices=list(presets), default=first, help="where to begin")
    parser.add_argument("--run", type=a_folder_to_write, metavar="DIR", help="run folder")
    timing_help = "only time N updates: print seconds a step, keep nothing"
    parser.add_argument("--time", type=integer(1), metavar="N", help=timing_help)
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    parser.add_argument("--fork", type=Path, metavar="DIR", help="begin as a copy of this run's newest checkpoint")
    parser.add_argument("--fork-step", type=integer(), metavar="N", help="of its checkpoint of update N instead")
    parser.add_argument("--export", type=a_folder_to_write, metavar="DIR", help="write the trained weights there")
    fields = parser.add_argument_group("fields of the recipe", "They go before what the preset says.")
    hints, meanings = typing.get_type_hints(recipe_class), recipe_class.meanings()
    for field in dataclasses.fields(recipe_class):
        kind = hints[field.name]
        # `--compile` by itself means `--compile true`.
        alone: dict[str, Any] = {"nargs": "?", "const": True} if kind is bool else {}
        fields.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=CONVERT.get(kind, str),
            metavar=kind.__name__.upper() if hasattr(kind, "__name__") else "VALUE",
            help=f"{meanings[field.name]} (default: {field.default!r})".replace("%", "%%"),
            **alone,
        )
    parser.epilog = "What the presets set:"
    for name, preset in presets.items():
        line = f"  {name}: {', '.join(f'{field} {value!r}' for field, value in preset.items())}"
        parser.epilog += "\n" + textwrap.fill(line, 100, subsequent_indent="    ")
    return parser


def _work(
    run: Run,
    build: Callable[[R], Task],
    recipe_class: type[R],
    preset: dict[str, Any],
    overrides: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Trains in the folder of `run`; the command line's fields `overrides` go before the preset's or the run's."""
    main = int(os.environ.get("RANK", "0")) == 0
    fields = dict(preset)
    if options.resume and not options.fork and (run.folder / "recipe.json").exists():
        fields = run.recipe()
    if not options.fork:
        recipe_class.restore(fields, **overrides).check()  # before the folder is made
    if main:
        run.acquire()
        run.beat("preparing")
    if options.fork:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ValueError("One process makes a fork; stop it after its first update and resume it with several.")
        fields = fork(run, Run(options.fork), options.fork_step)
    recipe = recipe_class.restore(fields, **overrides)
    recipe.check()
    print(json.dumps(dataclasses.asdict(recipe)), flush=True)
    torch.manual_seed(recipe.seed)  # the initial weights
    task = build(recipe)
    outcome = fit(task, recipe, run, resume=options.resume or bool(options.fork))
    if options.export and main:
        export(task, recipe, run, options.export)
    print(outcome, flush=True)


def _work_and_tell(run: Run, *arguments: Any) -> None:
    """`_work`; the page made the folder before this process began, and waits there for a word."""
    try:
        _work(run, *arguments)
    except (ValueError, OSError) as error:
        if run.holds_lock and run.command() and not any(run.events()):
            log_quietly(run, "failed", reason=in_words(error) if isinstance(error, OSError) else str(error))
        raise


def timing(build: Callable[[R], Task], recipe: R, updates: int, evaluation: bool = False) -> dict[str, float]:
    """Trains a few updates in a folder that is thrown away: seconds a step, parameters, and memory in MB.

    evaluation: also the seconds of one evaluation (`evaluation_seconds`).
    """
    recipe = dataclasses.replace(
        recipe, steps=updates + 1, log_every=1, evaluate_every=0, patience=0, max_minutes=0, max_megabytes=0
    )
    recipe.check()
    torch.manual_seed(recipe.seed)
    task = build(recipe)
    marks: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        fit(task, recipe, run, quiet=True, before_update=lambda step: marks.append(time.process_time()))
        logs = [event for event in Run(run).events() if event["event"] == "log"]
    times = sorted(event["seconds_per_step"] for event in logs[1:])  # the first update pays for what is made once
    cpu = sorted(b - a for a, b in zip(marks[-updates:], marks[-updates + 1 :])) or [0.0]
    figures = {
        "seconds_per_step": times[len(times) // 2],
        "cpu_seconds_per_step": cpu[len(cpu) // 2],
        "parameters": sum(p.numel() for p in task.modules["model"].parameters()),
        "memory_mb": logs[-1]["memory_mb"],
    }
    if evaluation:
        for module in task.modules.values():
            module.eval()
        began = time.perf_counter()
        with torch.no_grad():
            task.evaluate()
        figures["evaluation_seconds"] = time.perf_counter() - began
    return figures


@one_sentence
def launch_export(
    export: Callable[..., int], module: str, description: str, argv: list[str] | None = None, average: bool = False
) -> int:
    """The command line that writes a checkpoint of a run as a model folder; prints its update.

    export: gets the folders `run` and `out` and the `step`, None for the newest, and returns the update number.
    average: it also gets `average`, the number of checkpoints whose mean is written.
    """
    parser = CommandLine(prog=f"python -m {module}", description=description)
    parser.add_argument("run", type=an_existing_folder)
    parser.add_argument("out", type=a_folder_to_write)
    parser.add_argument("--step", type=integer(), help="update of the checkpoint; the newest one if left out")
    if average:
        mean = "mean of the last N checkpoints up to it"
        parser.add_argument("--average", type=integer(1), default=1, metavar="N", help=mean)
    print(f"update {export(**vars(parser.parse_args(argv)))}")
    return 0


def export(task: Task, recipe: Recipe, run: Run, folder: Path) -> None:
    """Writes the trained weights: the mean of the last `recipe.average` checkpoints, of fewer where there are fewer."""
    number = min(recipe.average, len(list_checkpoints(run.checkpoints)))
    if number > 1:
        task.modules["model"].load_state_dict(average_checkpoints(run.folder, number))
    for module in task.modules.values():
        module.eval()
    task.export(folder)
