"""The list of mutants fits the code, and a survivor is told from one that a test notices."""

import subprocess
import sys

import pytest

from lab.checks import mutants
from lab.checks.mutants import MUTANTS


def test_every_mutant_has_its_one_place_and_tests_that_exist():
    for mutant in MUTANTS:
        text = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1 and mutant.new != mutant.old, f"{mutant.file}: {mutant.old}"
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        assert all((mutants.ROOT / test).is_file() for test in mutant.tests)
    assert len(set(MUTANTS)) == len(MUTANTS)


CHECKED = """
from lab.checks import mutants
from lab.checks.mutants import Mutant

file, tests = "vton/rules/neckline.py", ("tests/vton/test_neckline.py",)
wrong = Mutant(file, "ABOVE = 0.21", "ABOVE = 0.30", tests)
same = Mutant(file, "return u**2 + v**2 <= 1", "return v**2 + u**2 <= 1", tests)
found = mutants.check([wrong, same])
assert found[wrong].startswith("test_") and found[same] == "", found
assert "| `vton/rules/neckline.py` | 2 | 1 |" in mutants.table(found)
own = Mutant("training/checkpoint.py", "[:-keep_last]", "[:-keep_last - 1]", ("tests/training/test_checkpoint.py",))
assert mutants.check([own])[own].startswith("test_")  # of a module that this command itself has imported
try:
    mutants.check([Mutant(file, "no such text", "", tests)])
except ValueError as error:
    assert "occurs 0 times" in str(error)
else:
    raise AssertionError("a place that is not there was changed")
"""


@pytest.mark.slow
def test_a_wrong_constant_is_noticed_and_a_change_without_effect_survives():
    """In a process of its own: the mutants run in forks, which a process with threads should not make."""
    done = subprocess.run(
        [sys.executable, "-c", CHECKED], cwd=mutants.ROOT, capture_output=True, text=True, timeout=540
    )
    assert done.returncode == 0, done.stdout + done.stderr
