"""Whether this machine multiplies in bf16, or only pretends to."""

import functools

import torch


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
