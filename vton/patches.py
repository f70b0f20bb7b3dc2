"""What the discriminators of the ALIAS generator say of a try-on, patch by patch (section A.2: PatchGAN)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from training.checkpoint import find_checkpoint, list_checkpoints, module_state
from training.run import Run, readable_runs
from training.weights import fill
from vton import labels
from vton.networks.discriminator import MultiScaleDiscriminator, logits, with_detail
from vton.recipes.alias import AliasRecipe, network_config
from vton.result import TryOnResult
from vton.tensors import labels_to_tensor, picture_to_tensor


@dataclass(frozen=True)
class Critic:
    """The discriminators of a run. fine: they are shown the picture's detail, too."""

    network: MultiScaleDiscriminator
    fine: bool


def runs_with_critics(runs: Path) -> list[str]:
    """Names of the runs below `runs` that train an ALIAS generator against discriminators and have a checkpoint."""
    return [
        run.folder.name
        for run, recipe in readable_runs(runs)
        if recipe["task"] == "AliasTask"
        and (recipe.get("gan") or recipe.get("feature_matching"))
        and list_checkpoints(run.checkpoints)
    ]


def critic_of(run: Path) -> Critic:
    """The discriminators of the newest checkpoint.

    Raises ValueError with one sentence when the run has no checkpoint or no discriminator.
    """
    recipe = AliasRecipe.restore(Run(run).recipe())
    channels = network_config(recipe).classes + 1 + (6 if recipe.fine else 3)
    network = MultiScaleDiscriminator(channels, recipe.discriminator)
    state = module_state(find_checkpoint(Run(run).checkpoints), "discriminator")
    fill(network, state, f"the discriminators of '{run.name}'")
    return Critic(network.eval(), recipe.fine)


@torch.no_grad()
def patches(critic: Critic, result: TryOnResult) -> list[np.ndarray]:
    """Outputs of each scale on a try-on's synthesised picture, fine first: (h, w) float32, high where it seems real.

    Raises ValueError when the try-on has not come as far as its picture.
    """
    if result.synthesis is None or result.segmentation is None:
        raise ValueError("This try-on ended before its picture was made; run it to the end.")
    divided = labels_to_tensor(result.divided, len(labels.DIVIDED))
    picture = picture_to_tensor(result.synthesis)
    view = with_detail(picture) if critic.fine else picture
    return [scale[0, 0].numpy() for scale in logits(critic.network(torch.cat((divided, view), 1)))]


def overlay(result: TryOnResult, scores: np.ndarray) -> np.ndarray:
    """The synthesised picture under its patches: red where the discriminator doubts it, untouched where it does not.

    scores: (h, w); the most doubtful patch is the reddest. Returns (H, W, 3) uint8.
    """
    height, width = result.synthesis.shape[:2]
    low, high = float(scores.min()), float(scores.max())
    doubt = torch.from_numpy((high - scores) / max(high - low, 1e-6))[None, None]
    doubt = F.interpolate(doubt, (height, width), mode="bilinear", align_corners=False)[0, 0, :, :, None].numpy()
    red = np.array([179, 54, 28], np.float32)
    return (result.synthesis * (1 - 0.75 * doubt) + red * 0.75 * doubt).round().astype(np.uint8)
