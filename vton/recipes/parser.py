"""Recipe of the human parser: cross-entropy and soft Dice on photographs under strong augmentation."""

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch.nn import functional as F

from training.recipe import SHARE, read_presets, setting
from vton import labels
from vton.data.collars import with_collar
from vton.data.pack import Pack, Person, change_colours, degrade
from vton.geometry import affine, move_points, warp_picture
from vton.inputs.parsing import joint_maps, parse
from vton.joints import present
from vton.metrics import PARSER_GROUPS, confusion, group_iou
from vton.networks.config import ParserConfig
from vton.networks.parser import Parser
from vton.recipes.common import PictureRecipe, PictureTask, draped_people, save_grid

IGNORE = 255
# Rare labels count more: neck, glasses, scarf, gloves, socks, shoes and hair decide the mean over classes.
CLASS_WEIGHTS = {
    **dict.fromkeys(("hat", "glove", "sunglasses", "socks", "neck", "scarf"), 2.0),
    **dict.fromkeys(("left arm", "right arm", "left shoe", "right shoe"), 2.0),
    **dict.fromkeys(("hair", "face", "left leg", "right leg"), 1.5),
}


@dataclass
class ParserRecipe(PictureRecipe):
    """Fields of the recipe of the human parser."""

    bounds = dict.fromkeys(("teacher_share", "collars"), SHARE)

    height: int = setting(256, "of the pictures that it is trained on")
    width: int = setting(192, "of the same pictures")
    lr: float = 2e-3
    schedule: str = "cosine"
    warmup: int = 100
    weight_decay: float = setting(0.02, "of AdamW")
    dice: float = setting(0.5, "weight of the soft Dice term")
    teacher: str = setting("", "packed people whose labels another parser guessed; empty = none")
    teacher_share: float = setting(0.3, "of the samples")
    collars: float = setting(0.0, "share of the samples on which a collar is drawn (vton.data.collars)")
    carried: bool = setting(False, "what a person carries is a label of its own; without, it is out of the loss")
    draped: float = 0.0
    validation: int = 24


PRESETS = read_presets(__file__, "parser")


def network_config(recipe: ParserRecipe) -> ParserConfig:
    """The network that a recipe trains."""
    return ParserConfig()


