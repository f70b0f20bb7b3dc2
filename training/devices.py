"""What this machine can compute on: devices, bf16, and the caller's thread alone."""

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

KINDS = ("cuda", "mps", "cpu")
_others = ThreadPoolExecutor(1, "thread-count")


def present_devices() -> list[str]:
    """The kinds of device this machine has, the fastest first."""
    return [
        *(["cuda"] if torch.cuda.is_available() else []),
        *(["mps"] if torch.backends.mps.is_available() else []),
        "cpu",
    ]


def choose_device(name: str | torch.device, usual: Sequence[str] = KINDS) -> torch.device:
    """The device of that name; "auto" is the first of `usual` that is there.

    name: "auto", "cpu", "cuda", "mps", or with a number as "cuda:1". Raises TypeError for what is no name, and
    ValueError with one sentence for a device that is not there.
    """
    if isinstance(name, torch.device):
        name = str(name)
    if not isinstance(name, str):
        raise TypeError(f"device has to be a name such as 'cpu', but is of type {type(name).__name__}.")
    there = present_devices()
    if name == "auto":
        return torch.device(next(kind for kind in usual if kind in there))
    kind, _, index = name.partition(":")
    if kind not in KINDS or (":" in name and not index.isdecimal()):
        raise ValueError(f"There is no device '{name[:40]}'; choose 'auto', 'cpu', 'cuda' or 'mps'.")
    if kind not in there:
        raise ValueError(f"No {kind.upper()} device was found; choose the device 'cpu' or 'auto'.")
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if index and int(index) >= count:
        raise ValueError(f"There is no device '{name[:40]}'; this machine has {count} of that kind, counted from 0.")
    return torch.device(name)


@functools.cache
def has_bf16(device: str) -> bool:
    """True where products in bf16 are computed by the hardware.

    Elsewhere torch emulates them: on a processor with AVX2 alone a product took a hundred times as long as in fp32.

    device: its type, "cpu" or "cuda"; any other is taken at its word.
    """
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device == "cpu":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return True


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs the block's torch operations on the caller's thread; only the caller's count changes, and is set back.

    Handing a small product to a second thread and waiting for it takes longer than the product itself, and many times
    as long where the machine is busy.
    """
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
