"""Recipe of the garment reader: its mask and its attributes, from product pictures under strong augmentation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from training.recipe import SHARE, read_presets, setting
from vton.data import garments
from vton.data.pack import Pack
from vton.geometry import affine, prescale, warp_picture
from vton.inputs.reading import Reading, neck_box, read_garment
from vton.metrics import garment_figures
from vton.networks.garment_reader import (
    UPPER_KINDS,
    VALUES,
    GarmentReader,
    GarmentReaderConfig,
    group_matrix,
    partial_cross_entropy,
)
from vton.recipes.common import PictureRecipe, PictureTask, draped_people, save_grid
from vton.tensors import tensor_to_picture


@dataclass
class GarmentRecipe(PictureRecipe):
    """Fields of the recipe of the garment reader."""

    # Folders of garments have a recipe of their own since (lab.tryon.garments); the opening is always learned.
    former = {"data": "", "pyramid": False, "opening": True}
    bounds = dict.fromkeys(("smoothing", "second", "neck"), SHARE)

    height: int = setting(160, "of the pictures that it reads")
    width: int = setting(128, "of the same pictures")
    lr: float = 2e-3
    schedule: str = "cosine"
    warmup: int = 60
    weight_decay: float = setting(0.05, "of AdamW")
    batch: int = 32
    ema: float = 0.99
    smoothing: float = setting(0.05, "share of the target spread over all values of an attribute")
    second: float = setting(0.4, "share of second looks: the garment fills the frame and its mask is given")
    neck: float = setting(0.0, "share of looks at the neck alone, with the mask; they teach neckline, mask and opening")
    validation: int = 96

    @classmethod
    def restore(cls, values: Mapping[str, Any], **changes: Any) -> GarmentRecipe:
        """As `Recipe.restore`; how many drawn garments an earlier version mixed in is left out."""
        return super().restore({name: value for name, value in values.items() if name != "drawn"}, **changes)


PRESETS = read_presets(__file__, "garment")


def network_config(recipe: GarmentRecipe) -> GarmentReaderConfig:
    """The network that a recipe trains."""
    size = (recipe.height, recipe.width)
    return GarmentReaderConfig(size=size, opening=True, neck=recipe.neck > 0)


class GarmentTask(PictureTask):
    """The garment reader as a task: mask, kind, sleeves, neckline and view of a garment's picture."""

    recipe: GarmentRecipe
    best = ("score", "max")

    def __init__(self, recipe: GarmentRecipe):
        self.recipe = recipe
        self.garments = self.pictures()
        model = self.set_model(GarmentReader(network_config(recipe)))
        self.weights = {"view": 0.3, "front": 0.3}  # mask, opening and the other attributes weigh 1
        groups = [
            {"params": [p for p in model.parameters() if (p.ndim > 1) == decays], "weight_decay": decays * decay}
            for decays, decay in ((True, recipe.weight_decay), (False, 0.0))
        ]
        self.optimizers = {"model": torch.optim.AdamW(groups, lr=recipe.lr)}
        self.matrices = {name: group_matrix(name) for name in VALUES}

    def initial_state(self) -> dict[str, Tensor]:
        """The weights to start from; the opening's own begin fresh where they have none."""
        fresh = GarmentReader(network_config(self.recipe)).state_dict()
        return {name: value for name, value in fresh.items() if name.startswith("opening.")} | super().initial_state()

    # -- samples -------------------------------------------------------------------------------------------------

    def pictures(self) -> garments.Garments:
        """What is learned from: the pack, or draped people where there is none."""
        if self.recipe.pack:
            return garments.Garments(Pack(self.recipe.pack))
        return garments.Garments(draped=draped_people(self.recipe, garments.FLAT_SIZE))

    def sample_one(self, rng: np.random.Generator) -> dict[str, Any]:
        """One augmented picture: image (H,W,3) uint8, prior (1,H,W), mask and opening (1,H,W), -1 where not known,
        allowed values by attribute (all ones = not known), and sure, how far the labels are trusted.
        """
        size = (self.recipe.height, self.recipe.width)
        source, picture, street = self.garments.draw(rng)
        known = picture.attributes
        upper = known.get("kind") in (*UPPER_KINDS, "upper")
        chance, image, mask = rng.random(), picture.image, picture.mask
        second = upper and mask is not None and chance < self.recipe.second + self.recipe.neck
        neck = second and chance < self.recipe.neck
        box = mask_box(mask) if mask is not None and (second or picture.cut) else whole_box(image)
        if neck and mask is not None:
            box = neck_box(mask > 127)
        matrix = affine(random_window(box, size, second, rng), size, random_angle(rng), bool(rng.random() < 0.5))
        inside = np.zeros(size, np.float32)
        if mask is not None:
            inside = warp_picture(*prescale(mask, matrix), size).astype(np.float32) / 255
        small, onto = prescale(image, matrix)
        if mask is not None and rng.random() < self.garments.kinds[source].other_ground:
            colour = image[mask > 127].mean(0) if (mask > 127).any() else np.full(3, 128.0)
            ground = garments.background(size, colour, rng, street)
            view = garments.compose_on(warp_picture(small, onto, size), inside, ground, rng)
        elif rng.random() < 0.75:
            view = cv2.warpAffine(small, onto, size[::-1], borderMode=cv2.BORDER_REPLICATE)
        else:
            view = warp_picture(small, onto, size, fill=tuple(int(v) for v in rng.integers(0, 256, 3)))
        opening = np.full((1, *size), -1, np.float32)
        if picture.opening is not None:
            opening = warp_picture(*prescale(picture.opening, matrix), size).astype(np.float32)[None] / 255
        sample = {
            "opening": opening,
            "image": garments.change_garment_colours(view, rng),
            "prior": spoil(inside, rng)[None] if second else np.zeros((1, *size), np.float32),
            "mask": inside[None] if upper and mask is not None else np.full((1, *size), -1, np.float32),
            "sure": np.float32(picture.sure),
        }
        for name, values in VALUES.items():
            label_set = UPPER_KINDS if known.get(name) == "upper" else (known.get(name),)
            candidates = np.array([value in label_set for value in values], np.float32)
            # A second look comes after the first has said that it is an upper garment.
            unknown = not candidates.any() or (second and name == "kind" and known.get(name) == "upper")
            unknown |= neck and name != "neckline"
            sample[f"candidates_{name}"] = np.ones(len(values), np.float32) if unknown else candidates
        return sample

    # -- loss ----------------------------------------------------------------------------------------------------

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        image = batch["image"].contiguous(memory_format=torch.channels_last)
        mask_logits, logits, opening_logits = self.networks["model"](image, batch["prior"])
        # The opening is small beside the garment, so that a mean over pixels says little.
        opening = area_loss(opening_logits, batch["opening"], entropy=4.0).sum()
        losses = {"mask": area_loss(mask_logits, batch["mask"]).sum(), "opening": opening}
        for name, values in logits.items():
            candidates = batch[f"candidates_{name}"]
            known = (candidates.sum(1) < candidates.shape[1]).float() * batch["sure"]
            matrix = self.matrices[name].to(values.device)
            group_values = torch.logsumexp(values[:, None] + matrix.log(), 2)  # of each group's probability
            loss = 0.5 * partial_cross_entropy(values, candidates)
            loss = loss + 0.5 * partial_cross_entropy(group_values, ((candidates @ matrix.T) > 0).float())
            uniform = -F.log_softmax(values, 1).mean(1)
            losses[name] = ((loss + self.recipe.smoothing * uniform) * known).sum()
        return losses

    # -- looking at it -------------------------------------------------------------------------------------------

    def validation(self, count: int) -> list[garments.GarmentPicture]:
        """What held-out draped people wear, some of it no upper garment."""
        held_out = draped_people(dataclasses.replace(self.recipe, pack=""), garments.FLAT_SIZE, "val")
        assert held_out is not None  # without a pack there are some
        return garments.draped_garments(held_out, min(count, 12))

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        pictures = self.validation(self.recipe.validation)
        readings = [read_garment(self.modules["ema"], p.image, views=1) for p in pictures]
        truth = zip(*((p.attributes, p.mask, p.opening) for p in pictures))
        figures = garment_figures(readings, *map(list, truth))
        shares = [figures[k] for k in ("sleeves", "neckline", "upper", "mask_iou") if k in figures]
        return {"score": float(np.mean(shares)), **{k: float(v) for k, v in figures.items()}}

    def sample(self, folder, step):
        """A sheet of pictures of the validation samples, and what the averaged weights make of them."""
        images = [p.image for p in self.validation(12)[:8]]
        cells = [draw_reading(image, read_garment(self.modules["ema"], image, views=1)) for image in images]
        save_grid(folder / "garments.png", [cells[:4], cells[4:]] if len(cells) == 8 else [cells])
        batch = self.batch(max(1, step), 0, 0, 1)
        save_grid(folder / "inputs.png", [[tensor_to_picture(x) for x in batch["image"][:8]]])


