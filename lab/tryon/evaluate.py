"""`python -m lab.tryon.evaluate KIND ...`: figures of whole try-ons on pairs of which the truth is known.

networks  --pack FILE   predicted region, warp and synthesis on made pairs of people and garments never trained on
segmentation, rules --pack FILE
                        the predicted segmentation alone, conditioned on other sleeves; and without its rule
warps     --pack FILE   splines of 5x5, 10x10 and 20x20 control points and the flow warper, as in Table 2 and Fig. 13
table     --pack FILE   SSIM, LPIPS and FID at three sizes as in Table 1, and by misaligned area as in Fig. 9
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from lab.tryon.measures import bootstrap, deepest_features, frechet_distance, kernel_distance, perceptual_distance
from lab.tryon.segmentation import (
    conditions,
    evaluate_rules,
    evaluate_segmentation,
    finite_mean,
    pairs,
    predict_classes,
    read_sample,
    region_figures,
    validation_sampler,
)
from lab.tryon.synthetic import draw_pair
from training.arguments import CommandLine, a_device, a_file_to_write, an_existing_file, an_existing_folder, integer
from training.command import one_sentence
from training.files import write_atomic
from vton import inference, labels
from vton.attributes import condition_groups
from vton.data.pack import Pack
from vton.data.pairs import WHITE
from vton.data.samples import SOURCES, Sampler
from vton.inference import Conditions
from vton.inputs import pose
from vton.inputs.agnostic import GRAY, agnostic_image, agnostic_parse, margin_at, open_gray
from vton.metrics import (
    colour_difference,
    sharpness,
    structural_similarity,
)
from vton.networks import alias
from vton.networks.alias import AliasGenerator
from vton.options import SIZES, read_size, to_text
from vton.pipeline import TryOn, load_network
from vton.tensors import labels_to_tensor, mask_to_tensor, picture_to_tensor, tensor_to_picture
from vton.warps import BY_FLOW, WARPS, figures_of, grid_by


def warp_figures(theta: torch.Tensor, inputs: Conditions, inside: np.ndarray, suffix: str = "") -> dict[str, float]:
    """W(M_c, theta) against the predicted region `inside` (H,W) bool: overlap, share covered, 1.0 where it folds."""
    warped = inference.warp_cloth(theta, inputs)
    figures = figures_of(warped.grid, warped.mask[0, 0].numpy() > 0.5, inside)
    return {
        f"warped_iou{suffix}": figures.iou,
        f"covered{suffix}": figures.coverage,
        f"folded{suffix}": float(figures.folds > 0),
    }


def with_view(tryon: TryOn, sample: dict[str, np.ndarray], inputs: Conditions, classes: np.ndarray) -> Conditions:
    """`inputs` with what ALIAS is shown of the photograph, where its weights keep parts of it: wall, hair, bare arms
    and neck that `classes` (H,W), S or S-hat, leave as they were, as `vton.stages.what_stays` shows it on the page.
    """
    if not cast(AliasGenerator, tryon.alias).config.keeps:
        return inputs
    parse, bare = sample["parse"], classes == labels.BACKGROUND
    stays = bare & (sample["background"][0] | (parse == labels.NECK_LIP))
    stays |= np.isin(parse, labels.ARMS_LIP) & np.isin(classes, labels.ARMS)
    stays |= (parse == labels.HAIR_LIP) & (classes == labels.HAIR)
    gray = (sample["agnostic"] == GRAY).all(2)
    visible = open_gray(gray, stays, margin_at(gray.shape[1]))
    picture = np.where(visible[..., None], sample["person"], sample["agnostic"])
    return replace(inputs, alias_view=picture_to_tensor(picture, tryon.device))


@dataclass(frozen=True)
class Synthesis:
    """All that the chain makes of one pair. seven: S-hat in ALIAS's 7 classes (1,7,H,W) one-hot; misalign (1,1,H,W);
    pictures: I-hat (1,3,H,W) for each normalisation.
    """

    seven: torch.Tensor
    theta: torch.Tensor
    warp: inference.Warp
    misalign: torch.Tensor
    pictures: dict[str, torch.Tensor]


@torch.inference_mode()
def dress(
    tryon: TryOn,
    inputs: Conditions,
    seven: torch.Tensor,
    region: torch.Tensor | None = None,
    fit: bool = True,
) -> Synthesis:
    """From a segmentation to the picture: warp, misalignment and synthesis of one pair.

    Args:
        seven: S or S-hat in ALIAS's classes, (1,7,H,W) one-hot.
        region: where the cloth goes (1,1,H,W); None = the upper garment of `seven`.
        fit: see `inference.predict_warp`.
    """
    upper = seven[:, labels.ALIAS_UPPER : labels.ALIAS_UPPER + 1]
    _, theta = inference.predict_warp(tryon.matching, inputs, upper if region is None else region, fit)
    warped = inference.warp_cloth(theta, inputs)
    misalign, _ = alias.misalignment(seven, warped.mask)
    pictures = {
        norm: inference.synthesise(tryon.alias, inputs, warped.cloth, seven, misalign, norm)[0]
        for norm in SYSTEMS.values()
    }
    return Synthesis(seven, theta, warped, misalign, pictures)


Misalignment = tuple[float, float, float]  # as from `misalignment_colours`


def synthesis_figures(
    tryon: TryOn, sample: dict[str, np.ndarray], inputs: Conditions, distance: Callable[[np.ndarray, np.ndarray], float]
) -> tuple[dict[str, float], Misalignment, Misalignment]:
    """I-hat of a person in the own garment, true segmentation, against the photograph; and what `margin` compares, with
    the fit of the control points and without it, as published, where much more of the cloth is misaligned.

    ssim: the whole picture, or with the photograph outside the gray region (`_final`); distance: `perceptual_distance`;
    sharpness: see metrics, in the aligned region. As mean CIEDE2000: colour_aligned, against W(c, theta);
    colour_misaligned; halo, on background inside the gray region, where nothing has to change; skin, on bare arms
    inside the gray region. `_instance`: the same weights with instance normalisation; `_hidden`: nothing of the gray
    region shown, for weights that keep parts of the photograph; `_pasted`: W(c, theta) laid on I_a.
    """
    seven = labels_to_tensor(labels.thirteen_to_7(sample["segmentation"]), len(labels.ALIAS))
    region = mask_to_tensor(sample["worn_mask"][0])
    person, gray = sample["person"], (sample["agnostic"] == GRAY).all(2)
    arms = gray & np.isin(sample["segmentation"], labels.ARMS)
    view = with_view(tryon, sample, inputs, sample["segmentation"])
    synthesis = dress(tryon, view, seven, region)
    cloth = tensor_to_picture(synthesis.warp.cloth)
    upper = seven[:, labels.ALIAS_UPPER : labels.ALIAS_UPPER + 1]
    aligned = ((upper - synthesis.misalign) > 0)[0, 0].numpy()
    open_region = synthesis.misalign[0, 0].numpy() > 0
    background = gray & sample["background"][0]
    pictures = {"" if norm == "alias" else "_instance": tensor_to_picture(t) for norm, t in synthesis.pictures.items()}
    if view is not inputs:
        hidden, *_ = inference.synthesise(tryon.alias, inputs, synthesis.warp.cloth, seven, synthesis.misalign, "alias")
        pictures["_hidden"] = tensor_to_picture(hidden)
    pictures["_pasted"] = np.where(synthesis.warp.mask[0, 0].numpy()[..., None] > 0, cloth, sample["agnostic"])
    figures: dict[str, float] = {}
    for tail, picture in pictures.items():
        # Outside the region the photograph itself stays, as in the final picture.
        final = np.where(gray[..., None], picture, person)
        figures |= {
            f"ssim{tail}": structural_similarity(picture, person, border=False),
            f"ssim_final{tail}": structural_similarity(final, person, border=False),
            f"distance{tail}": distance(picture, person),
            f"sharpness{tail}": sharpness(picture, person, aligned),
            f"colour_aligned{tail}": colour_difference(picture, cloth, aligned),
            f"colour_misaligned{tail}": colour_difference(picture, person, open_region),
            f"halo{tail}": colour_difference(picture, person, background),
            f"skin{tail}": colour_difference(picture, person, arms),
        }
    loose = dress(tryon, view, seven, region, fit=False)
    return figures, misalignment_colours(synthesis, person), misalignment_colours(loose, person)


def misalignment_colours(synthesis: Synthesis, person: np.ndarray) -> Misalignment:
    """Share of the cloth region that is misaligned, and CIEDE2000 there between the photograph and the picture of
    ALIAS, and of instance normalisation.
    """
    upper = synthesis.seven[:, labels.ALIAS_UPPER : labels.ALIAS_UPPER + 1]
    where = synthesis.misalign[0, 0].numpy() > 0
    alias, instance = (
        colour_difference(tensor_to_picture(synthesis.pictures[norm]), person, where) for norm in SYSTEMS.values()
    )
    return float(synthesis.misalign.sum() / upper.sum().clamp(min=1)), alias, instance


def evaluate_networks(
    tryon: TryOn, pack: Path | None, count: int = 80, seed: int = 9, size: tuple[int, int] = (256, 192)
) -> dict:
    """Made pairs of validation people and garments, by source (worn, draped), at `size` (H, W), true parse and pose.

    pairs: how many; every person that a source can use counts once, `count` of them at most. The other figures are
    those of `region_figures`, of `warp_figures` before and after the fit, of `synthesis_figures` and `margin`.
    """
    sampler = validation_sampler(pack, size)
    report: dict[str, dict[str, Any]] = {}
    distance_name, distance = perceptual_distance(tryon.parser)
    for source in SOURCES if pack else ("draped",):
        rows: dict[str, list[float]] = {}
        misalignments: dict[str, list[Misalignment]] = {"margin": [], "margin_unfitted": []}
        for sample in pairs(sampler, source, seed, count):
            inputs, attributes = conditions(sample), read_sample(tryon, sample)
            classes = predict_classes(tryon, sample, inputs, condition_groups(attributes))
            region = (classes == labels.UPPER).float()[:, None]
            theta, theta_fit = inference.predict_warp(tryon.matching, inputs, region)
            inside = region[0, 0].numpy() > 0
            row = region_figures(classes[0].numpy().astype(np.uint8), sample, source, attributes)
            row |= warp_figures(theta, inputs, inside) | warp_figures(theta_fit, inputs, inside, "_fitted")
            figures, *both = synthesis_figures(tryon, sample, inputs, distance)
            for entries, one in zip(misalignments.values(), both):
                entries.append(one)
            row |= figures
            for key, value in row.items():
                rows.setdefault(key, []).append(value)
        if not rows:
            raise ValueError(f"The packed file has no validation person of whom a pair can be made ({source}).")
        report[source] = {"pairs": len(next(iter(rows.values())))} | {k: finite_mean(v) for k, v in rows.items()}
        report[source] |= {"distance_is": distance_name} | {k: margin(rows) for k, rows in misalignments.items()}
    return report


def margin(misalignments: list[Misalignment]) -> dict[str, dict]:
    """By how much ALIAS lies nearer to the photograph than instance normalisation where the cloth is misaligned.

    misaligned: of each picture. The margin is the paired difference, positive where ALIAS is nearer, with its 95 %
    bootstrap interval (200 resamples), over all pictures and for the thirds with the smallest, medium and largest share
    (Fig. 9).
    """
    by_area = np.array(sorted(row for row in misalignments if np.isfinite(row).all()))
    thirds = zip(AREAS, np.array_split(by_area, 3)) if len(by_area) >= 3 else ()
    out = {}
    for name, rows in (("all", by_area), *thirds):
        if len(rows):
            middle, low, high = bootstrap(rows[:, 2] - rows[:, 1])
            share, alias, instance = rows.mean(0)
            numbers = {"share": share, "alias": alias, "instance": instance, "margin": middle, "low": low, "high": high}
            out[name] = {"pictures": len(rows)} | {k: round(float(v), 4) for k, v in numbers.items()}
    return out


# -- Table 2 and Fig. 13 ---------------------------------------------------------------------------------------------


def evaluate_warps(
    tryon: TryOn,
    pack: Path | None,
    count: int = 40,
    size: tuple[int, int] = (256, 192),
) -> dict:
    """The warps of the paper's Table 2 and Fig. 13 beside each other: the warped cloth against the cloth as it is worn.

    By source (worn, draped) and warp, means over validation people: ssim and distance (`perceptual_distance`)
    of W(c) on white inside its mask against the worn cloth on white; iou of the two masks; covered, the share of the
    worn one that the warped one covers; folded, the share of the warped cloth's pixels where it is folded; seconds. The
    region is the true one, so that the warp alone is judged. The flow is among them where the networks have one.
    misplaced: see `endpoint_error`, of draped people alone.
    """
    sampler, report = validation_sampler(pack, size), {}
    distance_name, distance = perceptual_distance(tryon.parser)
    for source in SOURCES if pack else ("draped",):
        rows: dict[str, dict[str, list[float]]] = {}
        for sample in pairs(sampler, source, 9, count):
            inputs, truth = conditions(sample), sample["worn_mask"][0]
            for name in (*WARPS, *([BY_FLOW] if tryon.flow is not None else [])):
                grid, seconds = grid_by(tryon, name, inputs, mask_to_tensor(truth))
                warped = inference.warp_by(grid, inputs)
                mask = warped.mask[0, 0].numpy() > 0.5
                cloth = np.where(mask[..., None], tensor_to_picture(warped.cloth), np.uint8(WHITE))
                figures = {
                    "ssim": structural_similarity(cloth, sample["worn"], border=False),
                    "distance": distance(cloth, sample["worn"]),
                    **dict(zip(("iou", "covered", "folded"), figures_of(grid, mask, truth))),
                    "seconds": seconds,
                } | ({"misplaced": endpoint_error(grid, sample)} if source == "draped" else {})
                for key, value in figures.items():
                    rows.setdefault(name, {}).setdefault(key, []).append(value)
        if not rows:
            raise ValueError(f"The packed file has no validation person of whom a pair can be made ({source}).")
        report[source] = {"pairs": len(rows["spline 5x5"]["ssim"])} | {
            name: {k: finite_mean(v) for k, v in lists.items()} for name, lists in rows.items()
        }
    return {"distance_is": distance_name} | report


def endpoint_error(grid: torch.Tensor, sample: dict[str, np.ndarray]) -> float:
    """Mean distance in pixels of the cloth picture between what a warp (1, H, W, 2) shows and what the true one does
    (the end-point error).
    """
    half = np.array(sample["grid"].shape[1::-1]) / 2
    away = np.linalg.norm((grid[0].numpy() - sample["grid"]) * half, axis=-1)
    return float(away[sample["placed"][0]].mean())


# -- Table 1 and Fig. 9 ----------------------------------------------------------------------------------------------

SYSTEMS = {"VITON-HD": "alias", "VITON-HD*": "instance"}  # * = instance normalisation, on the same weights
AREAS = ("small", "medium", "large")  # thirds by the misaligned share of the cloth region
BASELINES = ("cloth pasted on I_a", "copy of the photograph")
SHARE_OF_COUNT = {(256, 192): 1, (512, 384): 4, (1024, 768): 16}  # larger pictures take longer, so they are fewer
KERNEL = ("kernel distance", "its error")
FEWEST = 8  # pictures of which a Frechet distance is given


def drawing_case(
    seed: int, size: tuple[int, int], garment_seed: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A drawn person who is to wear the garment of `garment_seed` (None: the one worn), and the true picture of that.

    Returns a sample as Sampler gives it, with the garment to be tried on, and the truth (H,W,3) uint8.
    """
    person = draw_pair(seed, size=size)
    other = person if garment_seed is None else draw_pair(seed, size=size, garment_seed=garment_seed)
    parse = labels.one_hot(labels.lip_to_13(agnostic_parse(person.parse, person.keypoints)), 13)
    sample = {
        "person": person.person,
        "keypoints": person.keypoints,
        "pose": pose.draw_pose(person.keypoints, size),
        "parse_agnostic": parse,
        "agnostic": agnostic_image(person.person, person.parse, person.keypoints, thorough=True),
        "cloth": other.cloth,
        "cloth_mask": other.cloth_mask[None] > 127,
        "segmentation": labels.lip_to_13(other.parse),
        "parse": person.parse,
        "background": (person.parse == 0)[None],
    }
    return sample, other.person


