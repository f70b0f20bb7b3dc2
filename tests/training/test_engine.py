"""The promises of the training loop: exact resume, whole checkpoints, one writer, clear endings."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from training import Recipe, Run, Task, TrainingError, average_checkpoints, fit, latest_checkpoint
from training.checkpoint import list_checkpoints, module_state
from training.task import Trainer
from training.weights import fill, load_model, save_model


@dataclass
class LineRecipe(Recipe):
    lr: float = 0.05
    poison: int = 0  # update at which the loss becomes NaN


class LineTask(Task):
    """Learns y = 2x + 1 through a layer with dropout, so that the random generator matters."""

    best = ("error", "min")

    def __init__(self, recipe):
        self.recipe = recipe
        torch.manual_seed(recipe.seed)
        self.modules = {"model": nn.Sequential(nn.Linear(1, 16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 1))}
        self.optimizers = {"model": torch.optim.Adam(self.modules["model"].parameters(), lr=recipe.lr)}

    def learning_rates(self, step):
        return {"model": self.recipe.lr / step**0.5}

    def batch(self, step, micro, rank, world):
        generator = torch.Generator().manual_seed(self.recipe.seed * 1000003 + step * 101 + micro)
        x = torch.rand(8, 1, generator=generator)
        x = x[rank::world]
        return {"x": x, "y": 2 * x + 1, "step": step}

    def count(self, batch):
        return len(batch["x"])

    def terms(self, batch):
        error = (self.networks["model"](batch["x"]) - batch["y"]).square().sum()
        return {"squared": error * float("nan") if batch["step"] == self.recipe.poison else error}

    def evaluate(self):
        x = torch.linspace(0, 1, 11)[:, None]
        return {"error": float((self.modules["model"](x) - 2 * x - 1).abs().mean())}

    def sample(self, folder, step):
        (folder / "line.txt").write_text(str(step))


def recipe(**fields):
    return LineRecipe(**{"steps": 30, "log_every": 5, "save_every": 10, "evaluate_every": 10, **fields})


def weights(run):
    return module_state(latest_checkpoint(run / "checkpoints"))


def test_learns_and_writes_a_whole_run(tmp_path):
    assert fit(LineTask(recipe(steps=200)), recipe(steps=200), tmp_path / "run", quiet=True) == "finished"
    run = Run(tmp_path / "run")
    logs = [e for e in run.events() if e["event"] == "log"]
    assert logs[-1]["losses"]["squared"] < 0.2 * logs[0]["losses"]["squared"]
    assert logs[-1]["learning_rates"]["model"] == pytest.approx(0.05 / 200**0.5)
    assert run.status() == "finished"
    assert run.recipe()["lr"] == 0.05
    assert (run.samples(200) / "line.txt").read_text() == "200"


def test_a_compiled_run_learns_the_same_and_goes_on_uncompiled(tmp_path, monkeypatch):
    """Compiled without a C++ compiler, by the backend that traces and lowers as the default one does but runs torch's
    kernels.
    """
    compiled = []

    def lowered(module, compile=torch.compile):
        compiled.append(module)
        return compile(module, backend="aot_eager")

    monkeypatch.setattr(torch, "compile", lowered)
    fit(LineTask(recipe()), recipe(), tmp_path / "eager", quiet=True)
    assert not compiled
    fit(LineTask(recipe(compile=True)), recipe(compile=True), tmp_path / "compiled", quiet=True)
    assert len(compiled) == 1
    eager, lower = (
        [e["losses"]["squared"] for e in Run(tmp_path / name).events() if e["event"] == "log"]
        for name in ("eager", "compiled")
    )
    assert lower == pytest.approx(eager, rel=1e-5) and len(lower) == 6
    assert weights(tmp_path / "compiled").keys() == weights(tmp_path / "eager").keys()
    longer = recipe(steps=40)
    assert fit(LineTask(longer), longer, tmp_path / "compiled", resume=True, quiet=True) == "finished"


@pytest.mark.parametrize("stop_at", [10, 13])
def test_stopped_and_resumed_equals_uninterrupted_bit_for_bit(tmp_path, stop_at):
    fit(LineTask(recipe()), recipe(), tmp_path / "whole", quiet=True)

    class Stopping(LineTask):
        def batch(self, step, micro, rank, world):
            if step == stop_at:
                (tmp_path / "halves" / "STOP").write_text("")
            return super().batch(step, micro, rank, world)

    assert fit(Stopping(recipe()), recipe(), tmp_path / "halves", quiet=True) == "stopped"
    assert Run(tmp_path / "halves").status() == "stopped"
    torch.rand(7)  # other use of the global generator in between must not matter
    assert fit(LineTask(recipe()), recipe(), tmp_path / "halves", resume=True, quiet=True) == "finished"
    whole, halves = weights(tmp_path / "whole"), weights(tmp_path / "halves")
    for name in whole:
        assert torch.equal(whole[name], halves[name]), name
    steps = [e["step"] for e in Run(tmp_path / "halves").events() if e["event"] == "log"]
    assert steps == sorted(set(steps))


def test_killed_process_is_interrupted_and_resumes_exactly(tmp_path):
    """A real kill -9 in the middle of the run; half a checkpoint lies about and must not be read."""
    program = (
        f"import sys; sys.path[:0] = [{os.path.dirname(__file__)!r}, {os.getcwd()!r}]\n"
        "import time, test_engine as t\n"
        "class Slow(t.LineTask):\n"
        "    def batch(self, step, *a):\n"
        "        time.sleep(0.05 if step > 20 else 0)\n"
        "        return super().batch(step, *a)\n"
        "t.fit(Slow(t.recipe()), t.recipe(), sys.argv[1], quiet=True)\n"
    )
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", program, str(run)])
    deadline = time.time() + 120
    while latest_checkpoint(run / "checkpoints") is None or "step-00000020" not in str(
        latest_checkpoint(run / "checkpoints")
    ):
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.01)
    assert Run(run).status() == "running"
    with pytest.raises(RuntimeError, match="Another process"):
        fit(LineTask(recipe()), recipe(), run, resume=True, quiet=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert Run(run).status() == "interrupted"
    half = run / "checkpoints" / ".part-00000025"
    half.mkdir(exist_ok=True)
    (half / "model.safetensors").write_bytes(b"half")
    fit(LineTask(recipe()), recipe(), run, resume=True, quiet=True)
    fit(LineTask(recipe()), recipe(), tmp_path / "whole", quiet=True)
    for name, value in weights(tmp_path / "whole").items():
        assert torch.equal(value, weights(run)[name])


def test_signal_finishes_the_step_and_saves(tmp_path):
    class Signalled(LineTask):
        def batch(self, step, *rest):
            if step == 7:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().batch(step, *rest)

    assert fit(Signalled(recipe()), recipe(), tmp_path / "run", quiet=True) == "stopped"
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000007"


def test_nan_names_term_and_step_and_keeps_the_checkpoint(tmp_path):
    bad = recipe(poison=17)
    with pytest.raises(TrainingError, match="'squared' became nan at update 17"):
        fit(LineTask(bad), bad, tmp_path / "run", quiet=True)
    assert Run(tmp_path / "run").status() == "failed"
    assert latest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000010"


def test_full_disk_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    import training.checkpoint as module

    real = module.save_file

    def full(tensors, file):
        if "00000020" in str(file):
            raise OSError(28, "No space left on device")
        return real(tensors, file)

    monkeypatch.setattr(module, "save_file", full)
    with pytest.raises(TrainingError, match="disk is full"):
        fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True)
    assert [f.name for f in list_checkpoints(tmp_path / "run" / "checkpoints")] == ["step-00000010"]
    assert not list((tmp_path / "run" / "checkpoints").glob(".part*"))
    monkeypatch.undo()
    assert fit(LineTask(recipe()), recipe(), tmp_path / "run", resume=True, quiet=True) == "finished"


def test_a_second_start_needs_resume(tmp_path):
    fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="already holds a run"):
        fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True)


def test_a_start_that_met_a_full_disk_has_begun_nothing(tmp_path, monkeypatch):
    def full(self, *what):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "write_recipe", full)
    with pytest.raises(TrainingError, match="disk is full"):
        fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True)
    monkeypatch.undo()
    assert fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True) == "finished"


def test_keeps_last_and_best(tmp_path):
    long = recipe(steps=80, keep_last=2)
    fit(LineTask(long), long, tmp_path / "run", quiet=True)
    best = min((e["figures"]["error"], e["step"]) for e in Run(tmp_path / "run").events() if e["event"] == "evaluation")
    kept = {int(f.name[5:]) for f in list_checkpoints(tmp_path / "run" / "checkpoints")}
    assert kept == {70, 80, best[1]}


def test_accumulated_micro_batches_equal_one_large_batch():
    """Unequal micro-batches: the mean is over items, not over micro-batches."""

    class Fake:
        num_processes, process_index, device = 1, 0, torch.device("cpu")

        def backward(self, loss):
            loss.backward()

        def autocast(self):
            return torch.autocast("cpu", enabled=False)

    states = []
    for cuts in ([8], [3, 8]):
        task = LineTask(recipe())
        task.modules["model"].eval()
        batch, start, parts = task.batch(1, 0, 0, 1), 0, []
        for cut in cuts:
            parts.append({**batch, "x": batch["x"][start:cut], "y": batch["y"][start:cut]})
            start = cut
        terms = task.update(parts, Trainer(Fake(), task, recipe()))
        states.append((terms["squared"], task.modules["model"].state_dict()))
    assert states[0][0] == pytest.approx(states[1][0], rel=1e-6)
    for name in states[0][1]:
        torch.testing.assert_close(states[0][1][name], states[1][1][name], rtol=1e-5, atol=1e-6)


def test_average_is_the_mean_of_the_last_checkpoints(tmp_path):
    fit(LineTask(recipe()), recipe(), tmp_path / "run", quiet=True)
    folders = list_checkpoints(tmp_path / "run" / "checkpoints")[-2:]
    mean = average_checkpoints(tmp_path / "run", 2)
    for name, value in mean.items():
        torch.testing.assert_close(value, (module_state(folders[0])[name] + module_state(folders[1])[name]) / 2)
    with pytest.raises(ValueError, match="cannot be averaged"):
        average_checkpoints(tmp_path / "run", 9)


def test_evaluation_changes_no_update(tmp_path):
    for name, every in (("often", 1), ("never", 0)):
        fit(LineTask(recipe(evaluate_every=every)), recipe(evaluate_every=every), tmp_path / name, quiet=True)
    for name, value in weights(tmp_path / "often").items():
        assert torch.equal(value, weights(tmp_path / "never")[name])


def test_model_folder_round_trip_and_its_errors(tmp_path):
    model = nn.Linear(3, 2)
    save_model(tmp_path / "m", {"d": 3}, model.state_dict())
    config, state = load_model(tmp_path / "m")
    assert config == {"d": 3}
    torch.testing.assert_close(state["weight"], model.weight.detach().half().float())
    with pytest.raises(ValueError, match="'bias' is missing"):
        fill(nn.Linear(3, 2), {"weight": state["weight"]}, "the line")
    with pytest.raises(ValueError, match=r"shape \(2, 3\), expected \(2, 4\)"):
        fill(nn.Linear(4, 2), state, "the line")
    data = (tmp_path / "m" / "model.safetensors").read_bytes()
    (tmp_path / "m" / "model.safetensors").write_bytes(data[:-9])
    with pytest.raises(ValueError, match="damaged or cut off"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text("{")
    with pytest.raises(ValueError, match="not readable JSON"):
        load_model(tmp_path / "m")
    with pytest.raises(ValueError, match="missing"):
        load_model(tmp_path / "nothing")
    with pytest.raises(ValueError, match="not finite"):
        save_model(tmp_path / "m", {}, {"w": torch.tensor([1e6])})


def test_half_a_line_in_the_event_log_is_left_out(tmp_path):
    run = Run(tmp_path)
    run.log("log", step=1, losses={"a": float("inf")})
    with open(run.events_file, "a") as file:
        file.write('{"event": "lo')
    assert [e["losses"]["a"] for e in run.events()] == ["inf"]
    assert json.loads(run.events_file.read_text().splitlines()[0])["step"] == 1


def test_workers_make_the_same_batches_ahead_of_time(tmp_path):
    """Bit for bit, over a stop and a resume too; what a task makes at first use is made once, before they part."""

    class Slow(LineTask):
        table = None

        def batch(self, step, micro, rank, world):
            if self.table is None:
                assert os.getpid() == parent
                self.table = torch.ones(1)
            return super().batch(step, micro, rank, world)

    parent = os.getpid()
    fit(LineTask(recipe()), recipe(), tmp_path / "alone", quiet=True)
    helped = recipe(workers=2)
    assert fit(Slow(helped), helped, tmp_path / "helped", quiet=True) == "finished"
    half = recipe(workers=2, steps=recipe().steps // 2)
    fit(LineTask(half), half, tmp_path / "halves", quiet=True)
    fit(LineTask(helped), helped, tmp_path / "halves", resume=True, quiet=True)
    alone = weights(tmp_path / "alone")
    for name in ("helped", "halves"):
        assert all(torch.equal(value, alone[key]) for key, value in weights(tmp_path / name).items()), name


def test_workers_want_a_system_that_forks(monkeypatch):
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="fork"):
        recipe(workers=2).check()
