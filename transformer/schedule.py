"""The learning rate of section 5.3, and a rising dropout, as pure functions of the step."""

from __future__ import annotations


def learning_rate(step: int, d_model: int, warmup: int, scale: float = 1.0) -> float:
    """Equation 3: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), times `scale` (1 in the paper).

    step: number of the update, from 1. Raises `ValueError` for a step or a warm-up below 1.
    """
    if step < 1 or warmup < 1:
        raise ValueError(f"the learning rate is defined for step >= 1 and warmup >= 1, got {step} and {warmup}.")
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def trapezoid(step: int, steps: int, warmup: int, decay: float) -> float:
    """Share of the full rate in [0, 1]: rises over `warmup` updates, stays, and falls to 0 over the last ones.

    step: number of the update, from 1.
    steps: updates in all.
    decay: share of them over which it falls (Hu et al. 2024, "warmup-stable-decay"), in [0, 1].
    Raises `ValueError` for a step or a warm-up below 1, or another decay.
    """
    if step < 1 or warmup < 1 or not 0.0 <= decay <= 1.0:
        raise ValueError(f"step and warmup are 1 or more and decay is in [0, 1]; got {step}, {warmup} and {decay}.")
    falling = (steps - step) / (decay * steps) if decay and step > steps * (1.0 - decay) else 1.0
    return max(0.0, min(1.0, step / warmup, falling))


def dropout_at(step: int, p: float, ramp: int, stages: int = 5) -> float:
    """P_drop of update `step` (from 1): rises from 0 to `p` over `ramp` updates (Morerio et al. 2017).

    In `stages` equal steps, so that a compiled network is compiled no more than so many times. ramp 0: `p` at once.
    """
    if step > ramp:
        return p
    return p * ((step - 1) * stages // ramp) / stages
