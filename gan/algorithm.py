"""Algorithm 1, line by line. Each step can run alone, and the caller says how a gradient becomes an update."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gan.losses import Objective
from training.task import Trainer


class Plain:
    """Backward, step, and cleared gradients, with nothing around them, where no training loop's Trainer gives them."""

    def __init__(self, optimizers: dict[str, torch.optim.Optimizer]):
        self.optimizers = optimizers  # by name, "generator" and "discriminator"

    def backward(self, loss: Tensor) -> None:
        """Adds the loss's gradients to those that are there."""
        loss.backward()

    def step(self, name: str) -> None:
        """Makes the step of one optimizer, and clears the gradients of all."""
        self.optimizers[name].step()
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)

    def autocast(self):
        """Context in which networks run: full precision."""
        return torch.autocast("cpu", enabled=False)


Stepper = Plain | Trainer  # what turns a loss into an update


def value(real: Tensor, fake: Tensor) -> float:
    """V(D, G) of equation 1 on a minibatch, from D(x) and D(G(z)) in [0, 1]; at most 0, and -log 4 where D is 1/2."""
    tiny = torch.finfo(torch.float32).tiny
    return float(real.clamp_min(tiny).log().mean() + (1 - fake).clamp_min(tiny).log().mean())


def discriminator_step(
    G: nn.Module, D: nn.Module, objective: Objective, x: Tensor, z: Tensor, stepper: Stepper
) -> dict[str, float]:
    """Algorithm 1: "update the discriminator by ascending its stochastic gradient".

    x (m, d), z (m, noise): the minibatches.

    Returns its loss, V(D, G) of the minibatch before the update, and the means of D(x) and D(G(z)).
    """
    with stepper.autocast():
        with torch.no_grad():
            fake = G(z)
        # One pass for both, so that both see the same weights once.
        real_out, fake_out = D(torch.cat([x, fake])).split([len(x), len(z)])
        loss = objective.d(real_out, fake_out)
    stepper.backward(loss)
    stepper.step("discriminator")
    p_real, p_fake = objective.probability(real_out.detach()), objective.probability(fake_out.detach())
    return {
        "discriminator": float(loss.detach()),
        "value": value(p_real, p_fake),
        "d_real": float(p_real.mean()),
        "d_fake": float(p_fake.mean()),
    }


def generator_step(G: nn.Module, D: nn.Module, objective: Objective, z: Tensor, stepper: Stepper) -> dict[str, float]:
    """Algorithm 1: "update the generator by descending its stochastic gradient" on a minibatch z (m, noise).

    Returns its loss.
    """
    flags = [p.requires_grad for p in D.parameters()]
    D.requires_grad_(False)  # its weights stay, so their gradients need not be worked out
    try:
        with stepper.autocast():
            loss = objective.g(D(G(z)))
        stepper.backward(loss)
    finally:
        for parameter, flag in zip(D.parameters(), flags):
            parameter.requires_grad_(flag)
    stepper.step("generator")
    return {"generator": float(loss.detach())}


def iteration(
    G: nn.Module,
    D: nn.Module,
    objective: Objective,
    data: Callable[[], Tensor],
    noise: Callable[[], Tensor],
    stepper: Stepper,
    k: int = 1,
) -> dict[str, float]:
    """One training iteration: k steps of the discriminator and one of the generator.

    data: draws a minibatch of m examples (m, d); noise: draws m noise samples (m, noise).
    k: discriminator steps, the algorithm's hyperparameter; 1 in the paper.

    Returns the terms of the last discriminator step and the generator's loss.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    terms: dict[str, float] = {}
    for _ in range(k):
        z = noise()
        x = data()
        terms = discriminator_step(G, D, objective, x, z, stepper)
    z = noise()
    return {**terms, **generator_step(G, D, objective, z, stepper)}
