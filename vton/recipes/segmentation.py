"""Recipe of the segmentation generator: equations 1 and 8 to 10."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from gan.losses import over_scales, objective
from vton import labels
from vton.config import LITE, NETWORK_SIZE, PAPER, SegmentationConfig
from vton.data import Pack
from vton.discriminator import MultiScaleDiscriminator, logits, split
from vton.metrics import confusion, iou, mask_iou
from vton.recipes.common import PictureRecipe, PictureTask, collate, generators, save_grid, to_picture
from vton.recipes.samples import Sampler
from vton.segmentation import SegmentationGenerator, generator_input


@dataclass
class SegmentationRecipe(PictureRecipe):
    width: int = LITE.segmentation.width
    lr: float = 4e-4
    lr_d: float = 4e-4
    beta1: float = 0.5
    adversarial: str = "lsgan"
    gan: float = 1.0  # weight of the adversarial term; 0 = no discriminator
    cross_entropy: float = 10.0  # lambda_CE
    arms: float = 1.0  # weight of the two arm classes in the cross-entropy (1 in the paper): they tell the sleeves' length
    discriminator: int = 64  # width of the discriminators
    reduce: int = 1  # train at 256 / reduce by 192 / reduce
    validation: int = 32


PRESETS = {
    "lite-cpu": dict(steps=2000, batch=8, lr=1e-3, schedule="cosine", warmup=50, gan=0.0, arms=3.0, precision="bf16", threads=1,
                     save_every=200, evaluate_every=400),
    "lite-gpu": dict(steps=30000, batch=32, schedule="cosine", warmup=200, gan=1.0, discriminator=32, precision="bf16"),
    "paper": dict(steps=200000, batch=8, width=PAPER.segmentation.width),
    "drawn": dict(steps=220, batch=4, lr=1e-3, width=12, gan=0.5, discriminator=8, reduce=2, precision="bf16",
                  save_every=40, evaluate_every=40, validation=6),
}


def network_config(recipe: SegmentationRecipe) -> SegmentationConfig:
    """The network that a recipe trains."""
    return replace(LITE.segmentation, width=recipe.width)


class SegmentationTask(PictureTask):
    best = ("upper_iou", "max")

    def __init__(self, recipe: SegmentationRecipe):
        self.recipe = recipe
        self.size = (NETWORK_SIZE[0] // recipe.reduce, NETWORK_SIZE[1] // recipe.reduce)
        pack = Pack(recipe.pack) if recipe.pack else None
        self.sampler, self.held_out = Sampler(pack, NETWORK_SIZE), Sampler(pack, NETWORK_SIZE, "val")
        model = self.set_model(SegmentationGenerator(network_config(recipe)))
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(recipe.beta1, 0.999))}
        if recipe.gan:
            critic = MultiScaleDiscriminator(21 + 13, recipe.discriminator, normalise=True)
            self.modules["discriminator"] = critic
            self.optimizers["discriminator"] = torch.optim.Adam(critic.parameters(), lr=recipe.lr_d, betas=(recipe.beta1, 0.999))
        self.weights = {"cross_entropy": recipe.cross_entropy, "adversarial": recipe.gan, "discriminator": 0.0}
        self.class_weights = torch.ones(13)
        self.class_weights[[labels.SEGMENTATION.index("left arm"), labels.SEGMENTATION.index("right arm")]] = recipe.arms
        self._validation = None

    def batch(self, step, micro, rank, world):
        rngs = generators(self.recipe.seed, step, micro, rank, world, self.recipe.batch)
        batch = collate([self.sampler.sample(rng) for rng in rngs])
        # The noise channel: ones with probability 0.159, drawn from the step so that a resumed run sees the same.
        shape = (len(rngs), 1, *self.size)
        batch["noise"] = torch.from_numpy((np.random.default_rng([self.recipe.seed, step, micro, 10**6 + rank]).standard_normal(shape) > 1)
                                          .astype(np.float32))
        return batch

    def inputs(self, batch):
        def small(x):
            return F.interpolate(x, self.size, mode="bilinear", align_corners=False) if self.recipe.reduce > 1 else x
        x = generator_input(small(batch["cloth"]), small(batch["cloth_mask"]), small(batch["parse_agnostic"]),
                            small(batch["pose"]), batch["noise"])
        return x.contiguous(memory_format=torch.channels_last)

    def target(self, batch):
        step = self.recipe.reduce
        target = batch["segmentation"][:, ::step, ::step].clone()
        carried = batch["carried"][:, 0, ::step, ::step] > 0
        # A bag hides a garment that was photographed; of a dressed product the truth is known.
        target[carried & (batch["source"] == 0)[:, None, None]] = -100
        return target

    def terms(self, batch):
        scores = self.networks["model"](self.inputs(batch)).float()
        n = len(scores)
        # Equation 9, in its stable form on logits; the release's sigmoid leaves the argmax as it is.
        return {"cross_entropy": F.cross_entropy(scores, self.target(batch), self.class_weights.to(scores.device)) * n, **self.adversarial(batch, scores)}

    def adversarial(self, batch, scores):
        if not self.recipe.gan:
            return {}
        loss, critic = objective(self.recipe.adversarial), self.networks["discriminator"]
        n, x = len(scores), self.inputs(batch)
        fake = critic(torch.cat((x, scores.softmax(1)), 1))
        return {"adversarial": over_scales(loss.g, logits(fake)) * n}

    def update(self, batches, trainer):
        if not self.recipe.gan:
            return super().update(batches, trainer)
        terms = super().update(batches, trainer)  # generator; also leaves gradients in the discriminator
        self.modules["discriminator"].zero_grad(set_to_none=True)
        loss, critic = objective(self.recipe.adversarial), self.networks["discriminator"]
        value = 0.0
        for batch in batches:
            with trainer.autocast():
                x = self.inputs(batch)
                with torch.no_grad():
                    fake = self.modules["model"](x).float().softmax(1)
                real = F.one_hot(self.target(batch).clamp(min=0), 13).permute(0, 3, 1, 2).float()
                both = critic(torch.cat((torch.cat((x, real), 1), torch.cat((x, fake), 1))))
                real_out, fake_out = split(both, len(x))
                term = over_scales(loss.d, logits(real_out), logits(fake_out)) / len(batches)
            trainer.backward(term)
            value += float(term.detach())
        trainer.step("discriminator")
        return {**terms, "discriminator": value}

    def validation(self):
        if self._validation is None:
            rngs = [np.random.default_rng([9, i]) for i in range(self.recipe.validation)]
            self._validation = collate([self.held_out.sample(rng, augment=False, index=i if self.held_out.pack else None)
                                        for i, rng in enumerate(rngs)])
            self._validation["noise"] = torch.zeros(len(rngs), 1, *self.size)
        return self._validation

    def evaluate(self):
        batch = self.validation()
        answer = self.modules["ema"](self.inputs(batch)).argmax(1)
        target = self.target(batch)
        matrix = confusion(target.clamp(min=0).numpy(), answer.numpy(), (target >= 0).numpy(), 13)
        ious = dict(zip(labels.SEGMENTATION, iou(matrix)))
        per_picture = [mask_iou(((a == 3) & (t >= 0)).numpy(), (t == 3).numpy()) for a, t in zip(answer, target)]
        figures = {"upper_iou": float(np.mean(per_picture)), "mean_iou": float(np.nanmean(list(ious.values())[:7]))}
        for kind, name in enumerate(("worn", "product", "drawn")):
            chosen = [p for p, s in zip(per_picture, batch["source"]) if s == kind]
            if chosen:
                figures[f"upper_iou_{name}"] = float(np.mean(chosen))
        return {**figures, "iou_arms": float(np.nanmean([ious["left arm"], ious["right arm"]]))}

    def sample(self, folder, step):
        batch = {k: v[:6] for k, v in self.validation().items()}
        answer = self.modules["ema"](self.inputs(batch)).argmax(1).numpy()
        k, rows = self.recipe.reduce, []
        for i in range(len(answer)):
            maps = [labels.colour(m.astype(np.uint8), labels.SEGMENTATION_COLOURS)
                    for m in (batch["parse_agnostic"][i].argmax(0).numpy()[::k, ::k], batch["segmentation"][i].numpy()[::k, ::k], answer[i])]
            rows.append([to_picture(batch[name][i])[::k, ::k] for name in ("person", "cloth")] + maps)
        save_grid(folder / "segmentation.png", rows)
