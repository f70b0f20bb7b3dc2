"""`python -m lab.tryon.train_all --budget MINUTES --pack FILE --run DIR --preset NAME`: all networks in a given time.

Each network gets its share of the budget. A few updates and an evaluation are timed first, so that the learning rate's
schedule ends with the share. The same command goes on where it was stopped; a larger budget goes on where the smaller
one ended. DIR/weights is a model folder for `TryOn.from_pretrained` when all are done.

Nothing is needed but torch, numpy, opencv, pillow, safetensors and accelerate, and the packed file.
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path

from training.arguments import CommandLine, a_folder_to_write, a_number, a_seed
from training.command import launch, one_sentence, timing
from training.memory import keep_memory
from training.run import Run
from vton.registry import NETWORKS

SHARES = {
    "parser": 0.25,
    "segmentation": 0.2,
    "matching": 0.15,
    "alias": 0.3,
    "garment": 0.1,
}  # of the budget, in this order
TRAINING = 0.9  # share of the time that is spent on updates and evaluations; the rest goes to samples and checkpoints
TRIAL_UPDATES = 5  # updates


def perceptual_features(parser: Path) -> str:
    """What ALIAS's perceptual loss looks through: "vgg19" where its weights can be had, else the trained parser."""
    from vton.recipes.alias import feature_network

    try:
        feature_network("vgg19")
        return "vgg19"
    except (ValueError, ImportError):
        return str(parser)


def steps_for(run: Run, build, recipe, minutes: float) -> int:
    """Updates in all that fit into `minutes` over all resumes, at the speed of this machine."""
    logs = [event for event in run.events() if event["event"] == "log"]
    if logs:
        return max(1, round(logs[-1]["step"] * minutes / recipe.max_minutes))
    times = timing(build, recipe, TRIAL_UPDATES, evaluation=bool(recipe.evaluate_every))
    seconds, ends = times["seconds_per_step"], 0.0
    if recipe.evaluate_every:  # one before the first update, one after the last, and those between
        seconds += times["evaluation_seconds"] / recipe.evaluate_every
        ends = 2 * times["evaluation_seconds"]
    return max(1, int((TRAINING * 60 * minutes - ends) / seconds))


def last_event(run: Run) -> dict:
    """The newest line of a run's log; empty if there is none."""
    return next(iter(deque(run.events(), maxlen=1)), {})


def train_one(network: str, folder: Path, minutes: float, preset: str, fields: list[str]) -> str:
    """Trains one network for its minutes and exports it; returns 'done', 'stopped' (by a person) or 'failed'."""
    entry = NETWORKS[network]
    task, recipe_class, presets = entry.task, entry.recipe, entry.presets
    preset = preset if preset in presets else "lite-gpu"  # the parser is not the paper's
    run, weights, fields = Run(folder / network), folder / "weights" / network, list(fields)
    last_recipe = run.recipe() if (run.folder / "recipe.json").exists() else {}
    last = last_event(run)
    if (
        last_recipe
        and last_recipe["max_minutes"] == minutes
        and weights.exists()
        and (last.get("event") == "finished" or "reason" in last)
    ):
        print(f"{network}: done", flush=True)
        return "done"
    if network == "alias" and "--features" not in fields and presets[preset].get("perceptual", 1):
        fields += ["--features", last_recipe.get("features") or perceptual_features(folder / "weights" / "parser")]
    if not last_recipe or last_recipe["max_minutes"] != minutes:
        overrides = {name[2:].replace("-", "_"): value for name, value in zip(fields[::2], fields[1::2])}
        start = last_recipe or {**presets[preset], **convert(recipe_class, overrides)}
        fields += ["--steps", str(steps_for(run, task, recipe_class.restore(start), minutes))]
    print(f"{network}: {minutes:.1f} minutes, {' '.join(fields)}", flush=True)
    arguments = [
        "--preset",
        preset,
        "--run",
        str(run.folder),
        "--resume",
        "--export",
        str(weights),
        "--max-minutes",
        str(minutes),
        *fields,
    ]
    if launch(task, recipe_class, presets, arguments, description=f"Trains the {network} network."):
        return "failed"
    last = last_event(run)
    return "stopped" if last.get("event") == "stopped" and "reason" not in last else "done"


def convert(recipe_class: type, overrides: dict[str, str]) -> dict:
    """Fields from the command line as numbers where the recipe has numbers."""
    defaults = recipe_class()
    return {k: type(getattr(defaults, k))(v) for k, v in overrides.items()}


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(prog="python -m lab.tryon.train_all", description=__doc__)
    parser.add_argument(
        "--budget", type=a_number(above=0), required=True, metavar="MINUTES", help="for all networks and resumes"
    )
    parser.add_argument(
        "--run", type=a_folder_to_write, required=True, metavar="DIR", help="each network's run folder goes below it"
    )
    parser.add_argument("--pack", type=Path, metavar="FILE", help="packed photographs; without it draped people")
    parser.add_argument("--preset", default="lite-gpu", choices=("lite-cpu", "lite-gpu", "paper", "draped"))
    parser.add_argument(
        "--features",
        metavar="NAME",
        help="for ALIAS's perceptual loss: vgg19, or the folder of a trained "
        "parser; default: vgg19 where it can be had, else the parser trained here",
    )
    parser.add_argument("--seed", type=a_seed, default=1)
    options = parser.parse_args(argv)
    if options.pack and not options.pack.is_file():
        raise ValueError(f"There is no packed file '{options.pack.name}'; make one with python -m vton.data.")
    for network, share in SHARES.items():
        fields = ["--seed", str(options.seed)] + (["--pack", str(options.pack)] if options.pack else [])
        if network == "alias" and options.features:
            fields += ["--features", options.features]
        outcome = train_one(network, options.run, round(options.budget * share, 4), options.preset, fields)
        if outcome == "failed":
            return 2
        if outcome == "stopped":
            print(f"stopped in {network}; the same command goes on", flush=True)
            return 0
    print(options.run / "weights", flush=True)
    return 0


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