def area_loss(logits: Tensor, target: Tensor, entropy: float = 1.0) -> Tensor:
    """Cross-entropy and soft Dice of an area, (B,); 0 where it is not known.

    logits, target: (B,1,H,W), the target in [0, 1], -1 where it is not known. entropy: its weight.
    """
    there, truth = (target[:, 0, 0, 0] >= 0).float(), target.clamp(min=0)
    mean = F.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean((1, 2, 3))
    p = logits.sigmoid()
    dice = 1 - (2 * (p * truth).sum((1, 2, 3)) + 1) / ((p + truth).sum((1, 2, 3)) + 1)
    return (entropy * mean + 0.5 * dice) * there


def draw_reading(image: np.ndarray, reading: Reading) -> np.ndarray:
    """A picture with the outline that was read drawn on it, (256,192,3) uint8."""
    canvas = cv2.resize(image, (192, 256), interpolation=cv2.INTER_AREA)
    mask, opening = (
        cv2.resize((share > 0.5).astype(np.uint8), (192, 256), interpolation=cv2.INTER_NEAREST)
        for share in (reading.mask, reading.opening)
    )
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(canvas, contours, -1, (0, 220, 0), 1)
    canvas[opening > 0] = canvas[opening > 0] // 2 + np.array([127, 0, 60], np.uint8)
    for i, name in enumerate(("kind", "sleeves", "neckline")):
        value, share = reading.best(name)
        place, text = (4, 14 + 14 * i), f"{value} {share:.2f}"
        cv2.putText(canvas, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.42, (220, 0, 90), 1, cv2.LINE_AA)
    return canvas


