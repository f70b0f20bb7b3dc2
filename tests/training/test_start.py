"""Trainings as processes of their own: their state, their output, their names, and the limits of a public page."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from training import start
from training.run import Run, list_runs

PROGRAM = """
import sys, time
sys.path[:0] = [{tests!r}]
import test_engine_endings as t
from training import launch
class Slow(t.CubeTask):
    def batch(self, *a):
        time.sleep(0.02)
        return super().batch(*a)
sys.exit(launch(Slow, t.CubeRecipe, {{"plain": dict(steps=2000, log_every=1, save_every=1000, evaluate_every=0)}}))
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(tests=os.path.dirname(__file__)))
    return lambda *words: [["python", str(file), *map(str, words)]]


def wait(condition, seconds=90):
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline
        time.sleep(0.05)


def test_a_run_is_started_stopped_and_resumed(tmp_path, program):
    run = start.start(tmp_path / "runs" / "a b", program("--run", tmp_path / "runs" / "a b"))
    assert start.is_starting(run) and start.is_busy(run) and list_runs(tmp_path / "runs") == ["a b"]
    with pytest.raises(ValueError, match="training in 'a b' already"):
        start.start(run.folder, program("--run", run.folder, "--resume"))
    with pytest.raises(ValueError, match="is running; stop it first"):
        start.delete(tmp_path / "runs", "a b")
    wait(lambda: any(e["event"] == "log" for e in run.events()))
    assert run.is_running() and not start.is_starting(run)
    process = run.command()["process"]
    assert os.getsid(process) == process  # a session of its own: the end of this one does not end it
    start.stop(run)
    wait(lambda: not start.is_busy(run))
    assert run.status() == "stopped" and not run.stop_file.exists()
    step = list(run.events())[-1]["step"]
    assert f"step {step}/2000" in "\n".join(run.output()) and run.output()[-1] == "stopped"
    with pytest.raises(ValueError, match="is not running"):
        start.stop(run)

    start.start(run.folder, program("--run", run.folder, "--resume", "--steps", step + 3))
    wait(lambda: run.status() == "finished" and not start.is_busy(run))
    start.delete(tmp_path / "runs", "a b")
    assert list_runs(tmp_path / "runs") == [] and not run.folder.exists()


def test_a_stop_before_the_first_step_is_not_lost(tmp_path, program):
    run = start.start(tmp_path / "early", program("--run", tmp_path / "early"))
    start.stop(run)
    wait(lambda: run.status() == "stopped")
    assert list(run.events())[-1]["step"] == 1


def test_a_killed_run_is_interrupted_and_one_that_never_began_has_failed(tmp_path, program):
    run = start.start(tmp_path / "killed", program("--run", tmp_path / "killed"))
    wait(lambda: any(e["event"] == "log" for e in run.events()))
    os.killpg(run.command()["process"], signal.SIGKILL)
    wait(lambda: not start.is_busy(run))
    assert run.status() == "interrupted" and not start.has_failed_to_start(run)

    early = start.start(tmp_path / "early", [["python", "-c", "import sys; sys.exit('no such thing')"]])
    wait(lambda: not start.is_busy(early))
    assert start.has_failed_to_start(early) and early.output()[-1] == "no such thing"

    told = start.start(tmp_path / "told", program("--run", tmp_path / "told", "--fork", tmp_path / "nothing"))
    wait(lambda: not start.is_busy(told))
    assert told.status() == "failed" and "not a run folder" in list(told.events())[-1]["reason"]


def test_the_second_command_waits_for_the_first_and_the_text_is_what_runs(tmp_path):
    commands = [
        ["python", "-c", f"open({str(tmp_path / 'made')!r}, 'w').write('x y')"],
        [
            "python",
            "-c",
            "import sys; print(open(sys.argv[1]).read(), sys.argv[2])",
            str(tmp_path / "made"),
            "a 'b' $HOME;ls",
        ],
    ]
    run = start.start(tmp_path / "run", commands)
    wait(lambda: not start.is_busy(run))
    assert run.output()[-1] == "x y a 'b' $HOME;ls"
    assert run.output()[0] == "$ " + run.command()["shell"] and " && python -c " in run.command()["shell"]
    assert sys.executable not in run.command()["shell"]
    failed = start.start(
        tmp_path / "other", [["python", "-c", "raise SystemExit(3)"], ["python", "-c", "print('never')"]]
    )
    wait(lambda: not start.is_busy(failed))
    assert "never" not in failed.output()


@pytest.mark.parametrize("name", ["", "..", "../x", "/x", "a/b", ".hidden", "a\nb", "x" * 61, "-x", "ä", None])
def test_names_that_could_lead_elsewhere(tmp_path, name):
    with pytest.raises(ValueError, match="A run's name begins"):
        start.check_name(tmp_path, name)
    with pytest.raises(ValueError, match="no run"):
        start.delete(tmp_path, name)


def test_a_taken_name_and_a_link_are_refused(tmp_path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    with pytest.raises(ValueError, match="already"):
        start.check_name(tmp_path / "runs", "mine")
    assert start.check_name(tmp_path / "runs", " new run ").name == "new run"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "recipe.json").write_text("{}")
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="link"):
        start.delete(tmp_path / "runs", "link")
    assert (tmp_path / "elsewhere" / "recipe.json").exists()


def test_limits_of_a_public_page(tmp_path):
    limits = start.Limits(at_once=1, runs=2, steps=100, minutes=5, megabytes=50)
    assert limits.fields() == {"max_minutes": 5, "max_megabytes": 50} and start.Limits().fields() == {}
    limits.check(tmp_path, 100, new=True)
    with pytest.raises(ValueError, match="100 steps at most; 101 were asked for"):
        limits.check(tmp_path, 101, new=False)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.json").write_text(json.dumps({"task": "CubeTask"}))
    with pytest.raises(ValueError, match="2 runs are kept at most"):
        limits.check(tmp_path, 10, new=True)
    limits.check(tmp_path, 10, new=False)
    busy = Run(tmp_path / "one")
    busy.acquire()
    try:
        with pytest.raises(ValueError, match="1 training may run at a time; wait for 'one'"):
            limits.check(tmp_path, 10, new=False)
    finally:
        busy.release()
    start.Limits().check(tmp_path, 10**9, new=True)
    assert Path(tmp_path / "one").exists()