def cases(pack: Pack | None, size: tuple[int, int], count: int):
    """Yields (source, setting, sample, true picture or None) of validation people; setting: "paired" or "unpaired".

    Drawn people, paired and unpaired with a true picture; with a pack, photographed people with the garment that they
    wear laid flat, and with that of the person before, of which there is no true picture.
    """
    for i in range(count):
        seed = 10**6 + i  # training draws below 2**31 at random: these are as good as never seen
        for setting, garment_seed in (("paired", None), ("unpaired", seed + 10**6)):
            yield "drawn", setting, *drawing_case(seed, size, garment_seed)
    if pack is None:
        return
    sampler = Sampler(pack, size, "val")
    people = list(pairs(sampler, "worn", 9, count))
    for sample, other in zip(people, people[-1:] + people[:-1]):
        yield "photographs", "paired", sample, sample["person"]
        yield "photographs", "unpaired", sample | {name: other[name] for name in ("cloth", "cloth_mask")}, None


def try_on(
    tryon: TryOn, sample: dict[str, np.ndarray], true_segmentation: bool, fit: bool
) -> tuple[dict[str, np.ndarray], float]:
    """Every system's picture (H,W,3) uint8 of one sample, and the misaligned share of the cloth region.

    true_segmentation: S instead of S-hat, as the paper does in the paired setting.
    """
    inputs = conditions(sample, tryon.device)
    if true_segmentation:
        classes = sample["segmentation"]
    else:
        classes = predict_classes(tryon, sample, inputs)[0].cpu().numpy().astype(np.uint8)
    seven = labels_to_tensor(labels.thirteen_to_7(classes), len(labels.ALIAS), tryon.device)
    inputs = with_view(tryon, sample, inputs, classes)
    synthesis = dress(tryon, inputs, seven, fit=fit)
    pictures = {name: tensor_to_picture(synthesis.pictures[norm]) for name, norm in SYSTEMS.items()}
    region = synthesis.seven[:, labels.ALIAS_UPPER : labels.ALIAS_UPPER + 1]
    inside = (region * synthesis.warp.mask)[0, 0].cpu().numpy() > 0
    pictures[BASELINES[0]] = np.where(inside[..., None], tensor_to_picture(synthesis.warp.cloth), sample["agnostic"])
    if not true_segmentation:  # of a paired picture the photograph is the truth itself
        pictures[BASELINES[1]] = sample["person"]
    return pictures, float(synthesis.misalign.sum() / region.sum().clamp(min=1))


