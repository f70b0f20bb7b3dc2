"""Recipe of the ALIAS generator: equations 13 to 16, hinge objective."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from gan.losses import objective, over_scales
from training.weights import fill, load_model
from vton import labels
from vton.alias import AliasGenerator, misalignment
from vton.config import LITE, PAPER, AliasConfig, ParserConfig, from_dict
from vton.data import Pack
from vton.discriminator import MultiScaleDiscriminator, logits, split
from vton.losses import feature_matching, perceptual
from vton.metrics import ssim_map
from vton.pairs import wobble
from vton.parsing import Parser
from vton.recipes.common import PictureRecipe, PictureTask, collate, generators, save_grid, to_picture
from vton.recipes.samples import Sampler


@dataclass
class AliasRecipe(PictureRecipe):
    height: int = 256
    pictures_wide: int = 192
    width: int = LITE.alias.width
    widest: int = LITE.alias.widest
    hidden: int = LITE.alias.hidden
    injected: int = LITE.alias.injected
    levels: int = LITE.alias.levels
    masked: int = LITE.alias.masked
    lr: float = 1e-4
    lr_d: float = 4e-4
    beta1: float = 0.0
    beta2: float = 0.9
    adversarial: str = "hinge"
    gan: float = 1.0
    feature_matching: float = 10.0  # lambda_FM
    perceptual: float = 10.0  # lambda_percept
    features: str = "vgg19"  # "vgg19", or the folder of a trained parser whose encoder then serves
    l1: float = 0.0  # weight of a plain L1 term (not in the paper)
    discriminator: int = 64
    noise: bool = True
    half: float = 0.0  # share of the updates on pictures of half the height and width, twice as many of them
    deformation: float = 0.02  # of the worn garment, in picture widths, standing in for the matching module's errors
    validation: int = 24


PRESETS = {
    "lite-cpu": dict(steps=1500, batch=4, lr=1e-3, height=256, pictures_wide=192, lr_d=4e-4, beta1=0.5, beta2=0.99, schedule="cosine", warmup=50, l1=20.0,
                     gan=0.2, feature_matching=2.0, perceptual=4.0, discriminator=16, precision="bf16", threads=1, save_every=100,
                     evaluate_every=300, ema=0.995),
    "lite-gpu": dict(steps=60000, batch=16, lr=2e-4, l1=5.0, discriminator=48, precision="bf16"),
    "paper": dict(steps=200000, batch=4, height=1024, pictures_wide=768, width=PAPER.alias.width, widest=16, hidden=PAPER.alias.hidden,
                  injected=PAPER.alias.injected, levels=PAPER.alias.levels, masked=PAPER.alias.masked),
    "drawn": dict(steps=240, batch=2, height=128, pictures_wide=96, lr=2e-3, beta1=0.5, beta2=0.99, width=12, hidden=12, levels=6, l1=20.0,
                  gan=0.1, feature_matching=1.0, perceptual=0.0, discriminator=8, precision="bf16", save_every=40, evaluate_every=40,
                  validation=4, ema=0.9),
}


def network_config(recipe: AliasRecipe) -> AliasConfig:
    """The network that a recipe trains."""
    return replace(LITE.alias, width=recipe.width, widest=recipe.widest, hidden=recipe.hidden, injected=recipe.injected,
                   levels=recipe.levels, masked=recipe.masked)


class AliasTask(PictureTask):
    best = ("ssim_region", "max")

    def __init__(self, recipe: AliasRecipe):
        self.recipe = recipe
        self.size = (recipe.height, recipe.pictures_wide)
        pack = Pack(recipe.pack) if recipe.pack else None
        if not 0 <= recipe.half <= 1:
            raise ValueError(f"half is a share and has to be in [0, 1], got {recipe.half}.")
        self.sampler, self.held_out = Sampler(pack, self.size), Sampler(pack, self.size, "val")
        self.half = Sampler(pack, (self.size[0] // 2, self.size[1] // 2))
        config = network_config(recipe)
        model = self.set_model(AliasGenerator(config))
        betas = (recipe.beta1, recipe.beta2)
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=betas)}
        if recipe.gan or recipe.feature_matching:
            critic = MultiScaleDiscriminator(config.classes + 1 + 3, recipe.discriminator)
            self.modules["discriminator"] = critic.to(memory_format=torch.channels_last)
            self.optimizers["discriminator"] = torch.optim.Adam(critic.parameters(), lr=recipe.lr_d, betas=betas)
        self.features = feature_network(recipe.features) if recipe.perceptual else None
        self.weights = {"l1": recipe.l1, "adversarial": recipe.gan, "feature_matching": recipe.feature_matching,
                        "perceptual": recipe.perceptual}
        self._validation = None

    # -- samples -------------------------------------------------------------------------------------------------

    def batch(self, step, micro, rank, world):
        # Every process draws the same size, whatever its share of the samples.
        half = self.recipe.half > 0 and np.random.default_rng([self.recipe.seed, step, micro]).random() < self.recipe.half
        sampler, count = (self.half, 2 * self.recipe.batch) if half else (self.sampler, self.recipe.batch)
        rngs = generators(self.recipe.seed, step, micro, rank, world, count)
        # Only where the person wears the garment itself is there a true picture.
        sources = ["worn" if sampler.pack and rng.random() < 0.85 else "drawn" for rng in rngs]
        return collate([self.prepare(sampler.sample(rng, source), rng) for rng, source in zip(rngs, sources)])

    def prepare(self, sample, rng):
        """The true segmentation, and the worn garment a little deformed in the place of W(c, theta)."""
        mask = sample["worn_mask"][0]
        amount = self.recipe.deformation * rng.uniform(0.2, 1.6)
        # The hidden parts of a garment are there after the warp: it is the cloth that a product photo shows.
        warped, warped_mask = wobble(sample["worn"], mask, rng, amount)
        gray = (sample["agnostic"] == 128).all(2)
        return {"person": sample["person"], "agnostic": sample["agnostic"], "pose": sample["pose"], "warped": warped,
                "warped_mask": warped_mask[None], "segmentation": labels.one_hot(labels.thirteen_to_7(sample["segmentation"]), 7),
                "region": gray[None], "carried": sample["carried"]}

    def generate(self, model, batch, norm="alias", noise=None):
        segmentation = batch["segmentation"]
        misalign, divided = misalignment(segmentation, batch["warped_mask"])
        x = torch.cat((batch["agnostic"], batch["pose"], batch["warped"]), 1).contiguous(memory_format=torch.channels_last)
        return model(x, segmentation, divided, misalign, norm=norm, noise=noise), divided

    # -- losses --------------------------------------------------------------------------------------------------

    def update(self, batches, trainer):
        recipe, n = self.recipe, sum(self.count(b) for b in batches)
        loss, critic = objective(recipe.adversarial), self.networks.get("discriminator")
        sums, kept = {}, []
        noise = (lambda shape: torch.randn(shape, device=trainer.device)) if recipe.noise else None
        for batch in batches:
            share = self.count(batch) / n
            real = batch["person"]
            with trainer.autocast():
                fake, divided = self.generate(self.networks["model"], batch, noise=noise)
                # What is pasted back from the photograph anyway counts less than what has to be made up.
                weight = (0.2 + 0.8 * batch["region"]) * (1 - batch["carried"])
                terms = {"l1": ((real - fake).abs() * weight).mean()}
                if self.features is not None:
                    terms["perceptual"] = perceptual(*[self.features(picture) for picture in (real, fake)])
                if critic is not None:
                    critic.requires_grad_(False)  # this pass trains the generator alone
                    seen = critic(torch.cat((divided, fake), 1))
                    terms["adversarial"] = over_scales(loss.g, logits(seen))
                    if recipe.feature_matching:
                        with torch.no_grad():
                            wanted = critic(torch.cat((divided, real), 1))
                        terms["feature_matching"] = feature_matching(wanted, seen)
            total = sum(self.weights.get(k, 1.0) * v for k, v in terms.items())
            trainer.backward(total * share)
            kept.append((fake.detach(), divided.detach(), real, share))
            for name, value in terms.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach()) * share
        trainer.step("model")
        if critic is not None:
            critic.requires_grad_(True)
            for fake, divided, real, share in kept:
                with trainer.autocast():
                    both = critic(torch.cat((torch.cat((divided, real), 1), torch.cat((divided, fake), 1))))
                    real_out, fake_out = split(both, len(real))
                    value = over_scales(loss.d, logits(real_out), logits(fake_out))
                trainer.backward(value * share)
                sums["discriminator"] = sums.get("discriminator", 0.0) + float(value.detach()) * share
            trainer.step("discriminator")
        self.follow()
        return sums

    # -- looking at it -------------------------------------------------------------------------------------------

    def validation(self):
        if self._validation is None:
            rows = []
            for i in range(self.recipe.validation):
                rng = np.random.default_rng([9, i])
                sample = self.held_out.sample(rng, "worn" if self.held_out.pack else "drawn", augment=False,
                                              index=i if self.held_out.pack else None)
                rows.append(self.prepare(sample, rng))
            self._validation = collate(rows)
        return self._validation

    def evaluate(self):
        figures = {}
        batch = self.validation()
        for norm in ("alias", "instance"):
            fake = torch.cat([self.generate(self.modules["ema"], {k: v[i:i + 4] for k, v in batch.items()}, norm)[0]
                              for i in range(0, len(batch["person"]), 4)])
            whole, inside = [], []
            for f, r, region in zip(fake, batch["person"], batch["region"]):
                similarity = ssim_map(to_picture(f), to_picture(r))
                whole.append(similarity.mean())
                inside.append(similarity[region[0].numpy() > 0].mean())
            suffix = "" if norm == "alias" else "_instance"
            figures[f"ssim{suffix}"], figures[f"ssim_region{suffix}"] = float(np.mean(whole)), float(np.mean(inside))
        return figures

    def sample(self, folder, step):
        batch = {k: v[:6] for k, v in self.validation().items()}
        fake, _ = self.generate(self.modules["ema"], batch)
        save_grid(folder / "synthesis.png",
                  [[to_picture(batch[k][i]) for k in ("person", "agnostic", "warped")] + [to_picture(fake[i])] for i in range(len(fake))])


def feature_network(name: str):
    """A fixed network for the perceptual loss: picture (B,3,H,W) in [-1, 1] -> list of activations.

    "vgg19" takes torchvision's ImageNet weights (relu1_1 to relu5_1, as pix2pixHD); they are downloaded. A folder takes
    the encoder of a trained parser.
    """
    if name == "vgg19":
        from torchvision.models import VGG19_Weights, vgg19
        try:
            layers = vgg19(weights=VGG19_Weights.IMAGENET1K_V1).features.eval().requires_grad_(False)
        except OSError as error:
            raise ValueError("The VGG-19 weights could not be downloaded; without a connection give --features the folder of a "
                             f"trained parser ({error}).") from None
        mean, std = torch.tensor([0.485, 0.456, 0.406])[:, None, None], torch.tensor([0.229, 0.224, 0.225])[:, None, None]
        ends = (1, 6, 11, 20, 29)

        def vgg(picture):
            x, out = (((picture + 1) / 2) - mean.to(picture)) / std.to(picture), []
            for i, layer in enumerate(layers.to(picture.device)[: ends[-1] + 1]):
                x = layer(x)
                if i in ends:
                    out.append(x)
            return [w * a for w, a in zip((1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0), out)]
        return vgg
    config, state = load_model(Path(name))
    parser = Parser(from_dict(ParserConfig, config))
    fill(parser, state, "the human parser")
    parser.eval().requires_grad_(False).to(memory_format=torch.channels_last)

    def encoder(picture):
        parser.to(picture.device)
        b, _, h, w = picture.shape
        joints, person = picture.new_zeros(b, parser.config.joints, h, w), picture.new_ones(b, 1, h, w)
        return parser.features(picture.contiguous(memory_format=torch.channels_last), joints, person)[:3]
    return encoder
