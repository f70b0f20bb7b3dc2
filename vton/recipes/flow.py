"""Recipe of the flow warper, the spline's rival (ClothFlow, Han et al. 2019, equations 2 to 5)."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from training.recipe import SHARE, read_presets, setting
from vton.networks.config import LITE, PAPER, WITHOUT_AGNOSTIC, FlowConfig
from vton.networks.flow import FlowWarper, flow_grid, roughness
from vton.networks.warping import jacobian, warp
from vton.recipes.common import PictureRecipe, WarpTask, displacement, generators, samplers, warp_figures, with_sizes
from vton.rules.neckline import with_whole_neck


@dataclass
class FlowRecipe(PictureRecipe):
    """Fields of the recipe of the flow warper."""

    bounds = dict.fromkeys(("locks", "outlines", "necks"), SHARE)

    height: int = setting(LITE.flow.size[0], "of the pictures")
    pictures_wide: int = setting(LITE.flow.size[1], "their width")
    width: int = setting(LITE.flow.width, "channels of the first block of each pyramid; the deeper ones double")
    features: int = setting(LITE.flow.features, "channels of each level of the pyramids")
    levels: int = setting(LITE.flow.levels, "flows in the cascade, at strides 2 to 2**levels")
    agnostic: bool = setting(True, "show the network I_a, too, in which it may read where the old garment ended")
    lr: float = 1e-3
    l1: float = setting(1.0, "of the warped cloth inside its mask, at every level")
    mask: float = setting(2.0, "of the warped mask, at every level")
    smooth: float = setting(0.6, "of the flow's second differences, at every level")
    place: float = setting(0.0, "of the distance from the true warp where it is known, at every level")
    locks: float = setting(0.0, "share of the samples whose region is given with gaps, as under long hair")
    outlines: float = setting(0.0, "share of the samples whose region is given with a wrong outline, as if predicted")
    necks: float = setting(0.0, "share of the samples whose region tells nothing of the neckline")
    validation: int = 24


PRESETS = read_presets(__file__, "flow")


def network_config(recipe: FlowRecipe) -> FlowConfig:
    """The network that a recipe trains."""
    person_inputs = PAPER.flow.person_inputs if recipe.agnostic else WITHOUT_AGNOSTIC
    size = (recipe.height, recipe.pictures_wide)
    return replace(with_sizes(LITE.flow, recipe), size=size, person_inputs=person_inputs)


class FlowTask(WarpTask):
    """The cascaded flow as a task, on pairs of a garment and the same garment worn (Han et al. 2019, eq. 2 to 5)."""

    best = ("warped_iou", "max")

    recipe: FlowRecipe

    def __init__(self, recipe: FlowRecipe):
        self.recipe = recipe
        self.size = (recipe.height, recipe.pictures_wide)
        self.sampler, self.val_sampler = samplers(recipe, self.size)
        model = self.set_model(FlowWarper(network_config(recipe)))
        self.weights = {"l1": recipe.l1, "mask": recipe.mask, "smooth": recipe.smooth, "place": recipe.place}
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(0.5, 0.999))}

    def batch(self, step, micro, rank, world):
        """As of `WarpTask`; a share of the regions tell nothing of the neckline, see `with_whole_neck`."""
        batch, recipe = super().batch(step, micro, rank, world), self.recipe
        if recipe.necks:
            batch["region"] = batch.get("region", batch["worn_mask"]).clone()
            for i, rng in enumerate(generators(recipe.seed, step, micro + 2 * 10**6, rank, world, recipe.batch)):
                if rng.random() < recipe.necks:
                    region = with_whole_neck(batch["segmentation"][i].numpy(), batch["keypoints"][i].numpy())
                    batch["region"][i] = torch.maximum(batch["region"][i], torch.from_numpy(region).float())
        return batch

    def flows(self, model, batch):
        """Flows of every level for a batch, coarsest first."""
        return model(self.person_maps(batch), torch.cat((batch["cloth"], batch["cloth_mask"]), 1))

    def grid(self, model, batch):
        """As of `WarpTask`, by the finest flow."""
        return flow_grid(self.flows(model, batch)[-1])

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        flows, sums = self.flows(self.networks["model"], batch), {"l1": 0, "mask": 0, "smooth": 0}
        valid, n = 1 - batch["carried"], len(batch["worn"])
        for flow in flows:
            size = flow.shape[2:]
            cloth, mask, worn, true, known = (
                F.interpolate(a, size, mode="area")
                for a in (batch["cloth"], batch["cloth_mask"], batch["worn"], batch["worn_mask"], valid)
            )
            grid = flow_grid(flow)
            sums["l1"] += ((worn - warp(cloth, grid)).abs() * true * known).mean() * n / len(flows)
            sums["mask"] += ((true - warp(mask, grid, "zeros")).abs() * known).mean() * n / len(flows)
            sums["smooth"] += roughness(flow) * n / len(flows)
            if self.recipe.place:
                sums["place"] = sums.get("place", 0) + displacement(grid, batch).sum() / len(flows)
        return sums

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        batch = self.validation()
        grid = self.grid(self.modules["ema"], batch)
        figures, masks = warp_figures(grid, batch)
        folds = [(j[m[:-1, :-1]] <= 0).mean() for j, m in zip(jacobian(grid).numpy(), masks)]
        return figures | {"folded": float(np.mean(folds))}
