"""The one training loop. It owns time, files and devices; a Task owns the tensors.

take the lock; resume from the newest checkpoint; before the first update: evaluate, sample
for every update:
    learning rate(step) -> micro-batches(step) -> backward, check for NaN, clip, optimizer step
    now and then: log, evaluate, sample, checkpoint
    asked to stop, out of patience or at a limit: save and return
"""

import contextlib
import errno
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from training.checkpoint import latest_checkpoint, load_checkpoint, prune, save_checkpoint
from training.devices import has_bf16
from training.recipe import Recipe
from training.run import Run
from training.task import Task, Trainer


class TrainingError(RuntimeError):
    """The run cannot go on; the message says why in one sentence. The last good checkpoint is kept."""


def fit(
    task: Task,
    recipe: Recipe,
    folder: Run | Path | str,
    resume: bool = False,
    quiet: bool = False,
    before_update: Callable[[int], None] | None = None,
) -> str:
    """Trains `task` to `recipe.steps` updates in the run folder; returns 'finished' or 'stopped'.

    folder: a path, or a Run whose lock the caller may hold already.
    resume: goes on from the newest whole checkpoint; the updates are then the same, bit for bit, as without the
        interruption (same machine, torch version and number of threads).
    quiet: prints nothing.
    before_update: called with the number of each update before it is made.

    SIGTERM, SIGINT or a file `STOP` in the folder end it after the current update, with a checkpoint; so do the
    recipe's limits. It is finished early when `recipe.patience` evaluations in a row were no better than the best.

    Raises RunLockError when another process trains in this folder, ValueError when the folder already holds a run and
    `resume` is False, TrainingError on a loss that is not finite and on a full disk.
    """
    recipe.check()
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    accelerator = _accelerator(recipe)
    main = accelerator.is_main_process
    run = folder if isinstance(folder, Run) else Run(folder)
    if main and not run.holds_lock:
        run.acquire()
    try:
        first, best, seconds = _begin(task, recipe, run, accelerator, resume)
        return _Loop(task, recipe, run, accelerator, first, best, seconds, quiet, before_update)()
    except TrainingError as error:
        if main:
            log_quietly(run, "failed", reason=str(error))
        raise
    except OSError as error:
        failure = TrainingError(f"{_disk_sentence(error)}; the last checkpoint is good. Make room and resume.")
        if main:
            log_quietly(run, "failed", reason=str(failure))
        raise failure from error
    except Exception as error:
        if main and not isinstance(error, ValueError):
            log_quietly(run, "failed", reason=f"{type(error).__name__}: {error}")
        raise
    finally:
        run.release()


def _accelerator(recipe: Recipe) -> Any:
    """Accelerate for this machine: one CPU, one GPU, or several processes."""
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for each shape, and sentences have many
    return Accelerator(
        cpu=device == "cpu",
        mixed_precision=recipe.precision if has_bf16(device) else "no",  # emulated, it is far slower than fp32
        kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
    )


def _begin(
    task: Task, recipe: Recipe, run: Run, accelerator: Any, resume: bool
) -> tuple[int, dict[str, Any] | None, float]:
    """Restores the newest checkpoint, writes the first files: updates done, best evaluation, seconds spent."""
    last = latest_checkpoint(run.checkpoints)
    has_start = run.events_file.exists() and any(event["event"] == "start" for event in run.events())
    if not resume and (last or has_start):  # a start that met a full disk has begun nothing
        raise ValueError(f"'{run.folder.name}' already holds a run; add --resume to go on, or choose another folder.")
    accelerator.wait_for_everyone()  # a slower process would take the first line written below for an older run
    torch.manual_seed(recipe.seed + accelerator.process_index)
    first, best, seconds = 0, None, 0.0
    if last:
        state, generators = load_checkpoint(last, task)
        first, best, seconds = state["step"], state.get("best"), state.get("seconds", 0.0)
        _restore_generators(generators, accelerator.process_index)
    if accelerator.is_main_process:
        _describe(task, run, new=last is None)
        run.write_recipe(recipe, type(task).__name__)
        run.write_plan(*_plan(task, recipe))
        run.rewind(first)
        run.log(
            "start",
            step=first,
            steps=recipe.steps,
            device=str(accelerator.device),
            processes=accelerator.num_processes,
            threads=torch.get_num_threads(),
            precision=accelerator.mixed_precision,
            torch=torch.__version__,
            process=os.getpid(),
            parameters={k: sum(p.numel() for p in m.parameters()) for k, m in task.modules.items()},
        )
    return first, best, seconds


