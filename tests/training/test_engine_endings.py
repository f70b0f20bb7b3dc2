"""How a run may end or begin otherwise: patience, limits, forks, broken gradients, several processes, bf16."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from training import Recipe, Run, Task, TrainingError, fit, latest_checkpoint, launch
from training.checkpoint import list_checkpoints, module_state


@dataclass
class CubeRecipe(Recipe):
    lr: float = 0.03
    width: int = 16
    fault: str = ""  # "gradient": an infinite one at update 17; "worse": validation gets worse from update 20 on
    data: str = ""


class CubeTask(Task):
    """Learns y = x^3 with a small network; the batch of a step is shared out over processes."""

    best = ("error", "min")
    formula = "lr · 0.99^step"

    def __init__(self, recipe):
        self.recipe, self.step = recipe, 0
        torch.manual_seed(recipe.seed)
        self.modules = {"model": nn.Sequential(nn.Linear(1, recipe.width), nn.Tanh(), nn.Linear(recipe.width, 1))}
        self.optimizers = {"model": torch.optim.Adam(self.modules["model"].parameters(), lr=recipe.lr)}

    def learning_rates(self, step):
        return {"model": self.recipe.lr * 0.99**step}

    def batch(self, step, micro, rank, world):
        generator = torch.Generator().manual_seed(self.recipe.seed * 1000003 + step * 101 + micro)
        x = (torch.rand(16, 1, generator=generator) * 2 - 1)[rank::world]
        self.step = step
        return {"x": x, "y": x**3}

    def count(self, batch):
        return len(batch["x"])

    def terms(self, batch):
        error = (self.networks["model"](batch["x"]).float() - batch["y"]).square().sum()
        if self.recipe.fault == "gradient" and self.step == 17:
            error = (
                error
                + 0 * error.clone().sqrt() * torch.zeros(1, requires_grad=True).sqrt().sum()
                + Blown.apply(error) * 0
            )
        return {"squared": error}

    def evaluate(self):
        x = torch.linspace(-1, 1, 21)[:, None]
        error = float((self.modules["model"](x).float() - x**3).abs().mean())
        return {"error": error + (self.step if self.recipe.fault == "worse" and self.step >= 20 else 0)}

    def sample(self, folder, step):
        (folder / "cube.txt").write_text(f"after {step}")

    def describe(self, folder):
        (folder / "config.json").write_text(
            json.dumps({"width": self.recipe.width, "data": Path(self.recipe.data).name})
        )

    def export(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.modules["model"].state_dict(), folder / "weights.pt")


class Blown(torch.autograd.Function):
    """A finite value with an infinite gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient + float("inf")


def recipe(**fields):
    return CubeRecipe(**{"steps": 40, "log_every": 5, "save_every": 10, "evaluate_every": 10, **fields})


def train(folder, resume=False, **fields):
    made = recipe(**fields)
    return fit(CubeTask(made), made, folder, resume=resume, quiet=True)


def events(folder, kind):
    return [e for e in Run(folder).events() if e["event"] == kind]


def weights(run):
    return module_state(latest_checkpoint(run / "checkpoints"))


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_the_untrained_network_is_the_first_sample_and_the_plan_is_the_rate_that_was_used(tmp_path):
    train(tmp_path / "run")
    run = Run(tmp_path / "run")
    assert (run.samples(0) / "cube.txt").read_text() == "after 0"
    errors = [e["figures"]["error"] for e in events(run.folder, "evaluation")]
    assert len(errors) == 5 and errors[-1] < 0.7 * errors[0]
    plan = run.plan()
    assert plan["formula"] == CubeTask.formula
    planned = dict(plan["rates"]["model"])
    for event in events(run.folder, "log"):
        assert event["learning_rates"]["model"] == pytest.approx(planned[event["step"]])


def test_patience_ends_the_run_and_the_best_checkpoint_stays(tmp_path):
    assert train(tmp_path / "run", steps=200, fault="worse", patience=3, keep_last=1) == "finished"
    (end,) = events(tmp_path / "run", "finished")
    assert end["step"] == 40 and "3 evaluations were no better than that of update 10" in end["reason"]
    assert [f.name for f in list_checkpoints(tmp_path / "run" / "checkpoints")] == ["step-00000010", "step-00000040"]


def test_patience_counts_on_after_a_resume(tmp_path):
    train(tmp_path / "run", steps=30, fault="worse", patience=3)
    assert train(tmp_path / "run", resume=True, steps=200, fault="worse", patience=3) == "finished"
    assert events(tmp_path / "run", "finished")[-1]["step"] == 40


def test_patience_without_evaluations_is_refused():
    with pytest.raises(ValueError, match="evaluate_every must be more than 0"):
        recipe(patience=2, evaluate_every=0).check()


@pytest.mark.parametrize("limit", [{"max_minutes": 1e-9}, {"max_megabytes": 1e-4}])
def test_a_limit_stops_and_saves(tmp_path, limit):
    assert train(tmp_path / "run", **limit) == "stopped"
    (end,) = events(tmp_path / "run", "stopped")
    assert "limit of" in end["reason"]
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name.endswith(f"{end['step']:08d}")
    assert train(tmp_path / "run", resume=True) == "finished"


