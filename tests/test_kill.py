"""A killed training, a bounded part of `python -m lab.checks.kill`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_training_that_is_killed_or_meets_a_full_disk_ends_as_if_nothing_had_happened():
    # A process of its own: it forks, which a process that has computed with threads should not.
    command = [
        sys.executable,
        "-m",
        "lab.checks.kill",
        *["--kills", "2", "--full", "1", "--seed", "3", "--steps", "30"],
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] >= 2 and report["disk_full"] >= 1 and report["differing"] == []