class _Loop:
    """One call of `fit` from its first update to its last, and what it has to remember in between.

    first: number of updates that were done before. best: see `_compare`. seconds: spent before, over all resumes.
    """

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        run: Run,
        accelerator: Any,
        first: int,
        best: dict | None,
        seconds: float,
        quiet: bool,
        before_update: Callable[[int], None] | None,
    ):
        self.task, self.recipe, self.run, self.accelerator = task, recipe, run, accelerator
        self.first, self.best, self.seconds = first, best, seconds
        self.quiet, self.before_update = quiet, before_update
        self.main, self.trainer = accelerator.is_main_process, Trainer(accelerator, task, recipe)
        self.stop = threading.Event()
        # Since the last line of the log: the sums of each term, how many items, the update, the time.
        self.sums: dict[str, float] = {}
        self.items, self.last_log = 0, first
        self.began = self.clock = time.perf_counter()
        self.batches: Iterator[Any] = iter(())

    def __call__(self) -> str:
        """All updates; returns 'finished' or 'stopped'."""
        _place(self.task, self.recipe, self.accelerator)
        restore = _on_signals(self.stop)
        try:
            if self.first == 0 and self.recipe.evaluate_every:  # what the untrained network does
                self._evaluate(0)
            _train_mode(self.task, True)
            self.batches = iter(_ahead(self.task, self.recipe, self.trainer, self.first))
            for step in range(self.first + 1, self.recipe.steps + 1):
                rates = self._update(step)
                if self.main and (step - self.last_log >= self.recipe.log_every or step == self.recipe.steps):
                    self._log(step, rates)
                ending = self._after(step)
                if ending:
                    return ending
            if self.main:
                self.run.log("finished", step=max(self.first, self.recipe.steps))
            return "finished"
        finally:
            restore()

    def _update(self, step: int) -> dict[str, float]:
        """One update; returns the learning rates. Raises TrainingError when a number is not finite."""
        if self.before_update:
            self.before_update(step)
        task, trainer = self.task, self.trainer
        rates = task.learning_rates(step)
        for name, rate in rates.items():
            for group in task.optimizers[name].param_groups:
                group["lr"] = rate
        batches = []
        for _ in range(self.recipe.accumulate):
            batch = next(self.batches)
            if self.accelerator.device.type != "cpu":
                from accelerate.utils import send_to_device

                batch = send_to_device(batch, self.accelerator.device)
            self.items += task.count(batch)
            batches.append(batch)
        terms = task.update(batches, trainer)
        _check_finite(terms, trainer, step)
        if self.main:
            self.run.beat("training", step, terms)
        for name, value in terms.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        return rates

    def _log(self, step: int, rates: dict[str, float]) -> None:
        now, n = time.perf_counter(), step - self.last_log
        elapsed = now - self.clock
        means = {name: value / n for name, value in self.sums.items()}
        self.run.log(
            "log",
            step=step,
            losses=means,
            learning_rates=rates,
            gradient_norms=dict(self.trainer.gradient_norms),
            items_per_second=self.items * self.trainer.world / elapsed,
            seconds_per_step=elapsed / n,
            seconds_left=(self.recipe.steps - step) * (now - self.began) / (step - self.first),
            memory_mb=_memory_mb(),
        )
        if not self.quiet:
            text = "  ".join(f"{name} {value:.4f}" for name, value in means.items())
            print(f"step {step}/{self.recipe.steps}  {text}  {elapsed / n:.3f} s/step", flush=True)
        self.clock, self.items, self.sums, self.last_log = now, 0, {}, step

    def _after(self, step: int) -> str:
        """Evaluates and saves where it is time; 'finished' or 'stopped' where the run ends before its last update."""
        recipe, trainer, final = self.recipe, self.trainer, step == self.recipe.steps
        if recipe.evaluate_every and (step % recipe.evaluate_every == 0 or final):
            self._evaluate(step)
        # One process decides for all: the others have seen neither the figures nor the clock.
        best = self.best
        is_best = _any_process(best is not None and best["step"] == step, trainer)
        early = _any_process(bool(recipe.patience and best and best["waited"] >= recipe.patience), trainer)
        seconds = self.seconds + time.perf_counter() - self.began
        saving = step % recipe.save_every == 0
        limit = _limit(recipe, self.run, seconds, saving) if self.main else ""
        ending = _any_process(bool(limit) or self.stop.is_set() or self.run.stop_file.exists(), trainer)
        if saving or final or ending or is_best or early:
            if self.main:
                self.run.beat("saving", step)
            _save(self.task, recipe, self.run, self.accelerator, step, best, seconds)
            self.clock = time.perf_counter()
        if final or not (early or ending):
            return ""
        if self.main and early and best:
            reason = f"{recipe.patience} evaluations were no better than that of update {best['step']}"
            self.run.log("finished", step=step, reason=reason)
        elif self.main and not early:
            self.run.log("stopped", step=step, **({"reason": limit} if limit else {}))
            self.run.stop_file.unlink(missing_ok=True)
        return "finished" if early else "stopped"

    def _evaluate(self, step: int) -> None:
        """Runs in evaluation mode and leaves the random generator as it was, so evaluating changes no later update."""
        if self.main:
            self.run.beat("evaluating", step)
            state = torch.get_rng_state()
            _train_mode(self.task, False)
            try:
                with torch.no_grad():
                    figures = self.task.evaluate()
                    folder = self.run.samples(step)
                    folder.mkdir(parents=True, exist_ok=True)
                    self.task.sample(folder, step)
            finally:
                _train_mode(self.task, True)
                torch.set_rng_state(state)
            self.run.log("evaluation", step=step, figures=figures)
            if not self.quiet and figures:
                print(f"step {step}  " + "  ".join(f"{k} {v:.4f}" for k, v in figures.items()), flush=True)
            if step:
                self.best = _compare(self.task.best, self.best, figures, step)
        self.clock = time.perf_counter()


