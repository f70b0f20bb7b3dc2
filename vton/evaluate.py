"""`python -m vton.evaluate parser|networks ...`: figures of the shipped or any other try-on weights.

    parser    --data DIR    overlap of the parse on a folder of labelled photographs, whole photo and try-on crop
    networks  --pack FILE   predicted region, warp and synthesis on made pairs of people and garments never trained on
"""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import torch

from vton import labels, pose
from vton.data import Pack, affine, move_points, read_label_png, warp_picture
from vton.fit import fit_control_points
from vton.metrics import PARSER_GROUPS, colour_difference, confusion, coverage, grouped_iou, iou, mask_iou, ssim
from vton.pipeline import TryOn
from vton.warping import jacobian, sampling_grid, warp


def evaluate_parser(parser: torch.nn.Module, data: Path, split: str = "val.txt", height: int = 384, limit: int = 0) -> dict:
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


def evaluate_networks(tryon: TryOn, pack: Path | None, count: int = 48, seed: int = 9) -> dict:
    """Made pairs of validation people and garments, by source (worn, product, drawn), at 256x192, true parse and pose.

    region_iou: predicted upper region against the rule-made truth. warped_iou and covered: W(M_c, theta) against the
    predicted region, before and after the fit; folds: share of pictures with a negative Jacobian inside the warped mask.
    synthesis (sources with a true picture): SSIM of the whole picture and inside the gray region, I-hat against W(c, theta) in
    the aligned region as CIEDE2000, and the baseline of pasting W(c, theta) onto I_a.
    """
    from vton.alias import misalignment
    from vton.recipes.common import collate, to_picture
    from vton.recipes.samples import Sampler
    from vton.segmentation import segment
    from vton.warping import match
    size = (256, 192)
    sampler, report = Sampler(Pack(pack) if pack else None, size, "val"), {}
    for source in ("worn", "product", "drawn") if pack else ("drawn",):
        rows: dict[str, list[float]] = {}
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            sample = sampler.sample(rng, source, augment=False, index=i if pack and source != "drawn" else None)
            b = collate([sample])
            with torch.inference_mode():
                seg = segment(tryon.segmentation, b["cloth"], b["cloth_mask"], b["parse_agnostic"], b["pose"])
                region = (seg == 3).float()[:, None]
                theta = match(tryon.matching, region, b["pose"], b["agnostic"], b["cloth"])
            fitted = fit_control_points(theta, b["cloth_mask"], region)
            found = {"region_iou": mask_iou(seg[0].numpy() == 3, sample["segmentation"] == 3),
                     "arms_iou": mask_iou(np.isin(seg[0].numpy(), (5, 6)), np.isin(sample["segmentation"], (5, 6)))}
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
        report[source] = {k: round(float(np.nanmean(v)), 4) for k, v in rows.items()}
    return report


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vton.evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("parser")
    one.add_argument("--data", type=Path, required=True, metavar="DIR")
    one.add_argument("--limit", type=int, default=0, help="only the first so many photographs")
    one.add_argument("--height", type=int, default=384, help="height at which the network sees the whole photograph")
    two = kinds.add_parser("networks")
    two.add_argument("--pack", type=Path, metavar="FILE", help="packed photographs; without it drawn people alone")
    two.add_argument("--count", type=int, default=48, help="pairs of each source")
    for p in (one, two):
        p.add_argument("--model", default="tryon-lite")
        p.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    try:
        tryon = TryOn.from_pretrained(options.model, options.device)
        if options.kind == "parser":
            report = evaluate_parser(tryon.parser, options.data, height=options.height, limit=options.limit)
        else:
            report = evaluate_networks(tryon, options.pack, options.count)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
