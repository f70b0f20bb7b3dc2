"""A GPU that is lent for the length of one call, as shared Spaces of Hugging Face do (`spaces.GPU`); elsewhere nothing.

There the page's own process has no GPU. The call runs in a process of its own: what it gets and gives is pickled, and
what it changes is lost. So one stage alone, the synthesis, asks for a GPU, with its one network; all else runs on the
CPU.
This module has to be imported before torch, which `spaces` changes.
"""

import copy
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

try:
    import spaces
except ImportError:
    spaces = None

SECONDS = 20  # of the GPU that one call asks for; a visitor's time is little, and one picture takes a second or two
log = logging.getLogger("atelier")


def is_shared_space() -> bool:
    """Whether GPUs are lent here: on a shared Space alone."""
    return spaces is not None and os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")


def gpu(function: Callable) -> Callable:
    """`function` as one that asks for a GPU, where the package `spaces` is there; elsewhere `function` itself."""
    return spaces.GPU(duration=SECONDS)(function) if spaces is not None else function


@gpu
def synthesise_there(network: Any, record: Any) -> dict[str, Any]:
    """The stage "synthesis" on the lent GPU.

    Args:
        network: the ALIAS generator, on the CPU; it stays there.
        record: a `TryOnResult` from the stage "misalignment" on.

    Returns:
        The fields that the stage makes, NumPy arrays.
    """
    import torch

    from vton import stages

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return stages.synthesise(SimpleNamespace(alias=copy.deepcopy(network).to(device), device=device), record)


def synthesise(networks: Any, record: Any) -> dict[str, Any]:
    """The stage "synthesis" on a lent GPU, or on the CPU if none is to be had, a visitor's time being spent, say."""
    from vton import stages

    try:
        return synthesise_there(networks.alias, replace(record, sources=()))
    except Exception as error:
        log.warning("No GPU was lent (%s); the CPU goes on.", type(error).__name__)
        return stages.synthesise(networks, record)