class ParserTask(PictureTask):
    """The human parser as a task, on labelled people, on people that another parser labelled, or on draped ones."""

    recipe: ParserRecipe
    best = ("mean_iou", "max")

    def __init__(self, recipe: ParserRecipe):
        self.recipe = recipe
        self.pack = Pack(recipe.pack) if recipe.pack else None
        model = self.set_model(Parser(network_config(recipe)))
        self.weights = {"dice": recipe.dice}
        adam = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
        self.optimizers = {"model": adam}
        self.train_ids = self.pack.people("train") if self.pack else []
        self.around = (recipe.height * 3 // 2, recipe.width * 3 // 2)  # of draped people: more than is seen at once
        self.draped = draped_people(recipe, self.around)
        self.teacher_pack = Pack(recipe.teacher) if recipe.teacher else None
        self.class_weights = torch.ones(20)
        for name, weight in CLASS_WEIGHTS.items():
            self.class_weights[labels.LIP.index(name)] = weight

    # -- samples -------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator):
        """One person: image, parse, person mask, carried mask, keypoints, suggested frame."""
        if self.teacher_pack and rng.random() < self.recipe.teacher_share:
            return self.teacher_pack.person(int(rng.integers(len(self.teacher_pack.names))))
        if self.draped and (not self.pack or rng.random() < self.recipe.draped):
            return self.draped.person(self.draped.number(rng))
        assert self.pack is not None  # without one all people are draped
        return self.pack.person(self.train_ids[rng.integers(len(self.train_ids))])

    def sample_one(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """One augmented training sample: image, joints, person mask, target labels (255 = out of the loss)."""
        size = (self.recipe.height, self.recipe.width)
        person = self.draw(rng)
        if self.recipe.collars and rng.random() < self.recipe.collars:
            person = with_collar(person, self.draw(rng), rng)
        mirror = bool(rng.random() < 0.5)
        matrix = affine(random_box(person.frame, person.image.shape[:2], rng), size, rng.normal(0, 6), mirror)
        image = person.image
        if rng.random() < 0.25:
            image = other_background(image, person, self.draw(rng).image, rng)
        image = warp_picture(image, matrix, size, fill=tuple(int(v) for v in rng.integers(0, 256, 3)))
        image = degrade(change_colours(image, rng), rng)
        target = warp_picture(person.parse, matrix, size, nearest=True)
        carried = warp_picture(person.carried.astype(np.uint8), matrix, size, nearest=True)
        inside = warp_picture(np.ones(person.parse.shape, np.uint8), matrix, size, nearest=True)
        target = labels.FLIP_LIP[target] if mirror else target
        target = np.where(carried > 0, labels.CARRIED_LIP if self.recipe.carried else IGNORE, target)
        target = np.where(inside == 0, IGNORE, target).astype(np.uint8)
        mask = warp_picture(person.person_mask, matrix, size) if rng.random() > 0.05 else np.zeros(size, np.float32)
        points = move_points(person.keypoints, matrix, mirror)
        visible = present(points)
        points[visible, :2] += rng.normal(0, size[0] / 200, (int(visible.sum()), 2))
        points[rng.random(25) < 0.05] = 0
        return {
            "image": image,
            "joints": joint_maps(points, size),
            "person": mask[None].astype(np.float32),
            "target": target,
        }

    # -- loss ----------------------------------------------------------------------------------------------------

    def terms(self, batch):
        """The named losses of a batch, summed over its pictures."""
        image = batch["image"].contiguous(memory_format=torch.channels_last)
        logits = self.networks["model"](image, batch["joints"], batch["person"]).float()
        target = batch["target"]
        n = len(target)
        losses = F.cross_entropy(logits, target, self.class_weights.to(logits.device), ignore_index=IGNORE)
        # Dice at half the resolution: an area measure does not need the last pixel, and this quarters its cost.
        small = target[:, ::2, ::2]
        known = (small != IGNORE)[:, None]
        truth = F.one_hot(small.clamp(max=19), 20).permute(0, 3, 1, 2) * known
        probabilities = F.avg_pool2d(logits, 2).softmax(1) * known
        overlap = (probabilities * truth).sum((0, 2, 3))
        total = (probabilities + truth).sum((0, 2, 3))
        there = truth.sum((0, 2, 3)) > 0
        dice = 1 - ((2 * overlap + 1) / (total + 1))[there].mean()
        return {"cross_entropy": losses * n, "dice": dice * n}

    # -- looking at it -------------------------------------------------------------------------------------------

    def validation(self, count):
        """The validation samples, always the same ones."""
        if self.pack:
            ids = self.pack.people("val")
            return [self.pack.person(i) for i in ids[:: max(1, len(ids) // count)][:count]]
        held_out = draped_people(self.recipe, self.around, "val")
        assert held_out is not None  # without a pack there are some
        return [held_out.person(i) for i in range(count)]

    def answer(self, person: Person) -> np.ndarray:
        """The parse (H, W) of a person by the averaged weights."""
        inputs = person.image, person.keypoints, person.person_mask
        return parse(self.modules["ema"], *inputs, height=min(320, person.image.shape[0]), mirror=False)

    def evaluate(self):
        """Figures of the averaged weights on the validation samples."""
        matrix, overlap, either = np.zeros((20, 20), np.int64), 0, 0
        for person in self.validation(self.recipe.validation):
            answer = self.answer(person)
            matrix += confusion(person.parse, answer, ~person.carried, 20)
            carried = answer == labels.CARRIED_LIP
            overlap, either = overlap + (carried & person.carried).sum(), either + (carried | person.carried).sum()
        ious = group_iou(matrix, PARSER_GROUPS)
        figures = {"mean_iou": np.nanmean(list(ious.values())), **{f"iou_{name}": iou for name, iou in ious.items()}}
        if self.recipe.carried:
            figures["iou_carried"] = overlap / max(1, either)
        return {name: float(value) for name, value in figures.items()}

    def sample(self, folder, step):
        """A sheet of pictures of the validation samples, and what the averaged weights make of them."""
        rows = []
        for person in self.validation(4):
            strip = [person.image, labels.colour(person.parse), labels.colour(self.answer(person))]
            rows.append([cv2.resize(p, (192, 288), interpolation=cv2.INTER_NEAREST) for p in strip])
        save_grid(folder / "parse.png", rows)


def random_box(frame: np.ndarray, hw: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A 3:4 window: near the suggested frame, around the whole person, or anywhere between."""
    x0, y0, x1, y1 = frame
    width, height = x1 - x0, y1 - y0
    centre = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    kind = rng.random()
    if kind < 0.5:
        scale = np.exp(rng.normal(0.03, 0.15))
        centre = centre + rng.normal(0, 0.06, 2) * (width, height)
    elif kind < 0.8:
        scale = hw[0] / height * rng.uniform(0.95, 1.3)
        centre = np.array([centre[0], hw[0] / 2]) + rng.normal(0, 0.04, 2) * (width, height)
    else:
        scale = rng.uniform(0.6, 1.6)
        centre = np.array([centre[0] + rng.normal(0, 0.1) * width, rng.uniform(0.2, 0.8) * hw[0]])
    half = np.array([width, height]) * scale / 2
    return np.concatenate([centre - half, centre + half])


def other_background(image: np.ndarray, person, background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The person before something else: another photograph, blurred, or one colour."""
    height, width = image.shape[:2]
    if rng.random() < 0.5:
        background = np.full_like(image, rng.integers(60, 256, 3))
    else:
        background = cv2.GaussianBlur(cv2.resize(background, (width, height)), (0, 0), rng.uniform(2, 12))
    silhouette = np.maximum(person.person_mask > 0.3, person.parse > 0).astype(np.float32)
    alpha = cv2.GaussianBlur(silhouette, (0, 0), 1.0)[..., None]
    return (image * alpha + background * (1 - alpha)).astype(np.uint8)
