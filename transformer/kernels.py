"""Quick ways to compute what `transformer.attention` defines: torch's fused kernels, and small products on a CPU.

Axes as there. A caller chooses the way; the numbers are the same but for rounding.
"""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Equation 1 by torch's fused kernels: the same output as `scaled_dot_product_attention`, no weights.

    query (..., T, d_k), key (..., S, d_k), value (..., S, d_v): as there.
    mask: broadcastable to (..., T, S), True = may be looked at.
    dropout: probability that a weight is dropped.
    Returns (..., T, d_v); a row that may look at no key is zero.
    """
    if query.stride(-1) != 1:  # a view that `linear` returned; the kernels want whole rows
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    if mask is not None:
        # Kernels differ in what they return for a row without any key; here it is zero on each of them.
        context = context.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return context


def learns(x: Tensor) -> bool:
    """Whether a gradient will go through x."""
    return torch.is_grad_enabled() and x.requires_grad


def fused_is_quicker(query: Tensor, key: Tensor) -> bool:
    """False on a CPU for learning, and for few keys in fp32: there the plain products of equation 1 are quicker.

    The CPU's fused kernels are made for long sequences, and their backward pass is seven times slower in bf16 than in
    fp32.

    query (..., T, d_k), key (..., S, d_k).
    """
    if query.device.type != "cpu":
        return True
    if learns(query):
        return query.dtype != torch.bfloat16 and key.shape[-2] > SHORT
    return query.dtype != torch.float32 or key.shape[-2] > SHORT_IN_USE


def additive_mask(mask: Tensor | None) -> Tensor | None:
    """What a mask adds to scores: 0 or -inf, fp32, of the mask's shape; None for None.

    mask: broadcastable to (B, h, T, S), True = may be looked at.
    """
    return None if mask is None else torch.where(mask, 0.0, -torch.inf)


def plain_attention(query: Tensor, key: Tensor, value: Tensor, additive: Tensor | None = None) -> Tensor:
    """Equation 1 for few queries or keys, as in a decoding step: the output of `fused_attention`, without gradient.

    On a CPU the fused kernel's own preparations take longer than these three products.

    query (B, h, T, d_k), key (B, h, S, d_k), value (B, h, S, d_v): each query may look at some key.
    additive: broadcastable to (B, h, T, S), as from `additive_mask`, made once for all layers; None = all may be
        looked at.
    Returns (B, h, T, d_v).
    """
    batch, heads, queries, d_k = query.shape
    if query.device.type != "cpu" or query.dtype != torch.float32:
        mask = None if additive is None else additive.to(query.dtype)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    query, key, value = query.reshape(-1, queries, d_k), key.flatten(0, 1).transpose(1, 2), value.flatten(0, 1)
    scores = torch.bmm(query, key).view(batch, heads, queries, -1)
    # The mask by itself; within the product (baddbmm) it takes three to five times as long.
    scores = scores.mul_(d_k**-0.5) if additive is None else torch.add(additive, scores, alpha=d_k**-0.5)
    return torch.bmm(scores.softmax(-1).flatten(0, 1), value).view(batch, heads, queries, -1)


# Keys up to which the plain products of equation 1 are quicker than a CPU's fused ones in fp32: with their backward
# pass, and alone.
SHORT, SHORT_IN_USE = 100, 48
# Multiplications below which the call of a packed product costs more than it saves.
MIN_PACK_SIZE = 1 << 18
# Rows of a weight from which oneDNN's product of 8 bits is the quicker one with VNNI; below, FBGEMM's is called in half
# the time, and without VNNI it is the quicker one throughout.
WIDE = 4096
# weight -> (its version, its packed forms); gone with the weight
_packs: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
_int8: ContextVar[bool] = ContextVar("int8_products", default=False)


@functools.cache
def has_int8() -> bool:
    """True where the processor multiplies whole numbers of 8 bits quicker than fp32 (from AVX2 on), and torch can."""
    if not torch.cpu._is_avx2_supported():
        return False
    with warnings.catch_warnings():  # that a later torch will have no quantized tensors; there this is False
        warnings.simplefilter("ignore")
        try:
            return bool(
                torch.ops.quantized.linear_dynamic(torch.ones(1, 1), _round_weight(torch.ones(1, 1), None)).isfinite()
            )
        except (AttributeError, RuntimeError):
            return False


@functools.cache
def _overflows() -> bool:
    """True where sums of two products of 8 bits do not fit (AVX2 without VNNI): inputs may have 7 bits at most."""
    return not torch.cpu._is_vnni_supported()


@contextmanager
def int8_products() -> Iterator[None]:
    """Within the block this thread multiplies by weights rounded to 8 bits, where the processor is made for it.

    A product has an error of about 1 %, or 2 % without VNNI; its input is rounded to 256 or 128 steps between its
    smallest and its largest number, so what else is in a batch has a part in it. Attention, norms and residual sums are
    fp32 as ever. Where `can_pack` or `has_int8` is False, the block changes nothing.
    """
    before = _int8.set(has_int8())
    try:
        yield
    finally:
        _int8.reset(before)


def pack(weight: Tensor, start: int, stop: int) -> Tensor:
    """Rows start to stop of a weight, laid out for oneDNN's products; made once, and again when the weight changes.

    On processors with AVX-512 that are not Intel's, torch's own products (by MKL) reach less than half of these.
    """
    forms = _forms(weight)
    if (start, stop) not in forms:
        own = weight.detach()[start:stop].contiguous()
        forms[start, stop] = torch.ops.mkldnn._reorder_linear_weight(own, None)
    return forms[start, stop]


def pack_int8(weight: Tensor, bias: Tensor | None, start: int, stop: int) -> Any:
    """Rows start to stop of a weight (m, n) and its bias (m,), laid out for torch's products of 8 bits; kept as by
    `pack`.
    """
    forms, version = _forms(weight), None if bias is None else bias._version
    entry = forms.get((start, stop, "bytes"))
    if entry is None or entry[0] is not bias or entry[1] != version:
        offset = None if bias is None else bias.detach()[start:stop].contiguous()
        entry = forms[start, stop, "bytes"] = (bias, version, _round_weight(weight.detach()[start:stop], offset))
    return entry[2]


def _round_weight(weight: Tensor, bias: Tensor | None) -> Any:
    """A weight whose rows are whole numbers of -127 to 127, each with a scale of its own, in the layout of the library
    whose product is the quicker one.
    """
    scale = weight.abs().amax(1).clamp_min(1e-12) / 127
    whole = (weight / scale[:, None]).round().to(torch.int8)
    zero = torch.zeros(len(weight), dtype=torch.int64)
    integers = torch._make_per_channel_quantized_tensor(whole, scale.double(), zero, 0)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "onednn" if len(weight) >= WIDE and not _overflows() else "x86"
    try:
        return torch.ops.quantized.linear_prepack(integers, bias)
    finally:
        torch.backends.quantized.engine = before


def _forms(weight: Tensor) -> dict:
    """The packed forms of a weight; empty when it has changed."""
    version, forms = _packs.get(weight, (None, {}))
    if version != weight._version:
        forms = {}
        _packs[weight] = (weight._version, forms)
    return forms


def can_pack(x: Tensor, weight: Tensor) -> bool:
    """True where oneDNN has the product: fp32 on an x86 CPU, without gradient or autocast, of a weight that is kept.

    Not one that learns: fused optimizers change it without raising its version, so its packed form would be stale.
    """
    return (
        x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and isinstance(weight, nn.Parameter)
        and not weight.requires_grad
        and not weight.is_inference()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, rows: tuple[int, int] | None = None, relu: bool = False
) -> Tensor:
    """x W^T + b, as torch's linear; by oneDNN's packed weights where that is quicker.

    x: (..., n).
    weight, bias: (m, n) and (m,) or None.
    rows: (start, stop) of the weight and bias that are used; None = all.
    relu: what is negative becomes 0; without gradient.
    Returns (..., stop - start or m).
    """
    start, stop = rows or (0, weight.shape[0])
    if x.numel() * (stop - start) >= MIN_PACK_SIZE and can_pack(x, weight):
        if _int8.get():
            product = torch.ops.quantized.linear_relu_dynamic if relu else torch.ops.quantized.linear_dynamic
            return product(x, pack_int8(weight, bias, start, stop), _overflows())
        offset = bias if rows is None or bias is None else bias[start:stop]
        after = "relu" if relu else "none"
        return torch.ops.mkldnn._linear_pointwise(x.contiguous(), pack(weight, start, stop), offset, after, [], "")
    if rows:
        weight, bias = weight[start:stop], None if bias is None else bias[start:stop]
    out = F.linear(x, weight, bias)
    return out.relu_() if relu else out