# -- where the picture is looked at ----------------------------------------------------------------------------------


def whole_box(image: np.ndarray) -> np.ndarray:
    """(x0, y0, x1, y1) of a whole picture."""
    return np.array([0, 0, image.shape[1], image.shape[0]], float)


def mask_box(mask: np.ndarray) -> np.ndarray:
    """(x0, y0, x1, y1) around a mask (H, W), above 127; the whole picture where it is empty."""
    rows, columns = np.flatnonzero((mask > 127).any(1)), np.flatnonzero((mask > 127).any(0))
    if not len(rows):
        return whole_box(mask)
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], float)


def random_window(box: np.ndarray, size: tuple[int, int], second: bool, rng: np.random.Generator) -> np.ndarray:
    """A window with the proportions of `size` (H, W) around a box, shifted a little: what a second look sees closer."""
    width, height = box[2] - box[0], box[3] - box[1]
    scale = max(width / size[1], height / size[0]) * np.exp(rng.normal(0.08, 0.05 if second else 0.14))
    stretch = np.exp(rng.normal(0, 0.03 if second else 0.07))
    half = np.array([size[1] * stretch, size[0] / stretch]) * scale / 2
    centre = (box[:2] + box[2:]) / 2 + rng.normal(0, 0.02 if second else 0.05, 2) * (width, height)
    return np.concatenate([centre - half, centre + half])


def random_angle(rng: np.random.Generator) -> float:
    """Degrees: mostly upright, at times as a picture taken in a hurry."""
    return float(rng.normal(0, 4) if rng.random() < 0.8 else rng.normal(0, 15))


def spoil(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A mask (H, W) in [0, 1] as a first look might find it: blurred, grown or shrunk, with a bite or an island."""
    out = cv2.GaussianBlur(mask, (0, 0), rng.uniform(0.5, 2.5))
    if rng.random() < 0.5:
        out = np.clip((out - 0.5) * rng.uniform(1, 3) + 0.5 + rng.normal(0, 0.15), 0, 1)
    if rng.random() < 0.3:
        centre = (int(rng.integers(mask.shape[1])), int(rng.integers(mask.shape[0])))
        cv2.circle(out, centre, int(rng.integers(2, 12)), float(rng.random() < 0.5), -1)
    return out.astype(np.float32)
