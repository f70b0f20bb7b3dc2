"""`python -m vton.evaluate parser|networks ...`: figures of the shipped or any other try-on weights.

    parser    --data DIR    overlap of the parse on a folder of labelled photographs, whole photo and try-on crop
    networks  --pack FILE   predicted region, warp and synthesis on made pairs of people and garments never trained on
    table     --pack FILE   SSIM, LPIPS and FID at three sizes as in Table 1, and by misaligned area as in Fig. 9
"""
from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import torch

from training.command import one_sentence
from vton import labels, pose
from vton.agnostic import agnostic_image, agnostic_parse
from vton.alias import misalignment
from vton.data import Pack, affine, move_points, read_label_png, warp_picture
from vton.fit import fit_control_points
from vton.metrics import (PARSER_GROUPS, colour_difference, confusion, coverage, frechet_distance, grouped_iou, iou,
                          mask_iou, perceptual_distance, ssim, structural_similarity)
from vton.pipeline import SIZES, TryOn
from vton.recipes.common import collate, to_picture
from vton.recipes.samples import Sampler
from vton.rules import corrected
from vton.segmentation import segment
from vton.synthetic import draw_pair
from vton.warping import jacobian, match, sampling_grid, warp


def evaluate_parser(parser: torch.nn.Module, data: Path, split: str = "val.txt", height: int = 320, limit: int = 0) -> dict:
    """Overlap on a folder with image/, image-parse/, openpose-json/ and, where there are any, person-mask/ and carried/.

    One confusion matrix over all pixels. Truth outside PARSER_GROUPS and carried pixels are ignored. `split` lists the
    ids; without it every image counts. Returns the grouped IoU, the IoU of each label, and the upper-body groups again in
    the try-on frame of viton_crop.tsv.
    """
    from vton.parsing import parse
    list_file = data / split
    names = list_file.read_text().split() if list_file.exists() else sorted(f.stem for f in (data / "image").glob("*.jpg"))
    if not names:
        raise ValueError(f"No photographs were found in '{data.name}'; expected image/NAME.jpg and image-parse/NAME.png.")
    frames = {}
    if (data / "viton_crop.tsv").exists():
        frames = {r.split("\t")[0]: np.array(r.split("\t")[1:5], float) for r in (data / "viton_crop.tsv").read_text().splitlines()[1:]}
    whole, framed = np.zeros((20, 20), np.int64), np.zeros((20, 20), np.int64)
    for name in names[:limit or None]:
        image = cv2.imread(str(data / "image" / f"{name}.jpg"))
        if image is None:
            raise ValueError(f"image/{name}.jpg cannot be read.")
        image, truth = image[..., ::-1], read_label_png(data / "image-parse" / f"{name}.png")
        if truth.shape != image.shape[:2] or truth.max() > 19:
            raise ValueError(f"image-parse/{name}.png must have the picture's size {image.shape[:2]} and labels 0 to 19.")
        keypoints = pose.load_openpose_json(data / "openpose-json" / f"{name}_keypoints.json")
        mask_file, carried_file = data / "person-mask" / f"{name}.png", data / "carried" / f"{name}.png"
        mask = read_label_png(mask_file).astype(np.float32) / 255 if mask_file.exists() else pose.detect(image).person_mask
        valid = read_label_png(carried_file) == 0 if carried_file.exists() else np.ones(truth.shape, bool)
        whole += confusion(truth, parse(parser, np.ascontiguousarray(image), keypoints, mask, height=height), valid, 20)
        if name in frames:
            size = (512, 384)
            matrix = affine(frames[name], size)
            answer = parse(parser, warp_picture(np.ascontiguousarray(image), matrix, size), move_points(keypoints, matrix),
                           warp_picture(mask, matrix, size))
            inside = warp_picture(valid.astype(np.uint8), matrix, size, nearest=True) > 0
            framed += confusion(warp_picture(truth, matrix, size, nearest=True), answer, inside, 20)
    groups, crop = grouped_iou(whole, PARSER_GROUPS), grouped_iou(framed, PARSER_GROUPS)
    return {"photographs": len(names[:limit or None]), "mean_iou": float(np.nanmean(list(groups.values()))),
            "iou": {k: float(v) for k, v in groups.items()},
            "iou_by_label": {n: float(v) for n, v in zip(labels.LIP, iou(whole)) if np.isfinite(v)},
            "iou_in_frame": {k: float(crop[k]) for k in ("background", "hair", "face", "upper", "lower", "arms") if np.isfinite(crop[k])}}