def test_the_time_of_all_parts_of_a_run_counts(tmp_path):
    train(tmp_path / "run", steps=20)
    state = latest_checkpoint(tmp_path / "run" / "checkpoints") / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "seconds": 120.0}))
    assert train(tmp_path / "run", resume=True, max_minutes=2) == "stopped"
    assert events(tmp_path / "run", "stopped")[-1]["step"] == 21


def test_a_gradient_that_is_not_finite_leaves_the_weights_good(tmp_path):
    bad = recipe(fault="gradient", save_every=1)
    task = CubeTask(bad)
    with pytest.raises(TrainingError, match="gradient of 'model' became .* at update 17"):
        fit(task, bad, tmp_path / "run", quiet=True)
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000016"
    assert same(weights(tmp_path / "run"), task.modules["model"].state_dict())


def test_a_resume_with_other_data_or_sizes_is_refused(tmp_path):
    train(tmp_path / "run", data="a.tsv")
    with pytest.raises(ValueError, match="config.json differs"):
        train(tmp_path / "run", resume=True, steps=50, data="b.tsv")
    with pytest.raises(ValueError, match="expected"):
        train(tmp_path / "run", resume=True, steps=50, width=8)
    assert Run(tmp_path / "run").status() == "finished"


def command(*arguments):
    return launch(
        CubeTask,
        CubeRecipe,
        {"plain": {}, "short": {"steps": 20, "log_every": 5, "save_every": 10, "evaluate_every": 10}},
        [str(a) for a in arguments],
    )


def test_a_fork_equals_its_source_up_to_the_checkpoint_and_then_goes_its_own_way(tmp_path):
    source, fork, twin = tmp_path / "source", tmp_path / "fork", tmp_path / "twin"
    train(source)
    uploaded = source / "data" / "table.tsv"
    uploaded.parent.mkdir()
    uploaded.write_text("x\ty\n")
    fields = json.loads((source / "recipe.json").read_text())
    (source / "recipe.json").write_text(json.dumps({**fields, "data": str(uploaded)}))
    (source / "model" / "config.json").write_text(json.dumps({"width": 16, "data": "table.tsv"}))

    assert command("--run", fork, "--fork", source, "--fork-step", 20, "--lr", "0.1") == 0
    assert [e["step"] for e in events(fork, "log")] == [5, 10, 15, 20, 25, 30, 35, 40]
    rates = {e["step"]: e["learning_rates"]["model"] for e in events(fork, "log")}
    assert rates[20] == pytest.approx(0.03 * 0.99**20) and rates[25] == pytest.approx(0.1 * 0.99**25)
    assert not same(weights(fork), weights(source))
    assert (Run(fork).samples(0) / "cube.txt").is_file() and Run(fork).recipe()["data"] == str(
        fork / "data" / "table.tsv"
    )

    # Nothing changed: the fork is the same run, bit for bit, and does not need its source any more.
    assert command("--run", twin, "--fork", source, "--fork-step", 20) == 0
    assert same(weights(twin), weights(source))
    import shutil

    shutil.rmtree(source)
    assert (twin / "data" / "table.tsv").read_text() == "x\ty\n"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--fork", "NOTHING"], "not a run folder"),
        (["--fork", "RUN", "--fork-step", "7"], "no checkpoint of update 7; it has 10, 20"),
        (["--fork", "RUN", "--width", "8"], "shape"),
        (["--steps", "0"], "steps must be at least 1"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_no_folder(tmp_path, capsys, arguments, sentence):
    assert command("--preset", "short", "--run", tmp_path / "RUN") == 0
    capsys.readouterr()
    arguments = [str(tmp_path / a) if a.isupper() else a for a in arguments]
    assert command("--run", tmp_path / "new", *arguments) == 2
    error = capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert sentence in error and error.startswith("error: ") and error.count("\n") == 1


def test_the_export_is_the_mean_of_the_last_checkpoints(tmp_path):
    assert command("--preset", "short", "--average", "2", "--run", tmp_path / "run", "--export", tmp_path / "out") == 0
    first, last = (module_state(f) for f in list_checkpoints(tmp_path / "run" / "checkpoints"))
    for name, value in torch.load(tmp_path / "out" / "weights.pt", weights_only=True).items():
        torch.testing.assert_close(value, (first[name] + last[name]) / 2)


def test_two_writers_never_meet_even_while_the_first_is_still_preparing(tmp_path, capsys):
    holder = Run(tmp_path / "run")
    holder.acquire()
    try:
        assert command("--preset", "short", "--run", tmp_path / "run") == 2
    finally:
        holder.release()
    assert "Another process" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "run").iterdir()] == ["lock"]