class _Batches(Dataset):
    """The micro-batches of this process, by their number from the run's first."""

    def __init__(self, task: Task, accumulate: int, rank: int, world: int) -> None:
        self.task, self.accumulate, self.rank, self.world = task, accumulate, rank, world

    def __getitem__(self, number: int) -> Any:
        step, micro = divmod(number, self.accumulate)
        return self.task.batch(step + 1, micro, self.rank, self.world)


def _ahead(task: Task, recipe: Recipe, trainer: Trainer, first: int) -> Iterable[Any]:
    """The micro-batches that follow `first` updates; `recipe.workers` processes make them ahead of time, in order."""
    batches = _Batches(task, recipe.accumulate, trainer.rank, trainer.world)
    numbers = range(first * recipe.accumulate, recipe.steps * recipe.accumulate)
    if not recipe.workers or not numbers:
        return map(batches.__getitem__, numbers)
    batches[numbers[0]]  # what a task makes at first use is made once, before the processes part
    return DataLoader(
        batches,
        batch_size=None,
        sampler=numbers,
        num_workers=recipe.workers,
        collate_fn=lambda batch: batch,
        prefetch_factor=8,
        multiprocessing_context="fork",
        generator=torch.Generator(),  # torch's own is left alone: dropout is the same with and without workers
    )


def _place(task: Task, recipe: Recipe, accelerator: Any) -> None:
    """Moves modules and optimizer states to the device, and prepares the modules for several processes."""
    task.replicas = {}
    for name, module in task.modules.items():
        module.to(accelerator.device)
        task.replicas[name] = module
        if any(p.requires_grad for p in module.parameters()):
            replica: Any = accelerator.prepare_model(module)
            network: Any = torch.compile(replica) if recipe.compile else replica
            task.replicas[name] = network
    for optimizer in task.optimizers.values():  # a checkpoint's state was loaded on the CPU
        fused = any(group.get("fused") for group in optimizer.param_groups)  # those count their steps on the card
        for values in optimizer.state.values():
            for key, value in values.items():
                if torch.is_tensor(value) and (fused or key != "step"):
                    values[key] = value.to(accelerator.device)


def _check_finite(terms: dict[str, float], trainer: Trainer, step: int) -> None:
    """Raises TrainingError that names the first loss term, or else the gradient, that is not finite."""
    bad = [f"The loss term '{name}' became {value}" for name, value in terms.items() if not math.isfinite(value)]
    if trainer.bad_gradient:
        bad += [f"The gradient of '{trainer.bad_gradient}' became {trainer.gradient_norms[trainer.bad_gradient]}"]
    if bad:
        raise TrainingError(
            f"{bad[0]} at update {step}; the run stopped and its last checkpoint is good. "
            "Lower the learning rate and resume."
        )


def _compare(goal: tuple[str, str] | None, best: dict | None, figures: dict[str, float], step: int) -> dict | None:
    """The best evaluation so far: its step and value, and how many evaluations there were since then (`waited`)."""
    if not goal or goal[0] not in figures:
        return best
    value = figures[goal[0]]
    if best is None:
        return {"step": step, "value": value, "waited": 0} if math.isfinite(value) else None
    if value > best["value"] if goal[1] == "max" else value < best["value"]:
        return {"step": step, "value": value, "waited": 0}
    return {**best, "waited": best.get("waited", 0) + 1}


