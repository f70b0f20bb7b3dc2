"""What the try-on recipes share: rates, averaged weights, discriminators' update, random numbers, pictures."""

import copy
import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import get_ema_multi_avg_fn

from gan.losses import Objective, over_scales
from training.recipe import AT_LEAST_1, SHARE, Recipe, setting
from training.task import Task, Trainer
from training.weights import fill, load_model, save_model
from vton.data.draped.people import DrapedPeople, load_people
from vton.data.pack import Pack
from vton.data.samples import Sampler
from vton.metrics import mask_iou, structural_similarity
from vton.networks.config import AliasConfig, FlowConfig
from vton.networks.discriminator import gradient_penalty, logits, split
from vton.networks.warping import warp
from vton.tensors import tensor_to_picture

Config = TypeVar("Config", AliasConfig, FlowConfig)
BLUR = 1 / 40  # standard deviation of the blur under a ragged outline, as a share of the picture's height
NOISE = (0.05, 0.3)  # standard deviation of the smooth noise that moves the outline; 0.34 is one of the blur
MAX_NOISE = 0.45  # below one half, so that nothing far from the outline changes


@dataclass
class PictureRecipe(Recipe):
    """Fields of every try-on recipe."""

    bounds = {
        **dict.fromkeys(("height", "pictures_wide"), (16, 4096)),
        **dict.fromkeys(("batch", "width", "features", "widest", "hidden", "injected", "discriminator"), (1, 4096)),
        **dict.fromkeys(("levels", "reduce"), (1, 16)),
        **dict.fromkeys(("draped", "ema", "beta1", "beta2"), SHARE),
        "validation": AT_LEAST_1,
    }

    pack: str = setting("", "packed file of photos and garments (python -m vton.data); empty = draped people alone")
    draped: float = setting(0.15, "share of draped people among the samples; without a pack all are")
    drapes: str = setting("", "packed file of them (python -m lab.tryon.draping.pack); empty = those that ship")
    drawings: str = setting("", "folder of pictures of them made beforehand (python -m lab.tryon.draping.drawings)")
    batch: int = setting(8, "pictures per micro-batch")
    lr: float = setting(1e-3, "learning rate")
    schedule: str = setting("constant", '"constant", or "cosine" down to a hundredth')
    warmup: int = setting(0, "updates over which the rate rises linearly")
    ema: float = setting(0.999, "decay of the averaged weights that are exported")
    initial: str = setting("", "folder of trained weights to start from")
    validation: int = setting(32, "validation samples per evaluation")

    def check(self) -> None:
        """Also refuses an unknown schedule."""
        super().check()
        if self.schedule not in ("constant", "cosine"):
            raise ValueError(f"schedule must be 'constant' or 'cosine', but is '{self.schedule}'.")


class PictureTask(Task):
    """Base of their tasks. `modules["model"]` is trained, `modules["ema"]` follows it and is exported."""

    recipe: PictureRecipe

    def set_model(self, model: nn.Module) -> nn.Module:
        """Registers the network to be trained, in the memory layout that convolutions like best."""
        if self.recipe.initial:
            fill(model, self.initial_state(), f"the {type(model).__name__}")
        model.to(memory_format=torch.channels_last)
        ema = copy.deepcopy(model).requires_grad_(False)
        self.modules = {"model": model, "ema": ema}
        return model

    def initial_state(self) -> dict[str, Tensor]:
        """The weights that the recipe starts from."""
        return load_model(self.recipe.initial)[1]

    def learning_rates(self, step: int) -> dict[str, float]:
        """`lr` by the recipe's schedule; a discriminator follows it with its own `lr_d`."""
        factor = rate_factor(step, self.recipe)
        rates = {"discriminator": getattr(self.recipe, "lr_d", self.recipe.lr)}
        return {name: factor * rates.get(name, self.recipe.lr) for name in self.optimizers}

    def batch(self, step, micro, rank, world):
        """Micro-batch `micro` of update `step` for one process; a pure function of its arguments and the seed."""
        return collate(self.samples(step, micro, rank, world))

    def samples(self, step: int, micro: int, rank: int, world: int) -> list[dict[str, Any]]:
        """What `batch` is made of."""
        rngs = generators(self.recipe.seed, step, micro, rank, world, self.recipe.batch)
        return [self.sample_one(rng) for rng in rngs]

    def sample_one(self, rng: np.random.Generator) -> dict[str, Any]:
        """One training sample, drawn with the generator alone."""
        raise NotImplementedError

    def count(self, batch: dict[str, Any]) -> int:
        """Pictures of a batch."""
        return len(next(iter(batch.values())))

    def update(self, batches, trainer):
        """As `Task.update`; the averaged weights follow."""
        terms = super().update(batches, trainer)
        self.update_average()
        return terms

    def update_average(self) -> None:
        """Moves the averaged weights; early on the average is short, so that the first weights are soon forgotten."""
        state = next(iter(self.optimizers["model"].state.values()))["step"]
        decay = min(self.recipe.ema, (1 + float(state)) / (10 + float(state)))
        own, average = (self.modules[name].state_dict() for name in ("model", "ema"))
        floats = [name for name, value in average.items() if value.is_floating_point()]
        get_ema_multi_avg_fn(decay)([average[name] for name in floats], [own[name] for name in floats], None)
        for name in average.keys() - set(floats):  # batch norm's counts
            average[name].copy_(own[name])

    def export(self, folder: Path) -> None:
        """config.json, and the averaged weights as model.safetensors."""
        save_model(folder, dataclasses.asdict(self.modules["ema"].config), self.modules["ema"].state_dict())


