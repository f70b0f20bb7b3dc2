"""The predicted segmentation by itself: whether it follows the garment's attributes, and what each rule on it improves.
`python -m lab.tryon.evaluate segmentation` and `... rules` print the figures.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from vton import inference, labels
from vton.attributes import LOOSE, condition_groups, decode, encode
from vton.data.draped.people import load_people
from vton.data.lengths import with_length
from vton.data.pack import Pack
from vton.data.pairs import centre_on_canvas
from vton.data.samples import SOURCES, Sampler
from vton.data.sleeve_cuts import with_armholes, with_straps
from vton.inference import Conditions
from vton.inputs import pose
from vton.inputs.agnostic import hide_hem
from vton.inputs.reading import Attribute, read_garment
from vton.metrics import edge_distances, mask_iou
from vton.networks.segmentation import SegmentationGenerator
from vton.pipeline import TryOn
from vton.recipes.common import collate
from vton.recipes.segmentation import other_hem
from vton.rules.segmentation import apply_rules, close_cloth, straighten_hem
from vton.rules.sleeves import KINDS, cloth_shares, contradicting
from vton.tensors import labels_to_tensor, picture_to_tensor

EDGES = ("hem", "neckline", "sleeve_ends")
SEED = 9  # of the pairs, that of `evaluate_networks`


def region_figures(
    predicted: np.ndarray, sample: dict[str, np.ndarray], source: str, attributes: Mapping[str, Attribute] = {}
) -> dict[str, float]:
    """Overlap of a predicted segmentation (H, W) with a sample's rule-made truth, as IoU in [0, 1].

    region_iou: the upper garment; region_iou_rules: the same after the rules on sleeves and neckline; arms_iou:
    both arms; sleeves_right: see `shows`, and the same after the rules. Of draped people, whose truth is exact, also
    `edge_distances`.
    attributes: what was read of the garment. A photographed garment's pixels behind a bag are left out, because their
        truth is hidden.
    """
    truth, (by_rules, _) = sample["segmentation"], apply_rules(predicted, sample["keypoints"], attributes)
    free = ~sample["carried"][0]
    kind = decode(sample["attributes"], "sleeves")
    edges = edge_distances(truth == labels.UPPER, predicted == labels.UPPER, sample["keypoints"])
    exact = {f"{name}_pixels": edges.get(name, float("nan")) for name in EDGES} if source.startswith("draped") else {}
    return (
        exact
        | {
            name: mask_iou(np.isin(answer, classes) & free, np.isin(truth, classes) & free)
            for name, answer, classes in (
                ("region_iou", predicted, labels.UPPER),
                ("region_iou_rules", by_rules, labels.UPPER),
                ("arms_iou", predicted, labels.ARMS),
            )
        }
        | {
            "sleeves_right": shows(predicted, sample["keypoints"], kind),
            "sleeves_right_rules": shows(by_rules, sample["keypoints"], kind),
        }
    )


def shows(segmentation: np.ndarray, keypoints: np.ndarray, kind: str) -> float:
    """1.0 where both arms of a segmentation (H, W) show sleeves of this kind, measured along the joints (25, 3), 0.0
    where one does not; NaN where the kind is not known ("") or no arm has its joints.
    """
    if not kind or not cloth_shares(segmentation, keypoints):
        return float("nan")
    return float(not contradicting(segmentation, keypoints, kind))


def conditions(sample: dict[str, np.ndarray], device: torch.device | str = "cpu") -> Conditions:
    """What the generators are given for one sample of `Sampler`."""
    # The reader gives the attributes later, and what ALIAS is shown depends on the segmentation.
    names = [f.name for f in dataclasses.fields(Conditions) if f.name not in ("attributes", "hem", "alias_view")]
    batch = collate([{name: sample[name] for name in names}])
    return Conditions(**{name: value.to(device) for name, value in batch.items()})


def read_sample(tryon: TryOn, sample: dict[str, np.ndarray]) -> dict[str, Attribute]:
    """What the garment reader says of a sample's garment; see `Garment.attributes`."""
    return read_garment(tryon.garment, sample["cloth"], sample["cloth_mask"][0] > 0).attributes


def reads_attributes(tryon: TryOn) -> bool:
    """Whether the segmentation generator reads the garment's attributes."""
    return bool(cast(SegmentationGenerator, tryon.segmentation).config.attributes)


def predict_classes(
    tryon: TryOn, sample: dict[str, np.ndarray], inputs: Conditions, groups: Mapping[str, str] | None = None
) -> torch.Tensor:
    """S-hat (1,H,W) of one sample, as the pipeline predicts it: with the mirror image.

    groups: the attributes on which the generator is conditioned, see `vton.attributes`; None = as the reader gives
    them. The sample's own hem is added where it is known.
    """
    hem = decode(sample["attributes"], "hem") if "attributes" in sample else LOOSE
    network = cast(SegmentationGenerator, tryon.segmentation)
    if reads_attributes(tryon):
        groups = condition_groups(read_sample(tryon, sample)) if groups is None else groups
        groups = {**groups, "hem": hem}
        inputs = dataclasses.replace(inputs, attributes=torch.from_numpy(encode(groups))[None].to(inputs.pose.device))
        if network.config.hides_hem:
            view = hide_hem(sample["parse_agnostic"].argmax(0).astype(np.uint8), sample["keypoints"], hem)
            inputs = dataclasses.replace(inputs, parse_agnostic=labels_to_tensor(view, 13, inputs.pose.device))
    mirror_pose = pose.draw_pose(pose.mirror_keypoints(sample["keypoints"], inputs.size[1]), inputs.size)
    mirror = picture_to_tensor(mirror_pose, inputs.pose.device)
    return inference.place_hem(network, inputs, sample["keypoints"], hem, mirror_pose=mirror)