def region_figures(predicted: np.ndarray, sample: dict[str, np.ndarray], source: str) -> dict[str, float]:
    """Overlap of a predicted segmentation (H, W) with a sample's rule-made truth, as IoU in [0, 1].

    region_iou: the upper garment; region_iou_rules: the same after the rules on sleeves, neckline and hem; arms_iou: both arms.
    A photographed garment's pixels behind a bag are left out, because their truth is hidden.
    """
    truth, (ruled, _) = sample["segmentation"], corrected(predicted, sample["keypoints"], sample["cloth_mask"][0])
    known = ~sample["carried"][0] if source == "worn" else np.ones(truth.shape, bool)
    return {name: mask_iou(np.isin(answer, classes) & known, np.isin(truth, classes) & known)
            for name, answer, classes in (("region_iou", predicted, labels.UPPER), ("region_iou_rules", ruled, labels.UPPER),
                                          ("arms_iou", predicted, labels.ARMS))}


def predicted_segmentation(tryon: TryOn, sample: dict[str, np.ndarray], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """S-hat (1,H,W) of one sample and of its collated `batch`, as the pipeline predicts it: with the mirror image."""
    mirrored = pose.draw_pose(pose.mirrored(sample["keypoints"], sample["pose"].shape[1]), sample["pose"].shape[:2])
    return segment(tryon.segmentation, batch["cloth"], batch["cloth_mask"], batch["parse_agnostic"], batch["pose"],
                   mirrored_pose=collate([{"pose": mirrored}])["pose"].to(batch["pose"].device))


def evaluate_networks(tryon: TryOn, pack: Path | None, count: int = 80, seed: int = 9,
                      size: tuple[int, int] = (256, 192)) -> dict:
    """Made pairs of validation people and garments, by source (worn, product, drawn), at `size` (H, W), true parse and pose.

    pairs: how many; every person that a source can use counts once, `count` of them at most.
    region_iou, region_iou_rules and arms_iou: see `region_figures`. warped_iou and covered: W(M_c, theta) against the predicted
    region, before and after the fit; folds: share of pictures with a negative Jacobian inside the warped mask.
    synthesis (sources with a true picture): SSIM of the whole picture and inside the gray region, I-hat against W(c, theta) in
    the aligned region as CIEDE2000, and the baseline of pasting W(c, theta) onto I_a.
    """
    sampler, report = Sampler(Pack(pack) if pack else None, size, "val"), {}
    for source in ("worn", "product", "drawn") if pack else ("drawn",):
        rows: dict[str, list[float]] = {}
        for sample in itertools.islice(sampler.each(source, seed), count):
            b = collate([sample])
            with torch.inference_mode():
                seg = predicted_segmentation(tryon, sample, b)
                region = (seg == labels.UPPER).float()[:, None]
                theta = match(tryon.matching, region, b["pose"], b["agnostic"], b["cloth"])
            fitted = fit_control_points(theta, b["cloth_mask"], region)
            found = region_figures(seg[0].numpy().astype(np.uint8), sample, source)
            inside = region[0, 0].numpy() > 0
            for name, t in (("", theta), ("_fitted", fitted)):
                grid = sampling_grid(t, size)
                mask = warp(b["cloth_mask"], grid, "zeros")[0, 0].numpy() > 0.5
                folded = (jacobian(grid)[0].numpy() <= 0) & mask[:-1, :-1]
                found |= {f"warped_iou{name}": mask_iou(mask, inside), f"covered{name}": coverage(mask, inside),
                          f"folded{name}": float(folded.any())}
            if source != "product":  # the person's own garment: there is a true picture
                true = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(sample["segmentation"]), 7))[None]
                with torch.inference_mode():
                    own = match(tryon.matching, b["worn_mask"], b["pose"], b["agnostic"], b["cloth"])
                own = fit_control_points(own, b["cloth_mask"], b["worn_mask"])
                grid = sampling_grid(own, size)
                warped, warped_mask = warp(b["cloth"], grid), (warp(b["cloth_mask"], grid, "zeros") > 0.5).float()
                misalign, divided = misalignment(true, warped_mask)
                x = torch.cat((b["agnostic"], b["pose"], warped), 1)
                person, cloth = sample["person"], to_picture(warped[0])
                aligned = ((true[:, 2:3] - misalign) > 0)[0, 0].numpy()
                open_region = misalign[0, 0].numpy() > 0
                gray = (sample["agnostic"] == 128).all(2)
                for norm in ("alias", "instance"):
                    with torch.inference_mode():
                        picture = to_picture(tryon.alias(x, true, divided, misalign, norm=norm)[0])
                    tail = "" if norm == "alias" else "_instance"
                    # Outside the region the photograph itself stays, as in the final picture.
                    final = np.where(gray[..., None], picture, person)
                    found |= {f"ssim{tail}": ssim(picture, person), f"ssim_final{tail}": ssim(final, person),
                              f"colour_aligned{tail}": colour_difference(picture, cloth, aligned),
                              f"colour_misaligned{tail}": colour_difference(picture, person, open_region)}
                pasted = np.where(warped_mask[0, 0].numpy()[..., None] > 0, cloth, sample["agnostic"])
                found |= {"ssim_pasted": ssim(pasted, person), "colour_misaligned_pasted": colour_difference(pasted, person, open_region)}
            for key, value in found.items():
                rows.setdefault(key, []).append(value)
        if not rows:
            raise ValueError(f"The packed file has no validation person of whom a pair can be made ({source}).")
        report[source] = {"pairs": len(next(iter(rows.values())))} | {k: round(float(np.nanmean(v)), 4) for k, v in rows.items()}
    return report


