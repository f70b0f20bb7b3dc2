"""Recipe of the ALIAS generator: L_I of VITON-HD (A.3, eq. 13 to 16), hinge objective."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from gan.losses import objective, over_scales
from training.recipe import SHARE, read_presets, setting
from training.weights import fill, from_json, load_model
from vton.data.pack import Pack
from vton.data.scenes import Look, Scenes, dress, halve, has_garment, random_crop
from vton.labels import ALIAS_UPPER
from vton.metrics import colour_difference, sharpness, ssim_map
from vton.networks import alias_inference
from vton.networks.alias import AliasGenerator, misalignment, visible_mask
from vton.networks.config import LITE, AliasConfig, ParserConfig
from vton.networks.discriminator import MultiScaleDiscriminator, logits, with_detail
from vton.networks.losses import feature_matching, gradient_difference, perceptual
from vton.networks.parser import Parser
from vton.recipes.common import (
    PictureRecipe,
    PictureTask,
    collate,
    draped_people,
    generators,
    save_grid,
    update_discriminator,
    with_sizes,
)
from vton.tensors import tensor_to_picture


@dataclass
class AliasRecipe(PictureRecipe):
    """Fields of the recipe of ALIAS: sizes of its networks, weights of its losses, and how samples are drawn."""

    bounds = {
        **dict.fromkeys(
            ("half", "crops", "studio", "recoloured", "flattened", "cut", "bent", "shown", "lowered"), SHARE
        ),
        **dict.fromkeys(("r1_every", "smaller", "variants"), (1, 1024)),
    }

    height: int = setting(256, "of the pictures")
    pictures_wide: int = setting(192, "their width")
    width: int = setting(LITE.alias.width, "base filters; the last block has half as many")
    widest: int = setting(LITE.alias.widest, "the widest block has `widest * width` channels")
    hidden: int = setting(LITE.alias.hidden, "channels of the convolution on the label map inside each normalisation")
    injected: int = setting(LITE.alias.injected, "channels of the resized input that each block is given")
    levels: int = setting(LITE.alias.levels, "residual blocks; the first works at height / 2**(levels - 1)")
    masked: int = setting(LITE.alias.masked, "the first so many blocks standardise the misaligned region apart (A.2)")
    lr: float = 1e-4
    lr_d: float = setting(4e-4, "learning rate of the discriminators")
    beta1: float = setting(0.0, "of Adam")
    beta2: float = setting(0.9, "of Adam")
    adversarial: str = setting("hinge", "form of the adversarial loss, see gan.losses")
    gan: float = setting(1.0, "weight of the adversarial term; 0 = no discriminator")
    feature_matching: float = setting(10.0, "lambda_FM")
    perceptual: float = setting(10.0, "lambda_percept")
    features: str = setting("vgg19", '"vgg19", or the folder of a trained parser whose encoder then serves')
    l1: float = setting(0.0, "weight of a plain L1 term (not in the paper)")
    gradient: float = setting(0.0, "weight of the L1 between the pictures' gradients (not in the paper)")
    composition: bool = setting(False, "a fourth output channel, the share of the warped cloth (not in the paper)")
    keeps: bool = setting(False, "a fifth: the share of the photograph itself where I_a shows it (not in the paper)")
    opaque: float = setting(0.5, "weight of 1 - alpha in the aligned region, where there is a composition")
    skin: float = setting(2.0, "how much more than the rest of the gray region bare skin counts")
    rim: float = setting(0.5, "the same of the background inside it")
    misaligned: float = setting(0.0, "and of cloth that the warped garment leaves out")
    r1: float = setting(0.0, "weight of the gradient penalty on real pictures (Mescheder et al. 2018)")
    r1_every: int = setting(16, "updates between two penalties, each then that much heavier")
    discriminator: int = setting(64, "width of the discriminators")
    fine: bool = setting(False, "the discriminators are also shown the pictures' fine detail alone (not in the paper)")
    noise: bool = setting(True, "noise before each normalisation, scaled by weights that are learned")
    half: float = setting(0.0, "share of the updates on pictures of half the height and width")
    crops: float = setting(0.0, "share of the updates on windows of half the height and width")
    smaller: int = setting(2, "how many times as many of the smaller pictures make an update")
    variants: int = setting(4, "frames in which each person is seen")
    cache: str = setting("", "folder for the people in their frames; empty = made anew each time")
    studio: float = setting(0.5, "shares of the samples that are changed, see vton.data.scenes.Look")
    recoloured: float = setting(0.4, "another hue of the garment")
    flattened: float = setting(0.6, "the warped cloth without the photograph's light")
    cut: float = setting(0.7, "parts of the garment are missing in the warped cloth")
    bent: float = setting(0.35, "the warped cloth is a little deformed")
    shown: float = setting(0.0, "I_a shows parts of the gray region that stay as they were")
    lowered: float = setting(0.0, "I_a hides trousers and wall below the garment, as a longer old one did")
    deformation: float = setting(
        0.01, "of the worn garment in picture widths, in place of the matching module's errors"
    )
    validation: int = 24


PRESETS = read_presets(__file__, "alias")


def network_config(recipe: AliasRecipe) -> AliasConfig:
    """The network that a recipe trains."""
    return with_sizes(LITE.alias, recipe)


class AliasTask(PictureTask):
    """Trains ALIAS by L_I = L_cGAN + lambda_FM L_FM + lambda_percept L_percept (eq. 13), and the recipe's own terms."""

    recipe: AliasRecipe
    best = ("ssim_region", "max")

    def __init__(self, recipe: AliasRecipe):
        self.recipe = recipe
        self.size = (recipe.height, recipe.pictures_wide)
        pack = Pack(recipe.pack) if recipe.pack else None
        smaller = recipe.half + recipe.crops
        if smaller > 1:
            raise ValueError(f"half and crops are shares of all updates; together they are {smaller:g}.")
        cache = Path(recipe.cache) if recipe.cache else None
        self.look = Look(**{name: getattr(recipe, name) for name in Look.__dataclass_fields__})
        draped = [draped_people(recipe, self.size, split) for split in ("train", "val")]
        self.scenes = Scenes(pack, self.size, "train", recipe.variants, cache, draped[0], recipe.draped)
        self.val_scenes = Scenes(pack, self.size, "val", 1, cache, draped[1], recipe.draped)
        config = network_config(recipe)
        model = self.set_model(AliasGenerator(config))
        betas = (recipe.beta1, recipe.beta2)
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=betas)}
        if recipe.gan or recipe.feature_matching:
            critic = MultiScaleDiscriminator(config.classes + 1 + (6 if recipe.fine else 3), recipe.discriminator)
            self.modules["discriminator"] = critic.to(memory_format=torch.channels_last)
            self.optimizers["discriminator"] = torch.optim.Adam(critic.parameters(), lr=recipe.lr_d, betas=betas)
        self.features = feature_network(recipe.features) if recipe.perceptual else None
        self.weights = {
            "l1": recipe.l1,
            "gradient": recipe.gradient,
            "rendered": recipe.l1,
            "opaque": recipe.opaque,
            "kept": recipe.opaque,
            "adversarial": recipe.gan,
            "feature_matching": recipe.feature_matching,
            "perceptual": recipe.perceptual,
        }
        self._validation: dict[str, torch.Tensor] | None = None

    def initial_state(self):
        """Weights without a composition, or that keep nothing, may learn to: the new shares begin at one half."""
        state = super().initial_state()
        channels = 3 + self.recipe.composition + self.recipe.keeps
        for name in ("conv_img.weight", "conv_img.bias"):
            missing = channels - len(state[name])
            if missing > 0:
                state[name] = torch.cat((state[name], torch.zeros_like(state[name][:missing])))
        return state

    # -- samples -------------------------------------------------------------------------------------------------

    def batch(self, step, micro, rank, world):
        """Micro-batch `micro` of update `step` for one process; a pure function of its arguments and the seed."""
        # Every process draws the same size, whatever its share of the samples.
        draw = np.random.default_rng([self.recipe.seed, step, micro]).random()
        half, crop = draw < self.recipe.half, self.recipe.half <= draw < self.recipe.half + self.recipe.crops
        count = (self.recipe.smaller if half or crop else 1) * self.recipe.batch
        samples = []
        for rng in generators(self.recipe.seed, step, micro, rank, world, count):
            scene = self.scenes.draw(rng)
            samples.append(dress(halve(scene) if half else random_crop(scene, rng) if crop else scene, rng, self.look))
        return collate(samples)

    def generate(self, model, batch, norm="alias", noise=None, quick=False):
        """(I-hat, rendered, alpha, kept) and S_div of a batch; without a composition the first two are the same.

        quick: without gradients, in less time on a CPU.
        """
        segmentation = batch["segmentation"]
        misalign, divided = misalignment(segmentation, batch["warped_mask"])
        x = torch.cat((batch["agnostic"], batch["pose"], batch["warped"]), 1)
        x = x.contiguous(memory_format=torch.channels_last)
        answer = partial(alias_inference.forward, model) if quick and x.device.type == "cpu" else model
        return answer(x, segmentation, divided, misalign, norm=norm, noise=noise, parts=True), divided

    # -- losses --------------------------------------------------------------------------------------------------

    def update(self, batches, trainer):
        """One update of the network and, where there is one, of its discriminator; the mean of each loss."""
        n, critic = sum(self.count(b) for b in batches), self.networks.get("discriminator")
        sums: dict[str, float] = {}
        passes = []
        for batch in batches:
            share = self.count(batch) / n
            with trainer.autocast():
                terms, fake, divided = self.generator_terms(batch, critic, trainer.device)
            trainer.backward(sum(self.weights.get(k, 1.0) * v for k, v in terms.items()) * share)
            passes.append((fake.detach(), divided.detach(), batch["person"], share))
            for name, value in terms.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach()) * share
        trainer.step("model")
        if critic is not None:
            sums |= self.update_critic(critic, passes, trainer)
        self.update_average()
        return sums

    def generator_terms(self, batch, critic, device):
        """The generator's named losses on one batch, I-hat and S_div."""
        recipe, real = self.recipe, batch["person"]
        noise = (lambda shape: torch.randn(shape, device=device)) if recipe.noise else None
        (fake, rendered, alpha, photo_share), divided = self.generate(self.networks["model"], batch, noise=noise)
        # What is pasted back from the photograph anyway counts less than what has to be made up; skin, the background
        # that comes to light and misaligned cloth more.
        weight = 0.3 + 0.7 * batch["region"] + recipe.skin * batch["skin"] + recipe.rim * batch["rim"]
        weight = (weight + recipe.misaligned * divided[:, -1:]) * (1 - batch["carried"])
        terms = {"l1": ((real - fake).abs() * weight).mean()}
        if recipe.gradient:
            terms["gradient"] = gradient_difference(real, fake, weight)
        if recipe.composition:
            aligned = divided[:, ALIAS_UPPER : ALIAS_UPPER + 1]
            terms["rendered"] = ((real - rendered).abs() * weight).mean()
            terms["opaque"] = (aligned - alpha).sum() / aligned.sum().clamp(min=1)
        if recipe.keeps:
            beside = 1 - divided[:, ALIAS_UPPER : ALIAS_UPPER + 1] - divided[:, -1:]
            visible = visible_mask(batch["agnostic"]) * beside
            terms["kept"] = (visible - photo_share).sum() / visible.sum().clamp(min=1)
        if self.features is not None:
            terms["perceptual"] = perceptual(*[self.features(picture) for picture in (real, fake)])
        if critic is not None:
            critic.requires_grad_(False)  # this pass trains the generator alone
            on_fake = critic(self.critic_input(divided, fake))
            terms["adversarial"] = over_scales(objective(recipe.adversarial).g, logits(on_fake))  # eq. 14
            if recipe.feature_matching:
                with torch.no_grad():
                    on_real = critic(self.critic_input(divided, real))
                terms["feature_matching"] = feature_matching(on_real, on_fake)
        return terms, fake, divided

    def critic_input(self, divided, picture):
        """What the discriminators see: S_div and the picture."""
        return torch.cat((divided, with_detail(picture) if self.recipe.fine else picture), 1)

    def update_critic(self, critic, passes, trainer):
        """One step of the discriminators on (fake, S_div, real, share of the update) of each micro-batch (eq. 14)."""
        recipe = self.recipe
        critic.requires_grad_(True)
        updates = next(iter(self.optimizers["model"].state.values()))["step"]
        with_penalty = recipe.r1 and int(updates) % recipe.r1_every == 0
        pairs = (
            (self.critic_input(divided, real), self.critic_input(divided, fake), share)
            for fake, divided, real, share in passes
        )
        weight = recipe.r1 / 2 * recipe.r1_every if with_penalty else 0.0
        return update_discriminator(trainer, critic, objective(recipe.adversarial), pairs, weight)

    # -- looking at it -------------------------------------------------------------------------------------------

    def validation(self):
        """People whom no update sees, as photographed; W(c, theta) is a little deformed and cut as in the training."""
        if self._validation is None:
            scenes, plain = self.val_scenes, dict.fromkeys(("studio", "recoloured", "flattened"), 0.0)
            look = Look(**plain, cut=1, bent=1, deformation=0.005, shown=float(self.recipe.keeps))
            numbers = range(scenes.draped_numbers.start) if scenes.people else scenes.draped_numbers
            usable = ((number, scene) for number in numbers if has_garment(scene := scenes[number]))
            samples = (dress(scene, np.random.default_rng([9, number]), look) for number, scene in usable)
            self._validation = collate([*islice(samples, self.recipe.validation)])
        return self._validation

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        figures: dict[str, float] = {}
        batch = self.validation()
        for norm in ("alias", "instance"):
            series: dict[str, list[float]] = {}
            for i in range(len(batch["person"])):
                one = {k: v[i : i + 1] for k, v in batch.items()}
                (fake, *_), divided = self.generate(self.modules["ema"], one, norm, quick=True)
                fake, real = tensor_to_picture(fake[0]), tensor_to_picture(batch["person"][i])
                aligned = divided[0, ALIAS_UPPER : ALIAS_UPPER + 1]
                region, rim, aligned, misaligned = (
                    a[0].numpy() > 0 for a in (batch["region"][i], batch["rim"][i], aligned, divided[0, -1:])
                )
                similarity = ssim_map(fake, real)
                for name, value in {
                    "ssim": similarity.mean(),
                    "ssim_region": similarity[region].mean(),
                    "sharpness": sharpness(fake, real, aligned),
                    "halo": colour_difference(fake, real, rim),
                    "misaligned": colour_difference(fake, real, misaligned),
                }.items():
                    series.setdefault(name, []).append(value)
            tail = "" if norm == "alias" else "_instance"
            figures |= {f"{name}{tail}": float(np.nanmean(values)) for name, values in series.items()}
        return figures

    def sample(self, folder, step):
        """A sheet of pictures of the validation samples, and what the averaged weights make of them."""
        batch = {k: v[:6] for k, v in self.validation().items()}
        (fake, rendered, alpha, photo_share), _ = self.generate(self.modules["ema"], batch, quick=True)
        columns = [*(batch[k] for k in ("person", "agnostic", "warped")), fake]
        if self.recipe.composition:
            columns += [rendered, (2 * alpha - 1).expand_as(fake)]
        if self.recipe.keeps:
            columns.append((2 * photo_share - 1).expand_as(fake))
        rows = [[tensor_to_picture(pictures[i]) for pictures in columns] for i in range(len(fake))]
        save_grid(folder / "synthesis.png", rows)


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
            raise ValueError(
                "The VGG-19 weights could not be downloaded; without a connection give --features the folder of a "
                f"trained parser ({error})."
            ) from None
        mean, std = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, :, None, None]
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
    parser = Parser(from_json(ParserConfig, config))
    fill(parser, state, "the human parser")
    parser.eval().requires_grad_(False).to(memory_format=torch.channels_last)

    def encoder(picture):
        parser.to(picture.device)
        b, _, h, w = picture.shape
        joints, person = picture.new_zeros(b, parser.config.joints, h, w), picture.new_ones(b, 1, h, w)
        return parser.features(picture.contiguous(memory_format=torch.channels_last), joints, person)[:4]

    return encoder
