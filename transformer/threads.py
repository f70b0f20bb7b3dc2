"""How many threads make a decoding step quickest.

A step for a few hypotheses is a few hundred small products. Handing each to a second thread and waiting for it takes
longer than the product itself, above all where the caller is not the program's main thread, as on the page.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from training.devices import one_thread

# Rows times weights up to which one thread is the better choice. Measured on two cores, both threads of a worker thread
# against one: 0.6 times the time for 4 hypotheses of a model 192 wide, the same for 4 of the base model.
ONE_THREAD = 200_000_000


@contextmanager
def threads_for(model: nn.Module, rows: int) -> Iterator[None]:
    """Runs the block's torch operations on the caller's thread alone if there is little work in them.

    rows: hypotheses or tokens that pass through `model` together; the work is their number times that of its weights.
    Only the caller's count of threads changes, and it is set back at the end. Without effect on a GPU.
    """
    first = next(model.parameters())
    if first.device.type != "cpu" or rows * sum(p.numel() for p in model.parameters()) > ONE_THREAD:
        yield
        return
    with one_thread():
        yield
