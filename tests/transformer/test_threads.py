"""Little work runs on the caller's thread alone, and nobody else's count of threads changes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from transformer import threads
from transformer.threads import threads_for

MODEL = nn.Linear(10, 10, bias=False)  # 100 weights


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "ONE_THREAD", 500)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_little_work_has_one_thread_and_much_keeps_all():
    with threads_for(MODEL, 5):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with threads_for(MODEL, 6):
        assert torch.get_num_threads() == 2


def test_the_count_comes_back_after_an_error():
    with pytest.raises(ValueError), threads_for(MODEL, 1):
        raise ValueError
    assert torch.get_num_threads() == 2


def test_other_threads_old_and_new_keep_theirs():
    with ThreadPoolExecutor(1) as old:
        assert old.submit(torch.get_num_threads).result() == 2
        with threads_for(MODEL, 1), ThreadPoolExecutor(1) as new:
            assert old.submit(torch.get_num_threads).result() == 2
            assert new.submit(torch.get_num_threads).result() == 2
            assert torch.get_num_threads() == 1


def test_a_caller_with_one_thread_stays_with_it():
    torch.set_num_threads(1)
    with threads_for(MODEL, 1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 1