def _limit(recipe: Recipe, run: Run, seconds: float, saving: bool) -> str:
    """Which of the recipe's limits was reached, as a sentence; empty if none was."""
    if recipe.max_minutes and seconds > 60 * recipe.max_minutes:
        return f"it reached its limit of {recipe.max_minutes:g} minutes"
    # The folder grows when a checkpoint is written, so its size is looked at then.
    if recipe.max_megabytes and saving and run.megabytes() > recipe.max_megabytes:
        return f"its folder reached its limit of {recipe.max_megabytes:g} MB"
    return ""


def _plan(task: Task, recipe: Recipe, points: int = 200) -> tuple[str, dict[str, list[tuple[int, float]]]]:
    """The learning rate's formula, and its value at up to `points` steps of the whole run, by optimizer."""
    steps = sorted({max(1, round(i * recipe.steps / points)) for i in range(points + 1)} | {1, recipe.steps})
    rates: dict[str, list[tuple[int, float]]] = {}
    for step in steps:
        for name, rate in task.learning_rates(step).items():
            rates.setdefault(name, []).append((step, rate))
    return task.formula, rates


def _describe(task: Task, run: Run, new: bool) -> None:
    """Fills RUN/model. Raises ValueError when a run is resumed whose data or sizes are no longer the same."""
    with tempfile.TemporaryDirectory(dir=run.folder, prefix=".model-") as temporary:
        model = Path(temporary) / "model"
        model.mkdir()
        task.describe(model)
        if new or not run.model.exists():
            shutil.rmtree(run.model, ignore_errors=True)
            if any(model.iterdir()):
                os.replace(model, run.model)
            return
        for file in sorted(model.iterdir()):
            old = run.model / file.name
            if old.exists() and old.read_bytes() != file.read_bytes():
                raise ValueError(
                    f"The data or the network's sizes have changed since '{run.folder.name}' began "
                    f"({file.name} differs); put them back, or begin a new run."
                )


def _save(task: Task, recipe: Recipe, run: Run, accelerator: Any, step: int, best: dict | None, seconds: float) -> None:
    """Writes the checkpoint of one update, and deletes those that are no longer kept."""
    accelerator.wait_for_everyone()
    generators = _generators(accelerator)
    if not accelerator.is_main_process:
        return
    try:
        folder = save_checkpoint(run.checkpoints, step, task, generators, {"best": best, "seconds": round(seconds, 1)})
    except OSError as error:
        raise TrainingError(
            f"{_disk_sentence(error)}, so the checkpoint of update {step} was not written; the one before it is "
            "good. Make room and resume."
        ) from error
    prune(run.checkpoints, recipe.keep_last, best["step"] if best else None)
    run.log("checkpoint", step=step, folder=folder.name)


def _disk_sentence(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "The disk is full"
    return f"The disk could not be written to or read ({error.strerror or error})"


def _generators(accelerator) -> dict[str, Tensor]:
    """The state of torch's generators of every process: dropout after a resume is the dropout of the whole run."""
    own = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        own["cuda"] = torch.cuda.get_rng_state(accelerator.device)
    if accelerator.num_processes == 1:
        return {f"{k}-0": v for k, v in own.items()}
    states = {}
    for key, value in own.items():
        rows = accelerator.gather(value.to(accelerator.device)[None])
        states.update({f"{key}-{rank}": row.cpu() for rank, row in enumerate(rows)})
    return states


def _restore_generators(states: dict[str, Tensor], rank: int) -> None:
    if f"cpu-{rank}" in states:
        torch.set_rng_state(states[f"cpu-{rank}"])
    if f"cuda-{rank}" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states[f"cuda-{rank}"])


def _any_process(flag: bool, trainer: Trainer) -> bool:
    return flag if trainer.world == 1 else trainer.total(float(flag)) > 0


def _train_mode(task: Task, on: bool) -> None:
    for module in task.modules.values():
        module.train(on and any(p.requires_grad for p in module.parameters()))


def _memory_mb() -> float:
    """Largest resident memory of this process so far, in MB; on CUDA the largest allocation."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _on_signals(stop: threading.Event):
    """SIGTERM and SIGINT ask for a stop. Returns a function that puts the old handlers back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    old = {s: signal.signal(s, lambda *_: stop.set()) for s in (signal.SIGTERM, signal.SIGINT)}

    def restore():
        for number, handler in old.items():
            signal.signal(number, handler)

    return restore


def log_quietly(run: Run, event: str, **fields: Any) -> None:
    """`Run.log`, where a full disk is no further error."""
    with contextlib.suppress(OSError):  # the caller's exception says that the disk is full
        run.log(event, **fields)
