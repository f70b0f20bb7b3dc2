"""Memory of the C library (glibc): kept from one tensor to the next, and given back when the work is done.

A large block comes from the operating system anew each time otherwise, and every page of it is cleared and mapped
again, which is a tenth to a fifth of the time of a try-on, and more of a training's. Where there is no glibc, nothing
here has an effect.
"""

import ctypes
import functools
from typing import Any

SETTINGS = (  # of glibc's malloc.h: parameter, value
    (-8, 1),  # M_ARENA_MAX: memory that is free in one thread's own arena is of no use to the others
    (-4, 0),  # M_MMAP_MAX: how many blocks may come from the system by themselves
    (-1, (1 << 31) - 1),  # M_TRIM_THRESHOLD: bytes free at the end, above which they are handed back
    (-2, 64 << 20),  # M_TOP_PAD: bytes that are asked for beyond what is needed
)


def keep_memory() -> None:
    """Lets this process keep what it has freed until `give_back_memory`; for programs, before their first thread."""
    choose = getattr(_libc(), "mallopt", None)
    if choose is not None:
        for parameter, value in SETTINGS:
            choose(parameter, value)


def give_back_memory() -> None:
    """Hands what has been freed back to the operating system: a server would stay as large as its largest runs."""
    trim = getattr(_libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@functools.cache
def _libc() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows has none of that name
        return None