def finite_mean(values: list[float]) -> float | None:
    """Mean of the finite values to four places; None where there is none."""
    finite = [v for v in values if np.isfinite(v)]
    return round(float(np.mean(finite)), 4) if finite else None


def validation_sampler(pack: Path | None, size: tuple[int, int]) -> Sampler:
    """Validation pairs at `size` (H, W): of draped people, and of photographed ones where there is a pack."""
    return Sampler(Pack(pack) if pack else None, size, "val", load_people(size, "val"))


def samples(pack: Path | None, count: int, size: tuple[int, int]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """(source, sample) of `count` validation pairs of each source at most; without a pack draped people alone."""
    sampler = validation_sampler(pack, size)
    for source in SOURCES if pack else ("draped",):
        for sample in pairs(sampler, source, SEED, count):
            yield source, sample


def pairs(sampler: Sampler, source: str, seed: int, count: int) -> Iterator[dict[str, np.ndarray]]:
    """`count` validation pairs of a source at most; the S_a of draped people ends where another garment's hem was, as
    it does when a garment is really changed.
    """
    for number, sample in enumerate(itertools.islice(sampler.each(source, seed), count)):
        yield other_hem(sample, np.random.default_rng([seed, number])) if source == "draped" else sample


def alterations(count: int, size: tuple[int, int]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """(what was done, sample) of `count` draped validation people whose garment is made longer or shorter, or cut down
    to a top on straps, flat and worn alike, or ends at the shoulders; those are left out for whom it cannot be done.
    """
    for number, sample in enumerate(pairs(validation_sampler(None, size), "draped", SEED, count)):
        rng = np.random.default_rng([SEED, number])
        for name, alter in (("other length", with_length), ("straps", with_straps), ("armholes", with_armholes)):
            other = alter(sample, rng)
            if other is not sample:
                cloth, mask = centre_on_canvas(other["cloth"], other["cloth_mask"][0], size)
                yield f"draped, {name}", other | {"cloth": cloth, "cloth_mask": mask[None]}


def means(rows: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """The mean of each figure by group, and `pairs`, the number of rows in it."""
    return {
        group: {"pairs": len(group_rows)}
        | {name: finite_mean([row[name] for row in group_rows]) for name in group_rows[0]}
        for group, group_rows in rows.items()
    }


def evaluate_segmentation(tryon: TryOn, pack: Path | None, count: int = 80, size: tuple[int, int] = (256, 192)) -> dict:
    """The figures of `region_figures` by source, and of draped people by `alterations`, too; told_KIND: the share of
    the same pairs whose segmentation shows these sleeves, without any rule, when the network is conditioned on them
    whatever the garment is. A network without attributes gives its one answer there.
    """
    rows: dict[str, list[dict[str, float]]] = {}
    for source, sample in itertools.chain(samples(pack, count, size), alterations(count, size)):
        inputs, attributes = conditions(sample), read_sample(tryon, sample)

        def answer(groups, sample=sample, inputs=inputs) -> np.ndarray:
            return predict_classes(tryon, sample, inputs, groups)[0].numpy().astype(np.uint8)

        groups = condition_groups(attributes)
        own = answer(groups)
        figures = region_figures(own, sample, source, attributes)
        for kind in KINDS:
            other = answer(groups | {"sleeves": kind}) if reads_attributes(tryon) else own
            figures[f"told_{kind}"] = shows(other, sample["keypoints"], kind)
        rows.setdefault(source, []).append(figures)
    return means(rows)


def evaluate_rules(tryon: TryOn, pack: Path | None, count: int = 24, size: tuple[int, int] = (256, 192)) -> dict:
    """By source, without any rule ("none"), with each alone and with all: region and arms, the IoU with the truth;
    sleeves, the share of pairs that show the garment's; hem, of draped people, as of `edge_distances`; changed, the
    share of the pixels inside garment and arms of either answer that the rule changes; acted, the share of pairs with
    any such pixel.
    """
    rows: dict[str, list[dict[str, float]]] = {}
    for source, sample in samples(pack, count, size):
        attributes = read_sample(tryon, sample)
        answer = predict_classes(tryon, sample, conditions(sample), condition_groups(attributes))
        classes = answer[0].numpy().astype(np.uint8)
        without_holes = close_cloth(classes)
        answers = {
            "none": classes,
            "closed cloth": without_holes,
            "straight hem": straighten_hem(classes),
            "sleeves": apply_rules(classes, sample["keypoints"], attributes)[0],
            "all": apply_rules(straighten_hem(without_holes), sample["keypoints"], attributes)[0],
        }
        for name, by_rule in answers.items():
            row = rule_figures(by_rule, classes, sample, source, attributes)
            rows.setdefault(f"{source}, {name}", []).append(row)
    return means(rows)


def rule_figures(answer, before, sample, source, attributes) -> dict[str, float]:
    """What `evaluate_rules` says of one answer (H, W) beside that before any rule (H, W)."""
    plain = region_figures(answer, sample, source, attributes)
    inside = np.isin(answer, (labels.UPPER, *labels.ARMS)) | np.isin(before, (labels.UPPER, *labels.ARMS))
    return {
        "region": plain["region_iou"],
        "arms": plain["arms_iou"],
        "sleeves": plain["sleeves_right"],
        "hem": plain.get("hem_pixels", float("nan")),
        "changed": 1 - mask_iou(np.where(inside, answer == before, False), inside),
        "acted": float((answer != before).any()),
    }
