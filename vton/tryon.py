"""`python -m vton.tryon person.jpg garment.jpg --out DIR`: every map of a try-on as a PNG, and a zip to go on from.

`python -m vton.tryon --record try-on.zip --edit segmentation=mine.png --out DIR` goes on from a map corrected by hand.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from PIL import Image

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vton.tryon", description="Try a garment on a person.")
    parser.add_argument("person", type=Path, nargs="?")
    parser.add_argument("garment", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the maps")
    parser.add_argument("--size", default="512x384", help="of the maps: 256x192, 512x384 or 1024x768")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="tryon-lite", help="name of a shipped model, or a folder")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-fit", action="store_true", help="leave the control points as the network predicts them")
    parser.add_argument("--norm", default="alias", choices=("alias", "instance"))
    parser.add_argument("--no-noise", action="store_true")
    parser.add_argument("--no-mirror", action="store_true", help="predict the segmentation without its mirror image, as published")
    parser.add_argument("--grid", type=int, default=5, help="control points along a side of the spline: 5 or 10")
    parser.add_argument("--sleeves", default="auto", choices=("auto", "predicted", "none", "short", "long"),
                        help="how long the garment's sleeves are; predicted: the network alone decides")
    parser.add_argument("--neckline", default="auto", choices=("auto", "predicted"),
                        help="auto: the throat stays bare unless the garment has a high collar; predicted: the network alone decides")
    parser.add_argument("--hem", default="auto", choices=("auto", "predicted"),
                        help="auto: an even hem without gaps above the trousers; predicted: the network alone decides")
    parser.add_argument("--until", default="composite", metavar="STAGE", help="stop after this stage, such as misalignment")
    parser.add_argument("--record", type=Path, metavar="ZIP", help="go on from a saved try-on instead of two pictures")
    parser.add_argument("--edit", metavar="MAP=FILE", help="with --record: a corrected map, such as segmentation=mine.png")
    options = parser.parse_args(argv)
    if (options.record is None) == (options.garment is None) or (options.edit and options.record is None):
        print("error: name a person and a garment, or a saved try-on with --record.", file=sys.stderr)
        return 2
    try:
        size = tuple(int(v) for v in options.size.lower().split("x"))
        if len(size) != 2:
            raise ValueError
    except ValueError:
        print(f"error: --size must look like 512x384, not '{options.size}'.", file=sys.stderr)
        return 2
    from vton import record
    from vton.pipeline import STAGES, TryOn
    try:
        tryon = TryOn.from_pretrained(options.model, options.device)
        if options.record is not None:
            result = record.load(options.record)
            if options.edit:
                name, _, file = options.edit.partition("=")
                result = tryon.correct(result, name, record.read_map(result, name, Path(file)), until=options.until)
            else:
                first = next((stage for stage in STAGES if stage not in result.seconds), STAGES[-1])
                result = tryon.resume(result, first, until=options.until)
        else:
            result = tryon.run(options.person, options.garment, size=size, seed=options.seed, fit=not options.no_fit,
                               norm=options.norm, noise=not options.no_noise, grid=options.grid, sleeves=options.sleeves,
                               neckline=options.neckline, hem=options.hem, mirror=not options.no_mirror, until=options.until)
        options.out.mkdir(parents=True, exist_ok=True)
        for name, picture in result.pictures().items():
            Image.fromarray(picture).save(options.out / f"{name}.png")
        (options.out / "settings.json").write_text(json.dumps(record.settings(result), indent=1) + "\n", encoding="utf-8")
        record.save(result, options.out / "try-on.zip", model=options.model)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
