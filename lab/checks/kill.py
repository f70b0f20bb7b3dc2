"""A training that is killed again and again: `python -m lab.checks.kill --kills 100 --full 20 --seed 1`.

A small training runs once undisturbed. Then the same training is killed (SIGKILL) at random moments and resumed until
it ends, and again on a disk that is full at random moments (a limit on the size of files that may be written, so the
operating system itself refuses). Each time the last checkpoint has to be the undisturbed one, bit for bit, and no
half-written checkpoint may be listed. Prints one JSON object; the exit status is 1 if anything differed.

Every start is a process of its own, forked from one that has read the libraries and computed nothing. Linux only.
"""

import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from gan import train  # read once, before the forks
from training.arguments import CommandLine, a_number, a_seed, integer
from training.checkpoint import latest_checkpoint, list_checkpoints
from training.command import one_sentence

FIELDS = ["--preset", "line", "--save-every", "5", "--evaluate-every", "20", "--log-every", "5", "--threads", "1"]
MAX_STARTS = 40  # of one disturbed training, before it counts as stuck
LONGEST = 300  # seconds of one process
MAX_MISSES = 8  # trainings in a row that ended before their first disturbance


def command(run: Path, steps: int, resume: bool) -> list[str]:
    """The arguments of `gan.train` for this run."""
    return [*FIELDS, "--steps", str(steps), "--run", str(run), *(["--resume"] if resume else [])]


def _train(arguments: list[str], most_bytes: int | None) -> None:
    """What the process does."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    if most_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails with an error instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    sys.exit(train.main(arguments) or 0)


def start(arguments: list[str], most_bytes: int | None = None) -> multiprocessing.process.BaseProcess:
    """Starts a process that trains. most_bytes: no file may become larger than this."""
    process = multiprocessing.get_context("fork").Process(target=_train, args=(arguments, most_bytes))
    process.start()
    return process


def fingerprint(run: Path) -> str:
    """SHA-256 of the newest checkpoint: weights, optimizer and state, but for the time it was written."""
    folder = latest_checkpoint(run / "checkpoints")
    if folder is None:
        return "none"
    digest = hashlib.sha256(folder.name.encode())
    for name in ("model.safetensors", "optimizer.safetensors"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def whole(run: Path) -> bool:
    """Whether every listed checkpoint holds all its files."""
    files = {"model.safetensors", "optimizer.safetensors", "state.json"}
    return all(files <= {file.name for file in folder.iterdir()} for folder in list_checkpoints(run / "checkpoints"))


def is_complete(run: Path, steps: int) -> bool:
    """Whether the checkpoint of the last update is there."""
    folder = latest_checkpoint(run / "checkpoints")
    return folder is not None and int(folder.name.split("-")[1]) == steps


def kill_training(folder: Path, steps: int, seconds: float, kills: int, rng: random.Random) -> tuple[Path, int, bool]:
    """One training with up to `kills` kills at random moments: its folder, the kills,
    whether checkpoints stayed whole.
    """
    run, count, good = folder / f"killed-{rng.randrange(10**9)}", 0, True
    for _ in range(MAX_STARTS):
        process = start(command(run, steps, resume=(run / "recipe.json").exists()))
        process.join(rng.uniform(0.05, 1.0) * seconds if count < kills else LONGEST)
        if process.exitcode is None:
            process.kill()
            process.join()
            count += 1
        good = good and whole(run)
        if is_complete(run, steps):
            break
    return run, count, good


def fill_disk(folder: Path, steps: int, most: int, times: int, rng: random.Random) -> tuple[Path, int, bool]:
    """One training that meets a full disk up to `times` times, then room: its folder, refusals, whether all stayed
    whole.

    most: bytes of the largest file of a checkpoint; no attempt may write one as large.
    """
    run, refusals, good = folder / f"full-{rng.randrange(10**9)}", 0, True
    for attempt in range(MAX_STARTS):
        limit = rng.randrange(most) if attempt < times else None
        process = start(command(run, steps, resume=(run / "recipe.json").exists()), limit)
        process.join(LONGEST)
        refusals += int(process.exitcode != 0)
        good = good and whole(run)
        if limit is None and is_complete(run, steps):
            break
    return run, refusals, good


def measure(kills: int, full: int, seed: int, steps: int = 60, minutes: float = 1e9) -> dict:
    """Runs all of it. kills, full: disturbances of each kind, ten to a training; seed: of the moments; steps: updates;
    minutes: no further training after half of it for either kind.

    Returns the counts and what differed.
    """
    rng, differing, counts = random.Random(seed), [], {"kills": 0, "full": 0}
    with tempfile.TemporaryDirectory(prefix="atelier-kill-") as temporary:
        folder = Path(temporary)
        began = time.monotonic()
        start(command(folder / "whole", steps, False)).join(LONGEST)
        seconds, target = time.monotonic() - began, fingerprint(folder / "whole")
        newest = list_checkpoints(folder / "whole" / "checkpoints")[-1]
        largest = max(file.stat().st_size for file in newest.iterdir())
        for kind, disturb, most in (("kills", kill_training, kills), ("full", fill_disk, full)):
            until, misses = time.monotonic() + 60 * minutes / 2, 0
            while counts[kind] < most and time.monotonic() < until:
                share = min(10, most - counts[kind])
                arguments = (seconds, share, rng) if kind == "kills" else (largest, share, rng)
                run, count, good = disturb(folder, steps, *arguments)
                counts[kind] += count
                misses = 0 if count else misses + 1
                if not count:  # it was over too soon: the machine is less busy than when `seconds` were measured
                    seconds *= 0.7
                if misses > MAX_MISSES:
                    raise RuntimeError(f"No disturbance reached the training ({kind}).")
                if not good or fingerprint(run) != target:
                    differing.append(run.name)
    return {"kills": counts["kills"], "disk_full": counts["full"], "seed": seed, "steps": steps, "differing": differing}


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(prog="python -m lab.checks.kill", description="Kill a training and resume it.")
    parser.add_argument("--kills", type=integer(), default=100)
    parser.add_argument("--full", type=integer(), default=20, help="how often the disk is full")
    parser.add_argument("--seed", type=a_seed, default=1)
    parser.add_argument("--minutes", type=a_number(0), default=1e9, help="fewer disturbances where it takes longer")
    parser.add_argument("--steps", type=integer(1), default=60, help="updates of each training")
    options = parser.parse_args(argv)
    report = measure(options.kills, options.full, options.seed, options.steps, options.minutes)
    print(json.dumps(report))
    return int(bool(report["differing"]))


if __name__ == "__main__":
    raise SystemExit(main())