# -- Table 1 and Fig. 9 ----------------------------------------------------------------------------------------------

SYSTEMS = {"VITON-HD": "alias", "VITON-HD*": "instance"}  # * = instance normalisation, on the same weights
BASELINES = ("cloth pasted on I_a", "copy of the photograph")
SHARE_OF_COUNT = {(256, 192): 1, (512, 384): 4, (1024, 768): 16}  # larger pictures take longer, so they are fewer
FEWEST = 8  # pictures of which a Frechet distance is given


def drawn_case(seed: int, size: tuple[int, int],
               garment_seed: int | None = None) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A drawn person who is to wear the garment of `garment_seed` (None: the one worn), and the true picture of that.

    Returns a sample as Sampler gives it, with the garment to be tried on, and the truth (H,W,3) uint8.
    """
    person = draw_pair(seed, size=size)
    dressed = person if garment_seed is None else draw_pair(seed, size=size, garment_seed=garment_seed)
    parse = labels.one_hot(labels.lip_to_13(agnostic_parse(person.parse, person.keypoints)), 13)
    sample = {"person": person.person, "keypoints": person.keypoints, "pose": pose.draw_pose(person.keypoints, size),
              "parse_agnostic": parse,
              "agnostic": agnostic_image(person.person, person.parse, person.keypoints, thorough=True),
              "cloth": dressed.cloth, "cloth_mask": dressed.cloth_mask[None] > 127,
              "segmentation": labels.lip_to_13(dressed.parse)}
    return sample, dressed.person


def cases(pack: Pack | None, size: tuple[int, int], count: int):
    """Yields (source, setting, sample, true picture or None) of validation people; setting: "paired" or "unpaired".

    Drawn people, paired and unpaired with a true picture; with a pack, photographed people with the garment that they
    wear laid flat, and with a product photo, of which there is no true picture.
    """
    for i in range(count):
        seed = 10**6 + i  # training draws below 2**31 at random: these are as good as never seen
        for setting, garment_seed in (("paired", None), ("unpaired", seed + 10**6)):
            yield "drawn", setting, *drawn_case(seed, size, garment_seed)
    sampler = Sampler(pack, size, "val") if pack else None
    for setting, source in (("paired", "worn"), ("unpaired", "product")) if sampler else ():
        for sample in itertools.islice(sampler.each(source, 9), count):
            yield "photographs", setting, sample, sample["person"] if setting == "paired" else None


@torch.inference_mode()
def try_on(tryon: TryOn, sample: dict[str, np.ndarray], true_segmentation: bool,
           fit: bool) -> tuple[dict[str, np.ndarray], float]:
    """Every system's picture (H,W,3) uint8 of one sample, and the misaligned share of the cloth region.

    true_segmentation: S instead of S-hat, as the paper does in the paired setting.
    """
    size = sample["person"].shape[:2]
    b = {k: v.to(tryon.device) for k, v in collate([{k: v for k, v in sample.items() if k != "source"}]).items()}
    classes = b["segmentation"] if true_segmentation else predicted_segmentation(tryon, sample, b)
    seven = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(classes[0].cpu().numpy().astype(np.uint8)), 7))[None]
    seven = seven.to(tryon.device)
    region = seven[:, 2:3]
    theta = match(tryon.matching, region, b["pose"], b["agnostic"], b["cloth"])
    theta = fit_control_points(theta, b["cloth_mask"], region) if fit else theta
    grid = sampling_grid(theta, size)
    warped, warped_mask = warp(b["cloth"], grid), (warp(b["cloth_mask"], grid, "zeros") > 0.5).float()
    misalign, divided = misalignment(seven, warped_mask)
    x = torch.cat((b["agnostic"], b["pose"], warped), 1)
    pictures = {name: to_picture(tryon.alias(x, seven, divided, misalign, norm=norm)[0])
                for name, norm in SYSTEMS.items()}
    inside = (region * warped_mask)[0, 0].cpu().numpy() > 0
    pictures[BASELINES[0]] = np.where(inside[..., None], to_picture(warped[0]), sample["agnostic"])
    if not true_segmentation:  # of a paired picture the photograph is the truth itself
        pictures[BASELINES[1]] = sample["person"]
    return pictures, float(misalign.sum() / region.sum().clamp(min=1))


def evaluate_table(tryon: TryOn, pack: Path | None, count: int = 16, sizes: tuple[tuple[int, int], ...] = SIZES,
                   fit: bool = True) -> dict:
    """Table 1 and Fig. 9 on drawn people and, with a pack, on photographed ones.

    Paired: the person's own garment, true segmentation, against the photograph. Unpaired: another garment, predicted
    segmentation; the Frechet distance is to the people's photographs, and drawn people have a true picture. Parse and
    joints are true in both. The pictures are I-hat as generated. Without noise, so the figures repeat.

    Returns {"measures", "rows": one dict per source, size, setting and system, "by_misaligned_area": rows, "protocol"}.
    """
    distance_name, distance = perceptual_distance(tryon.parser)
    frechet_name, frechet = frechet_distance(tryon.parser)
    pack, rows, areas = Pack(pack) if pack else None, [], []
    for size in sizes:
        found: dict[tuple[str, str], dict[str, list]] = {}
        number = max(1, count // SHARE_OF_COUNT[tuple(size)])
        for source, setting, sample, truth in cases(pack, tuple(size), number):
            pictures, misaligned = try_on(tryon, sample, setting == "paired", fit)
            group = found.setdefault((source, setting), {"photographs": []})
            group["photographs"].append(sample["person"])
            for system, picture in pictures.items():
                measured = {"misaligned": misaligned, "picture": picture}
                if truth is not None:
                    measured |= {"SSIM": structural_similarity(picture, truth), distance_name: distance(picture, truth)}
                group.setdefault(system, []).append(measured)
        for (source, setting), group in found.items():
            photographs = group.pop("photographs")
            for system, measured in group.items():
                row = {"source": source, "size": f"{size[0]}x{size[1]}", "setting": setting, "system": system,
                       "pictures": len(measured)}
                for name in ("SSIM", distance_name):
                    row[name] = round(float(np.mean([m[name] for m in measured])), 4) if name in measured[0] else None
                enough = setting == "unpaired" and len(measured) >= FEWEST
                row[frechet_name] = round(frechet(photographs, [m["picture"] for m in measured]), 4) if enough else None
                rows.append(row)
                if setting == "paired" and len(measured) >= 3:
                    areas.append({"source": source, "size": row["size"], "system": system,
                                  **by_misaligned_area(measured, distance_name)})
    return {"measures": {"similarity": "SSIM", "distance": distance_name, "frechet": frechet_name}, "rows": rows,
            "by_misaligned_area": areas, "protocol": {
                "weights": tryon.name, "fit of the control points": fit, "noise": False, "parse and joints": "true",
                "paired": "own garment, true segmentation", "unpaired": "other garment, predicted segmentation",
                "photographs": "validation people; worn garments laid flat (paired), product photos (unpaired)"}}


def by_misaligned_area(measured: list[dict], name: str) -> dict:
    """Mean distance of the thirds with the smallest, medium and largest misaligned share (Fig. 9), and these shares."""
    out, thirds = {}, np.array_split(sorted(measured, key=lambda m: m["misaligned"]), 3)
    for area, third in zip(("small", "medium", "large"), thirds):
        out[area] = round(float(np.mean([m[name] for m in third])), 4)
        out[f"{area}_share"] = round(float(np.mean([m["misaligned"] for m in third])), 4)
    return out


def as_text(report: dict) -> str:
    """The report of `evaluate_table` as plain tables."""
    distance, frechet = report["measures"]["distance"], report["measures"]["frechet"]
    lines = []
    if distance != "LPIPS" or frechet != "FID":
        lines += ["The networks behind LPIPS and FID could not be downloaded. The same computation on the encoder of the",
                  f"project's human parser stands in: '{distance}', '{frechet}'.",
                  "Its figures are not comparable with published LPIPS and FID.", ""]

    def cell(value, width):
        return f"{'-' if value is None else value if isinstance(value, str) else f'{value:.4f}':>{width}}"
    for source in dict.fromkeys(row["source"] for row in report["rows"]):
        for setting in ("paired", "unpaired"):
            chosen = [r for r in report["rows"] if (r["source"], r["setting"]) == (source, setting)]
            sizes = list(dict.fromkeys(r["size"] for r in chosen))
            names = ["SSIM", distance] + ([frechet] if setting == "unpaired" else [])
            names = [n for n in names if any(r[n] is not None for r in chosen)]
            if not names:
                continue
            number = ", ".join(f"{next(r['pictures'] for r in chosen if r['size'] == s)} at {s}" for s in sizes)
            lines += [f"{source}, {setting} ({number})"]
            widths = [max(len(n), 7) for n in names]
            lines += [f"{'':24}" + "".join(f" | {s:^{sum(widths) + len(widths) - 1}}" for s in sizes),
                      f"{'':24}" + "".join(" | " + " ".join(f"{n:>{w}}" for n, w in zip(names, widths)) for _ in sizes)]
            for system in dict.fromkeys(r["system"] for r in chosen):
                line = f"{system:24}"
                for s in sizes:
                    row = next(r for r in chosen if r["size"] == s and r["system"] == system)
                    line += " | " + " ".join(cell(row[n], w) for n, w in zip(names, widths))
                lines.append(line)
            lines.append("")
    if report["by_misaligned_area"]:
        lines.append(f"{distance} by misaligned area, paired: thirds of the pictures (misaligned share of the cloth region)")
    for row in report["by_misaligned_area"]:
        values = "  ".join(f"{a} {row[a]:.4f} ({row[f'{a}_share']:.4f})" for a in ("small", "medium", "large"))
        lines.append(f"{row['source']:12} {row['size']:9} {row['system']:24} {values}")
    return "\n".join(lines)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vton.evaluate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("parser")
    one.add_argument("--data", type=Path, required=True, metavar="DIR")
    one.add_argument("--limit", type=int, default=0, help="only the first so many photographs")
    one.add_argument("--height", type=int, default=320, help="height at which the network sees the whole photograph")
    two = kinds.add_parser("networks")
    two.add_argument("--pack", type=Path, metavar="FILE", help="packed photographs; without it drawn people alone")
    two.add_argument("--count", type=int, default=80, help="pairs of each source at most")
    known = [f"{h}x{w}" for h, w in SIZES]
    two.add_argument("--size", default=known[0], choices=known)
    three = kinds.add_parser("table")
    three.add_argument("--pack", type=Path, metavar="FILE", help="packed photographs; without it drawn people alone")
    three.add_argument("--count", type=int, default=16,
                       help="people of each source at 256x192; a quarter of it at 512x384, a sixteenth at 1024x768")
    three.add_argument("--sizes", nargs="+", default=known, choices=known)
    three.add_argument("--no-fit", action="store_true", help="control points as the network predicts them, as published")
    three.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    for p in (one, two, three):
        p.add_argument("--model", default="tryon-lite")
        p.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)

    def sides(size: str) -> tuple[int, int]:
        height, width = size.split("x")
        return int(height), int(width)

    tryon = TryOn.from_pretrained(options.model, options.device)
    if options.kind == "parser":
        report = evaluate_parser(tryon.parser, options.data, height=options.height, limit=options.limit)
    elif options.kind == "networks":
        report = evaluate_networks(tryon, options.pack, options.count, size=sides(options.size))
    else:
        report = evaluate_table(tryon, options.pack, options.count, tuple(map(sides, options.sizes)), not options.no_fit)
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(as_text(report) if options.kind == "table" else json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
