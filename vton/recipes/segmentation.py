"""Recipe of the segmentation generator: L_S of VITON-HD (eq. 1, in A.3 eq. 8 to 10)."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from gan.losses import objective, over_scales
from training.recipe import SHARE, read_presets, setting
from vton import labels
from vton.attributes import ATTRIBUTES, LOOSE, decode, with_group
from vton.data.hems import near_hem, with_old_hem
from vton.data.lengths import with_length, with_slim_cloth
from vton.data.samples import SOURCES
from vton.data.sleeve_cuts import with_armholes, with_cut_sleeves, with_straps
from vton.inputs.agnostic import HEM_BELOW, hide_hem
from vton.inputs.hem import hem_plane, hem_row, hips_and_trunk, plane_of
from vton.metrics import confusion, edge_distances, iou, mask_iou
from vton.networks.config import LITE, NETWORK_SIZE, SegmentationConfig
from vton.networks.discriminator import MultiScaleDiscriminator, logits
from vton.networks.segmentation import SegmentationGenerator, generator_input
from vton.recipes.common import PairTask, PictureRecipe, samplers, save_grid, update_discriminator
from vton.rules.sleeves import contradicting
from vton.tensors import tensor_to_picture


@dataclass
class SegmentationRecipe(PictureRecipe):
    """Fields of the recipe of the segmentation generator."""

    # Twins with other sleeves, and sleeves that contradict the garment, have a recipe of their own since
    # (lab.tryon.contrary).
    former = {"flips": 0.0, "contrary": 0.0}
    bounds = dict.fromkeys(("unknown", "hems", "cuts", "straps", "slim", "hides", "rows", "margin"), SHARE)

    width: int = setting(LITE.segmentation.width, "channels of the first block; the deeper ones double")
    lr: float = 4e-4
    lr_d: float = setting(4e-4, "learning rate of the discriminators")
    beta1: float = setting(0.5, "of Adam")
    adversarial: str = setting("lsgan", "form of the adversarial loss, see gan.losses")
    gan: float = setting(1.0, "weight of the adversarial term; 0 = no discriminator")
    cross_entropy: float = setting(10.0, "lambda_CE")
    arms: float = setting(1.0, "weight of the two arm classes in the cross-entropy; 1 in the paper")
    discriminator: int = setting(64, "width of the discriminators")
    reduce: int = setting(1, "train at 256 / reduce by 192 / reduce")
    attributes: bool = setting(False, "tell the network the garment's sleeves (not in the paper)")
    hem: bool = setting(False, "and whether its hem is tucked in (not in the paper)")
    unknown: float = setting(0.15, "share of the samples in which each attribute is kept from it")
    hems: float = setting(0.0, "share of the pairs whose S_a another garment's hem has left, see vton.data.hems")
    cuts: float = setting(0.0, "share of the draped garments whose sleeves are cut shorter, flat and worn alike")
    straps: float = setting(0.0, "share of the draped garments that are cut down to a top on straps, likewise")
    lengths: float = setting(0.0, "share of the draped garments that are made longer or shorter, likewise")
    slim: float = setting(0.0, "share of the draped garments that look as on a form: narrower, the flat ones alone")
    rows: float = setting(0.0, "share of the samples with a loose hem whose row the network is given")
    margin: float = setting(0.0, "around hems of photographs, in lengths of the trunk, within which nothing is learned")
    hides: float = setting(0.0, "share of the samples with a loose hem in whose S_a the trousers near it are hidden")


HIDE_BELOW = (0.3, 0.7)  # how far below the hips S_a is hidden, see `hide_hem`
SLIM = (0.62, 0.95)  # how wide a garment on a form looks beside one that lies flat
ROW_NOISE = 0.012  # standard deviation of the given row of a hem around the true one, in lengths of the trunk


PRESETS = read_presets(__file__, "segmentation")


def network_config(recipe: SegmentationRecipe) -> SegmentationConfig:
    """The network that a recipe trains."""
    length = sum(len(ATTRIBUTES[name]) for name in attribute_names(recipe))
    return replace(
        LITE.segmentation,
        width=recipe.width,
        attributes=length,
        hides_hem=recipe.hides > 0,
        places_hem=recipe.rows > 0,
    )


def attribute_names(recipe: SegmentationRecipe) -> list[str]:
    """The attributes on which the network is conditioned, in the order of their code; see `vton.attributes`."""
    if recipe.hem and not recipe.attributes:
        raise ValueError("hem needs attributes, too, whose code it goes on: set attributes to true.")
    return [name for name in ATTRIBUTES if recipe.attributes and (name != "hem" or recipe.hem)]


def sleeves(batch: dict[str, torch.Tensor]) -> list[str]:
    """The sleeves of each garment of a batch, as far as they are known; see `vton.attributes`."""
    return [decode(code, "sleeves") for code in batch["attributes"].numpy()]


def other_hem(sample: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A sample of a person in the own garment as if another one had been taken off."""
    agnostic = sample["parse_agnostic"].argmax(0).astype(np.uint8)
    agnostic = with_old_hem(agnostic, sample["segmentation"], sample["keypoints"], rng)
    return sample | {"parse_agnostic": labels.one_hot(agnostic, 13)}


