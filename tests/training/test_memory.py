"""Memory is kept from one tensor to the next, and given back when asked."""

import subprocess
import sys

import pytest

from training import memory

PROGRAM = """
import resource, sys
from training import memory
import torch

if "keep" in sys.argv:
    memory.keep_memory()


def faults(call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident():
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmRSS"].split()[0]) >> 10


def work():
    torch.full((48 << 18,), 1.0)


for _ in range(12):  # a few places are made at first, up to eight with this torch
    work()
print(sum(faults(work) for _ in range(8)), resident())
memory.give_back_memory()
print(resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_a_tensor_takes_the_place_of_the_one_before_until_memory_is_given_back():
    def run(*words):
        out = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True).stdout
        first, last = out.splitlines()
        return *map(int, first.split()), int(last)

    mapped, plain, _ = run()
    kept, full, rest = run("keep")
    assert kept < mapped / 4, "pages that were mapped anew"
    assert full > plain + 30 and rest < full - 30, "MiB"


def test_nothing_happens_without_that_library(monkeypatch):
    monkeypatch.setattr(memory, "_libc", lambda: None)
    memory.keep_memory()
    memory.give_back_memory()