def table_row(
    kind: dict[str, Any], cells: list[dict], photographs: list[np.ndarray], parser: torch.nn.Module, distance_name: str,
    frechet: tuple[str, Callable],
) -> dict[str, Any]:  # fmt: skip
    """A row of Table 1: `kind` (source, size, setting, system) and the figures of its pictures.

    cells: what was measured of each picture, and the picture itself, as "picture". photographs: what the distances of
    the whole set are to. parser: whose features the kernel distance compares. distance_name: key of the distance in the
    cells. frechet: name and function, as from `metrics.frechet_distance`.
    """
    row: dict[str, Any] = kind | {"pictures": len(cells)}
    for name in ("SSIM", distance_name):
        row[name] = round(float(np.mean([m[name] for m in cells])), 4) if name in cells[0] else None
    enough = kind["setting"] == "unpaired" and len(cells) >= FEWEST
    answers = [cell["picture"] for cell in cells]
    row[frechet[0]] = round(frechet[1](photographs, answers), 4) if enough else None
    kernel: tuple[float, float] | tuple[None, None] = (None, None)
    if enough:
        kernel = kernel_distance(*(deepest_features(parser, pictures) for pictures in (photographs, answers)))
    return row | {name: v if v is None else round(1000 * v, 4) for name, v in zip(KERNEL, kernel)}