def without_hem(sample: dict[str, np.ndarray], below: float) -> dict[str, np.ndarray]:
    """A sample whose S_a tells nothing of the hem, where that is to be worn over trousers or skirt."""
    agnostic, hem = sample["parse_agnostic"].argmax(0).astype(np.uint8), decode(sample["attributes"], "hem")
    agnostic = hide_hem(agnostic, sample["keypoints"], hem, below)
    return sample | {"parse_agnostic": labels.one_hot(agnostic, 13)}


class SegmentationTask(PairTask):
    """Trains G_S by L_S = L_cGAN + lambda_CE L_CE (equations 1 and 8)."""

    recipe: SegmentationRecipe
    best = ("upper_iou", "max")

    def __init__(self, recipe: SegmentationRecipe):
        self.recipe = recipe
        self.size = (NETWORK_SIZE[0] // recipe.reduce, NETWORK_SIZE[1] // recipe.reduce)
        self.sampler, self.val_sampler = samplers(recipe, NETWORK_SIZE)
        config = network_config(recipe)
        model = self.set_model(SegmentationGenerator(config))
        self.optimizers = {"model": torch.optim.Adam(model.parameters(), lr=recipe.lr, betas=(recipe.beta1, 0.999))}
        if recipe.gan:
            channels = config.inputs + config.places_hem + config.classes
            critic = MultiScaleDiscriminator(channels, recipe.discriminator, normalise=True)
            self.modules["discriminator"] = critic
            self.optimizers["discriminator"] = torch.optim.Adam(
                critic.parameters(), lr=recipe.lr_d, betas=(recipe.beta1, 0.999)
            )
        self.weights = {"cross_entropy": recipe.cross_entropy, "adversarial": recipe.gan, "discriminator": 0.0}
        self.class_weights = torch.ones(13)
        self.class_weights[list(labels.ARMS)] = recipe.arms

    def initial_state(self):
        """Weights that were not conditioned on attributes, on fewer, or not on the hem's plane may begin to be: nothing
        changes at first.
        """
        state = super().initial_state()
        for name, own in SegmentationGenerator(network_config(self.recipe)).state_dict().items():
            if name.startswith("told."):
                known = state.get(name, own[:, :0])
                state[name] = torch.cat((known, own[:, known.shape[1] :].to(known)), 1)
            elif name == "conv1.0.weight":
                state[name] = F.pad(state[name], (0, 0, 0, 0, 0, own.shape[1] - state[name].shape[1]))
        return state

    def batch(self, step, micro, rank, world):
        """Micro-batch `micro` of update `step` for one process; a pure function of its arguments and the seed."""
        batch = super().batch(step, micro, rank, world)
        # The noise channel: ones with probability 0.159, drawn from the step so that a resumed run sees the same.
        shape = (len(batch["person"]), 1, *self.size)
        batch["noise"] = torch.from_numpy(
            (np.random.default_rng([self.recipe.seed, step, micro, 10**6 + rank]).standard_normal(shape) > 1).astype(
                np.float32
            )
        )
        return batch

    def sample_one(self, rng):
        """As of `PairTask`, changed as the recipe says."""
        return self.change(super().sample_one(rng), rng)

    def change(self, sample, rng):
        """A sample as it is learned: of a draped person at times in another garment, with what the network is told."""
        recipe = self.recipe
        if sample["placed"].any() and recipe.cuts + recipe.straps + recipe.lengths + recipe.slim:
            sample = self.alter(sample, rng)
        if recipe.attributes:
            sample = self.condition(sample, rng)
        if recipe.hems and rng.random() < recipe.hems:
            sample = other_hem(sample, rng)
        if recipe.hides and rng.random() < recipe.hides:
            sample = without_hem(sample, rng.uniform(*HIDE_BELOW))
        if recipe.rows:
            sample = sample | {"hem": self.hem_plane(sample, rng)[None]}
        if recipe.margin and sample["source"] == SOURCES.index("worn"):
            loose = near_hem(sample["segmentation"], sample["keypoints"], recipe.margin)
            sample = sample | {"carried": sample["carried"] | loose[None]}
        return sample

    def alter(self, sample, rng):
        """A draped person whose garment may be cut, and made longer or shorter, flat and worn alike."""
        recipe, cuts = self.recipe, self.recipe.cuts + self.recipe.straps
        if cuts and rng.random() < cuts:
            straps = recipe.straps and rng.random() * cuts < recipe.straps
            sample = (with_straps if straps else with_cut_sleeves)(sample, rng)
        if cuts and decode(sample["attributes"], "sleeves") == "none":
            sample = with_armholes(sample, rng)
        if recipe.lengths and rng.random() < recipe.lengths:
            sample = with_length(sample, rng)
        return with_slim_cloth(sample, rng.uniform(*SLIM) if rng.random() < recipe.slim else 1.0)

    def hem_plane(self, sample, rng):
        """The plane of a sample's hem (H, W), near the true one where it is loose; at times of no hem at all."""
        truth, place, row = sample["segmentation"], hips_and_trunk(sample["keypoints"]), None
        if decode(sample["attributes"], "hem") == LOOSE and rng.random() < self.recipe.rows:
            row = hem_row(truth == labels.UPPER, truth)
        if row is not None and place is not None:
            row += rng.normal(0, ROW_NOISE * place[1])
        return hem_plane(row, sample["keypoints"], truth.shape)

    def condition(self, sample, rng):
        """A sample with the attributes that the network is given."""
        rng.random()  # lab.tryon.contrary decides by it; so the numbers that follow are those of earlier runs
        return sample | {"attributes": self.hide_some(sample["attributes"], rng)}

    def hide_some(self, code, rng):
        """The code of a garment's attributes, at times without those that are known."""
        for name in attribute_names(self.recipe):
            if rng.random() < self.recipe.unknown:
                code = with_group(code, name, "")
        return code

    def inputs(self, batch):
        """The generator's input of a batch, (B,21,H,W), at the recipe's size."""

        def small(x):
            return F.interpolate(x, self.size, mode="bilinear", align_corners=False) if self.recipe.reduce > 1 else x

        x = generator_input(
            small(batch["cloth"]),
            small(batch["cloth_mask"]),
            small(batch["parse_agnostic"]),
            small(batch["pose"]),
            batch["noise"],
            small(batch["hem"]) if self.recipe.rows else None,
        )
        return x.contiguous(memory_format=torch.channels_last)

    def target(self, batch):
        """The labels S (B,H,W) at the recipe's size; -100 where they are unknown."""
        step = self.recipe.reduce
        target = batch["segmentation"][:, ::step, ::step].clone()
        carried = batch["carried"][:, 0, ::step, ::step] > 0
        target[carried] = -100  # nobody knows what a bag hides
        return target

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        scores = self.networks["model"](self.inputs(batch), batch["attributes"]).float()
        n = len(scores)
        # In its stable form on logits; the release's sigmoid leaves the argmax as it is.
        return {
            # L_S of eq. 1 and eq. 8 is the weighted sum of the terms; the cross-entropy is eq. 9.
            "cross_entropy": F.cross_entropy(scores, self.target(batch), self.class_weights.to(scores.device)) * n,
            **self.adversarial(batch, scores),
        }

    def adversarial(self, batch, scores):
        """The generator's part of eq. 10, summed over the batch; empty without a discriminator."""
        if not self.recipe.gan:
            return {}
        loss, critic = objective(self.recipe.adversarial), self.networks["discriminator"]
        n, x = len(scores), self.inputs(batch)
        fake = critic(torch.cat((x, scores.softmax(1)), 1))
        return {"adversarial": over_scales(loss.g, logits(fake)) * n}  # eq. 10

    def update(self, batches, trainer):
        """One update of the network and, where there is one, of its discriminator; the mean of each loss."""
        if not self.recipe.gan:
            return super().update(batches, trainer)
        terms = super().update(batches, trainer)  # generator; also leaves gradients in the discriminator
        self.modules["discriminator"].zero_grad(set_to_none=True)
        pairs = (self.critic_pair(batch, trainer, 1 / len(batches)) for batch in batches)
        loss = objective(self.recipe.adversarial)
        figures = update_discriminator(trainer, self.networks["discriminator"], loss, pairs)
        return {**terms, "discriminator": figures["discriminator"]}

    def critic_pair(self, batch, trainer, share):
        """What the discriminator compares (eq. 10), the inputs X with S and with S-hat; and the share of the update."""
        with trainer.autocast():
            x = self.inputs(batch)
            with torch.no_grad():
                fake = self.modules["model"](x, batch["attributes"]).float().softmax(1)
            real = F.one_hot(self.target(batch).clamp(min=0), 13).permute(0, 3, 1, 2).float()
            return torch.cat((x, real), 1), torch.cat((x, fake), 1), share

    def validation(self):
        """As `PairTask.validation`, without noise and without the place of any hem."""
        samples = super().validation()
        nothing = torch.zeros(self.count(samples), 1, *self.size)
        return samples | {"noise": nothing, "hem": F.interpolate(nothing, NETWORK_SIZE)}

    def answer(self, batch):
        """The classes (B,H,W) that the averaged weights give, with a second look where they take the place of hems."""
        network = self.modules["ema"]
        classes = network(self.inputs(batch), batch["attributes"]).argmax(1)
        if not self.recipe.rows:
            return classes
        large = np.kron(classes.numpy(), np.ones((1, *(self.recipe.reduce,) * 2), np.uint8))
        loose = [decode(code, "hem") == LOOSE for code in batch["attributes"].numpy()]
        planes = [plane_of(*both) * known for *both, known in zip(large, batch["keypoints"].numpy(), loose)]
        second = batch | {"hem": torch.from_numpy(np.stack(planes))[:, None]}
        return network(self.inputs(second), batch["attributes"]).argmax(1)

    def for_validation(self, sample, rng):
        """With the hem of another garment, where the recipe trains for that."""
        sample = other_hem(sample, rng) if self.recipe.hems else sample
        return without_hem(sample, HEM_BELOW) if self.recipe.hides else sample

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        batch = self.validation()
        answer = self.answer(batch)
        target = self.target(batch)
        matrix = confusion(target.clamp(min=0).numpy(), answer.numpy(), (target >= 0).numpy(), 13)
        ious = dict(zip(labels.SEGMENTATION, iou(matrix)))
        per_picture = [
            mask_iou(((a == labels.UPPER) & (t >= 0)).numpy(), (t == labels.UPPER).numpy())
            for a, t in zip(answer, target)
        ]
        figures = {"upper_iou": float(np.mean(per_picture)), "mean_iou": float(np.nanmean(list(ious.values())[:7]))}
        for kind, name in enumerate(SOURCES):
            group = [p for p, s in zip(per_picture, batch["source"]) if s == kind]
            if group:
                figures[f"upper_iou_{name}"] = float(np.mean(group))
        figures |= self.edges(batch, answer)
        right = [
            not contradicting(np.kron(a, np.ones((self.recipe.reduce,) * 2, np.uint8)), keypoints, kind)
            for a, keypoints, kind in zip(answer.numpy().astype(np.uint8), batch["keypoints"].numpy(), sleeves(batch))
            if kind
        ]
        figures |= {"sleeves_right": float(np.mean(right))} if right else {}
        return {**figures, "iou_arms": float(np.nanmean([ious["left arm"], ious["right arm"]]))}

    def edges(self, batch, answer) -> dict[str, float]:
        """Mean distances of hem, neckline and sleeve ends from the true ones, in pixels, of the draped people."""
        step, rows = self.recipe.reduce, []
        for i in (batch["source"] == SOURCES.index("draped")).nonzero()[:, 0].tolist():
            keypoints = batch["keypoints"][i].numpy() / (step, step, 1)
            truth = self.target(batch)[i].numpy() == labels.UPPER
            rows.append(edge_distances(truth, answer[i].numpy() == labels.UPPER, keypoints))
        names = sorted({name for row in rows for name in row})
        return {f"{name}_pixels": float(np.mean([row[name] for row in rows if name in row])) for name in names}

    def sample(self, folder, step):
        """A sheet of pictures of the validation samples, and what the averaged weights make of them."""
        batch = {k: v[:6] for k, v in self.validation().items()}
        answer = self.answer(batch).numpy()
        k, rows = self.recipe.reduce, []
        for i in range(len(answer)):
            maps = [
                labels.colour(m.astype(np.uint8), labels.SEGMENTATION_COLOURS)
                for m in (
                    batch["parse_agnostic"][i].argmax(0).numpy()[::k, ::k],
                    batch["segmentation"][i].numpy()[::k, ::k],
                    answer[i],
                )
            ]
            rows.append([tensor_to_picture(batch[name][i])[::k, ::k] for name in ("person", "cloth")] + maps)
        save_grid(folder / "segmentation.png", rows)