def run_python(program, *arguments, launcher=()):
    """Runs a program that can import this file as `t`."""
    head = (
        f"import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}, "
        f"{os.getcwd()!r}]\nimport test_engine_endings as t\n"
    )
    script = Path(arguments[0]).parent / "program.py"
    script.write_text(head + program)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, *launcher, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )


def test_killed_while_writing_a_checkpoint(tmp_path):
    """Kill -9 in the middle of a file: half a checkpoint is never read, and the resumed run is the whole one."""
    program = """
import os, signal
import training.checkpoint as c
real = c.save_file
def half(tensors, file):
    real(tensors, file)
    if "00000020" in str(file):
        os.truncate(file, os.path.getsize(file) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
c.save_file = half
t.train(sys.argv[1])
"""
    done = run_python(program, tmp_path / "run")
    assert done.returncode == -9, done.stderr
    assert (tmp_path / "run" / "checkpoints" / ".part-00000020").is_dir()
    assert Run(tmp_path / "run").status() == "interrupted"
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000010"
    train(tmp_path / "run", resume=True)
    train(tmp_path / "whole")
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    assert not list((tmp_path / "run" / "checkpoints").glob(".part*"))


def test_a_disk_that_fills_up_while_logging(tmp_path):
    made = recipe()

    class Filling(CubeTask):
        def batch(self, step, *rest):
            if step == 13:  # a device that takes nothing: every write fails as on a full disk
                (tmp_path / "run" / "events.jsonl").unlink()
                (tmp_path / "run" / "events.jsonl").symlink_to("/dev/full")
            return super().batch(step, *rest)

    with pytest.raises(TrainingError, match="The disk is full; the last checkpoint is good"):
        fit(Filling(made), made, tmp_path / "run", quiet=True)
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000010"


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    """`accelerate launch` with two processes, on the CPU as no GPU is to be seen, evaluating at other steps than
    saving: same weights as one process.
    """
    fields = "steps=24, save_every=20, evaluate_every=6, patience=50"
    done = run_python(
        f"t.train(sys.argv[1], {fields})",
        tmp_path / "two",
        launcher=[
            "-m",
            "accelerate.commands.launch",
            "--multi_gpu",
            "--num_processes",
            "2",
            "--num_machines",
            "1",
            "--mixed_precision",
            "no",
            "--dynamo_backend",
            "no",
            "--num_cpu_threads_per_process",
            "1",
            "--main_process_port",
            "0",
        ],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert events(tmp_path / "two", "start")[0]["processes"] == 2
    train(tmp_path / "one", steps=24, save_every=20, evaluate_every=6, patience=50)
    for name, value in weights(tmp_path / "one").items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], value, atol=2e-6, rtol=1e-4)
    losses = [[e["losses"]["squared"] for e in events(tmp_path / run, "log")] for run in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.slow
def test_bf16_learns_as_fp32_does(tmp_path):
    """On a processor without bf16 too, where torch emulates it."""
    program = """
import training.loop
training.loop.has_bf16 = lambda device: True
t.train(sys.argv[1], precision="bf16", steps=40)
"""
    done = run_python(program, tmp_path / "half")
    assert done.returncode == 0, done.stderr
    train(tmp_path / "full")
    errors = {run: [e["figures"]["error"] for e in events(tmp_path / run, "evaluation")] for run in ("half", "full")}
    assert errors["half"] == pytest.approx(errors["full"], abs=0.02) and errors["half"][-1] < 0.6 * errors["half"][0]
    assert not same(weights(tmp_path / "half"), weights(tmp_path / "full"))
    assert all(value.dtype == torch.float32 for value in weights(tmp_path / "half").values())


@pytest.mark.parametrize(
    "words, noise", [(["--noise"], True), (["--noise", "true"], True), (["--noise", "off"], False)]
)
def test_a_switch_may_stand_alone(tmp_path, words, noise):
    @dataclass
    class Switched(CubeRecipe):
        noise: bool = False

    presets = {"other": {"noise": not noise}}
    assert launch(CubeTask, Switched, presets, [*words, "--steps", "2", "--run", str(tmp_path / "run")]) == 0
    assert Run(tmp_path / "run").recipe()["noise"] is noise


def test_a_training_beats_at_every_phase(tmp_path, monkeypatch):
    """The phases of a real training in their order; nobody hears a heartbeat of one that has ended."""
    told = []
    real = Run.beat

    def beat(self, phase, step=0, losses=None):
        real(self, phase, step, losses)
        told.append((phase, step, self.heartbeat().get("phase")))

    monkeypatch.setattr(Run, "beat", beat)
    monkeypatch.setattr("training.run.BEAT_SECONDS", 0.0)
    recipe = CubeRecipe(steps=2, save_every=2, evaluate_every=2)
    fit(CubeTask(recipe), recipe, tmp_path / "run", quiet=True)
    phases = [("evaluating", 0), ("training", 1), ("training", 2), ("evaluating", 2), ("saving", 2)]
    assert told == [(phase, step, phase) for phase, step in phases]
    assert Run(tmp_path / "run").heartbeat() == {}
