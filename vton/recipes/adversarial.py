"""The discriminators' half of an adversarial update, shared by the segmentation and the ALIAS recipe."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from gan.losses import Objective, over_scales
from training.task import Trainer
from vton.networks.discriminator import gradient_penalty, logits, split


def update_discriminator(
    trainer: Trainer,
    critic: nn.Module,
    loss: Objective,
    pairs: Iterable[tuple[Tensor, Tensor, float]],
    penalty_weight: float = 0.0,
) -> dict[str, float]:
    """One optimizer step of the conditional discriminators (eq. 10 and eq. 14).

    critic: a MultiScaleDiscriminator as prepared for several processes; its optimizer is named "discriminator".
    loss: see `gan.losses`.
    pairs: of each micro-batch the real and the generated input (B,C,H,W), condition and picture along the channels,
        and its share of the update.
    penalty_weight: of the gradient penalty on the real inputs; 0 = none.
    Returns Means over the update: `discriminator`, the loss with its penalty; `told_apart`, the share of patches whose
    logit has the right sign; `penalty`, unweighted, where there is one.
    """
    sums: dict[str, float] = {}
    for real, fake, share in pairs:
        with trainer.autocast():
            real_out, fake_out = (logits(part) for part in split(critic(torch.cat((real, fake))), len(real)))
            value = over_scales(loss.d, real_out, fake_out)
        right = [((r > 0).float().mean() + (f < 0).float().mean()) / 2 for r, f in zip(real_out, fake_out)]
        figures = {"told_apart": torch.stack(right).mean()}
        if penalty_weight:
            figures["penalty"] = gradient_penalty(critic, real)
            value = value + penalty_weight * figures["penalty"]
        trainer.backward(value * share)
        for name, figure in {"discriminator": value, **figures}.items():
            sums[name] = sums.get(name, 0.0) + float(figure.detach()) * share
    trainer.step("discriminator")
    return sums