def evaluate_table(
    tryon: TryOn, pack: Path | None, count: int = 16, sizes: tuple[tuple[int, int], ...] = SIZES, fit: bool = True
) -> dict:
    """Table 1 and Fig. 9 on drawn people and, with a pack, on photographed ones.

    Paired: the person's own garment, true segmentation, against the photograph. Unpaired: another garment, predicted
    segmentation; the Frechet distance is to the people's photographs, and drawn people have a true picture. Parse and
    joints are true in both. The pictures are I-hat as generated. Without noise, so the figures repeat. Beside the
    Frechet distance, which grows as the pictures become fewer, stands a kernel distance with its standard error
    (`metrics.kernel_distance`, of the parser's features, in thousandths).

    Returns {"measures", "rows": one dict per source, size, setting and system, "by_misaligned_area": rows, "protocol"}.
    """
    distance_name, distance = perceptual_distance(tryon.parser)
    frechet = frechet_distance(tryon.parser)
    people, rows, areas = Pack(pack) if pack else None, [], []
    for height, width in sizes:
        size = (height, width)
        groups: dict[tuple[str, str], dict[str, list]] = {}
        photographs: dict[tuple[str, str], list[np.ndarray]] = {}
        number = max(1, count // SHARE_OF_COUNT[size])
        for source, setting, sample, truth in cases(people, size, number):
            pictures, misaligned = try_on(tryon, sample, setting == "paired", fit)
            group = groups.setdefault((source, setting), {})
            photographs.setdefault((source, setting), []).append(sample["person"])
            for system, picture in pictures.items():
                figures = {"misaligned": misaligned, "picture": picture}
                if truth is not None:
                    figures |= {"SSIM": structural_similarity(picture, truth), distance_name: distance(picture, truth)}
                group.setdefault(system, []).append(figures)
        for (source, setting), group in groups.items():
            for system, cells in group.items():
                kind = {"source": source, "size": to_text(size), "setting": setting, "system": system}
                row = table_row(kind, cells, photographs[source, setting], tryon.parser, distance_name, frechet)
                rows.append(row)
                if setting == "paired" and len(cells) >= 3:
                    thirds = by_misaligned_area(cells, distance_name)
                    areas.append({"source": source, "size": row["size"], "system": system, **thirds})
    return {
        "measures": {"similarity": "SSIM", "distance": distance_name, "frechet": frechet[0]},
        "rows": rows,
        "by_misaligned_area": areas,
        "protocol": {
            "weights": tryon.name,
            "fit of the control points": fit,
            "noise": False,
            "parse and joints": "true",
            "paired": "own garment, true segmentation",
            "unpaired": "other garment, predicted segmentation",
            "photographs": "validation people; worn garments laid flat, the own (paired) or another one's (unpaired)",
        },
    }


def by_misaligned_area(rows: list[dict], name: str) -> dict:
    """Mean distance of the thirds with the smallest, medium and largest misaligned share (Fig. 9), and these shares."""
    out, thirds = {}, np.array_split(sorted(rows, key=lambda m: m["misaligned"]), 3)
    for area, third in zip(AREAS, thirds):
        out[area] = round(float(np.mean([m[name] for m in third])), 4)
        out[f"{area}_share"] = round(float(np.mean([m["misaligned"] for m in third])), 4)
    return out


def as_text(report: dict) -> str:
    """The report of `evaluate_table` as plain tables."""
    distance, frechet = report["measures"]["distance"], report["measures"]["frechet"]
    lines = []
    if distance != "LPIPS" or frechet != "FID":
        lines += [
            "The networks behind LPIPS and FID could not be downloaded. The same computation on the encoder of the",
            f"project's human parser stands in: '{distance}', '{frechet}'.",
            "Its figures are not comparable with published LPIPS and FID.",
            "",
        ]

    def cell(value, width):
        return f"{'-' if value is None else value if isinstance(value, str) else f'{value:.4f}':>{width}}"

    for source in dict.fromkeys(row["source"] for row in report["rows"]):
        for setting in ("paired", "unpaired"):
            rows = [r for r in report["rows"] if (r["source"], r["setting"]) == (source, setting)]
            sizes = list(dict.fromkeys(r["size"] for r in rows))
            names = ["SSIM", distance] + ([frechet, *KERNEL] if setting == "unpaired" else [])
            names = [n for n in names if any(r[n] is not None for r in rows)]
            if not names:
                continue
            number = ", ".join(f"{next(r['pictures'] for r in rows if r['size'] == s)} at {s}" for s in sizes)
            lines += [f"{source}, {setting} ({number})"]
            widths = [max(len(n), 7) for n in names]
            lines += [
                f"{'':24}" + "".join(f" | {s:^{sum(widths) + len(widths) - 1}}" for s in sizes),
                f"{'':24}" + "".join(" | " + " ".join(f"{n:>{w}}" for n, w in zip(names, widths)) for _ in sizes),
            ]
            for system in dict.fromkeys(r["system"] for r in rows):
                line = f"{system:24}"
                for s in sizes:
                    row = next(r for r in rows if r["size"] == s and r["system"] == system)
                    line += " | " + " ".join(cell(row[n], w) for n, w in zip(names, widths))
                lines.append(line)
            lines.append("")
    if report["by_misaligned_area"]:
        lines.append(
            f"{distance} by misaligned area, paired: thirds of the pictures (misaligned share of the cloth region)"
        )
    for row in report["by_misaligned_area"]:
        values = "  ".join(f"{a} {row[a]:.4f} ({row[f'{a}_share']:.4f})" for a in AREAS)
        lines.append(f"{row['source']:12} {row['size']:9} {row['system']:24} {values}")
    return "\n".join(lines)


def command_line() -> CommandLine:
    """The kinds of evaluation and their options."""
    parser = CommandLine(prog="python -m lab.tryon.evaluate", description=__doc__)
    kinds, sizes = parser.add_subparsers(dest="kind", required=True), [to_text(size) for size in SIZES]
    for kind, count in {"networks": 80, "segmentation": 80, "rules": 24, "warps": 40, "table": 16}.items():
        one = kinds.add_parser(kind)
        one.add_argument(
            "--pack", type=an_existing_file, metavar="FILE", help="packed photographs; without it drawn people alone"
        )
        few = "; of `table` at 256x192, a quarter of it at 512x384, a sixteenth at 1024x768"
        one.add_argument("--count", type=integer(1), default=count, help=f"pairs of each source at most{few}")
        one.add_argument("--model", default="tryon-lite")
        one.add_argument("--device", type=a_device, default="cpu")
        if kind != "table":
            one.add_argument("--size", default=sizes[0], choices=sizes)
    kinds.choices["warps"].add_argument(
        "--flow", type=an_existing_folder, metavar="DIR", help="other weights of the flow warper"
    )
    table = kinds.choices["table"]
    table.add_argument("--sizes", nargs="+", default=sizes, choices=sizes)
    table.add_argument(
        "--no-fit", action="store_true", help="control points as the network predicts them, as published"
    )
    table.add_argument("--json", type=a_file_to_write(), metavar="FILE", help="write the figures there as well")
    return parser


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    options = command_line().parse_args(argv)

    tryon = TryOn.from_pretrained(options.model, options.device)
    if options.kind == "networks":
        report = evaluate_networks(tryon, options.pack, options.count, size=read_size(options.size))
    elif options.kind in ("segmentation", "rules"):
        evaluate = evaluate_segmentation if options.kind == "segmentation" else evaluate_rules
        report = evaluate(tryon, options.pack, options.count, read_size(options.size))
    elif options.kind == "warps":
        if options.flow:
            tryon.flow = load_network("flow", options.flow)
        report = evaluate_warps(tryon, options.pack, options.count, read_size(options.size))
    else:
        report = evaluate_table(
            tryon, options.pack, options.count, tuple(map(read_size, options.sizes)), not options.no_fit
        )
        if options.json:
            write_atomic(options.json, json.dumps(report, indent=1) + "\n")
    print(as_text(report) if options.kind == "table" else json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
