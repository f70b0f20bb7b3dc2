"""The learning rate of section 5.3, and a rising dropout, as pure functions of the step."""


def learning_rate(step: int, d_model: int, warmup: int, scale: float = 1.0) -> float:
    """Equation 3: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), times `scale` (1 in the paper).

    step: number of the update, from 1. Raises `ValueError` for a step or a warm-up below 1.
    """
    if step < 1 or warmup < 1:
        raise ValueError(f"the learning rate is defined for step >= 1 and warmup >= 1, got {step} and {warmup}.")
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def dropout_at(step: int, p: float, ramp: int, stages: int = 5) -> float:
    """P_drop of update `step` (from 1): rises from 0 to `p` over `ramp` updates (Morerio et al. 2017).

    In `stages` equal steps, so that a compiled network is compiled no more than so many times. ramp 0: `p` at once.
    """
    if step > ramp:
        return p
    return p * ((step - 1) * stages // ramp) / stages
