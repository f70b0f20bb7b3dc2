"""Small work on the caller's thread alone.

Handing a small product to a second thread and waiting for it takes longer than the product itself, and many times as
long where the machine is busy.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

_others = ThreadPoolExecutor(1, "thread-count")


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs the block's torch operations on the caller's thread; only the caller's count changes, and is set back."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    # That was also the count of every thread that starts from now on; another thread takes this part back.
    _others.submit(torch.set_num_threads, before).result()
    try:
        yield
    finally:
        torch.set_num_threads(before)