def draped_people(recipe: PictureRecipe, size: tuple[int, int], split: str = "train") -> DrapedPeople | None:
    """The draped people that a recipe asks for, as pictures of `size` (H, W); None where it wants photographs alone."""
    if recipe.pack and not recipe.draped:
        return None
    return load_people(size, split, recipe.drapes, recipe.drawings)


def samplers(recipe: PictureRecipe, size: tuple[int, int]) -> tuple[Sampler, Sampler]:
    """What a recipe trains on and what it is measured on, at `size` (H, W)."""
    pack = Pack(recipe.pack) if recipe.pack else None
    train, val = (
        Sampler(pack, size, split, draped_people(recipe, size, split), recipe.draped) for split in ("train", "val")
    )
    return train, val


def displacement(grid: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """(B,) mean distance of a warp from the true one where that is known, in halves of the cloth picture's sides.

    grid: (B, H, W, 2) in [-1, 1]; another size than the batch's is enlarged.
    """
    true, mask = batch["grid"], batch["placed"][:, 0]
    if grid.shape[1:3] != true.shape[1:3]:
        size = true.shape[1:3]
        grid = F.interpolate(grid.permute(0, 3, 1, 2), size, mode="bilinear", align_corners=False).permute(0, 2, 3, 1)
    away = (grid - true).abs().sum(3)
    return (away * mask).sum((1, 2)) / mask.sum((1, 2)).clamp(min=1)


def warp_figures(grid: Tensor, batch: dict[str, Tensor]) -> tuple[dict[str, float], np.ndarray]:
    """What every warp is measured by, against the garment as it is worn: overlap, likeness, difference, and where it is
    known the distance from the true warp; and the warped masks (B, H, W) bool. grid: (B, H, W, 2).
    """
    mask = warp(batch["cloth_mask"], grid, "zeros")[:, 0].numpy() > 0.5
    truth, cloth = batch["worn_mask"][:, 0].numpy() > 0.5, warp(batch["cloth"], grid)
    likeness = [structural_similarity(*map(tensor_to_picture, pair)) for pair in zip(cloth, batch["worn"])]
    figures = {
        "warped_iou": float(np.mean([mask_iou(a, b) for a, b in zip(mask, truth)])),
        "ssim": float(np.mean(likeness)),
        "l1": float((batch["worn"] - cloth).abs().mean()),
        **({"misplaced": float(displacement(grid, batch).mean())} if batch["placed"].any() else {}),
    }
    return figures, mask


class PairTask(PictureTask):
    """Base of those that learn from pairs of a garment and the same garment worn, see `vton.data.samples`."""

    sampler: Sampler
    val_sampler: Sampler
    _validation: dict[str, Tensor] | None = None

    def sample_one(self, rng: np.random.Generator) -> dict[str, Any]:
        """As of `Sampler`."""
        return self.sampler.sample(rng)

    def validation(self) -> dict[str, Tensor]:
        """The validation samples, always the same ones."""
        if self._validation is None:
            indices = range(self.recipe.validation)
            rngs = [np.random.default_rng([9, i]) for i in indices]
            samples = [self.val_sampler.sample(rng, augment=False, index=i) for rng, i in zip(rngs, indices)]
            self._validation = collate([self.for_validation(sample, rng) for sample, rng in zip(samples, rngs)])
        return self._validation

    def for_validation(self, sample: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """A sample of `Sampler` as the networks are measured on it: unchanged, unless a recipe overrides this."""
        return sample


class WarpTask(PairTask):
    """Base of those that learn to warp; a share of their regions is wrong on purpose, see `imitate_prediction`."""

    def grid(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """The sampling grid (B, H, W, 2) by which a network lays the cloths of a batch on their people."""
        raise NotImplementedError

    def batch(self, step, micro, rank, world):
        """As of `PairTask`, with the given regions where they are not the true ones."""
        batch, recipe = super().batch(step, micro, rank, world), self.recipe
        locks, outlines = getattr(recipe, "locks", 0.0), getattr(recipe, "outlines", 0.0)
        if locks or outlines:
            rngs = generators(recipe.seed, step, micro + 10**6, rank, world, recipe.batch)
            batch["region"] = imitate_prediction(batch["worn_mask"], locks, outlines, rngs)
        return batch

    def person_maps(self, batch: dict[str, Tensor]) -> Tensor:
        """What a network sees of the people of a batch, (B, 7, H, W): region, P and I_a."""
        return torch.cat((batch.get("region", batch["worn_mask"]), batch["pose"], batch["agnostic"]), 1)

    def sample(self, folder, step):
        """A sheet of person, cloth, the cloth as it is worn and as the averaged weights lay it."""
        batch = {k: v[:5] for k, v in self.validation().items()}
        warps = warp(batch["cloth"], self.grid(self.modules["ema"], batch))
        columns = (*(batch[name] for name in ("person", "cloth", "worn")), warps)
        rows = [[tensor_to_picture(pictures[i]) for pictures in columns] for i in range(len(warps))]
        save_grid(folder / "warp.png", rows)


def cut_locks(region: Tensor, rng: np.random.Generator) -> Tensor:
    """A region (1, H, W) with one or two gaps from its upper edge downwards, where long hair would lie."""
    rows, columns = (torch.nonzero(region[0].amax(axis))[:, 0] for axis in (1, 0))
    if not len(rows):
        return region
    hidden, (top, height), width = region.clone(), (int(rows[0]), len(rows)), len(columns)
    for _ in range(rng.integers(1, 3)):
        middle = int(columns[0]) + rng.uniform(0.15, 0.85) * width
        half, end = rng.uniform(0.03, 0.14) * width, top + round(rng.uniform(0.15, 0.6) * height)
        hidden[:, :end, max(0, round(middle - half)) : round(middle + half)] = 0
    return hidden


def roughen_outline(region: Tensor, rng: np.random.Generator) -> Tensor:
    """A region (1, H, W) whose outline is wrong by some hundredths of the height, as one that was predicted."""
    sigma = BLUR * region.shape[1]
    noise = cv2.GaussianBlur(rng.normal(0, 1, region.shape[1:]).astype(np.float32), (0, 0), sigma)
    noise = noise * (rng.uniform(*NOISE) / max(float(noise.std()), 1e-6))
    soft = cv2.GaussianBlur(region[0].float().numpy(), (0, 0), sigma)
    return torch.from_numpy(soft + noise.clip(-MAX_NOISE, MAX_NOISE) > 0.5)[None].to(region.dtype)


def imitate_prediction(regions: Tensor, locks: float, outlines: float, rngs: Sequence[np.random.Generator]) -> Tensor:
    """Regions (B, 1, H, W): a share `locks` with gaps, a share `outlines` with a wrong outline; one generator each."""
    imitations = []
    for region, rng in zip(regions, rngs):
        region = cut_locks(region, rng) if rng.random() < locks else region
        imitations.append(roughen_outline(region, rng) if rng.random() < outlines else region)
    return torch.stack(imitations)


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


def rate_factor(step: int, recipe: PictureRecipe) -> float:
    """Share of the full learning rate at update `step` (from 1): linear warm-up, then constant or half a cosine."""
    if step <= recipe.warmup:
        return step / recipe.warmup
    if recipe.schedule == "constant":
        return 1.0
    progress = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def generators(seed: int, step: int, micro: int, rank: int, world: int, count: int) -> list[np.random.Generator]:
    """One generator per sample of a micro-batch. Sample i of a step is the same however many processes share it."""
    return [np.random.default_rng([seed, step, micro, i]) for i in range(rank, count, world)]


def collate(samples: list[dict[str, np.ndarray]]) -> dict[str, Tensor]:
    """Stacks samples field by field; uint8 pictures (H,W,3) become float (3,H,W) in [-1, 1]."""
    out = {}
    for key in samples[0]:
        rows = []
        for sample in samples:
            value = np.asarray(sample[key])
            if value.dtype == np.uint8 and value.ndim == 3:
                value = value.astype(np.float32).transpose(2, 0, 1) / 127.5 - 1
            elif value.dtype == np.uint8:
                value = value.astype(np.int64)
            elif value.dtype == bool:
                value = value.astype(np.float32)
            rows.append(torch.as_tensor(np.array(value)))
        out[key] = torch.stack(rows)
    return out


def with_sizes(config: Config, recipe: PictureRecipe) -> Config:
    """A network's configuration in which every field that the recipe has, too, takes the recipe's value."""
    names = {field.name for field in dataclasses.fields(config)} & vars(recipe).keys()
    return dataclasses.replace(config, **{name: getattr(recipe, name) for name in names})


def save_grid(file: Path, rows: list[list[np.ndarray]]) -> None:
    """Writes rows of equally large (H,W,3) uint8 pictures as one PNG."""
    grid = np.concatenate([np.concatenate(row, 1) for row in rows], 0)
    cv2.imwrite(str(file), grid[..., ::-1])
